#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
}

uint8_t *buf_grow(struct buf *b, size_t n)
{
    size_t need = 0;
    if (__builtin_add_overflow(b->len, n, &need) || need > SIZE_MAX / 2)
        abort();
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap *= 2;
    b->data = xrealloc(b->data, cap);
    b->cap = cap;
    uint8_t *at = b->data + b->len;
    b->len = need;
    return at;
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    b->len -= n;
    if (b->len > 0 && n > 0)
        memmove(b->data, b->data + n, b->len);
}

void *xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        abort();
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        abort();
    return p;
}

void *xrealloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    if (!q)
        abort();
    return q;
}

char *xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(xmalloc(n), s, n);
}

/* A growing byte buffer, owned by whoever embeds it. Running out of memory aborts: Muster's
 * buffers are bounded by their owners, so a failed small allocation means the machine is gone. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf {
    uint8_t *data;
    size_t len;
    size_t cap;
};

/* Embedded: a zeroed struct is an empty buffer. */
void buf_done(struct buf *b);

/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *b);

/* The rest of buf_extend, for a buffer that is too small. */
uint8_t *buf_grow(struct buf *b, size_t n);

/* Appends room for n bytes and returns it, uninitialised. Valid until the next append. Here, and
 * not in buf.c, because most calls are for a few bytes that fit. */
static inline uint8_t *buf_extend(struct buf *b, size_t n)
{
    if (n > b->cap - b->len || !b->data)
        return buf_grow(b, n);
    uint8_t *at = b->data + b->len;
    b->len += n;
    return at;
}

static inline void buf_append(struct buf *b, const void *data, size_t n)
{
    if (n > 0)
        memcpy(buf_extend(b, n), data, n);
}

/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);

/* malloc family that aborts instead of failing. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);

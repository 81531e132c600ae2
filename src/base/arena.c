#include "base/arena.h"

#include "base/buf.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_SIZE = 64 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t cap;
    size_t len;
    alignas(max_align_t) uint8_t data[];
};

void arena_done(struct arena *a)
{
    struct arena_chunk *c = a->first;
    while (c) {
        struct arena_chunk *next = c->next;
        free(c);
        c = next;
    }
    *a = (struct arena){0};
}

void arena_reset(struct arena *a)
{
    for (struct arena_chunk *c = a->first; c; c = c->next)
        c->len = 0;
    a->current = a->first;
    a->used = 0;
}

static struct arena_chunk *chunk_with_room(struct arena *a, size_t n)
{
    struct arena_chunk *c = a->current;
    while (c && c->cap - c->len < n && c->next)
        c = c->next;
    if (c && c->cap - c->len >= n)
        return c;

    size_t cap = n > CHUNK_SIZE ? n : CHUNK_SIZE;
    struct arena_chunk *fresh = xmalloc(sizeof(*fresh) + cap);
    fresh->next = NULL;
    fresh->cap = cap;
    fresh->len = 0;
    if (c)
        c->next = fresh;
    else
        a->first = fresh;
    return fresh;
}

void *arena_alloc(struct arena *a, size_t n)
{
    size_t align = alignof(max_align_t);
    n = (n + align - 1) & ~(align - 1);
    struct arena_chunk *c = chunk_with_room(a, n);
    a->current = c;
    void *p = c->data + c->len;
    c->len += n;
    a->used += n;
    return p;
}

struct str arena_str(struct arena *a, struct str s)
{
    char *p = arena_alloc(a, s.len + 1);
    if (s.len > 0)
        memcpy(p, s.at, s.len);
    p[s.len] = '\0';
    return (struct str){p, s.len};
}

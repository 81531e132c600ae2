/* A growing byte buffer, owned by whoever embeds it. Running out of memory aborts: Muster's
 * buffers are bounded by their owners, so a failed small allocation means the machine is gone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf {
    uint8_t *data;
    size_t len;
    size_t cap;
};

/* Embedded: a zeroed struct is an empty buffer. */
void buf_done(struct buf *b);

/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *b);

/* Appends room for n bytes and returns it, uninitialised. Valid until the next append. */
uint8_t *buf_extend(struct buf *b, size_t n);

void buf_append(struct buf *b, const void *data, size_t n);

/* Drops the first n bytes. */
void buf_consume(struct buf *b, size_t n);

/* malloc family that aborts instead of failing. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);

/* A slab: memory for many objects of one size that come and go. What comes together stands
 * together, in large pages, and is taken and given back in a few steps. Owned by whoever embeds it;
 * everything taken goes with it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct slab_chunk;

struct slab {
    size_t size;
    struct slab_chunk *chunks; /* newest first */
    uint8_t *fresh;            /* in the newest chunk: never taken yet */
    size_t n_fresh;            /* objects from there */
    void *given;               /* given back, the last one first */
};

void slab_init(struct slab *s, size_t size);

/* Every object is gone. */
void slab_done(struct slab *s);

/* Zeroed, aligned for any type. Never fails (see buf.h). */
void *slab_take(struct slab *s);

/* NULL is fine. */
void slab_give(struct slab *s, void *object);

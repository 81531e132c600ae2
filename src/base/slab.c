#include "base/slab.h"

#include "base/pages.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WATCHED 1
#endif
#endif

/* An address sanitizer is told what nobody may touch, as malloc would tell it. */
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
#define FORBID(at_, n_) ASAN_POISON_MEMORY_REGION(at_, n_)
#define ALLOW(at_, n_) ASAN_UNPOISON_MEMORY_REGION(at_, n_)
#else
#define FORBID(at_, n_) (void)(at_)
#define ALLOW(at_, n_) (void)(at_)
#endif

enum { CHUNK_FIRST = 32 * 1024, CHUNK_MOST = 1024 * 1024 };

struct slab_chunk {
    struct slab_chunk *before;
    size_t bytes;
    alignas(max_align_t) uint8_t objects[];
};

/* The next one that was given back, in the memory of the one before it. */
struct given {
    struct given *next;
};

void slab_init(struct slab *s, size_t size)
{
    size_t align = alignof(max_align_t);
    assert(size >= sizeof(struct given));
    *s = (struct slab){.size = (size + align - 1) & ~(align - 1)};
}

void slab_done(struct slab *s)
{
    for (struct slab_chunk *c = s->chunks; c;) {
        struct slab_chunk *before = c->before;
        ALLOW(c, c->bytes);
        pages_give(c, c->bytes);
        c = before;
    }
    *s = (struct slab){.size = s->size};
}

/* Each chunk is twice as large as the one before: few objects take little memory. Up to a limit:
 * whoever takes the first object of a chunk waits for all of it. */
static void add_chunk(struct slab *s)
{
    size_t bytes = s->chunks ? s->chunks->bytes * 2 : CHUNK_FIRST;
    if (bytes > CHUNK_MOST)
        bytes = CHUNK_MOST;
    struct slab_chunk *c = pages_take(bytes);
    c->before = s->chunks;
    c->bytes = bytes;
    s->chunks = c;
    s->fresh = c->objects;
    s->n_fresh = (bytes - sizeof(*c)) / s->size;
    FORBID(c->objects, bytes - sizeof(*c));
}

void *slab_take(struct slab *s)
{
    struct given *again = s->given;
    if (again) {
        ALLOW(again, s->size);
        s->given = again->next;
        return memset(again, 0, s->size);
    }
    if (s->n_fresh == 0)
        add_chunk(s);
    void *object = s->fresh; /* zeroed by the system */
    ALLOW(object, s->size);
    s->fresh += s->size;
    s->n_fresh--;
    return object;
}

void slab_give(struct slab *s, void *object)
{
    if (!object)
        return;
    struct given *g = object;
    g->next = s->given;
    s->given = g;
    FORBID(object, s->size);
}

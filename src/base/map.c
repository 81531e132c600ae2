#include "base/map.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64's finaliser: every input bit moves every output bit. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 31;
    return x;
}

void map_done(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}

static size_t slot_of(const struct map *m, uint64_t key)
{
    size_t mask = m->cap - 1;
    size_t i = (size_t)mix(key) & mask;
    while (m->slots[i].value && m->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

void *map_get(const struct map *m, uint64_t key)
{
    return m->cap == 0 ? NULL : m->slots[slot_of(m, key)].value;
}

static void grow(struct map *m)
{
    struct map old = *m;
    m->cap = old.cap ? old.cap * 2 : 16;
    m->slots = xcalloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < old.cap; i++) {
        if (old.slots[i].value)
            m->slots[slot_of(m, old.slots[i].key)] = old.slots[i];
    }
    free(old.slots);
}

void *map_put(struct map *m, uint64_t key, void *value)
{
    assert(value);
    if ((m->len + 1) * 4 > m->cap * 3)
        grow(m);
    struct map_slot *s = &m->slots[slot_of(m, key)];
    void *before = s->value;
    if (!before)
        m->len++;
    *s = (struct map_slot){key, value};
    return before;
}

void *map_remove(struct map *m, uint64_t key)
{
    if (m->cap == 0)
        return NULL;
    size_t mask = m->cap - 1;
    size_t hole = slot_of(m, key);
    void *before = m->slots[hole].value;
    if (!before)
        return NULL;

    /* Pull back every follower whose home is not between the hole and itself. */
    for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t home = (size_t)mix(m->slots[i].key) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct map_slot){0};
    m->len--;
    return before;
}

void *map_next(const struct map *m, size_t *at)
{
    while (*at < m->cap) {
        void *v = m->slots[(*at)++].value;
        if (v)
            return v;
    }
    return NULL;
}

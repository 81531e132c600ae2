/* Hash map from a 64-bit key to a pointer: open addressing, linear probing, backward-shift
 * deletion, so no tombstones gather. A large map grows bit by bit: with each change a few entries
 * move from the old table to the new one, so that nobody waits while a million of them do. The map
 * owns its tables, never what the pointers point to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint64_t key;
    void *value; /* NULL = empty */
};

/* Embedded: a zeroed struct is an empty map. */
struct map {
    struct map_slot *slots;
    size_t cap; /* power of two, or 0 */
    size_t len;

    /* While it grows: the table before, of which the first `moved` slots are empty. */
    struct map_slot *old_slots;
    size_t old_cap; /* 0 = it does not grow */
    size_t moved;
};

/* The map is empty afterwards and may be used again. */
void map_done(struct map *m);

/* NULL when absent. */
void *map_get(const struct map *m, uint64_t key);

/* value must not be NULL. Returns what was there before, or NULL. */
void *map_put(struct map *m, uint64_t key, void *value);

/* Returns what was there, or NULL. */
void *map_remove(struct map *m, uint64_t key);

/* Two 32-bit ids as one key. */
static inline uint64_t map_pair(int32_t high, int32_t low)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* Walks in table order: start with *at = 0; NULL at the end. Do not change the map meanwhile. */
void *map_next(const struct map *m, size_t *at);

#include "base/map.h"

#include "base/pages.h"

#include <assert.h>

enum {
    FIRST_CAP = 16,
    LINE_SLOTS = 4,       /* of a cache line of 64 bytes */
    BIT_BY_BIT = 1 << 15, /* slots from which a table is moved in steps */
    STEP = 4, /* slots looked at with each change; with three it would be done in time */
};

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

static void free_table(struct map_slot *slots, size_t cap)
{
    pages_give(slots, cap * sizeof(*slots));
}

void map_done(struct map *m)
{
    free_table(m->slots, m->cap);
    free_table(m->old_slots, m->old_cap);
    *m = (struct map){0};
}

/* ── one table ─────────────────────────────────────────────────────────────────────────────── */

/* Where the key would be if it were alone. Keys are mostly ids, which follow each other and are
 * asked for soon after they are given: four that do share a cache line. */
static size_t home_of(uint64_t key, size_t mask)
{
    return (size_t)(mix(key / LINE_SLOTS) * LINE_SLOTS + key % LINE_SLOTS) & mask;
}

/* Where the key is, or the empty slot where it would be. cap is not 0. */
static struct map_slot *slot_of(struct map_slot *slots, size_t cap, uint64_t key)
{
    size_t mask = cap - 1;
    size_t i = home_of(key, mask);
    while (slots[i].value && slots[i].key != key)
        i = (i + 1) & mask;
    return &slots[i];
}

/* Empties a slot: pulls back every follower whose home is not between the hole and itself. */
static void clear_slot(struct map_slot *slots, size_t cap, size_t hole)
{
    size_t mask = cap - 1;
    for (size_t i = (hole + 1) & mask; slots[i].value; i = (i + 1) & mask) {
        size_t home = home_of(slots[i].key, mask);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            slots[hole] = slots[i];
            hole = i;
        }
    }
    slots[hole] = (struct map_slot){0};
}

/* What the key had, or NULL; it is gone from this table. */
static void *take(struct map_slot *slots, size_t cap, uint64_t key)
{
    if (cap == 0)
        return NULL;
    struct map_slot *s = slot_of(slots, cap, key);
    void *value = s->value;
    if (value)
        clear_slot(slots, cap, (size_t)(s - slots));
    return value;
}

/* ── growing ───────────────────────────────────────────────────────────────────────────────── */

/* The rest of the old table at once. */
static void move_all(struct map *m)
{
    for (size_t i = m->moved; i < m->old_cap; i++) {
        const struct map_slot *s = &m->old_slots[i];
        if (s->value)
            *slot_of(m->slots, m->cap, s->key) = *s;
    }
    free_table(m->old_slots, m->old_cap);
    m->old_slots = NULL;
    m->old_cap = 0;
}

/* A few slots of the old table. Clearing one may pull a follower into it, so it is looked at again:
 * after each step the old table is whole, and its first `moved` slots are empty. */
static void move_some(struct map *m)
{
    for (int i = 0; i < STEP && m->moved < m->old_cap; i++) {
        struct map_slot *s = &m->old_slots[m->moved];
        if (!s->value) {
            m->moved++;
            continue;
        }
        *slot_of(m->slots, m->cap, s->key) = *s;
        clear_slot(m->old_slots, m->old_cap, m->moved);
    }
    if (m->moved == m->old_cap)
        move_all(m);
}

static void grow(struct map *m)
{
    if (m->old_cap > 0) /* cannot be, by the size of the steps */
        move_all(m);
    m->old_slots = m->slots;
    m->old_cap = m->cap;
    m->moved = 0;
    m->cap = m->cap ? m->cap * 2 : FIRST_CAP;
    m->slots = pages_take(m->cap * sizeof(*m->slots));
    if (m->old_cap < BIT_BY_BIT)
        move_all(m);
}

/* ── the map ───────────────────────────────────────────────────────────────────────────────── */

void *map_get(const struct map *m, uint64_t key)
{
    if (m->cap == 0)
        return NULL;
    void *value = slot_of(m->slots, m->cap, key)->value;
    if (value || m->old_cap == 0)
        return value;
    return slot_of(m->old_slots, m->old_cap, key)->value;
}

void *map_put(struct map *m, uint64_t key, void *value)
{
    assert(value);
    if ((m->len + 1) * 2 > m->cap)
        grow(m);
    void *before = NULL;
    if (m->old_cap > 0) {
        move_some(m);
        before = take(m->old_slots, m->old_cap, key);
    }
    struct map_slot *s = slot_of(m->slots, m->cap, key);
    if (!before)
        before = s->value;
    if (!before)
        m->len++;
    *s = (struct map_slot){key, value};
    return before;
}

void *map_remove(struct map *m, uint64_t key)
{
    void *before = take(m->slots, m->cap, key);
    if (m->old_cap > 0) {
        if (!before)
            before = take(m->old_slots, m->old_cap, key);
        move_some(m);
    }
    if (before)
        m->len--;
    return before;
}

void *map_next(const struct map *m, size_t *at)
{
    while (*at < m->cap + m->old_cap) {
        size_t i = (*at)++;
        void *v = i < m->cap ? m->slots[i].value : m->old_slots[i - m->cap].value;
        if (v)
            return v;
    }
    return NULL;
}

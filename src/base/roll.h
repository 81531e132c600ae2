/* A roll: objects in the order of their ids, to be found by id and to be read page by page. Ids
 * only grow, so an object is added at the end; one that leaves makes a hole. Holes at the beginning
 * are given up at once, others are closed when they are half of it.
 *
 * Adding and leaving cost O(1). Finding does too while ids follow each other, as they mostly do;
 * otherwise it is O(log n). Objects that come one after the other stand beside each other here,
 * which a hash table would scatter.
 *
 * The roll owns its table, never the objects; each embeds a struct roll_place. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct roll_place {
    size_t at; /* 1 + how many stood before it since the roll was closed up; 0 = not on a roll */
};

struct roll_entry {
    int64_t id;
    struct roll_place *place; /* NULL = a hole */
};

/* Embedded: a zeroed struct is an empty roll. */
struct roll {
    struct roll_entry *entries;
    size_t cap;
    size_t first;    /* index of the first entry, which is no hole */
    size_t len;      /* entries from there, holes included */
    size_t n;        /* … without holes */
    size_t given_up; /* entries that were moved out at the beginning: `at` counts them */
};

void roll_done(struct roll *r);

/* The id must be above all that were added before. */
void roll_add(struct roll *r, int64_t id, struct roll_place *place);
void roll_remove(struct roll *r, struct roll_place *place);

/* NULL when it is not there. */
struct roll_place *roll_find(const struct roll *r, int64_t id);

/* Walks by id: start with *at = 0; NULL at the end. Do not change the roll meanwhile. */
struct roll_place *roll_walk(const struct roll *r, size_t *at);

/* The smallest id above `after`, the largest below `before`; 0 when there is none. Ids are > 0. */
int64_t roll_next(const struct roll *r, int64_t after);
int64_t roll_previous(const struct roll *r, int64_t before);

/* A roll: objects in the order of their ids, for lists that are read page by page. Ids only grow,
 * so an object is added at the end; one that leaves makes a hole, and holes are closed when they
 * are half of it. Adding and leaving cost O(1), finding a place O(log n).
 *
 * The roll owns its table, never the objects; each embeds a struct roll_place. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct roll_place {
    size_t at; /* 1 + index; 0 = not on a roll */
};

struct roll_entry {
    int64_t id;
    struct roll_place *place; /* NULL = a hole */
};

/* Embedded: a zeroed struct is an empty roll. */
struct roll {
    struct roll_entry *entries;
    size_t len; /* holes included */
    size_t cap;
    size_t n; /* without holes */
};

void roll_done(struct roll *r);

/* The id must be above all that were added before. */
void roll_add(struct roll *r, int64_t id, struct roll_place *place);
void roll_remove(struct roll *r, struct roll_place *place);

/* Walks by id: start with *at = 0; NULL at the end. Do not change the roll meanwhile. */
struct roll_place *roll_walk(const struct roll *r, size_t *at);

/* The smallest id above `after`, the largest below `before`; 0 when there is none. Ids are > 0. */
int64_t roll_next(const struct roll *r, int64_t after);
int64_t roll_previous(const struct roll *r, int64_t before);

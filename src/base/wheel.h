/* A timer wheel: nodes by the moment they are due, which live inside their objects. Setting and
 * removing cost the same few steps however many there are, and touch no node but the neighbours:
 * deadlines are mostly set and removed again, and seldom met.
 *
 * Nodes of one moment come out in the order in which they were set. The wheel owns nothing.
 *
 *   level 0: one slot per millisecond of the current 64
 *   level 1: one slot per 64 ms of the current 4,096 … and so on: each level is 64 times coarser.
 * A node stands at the level of the highest digit (to the base 64) in which its moment differs from
 * the wheel's. When the wheel gets there, the slot's nodes move to finer levels. */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEEL_DIGIT = 6, WHEEL_SLOTS = 1 << WHEEL_DIGIT, WHEEL_LEVELS = 11 };

/* Embedded: a zeroed node is in no wheel. */
struct wheel_node {
    struct link link;
    int64_t at_ms;
    uint8_t level; /* WHEEL_LEVELS = due */
    uint8_t slot;
};

struct wheel {
    int64_t now_ms;              /* >= 0; everything up to this is due */
    struct list due;             /* by moment */
    uint64_t used[WHEEL_LEVELS]; /* a bit per slot that holds something */
    struct list slots[WHEEL_LEVELS][WHEEL_SLOTS];
};

void wheel_init(struct wheel *w);

/* Puts the node in, or moves it; it is now the last of its moment. */
void wheel_set(struct wheel *w, struct wheel_node *n, int64_t at_ms);

/* No-op for a node that is in no wheel. */
void wheel_remove(struct wheel *w, struct wheel_node *n);

/* Takes out the node that is due first, at now_ms or before; NULL when none is. now_ms below that
 * of an earlier call counts as that. */
struct wheel_node *wheel_pop(struct wheel *w, int64_t now_ms);

/* Moves every moment, and the wheel's own (which stays >= 0), by that much. Walks all nodes. */
void wheel_shift(struct wheel *w, int64_t by_ms);

static inline bool wheel_has(const struct wheel_node *n)
{
    return link_in_list(&n->link);
}

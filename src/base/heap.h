/* Indexed binary heap of nodes that live inside their objects: the least node (by the given
 * order) is on top, and any node can be moved or removed in O(log n) because it knows its place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct heap_node {
    size_t place; /* 1-based index in the heap; 0 = not in it */
};

typedef bool heap_less(const struct heap_node *a, const struct heap_node *b);

struct heap {
    struct heap_node **nodes;
    size_t len;
    size_t cap;
    heap_less *less;
};

void heap_init(struct heap *h, heap_less *less);
void heap_done(struct heap *h);

/* NULL when empty. */
struct heap_node *heap_top(const struct heap *h);

/* Puts the node in, or moves it to where its key now belongs when it is already there. */
void heap_update(struct heap *h, struct heap_node *n);

/* No-op for a node that is not in the heap. */
void heap_remove(struct heap *h, struct heap_node *n);

static inline bool heap_has(const struct heap_node *n)
{
    return n->place != 0;
}

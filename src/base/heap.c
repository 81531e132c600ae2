#include "base/heap.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>

void heap_init(struct heap *h, heap_less *less)
{
    *h = (struct heap){.less = less};
}

void heap_done(struct heap *h)
{
    free(h->nodes);
    *h = (struct heap){0};
}

struct heap_node *heap_top(const struct heap *h)
{
    return h->len ? h->nodes[0] : NULL;
}

static void put(struct heap *h, size_t i, struct heap_node *n)
{
    h->nodes[i] = n;
    n->place = i + 1;
}

static void sift_up(struct heap *h, size_t i)
{
    struct heap_node *n = h->nodes[i];
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (!h->less(n, h->nodes[parent]))
            break;
        put(h, i, h->nodes[parent]);
        i = parent;
    }
    put(h, i, n);
}

static void sift_down(struct heap *h, size_t i)
{
    struct heap_node *n = h->nodes[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->len)
            break;
        if (child + 1 < h->len && h->less(h->nodes[child + 1], h->nodes[child]))
            child++;
        if (!h->less(h->nodes[child], n))
            break;
        put(h, i, h->nodes[child]);
        i = child;
    }
    put(h, i, n);
}

void heap_update(struct heap *h, struct heap_node *n)
{
    if (n->place == 0) {
        if (h->len == h->cap) {
            h->cap = h->cap ? h->cap * 2 : 16;
            h->nodes = xrealloc(h->nodes, h->cap * sizeof(struct heap_node *));
        }
        put(h, h->len++, n);
    }
    sift_up(h, n->place - 1);
    sift_down(h, n->place - 1);
}

void heap_remove(struct heap *h, struct heap_node *n)
{
    if (n->place == 0)
        return;
    size_t i = n->place - 1;
    assert(h->nodes[i] == n);
    n->place = 0;
    struct heap_node *last = h->nodes[--h->len];
    if (last == n)
        return;
    put(h, i, last);
    sift_up(h, i);
    sift_down(h, last->place - 1);
}

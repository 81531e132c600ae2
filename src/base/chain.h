/* A map from one key to many objects: the map holds the head of an intrusive chain per key.
 * Newest first. The links live in the objects; the map owns nothing but its table. */
#pragma once

#include "base/map.h"

struct chain_link {
    struct chain_link *prev;
    struct chain_link *next;
};

static inline struct chain_link *chain_first(const struct map *m, uint64_t key)
{
    return map_get(m, key);
}

static inline void chain_add(struct map *m, uint64_t key, struct chain_link *n)
{
    struct chain_link *head = map_put(m, key, n);
    n->prev = NULL;
    n->next = head;
    if (head)
        head->prev = n;
}

/* n must be in the chain of that key. */
static inline void chain_remove(struct map *m, uint64_t key, struct chain_link *n)
{
    if (n->next)
        n->next->prev = n->prev;
    if (n->prev)
        n->prev->next = n->next;
    else if (n->next)
        (void)map_put(m, key, n->next);
    else
        (void)map_remove(m, key);
    n->prev = n->next = NULL;
}

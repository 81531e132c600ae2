#include "base/wheel.h"

void wheel_init(struct wheel *w)
{
    *w = (struct wheel){.now_ms = 0};
    list_init(&w->due);
    for (int level = 0; level < WHEEL_LEVELS; level++) {
        for (int slot = 0; slot < WHEEL_SLOTS; slot++)
            list_init(&w->slots[level][slot]);
    }
}

/* One that was due before others still wait goes in front of them. */
static void add_due(struct wheel *w, struct wheel_node *n)
{
    struct link *last = w->due.head.prev;
    n->level = WHEEL_LEVELS;
    if (last == &w->due.head || container_of(last, struct wheel_node, link)->at_ms <= n->at_ms) {
        list_append(&w->due, &n->link);
        return;
    }
    struct link *next = w->due.head.next;
    while (container_of(next, struct wheel_node, link)->at_ms <= n->at_ms)
        next = next->next;
    list_insert_before(next, &n->link);
}

static int digit_of(int64_t ms, int level)
{
    return (int)((uint64_t)ms >> (level * WHEEL_DIGIT)) & (WHEEL_SLOTS - 1);
}

/* The node is in no list. */
static void add(struct wheel *w, struct wheel_node *n)
{
    if (n->at_ms <= w->now_ms) {
        add_due(w, n);
        return;
    }
    uint64_t differs = (uint64_t)n->at_ms ^ (uint64_t)w->now_ms;
    int level = (63 - __builtin_clzll(differs)) / WHEEL_DIGIT;
    int slot = digit_of(n->at_ms, level);
    n->level = (uint8_t)level;
    n->slot = (uint8_t)slot;
    w->used[level] |= (uint64_t)1 << slot;
    list_append(&w->slots[level][slot], &n->link);
}

void wheel_remove(struct wheel *w, struct wheel_node *n)
{
    if (!wheel_has(n))
        return;
    list_remove(&n->link);
    if (n->level < WHEEL_LEVELS && list_empty(&w->slots[n->level][n->slot]))
        w->used[n->level] &= ~((uint64_t)1 << n->slot);
}

void wheel_set(struct wheel *w, struct wheel_node *n, int64_t at_ms)
{
    wheel_remove(w, n);
    n->at_ms = at_ms;
    add(w, n);
}

/* The slots of a level after the wheel's own. */
static uint64_t later_slots(const struct wheel *w, int level)
{
    int own = digit_of(w->now_ms, level);
    return own == WHEEL_SLOTS - 1 ? 0 : w->used[level] & ~(uint64_t)0 << (own + 1);
}

/* Nodes of a slot that the wheel has reached: due, or nearer than they were. */
static void open_slot(struct wheel *w, int level, int slot)
{
    struct list *list = &w->slots[level][slot];
    w->used[level] &= ~((uint64_t)1 << slot);
    struct link *n;
    while ((n = list_first(list))) {
        list_remove(n);
        add(w, container_of(n, struct wheel_node, link));
    }
}

/* Goes to the beginning of the next slot that holds something. False when that is after now_ms:
 * then the wheel stands at now_ms. A finer level's slots all begin before a coarser one's. */
static bool advance(struct wheel *w, int64_t now_ms)
{
    for (int level = 0; level < WHEEL_LEVELS; level++) {
        uint64_t later = later_slots(w, level);
        if (!later)
            continue;
        int slot = __builtin_ctzll(later);
        int shift = level * WHEEL_DIGIT;
        uint64_t coarser = shift + WHEEL_DIGIT < 64
                               ? (uint64_t)w->now_ms >> (shift + WHEEL_DIGIT)
                                                            << (shift + WHEEL_DIGIT)
                               : 0;
        int64_t begin_ms = (int64_t)(coarser | (uint64_t)slot << shift);
        if (begin_ms > now_ms)
            break;
        w->now_ms = begin_ms;
        open_slot(w, level, slot);
        return true;
    }
    w->now_ms = now_ms;
    return false;
}

struct wheel_node *wheel_pop(struct wheel *w, int64_t now_ms)
{
    while (list_empty(&w->due)) {
        if (now_ms <= w->now_ms || !advance(w, now_ms))
            break;
    }
    struct link *first = list_first(&w->due);
    if (!first)
        return NULL;
    list_remove(first);
    return container_of(first, struct wheel_node, link);
}

void wheel_shift(struct wheel *w, int64_t by_ms)
{
    struct list all;
    list_init(&all);
    list_move_all(&all, &w->due);
    for (int level = 0; level < WHEEL_LEVELS; level++) {
        for (int slot = 0; slot < WHEEL_SLOTS; slot++)
            list_move_all(&all, &w->slots[level][slot]);
        w->used[level] = 0;
    }
    w->now_ms = w->now_ms + by_ms > 0 ? w->now_ms + by_ms : 0;
    struct link *n;
    while ((n = list_first(&all))) {
        struct wheel_node *node = container_of(n, struct wheel_node, link);
        list_remove(n);
        node->at_ms += by_ms;
        add(w, node);
    }
}

#include "core/batch.h"

#include <stdlib.h>
#include <string.h>

void batch_done(struct batch *b)
{
    arena_done(&b->arena);
    buf_done(&b->changes);
    free(b->effects.items);
    free(b->immediate.items);
    *b = (struct batch){0};
}

void batch_clear(struct batch *b)
{
    arena_reset(&b->arena);
    buf_clear(&b->changes);
    b->effects.len = 0;
    b->immediate.len = 0;
    b->n_changes = 0;
    b->seq = 0;
}

static struct effect *append(struct effects *list, enum effect_kind kind, conn_id conn)
{
    if (list->len == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 64;
        list->items = xrealloc(list->items, list->cap * sizeof(*list->items));
    }
    struct effect *e = &list->items[list->len++];
    memset(e, 0, sizeof(*e));
    e->kind = kind;
    e->conn = conn;
    return e;
}

struct effect *batch_effect(struct batch *b, enum effect_kind kind, conn_id conn)
{
    return append(&b->effects, kind, conn);
}

struct effect *batch_immediate(struct batch *b, enum effect_kind kind, conn_id conn)
{
    return append(&b->immediate, kind, conn);
}

/* A batch: what a run of core steps changed and wants done. One batch is one journal row; its
 * effects are released when that row is durable, and the batches before it are. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "core/effect.h"

#include <stddef.h>
#include <stdint.h>

struct effects {
    struct effect *items;
    size_t len;
    size_t cap;
};

/* Embedded: a zeroed struct is an empty batch. */
struct batch {
    int64_t seq;     /* set by core_seal */
    int64_t core_ms; /* time of the last step in it */
    int64_t wall_ms;
    struct arena arena;       /* strings of the effects */
    struct buf changes;       /* encoded by core_seal; empty = nothing to commit */
    size_t n_changes;         /* how many those are */
    struct effects effects;   /* leave when the batch is durable */
    struct effects immediate; /* what leaves at once, because it tells nothing that is stored */
};

void batch_done(struct batch *b);

/* Forgets the content, keeps the memory. */
void batch_clear(struct batch *b);

/* Appends a zeroed effect of that kind; the pointer is valid until the next append. */
struct effect *batch_effect(struct batch *b, enum effect_kind kind, conn_id conn);
struct effect *batch_immediate(struct batch *b, enum effect_kind kind, conn_id conn);

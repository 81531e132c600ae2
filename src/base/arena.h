/* Memory of one batch or one request: taken piece by piece, given back all at once. */
#pragma once

#include "base/str.h"

#include <stddef.h>

struct arena_chunk;

/* Embedded: a zeroed struct is an empty arena. */
struct arena {
    struct arena_chunk *first;
    struct arena_chunk *current;
    size_t used; /* bytes handed out since the last reset, for the owner's limit */
};

void arena_done(struct arena *a);

/* Everything handed out is invalid; the memory is kept for the next round. */
void arena_reset(struct arena *a);

/* Never fails (see buf.h). Aligned for any type. Uninitialised. */
void *arena_alloc(struct arena *a, size_t n);

/* A copy of s with a NUL behind it. */
struct str arena_str(struct arena *a, struct str s);

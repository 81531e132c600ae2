/* What the simulator does to the in-memory store. The store itself is opened with
 * store_open_memory() and owned by whoever opened it; a crash is simulated by forgetting core and
 * loading again from the same store. */
#pragma once

#include "store/store.h"

enum store_memory_mode {
    STORE_MEMORY_WORKS = 0,
    STORE_MEMORY_FAILS = 1,   /* commits fail and are not stored */
    STORE_MEMORY_UNKNOWN = 2, /* commits report failure but are stored */
};

/* What the store holds now, as another one: a backup. */
struct store *store_memory_copy(const struct store *s);

/* s holds what `older` does, and batch after it, whatever its number: a backup was restored. */
void store_memory_set_back(struct store *s, const struct store *older,
                           const struct store_batch *batch);

/* As if so many batches could be on their way to it at once: whoever drives the pipeline then calls
 * commit for each in its turn. Before the pipeline is made. */
void store_memory_set_depth(struct store *s, int depth);

/* s must come from store_open_memory(). Holds until the next call; load and tip always work. */
void store_memory_fail(struct store *s, int mode);

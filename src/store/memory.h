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

/* s must come from store_open_memory(). Holds until the next call; load and tip always work. */
void store_memory_fail(struct store *s, int mode);

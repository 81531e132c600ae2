/* The SQLite store's measures, for tests that cannot wait for a thousand rows or a whole second.
 * Everybody else calls store_open_sqlite() (store.h), which has sensible ones. */
#pragma once

#include "store/fold.h"

struct sqlite_tuning {
    int64_t history_rows; /* folded rows that stay in the journal */
    int64_t history_bytes;
    struct fold_limits fold;
};

/* As store_open_sqlite. */
int sqlite_open_tuned(const char *folder, const struct sqlite_tuning *tuning, struct store **ret,
                      const char **ret_why);

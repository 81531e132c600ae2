/* A copy of a cell as a data folder's state.db, for backups. */
#pragma once

#include "store/cell.h"

/* As the store's copy. Rows of the journal that are not in the tables when it begins must not be
 * trimmed meanwhile. */
int postgres_copy(const struct cell_config *c, const char *folder, const _Atomic bool *stop,
                  struct store_tip *ret, struct why *why);

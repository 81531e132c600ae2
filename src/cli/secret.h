/* The secret that credentials are derived from: a file of 32 random bytes in the data folder, made
 * at the first start. Lose it and the tokens of running matches are lost; show it and anybody can
 * make them. */
#pragma once

#include "core/core.h"
#include "store/cell.h"

#include <stdbool.h>
#include <stdint.h>

enum { SECRET_WHY_MAX = 256 };

/* Reads folder/secret, or makes it when it is not there and may_make: a folder that holds data has
 * lost its secret then, and with another one a repeated request would get another token. Call only
 * with the folder locked. On failure returns ERR_IO or ERR_FORMAT and why is a sentence for the
 * operator. */
int secret_load(const char *folder, bool may_make, uint8_t ret[CORE_SECRET_SIZE],
                char why[SECRET_WHY_MAX]);

/* What tells this node from the others of its cell: drawn once and kept in folder/node, so that a
 * restarted one is the same. As secret_load. */
int secret_node_id(const char *folder, int64_t *ret, char why[SECRET_WHY_MAX]);

/* What nodes compare to see that they have the same secret, and that tells nobody what it is. */
void secret_print(const uint8_t secret[CORE_SECRET_SIZE], uint8_t ret[CELL_PRINT]);

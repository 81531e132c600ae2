/* Writing into a cell's tables: rows, where they stand, and batches, in the caller's transaction,
 * which makes sure that it may. A leader commits its batches another way (postgres.h). Nothing is
 * owned. Each returns 0, or ERR_IO with a sentence. */
#pragma once

#include "store/latest.h"
#include "store/libpq.h"
#include "store/tables.h"

/* `rows` is for the time of the call; the caller's, so that its memory can be used again. */
int cell_write_rows(struct pg *pg, const struct latest *latest, struct tables_rows *rows,
                    struct why *why);

int cell_write_fold(struct pg *pg, const struct store_tip *tip, struct why *why);
int cell_write_batch(struct pg *pg, const struct store_batch *batch, struct why *why);

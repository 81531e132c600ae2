/* Reading a cell: its tables and its journal out of PostgreSQL, in pieces that fit into memory.
 * Nothing is owned; the connection is the caller's. Each returns 0, what the sink returned,
 * ERR_FORMAT for what cannot be ours, or ERR_IO; the last two with a sentence. */
#pragma once

#include "store/libpq.h"

/* The longest slice of the journal, but for a row that is longer. */
enum { CELL_SLICE_ROWS = 1024, CELL_SLICE_BYTES = 8 << 20 };

/* Once for a connection, before cell_read_journal. */
int cell_read_prepare(struct pg *pg, struct why *why);

/* The next slice of the journal after a batch, in order; *ret_n says how many came. The first need
 * not be the one after it: the journal may have been trimmed that far. */
int cell_read_journal(struct pg *pg, int64_t after, store_batch_sink *sink, void *user, int *ret_n,
                      struct why *why);

/* Everything, of one moment: the tables, then the journal's rows after them. ret: where it ends,
 * ret_epoch (may be NULL) of which epoch that batch is; 0 when it is in the tables only. */
int cell_read_all(struct pg *pg, store_sink *sink, void *user, struct store_tip *ret,
                  int64_t *ret_epoch, struct why *why);

/* The same in the caller's transaction, which sees what it has written itself. */
int cell_read_within(struct pg *pg, store_sink *sink, void *user, struct store_tip *ret,
                     int64_t *ret_epoch, struct why *why);

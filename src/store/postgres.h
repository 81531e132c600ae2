/* The store of a cell in PostgreSQL, for the node that leads it. Batches are written by whoever
 * calls commit, or begin and end; beside him two threads have connections of their own: the keeper
 * renews the lease and keeps the node's row, the fold brings the readable tables up to the journal.
 * Owned by whoever opened it.
 *
 * A batch is one statement, which does nothing unless the cell is given to our epoch, and to this
 * connection of ours. So a node that lost its lease cannot write, whatever it believes; and nothing
 * is said by one whose lease has run out on its own clock (store_holds). Docs: decisions/0044. */
#pragma once

#include "store/cell.h"
#include "store/postgres_fold.h"

/* The lease is ours (term), and everything up to tip is loaded. What c points to must outlive it.
 * ERR_IO or ERR_FORMAT with a sentence. */
int store_open_postgres(const struct cell_config *c, const struct cell_term *term,
                        const struct store_tip *tip, struct store **ret, struct why *why);

/* The same with measures for tests. */
int postgres_open_tuned(const struct cell_config *c, const struct cell_term *term,
                        const struct store_tip *tip, const struct postgres_fold_tuning *tuning,
                        struct store **ret, struct why *why);

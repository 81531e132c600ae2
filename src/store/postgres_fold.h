/* The fold of a cell: the thread of its leader that brings the readable tables up to the journal,
 * slice by slice, and lets the journal's old rows go. Embedded by the store of a cell.
 *
 * A slice is one transaction: rows, and how far they are. Its last step makes sure that we still
 * lead and keeps it so until the commit, so a node that was fenced changes nothing. Rows of the
 * journal go in transactions after that, so they are never gone before they are in the tables. */
#pragma once

#include "store/bell.h"
#include "store/cell.h"
#include "store/dbfile.h"
#include "store/fold.h"
#include "store/libpq.h"
#include "store/tables.h"
#include "store/tenure.h"

struct postgres_fold_tuning {
    int64_t history_rows; /* folded rows that stay in the journal */
    int64_t history_bytes;
    struct fold_limits fold;
};

struct postgres_fold {
    const struct cell_config *cell;
    struct tenure *tenure;
    struct postgres_fold_tuning tuning;

    /* The thread's own. */
    struct pg *pg; /* NULL = none */
    struct complaint complaint;
    struct tables_rows rows;
    int64_t first;   /* the oldest row of the journal; 0 = none was seen yet */
    int64_t size_ms; /* when the size is to be looked at again */

    _Atomic int64_t folded_seq;
    _Atomic int64_t folded_core_ms;
    _Atomic int64_t waiting_bytes;
    _Atomic int64_t last_seq; /* the newest durable batch; it is never trimmed */
    _Atomic int64_t journal_rows;
    _Atomic int64_t journal_bytes;
    _Atomic int64_t state_bytes;
    _Atomic int64_t keep_after; /* rows after this one are being copied: none is trimmed */

    struct bell bell;
    pthread_t thread;
    bool started;
};

/* Looks how the cell stands, and starts the thread. last_seq: the newest durable batch. 0, or
 * ERR_IO or ERR_NO_MEMORY with a sentence; it is to be closed in any case. */
int postgres_fold_start(struct postgres_fold *f, const struct cell_config *cell,
                        struct tenure *tenure, const struct postgres_fold_tuning *tuning,
                        int64_t last_seq, struct why *why);

/* Does not wait for PostgreSQL. */
void postgres_fold_close(struct postgres_fold *f);

/* A batch became durable; wakes the thread when enough have gathered. */
void postgres_fold_notice(struct postgres_fold *f, int64_t seq, size_t len);

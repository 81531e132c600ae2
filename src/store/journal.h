/* Journal: the commit connection to journal.db, one row per batch. Used by whoever calls the
 * store's commit, load and tip, which never overlap; the fold thread has a connection of its own.
 * Embedded by the store. */
#pragma once

#include "store/dbfile.h"
#include "store/store.h"

#include <stdatomic.h>

#define JOURNAL_FILE "journal.db"

/* A tail of the log that the commit thread may copy itself. */
enum { JOURNAL_TAIL_PAGES = (1 << 20) / DBFILE_PAGE_SIZE };

struct journal {
    char *folder;
    sqlite3 *db; /* NULL after a failure, until a reopening succeeds */
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *insert;
    sqlite3_stmt *oldest;
    sqlite3_stmt *trim;
    struct complaint complaint;

    /* What the table holds, as of the last successful commit. */
    int64_t first;
    int64_t last;
    int64_t bytes;
    _Atomic int64_t rows;

    /* The history window: folded rows are kept while neither limit is exceeded. */
    int64_t history_rows;
    int64_t history_bytes;

    int wal_pages;          /* after the last commit */
    int64_t log_bytes;      /* the log's file has at least so many; 0 = not known */
    bool log_stuck;         /* it could not be made longer: not tried again on this connection */
    int checkpoint_pages;   /* the log must grow to this before commit tries a checkpoint again */
    _Atomic int backfilled; /* pages the fold thread's last checkpoint had copied */
};

int journal_open(struct journal *j, const char *folder, struct why *why);
void journal_close(struct journal *j);

/* Makes the batch durable as the row after the last one (after `folded` when there is no row), and
 * drops a bounded slice of old rows with it: none after `folded`, which state.db must hold synced.
 * ERR_IO: it is not durable, or nobody knows. Works again by itself when the disk does. */
int journal_append(struct journal *j, const struct store_batch *batch, int64_t folded);

/* The newest row; *ret is untouched when there is none. */
int journal_tip(struct journal *j, struct store_tip *ret);

/* Gives the changes of every row after *tip to the sink and moves *tip along. ERR_FORMAT when a row
 * is damaged or missing. */
int journal_replay(struct journal *j, store_sink *sink, void *user, struct store_tip *tip);

/* Gives the newest rows, in order, whose changes have at most bytes_max bytes together. */
int journal_history(struct journal *j, int64_t bytes_max, store_batch_sink *sink, void *user);

/* Reads rows in order on any connection to the file: parameter 1 is the seq before the first;
 * columns are seq, core_ms, wall_ms, changes, epoch. */
#define JOURNAL_READ                                                                               \
    "SELECT seq, core_ms, wall_ms, changes, epoch FROM journal WHERE seq > ? ORDER BY seq"

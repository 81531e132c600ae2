/* State: state.db, one readable table per kind of row with the latest state of each object, and
 * where in the journal that is. Belongs to the fold thread; others use it under the fold's lock.
 * Embedded by the fold. */
#pragma once

#include "store/dbfile.h"
#include "store/latest.h"
#include "store/store.h"

#define STATE_FILE "state.db"

struct state {
    sqlite3 *db;
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *mark;
    sqlite3_stmt *read_mark;
    sqlite3_stmt *upsert[ROW_KINDS];
    sqlite3_stmt *delete[ROW_KINDS];
    sqlite3_stmt *select[ROW_KINDS];
};

int state_open(struct state *s, const char *folder, struct why *why);
void state_close(struct state *s);

/* The batch the tables stand at. Returns SQLite's code. */
int state_tip(struct state *s, struct store_tip *ret);

/* Gives every row of every table to the sink. Returns 0, the sink's result, or ERR_IO or ERR_FORMAT
 * after logging which row could not be read. */
int state_load(struct state *s, store_sink *sink, void *user);

/* Brings the tables to `tip`, durably and in one transaction with it. Returns SQLite's code; on
 * failure nothing has changed. */
int state_fold(struct state *s, const struct latest *latest, const struct store_tip *tip);

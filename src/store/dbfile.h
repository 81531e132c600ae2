/* Database files: opening SQLite files of the data folder the way durability needs it, and telling
 * the operator in one sentence when one cannot be used. Connections belong to the caller. */
#pragma once

#include "store/store.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DBFILE_PAGE_SIZE = 8192,
    DBFILE_BUSY_MS = 5000, /* only a person with an sqlite3 shell can hold the write lock */
    DBFILE_APPLICATION_ID = 0x4D757374, /* "Must" */

    /* From this format on only kinds of rows have been added, at the end of their list: older rows
     * and journals read as they are, and tables that are missing are empty. */
    DBFILE_FORMAT_OLDEST = 1,
};

/* A trouble that is logged when it begins, changes or ends, not each time it is met. */
struct complaint {
    char text[256]; /* "" = none */
};

void complain(struct complaint *c, const char *what, const char *text);
void complaint_settle(struct complaint *c, const char *what);

/* What a file must hold. */
struct dbfile_schema {
    const char *create;  /* statements that make everything */
    const char *upgrade; /* … that make what a file of an older format lacks; harmless twice */
};

/* Opens folder/name, made when absent, brought to this format when it has an older one that we
 * know, and checks that it is ours. Either is one transaction. Returns 0, ERR_FORMAT or ERR_IO, and
 * then why is set.
 * Everything found in the file is on the disk when this returns: what a killed process had written
 * but not synced is synced first, so that nothing is built on it and then lost. */
int dbfile_open(const char *folder, const char *name, const struct dbfile_schema *schema,
                sqlite3 **ret, struct why *why);

/* One more connection to a file that dbfile_open has checked. Returns SQLite's code; *ret is to
 * be closed with dbfile_close in any case. */
int dbfile_connect(const char *folder, const char *name, sqlite3 **ret);

/* Says in why that folder/name cannot be used, by SQLite's code and the reason the system gave its
 * connection (may be NULL). SQLITE_MISMATCH: why is set already. Returns ERR_FORMAT or ERR_IO. */
int dbfile_refuse(sqlite3 *db, int rc, const char *folder, const char *name, struct why *why);

/* Copies from/name into the folder `to`, where it must not be: as it is at one moment, while others
 * write. Uses the disk for half of the time only, so that they are not held up. Ends early when
 * *stop becomes true. 0 or ERR_IO with why. */
int dbfile_copy(const char *from, const char *name, const char *to, const _Atomic bool *stop,
                struct why *why);

/* Makes the names in a folder durable. Returns 0 or the negative errno. */
int dbfile_sync_folder(const char *folder);

/* Prepares a statement for the connection's whole life. NULL on failure. */
sqlite3_stmt *dbfile_prepare(sqlite3 *db, const char *sql);

/* Runs a statement that returns nothing. Returns SQLITE_OK or the error. */
int dbfile_run(sqlite3_stmt *stmt);

/* Closes the connection and finalizes every statement prepared on it. NULL is fine. */
void dbfile_close(sqlite3 *db);

/* What went wrong last on this connection, with the system's reason. */
const char *dbfile_error(sqlite3 *db, char *dst, size_t cap);

/* True for codes that mean the file's content is wrong, not that the disk could not. */
bool dbfile_is_damage(int rc);

#include "store/dbfile.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/full.h"
#include "base/log.h"
#include "core/row.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WAL_KEEP_BYTES = 32 << 20,
};

void why_set(struct why *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
}

void complain(struct complaint *c, const char *what, const char *text)
{
    if (strncmp(c->text, text, sizeof(c->text) - 1) == 0)
        return;
    snprintf(c->text, sizeof(c->text), "%s", text);
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_WARN, what, "why=%s", log_quote(quoted, str_of(text)));
}

void complaint_settle(struct complaint *c, const char *what)
{
    if (c->text[0] == '\0')
        return;
    c->text[0] = '\0';
    log_line(LOG_INFO, what, "works=again");
}

/* Why the system refused; 0 when it did not. SQLite does not keep it when a commit fails, but the
 * file does: the log, or else the database. */
static int find_errno(sqlite3 *db)
{
    int error = sqlite3_system_errno(db);
    sqlite3_file *log = NULL;
    if (error || (sqlite3_errcode(db) & 0xFF) != SQLITE_IOERR)
        return error;
    (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log && log->pMethods)
        (void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &error);
    if (error == 0)
        (void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &error);
    return error;
}

const char *dbfile_error(sqlite3 *db, char *dst, size_t cap)
{
    int system = find_errno(db);
    snprintf(dst, cap, "%s (SQLite code %d)%s%s", sqlite3_errmsg(db), sqlite3_extended_errcode(db),
             system ? ": " : "", system ? full_reason(system) : "");
    return dst;
}

bool dbfile_is_damage(int rc)
{
    return (rc & 0xFF) == SQLITE_NOTADB || (rc & 0xFF) == SQLITE_CORRUPT;
}

sqlite3_stmt *dbfile_prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK)
        return NULL;
    return stmt;
}

int dbfile_run(sqlite3_stmt *stmt)
{
    int rc = sqlite3_step(stmt);
    int reset = sqlite3_reset(stmt);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : reset;
}

void dbfile_close(sqlite3 *db)
{
    if (!db)
        return;
    for (sqlite3_stmt *stmt; (stmt = sqlite3_next_stmt(db, NULL));)
        sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* A path that does not fit is cut, and the open then fails by name. */
static void join(char path[PATH_MAX], const char *folder, const char *name, const char *suffix)
{
    snprintf(path, PATH_MAX, "%s/%s%s", folder, name, suffix);
}

/* SQLite counts every piece of memory under one lock unless told otherwise, and nobody here asks.
 */
static void configure(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

int dbfile_connect(const char *folder, const char *name, sqlite3 **ret)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, configure);
    char path[PATH_MAX];
    join(path, folder, name, "");
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(db, 1);
        sqlite3_busy_timeout(db, DBFILE_BUSY_MS);
        /* Debian's SQLite overwrites with zeros what is deleted, and so writes every page of the
         * journal twice; nothing in these files is a credential. */
        char sql[160];
        snprintf(sql, sizeof(sql),
                 "PRAGMA synchronous = FULL; PRAGMA secure_delete = OFF;"
                 " PRAGMA journal_size_limit = %d;",
                 WAL_KEEP_BYTES);
        rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    }
    *ret = db;
    return rc;
}

/* Makes the file if it is absent (SQLite would give it a wider mode) and syncs what is in it.
 * Before SQLite opens the file: closing a descriptor of it later would drop SQLite's locks. The
 * folder may be a symbolic link, a file may not: SQLite would keep its log beside the target. */
static int sync_file(const char *path, int flags)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int err = fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

int dbfile_sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fsync(fd) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

static int sync_files(const char *folder, const char *name)
{
    char path[PATH_MAX];
    join(path, folder, name, "");
    int err = sync_file(path, O_CREAT);
    join(path, folder, name, "-wal");
    if (err == 0)
        err = sync_file(path, 0);
    return err == 0 ? dbfile_sync_folder(folder) : err;
}

static int query_int(sqlite3 *db, const char *sql, int *ret)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int(stmt, 0);
    int end = sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? SQLITE_OK : end;
}

static int set_format(sqlite3 *db)
{
    char sql[96];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
             DBFILE_APPLICATION_ID, ROW_FORMAT);
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* The page size must come before WAL, and WAL before the tables. The two marks are part of the same
 * transaction as the tables, so that a file is either empty or complete. */
static int make_tables(sqlite3 *db, const struct dbfile_schema *schema)
{
    char sql[160];
    snprintf(sql, sizeof(sql), "PRAGMA page_size = %d; PRAGMA journal_mode = WAL; BEGIN IMMEDIATE;",
             DBFILE_PAGE_SIZE);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, schema->create, NULL, NULL, NULL);
    return rc == SQLITE_OK ? set_format(db) : rc;
}

/* Killed at any point, the file has the old format or the new one. The other file of the folder may
 * then have the other; it is brought along at the next start. */
static int upgrade(sqlite3 *db, const char *name, int version, const struct dbfile_schema *schema)
{
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db, schema->upgrade, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = set_format(db);
    if (rc == SQLITE_OK)
        log_line(LOG_INFO, "data format upgraded", "file=%s from=%d to=%d", name, version,
                 ROW_FORMAT);
    return rc;
}

/* Changes nothing in a file that is not ours or of a format we do not know. */
static int check_file(sqlite3 *db, const char *folder, const char *name,
                      const struct dbfile_schema *schema, struct why *why)
{
    int application = 0;
    int version = 0;
    int tables = 0;
    int rc = query_int(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = query_int(db, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = query_int(db, "SELECT count(*) FROM sqlite_master", &tables);
    if (rc == SQLITE_OK && application == 0 && version == 0 && tables == 0)
        return make_tables(db, schema);
    if (rc != SQLITE_OK)
        return rc;
    if (application != DBFILE_APPLICATION_ID) {
        why_set(why,
                "%s/%s is a database of another program. Choose another data folder, or move "
                "that file away.",
                folder, name);
        return SQLITE_MISMATCH;
    }
    if (version < DBFILE_FORMAT_OLDEST || version > ROW_FORMAT) {
        why_set(why,
                "%s/%s has format version %d, and this Muster understands version %d. Start the "
                "Muster version that wrote it, or choose another data folder.",
                folder, name, version, ROW_FORMAT);
        return SQLITE_MISMATCH;
    }
    return version < ROW_FORMAT ? upgrade(db, name, version, schema) : SQLITE_OK;
}

/* True when the system's reason has a sentence of its own, which is in why then. */
static bool blame_system(int err, const char *folder, const char *name, struct why *why)
{
    if (err == EMFILE || err == ENFILE) {
        why_set(why,
                "%s/%s cannot be opened: too few file descriptors. Raise the limit (ulimit -n).",
                folder, name);
        return true;
    }
    if (full_is(err)) {
        why_set(why, "%s/%s cannot be written: %s.", folder, name, full_reason(err));
        return true;
    }
    return false;
}

int dbfile_refuse(sqlite3 *db, int rc, const char *folder, const char *name, struct why *why)
{
    char text[256];
    if (rc == SQLITE_MISMATCH)
        return ERR_FORMAT;
    if (dbfile_is_damage(rc)) {
        why_set(why,
                "%s/%s is damaged or no SQLite database: %s. Restore the whole folder from a "
                "backup, or choose another data folder.",
                folder, name, sqlite3_errstr(rc));
        return ERR_FORMAT;
    }
    int system = (rc & 0xFF) == SQLITE_FULL ? ENOSPC : db ? find_errno(db) : 0;
    if (!blame_system(system, folder, name, why))
        why_set(why, "%s/%s cannot be opened: %s. Check the disk's space and the file's owner.",
                folder, name, db ? dbfile_error(db, text, sizeof(text)) : sqlite3_errstr(rc));
    return ERR_IO;
}

int dbfile_open(const char *folder, const char *name, const struct dbfile_schema *schema,
                sqlite3 **ret, struct why *why)
{
    int err = sync_files(folder, name);
    if (err != 0) {
        if (!blame_system(-err, folder, name, why))
            why_set(why, "%s/%s cannot be opened: %s. Check the disk's space and the file's owner.",
                    folder, name, full_reason(-err));
        return ERR_IO;
    }
    sqlite3 *db = NULL;
    int rc = dbfile_connect(folder, name, &db);
    if (rc == SQLITE_OK)
        rc = check_file(db, folder, name, schema, why);
    if (rc == SQLITE_OK) {
        *ret = db;
        return 0;
    }
    err = dbfile_refuse(db, rc, folder, name, why);
    dbfile_close(db);
    return err;
}

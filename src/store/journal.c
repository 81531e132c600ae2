#include "store/journal.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "store/latest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

enum {
    /* Old rows leave in slices: seldom enough that most commits touch only their own page, small
     * enough that none waits long. */
    TRIM_ROWS_MIN = 32,
    TRIM_ROWS_MAX = 64,
    TRIM_BYTES_MIN = 1 << 20,

    /* The fold thread checkpoints the log after each fold. While commits go on it never reaches the
     * log's end, so the log could not start over; past the soft limit the commit thread copies the
     * short tail itself, past the hard limit whatever there is, and waits for readers too. */
    WAL_SOFT_PAGES = (8 << 20) / DBFILE_PAGE_SIZE,
    WAL_HARD_PAGES = (64 << 20) / DBFILE_PAGE_SIZE,
    WAL_FIRST_BYTES = 4 << 20,   /* from the beginning; more would make the start slow */
    WAL_AHEAD_BYTES = 256 << 10, /* less than that unused, and the log is made longer */
    WAL_STEP_BYTES = 1 << 20,
    WAL_STEP_ROOM_BYTES = 64 << 20,
    WAL_HEAD_BYTES = 32,
    WAL_FRAME_BYTES = 24 + DBFILE_PAGE_SIZE,
    RESTART_WAIT_MS = 200, /* the fold reads for less; somebody with a shell is not waited for */
};

static const struct dbfile_schema schema = {
    .create = "CREATE TABLE journal (seq INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
              " core_ms INTEGER NOT NULL, wall_ms INTEGER NOT NULL,"
              " changes BLOB NOT NULL) STRICT",
    .upgrade = "", /* the table is the same; what its rows may hold has grown */
};

/* One statement inserts the row only if the one before it is the last. */
static const char insert_sql[] =
    "INSERT INTO journal (seq, epoch, core_ms, wall_ms, changes) SELECT ?1, ?2, ?3, ?4, ?5"
    " WHERE ?1 = 1 + (SELECT coalesce(max(seq), ?6) FROM journal)";

static int on_wal(void *user, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    struct journal *j = user;
    if (pages < j->wal_pages)
        j->log_bytes = 0; /* it has started over: somebody may have cut it */
    j->wal_pages = pages;
    return SQLITE_OK;
}

static int read_extent(struct journal *j)
{
    sqlite3_stmt *stmt =
        dbfile_prepare(j->db, "SELECT count(*), coalesce(min(seq), 0), coalesce(max(seq), 0),"
                              " coalesce(sum(length(changes)), 0) FROM journal");
    if (!stmt)
        return sqlite3_errcode(j->db);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        j->rows = sqlite3_column_int64(stmt, 0);
        j->first = sqlite3_column_int64(stmt, 1);
        j->last = sqlite3_column_int64(stmt, 2);
        j->bytes = sqlite3_column_int64(stmt, 3);
    }
    int end = sqlite3_finalize(stmt);
    return rc == SQLITE_ROW ? SQLITE_OK : end;
}

static int prepare(struct journal *j)
{
    j->begin = dbfile_prepare(j->db, "BEGIN IMMEDIATE");
    j->commit = dbfile_prepare(j->db, "COMMIT");
    j->insert = dbfile_prepare(j->db, insert_sql);
    j->oldest = dbfile_prepare(
        j->db, "SELECT seq, length(changes) FROM journal WHERE seq <= ? ORDER BY seq LIMIT ?");
    j->trim = dbfile_prepare(j->db, "DELETE FROM journal WHERE seq <= ?");
    if (!j->begin || !j->commit || !j->insert || !j->oldest || !j->trim)
        return sqlite3_errcode(j->db);
    /* Takes the place of SQLite's own checkpoint inside commits. */
    sqlite3_wal_hook(j->db, on_wal, j);
    j->wal_pages = 0;
    j->log_bytes = 0;
    j->log_stuck = false;
    j->checkpoint_pages = WAL_SOFT_PAGES;
    return read_extent(j);
}

/* A commit that makes a file longer syncs the file system's own log too, with whatever others have
 * changed there; one that overwrites syncs its bytes. So the log is given its length in steps, as
 * zeros, which SQLite takes for no frame. What fails here costs time later, and nothing else: the
 * length before is restored, so as not to take a full disk's last bytes. */
static int lengthen_log(sqlite3_file *log, sqlite3_int64 was, sqlite3_int64 to)
{
    static const char zeros[64 * 1024];
    int rc = SQLITE_OK;
    for (sqlite3_int64 at = was; rc == SQLITE_OK && at < to; at += (int64_t)sizeof(zeros))
        rc = log->pMethods->xWrite(log, zeros, (int)sizeof(zeros), at);
    if (rc != SQLITE_OK)
        (void)log->pMethods->xTruncate(log, was);
    return rc;
}

/* NULL when it is not open. */
static sqlite3_file *log_of(struct journal *j, sqlite3_int64 *ret_size)
{
    sqlite3_file *log = NULL;
    (void)sqlite3_file_control(j->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    bool open = log && log->pMethods && log->pMethods->xFileSize(log, ret_size) == SQLITE_OK;
    return open ? log : NULL;
}

static void begin_log(struct journal *j)
{
    sqlite3_int64 was = 0;
    sqlite3_file *log = log_of(j, &was);
    if (log && was < WAL_FIRST_BYTES && lengthen_log(log, was, WAL_FIRST_BYTES) == SQLITE_OK &&
        log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) != SQLITE_OK)
        (void)log->pMethods->xTruncate(log, was);
}

/* What is not needed yet is not taken from a disk that others need, the fold before all. */
static bool has_room(const struct journal *j)
{
    struct statvfs disk;
    return statvfs(j->folder, &disk) == 0 &&
           (int64_t)(disk.f_bavail * disk.f_frsize) >= WAL_STEP_ROOM_BYTES;
}

/* Within a transaction, so that nobody else writes to the log; its commit syncs the step along with
 * its own bytes. The file is asked for its length only when that may matter: whoever asks makes the
 * kernel give the next write a time stamp of its own, and on some file systems each sync then
 * writes the inode too, one after the other. */
static void keep_log_ahead(struct journal *j)
{
    sqlite3_int64 was = 0;
    sqlite3_int64 used = WAL_HEAD_BYTES + (sqlite3_int64)j->wal_pages * WAL_FRAME_BYTES;
    if (j->log_stuck || used + WAL_AHEAD_BYTES <= j->log_bytes)
        return;
    sqlite3_file *log = log_of(j, &was);
    if (log && was < used + WAL_AHEAD_BYTES && has_room(j))
        j->log_stuck = lengthen_log(log, was, was + WAL_STEP_BYTES) != SQLITE_OK;
    else
        j->log_bytes = log ? was : 0;
}

int journal_open(struct journal *j, const char *folder, struct why *why)
{
    int err = dbfile_open(folder, JOURNAL_FILE, &schema, &j->db, why);
    if (err != 0)
        return err;
    j->folder = xstrdup(folder);
    int rc = prepare(j);
    if (rc == SQLITE_OK && j->rows != (j->rows ? j->last - j->first + 1 : 0))
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_OK) {
        begin_log(j);
        return 0;
    }
    why_set(why,
            "%s/" JOURNAL_FILE " cannot be read: %s. Restore the whole folder from a backup, or "
            "choose another data folder.",
            folder, sqlite3_errstr(rc));
    journal_close(j);
    return dbfile_is_damage(rc) ? ERR_FORMAT : ERR_IO;
}

static void disconnect(struct journal *j)
{
    dbfile_close(j->db);
    j->db = NULL;
}

void journal_close(struct journal *j)
{
    disconnect(j);
    free(j->folder);
    j->folder = NULL;
}

static void complain_of(struct journal *j)
{
    char text[256];
    complain(&j->complaint, "journal cannot be used", dbfile_error(j->db, text, sizeof(text)));
}

static void complain_of_order(struct journal *j, int64_t seq)
{
    char text[256];
    snprintf(text, sizeof(text), "batch %" PRId64 " does not follow %" PRId64, seq, j->last);
    complain(&j->complaint, "batch refused", text);
}

/* After a failure the connection may hold half a transaction and a view of the file that is no
 * longer true; a new one knows nothing but the file. */
static bool connected(struct journal *j)
{
    if (j->db)
        return true;
    int rc = dbfile_connect(j->folder, JOURNAL_FILE, &j->db);
    if (rc == SQLITE_OK)
        rc = prepare(j);
    if (rc == SQLITE_OK)
        return true;
    complain(&j->complaint, "journal cannot be used", sqlite3_errstr(rc));
    disconnect(j);
    return false;
}

struct slice {
    int64_t rows;
    int64_t bytes;
    int64_t last;
};

/* Chooses the oldest rows that are folded and outside the history window, up to `budget` bytes. */
static int choose_slice(struct journal *j, int64_t folded, int64_t budget, struct slice *ret)
{
    /* The newest row always stays: it says where the journal ends. */
    int64_t upto = folded < j->last ? folded : j->last - 1;
    sqlite3_bind_int64(j->oldest, 1, upto);
    sqlite3_bind_int64(j->oldest, 2, TRIM_ROWS_MAX);
    while (ret->bytes < budget &&
           (j->rows - ret->rows > j->history_rows || j->bytes - ret->bytes > j->history_bytes)) {
        int rc = sqlite3_step(j->oldest);
        if (rc != SQLITE_ROW)
            break;
        ret->last = sqlite3_column_int64(j->oldest, 0);
        ret->bytes += sqlite3_column_int64(j->oldest, 1);
        ret->rows++;
    }
    return sqlite3_reset(j->oldest);
}

static int trim(struct journal *j, const struct store_batch *batch, int64_t folded,
                struct slice *ret)
{
    if (j->rows < j->history_rows + TRIM_ROWS_MIN && j->bytes < j->history_bytes + TRIM_BYTES_MIN)
        return SQLITE_OK;
    /* More than what comes in, so that the journal shrinks however large the batches are. */
    int64_t budget = TRIM_BYTES_MIN + 2 * (int64_t)batch->len;
    int rc = choose_slice(j, folded, budget, ret);
    if (rc != SQLITE_OK || ret->rows == 0)
        return rc;
    sqlite3_bind_int64(j->trim, 1, ret->last);
    return dbfile_run(j->trim);
}

static int insert(struct journal *j, const struct store_batch *batch, int64_t folded)
{
    sqlite3_bind_int64(j->insert, 1, batch->seq);
    sqlite3_bind_int64(j->insert, 2, batch->epoch);
    sqlite3_bind_int64(j->insert, 3, batch->core_ms);
    sqlite3_bind_int64(j->insert, 4, batch->wall_ms);
    /* An empty blob, not NULL, for a batch without changes. */
    sqlite3_bind_blob64(j->insert, 5, batch->len ? (const void *)batch->changes : "", batch->len,
                        SQLITE_STATIC);
    sqlite3_bind_int64(j->insert, 6, folded);
    int rc = dbfile_run(j->insert);
    sqlite3_clear_bindings(j->insert);
    /* Nothing inserted: the row before it is not the last one. */
    return rc == SQLITE_OK && sqlite3_changes(j->db) != 1 ? SQLITE_CONSTRAINT : rc;
}

static int append(struct journal *j, const struct store_batch *batch, int64_t folded)
{
    struct slice slice = {0};
    int rc = dbfile_run(j->begin);
    if (rc == SQLITE_OK)
        keep_log_ahead(j);
    if (rc == SQLITE_OK)
        rc = insert(j, batch, folded);
    if (rc == SQLITE_OK)
        rc = trim(j, batch, folded, &slice);
    if (rc == SQLITE_OK)
        rc = dbfile_run(j->commit);
    if (rc != SQLITE_OK)
        return rc;
    j->last = batch->seq;
    j->rows += 1 - slice.rows;
    j->bytes += (int64_t)batch->len - slice.bytes;
    return SQLITE_OK;
}

/* Between two commits, on the commit thread. A failure costs nothing: the log stays. */
static void checkpoint(struct journal *j)
{
    if (j->wal_pages < j->checkpoint_pages)
        return;
    int tail = j->wal_pages - j->backfilled;
    if (j->wal_pages < WAL_HARD_PAGES && tail > JOURNAL_TAIL_PAGES)
        return;
    bool must = j->wal_pages >= WAL_HARD_PAGES;
    int mode = must ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
    int in_log = 0;
    int copied = 0;
    (void)sqlite3_busy_timeout(j->db, RESTART_WAIT_MS);
    int rc = sqlite3_wal_checkpoint_v2(j->db, NULL, mode, &in_log, &copied);
    (void)sqlite3_busy_timeout(j->db, DBFILE_BUSY_MS);
    bool whole = rc == SQLITE_OK && in_log == copied;
    /* When a reader holds the log back, trying at each commit would make every one slow. */
    j->checkpoint_pages = whole ? WAL_SOFT_PAGES : j->wal_pages + JOURNAL_TAIL_PAGES;
    if (whole)
        j->backfilled = 0;
}

int journal_append(struct journal *j, const struct store_batch *batch, int64_t folded)
{
    if (!connected(j))
        return ERR_IO;
    int rc = append(j, batch, folded);
    if (rc != SQLITE_OK) {
        if (rc == SQLITE_CONSTRAINT)
            complain_of_order(j, batch->seq);
        else
            complain_of(j);
        disconnect(j);
        return ERR_IO;
    }
    complaint_settle(&j->complaint, "journal");
    checkpoint(j);
    return 0;
}

int journal_tip(struct journal *j, struct store_tip *ret)
{
    if (!connected(j))
        return ERR_IO;
    sqlite3_stmt *stmt = dbfile_prepare(
        j->db, "SELECT seq, core_ms, wall_ms FROM journal ORDER BY seq DESC LIMIT 1");
    int rc = stmt ? sqlite3_step(stmt) : SQLITE_ERROR;
    if (rc == SQLITE_ROW)
        *ret = (struct store_tip){sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1),
                                  sqlite3_column_int64(stmt, 2)};
    else if (rc != SQLITE_DONE)
        complain_of(j);
    sqlite3_finalize(stmt);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return 0;
    disconnect(j);
    return ERR_IO;
}

/* Gives every row after `after` to `each`, in order, until one gives anything but 0. */
static int each_row(struct journal *j, int64_t after, store_batch_sink *each, void *user)
{
    sqlite3_stmt *stmt = dbfile_prepare(j->db, JOURNAL_READ);
    int err = 0;
    int rc = stmt ? sqlite3_bind_int64(stmt, 1, after) : SQLITE_ERROR;
    while (rc == SQLITE_OK && err == 0) {
        rc = sqlite3_step(stmt);
        if (rc != SQLITE_ROW)
            break;
        struct store_batch row = {
            .seq = sqlite3_column_int64(stmt, 0),
            .epoch = sqlite3_column_int64(stmt, 4),
            .core_ms = sqlite3_column_int64(stmt, 1),
            .wall_ms = sqlite3_column_int64(stmt, 2),
            .changes = sqlite3_column_blob(stmt, 3),
            .len = (size_t)sqlite3_column_bytes(stmt, 3),
        };
        err = each(user, &row);
        rc = SQLITE_OK;
    }
    if (err == 0 && rc != SQLITE_DONE) {
        complain_of(j);
        err = dbfile_is_damage(rc) ? ERR_FORMAT : ERR_IO;
    }
    sqlite3_finalize(stmt);
    return err;
}

struct replay {
    store_sink *sink;
    void *user;
    struct store_tip *tip;
};

static int replay_row(void *user, const struct store_batch *row)
{
    const struct replay *r = user;
    if (row->seq != r->tip->seq + 1) {
        log_line(LOG_ERROR, "journal has a gap", "seq=%" PRId64 " next=%" PRId64, r->tip->seq,
                 row->seq);
        return ERR_FORMAT;
    }
    int err = changes_each(row->changes, row->len, r->sink, r->user);
    if (err == ERR_FORMAT)
        log_line(LOG_ERROR, "journal row damaged", "seq=%" PRId64, row->seq);
    *r->tip = (struct store_tip){row->seq, row->core_ms, row->wall_ms};
    return err;
}

int journal_replay(struct journal *j, store_sink *sink, void *user, struct store_tip *tip)
{
    struct replay replay = {sink, user, tip};
    return connected(j) ? each_row(j, tip->seq, replay_row, &replay) : ERR_IO;
}

/* Sets *ret to the seq before the oldest row that fits. Returns SQLite's code. */
static int history_start(struct journal *j, int64_t bytes_max, int64_t *ret)
{
    sqlite3_stmt *stmt =
        dbfile_prepare(j->db, "SELECT seq, length(changes) FROM journal ORDER BY seq DESC");
    if (!stmt)
        return sqlite3_errcode(j->db);
    *ret = j->last;
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        bytes_max -= sqlite3_column_int64(stmt, 1);
        if (bytes_max < 0)
            break;
        *ret = sqlite3_column_int64(stmt, 0) - 1;
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int journal_history(struct journal *j, int64_t bytes_max, store_batch_sink *sink, void *user)
{
    if (!connected(j))
        return ERR_IO;
    int64_t after = 0;
    int rc = history_start(j, bytes_max, &after);
    if (rc == SQLITE_OK)
        return each_row(j, after, sink, user);
    complain_of(j);
    return dbfile_is_damage(rc) ? ERR_FORMAT : ERR_IO;
}

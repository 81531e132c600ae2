#include "store/fold.h"

#include "base/background.h"
#include "base/err.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum {
    /* A slice also ends when its objects fill this. Objects, not changes: the longer the backlog,
     * the more changes fall on the same objects, and the cheaper each is. */
    SLICE_MEMORY = 16 << 20,
    RETRY_MS_MAX = 8000,
    CHECKPOINT_PASSES = 4,
    /* Twice what wakes it, or so many intervals: it gets too little of the processor. */
    BEHIND_TIMES = 2,
    BEHIND_INTERVALS = 4,
};

static int64_t file_bytes(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return stat(path, &info) == 0 ? info.st_size : 0;
}

static void look_at_disk(struct fold *f)
{
    const char *folder = f->journal->folder;
    struct statvfs disk;
    f->state_bytes = file_bytes(folder, STATE_FILE) + file_bytes(folder, STATE_FILE "-wal");
    if (statvfs(folder, &disk) != 0)
        return;
    f->disk_free_bytes = (int64_t)(disk.f_bavail * disk.f_frsize);
    f->disk_bytes = (int64_t)(disk.f_blocks * disk.f_frsize);
}

static int open_files(struct fold *f, const char *folder, const char *journal_folder,
                      struct why *why)
{
    int err = state_open(&f->state, folder, why);
    if (err != 0)
        return err;
    int rc = dbfile_connect(journal_folder, JOURNAL_FILE, &f->reader);
    if (rc == SQLITE_OK) {
        f->read = dbfile_prepare(f->reader, JOURNAL_READ);
        rc = f->read ? SQLITE_OK : sqlite3_errcode(f->reader);
    }
    bool read = rc == SQLITE_OK;
    struct store_tip tip;
    if (read)
        rc = state_tip(&f->state, &tip);
    if (rc == SQLITE_OK) {
        f->folded_seq = tip.seq;
        f->folded_core_ms = tip.core_ms;
        pthread_mutex_init(&f->state_lock, NULL);
        bell_init(&f->bell);
        return 0;
    }
    err = read ? dbfile_refuse(f->state.db, rc, folder, STATE_FILE, why)
               : dbfile_refuse(f->reader, rc, journal_folder, JOURNAL_FILE, why);
    dbfile_close(f->reader);
    state_close(&f->state);
    return err;
}

int fold_open(struct fold *f, const char *folder, struct journal *journal,
              const struct fold_limits *limits, struct why *why)
{
    f->limits = *limits;
    f->journal = journal;
    int err = open_files(f, folder, folder, why);
    if (err == 0)
        look_at_disk(f);
    return err;
}

/* Reads rows after *tip into `latest` until the slice is full, which *ret_full says. Returns
 * SQLite's code, SQLITE_CORRUPT also for a row that cannot be decoded. */
static int read_slice(struct fold *f, struct latest *latest, struct store_tip *tip, bool *ret_full)
{
    int64_t bytes = 0;
    int rc = sqlite3_bind_int64(f->read, 1, tip->seq);
    while (rc == SQLITE_OK) {
        *ret_full = bytes >= f->limits.slice_bytes || latest->bytes >= SLICE_MEMORY;
        if (*ret_full)
            break;
        rc = sqlite3_step(f->read);
        if (rc != SQLITE_ROW)
            break;
        int64_t seq = sqlite3_column_int64(f->read, 0);
        const void *changes = sqlite3_column_blob(f->read, 3);
        size_t len = (size_t)sqlite3_column_bytes(f->read, 3);
        rc = SQLITE_OK;
        if (seq != tip->seq + 1 || latest_apply(latest, changes, len) != 0)
            rc = SQLITE_CORRUPT;
        else
            *tip = (struct store_tip){seq, sqlite3_column_int64(f->read, 1),
                                      sqlite3_column_int64(f->read, 2)};
        bytes += (int64_t)len;
    }
    sqlite3_reset(f->read);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void fold_failed(struct fold *f, sqlite3 *db, int rc, int64_t seq)
{
    char text[256];
    char reason[160];
    snprintf(text, sizeof(text), "after batch %" PRId64 ": %s", seq,
             sqlite3_errcode(db) == SQLITE_OK || sqlite3_errcode(db) == SQLITE_DONE
                 ? sqlite3_errstr(rc)
                 : dbfile_error(db, reason, sizeof(reason)));
    complain(&f->complaint, "journal cannot be folded", text);
}

enum slice_result { SLICE_NONE, SLICE_DONE, SLICE_FULL, SLICE_FAILED };

/* With the state lock held. */
static enum slice_result fold_slice(struct fold *f)
{
    struct latest latest = {0};
    struct store_tip tip = {0};
    sqlite3 *db = f->state.db;
    int rc = state_tip(&f->state, &tip);
    int64_t before = tip.seq;
    bool full = false;
    if (rc == SQLITE_OK) {
        db = f->reader;
        rc = read_slice(f, &latest, &tip, &full);
    }
    if (rc == SQLITE_OK && tip.seq > before) {
        db = f->state.db;
        rc = state_fold(&f->state, &latest, &tip);
    }
    if (rc != SQLITE_OK)
        fold_failed(f, db, rc, before);
    latest_done(&latest);
    if (rc != SQLITE_OK)
        return SLICE_FAILED;
    complaint_settle(&f->complaint, "fold");
    f->folded_core_ms = tip.core_ms;
    f->folded_seq = tip.seq;
    if (full)
        return SLICE_FULL;
    return tip.seq > before ? SLICE_DONE : SLICE_NONE;
}

/* Copies the journal's log into its file without holding up commits. They go on meanwhile, so each
 * pass leaves a shorter tail; journal.c says how the log then starts over. */
static void checkpoint(struct fold *f)
{
    int before = f->journal->backfilled;
    for (int pass = 0; pass < CHECKPOINT_PASSES; pass++) {
        int in_log = 0;
        int copied = 0;
        int rc =
            sqlite3_wal_checkpoint_v2(f->reader, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
        if (rc != SQLITE_OK || copied < 0)
            return;
        f->journal->backfilled = copied;
        if (copied - before < JOURNAL_TAIL_PAGES)
            return;
        before = copied;
    }
}

/* Folds what waits. What has come meanwhile is left for the next time: most of it is about objects
 * that will change again within the second, and each would be written twice. False when it could
 * not. */
static bool fold_all(struct fold *f)
{
    enum slice_result result;
    do {
        f->waiting_bytes = 0;
        pthread_mutex_lock(&f->state_lock);
        result = fold_slice(f);
        pthread_mutex_unlock(&f->state_lock);
        if (result == SLICE_DONE || result == SLICE_FULL)
            checkpoint(f);
    } while (result == SLICE_FULL && !f->bell.stop);
    return result != SLICE_FAILED;
}

static void *fold_run(void *arg)
{
    struct fold *f = arg;
    int64_t wait_ms = f->limits.interval_ms;
    bool failed = false;
    while (bell_wait(&f->bell, wait_ms, failed)) {
        failed = !fold_all(f);
        look_at_disk(f);
        wait_ms = failed ? wait_ms * 2 : f->limits.interval_ms;
        if (wait_ms > RETRY_MS_MAX)
            wait_ms = RETRY_MS_MAX;
    }
    return NULL;
}

static void put_in_background(struct fold *f, bool on)
{
    if (f->may_wait && f->in_background != on && background_set(f->thread, on))
        f->in_background = on;
}

int fold_start(struct fold *f)
{
    f->may_wait = background_can_end();
    f->started = pthread_create(&f->thread, NULL, fold_run, f) == 0;
    if (!f->started)
        return ERR_NO_MEMORY;
    (void)pthread_setname_np(f->thread, "fold");
    put_in_background(f, true);
    return 0;
}

void fold_hurry(struct fold *f)
{
    put_in_background(f, false);
}

void fold_close(struct fold *f)
{
    if (f->started) {
        fold_hurry(f);
        bell_stop(&f->bell);
        pthread_join(f->thread, NULL);
    }
    bell_done(&f->bell);
    pthread_mutex_destroy(&f->state_lock);
    dbfile_close(f->reader);
    state_close(&f->state);
}

/* All that waits, and then the log into the file: closing would do that too, but would not say when
 * it could not. */
static int copy_rest(struct fold *f, const _Atomic bool *stop, struct store_tip *ret,
                     struct why *why)
{
    enum slice_result result = SLICE_FULL;
    char text[sizeof(f->complaint.text)];
    while (result == SLICE_FULL && !*stop)
        result = fold_slice(f);
    if (result == SLICE_FULL)
        (void)snprintf(text, sizeof(text), "it was stopped");
    else if (result == SLICE_FAILED)
        (void)snprintf(text, sizeof(text), "%s", f->complaint.text);
    else if (state_tip(&f->state, ret) != SQLITE_OK ||
             sqlite3_wal_checkpoint_v2(f->state.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) !=
                 SQLITE_OK)
        (void)dbfile_error(f->state.db, text, sizeof(text));
    else
        return 0;
    why_set(why, "The journal cannot be copied: %s.", text);
    return ERR_IO;
}

int fold_copy(const char *state_folder, const char *journal_folder,
              const struct fold_limits *limits, const _Atomic bool *stop, struct store_tip *ret,
              struct why *why)
{
    struct fold f = {.limits = *limits};
    int err = open_files(&f, state_folder, journal_folder, why);
    if (err != 0)
        return err;
    err = copy_rest(&f, stop, ret, why);
    fold_close(&f);
    return err;
}

/* Once behind it stays so until it is where an ordinary fold begins. */
static bool is_behind(const struct fold *f, int64_t rows, int64_t lag_ms)
{
    int64_t times = f->in_background ? BEHIND_TIMES : 1;
    return rows / times >= f->limits.rows || f->waiting_bytes / times >= f->limits.bytes ||
           lag_ms / BEHIND_INTERVALS >= f->limits.interval_ms;
}

void fold_notice(struct fold *f, const struct store_batch *batch, int64_t lag_ms)
{
    int64_t rows = batch->seq - f->folded_seq;
    f->waiting_bytes += (int64_t)batch->len;
    if (rows >= f->limits.rows || f->waiting_bytes >= f->limits.bytes)
        bell_ring(&f->bell);
    put_in_background(f, !is_behind(f, rows, lag_ms));
}

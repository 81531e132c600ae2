#include "store/fold.h"

#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    /* A slice also ends when its objects fill this. Objects, not changes: the longer the backlog,
     * the more changes fall on the same objects, and the cheaper each is. */
    SLICE_MEMORY = 16 << 20,
    RETRY_MS_MAX = 8000,
    CHECKPOINT_PASSES = 4,
};

int fold_open(struct fold *f, const char *folder, struct journal *journal,
              const struct fold_limits *limits, struct why *why)
{
    f->limits = *limits;
    f->journal = journal;
    int err = state_open(&f->state, folder, why);
    if (err != 0)
        return err;
    int rc = dbfile_connect(folder, JOURNAL_FILE, &f->reader);
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
        pthread_mutex_init(&f->wake_lock, NULL);
        pthread_condattr_t attr;
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&f->wake, &attr);
        pthread_condattr_destroy(&attr);
        return 0;
    }
    err = read ? dbfile_refuse(f->state.db, rc, folder, STATE_FILE, why)
               : dbfile_refuse(f->reader, rc, folder, JOURNAL_FILE, why);
    dbfile_close(f->reader);
    state_close(&f->state);
    return err;
}

/* Reads rows after *tip into `latest` until the slice is full. Returns SQLite's code,
 * SQLITE_CORRUPT also for a row that cannot be decoded. */
static int read_slice(struct fold *f, struct latest *latest, struct store_tip *tip)
{
    int64_t bytes = 0;
    int rc = sqlite3_bind_int64(f->read, 1, tip->seq);
    while (rc == SQLITE_OK && bytes < f->limits.slice_bytes && latest->bytes < SLICE_MEMORY) {
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

enum slice_result { SLICE_NONE, SLICE_DONE, SLICE_FAILED };

/* With the state lock held. */
static enum slice_result fold_slice(struct fold *f)
{
    struct latest latest = {0};
    struct store_tip tip = {0};
    sqlite3 *db = f->state.db;
    int rc = state_tip(&f->state, &tip);
    int64_t before = tip.seq;
    if (rc == SQLITE_OK) {
        db = f->reader;
        rc = read_slice(f, &latest, &tip);
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

static bool stopping(struct fold *f)
{
    pthread_mutex_lock(&f->wake_lock);
    bool stop = f->stop;
    pthread_mutex_unlock(&f->wake_lock);
    return stop;
}

/* Folds until nothing waits. False when it could not. */
static bool fold_all(struct fold *f)
{
    enum slice_result result;
    do {
        f->waiting_bytes = 0;
        pthread_mutex_lock(&f->state_lock);
        result = fold_slice(f);
        pthread_mutex_unlock(&f->state_lock);
        if (result == SLICE_DONE)
            checkpoint(f);
    } while (result == SLICE_DONE && !stopping(f));
    return result != SLICE_FAILED;
}

/* Waits until called, at most wait_ms; after a failure calls do not cut the wait short. False when
 * it is time to end. */
static bool wait_for_work(struct fold *f, int64_t wait_ms, bool failed)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&f->wake_lock);
    while (!f->stop && (failed || !f->called)) {
        if (pthread_cond_timedwait(&f->wake, &f->wake_lock, &until) == ETIMEDOUT)
            break;
    }
    f->called = false;
    bool stop = f->stop;
    pthread_mutex_unlock(&f->wake_lock);
    return !stop;
}

static void *fold_run(void *arg)
{
    struct fold *f = arg;
    int64_t wait_ms = f->limits.interval_ms;
    bool failed = false;
    while (wait_for_work(f, wait_ms, failed)) {
        failed = !fold_all(f);
        wait_ms = failed ? wait_ms * 2 : f->limits.interval_ms;
        if (wait_ms > RETRY_MS_MAX)
            wait_ms = RETRY_MS_MAX;
    }
    return NULL;
}

int fold_start(struct fold *f)
{
    f->started = pthread_create(&f->thread, NULL, fold_run, f) == 0;
    if (f->started)
        (void)pthread_setname_np(f->thread, "fold");
    return f->started ? 0 : ERR_NO_MEMORY;
}

void fold_close(struct fold *f)
{
    if (f->started) {
        pthread_mutex_lock(&f->wake_lock);
        f->stop = true;
        pthread_cond_signal(&f->wake);
        pthread_mutex_unlock(&f->wake_lock);
        pthread_join(f->thread, NULL);
    }
    pthread_cond_destroy(&f->wake);
    pthread_mutex_destroy(&f->wake_lock);
    pthread_mutex_destroy(&f->state_lock);
    dbfile_close(f->reader);
    state_close(&f->state);
}

void fold_notice(struct fold *f, const struct store_batch *batch)
{
    f->waiting_bytes += (int64_t)batch->len;
    if (batch->seq - f->folded_seq < f->limits.rows && f->waiting_bytes < f->limits.bytes)
        return;
    pthread_mutex_lock(&f->wake_lock);
    f->called = true;
    pthread_cond_signal(&f->wake);
    pthread_mutex_unlock(&f->wake_lock);
}

/* The SQLite store: a data folder with two files, because one writer's lock would let a large fold
 * stall the commits.
 *
 *   commit ──▶ journal.db ──read──▶ fold thread ──▶ state.db
 *      ▲                                  │
 *      └──── folded_seq: may be trimmed ◀─┘ (after state.db is synced)
 *
 * Loading is the tables of state.db, then the journal rows after folded_seq. */
#include "store/sqlite.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/full.h"
#include "base/log.h"
#include "store/lag.h"
#include "store/migrate.h"
#include "store/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct sqlite_store {
    struct store base;
    int lock_fd;
    struct journal journal;
    struct fold fold;
    _Atomic int64_t commits;
    _Atomic int64_t last_commit_us;
    struct lag lag;
    _Atomic int64_t journal_bytes;

    _Atomic int64_t keep_after; /* journal rows after this one are being copied: none is trimmed */
};

static const struct sqlite_tuning ordinary = {
    .history_rows = STORE_HISTORY_ROWS,
    .history_bytes = STORE_HISTORY_BYTES,
    .fold = {.interval_ms = 1000, .rows = 4096, .bytes = 24 << 20, .slice_bytes = 64 << 20},
};

static int sqlite_load(struct store *base, store_sink *sink, void *user, struct store_tip *ret)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    struct store_tip tip = {0};
    /* The fold waits, so that the tables and the journal's rest belong together. */
    fold_hurry(&s->fold);
    pthread_mutex_lock(&s->fold.state_lock);
    int err = 0;
    int rc = state_tip(&s->fold.state, &tip);
    if (rc != SQLITE_OK) {
        log_line(LOG_ERROR, "state cannot be read", "why=\"%s\"", sqlite3_errstr(rc));
        err = dbfile_is_damage(rc) ? ERR_FORMAT : ERR_IO;
    }
    if (err == 0)
        err = state_load(&s->fold.state, sink, user);
    if (err == 0)
        err = journal_replay(&s->journal, sink, user, &tip);
    pthread_mutex_unlock(&s->fold.state_lock);
    if (err == 0)
        *ret = tip;
    return err;
}

static int sqlite_commit(struct store *base, const struct store_batch *batch)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    int64_t start_us = clock_monotonic_us();
    int64_t folded = s->fold.folded_seq;
    int64_t keep_after = s->keep_after;
    int err = journal_append(&s->journal, batch, folded < keep_after ? folded : keep_after);
    if (err != 0)
        return err;
    lag_committed(&s->lag, batch->seq, batch->core_ms, s->fold.folded_seq);
    s->last_commit_us = s->lag.last_us - start_us;
    s->commits++;
    s->journal_bytes = s->journal.bytes;
    fold_notice(&s->fold, batch, lag_ms(&s->lag, s->fold.folded_seq, s->fold.folded_core_ms));
    return 0;
}

static int sqlite_tip(struct store *base, struct store_tip *ret)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    struct store_tip tip = {0};
    int err = journal_tip(&s->journal, &tip);
    if (err == 0 && tip.seq == 0) {
        fold_hurry(&s->fold);
        pthread_mutex_lock(&s->fold.state_lock);
        if (state_tip(&s->fold.state, &tip) != SQLITE_OK)
            err = ERR_IO;
        pthread_mutex_unlock(&s->fold.state_lock);
    }
    if (err == 0)
        *ret = tip;
    return err;
}

/* The journal may also hold what is not folded yet, however much that is: bytes_max bounds both. */
static int sqlite_history(struct store *base, int64_t bytes_max, store_batch_sink *sink, void *user)
{
    return journal_history(&((struct sqlite_store *)base)->journal, bytes_max, sink, user);
}

/* The tables as they are at some moment, then the journal's rows after that. The rows cannot go
 * meanwhile: they are held from the newest that was folded before the copy began, and the copy
 * cannot be older. A trim that is under way goes no further than what was folded by then. */
static int sqlite_copy(struct store *base, const char *folder, const _Atomic bool *stop,
                       struct store_tip *ret, struct why *why)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    s->keep_after = s->fold.folded_seq;
    int err = dbfile_copy(s->journal.folder, STATE_FILE, folder, stop, why);
    if (err == 0)
        err = fold_copy(folder, s->journal.folder, &s->fold.limits, stop, ret, why);
    s->keep_after = INT64_MAX;
    return err;
}

static void sqlite_close(struct store *base)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    fold_close(&s->fold);
    journal_close(&s->journal);
    close(s->lock_fd); /* last: the files are no longer ours after this */
    free(s);
}

static const struct store_ops sqlite_ops = {
    .load = sqlite_load,
    .commit = sqlite_commit,
    .tip = sqlite_tip,
    .history = sqlite_history,
    .copy = sqlite_copy,
    .figures = store_sqlite_figures,
    .close = sqlite_close,
};

static int make_folder(const char *folder, struct why *why)
{
    int err = 0;
    if (mkdir(folder, 0700) == 0) {
        /* A folder that vanishes takes what is durable in it along. */
        char parent[PATH_MAX];
        snprintf(parent, sizeof(parent), "%s/..", folder);
        err = dbfile_sync_folder(parent);
    } else if (errno != EEXIST) {
        err = -errno;
    }
    if (err == 0)
        return 0;
    why_set(why, "The data folder %s cannot be made: %s.", folder, strerrordesc_np(-err));
    return ERR_IO;
}

/* A lock that root makes (muster restore) is to be opened by whoever runs Muster, to whom the
 * folder belongs. One that is there is left as it is: it may be a link to somebody else's file. */
static int open_lock(const char *folder, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && geteuid() == 0 && stat(folder, &st) == 0 &&
        fchown(fd, st.st_uid, st.st_gid) != 0)
        log_line(LOG_WARN, "lock is root's", "why=\"%s\"", strerrordesc_np(errno));
    return fd;
}

/* The lock goes with the descriptor, so a killed process leaves none behind. */
static int lock(const char *folder, int *ret_fd, struct why *why)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/lock", folder);
    int fd = open_lock(folder, path);
    if (fd < 0) {
        if (full_is(errno))
            why_set(why, "%s cannot be made: %s.", path, full_reason(errno));
        else
            why_set(why, "%s cannot be opened: %s. Check that the data folder is yours.", path,
                    strerrordesc_np(errno));
        return ERR_IO;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fd = fd;
        return 0;
    }
    int err = errno == EWOULDBLOCK ? ERR_LOCKED : ERR_IO;
    why_set(why,
            err == ERR_LOCKED ? "The data folder %s is in use by another Muster process. Stop that "
                                "one, or choose another data folder with --data."
                              : "The data folder %s cannot be locked: the file system refuses. "
                                "Choose a local disk.",
            folder);
    close(fd);
    return err;
}

int store_lock_folder(const char *folder, int *ret_fd, struct why *why)
{
    int err = make_folder(folder, why);
    return err == 0 ? lock(folder, ret_fd, why) : err;
}

/* The files must be of the same moment, or batches between them are gone. */
static int check_pair(const struct sqlite_store *s, const char *folder, struct why *why)
{
    const struct journal *j = &s->journal;
    int64_t folded = s->fold.folded_seq;
    if (j->rows == 0 && folded == 0)
        return 0;
    if (j->rows == 0) {
        /* We always leave the newest row, so somebody took the journal away. */
        why_set(why,
                "%s: " STATE_FILE " stands at batch %" PRId64 " but " JOURNAL_FILE
                " is empty, so they are not of the same moment. Restore the whole folder from a "
                "backup.",
                folder, folded);
        return ERR_FORMAT;
    }
    if (j->first <= folded + 1 && j->last >= folded)
        return 0;
    why_set(why,
            "%s: " STATE_FILE " stands at batch %" PRId64 " but " JOURNAL_FILE " holds %" PRId64
            " to %" PRId64 ", so they are not of the same moment. Restore both from one backup.",
            folder, folded, j->first, j->last);
    return ERR_FORMAT;
}

static int open_files(struct sqlite_store *s, const char *folder,
                      const struct sqlite_tuning *tuning, struct why *why)
{
    int err = journal_open(&s->journal, folder, why);
    if (err != 0)
        return err;
    s->journal.history_rows = tuning->history_rows;
    s->journal.history_bytes = tuning->history_bytes;
    err = fold_open(&s->fold, folder, &s->journal, &tuning->fold, why);
    if (err != 0) {
        journal_close(&s->journal);
        return err;
    }
    err = check_pair(s, folder, why);
    if (err == 0) {
        err = fold_start(&s->fold);
        if (err != 0)
            why_set(why, "The fold thread cannot be started: too many threads.");
    }
    if (err != 0) {
        fold_close(&s->fold);
        journal_close(&s->journal);
    }
    return err;
}

int sqlite_open_tuned(const char *folder, const struct sqlite_tuning *tuning, struct store **ret,
                      const char **ret_why)
{
    static _Thread_local struct why why;
    *ret_why = why.text;
    int fd = -1;
    int err = store_lock_folder(folder, &fd, &why);
    if (err != 0)
        return err;
    struct sqlite_store *s = xcalloc(1, sizeof(*s));
    s->base.ops = &sqlite_ops;
    s->keep_after = INT64_MAX;
    s->lock_fd = fd;
    char aside[64];
    err = restore_finish(folder, aside, &why);
    if (err == 0 && migrate_is_moved(folder, &why))
        err = ERR_FORMAT;
    if (err == 0)
        err = open_files(s, folder, tuning, &why);
    if (err != 0) {
        close(fd);
        free(s);
        return err;
    }
    lag_init(&s->lag, s->journal.last, s->fold.folded_core_ms);
    s->journal_bytes = s->journal.bytes;
    *ret = &s->base;
    return 0;
}

int store_open_sqlite(const char *folder, struct store **ret, const char **ret_why)
{
    return sqlite_open_tuned(folder, &ordinary, ret, ret_why);
}

void store_sqlite_figures(struct store *s, struct store_figures *ret)
{
    const struct sqlite_store *sqlite = (const struct sqlite_store *)s;
    *ret = (struct store_figures){
        .last_seq = sqlite->lag.last_seq,
        .folded_seq = sqlite->fold.folded_seq,
        .fold_lag_ms = lag_ms(&sqlite->lag, sqlite->fold.folded_seq, sqlite->fold.folded_core_ms),
        .journal_rows = sqlite->journal.rows,
        .journal_bytes = sqlite->journal_bytes,
        .state_bytes = sqlite->fold.state_bytes,
        .disk_bytes = sqlite->fold.disk_bytes,
        .disk_free_bytes = sqlite->fold.disk_free_bytes,
        .commits = sqlite->commits,
        .last_commit_us = sqlite->last_commit_us,
    };
}

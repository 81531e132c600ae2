/* Fold: the thread that brings state.db up to the journal, slice by slice, and only then lets the
 * journal's old rows go. Embedded by the SQLite store, which starts it last and stops it first.
 *
 * The order that loses nothing: rows and folded_seq change in one transaction of state.db; when its
 * commit has returned they are synced; only then is folded_seq published, and only published rows
 * may be trimmed.
 *
 * Nobody waits for it as long as it keeps up, so where the kernel allows it the thread is in the
 * background (base/background.h): whoever commits or answers has the processor before it. Whoever
 * commits takes it out again when it falls behind. */
#pragma once

#include "store/bell.h"
#include "store/journal.h"
#include "store/state.h"

struct fold_limits {
    int64_t interval_ms; /* how often the thread looks */
    int64_t rows;        /* waiting rows that wake it before that */
    int64_t bytes;       /* likewise */
    int64_t slice_bytes; /* of journal in one transaction */
};

struct fold {
    struct fold_limits limits;
    struct journal *journal;

    /* state.db and our reading connection to journal.db, for whoever holds the lock. */
    pthread_mutex_t state_lock;
    struct state state;
    sqlite3 *reader;
    sqlite3_stmt *read;
    struct complaint complaint;

    _Atomic int64_t folded_seq; /* published: synced in state.db */
    _Atomic int64_t folded_core_ms;
    _Atomic int64_t waiting_bytes;

    /* How much room there is, looked up here because a disk that hangs may hold up this thread. */
    _Atomic int64_t state_bytes;
    _Atomic int64_t disk_bytes; /* 0 = not known */
    _Atomic int64_t disk_free_bytes;

    pthread_t thread;
    bool started;
    bool may_wait;      /* the thread can be put in the background and taken out of it … */
    bool in_background; /* … where it is: whoever commits, loads or closes says so */
    struct bell bell;
};

/* Opens state.db and the reader. The journal must be open and outlive the fold. */
int fold_open(struct fold *f, const char *folder, struct journal *journal,
              const struct fold_limits *limits, struct why *why);
int fold_start(struct fold *f);

/* Waits for a fold under way, ends the thread, closes. */
void fold_close(struct fold *f);

/* Brings a copy of state.db, in a folder of its own, up to the journal in its folder, as far as
 * that goes now; *ret says where the copy then stands. All of it is in the one file then. Beside
 * commits and folds, from any thread; rows after those in the copy must not be trimmed meanwhile.
 * Ends early when *stop becomes true. 0 or ERR_IO with why. */
int fold_copy(const char *state_folder, const char *journal_folder,
              const struct fold_limits *limits, const _Atomic bool *stop, struct store_tip *ret,
              struct why *why);

/* A batch was committed, and the oldest that is not folded waits for lag_ms; wakes the thread when
 * enough have gathered. */
void fold_notice(struct fold *f, const struct store_batch *batch, int64_t lag_ms);

/* Somebody is about to wait for the thread: it comes out of the background until the next
 * fold_notice. By whoever may commit. */
void fold_hurry(struct fold *f);

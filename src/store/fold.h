/* Fold: the thread that brings state.db up to the journal, slice by slice, and only then lets the
 * journal's old rows go. Embedded by the SQLite store, which starts it last and stops it first.
 *
 * The order that loses nothing: rows and folded_seq change in one transaction of state.db; when its
 * commit has returned they are synced; only then is folded_seq published, and only published rows
 * may be trimmed. */
#pragma once

#include "store/journal.h"
#include "store/state.h"

#include <pthread.h>

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

    pthread_t thread;
    bool started;
    pthread_mutex_t wake_lock; /* guards what follows */
    pthread_cond_t wake;
    bool called;
    bool stop;
};

/* Opens state.db and the reader. The journal must be open and outlive the fold. */
int fold_open(struct fold *f, const char *folder, struct journal *journal,
              const struct fold_limits *limits, struct why *why);
int fold_start(struct fold *f);

/* Waits for a fold under way, ends the thread, closes. */
void fold_close(struct fold *f);

/* A batch was committed; wakes the thread when enough have gathered. */
void fold_notice(struct fold *f, const struct store_batch *batch);

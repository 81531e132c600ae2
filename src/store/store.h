/* The store: remembers batches. One interface, several kinds of memory (sqlite.c, memory.c).
 * All calls block; the writer (writer.h) gives commit a thread of its own.
 *
 * A store is owned by whoever opened it. commit may be called from one thread while load,
 * history and tip are not running; nothing else may overlap. */
#pragma once

#include "core/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One journal row. */
struct store_batch {
    int64_t seq; /* the last durable one plus 1 */
    int64_t epoch;
    int64_t core_ms;
    int64_t wall_ms;
    const uint8_t *changes; /* encoded by change_encode_*; may be empty */
    size_t len;

    /* For figures only; not stored. */
    size_t n_changes;
    size_t n_effects; /* that wait for it */
};

/* The newest durable batch; all zero for an empty store. */
struct store_tip {
    int64_t seq;
    int64_t core_ms;
    int64_t wall_ms;
};

/* Called for each row of the tables and then each change of the journal after them, in order.
 * Anything but 0 stops the load and becomes its result. */
typedef int store_sink(void *user, const struct change *change);

/* What stays of the journal when it is folded, for readers of changes: the newest rows, while
 * neither limit is exceeded. */
enum { STORE_HISTORY_ROWS = 65536, STORE_HISTORY_BYTES = 16 << 20 };

/* Called for each batch that is still there, in order. Its bytes are valid during the call only.
 * Anything but 0 stops and becomes the result. */
typedef int store_batch_sink(void *user, const struct store_batch *batch);

/* How a store is doing. */
struct store_figures {
    int64_t last_seq;
    int64_t folded_seq;
    int64_t
        fold_lag_ms; /* since when the oldest batch that is not folded is durable; 0 = all are */
    int64_t journal_rows;
    int64_t journal_bytes;   /* of changes */
    int64_t state_bytes;     /* of the files with the readable tables */
    int64_t disk_bytes;      /* of the disk that the data folder is on; 0 = not known … */
    int64_t disk_free_bytes; /* … of these, what is left for us */
    int64_t commits;         /* of this process */
    int64_t last_commit_us;
};

struct store;
struct cell_view;

/* A sentence for the operator. */
struct why {
    char text[512];
};

__attribute__((format(printf, 2, 3))) void why_set(struct why *why, const char *format, ...);

struct store_ops {
    /* Gives everything to the sink and says where the journal ends. */
    int (*load)(struct store *s, store_sink *sink, void *user, struct store_tip *ret);

    /* 0 when the batch is durable. Otherwise ERR_IO: it is not, or nobody knows; ask tip. */
    int (*commit)(struct store *s, const struct store_batch *batch);

    /* The two halves of commit, for a store to which the next batch can be on its way while the
     * last one commits: at most `depth` that were begun and have not ended. They end in their
     * order, and after one that failed all that were begun after it fail too. begin needs the
     * batch's bytes during the call only. end waits for the oldest, and says false when wake_fd
     * became readable before (which stays the caller's to read). Same thread as commit, which then
     * may be called while none is under way. depth 0: there is commit alone. */
    int depth;
    int (*begin)(struct store *s, const struct store_batch *batch);
    bool (*end)(struct store *s, int wake_fd, int *ret_result);

    /* What is durable now. */
    int (*tip)(struct store *s, struct store_tip *ret);

    /* Gives the newest batches, without a gap up to the tip: as many as are kept and have at most
     * bytes_max bytes of changes together. Like load: for the start, not beside commits. */
    int (*history)(struct store *s, int64_t bytes_max, store_batch_sink *sink, void *user);

    /* Makes folder/state.db: all that is durable when this ends, of one moment, which *ret says.
     * The folder must be there and empty. Blocks for as long as copying takes, at half of the
     * disk's speed; beside commits and folds, from any thread, one at a time. Ends early when *stop
     * becomes true. ERR_IO with a sentence; the folder may then hold pieces. NULL: it keeps
     * nothing. */
    int (*copy)(struct store *s, const char *folder, const _Atomic bool *stop,
                struct store_tip *ret, struct why *why);

    /* NULL: it has none. May be called at any time, from any thread. */
    void (*figures)(struct store *s, struct store_figures *ret);

    /* The cell that it is the store of, as it was seen last: asks nobody. NULL: there is none. May
     * be called at any time, from any thread. */
    void (*cluster)(struct store *s, struct cell_view *ret);

    /* Whether we may write, and say what is written, now; false once and it stays so. From any
     * thread, at any time. NULL: nobody else can have it. */
    bool (*holds)(const struct store *s);

    /* After the last commit: others may have it at once. NULL as above. */
    void (*give_back)(struct store *s);

    void (*close)(struct store *s);
};

struct store {
    const struct store_ops *ops;
};

static inline int store_load(struct store *s, store_sink *sink, void *user, struct store_tip *ret)
{
    return s->ops->load(s, sink, user, ret);
}

static inline int store_commit(struct store *s, const struct store_batch *batch)
{
    return s->ops->commit(s, batch);
}

/* How many batches may be on their way at once. */
static inline int store_depth(const struct store *s)
{
    return s->ops->depth > 0 ? s->ops->depth : 1;
}

static inline int store_tip(struct store *s, struct store_tip *ret)
{
    return s->ops->tip(s, ret);
}

static inline int store_history(struct store *s, int64_t bytes_max, store_batch_sink *sink,
                                void *user)
{
    return s->ops->history(s, bytes_max, sink, user);
}

/* False, and *ret untouched, when the store has none. */
static inline bool store_figures(struct store *s, struct store_figures *ret)
{
    if (!s->ops->figures)
        return false;
    s->ops->figures(s, ret);
    return true;
}

/* False, and *ret untouched, when it is nobody's but this node's. */
static inline bool store_cluster(struct store *s, struct cell_view *ret)
{
    if (!s->ops->cluster)
        return false;
    s->ops->cluster(s, ret);
    return true;
}

static inline bool store_can_copy(const struct store *s)
{
    return s->ops->copy != NULL;
}

static inline int store_copy(struct store *s, const char *folder, const _Atomic bool *stop,
                             struct store_tip *ret, struct why *why)
{
    return s->ops->copy(s, folder, stop, ret, why);
}

static inline bool store_is_shared(const struct store *s)
{
    return s->ops->holds != NULL;
}

static inline bool store_holds(const struct store *s)
{
    return !s->ops->holds || s->ops->holds(s);
}

static inline void store_give_back(struct store *s)
{
    if (s->ops->give_back)
        s->ops->give_back(s);
}

/* NULL is fine. */
static inline void store_close(struct store *s)
{
    if (s)
        s->ops->close(s);
}

/* Opens (and makes, when absent) the data folder's journal.db and state.db, takes the folder's lock
 * and starts the fold thread. On failure *ret_why (static or in a buffer of the caller's thread,
 * valid until its next call) is a sentence for the operator: which file, what is wrong, what to do.
 * ERR_LOCKED: another process has the folder; ERR_FORMAT: written by another version; ERR_IO. */
int store_open_sqlite(const char *folder, struct store **ret, const char **ret_why);

/* Keeps everything in memory; survives nothing but its caller's bugs. */
struct store *store_open_memory(void);

/* Makes the folder when it is absent, and locks it against other processes for as long as the
 * descriptor is open. As store_open_sqlite, which does both. */
int store_lock_folder(const char *folder, int *ret_fd, struct why *why);

void store_sqlite_figures(struct store *s, struct store_figures *ret);

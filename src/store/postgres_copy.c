#include "store/postgres_copy.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/state.h"

#include <string.h>
#include <time.h>

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 60000,
    SLICE_MEMORY = 4 << 20,
};

/* Rows on their way into the file. */
struct copy {
    const _Atomic bool *stop;
    struct state state;
    struct latest latest;
    struct buf change;
    struct store_tip tip;
    bool failed; /* because of the file, which says why */
};

/* As long a pause as the writing took: others need the disk, too. */
static void make_way(int64_t took_us)
{
    struct timespec pause = {.tv_sec = took_us / 1000000, .tv_nsec = took_us % 1000000 * 1000};
    (void)nanosleep(&pause, NULL);
}

static int flush(struct copy *c)
{
    int64_t began_us = clock_monotonic_us();
    c->failed = state_fold(&c->state, &c->latest, &c->tip) != SQLITE_OK;
    latest_done(&c->latest);
    if (!c->failed)
        make_way(clock_monotonic_us() - began_us);
    return c->failed ? ERR_IO : 0;
}

/* A store_sink. */
static int take_change(void *user, const struct change *change)
{
    struct copy *c = user;
    buf_clear(&c->change);
    if (change->gone)
        change_encode_gone(&c->change, change->kind, change->id);
    else
        change_encode_row(&c->change, change->kind, &change->row_id);
    int err = latest_apply(&c->latest, c->change.data, c->change.len);
    if (err == 0 && c->latest.bytes >= SLICE_MEMORY)
        err = flush(c);
    return *c->stop ? ERR_IO : err;
}

/* A store_batch_sink. */
static int take_batch(void *user, const struct store_batch *batch)
{
    struct copy *c = user;
    if (batch->seq != c->tip.seq + 1)
        return ERR_FORMAT;
    int err = changes_each(batch->changes, batch->len, take_change, c);
    c->tip = (struct store_tip){batch->seq, batch->core_ms, batch->wall_ms};
    return err;
}

/* The cell of one moment, and then what came while that was read. */
static int read_all(struct copy *c, struct pg *pg, struct why *why)
{
    struct store_tip tip = {0};
    int err = cell_read_prepare(pg, why);
    if (err == 0)
        err = cell_read_all(pg, take_change, c, &tip, NULL, why);
    c->tip = tip;
    for (int n = 1; n > 0 && err == 0;)
        err = cell_read_journal(pg, c->tip.seq, take_batch, c, &n, why);
    return err == 0 ? flush(c) : err;
}

/* Closing would bring the log into the file too, but would not say when it could not. */
static int seal(struct copy *c)
{
    c->failed = sqlite3_wal_checkpoint_v2(c->state.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                          NULL) != SQLITE_OK;
    return c->failed ? ERR_IO : 0;
}

static int copy_into(struct copy *c, const struct cell_config *cell, struct why *why)
{
    struct pg *pg = NULL;
    int err = cell_connect(cell, "muster backup", CONNECT_MS, ANSWER_MS, &pg, why);
    if (err == 0)
        err = read_all(c, pg, why);
    pg_close(pg);
    if (err == 0)
        err = seal(c);
    char reason[256];
    if (c->failed)
        why_set(why, "The cell cannot be copied: %s.",
                dbfile_error(c->state.db, reason, sizeof(reason)));
    else if (err != 0 && *c->stop)
        why_set(why, "The cell cannot be copied: it was stopped.");
    return err != 0 ? ERR_IO : 0;
}

int postgres_copy(const struct cell_config *cell, const char *folder, const _Atomic bool *stop,
                  struct store_tip *ret, struct why *why)
{
    struct copy c = {.stop = stop};
    int err = state_open(&c.state, folder, why);
    if (err != 0)
        return err;
    err = copy_into(&c, cell, why);
    if (err == 0)
        *ret = c.tip;
    latest_done(&c.latest);
    buf_done(&c.change);
    state_close(&c.state);
    return err;
}

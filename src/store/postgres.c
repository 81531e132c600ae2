/* The store of a cell.
 *
 *   commit ──▶ link ──▶ journal ──▶ fold thread ──▶ tables
 *                                        └────────▶ journal's oldest rows go
 *   keeper thread ──▶ lease, node
 *
 * Each has a connection of its own, so none waits for another's answer. */
#include "store/postgres.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/lag.h"
#include "store/postgres_copy.h"
#include "store/postgres_keep.h"
#include "store/postgres_link.h"

#include <stdlib.h>

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 60000,
};

struct postgres_store {
    struct store base;
    const struct cell_config *cell;
    struct tenure *tenure; /* not within, because whoever only asks may end it */
    struct postgres_link link;
    struct postgres_fold fold;
    struct keeper keeper;
    struct lag lag;
    _Atomic int64_t commits;
    _Atomic int64_t last_commit_us;
};

static const struct postgres_fold_tuning ordinary = {
    .history_rows = STORE_HISTORY_ROWS,
    .history_bytes = STORE_HISTORY_BYTES,
    .fold = {.interval_ms = 1000, .rows = 4096, .bytes = 24 << 20, .slice_bytes = 64 << 20},
};

static struct postgres_store *self(struct store *base)
{
    return (struct postgres_store *)base;
}

/* ── batches ───────────────────────────────────────────────────────────────────────────────── */

static int postgres_begin(struct store *base, const struct store_batch *batch)
{
    link_begin(&self(base)->link, batch);
    return 0;
}

static bool postgres_end(struct store *base, int wake_fd, int *ret_result)
{
    struct postgres_store *s = self(base);
    const struct link_batch *b = NULL;
    if (!link_end(&s->link, wake_fd, ret_result, &b))
        return false;
    if (*ret_result == 0) {
        lag_committed(&s->lag, b->seq, b->core_ms, s->fold.folded_seq);
        s->last_commit_us = s->lag.last_us - b->begun_us;
        s->commits++;
        postgres_fold_notice(&s->fold, b->seq, b->len);
        keeper_notice(&s->keeper);
    }
    return true;
}

static int postgres_commit(struct store *base, const struct store_batch *batch)
{
    int result = 0;
    link_begin(&self(base)->link, batch);
    (void)postgres_end(base, -1, &result); /* nobody wakes it */
    return result;
}

static int postgres_tip(struct store *base, struct store_tip *ret)
{
    return link_tip(&self(base)->link, ret);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

/* Returns err. What a sink has refused is not the cell's fault. */
static int complained(int err, const struct why *why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (err != 0 && why->text[0] != '\0')
        log_line(LOG_ERROR, "the cell cannot be read", "why=%s",
                 log_quote(quoted, str_of(why->text)));
    return err;
}

/* A connection for reading, after which nothing is on its way to the journal any more. */
static int open_reader(struct postgres_store *s, struct store_tip *tip, struct pg **ret,
                       struct why *why)
{
    int err = link_tip(&s->link, tip);
    if (err != 0) {
        why_set(why, "It cannot be written, so nobody knows where it ends.");
        return err;
    }
    err = cell_connect(s->cell, "muster load", CONNECT_MS, ANSWER_MS, ret, why);
    if (err == 0)
        err = cell_read_prepare(*ret, why);
    if (err == 0)
        why_set(why, "%s", "");
    return err;
}

static int postgres_load(struct store *base, store_sink *sink, void *user, struct store_tip *ret)
{
    struct store_tip tip = {0};
    struct store_tip loaded = {0};
    struct pg *pg = NULL;
    struct why why = {""};
    int err = open_reader(self(base), &tip, &pg, &why);
    if (err == 0)
        err = cell_read_all(pg, sink, user, &loaded, NULL, &why);
    pg_close(pg);
    if (err == 0 && loaded.seq != tip.seq) {
        why_set(&why, "Another node writes into this cell.");
        err = ERR_IO;
    }
    if (err == 0)
        *ret = loaded;
    return complained(err, &why);
}

/* *ret: the seq before the oldest row that fits. */
static int history_start(struct pg *pg, int64_t bytes_max, int64_t *ret, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, bytes_max);
    int err = pg_query(pg,
                       "SELECT coalesce(min(seq) - 1, 9223372036854775807) FROM (SELECT seq,"
                       " sum(octet_length(changes)) OVER (ORDER BY seq DESC) AS bytes"
                       " FROM journal) newest WHERE bytes <= $1::bigint",
                       &args, &r, why);
    if (err == 0)
        *ret = pg_get_int(r, 0, 0);
    pg_free(r);
    return err;
}

struct telling {
    store_batch_sink *sink;
    void *user;
    int64_t seq; /* the newest that was given */
};

static int tell(void *user, const struct store_batch *batch)
{
    struct telling *t = user;
    t->seq = batch->seq;
    return t->sink(t->user, batch);
}

/* Of one moment: the fold may trim meanwhile. */
static int postgres_history(struct store *base, int64_t bytes_max, store_batch_sink *sink,
                            void *user)
{
    struct telling telling = {.sink = sink, .user = user};
    struct store_tip tip = {0};
    struct pg *pg = NULL;
    struct why why = {""};
    int err = open_reader(self(base), &tip, &pg, &why);
    if (err == 0)
        err = pg_script(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &why);
    if (err == 0)
        err = history_start(pg, bytes_max, &telling.seq, &why);
    for (int n = 1; n > 0 && err == 0 && telling.seq < tip.seq;)
        err = cell_read_journal(pg, telling.seq, tell, &telling, &n, &why);
    pg_close(pg);
    return complained(err, &why);
}

static int postgres_copy_cell(struct store *base, const char *folder, const _Atomic bool *stop,
                              struct store_tip *ret, struct why *why)
{
    struct postgres_store *s = self(base);
    s->fold.keep_after = s->fold.folded_seq;
    int err = postgres_copy(s->cell, folder, stop, ret, why);
    s->fold.keep_after = INT64_MAX;
    return err;
}

static void postgres_figures(struct store *base, struct store_figures *ret)
{
    struct postgres_store *s = self(base);
    *ret = (struct store_figures){
        .last_seq = s->lag.last_seq,
        .folded_seq = s->fold.folded_seq,
        .fold_lag_ms = lag_ms(&s->lag, s->fold.folded_seq, s->fold.folded_core_ms),
        .journal_rows = s->fold.journal_rows,
        .journal_bytes = s->fold.journal_bytes,
        .state_bytes = s->fold.state_bytes,
        .commits = s->commits,
        .last_commit_us = s->last_commit_us,
    };
}

/* ── the cell ──────────────────────────────────────────────────────────────────────────────── */

static void postgres_cluster(struct store *base, struct cell_view *ret)
{
    keeper_view(&self(base)->keeper, ret);
}

static bool postgres_holds(const struct store *base)
{
    return tenure_holds(((const struct postgres_store *)base)->tenure);
}

static void postgres_give_back(struct store *base)
{
    keeper_give_back(&self(base)->keeper);
}

static void postgres_close(struct store *base)
{
    struct postgres_store *s = self(base);
    keeper_close(&s->keeper);
    postgres_fold_close(&s->fold);
    link_close(&s->link);
    free(s->tenure);
    free(s);
}

static const struct store_ops postgres_ops = {
    .load = postgres_load,
    .commit = postgres_commit,
    .depth = LINK_DEPTH,
    .begin = postgres_begin,
    .end = postgres_end,
    .tip = postgres_tip,
    .history = postgres_history,
    .copy = postgres_copy_cell,
    .figures = postgres_figures,
    .cluster = postgres_cluster,
    .holds = postgres_holds,
    .give_back = postgres_give_back,
    .close = postgres_close,
};

static int open_parts(struct postgres_store *s, const struct store_tip *tip,
                      const struct postgres_fold_tuning *tuning, struct why *why)
{
    int err = link_open(&s->link, s->cell, s->tenure, tip, why);
    if (err != 0)
        return err;
    err = postgres_fold_start(&s->fold, s->cell, s->tenure, tuning, tip->seq, why);
    if (err == 0)
        return 0;
    postgres_fold_close(&s->fold);
    link_close(&s->link);
    return err;
}

int postgres_open_tuned(const struct cell_config *c, const struct cell_term *term,
                        const struct store_tip *tip, const struct postgres_fold_tuning *tuning,
                        struct store **ret, struct why *why)
{
    struct postgres_store *s = xcalloc(1, sizeof(*s));
    s->base.ops = &postgres_ops;
    s->cell = c;
    s->tenure = xcalloc(1, sizeof(*s->tenure));
    tenure_init(s->tenure, term, c->self.id);
    lag_init(&s->lag, tip->seq, tip->core_ms);
    /* First, so that the lease is renewed while the others begin. */
    int err = keeper_start(&s->keeper, c, term, s->tenure, &s->lag.last_seq);
    if (err == 0)
        err = open_parts(s, tip, tuning, why);
    else
        why_set(why, "The thread that renews the lease cannot be started: too many threads.");
    if (err == 0) {
        *ret = &s->base;
        return 0;
    }
    keeper_close(&s->keeper);
    free(s->tenure);
    free(s);
    return err == ERR_FORMAT ? err : ERR_IO;
}

int store_open_postgres(const struct cell_config *c, const struct cell_term *term,
                        const struct store_tip *tip, struct store **ret, struct why *why)
{
    return postgres_open_tuned(c, term, tip, &ordinary, ret, why);
}

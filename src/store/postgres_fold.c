#include "store/postgres_fold.h"

#include "base/clock.h"
#include "base/err.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/cell_write.h"
#include "store/latest.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    CONNECT_MS = 5000,
    ANSWER_MS = 10000,
    RETRY_MS_MAX = 8000,
    SLICE_MEMORY = 16 << 20, /* of objects; fold.c says why */

    TRIM_ROWS_MIN = 32, /* seldom enough */
    TRIM_ROWS_MAX = 1024,
    TRIM_BYTES_MIN = 1 << 20,
    SIZE_MS = 10000,
};

/* A node that stops in the middle of a fold keeps the tables' rows locked until then. */
static const char settings_sql[] = "SET idle_in_transaction_session_timeout = '10s'";

/* The fold before this one, which may be another node's, has ended when this is answered. */
static const char begin_sql[] = "SELECT seq, core_ms, wall_ms FROM fold FOR UPDATE";

/* Not the head, which every batch needs. Last, because whoever renews the lease waits for it. */
static const char guard_sql[] = "SELECT epoch FROM lease WHERE epoch = $1::bigint FOR SHARE";

static const char extent_sql[] =
    "SELECT (SELECT seq FROM fold), (SELECT core_ms FROM fold), count(*), coalesce(min(seq), 0),"
    " coalesce(sum(octet_length(changes)), 0)::bigint FROM journal";
static const char oldest_sql[] =
    "SELECT seq, octet_length(changes) FROM journal WHERE seq >= $1::bigint AND seq <= $2::bigint"
    " ORDER BY seq LIMIT $3::bigint";
static const char trim_sql[] = "DELETE FROM journal WHERE seq >= $1::bigint AND seq <= $2::bigint"
                               " AND EXISTS (SELECT FROM lease WHERE epoch = $3::bigint)";
static const char size_sql[] =
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    " AND relname <> 'journal'";

static int connect_to_cell(struct postgres_fold *f, struct why *why)
{
    if (f->pg)
        return 0;
    char schema[CELL_SCHEMA_SIZE];
    struct pg_wish wish = {
        .url = f->cell->url,
        .schema = cell_schema(f->cell->cell, schema),
        .name = "muster fold",
        .connect_ms = CONNECT_MS,
        .answer_ms = ANSWER_MS,
        .stop = &f->bell.stop,
    };
    int err = pg_connect(&wish, &f->pg, why);
    if (err == 0)
        err = pg_script(f->pg, settings_sql, why);
    return err == 0 ? cell_read_prepare(f->pg, why) : err;
}

static void disconnect(struct postgres_fold *f)
{
    pg_close(f->pg);
    f->pg = NULL;
}

/* ── folding ───────────────────────────────────────────────────────────────────────────────── */

static int one_row(struct pg *pg, const char *sql, const struct pg_args *args,
                   struct pg_result **ret, struct why *why)
{
    int err = pg_query(pg, sql, args, ret, why);
    if (err != 0 || pg_rows(*ret) == 1)
        return err;
    pg_free(*ret);
    *ret = NULL;
    why_set(why, "One of the cell's tables that must have one row has not.");
    return ERR_FORMAT;
}

struct slice {
    struct latest latest;
    struct store_tip tip;
    int64_t bytes;
};

static int gather(void *user, const struct store_batch *batch)
{
    struct slice *s = user;
    if (batch->seq != s->tip.seq + 1 || latest_apply(&s->latest, batch->changes, batch->len) != 0)
        return ERR_FORMAT;
    s->tip = (struct store_tip){batch->seq, batch->core_ms, batch->wall_ms};
    s->bytes += (int64_t)batch->len;
    return 0;
}

/* Reads behind s->tip what is there by now, or until the slice is full, which *ret_full says. */
static int read_slice(struct postgres_fold *f, struct slice *s, bool *ret_full, struct why *why)
{
    int64_t upto = f->last_seq;
    int err = 0;
    for (int n = 1; n > 0 && s->tip.seq < upto && err == 0 && !*ret_full;) {
        err = cell_read_journal(f->pg, s->tip.seq, gather, s, &n, why);
        *ret_full = s->bytes >= f->tuning.fold.slice_bytes || s->latest.bytes >= SLICE_MEMORY;
    }
    return err;
}

static int not_ours(struct postgres_fold *f, struct why *why)
{
    why_set(why, "Another node leads the cell by now.");
    tenure_end(f->tenure, why->text);
    return ERR_IO;
}

/* Also keeps it so until the transaction ends. */
static int check_lease(struct postgres_fold *f, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, f->tenure->epoch);
    int err = pg_query(f->pg, guard_sql, &args, &r, why);
    bool ours = err == 0 && pg_rows(r) == 1;
    pg_free(r);
    return err != 0 || ours ? err : not_ours(f, why);
}

/* In a transaction in which the tables stand where the slice begins. */
static int write_slice(struct postgres_fold *f, const struct slice *s, struct why *why)
{
    int err = cell_write_rows(f->pg, &s->latest, &f->rows, why);
    if (err == 0)
        err = cell_write_fold(f->pg, &s->tip, why);
    if (err == 0)
        err = check_lease(f, why);
    return err == 0 ? pg_script(f->pg, "COMMIT", why) : err;
}

/* One transaction, from how the tables stand to how they stand then; *ret_full: there is more. */
static int fold_slice(struct postgres_fold *f, bool *ret_full, struct why *why)
{
    struct slice s = {0};
    struct pg_result *r = NULL;
    int err = pg_script(f->pg, "BEGIN", why);
    if (err == 0)
        err = one_row(f->pg, begin_sql, NULL, &r, why);
    if (err != 0)
        return err;
    s.tip = (struct store_tip){pg_get_int(r, 0, 0), pg_get_int(r, 0, 1), pg_get_int(r, 0, 2)};
    pg_free(r);
    int64_t before = s.tip.seq;
    err = read_slice(f, &s, ret_full, why);
    if (err == 0)
        err = s.tip.seq > before ? write_slice(f, &s, why) : pg_script(f->pg, "ROLLBACK", why);
    latest_done(&s.latest);
    if (err != 0)
        return err;
    f->folded_core_ms = s.tip.core_ms;
    f->folded_seq = s.tip.seq;
    return 0;
}

/* ── trimming ──────────────────────────────────────────────────────────────────────────────── */

/* How far the oldest rows may go for the rest to fit; at most a slice. */
static int64_t choose(struct postgres_fold *f, const struct pg_result *r, int64_t *ret_bytes)
{
    int64_t upto = 0;
    int64_t rows = f->journal_rows;
    int64_t bytes = f->journal_bytes;
    *ret_bytes = 0;
    for (int i = 0; i < pg_rows(r); i++) {
        if (rows <= f->tuning.history_rows && bytes <= f->tuning.history_bytes)
            break;
        upto = pg_get_int(r, i, 0);
        rows--;
        bytes -= pg_get_int(r, i, 1);
        *ret_bytes += pg_get_int(r, i, 1);
    }
    return upto;
}

static int delete_rows(struct postgres_fold *f, int64_t upto, int64_t bytes, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, f->first);
    pg_int(&args, upto);
    pg_int(&args, f->tenure->epoch);
    int err = pg_query(f->pg, trim_sql, &args, &r, why);
    int64_t gone = err == 0 ? pg_affected(r) : 0;
    pg_free(r);
    if (err != 0)
        return err;
    if (gone == 0)
        return not_ours(f, why);
    f->first = upto + 1;
    f->journal_rows -= gone;
    f->journal_bytes -= bytes;
    return 0;
}

/* One slice; *ret_more when there may be another. The newest row always stays: it says where the
 * journal ends. */
static int trim_slice(struct postgres_fold *f, bool *ret_more, struct why *why)
{
    int64_t limit = f->folded_seq;
    if (limit > f->last_seq - 1)
        limit = f->last_seq - 1;
    if (limit > f->keep_after)
        limit = f->keep_after;
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, f->first);
    pg_int(&args, limit);
    pg_int(&args, TRIM_ROWS_MAX);
    int err = pg_query(f->pg, oldest_sql, &args, &r, why);
    if (err != 0)
        return err;
    int64_t bytes = 0;
    int64_t upto = choose(f, r, &bytes);
    *ret_more = pg_rows(r) == TRIM_ROWS_MAX && upto > 0;
    pg_free(r);
    return upto > 0 ? delete_rows(f, upto, bytes, why) : 0;
}

static int trim(struct postgres_fold *f, struct why *why)
{
    int err = 0;
    bool more = f->journal_rows >= f->tuning.history_rows + TRIM_ROWS_MIN ||
                f->journal_bytes >= f->tuning.history_bytes + TRIM_BYTES_MIN;
    while (more && err == 0 && !f->bell.stop)
        err = trim_slice(f, &more, why);
    return err;
}

/* ── the thread ────────────────────────────────────────────────────────────────────────────── */

static int look_at_size(struct postgres_fold *f, struct why *why)
{
    if (clock_monotonic_ms() < f->size_ms)
        return 0;
    struct pg_result *r = NULL;
    int err = one_row(f->pg, size_sql, NULL, &r, why);
    if (err != 0)
        return err;
    f->state_bytes = pg_get_int(r, 0, 0);
    f->size_ms = clock_monotonic_ms() + SIZE_MS;
    pg_free(r);
    return 0;
}

/* Folds what waits; what comes meanwhile waits for the next time, as in fold.c. */
static bool fold_all(struct postgres_fold *f)
{
    struct why why = {""};
    int err = connect_to_cell(f, &why);
    for (bool full = true; full && err == 0 && !f->bell.stop;) {
        full = false;
        f->waiting_bytes = 0;
        if (f->folded_seq < f->last_seq)
            err = fold_slice(f, &full, &why);
    }
    if (err == 0)
        err = trim(f, &why);
    if (err == 0)
        err = look_at_size(f, &why);
    if (err == 0) {
        complaint_settle(&f->complaint, "fold");
        return true;
    }
    if (!f->bell.stop && tenure_holds(f->tenure))
        complain(&f->complaint, "journal cannot be folded", why.text);
    disconnect(f); /* and with it what is open there */
    return false;
}

static void *fold_run(void *arg)
{
    struct postgres_fold *f = arg;
    int64_t wait_ms = f->tuning.fold.interval_ms;
    bool failed = false;
    while (bell_wait(&f->bell, wait_ms, failed) && tenure_holds(f->tenure)) {
        failed = !fold_all(f);
        wait_ms = failed ? wait_ms * 2 : f->tuning.fold.interval_ms;
        if (wait_ms > RETRY_MS_MAX)
            wait_ms = RETRY_MS_MAX;
    }
    disconnect(f);
    return NULL;
}

static int read_extent(struct postgres_fold *f, struct why *why)
{
    struct pg_result *r = NULL;
    int err = one_row(f->pg, extent_sql, NULL, &r, why);
    if (err != 0)
        return err;
    f->folded_seq = pg_get_int(r, 0, 0);
    f->folded_core_ms = pg_get_int(r, 0, 1);
    f->journal_rows = pg_get_int(r, 0, 2);
    f->first = pg_get_int(r, 0, 3);
    f->journal_bytes = pg_get_int(r, 0, 4);
    pg_free(r);
    return 0;
}

int postgres_fold_start(struct postgres_fold *f, const struct cell_config *cell,
                        struct tenure *tenure, const struct postgres_fold_tuning *tuning,
                        int64_t last_seq, struct why *why)
{
    *f = (struct postgres_fold){.cell = cell, .tenure = tenure, .tuning = *tuning};
    f->last_seq = last_seq;
    f->keep_after = INT64_MAX;
    bell_init(&f->bell);
    int err = connect_to_cell(f, why);
    if (err == 0)
        err = read_extent(f, why);
    if (err == 0)
        err = look_at_size(f, why);
    if (err != 0)
        return err;
    f->started = pthread_create(&f->thread, NULL, fold_run, f) == 0;
    if (f->started) {
        (void)pthread_setname_np(f->thread, "fold");
        return 0;
    }
    why_set(why, "The fold thread cannot be started: too many threads.");
    return ERR_NO_MEMORY;
}

void postgres_fold_close(struct postgres_fold *f)
{
    if (f->started) {
        bell_stop(&f->bell);
        pthread_join(f->thread, NULL);
    }
    disconnect(f);
    tables_rows_done(&f->rows);
    bell_done(&f->bell);
}

void postgres_fold_notice(struct postgres_fold *f, int64_t seq, size_t len)
{
    f->last_seq = seq;
    f->journal_rows++;
    f->journal_bytes += (int64_t)len;
    f->waiting_bytes += (int64_t)len;
    if (seq - f->folded_seq >= f->tuning.fold.rows || f->waiting_bytes >= f->tuning.fold.bytes)
        bell_ring(&f->bell);
}

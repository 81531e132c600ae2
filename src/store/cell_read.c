#include "store/cell_read.h"

#include "base/err.h"
#include "store/latest.h"
#include "store/row_value.h"
#include "store/tables.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE_ROWS = 2048 };

/* Lengths come without the bytes they are of, so what does not fit is not fetched. */
static const char journal_sql[] =
    "SELECT seq, epoch, core_ms, wall_ms, changes FROM"
    " (SELECT seq, epoch, core_ms, wall_ms, changes,"
    " sum(octet_length(changes)) OVER (ORDER BY seq) - octet_length(changes) AS before"
    " FROM journal WHERE seq > $1::bigint ORDER BY seq LIMIT $2::bigint) slice"
    " WHERE before < $3::bigint ORDER BY seq";

int cell_read_prepare(struct pg *pg, struct why *why)
{
    return pg_prepare(pg, "read_journal", journal_sql, why);
}

int cell_read_journal(struct pg *pg, int64_t after, store_batch_sink *sink, void *user, int *ret_n,
                      struct why *why)
{
    struct pg_args args = {0};
    pg_int(&args, after);
    pg_int(&args, CELL_SLICE_ROWS);
    pg_int(&args, CELL_SLICE_BYTES);
    struct pg_result *r = NULL;
    int err = pg_run(pg, "read_journal", &args, &r, why);
    if (err != 0)
        return err;
    int n = pg_rows(r);
    for (int i = 0; i < n && err == 0; i++) {
        struct str changes = pg_get_bytes(r, i, 4);
        struct store_batch batch = {
            .seq = pg_get_int(r, i, 0),
            .epoch = pg_get_int(r, i, 1),
            .core_ms = pg_get_int(r, i, 2),
            .wall_ms = pg_get_int(r, i, 3),
            .changes = (const uint8_t *)changes.at,
            .len = changes.len,
        };
        err = sink(user, &batch);
        if (err == ERR_FORMAT)
            why_set(why,
                    "Batch %" PRId64
                    " in the journal of this cell is damaged, or the one before it is missing.",
                    batch.seq);
    }
    pg_free(r);
    if (err == 0)
        *ret_n = n;
    return err;
}

/* ── tables ────────────────────────────────────────────────────────────────────────────────── */

/* Names come from rows.def, never from outside. */
static void page_sql(struct buf *out, enum row_kind kind)
{
    const struct row_field *first = row_fields(kind);
    char text[160];
    buf_append(out, "SELECT ", 7);
    for (const struct row_field *f = first; f->type != ROW_END; f++) {
        int n = snprintf(text, sizeof(text), "%s\"%s\"", f == first ? "" : ", ", f->name);
        buf_append(out, text, (size_t)n);
    }
    int n = snprintf(text, sizeof(text),
                     " FROM \"%s\" WHERE \"%s\" > $1::bigint ORDER BY 1 LIMIT $2::bigint",
                     row_kind_name(kind), first->name);
    buf_append(out, text, (size_t)n + 1);
}

static bool read_row(const struct pg_result *r, int row, struct change *c)
{
    int column = 0;
    for (const struct row_field *f = row_fields(c->kind); f->type != ROW_END; f++, column++) {
        bool taken = !pg_null(r, row, column);
        if (taken && f->type <= ROW_i64)
            taken = row_take_int(f, &c->row_id, pg_get_int(r, row, column));
        else if (taken && f->type == ROW_text)
            taken = tables_untext(pg_get_bytes(r, row, column), (char *)&c->row_id + f->offset,
                                  f->size) &&
                    str_is_utf8(str_of((const char *)&c->row_id + f->offset));
        else if (taken)
            taken = row_take_bytes(f, &c->row_id, pg_get_bytes(r, row, column));
        if (!taken)
            return false;
    }
    c->id = c->row_id;
    return true;
}

static int give_page(const struct pg_result *r, enum row_kind kind, store_sink *sink, void *user,
                     int64_t *last, struct why *why)
{
    int err = 0;
    for (int i = 0; i < pg_rows(r) && err == 0; i++) {
        struct change change = {.kind = kind};
        err = read_row(r, i, &change) ? sink(user, &change) : ERR_FORMAT;
        *last = pg_get_int(r, i, 0);
        if (err == ERR_FORMAT)
            why_set(why, "Row %" PRId64 " of the table \"%s\" of this cell is damaged.", *last,
                    row_kind_name(kind));
    }
    return err;
}

static int read_table(struct pg *pg, enum row_kind kind, store_sink *sink, void *user,
                      struct why *why)
{
    struct buf sql = {0};
    page_sql(&sql, kind);
    int64_t last = INT64_MIN;
    int err = 0;
    for (bool more = true; more && err == 0;) {
        struct pg_args args = {0};
        struct pg_result *r = NULL;
        pg_int(&args, last);
        pg_int(&args, PAGE_ROWS);
        err = pg_query(pg, (const char *)sql.data, &args, &r, why);
        if (err == 0)
            err = give_page(r, kind, sink, user, &last, why);
        more = err == 0 && pg_rows(r) == PAGE_ROWS;
        pg_free(r);
    }
    buf_done(&sql);
    return err;
}

/* ── all ───────────────────────────────────────────────────────────────────────────────────── */

struct replay {
    store_sink *sink;
    void *user;
    struct store_tip tip;
    int64_t epoch;
};

static int replay(void *user, const struct store_batch *batch)
{
    struct replay *r = user;
    if (batch->seq != r->tip.seq + 1)
        return ERR_FORMAT;
    int err = changes_each(batch->changes, batch->len, r->sink, r->user);
    if (err == 0) {
        r->tip = (struct store_tip){batch->seq, batch->core_ms, batch->wall_ms};
        r->epoch = batch->epoch;
    }
    return err;
}

/* Where the tables stand. Rows of the journal at or before it may be there still. */
static int read_fold(struct pg *pg, struct replay *to, struct why *why)
{
    struct pg_result *r = NULL;
    int err = pg_query(pg,
                       "SELECT f.seq, f.core_ms, f.wall_ms, coalesce(j.epoch, 0)"
                       " FROM fold f LEFT JOIN journal j ON j.seq = f.seq",
                       &(struct pg_args){0}, &r, why);
    if (err == 0 && pg_rows(r) != 1) {
        why_set(why, "This cell does not say where its tables stand: the table \"fold\" must have "
                     "one row.");
        err = ERR_FORMAT;
    }
    if (err == 0) {
        to->tip = (struct store_tip){pg_get_int(r, 0, 0), pg_get_int(r, 0, 1), pg_get_int(r, 0, 2)};
        to->epoch = pg_get_int(r, 0, 3);
    }
    pg_free(r);
    return err;
}

static int read_everything(struct pg *pg, struct replay *to, struct why *why)
{
    int err = read_fold(pg, to, why);
    for (int kind = 0; kind < ROW_KINDS && err == 0; kind++)
        err = read_table(pg, (enum row_kind)kind, to->sink, to->user, why);
    for (int n = 1; n > 0 && err == 0;)
        err = cell_read_journal(pg, to->tip.seq, replay, to, &n, why);
    return err;
}

int cell_read_within(struct pg *pg, store_sink *sink, void *user, struct store_tip *ret,
                     int64_t *ret_epoch, struct why *why)
{
    struct replay to = {.sink = sink, .user = user};
    int err = read_everything(pg, &to, why);
    if (err != 0)
        return err;
    *ret = to.tip;
    if (ret_epoch)
        *ret_epoch = to.epoch;
    return 0;
}

int cell_read_all(struct pg *pg, store_sink *sink, void *user, struct store_tip *ret,
                  int64_t *ret_epoch, struct why *why)
{
    struct store_tip tip;
    int64_t epoch;
    int err = pg_script(pg, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", why);
    if (err != 0)
        return err;
    err = cell_read_within(pg, sink, user, &tip, &epoch, why);
    struct why ignored;
    int end = pg_lost(pg) ? 0 : pg_script(pg, "COMMIT", err == 0 ? why : &ignored);
    if (err == 0)
        err = end;
    if (err != 0)
        return err;
    *ret = tip;
    if (ret_epoch)
        *ret_epoch = epoch;
    return 0;
}

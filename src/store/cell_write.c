#include "store/cell_write.h"

enum {
    /* Rows in one statement. */
    ROWS_MAX = 4096,
    ROWS_BYTES_MAX = 1 << 20,
};

struct writing {
    struct pg *pg;
    struct tables_rows *rows;
    struct why *why;
};

/* What has gathered of one kind. */
static int write_gathered(const struct writing *w)
{
    struct tables_rows *rows = w->rows;
    struct buf sql = {0};
    int err = 0;
    if (rows->n > 0) {
        struct pg_args args = {0};
        tables_upsert(&sql, rows->kind);
        buf_append(&sql, "", 1);
        tables_rows_args(rows, &args);
        err = pg_query(w->pg, (const char *)sql.data, &args, NULL, w->why);
    }
    if (err == 0 && rows->n_gone > 0) {
        struct pg_args args = {0};
        buf_clear(&sql);
        tables_delete(&sql, rows->kind);
        buf_append(&sql, "", 1);
        tables_gone_args(rows, &args);
        err = pg_query(w->pg, (const char *)sql.data, &args, NULL, w->why);
    }
    buf_done(&sql);
    return err;
}

/* A store_sink: rows come in order of kind, each object once. */
static int add_row(void *user, const struct change *change)
{
    const struct writing *w = user;
    struct tables_rows *rows = w->rows;
    int err = 0;
    if (change->kind != rows->kind || rows->n + rows->n_gone >= ROWS_MAX ||
        rows->bytes >= ROWS_BYTES_MAX) {
        err = write_gathered(w);
        tables_rows_begin(rows, change->kind);
    }
    if (err == 0)
        tables_rows_add(rows, change);
    return err;
}

int cell_write_rows(struct pg *pg, const struct latest *latest, struct tables_rows *rows,
                    struct why *why)
{
    struct writing w = {pg, rows, why};
    tables_rows_begin(rows, (enum row_kind)0);
    int err = latest_each(latest, add_row, &w);
    return err == 0 ? write_gathered(&w) : err;
}

int cell_write_fold(struct pg *pg, const struct store_tip *tip, struct why *why)
{
    struct pg_args args = {0};
    pg_int(&args, tip->seq);
    pg_int(&args, tip->core_ms);
    pg_int(&args, tip->wall_ms);
    return pg_query(pg,
                    "UPDATE fold SET seq = $1::bigint, core_ms = $2::bigint, wall_ms = $3::bigint",
                    &args, NULL, why);
}

int cell_write_batch(struct pg *pg, const struct store_batch *batch, struct why *why)
{
    struct pg_args args = {0};
    pg_int(&args, batch->seq);
    pg_int(&args, batch->epoch);
    pg_int(&args, batch->core_ms);
    pg_int(&args, batch->wall_ms);
    pg_bytes(&args, batch->changes, batch->len);
    return pg_query(pg,
                    "INSERT INTO journal VALUES ($1::bigint, $2::bigint, $3::bigint, $4::bigint,"
                    " $5::bytea)",
                    &args, NULL, why);
}

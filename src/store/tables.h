/* Tables: the readable tables of a cell in PostgreSQL, made from the field lists of core/row.h as
 * schema.h does it for SQLite; and rows gathered into arrays, so that one statement writes
 * thousands. Text that is no UTF-8, which PostgreSQL does not take, is kept with escapes. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "store/libpq.h"

/* Each appends one statement, without a NUL. The table's columns are the fields in their order. */
void tables_create(struct buf *out, enum row_kind kind); /* nothing when the table is there */
void tables_upsert(struct buf *out, enum row_kind kind); /* one array per field */
void tables_delete(struct buf *out, enum row_kind kind); /* one array of ids */

/* \ and bytes that are no UTF-8 become \\ and \xNN. */
void tables_text(struct buf *out, struct str text);

/* The way back. False when it is none, or does not fit into dst with its NUL. */
bool tables_untext(struct str kept, char *dst, size_t cap);

/* Rows of one kind on their way into a table. Embedded: a zeroed struct is empty. */
struct tables_rows {
    enum row_kind kind;
    int n;
    int n_gone;
    size_t bytes;
    struct buf columns[PG_ARGS_MAX];
    struct buf gone;
};

void tables_rows_done(struct tables_rows *r);

/* Empties it for rows of that kind. */
void tables_rows_begin(struct tables_rows *r, enum row_kind kind);
void tables_rows_add(struct tables_rows *r, const struct change *change);

/* The parameters of tables_upsert, when n is not 0, and of tables_delete, when n_gone is not. They
 * point into r. */
void tables_rows_args(struct tables_rows *r, struct pg_args *ret);
void tables_gone_args(struct tables_rows *r, struct pg_args *ret);

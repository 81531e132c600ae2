/* Schema: the SQL of the readable tables, made from the field lists of core/row.h, and the way of a
 * row into a statement and out of it. One table per kind of row, named like the kind, its columns
 * like the fields. Pure; owns nothing. */
#pragma once

#include "base/buf.h"
#include "core/row.h"

#include <sqlite3.h>

/* Each sets out to one NUL-terminated statement. */
void schema_create(struct buf *out, enum row_kind kind); /* nothing when the table is there */
void schema_upsert(struct buf *out, enum row_kind kind); /* one parameter per field, in order */
void schema_delete(struct buf *out, enum row_kind kind); /* parameter 1 is the id */
void schema_select(struct buf *out, enum row_kind kind); /* one column per field, by id */

/* Binds the fields of a row that is not gone. The row must outlive the statement's next step.
 * Returns SQLite's code. */
int schema_bind(sqlite3_stmt *upsert, const struct change *change);

/* Reads the statement's current row. ERR_FORMAT when a value cannot be that field's. */
int schema_read(sqlite3_stmt *select, enum row_kind kind, struct change *ret);

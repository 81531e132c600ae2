#include "store/schema.h"

#include "base/err.h"
#include "store/row_value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const column_types[] = {
    [ROW_i8] = "INTEGER", [ROW_i32] = "INTEGER", [ROW_i64] = "INTEGER",
    [ROW_text] = "TEXT",  [ROW_bytes] = "BLOB",  [ROW_long] = "BLOB",
};

/* Appends without the NUL; finish() adds it. Names come from rows.def, never from outside. */
__attribute__((format(printf, 2, 3))) static void add(struct buf *out, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(out, text, (size_t)n);
}

static void finish(struct buf *out)
{
    buf_append(out, "", 1);
}

void schema_create(struct buf *out, enum row_kind kind)
{
    buf_clear(out);
    add(out, "CREATE TABLE IF NOT EXISTS \"%s\" (", row_kind_name(kind));
    const struct row_field *first = row_fields(kind);
    for (const struct row_field *f = first; f->type != ROW_END; f++)
        add(out, "%s\"%s\" %s %s", f == first ? "" : ", ", f->name, column_types[f->type],
            f == first ? "PRIMARY KEY" : "NOT NULL");
    add(out, ") STRICT");
    finish(out);
}

void schema_upsert(struct buf *out, enum row_kind kind)
{
    buf_clear(out);
    add(out, "INSERT OR REPLACE INTO \"%s\" VALUES (", row_kind_name(kind));
    const struct row_field *first = row_fields(kind);
    for (const struct row_field *f = first; f->type != ROW_END; f++)
        add(out, "%s?", f == first ? "" : ", ");
    add(out, ")");
    finish(out);
}

void schema_delete(struct buf *out, enum row_kind kind)
{
    buf_clear(out);
    add(out, "DELETE FROM \"%s\" WHERE \"%s\" = ?", row_kind_name(kind), row_fields(kind)->name);
    finish(out);
}

void schema_select(struct buf *out, enum row_kind kind)
{
    buf_clear(out);
    add(out, "SELECT ");
    const struct row_field *first = row_fields(kind);
    for (const struct row_field *f = first; f->type != ROW_END; f++)
        add(out, "%s\"%s\"", f == first ? "" : ", ", f->name);
    add(out, " FROM \"%s\" ORDER BY \"%s\"", row_kind_name(kind), first->name);
    finish(out);
}

static int bind_field(sqlite3_stmt *stmt, int i, const struct row_field *f, const char *row)
{
    const void *at = row + f->offset;
    switch (f->type) {
    case ROW_END:
        break;
    case ROW_i8:
        return sqlite3_bind_int(stmt, i, *(const int8_t *)at);
    case ROW_i32:
        return sqlite3_bind_int(stmt, i, *(const int32_t *)at);
    case ROW_i64:
        return sqlite3_bind_int64(stmt, i, *(const int64_t *)at);
    case ROW_text:
        return sqlite3_bind_text(stmt, i, at, -1, SQLITE_STATIC);
    case ROW_bytes:
        return sqlite3_bind_blob(
            stmt, i, at, *(const uint16_t *)(const void *)(row + f->len_offset), SQLITE_STATIC);
    case ROW_long: {
        const struct str *bytes = at;
        return sqlite3_bind_blob(stmt, i, bytes->len > 0 ? bytes->at : "", (int)bytes->len,
                                 SQLITE_STATIC);
    }
    }
    return SQLITE_OK;
}

int schema_bind(sqlite3_stmt *upsert, const struct change *change)
{
    int i = 1;
    int rc = SQLITE_OK;
    for (const struct row_field *f = row_fields(change->kind); f->type != ROW_END; f++, i++) {
        rc = bind_field(upsert, i, f, (const char *)&change->row_id);
        if (rc != SQLITE_OK)
            break;
    }
    return rc;
}

/* What is long stays borrowed from the statement until its next step. */
static bool read_field(sqlite3_stmt *stmt, int i, const struct row_field *f, void *row)
{
    if (f->type <= ROW_i64)
        return row_take_int(f, row, sqlite3_column_int64(stmt, i));
    const void *bytes =
        f->type == ROW_text ? sqlite3_column_text(stmt, i) : sqlite3_column_blob(stmt, i);
    int len = sqlite3_column_bytes(stmt, i);
    if (!bytes && (len > 0 || f->type == ROW_text))
        return false;
    return row_take_bytes(f, row, (struct str){bytes, (size_t)len});
}

int schema_read(sqlite3_stmt *select, enum row_kind kind, struct change *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->kind = kind;
    int i = 0;
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++, i++) {
        if (!read_field(select, i, f, &ret->row_id))
            return ERR_FORMAT;
    }
    ret->id = ret->row_id;
    return 0;
}

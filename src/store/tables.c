#include "store/tables.h"

#include <assert.h>
#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* PostgreSQL's numbers of its types, as they stand in a binary array. */
enum { OID_BYTEA = 17, OID_BIGINT = 20, OID_SMALLINT = 21, OID_INTEGER = 23, OID_TEXT = 25 };

static const struct {
    const char *name;
    uint32_t oid;
} types[] = {
    [ROW_i8] = {"smallint", OID_SMALLINT}, [ROW_i32] = {"integer", OID_INTEGER},
    [ROW_i64] = {"bigint", OID_BIGINT},    [ROW_text] = {"text", OID_TEXT},
    [ROW_bytes] = {"bytea", OID_BYTEA},    [ROW_long] = {"bytea", OID_BYTEA},
};

/* ── statements ────────────────────────────────────────────────────────────────────────────── */

/* Names come from rows.def, never from outside. */
__attribute__((format(printf, 2, 3))) static void add(struct buf *out, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(out, text, (size_t)n);
}

void tables_create(struct buf *out, enum row_kind kind)
{
    add(out, "CREATE TABLE IF NOT EXISTS \"%s\" (", row_kind_name(kind));
    const struct row_field *first = row_fields(kind);
    for (const struct row_field *f = first; f->type != ROW_END; f++)
        add(out, "%s\"%s\" %s %s", f == first ? "" : ", ", f->name, types[f->type].name,
            f == first ? "PRIMARY KEY" : "NOT NULL");
    add(out, ")");
}

void tables_upsert(struct buf *out, enum row_kind kind)
{
    const struct row_field *first = row_fields(kind);
    int i = 1;
    add(out, "INSERT INTO \"%s\" SELECT * FROM unnest(", row_kind_name(kind));
    for (const struct row_field *f = first; f->type != ROW_END; f++, i++)
        add(out, "%s$%d::%s[]", f == first ? "" : ", ", i, types[f->type].name);
    add(out, ") ON CONFLICT (\"%s\") DO UPDATE SET ", first->name);
    for (const struct row_field *f = first + 1; f->type != ROW_END; f++)
        add(out, "%s\"%s\" = excluded.\"%s\"", f == first + 1 ? "" : ", ", f->name, f->name);
}

void tables_delete(struct buf *out, enum row_kind kind)
{
    add(out, "DELETE FROM \"%s\" WHERE \"%s\" = ANY ($1::bigint[])", row_kind_name(kind),
        row_fields(kind)->name);
}

/* ── text ──────────────────────────────────────────────────────────────────────────────────── */

void tables_text(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len;) {
        struct str rest = {text.at + i, text.len - i};
        size_t n = str_char_len(rest);
        if (n == 0)
            add(out, "\\x%02x", (unsigned char)rest.at[0]);
        else if (rest.at[0] == '\\')
            add(out, "\\\\");
        else
            buf_append(out, rest.at, n);
        i += n == 0 ? 1 : n;
    }
}

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool tables_untext(struct str kept, char *dst, size_t cap)
{
    size_t len = 0;
    for (size_t i = 0; i < kept.len; i++) {
        char c = kept.at[i];
        if (c == '\\' && i + 1 < kept.len && kept.at[i + 1] == '\\') {
            i++;
        } else if (c == '\\') {
            if (i + 3 >= kept.len || kept.at[i + 1] != 'x' || digit(kept.at[i + 2]) < 0 ||
                digit(kept.at[i + 3]) < 0)
                return false;
            c = (char)(digit(kept.at[i + 2]) * 16 + digit(kept.at[i + 3]));
            i += 3;
        }
        if (c == '\0' || len + 1 >= cap)
            return false;
        dst[len++] = c;
    }
    if (cap == 0)
        return false;
    dst[len] = '\0';
    return true;
}

/* ── arrays ────────────────────────────────────────────────────────────────────────────────── */

static void add_u32(struct buf *out, uint32_t v)
{
    v = htobe32(v);
    buf_append(out, &v, sizeof(v));
}

static void add_value(struct buf *out, const void *at, size_t len)
{
    add_u32(out, (uint32_t)len);
    buf_append(out, at, len);
}

static void add_number(struct buf *out, int64_t v, size_t size)
{
    uint64_t wide = htobe64((uint64_t)v);
    add_value(out, (const char *)&wide + sizeof(wide) - size, size);
}

/* The length of the text is known once it stands there. */
static void add_text(struct buf *out, const char *text)
{
    size_t at = out->len;
    add_u32(out, 0);
    tables_text(out, str_of(text));
    uint32_t len = htobe32((uint32_t)(out->len - at - sizeof(uint32_t)));
    memcpy(out->data + at, &len, sizeof(len));
}

static void add_field(struct buf *out, const struct row_field *f, const char *row)
{
    const void *at = row + f->offset;
    switch (f->type) {
    case ROW_END:
        break;
    case ROW_i8:
        add_number(out, *(const int8_t *)at, 2);
        break;
    case ROW_i32:
        add_number(out, *(const int32_t *)at, 4);
        break;
    case ROW_i64:
        add_number(out, *(const int64_t *)at, 8);
        break;
    case ROW_text:
        add_text(out, at);
        break;
    case ROW_bytes:
        add_value(out, at, *(const uint16_t *)(const void *)(row + f->len_offset));
        break;
    case ROW_long:
        add_value(out, ((const struct str *)at)->at, ((const struct str *)at)->len);
        break;
    }
}

/* Dimensions, no NULLs, type, how many (set when that is known), counted from 1. */
enum { ARRAY_COUNT_AT = 12 };

static void array_begin(struct buf *out, uint32_t oid)
{
    buf_clear(out);
    add_u32(out, 1);
    add_u32(out, 0);
    add_u32(out, oid);
    add_u32(out, 0);
    add_u32(out, 1);
}

static void array_end(struct buf *out, int n)
{
    uint32_t count = htobe32((uint32_t)n);
    memcpy(out->data + ARRAY_COUNT_AT, &count, sizeof(count));
}

void tables_rows_done(struct tables_rows *r)
{
    for (int i = 0; i < PG_ARGS_MAX; i++)
        buf_done(&r->columns[i]);
    buf_done(&r->gone);
}

void tables_rows_begin(struct tables_rows *r, enum row_kind kind)
{
    r->kind = kind;
    r->n = 0;
    r->n_gone = 0;
    r->bytes = 0;
    array_begin(&r->gone, OID_BIGINT);
    int i = 0;
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++, i++) {
        assert(i < PG_ARGS_MAX);
        array_begin(&r->columns[i], types[f->type].oid);
    }
}

void tables_rows_add(struct tables_rows *r, const struct change *change)
{
    assert(change->kind == r->kind);
    if (change->gone) {
        add_number(&r->gone, change->id, sizeof(change->id));
        r->n_gone++;
        return;
    }
    int i = 0;
    for (const struct row_field *f = row_fields(r->kind); f->type != ROW_END; f++, i++) {
        size_t before = r->columns[i].len;
        add_field(&r->columns[i], f, (const char *)&change->row_id);
        r->bytes += r->columns[i].len - before;
    }
    r->n++;
}

void tables_rows_args(struct tables_rows *r, struct pg_args *ret)
{
    int i = 0;
    for (const struct row_field *f = row_fields(r->kind); f->type != ROW_END; f++, i++) {
        array_end(&r->columns[i], r->n);
        pg_bytes(ret, r->columns[i].data, r->columns[i].len);
    }
}

void tables_gone_args(struct tables_rows *r, struct pg_args *ret)
{
    array_end(&r->gone, r->n_gone);
    pg_bytes(ret, r->gone.data, r->gone.len);
}

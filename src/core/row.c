/* A change is: u8 kind, u8 gone, then the id (gone) or all fields in their order. */
#include "core/row.h"

#include "wire/put.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define FIELD_LEN_i8(self, name) 0
#define FIELD_LEN_i32(self, name) 0
#define FIELD_LEN_i64(self, name) 0
#define FIELD_LEN_text(self, name) 0
#define FIELD_LEN_bytes(self, name) offsetof(self, name##_len)
#define FIELD_ROW(type_, name_, size_)                                                             \
    {#name_, ROW_##type_, offsetof(self, name_), FIELD_LEN_##type_(self, name_), size_},
#define FIELD_TABLE(kind)                                                                          \
    static const struct row_field *fields_##kind(void)                                             \
    {                                                                                              \
        typedef struct row_##kind self;                                                            \
        static const struct row_field table[] = {ROW_FIELDS_##kind(FIELD_ROW){.type = ROW_END}};   \
        return table;                                                                              \
    }
ROW_KIND_LIST(FIELD_TABLE)

static const struct {
    const char *name;
    const struct row_field *(*fields)(void);
} kinds[ROW_KINDS] = {
#define KIND_ROW(kind) {#kind, fields_##kind},
    ROW_KIND_LIST(KIND_ROW)};

const char *row_kind_name(enum row_kind kind)
{
    return kinds[kind].name;
}

const struct row_field *row_fields(enum row_kind kind)
{
    return kinds[kind].fields();
}

static void encode_field(struct buf *out, const struct row_field *f, const char *row)
{
    const void *at = row + f->offset;
    switch (f->type) {
    case ROW_END:
        break;
    case ROW_i8:
        put_i8(out, *(const int8_t *)at);
        break;
    case ROW_i32:
        put_i32(out, *(const int32_t *)at);
        break;
    case ROW_i64:
        put_i64(out, *(const int64_t *)at);
        break;
    case ROW_text:
        put_str(out, str_of(at));
        break;
    case ROW_bytes: {
        uint16_t len = *(const uint16_t *)(const void *)(row + f->len_offset);
        assert(len <= f->size);
        put_u16(out, len);
        buf_append(out, at, len);
        break;
    }
    }
}

static void decode_bytes(struct cursor *c, const struct row_field *f, char *row)
{
    uint16_t len = cursor_u16(c);
    if (len > f->size)
        cursor_fail(c, "bytes longer than their column");
    const uint8_t *p = cursor_bytes(c, len);
    if (!p)
        return;
    *(uint16_t *)(void *)(row + f->len_offset) = len;
    memcpy(row + f->offset, p, len);
}

static void decode_field(struct cursor *c, const struct row_field *f, char *row)
{
    void *at = row + f->offset;
    switch (f->type) {
    case ROW_END:
        break;
    case ROW_i8:
        *(int8_t *)at = cursor_i8(c);
        break;
    case ROW_i32:
        *(int32_t *)at = cursor_i32(c);
        break;
    case ROW_i64:
        *(int64_t *)at = cursor_i64(c);
        break;
    case ROW_text:
        if (!str_copy(at, f->size, cursor_str(c)))
            cursor_fail(c, "text longer than its column");
        break;
    case ROW_bytes:
        decode_bytes(c, f, row);
        break;
    }
}

void change_encode_row(struct buf *out, enum row_kind kind, const void *row)
{
    put_u8(out, (uint8_t)kind);
    put_u8(out, 0);
    for (const struct row_field *f = row_fields(kind); f->type != ROW_END; f++)
        encode_field(out, f, row);
}

void change_encode_gone(struct buf *out, enum row_kind kind, int64_t id)
{
    put_u8(out, (uint8_t)kind);
    put_u8(out, 1);
    put_i64(out, id);
}

bool change_decode(struct cursor *c, struct change *ret)
{
    if (cursor_failed(c) || c->at == c->end)
        return false;
    memset(ret, 0, sizeof(*ret));
    uint8_t kind = cursor_u8(c);
    ret->gone = cursor_flag(c);
    if (kind >= ROW_KINDS) {
        cursor_fail(c, "unknown kind of row");
        return false;
    }
    ret->kind = (enum row_kind)kind;
    if (ret->gone) {
        ret->id = cursor_i64(c);
        return !cursor_failed(c);
    }
    for (const struct row_field *f = row_fields(ret->kind); f->type != ROW_END; f++)
        decode_field(c, f, (char *)&ret->row_id);
    ret->id = ret->row_id;
    return !cursor_failed(c);
}

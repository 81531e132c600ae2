/* Rows: the durable form of core's objects, and the encoded changes that a journal row carries.
 * Everything follows from rows.def. Pure functions over bytes; nothing here is owned. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "wire/cursor.h"

#include "core/rows.def"

#include <stdbool.h>
#include <stdint.h>

/* The version of the data folder's format: what rows.def and the change encoding look like. */
enum { ROW_FORMAT = 7 };

#define ROW_MEMBER_i8(name, size) int8_t name;
#define ROW_MEMBER_i32(name, size) int32_t name;
#define ROW_MEMBER_i64(name, size) int64_t name;
#define ROW_MEMBER_text(name, size) char name[size];
#define ROW_MEMBER_bytes(name, size)                                                               \
    uint16_t name##_len;                                                                           \
    uint8_t name[size];
#define ROW_MEMBER_long(name, size) struct str name;
#define ROW_MEMBER(type, name, size) ROW_MEMBER_##type(name, size)
#define ROW_STRUCT(kind)                                                                           \
    struct row_##kind {                                                                            \
        ROW_FIELDS_##kind(ROW_MEMBER)                                                              \
    };
ROW_KIND_LIST(ROW_STRUCT)

enum row_kind {
#define ROW_ENUM(kind) ROW_##kind,
    ROW_KIND_LIST(ROW_ENUM) ROW_KINDS
};

enum row_field_type { ROW_END, ROW_i8, ROW_i32, ROW_i64, ROW_text, ROW_bytes, ROW_long };

struct row_field {
    const char *name;
    enum row_field_type type;
    uint16_t offset; /* of the value; a bytes field has its uint16_t length at len_offset */
    uint16_t len_offset;
    uint16_t size;
};

const char *row_kind_name(enum row_kind kind);

/* The fields in order, closed by one of type ROW_END. The first is always the i64 id. */
const struct row_field *row_fields(enum row_kind kind);

/* One change: the row as it now is, or that it is gone. */
struct change {
    enum row_kind kind;
    bool gone;
    int64_t id;
    union {
        int64_t row_id; /* every row begins with its id */
#define ROW_UNION(kind) struct row_##kind kind;
        ROW_KIND_LIST(ROW_UNION)
    };
};

void change_encode_row(struct buf *out, enum row_kind kind, const void *row);
void change_encode_gone(struct buf *out, enum row_kind kind, int64_t id);

/* Takes the next change from c. False at the end or on damage (then cursor_failed(c)). */
bool change_decode(struct cursor *c, struct change *ret);

/* What a change is about. */
struct change_name {
    enum row_kind kind;
    bool gone;
    int64_t id;
};

/* The same without looking into the row: passes over the next change, and refuses what
 * change_decode would refuse. */
bool change_skip(struct cursor *c, struct change_name *ret);

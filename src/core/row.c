/* A change is: u8 kind, u8 gone, then the id (gone) or all fields in their order.
 *
 * For each kind the compiler makes one straight function that encodes it and one that decodes it,
 * from the same list: core writes several rows for each request, and walking a table of fields cost
 * more than deciding what stands in them. The table is for those who make SQL of it. */
#include "core/row.h"

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#define FIELD_LEN_i8(self, name) 0
#define FIELD_LEN_i32(self, name) 0
#define FIELD_LEN_i64(self, name) 0
#define FIELD_LEN_text(self, name) 0
#define FIELD_LEN_bytes(self, name) offsetof(self, name##_len)
#define FIELD_LEN_long(self, name) 0
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

/* ── one function per kind ─────────────────────────────────────────────────────────────────── */

static uint8_t *write_i8(uint8_t *p, int8_t v)
{
    *p = (uint8_t)v;
    return p + 1;
}

static uint8_t *write_i32(uint8_t *p, int32_t v)
{
    uint32_t bits = htole32((uint32_t)v);
    memcpy(p, &bits, sizeof(bits));
    return p + sizeof(bits);
}

static uint8_t *write_i64(uint8_t *p, int64_t v)
{
    uint64_t bits = htole64((uint64_t)v);
    memcpy(p, &bits, sizeof(bits));
    return p + sizeof(bits);
}

static uint8_t *write_text(uint8_t *p, const char *text, size_t size)
{
    size_t n = strnlen(text, size - 1);
    memcpy(p, text, n);
    p[n] = '\0';
    return p + n + 1;
}

static uint8_t *write_bytes(uint8_t *p, const uint8_t *bytes, uint16_t len, size_t size)
{
    assert(len <= size);
    p[0] = (uint8_t)len;
    p[1] = (uint8_t)(len >> 8);
    memcpy(p + 2, bytes, len);
    return p + 2 + len;
}

static uint8_t *write_long(uint8_t *p, struct str bytes, size_t size)
{
    assert(bytes.len <= size && size <= UINT16_MAX);
    p[0] = (uint8_t)bytes.len;
    p[1] = (uint8_t)(bytes.len >> 8);
    if (bytes.len > 0)
        memcpy(p + 2, bytes.at, bytes.len);
    return p + 2 + bytes.len;
}

static struct str take_text(struct cursor *c, size_t size)
{
    struct str text = cursor_str(c);
    if (text.len >= size)
        cursor_fail(c, "text longer than its column");
    return text;
}

static struct str take_bytes(struct cursor *c, size_t size)
{
    uint16_t len = cursor_u16(c);
    if (len > size)
        cursor_fail(c, "bytes longer than their column");
    const uint8_t *p = cursor_bytes(c, len);
    return p ? (struct str){(const char *)p, len} : (struct str){"", 0};
}

static void read_text(struct cursor *c, char *dst, size_t size)
{
    (void)str_copy(dst, size, take_text(c, size));
}

static void read_bytes(struct cursor *c, uint8_t *dst, uint16_t *ret_len, size_t size)
{
    struct str bytes = take_bytes(c, size);
    *ret_len = (uint16_t)bytes.len;
    memcpy(dst, bytes.at, bytes.len);
}

/* The most bytes a field takes. */
#define MOST_i8(size) 1
#define MOST_i32(size) 4
#define MOST_i64(size) 8
#define MOST_text(size) (size)
#define MOST_bytes(size) (2 + (size))
#define MOST_long(size) (2 + (size))
#define MOST(type, name, size) +MOST_##type(size)

#define WRITE_i8(name, size) p = write_i8(p, row->name);
#define WRITE_i32(name, size) p = write_i32(p, row->name);
#define WRITE_i64(name, size) p = write_i64(p, row->name);
#define WRITE_text(name, size) p = write_text(p, row->name, size);
#define WRITE_bytes(name, size) p = write_bytes(p, row->name, row->name##_len, size);
#define WRITE_long(name, size) p = write_long(p, row->name, size);
#define WRITE(type, name, size) WRITE_##type(name, size)

#define READ_i8(name, size) row->name = cursor_i8(c);
#define READ_i32(name, size) row->name = cursor_i32(c);
#define READ_i64(name, size) row->name = cursor_i64(c);
#define READ_text(name, size) read_text(c, row->name, size);
#define READ_bytes(name, size) read_bytes(c, row->name, &row->name##_len, size);
#define READ_long(name, size) row->name = take_bytes(c, size);
#define READ(type, name, size) READ_##type(name, size)

/* Fields of fixed length are passed over together. */
#define SKIP_i8(size) n += 1;
#define SKIP_i32(size) n += 4;
#define SKIP_i64(size) n += 8;
#define SKIP_text(size)                                                                            \
    (void)cursor_bytes(c, n);                                                                      \
    n = 0;                                                                                         \
    (void)take_text(c, size);
#define SKIP_bytes(size)                                                                           \
    (void)cursor_bytes(c, n);                                                                      \
    n = 0;                                                                                         \
    (void)take_bytes(c, size);
#define SKIP_long(size) SKIP_bytes(size)
#define SKIP(type, name, size) SKIP_##type(size)

#define CODEC(kind)                                                                                \
    static uint8_t *write_##kind(uint8_t *p, const void *from)                                     \
    {                                                                                              \
        const struct row_##kind *row = from;                                                       \
        ROW_FIELDS_##kind(WRITE) return p;                                                         \
    }                                                                                              \
    static void read_##kind(struct cursor *c, void *into)                                          \
    {                                                                                              \
        struct row_##kind *row = into;                                                             \
        ROW_FIELDS_##kind(READ)                                                                    \
    }                                                                                              \
    static void skip_##kind(struct cursor *c)                                                      \
    {                                                                                              \
        size_t n = 0;                                                                              \
        ROW_FIELDS_##kind(SKIP)(void) cursor_bytes(c, n);                                          \
    }
ROW_KIND_LIST(CODEC)

static const struct {
    const char *name;
    const struct row_field *(*fields)(void);
    uint8_t *(*write)(uint8_t *p, const void *row);
    void (*read)(struct cursor *c, void *row);
    void (*skip)(struct cursor *c);
    size_t most; /* bytes of an encoded row */
} kinds[ROW_KINDS] = {
#define KIND_ROW(kind)                                                                             \
    {#kind, fields_##kind, write_##kind, read_##kind, skip_##kind, 0 ROW_FIELDS_##kind(MOST)},
    ROW_KIND_LIST(KIND_ROW)};

const char *row_kind_name(enum row_kind kind)
{
    return kinds[kind].name;
}

const struct row_field *row_fields(enum row_kind kind)
{
    return kinds[kind].fields();
}

/* ── changes ───────────────────────────────────────────────────────────────────────────────── */

enum { CHANGE_HEAD = 2 };

void change_encode_row(struct buf *out, enum row_kind kind, const void *row)
{
    size_t most = CHANGE_HEAD + kinds[kind].most;
    uint8_t *start = buf_extend(out, most);
    start[0] = (uint8_t)kind;
    start[1] = 0;
    const uint8_t *end = kinds[kind].write(start + CHANGE_HEAD, row);
    out->len -= most - (size_t)(end - start);
}

void change_encode_gone(struct buf *out, enum row_kind kind, int64_t id)
{
    uint8_t *start = buf_extend(out, CHANGE_HEAD + sizeof(id));
    start[0] = (uint8_t)kind;
    start[1] = 1;
    (void)write_i64(start + CHANGE_HEAD, id);
}

/* Kind and gone, which every change begins with. False at the end or on damage. */
static bool read_head(struct cursor *c, enum row_kind *ret_kind, bool *ret_gone)
{
    if (cursor_failed(c) || c->at == c->end)
        return false;
    uint8_t kind = cursor_u8(c);
    *ret_gone = cursor_flag(c);
    if (kind >= ROW_KINDS)
        cursor_fail(c, "unknown kind of row");
    *ret_kind = (enum row_kind)kind;
    return !cursor_failed(c);
}

bool change_decode(struct cursor *c, struct change *ret)
{
    enum row_kind kind = ROW_KINDS;
    bool gone = false;
    if (!read_head(c, &kind, &gone))
        return false;
    memset(ret, 0, sizeof(*ret));
    ret->kind = kind;
    ret->gone = gone;
    if (gone) {
        ret->id = cursor_i64(c);
    } else {
        kinds[kind].read(c, &ret->row_id);
        ret->id = ret->row_id;
    }
    return !cursor_failed(c);
}

bool change_skip(struct cursor *c, struct change_name *ret)
{
    if (!read_head(c, &ret->kind, &ret->gone))
        return false;
    const uint8_t *row = c->at;
    ret->id = cursor_i64(c); /* every row begins with it */
    if (!ret->gone && !cursor_failed(c)) {
        c->at = row;
        kinds[ret->kind].skip(c);
    }
    return !cursor_failed(c);
}

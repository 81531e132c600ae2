/* The codec is a walk over field tables: each message is a list of (type, offset, when), each type
 * one small case in read_field, write_field and dump_field. Nothing here knows a message by name.
 */
#include "wire/chat.h"

#include "wire/put.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum field_type {
    TYPE_end,
    TYPE_i8,
    TYPE_i32,
    TYPE_i64,
    TYPE_flag,
    TYPE_ok,
    TYPE_percent,
    TYPE_count,
    TYPE_str,
    TYPE_list_i8,
    TYPE_list_i32,
    TYPE_list_player,
    TYPE_list_server,
};

enum field_when { WHEN_ALWAYS, WHEN_IF_OK, WHEN_IF_REFUSED };

enum { COUNT_MAX = 1000000 };

struct field {
    const char *name;
    uint16_t offset;
    uint8_t type;
    uint8_t when;
};

/* FIELDS needs the struct's name inside F, so each table is made with its own struct typedef. */
#define FIELD_ROW(type_, name_, when_)                                                             \
    {.name = #name_, .offset = offsetof(self, name_), .type = TYPE_##type_, .when = WHEN_##when_},
#define FIELD_TABLE(NAME, name_, code, direction, fields)                                          \
    static const struct field *fields_##name_(void)                                                \
    {                                                                                              \
        typedef struct chat_##name_ self;                                                          \
        static const struct field table[] = {fields(FIELD_ROW){.type = TYPE_end}};                 \
        (void)sizeof(self);                                                                        \
        return table;                                                                              \
    }
CHAT_MESSAGES(FIELD_TABLE)
FIELD_TABLE(SERVER_ENTRY, server_entry, 0, FROM_US, FIELDS_SERVER_ENTRY)
FIELD_TABLE(PLAYER_ENTRY, player_entry, 0, FROM_US, FIELDS_PLAYER_ENTRY)

static const struct {
    const char *name;
    uint16_t code;
    uint8_t direction;
    const struct field *(*fields)(void);
} messages[CHAT_KINDS] = {
#define MESSAGE_ROW(NAME, name_, code_, direction_, list_)                                         \
    {#NAME, code_, CHAT_##direction_, fields_##name_},
    CHAT_MESSAGES(MESSAGE_ROW)};

const char *chat_name(enum chat_kind kind)
{
    return messages[kind].name;
}

uint16_t chat_code(enum chat_kind kind)
{
    return messages[kind].code;
}

enum chat_direction chat_direction(enum chat_kind kind)
{
    return (enum chat_direction)messages[kind].direction;
}

enum chat_kind chat_find(uint16_t code, enum chat_direction direction)
{
    for (int k = 0; k < CHAT_KINDS; k++) {
        if (messages[k].code == code && (messages[k].direction & direction))
            return (enum chat_kind)k;
    }
    return CHAT_KINDS;
}

static bool applies(const struct field *f, bool ok)
{
    return f->when == WHEN_ALWAYS || (f->when == WHEN_IF_OK) == ok;
}

static void read_struct(struct cursor *c, const struct field *f, void *self);

static const struct field *element_of(uint8_t list_type)
{
    return list_type == TYPE_list_server ? fields_server_entry() : fields_player_entry();
}

/* Walks the elements only to judge them; the list keeps their bytes. */
static struct chat_list read_list(struct cursor *c, uint8_t type)
{
    const uint8_t *at = c->at;
    int32_t n = type == TYPE_list_server ? cursor_i32(c) : cursor_u8(c);
    if (n < 0) {
        c->at = at;
        cursor_fail(c, "negative count");
    }
    const uint8_t *data = c->at;
    if (type == TYPE_list_i8 || type == TYPE_list_i32) {
        (void)cursor_bytes(c, (size_t)n * (type == TYPE_list_i8 ? 1 : 4));
    } else {
        union {
            struct chat_server_entry server;
            struct chat_player_entry player;
        } scratch;
        for (int32_t i = 0; i < n && !cursor_failed(c); i++)
            read_struct(c, element_of(type), &scratch);
    }
    if (cursor_failed(c))
        return (struct chat_list){0};
    return (struct chat_list){(uint32_t)n, data, (size_t)(c->at - data)};
}

static int32_t read_count(struct cursor *c)
{
    const uint8_t *at = c->at;
    int32_t v = cursor_i32(c);
    if (v < 0 || v > COUNT_MAX) {
        c->at = at;
        cursor_fail(c, "number out of range");
    }
    return v;
}

static void read_field(struct cursor *c, const struct field *f, void *at)
{
    switch ((enum field_type)f->type) {
    case TYPE_end:
        break;
    case TYPE_i8:
        *(int8_t *)at = cursor_i8(c);
        break;
    case TYPE_i32:
        *(int32_t *)at = cursor_i32(c);
        break;
    case TYPE_i64:
        *(int64_t *)at = cursor_i64(c);
        break;
    case TYPE_flag:
    case TYPE_ok:
        *(bool *)at = cursor_flag(c);
        break;
    case TYPE_percent:
        *(float *)at = cursor_f32(c, 0, 100);
        break;
    case TYPE_count:
        *(int32_t *)at = read_count(c);
        break;
    case TYPE_str:
        *(struct str *)at = cursor_str(c);
        break;
    case TYPE_list_i8:
    case TYPE_list_i32:
    case TYPE_list_player:
    case TYPE_list_server:
        *(struct chat_list *)at = read_list(c, f->type);
        break;
    }
}

static void read_struct(struct cursor *c, const struct field *f, void *self)
{
    bool ok = true;
    for (; f->type != TYPE_end && !cursor_failed(c); f++) {
        void *at = (char *)self + f->offset;
        if (!applies(f, ok))
            continue;
        read_field(c, f, at);
        if (f->type == TYPE_ok)
            ok = *(bool *)at;
    }
}

void chat_decode(struct cursor *c, enum chat_kind kind, struct chat_message *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (kind >= CHAT_KINDS) {
        cursor_fail(c, "unknown command");
        return;
    }
    ret->kind = kind;
    read_struct(c, messages[kind].fields(), &ret->ping);
    cursor_end(c);
}

static void write_list(struct buf *out, uint8_t type, const struct chat_list *list)
{
    if (type == TYPE_list_server) {
        put_i32(out, (int32_t)list->n);
    } else {
        assert(list->n <= UINT8_MAX);
        put_u8(out, (uint8_t)list->n);
    }
    buf_append(out, list->data, list->len);
}

static void write_field(struct buf *out, const struct field *f, const void *at)
{
    switch ((enum field_type)f->type) {
    case TYPE_end:
        break;
    case TYPE_i8:
        put_i8(out, *(const int8_t *)at);
        break;
    case TYPE_i32:
    case TYPE_count:
        put_i32(out, *(const int32_t *)at);
        break;
    case TYPE_i64:
        put_i64(out, *(const int64_t *)at);
        break;
    case TYPE_flag:
    case TYPE_ok:
        put_u8(out, *(const bool *)at ? 1 : 0);
        break;
    case TYPE_percent:
        put_f32(out, *(const float *)at);
        break;
    case TYPE_str:
        put_str(out, *(const struct str *)at);
        break;
    case TYPE_list_i8:
    case TYPE_list_i32:
    case TYPE_list_player:
    case TYPE_list_server:
        write_list(out, f->type, at);
        break;
    }
}

static void write_struct(struct buf *out, const struct field *f, const void *self)
{
    bool ok = true;
    for (; f->type != TYPE_end; f++) {
        const void *at = (const char *)self + f->offset;
        if (!applies(f, ok))
            continue;
        write_field(out, f, at);
        if (f->type == TYPE_ok)
            ok = *(const bool *)at;
    }
}

void chat_encode(struct buf *out, const struct chat_message *m)
{
    size_t mark = frame_open(out, messages[m->kind].code);
    write_struct(out, messages[m->kind].fields(), &m->ping);
    frame_close(out, mark);
}

void chat_encode_server(struct buf *out, const struct chat_server_entry *e)
{
    write_struct(out, fields_server_entry(), e);
}

void chat_decode_server(struct cursor *c, struct chat_server_entry *ret)
{
    read_struct(c, fields_server_entry(), ret);
}

void chat_encode_player(struct buf *out, const struct chat_player_entry *e)
{
    write_struct(out, fields_player_entry(), e);
}

void chat_decode_player(struct cursor *c, struct chat_player_entry *ret)
{
    read_struct(c, fields_player_entry(), ret);
}

static void print(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void print(struct buf *out, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void dump_str(struct buf *out, struct str s)
{
    put_u8(out, '"');
    while (s.len > 0) {
        char printed[STR_PRINTED_MAX];
        size_t taken = 0;
        buf_append(out, printed, str_print_char(s, printed, &taken));
        s = (struct str){s.at + taken, s.len - taken};
    }
    put_u8(out, '"');
}

static void dump_struct(struct buf *out, const struct field *f, const void *self);

static void dump_list(struct buf *out, uint8_t type, const struct chat_list *list)
{
    struct cursor c = cursor_of(list->data, list->len);
    put_u8(out, '[');
    for (uint32_t i = 0; i < list->n; i++) {
        if (type == TYPE_list_i8) {
            print(out, "%s%d", i ? " " : "", cursor_i8(&c));
        } else if (type == TYPE_list_i32) {
            print(out, "%s%" PRId32, i ? " " : "", cursor_i32(&c));
        } else {
            union {
                struct chat_server_entry server;
                struct chat_player_entry player;
            } e;
            read_struct(&c, element_of(type), &e);
            put_u8(out, '{');
            dump_struct(out, element_of(type), &e);
            put_u8(out, '}');
        }
    }
    put_u8(out, ']');
}

static void dump_field(struct buf *out, const struct field *f, const void *at)
{
    switch ((enum field_type)f->type) {
    case TYPE_end:
        break;
    case TYPE_i8:
        print(out, "%d", *(const int8_t *)at);
        break;
    case TYPE_i32:
    case TYPE_count:
        print(out, "%" PRId32, *(const int32_t *)at);
        break;
    case TYPE_i64:
        print(out, "%" PRId64, *(const int64_t *)at);
        break;
    case TYPE_flag:
    case TYPE_ok:
        print(out, "%d", *(const bool *)at ? 1 : 0);
        break;
    case TYPE_percent:
        print(out, "%.1f", (double)*(const float *)at);
        break;
    case TYPE_str:
        dump_str(out, *(const struct str *)at);
        break;
    case TYPE_list_i8:
    case TYPE_list_i32:
    case TYPE_list_player:
    case TYPE_list_server:
        dump_list(out, f->type, at);
        break;
    }
}

static void dump_struct(struct buf *out, const struct field *f, const void *self)
{
    bool ok = true;
    const char *gap = "";
    for (; f->type != TYPE_end; f++) {
        const void *at = (const char *)self + f->offset;
        if (!applies(f, ok))
            continue;
        print(out, "%s%s=", gap, f->name);
        dump_field(out, f, at);
        gap = " ";
        if (f->type == TYPE_ok)
            ok = *(const bool *)at;
    }
}

void chat_dump(struct buf *out, const struct chat_message *m)
{
    const struct field *fields = messages[m->kind].fields();
    print(out, "%s%s", messages[m->kind].name, fields->type == TYPE_end ? "" : " ");
    dump_struct(out, fields, &m->ping);
}

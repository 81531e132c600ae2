/* Messages of the chat protocol: structs, codes, and the functions that turn them into bytes and
 * back. All of it follows from chat.def. Strings and lists of a decoded message point into the
 * frame it came from; nothing is copied and nothing is owned. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "wire/cursor.h"
#include "wire/frame.h"

#include "wire/chat.def"

#include <stdbool.h>
#include <stdint.h>

/* n encoded elements, back to back. */
struct chat_list {
    uint32_t n;
    const uint8_t *data;
    size_t len;
};

typedef int8_t chat_c_i8;
typedef int32_t chat_c_i32;
typedef int64_t chat_c_i64;
typedef bool chat_c_flag;
typedef bool chat_c_ok;
typedef float chat_c_percent;
typedef int32_t chat_c_count;
typedef struct str chat_c_str;
typedef struct chat_list chat_c_list_i8;
typedef struct chat_list chat_c_list_i32;
typedef struct chat_list chat_c_list_player;
typedef struct chat_list chat_c_list_server;

#define CHAT_MEMBER(type, name, when) chat_c_##type name;
/* A message without fields is an empty struct, which gcc and clang both allow. */
#define CHAT_STRUCT(NAME, name, code, direction, fields)                                           \
    struct chat_##name {                                                                           \
        fields(CHAT_MEMBER)                                                                        \
    };
CHAT_MESSAGES(CHAT_STRUCT)
CHAT_STRUCT(SERVER_ENTRY, server_entry, 0, FROM_US, FIELDS_SERVER_ENTRY)
CHAT_STRUCT(PLAYER_ENTRY, player_entry, 0, FROM_US, FIELDS_PLAYER_ENTRY)

enum chat_kind {
#define CHAT_KIND(NAME, name, code, direction, fields) CHAT_##NAME,
    CHAT_MESSAGES(CHAT_KIND) CHAT_KINDS
};

struct chat_message {
    enum chat_kind kind;
    union {
#define CHAT_UNION(NAME, name, code, direction, fields) struct chat_##name name;
        CHAT_MESSAGES(CHAT_UNION)
    };
};

enum chat_direction { CHAT_TO_US = 1, CHAT_FROM_US = 2, CHAT_BOTH = 3 };

const char *chat_name(enum chat_kind kind);
uint16_t chat_code(enum chat_kind kind);
enum chat_direction chat_direction(enum chat_kind kind);

/* The kind a command code means to the given reader; CHAT_KINDS when it is unknown to it. */
enum chat_kind chat_find(uint16_t code, enum chat_direction direction);

/* Decodes a payload into ret->kind's member; the whole cursor must be used up. On failure the
 * cursor says why and where, and ret must not be read. */
void chat_decode(struct cursor *c, enum chat_kind kind, struct chat_message *ret);

/* Appends the message as one whole frame. */
void chat_encode(struct buf *out, const struct chat_message *m);

/* Elements of lists. Encoding appends one element; decoding takes one from the front of c. */
void chat_encode_server(struct buf *out, const struct chat_server_entry *e);
void chat_decode_server(struct cursor *c, struct chat_server_entry *ret);
void chat_encode_player(struct buf *out, const struct chat_player_entry *e);
void chat_decode_player(struct cursor *c, struct chat_player_entry *ret);

/* One line of text for people: NAME field=value …, without a newline. */
void chat_dump(struct buf *out, const struct chat_message *m);

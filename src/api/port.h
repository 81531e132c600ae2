/* A chat port as a table: which messages it takes and as which events, and what core's effects look
 * like there. One constant per port, in the file named after it; nothing is owned. */
#pragma once

#include "api/access.h"
#include "core/effect.h"
#include "core/event.h"
#include "wire/chat.h"
#include "wire/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message and the event it becomes. Events embed the messages' own structs, so the translation is
 * a copy of `size` bytes. */
struct port_row {
    enum chat_kind message;
    enum event_kind event;
    uint16_t from; /* offset in struct chat_message */
    uint16_t to;   /* offset in struct event */
    uint16_t size;
};

/* The conditional compiles only when both members have the same type. */
#define PORT_ROW(MESSAGE, member_, EVENT, event_member_)                                           \
    {                                                                                              \
        CHAT_##MESSAGE, EVENT_##EVENT, offsetof(struct chat_message, member_),                     \
            offsetof(struct event, event_member_),                                                 \
            sizeof(                                                                                \
                *(1 ? &((struct chat_message *)0)->member_ : &((struct event *)0)->event_member_)) \
    }

/* For a message without fields. */
#define PORT_ROW_EMPTY(MESSAGE, EVENT)                                                             \
    {                                                                                              \
        CHAT_##MESSAGE, EVENT_##EVENT, 0, 0, 0                                                     \
    }

enum { PORT_ROWS_MAX = 16 };

struct port {
    const char *name;
    enum chat_kind hello;        /* the one message (beside PING and PONG) before all others */
    size_t hello_max;            /* largest length field of a frame until then */
    enum effect_kind greeting;   /* what answers it; a refused one closes the connection */
    bool must_pong;              /* who leaves PINGs unanswered is gone, see door.h */
    size_t output_cap;           /* bytes a peer may leave unread before it is cut off */
    size_t backlog_max;          /* is not read while the open batch is larger than this */
    const struct port_row *rows; /* the most frequent first */
    size_t n_rows;

    /* Judges a hello before core hears of it; NULL = that is core's business. 0, or the error to
     * refuse it with and a clause for the log, which never has the token in it. */
    int (*judge)(struct access *access, const struct chat_message *hello, int64_t wall_ms,
                 char why[ACCESS_WHY_MAX]);

    /* The message that tells this port's peer of the effect. Only for kinds this port knows; any
     * other is a mistake of core's. PING, CLOSE and NOTE are not asked for. */
    void (*message)(const struct effect *e, struct chat_message *ret);
};

/* The event a decoded message becomes. Strings stay in the frame. */
void port_event(const struct port_row *row, conn_id conn, const struct chat_message *m,
                struct event *ret);

/* The sentence of a refusal, for the `error` field of an answer; empty for a yes. That of
 * ERR_NOT_THE_LEADER is the effect's text, which says who is. */
struct str port_error(const struct effect *e);

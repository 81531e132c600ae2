/* Events: everything that can happen to core. A door decodes a frame into one of these; the strings
 * and lists in it belong to the door and are valid only during core_step. */
#pragma once

#include "base/str.h"
#include "wire/chat.h"

#include <stdint.h>

/* A connection's number, given by the door, never used twice in a process: it is the generation
 * of whoever speaks on it. 0 is no connection. */
typedef uint64_t conn_id;

enum event_kind {
    EVENT_TICK, /* time has passed; sent at least four times a second */

    /* server port */
    EVENT_SERVER_HELLO,
    EVENT_HEARTBEAT,
    EVENT_ALLOCATE_ACK,
    EVENT_READY,
    EVENT_CANCEL_ACK,
    EVENT_VALIDATE,
    EVENT_MATCH_ENDED,
    EVENT_PLAYER_LEFT,
    EVENT_DRAIN,
    EVENT_DRAIN_ACK,
    EVENT_MATCH_LIST,

    /* manager port */
    EVENT_CHAT_HELLO,
    EVENT_CHAT_HEARTBEAT,
    EVENT_ALLOCATE,
    EVENT_CANCEL,

    /* any port */
    EVENT_PONG, /* the peer answered a PING */
    EVENT_GONE, /* the connection is closed, by whomever */

    /* operators */
    EVENT_READ,      /* somebody looked: answered when what he saw is durable */
    EVENT_OPERATE,   /* somebody changes something */
    EVENT_CONFIGURE, /* the configuration was read again */

    /* the store (sent by the pipeline only) */
    EVENT_STORE_DOWN, /* commits fail: refuse what would change anything */
    EVENT_STORE_UP,   /* commits work again: settle what is owed */

    EVENT_KINDS
};

/* What an operator can do. */
enum operate_verb {
    OPERATE_DRAIN,
    OPERATE_UNDRAIN,
    OPERATE_END,       /* a session */
    OPERATE_ENROL,     /* makes an enrolment token */
    OPERATE_REVOKE,    /* … ends one and cuts those who came with it */
    OPERATE_ROTATE,    /* … replaces one; the old one works for grace_ms more */
    OPERATE_ISSUE,     /* an access token was made: core keeps the request and the audit */
    OPERATE_CONFIGURE, /* for the audit only: see EVENT_CONFIGURE */
    OPERATE_VERBS
};

enum { OPERATE_DIGEST = 32 };

/* The answer is EFFECT_OPERATED. A key makes a repeat of the same request give the same answer; the
 * same key with other arguments (another digest) is refused. */
struct operate {
    enum operate_verb verb;
    int64_t target;     /* a server, session or token by its id */
    struct str who;     /* the account that asks, at most 64 bytes */
    struct str address; /* … from there */
    struct str key;     /* empty = none */
    uint8_t arguments[OPERATE_DIGEST];
    struct str detail; /* for the audit: what cannot be seen from target, at most 127 bytes */

    /* ENROL */
    struct str name;
    int role; /* enum enrolment_role */
    struct str fleet;
    uint64_t regions;
    int64_t expires_wall_ms; /* 0 = never */

    int64_t grace_ms; /* ROTATE */
};

struct core_config;

struct event {
    enum event_kind kind;
    conn_id conn;
    int64_t at_us; /* monotonic, when it came; only handed back in effects, to be measured */
    union {
        struct chat_sv_handshake server_hello;
        struct chat_sv_heartbeat heartbeat;
        struct chat_sv_allocate_match_ack allocate_ack;
        struct chat_sv_ready_for_match ready;
        struct chat_sv_cancel_match_ack cancel_ack;
        struct chat_sv_validate_token validate;
        struct chat_sv_match_ended match_ended;
        struct chat_sv_player_left player_left;
        struct chat_sv_drain drain;
        struct chat_sv_match_list match_list;
        struct chat_mgr_handshake chat_hello;
        struct chat_mgr_server_allocation_request allocate;
        struct chat_mgr_allocation_cancel cancel;
        struct operate operate;
        const struct core_config *configure;
        struct {
            int64_t round_trip_us; /* 0 = not measured */
        } pong;
    };
};

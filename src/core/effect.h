/* Effects: what core wants done, by a door, once the batch it belongs to is durable. Strings live
 * in the batch's arena. `err` is 0 for a yes; otherwise the door answers with that error's
 * sentence. */
#pragma once

#include "base/str.h"
#include "core/event.h"
#include "wire/envelope.h"

#include <stdint.h>

enum effect_kind {
    /* Answers: each settles one request of its connection. */
    EFFECT_SERVER_HELLO,   /* err, server_id, wall_ms. A refused one closes the connection. */
    EFFECT_HEARTBEAT,      /* err, wall_ms */
    EFFECT_READY,          /* err, lobby */
    EFFECT_VALIDATE,       /* err, lobby, account */
    EFFECT_MATCH_ENDED,    /* err, lobby */
    EFFECT_CHAT_HELLO,     /* err, wall_ms, servers. A refused one closes the connection. */
    EFFECT_CHAT_HEARTBEAT, /* wall_ms */
    EFFECT_CLIENT_HELLO,   /* err, wall_ms. A refused one closes the connection. */
    EFFECT_ALLOCATED,      /* err, lobby, server_id, ip, port, token, wall_ms */
    EFFECT_CANCELLED,      /* err, lobby */
    EFFECT_READ,           /* err */
    EFFECT_PLACED,         /* err, ticket, session, server_id, text: a sentence; placed */
    EFFECT_HOST_BEAT,      /* err, object: the host's id */
    EFFECT_AGENT,          /* err, text; JOINED: taken; verb: enum agent_verb */
    EFFECT_SOUGHT,         /* err, object: the allocation, result */
    EFFECT_OPERATED, /* err, verb, object; ENROL, ROTATE: token; wall_ms: of the first asking; text:
                        of a refusal, more than err says, or empty */

    /* Commands and news: nobody asked. */
    EFFECT_ALLOCATE,      /* lobby, game_type, game_mode, token */
    EFFECT_CANCEL,        /* lobby, token */
    EFFECT_DRAIN,         /* on */
    EFFECT_DRAIN_ACK,     /* on */
    EFFECT_LIST_ASK,      /* – */
    EFFECT_KICK,          /* lobby, account, text */
    EFFECT_MATCH_EVENT,   /* lobby, event, text */
    EFFECT_LOBBY_CREATED, /* lobby, card */
    EFFECT_LOADING,       /* lobby, account, on: he has loaded */
    EFFECT_MATCH_START,   /* lobby, ip, port, token, card */
    EFFECT_MATCH_ABORTED, /* lobby, text, on: his group is queued again */
    EFFECT_PING,          /* – */
    EFFECT_CLOSE,         /* text: why; the peer is told in an ERROR frame */

    /* To agents; conn is 0. Owed until EVENT_HOST_HEARD or a heartbeat says it is done. */
    EFFECT_SPAWN,     /* spawn */
    EFFECT_PREPARE,   /* spawn: will follow, once it is stored. Leaves at once, and is not owed */
    EFFECT_TERMINATE, /* host, ip: the agent's URL, object: the server, text: why */
    EFFECT_KICK_SEAT, /* host, ip: the agent's URL, object: the server, token: the key, text: why */

    /* Owed until EVENT_PUBLISHED; conn is 0. on: nobody waits for it but whoever shows positions,
     * so that one may be lost. */
    EFFECT_RESULT, /* object: the allocation, 0 = refused; event: its state, verb: enum seek_bus,
                      arguments: of the request that it answers, result */

    /* To a proxy of PROVIDER_AGONES; conn is 0. on: add, answered with EVENT_ROUTED; else remove.
     */
    EFFECT_ROUTE, /* host, object: the server, session, ticket: the seat, token, on */

    EFFECT_NOTE, /* note, and the ids it speaks of: one line for the log */

    EFFECT_KINDS
};

enum match_event { MATCH_READY = 0, MATCH_LOST = 1, MATCH_ENDED = 2, MATCH_BACK = 3 };

/* Why a match is over. Stored: append only. */
enum end_reason {
    END_NONE,
    END_MATCH_ENDED,
    END_SERVER_LOST,
    END_NOT_LISTED,
    END_TOO_LONG,
    END_NOT_REPORTED,
    END_BY_OPERATOR,
    END_SPAWN_FAILED,  /* the server never was ready */
    END_SPAWN_TIMEOUT, /* … in time */
    END_EXITED,        /* the server is gone by itself */
    END_EMPTY,         /* nobody had a seat for too long */
    END_GIVEN_UP,      /* nobody waits for it any more */
    END_HOST_LOST,     /* its host was away for too long, or came back without it */
    END_HUNG,          /* it did not answer its agent */
    END_REASONS
};

/* Decisions worth a line in the log. Printed by the door that releases the effect. */
enum note {
    NOTE_SERVER_REGISTERED,
    NOTE_SERVER_RETURNED, /* on: it was Offline */
    NOTE_SERVER_DROPPED,
    NOTE_SERVER_OFFLINE,
    NOTE_SERVER_FORGOTTEN,
    NOTE_SERVER_BACKOFF,
    NOTE_SERVER_DRAINING,
    NOTE_SERVER_UNDRAINED,
    NOTE_SERVER_SHORTFALL, /* reports fewer matches than we hold, and cannot list them */
    NOTE_SERVER_UNKNOWN_MATCH,
    NOTE_CHAT_REGISTERED,
    NOTE_CHAT_GONE,
    NOTE_REFUSED, /* a request was refused: err says why */
    NOTE_TICKET_OPENED,
    NOTE_TICKET_RETRY,
    NOTE_TICKET_DONE,
    NOTE_TICKET_FAILED,
    NOTE_TICKET_CANCELLED, /* err: it had no answer yet */
    NOTE_MATCH_READY,
    NOTE_MATCH_LOST,
    NOTE_MATCH_BACK,
    NOTE_MATCH_ENDED,
    NOTE_LATE_ACK,
    NOTE_CANCEL_GIVEN_UP,
    NOTE_OPERATED, /* an operator changed something: text says what, chat who, ip from where;
                      object is the token it is about */
    NOTE_CONFIGURED,
    NOTE_HOST_REGISTERED,
    NOTE_HOST_SILENT, /* nothing new there; what runs is unknown, not dead */
    NOTE_HOST_BACK,
    NOTE_HOST_LOST,     /* away for too long: its rooms are over */
    NOTE_HOST_BACKOFF,  /* wall_ms: for how long; text: why */
    NOTE_HOST_STRANGER, /* it runs a server that is none of ours: server_id; it is ended */
    NOTE_HOST_FORGOTTEN,
    NOTE_ROOM_SPAWNING,
    NOTE_ROOM_OPEN,
    NOTE_ROOM_ENDED, /* reason, text */
    NOTE_SEAT_RESERVED,
    NOTE_SEAT_TAKEN,
    NOTE_SEAT_LEFT,       /* text: why; reason: enum seat_end; load: enum end_reason of its room */
    NOTE_VERSION_BACKOFF, /* a host passes over a version that failed there; wall_ms: for how long,
                             text: the version */
    NOTE_VERSION_QUARANTINED,
    NOTE_VERSION_SWITCHED,
    NOTE_ALLOCATION_OPENED,          /* object: the allocation, chat: the player, text: its name */
    NOTE_ALLOCATION_QUEUED,          /* … load: the position */
    NOTE_ALLOCATION_DONE,            /* … region: how: "rejoin" "friend" "room" "spawn" "queue" */
    NOTE_ALLOCATION_FAILED,          /* … err, text: the sentence */
    NOTE_ALLOCATION_UNSAID,          /* its bus is configured no more: its result is dropped */
    NOTE_ALLOCATION_UNKNOWN_FRIENDS, /* nobody of them has a seat in the fleet */
    NOTE_TOKEN_COLLISION,            /* another player who is there has the same routing token */
    NOTE_LOBBY_CREATED,              /* object: the lobby; load: of so many players */
    NOTE_LOBBY_MOVED,   /* its server was lost before the start: another is looked for; text */
    NOTE_LOBBY_STARTED, /* asked_us: when it was created, since_us: when its server was there */
    NOTE_LOBBY_ABORTED, /* reason: enum lobby_cause, text: the sentence, on: queued again */
    NOTE_LOBBY_LOST,    /* a started one: its server is away */
    NOTE_LOBBY_BACK,
    NOTE_LOBBY_ENDED,     /* a started one is over: reason: enum end_reason, text */
    NOTE_CLIENT_REPLACED, /* account: he connected again; the older connection is closed */
    NOTE_PLAYER_ENTERED,  /* account, object: the seat: he is in a match of a chat server */
    NOTE_PLAYER_LEFT,     /* … and is not any more; reason: enum seat_end, text */
    NOTE_STOPPED,         /* we did not run for a while; liveness deadlines moved */
    NOTES
};

/* Why a seat was given back. */
enum seat_end {
    SEAT_END_LEFT,     /* he left */
    SEAT_END_EXPIRED,  /* he never came */
    SEAT_END_MOVED,    /* he has another one */
    SEAT_END_KICKED,   /* an operator threw him out */
    SEAT_END_BANNED,   /* he may not play */
    SEAT_END_ROOM,     /* its room or match is over */
    SEAT_END_FAILED,   /* its room never came to be */
    SEAT_END_GIVEN_UP, /* nobody wants it any more */
    SEAT_ENDS
};

/* Why a lobby was aborted, or ended otherwise than by its server's word. Stored: append only. */
enum lobby_cause {
    LOBBY_CAUSE_NONE,
    LOBBY_CAUSE_ALLOCATION,   /* no server was to be had */
    LOBBY_CAUSE_LOADING,      /* not all have loaded in time */
    LOBBY_CAUSE_DISCONNECTED, /* a player is gone */
    LOBBY_CAUSE_OPERATOR,     /* somebody aborted it */
    LOBBY_CAUSE_SERVER,       /* its server is lost, or no longer holds the match */
    LOBBY_CAUSE_TOO_LONG,
    LOBBY_CAUSES
};

/* What players are told of a lobby they are in. */
struct lobby_card {
    int8_t game_type;
    int8_t game_mode;
    struct str map;
    struct chat_list teams[2]; /* encoded struct chat_player_entry */
};

/* EFFECT_PLACED: where, or for a refusal what its head and body say beside the sentence.
 * EFFECT_SOUGHT: ERR_RATE_LIMITED has one for retry_after_ms. */
struct placed_seat {
    int64_t seat;
    struct str account;
    struct str key;
};

struct placed {
    struct str address; /* of the host */
    uint16_t ports[HOST_PORTS_MAX];
    int n_ports;
    struct str settings; /* JSON */
    const struct placed_seat *seats;
    size_t n_seats;

    int64_t retry_after_ms; /* 0 = say nothing */
    struct str refused;     /* ERR_BANNED: the account meant */
    int64_t ban;
    struct str ban_reason;
    int64_t ban_until_wall_ms;
    struct str tail; /* what the server said last */
};

/* EFFECT_SPAWN: what core knows; how a fleet is started the door knows. */
struct spawn {
    struct str url; /* of the agent */
    int64_t host;
    int64_t server;
    int64_t session;
    struct str fleet;
    struct str version;
    int64_t deployment;             /* 0 = none: the fleet's binary is on the host */
    uint8_t digest[OPERATE_DIGEST]; /* of it */
    int32_t max_players;
    struct str settings;
    int64_t within_ms; /* until INITED must have been said */
    struct str ticket; /* PROVIDER_AGONES: the name of whose allocation it is */
    struct str tokens; /* … the routing tokens of those who come, with commas between them */
};

/* EFFECT_AGENT of a JOINED: whose seat it is. */
struct taken {
    int64_t seat;
    struct str account;
    struct str info;
    struct str sealed;
    int64_t multi;
};

struct effect {
    enum effect_kind kind;
    conn_id conn;
    int32_t err;
    int32_t lobby;
    int32_t server_id;
    int32_t account;
    int32_t port;
    int8_t game_type;
    int8_t game_mode;
    int8_t event; /* enum match_event */
    bool on;
    enum note note;
    int8_t verb;        /* enum operate_verb; EFFECT_AGENT: enum agent_verb */
    int8_t region_code; /* notes: 0.. as configured; -1 = none or several */
    int8_t reason;      /* notes: enum end_reason, seat_end or lobby_cause, see enum note */
    int32_t fleet_id;   /* notes; 0 = none */
    int32_t load;       /* NOTE_TICKET_DONE: of the chosen server, the match included … */
    int32_t max;        /* … of this */
    int64_t object;     /* EFFECT_OPERATED: what was made or changed */
    int64_t asked_us;   /* EFFECT_ALLOCATED, notes of a ticket: at_us of the request; 0 = unknown */
    int64_t since_us;   /* NOTE_MATCH_READY: when it was allocated; NOTE_TICKET_DONE: when the
                           server that acknowledged was told; 0 = unknown */
    int64_t ticket;
    int64_t session;
    int64_t host;
    int64_t wall_ms; /* NOTE_STOPPED and NOTE_SERVER_BACKOFF: for how long */
    struct str ip;
    struct str token;
    struct str text;
    struct str chat;         /* notes: the chat server's name */
    struct str region;       /* notes: the region's name */
    struct str player;       /* notes of a request, a refusal or an operator: whom it is about */
    struct str party;        /* … and who else, see wire/names.h; of an allocation with himself */
    struct str detail;       /* NOTE_OPERATED: what cannot be seen from its target */
    const int32_t *accounts; /* notes of a lobby: those in it, `load` of them */
    const struct placed *placed;
    const struct spawn *spawn;
    const struct taken *taken;
    const struct envelope_result *result;
    const struct lobby_card *card;
    const uint8_t *arguments; /* EFFECT_RESULT: OPERATE_DIGEST bytes */
    struct chat_list servers; /* EFFECT_CHAT_HELLO: encoded struct chat_server_entry */
};

/* True for the kinds that settle a request. */
bool effect_is_answer(enum effect_kind kind);

/* "ALLOCATED", "HEARTBEAT" …: for traces. */
const char *effect_name(enum effect_kind kind);
const char *event_name(enum event_kind kind);

/* "server registered" … the words of a log line. */
const char *note_text(enum note note);

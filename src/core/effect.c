#include "core/effect.h"

bool effect_is_answer(enum effect_kind kind)
{
    return kind <= EFFECT_OPERATED;
}

const char *effect_name(enum effect_kind kind)
{
    static const char *const names[EFFECT_KINDS] = {
        [EFFECT_SERVER_HELLO] = "SERVER_HELLO",
        [EFFECT_HEARTBEAT] = "HEARTBEAT",
        [EFFECT_READY] = "READY",
        [EFFECT_VALIDATE] = "VALIDATE",
        [EFFECT_MATCH_ENDED] = "MATCH_ENDED",
        [EFFECT_CHAT_HELLO] = "CHAT_HELLO",
        [EFFECT_CHAT_HEARTBEAT] = "CHAT_HEARTBEAT",
        [EFFECT_ALLOCATED] = "ALLOCATED",
        [EFFECT_CANCELLED] = "CANCELLED",
        [EFFECT_READ] = "READ",
        [EFFECT_PLACED] = "PLACED",
        [EFFECT_HOST_BEAT] = "HOST_BEAT",
        [EFFECT_AGENT] = "AGENT",
        [EFFECT_SOUGHT] = "SOUGHT",
        [EFFECT_OPERATED] = "OPERATED",
        [EFFECT_ALLOCATE] = "ALLOCATE",
        [EFFECT_CANCEL] = "CANCEL",
        [EFFECT_DRAIN] = "DRAIN",
        [EFFECT_DRAIN_ACK] = "DRAIN_ACK",
        [EFFECT_LIST_ASK] = "LIST_ASK",
        [EFFECT_KICK] = "KICK",
        [EFFECT_MATCH_EVENT] = "MATCH_EVENT",
        [EFFECT_PING] = "PING",
        [EFFECT_CLOSE] = "CLOSE",
        [EFFECT_SPAWN] = "SPAWN",
        [EFFECT_TERMINATE] = "TERMINATE",
        [EFFECT_KICK_SEAT] = "KICK_SEAT",
        [EFFECT_RESULT] = "RESULT",
        [EFFECT_ROUTE] = "ROUTE",
        [EFFECT_NOTE] = "NOTE",
    };
    return kind < EFFECT_KINDS ? names[kind] : "?";
}

const char *event_name(enum event_kind kind)
{
    static const char *const names[EVENT_KINDS] = {
        [EVENT_TICK] = "TICK",
        [EVENT_SERVER_HELLO] = "SERVER_HELLO",
        [EVENT_HEARTBEAT] = "HEARTBEAT",
        [EVENT_ALLOCATE_ACK] = "ALLOCATE_ACK",
        [EVENT_READY] = "READY",
        [EVENT_CANCEL_ACK] = "CANCEL_ACK",
        [EVENT_VALIDATE] = "VALIDATE",
        [EVENT_MATCH_ENDED] = "MATCH_ENDED",
        [EVENT_PLAYER_LEFT] = "PLAYER_LEFT",
        [EVENT_DRAIN] = "DRAIN",
        [EVENT_DRAIN_ACK] = "DRAIN_ACK",
        [EVENT_MATCH_LIST] = "MATCH_LIST",
        [EVENT_CHAT_HELLO] = "CHAT_HELLO",
        [EVENT_CHAT_HEARTBEAT] = "CHAT_HEARTBEAT",
        [EVENT_ALLOCATE] = "ALLOCATE",
        [EVENT_CANCEL] = "CANCEL",
        [EVENT_PONG] = "PONG",
        [EVENT_GONE] = "GONE",
        [EVENT_READ] = "READ",
        [EVENT_OPERATE] = "OPERATE",
        [EVENT_CONFIGURE] = "CONFIGURE",
        [EVENT_PLACE] = "PLACE",
        [EVENT_HOST_BEAT] = "HOST_BEAT",
        [EVENT_AGENT] = "AGENT",
        [EVENT_HOST_HEARD] = "HOST_HEARD",
        [EVENT_SEEK] = "SEEK",
        [EVENT_UNSEEK] = "UNSEEK",
        [EVENT_PUBLISHED] = "PUBLISHED",
        [EVENT_ROUTED] = "ROUTED",
        [EVENT_STORE_DOWN] = "STORE_DOWN",
        [EVENT_STORE_UP] = "STORE_UP",
    };
    return kind < EVENT_KINDS ? names[kind] : "?";
}

const char *note_text(enum note note)
{
    static const char *const texts[NOTES] = {
        [NOTE_SERVER_REGISTERED] = "server registered",
        [NOTE_SERVER_RETURNED] = "server returned",
        [NOTE_SERVER_DROPPED] = "server dropped its connection",
        [NOTE_SERVER_OFFLINE] = "server offline",
        [NOTE_SERVER_FORGOTTEN] = "server forgotten",
        [NOTE_SERVER_BACKOFF] = "server passed over after a failure",
        [NOTE_SERVER_DRAINING] = "server draining",
        [NOTE_SERVER_UNDRAINED] = "server takes matches again",
        [NOTE_SERVER_SHORTFALL] = "server reports fewer matches than are open and lists none",
        [NOTE_SERVER_UNKNOWN_MATCH] = "server lists matches that nobody here knows, this one first",
        [NOTE_CHAT_REGISTERED] = "chat server registered",
        [NOTE_CHAT_GONE] = "chat server gone",
        [NOTE_REFUSED] = "refused",
        [NOTE_TICKET_OPENED] = "ticket opened",
        [NOTE_TICKET_RETRY] = "ticket tries the next server",
        [NOTE_TICKET_DONE] = "ticket done",
        [NOTE_TICKET_FAILED] = "ticket failed",
        [NOTE_TICKET_CANCELLED] = "ticket cancelled",
        [NOTE_MATCH_READY] = "match ready",
        [NOTE_MATCH_LOST] = "match lost its server",
        [NOTE_MATCH_BACK] = "match has its server back",
        [NOTE_MATCH_ENDED] = "match ended",
        [NOTE_LATE_ACK] = "late acknowledgement answered with a cancel",
        [NOTE_CANCEL_GIVEN_UP] = "cancel never acknowledged",
        [NOTE_OPERATED] = "operator",
        [NOTE_CONFIGURED] = "configuration read again",
        [NOTE_HOST_REGISTERED] = "host registered",
        [NOTE_HOST_SILENT] = "host silent",
        [NOTE_HOST_BACK] = "host back",
        [NOTE_HOST_LOST] = "host lost",
        [NOTE_HOST_BACKOFF] = "host passed over after a failure",
        [NOTE_HOST_STRANGER] = "host runs a server that nobody here knows",
        [NOTE_HOST_FORGOTTEN] = "host forgotten",
        [NOTE_ROOM_SPAWNING] = "room spawning",
        [NOTE_ROOM_OPEN] = "room open",
        [NOTE_ROOM_ENDED] = "room ended",
        [NOTE_SEAT_RESERVED] = "seat reserved",
        [NOTE_SEAT_TAKEN] = "seat taken",
        [NOTE_SEAT_LEFT] = "seat left",
        [NOTE_VERSION_QUARANTINED] = "version quarantined",
        [NOTE_VERSION_SWITCHED] = "version runs another deployment",
        [NOTE_ALLOCATION_OPENED] = "allocation asked for",
        [NOTE_ALLOCATION_QUEUED] = "allocation queued",
        [NOTE_ALLOCATION_DONE] = "allocation done",
        [NOTE_ALLOCATION_FAILED] = "allocation failed",
        [NOTE_ALLOCATION_UNSAID] = "result dropped: no such bus is configured",
        [NOTE_ALLOCATION_UNKNOWN_FRIENDS] = "friends are nowhere",
        [NOTE_TOKEN_COLLISION] = "routing token belongs to another player",
        [NOTE_STOPPED] = "this process was stopped; deadlines moved",
    };
    return note < NOTES ? texts[note] : "?";
}

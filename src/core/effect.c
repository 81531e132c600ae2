#include "core/effect.h"

bool effect_is_answer(enum effect_kind kind)
{
    return kind <= EFFECT_CANCELLED;
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
        [NOTE_STOPPED] = "this process was stopped; deadlines moved",
    };
    return note < NOTES ? texts[note] : "?";
}

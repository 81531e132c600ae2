/* A connection on a chat port: its handshake, its PINGs, its end. Owned by its door; freed when its
 * stream has closed. Used by door.c only. */
#pragma once

#include "api/door.h"
#include "base/list.h"
#include "net/stream.h"

#include <stdbool.h>
#include <stdint.h>

/*   NEW ──handshake──▶ ASKING ──core says yes──▶ OPEN ──protocol error──▶ LEAVING
 *    │                    │ core says no           │                         │ answers are out
 *    └── error, 5 s ──────┴─────── CLOSE, cut ─────┴─────────────────────────┴──▶ CLOSING
 *
 * While ASKING no input is handled, so that nothing overtakes the answer. While LEAVING none is
 * either, but what was asked before the mistake is still answered. */
enum conn_state { CONN_NEW, CONN_ASKING, CONN_OPEN, CONN_LEAVING, CONN_CLOSING, CONN_STATES };

struct conn {
    conn_id id;
    struct door *door;
    struct stream *stream;
    enum conn_state state;
    bool owes_gone;    /* core has heard of it and must hear of its end, once */
    bool said_unknown; /* an unknown command has been logged */
    int8_t unanswered; /* PINGs since it was last heard */
    int32_t rtt_us;    /* how long the last PONG took; -1 = none came yet */
    int64_t ping_us;   /* monotonic, when the PING under way left; 0 = none is */
    int64_t due_ms;    /* monotonic: of the list it is timed in */
    char *last_words;  /* when LEAVING: what to say at the end; owned */
    int commits_left;  /* when LEAVING: so many must end until every answer has been sent */
    struct link in_door;
    struct link timed;
    struct link gone;
    struct link leaving;
};

/* A new connection on the door, in state NEW, being read. */
void conn_open(struct door *door, struct stream *stream);

/* What core wants of it: any effect but a NOTE. */
void conn_effect(struct conn *c, const struct effect *e);

/* It did not say who it is in time. */
void conn_too_late(struct conn *c);

/* A PING is due. When too many were left unanswered, by one who must, the connection ends instead.
 */
void conn_ping_or_end(struct conn *c);

/* Sends a PING; its answer gives the round-trip time. */
void conn_ping(struct conn *c);

/* Says the last words of a LEAVING connection and hangs up. */
void conn_hang_up(struct conn *c);

/* Tells core that it is gone, when core knows it and was not told. Not from within release. */
void conn_tell_gone(struct conn *c);

/* Reads it, or not, as its state and its door now say. */
void conn_update_reading(struct conn *c);

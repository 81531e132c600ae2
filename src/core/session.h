/* Sessions: one attempt to hold a match on one server. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"

struct chat_server;
struct server;
struct ticket;

/*             ACK / READY             MATCH_ENDED, list, max time
 *   OPENING ───────────────▶ OPEN ──────────────────────────────────▶ ENDED
 *      │                     │  ▲ server back                           ▲
 *      │         server gone │  │                                       │
 *      │                     ▼  │        lost_ms, list                  │
 *      │                     LOST ──────────────────────────────────────┘
 *      │ refused, timed out, dropped, cancelled     │ cancelled (also from OPEN)
 *      ▼                                            ▼
 *   CANCELLING ◀─────────────────────────────────────
 *      │ CANCEL_ACK, list without it, given up
 *      ▼
 *   (deleted; ENDED when it was too long and its chat server has not heard so)
 */
enum session_state {
    SESSION_OPENING = 1,
    SESSION_OPEN,
    SESSION_LOST,
    SESSION_CANCELLING,
    SESSION_ENDED,
    SESSION_STATES
};

struct session {
    struct object object;
    struct row_session row;
    struct server *server;
    struct chat_server *chat;
    int64_t told_us;    /* the door's clock when ALLOCATE was first added to a batch; 0 = unknown */
    int64_t opened_us;  /* … when it became OPEN */
    conn_id told;       /* the connection its ALLOCATE or CANCEL was given to; 0 = owed */
    int32_t unanswered; /* ALLOCATEs given to that connection that have had no ACK */
    int8_t counted;     /* which of the server's counters it is in, see session.c */
    int8_t
        events_sent; /* owed events that were sent and are struck off when their batch has left */
    int8_t events_tried;  /* owed events that somebody may have heard, on whatever connection */
    int64_t events_batch; /* the batch they were last sent with */
    struct list seats;
    int32_t admitted; /* different accounts that ever had a seat */
    int32_t seated;   /* … that have one now */
    struct deadline deadline;
    struct deadline reply;
    struct link on_server;
    struct link in_owed;
    struct link in_sent;
    struct chain_link in_chain; /* by lobby, or, when it is over, by (server, lobby) */
};

struct session *session_new(struct core *core, struct ticket *ticket, struct server *server);
void session_ack(struct core *core, struct server *server, bool success, int32_t lobby);
void session_cancel_ack(struct core *core, struct server *server, int32_t lobby);
void session_ready(struct core *core, struct server *server,
                   const struct chat_sv_ready_for_match *ready);
bool session_was_ready(const struct core *core, const struct server *server, int32_t lobby);
void session_match_ended(struct core *core, struct server *server, int32_t lobby);

/* The session is given up: CANCEL is owed to its server. From OPENING, OPEN or LOST. */
void session_cancel(struct core *core, struct session *session);

/* OPEN or LOST: over for everybody, and its server is owed the order to let go of it. */
void session_stop(struct core *core, struct session *session, enum end_reason reason);

/* OPENING only: the server did not take it; the ticket goes on to the next best. */
void session_failed(struct core *core, struct session *session, int outcome);

void session_lose(struct core *core, struct session *session);
void session_back(struct core *core, struct session *session);
void session_end(struct core *core, struct session *session, enum end_reason reason);

/* Sends what the session owes its server, which is connected and listed. */
void session_settle(struct core *core, struct session *session);

/* The connection is gone: what was sent on it may never have arrived. */
void session_untold(struct core *core, struct session *session);

/* A CANCELLING session is gone from its server. */
void session_let_go(struct core *core, struct session *session);

/* Deletes a CANCELLING or ENDED session. */
void session_delete(struct core *core, struct session *session);

/* Gives the chat server the events it has not been told. */
void session_send_events(struct core *core, struct session *session);

/* The chat server's connection is gone: what was sent and not struck off may not have arrived. */
void session_events_unsent(struct session *session);

/* Called by core_left: the batch has no changes, so its events left without a number. */
void sessions_events_leave(struct core *core);

/* Called by core_seal: events sent in an earlier batch have left, so they are owed no more. */
void sessions_events_left(struct core *core);

struct session *session_find(const struct core *core, int64_t id); /* NULL = there is none */

/* A session of that lobby on that server that is not ENDED / that is; NULL when there is none. */
struct session *session_here(const struct core *core, const struct server *server, int32_t lobby);
struct session *session_ended_here(const struct core *core, const struct server *server,
                                   int32_t lobby);
bool session_is_live(const struct session *session);

/* Live, or its server has not been told to let go; when a restore lies between, not until it said
 * that it has. */
bool session_holds_slot(const struct core *core, const struct session *session);

/* True when that server cannot be given that lobby id for that owner now. */
bool session_blocks(const struct core *core, const struct server *server, int32_t lobby,
                    const struct chat_server *owner);

/* However long we were away or could not store anything, a server has its time to come back before
 * what waits for it is given up. */
void session_give_time(struct core *core, struct session *session);

int session_load_row(struct core *core, const struct row_session *row);
int session_loaded(struct core *core, struct session *session);
void session_unlink(struct core *core, struct session *session);
void session_deadline(struct core *core, struct session *session, enum deadline_kind kind);

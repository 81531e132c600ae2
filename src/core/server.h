/* Game servers: who they are, what they report, what we hold there. Inside src/core only. */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/fleet.h"
#include "core/object.h"

/* Who wants it to drain: bits of row.draining. */
enum drain_by { DRAIN_BY_SERVER = 1, DRAIN_BY_OPERATOR = 2 };

struct server {
    struct object object;
    struct row_server row;
    struct fleet *fleet;

    conn_id conn;              /* 0 = not connected */
    int64_t enrolment;         /* the stored token it came with; 0 = none of those */
    int64_t heard_core_ms;     /* its last sign of life since this process started; 0 = none */
    int64_t connected_core_ms; /* when it came last */
    int64_t round_trip_us;     /* 0 = not known yet */
    bool offline;
    bool expected;       /* known from before the start, and not back since */
    bool listed;         /* its matches are known (or it had its time to tell) since it connected */
    bool drain_in_doubt; /* back after it drained itself: the same process, or the next? */
    bool cannot_list;    /* asked, never answered */
    int32_t reported;    /* matches by its last heartbeat */

    /* Matches it listed that nobody here knows: their slots are taken and their ids are in use. */
    int32_t *strangers;
    int32_t n_strangers;
    int32_t stranger_slots; /* at most n_strangers; fewer when a heartbeat says some have ended */

    float cpu_percent; /* by its last heartbeat */
    float memory_percent;
    int32_t shortfalls;   /* heartbeats in a row that reported fewer matches than are open */
    int32_t zeros;        /* … that reported none while some are open */
    bool shortfall_noted; /* once, however long it lasts */

    /* A second connection says it is this server; the first one was PINGed. */
    struct {
        conn_id conn;
        int8_t region;
        int32_t max_sessions;
        int64_t enrolment;
    } challenge;

    int32_t
        held; /* slots taken: opening, open, lost, and cancelled ones not yet known to be free */
    int32_t live; /* opening, open, lost */
    int32_t open; /* open */
    int32_t
        max_allowed; /* what live may not exceed: max_sessions, or what it held when it shrank */
    struct list sessions;

    /* It was asked for its list with that batch, which has not left yet. */
    struct link in_asked;
    int64_t asked_batch;

    int64_t backoff_ms; /* 0 = not failing */
    int64_t idle_since_core_ms;
    int64_t placed_idle_core_ms; /* … when it was put in its place */
    double score;
    enum passed_over passed_over;
    bool grouped; /* counted in its group, with this share */
    struct share share;
    struct heap_node place;

    struct deadline silent;
    struct deadline list;
    struct deadline challenged;
    struct deadline backoff;
    struct deadline forget;

    struct chain_link by_endpoint;
};

void server_hello(struct core *core, conn_id conn, const struct chat_sv_handshake *hello);

/* True when the hello is refused, or is a known server's coming back as it was. */
bool server_hello_changes_nothing(const struct core *core, const struct chat_sv_handshake *hello);

/* One that is away could not come back through our fault: its silence begins anew. */
void server_give_time(struct core *core, struct server *server);
void server_heartbeat(struct core *core, conn_id conn, const struct chat_sv_heartbeat *beat);
void server_match_list(struct core *core, conn_id conn, const struct chat_sv_match_list *list);
void server_drain(struct core *core, struct server *server, enum drain_by by, bool on);
void server_gone(struct core *core, struct server *server);
void server_alive(struct core *core, struct server *server); /* it answered a PING */

/* Called by core_left: the batch has no changes, so who was asked with it was without a number; and
 * then: those who were asked with a batch that has left have their time from now on. */
void servers_asked_leave(struct core *core);
void servers_asked_left(struct core *core);

/* Asks a connected server which matches it holds; it has list_ms to say, from when that leaves. */
void server_ask_list(struct core *core, struct server *server);

/* Sends what its sessions owe it; the server is connected and listed. */
void server_settle(struct core *core, struct server *server);

/* It refused, timed out or dropped: passed over for a while, longer each time. */
void server_failed(struct core *core, struct server *server, const char *why);
void server_succeeded(struct core *core, struct server *server);

/* True when it listed a match of that lobby id that nobody here knows. */
/* It may hold a match of that id that is not known here; it is asked for its list, which says. */
void server_doubt(struct core *core, struct server *server, int32_t lobby);

bool server_has_stranger(const struct server *server, int32_t lobby);

/* What kept tickets of some lobby id away from it is no more: those who wait look again. */
void server_unblocked(struct core *core, const struct server *server);

/* A match that nobody here knows has ended there. */
void server_stranger_ended(struct core *core, struct server *server, int32_t lobby);

/* Recomputes status, score and place. Call after any change to what they depend on. */
void server_refresh(struct core *core, struct server *server);

/* The slots it has no more: max(reported, held + stranger_slots). */
int32_t server_load(const struct server *server);
enum server_status server_status(const struct server *server);

/* Sets the forget deadline when nothing keeps an Offline server any more. */
void server_maybe_forget(struct core *core, struct server *server);

struct server *server_load_row(struct core *core, const struct row_server *row);
void server_loaded(struct core *core, struct server *server);
void server_unlink(struct core *core, struct server *server);
void server_deadline(struct core *core, struct server *server, enum deadline_kind kind);

/* A new core, after a failed commit: connection and load of the same server in the old one. */
void server_take_over(struct core *core, struct server *fresh, struct server *old);

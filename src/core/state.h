/* What core holds in memory: visible inside src/core only.
 *
 * Durable objects are a row (rows.def) plus soft state around it. The row is what the store keeps;
 * everything else is rebuilt from rows, from peers that speak again, or from deadlines.
 * Each noun's functions live in its own file; this header is their common ground. */
#pragma once

#include "base/buf.h"
#include "base/chain.h"
#include "base/err.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "core/core.h"

#include <assert.h>

/* ── objects: what is durable knows whether it must be written ─────────────────────────────── */

struct object {
    struct link dirty; /* in core->dirty when the open batch must carry it */
    enum row_kind kind;
    bool stored; /* some sealed batch has carried it */
    bool gone;   /* deleted; freed when the batch is sealed */
};

/* The open batch will carry the object as it is when the batch is sealed. */
void object_touch(struct core *core, struct object *o);

/* The open batch will carry its deletion. The memory is freed at the seal; the caller has taken it
 * out of every index. */
void object_delete(struct core *core, struct object *o);

/* The row inside the object. */
void *object_row(struct object *o);

/* A new id for that kind, never used before in this data folder. */
int64_t object_new_id(struct core *core, enum row_kind kind);

/* ── deadlines: every state that is not final has one ──────────────────────────────────────── */

/* CLOCK_CORE runs always. CLOCK_AWAKE stands still while this process does not run (stopped,
 * suspended), so that nobody is called silent for our own sleep. */
enum deadline_clock { DEADLINE_CORE, DEADLINE_AWAKE, DEADLINE_CLOCKS };

enum deadline_kind {
    DEADLINE_SERVER_SILENT = 1,
    DEADLINE_SERVER_LIST,
    DEADLINE_SERVER_CHALLENGE,
    DEADLINE_SERVER_BACKOFF,
    DEADLINE_SERVER_FORGET,
    DEADLINE_CHAT_SILENT,
    DEADLINE_CHAT_CHALLENGE,
    DEADLINE_CHAT_FORGET,
    DEADLINE_SESSION,       /* row.deadline_core_ms */
    DEADLINE_SESSION_REPLY, /* ACK, READY or CANCEL_ACK has not come */
    DEADLINE_TICKET,        /* row.deadline_core_ms */
};

struct deadline {
    struct heap_node node;
    int64_t at_ms;
    uint8_t kind;
    uint8_t clock;
};

void deadline_set(struct core *core, struct deadline *d, enum deadline_clock clock, int64_t at_ms);
void deadline_clear(struct core *core, struct deadline *d);
bool deadline_is_set(const struct deadline *d);
int64_t deadline_now(const struct core *core, enum deadline_clock clock);

bool deadline_before(const struct heap_node *a, const struct heap_node *b);

/* Fires everything that is due, oldest first. */
void deadlines_run(struct core *core);

/* ── fleet and region ──────────────────────────────────────────────────────────────────────── */

/* Why a server is not a candidate; one reason per server at a time, the first that applies. */
enum passed_over {
    PASSED_NOT, /* it is one */
    PASSED_OFFLINE,
    PASSED_AWAY,     /* not connected, not yet Offline */
    PASSED_UNLISTED, /* returned; its match list is awaited */
    PASSED_DRAINING,
    PASSED_FAILING, /* refused, timed out or dropped lately */
    PASSED_FULL,
    PASSED_REASONS
};

/* The servers of one fleet in one region. */
struct group {
    struct heap placeable; /* best on top */
    int32_t count[PASSED_REASONS];
};

struct fleet {
    struct object object;
    struct row_fleet row;
    const struct fleet_config *config; /* NULL: taken out of the configuration, so it drains */
    struct group groups[REGION_CODES];
};

/* ── server ────────────────────────────────────────────────────────────────────────────────── */

struct server {
    struct object object;
    struct row_server row;
    struct fleet *fleet;

    conn_id conn; /* 0 = not connected */
    bool offline;
    bool listed;      /* its matches are known (or it had its time to tell) since it connected */
    bool cannot_list; /* asked, never answered */
    int32_t reported; /* matches by its last heartbeat */

    /* Matches it listed that nobody here knows: their slots are taken and their ids are in use. */
    int32_t *strangers;
    int32_t n_strangers;
    int32_t stranger_slots; /* at most n_strangers; fewer when a heartbeat says some have ended */

    float cpu_percent; /* by its last heartbeat */
    float memory_percent;
    int32_t shortfalls; /* heartbeats in a row that reported fewer matches than are open */
    int32_t zeros;      /* … that reported none while some are open */

    /* A second connection says it is this server; the first one was PINGed. */
    struct {
        conn_id conn;
        int8_t region;
        int32_t max_sessions;
    } challenge;

    int32_t
        held; /* slots taken: opening, open, lost, and cancelled ones not yet known to be free */
    int32_t live; /* opening, open, lost */
    int32_t open; /* open */
    int32_t
        max_allowed; /* what live may not exceed: max_sessions, or what it held when it shrank */
    struct list sessions;

    int64_t backoff_ms; /* 0 = not failing */
    int64_t idle_since_core_ms;
    double score;
    enum passed_over passed_over;
    bool grouped; /* counted in its group */
    struct heap_node place;

    struct deadline silent;
    struct deadline list;
    struct deadline challenged;
    struct deadline backoff;
    struct deadline forget;

    struct chain_link by_endpoint;
};

void server_hello(struct core *core, conn_id conn, const struct chat_sv_handshake *hello);
void server_heartbeat(struct core *core, conn_id conn, const struct chat_sv_heartbeat *beat);
void server_match_list(struct core *core, conn_id conn, const struct chat_sv_match_list *list);
void server_drain(struct core *core, struct server *server, bool on);
void server_gone(struct core *core, struct server *server);
void server_alive(struct core *core, struct server *server); /* it answered a PING */

/* Asks a connected server which matches it holds; it has list_ms to say. */
void server_ask_list(struct core *core, struct server *server);

/* Sends what its sessions owe it; the server is connected and listed. */
void server_settle(struct core *core, struct server *server);

/* It refused, timed out or dropped: passed over for a while, longer each time. */
void server_failed(struct core *core, struct server *server);
void server_succeeded(struct core *core, struct server *server);

/* True when it listed a match of that lobby id that nobody here knows. */
bool server_has_stranger(const struct server *server, int32_t lobby);

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

/* ── chat server ───────────────────────────────────────────────────────────────────────────── */

struct chat_server {
    struct object object;
    struct row_chat_server row;
    struct fleet *fleet;
    conn_id conn;
    uint64_t regions;
    struct {
        conn_id conn;
        uint64_t regions;
    } challenge;
    int32_t tickets;
    struct list owed; /* sessions with events_owed */
    struct deadline silent;
    struct deadline challenged;
    struct deadline forget;
    struct chain_link by_name;
};

void chat_server_hello(struct core *core, conn_id conn, const struct chat_mgr_handshake *hello);
void chat_server_heartbeat(struct core *core, conn_id conn);
void chat_server_heard(struct core *core, struct chat_server *chat);
void chat_server_gone(struct core *core, struct chat_server *chat);
void chat_server_alive(struct core *core, struct chat_server *chat);
void chat_server_maybe_forget(struct core *core, struct chat_server *chat);
struct chat_server *chat_server_load_row(struct core *core, const struct row_chat_server *row);
void chat_server_loaded(struct core *core, struct chat_server *chat);
void chat_server_unlink(struct core *core, struct chat_server *chat);
void chat_server_take_over(struct core *core, struct chat_server *fresh,
                           const struct chat_server *old);
void chat_server_deadline(struct core *core, struct chat_server *chat, enum deadline_kind kind);

/* ── session ───────────────────────────────────────────────────────────────────────────────── */

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

enum end_reason {
    END_NONE,
    END_MATCH_ENDED,
    END_SERVER_LOST,
    END_NOT_LISTED,
    END_TOO_LONG,
    END_NOT_REPORTED,
};

struct session {
    struct object object;
    struct row_session row;
    struct server *server;
    struct chat_server *chat;
    conn_id told;   /* the connection its ALLOCATE or CANCEL was given to; 0 = owed */
    int8_t counted; /* which of the server's counters it is in, see session.c */
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
    struct chain_link here; /* by (server, lobby) */
    struct chain_link by_lobby;
};

struct ticket;

struct session *session_new(struct core *core, struct ticket *ticket, struct server *server);
void session_ack(struct core *core, struct server *server, bool success, int32_t lobby);
void session_cancel_ack(struct core *core, struct server *server, int32_t lobby);
void session_ready(struct core *core, struct server *server,
                   const struct chat_sv_ready_for_match *ready);
bool session_was_ready(const struct core *core, const struct server *server, int32_t lobby);
void session_match_ended(struct core *core, struct server *server, int32_t lobby);

/* The session is given up: CANCEL is owed to its server. From OPENING, OPEN or LOST. */
void session_cancel(struct core *core, struct session *session);

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

/* Called by core_seal: the open batch has no changes, so its events leave without a number. */
void sessions_events_leave(struct core *core);

/* Called by core_seal: events sent in an earlier batch have left, so they are owed no more. */
void sessions_events_left(struct core *core);

/* A session of that lobby on that server that is not ENDED / that is; NULL when there is none. */
struct session *session_here(const struct core *core, const struct server *server, int32_t lobby);
struct session *session_ended_here(const struct core *core, const struct server *server,
                                   int32_t lobby);
bool session_is_live(const struct session *session);

int session_load_row(struct core *core, const struct row_session *row);
void session_loaded(struct core *core, struct session *session);
void session_unlink(struct core *core, struct session *session);
void session_deadline(struct core *core, struct session *session, enum deadline_kind kind);

/* ── seat ──────────────────────────────────────────────────────────────────────────────────── */

enum seat_state { SEAT_TAKEN = 1, SEAT_LEFT = 2 };

struct seat {
    struct object object;
    struct row_seat row;
    struct session *session;
    struct link in_session;
};

void seat_validate(struct core *core, struct server *server,
                   const struct chat_sv_validate_token *validate);
bool seat_is_taken(const struct core *core, const struct server *server,
                   const struct chat_sv_validate_token *validate);
void seat_left(struct core *core, struct server *server, int32_t lobby, int32_t account);

/* The match is over: nobody sits there any more. */
void seats_release(struct core *core, struct session *session);
int seat_load_row(struct core *core, const struct row_seat *row);
void seat_unlink(struct core *core, struct seat *seat);

/* ── ticket ────────────────────────────────────────────────────────────────────────────────── */

/*   OPEN ──▶ DONE ──▶ ENDED       a final ticket is kept for keep_ms, then deleted
 *    │  │      │
 *    │  └──────┴──▶ CANCELLED
 *    └──▶ FAILED
 */
enum ticket_state {
    TICKET_OPEN = 1,
    TICKET_DONE,
    TICKET_FAILED,
    TICKET_CANCELLED,
    TICKET_ENDED,
    TICKET_STATES
};

enum { TICKET_TRIES = 4 }; /* one and three retries */

enum try_outcome {
    TRY_PENDING,
    TRY_ACKNOWLEDGED,
    TRY_REFUSED,
    TRY_TIMED_OUT,
    TRY_DROPPED,
    TRY_NOT_READY, /* acknowledged, then never READY where that is required */
    TRY_GIVEN_UP,  /* cancelled, or the ticket ran out of time */
};

/* One server tried, and why it looked best. */
struct attempt {
    int32_t server;
    int8_t outcome;
    float score;
    int32_t load;
    int32_t max;
    float cpu_percent;
    float memory_percent;
};

struct ticket {
    struct object object;
    struct row_ticket row;
    struct chat_server *chat;
    conn_id asker; /* who waits for the answer; 0 = nobody */
    int8_t n_tries;
    struct attempt tries[TICKET_TRIES];
    int32_t passed[PASSED_REASONS]; /* at the last choice: the others, by reason */
    struct deadline deadline;
    struct link in_finished;
};

void ticket_allocate(struct core *core, struct chat_server *chat, conn_id conn,
                     const struct chat_mgr_server_allocation_request *request);
void ticket_cancel(struct core *core, struct chat_server *chat, conn_id conn, int32_t lobby);

/* The key's answer is stored and will not change by being asked again / is a final one. */
bool ticket_is_settled(const struct core *core, const struct chat_server *chat, int32_t lobby);
bool ticket_is_final(const struct core *core, const struct chat_server *chat, int32_t lobby);

/* Its session was acknowledged: answer. */
void ticket_done(struct core *core, struct ticket *ticket);

/* Its session failed: the next best, or failure. */
void ticket_next(struct core *core, struct ticket *ticket, int outcome);

/* Keeps to the limit of finished tickets. At the end of a step, when nobody walks a list. */
void tickets_forget_oldest(struct core *core);

/* Its match is over. */
void ticket_ended(struct core *core, struct ticket *ticket);

/* Writes the tries into the row, for the seal. */
void ticket_keep_tries(struct ticket *ticket);

struct ticket *ticket_find(const struct core *core, int64_t id);
struct ticket *ticket_load_row(struct core *core, const struct row_ticket *row);
int ticket_loaded(struct core *core, struct ticket *ticket);
void ticket_unlink(struct core *core, struct ticket *ticket);
void ticket_deadline(struct core *core, struct ticket *ticket);
void ticket_refuse(struct core *core, conn_id conn, int32_t lobby, int err);

/* ── placement ─────────────────────────────────────────────────────────────────────────────── */

/* The best server for the ticket among those not tried yet, or NULL. */
struct server *placement_choose(struct core *core, struct ticket *ticket);

/* Order of the heap of candidates: the better server is less. */
bool placement_better(const struct heap_node *a, const struct heap_node *b);
double placement_score(const struct server *server);

/* ── token and enrolment ───────────────────────────────────────────────────────────────────── */

enum { TOKEN_SIZE = 96 };

/* The match token of a session, derived from the secret; always the same for the same session. */
struct str token_of(const struct core *core, const struct row_session *session,
                    char dst[TOKEN_SIZE]);

/* Takes the same time whatever differs. session may be NULL: then false, in the same time. */
bool token_matches(const struct core *core, const struct row_session *session, struct str token);

/* The enrolment of a token for that role, or NULL. */
const struct enrolment *enrolment_find(const struct core *core, struct str token,
                                       enum enrolment_role role, struct enrolment *scratch);

/* ── core ──────────────────────────────────────────────────────────────────────────────────── */

enum peer_role { PEER_SERVER = 1, PEER_CHAT };

/* Who speaks on a connection. */
struct peer {
    enum peer_role role;
    bool challenging; /* its hello waits for the old connection's PONG */
    struct server *server;
    struct chat_server *chat;
};

struct core {
    struct core_config config;
    uint8_t secret[CORE_SECRET_SIZE];

    struct instant now;
    int64_t asleep_ms;    /* how much of core time this process did not run */
    int64_t last_tick_ms; /* core time of the last tick; 0 = none yet */
    bool read_only;
    int64_t seq;       /* of the last sealed batch with changes */
    struct batch *out; /* the open batch, during core_step */
    struct list dirty;

    struct row_counter counter_rows[ROW_KINDS];
    struct object counters[ROW_KINDS];
    int64_t next_id[ROW_KINDS];

    struct map staged; /* rows being loaded */
    struct map peers;  /* conn → struct peer */
    struct map fleets;
    struct map servers;
    struct map servers_by_endpoint;
    struct map chat_servers;
    struct map chat_servers_by_name;
    struct map sessions;
    struct map sessions_here;
    struct map sessions_by_lobby;
    struct map seats;
    struct map seats_by_player; /* (fleet, account) → seat that is TAKEN */
    struct map tickets;
    struct map tickets_by_key; /* (chat server, lobby) → its newest ticket */
    struct list finished;      /* final tickets, oldest first */
    struct list events_sent;   /* sessions whose events left with an earlier batch */
    int32_t tickets_open;
    int32_t tickets_finished;

    struct heap deadlines[DEADLINE_CLOCKS];
    int64_t spoofed; /* frames that named somebody else's id */
    char check_text[200];
};

struct peer *peer_find(const struct core *core, conn_id conn);
void peer_bind(struct core *core, conn_id conn, struct peer peer);
void peer_unbind(struct core *core, conn_id conn);

struct fleet *fleet_find(const struct core *core, int64_t id);
struct fleet *fleet_named(struct core *core, const char *name); /* made when absent */
struct fleet *fleet_load_row(struct core *core, const struct row_fleet *row);
void fleet_free(struct fleet *fleet);
bool region_configured(const struct core *core, int8_t code);

/* Effects of the running step. */
struct effect *effect_add(struct core *core, enum effect_kind kind, conn_id conn);
struct effect *note_add(struct core *core, enum note note);
void effect_close(struct core *core, conn_id conn, const char *why);
struct str text_keep(struct core *core, struct str s);

static inline bool is_bit(uint64_t mask, int8_t code)
{
    return code >= 0 && code < REGION_CODES && (mask >> code & 1);
}

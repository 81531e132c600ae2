/* Sessions: one attempt to hold a match on one server. See the diagram in session.h.
 *
 * A session takes its slot when it is made, before anybody is told, and gives it back when its
 * server is known (or bound, by the order of its connection) to have let go. What a state owes its
 * server is sent when the server is there, and again on each new connection: OPENING owes
 * ALLOCATE_MATCH, CANCELLING owes CANCEL. Servers treat (lobby, token) as idempotent. */
#include "base/plant.h"
#include "core/state.h"

/* Which of the server's counters a session is in; see recount(). */
enum { COUNT_HELD = 1, COUNT_LIVE = 2, COUNT_OPEN = 4 };

static const uint8_t allowed_moves[SESSION_STATES] = {
    [0] = 1 << SESSION_OPENING,
    [SESSION_OPENING] = 1 << SESSION_OPEN | 1 << SESSION_CANCELLING,
    [SESSION_OPEN] = 1 << SESSION_LOST | 1 << SESSION_CANCELLING | 1 << SESSION_ENDED,
    [SESSION_LOST] = 1 << SESSION_OPEN | 1 << SESSION_CANCELLING | 1 << SESSION_ENDED,
    [SESSION_CANCELLING] =
        1 << SESSION_ENDED | (PLANTED(late_ack_accepted) ? 1 << SESSION_OPEN : 0),
    [SESSION_ENDED] = 0,
};

bool session_is_live(const struct session *session)
{
    int8_t state = session->row.state;
    return state == SESSION_OPENING || state == SESSION_OPEN || state == SESSION_LOST;
}

bool session_holds_slot(const struct core *core, const struct session *session)
{
    bool letting_go = session->row.state == SESSION_CANCELLING;
    bool told = session->told && !restore_is_after(core, session->row.created_core_ms);
    return session_is_live(session) || (letting_go && !told);
}

/* A cancelled session holds its slot until CANCEL was given to a live connection: whatever we send
 * afterwards on that connection arrives after it. */
static int8_t counters_of(const struct core *core, const struct session *session)
{
    switch ((enum session_state)session->row.state) {
    case SESSION_OPENING:
        return PLANTED(slot_after_ack) ? 0 : COUNT_HELD | COUNT_LIVE;
    case SESSION_OPEN:
        return COUNT_HELD | COUNT_LIVE | COUNT_OPEN;
    case SESSION_LOST:
        return COUNT_HELD | COUNT_LIVE;
    case SESSION_CANCELLING:
        return session_holds_slot(core, session) ? COUNT_HELD : 0;
    case SESSION_ENDED:
    case SESSION_STATES:
        break;
    }
    return 0;
}

static int change_of(int8_t before, int8_t after, int8_t bit)
{
    return ((after & bit) != 0) - ((before & bit) != 0);
}

/* Brings the server's counters and its place up to date with the session's state. */
static void recount_to(struct core *core, struct session *session, int8_t after)
{
    struct server *server = session->server;
    int8_t before = session->counted;
    if (before == after)
        return;
    server->held += change_of(before, after, COUNT_HELD);
    server->live += change_of(before, after, COUNT_LIVE);
    server->open += change_of(before, after, COUNT_OPEN);
    session->counted = after;
    if (change_of(before, after, COUNT_HELD) != 0)
        server->idle_since_core_ms = core->now.core_ms;
    server_refresh(core, server);
}

static void recount(struct core *core, struct session *session)
{
    recount_to(core, session, counters_of(core, session));
}

/* Which chain the session is in. Those that are not over are looked up several times each, and a
 * lobby's are few and were touched a moment ago; those that are over are many and hardly asked for.
 */
static struct map *chain_of(struct core *core, const struct session *session, uint64_t *ret_key)
{
    int32_t lobby = session->row.lobby;
    bool over = session->row.state == SESSION_ENDED;
    *ret_key = over ? map_pair((int32_t)session->server->row.id, lobby) : (uint32_t)lobby;
    return over ? &core->sessions_over : &core->sessions_by_lobby;
}

static void enter_chain(struct core *core, struct session *session)
{
    uint64_t key;
    struct map *chain = chain_of(core, session, &key);
    chain_add(chain, key, &session->in_chain);
}

static void leave_chain(struct core *core, struct session *session)
{
    uint64_t key;
    struct map *chain = chain_of(core, session, &key);
    chain_remove(chain, key, &session->in_chain);
    server_unblocked(core, session->server);
}

static void move(struct core *core, struct session *session, enum session_state state)
{
    assert(allowed_moves[session->row.state] & 1 << state);
    if (state == SESSION_ENDED)
        leave_chain(core, session);
    session->row.state = (int8_t)state;
    if (state == SESSION_ENDED)
        enter_chain(core, session);
    object_touch(core, &session->object);
}

static void set_deadline(struct core *core, struct session *session, int64_t after_ms)
{
    session->row.deadline_core_ms = core->now.core_ms + after_ms;
    deadline_set(core, &session->deadline, DEADLINE_CORE, session->row.deadline_core_ms);
}

static void set_reply(struct core *core, struct session *session, int64_t after_ms)
{
    deadline_set(core, &session->reply, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + after_ms);
}

static struct session *link_in(struct core *core, const struct row_session *row,
                               struct server *server, struct chat_server *chat)
{
    struct session *session = object_alloc(core, ROW_session);
    session->row = *row;
    session->server = server;
    session->chat = chat;
    session->deadline.kind = DEADLINE_SESSION;
    session->reply.kind = DEADLINE_SESSION_REPLY;
    list_init(&session->seats);
    list_append(&server->sessions, &session->on_server);
    object_enter(core, &session->object);
    enter_chain(core, session);
    if (row->events_owed)
        list_append(&chat->owed, &session->in_owed);
    return session;
}

static void tell_server(struct core *core, struct session *session, enum effect_kind kind)
{
    struct server *server = session->server;
    char token[TOKEN_SIZE];
    struct effect *e = effect_add(core, kind, server->conn);
    e->lobby = session->row.lobby;
    e->game_type = session->row.game_type;
    e->game_mode = session->row.game_mode;
    e->token = text_keep(core, token_of(core, &session->row, token));
    session->told = server->conn;
    if (kind != EFFECT_ALLOCATE)
        return;
    session->unanswered++;
    if (!session->told_us)
        session->told_us = core->at_us;
}

void session_settle(struct core *core, struct session *session)
{
    const struct core_timeouts *t = &core->config.timeouts;
    if (session->row.state == SESSION_OPENING) {
        tell_server(core, session, EFFECT_ALLOCATE);
        set_reply(core, session, session->row.acknowledged ? t->ready_ms : t->ack_ms);
    } else if (session->row.state == SESSION_CANCELLING) {
        tell_server(core, session, EFFECT_CANCEL);
        set_reply(core, session, t->cancel_repeat_ms);
        recount(core, session);
    }
}

struct session *session_new(struct core *core, struct ticket *ticket, struct server *server)
{
    struct row_session row = {
        .id = object_new_id(core, ROW_session),
        .ticket = ticket->row.id,
        .server = (int32_t)server->row.id,
        .chat_server = ticket->row.chat_server,
        .fleet = ticket->row.fleet,
        .lobby = ticket->row.lobby,
        .game_type = ticket->row.game_type,
        .game_mode = ticket->row.game_mode,
        .player_count = ticket->row.player_count,
        .token_unix_s = core->now.wall_ms / 1000,
        .created_core_ms = core->now.core_ms,
    };
    struct session *session = link_in(core, &row, server, ticket->chat);
    move(core, session, SESSION_OPENING);
    /* The ticket's deadline ends it at the latest; a second later is for the order of the two. */
    session->row.deadline_core_ms = ticket->row.deadline_core_ms + 1000;
    deadline_set(core, &session->deadline, DEADLINE_CORE, session->row.deadline_core_ms);
    recount(core, session);
    session_settle(core, session);
    return session;
}

/* A line about this match, with all that identifies it. */
static struct effect *session_note(struct core *core, const struct session *session, enum note kind)
{
    struct str chat = text_keep(core, str_of(session->chat->row.name));
    struct effect *note = note_add(core, kind);
    note->session = session->row.id;
    note->ticket = session->row.ticket;
    note->lobby = session->row.lobby;
    note->server_id = session->row.server;
    note->chat = chat;
    note->fleet_id = session->row.fleet;
    note->region_code = session->server->row.region;
    note->reason = session->row.end_reason;
    return note;
}

/* ── events for the chat server ────────────────────────────────────────────────────────────── */

/* Order in which events that gathered while a chat server was away are told: of LOST and BACK the
 * one that is true now comes last. */
enum { EVENTS_AT_ONCE = 4 };
static const enum match_event when_there[EVENTS_AT_ONCE] = {MATCH_READY, MATCH_LOST, MATCH_BACK,
                                                            MATCH_ENDED};
static const enum match_event when_lost[EVENTS_AT_ONCE] = {MATCH_READY, MATCH_BACK, MATCH_LOST,
                                                           MATCH_ENDED};

static struct str event_text(const struct session *session, enum match_event event)
{
    if (event == MATCH_READY)
        return STR("Server ready");
    if (event == MATCH_LOST)
        return STR("Server lost");
    if (event == MATCH_BACK)
        return STR("Server back");
    switch ((enum end_reason)session->row.end_reason) {
    case END_SERVER_LOST:
        return STR("Server lost");
    case END_NOT_LISTED:
    case END_NOT_REPORTED:
        return STR("Server no longer holds the match");
    case END_TOO_LONG:
        return STR("Match too long");
    case END_BY_OPERATOR:
        return STR("Ended by an operator");
    case END_NONE:
    case END_MATCH_ENDED:
    case END_SPAWN_FAILED:
    case END_SPAWN_TIMEOUT:
    case END_EXITED:
    case END_EMPTY:
    case END_GIVEN_UP:
    case END_HOST_LOST:
    case END_HUNG:
    case END_REASONS:
        break;
    }
    return STR("Match ended");
}

static int8_t event_bit(enum match_event event)
{
    return (int8_t)(1 << event);
}

void session_send_events(struct core *core, struct session *session)
{
    int8_t unsent = (int8_t)(session->row.events_owed & ~session->events_sent);
    if (!session->chat->conn || !unsent)
        return;
    const enum match_event *order = session->row.state == SESSION_LOST ? when_lost : when_there;
    for (size_t i = 0; i < EVENTS_AT_ONCE; i++) {
        if (!(unsent & event_bit(order[i])))
            continue;
        struct effect *e = effect_add(core, EFFECT_MATCH_EVENT, session->chat->conn);
        e->lobby = session->row.lobby;
        e->event = (int8_t)order[i];
        e->text = event_text(session, order[i]);
    }
    session->events_sent = session->row.events_owed;
    session->events_tried = session->row.events_owed;
    session->events_batch = core->seq + 1;
    if (!link_in_list(&session->in_sent))
        list_append(&core->events_sent, &session->in_sent);
}

void session_events_unsent(struct session *session)
{
    session->events_sent = 0;
    list_remove(&session->in_sent);
}

static void set_owed(struct core *core, struct session *session, int owed)
{
    session->row.events_owed = (int8_t)owed;
    session->events_sent = (int8_t)(session->events_sent & owed);
    session->events_tried = (int8_t)(session->events_tried & owed);
    object_touch(core, &session->object);
    if (!owed) {
        list_remove(&session->in_owed);
        list_remove(&session->in_sent);
    } else if (!link_in_list(&session->in_owed)) {
        list_append(&session->chat->owed, &session->in_owed);
    }
}

/* Owed events are part of the row until they have left with a batch, so a crash in between repeats
 * them instead of losing them. LOST and BACK that nobody can have heard of cancel each other out.
 */
static void owe_event(struct core *core, struct session *session, enum match_event event)
{
    int owed = session->row.events_owed;
    int unheard = owed & ~session->events_tried;
    if (session->chat->own) {
        lobby_match_event(core, session, event, event_text(session, event));
        return;
    }
    enum match_event opposite = event == MATCH_LOST ? MATCH_BACK : MATCH_LOST;
    if ((event == MATCH_LOST || event == MATCH_BACK) && unheard & event_bit(opposite)) {
        set_owed(core, session, owed & ~event_bit(opposite));
        return;
    }
    session->events_sent = (int8_t)(session->events_sent & ~event_bit(event));
    set_owed(core, session, owed | event_bit(event));
    session_send_events(core, session);
}

void sessions_events_leave(struct core *core)
{
    LIST_EACH(&core->events_sent, session, struct session, in_sent)
    {
        session->events_batch = core->seq;
    }
}

void sessions_events_left(struct core *core)
{
    LIST_EACH(&core->events_sent, session, struct session, in_sent)
    {
        if (session->events_batch > core->left_seq)
            continue;
        list_remove(&session->in_sent);
        set_owed(core, session, session->row.events_owed & ~session->events_sent);
    }
}

/* ── moves ─────────────────────────────────────────────────────────────────────────────────── */

static void open_it(struct core *core, struct session *session)
{
    move(core, session, SESSION_OPEN);
    session->row.acknowledged = 1;
    session->row.opened_core_ms = core->now.core_ms;
    session->opened_us = core->at_us;
    deadline_clear(core, &session->reply);
    set_deadline(core, session, core->config.timeouts.session_ms);
    recount(core, session);
    server_succeeded(core, session->server);
    struct ticket *ticket = ticket_find(core, session->row.ticket);
    if (ticket)
        ticket_done(core, ticket);
}

void session_cancel(struct core *core, struct session *session)
{
    move(core, session, SESSION_CANCELLING);
    seats_release(core, session);
    if (!session->row.end_reason) /* whoever gave it up needs no news of it */
        set_owed(core, session, 0);
    session->told = 0;
    set_deadline(core, session, core->config.timeouts.lost_ms);
    set_reply(core, session, core->config.timeouts.cancel_repeat_ms);
    recount(core, session);
    if (session->server->conn && session->server->listed)
        session_settle(core, session);
}

static const char *outcome_text(int outcome)
{
    switch (outcome) {
    case TRY_REFUSED:
        return "refused a match";
    case TRY_TIMED_OUT:
        return "did not acknowledge a match";
    case TRY_DROPPED:
        return "dropped while it was asked";
    default:
        return "was not ready in time";
    }
}

void session_failed(struct core *core, struct session *session, int outcome)
{
    struct ticket *ticket = ticket_find(core, session->row.ticket);
    session_cancel(core, session);
    server_failed(core, session->server, outcome_text(outcome));
    if (ticket)
        ticket_next(core, ticket, outcome);
}

void session_lose(struct core *core, struct session *session)
{
    move(core, session, SESSION_LOST);
    set_deadline(core, session, core->config.timeouts.lost_ms);
    recount(core, session);
    (void)session_note(core, session, NOTE_MATCH_LOST);
    owe_event(core, session, MATCH_LOST);
}

void session_back(struct core *core, struct session *session)
{
    move(core, session, SESSION_OPEN);
    int64_t end_ms = session->row.opened_core_ms + core->config.timeouts.session_ms;
    int64_t left_ms = end_ms - core->now.core_ms;
    set_deadline(core, session, left_ms > 0 ? left_ms : 0);
    recount(core, session);
    (void)session_note(core, session, NOTE_MATCH_BACK);
    owe_event(core, session, MATCH_BACK);
}

void session_end(struct core *core, struct session *session, enum end_reason reason)
{
    move(core, session, SESSION_ENDED);
    session->row.end_reason = (int8_t)reason;
    deadline_clear(core, &session->reply);
    set_deadline(core, session, core->config.timeouts.keep_ms);
    seats_release(core, session);
    recount(core, session);
    struct effect *note = session_note(core, session, NOTE_MATCH_ENDED);
    note->text = event_text(session, MATCH_ENDED);
    owe_event(core, session, MATCH_ENDED);
    struct ticket *ticket = ticket_find(core, session->row.ticket);
    if (ticket)
        ticket_ended(core, ticket);
}

void session_unlink(struct core *core, struct session *session)
{
    while (!list_empty(&session->seats))
        seat_unlink(core, container_of(list_first(&session->seats), struct seat, in_session));
    recount_to(core, session, 0);
    deadline_clear(core, &session->deadline);
    deadline_clear(core, &session->reply);
    list_remove(&session->on_server);
    list_remove(&session->in_owed);
    list_remove(&session->in_sent);
    leave_chain(core, session);
}

void session_delete(struct core *core, struct session *session)
{
    assert(!session_is_live(session) && list_empty(&session->seats));
    struct server *server = session->server;
    session_unlink(core, session);
    object_delete(core, &session->object);
    server_maybe_forget(core, server);
}

void session_let_go(struct core *core, struct session *session)
{
    if (!session->row.events_owed) {
        session_delete(core, session);
        return;
    }
    move(core, session, SESSION_ENDED);
    deadline_clear(core, &session->reply);
    set_deadline(core, session, core->config.timeouts.keep_ms);
    recount(core, session);
}

void session_untold(struct core *core, struct session *session)
{
    session->told = 0;
    session->unanswered = 0;
    recount(core, session);
}

/* ── what servers say ──────────────────────────────────────────────────────────────────────── */

struct session *session_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_session, id);
}

/* The next session of a lobby's chain that is on the server: start with NULL. */
static struct session *next_here(const struct core *core, const struct server *server,
                                 int32_t lobby, const struct session *after)
{
    struct chain_link *n =
        after ? after->in_chain.next : chain_first(&core->sessions_by_lobby, (uint32_t)lobby);
    for (; n; n = n->next) {
        struct session *session = container_of(n, struct session, in_chain);
        if (session->server == server)
            return session;
    }
    return NULL;
}

struct session *session_here(const struct core *core, const struct server *server, int32_t lobby)
{
    return next_here(core, server, lobby, NULL);
}

/* A cancelled match of the same owner does not, when its server had acknowledged it (so no other
 * ACK of it is under way) and was told to let go on this connection (so that arrives first). */
bool session_blocks(const struct core *core, const struct server *server, int32_t lobby,
                    const struct chat_server *owner)
{
    const struct session *session = NULL;
    while ((session = next_here(core, server, lobby, session))) {
        bool letting_go = session->row.state == SESSION_CANCELLING && session->chat == owner &&
                          session->unanswered == 0 && session->told == server->conn &&
                          !session_holds_slot(core, session);
        if (!letting_go)
            return true;
    }
    return false;
}

struct session *session_ended_here(const struct core *core, const struct server *server,
                                   int32_t lobby)
{
    struct chain_link *n =
        chain_first(&core->sessions_over, map_pair((int32_t)server->row.id, lobby));
    return n ? container_of(n, struct session, in_chain) : NULL;
}

static void late_ack(struct core *core, struct server *server, struct session *session,
                     int32_t lobby)
{
    struct effect *note = note_add(core, NOTE_LATE_ACK);
    note->server_id = (int32_t)server->row.id;
    note->fleet_id = server->row.fleet;
    note->region_code = server->row.region;
    note->lobby = lobby;
    if (session) {
        session_settle(core, session);
        return;
    }
    /* Nothing is known of that match any more, so no token can be named: an empty one means
     * whatever you hold under that id. */
    struct effect *cancel = effect_add(core, EFFECT_CANCEL, server->conn);
    cancel->lobby = lobby;
}

/* A no proves that nothing is held there, so beyond the CANCEL that goes out with it nothing is
 * owed and the lobby id is free. */
static void refused(struct core *core, struct session *session)
{
    session_failed(core, session, TRY_REFUSED);
    session_let_go(core, session);
}

static bool waits_for_ready(const struct session *session)
{
    const struct fleet_config *config = session->chat->fleet->config;
    if (session->chat->own)
        return !config || config->ready_lobbies || config->ready_required;
    return config && config->ready_required;
}

void session_ack(struct core *core, struct server *server, bool success, int32_t lobby)
{
    struct session *session = session_here(core, server, lobby);
    if (session && session->unanswered > 0) {
        session->unanswered--;
        server_unblocked(core, server);
    }
    if (!session || session->row.state == SESSION_CANCELLING) {
        if (PLANTED(late_ack_accepted) && session && success)
            open_it(core, session);
        else if (success)
            late_ack(core, server, session, lobby);
        return;
    }
    /* Only what was asked on this very connection can be acknowledged on it. */
    if (session->row.state != SESSION_OPENING || session->told != server->conn)
        return;
    if (!success) {
        refused(core, session);
        return;
    }
    if (!waits_for_ready(session)) {
        open_it(core, session);
    } else if (!session->row.acknowledged) {
        session->row.acknowledged = 1;
        object_touch(core, &session->object);
        set_reply(core, session, core->config.timeouts.ready_ms);
    }
}

/* The one being cancelled that was told so first: a newer one of the same id may stand before it.
 */
static struct session *cancelling_here(const struct core *core, const struct server *server,
                                       int32_t lobby)
{
    struct session *oldest = NULL;
    struct session *session = NULL;
    while ((session = next_here(core, server, lobby, session)))
        if (session->row.state == SESSION_CANCELLING && session->told == server->conn)
            oldest = session;
    return oldest;
}

void session_cancel_ack(struct core *core, struct server *server, int32_t lobby)
{
    struct session *session = cancelling_here(core, server, lobby);
    if (!session)
        return;
    /* What its server holds under that id may be a match of the lost time, with another token: then
     * it holds it still. Its list will say. */
    bool in_doubt = restore_is_after(core, session->row.created_core_ms);
    if (!in_doubt && server->reported > 0)
        server->reported--; /* newer evidence than its last heartbeat */
    session_let_go(core, session);
    if (in_doubt)
        server_doubt(core, server, lobby);
    server_refresh(core, server);
}

/* A READY for a match that is not here: is it somewhere else, and does the peer know its token? */
static int ready_elsewhere(const struct core *core, const struct chat_sv_ready_for_match *ready)
{
    int err = ERR_MATCH_NOT_FOUND;
    struct chain_link *n = chain_first(&core->sessions_by_lobby, (uint32_t)ready->lobby);
    for (; n; n = n->next) {
        const struct session *session = container_of(n, struct session, in_chain);
        if (token_matches(core, &session->row, ready->match_token))
            return ERR_NOT_ALLOCATED;
        err = ERR_INVALID_MATCH_TOKEN;
    }
    return err;
}

static int ready_here(struct core *core, struct server *server,
                      const struct chat_sv_ready_for_match *ready)
{
    struct session *session = session_here(core, server, ready->lobby);
    if (!session)
        return ready_elsewhere(core, ready);
    if (!token_matches(core, &session->row, ready->match_token))
        return ERR_INVALID_MATCH_TOKEN;
    if (session->row.state == SESSION_CANCELLING) {
        session_settle(core, session);
        return ERR_NOT_ALLOCATED;
    }
    if (session->row.state == SESSION_OPENING)
        open_it(core, session);
    if (!session->row.ready) {
        session->row.ready = 1;
        object_touch(core, &session->object);
        session_note(core, session, NOTE_MATCH_READY)->since_us = session->opened_us;
        owe_event(core, session, MATCH_READY);
    }
    return 0;
}

void session_ready(struct core *core, struct server *server,
                   const struct chat_sv_ready_for_match *ready)
{
    int err = ready_here(core, server, ready);
    if (err)
        note_refused(core, server->conn, err)->lobby = ready->lobby;
    struct effect *e = effect_add(core, EFFECT_READY, server->conn);
    e->err = err;
    e->lobby = ready->lobby;
}

bool session_was_ready(const struct core *core, const struct server *server, int32_t lobby)
{
    const struct session *session = session_here(core, server, lobby);
    return session && session->row.state == SESSION_OPEN && session->row.ready;
}

void session_match_ended(struct core *core, struct server *server, int32_t lobby)
{
    struct session *session = session_here(core, server, lobby);
    bool running =
        session && (session->row.state == SESSION_OPEN || session->row.state == SESSION_LOST);
    int err = 0;
    if (running) {
        if (server->reported > 0)
            server->reported--;                      /* newer evidence than its last heartbeat */
        session_end(core, session, END_MATCH_ENDED); /* which refreshes the server */
    } else {
        server_stranger_ended(core, server, lobby);
        err = session_ended_here(core, server, lobby) ? 0 : ERR_MATCH_NOT_FOUND;
        if (err)
            note_refused(core, server->conn, err)->lobby = lobby;
    }
    struct effect *e = effect_add(core, EFFECT_MATCH_ENDED, server->conn);
    e->err = err;
    e->lobby = lobby;
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

static void reply_missing(struct core *core, struct session *session)
{
    if (session->row.state == SESSION_OPENING) {
        session_failed(core, session, session->row.acknowledged ? TRY_NOT_READY : TRY_TIMED_OUT);
        return;
    }
    if (session->row.state != SESSION_CANCELLING)
        return;
    if (session->server->conn && session->server->listed)
        session_settle(core, session);
    else
        set_reply(core, session, core->config.timeouts.cancel_repeat_ms);
}

void session_stop(struct core *core, struct session *session, enum end_reason reason)
{
    struct ticket *ticket = ticket_find(core, session->row.ticket);
    session->row.end_reason = (int8_t)reason;
    session_note(core, session, NOTE_MATCH_ENDED)->text = event_text(session, MATCH_ENDED);
    owe_event(core, session, MATCH_ENDED);
    if (ticket)
        ticket_ended(core, ticket);
    session_cancel(core, session);
}

static void deadline_over(struct core *core, struct session *session)
{
    switch ((enum session_state)session->row.state) {
    case SESSION_OPENING:
        session_failed(core, session, TRY_TIMED_OUT);
        break;
    case SESSION_OPEN:
        session_stop(core, session, END_TOO_LONG);
        break;
    case SESSION_LOST:
        session_end(core, session, END_SERVER_LOST);
        break;
    case SESSION_CANCELLING:
        (void)session_note(core, session, NOTE_CANCEL_GIVEN_UP);
        session_let_go(core, session);
        break;
    case SESSION_ENDED:
        session_delete(core, session);
        break;
    case SESSION_STATES:
        break;
    }
}

void session_deadline(struct core *core, struct session *session, enum deadline_kind kind)
{
    if (kind == DEADLINE_SESSION_REPLY)
        reply_missing(core, session);
    else
        deadline_over(core, session);
}

/* ── loading ───────────────────────────────────────────────────────────────────────────────── */

int session_load_row(struct core *core, const struct row_session *row)
{
    struct server *server = map_get(&core->servers, (uint64_t)row->server);
    struct chat_server *chat = map_get(&core->chat_servers, (uint64_t)row->chat_server);
    if (!server || !chat || row->state <= 0 || row->state >= SESSION_STATES)
        return ERR_FORMAT;
    struct row_session loaded = *row;
    if (PLANTED(cancel_forgotten) && row->state == SESSION_CANCELLING)
        loaded.state = SESSION_ENDED;
    struct session *session = link_in(core, &loaded, server, chat);
    session->object.stored = true;
    session->events_tried = row->events_owed; /* nobody knows whether they left */
    return 0;
}

void session_give_time(struct core *core, struct session *session)
{
    int64_t soonest_ms = core->now.core_ms + core->config.timeouts.heartbeat_ms;
    bool waits = session->row.state == SESSION_LOST || session->row.state == SESSION_CANCELLING;
    if (waits && deadline_at_ms(&session->deadline) < soonest_ms)
        deadline_set(core, &session->deadline, DEADLINE_CORE, soonest_ms);
}

int session_loaded(struct core *core, struct session *session)
{
    const struct ticket *ticket = ticket_find(core, session->row.ticket);
    bool wanted = ticket && ticket->row.session == session->row.id &&
                  (ticket->row.state == TICKET_OPEN || ticket->row.state == TICKET_DONE);
    if (session_is_live(session) && !wanted)
        return ERR_FORMAT; /* I4 */
    recount(core, session);
    deadline_set(core, &session->deadline, DEADLINE_CORE, session->row.deadline_core_ms);
    session_give_time(core, session);
    /* The server gets the usual time to come back for what it is owed. */
    if (session->row.state == SESSION_OPENING)
        set_reply(core, session, core->config.timeouts.ack_ms);
    else if (session->row.state == SESSION_CANCELLING)
        set_reply(core, session, core->config.timeouts.cancel_repeat_ms);
    return 0;
}

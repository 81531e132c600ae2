/* Tickets: one request to be placed. Its key is (chat server, lobby): an open or succeeded key
 * gives the same answer however often it is asked; a failed or cancelled one opens a new ticket. */
#include "base/plant.h"
#include "core/state.h"
#include "wire/put.h"

#include <string.h>

enum { PLAYERS_MAX = 100 };

/* A stored ticket holds its error as a number and its tries as bytes: both are part of the format.
 */
_Static_assert(ERR_NO_SERVERS == -22 && ERR_INVALID_LOBBY == -24 && ERR_ALLOCATION_TIMEOUT == -25 &&
                   ERR_TICKET_CANCELLED == -27,
               "append to errors.def, or raise ROW_FORMAT");
_Static_assert(PASSED_REASONS == 7 && TICKET_TRIES == 4 && ROW_FORMAT == 7,
               "a change of the tries is a change of ROW_FORMAT");

static const uint8_t allowed_moves[TICKET_STATES] = {
    [0] = 1 << TICKET_OPEN,
    [TICKET_OPEN] = 1 << TICKET_DONE | 1 << TICKET_FAILED | 1 << TICKET_CANCELLED,
    [TICKET_DONE] = 1 << TICKET_CANCELLED | 1 << TICKET_ENDED |
                    (PLANTED(late_ack_accepted) ? 1 << TICKET_DONE : 0),
    [TICKET_FAILED] = PLANTED(late_ack_accepted) ? 1 << TICKET_DONE : 0,
    [TICKET_CANCELLED] = PLANTED(late_ack_accepted) ? 1 << TICKET_DONE : 0,
    [TICKET_ENDED] = PLANTED(late_ack_accepted) ? 1 << TICKET_DONE : 0,
};

static uint64_t key_of(const struct ticket *ticket)
{
    return map_pair(ticket->row.chat_server, ticket->row.lobby);
}

static bool is_final(const struct ticket *ticket)
{
    return ticket->row.state >= TICKET_FAILED;
}

struct ticket *ticket_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_ticket, id);
}

/* ── the tries, as they are kept for `why` ─────────────────────────────────────────────────── */

void ticket_keep_tries(struct ticket *ticket)
{
    struct buf b = {.data = ticket->row.tries, .cap = sizeof(ticket->row.tries)};
    put_u8(&b, (uint8_t)ticket->n_tries);
    for (int i = 0; i < ticket->n_tries; i++) {
        const struct attempt *t = &ticket->tries[i];
        put_i32(&b, t->server);
        put_i8(&b, t->outcome);
        put_f32(&b, t->score);
        put_i32(&b, t->load);
        put_i32(&b, t->max);
        put_f32(&b, t->cpu_percent);
        put_f32(&b, t->memory_percent);
    }
    for (int r = 0; r < PASSED_REASONS; r++)
        put_i32(&b, ticket->passed[r]);
    assert(b.data == ticket->row.tries); /* it fits, so the buffer never had to grow */
    ticket->row.tries_len = (uint16_t)b.len;
}

int ticket_restore_tries(struct ticket *ticket)
{
    struct cursor c = cursor_of(ticket->row.tries, ticket->row.tries_len);
    if (ticket->row.tries_len == 0)
        return 0;
    ticket->n_tries = cursor_i8(&c);
    if (ticket->n_tries < 0 || ticket->n_tries > TICKET_TRIES)
        return ERR_FORMAT;
    for (int i = 0; i < ticket->n_tries; i++) {
        struct attempt *t = &ticket->tries[i];
        t->server = cursor_i32(&c);
        t->outcome = cursor_i8(&c);
        t->score = cursor_f32(&c, -1e9F, 1e9F);
        t->load = cursor_i32(&c);
        t->max = cursor_i32(&c);
        t->cpu_percent = cursor_f32(&c, 0, 100);
        t->memory_percent = cursor_f32(&c, 0, 100);
    }
    for (int r = 0; r < PASSED_REASONS; r++)
        ticket->passed[r] = cursor_i32(&c);
    cursor_end(&c);
    return cursor_failed(&c) ? ERR_FORMAT : 0;
}

const char *try_outcome_name(int outcome)
{
    static const char *const names[] = {
        [TRY_PENDING] = "pending",   [TRY_ACKNOWLEDGED] = "acknowledged",
        [TRY_REFUSED] = "refused",   [TRY_TIMED_OUT] = "timed_out",
        [TRY_DROPPED] = "dropped",   [TRY_NOT_READY] = "not_ready",
        [TRY_GIVEN_UP] = "given_up",
    };
    bool known = outcome >= 0 && outcome < (int)(sizeof(names) / sizeof(*names));
    return known ? names[outcome] : "?";
}

static void add_try(struct ticket *ticket, const struct server *server)
{
    ticket->tries[ticket->n_tries++] = (struct attempt){
        .server = (int32_t)server->row.id,
        .outcome = TRY_PENDING,
        .score = (float)server->score,
        .load = server_load(server),
        .max = server->row.max_sessions,
        .cpu_percent = server->cpu_percent,
        .memory_percent = server->memory_percent,
    };
}

static void set_outcome(struct ticket *ticket, int outcome)
{
    if (ticket->n_tries > 0)
        ticket->tries[ticket->n_tries - 1].outcome = (int8_t)outcome;
}

/* No match is being opened for it: it waits for a server that has not reported yet. */
static bool is_waiting(const struct ticket *ticket)
{
    return link_in_list(&ticket->in_waiting);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

/* The one region it was asked for, or -1. */
static int8_t region_of(const struct ticket *ticket)
{
    uint64_t mask = (uint64_t)ticket->row.regions;
    bool one = mask != 0 && (mask & (mask - 1)) == 0;
    return one ? (int8_t)__builtin_ctzll(mask) : (int8_t)-1;
}

static struct effect *ticket_note(struct core *core, const struct ticket *ticket, enum note kind)
{
    struct str chat = text_keep(core, str_of(ticket->chat->row.name));
    struct effect *note = note_add(core, kind);
    note->chat = chat;
    note->ticket = ticket->row.id;
    note->lobby = ticket->row.lobby;
    note->session = ticket->row.session;
    note->fleet_id = ticket->row.fleet;
    note->region_code = region_of(ticket);
    note->asked_us = ticket->asked_us;
    return note;
}

void ticket_refuse(struct core *core, conn_id conn, int32_t lobby, int err)
{
    note_refused(core, conn, err)->lobby = lobby;
    struct effect *e = effect_add(core, EFFECT_ALLOCATED, conn);
    e->err = err;
    e->lobby = lobby;
}

static void answer(struct core *core, struct ticket *ticket, conn_id conn)
{
    struct session *session = session_find(core, ticket->row.session);
    if (ticket->row.state != TICKET_DONE || !session) {
        struct effect *refusal = effect_add(core, EFFECT_ALLOCATED, conn);
        refusal->err = ticket->row.error ? ticket->row.error : ERR_INVALID_LOBBY;
        refusal->lobby = ticket->row.lobby;
        return;
    }
    char token[TOKEN_SIZE];
    struct str text = text_keep(core, token_of(core, &session->row, token));
    struct str ip = text_keep(core, str_of(session->server->row.ip));
    struct effect *e = effect_add(core, EFFECT_ALLOCATED, conn);
    e->lobby = ticket->row.lobby;
    e->server_id = session->row.server;
    e->ip = ip;
    e->port = session->server->row.port;
    e->token = text;
    e->wall_ms = ticket->row.answered_wall_ms;
    e->asked_us = ticket->asked_us;
}

/* Whoever asked on a connection that is still there gets the answer; nobody else is told unasked.
 */
static void answer_asker(struct core *core, struct ticket *ticket)
{
    if (ticket->asker && ticket->asker == ticket->chat->conn)
        answer(core, ticket, ticket->asker);
    ticket->asker = 0;
}

/* ── moves ─────────────────────────────────────────────────────────────────────────────────── */

/* A final ticket takes the match that ended with it along: together they are what is remembered. */
static void forget(struct core *core, struct ticket *ticket)
{
    struct session *session = session_find(core, ticket->row.session);
    ticket_unlink(core, ticket);
    object_delete(core, &ticket->object);
    if (session && session->row.state == SESSION_ENDED)
        session_delete(core, session);
}

void tickets_forget_oldest(struct core *core)
{
    while (core->tickets_finished > core->config.limits.tickets_kept)
        forget(core, container_of(list_first(&core->finished), struct ticket, in_finished));
}

static void move(struct core *core, struct ticket *ticket, enum ticket_state state)
{
    assert(allowed_moves[ticket->row.state] & 1 << state);
    if (ticket->row.state == TICKET_OPEN)
        core->tickets_open--;
    if (state == TICKET_OPEN)
        core->tickets_open++;
    ticket->row.state = (int8_t)state;
    list_remove(&ticket->in_waiting);
    if (is_final(ticket)) {
        ticket->row.deadline_core_ms = core->now.core_ms + core->config.timeouts.keep_ms;
        deadline_set(core, &ticket->deadline, DEADLINE_CORE, ticket->row.deadline_core_ms);
        list_append(&core->finished, &ticket->in_finished);
        core->tickets_finished++;
    } else if (state == TICKET_DONE) {
        deadline_clear(core, &ticket->deadline); /* from here on its session has the deadline */
    }
    object_touch(core, &ticket->object);
    lobby_ticket_moved(core, ticket);
}

/* Which server took it, how loaded that is with it, and since when it was asked. */
static void note_server(const struct core *core, const struct ticket *ticket, struct effect *note)
{
    const struct session *session = session_find(core, ticket->row.session);
    note->server_id = ticket->tries[ticket->n_tries - 1].server;
    if (!session)
        return;
    note->region_code = session->server->row.region;
    note->load = server_load(session->server);
    note->max = session->server->row.max_sessions;
    note->since_us = session->told_us;
}

void ticket_done(struct core *core, struct ticket *ticket)
{
    set_outcome(ticket, TRY_ACKNOWLEDGED);
    ticket->row.answered_wall_ms = core->now.wall_ms;
    move(core, ticket, TICKET_DONE);
    struct effect *note = ticket_note(core, ticket, NOTE_TICKET_DONE);
    note_server(core, ticket, note);
    answer_asker(core, ticket);
}

static void fail(struct core *core, struct ticket *ticket, int err)
{
    ticket->row.error = err;
    ticket->row.answered_wall_ms = core->now.wall_ms;
    move(core, ticket, TICKET_FAILED);
    ticket_note(core, ticket, NOTE_TICKET_FAILED)->err = err;
    answer_asker(core, ticket);
}

void ticket_ended(struct core *core, struct ticket *ticket)
{
    if (ticket->row.state != TICKET_DONE)
        return;
    ticket->row.error = ERR_INVALID_LOBBY;
    move(core, ticket, TICKET_ENDED);
}

/* Why there is none, when nobody is left. */
static int err_of(const struct ticket *ticket)
{
    int last = ticket->n_tries > 0 ? ticket->tries[ticket->n_tries - 1].outcome : TRY_PENDING;
    bool timed_out = last == TRY_TIMED_OUT || last == TRY_NOT_READY;
    return timed_out ? ERR_ALLOCATION_TIMEOUT : ERR_NO_SERVERS;
}

/* Right after a start those who play matches for us may only not be back yet, and whoever asked is
 * back before them: nothing is concluded from that. Its deadline ends it at the latest. */
static void wait(struct core *core, struct ticket *ticket)
{
    if (is_waiting(ticket))
        return;
    list_append(&ticket->chat->fleet->tickets_waiting, &ticket->in_waiting);
    ticket->row.session = 0;
    object_touch(core, &ticket->object);
}

/* Takes the best server that is left and reserves its slot now, not when it has answered. */
static void try_next(struct core *core, struct ticket *ticket)
{
    bool may_try = ticket->n_tries < TICKET_TRIES;
    struct server *server = may_try ? placement_choose(core, ticket) : NULL;
    if (!server && may_try && placement_awaits(core, ticket)) {
        wait(core, ticket);
        return;
    }
    if (!server) {
        fail(core, ticket, err_of(ticket));
        return;
    }
    list_remove(&ticket->in_waiting);
    add_try(ticket, server);
    ticket->row.session = session_new(core, ticket, server)->row.id;
    object_touch(core, &ticket->object);
    enum note kind = ticket->n_tries == 1 ? NOTE_TICKET_OPENED : NOTE_TICKET_RETRY;
    struct effect *note = ticket_note(core, ticket, kind);
    note->server_id = (int32_t)server->row.id;
    if (kind == NOTE_TICKET_RETRY)
        note->text = str_of(try_outcome_name(ticket->tries[ticket->n_tries - 2].outcome));
}

void ticket_next(struct core *core, struct ticket *ticket, int outcome)
{
    if (ticket->row.state != TICKET_OPEN)
        return;
    set_outcome(ticket, outcome);
    try_next(core, ticket);
}

/* Those of them that have a server left. */
static uint64_t with_room(const struct fleet *fleet, uint64_t regions)
{
    uint64_t found = 0;
    for (uint64_t left = regions; left; left &= left - 1) {
        if (heap_top(&fleet->groups[__builtin_ctzll(left)].placeable))
            found |= left & -left;
    }
    return found;
}

/* A server that comes back with four slots costs as much as four tickets, however many wait. */
static void settle_fleet(struct core *core, struct fleet *fleet)
{
    uint64_t stirred = fleet->stirred;
    uint64_t deserted = fleet->deserted;
    fleet->stirred = fleet->deserted = 0;
    LIST_EACH(&fleet->tickets_waiting, ticket, struct ticket, in_waiting)
    {
        stirred = with_room(fleet, stirred);
        if (!(stirred | deserted))
            return;
        if ((uint64_t)ticket->row.regions & (stirred | deserted))
            try_next(core, ticket);
    }
}

void tickets_settle(struct core *core)
{
    if (!core->tickets_stirred)
        return;
    core->tickets_stirred = false;
    size_t at = 0;
    for (struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        if (fleet->stirred | fleet->deserted)
            settle_fleet(core, fleet);
    }
}

void ticket_deadline(struct core *core, struct ticket *ticket)
{
    if (ticket->row.state != TICKET_OPEN) {
        forget(core, ticket);
        return;
    }
    if (is_waiting(ticket)) { /* nobody was left to be asked, so nobody was slow */
        fail(core, ticket, err_of(ticket));
        return;
    }
    struct session *session = session_find(core, ticket->row.session);
    set_outcome(ticket, TRY_GIVEN_UP);
    if (session && session->row.state == SESSION_OPENING)
        session_cancel(core, session);
    fail(core, ticket, ERR_ALLOCATION_TIMEOUT);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static int judge(const struct core *core, const struct chat_server *chat,
                 const struct chat_mgr_server_allocation_request *r)
{
    bool supported = region_configured(core, r->region) && is_bit(chat->regions, r->region);
    if (r->region != REGION_AUTO && !supported)
        return ERR_REGION_NOT_SUPPORTED;
    if (r->player_count < 1 || r->player_count > PLAYERS_MAX)
        return ERR_INVALID_REQUEST;
    if (r->game_type < 0 || r->game_type > GAME_TYPE_MAX)
        return ERR_INVALID_REQUEST;
    return core->tickets_open < core->config.limits.tickets_open ? 0 : ERR_TOO_MANY;
}

static struct ticket *link_in(struct core *core, const struct row_ticket *row,
                              struct chat_server *chat)
{
    struct ticket *ticket = object_alloc(core, ROW_ticket);
    ticket->row = *row;
    ticket->chat = chat;
    ticket->deadline.kind = DEADLINE_TICKET;
    object_enter(core, &ticket->object);
    map_put(&core->tickets_by_key, key_of(ticket), ticket);
    chat->tickets++;
    return ticket;
}

static struct ticket *open_ticket(struct core *core, struct chat_server *chat, conn_id conn,
                                  const struct chat_mgr_server_allocation_request *r)
{
    uint64_t regions = r->region == REGION_AUTO ? chat->regions : (uint64_t)1 << r->region;
    struct row_ticket row = {
        .id = object_new_id(core, ROW_ticket),
        .chat_server = (int32_t)chat->row.id,
        .fleet = chat->row.fleet,
        .lobby = r->lobby,
        .regions = (int64_t)regions,
        .game_type = r->game_type,
        .game_mode = r->game_mode,
        .player_count = r->player_count,
        .average_rating = r->average_rating,
        .opened_core_ms = core->now.core_ms,
        .deadline_core_ms = core->now.core_ms + core->config.timeouts.ticket_ms,
    };
    struct ticket *ticket = link_in(core, &row, chat);
    ticket->asker = conn;
    ticket->asked_us = core->at_us;
    move(core, ticket, TICKET_OPEN);
    deadline_set(core, &ticket->deadline, DEADLINE_CORE, row.deadline_core_ms);
    try_next(core, ticket);
    return ticket;
}

int64_t ticket_open_own(struct core *core, struct chat_server *chat,
                        const struct chat_mgr_server_allocation_request *request)
{
    uint64_t key = map_pair((int32_t)chat->row.id, request->lobby);
    struct ticket *before = map_get(&core->tickets_by_key, key);
    if (before)
        forget(core, before);
    return open_ticket(core, chat, 0, request)->row.id;
}

/* True when the key has an answer, or will have one without a new ticket. */
static bool answer_again(struct core *core, struct ticket *ticket, conn_id conn)
{
    if (ticket->row.state == TICKET_OPEN)
        ticket->asker = conn; /* one answer for both */
    else if (ticket->row.state == TICKET_DONE)
        answer(core, ticket, conn);
    else if (ticket->row.state == TICKET_ENDED)
        ticket_refuse(core, conn, ticket->row.lobby, ERR_INVALID_LOBBY);
    else
        return false;
    return true;
}

void ticket_allocate(struct core *core, struct chat_server *chat, conn_id conn,
                     const struct chat_mgr_server_allocation_request *request)
{
    if (request->lobby <= 0 || request->lobby >= LOBBY_ID_FIRST) {
        ticket_refuse(core, conn, request->lobby, ERR_INVALID_LOBBY);
        return;
    }
    uint64_t key = map_pair((int32_t)chat->row.id, request->lobby);
    struct ticket *ticket = map_get(&core->tickets_by_key, key);
    if (ticket && answer_again(core, ticket, conn))
        return;
    int err = judge(core, chat, request);
    if (err) {
        ticket_refuse(core, conn, request->lobby, err);
        return;
    }
    if (ticket) /* failed or cancelled: this is a new one */
        forget(core, ticket);
    (void)open_ticket(core, chat, conn, request);
}

void ticket_give_up(struct core *core, struct ticket *ticket)
{
    conn_id asker = ticket->asker;
    struct session *session = session_find(core, ticket->row.session);
    bool open = ticket->row.state == TICKET_OPEN;
    if (open && !is_waiting(ticket))
        set_outcome(ticket, TRY_GIVEN_UP);
    if (session && session_is_live(session))
        session_cancel(core, session);
    ticket->row.error = ERR_TICKET_CANCELLED;
    if (!ticket->row.answered_wall_ms)
        ticket->row.answered_wall_ms = core->now.wall_ms;
    ticket->asker = 0;
    move(core, ticket, TICKET_CANCELLED);
    ticket_note(core, ticket, NOTE_TICKET_CANCELLED)->err = open ? ERR_TICKET_CANCELLED : 0;
    if (asker && asker == ticket->chat->conn)
        answer(core, ticket, asker);
}

void ticket_cancel(struct core *core, struct chat_server *chat, conn_id conn, int32_t lobby)
{
    uint64_t key = map_pair((int32_t)chat->row.id, lobby);
    struct ticket *ticket = map_get(&core->tickets_by_key, key);
    if (!ticket)
        note_refused(core, conn, ERR_MATCH_NOT_FOUND)->lobby = lobby;
    struct effect *e = effect_add(core, EFFECT_CANCELLED, conn);
    e->lobby = lobby;
    e->err = ticket ? 0 : ERR_MATCH_NOT_FOUND;
    if (ticket && !is_final(ticket))
        ticket_give_up(core, ticket);
}

static int state_of(const struct core *core, const struct chat_server *chat, int32_t lobby)
{
    const struct ticket *ticket =
        map_get(&core->tickets_by_key, map_pair((int32_t)chat->row.id, lobby));
    return ticket ? ticket->row.state : 0;
}

bool ticket_is_settled(const struct core *core, const struct chat_server *chat, int32_t lobby)
{
    int state = state_of(core, chat, lobby);
    return state == TICKET_DONE || state == TICKET_ENDED;
}

bool ticket_is_final(const struct core *core, const struct chat_server *chat, int32_t lobby)
{
    return state_of(core, chat, lobby) >= TICKET_FAILED;
}

/* ── loading and leaving ───────────────────────────────────────────────────────────────────── */

struct ticket *ticket_load_row(struct core *core, const struct row_ticket *row)
{
    struct chat_server *chat = map_get(&core->chat_servers, (uint64_t)row->chat_server);
    if (!chat || row->state <= 0 || row->state >= TICKET_STATES)
        return NULL;
    struct ticket *ticket = link_in(core, row, chat);
    ticket->object.stored = true;
    return ticket;
}

static void wait_again(struct core *core, struct ticket *ticket)
{
    struct fleet *fleet = ticket->chat->fleet;
    list_append(&fleet->tickets_waiting, &ticket->in_waiting);
    fleet->deserted |= (uint64_t)ticket->row.regions; /* perhaps nobody is awaited any more */
    core->tickets_stirred = true;
}

int ticket_loaded(struct core *core, struct ticket *ticket)
{
    bool holds = ticket->row.state == TICKET_DONE ||
                 (ticket->row.state == TICKET_OPEN && ticket->row.session != 0);
    const struct session *session = session_find(core, ticket->row.session);
    if (holds && (!session || session->row.ticket != ticket->row.id))
        return ERR_FORMAT;
    if (ticket->row.state == TICKET_OPEN)
        core->tickets_open++;
    if (ticket->row.state == TICKET_OPEN && ticket->row.session == 0)
        wait_again(core, ticket);
    if (is_final(ticket)) {
        list_append(&core->finished, &ticket->in_finished);
        core->tickets_finished++;
    }
    if (ticket->row.state != TICKET_DONE)
        deadline_set(core, &ticket->deadline, DEADLINE_CORE, ticket->row.deadline_core_ms);
    return ticket_restore_tries(ticket);
}

void ticket_unlink(struct core *core, struct ticket *ticket)
{
    deadline_clear(core, &ticket->deadline);
    list_remove(&ticket->in_waiting);
    if (link_in_list(&ticket->in_finished)) {
        list_remove(&ticket->in_finished);
        core->tickets_finished--;
    }
    if (map_get(&core->tickets_by_key, key_of(ticket)) == ticket)
        map_remove(&core->tickets_by_key, key_of(ticket));
    ticket->chat->tickets--;
    chat_server_maybe_forget(core, ticket->chat);
}

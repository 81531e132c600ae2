/* Lobbies. See the diagram in lobby.h. */
#include "core/lobby.h"

#include "base/plant.h"
#include "core/client.h"
#include "core/lobby_tell.h"
#include "core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t allowed_moves[LOBBY_STATES] = {
    [0] = 1 << LOBBY_LOADING,
    [LOBBY_LOADING] = 1 << LOBBY_STARTED | 1 << LOBBY_ABORTED,
    [LOBBY_STARTED] = 1 << LOBBY_ENDED,
    [LOBBY_ENDED] = 0,
    [LOBBY_ABORTED] = 0,
};

int32_t lobby_number(int64_t id)
{
    return (int32_t)(LOBBY_ID_FIRST | (id & (LOBBY_ID_FIRST - 1)));
}

struct lobby *lobby_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_lobby, id);
}

struct lobby *lobby_of_number(const struct core *core, int32_t number)
{
    return map_get(&core->lobbies_by_number, (uint32_t)number);
}

struct lobby *lobby_of_session(const struct core *core, const struct session *session)
{
    return session->chat->own ? lobby_of_number(core, session->row.lobby) : NULL;
}

struct lobby_player *lobby_player_of(const struct lobby *lobby, int32_t account)
{
    for (int i = 0; i < lobby->n_players; i++) {
        if (lobby->players[i].account == account)
            return &lobby->players[i];
    }
    return NULL;
}

uint8_t *lobby_flags_of(struct lobby *lobby, const struct lobby_player *player)
{
    return &lobby->row.flags[player - lobby->players];
}

bool lobby_is_live(const struct lobby *lobby)
{
    return lobby->row.state == LOBBY_LOADING || lobby->row.state == LOBBY_STARTED;
}

void lobby_due(struct core *core, struct lobby *lobby)
{
    if (lobby->row.state == LOBBY_LOADING && !link_in_list(&lobby->in_due))
        list_append(&core->lobbies_due, &lobby->in_due);
}

static const int32_t *accounts_of(struct core *core, const struct lobby *lobby)
{
    size_t n = (size_t)lobby->n_players;
    int32_t *accounts = arena_alloc(&core->out->arena, (n + 1) * sizeof(*accounts));
    for (size_t i = 0; i < n; i++)
        accounts[i] = lobby->players[i].account;
    return accounts;
}

static struct effect *lobby_note(struct core *core, const struct lobby *lobby, enum note kind)
{
    struct effect *note = note_add(core, kind);
    note->object = lobby->row.id;
    note->lobby = lobby_number(lobby->row.id);
    note->ticket = lobby->row.ticket;
    note->session = lobby->row.session;
    note->server_id = lobby->row.server;
    note->fleet_id = lobby->row.fleet;
    note->region_code = lobby->row.region == REGION_AUTO ? (int8_t)-1 : lobby->row.region;
    note->asked_us = lobby->asked_us;
    note->load = lobby->n_players;
    note->accounts = accounts_of(core, lobby);
    return note;
}

static void set_deadline(struct core *core, struct lobby *lobby, int64_t at_ms)
{
    lobby->row.deadline_core_ms = at_ms;
    deadline_set(core, &lobby->deadline, DEADLINE_CORE, at_ms);
    object_touch(core, &lobby->object);
}

/* ── coming and going ──────────────────────────────────────────────────────────────────────── */

static struct lobby *link_in(struct core *core, const struct row_lobby *row, struct fleet *fleet)
{
    struct lobby *lobby = xcalloc(1, sizeof(*lobby));
    lobby->object.kind = ROW_lobby;
    lobby->row = *row;
    lobby->fleet = fleet;
    lobby->deadline.kind = DEADLINE_LOBBY;
    object_enter(core, &lobby->object);
    (void)map_put(&core->lobbies_by_number, (uint32_t)lobby_number(row->id), lobby);
    return lobby;
}

/* 0, or ERR_FORMAT. */
static int seat_players(struct lobby *lobby)
{
    lobby->players = xcalloc(LOBBY_PLAYERS_MAX, sizeof(*lobby->players));
    int n = lobby_roster_read(&lobby->roster->row, lobby->players, LOBBY_PLAYERS_MAX);
    if (n <= 0 || n != lobby->row.flags_len)
        return ERR_FORMAT;
    lobby->players = xrealloc(lobby->players, (size_t)n * sizeof(*lobby->players));
    lobby->n_players = (int8_t)n;
    for (int i = 0; i < n; i++) {
        lobby->players[i].lobby = lobby;
        lobby->players[i].gone.kind = DEADLINE_LOBBY_PLAYER;
        lobby->loaded = (int8_t)(lobby->loaded + (lobby->row.flags[i] & LOBBY_LOADED));
    }
    return 0;
}

void lobby_done(struct lobby *lobby)
{
    free(lobby->players);
}

static void clear_gone(struct core *core, struct lobby *lobby)
{
    for (int i = 0; i < lobby->n_players; i++)
        deadline_clear(core, &lobby->players[i].gone);
}

static void forget(struct core *core, struct lobby *lobby)
{
    for (int i = 0; i < lobby->n_players; i++)
        lobby_unlist_player(core, &lobby->players[i]);
    deadline_clear(core, &lobby->deadline);
    list_remove(&lobby->in_due);
    list_remove(&lobby->in_sent);
    list_remove(&lobby->in_finished);
    core->lobbies_finished--;
    if (lobby_of_number(core, lobby_number(lobby->row.id)) == lobby)
        (void)map_remove(&core->lobbies_by_number, (uint32_t)lobby_number(lobby->row.id));
    object_delete(core, &lobby->roster->object);
    object_delete(core, &lobby->object);
}

void lobbies_forget_oldest(struct core *core)
{
    const struct core_limits *limits = &core->config.limits;
    int32_t most = limits->lobbies < limits->tickets_kept ? limits->lobbies : limits->tickets_kept;
    while (core->lobbies_finished > most)
        forget(core, container_of(list_first(&core->finished_lobbies), struct lobby, in_finished));
}

/* ── moves ─────────────────────────────────────────────────────────────────────────────────── */

static void move(struct core *core, struct lobby *lobby, enum lobby_state state)
{
    assert(allowed_moves[lobby->row.state] & 1 << state);
    if (lobby->row.state)
        core->lobbies_in[lobby->row.state]--;
    core->lobbies_in[state]++;
    lobby->row.state = (int8_t)state;
    object_touch(core, &lobby->object);
}

/* It is final. Whoever is owed nothing is told nothing more. */
static void finish(struct core *core, struct lobby *lobby, enum lobby_state state)
{
    move(core, lobby, state);
    lobby->row.over_core_ms = core->now.core_ms;
    set_deadline(core, lobby, core->now.core_ms + core->config.timeouts.keep_ms);
    clear_gone(core, lobby);
    list_remove(&lobby->in_due);
    list_append(&core->finished_lobbies, &lobby->in_finished);
    core->lobbies_finished++;
    for (int i = 0; i < lobby->n_players; i++) {
        if (client_conn(core, lobby->players[i].account))
            lobby->row.flags[i] |= LOBBY_THERE;
    }
    if (lobby->row.reason[0])
        lobby_tell_over(core, lobby);
    for (int i = 0; i < lobby->n_players; i++) {
        if (!(lobby->row.flags[i] & LOBBY_OWED))
            lobby_unlist_player(core, &lobby->players[i]);
    }
}

static bool is_over(const struct ticket *ticket)
{
    return ticket->row.state != TICKET_OPEN && ticket->row.state != TICKET_DONE;
}

static void give_up_server(struct core *core, struct lobby *lobby)
{
    struct ticket *ticket = ticket_find(core, lobby->row.ticket);
    if (ticket && !is_over(ticket))
        ticket_give_up(core, ticket);
}

void lobby_abort(struct core *core, struct lobby *lobby, enum lobby_cause cause, int err,
                 struct str reason)
{
    lobby->row.cause = (int8_t)cause;
    lobby->row.error = err;
    (void)str_copy(lobby->row.reason, sizeof(lobby->row.reason), reason);
    if (!PLANTED(abort_forgets_slot))
        give_up_server(core, lobby);
    finish(core, lobby, LOBBY_ABORTED);
    struct effect *note = lobby_note(core, lobby, NOTE_LOBBY_ABORTED);
    note->reason = (int8_t)cause;
    note->err = err;
    note->on = lobby->row.requeue;
    note->account = lobby->row.gone;
    note->text = text_keep(core, reason);
}

static void abort_unallocated(struct core *core, struct lobby *lobby, int err)
{
    char text[sizeof(lobby->row.reason)];
    (void)snprintf(text, sizeof(text), "Server allocation failed: %s", err_sentence(err));
    lobby_abort(core, lobby, LOBBY_CAUSE_ALLOCATION, err, str_of(text));
}

static void start(struct core *core, struct lobby *lobby, const struct session *session)
{
    lobby->row.session = session->row.id;
    lobby->row.server = session->row.server;
    lobby->row.started_core_ms = core->now.core_ms;
    lobby->row.deadline_core_ms = 0; /* from here on its match has the deadline */
    deadline_clear(core, &lobby->deadline);
    clear_gone(core, lobby);
    move(core, lobby, LOBBY_STARTED);
    struct effect *note = lobby_note(core, lobby, NOTE_LOBBY_STARTED);
    note->region_code = session->server->row.region;
    note->since_us = session->opened_us;
    lobby_tell_started(core, lobby);
}

static uint64_t regions_of(const struct core *core, const struct lobby *lobby)
{
    uint64_t mask = 0;
    if (lobby->row.region != REGION_AUTO)
        return (uint64_t)1 << lobby->row.region;
    for (int8_t code = 0; code < REGION_CODES; code++)
        mask |= (uint64_t)region_configured(core, code) << code;
    return mask;
}

static void ask_for_server(struct core *core, struct lobby *lobby)
{
    struct chat_server *chat = chat_server_own(core, lobby->fleet);
    struct chat_mgr_server_allocation_request request = {
        .lobby = lobby_number(lobby->row.id),
        .game_type = lobby->row.game_type,
        .game_mode = lobby->row.game_mode,
        .region = lobby->row.region,
        .player_count = lobby->n_players,
        .average_rating = lobby->row.average_rating,
    };
    chat->regions = regions_of(core, lobby);
    lobby->row.ticket = ticket_open_own(core, chat, &request);
    object_touch(core, &lobby->object);
}

static int64_t loaded_until(const struct core *core, const struct lobby *lobby)
{
    return lobby->row.opened_core_ms + core->config.timeouts.loading_ms;
}

/* Its server is lost before anybody was told of it. */
static void look_elsewhere(struct core *core, struct lobby *lobby, const char *why)
{
    if (lobby->row.moves >= LOBBY_MOVES_MAX || core->now.core_ms >= loaded_until(core, lobby)) {
        lobby_abort(core, lobby, LOBBY_CAUSE_SERVER, 0, STR("Server lost"));
        return;
    }
    give_up_server(core, lobby);
    lobby->row.moves++;
    lobby_note(core, lobby, NOTE_LOBBY_MOVED)->text = str_of(why);
    ask_for_server(core, lobby);
    lobby_due(core, lobby);
}

/* ── what is true of it ────────────────────────────────────────────────────────────────────── */

static bool all_loaded(const struct lobby *lobby)
{
    return lobby->loaded == lobby->n_players;
}

/* What players said becomes a fact, and the others hear it. */
static void hear(struct core *core, struct lobby *lobby)
{
    for (int i = 0; i < lobby->n_players; i++) {
        struct lobby_player *player = &lobby->players[i];
        bool before = lobby->row.flags[i] & LOBBY_LOADED;
        bool now = player->said == SAID_NOTHING ? before : player->said == SAID_LOADED;
        player->said = SAID_NOTHING;
        if (now == before)
            continue;
        lobby->row.flags[i] ^= LOBBY_LOADED;
        lobby->loaded = (int8_t)(lobby->loaded + (now ? 1 : -1));
        object_touch(core, &lobby->object);
        lobby_tell_loading(core, lobby, player);
    }
}

/* Its server was found: is it there? */
static void consider_session(struct core *core, struct lobby *lobby, const struct ticket *ticket,
                             const struct session *session)
{
    const struct server *server = session->server;
    bool there = server->conn && server->listed;
    /* After our own restart it has not dropped: it has its time to come back. */
    bool dropped = !server->conn && server->connected_core_ms;
    if (session->row.state == SESSION_LOST) {
        look_elsewhere(core, lobby, "lost its server");
    } else if (!there) {
        /* It may come back; but why wait when there is another? */
        if (dropped && placement_could(core, ticket))
            look_elsewhere(core, lobby, "its server dropped the connection");
    } else if (all_loaded(lobby) || PLANTED(start_without_players)) {
        start(core, lobby, session);
    }
}

static void consider(struct core *core, struct lobby *lobby)
{
    hear(core, lobby);
    const struct ticket *ticket = ticket_find(core, lobby->row.ticket);
    const struct session *session = ticket ? session_find(core, ticket->row.session) : NULL;
    switch (ticket ? (enum ticket_state)ticket->row.state : TICKET_FAILED) {
    case TICKET_OPEN:
        break;
    case TICKET_DONE:
        consider_session(core, lobby, ticket, session);
        break;
    case TICKET_ENDED:
        if (session && session->row.end_reason == END_BY_OPERATOR)
            lobby_abort(core, lobby, LOBBY_CAUSE_OPERATOR, 0, STR("Ended by an operator"));
        else
            look_elsewhere(core, lobby, "its server let go of the match");
        break;
    case TICKET_CANCELLED:
        lobby_abort(core, lobby, LOBBY_CAUSE_OPERATOR, 0, STR("Ended by an operator"));
        break;
    case TICKET_FAILED:
    case TICKET_STATES:
        abort_unallocated(core, lobby, ticket ? ticket->row.error : ERR_INTERNAL);
        break;
    }
}

void lobbies_settle(struct core *core)
{
    while (!list_empty(&core->lobbies_due)) {
        struct lobby *lobby = container_of(list_first(&core->lobbies_due), struct lobby, in_due);
        list_remove(&lobby->in_due);
        if (lobby->row.state == LOBBY_LOADING)
            consider(core, lobby);
    }
}

/* ── news ──────────────────────────────────────────────────────────────────────────────────── */

void lobby_ticket_moved(struct core *core, const struct ticket *ticket)
{
    struct lobby *lobby = ticket->chat->own ? lobby_of_number(core, ticket->row.lobby) : NULL;
    if (lobby)
        lobby_due(core, lobby);
}

void lobby_server_changed(struct core *core, const struct session *session)
{
    struct lobby *lobby = lobby_of_session(core, session);
    if (lobby)
        lobby_due(core, lobby);
}

static enum lobby_cause cause_of(enum end_reason reason)
{
    switch (reason) {
    case END_MATCH_ENDED:
        return LOBBY_CAUSE_NONE;
    case END_BY_OPERATOR:
        return LOBBY_CAUSE_OPERATOR;
    case END_TOO_LONG:
        return LOBBY_CAUSE_TOO_LONG;
    default:
        return LOBBY_CAUSE_SERVER;
    }
}

static void match_over(struct core *core, struct lobby *lobby, const struct session *session,
                       struct str text)
{
    lobby->row.cause = (int8_t)cause_of((enum end_reason)session->row.end_reason);
    if (lobby->row.cause)
        (void)str_copy(lobby->row.reason, sizeof(lobby->row.reason), text);
    finish(core, lobby, LOBBY_ENDED);
    struct effect *note = lobby_note(core, lobby, NOTE_LOBBY_ENDED);
    note->reason = session->row.end_reason;
    note->text = text;
}

void lobby_match_event(struct core *core, struct session *session, enum match_event event,
                       struct str text)
{
    struct lobby *lobby = lobby_of_session(core, session);
    if (!lobby || lobby->row.session != session->row.id) {
        lobby_server_changed(core, session);
        return;
    }
    if (lobby->row.state != LOBBY_STARTED)
        return;
    if (event == MATCH_ENDED)
        match_over(core, lobby, session, text);
    else if (event == MATCH_LOST)
        (void)lobby_note(core, lobby, NOTE_LOBBY_LOST);
    else if (event == MATCH_BACK)
        (void)lobby_note(core, lobby, NOTE_LOBBY_BACK);
}

void lobby_loading(struct core *core, conn_id conn, int32_t account,
                   const struct chat_cl_player_loading_status *status)
{
    struct lobby *lobby = lobby_of_number(core, status->lobby);
    struct lobby_player *player = lobby ? lobby_player_of(lobby, account) : NULL;
    if (!player || lobby->row.state != LOBBY_LOADING)
        return; /* it may have started, or be over, while this was under way */
    bool loaded = player->said == SAID_NOTHING ? *lobby_flags_of(lobby, player) & LOBBY_LOADED
                                               : player->said == SAID_LOADED;
    if (loaded == status->loaded)
        return;
    if (player->changes++ >= LOBBY_CHANGES_MAX) {
        effect_close(core, conn, "Loading status changed too often");
        client_gone(core, conn);
        return;
    }
    player->said = status->loaded ? SAID_LOADED : SAID_LOADING;
    lobby_due(core, lobby);
}

void lobbies_client_came(struct core *core, int32_t account)
{
    struct lobby_player *player = lobby_player_loading(core, account);
    if (!player)
        return;
    player->left = false;
    player->changes = 0;
    deadline_clear(core, &player->gone);
}

static void expect_back(struct core *core, struct lobby_player *player)
{
    deadline_set(core, &player->gone, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + core->config.timeouts.player_gone_ms);
}

void lobbies_client_gone(struct core *core, int32_t account)
{
    struct lobby_player *player = lobby_player_loading(core, account);
    if (!player)
        return;
    player->left = true;
    expect_back(core, player);
}

int lobby_admits(const struct core *core, const struct lobby *lobby, int32_t account, bool first)
{
    int64_t since_ms = core->now.core_ms - lobby->row.started_core_ms;
    if (lobby->row.state != LOBBY_STARTED)
        return ERR_NOT_PART_OF_MATCH;
    if (first && since_ms > core->config.timeouts.token_ms)
        return ERR_MATCH_TOKEN_EXPIRED;
    return lobby_player_of(lobby, account) ? 0 : ERR_NOT_PART_OF_MATCH;
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

/* All have loaded and it has, or had, a server: what they said while nothing could be stored may
 * have waited for this. */
static void last_chance(struct core *core, struct lobby *lobby)
{
    consider(core, lobby);
    if (lobby->row.state == LOBBY_LOADING)
        lobby_abort(core, lobby, LOBBY_CAUSE_SERVER, 0, STR("Server lost"));
}

void lobby_deadline(struct core *core, struct lobby *lobby)
{
    if (!lobby_is_live(lobby)) {
        forget(core, lobby);
        return;
    }
    hear(core, lobby);
    const struct ticket *ticket = ticket_find(core, lobby->row.ticket);
    bool open = ticket && ticket->row.state == TICKET_OPEN;
    if (!all_loaded(lobby))
        lobby_abort(core, lobby, LOBBY_CAUSE_LOADING, 0, STR("Loading timeout"));
    else if (open && ticket->row.deadline_core_ms > core->now.core_ms)
        set_deadline(core, lobby, ticket->row.deadline_core_ms + 1000); /* it answers before */
    else if (open)
        abort_unallocated(core, lobby, ERR_ALLOCATION_TIMEOUT);
    else
        last_chance(core, lobby);
}

static void abort_without(struct core *core, struct lobby_player *player, int err)
{
    player->lobby->row.gone = player->account;
    lobby_abort(core, player->lobby, LOBBY_CAUSE_DISCONNECTED, err, STR("Player disconnected"));
}

void lobby_player_deadline(struct core *core, struct lobby_player *player)
{
    if (player->lobby->row.state == LOBBY_LOADING)
        abort_without(core, player, 0);
}

void lobbies_client_banned(struct core *core, int32_t account)
{
    struct lobby_player *player = lobby_player_loading(core, account);
    if (player)
        abort_without(core, player, ERR_BANNED);
}

/* ── a new one ─────────────────────────────────────────────────────────────────────────────── */

static struct lobby *make(struct core *core, struct fleet *fleet, const struct lobby_wanted *w)
{
    struct row_lobby row = {
        .id = object_new_id(core, ROW_lobby),
        .fleet = (int32_t)fleet->row.id,
        .game_type = w->game_type,
        .game_mode = w->game_mode,
        .region = w->region,
        .requeue = w->requeue,
        .average_rating = w->average_rating,
        .opened_core_ms = core->now.core_ms,
        .flags_len = (uint16_t)w->n_players,
    };
    (void)str_copy(row.map, sizeof(row.map), w->map);
    struct lobby *lobby = link_in(core, &row, fleet);
    lobby->roster = lobby_roster_new(core, row.id, w);
    lobby->asked_us = core->at_us;
    int err = seat_players(lobby);
    assert(!err); /* it was judged */
    (void)err;
    return lobby;
}

int64_t lobby_create(struct core *core, struct fleet *fleet, const struct lobby_wanted *wanted)
{
    struct lobby *lobby = make(core, fleet, wanted);
    move(core, lobby, LOBBY_LOADING);
    set_deadline(core, lobby, loaded_until(core, lobby));
    for (int i = 0; i < lobby->n_players; i++)
        lobby_list_player(core, &lobby->players[i]);
    (void)lobby_note(core, lobby, NOTE_LOBBY_CREATED);
    lobby_tell_created(core, lobby);
    ask_for_server(core, lobby);
    lobby_due(core, lobby);
    return lobby->row.id;
}

/* ── loading ───────────────────────────────────────────────────────────────────────────────── */

int lobby_load_row(struct core *core, const struct row_lobby *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || row->state <= 0 || row->state >= LOBBY_STATES || row->region < 0 ||
        row->region >= REGION_CODES)
        return ERR_FORMAT;
    link_in(core, row, fleet)->object.stored = true;
    return 0;
}

/* Who had loaded was here; he has as long to come back as anybody. */
static void player_loaded(struct core *core, struct lobby *lobby, int i)
{
    bool owed = lobby->row.flags[i] & LOBBY_OWED;
    if (lobby_is_live(lobby) || owed)
        lobby_list_player(core, &lobby->players[i]);
    if (lobby->row.state == LOBBY_LOADING && lobby->row.flags[i] & LOBBY_LOADED)
        expect_back(core, &lobby->players[i]);
}

static int lobby_loaded(struct core *core, struct lobby *lobby)
{
    if (!lobby->roster || seat_players(lobby))
        return ERR_FORMAT;
    core->lobbies_in[lobby->row.state]++;
    for (int i = 0; i < lobby->n_players; i++)
        player_loaded(core, lobby, i);
    if (lobby->row.state != LOBBY_STARTED)
        deadline_set(core, &lobby->deadline, DEADLINE_CORE, lobby->row.deadline_core_ms);
    lobby_due(core, lobby);
    return 0;
}

static int by_end_and_id(const void *a, const void *b)
{
    const struct row_lobby *x = &(*(const struct lobby *const *)a)->row;
    const struct row_lobby *y = &(*(const struct lobby *const *)b)->row;
    if (x->over_core_ms != y->over_core_ms)
        return x->over_core_ms < y->over_core_ms ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* In the order in which they were over, for the oldest are forgotten first. */
static void line_up_finished(struct core *core)
{
    struct lobby **sorted = xmalloc((core->rolls[ROW_lobby].n + 1) * sizeof(struct lobby *));
    size_t n = 0;
    size_t at = 0;
    for (struct lobby *lobby = NULL; (lobby = object_next(core, ROW_lobby, &at));) {
        if (!lobby_is_live(lobby))
            sorted[n++] = lobby;
    }
    qsort(sorted, n, sizeof(*sorted), by_end_and_id);
    for (size_t i = 0; i < n; i++)
        list_append(&core->finished_lobbies, &sorted[i]->in_finished);
    core->lobbies_finished = (int32_t)n;
    free(sorted);
}

int lobbies_loaded(struct core *core)
{
    int err = 0;
    size_t at = 0;
    for (struct lobby *lobby = NULL; !err && (lobby = object_next(core, ROW_lobby, &at));)
        err = lobby_loaded(core, lobby);
    if (!err)
        line_up_finished(core);
    return err;
}

static void take_over(struct core *fresh, struct lobby *lobby, const struct lobby *old)
{
    for (int i = 0; i < lobby->n_players; i++) {
        struct lobby_player *player = &lobby->players[i];
        const struct lobby_player *same = &old->players[i];
        bool loaded = old->row.flags[i] & LOBBY_LOADED;
        player->said = same->said ? same->said : loaded ? SAID_LOADED : SAID_LOADING;
        player->changes = same->changes;
        player->left = same->left;
        player->sent = same->sent && old->sent_batch <= fresh->seq; /* it has left */
        if (client_conn(fresh, player->account))
            deadline_clear(fresh, &player->gone);
        else if (deadline_is_set(&same->gone) && lobby->row.state == LOBBY_LOADING)
            deadline_set(fresh, &player->gone, DEADLINE_AWAKE, deadline_at_ms(&same->gone));
        else if (same->left && lobby->row.state == LOBBY_LOADING)
            expect_back(fresh, player); /* that ended it, but nobody will know */
    }
    if (link_in_list(&old->in_sent) && old->sent_batch <= fresh->seq) {
        lobby->sent_batch = old->sent_batch;
        list_append(&fresh->lobbies_sent, &lobby->in_sent);
    }
    lobby->asked_us = old->asked_us;
    lobby_due(fresh, lobby);
}

void lobbies_take_over(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    for (struct lobby *lobby = NULL; (lobby = object_next(fresh, ROW_lobby, &at));) {
        const struct lobby *same = lobby_find(old, lobby->row.id);
        if (same)
            take_over(fresh, lobby, same);
    }
}

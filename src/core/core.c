/* Dispatch: which noun an event belongs to, who is speaking, and what a core that cannot write
 * refuses. Everything else is in the nouns' own files. */
#include "core/core.h"

#include "base/plant.h"
#include "core/agent.h"
#include "core/client.h"
#include "core/operate.h"
#include "core/place.h"
#include "core/state.h"

#include <stdlib.h>
#include <string.h>

/* If two ticks are further apart than this, we were not running: the loop ticks ten times a second.
 */
enum { GAP_MS = 1000, RESUME_MAX_MS = 10 * 60 * 1000 };

/* ── peers and effects ─────────────────────────────────────────────────────────────────────── */

struct peer *peer_find(const struct core *core, conn_id conn)
{
    return map_get(&core->peers, conn);
}

void peer_bind(struct core *core, conn_id conn, struct peer peer)
{
    struct peer *p = xmalloc(sizeof(*p));
    *p = peer;
    p->conn = conn;
    peer_unbind(core, conn);
    map_put(&core->peers, conn, p);
    struct enrolment_token *token = enrolment_get(core, p->enrolment);
    if (token)
        token->connections++;
}

void peer_unbind(struct core *core, conn_id conn)
{
    struct peer *p = map_remove(&core->peers, conn);
    struct enrolment_token *token = p ? enrolment_get(core, p->enrolment) : NULL;
    if (token)
        token->connections--;
    free(p);
}

struct effect *effect_add(struct core *core, enum effect_kind kind, conn_id conn)
{
    return batch_effect(core->out, kind, conn);
}

void effect_close(struct core *core, conn_id conn, const char *why)
{
    batch_effect(core->out, EFFECT_CLOSE, conn)->text = str_of(why);
}

struct str text_keep(struct core *core, struct str s)
{
    return arena_str(&core->out->arena, s);
}

/* ── dispatch ──────────────────────────────────────────────────────────────────────────────── */

static struct server *speaking_server(struct core *core, const struct event *event)
{
    struct peer *peer = peer_find(core, event->conn);
    return peer && !peer->challenging ? peer->server : NULL;
}

/* Identity is the connection; some messages name a server all the same. */
static bool names_another(const struct server *server, const struct event *event)
{
    switch (event->kind) {
    case EVENT_READY:
        return event->ready.server_id != server->row.id;
    case EVENT_MATCH_ENDED:
        return event->match_ended.server_id != server->row.id;
    case EVENT_PLAYER_LEFT:
        return event->player_left.server_id != server->row.id;
    default:
        return false;
    }
}

static struct chat_server *speaking_chat(struct core *core, const struct event *event)
{
    struct peer *peer = peer_find(core, event->conn);
    if (!peer || !peer->chat || peer->challenging)
        return NULL;
    chat_server_heard(core, peer->chat);
    return peer->chat;
}

/* The match a request is about; 0 when it is about none. */
static int32_t lobby_of(const struct event *event)
{
    switch (event->kind) {
    case EVENT_READY:
        return event->ready.lobby;
    case EVENT_VALIDATE:
        return event->validate.lobby;
    case EVENT_MATCH_ENDED:
        return event->match_ended.lobby;
    case EVENT_PLAYER_LEFT:
        return event->player_left.lobby;
    case EVENT_ALLOCATE:
        return event->allocate.lobby;
    case EVENT_CANCEL:
        return event->cancel.lobby;
    default:
        return 0;
    }
}

/* Answers a request with a refusal; events that nobody waits for are only noted. */
static void refuse_event(struct core *core, const struct event *event, int err)
{
    static const struct {
        enum event_kind event;
        enum effect_kind answer;
    } answers[] = {
        {EVENT_SERVER_HELLO, EFFECT_SERVER_HELLO},
        {EVENT_READY, EFFECT_READY},
        {EVENT_VALIDATE, EFFECT_VALIDATE},
        {EVENT_MATCH_ENDED, EFFECT_MATCH_ENDED},
        {EVENT_CHAT_HELLO, EFFECT_CHAT_HELLO},
        {EVENT_ALLOCATE, EFFECT_ALLOCATED},
        {EVENT_CANCEL, EFFECT_CANCELLED},
        {EVENT_CLIENT_HELLO, EFFECT_CLIENT_HELLO},
        {EVENT_OPERATE, EFFECT_OPERATED},
        {EVENT_PLACE, EFFECT_PLACED},
        {EVENT_HOST_BEAT, EFFECT_HOST_BEAT},
        {EVENT_AGENT, EFFECT_AGENT},
        {EVENT_SEEK, EFFECT_SOUGHT},
        {EVENT_UNSEEK, EFFECT_SOUGHT},
    };
    int32_t lobby = lobby_of(event);
    struct effect *note = note_refused(core, event->conn, err);
    note->lobby = lobby;
    if (event->kind == EVENT_PLACE)
        (void)note_of_players(core, &event->place, note);
    if (event->kind == EVENT_SEEK)
        (void)note_of_seekers(core, &event->seek, note);
    if (event->kind == EVENT_VALIDATE)
        note->account = event->validate.account;
    if (event->kind == EVENT_OPERATE)
        note->text = str_of(audit_action((int8_t)event->operate.verb));
    for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
        if (answers[i].event != event->kind || (event->kind == EVENT_SEEK && !event->conn))
            continue; /* a bus hears nothing, so it asks again */
        struct effect *e = effect_add(core, answers[i].answer, event->conn);
        e->err = err;
        e->lobby = lobby;
        e->account = event->kind == EVENT_VALIDATE ? event->validate.account : 0;
        if (event->kind == EVENT_AGENT) {
            e->verb = (int8_t)event->agent.verb;
            e->object = event->agent.server;
        }
    }
}

static void server_event(struct core *core, const struct event *event)
{
    struct server *server = speaking_server(core, event);
    bool spoofed = server && names_another(server, event);
    core->spoofed += spoofed;
    if (!server || spoofed) {
        refuse_event(core, event, ERR_NOT_REGISTERED);
        return;
    }
    switch (event->kind) {
    case EVENT_ALLOCATE_ACK:
        session_ack(core, server, event->allocate_ack.success, event->allocate_ack.lobby);
        break;
    case EVENT_READY:
        session_ready(core, server, &event->ready);
        break;
    case EVENT_CANCEL_ACK:
        session_cancel_ack(core, server, event->cancel_ack.lobby);
        break;
    case EVENT_VALIDATE:
        seat_validate(core, server, &event->validate);
        break;
    case EVENT_MATCH_ENDED:
        session_match_ended(core, server, event->match_ended.lobby);
        break;
    case EVENT_PLAYER_LEFT:
        seat_left(core, server, event->player_left.lobby, event->player_left.account);
        break;
    case EVENT_DRAIN:
        server_drain(core, server, DRAIN_BY_SERVER, event->drain.on);
        effect_add(core, EFFECT_DRAIN_ACK, event->conn)->on = event->drain.on;
        break;
    default:
        break; /* DRAIN_ACK: nothing is owed any more, and nothing was kept of it */
    }
}

static void chat_event(struct core *core, const struct event *event)
{
    struct chat_server *chat = speaking_chat(core, event);
    if (!chat)
        refuse_event(core, event, ERR_INTERNAL);
    else if (event->kind == EVENT_ALLOCATE)
        ticket_allocate(core, chat, event->conn, &event->allocate);
    else
        ticket_cancel(core, chat, event->conn, event->cancel.lobby);
}

/* It is counted each time and said once: a player could fill the log. */
static void spoofed_loading(struct core *core, struct peer *peer, int32_t lobby)
{
    core->spoofed++;
    if (!peer->impostor)
        note_refused(core, peer->conn, ERR_NOT_REGISTERED)->lobby = lobby;
    peer->impostor = true;
}

/* A player's word; nobody waits for an answer. */
static void loading(struct core *core, const struct event *event)
{
    struct peer *peer = peer_find(core, event->conn);
    if (!peer || peer->role != PEER_CLIENT)
        return;
    if (peer->account != event->loading.account)
        spoofed_loading(core, peer, event->loading.lobby);
    else
        lobby_loading(core, event->conn, peer->account, &event->loading);
}

static void gone(struct core *core, conn_id conn)
{
    struct peer *peer = peer_find(core, conn);
    if (!peer)
        return;
    if (peer->role == PEER_CLIENT) {
        client_gone(core, conn);
        return;
    }
    if (peer->challenging) {
        if (peer->server) {
            peer->server->challenge.conn = 0;
            deadline_clear(core, &peer->server->challenged);
        } else {
            peer->chat->challenge.conn = 0;
            deadline_clear(core, &peer->chat->challenged);
        }
        peer_unbind(core, conn);
    } else if (peer->server) {
        server_gone(core, peer->server);
    } else {
        chat_server_gone(core, peer->chat);
    }
}

static void pong(struct core *core, const struct event *event)
{
    struct peer *peer = peer_find(core, event->conn);
    if (!peer || peer->challenging || peer->role == PEER_CLIENT)
        return;
    if (peer->server) {
        peer->server->heard_core_ms = core->now.core_ms;
        if (event->pong.round_trip_us > 0)
            peer->server->round_trip_us = event->pong.round_trip_us;
        server_alive(core, peer->server);
        return;
    }
    chat_server_alive(core, peer->chat);
}

/* Commits work again. What was said meanwhile by peers who wait for no answer was let go, so ask.
 */
static void store_up(struct core *core)
{
    core->read_only = false;
    size_t at = 0;
    struct server *server = NULL;
    while ((server = object_next(core, ROW_server, &at))) {
        server_give_time(core, server);
        if (!server->conn)
            continue;
        server_ask_list(core, server);
        if (server->listed)
            server_settle(core, server);
    }
    at = 0;
    struct session *session = NULL;
    while ((session = object_next(core, ROW_session, &at)))
        session_give_time(core, session);
    at = 0;
    struct host *host = NULL;
    while ((host = object_next(core, ROW_host, &at)))
        host_give_time(core, host);
    at = 0;
    struct room *room = NULL;
    while ((room = object_next(core, ROW_room, &at)))
        room_seats_give_time(core, room);
    allocations_owe_again(core); /* that something was published or routed was not heard */
    deadlines_run(core);         /* they waited */
}

/* Time in which this process did not run counts for no peer's silence. Whatever comes first after
 * it notices, for the loop may read before its timers run. */
static void notice_gap(struct core *core, bool tick)
{
    int64_t gap_ms = core->last_tick_ms ? core->now.core_ms - core->last_tick_ms : 0;
    if (tick || gap_ms > GAP_MS)
        core->last_tick_ms = core->now.core_ms;
    if (gap_ms <= GAP_MS)
        return;
    core->asleep_ms += gap_ms;
    core->woke_core_ms = core->now.core_ms;
    note_add(core, NOTE_STOPPED)->wall_ms = gap_ms;
}

/* What may happen while nothing can be stored: all of it soft. */
static bool is_soft(enum event_kind kind)
{
    switch (kind) {
    case EVENT_TICK:
    case EVENT_HEARTBEAT:
    case EVENT_CHAT_HEARTBEAT:
    case EVENT_CLIENT_HELLO:
    case EVENT_LOADING:
    case EVENT_PONG:
    case EVENT_GONE:
    case EVENT_DRAIN_ACK:
    case EVENT_READ:
    case EVENT_CONFIGURE:
    case EVENT_STORE_DOWN:
    case EVENT_STORE_UP:
        return true;
    default:
        return false;
    }
}

/* … and requests that only repeat what is stored: matches go on, players come back. */
static bool needs_no_write(struct core *core, const struct event *event)
{
    struct peer *peer = peer_find(core, event->conn);
    if (is_soft(event->kind))
        return true;
    if (event->kind == EVENT_SERVER_HELLO)
        return server_hello_changes_nothing(core, &event->server_hello);
    if (event->kind == EVENT_CHAT_HELLO)
        return chat_server_hello_changes_nothing(core, &event->chat_hello);
    if (event->kind == EVENT_HOST_BEAT)
        return host_beat_changes_nothing(core, &event->host_beat);
    if (event->kind == EVENT_AGENT)
        return agent_event_changes_nothing(core, &event->agent);
    if (event->kind == EVENT_PLACE)
        return place_is_settled(core, &event->place);
    if (event->kind == EVENT_SEEK)
        return seek_is_settled(core, &event->seek);
    if (!peer || peer->challenging)
        return false;
    switch (event->kind) {
    case EVENT_ALLOCATE:
        return peer->chat && ticket_is_settled(core, peer->chat, event->allocate.lobby);
    case EVENT_CANCEL:
        return peer->chat && ticket_is_final(core, peer->chat, event->cancel.lobby);
    case EVENT_READY:
        return peer->server && session_was_ready(core, peer->server, event->ready.lobby);
    case EVENT_MATCH_ENDED:
        return peer->server && !session_here(core, peer->server, event->match_ended.lobby);
    case EVENT_VALIDATE:
        return peer->server && seat_is_taken(core, peer->server, &event->validate);
    default:
        return false;
    }
}

static void tick(struct core *core)
{
    bans_settle(core);
    if (core->read_only)
        return;
    deadlines_run(core);
    operate_settle(core);
    versions_settle(core);
    faults_settle(core);
    allocations_settle(core);
}

static void read_event(struct core *core, conn_id conn)
{
    if (PLANTED(read_before_durable))
        batch_immediate(core->out, EFFECT_READ, conn);
    else
        effect_add(core, EFFECT_READ, conn);
}

/* About rooms and the places of players in them. */
static void room_event(struct core *core, const struct event *event)
{
    switch (event->kind) {
    case EVENT_PLACE:
        place(core, event->conn, &event->place);
        break;
    case EVENT_HOST_BEAT:
        host_beat(core, event->conn, &event->host_beat);
        break;
    case EVENT_AGENT:
        agent_event(core, event->conn, &event->agent);
        break;
    case EVENT_HOST_HEARD:
        room_heard(core, &event->host_heard);
        break;
    case EVENT_SEEK:
        seek(core, event->conn, &event->seek);
        break;
    case EVENT_UNSEEK:
        unseek(core, event->conn, event->unseek.owner, event->unseek.name);
        break;
    case EVENT_PUBLISHED:
        allocation_published(core, &event->published);
        break;
    case EVENT_ROUTED:
        allocation_routed(core, &event->routed);
        break;
    default:
        break;
    }
}

static void dispatch(struct core *core, const struct event *event)
{
    switch (event->kind) {
    case EVENT_TICK:
        tick(core);
        break;
    case EVENT_SERVER_HELLO:
        server_hello(core, event->conn, &event->server_hello);
        break;
    case EVENT_HEARTBEAT:
        server_heartbeat(core, event->conn, &event->heartbeat);
        break;
    case EVENT_MATCH_LIST:
        server_match_list(core, event->conn, &event->match_list);
        break;
    case EVENT_ALLOCATE_ACK:
    case EVENT_READY:
    case EVENT_CANCEL_ACK:
    case EVENT_VALIDATE:
    case EVENT_MATCH_ENDED:
    case EVENT_PLAYER_LEFT:
    case EVENT_DRAIN:
    case EVENT_DRAIN_ACK:
        server_event(core, event);
        break;
    case EVENT_CHAT_HELLO:
        chat_server_hello(core, event->conn, &event->chat_hello);
        break;
    case EVENT_CHAT_HEARTBEAT:
        chat_server_heartbeat(core, event->conn);
        break;
    case EVENT_ALLOCATE:
    case EVENT_CANCEL:
        chat_event(core, event);
        break;
    case EVENT_CLIENT_HELLO:
        client_hello(core, event->conn, &event->client_hello);
        break;
    case EVENT_LOADING:
        loading(core, event);
        break;
    case EVENT_PONG:
        pong(core, event);
        break;
    case EVENT_GONE:
        gone(core, event->conn);
        break;
    case EVENT_READ:
        read_event(core, event->conn);
        break;
    case EVENT_OPERATE:
        operate(core, event->conn, &event->operate);
        break;
    case EVENT_CONFIGURE:
        operate_configure(core, event->configure);
        break;
    case EVENT_PLACE:
    case EVENT_HOST_BEAT:
    case EVENT_AGENT:
    case EVENT_HOST_HEARD:
    case EVENT_SEEK:
    case EVENT_UNSEEK:
    case EVENT_PUBLISHED:
    case EVENT_ROUTED:
        room_event(core, event);
        break;
    case EVENT_STORE_DOWN:
        core->read_only = true;
        break;
    case EVENT_STORE_UP:
        store_up(core);
        break;
    case EVENT_KINDS:
        break;
    }
}

static void event_take(struct core *core, const struct event *event)
{
    notice_gap(core, event->kind == EVENT_TICK);
    if (core->read_only && !needs_no_write(core, event)) {
        refuse_event(core, event, ERR_INTERNAL);
        return;
    }
    dispatch(core, event);
    if (core->read_only)
        return;
    if (!PLANTED(queue_window) || event->kind == EVENT_TICK)
        queues_serve(core);
    tickets_settle(core);
    lobbies_settle(core);
    allocations_say_queued(core);
    allocations_forget_oldest(core);
    tickets_forget_oldest(core);
    room_tickets_forget_oldest(core);
    rooms_forget_oldest(core);
    lobbies_forget_oldest(core);
}

void core_step(struct core *core, const struct event *event, struct instant now,
               struct batch *batch)
{
    static const struct event first = {.kind = EVENT_TICK};
    if (now.core_ms > core->now.core_ms)
        core->now.core_ms = now.core_ms; /* core time never goes back */
    core->now.wall_ms = now.wall_ms;
    core->out = batch;
    /* What is held is not stored: after a start the lines are served before anybody is placed. */
    if (core->last_tick_ms == 0 && (event->kind == EVENT_PLACE || event->kind == EVENT_SEEK))
        event_take(core, &first);
    core->at_us = event->at_us;
    event_take(core, event);
    core->out = NULL;
}

void core_count(const struct core *core, struct core_counts *ret)
{
    *ret = (struct core_counts){
        .players = (int32_t)core->seats_by_player.len,
        .tickets_open = core->tickets_open,
        .tickets_kept = core->tickets_finished,
        .chat_servers = (int32_t)core->chat_servers.len - core->chat_servers_own,
        .hosts = (int32_t)core->rolls[ROW_host].n,
        .rooms_starting = core->rooms_in[ROOM_STARTING],
        .rooms_open = core->rooms_in[ROOM_OPEN],
        .rooms_ending = core->rooms_in[ROOM_ENDING],
        .room_seats = (int32_t)core->rolls[ROW_room_seat].n,
        .room_tickets_open = core->room_tickets_open,
        .allocations_open = core->allocations_in[ALLOCATION_OPEN],
        .allocations_queued = core->allocations_in[ALLOCATION_QUEUED],
        .queue_oldest_ms = queues_oldest_ms(core),
        .allocations_owed = core->n_allocations_owed,
        .bans = (int32_t)core->bans_held.len,
        .lobbies_loading = core->lobbies_in[LOBBY_LOADING],
        .lobbies_started = core->lobbies_in[LOBBY_STARTED],
        .clients = (int32_t)core->clients.len,
    };
    size_t at = 0;
    for (const struct fleet *fleet = NULL; (fleet = map_next(&core->fleets, &at));) {
        for (int code = 0; code < REGION_CODES; code++) {
            const struct group *group = &fleet->groups[code];
            for (int i = 0; i < 4; i++)
                ret->servers[i] += group->status[i];
            ret->sessions_open += (int32_t)group->open;
        }
    }
}

bool core_knows_match(const struct core *core, int32_t server_id, int32_t lobby)
{
    const struct server *server = map_get(&core->servers, (uint64_t)(int64_t)server_id);
    return server && session_here(core, server, lobby);
}

int64_t core_resume_ms(int64_t stored_core_ms, int64_t stored_wall_ms, int64_t wall_ms)
{
    int64_t away_ms = wall_ms - stored_wall_ms;
    if (away_ms < 0)
        away_ms = 0;
    if (away_ms > RESUME_MAX_MS)
        away_ms = RESUME_MAX_MS;
    return stored_core_ms + away_ms;
}

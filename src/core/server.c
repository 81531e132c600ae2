/* Servers: game servers that register on the server port.
 *
 *            hello                silent for heartbeat_ms
 *   (new) ─────────▶ connected ─────────────────────────────▶ Offline ──forget_ms──▶ (deleted)
 *                     │    ▲                                      │
 *        connection   │    │ hello of the same address, then      │
 *        lost         ▼    │ its match list (or list_ms)          │
 *                    away ─┴──────────────────────────────────────┘
 *
 * Identity is the connection: whoever proved to be server n on connection c is server n as long as
 * c lives. What a server reports (soft) and what we reserved on it (durable) are two numbers;
 * placement uses the larger. */
#include "base/plant.h"
#include "core/state.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_MIN = 1024, PORT_MAX = 65535, CAPACITY_MAX = 1000, LIST_FULL = 255 };

/* ── status and place ──────────────────────────────────────────────────────────────────────── */

int32_t server_load(const struct server *server)
{
    if (PLANTED(heartbeat_overwrites))
        return server->reported;
    int32_t known = server->held + server->stranger_slots;
    return server->reported > known ? server->reported : known;
}

enum server_status server_status(const struct server *server)
{
    if (server->offline)
        return SERVER_OFFLINE;
    if (server->row.draining)
        return SERVER_DRAINING;
    return server_load(server) >= server->row.max_sessions ? SERVER_FULL : SERVER_AVAILABLE;
}

static enum passed_over reason_of(const struct server *server)
{
    if (server->offline)
        return PASSED_OFFLINE;
    if (!server->conn)
        return PASSED_AWAY;
    if (!server->listed)
        return PASSED_UNLISTED;
    if (server->row.draining || !server->fleet->config)
        return PASSED_DRAINING;
    if (deadline_is_set(&server->backoff))
        return PASSED_FAILING;
    if (server_load(server) >= server->row.max_sessions)
        return PASSED_FULL;
    return PASSED_NOT;
}

static struct group *group_of(struct server *server)
{
    return &server->fleet->groups[server->row.region];
}

/* Those who wait may find room there now. */
static void stir(struct core *core, const struct server *server)
{
    struct fleet *fleet = server->fleet;
    if (list_empty(&fleet->tickets_waiting))
        return;
    fleet->stirred |= (uint64_t)1 << server->row.region;
    core->tickets_stirred = true;
}

void server_unblocked(struct core *core, const struct server *server)
{
    if (server->passed_over == PASSED_NOT)
        stir(core, server);
}

/* It is awaited no more. They may wait for nobody now; but who has tried some does not wait for
 * those, so it can only be so when as few are left. */
static void desert(struct core *core, struct server *server)
{
    struct fleet *fleet = server->fleet;
    if (list_empty(&fleet->tickets_waiting) || group_of(server)->awaited > TICKET_TRIES)
        return;
    fleet->deserted |= (uint64_t)1 << server->row.region;
    core->tickets_stirred = true;
}

static void leave_group(struct core *core, struct server *server)
{
    if (!server->grouped)
        return;
    struct group *group = group_of(server);
    heap_remove(&group->placeable, &server->place);
    group->count[server->passed_over]--;
    group_count(group, &server->share, -1);
    server->grouped = false;
    if (server->share.awaited)
        desert(core, server);
}

static struct share share_of(const struct server *server)
{
    int32_t load = server_load(server);
    bool awaited = server->expected && !server->offline && !server->row.draining &&
                   server->fleet->config && load < server->row.max_sessions;
    return (struct share){
        .status = (int8_t)server_status(server),
        .connected = server->conn != 0,
        .awaited = awaited,
        .load = load,
        .max = server->row.max_sessions,
        .open = server->open,
        .cpu_centi = (int32_t)(server->cpu_percent * 100),
        .memory_centi = (int32_t)(server->memory_percent * 100),
        .ratio_ppm = (int64_t)load * 1000000 / server->row.max_sessions,
    };
}

void server_refresh(struct core *core, struct server *server)
{
    struct group *group = group_of(server);
    struct share before = server->share;
    bool had_room = server->passed_over == PASSED_NOT && server->grouped;
    if (server->grouped) {
        group->count[server->passed_over]--;
        group_count(group, &server->share, -1);
    }
    server->grouped = true;
    server->share = share_of(server);
    group_count(group, &server->share, 1);
    server->passed_over = reason_of(server);
    group->count[server->passed_over]++;
    if (before.awaited && !server->share.awaited)
        desert(core, server);
    if (server->passed_over != PASSED_NOT) {
        heap_remove(&group->placeable, &server->place);
        return;
    }
    if (!had_room || server->share.load < before.load)
        stir(core, server);
    double score = placement_score(server);
    bool stays = heap_has(&server->place) && server->score == score &&
                 server->placed_idle_core_ms == server->idle_since_core_ms;
    if (stays) /* and so nobody else has to be looked at */
        return;
    server->score = score;
    server->placed_idle_core_ms = server->idle_since_core_ms;
    heap_update(&group->placeable, &server->place);
}

/* A line about this server, with all that identifies it. */
static struct effect *server_note(struct core *core, const struct server *server, enum note kind)
{
    struct str ip = text_keep(core, str_of(server->row.ip));
    struct str region = text_keep(core, str_of(core->config.regions[server->row.region].name));
    struct effect *note = note_add(core, kind);
    note->server_id = (int32_t)server->row.id;
    note->ip = ip;
    note->port = server->row.port;
    note->region = region;
    note->region_code = server->row.region;
    note->fleet_id = server->row.fleet;
    return note;
}

/* While it is passed over it is asked nothing new, so what fails then was asked before: one drop
 * that takes ten attempts with it is one failure. */
void server_failed(struct core *core, struct server *server, const char *why)
{
    const struct core_timeouts *t = &core->config.timeouts;
    if (deadline_is_set(&server->backoff))
        return;
    int64_t next_ms = server->backoff_ms ? server->backoff_ms * 2 : t->backoff_first_ms;
    server->backoff_ms = next_ms < t->backoff_max_ms ? next_ms : t->backoff_max_ms;
    deadline_set(core, &server->backoff, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + server->backoff_ms);
    struct effect *note = server_note(core, server, NOTE_SERVER_BACKOFF);
    note->text = str_of(why);
    note->wall_ms = server->backoff_ms;
    server_refresh(core, server);
}

void server_succeeded(struct core *core, struct server *server)
{
    server->backoff_ms = 0;
    if (!deadline_is_set(&server->backoff))
        return;
    deadline_clear(core, &server->backoff);
    server_refresh(core, server);
}

/* ── hello ─────────────────────────────────────────────────────────────────────────────────── */

enum { ADDRESS_TEXT = sizeof(((struct row_server *)0)->ip) };

static bool is_reachable_v4(struct in_addr address)
{
    uint32_t first = ntohl(address.s_addr) >> 24;
    return first != 0 && first < 224; /* not "this network", multicast, reserved or broadcast */
}

/* The one spelling of an address that somebody can be reached at; false for anything else. */
static bool spell_address(struct str ip, char dst[ADDRESS_TEXT])
{
    struct in_addr v4;
    struct in6_addr v6;
    if (!str_copy(dst, ADDRESS_TEXT, ip))
        return false;
    if (inet_pton(AF_INET, dst, &v4) == 1)
        return is_reachable_v4(v4);
    if (inet_pton(AF_INET6, dst, &v6) != 1)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
        memcpy(&v4, &v6.s6_addr[12], sizeof(v4));
        return is_reachable_v4(v4) && inet_ntop(AF_INET, &v4, dst, ADDRESS_TEXT);
    }
    return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_MULTICAST(&v6) &&
           inet_ntop(AF_INET6, &v6, dst, ADDRESS_TEXT);
}

static int judge_hello(const struct core *core, const struct chat_sv_handshake *hello,
                       const struct enrolment *enrolment)
{
    if (!enrolment)
        return ERR_INVALID_TOKEN;
    char ip[ADDRESS_TEXT];
    if (!spell_address(hello->ip, ip))
        return ERR_INVALID_IP;
    if (hello->port < PORT_MIN || hello->port > PORT_MAX)
        return ERR_INVALID_PORT;
    if (!region_configured(core, hello->region) || !is_bit(enrolment->regions, hello->region))
        return ERR_INVALID_REGION;
    if (hello->max_concurrent_matches < 1 || hello->max_concurrent_matches > CAPACITY_MAX)
        return ERR_INVALID_CAPACITY;
    return 0;
}

static void refuse_hello(struct core *core, conn_id conn, int err)
{
    (void)note_refused(core, conn, err);
    effect_add(core, EFFECT_SERVER_HELLO, conn)->err = err;
}

/* A chain key; find_endpoint compares in full. */
static uint64_t endpoint_key(int64_t fleet, struct str ip, int32_t port)
{
    return str_hash((uint64_t)fleet << 16 ^ (uint64_t)port, ip);
}

static uint64_t endpoint_key_of(const struct row_server *row)
{
    return endpoint_key(row->fleet, str_of(row->ip), row->port);
}

static struct server *find_endpoint(const struct core *core, const struct fleet *fleet,
                                    struct str ip, int32_t port)
{
    uint64_t key = endpoint_key(fleet->row.id, ip, port);
    struct chain_link *n = chain_first(&core->servers_by_endpoint, key);
    for (; n; n = n->next) {
        struct server *server = container_of(n, struct server, by_endpoint);
        if (server->row.fleet == fleet->row.id && server->row.port == port &&
            str_eq(str_of(server->row.ip), ip))
            return server;
    }
    return NULL;
}

struct server *server_load_row(struct core *core, const struct row_server *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    if (!fleet || row->region < 0 || row->region >= REGION_CODES || row->max_sessions < 1)
        return NULL;
    struct server *server = xcalloc(1, sizeof(*server));
    server->object.kind = ROW_server;
    server->row = *row;
    server->fleet = fleet;
    server->max_allowed = row->max_sessions;
    server->idle_since_core_ms = row->registered_core_ms;
    server->silent.kind = DEADLINE_SERVER_SILENT;
    server->list.kind = DEADLINE_SERVER_LIST;
    server->challenged.kind = DEADLINE_SERVER_CHALLENGE;
    server->backoff.kind = DEADLINE_SERVER_BACKOFF;
    server->forget.kind = DEADLINE_SERVER_FORGET;
    list_init(&server->sessions);
    map_put(&core->servers, (uint64_t)row->id, server);
    object_enter(core, &server->object);
    chain_add(&core->servers_by_endpoint, endpoint_key_of(row), &server->by_endpoint);
    return server;
}

static struct server *new_server(struct core *core, struct fleet *fleet,
                                 const struct chat_sv_handshake *hello)
{
    struct row_server row = {
        .id = object_new_id(core, ROW_server),
        .fleet = (int32_t)fleet->row.id,
        .port = hello->port,
        .region = hello->region,
        .max_sessions = hello->max_concurrent_matches,
        .registered_core_ms = core->now.core_ms,
    };
    (void)spell_address(hello->ip, row.ip);
    struct server *server = server_load_row(core, &row);
    object_touch(core, &server->object);
    return server;
}

static void hear(struct core *core, struct server *server)
{
    deadline_set(core, &server->silent, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + core->config.timeouts.heartbeat_ms);
}

void server_give_time(struct core *core, struct server *server)
{
    if (!server->conn && !server->offline)
        hear(core, server);
}

static void give_time_to_list(struct core *core, struct server *server)
{
    deadline_set(core, &server->list, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + core->config.timeouts.list_ms);
}

void server_ask_list(struct core *core, struct server *server)
{
    effect_add(core, EFFECT_LIST_ASK, server->conn);
    server->asked_batch = core->seq + 1;
    if (!link_in_list(&server->in_asked))
        list_append(&core->lists_asked, &server->in_asked);
    give_time_to_list(core, server);
}

void servers_asked_leave(struct core *core)
{
    LIST_EACH(&core->lists_asked, server, struct server, in_asked)
    {
        server->asked_batch = core->seq;
    }
}

void servers_asked_left(struct core *core)
{
    LIST_EACH(&core->lists_asked, server, struct server, in_asked)
    {
        if (server->asked_batch > core->left_seq)
            continue;
        list_remove(&server->in_asked);
        if (deadline_is_set(&server->list))
            give_time_to_list(core, server);
    }
}

/* It may come back larger, smaller or elsewhere. What it already holds stays. */
static void update_row(struct core *core, struct server *server, int8_t region,
                       int32_t max_sessions)
{
    if (server->row.region != region || server->row.max_sessions != max_sessions) {
        leave_group(core, server);
        server->row.region = region;
        server->row.max_sessions = max_sessions;
        object_touch(core, &server->object);
    }
    server->max_allowed = max_sessions > server->live ? max_sessions : server->live;
}

static void adopt(struct core *core, struct server *server, conn_id conn, bool is_new)
{
    bool was_offline = server->offline;
    server->conn = conn;
    server->offline = false;
    /* Nobody has given a new one anything, unless that was forgotten when we were set back. */
    bool knows = is_new && core->rolls[ROW_restore].n == 0;
    server->listed = knows;
    server->cannot_list = false;
    server->shortfalls = 0;
    server->zeros = 0;
    deadline_clear(core, &server->forget);
    hear(core, server);
    server->heard_core_ms = server->connected_core_ms = core->now.core_ms;
    server->round_trip_us = 0;
    peer_bind(core, conn,
              (struct peer){.role = PEER_SERVER, .server = server, .enrolment = server->enrolment});

    struct effect *e = effect_add(core, EFFECT_SERVER_HELLO, conn);
    e->server_id = (int32_t)server->row.id;
    e->wall_ms = core->now.wall_ms;
    server_note(core, server, is_new ? NOTE_SERVER_REGISTERED : NOTE_SERVER_RETURNED)->on =
        was_offline;
    if (!knows)
        server_ask_list(core, server);
    if (server->row.draining & DRAIN_BY_OPERATOR)
        effect_add(core, EFFECT_DRAIN, conn)->on = true;
    server->drain_in_doubt = (server->row.draining & DRAIN_BY_SERVER) != 0;
    server_refresh(core, server);
}

/* The old connection may be a ghost: ask it. Its PONG decides, or its silence. */
static void challenge(struct core *core, struct server *server, conn_id conn,
                      const struct chat_sv_handshake *hello, int64_t enrolment)
{
    if (server->challenge.conn) {
        refuse_hello(core, conn, ERR_ALREADY_REGISTERED);
        return;
    }
    server->challenge.conn = conn;
    server->challenge.region = hello->region;
    server->challenge.max_sessions = hello->max_concurrent_matches;
    server->challenge.enrolment = enrolment;
    peer_bind(
        core, conn,
        (struct peer){
            .role = PEER_SERVER, .challenging = true, .server = server, .enrolment = enrolment});
    effect_add(core, EFFECT_PING, server->conn);
    deadline_set(core, &server->challenged, DEADLINE_AWAKE,
                 deadline_now(core, DEADLINE_AWAKE) + core->config.timeouts.challenge_ms);
}

void server_hello(struct core *core, conn_id conn, const struct chat_sv_handshake *hello)
{
    struct enrolment scratch;
    const struct enrolment *enrolment =
        enrolment_find(core, hello->server_token, ROLE_SERVER, &scratch);
    int err = judge_hello(core, hello, enrolment);
    if (err) {
        refuse_hello(core, conn, err);
        return;
    }
    struct fleet *fleet = fleet_named(core, enrolment->fleet);
    char ip[ADDRESS_TEXT];
    (void)spell_address(hello->ip, ip);
    struct server *server = find_endpoint(core, fleet, str_of(ip), hello->port);
    if (server && server->conn) {
        challenge(core, server, conn, hello, enrolment->stored);
    } else if (server) {
        server->enrolment = enrolment->stored;
        update_row(core, server, hello->region, hello->max_concurrent_matches);
        adopt(core, server, conn, false);
    } else if ((int32_t)core->servers.len >= core->config.limits.servers) {
        refuse_hello(core, conn, ERR_INTERNAL);
    } else {
        server = new_server(core, fleet, hello);
        server->enrolment = enrolment->stored;
        adopt(core, server, conn, true);
    }
}

bool server_hello_changes_nothing(const struct core *core, const struct chat_sv_handshake *hello)
{
    struct enrolment scratch;
    const struct enrolment *enrolment =
        enrolment_find(core, hello->server_token, ROLE_SERVER, &scratch);
    if (judge_hello(core, hello, enrolment))
        return true; /* a refusal */
    char ip[ADDRESS_TEXT];
    (void)spell_address(hello->ip, ip);
    const struct fleet *fleet = fleet_find_named(core, enrolment->fleet);
    const struct server *server =
        fleet ? find_endpoint(core, fleet, str_of(ip), hello->port) : NULL;
    return server && !server->conn && server->row.region == hello->region &&
           server->row.max_sessions == hello->max_concurrent_matches;
}

/* ── strangers ─────────────────────────────────────────────────────────────────────────────── */

static void forget_strangers(struct core *core, struct server *server)
{
    if (server->n_strangers > 0)
        server_unblocked(core, server);
    free(server->strangers);
    server->strangers = NULL;
    server->n_strangers = 0;
    server->stranger_slots = 0;
}

bool server_has_stranger(const struct server *server, int32_t lobby)
{
    for (int32_t i = 0; i < server->n_strangers; i++) {
        if (server->strangers[i] == lobby)
            return true;
    }
    return false;
}

void server_doubt(struct core *core, struct server *server, int32_t lobby)
{
    size_t n = (size_t)server->n_strangers + 1;
    server->strangers = xrealloc(server->strangers, n * sizeof(*server->strangers));
    server->strangers[server->n_strangers++] = lobby;
    server->stranger_slots++;
    if (!deadline_is_set(&server->list))
        server_ask_list(core, server);
}

void server_stranger_ended(struct core *core, struct server *server, int32_t lobby)
{
    for (int32_t i = 0; i < server->n_strangers; i++) {
        if (server->strangers[i] != lobby)
            continue;
        server->strangers[i] = server->strangers[--server->n_strangers];
        server_unblocked(core, server);
        if (server->stranger_slots > server->n_strangers)
            server->stranger_slots = server->n_strangers;
        server_refresh(core, server);
        return;
    }
}

/* A heartbeat counts what is open here and the strangers; fewer means that some of them ended. */
static void count_strangers(struct core *core, struct server *server)
{
    int32_t others = server->reported > server->open ? server->reported - server->open : 0;
    if (others == 0)
        forget_strangers(core, server);
    else if (server->stranger_slots > others)
        server->stranger_slots = others;
}

/* ── connection lost, silence ──────────────────────────────────────────────────────────────── */

/* Sessions that were being opened there go to another server; what was said on the connection may
 * not have arrived. */
static void let_go(struct core *core, struct server *server)
{
    LIST_EACH(&server->sessions, session, struct session, on_server)
    {
        session_untold(core, session);
        lobby_server_changed(core, session);
        if (session->row.state == SESSION_OPENING && !core->read_only)
            session_failed(core, session, TRY_DROPPED);
    }
}

static void drop(struct core *core, struct server *server)
{
    peer_unbind(core, server->conn);
    server->conn = 0;
    server->listed = false;
    list_remove(&server->in_asked);
    deadline_clear(core, &server->list);
    server_refresh(core, server);
    let_go(core, server);
}

/* The challenger has won. */
static void hand_over(struct core *core, struct server *server)
{
    conn_id conn = server->challenge.conn;
    server->challenge.conn = 0;
    deadline_clear(core, &server->challenged);
    peer_unbind(core, conn);
    server->enrolment = server->challenge.enrolment;
    update_row(core, server, server->challenge.region, server->challenge.max_sessions);
    adopt(core, server, conn, false);
}

void server_gone(struct core *core, struct server *server)
{
    (void)server_note(core, server, NOTE_SERVER_DROPPED);
    drop(core, server);
    if (server->challenge.conn)
        hand_over(core, server);
}

void server_alive(struct core *core, struct server *server)
{
    if (!server->challenge.conn)
        return;
    conn_id conn = server->challenge.conn;
    server->challenge.conn = 0;
    deadline_clear(core, &server->challenged);
    peer_unbind(core, conn);
    refuse_hello(core, conn, ERR_ALREADY_REGISTERED);
}

static void challenge_over(struct core *core, struct server *server)
{
    effect_close(core, server->conn, "Replaced by a new connection");
    drop(core, server);
    hand_over(core, server);
}

static void silent_too_long(struct core *core, struct server *server)
{
    conn_id conn = server->conn;
    (void)server_note(core, server, NOTE_SERVER_OFFLINE);
    server->offline = true;
    server->expected = false;
    if (conn) {
        effect_close(core, conn, "Silent for too long");
        drop(core, server);
    }
    server_refresh(core, server);
    let_go(core, server);
    LIST_EACH(&server->sessions, session, struct session, on_server)
    {
        if (session->row.state == SESSION_OPEN)
            session_lose(core, session);
    }
    if (server->challenge.conn)
        hand_over(core, server);
    server_maybe_forget(core, server);
}

void server_maybe_forget(struct core *core, struct server *server)
{
    if (server->offline && list_empty(&server->sessions) && !deadline_is_set(&server->forget))
        deadline_set(core, &server->forget, DEADLINE_CORE,
                     core->now.core_ms + core->config.timeouts.forget_ms);
}

void server_unlink(struct core *core, struct server *server)
{
    leave_group(core, server);
    forget_strangers(core, server);
    list_remove(&server->in_asked);
    deadline_clear(core, &server->silent);
    deadline_clear(core, &server->list);
    deadline_clear(core, &server->challenged);
    deadline_clear(core, &server->backoff);
    deadline_clear(core, &server->forget);
    map_remove(&core->servers, (uint64_t)server->row.id);
    chain_remove(&core->servers_by_endpoint, endpoint_key_of(&server->row), &server->by_endpoint);
}

static void forget(struct core *core, struct server *server)
{
    if (!server->offline || !list_empty(&server->sessions))
        return;
    (void)server_note(core, server, NOTE_SERVER_FORGOTTEN);
    server_unlink(core, server);
    object_delete(core, &server->object);
}

/* ── drain ─────────────────────────────────────────────────────────────────────────────────── */

static void set_draining(struct core *core, struct server *server, int draining)
{
    if (server->row.draining == draining)
        return;
    bool was = server->row.draining != 0;
    server->row.draining = (int8_t)draining;
    object_touch(core, &server->object);
    if (was != (draining != 0)) {
        enum note kind = draining ? NOTE_SERVER_DRAINING : NOTE_SERVER_UNDRAINED;
        (void)server_note(core, server, kind);
    }
    server_refresh(core, server);
}

/* A server takes back only its own word, an operator everybody's. */
void server_drain(struct core *core, struct server *server, enum drain_by by, bool on)
{
    int others = server->row.draining & ~(int)by;
    if (by == DRAIN_BY_SERVER)
        server->drain_in_doubt = false;
    if (on)
        set_draining(core, server, others | (int)by);
    else
        set_draining(core, server, by == DRAIN_BY_SERVER ? others : 0);
}

/* A process that drained itself and exited has kept its word; the next one at its address, which
 * holds nothing and did not say it again, has given none. */
static void settle_drain(struct core *core, struct server *server, const struct chat_list *list)
{
    if (server->drain_in_doubt && list->n == 0)
        set_draining(core, server, server->row.draining & ~(int)DRAIN_BY_SERVER);
    server->drain_in_doubt = false;
}

/* ── match list and heartbeat ──────────────────────────────────────────────────────────────── */

static bool list_has(const struct chat_list *list, int32_t lobby)
{
    struct cursor c = cursor_of(list->data, list->len);
    for (uint32_t i = 0; i < list->n; i++) {
        if (cursor_i32(&c) == lobby)
            return true;
    }
    return false;
}

/* A connection keeps its order, so what was OPEN here when the list arrives was acknowledged before
 * the list was made; and a CANCEL not yet sent on this connection cannot have crossed it. A list
 * that is as long as it can be proves nothing about what is not in it. */
static void reconcile(struct core *core, struct server *server, const struct chat_list *list)
{
    bool whole = list->n < LIST_FULL;
    LIST_EACH(&server->sessions, session, struct session, on_server)
    {
        bool held = list_has(list, session->row.lobby);
        enum session_state state = (enum session_state)session->row.state;
        if (held && state == SESSION_LOST)
            session_back(core, session);
        else if (!held && whole && (state == SESSION_OPEN || state == SESSION_LOST))
            session_end(core, session, END_NOT_LISTED);
        else if (!held && whole && state == SESSION_CANCELLING && !session->told)
            session_let_go(core, session);
    }
}

/* What it lists beyond that is real too, whoever gave it: remember which, so that neither its slot
 * nor its id is given again. */
static void meet_strangers(struct core *core, struct server *server, const struct chat_list *list)
{
    int32_t known = server->n_strangers;
    forget_strangers(core, server);
    struct cursor c = cursor_of(list->data, list->len);
    for (uint32_t i = 0; i < list->n; i++) {
        int32_t lobby = cursor_i32(&c);
        if (session_here(core, server, lobby))
            continue;
        if (!server->strangers)
            server->strangers = xmalloc(list->n * sizeof(*server->strangers));
        server->strangers[server->n_strangers++] = lobby;
    }
    server->stranger_slots = server->n_strangers;
    if (!server->strangers || server->n_strangers <= known)
        return;
    struct effect *note = server_note(core, server, NOTE_SERVER_UNKNOWN_MATCH);
    note->lobby = server->strangers[0];
}

/* What is being opened is asked again even if it was: while nothing could be stored its answer was
 * let go, and the time for it ran. */
void server_settle(struct core *core, struct server *server)
{
    LIST_EACH(&server->sessions, session, struct session, on_server)
    {
        if (!session->told || session->row.state == SESSION_OPENING)
            session_settle(core, session);
        lobby_server_changed(core, session);
    }
}

static void listed(struct core *core, struct server *server)
{
    bool first = !server->listed;
    server->listed = true;
    server->expected = false;
    deadline_clear(core, &server->list);
    server_refresh(core, server);
    if (first)
        server_settle(core, server);
}

void server_match_list(struct core *core, conn_id conn, const struct chat_sv_match_list *list)
{
    struct peer *peer = peer_find(core, conn);
    if (!peer || !peer->server || peer->challenging || peer->server->row.id != list->server_id) {
        core->spoofed++;
        note_refused(core, conn, ERR_NOT_REGISTERED)->server_id = list->server_id;
        return;
    }
    struct server *server = peer->server;
    server->cannot_list = false;
    server->shortfalls = 0;
    server->zeros = 0;
    server->reported = (int32_t)list->lobbies.n; /* newer evidence than its last heartbeat */
    reconcile(core, server, &list->lobbies);
    meet_strangers(core, server, &list->lobbies);
    settle_drain(core, server, &list->lobbies);
    listed(core, server);
}

/* Asked and not answered: it does not know the list. It is there, so its matches are. But not when
 * the question is still waiting for the disk: what it holds is unknown then, and it gets nothing.
 */
static void list_missing(struct core *core, struct server *server)
{
    if (!server->listed && (core->read_only || link_in_list(&server->in_asked))) {
        give_time_to_list(core, server);
        return;
    }
    server->cannot_list = true;
    LIST_EACH(&server->sessions, session, struct session, on_server)
    {
        if (session->row.state == SESSION_LOST)
            session_back(core, session);
    }
    if (!server->listed)
        listed(core, server);
}

/* A server without lists says twice that it has nothing: its older matches are over. */
static void end_unreported(struct core *core, struct server *server)
{
    LIST_EACH(&server->sessions, session, struct session, on_server)
    {
        int64_t age_ms = core->now.core_ms - session->row.opened_core_ms;
        if (session->row.state == SESSION_OPEN && age_ms > core->config.timeouts.zero_report_ms)
            session_end(core, session, END_NOT_REPORTED);
    }
}

/* Fewer matches reported than are open: once may be a heartbeat that crossed an ACK; twice is worth
 * asking which. Weak evidence closes nothing. */
static void look_at_shortfall(struct core *core, struct server *server)
{
    if (server->reported >= server->open) {
        server->shortfalls = 0;
        server->zeros = 0;
        server->shortfall_noted = false;
        return;
    }
    server->shortfalls++;
    server->zeros = server->reported == 0 ? server->zeros + 1 : 0;
    if (server->shortfalls < 2 || core->read_only)
        return;
    if (!server->cannot_list) {
        if (!deadline_is_set(&server->list))
            server_ask_list(core, server);
        return;
    }
    if (server->zeros >= 2) {
        end_unreported(core, server);
    } else if (!server->shortfall_noted) {
        server->shortfall_noted = true;
        (void)server_note(core, server, NOTE_SERVER_SHORTFALL);
    }
}

void server_heartbeat(struct core *core, conn_id conn, const struct chat_sv_heartbeat *beat)
{
    struct effect *e = batch_immediate(core->out, EFFECT_HEARTBEAT, conn);
    e->wall_ms = core->now.wall_ms;
    struct peer *peer = peer_find(core, conn);
    if (!peer || !peer->server || peer->challenging) {
        e->err = ERR_DISCONNECTED;
        return;
    }
    struct server *server = peer->server;
    if (server->row.id != beat->server_id) {
        e->err = ERR_NOT_REGISTERED;
        core->spoofed++;
        note_refused(core, conn, ERR_NOT_REGISTERED)->server_id = beat->server_id;
        return;
    }
    server->reported = beat->current_match_count;
    server->cpu_percent = beat->cpu_percent;
    server->memory_percent = beat->memory_percent;
    count_strangers(core, server);
    server->heard_core_ms = core->now.core_ms;
    hear(core, server);
    server_refresh(core, server);
    look_at_shortfall(core, server);
}

/* ── time, loading ─────────────────────────────────────────────────────────────────────────── */

void server_deadline(struct core *core, struct server *server, enum deadline_kind kind)
{
    switch (kind) {
    case DEADLINE_SERVER_SILENT:
        silent_too_long(core, server);
        break;
    case DEADLINE_SERVER_LIST:
        list_missing(core, server);
        break;
    case DEADLINE_SERVER_CHALLENGE:
        challenge_over(core, server);
        break;
    case DEADLINE_SERVER_BACKOFF:
        server_refresh(core, server);
        break;
    case DEADLINE_SERVER_FORGET:
        forget(core, server);
        break;
    default:
        assert(false);
    }
}

/* After a start nothing is concluded before every server had its full time to speak. */
void server_loaded(struct core *core, struct server *server)
{
    server->object.stored = true;
    server->expected = true;
    hear(core, server);
    server_refresh(core, server);
}

void server_take_over(struct core *core, struct server *fresh, struct server *old)
{
    fresh->conn = old->conn;
    fresh->enrolment = old->enrolment;
    fresh->heard_core_ms = old->heard_core_ms;
    fresh->connected_core_ms = old->connected_core_ms;
    fresh->round_trip_us = old->round_trip_us;
    fresh->listed = old->listed;
    fresh->expected = old->expected;
    fresh->cannot_list = old->cannot_list;
    fresh->reported = old->reported;
    fresh->strangers = old->strangers;
    fresh->n_strangers = old->n_strangers;
    fresh->stranger_slots = old->stranger_slots;
    old->strangers = NULL;
    fresh->cpu_percent = old->cpu_percent;
    fresh->memory_percent = old->memory_percent;
    fresh->backoff_ms = old->backoff_ms;
    fresh->idle_since_core_ms = old->idle_since_core_ms;
    fresh->max_allowed = fresh->live > old->max_allowed ? fresh->live : old->max_allowed;
    /* One that was Offline is found to be so again, for what that did may be among the lost. */
    int64_t awake_ms = deadline_now(core, DEADLINE_AWAKE);
    deadline_set(core, &fresh->silent, DEADLINE_AWAKE,
                 deadline_is_set(&old->silent) ? deadline_at_ms(&old->silent) : awake_ms);
    if (deadline_is_set(&old->list))
        deadline_set(core, &fresh->list, DEADLINE_AWAKE, deadline_at_ms(&old->list));
    if (deadline_is_set(&old->backoff))
        deadline_set(core, &fresh->backoff, DEADLINE_AWAKE, deadline_at_ms(&old->backoff));
    if (fresh->conn)
        peer_bind(
            core, fresh->conn,
            (struct peer){.role = PEER_SERVER, .server = fresh, .enrolment = fresh->enrolment});
    server_refresh(core, fresh);
}

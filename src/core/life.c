/* A core's beginning and end: made empty, filled from stored rows, taken over from one whose last
 * changes could not be stored, freed. */
#include "core/client.h"
#include "core/lobby_tell.h"
#include "core/state.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct core *core_new(const struct core_config *config, const uint8_t secret[CORE_SECRET_SIZE])
{
    if (sodium_init() < 0)
        abort();
    struct core *core = xcalloc(1, sizeof(*core));
    core->config = *config;
    memcpy(core->secret, secret, CORE_SECRET_SIZE);
    slab_init(&core->memory[ROW_ticket], sizeof(struct ticket));
    slab_init(&core->memory[ROW_session], sizeof(struct session));
    slab_init(&core->memory[ROW_seat], sizeof(struct seat));
    slab_init(&core->memory[ROW_room_ticket], sizeof(struct room_ticket));
    slab_init(&core->memory[ROW_room_seat], sizeof(struct room_seat));
    slab_init(&core->memory[ROW_allocation], sizeof(struct allocation));
    list_init(&core->allocations_finished);
    list_init(&core->allocations_owed);
    list_init(&core->allocations_lost);
    list_init(&core->allocations_lined);
    list_init(&core->waiting);
    list_init(&core->to_serve);
    list_init(&core->dirty);
    heap_init(&core->bans_held, ban_expires_before);
    list_init(&core->finished);
    list_init(&core->lists_asked);
    list_init(&core->events_sent);
    list_init(&core->lobbies_due);
    list_init(&core->lobbies_sent);
    list_init(&core->finished_lobbies);
    list_init(&core->switching);
    list_init(&core->quarantined);
    list_init(&core->rooms_ended);
    rates_init(&core->rates);
    list_init(&core->room_tickets_finished);
    for (int i = 0; i < REGION_CODES; i++)
        list_init(&core->hosts_in[i]);
    for (int i = 0; i < DEADLINE_CLOCKS; i++)
        wheel_init(&core->deadlines[i]);
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        core->counters[kind] = (struct object){.kind = ROW_counter};
        core->counter_rows[kind] = (struct row_counter){.id = kind, .next = 1};
        core->next_id[kind] = 1;
    }
    core->counter_rows[ROW_lobby].next = core->next_id[ROW_lobby] = LOBBY_ID_FIRST;
    return core;
}

static void free_all(struct map *m)
{
    size_t at = 0;
    void *value = NULL;
    while ((value = map_next(m, &at)))
        free(value);
    map_done(m);
}

static void unstage(struct change *staged)
{
    if (staged)
        row_disown(staged->kind, &staged->row_id);
    free(staged);
}

static void free_staged(struct core *core)
{
    size_t at = 0;
    for (struct change *staged = NULL; (staged = map_next(&core->staged, &at));)
        unstage(staged);
    map_done(&core->staged);
}

/* Every object of a kind that is in no map of its own. */
static void free_kind(struct core *core, enum row_kind kind)
{
    size_t at = 0;
    for (struct object *o = NULL; (o = object_next(core, kind, &at));)
        object_free(core, o);
}

static void free_rooms(struct core *core)
{
    static const enum row_kind kinds[] = {
        ROW_allocation_detail, ROW_token_mode,  ROW_allocation, ROW_room_detail,
        ROW_room_seat,         ROW_room_ticket, ROW_room,       ROW_ban,
        ROW_version,           ROW_deployment,  ROW_host,       ROW_ticket_regions};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        free_kind(core, kinds[i]);
    map_done(&core->bans_by_account);
    heap_done(&core->bans_held);
    map_done(&core->bans_by_address);
    map_done(&core->hosts_by_name);
    map_done(&core->rooms_by_server);
    map_done(&core->room_seats_by_player);
    map_done(&core->room_tickets_by_key);
    map_done(&core->allocations_by_name);
    map_done(&core->allocations_by_player);
    map_done(&core->seats_by_token);
    arena_done(&core->view_memory);
    rates_done(&core->rates);
}

static void free_lobbies(struct core *core)
{
    free_kind(core, ROW_lobby);
    free_kind(core, ROW_lobby_roster);
    free_kind(core, ROW_restore);
    map_done(&core->clients);
    map_done(&core->lobbies_by_number);
    map_done(&core->lobby_players);
}

static void free_gone(struct core *core)
{
    LIST_EACH(&core->dirty, object, struct object, dirty)
    {
        if (object->gone)
            object_free(core, object);
    }
}

void core_free(struct core *core)
{
    if (!core)
        return;
    free_gone(core);
    free_rooms(core);
    free_lobbies(core);
    size_t at = 0;
    struct fleet *fleet = NULL;
    while ((fleet = map_next(&core->fleets, &at)))
        fleet_free(fleet);
    map_done(&core->fleets);
    free_all(&core->peers);
    free_staged(core);
    at = 0;
    struct server *server = NULL;
    while ((server = map_next(&core->servers, &at)))
        free(server->strangers);
    free_all(&core->servers);
    free_all(&core->chat_servers);
    map_done(&core->seats);
    free_all(&core->enrolments);
    free_all(&core->audits);
    free_all(&core->requests);
    map_done(&core->enrolments_by_hash);
    map_done(&core->enrolments_by_previous);
    map_done(&core->requests_by_key);
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        roll_done(&core->rolls[kind]);
        slab_done(&core->memory[kind]); /* with every ticket, session and seat */
    }
    map_done(&core->servers_by_endpoint);
    map_done(&core->chat_servers_by_name);
    map_done(&core->sessions_by_lobby);
    map_done(&core->sessions_over);
    map_done(&core->seats_by_player);
    map_done(&core->tickets_by_key);
    sodium_memzero(core->secret, sizeof(core->secret));
    sodium_memzero(core->guids, sizeof(core->guids));
    free(core);
}

/* No number of an object reaches it. */
#define ID_END ((int64_t)1 << 56)

/* ── loading ───────────────────────────────────────────────────────────────────────────────── */

/* Whoever follows a journal keeps staged rows all its life, and most kinds are far smaller than the
 * largest. */
static size_t staged_size(enum row_kind kind)
{
    static const size_t sizes[] = {
#define STAGED_SIZE(kind) sizeof(struct row_##kind),
        ROW_KIND_LIST(STAGED_SIZE)
#undef STAGED_SIZE
    };
    return offsetof(struct change, row_id) + sizes[kind];
}

/* Rows arrive in the order they were written, which need not be the order they depend on each
 * other: they are staged by (kind, id), the last one counts, and objects are made when all have
 * come. */
int core_load(struct core *core, const struct change *change)
{
    int64_t least = change->kind == ROW_counter ? 0 : 1; /* a counter has the number of its kind */
    if (change->kind >= ROW_KINDS || change->id < least || change->id >= ID_END)
        return ERR_FORMAT;
    uint64_t key = staged_key(change->kind, change->id);
    if (change->gone) {
        unstage(map_remove(&core->staged, key));
        return 0;
    }
    struct change *staged = map_get(&core->staged, key);
    if (staged) {
        row_disown(staged->kind, &staged->row_id);
    } else {
        staged = xmalloc(staged_size(change->kind));
        map_put(&core->staged, key, staged);
    }
    memcpy(staged, change, staged_size(change->kind));
    row_own(staged->kind, &staged->row_id); /* the change only borrows what is long */
    return 0;
}

static int make(struct core *core, const struct change *c)
{
    switch (c->kind) {
    case ROW_counter:
        if (c->counter.id >= ROW_KINDS || c->counter.next < 1 || c->counter.next > ID_END)
            return ERR_FORMAT;
        core->counter_rows[c->counter.id] = c->counter;
        core->next_id[c->counter.id] = c->counter.next;
        return 0;
    case ROW_fleet: {
        struct fleet *fleet = fleet_load_row(core, &c->fleet);
        fleet->object.stored = true;
        return 0;
    }
    case ROW_chat_server:
        return chat_server_load_row(core, &c->chat_server) ? 0 : ERR_FORMAT;
    case ROW_server:
        return server_load_row(core, &c->server) ? 0 : ERR_FORMAT;
    case ROW_session:
        return session_load_row(core, &c->session);
    case ROW_seat:
        return seat_load_row(core, &c->seat);
    case ROW_ticket:
        return ticket_load_row(core, &c->ticket) ? 0 : ERR_FORMAT;
    case ROW_enrolment: {
        struct enrolment_token *token = enrolment_load_row(core, &c->enrolment);
        if (token)
            token->object.stored = true;
        return token ? 0 : ERR_FORMAT;
    }
    case ROW_audit:
        audit_load_row(core, &c->audit)->object.stored = true;
        return 0;
    case ROW_request: {
        struct request *request = request_load_row(core, &c->request);
        if (request)
            request->object.stored = true;
        return request ? 0 : ERR_FORMAT;
    }
    case ROW_host:
        return host_load_row(core, &c->host);
    case ROW_deployment:
        return deployment_load_row(core, &c->deployment);
    case ROW_version:
        return version_load_row(core, &c->version);
    case ROW_ban:
        return ban_load_row(core, &c->ban);
    case ROW_room_ticket:
        return room_ticket_load_row(core, &c->room_ticket);
    case ROW_room:
        return room_load_row(core, &c->room);
    case ROW_room_seat:
        return room_seat_load_row(core, &c->room_seat);
    case ROW_allocation:
        return allocation_load_row(core, &c->allocation);
    case ROW_room_detail:
        return room_detail_load_row(core, &c->room_detail);
    case ROW_token_mode:
        return token_mode_load_row(core, &c->token_mode);
    case ROW_allocation_detail:
        return allocation_detail_load_row(core, &c->allocation_detail);
    case ROW_lobby:
        return lobby_load_row(core, &c->lobby);
    case ROW_lobby_roster:
        return lobby_roster_load_row(core, &c->lobby_roster);
    case ROW_restore:
        return restore_load_row(core, &c->restore);
    case ROW_ticket_regions:
        return ticket_regions_load_row(core, &c->ticket_regions);
    case ROW_KINDS:
        break;
    }
    return ERR_FORMAT;
}

static int by_kind_and_id(const void *a, const void *b)
{
    const struct change *x = *(const struct change *const *)a;
    const struct change *y = *(const struct change *const *)b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* In the order of rows.def, which is the order of dependence, and by id: so that a core does not
 * depend on which store it was loaded from. */
static int make_all(struct core *core)
{
    size_t n = core->staged.len;
    const struct change **sorted = xmalloc(n * sizeof(*sorted));
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = map_next(&core->staged, &at);
    qsort(sorted, n, sizeof(*sorted), by_kind_and_id);
    int err = 0;
    for (size_t i = 0; i < n && !err; i++)
        err = make(core, sorted[i]);
    free(sorted);
    free_staged(core);
    return err;
}

/* The kind whose counter gives the numbers of that kind. */
static enum row_kind counted_as(enum row_kind kind)
{
    switch (kind) {
    case ROW_room_ticket:
    case ROW_allocation:
        return ROW_ticket;
    case ROW_room:
        return ROW_session;
    case ROW_room_seat:
        return ROW_seat;
    case ROW_lobby_roster:
        return ROW_lobby;
    default:
        return kind;
    }
}

/* No number is given twice, so every counter is ahead of what is there. */
static int counters_are_ahead(const struct core *core)
{
    size_t at = 0;
    for (enum row_kind kind = ROW_counter + 1; kind < ROW_restore; kind++) {
        int64_t last = roll_previous(&core->rolls[kind], INT64_MAX);
        if (last >= core->next_id[counted_as(kind)])
            return ERR_FORMAT;
    }
    for (const struct room *room = NULL; (room = object_next(core, ROW_room, &at));) {
        if (room->row.server >= core->next_id[ROW_server])
            return ERR_FORMAT;
    }
    return 0;
}

static int by_deadline_and_id(const void *a, const void *b)
{
    const struct row_ticket *x = &(*(const struct ticket *const *)a)->row;
    const struct row_ticket *y = &(*(const struct ticket *const *)b)->row;
    if (x->deadline_core_ms != y->deadline_core_ms)
        return x->deadline_core_ms < y->deadline_core_ms ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Finished ones in the order in which they finished, for the oldest are forgotten first. */
static int tickets_loaded(struct core *core)
{
    size_t n = core->rolls[ROW_ticket].n;
    struct ticket **sorted = xmalloc(n * sizeof(*sorted));
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = object_next(core, ROW_ticket, &at);
    qsort(sorted, n, sizeof(*sorted), by_deadline_and_id);
    int err = 0;
    for (size_t i = 0; i < n && !err; i++)
        err = ticket_loaded(core, sorted[i]);
    free(sorted);
    return err;
}

static void rooms_loaded(struct core *core)
{
    size_t at = 0;
    for (struct room_seat *seat = NULL; (seat = object_next(core, ROW_room_seat, &at));)
        route_added(core, seat); /* not before: modes of tokens come after seats */
    at = 0;
    for (struct host *host = NULL; (host = object_next(core, ROW_host, &at));)
        host_loaded(core, host);
    at = 0;
    for (struct room *room = NULL; (room = object_next(core, ROW_room, &at));)
        room_loaded(core, room);
    at = 0;
    for (struct room_seat *seat = NULL; (seat = object_next(core, ROW_room_seat, &at));)
        room_seat_loaded(core, seat);
    at = 0;
    for (struct allocation *a = NULL; (a = object_next(core, ROW_allocation, &at));)
        allocation_loaded(core, a);
    queues_loaded(core);
    allocations_owe_again(core);
}

int core_loaded(struct core *core, int64_t seq, struct instant now)
{
    core->seq = seq;
    core->left_seq = seq;
    core->now = now;
    int err = make_all(core);
    if (!err)
        err = counters_are_ahead(core);
    size_t at = 0;
    struct server *server = NULL;
    while (!err && (server = object_next(core, ROW_server, &at)))
        server_loaded(core, server);
    at = 0;
    struct session *session = NULL;
    while (!err && (session = object_next(core, ROW_session, &at)))
        err = session_loaded(core, session);
    if (!err)
        err = tickets_loaded(core);
    at = 0;
    struct chat_server *chat = NULL;
    while (!err && (chat = object_next(core, ROW_chat_server, &at)))
        chat_server_loaded(core, chat);
    if (!err)
        rooms_loaded(core);
    if (!err)
        err = lobbies_loaded(core);
    core->fleets_owed = true;
    return err;
}

/* ── taking over ───────────────────────────────────────────────────────────────────────────── */

/* Core has forgotten who spoke on that connection, so it is closed all the same. */
static void close_lost(struct core *fresh, const struct effect *lost)
{
    struct str why = text_keep(fresh, lost->text);
    effect_add(fresh, EFFECT_CLOSE, lost->conn)->text = why;
}

static void refuse_lost(struct core *fresh, const struct effect *lost)
{
    if (lost->kind == EFFECT_ALLOCATED) {
        struct peer *peer = peer_find(fresh, lost->conn);
        uint64_t key = peer && peer->chat ? map_pair((int32_t)peer->chat->row.id, lost->lobby) : 0;
        struct ticket *ticket = key ? map_get(&fresh->tickets_by_key, key) : NULL;
        if (ticket && ticket->row.state == TICKET_OPEN) {
            ticket->asker = lost->conn; /* still open: it will be answered, once */
            return;
        }
    }
    if (lost->kind == EFFECT_SOUGHT) {
        struct allocation *a = allocation_find(fresh, lost->object);
        if (a && a->row.state == ALLOCATION_OPEN && allocation_wait(a, lost->conn))
            return;
    }
    if (lost->kind == EFFECT_PLACED) {
        struct room_ticket *ticket = room_ticket_find(fresh, lost->ticket);
        if (ticket && ticket->row.state == ROOM_TICKET_OPEN && room_ticket_wait(ticket, lost->conn))
            return;
    }
    struct effect *e = effect_add(fresh, lost->kind, lost->conn);
    if (lost->kind == EFFECT_CLIENT_HELLO) { /* it rested on nothing that is stored */
        *e = *lost;
        return;
    }
    e->err = ERR_INTERNAL;
    e->lobby = lost->lobby;
    e->account = lost->account;
    e->verb = lost->verb;
    e->object = lost->object;
}

/* Requests that wait for an answer in the old core. */
static void take_over_tickets(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    struct ticket *ticket = NULL;
    while ((ticket = object_next(old, ROW_ticket, &at))) {
        if (!ticket->asker)
            continue;
        struct ticket *same = ticket_find(fresh, ticket->row.id);
        if (same && same->row.state == TICKET_OPEN)
            same->asker = ticket->asker;
        else
            ticket_refuse(fresh, ticket->asker, ticket->row.lobby, ERR_INTERNAL);
    }
}

/* Connections of objects that were never stored, and hellos that were still undecided. */
static void refuse_unknown_peers(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    struct server *server = NULL;
    while ((server = object_next(old, ROW_server, &at))) {
        if (server->challenge.conn)
            effect_add(fresh, EFFECT_SERVER_HELLO, server->challenge.conn)->err = ERR_INTERNAL;
        if (server->conn && !peer_find(fresh, server->conn))
            effect_close(fresh, server->conn, err_sentence(ERR_INTERNAL));
    }
    at = 0;
    struct chat_server *chat = NULL;
    while ((chat = object_next(old, ROW_chat_server, &at))) {
        if (chat->challenge.conn)
            effect_add(fresh, EFFECT_CHAT_HELLO, chat->challenge.conn)->err = ERR_INTERNAL;
        if (chat->conn && !peer_find(fresh, chat->conn))
            effect_close(fresh, chat->conn, err_sentence(ERR_INTERNAL));
    }
}

/* Who waits, how hosts are, and how often who has asked. */
static void take_over_rooms(struct core *fresh, struct core *old)
{
    size_t at = 0;
    for (struct host *host = NULL; (host = object_next(fresh, ROW_host, &at));) {
        const struct host *same = host_find(old, host->row.id);
        if (same)
            host_take_over(fresh, host, same);
    }
    faults_take_over(fresh, old);
    room_tickets_take_over(fresh, old);
    allocations_take_over(fresh, old);
    rates_take_over(&fresh->rates, &old->rates);
}

/* The fresh core was loaded as if it had never slept. */
static void sleep_like(struct core *fresh, const struct core *old)
{
    wheel_shift(&fresh->deadlines[DEADLINE_AWAKE], -old->asleep_ms);
    fresh->asleep_ms = old->asleep_ms;
    fresh->last_tick_ms = old->last_tick_ms;
}

void core_take_over(struct core *fresh, struct core *old, const struct effects *const lost[],
                    size_t n_lost, struct batch *batch, struct instant now)
{
    fresh->now = now;
    fresh->out = batch;
    sleep_like(fresh, old);
    fresh->read_only = old->read_only;
    fresh->spoofed = old->spoofed;
    fresh->audit_owed = old->audit_owed;
    size_t at = 0;
    struct server *server = NULL;
    while ((server = object_next(fresh, ROW_server, &at))) {
        struct server *same = map_get(&old->servers, (uint64_t)server->row.id);
        if (same)
            server_take_over(fresh, server, same);
    }
    at = 0;
    struct chat_server *chat = NULL;
    while ((chat = object_next(fresh, ROW_chat_server, &at))) {
        const struct chat_server *same = map_get(&old->chat_servers, (uint64_t)chat->row.id);
        if (same)
            chat_server_take_over(fresh, chat, same);
    }
    take_over_tickets(fresh, old);
    clients_take_over(fresh, old);
    lobbies_take_over(fresh, old);
    take_over_rooms(fresh, old);
    for (size_t i = 0; i < n_lost; i++) {
        for (size_t k = 0; k < lost[i]->len; k++) {
            const struct effect *e = &lost[i]->items[k];
            if (e->kind == EFFECT_CLOSE)
                close_lost(fresh, e);
            else if (effect_is_answer(e->kind))
                refuse_lost(fresh, e);
            else
                lobby_tell_again(fresh, e);
        }
    }
    refuse_unknown_peers(fresh, old);
    fresh->out = NULL;
    core_free(old);
}

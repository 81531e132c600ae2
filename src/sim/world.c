#include "sim/world.h"

#include "base/buf.h"
#include "store/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET_MS = 15 * 60 * 1000 };

void world_mix(struct world *w, uint64_t value)
{
    w->hash = (w->hash ^ value ^ (uint64_t)w->now_ms << 20) * 0x100000001b3u;
    w->hash ^= w->hash >> 29;
}

int64_t world_wall_ms(const struct world *w)
{
    return node_wall_ms(w->leader ? w->leader : &w->nodes[0]);
}

int64_t world_core_ms(const struct world *w)
{
    return w->now_ms + w->core_offset_ms;
}

void world_trace(struct world *w, const char *format, ...)
{
    if (!w->trace)
        return;
    (void)fprintf(w->trace, "%10" PRId64 " ", w->now_ms);
    va_list args;
    va_start(args, format);
    (void)vfprintf(w->trace, format, args);
    va_end(args);
    (void)fputc('\n', w->trace);
}

__attribute__((format(printf, 2, 0))) static void broken(struct world *w, const char *format,
                                                         va_list args)
{
    if (w->broken)
        return;
    w->broken = true;
    (void)vsnprintf(w->result->why, sizeof(w->result->why), format, args);
    w->result->violations = 1;
    w->result->at_ms = w->now_ms;
    world_trace(w, "BROKEN %s", w->result->why);
}

void world_broken(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!w->set_back_ms)
        broken(w, format, args);
    va_end(args);
}

void world_wrong(struct world *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    broken(w, format, args);
    va_end(args);
}

static bool earlier(const struct heap_node *a, const struct heap_node *b)
{
    const struct happening *x = container_of(a, struct happening, place);
    const struct happening *y = container_of(b, struct happening, place);
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->order < y->order;
}

struct happening *world_after(struct world *w, int64_t delay_ms, enum happening_kind kind)
{
    struct happening *h = xcalloc(1, sizeof(*h));
    h->at_ms = w->now_ms + (delay_ms > 0 ? delay_ms : 0);
    h->order = w->order++;
    h->kind = kind;
    heap_update(&w->queue, &h->place);
    return h;
}

/* The node to which it happens; NULL = to none. */
static struct node *node_of(struct world *w, const struct happening *h)
{
    const struct wire *wire = NULL;
    switch (h->kind) {
    case HAPPENS_TICK:
    case HAPPENS_COMMITTED:
    case HAPPENS_PARCEL:
    case HAPPENS_RESULT:
    case HAPPENS_GIVE_UP:
    case HAPPENS_CLAIM:
    case HAPPENS_RENEW:
    case HAPPENS_WATCH:
    case HAPPENS_NOTIFY:
        return &w->nodes[h->node];
    case HAPPENS_ERRAND:
        return h->errand->back ? &w->nodes[h->node] : NULL;
    case HAPPENS_LETTER:
    case HAPPENS_PLANE_CLOSED:
        wire = wire_find(w, h->conn);
        return wire && (!h->letter || h->letter->to_plane) ? &w->nodes[wire->node] : NULL;
    default:
        return NULL;
    }
}

/* The lease has a thread of its own, which may be as fast. */
static bool is_timer(const struct happening *h)
{
    bool renewal = h->kind == HAPPENS_ERRAND && h->errand->verb == CELL_RENEW;
    return h->kind == HAPPENS_TICK || renewal;
}

/* While a node is stopped nothing reaches it; it all waits until it runs again, its timers first.
 */
static bool postponed(struct world *w, struct happening *h)
{
    const struct node *n = node_of(w, h);
    bool stopped = n && node_is_stopped(n);
    if (stopped)
        h->at_ms = n->stopped_until_ms + (is_timer(h) ? 0 : 1);
    else if (h->kind != HAPPENS_ERRAND || !errand_waits(w, h))
        return false;
    heap_update(&w->queue, &h->place);
    return true;
}

static void hear(struct world *w, const struct reply *reply)
{
    if (reply->kind == EFFECT_PLACED)
        player_hear(w, reply);
    else if (reply->kind == EFFECT_SOUGHT)
        seeker_hear(w, reply);
    else
        machine_hear(w, reply);
}

/* To machines, players, and those who ask for places and matches. */
static void happen_to_players(struct world *w, struct happening *h)
{
    switch (h->kind) {
    case HAPPENS_REPLY:
        hear(w, h->reply);
        break;
    case HAPPENS_MACHINE:
        machine_wake(w, &w->machines[h->actor]);
        break;
    case HAPPENS_PLAYER:
        player_wake(w, &w->players[h->actor]);
        break;
    case HAPPENS_CONNECT:
        player_connect(w, &w->players[h->actor], h->life);
        break;
    case HAPPENS_PART:
        player_part(w, &w->players[h->actor], h->life);
        break;
    case HAPPENS_SEEKER:
        seeker_wake(w, &w->seekers[h->actor], h->life != 0);
        break;
    case HAPPENS_BROKER:
        broker_wake(w);
        break;
    case HAPPENS_RESULT:
        broker_publish(w, h);
        break;
    case HAPPENS_LEAVE:
        cluster_leave(w, h->actor);
        break;
    case HAPPENS_CLIENT:
        client_wake(w, &w->clients[h->actor]);
        break;
    case HAPPENS_LOADS:
        client_loads(w, &w->clients[h->actor], (int32_t)h->life);
        break;
    case HAPPENS_MATCHMAKER:
        matchmaker_wake(w);
        break;
    default:
        break;
    }
}

static void happen_to_node(struct world *w, struct happening *h)
{
    struct node *n = &w->nodes[h->node];
    bool reigns = n->pipeline && h->life == n->reign;
    if (h->kind == HAPPENS_CRASH && h->life == n->life)
        node_crash(n);
    else if (h->kind == HAPPENS_RESTART && h->life == n->life && n->down)
        node_start(n);
    else if (h->kind == HAPPENS_TICK && reigns)
        node_tick(n);
    else if (h->kind == HAPPENS_COMMITTED && reigns)
        disk_committed(n);
    else if (h->kind == HAPPENS_PARCEL && reigns)
        node_event(n, &h->parcel->event);
}

/* To nodes that share a cell. */
static void happen_in_cell(struct world *w, struct happening *h)
{
    struct node *n = &w->nodes[h->node];
    bool stands_by = !n->down && !n->pipeline && h->life == n->life;
    if (h->kind == HAPPENS_ERRAND)
        errand_arrive(w, h);
    else if (h->kind == HAPPENS_CELL)
        cell_look(w);
    else if (h->kind == HAPPENS_GIVE_UP && n->pipeline)
        leader_gives_up(n, h->life, (int64_t)h->conn);
    else if (h->kind == HAPPENS_CLAIM && n->pipeline)
        leader_claims(n, h->life);
    else if (h->kind == HAPPENS_RENEW && n->pipeline && h->life == n->reign)
        leader_renew(n);
    else if (h->kind == HAPPENS_WATCH && stands_by)
        watcher_wake(n);
    else if (h->kind == HAPPENS_NOTIFY && stands_by)
        watcher_notified(n);
}

static void happen(struct world *w, struct happening *h)
{
    switch (h->kind) {
    case HAPPENS_LETTER:
        wire_arrive(w, h->letter);
        break;
    case HAPPENS_PEER_CLOSED:
        wire_peer_learns(w, h->conn);
        break;
    case HAPPENS_PLANE_CLOSED:
        wire_plane_learns(w, h->conn);
        break;
    case HAPPENS_GAME:
        if (h->life == w->games[h->actor].life)
            game_wake(w, &w->games[h->actor]);
        break;
    case HAPPENS_SPEAK:
        if (h->life == w->games[h->actor].life) {
            game_speak(w, &w->games[h->actor], h->letter);
            h->letter = NULL;
        }
        break;
    case HAPPENS_DROP:
        if (h->life == w->games[h->actor].life)
            game_drop(w, &w->games[h->actor]);
        break;
    case HAPPENS_CHAT:
        chat_wake(w, &w->chats[h->actor]);
        break;
    case HAPPENS_REPEAT:
        chat_repeat(w, &w->chats[h->actor], h->life);
        break;
    case HAPPENS_TICK:
    case HAPPENS_COMMITTED:
    case HAPPENS_CRASH:
    case HAPPENS_RESTART:
    case HAPPENS_PARCEL:
        happen_to_node(w, h);
        break;
    case HAPPENS_FAULT:
        fault_next(w);
        break;
    case HAPPENS_OPERATOR:
        operator_wake(w);
        break;
    case HAPPENS_ERRAND:
    case HAPPENS_GIVE_UP:
    case HAPPENS_CLAIM:
    case HAPPENS_RENEW:
    case HAPPENS_WATCH:
    case HAPPENS_NOTIFY:
    case HAPPENS_CELL:
        happen_in_cell(w, h);
        break;
    case HAPPENS_REPLY:
    case HAPPENS_MACHINE:
    case HAPPENS_PLAYER:
    case HAPPENS_CONNECT:
    case HAPPENS_PART:
    case HAPPENS_SEEKER:
    case HAPPENS_BROKER:
    case HAPPENS_RESULT:
    case HAPPENS_LEAVE:
    case HAPPENS_CLIENT:
    case HAPPENS_LOADS:
    case HAPPENS_MATCHMAKER:
        happen_to_players(w, h);
        break;
    }
}

static void happening_free(struct happening *h)
{
    free(h->letter);
    free(h->parcel);
    free(h->reply);
    errand_free(h->errand);
    free(h);
}

bool world_next(struct world *w)
{
    struct heap_node *top = heap_top(&w->queue);
    if (!top)
        return false;
    struct happening *h = container_of(top, struct happening, place);
    heap_remove(&w->queue, top);
    w->now_ms = h->at_ms;
    if (postponed(w, h))
        return true;
    happen(w, h);
    happening_free(h);
    return true;
}

static void enrol(struct core_config *config, enum enrolment_role role)
{
    struct enrolment *e = &config->enrolments[config->n_enrolments++];
    *e = (struct enrolment){.role = role, .fleet = "default", .regions = UINT64_MAX};
    core_hash_token(STR("x"), e->hash);
}

/* Another fleet on the same hosts, whose only version is broken for a while, players who ask for
 * what hangs, and agents that do not say why something failed. */
static void world_add_faults(struct world *w)
{
    struct random *r = &w->fault_random;
    w->hostile = random_chance(r, 50) ? (int)random_between(r, 1, 2) : 0;
    for (int i = 0; i < w->n_machines; i++)
        w->machines[i].old = random_chance(r, 20);
    if (!random_chance(r, 60))
        return;
    w->tower = w->n_fleets++;
    struct fleet_config *tower = &w->config.fleets[w->tower];
    *tower = w->config.fleets[1];
    (void)str_copy(tower->name, sizeof(tower->name), STR("tower"));
    (void)str_copy(tower->game, sizeof(tower->game), STR("tower"));
    tower->queue_when_full = false;
    tower->spawn_ms = random_between(r, 5, 30) * 1000;
    w->tower_broken_until_ms = random_between(r, 0, 900) * 1000;
    w->config.n_fleets = w->n_fleets;
}

size_t world_pods(const struct world *w)
{
    return w->n_fleets - 1 - (w->tower > 0);
}

/* Rooms: a fleet of servers that agents start, hosts to start them on, players who want them. */
static void add_rooms(struct world *w)
{
    struct random *r = &w->random;
    struct fleet_config *arena = &w->config.fleets[w->n_fleets++];
    *arena = (struct fleet_config){.name = "arena",
                                   .provider = PROVIDER_AGENT,
                                   .game = "game",
                                   .server = "arena",
                                   .versions = {{.name = "1"}},
                                   .n_versions = 1};
    arena->other_regions = random_chance(r, 50);
    arena->max_players = (int32_t)random_between(r, 1, 4);
    arena->spawn_ms = random_between(r, 5, 30) * 1000;
    arena->reserve_ms = random_between(r, 5, 40) * 1000;
    arena->empty_ms = random_between(r, 20, 300) * 1000;
    arena->session_ms = random_between(r, 120, 3600) * 1000;
    w->config.n_fleets = w->n_fleets;
    w->n_machines = (int)random_between(r, 1, MAX_MACHINES);
    w->n_players = (int)random_between(r, 2, MAX_PLAYERS);
    for (int i = 0; i < w->n_machines; i++)
        machine_init(w, &w->machines[i], i);
    for (int i = 0; i < w->n_players; i++)
        player_init(w, &w->players[i], i);
    if (random_chance(r, 70))
        seekers_init(w);
    world_add_faults(w);
}

/* A third of the worlds have two. A die of its own, so that the others stay as they are. */
static int nodes_of(uint64_t seed)
{
    struct random random = {.state = ~seed};
    return random_between(&random, 1, 3) == 1 ? MAX_NODES : 1;
}

void world_init(struct world *w, const struct sim_options *options, struct sim_result *result)
{
    memset(w, 0, sizeof(*w));
    w->random.state = options->seed;
    w->fault_random.state = options->seed * 3 + 1;
    w->hash = 0xcbf29ce484222325u;
    w->trace = options->trace;
    w->result = result;
    w->now_ms = 1000;
    heap_init(&w->queue, earlier);
    w->store = store_open_memory();
    if (random_chance(&w->random, 50)) /* as PostgreSQL; else as the embedded store */
        store_memory_set_depth(w->store, (int)random_between(&w->random, 1, 5));
    w->n_nodes = options->nodes ? options->nodes : nodes_of(options->seed);
    if (w->n_nodes > 1)
        cell_init(w);
    for (int i = 0; i < w->n_nodes; i++)
        node_init(w, &w->nodes[i], i);
    core_config_default(&w->config);
    enrol(&w->config, ROLE_SERVER);
    enrol(&w->config, ROLE_CHAT);
    w->config.timeouts.forget_ms = random_between(&w->random, 60, 1200) * 1000;
    w->config.timeouts.keep_ms = random_between(&w->random, 90, 600) * 1000;
    if (random_chance(&w->random, 30)) /* nothing is forgotten in this world */
        w->config.timeouts.keep_ms = w->config.timeouts.forget_ms = (int64_t)1000 * 3600 * 1000;
    w->config.timeouts.session_ms = random_between(&w->random, 300, 3600) * 1000;
    if (random_chance(&w->random, 15))
        w->config.limits.tickets_kept = (int32_t)random_between(&w->random, 5, 200);
    w->config.fleets[0].ready_required = random_chance(&w->random, 15);
    w->n_games = (int)random_between(&w->random, 1, MAX_GAMES);
    w->n_chats = (int)random_between(&w->random, 1, MAX_CHATS - 1);
    for (int i = 0; i < w->n_games; i++)
        game_init(w, &w->games[i], i);
    for (int i = 0; i < w->n_chats; i++)
        chat_init(w, &w->chats[i], i);
    w->n_fleets = 1;
    if (random_chance(&w->random, 60))
        add_rooms(w);
    if (random_chance(&w->random, 40))
        clients_init(w);
    w->backs_up = random_chance(&w->random, 25) && w->n_nodes == 1;
    for (int i = 0; i < w->n_nodes; i++)
        node_start(&w->nodes[i]);
    world_after(w, 10 * 1000, HAPPENS_FAULT);
    world_after(w, 5 * 1000, HAPPENS_OPERATOR);
}

void world_done(struct world *w)
{
    for (int i = 0; i < w->n_nodes; i++)
        node_done(&w->nodes[i]);
    store_close(w->store);
    backup_done(w);
    plane_done(w);
    shadow_done(w);
    shadow_tickets_done(w);
    shadow_rooms_done(w);
    shadow_faults_done(w);
    shadow_lines_done(w);
    shadow_lobbies_done(w);
    for (struct heap_node *n = heap_top(&w->queue); n; n = heap_top(&w->queue)) {
        struct happening *h = container_of(n, struct happening, place);
        heap_remove(&w->queue, n);
        happening_free(h);
    }
    heap_done(&w->queue);
    size_t at = 0;
    struct wire *wire = NULL;
    while ((wire = map_next(&w->wires, &at)))
        free(wire);
    map_done(&w->wires);
}

static void run_until(struct world *w, int64_t end_ms)
{
    while (!w->broken) {
        struct heap_node *top = heap_top(&w->queue);
        if (!top || container_of(top, struct happening, place)->at_ms > end_ms)
            break;
        (void)world_next(w);
    }
}

void sim_run_seed(const struct sim_options *options, struct sim_result *ret)
{
    memset(ret, 0, sizeof(*ret));
    struct world *w = xmalloc(sizeof(*w));
    world_init(w, options, ret);
    int64_t storm_end_ms = (int64_t)(options->hours * 3600.0 * 1000.0);
    run_until(w, storm_end_ms);
    faults_end(w);
    run_until(w, storm_end_ms + QUIET_MS);
    if (!w->leader)
        world_wrong(w, "nobody leads, a quarter of an hour after the last fault");
    for (int i = 0; i < w->n_chats && !w->broken; i++)
        chat_check_beliefs(w, &w->chats[i]);
    operator_check(w);
    reader_check(w);
    shadow_lines_check(w);
    asks_check(w);
    cluster_check(w);
    routes_check(w);
    shadow_lobbies_check(w);
    ret->hash = w->hash;
    ret->simulated_ms = w->now_ms;
    world_done(w);
    free(w);
}

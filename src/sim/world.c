#include "sim/world.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { QUIET_MS = 15 * 60 * 1000, WALL_START_S = 1700000000 };

void world_mix(struct world *w, uint64_t value)
{
    w->hash = (w->hash ^ value ^ (uint64_t)w->now_ms << 20) * 0x100000001b3u;
    w->hash ^= w->hash >> 29;
}

int64_t world_wall_ms(const struct world *w)
{
    return (int64_t)WALL_START_S * 1000 + w->now_ms + w->wall_offset_ms;
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

void world_broken(struct world *w, const char *format, ...)
{
    if (w->broken)
        return;
    w->broken = true;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(w->result->why, sizeof(w->result->why), format, args);
    va_end(args);
    w->result->violations = 1;
    w->result->at_ms = w->now_ms;
    world_trace(w, "BROKEN %s", w->result->why);
}

static bool earlier(const struct heap_node *a, const struct heap_node *b)
{
    const struct happening *x = container_of(a, struct happening, node);
    const struct happening *y = container_of(b, struct happening, node);
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->order < y->order;
}

struct happening *world_after(struct world *w, int64_t delay_ms, enum happening_kind kind)
{
    struct happening *h = xcalloc(1, sizeof(*h));
    h->at_ms = w->now_ms + (delay_ms > 0 ? delay_ms : 0);
    h->order = w->order++;
    h->kind = kind;
    heap_update(&w->queue, &h->node);
    return h;
}

/* While the control plane is stopped nothing reaches it; it all waits until it runs again, its
 * timers first. */
static bool postponed(struct world *w, struct happening *h)
{
    bool for_plane = h->kind == HAPPENS_TICK || h->kind == HAPPENS_COMMITTED ||
                     h->kind == HAPPENS_PLANE_CLOSED || h->kind == HAPPENS_PARCEL ||
                     h->kind == HAPPENS_RESULT ||
                     (h->kind == HAPPENS_LETTER && h->letter->to_plane);
    if (!for_plane || w->now_ms >= w->stopped_until_ms)
        return false;
    h->at_ms = w->stopped_until_ms + (h->kind == HAPPENS_TICK ? 0 : 1);
    heap_update(&w->queue, &h->node);
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

/* To machines, players and those who ask for places. */
static void happen_in_rooms(struct world *w, struct happening *h)
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
    default:
        break;
    }
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
    case HAPPENS_CHAT:
        chat_wake(w, &w->chats[h->actor]);
        break;
    case HAPPENS_REPEAT:
        chat_repeat(w, &w->chats[h->actor], h->life);
        break;
    case HAPPENS_TICK:
        if (h->life == w->plane_life && w->pipeline)
            plane_tick(w);
        break;
    case HAPPENS_COMMITTED:
        if (h->life == w->plane_life && w->pipeline)
            plane_committed(w);
        break;
    case HAPPENS_CRASH:
        if (h->life == w->plane_life)
            plane_crash(w);
        break;
    case HAPPENS_RESTART:
        if (h->life == w->plane_life && !w->pipeline)
            plane_start(w);
        break;
    case HAPPENS_FAULT:
        fault_next(w);
        break;
    case HAPPENS_OPERATOR:
        operator_wake(w);
        break;
    case HAPPENS_PARCEL:
        if (h->life == w->plane_life && w->pipeline)
            plane_event(w, &h->parcel->event);
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
        happen_in_rooms(w, h);
        break;
    }
}

static void happening_free(struct happening *h)
{
    free(h->letter);
    free(h->parcel);
    free(h->reply);
    free(h);
}

bool world_next(struct world *w)
{
    struct heap_node *top = heap_top(&w->queue);
    if (!top)
        return false;
    struct happening *h = container_of(top, struct happening, node);
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
}

void world_init(struct world *w, const struct sim_options *options, struct sim_result *result)
{
    memset(w, 0, sizeof(*w));
    w->random.state = options->seed;
    w->hash = 0xcbf29ce484222325u;
    w->trace = options->trace;
    w->result = result;
    w->now_ms = 1000;
    heap_init(&w->queue, earlier);
    w->store = store_open_memory();
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
    plane_start(w);
    world_after(w, 10 * 1000, HAPPENS_FAULT);
    world_after(w, 5 * 1000, HAPPENS_OPERATOR);
}

void world_done(struct world *w)
{
    pipeline_free(w->pipeline);
    store_close(w->store);
    shadow_done(w);
    shadow_rooms_done(w);
    shadow_lines_done(w);
    for (struct heap_node *n = heap_top(&w->queue); n; n = heap_top(&w->queue)) {
        struct happening *h = container_of(n, struct happening, node);
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
        if (!top || container_of(top, struct happening, node)->at_ms > end_ms)
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
    for (int i = 0; i < w->n_chats && !w->broken; i++)
        chat_check_beliefs(w, &w->chats[i]);
    operator_check(w);
    shadow_lines_check(w);
    asks_check(w);
    cluster_check(w);
    routes_check(w);
    ret->hash = w->hash;
    ret->simulated_ms = w->now_ms;
    world_done(w);
    free(w);
}

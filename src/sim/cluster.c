/* A simulated cluster: a fleet whose servers are GameServers, and a proxy that sends a player's
 * packets to every one that has his token. So a token that is to go somewhere is first taken from
 * where it was, as the provider does it. Some tokens cannot be routed, of some nobody hears. */
#include "sim/world.h"

#include "base/err.h"
#include "core/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ROUTE_MS = 20,          /* the same for all, so that nothing overtakes */
    GIVE_UP_MS = 10 * 1000, /* then an addition has failed */
};

void cluster_init(struct world *w)
{
    struct random *r = &w->random;
    struct fleet_config *pods = &w->config.fleets[w->n_fleets++];
    struct machine *m = &w->machines[w->n_machines++];
    machine_init(w, m, w->n_machines - 1);
    m->cluster = true;
    m->slots = (int32_t)random_between(r, 1, 6);
    m->slow_percent = 0;
    *pods = (struct fleet_config){.name = "pods",
                                  .provider = PROVIDER_AGONES,
                                  .versions = {{.name = "cluster"}},
                                  .n_versions = 1,
                                  .taken_at_once = true,
                                  .regions = UINT64_C(1) << m->region};
    pods->max_players = (int32_t)random_between(r, 1, 4);
    pods->spawn_ms = random_between(r, 5, 30) * 1000;
    pods->empty_ms = random_between(r, 5, 120) * 1000;
    pods->session_ms = random_between(r, 120, 3600) * 1000;
    pods->reserve_ms = 30 * 1000;
    pods->queue_when_full = random_chance(r, 80);
    pods->queue_ms = random_between(r, 20, 120) * 1000;
    pods->spread = random_chance(r, 30);
    pods->token = random_chance(r, 40) ? TOKEN_PLAYER_ID : TOKEN_OPAQUE;
    w->config.n_fleets = w->n_fleets;
    w->pods = true;
}

static struct machine *cluster_of(struct world *w)
{
    return &w->machines[w->n_machines - 1];
}

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

static int find_token(const struct process *p, const char *token)
{
    for (int i = 0; i < p->n_tokens; i++) {
        if (strcmp(p->tokens[i], token) == 0)
            return i;
    }
    return -1;
}

static void take_token(struct process *p, const char *token)
{
    int i = find_token(p, token);
    if (i >= 0)
        memmove(p->tokens[i], p->tokens[--p->n_tokens], TOKEN_SIZE);
}

static bool is_up(const struct process *p)
{
    return p->state == PROCESS_RUNNING || p->state == PROCESS_ENDING;
}

/* A token that is made of a player's name is his wherever he is; another belongs to one seat. */
static bool is_opaque(const char *token)
{
    for (int i = 0; i < MAX_PLAYERS + LONG_NAMED; i++) {
        char name[NAME_SIZE];
        uint8_t raw[TOKEN_RAW];
        char his[ROUTE_TOKEN_SIZE];
        seeker_name(i, name);
        envelope_player_token(str_of(name), raw);
        envelope_token(raw, his);
        if (strcmp(his, token) == 0)
            return false;
    }
    return true;
}

/* One that is derived from a seat is never anywhere else to begin with. */
static void take_elsewhere(struct world *w, const struct process *to, const char *token)
{
    struct machine *m = cluster_of(w);
    for (int i = 0; i < m->n_processes; i++) {
        struct process *p = &m->processes[i];
        if (p == to || !is_up(p) || find_token(p, token) < 0)
            continue;
        if (is_opaque(token))
            world_broken(w, "token %s is sent to servers %" PRId64 " and %" PRId64, token,
                         p->server, to->server);
        take_token(p, token);
    }
}

void cluster_opened(struct world *w, struct process *p)
{
    for (int i = 0; i < p->n_tokens; i++)
        take_elsewhere(w, p, p->tokens[i]);
}

static void add_token(struct world *w, struct process *p, const char *token)
{
    take_elsewhere(w, p, token);
    if (find_token(p, token) >= 0)
        return;
    if (p->n_tokens == MAX_TOKENS) { /* what was left behind when nobody said that it goes */
        memmove(p->tokens[0], p->tokens[1], (MAX_TOKENS - 1) * TOKEN_SIZE);
        p->n_tokens--;
    }
    (void)str_copy(p->tokens[p->n_tokens++], TOKEN_SIZE, str_of(token));
}

/* ── what core wants ───────────────────────────────────────────────────────────────────────── */

void cluster_route(struct world *w, const struct effect *e)
{
    if (!w->pods)
        world_broken(w, "a token is routed where there is no proxy");
    else
        (void)reply_later(w, e, ROUTE_MS);
}

static void say_routed(struct world *w, int64_t seat, int err)
{
    struct parcel *parcel = parcel_new(EVENT_ROUTED, 0);
    parcel->event.routed =
        (struct routed){.seat = seat, .err = err, .text = err ? STR("no answer") : STR("")};
    parcel_send(w, parcel);
}

/* What is said too late is about a seat that was given up meanwhile. */
static void say_late(struct world *w, int64_t seat)
{
    struct parcel *parcel = parcel_new(EVENT_ROUTED, 0);
    parcel->event.routed = (struct routed){.seat = seat, .err = ERR_IO, .text = STR("too late")};
    plane_after(w, GIVE_UP_MS, HAPPENS_PARCEL)->parcel = parcel;
}

void cluster_hear(struct world *w, const struct reply *reply)
{
    struct machine *m = cluster_of(w);
    struct process *p = process_on(m, reply->server);
    bool up = p && is_up(p);
    bool out_of_reach = m->agent_down || w->now_ms < m->cut_until_ms;
    int64_t die = random_between(&w->random, 0, 99);
    if (!reply->on) {
        if (up)
            take_token(p, reply->text);
        return;
    }
    if (out_of_reach || (up && die < 3)) {
        say_late(w, reply->object);
        return;
    }
    if (!up || die < 8) {
        say_routed(w, reply->object, up ? ERR_IO : ERR_NOT_FOUND);
        return;
    }
    add_token(w, p, reply->text);
    w->result->routes++;
    if (die < 11) /* nobody hears of it, unless he asks again */
        return;
    say_routed(w, reply->object, 0);
    if (die < 16)
        say_routed(w, reply->object, 0);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

/* Nobody asks a GameServer who has left: whoever runs the game says so. */
void cluster_leave(struct world *w, int player)
{
    char name[NAME_SIZE];
    seeker_name(player, name);
    int64_t seat = w->pods_id ? shadow_seat_of(w, w->pods_id, name) : 0;
    if (!seat)
        return;
    struct parcel *parcel = parcel_new(EVENT_OPERATE, ++w->next_conn);
    parcel->event.operate = (struct operate){.verb = OPERATE_KICK,
                                             .target = seat,
                                             .who = STR("game"),
                                             .address = STR("127.0.0.1"),
                                             .fleet = STR("")};
    parcel_send(w, parcel);
    seekers_rush(w);
}

static const struct row_room *room_numbered(const struct world *w, int64_t id)
{
    return map_get(&w->shadow_rooms, (uint64_t)id);
}

/* Whoever is told where to go is let in there, unless he has left meanwhile, or has another seat.
 */
void cluster_judge_success(struct world *w, const struct ask *ask, const struct effect *e)
{
    char token[TOKEN_SIZE];
    char account[NAME_SIZE];
    seeker_name(ask->player, account);
    int64_t seat = shadow_seat_of(w, w->pods_id, account);
    const struct shadow_seat *his = seat ? map_get(&w->shadow_seats, (uint64_t)seat) : NULL;
    const struct row_room *room = room_numbered(w, e->result->session_id);
    struct process *p = room ? process_on(cluster_of(w), room->server) : NULL;
    (void)str_copy(token, sizeof(token), e->result->token);
    if (p && p->state == PROCESS_RUNNING && his && his->row.ticket == e->object &&
        find_token(p, token) < 0 && is_opaque(token))
        world_broken(w, "ask %" PRId64 " is told of server %" PRId64 ", which has no token of his",
                     ask->number, room->server);
}

/* What a seat is known by to proxies and players does not change, whatever is configured. */
void routes_check(struct world *w)
{
    size_t at = 0;
    struct view_route route;
    for (struct shadow_seat *s = NULL; w->leader && (s = map_next(&w->shadow_seats, &at));) {
        if (s->gone || !view_route(plane_core(w), s->row.id, &route))
            continue;
        if (s->token[0] && strcmp(s->token, route.token) != 0)
            world_broken(w, "the token of seat %" PRId64 " was %s and is %s", s->row.id, s->token,
                         route.token);
        memcpy(s->token, route.token, sizeof(s->token));
    }
}

/* At the end of the quiet time: whoever has a seat is let in. A token that is his own wherever he
 * is may have gone to a server that came to nothing. */
void cluster_check(struct world *w)
{
    size_t at = 0;
    struct view_route route;
    for (const struct shadow_seat *s = NULL; w->pods && (s = map_next(&w->shadow_seats, &at));) {
        const struct row_room *room = room_numbered(w, s->row.room);
        struct process *p = room ? process_on(cluster_of(w), room->server) : NULL;
        if (s->gone || s->row.fleet != w->pods_id || !p || !w->leader ||
            p->state != PROCESS_RUNNING || !view_route(plane_core(w), s->row.id, &route))
            continue;
        if (find_token(p, route.token) < 0 && is_opaque(route.token))
            world_broken(w, "%s has a seat on server %" PRId64 ", which has no token of his",
                         s->row.account, p->server);
    }
}

/* In which region players are placed, held against what they asked for and what there was at that
 * instant. R1: nobody gets a place in a region that is not allowed, unless they follow friends, a
 * party or the number of a room, or sit there. R2: no room and no host that suits in a nearer
 * region is passed over for a farther one. */
#include "sim/world.h"

#include "core/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_ALLOWED = -1, ALLOCATION_DONE = 3 };

/* ── what is asked for ─────────────────────────────────────────────────────────────────────── */

/* One of three regions by name, some of them by latency, or none. */
void whither_draw(struct world *w, struct whither *ret)
{
    struct random *r = &w->random;
    *ret = (struct whither){.region = -1};
    if (random_chance(r, 25))
        ret->region = (int8_t)random_between(r, 0, WHITHER_REGIONS - 1);
    for (int i = 0; i < WHITHER_REGIONS; i++) {
        ret->ms[i] = (float)random_between(r, 5, 300) + (float)i / 10; /* no two alike */
        if (random_chance(r, 40))
            ret->latencies |= UINT64_C(1) << i;
    }
}

void whither_fill(const struct whither *from, struct place *ret)
{
    ret->region = from->region;
    ret->my_region_only = from->only;
    ret->latencies = from->latencies;
    for (int i = 0; i < WHITHER_REGIONS; i++)
        ret->latency_ms[i] = from->ms[i];
}

static bool mask_has(uint64_t mask, int8_t code)
{
    return mask >> code & 1;
}

/* Measured regions where the fleet may run. */
static uint64_t measured(const struct fleet_config *f, const struct whither *x)
{
    return x->region >= 0 ? 0 : f->regions ? f->regions & x->latencies : x->latencies;
}

static int8_t first_region(const struct fleet_config *f, const struct whither *x)
{
    uint64_t some = measured(f, x);
    int8_t best = -1;
    for (int8_t code = 0; code < WHITHER_REGIONS; code++) {
        if (mask_has(some, code) && (best < 0 || x->ms[code] < x->ms[best]))
            best = code;
    }
    if (x->region >= 0 || best >= 0)
        return x->region >= 0 ? x->region : best;
    return f->regions ? (int8_t)__builtin_ctzll(f->regions) : 0;
}

/* How far it is down the list: 0 is the nearest. By distance only the first is known. */
static int rank_of(const struct fleet_config *f, const struct whither *x, int8_t code)
{
    uint64_t some = measured(f, x);
    int8_t first = first_region(f, x);
    int before = 0;
    if (code == first)
        return 0;
    if (x->only || (x->alone && x->region >= 0))
        return NOT_ALLOWED;
    if (some == 0)
        return f->other_regions ? 1 : NOT_ALLOWED;
    for (int8_t i = 0; i < WHITHER_REGIONS; i++)
        before += mask_has(some, i) && x->ms[i] < x->ms[code];
    return mask_has(some, code) ? before : NOT_ALLOWED;
}

static const struct fleet_config *fleet_asked(const struct world *w, const struct ask *ask)
{
    return &w->config.fleets[ask->pods ? world_pods(w) : 1];
}

bool ask_may_be_in(const struct world *w, const struct ask *ask, int8_t region)
{
    return rank_of(fleet_asked(w, ask), &ask->whither, region) != NOT_ALLOWED;
}

bool ask_is_nearest(const struct world *w, const struct ask *ask, int8_t region)
{
    return rank_of(fleet_asked(w, ask), &ask->whither, region) == 0;
}

/* ── what there is at that instant ─────────────────────────────────────────────────────────── */

static bool has_seat_in(const struct core *core, struct str account, int64_t room)
{
    struct view_room_seat seat;
    for (int64_t id = 0; (id = view_next_seat_of(core, account, id));) {
        if (view_room_seat(core, id, &seat) && seat.room == room)
            return true;
    }
    return false;
}

/* Rooms of the arena with seats that nobody is promised, by region. Whoever sits there already may
 * have asked for another room. */
static uint64_t regions_with_rooms(const struct core *core, int64_t fleet,
                                   const struct whither_seen *seen)
{
    uint64_t found = 0;
    struct view_room v;
    for (int64_t id = 0; (id = core_next(core, ROW_room, id));) {
        bool open = view_room(core, id, &v) && v.fleet_id == fleet && !v.host_away &&
                    strcmp(v.state, "open") == 0;
        if (open && v.max_players - v.reserved - v.taken >= seen->players &&
            !has_seat_in(core, str_of(seen->account), id))
            found |= UINT64_C(1) << v.region;
    }
    return found;
}

static uint64_t regions_with_hosts(const struct core *core, int64_t fleet)
{
    uint64_t found = 0;
    struct view_host v;
    for (int64_t id = 0; (id = core_next(core, ROW_host, id));) {
        bool healthy = view_host(core, id, &v) && v.passed_over == HOST_PASSED_NOT &&
                       !view_host_passes_over(core, id, fleet) &&
                       strncmp(v.name, "agones/", 7) != 0;
        if (healthy)
            found |= UINT64_C(1) << v.region;
    }
    return found;
}

/* Whoever waits comes first, and seats may be held for them. */
static bool somebody_waits(const struct core *core, int64_t fleet)
{
    struct view_queue q;
    struct view_queue_place at = {0};
    while (view_next_queue(core, &at, &q)) {
        if (q.fleet_id == fleet)
            return true;
    }
    return false;
}

static bool is_on(const struct core *core, int64_t fleet)
{
    struct view_version v;
    return view_version(core, fleet, 0, &v) && v.enabled && !v.quarantined;
}

static int64_t newest_seat(const struct core *core, struct str account)
{
    int64_t newest = 0;
    for (int64_t id = 0; (id = view_next_seat_of(core, account, id));)
        newest = id;
    return newest;
}

static void request_seen(struct world *w, const struct event *event, struct whither_seen *ret)
{
    const struct ask *ask = event->kind == EVENT_SEEK ? ask_named(w, event->seek.name) : NULL;
    const struct place *p = event->kind == EVENT_PLACE ? &event->place : NULL;
    if (ask && !ask->pods && ask->n_friends + ask->n_party == 0 && !ask->move_party) {
        ret->judged = true;
        ret->rooms = ret->hosts = true;
        ret->players = 1;
        ret->whither = ask->whither;
        (void)str_copy(ret->account, sizeof(ret->account), event->seek.player);
    } else if (p && p->verb != PLACE_ENTER && str_eq(p->fleet, STR("arena"))) {
        ret->judged = true;
        ret->rooms = p->verb == PLACE_JOIN;
        ret->hosts = (p->verb == PLACE_CREATE || p->auto_create) &&
                     (int32_t)p->n_players <= w->config.fleets[1].max_players;
        ret->players = (int32_t)p->n_players;
        ret->whither.region = p->region;
        ret->whither.only = p->my_region_only;
        ret->whither.latencies = p->latencies;
        memcpy(ret->whither.ms, p->latency_ms, sizeof(ret->whither.ms));
        (void)str_copy(ret->account, sizeof(ret->account), p->players[0].account);
    }
}

static void note_had_seat(struct world *w, const struct core *core, const struct event *event)
{
    struct ask *ask = event->kind == EVENT_SEEK ? ask_named(w, event->seek.name) : NULL;
    if (ask && newest_seat(core, event->seek.player) != 0)
        ask->had_seat = true;
}

void shadow_region_before(struct node *n, const struct event *event, struct whither_seen *ret)
{
    struct world *w = n->w;
    *ret = (struct whither_seen){.whither = {.region = -1}};
    if ((event->kind != EVENT_SEEK && event->kind != EVENT_PLACE) || !n->ticked)
        return;
    const struct core *core = pipeline_core(n->pipeline);
    note_had_seat(w, core, event);
    request_seen(w, event, ret);
    int64_t fleet = view_fleet_played(core, "game", "arena");
    if (!ret->judged)
        return;
    ret->newest_seat = newest_seat(core, str_of(ret->account));
    if (somebody_waits(core, fleet) || !is_on(core, fleet))
        return;
    ret->had |= ret->rooms ? regions_with_rooms(core, fleet, ret) : 0;
    ret->had |= ret->hosts ? regions_with_hosts(core, fleet) : 0;
}

void shadow_region_after(struct node *n, const struct whither_seen *seen)
{
    struct world *w = n->w;
    struct view_room_seat seat;
    struct view_room room;
    if (!seen->judged)
        return;
    const struct core *core = pipeline_core(n->pipeline);
    int64_t id = newest_seat(core, str_of(seen->account));
    if (id <= seen->newest_seat || !view_room_seat(core, id, &seat) ||
        !view_room(core, seat.room, &room))
        return;
    const struct fleet_config *f = &w->config.fleets[1];
    int rank = rank_of(f, &seen->whither, room.region);
    if (rank == NOT_ALLOWED)
        world_wrong(w, "R1: %s is placed in region %d", seen->account, room.region);
    for (int8_t code = 0; code < WHITHER_REGIONS; code++) {
        int nearer = rank_of(f, &seen->whither, code);
        if (mask_has(seen->had, code) && nearer != NOT_ALLOWED && nearer < rank)
            world_wrong(w, "R2: %s is placed in region %d, and region %d had a place",
                        seen->account, room.region, code);
    }
}

/* ── what came of it later: from a line, or on another host ────────────────────────────────── */

void shadow_region_done(struct world *w, const struct shadow_allocation *a)
{
    const struct ask *ask = ask_named(w, str_of(a->row.name));
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)a->row.room);
    bool alone = ask && ask->n_friends + ask->n_party == 0 && !ask->move_party;
    if (a->row.state == ALLOCATION_DONE && a->ended && alone && !ask->had_seat && room &&
        !ask_may_be_in(w, ask, room->region))
        world_wrong(w, "R1: %s is placed in region %d", a->row.name, room->region);
}

void shadow_region_judge(struct world *w, const struct effect *e)
{
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)e->session);
    for (int i = 0; i < w->n_players && room && !e->err; i++) {
        const struct player *p = &w->players[i];
        if (p->conn == e->conn && !p->enters &&
            rank_of(&w->config.fleets[1], &p->whither, room->region) == NOT_ALLOWED)
            world_wrong(w, "R1: p%d is placed in region %d", i, room->region);
    }
}

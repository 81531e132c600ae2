/* The invariants of allocations and queues. */
#include "core/check.h"

#include "core/state.h"
#include "wire/names.h"

#include <inttypes.h>

static const char *check_allocation(struct core *core, struct allocation *a)
{
    bool queued = a->row.state == ALLOCATION_QUEUED;
    bool open = a->row.state == ALLOCATION_OPEN;
    if (!has_deadline(core, &a->deadline))
        return broken(core, "I6: allocation %" PRId64 " has no deadline ahead", a->row.id);
    if (open && !link_in_list(&a->on_ticket) && !link_in_list(&a->in_lost) && a->unrouted == 0)
        return broken(core, "I6: allocation %" PRId64 " is open and waits for nothing", a->row.id);
    if (queued != (a->queue != NULL))
        return broken(core, "allocation %" PRId64 " is in the wrong line", a->row.id);
    if (!open && a->n_askers > 0)
        return broken(core, "allocation %" PRId64 " has its answer and somebody waits", a->row.id);
    if (allocation_named(core, allocation_owner(&a->row), str_of(a->row.name)) != a)
        return broken(core, "allocation %" PRId64 " is not found by its name", a->row.id);
    struct str party = a->row.party;
    struct str rest = open || queued ? a->row.party : (struct str){0};
    for (struct str name; names_next(&rest, &name);) {
        if (allocation_of_player(core, a->row.fleet, name) != a)
            return broken(core, "player %.*s waits twice", (int)name.len, name.at);
    }
    int i = 0;
    for (struct str name; queued && names_next(&party, &name); i++) {
        if (allocation_is_gone(core, a, i, name))
            return broken(core, "player %.*s waits with a party that he has left", (int)name.len,
                          name.at);
    }
    if ((a->row.owed != 0) != link_in_list(&a->in_owed))
        return broken(core, "allocation %" PRId64 " is owed and nobody knows", a->row.id);
    return NULL;
}

static const char *check_order(struct core *core, const struct queue *q)
{
    int32_t players = 0;
    for (size_t i = 0; i < q->n; i++) {
        players += allocation_players(q->line[i]);
        if (q->line[i]->queue != q || queue_position(q->line[i], NULL) != (int32_t)i + 1)
            return broken(core, "allocation %" PRId64 " stands where it does not belong",
                          q->line[i]->row.id);
        if (!queue_is_told(q->line[i]) && !deadline_is_set(&q->tell))
            return broken(core, "allocation %" PRId64 " is never told where it stands",
                          q->line[i]->row.id);
    }
    size_t n = 0;
    LIST_EACH(&q->arrivals, a, struct allocation, in_arrivals)
    {
        n += a->queue == q;
    }
    if (n != q->n)
        return broken(core, "%zu came to a line of %zu", n, q->n);
    if (players != q->players)
        return broken(core, "%d players are counted in a line of %d", q->players, players);
    return NULL;
}

/* All who wait anywhere, by when they came. */
static const char *check_waiting(struct core *core)
{
    int32_t n = 0;
    int64_t before_ms = INT64_MIN;
    LIST_EACH(&core->waiting, a, const struct allocation, in_waiting)
    {
        if (!a->queue || a->row.queued_core_ms < before_ms)
            return broken(core, "allocation %" PRId64 " waits out of order", a->row.id);
        before_ms = a->row.queued_core_ms;
        n++;
    }
    if (n != core->allocations_in[ALLOCATION_QUEUED])
        return broken(core, "%d allocations wait, %d are in line", n,
                      core->allocations_in[ALLOCATION_QUEUED]);
    return NULL;
}

static const char *check_line(struct core *core, const struct room *room, const struct queue *q)
{
    const struct allocation *holder = queue_holder(core, room);
    for (size_t i = 0; i < q->n; i++) {
        const struct allocation *a = q->line[i];
        if (holder && a != holder && !queue_comes_before(a, holder))
            return NULL;
        if (seek_fits(core, a, room))
            return broken(core, "Q1: allocation %" PRId64 " waits for a place that is free",
                          a->row.id);
    }
    return NULL;
}

/* Nobody waits for a place that is free: the first who fits would have it, unless it is held for
 * somebody before him. */
static const char *check_served(struct core *core, const struct room *room)
{
    const struct queue *any = room->fleet->queue;
    const char *why = NULL;
    if (core->read_only || room->row.state != ROOM_OPEN || host_is_away(room->host) ||
        link_in_list(&room->to_serve))
        return NULL;
    if (room->queue)
        why = check_line(core, room, room->queue);
    if (!why && any && seek_takes_any(room))
        why = check_line(core, room, any);
    return why;
}

static const char *check_held(struct core *core, const struct room *room)
{
    const struct queue *by = room->held_by;
    bool own = by && by == room->queue;
    bool any = by && by == room->fleet->queue && by->held_in == room;
    if (room->held < 0 || room->held > room_empty_seats(room))
        return broken(core, "Q2: room %" PRId64 " holds %d seats of %d", room->row.id, room->held,
                      room_empty_seats(room));
    if (room->held > 0 && !queue_holder(core, room))
        return broken(core, "Q2: room %" PRId64 " holds seats for nobody", room->row.id);
    if ((room->held > 0) != (own || any) || (by && room->row.state != ROOM_OPEN))
        return broken(core, "Q2: room %" PRId64 " holds seats without a reason", room->row.id);
    return NULL;
}

/* Whoever is the next for whom seats are held comes to it: by time, or because he has it. */
static const char *check_hold_comes(struct core *core, const struct room *room)
{
    const struct queue *q = room->queue;
    bool served = room->row.state == ROOM_OPEN && !host_is_away(room->host) && !core->read_only &&
                  !link_in_list(&room->to_serve);
    if (!queue_waits(q) || !served || deadline_is_set(&q->hold) || !queue_next_elder(core, q))
        return NULL;
    if (!queue_elder(core, q) || (room_empty_seats(room) > 0 && room->held == 0))
        return broken(core, "Q2: room %" PRId64 " will hold no seats for who waits there",
                      room->row.id);
    return NULL;
}

static const char *check_queue_of(struct core *core, struct room *room)
{
    const char *why = check_held(core, room);
    if (!why && room->queue)
        why = check_order(core, room->queue);
    if (!why && queue_waits(room->queue) && room_is_over(room) && !link_in_list(&room->to_serve))
        return broken(core, "I6: somebody waits for room %" PRId64 ", which is over", room->row.id);
    if (!why)
        why = check_served(core, room);
    return why ? why : check_hold_comes(core, room);
}

/* Who of a fleet's line may play where. */
static const char *check_lined(struct core *core, const struct fleet *fleet)
{
    const struct queue *q = fleet->queue;
    int32_t parties = 0;
    int32_t players[REGION_CODES] = {0};
    for (size_t i = 0; i < q->n; i++) {
        parties += allocation_players(q->line[i]) > 1;
        for (int8_t code = 0; code < REGION_CODES; code++) {
            if (allocation_may_be_in(q->line[i], code))
                players[code] += allocation_players(q->line[i]);
        }
    }
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (players[code] != queue_wants(fleet, code))
            return broken(core, "%d players are counted in line for region %d where %d are",
                          queue_wants(fleet, code), code, players[code]);
    }
    if (parties != fleet->lined_parties)
        return broken(core, "%d parties are counted in line where %d are", fleet->lined_parties,
                      parties);
    return NULL;
}

static const char *check_fleet_queue(struct core *core, struct fleet *fleet)
{
    const struct queue *q = fleet->queue;
    const char *why = q ? check_lined(core, fleet) : NULL;
    if (!q || why)
        return why;
    if ((q->held_for != NULL) != (q->held_in != NULL) || (q->held_for && q->held_for->queue != q))
        return broken(core, "Q2: seats of fleet %s are held for nobody", fleet->row.name);
    return check_order(core, q);
}

static const char *check_sums(struct core *core)
{
    int32_t in[ALLOCATION_STATES] = {0};
    int32_t owed = 0;
    int32_t finished = 0;
    size_t at = 0;
    for (const struct allocation *a = NULL; (a = object_next(core, ROW_allocation, &at));) {
        in[a->row.state]++;
        owed += a->row.owed != 0;
        finished += !allocation_is_open(a);
    }
    for (int i = 0; i < ALLOCATION_STATES; i++) {
        if (in[i] != core->allocations_in[i])
            return broken(core, "%d allocations are counted in state %d where %d are",
                          core->allocations_in[i], i, in[i]);
    }
    if (owed != core->n_allocations_owed || finished != core->n_allocations_finished)
        return broken(core, "allocations owed or finished are miscounted");
    return NULL;
}

/* A token is on one endpoint: no two seats that are taken have the same. */
static const char *check_token(struct core *core, struct room_seat *seat)
{
    const struct fleet_config *config = seat->room->fleet->config;
    if (room_seat_is_his(seat) && config && config->provider == PROVIDER_AGONES &&
        route_shared(core, seat))
        return broken(core, "player %s has another's routing token", seat->row.account);
    return NULL;
}

const char *check_allocations(struct core *core)
{
    CHECK_ALL(object_next(core, ROW_allocation, &at), allocation, check_allocation);
    CHECK_ALL(object_next(core, ROW_room, &at), room, check_queue_of);
    CHECK_ALL(object_next(core, ROW_fleet, &at), fleet, check_fleet_queue);
    CHECK_ALL(object_next(core, ROW_room_seat, &at), room_seat, check_token);
    const char *why = check_sums(core);
    return why ? why : check_waiting(core);
}

/* What core shows of allocations, queues and parties. */
#include "core/state.h"
#include "wire/names.h"

_Static_assert(sizeof(((struct view_allocation *)0)->where) == REGIONS_TEXT_MAX, "it fits");

static const char *const state_names[ALLOCATION_STATES] = {
    [ALLOCATION_OPEN] = "open",           [ALLOCATION_QUEUED] = "queued",
    [ALLOCATION_DONE] = "done",           [ALLOCATION_FAILED] = "failed",
    [ALLOCATION_CANCELLED] = "cancelled",
};

static const char *const bus_names[BUSES_ALL + 1] = {[BUS_HTTP] = "http",
                                                     [BUS_NATS] = "nats",
                                                     [BUS_PUBSUB] = "pubsub",
                                                     [BUS_NATS | BUS_PUBSUB] = "nats+pubsub"};

static const char *bus_name(int8_t buses)
{
    if (buses == BUS_OWN)
        return "player";
    return buses >= 0 && buses <= BUSES_ALL ? bus_names[buses] : "?";
}

void view_row_allocation(const struct core *core, const struct row_allocation *row,
                         struct instant then, struct view_allocation *ret)
{
    bool known = row->state > 0 && row->state < ALLOCATION_STATES;
    *ret = (struct view_allocation){
        .id = row->id,
        .name = row->name,
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .player = row->player,
        .bus = bus_name(row->bus),
        .own = row->bus == BUS_OWN,
        .state = known ? state_names[row->state] : "?",
        .open = row->state == ALLOCATION_OPEN || row->state == ALLOCATION_QUEUED,
        .owed = row->owed,
        .err = row->error,
        .why = row->why,
        .priority = row->priority,
        .region = row->region,
        .region_name = region_name(core, row->region),
        .room = row->room,
        .players = names_count(row->party),
        .friends = names_count(row->friends),
        .opened_wall_ms = wall_at(then, row->opened_core_ms),
        .queued_wall_ms = wall_at(then, row->queued_core_ms),
        .answered_wall_ms = row->answered_wall_ms,
        .deadline_wall_ms = wall_at(then, row->deadline_core_ms),
    };
    if (row->queued_core_ms && row->answered_wall_ms > ret->queued_wall_ms)
        ret->waited_ms = row->answered_wall_ms - ret->queued_wall_ms;
}

bool view_allocation(const struct core *core, int64_t id, struct view_allocation *ret)
{
    const struct allocation *a = allocation_find(core, id);
    if (!a)
        return false;
    view_row_allocation(core, &a->row, core->now, ret);
    const struct room_seat *seat = room_seat_find(core, allocation_seat(a, 0));
    ret->party = a->row.state == ALLOCATION_DONE ? allocation_party(a) : 0;
    if (ret->party == 0)
        ret->party = seat ? seat->row.multi : 0;
    if (a->row.state != ALLOCATION_QUEUED)
        return true;
    struct region_order where;
    regions_in_order(core, a->fleet, a->row.region, a->regions, &where);
    if (!a->queue->room && !where.elsewhere)
        regions_print(core, &where, ret->where);
    ret->position = queue_position(a, &ret->ahead);
    ret->eta_ms = queue_eta_ms(a);
    ret->waited_ms = core->now.core_ms - a->row.queued_core_ms;
    return true;
}

int64_t view_allocation_named(const struct core *core, struct str owner, struct str name)
{
    const struct allocation *a = allocation_named(core, owner, name);
    return a ? a->row.id : 0;
}

int64_t view_queued_player(const struct core *core, int64_t fleet_id, struct str account)
{
    const struct allocation *a = allocation_of_player(core, (int32_t)fleet_id, account);
    return a && a->row.state == ALLOCATION_QUEUED ? a->row.id : 0;
}

static void show_queue(const struct core *core, const struct queue *q, struct view_queue *ret)
{
    *ret = (struct view_queue){
        .fleet_id = q->fleet->row.id,
        .fleet = q->fleet->row.name,
        .room = q->room ? q->room->row.id : 0,
        .entries = (int32_t)q->n,
        .players = q->players,
        .held = queue_held(q),
        .freed_per_min = queue_rate_per_min(q),
    };
    for (size_t i = 0; i < q->n; i++) {
        int64_t waited_ms = core->now.core_ms - q->line[i]->row.queued_core_ms;
        if (waited_ms > ret->oldest_ms)
            ret->oldest_ms = waited_ms;
    }
}

bool view_next_queue(const struct core *core, struct view_queue_place *at, struct view_queue *ret)
{
    const struct queue *q = NULL;
    while (!at->rooms && !queue_waits(q)) {
        const struct fleet *fleet = object_next(core, ROW_fleet, &at->next);
        q = fleet ? fleet->queue : NULL;
        if (!fleet)
            *at = (struct view_queue_place){.rooms = true};
    }
    while (at->rooms && !queue_waits(q)) {
        const struct room *room = object_next(core, ROW_room, &at->next);
        if (!room)
            return false;
        q = room->queue;
    }
    show_queue(core, q, ret);
    return true;
}

int64_t view_next_in_party(const struct core *core, int64_t party, int64_t after)
{
    for (int64_t id = after; (id = core_next(core, ROW_room_seat, id));) {
        const struct room_seat *seat = room_seat_find(core, id);
        if (seat->row.multi == party && room_seat_is_his(seat))
            return id;
    }
    return 0;
}

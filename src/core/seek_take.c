/* Taking what was found. A party gets seats in one room or none at all, and a seat that a player
 * has is only given up in the step that gives him another. */
#include "core/seek_found.h"

#include "base/plant.h"
#include "core/state.h"
#include "wire/names.h"

/* The party he is in, which stays one when it moves; else the one that comes to be. */
static int64_t party_of(const struct core *core, const struct allocation *a)
{
    const struct room_seat *seat = room_seat_of(core, a->row.fleet, str_of(a->row.player));
    if (a->row.move_party && seat && seat->row.multi)
        return seat->row.multi;
    return allocation_players(a) > 1 ? a->row.id : 0;
}

/* In a room that is being started: the one that an older request handed over, or NULL. */
static struct room_seat *handed_seat(const struct allocation *a, const struct room *room,
                                     struct str name)
{
    if (room->row.state != ROOM_STARTING)
        return NULL;
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        if (seat->row.ticket == a->row.id && str_eq(str_of(seat->row.account), name))
            return seat;
    }
    return NULL;
}

static struct room_seat *take_seat(struct core *core, const struct allocation *a, struct room *room,
                                   struct str name, int64_t party)
{
    struct place_player player = seek_player(a, name);
    struct room_seat *handed = handed_seat(a, room, name);
    if (handed) {
        handed->row.multi = party;
        object_touch(core, &handed->object);
        return handed;
    }
    struct room_seat *seat = room_seat_of(core, a->row.fleet, name);
    bool here = seat && seat->room == room;
    if (here && party) {
        seat->row.multi = party;
        object_touch(core, &seat->object);
    }
    if (here && seat->row.state == ROOM_SEAT_RESERVED)
        room_seat_again(core, seat, a->row.id, &player);
    else if (here && str_eq(name, str_of(a->row.player)))
        room_seat_shown(core, seat, 0); /* he comes back, and has nothing else to show */
    if (here)
        return seat;
    /* A cluster's proxy still sends him there; it is given up when he can come here. */
    bool later = room->fleet->config && room->fleet->config->provider == PROVIDER_AGONES;
    if (seat && !later && room->row.state == ROOM_OPEN)
        room_seat_kick(core, seat, SEAT_END_MOVED, STR("moved to another room"));
    return room_seat_new(core, room, a->row.id, &player, party);
}

static void take_seats(struct core *core, struct allocation *a, struct room *room)
{
    int64_t seats[PARTY_MAX];
    int64_t party = party_of(core, a);
    size_t n = 0;
    struct str rest = a->row.party;
    a->unrouted = 0;
    for (struct str name; n < PARTY_MAX && names_next(&rest, &name);) {
        const struct room_seat *seat = take_seat(core, a, room, name, party);
        a->unrouted += seat->row.state == ROOM_SEAT_ROUTING;
        seats[n++] = seat->row.id;
    }
    a->row.room = room->row.id;
    allocation_set_seats(core, a, seats, n);
    allocation_set_party(core, a, party);
}

void allocation_give_back_rate(struct core *core, const struct allocation *a)
{
    if (a->row.bus == BUS_OWN)
        rates_give_back(&core->rates, RATE_JOIN, str_of(a->row.player), core->now.core_ms);
}

static void give_up(struct core *core, struct allocation *a, const struct found *found)
{
    if (found->err == ERR_NO_CAPACITY)
        allocation_give_back_rate(core, a);
    if (found->err == ERR_TOKEN_TAKEN)
        note_add(core, NOTE_TOKEN_COLLISION)->fleet_id = a->row.fleet;
    allocation_fail(core, a, found->err, str_of(found->why));
}

/* False when somebody may not come: it has failed then. */
static bool may_come(struct core *core, struct allocation *a)
{
    struct found found = {0};
    bool hindered = seek_is_hindered(core, a, &found);
    if (hindered)
        give_up(core, a, &found);
    return !hindered;
}

static void enter(struct core *core, struct allocation *a, struct room *room, const char *how)
{
    a->how = how;
    take_seats(core, a, room);
    if (a->unrouted == 0)
        allocation_done(core, a, room);
}

void allocation_enter(struct core *core, struct allocation *a, struct room *room, const char *how)
{
    allocation_reopen(core, a);
    if (may_come(core, a))
        enter(core, a, room, how);
}

/* So that the room is never empty: nobody would wait for it then, and it would end. */
void seek_hand_over(struct core *core, const struct allocation *a, struct room *room)
{
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        struct place_player player = seek_player(a, str_of(seat->row.account));
        if (names_have(a->row.party, player.account) && seek_gives_way(core, a, seat))
            room_seat_again(core, seat, a->row.id, &player);
    }
}

static void wait_for_room(struct core *core, struct allocation *a, const struct found *found)
{
    a->how = "spawn";
    take_seats(core, a, found->room);
    allocation_on_ticket(a, found->ticket);
}

static void start_on(struct core *core, struct allocation *a, struct host *host)
{
    struct place_player players[PARTY_MAX];
    struct place p = {.verb = PLACE_JOIN, .players = players};
    struct str rest = a->row.party;
    for (struct str name; p.n_players < PARTY_MAX && names_next(&rest, &name);)
        players[p.n_players++] = seek_player(a, name);
    struct version *version = version_use(core, a->fleet, seek_version_name(a->fleet));
    struct room_ticket *ticket = room_ticket_new(core, 0, &p, version, a->row.region, a->regions);
    struct room *room = room_ticket_spawn(core, ticket, version, host, STR("{}"));
    a->how = "spawn";
    allocation_on_ticket(a, ticket);
    take_seats(core, a, room);
    room_tell(core, room);
}

bool seek_start(struct core *core, struct allocation *a, uint64_t busy, uint64_t *without)
{
    struct host *host = seek_host_for(core, a, busy, without);
    if (!host)
        return false;
    allocation_reopen(core, a);
    if (may_come(core, a))
        start_on(core, a, host);
    return true;
}

/* None of the cluster's servers was free. What came free elsewhere meanwhile is his, or somebody's
 * who is before him in line. Who was tried from the line goes back to it, for nobody who came since
 * may push him out. */
static void wait_for_cluster(struct core *core, struct allocation *a)
{
    struct found found = {.what = FOUND_LINE};
    allocation_drop_gone(core, a); /* less may do than when he asked */
    struct room *room = seek_find_any(core, a);
    if (!room && a->row.queued_core_ms == 0)
        seek_find_line(core, a, NULL, &found);
    if (found.what == FOUND_NOTHING) {
        give_up(core, a, &found);
        return;
    }
    allocation_queue(core, a, NULL);
    if (room)
        queue_room_changed(core, room);
}

void allocations_ticket_over(struct core *core, struct room_ticket *ticket)
{
    bool done = ticket->row.state == ROOM_TICKET_DONE;
    const struct room *room = room_find(core, ticket->row.room);
    list_remove(&ticket->in_allocating);
    while (!list_empty(&ticket->allocations)) {
        struct allocation *a =
            container_of(list_first(&ticket->allocations), struct allocation, on_ticket);
        list_remove(&a->on_ticket);
        bool cluster = a->fleet->config && a->fleet->config->provider == PROVIDER_AGONES;
        bool failed =
            ticket->row.error == ERR_SPAWN_FAILED || ticket->row.error == ERR_SPAWN_TIMEOUT;
        if (done && room)
            allocation_done(core, a, room);
        else if (cluster && failed && a->fleet->config->queue_when_full)
            wait_for_cluster(core, a);
        else
            allocation_fail(core, a, ticket->row.error ? ticket->row.error : ERR_SPAWN_FAILED,
                            ticket->row.why);
    }
}

void seek_take(struct core *core, struct allocation *a, const struct found *found)
{
    if (found->no_friends)
        note_add(core, NOTE_ALLOCATION_UNKNOWN_FRIENDS)->fleet_id = a->row.fleet;
    switch (found->what) {
    case FOUND_NOTHING:
        give_up(core, a, found);
        break;
    case FOUND_ROOM:
        enter(core, a, found->room, found->how);
        break;
    case FOUND_STARTING:
        wait_for_room(core, a, found);
        break;
    case FOUND_HOST:
        start_on(core, a, found->host);
        break;
    case FOUND_LINE:
        allocation_queue(core, a, found->room);
        break;
    }
}

void seek_place(struct core *core, struct allocation *a)
{
    struct found found;
    allocation_drop_gone(core, a);
    struct room_seat *old =
        PLANTED(old_seat_first) ? room_seat_of(core, a->row.fleet, str_of(a->row.player)) : NULL;
    if (old && seek_asks_for_others(a))
        room_seat_kick(core, old, SEAT_END_MOVED, STR("moved to another room"));
    seek_find(core, a, &found);
    seek_take(core, a, &found);
}

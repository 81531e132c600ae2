/* The invariants of hosts, rooms, seats in rooms and their tickets. */
#include "core/check.h"

#include "core/state.h"

#include <inttypes.h>

static const char *check_host(struct core *core, struct host *host)
{
    int32_t rooms = 0;
    LIST_EACH(&host->rooms, room, struct room, on_host)
    {
        rooms++;
        if (room->host != host || room->row.host != host->row.id)
            return broken(core, "room %" PRId64 " is on another host than it says", room->row.id);
    }
    if (rooms != host->n_rooms)
        return broken(core, "host %" PRId64 " counts %d rooms but has %d", host->row.id,
                      host->n_rooms, rooms);
    if (!has_deadline(core, &host->silence))
        return broken(core, "I6: host %" PRId64 " may be silent for ever", host->row.id);
    if (host_named(core, str_of(host->row.name)) != host)
        return broken(core, "host %" PRId64 " is not found by its name", host->row.id);
    return NULL;
}

static const char *check_seats_of(struct core *core, struct room *room)
{
    int32_t reserved = 0;
    int32_t taken = 0;
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        reserved += seat->row.state != ROOM_SEAT_TAKEN;
        taken += seat->row.state == ROOM_SEAT_TAKEN;
    }
    if (reserved != room->reserved || taken != room->taken)
        return broken(core, "I1: room %" PRId64 " counts %d/%d seats but has %d/%d", room->row.id,
                      room->reserved, room->taken, reserved, taken);
    if (reserved + taken > room->row.max_players)
        return broken(core, "I1: room %" PRId64 " seats %d of %d", room->row.id, reserved + taken,
                      room->row.max_players);
    if (room_is_over(room) && reserved + taken > 0)
        return broken(core, "I1: room %" PRId64 " is over and has seats", room->row.id);
    return NULL;
}

static bool is_on_shelf(const struct room *room)
{
    const struct shelf *s = &room->version->shelves[room->row.region];
    for (size_t i = 0; i < s->n; i++) {
        if (s->rooms[i] == room)
            return true;
    }
    return false;
}

static const char *check_room(struct core *core, struct room *room)
{
    int8_t state = room->row.state;
    bool owes = (state == ROOM_STARTING && !room->confirmed) || state == ROOM_ENDING;
    bool empty = room->reserved + room->taken == 0;
    const char *why = check_seats_of(core, room);
    if (why)
        return why;
    if (!has_deadline(core, &room->deadline))
        return broken(core, "I6: room %" PRId64 " in state %d has no deadline ahead", room->row.id,
                      state);
    if (owes && !has_deadline(core, &room->repeat))
        return broken(core, "I6: room %" PRId64 " owes its host what nobody will say",
                      room->row.id);
    if (state == ROOM_STARTING && room->row.ticket && list_empty(&room->seats))
        return broken(core, "room %" PRId64 " is starting for nobody", room->row.id);
    if (state == ROOM_OPEN && empty && !has_deadline(core, &room->empty))
        return broken(core, "I6: room %" PRId64 " may be empty for ever", room->row.id);
    if ((state == ROOM_ENDED) != (room->host == NULL))
        return broken(core, "room %" PRId64 " in state %d has the wrong host", room->row.id, state);
    if ((state == ROOM_OPEN) != room->shelved || room->shelved != is_on_shelf(room) ||
        (room->shelved && room->shelved_at != room_free_seats(room)))
        return broken(core, "room %" PRId64 " is on the wrong shelf", room->row.id);
    if (room_of_server(core, room->row.server) != room)
        return broken(core, "room %" PRId64 " is not found by its server", room->row.id);
    return NULL;
}

/* Where the player is; a seat in a STARTING room is where he may be later. */
static const char *check_room_seat(struct core *core, struct room_seat *seat)
{
    const struct room *room = seat->room;
    bool reserved = seat->row.state == ROOM_SEAT_RESERVED && room->row.state == ROOM_OPEN;
    /* What came back while nothing could be stored runs again when something can. */
    bool stands = host_is_away(room->host) || room->host->heard_core_ms == 0 || core->read_only;
    struct str account = str_of(seat->row.account);
    const struct allocation *a = allocation_find(core, seat->row.ticket);
    if (seat->row.state == ROOM_SEAT_ROUTING && (!a || a->row.state != ALLOCATION_OPEN))
        return broken(core, "I6: seat %" PRId64 " waits for a route and nobody for it",
                      seat->row.id);
    if (seat->row.room != room->row.id)
        return broken(core, "seat %" PRId64 " is in another room than it says", seat->row.id);
    if (room_seat_is_his(seat) && room_seat_of(core, seat->row.fleet, account) != seat)
        return broken(core, "I3: player %s has two seats", seat->row.account);
    if (reserved && !has_deadline(core, &seat->deadline) && !stands)
        return broken(core, "I6: seat %" PRId64 " is reserved for ever", seat->row.id);
    if (!reserved && deadline_is_set(&seat->deadline))
        return broken(core, "seat %" PRId64 " is held and runs out all the same", seat->row.id);
    return NULL;
}

static const char *check_room_ticket(struct core *core, struct room_ticket *ticket)
{
    const struct room *room = room_find(core, ticket->row.room);
    bool open = ticket->row.state == ROOM_TICKET_OPEN;
    if (!has_deadline(core, &ticket->deadline))
        return broken(core, "I6: room ticket %" PRId64 " has no deadline ahead", ticket->row.id);
    if (open && (!room || room->row.state != ROOM_STARTING))
        return broken(core, "I6: room ticket %" PRId64 " is open but no room is starting",
                      ticket->row.id);
    if (!open && ticket->n_askers > 0)
        return broken(core, "room ticket %" PRId64 " has its answer and somebody waits",
                      ticket->row.id);
    if (open == link_in_list(&ticket->in_finished))
        return broken(core, "room ticket %" PRId64 " is in the wrong list", ticket->row.id);
    return NULL;
}

/* The sums that are kept up must be those one gets by counting. */
static const char *check_sums(struct core *core)
{
    int32_t rooms[ROOM_STATES] = {0};
    int32_t open = 0;
    int32_t finished = 0;
    size_t at = 0;
    for (const struct room *room = NULL; (room = object_next(core, ROW_room, &at));)
        rooms[room->row.state]++;
    for (int i = 0; i < ROOM_STATES; i++) {
        if (rooms[i] != core->rooms_in[i])
            return broken(core, "%d rooms are counted in state %d where %d are", core->rooms_in[i],
                          i, rooms[i]);
    }
    at = 0;
    for (const struct room_ticket *t = NULL; (t = object_next(core, ROW_room_ticket, &at));) {
        open += t->row.state == ROOM_TICKET_OPEN;
        finished += t->row.state != ROOM_TICKET_OPEN;
    }
    if (open != core->room_tickets_open || finished != core->n_room_tickets_finished)
        return broken(core, "%d/%d room tickets are counted where %d/%d are",
                      core->room_tickets_open, core->n_room_tickets_finished, open, finished);
    return NULL;
}

const char *check_rooms(struct core *core)
{
    CHECK_ALL(object_next(core, ROW_host, &at), host, check_host);
    CHECK_ALL(object_next(core, ROW_room, &at), room, check_room);
    CHECK_ALL(object_next(core, ROW_room_seat, &at), room_seat, check_room_seat);
    CHECK_ALL(object_next(core, ROW_room_ticket, &at), room_ticket, check_room_ticket);
    return check_sums(core);
}

/* Rooms: what state they are in, and how long they may be in it. */
#include "core/room.h"

#include "core/state.h"

struct room *room_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_room, id);
}

struct room *room_of_server(const struct core *core, int64_t server)
{
    return map_get(&core->rooms_by_server, (uint64_t)server);
}

int32_t room_free_seats(const struct room *room)
{
    return room->row.max_players - room->reserved - room->taken;
}

bool room_is_over(const struct room *room)
{
    return room->row.state == ROOM_ENDING || room->row.state == ROOM_ENDED;
}

/* ── loading and leaving ───────────────────────────────────────────────────────────────────── */

static struct room *enter(struct core *core, const struct row_room *row, struct fleet *fleet,
                          struct version *version)
{
    struct room *room = xcalloc(1, sizeof(*room));
    room->object.kind = ROW_room;
    room->row = *row;
    row_own(ROW_room, &room->row);
    room->fleet = fleet;
    room->version = version;
    list_init(&room->seats);
    room->deadline.kind = DEADLINE_ROOM;
    room->empty.kind = DEADLINE_ROOM_EMPTY;
    room->repeat.kind = DEADLINE_ROOM_REPEAT;
    map_put(&core->rooms_by_server, (uint64_t)row->server, room);
    object_enter(core, &room->object);
    return room;
}

int room_load_row(struct core *core, const struct row_room *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    struct version *version = version_find(core, row->version);
    struct host *host = host_find(core, row->host);
    bool ended = row->state == ROOM_ENDED;
    if (!fleet || !version || row->state <= 0 || row->state >= ROOM_STATES || (!host && !ended) ||
        row->region < 0 || row->region >= REGION_CODES || row->ports_len % 2 != 0 ||
        map_get(&core->rooms_by_server, (uint64_t)row->server))
        return ERR_FORMAT;
    struct room *room = enter(core, row, fleet, version);
    room->object.stored = true;
    room->host = ended ? NULL : host;
    return 0;
}

void room_done(struct room *room)
{
    json_free(room->settings);
}

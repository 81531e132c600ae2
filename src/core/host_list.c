/* What a host says it runs is the truth about processes. A room that its host lists is there; one
 * that it does not list twice in a row is not, whatever we believed. A server that is listed, was
 * ours and is wanted no more is ended: nobody will ever send a player to it. One whose number was
 * never given here is only told of: somebody else, or we before our data were lost or set back
 * (restore.c), may have players on it. */
#include "core/state.h"

enum {
    MISSING_MAX = 2,    /* heartbeats: one may have been written before the spawn arrived */
    STRANGERS_TOLD = 64 /* per heartbeat; the next one has the rest */
};

static void keep_ports(struct core *core, struct room *room, const struct host_server *s)
{
    if (room->row.ports_len > 0 || s->n_ports <= 0)
        return;
    room_set_ports(room, s->ports, s->n_ports);
    room->row.pid = s->pid;
    object_touch(core, &room->object);
}

/* A list is no proof: what one account's machine runs no other account can have. */
static bool is_away_of_same(const struct host *had, const struct host *host)
{
    return had && host_is_away(had) && host_is_of(had, str_of(host->row.account));
}

/* Ours, if it is one of our rooms that is not over, there or on a host that nobody hears: a machine
 * may come back under another name. */
static struct room *ours(struct core *core, struct host *host, const struct host_server *s)
{
    struct room *room = room_of_server(core, s->server);
    if (!room || room->row.state == ROOM_ENDED)
        return NULL;
    if (room->host != host && !is_away_of_same(room->host, host))
        return NULL;
    if (room->host != host)
        room_adopt(core, room, host);
    return room;
}

/* `before`: how many the last heartbeat had; those were told of. */
static void stranger(struct core *core, struct host *host, const struct host_server *s,
                     int32_t before)
{
    host->strangers++;
    if (host->strangers > STRANGERS_TOLD)
        return;
    if (host->strangers > before)
        host_note(core, host, NOTE_HOST_STRANGER)->server_id = (int32_t)s->server;
    if (s->server < core->next_id[ROW_server] && !restore_may_hold(core, s->server))
        room_terminate(core, host, s->server, STR("it belongs to no room"));
}

static void listed(struct core *core, struct room *room, const struct host_server *s)
{
    room->listed = true;
    room->missing = 0;
    if (room->row.state == ROOM_STARTING)
        room_confirmed(core, room);
    if (!room_is_over(room))
        keep_ports(core, room, s);
}

/* A spawn that the host never said it has may still be on its way. */
static void not_listed(struct core *core, struct room *room)
{
    bool known = room->confirmed || room->row.state != ROOM_STARTING;
    if (!known)
        return;
    room->missing++;
    bool ending = room->row.state == ROOM_ENDING && room->confirmed;
    if (ending || room->missing >= MISSING_MAX)
        room_vanished(core, room);
}

void host_take_list(struct core *core, struct host *host, const struct host_beat *beat)
{
    LIST_EACH(&host->rooms, room, struct room, on_host)
    {
        room->listed = false;
    }
    int32_t strangers = host->strangers;
    host->strangers = 0;
    for (size_t i = 0; i < beat->n_servers; i++) {
        struct room *room = ours(core, host, &beat->servers[i]);
        if (room)
            listed(core, room, &beat->servers[i]);
        else
            stranger(core, host, &beat->servers[i], strangers);
    }
    host->placed = 0;
    LIST_EACH(&host->rooms, unlisted, struct room, on_host)
    {
        host->placed += !unlisted->listed && unlisted->row.state == ROOM_STARTING;
        if (!unlisted->listed)
            not_listed(core, unlisted);
    }
}

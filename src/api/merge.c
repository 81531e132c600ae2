#include "api/merge.h"

#include "api/shape.h"

#include <string.h>

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

/* ── sessions ──────────────────────────────────────────────────────────────────────────────── */

struct session_answer merge_match(const struct view_session *view)
{
    return (struct session_answer){
        .view = *view, .kind = "match", .players = view->player_count, .version = ""};
}

static struct session_answer of_room(const struct view_room *r)
{
    return (struct session_answer){
        .view =
            {
                .id = r->id,
                .ticket = r->ticket,
                .server = r->server,
                .fleet_id = r->fleet_id,
                .fleet = r->fleet,
                .chat_server = "",
                .lobby = SHAPE_NO_INT32,
                .game_type = SHAPE_NO_INT8,
                .game_mode = SHAPE_NO_INT8,
                .seated = r->taken,
                .state = r->state,
                .end_reason = r->end_reason,
                .ready = r->opened_wall_ms != 0,
                .created_wall_ms = r->created_wall_ms,
                .opened_wall_ms = r->opened_wall_ms,
                .deadline_wall_ms = r->deadline_wall_ms,
            },
        .kind = "room",
        .players = r->max_players,
        .version = r->version,
        .host = r->host,
    };
}

bool merge_session(const struct core *core, int64_t id, struct session_answer *ret)
{
    struct view_session match;
    struct view_room room;
    if (view_session(core, id, &match)) {
        *ret = merge_match(&match);
        return true;
    }
    if (!view_room(core, id, &room))
        return false;
    *ret = of_room(&room);
    return true;
}

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

struct server_answer merge_registered(const struct view_server *view)
{
    return (struct server_answer){
        .view = *view,
        .provider = "chat",
        .status = server_status_name(view->status),
        .room = {.state = "", .host_name = ""},
    };
}

static const struct fleet_config *config_of(const struct core *core, const char *name)
{
    const struct core_config *config = core_config(core);
    for (size_t i = 0; i < config->n_fleets; i++) {
        if (is(config->fleets[i].name, name))
            return &config->fleets[i];
    }
    return NULL;
}

/* Of a fleet that is not in the configuration any more it is not known. */
static const char *provider_of(const struct fleet_config *config, const char *otherwise)
{
    static const char *const words[] = {
        [PROVIDER_CHAT] = "chat", [PROVIDER_AGENT] = "agent", [PROVIDER_AGONES] = "agones"};
    return config ? words[config->provider] : otherwise;
}

static const char *spawned_status(const struct view_room *r)
{
    if (is(r->state, "ended"))
        return "gone";
    if (r->host_away)
        return "offline";
    return is(r->state, "open") ? "running" : r->state;
}

static struct server_answer of_spawned(const struct core *core, const struct view_room *r)
{
    bool runs = !is(r->state, "ended");
    bool open = is(r->state, "open");
    return (struct server_answer){
        .view =
            {
                .id = r->server,
                .fleet_id = r->fleet_id,
                .fleet = r->fleet,
                .ip = r->address,
                .port = r->n_ports > 0 ? r->ports[0] : 0,
                .region = r->region,
                .region_name = r->region_name,
                .connected = runs && !r->host_away,
                .max_sessions = 1,
                .load = runs,
                .sessions = runs,
                .open = open,
                .reported = open,
                .registered_wall_ms = r->created_wall_ms,
                .connected_wall_ms = r->opened_wall_ms,
            },
        .provider = provider_of(config_of(core, r->fleet), "agent"),
        .status = spawned_status(r),
        .room = *r,
    };
}

bool merge_server(const struct core *core, int64_t id, struct server_answer *ret)
{
    struct view_server registered;
    struct view_room room;
    if (view_server(core, id, &registered)) {
        *ret = merge_registered(&registered);
        return true;
    }
    int64_t of = view_room_of_server(core, id);
    if (of == 0 || !view_room(core, of, &room))
        return false;
    *ret = of_spawned(core, &room);
    return true;
}

/* ── tickets ───────────────────────────────────────────────────────────────────────────────── */

struct ticket_answer merge_asked(const struct view_ticket *view)
{
    return (struct ticket_answer){
        .view = *view,
        .kind = "match",
        .verb = "",
        .version = "",
        .account = "",
        .players = view->player_count,
    };
}

struct ticket_answer merge_room_asked(const struct core *core, const struct view_room_ticket *t)
{
    struct view_room room;
    bool known = t->room != 0 && view_room(core, t->room, &room);
    return (struct ticket_answer){
        .view =
            {
                .id = t->id,
                .fleet_id = t->fleet_id,
                .fleet = t->fleet,
                .chat_server = "",
                .lobby = SHAPE_NO_INT32,
                .regions = t->region >= 0 ? 1ull << t->region : 0,
                .game_type = SHAPE_NO_INT8,
                .game_mode = SHAPE_NO_INT8,
                .average_rating = SHAPE_NO_INT32,
                .state = t->state,
                .open = t->open,
                .err = t->err,
                .session = t->room,
                .server = known ? room.server : 0,
                .opened_wall_ms = t->opened_wall_ms,
                .answered_wall_ms = t->answered_wall_ms,
                .deadline_wall_ms = t->deadline_wall_ms,
                .n_tries = t->n_tries,
            },
        .kind = "room",
        .verb = t->verb,
        .version = t->version,
        .account = t->account,
        .players = t->players,
        .why = t->why,
        .room = *t,
    };
}

static struct ticket_answer of_allocation(const struct core *core, const struct view_allocation *a)
{
    struct view_room room;
    bool placed = is(a->state, "done");
    bool known = placed && view_room(core, a->room, &room);
    return (struct ticket_answer){
        .view =
            {
                .id = a->id,
                .fleet_id = a->fleet_id,
                .fleet = a->fleet,
                .chat_server = "",
                .lobby = SHAPE_NO_INT32,
                .regions = a->region >= 0 ? 1ull << a->region : 0,
                .game_type = SHAPE_NO_INT8,
                .game_mode = SHAPE_NO_INT8,
                .average_rating = SHAPE_NO_INT32,
                .state = a->state,
                .open = a->open,
                .err = a->err,
                .session = placed ? a->room : 0,
                .server = known ? room.server : 0,
                .opened_wall_ms = a->opened_wall_ms,
                .answered_wall_ms = a->answered_wall_ms,
                .deadline_wall_ms = a->deadline_wall_ms,
            },
        .kind = "allocation",
        .verb = "",
        .version = "",
        .account = a->player,
        .players = a->players,
        .why = a->why,
        .allocation = *a,
    };
}

bool merge_ticket(const struct core *core, int64_t id, struct ticket_answer *ret)
{
    struct view_ticket match;
    struct view_room_ticket room;
    struct view_allocation allocation;
    if (view_allocation(core, id, &allocation)) {
        *ret = of_allocation(core, &allocation);
        return true;
    }
    if (view_ticket(core, id, &match)) {
        *ret = merge_asked(&match);
        return true;
    }
    if (!view_room_ticket(core, id, &room))
        return false;
    *ret = merge_room_asked(core, &room);
    return true;
}

/* ── fleets ────────────────────────────────────────────────────────────────────────────────── */

static int32_t count_rooms(const struct core *core, int64_t fleet)
{
    struct view_version version;
    int32_t n = 0;
    for (size_t i = 0; view_version(core, fleet, i, &version); i++)
        n += version.rooms;
    return n;
}

bool merge_fleet(const struct core *core, int64_t id, struct fleet_answer *ret)
{
    struct view_fleet view;
    if (!view_fleet(core, id, &view))
        return false;
    const struct fleet_config *config = config_of(core, view.name);
    bool spawned = config && config->provider != PROVIDER_CHAT;
    *ret = (struct fleet_answer){
        .view = view,
        .provider = provider_of(config, "chat"),
        .game = spawned ? config->game : "",
        .server = spawned ? config->server : "",
        .max_players = spawned ? config->max_players : SHAPE_NO_INT32,
        .rooms = count_rooms(core, id),
    };
    return true;
}

/* ── in order ──────────────────────────────────────────────────────────────────────────────── */

static int64_t server_of(const struct core *core, int64_t room)
{
    struct view_room v;
    return view_room(core, room, &v) ? v.server : 0;
}

/* The first room whose server's number is larger, or 0. A room and its server are numbered at the
 * same moment, so both grow together, and it is found by halving. */
static int64_t room_after(const struct core *core, int64_t server)
{
    int64_t known = view_room_of_server(core, server);
    int64_t last = core_previous(core, ROW_room, 0);
    if (known != 0)
        return core_next(core, ROW_room, known);
    if (last == 0 || server_of(core, last) <= server)
        return 0;
    int64_t low = 0, high = last - 1; /* the room after `high` has a larger one */
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (server_of(core, core_next(core, ROW_room, middle)) > server)
            high = middle;
        else
            low = middle + 1;
    }
    return core_next(core, ROW_room, low);
}

/* The last room whose server's number is smaller (0: of all), or 0. */
static int64_t room_before(const struct core *core, int64_t server)
{
    int64_t known = server != 0 ? view_room_of_server(core, server) : 0;
    if (known != 0 || server == 0)
        return core_previous(core, ROW_room, known);
    int64_t after = room_after(core, server);
    return core_previous(core, ROW_room, after);
}

static int64_t smaller(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t merge_next(const struct core *core, enum row_kind kind, int64_t after)
{
    int64_t next = core_next(core, kind, after);
    if (kind == ROW_session)
        return smaller(next, core_next(core, ROW_room, after));
    if (kind == ROW_ticket)
        return smaller(next, core_next(core, ROW_room_ticket, after));
    if (kind == ROW_server) {
        int64_t room = room_after(core, after);
        return smaller(next, room != 0 ? server_of(core, room) : 0);
    }
    return next;
}

int64_t merge_previous(const struct core *core, enum row_kind kind, int64_t before)
{
    int64_t previous = core_previous(core, kind, before);
    if (kind == ROW_session)
        return larger(previous, core_previous(core, ROW_room, before));
    if (kind == ROW_ticket)
        return larger(previous, core_previous(core, ROW_room_ticket, before));
    if (kind == ROW_server) {
        int64_t room = room_before(core, before);
        return larger(previous, room != 0 ? server_of(core, room) : 0);
    }
    return previous;
}

/* Views of hosts, rooms, their seats and tickets. */
#include "core/state.h"
#include "wire/filter.h"

#include <string.h>

static int64_t wall_of(const struct core *core, int64_t core_ms)
{
    return wall_at(core->now, core_ms);
}

/* When it fires, whatever its clock; 0 when it is not set. */
static int64_t wall_of_deadline(const struct core *core, const struct deadline *d)
{
    if (!deadline_is_set(d))
        return 0;
    int64_t left_ms = deadline_at_ms(d) - deadline_now(core, (enum deadline_clock)d->clock);
    return core->now.wall_ms + left_ms;
}

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

void view_row_host(const struct core *core, const struct row_host *row, struct view_host *ret)
{
    *ret = (struct view_host){
        .id = row->id,
        .name = row->name,
        .address = row->address,
        .url = row->url,
        .region = row->region,
        .region_name = region_name(core, row->region),
        .slots = row->slots,
        .disabled = row->disabled != 0,
        .registered_wall_ms = row->registered_wall_ms,
    };
}

bool view_host(const struct core *core, int64_t id, struct view_host *ret)
{
    const struct host *host = host_find(core, id);
    if (!host)
        return false;
    view_row_host(core, &host->row, ret);
    ret->passed_over = host_passed_over(core, host);
    ret->cpu_percent = host->cpu_percent;
    ret->memory_percent = host->memory_percent;
    ret->load_percent = host_load_percent(host);
    ret->rooms = host->n_rooms;
    ret->servers = host->servers;
    ret->strangers = host->strangers;
    ret->deployments = (int32_t)host->n_deployments;
    ret->backoff_left_ms = pause_left_ms(core, &host->failing);
    ret->failed_why = ret->backoff_left_ms > 0 ? host->failed_why : "";
    ret->heard_wall_ms = wall_of(core, host->heard_core_ms);
    return true;
}

int64_t view_host_named(const struct core *core, struct str name)
{
    const struct host *host = host_named(core, name);
    return host ? host->row.id : 0;
}

const char *host_passed_over_name(enum host_passed_over reason)
{
    static const char *const names[HOST_PASSED_REASONS] = {
        [HOST_PASSED_NOT] = "",
        [HOST_PASSED_SILENT] = "silent",
        [HOST_PASSED_LEAVING] = "leaving",
        [HOST_PASSED_DISABLED] = "disabled",
        [HOST_PASSED_FAILING] = "failing",
        [HOST_PASSED_OVERLOADED] = "overloaded",
    };
    return names[reason];
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static const char *state_name(int8_t state)
{
    static const char *const names[ROOM_STATES] = {
        [ROOM_STARTING] = "starting",
        [ROOM_OPEN] = "open",
        [ROOM_ENDING] = "ending",
        [ROOM_ENDED] = "ended",
    };
    return state > 0 && state < ROOM_STATES ? names[state] : "?";
}

static void show_place(const struct core *core, const struct row_room *row, struct view_room *ret)
{
    const struct host *host = host_find(core, row->host);
    const struct fleet *fleet = fleet_find(core, row->fleet);
    const struct version *version = version_find(core, row->version);
    const struct room *room = room_find(core, row->id);
    const struct room_detail *detail = room ? room->detail : NULL;
    ret->fleet = fleet ? fleet->row.name : "";
    ret->game = fleet && fleet->config ? fleet->config->game : "";
    ret->kind = fleet && fleet->config ? fleet->config->server : "";
    ret->version = version ? version->row.name : "";
    ret->host_name = host ? host->row.name : "";
    ret->address = detail && detail->row.address[0] ? detail->row.address
                   : host                           ? host->row.address
                                                    : "";
    ret->dropped_bytes = detail ? detail->row.dropped_bytes : 0;
    ret->host_away = row->state != ROOM_ENDED && host_is_away(host);
    ret->region_name = region_name(core, row->region);
    ret->n_ports = row->ports_len / 2;
    for (int i = 0; i < ret->n_ports; i++)
        ret->ports[i] = (uint16_t)(row->ports[2 * i] | row->ports[2 * i + 1] << 8);
}

void view_row_room(const struct core *core, const struct row_room *row, struct instant then,
                   struct view_room *ret)
{
    *ret = (struct view_room){
        .id = row->id,
        .ticket = row->ticket,
        .server = row->server,
        .fleet_id = row->fleet,
        .deployment = row->deployment,
        .host = row->host,
        .region = row->region,
        .state = state_name(row->state),
        .end_reason = end_reason_name(row->end_reason),
        .max_players = row->max_players,
        .pid = row->pid,
        .exit_seen = row->exit_signal != 0 || row->exit_code >= 0,
        .exit_code = row->exit_code,
        .exit_signal = row->exit_signal,
        .peak_memory = row->peak_memory,
        .run_ms = row->run_ms,
        .settings = row->settings,
        .never_ran = row->exit_code == EXIT_NEVER_RAN ? row->tail : STR(""),
        .tail = room_tail(row),
        .created_wall_ms = wall_at(then, row->created_core_ms),
        .opened_wall_ms = wall_at(then, row->opened_core_ms),
        .deadline_wall_ms = wall_at(then, row->deadline_core_ms),
    };
    show_place(core, row, ret);
}

bool view_room(const struct core *core, int64_t id, struct view_room *ret)
{
    const struct room *room = room_find(core, id);
    if (!room)
        return false;
    view_row_room(core, &room->row, core->now, ret);
    ret->reserved = room->reserved;
    ret->taken = room->taken;
    ret->deadline_wall_ms = wall_of_deadline(core, &room->deadline);
    return true;
}

int64_t view_room_of_server(const struct core *core, int64_t server)
{
    const struct room *room = room_of_server(core, server);
    return room ? room->row.id : 0;
}

int64_t view_fleet_played(const struct core *core, const char *game, const char *server)
{
    size_t at = 0;
    for (const struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        const struct fleet_config *config = fleet->config;
        if (config && config->provider == PROVIDER_AGENT && strcmp(config->game, game) == 0 &&
            strcmp(config->server, server) == 0)
            return fleet->row.id;
    }
    return 0;
}

bool room_suits(const struct room *room, const struct filter *filter)
{
    return !filter || (room->settings && filter_matches(filter, room->settings));
}

static bool is_wanted(const struct room *room, const struct rooms_wanted *wanted)
{
    return (wanted->show_full || room_free_seats(room) > 0) && !host_is_away(room->host) &&
           room_suits(room, wanted->filter);
}

void view_rooms_open(const struct core *core, const struct rooms_wanted *wanted,
                     bool (*each)(void *user, int64_t room), void *user)
{
    const struct fleet *fleet = fleet_find(core, wanted->fleet_id);
    const struct version *version = fleet ? version_row_of(fleet, str_of(wanted->version)) : NULL;
    int8_t regions[REGION_CODES];
    int n = version ? regions_by_distance(core, 0, wanted->region, regions) : 0;
    for (int i = 0; i < n; i++) {
        const struct shelf *shelf = &version->shelves[regions[i]];
        for (size_t k = 0; k < shelf->n; k++) {
            const struct room *room = shelf->rooms[k];
            if (is_wanted(room, wanted) && !each(user, room->row.id))
                return;
        }
    }
}

int8_t view_region_for(const struct core *core, const struct place *p)
{
    return region_choose(core, 0, p);
}

/* ── seats and tickets ─────────────────────────────────────────────────────────────────────── */

void view_row_room_seat(const struct core *core, const struct row_room_seat *row,
                        struct instant then, struct view_room_seat *ret)
{
    *ret = (struct view_room_seat){
        .id = row->id,
        .room = row->room,
        .ticket = row->ticket,
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .account = row->account,
        .address = row->address,
        .state = row->state == ROOM_SEAT_TAKEN ? "taken" : "reserved",
        .multi = row->multi,
        .reserved_wall_ms = wall_at(then, row->reserved_core_ms),
        .joined_wall_ms = wall_at(then, row->joined_core_ms),
        .deadline_wall_ms = wall_at(then, row->deadline_core_ms),
        .info = row->info,
        .sealed = row->sealed,
    };
}

bool view_room_seat(const struct core *core, int64_t id, struct view_room_seat *ret)
{
    const struct room_seat *seat = room_seat_find(core, id);
    if (!seat)
        return false;
    view_row_room_seat(core, &seat->row, core->now, ret);
    ret->deadline_wall_ms = wall_of_deadline(core, &seat->deadline);
    return true;
}

int64_t view_next_seat_in(const struct core *core, int64_t room, int64_t after)
{
    const struct room *meant = room_find(core, room);
    int64_t next = 0;
    if (!meant)
        return 0;
    LIST_EACH(&meant->seats, seat, const struct room_seat, in_room)
    {
        if (seat->row.id > after && (next == 0 || seat->row.id < next))
            next = seat->row.id;
    }
    return next;
}

int64_t view_seat_of_key(const struct core *core, int64_t server, struct str key)
{
    const struct room_seat *seat = seat_of_key(core, server, key);
    return seat ? seat->row.id : 0;
}

static const char *verb_name(int8_t verb)
{
    static const char *const names[] = {
        [PLACE_CREATE] = "create", [PLACE_JOIN] = "join", [PLACE_ENTER] = "enter"};
    return verb >= PLACE_CREATE && verb <= PLACE_ENTER ? names[verb] : "?";
}

static const char *ticket_state(int8_t state)
{
    static const char *const names[ROOM_TICKET_STATES] = {
        [ROOM_TICKET_OPEN] = "open",
        [ROOM_TICKET_DONE] = "done",
        [ROOM_TICKET_FAILED] = "failed",
    };
    return state > 0 && state < ROOM_TICKET_STATES ? names[state] : "?";
}

void view_row_room_ticket(const struct core *core, const struct row_room_ticket *row,
                          struct instant then, struct view_room_ticket *ret)
{
    const struct version *version = version_find(core, row->version);
    *ret = (struct view_room_ticket){
        .id = row->id,
        .verb = verb_name(row->verb),
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .version = version ? version->row.name : "",
        .account = row->account,
        .players = row->players,
        .region = row->region,
        .region_name = region_name(core, row->region),
        .state = ticket_state(row->state),
        .open = row->state == ROOM_TICKET_OPEN,
        .err = row->error,
        .why = row->why,
        .room = row->room,
        .opened_wall_ms = wall_at(then, row->opened_core_ms),
        .answered_wall_ms = row->answered_wall_ms,
        .deadline_wall_ms = wall_at(then, row->deadline_core_ms),
    };
}

bool view_room_ticket(const struct core *core, int64_t id, struct view_room_ticket *ret)
{
    const struct room_ticket *ticket = room_ticket_find(core, id);
    if (!ticket)
        return false;
    view_row_room_ticket(core, &ticket->row, core->now, ret);
    ret->deadline_wall_ms = wall_of_deadline(core, &ticket->deadline);
    ret->n_tries = ticket->n_tries;
    for (int i = 0; i < ticket->n_tries; i++) {
        const struct room_try *t = &ticket->tries[i];
        ret->tries[i] = (struct view_host_try){
            .host = t->host,
            .room = t->room,
            .outcome = room_try_outcome_name(t->outcome),
            .load_percent = t->load_percent,
        };
    }
    return true;
}

/* Views of hosts, rooms, their seats and tickets. */
#include "core/state.h"
#include "wire/filter.h"

#include <string.h>

static int64_t wall_of(const struct core *core, int64_t core_ms)
{
    return core_ms ? core->now.wall_ms - (core->now.core_ms - core_ms) : 0;
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

bool view_host(const struct core *core, int64_t id, struct view_host *ret)
{
    const struct host *host = host_find(core, id);
    if (!host)
        return false;
    int64_t backoff_ms = wall_of_deadline(core, &host->backoff) - core->now.wall_ms;
    *ret = (struct view_host){
        .id = host->row.id,
        .name = host->row.name,
        .address = host->row.address,
        .url = host->row.url,
        .region = host->row.region,
        .region_name = region_name(core, host->row.region),
        .slots = host->row.slots,
        .disabled = host->row.disabled != 0,
        .passed_over = host_passed_over(host),
        .cpu_percent = host->cpu_percent,
        .memory_percent = host->memory_percent,
        .load_percent = host_load_percent(host),
        .rooms = host->n_rooms,
        .servers = host->servers,
        .strangers = host->strangers,
        .deployments = (int32_t)host->n_deployments,
        .backoff_left_ms = backoff_ms > 0 ? backoff_ms : 0,
        .heard_wall_ms = wall_of(core, host->heard_core_ms),
        .registered_wall_ms = host->row.registered_wall_ms,
    };
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
    ret->fleet = fleet ? fleet->row.name : "";
    ret->game = fleet && fleet->config ? fleet->config->game : "";
    ret->kind = fleet && fleet->config ? fleet->config->server : "";
    ret->version = version ? version->row.name : "";
    ret->host_name = host ? host->row.name : "";
    ret->address = host ? host->row.address : "";
    ret->host_away = row->state != ROOM_ENDED && host_is_away(host);
    ret->region_name = region_name(core, row->region);
    ret->n_ports = row->ports_len / 2;
    for (int i = 0; i < ret->n_ports; i++)
        ret->ports[i] = (uint16_t)(row->ports[2 * i] | row->ports[2 * i + 1] << 8);
}

bool view_room(const struct core *core, int64_t id, struct view_room *ret)
{
    const struct room *room = room_find(core, id);
    if (!room)
        return false;
    const struct row_room *row = &room->row;
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
        .reserved = room->reserved,
        .taken = room->taken,
        .pid = row->pid,
        .exit_code = row->exit_code,
        .exit_signal = row->exit_signal,
        .peak_memory = row->peak_memory,
        .run_ms = row->run_ms,
        .settings = row->settings,
        .tail = row->tail,
        .created_wall_ms = wall_of(core, row->created_core_ms),
        .opened_wall_ms = wall_of(core, row->opened_core_ms),
        .deadline_wall_ms = wall_of_deadline(core, &room->deadline),
    };
    show_place(core, row, ret);
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

void view_rooms_open(const struct core *core, int64_t fleet_id, const char *version, int8_t region,
                     const struct filter *filter, bool show_full,
                     bool (*each)(void *user, int64_t room), void *user)
{
    const struct fleet *fleet = fleet_find(core, fleet_id);
    const struct version *meant = fleet ? version_row_of(fleet, str_of(version)) : NULL;
    int8_t regions[REGION_CODES];
    int n = meant ? regions_by_distance(core, 0, region, regions) : 0;
    for (int i = 0; i < n; i++) {
        const struct shelf *shelf = &meant->shelves[regions[i]];
        for (size_t k = 0; k < shelf->n; k++) {
            const struct room *room = shelf->rooms[k];
            bool shown = (show_full || room_free_seats(room) > 0) && room_suits(room, filter);
            if (shown && !each(user, room->row.id))
                return;
        }
    }
}

int8_t view_region_for(const struct core *core, const struct place *p)
{
    return region_choose(core, 0, p);
}

/* ── seats and tickets ─────────────────────────────────────────────────────────────────────── */

bool view_room_seat(const struct core *core, int64_t id, struct view_room_seat *ret)
{
    const struct room_seat *seat = room_seat_find(core, id);
    if (!seat)
        return false;
    const struct row_room_seat *row = &seat->row;
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
        .reserved_wall_ms = wall_of(core, row->reserved_core_ms),
        .joined_wall_ms = wall_of(core, row->joined_core_ms),
        .deadline_wall_ms = wall_of_deadline(core, &seat->deadline),
        .info = row->info,
        .sealed = row->sealed,
    };
    return true;
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

bool view_room_ticket(const struct core *core, int64_t id, struct view_room_ticket *ret)
{
    const struct room_ticket *ticket = room_ticket_find(core, id);
    if (!ticket)
        return false;
    const struct row_room_ticket *row = &ticket->row;
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
        .opened_wall_ms = wall_of(core, row->opened_core_ms),
        .answered_wall_ms = row->answered_wall_ms,
        .deadline_wall_ms = wall_of_deadline(core, &ticket->deadline),
        .n_tries = ticket->n_tries,
    };
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

/* Looking at rooms and what belongs to them. */
#include "api/browse.h"
#include "api/resource_room.h"
#include "base/err.h"

#include <inttypes.h>

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

static bool host_item(const struct core *core, int64_t id, const struct wanted *wanted,
                      struct json_writer *w)
{
    struct view_host v;
    bool any = wanted->state.len == 0;
    if (!view_host(core, id, &v) || (wanted->region >= 0 && v.region != wanted->region) ||
        !browse_fits(wanted->name, v.name))
        return false;
    const char *word =
        v.passed_over == HOST_PASSED_NOT ? "healthy" : host_passed_over_name(v.passed_over);
    if (!any && !browse_fits(wanted->state, word))
        return false;
    shape_write(w, &host_shape, &v, core_config(core));
    return true;
}

void handle_list_hosts(struct call *c)
{
    struct wanted wanted = {.state = call_argument(c, "status")->text,
                            .name = call_argument(c, "name")->text};
    if (call_region(c, "region", &wanted.region) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_host, browse_order(c), host_item, &wanted);
}

void handle_get_host(struct call *c)
{
    struct host_answer v;
    int64_t id = call_argument(c, "id")->number;
    if (view_host(call_core(c), id, &v.view) && view_removal(call_core(c), id, &v.removal))
        browse_show(c, &host_whole_shape, &v);
    else
        browse_refuse_missing(c, "host", id);
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static bool room_item(const struct core *core, int64_t id, const struct wanted *wanted,
                      struct json_writer *w)
{
    struct view_room v;
    if (!view_room(core, id, &v) || (wanted->fleet && v.fleet_id != wanted->fleet) ||
        (wanted->region >= 0 && v.region != wanted->region) ||
        (wanted->host && v.host != wanted->host) || !browse_fits(wanted->version, v.version) ||
        !browse_fits(wanted->state, v.state))
        return false;
    shape_write(w, &room_shape, &v, core_config(core));
    return true;
}

void handle_list_rooms(struct call *c)
{
    struct wanted wanted = {
        .version = call_argument(c, "version")->text,
        .host = call_argument(c, "host")->number,
        .state = call_argument(c, "state")->text,
    };
    if (call_fleet(c, "fleet", &wanted.fleet) != 0 || call_region(c, "region", &wanted.region) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_room, browse_order(c), room_item, &wanted);
}

static size_t seats_of(struct call *c, const struct view_room *room,
                       const struct view_room_seat **ret)
{
    size_t max = (size_t)room->reserved + (size_t)room->taken;
    struct view_room_seat *seats = arena_alloc(&c->arguments.arena, (max + 1) * sizeof(*seats));
    size_t n = 0;
    int64_t id = 0;
    while (n < max && (id = view_next_seat_in(call_core(c), room->id, id)) != 0)
        n += view_room_seat(call_core(c), id, &seats[n]);
    *ret = seats;
    return n;
}

void handle_get_room(struct call *c)
{
    struct room_answer v = {.n_seats = 0};
    int64_t id = call_argument(c, "id")->number;
    if (!view_room(call_core(c), id, &v.room)) {
        browse_refuse_missing(c, "room", id);
        return;
    }
    v.n_seats = seats_of(c, &v.room, &v.seats);
    browse_show(c, &room_whole_shape, &v);
}

/* ── seats ─────────────────────────────────────────────────────────────────────────────────── */

static bool seat_item(const struct core *core, int64_t id, const struct wanted *wanted,
                      struct json_writer *w)
{
    struct view_room_seat v;
    if (!view_room_seat(core, id, &v) || (wanted->room && v.room != wanted->room) ||
        (wanted->fleet && v.fleet_id != wanted->fleet) || !browse_fits(wanted->state, v.state) ||
        !browse_fits(wanted->account, v.account))
        return false;
    shape_write(w, &room_seat_shape, &v, core_config(core));
    return true;
}

void handle_list_seats(struct call *c)
{
    struct wanted wanted = {
        .room = call_argument(c, "room")->number,
        .account = call_argument(c, "account")->text,
        .state = call_argument(c, "state")->text,
    };
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_room_seat, browse_order(c), seat_item, &wanted);
}

/* ── versions ──────────────────────────────────────────────────────────────────────────────── */

/* Those of the configuration have no number, and there are few. */
static void write_versions(struct json_writer *w, const struct core *core, int64_t fleet)
{
    struct view_version v;
    for (int64_t id = 0; (id = core_next(core, ROW_fleet, id));) {
        for (size_t i = 0; (fleet == 0 || id == fleet) && view_version(core, id, i, &v); i++)
            shape_write(w, &version_shape, &v, core_config(core));
    }
}

void handle_list_versions(struct call *c)
{
    browse_whole(c, write_versions);
}

/* ── deployments and bans ──────────────────────────────────────────────────────────────────── */

static bool deployment_item(const struct core *core, int64_t id, const struct wanted *wanted,
                            struct json_writer *w)
{
    struct view_deployment v;
    if (!view_deployment(core, id, &v) || (wanted->fleet && v.fleet_id != wanted->fleet) ||
        !browse_fits(wanted->version, v.version))
        return false;
    shape_write(w, &deployment_shape, &v, core_config(core));
    return true;
}

void handle_list_deployments(struct call *c)
{
    struct wanted wanted = {.version = call_argument(c, "version")->text};
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_deployment, browse_order(c), deployment_item, &wanted);
}

void handle_get_deployment(struct call *c)
{
    struct view_deployment v;
    int64_t id = call_argument(c, "id")->number;
    if (view_deployment(call_core(c), id, &v))
        browse_show(c, &deployment_shape, &v);
    else
        browse_refuse_missing(c, "deployment", id);
}

static bool ban_item(const struct core *core, int64_t id, const struct wanted *wanted,
                     struct json_writer *w)
{
    struct view_ban v;
    if (!view_ban(core, id, &v) || !browse_fits(wanted->account, v.account) ||
        !browse_fits(wanted->state, v.expired ? "expired" : "held"))
        return false;
    shape_write(w, &ban_shape, &v, core_config(core));
    return true;
}

void handle_list_bans(struct call *c)
{
    struct wanted wanted = {.account = call_argument(c, "account")->text,
                            .state = call_argument(c, "state")->text};
    browse_list(c, ROW_ban, browse_order(c), ban_item, &wanted);
}

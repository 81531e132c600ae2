/* Queues, parties and routes: looking, and taking a player out of a line. */
#include "api/browse.h"
#include "api/resource_allocation.h"
#include "base/err.h"

#include <inttypes.h>

/* ── queues ────────────────────────────────────────────────────────────────────────────────── */

enum { QUEUES_MAX = 1000 }; /* in one answer */

/* They come and go, and have no numbers. Those of fleets come first. */
static void write_queues(struct json_writer *w, const struct core *core, int64_t fleet)
{
    struct view_queue_place at = {0};
    struct view_queue v;
    for (int n = 0; n < QUEUES_MAX && view_next_queue(core, &at, &v);) {
        if (fleet != 0 && v.fleet_id != fleet)
            continue;
        shape_write(w, &queue_shape, &v, core_config(core));
        n++;
    }
}

void handle_list_queues(struct call *c)
{
    browse_whole(c, write_queues);
}

static void show_dequeued(struct call *c)
{
    struct view_allocation v;
    if (view_allocation(call_core(c), c->object, &v)) {
        browse_show(c, &allocation_shape, &v);
        return;
    }
    call_refuse(c, ERR_NOT_FOUND, NULL, "It was done, but the allocation was forgotten meanwhile.");
    call_read(c);
}

/* The first queue he stands in, in the order of fleets. */
static bool stands_in_line(const struct core *core, struct str player)
{
    int64_t fleet = 0;
    while ((fleet = core_next(core, ROW_fleet, fleet)) != 0) {
        if (view_queued_player(core, fleet, player) != 0)
            return true;
    }
    return false;
}

void handle_dequeue(struct call *c)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct str player = call_argument(c, "player")->text;
    struct operate o = {.verb = OPERATE_DEQUEUE, .account = player, .detail = player};
    if (!stands_in_line(call_core(c), player)) {
        call_refuse(c, ERR_NOT_FOUND, "player", "The player %s stands in no line.",
                    arguments_show(shown, player));
        call_read(c);
        return;
    }
    c->noun = "allocation";
    call_operate(c, &o, show_dequeued);
}

/* ── parties ───────────────────────────────────────────────────────────────────────────────── */

void handle_get_party(struct call *c)
{
    const struct core *core = call_core(c);
    struct view_room_seat seats[PLACE_PLAYERS_MAX];
    struct party_answer answer = {.id = call_argument(c, "id")->number, .seats = seats};
    int64_t id = 0;
    while (answer.n_seats < PLACE_PLAYERS_MAX &&
           (id = view_next_in_party(core, answer.id, id)) != 0)
        answer.n_seats += view_room_seat(core, id, &seats[answer.n_seats]);
    if (answer.n_seats == 0) {
        browse_refuse_missing(c, "party", answer.id);
        return;
    }
    answer.fleet = seats[0].fleet;
    answer.room = seats[0].room;
    browse_show(c, &party_shape, &answer);
}

/* ── routes ────────────────────────────────────────────────────────────────────────────────── */

static bool route_item(const struct core *core, int64_t id, const struct wanted *wanted,
                       struct json_writer *w)
{
    struct view_route v;
    if (!view_route(core, id, &v) || (wanted->fleet && v.fleet_id != wanted->fleet) ||
        !browse_fits(wanted->account, v.player))
        return false;
    shape_write(w, &route_shape, &v, core_config(core));
    return true;
}

void handle_list_routes(struct call *c)
{
    struct wanted wanted = {.account = call_argument(c, "player")->text};
    if (call_fleet(c, "fleet", &wanted.fleet) != 0)
        browse_refuse_argument(c);
    else
        browse_list(c, ROW_room_seat, core_next, route_item, &wanted);
}

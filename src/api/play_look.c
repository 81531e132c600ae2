/* Looking, for players: rooms, regions, counts, and where players are. */
#include "api/call.h"
#include "api/play.h"
#include "base/err.h"
#include "wire/filter.h"

enum {
    ROOMS_MAX = 1000,              /* in one answer … */
    ROOMS_BYTES_MAX = 1024 * 1024, /* … and no more begins after this */
    EXAMINED_MAX = 10 * 1000,
};

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

struct listing {
    struct call *c;
    struct json_writer w;
    int region; /* only there; -1 = anywhere */
    int n;
};

static bool write_room(void *user, int64_t id)
{
    struct listing *l = user;
    struct view_room room;
    if (!view_room(call_core(l->c), id, &room) || (l->region >= 0 && room.region != l->region))
        return true;
    shape_write(&l->w, &open_room_shape, &room, core_config(call_core(l->c)));
    return ++l->n < ROOMS_MAX && l->c->body.len < ROOMS_BYTES_MAX;
}

/* 0, or an error with the refusal rendered. */
static int check_version(struct call *c, int64_t fleet)
{
    struct view_version v;
    struct str name = call_argument(c, "version")->text;
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    size_t i = 0;
    while (view_version(call_core(c), fleet, i, &v) && !str_eq(name, str_of(v.name)))
        i++;
    arguments_show(shown, name);
    if (!view_version(call_core(c), fleet, i, &v)) {
        call_refuse(c, ERR_NO_VERSION, NULL, "There is no version %s.", shown);
        return ERR_NO_VERSION;
    }
    if (!v.enabled) {
        call_refuse(c, ERR_VERSION_DISABLED, NULL, "The version %s is turned off.", shown);
        return ERR_VERSION_DISABLED;
    }
    return 0;
}

static void list_rooms(struct call *c, int64_t fleet, const struct place *where,
                       const struct filter *filter)
{
    int8_t mine = view_region_for(call_core(c), where);
    bool only = call_argument(c, "my_region_only")->number != 0 || where->region >= 0;
    struct listing l = {.c = c, .w = call_writer(c), .region = only ? mine : -1};
    json_open_object(&l.w);
    json_key(&l.w, "rooms");
    json_open_array(&l.w);
    struct rooms_wanted wanted = {
        .fleet_id = fleet,
        .version = call_argument(c, "version")->text.at,
        .region = mine,
        .filter = filter,
        .show_full = call_argument(c, "show_full")->number != 0,
    };
    view_rooms_open(call_core(c), &wanted, write_room, &l);
    json_close_array(&l.w);
    json_close_object(&l.w);
}

void handle_rooms(struct call *c)
{
    struct view_fleet fleet;
    struct filter *filter = NULL;
    struct place where = {.region = -1};
    int err = play_fleet(c, &fleet);
    if (err == 0)
        err = check_version(c, fleet.id);
    if (err == 0)
        err = play_filter(c, &filter);
    if (err == 0)
        err = play_where(c, str_of(c->address), &where);
    if (err == 0)
        list_rooms(c, fleet.id, &where, filter);
    filter_free(filter);
    call_read(c);
}

/* ── regions and counts ────────────────────────────────────────────────────────────────────── */

void handle_regions(struct call *c)
{
    struct place where = {.region = -1};
    struct play_regions answer = {.mine = ""};
    if (play_nearness(c, str_of(c->address), &where) == 0) {
        int8_t mine = view_region_for(call_core(c), &where);
        if (mine >= 0)
            answer.mine = core_config(call_core(c))->regions[mine].name;
        call_render(c, &play_regions_shape, &answer);
    }
    call_read(c);
}

void handle_counts(struct call *c)
{
    struct core_counts counts;
    core_count(call_core(c), &counts);
    call_render(c, &counts_shape, &counts);
    call_read(c);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

void handle_player(struct call *c)
{
    struct player_answer answer = {.core = call_core(c),
                                   .account = call_argument(c, "account")->text.at};
    call_render(c, &player_shape, &answer);
    call_read(c);
}

static bool is_wanted(const struct argument *accounts, const char *account)
{
    for (size_t i = 0; i < accounts->n_items; i++) {
        if (str_eq(accounts->items[i], str_of(account)))
            return true;
    }
    return !accounts->given;
}

static bool write_seat(struct call *c, struct json_writer *w, int64_t id)
{
    const struct core *core = call_core(c);
    struct player_seat v;
    if (!view_room_seat(core, id, &v.seat) || !view_room(core, v.seat.room, &v.room) ||
        !is_wanted(call_argument(c, "accounts"), v.seat.account))
        return false;
    shape_write(w, &player_seat_shape, &v, core_config(core));
    return true;
}

/* Page by page, as the lists of browse.c. */
void handle_players(struct call *c)
{
    const struct core *core = call_core(c);
    int64_t left = call_argument(c, "limit")->number;
    int64_t last = call_argument(c, "cursor")->number;
    int64_t next = core_next(core, ROW_room_seat, last);
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "items");
    json_open_array(&w);
    for (int seen = 0;
         next != 0 && left > 0 && seen < EXAMINED_MAX && c->body.len < ROOMS_BYTES_MAX; seen++) {
        last = next;
        left -= write_seat(c, &w, last);
        next = core_next(core, ROW_room_seat, last);
    }
    json_close_array(&w);
    json_key_id(&w, "next", next != 0 ? last : 0);
    json_close_object(&w);
    call_read(c);
}

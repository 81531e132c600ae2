/* Players: who sits or waits somewhere now, and all that is known of one. */
#include "api/players.h"
#include "api/browse.h"
#include "api/resource_room.h"
#include "api/shape_rows.h"

#include <string.h>

enum { EXAMINED_MAX = 10 * 1000 };

static const char *const place_words[] = {"reserved", "taken",   "starting", "routing", "waiting",
                                          "playing",  "loading", "started",  NULL};

static void place_account(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(((const struct view_place *)object)->account));
}

static void place_position(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)config;
    int32_t position = ((const struct view_place *)object)->position;
    if (position > 0)
        json_int(w, position);
    else
        json_none(w);
}

const struct shape place_shape = {
    .name = "PlayerPlace",
    .help = "Where a player is, or for what he waits.",
    .rows =
        (const struct shape_row[]){
            ROW_WRITTEN(TEXT, "account", place_account, NULL),
            ROW_WORD("state", place_words, struct view_place, state,
                     "reserved, taken: a seat in a room; starting: in one that is not open yet; "
                     "routing: until a proxy lets him in; waiting: in line; playing: in a match; "
                     "loading, started: in a lobby"),
            ROW(TEXT, "fleet", struct view_place, fleet, NULL),
            ROW_OR_NULL(ID, "room", struct view_place, room, "waiting: whose line it is"),
            ROW_OR_NULL(ID, "match", struct view_place, match, NULL),
            ROW_OR_NULL(ID, "server", struct view_place, server, NULL),
            ROW_OR_NULL(ID, "seat", struct view_place, seat, NULL),
            ROW_OR_NULL(ID, "ticket", struct view_place, ticket, NULL),
            ROW_OR_NULL(ID, "lobby", struct view_place, lobby, NULL),
            ROW_OR_NULL(ID, "party", struct view_place, party,
                        "the same for players who were placed together"),
            ROW_OR_NULL(TEXT, "address", struct view_place, address, "where he came from"),
            ROW_WRITTEN_OR_NULL(INT32, "position", place_position, "waiting: from 1"),
            ROW_OR_NULL(TIME, "since", struct view_place, since_wall_ms, "null: not kept"),
            ROW_OR_NULL(TIME, "deadline_at", struct view_place, deadline_wall_ms,
                        "when the seat is given back, or he waits no longer"),
            {0},
        },
};

/* ── all of them ───────────────────────────────────────────────────────────────────────────── */

/* What has places, in the order in which a list shows them. */
static const enum row_kind kinds[] = {ROW_room_seat, ROW_allocation, ROW_session, ROW_lobby};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

struct listing {
    struct json_writer w;
    struct str prefix;
    int64_t fleet;
    const struct core_config *config;
    int64_t n;
};

static void list_place(void *user, const struct view_place *place)
{
    struct listing *l = user;
    if ((l->fleet && place->fleet_id != l->fleet) ||
        strncmp(place->account, l->prefix.at ? l->prefix.at : "", l->prefix.len) != 0)
        return;
    shape_write(&l->w, &place_shape, place, l->config);
    l->n++;
}

/* A cursor is an object's kind and id. What belongs to one object is never torn apart, so a page
 * may be a little longer than asked for. */
void handle_list_players(struct call *c)
{
    const struct core *core = call_core(c);
    int64_t limit = call_argument(c, "limit")->number;
    int64_t cursor = call_argument(c, "cursor")->number;
    struct listing l = {.prefix = call_argument(c, "search")->text, .config = core_config(core)};
    if (call_fleet(c, "fleet", &l.fleet) != 0) {
        browse_refuse_argument(c);
        return;
    }
    l.w = call_writer(c);
    json_open_object(&l.w);
    json_key(&l.w, "items");
    json_open_array(&l.w);
    size_t kind = (size_t)(cursor % KINDS);
    int64_t id = cursor / KINDS;
    for (int seen = 0; kind < KINDS && l.n < limit && seen < EXAMINED_MAX; seen++) {
        int64_t next = core_next(core, kinds[kind], id);
        if (next != 0)
            view_places_at(core, kinds[kind], next, list_place, &l);
        else
            kind++;
        id = next;
    }
    json_close_array(&l.w);
    json_key_id(&l.w, "next", kind < KINDS ? id * KINDS + (int64_t)kind : 0);
    json_close_object(&l.w);
    call_read(c);
}

/* ── one of them ───────────────────────────────────────────────────────────────────────────── */

struct known {
    const struct core *core;
    struct str account;
    struct json_writer *w;
    bool waiting; /* which places are shown */
};

static void show_place(void *user, const struct view_place *place)
{
    const struct known *k = user;
    if ((strcmp(place->state, "waiting") == 0) == k->waiting)
        shape_write(k->w, &place_shape, place, core_config(k->core));
}

static void write_places_of(struct json_writer *w, const struct known *known, bool waiting)
{
    struct known k = {known->core, known->account, w, waiting};
    json_open_array(w);
    view_places_of(k.core, k.account, show_place, &k);
    json_close_array(w);
}

static void write_places(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    (void)config;
    write_places_of(w, object, false);
}

static void write_waiting(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    write_places_of(w, object, true);
}

static void write_bans(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct known *k = object;
    struct view_ban v;
    json_open_array(w);
    for (int64_t id = 0; (id = view_next_ban_of(k->core, k->account, id)) != 0;) {
        if (view_ban(k->core, id, &v))
            shape_write(w, &ban_shape, &v, config);
    }
    json_close_array(w);
}

static void write_banned(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    (void)config;
    const struct known *k = object;
    json_bool(w, view_banned(k->core, k->account, STR("")) != 0);
}

static void write_account(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    json_text(w, ((const struct known *)object)->account);
}

const struct shape known_player_shape = {
    .name = "KnownPlayer",
    .help = "Where a player is now, for what he waits, and his bans.",
    .rows =
        (const struct shape_row[]){
            ROW_WRITTEN(TEXT, "account", write_account, NULL),
            ROW_WRITTEN(BOOL, "banned", write_banned, "a ban of his holds now"),
            ROW_ITEMS("places", place_shape, write_places, "where he is; at most one in a fleet"),
            ROW_ITEMS("waiting", place_shape, write_waiting, "the lines he stands in"),
            ROW_ITEMS("bans", ban_shape, write_bans, "those that are kept, the oldest first"),
            {0},
        },
};

/* Nobody is unknown: who was never here is nowhere. */
void handle_get_player(struct call *c)
{
    struct known k = {.core = call_core(c), .account = call_argument(c, "account")->text};
    call_render(c, &known_player_shape, &k);
    call_read(c);
}

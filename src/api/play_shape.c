/* What the player API answers with. Its keys are those that clients of the seed read. */
#include "api/play.h"
#include "api/shape_rows.h"

/* ── where ─────────────────────────────────────────────────────────────────────────────────── */

static void write_ports(struct json_writer *w, const uint16_t *ports, int n)
{
    json_open_array(w);
    for (int i = 0; i < n; i++)
        json_int(w, ports[i]);
    json_close_array(w);
}

static void write_placed_host(struct json_writer *w, const void *object,
                              const struct core_config *config)
{
    (void)config;
    json_text(w, ((const struct placed *)object)->address);
}

static void write_placed_ports(struct json_writer *w, const void *object,
                               const struct core_config *config)
{
    (void)config;
    const struct placed *p = object;
    write_ports(w, p->ports, p->n_ports);
}

const struct shape location_shape = {
    .name = "Location",
    .help = "Where players connect to.",
    .rows =
        (const struct shape_row[]){
            {.name = "host",
             .kind = SHAPE_TEXT,
             .write = write_placed_host,
             .help = "an address or a name"},
            {.name = "ports",
             .kind = SHAPE_INTS,
             .write = write_placed_ports,
             .help = "in the order in which the game server was given them"},
            {0},
        },
};

static void write_location(struct json_writer *w, const struct view_room *room,
                           const struct core_config *config)
{
    struct placed p = {.address = str_of(room->address), .n_ports = room->n_ports};
    for (int i = 0; i < room->n_ports; i++)
        p.ports[i] = room->ports[i];
    shape_write(w, &location_shape, &p, config);
}

static void write_room_location(struct json_writer *w, const void *object,
                                const struct core_config *config)
{
    write_location(w, object, config);
}

static void write_seat_location(struct json_writer *w, const void *object,
                                const struct core_config *config)
{
    write_location(w, &((const struct player_seat *)object)->room, config);
}

/* ── placed ────────────────────────────────────────────────────────────────────────────────── */

static void write_placed_location(struct json_writer *w, const void *object,
                                  const struct core_config *config)
{
    shape_write(w, &location_shape, ((const struct placed_answer *)object)->placed, config);
}

static void write_placed_settings(struct json_writer *w, const void *object,
                                  const struct core_config *config)
{
    (void)config;
    struct str settings = ((const struct placed_answer *)object)->placed->settings;
    json_raw(w, settings.len > 0 ? settings : STR("{}"));
}

#define ROOM_ROWS                                                                                  \
    ROW(ID, "id", struct placed_answer, room, "of the room"),                                      \
        {.name = "location",                                                                       \
         .kind = SHAPE_OBJECT,                                                                     \
         .shape = &location_shape,                                                                 \
         .write = write_placed_location},                                                          \
    {                                                                                              \
        .name = "settings", .kind = SHAPE_JSON, .write = write_placed_settings,                    \
        .help = "of the room, as its game server has them now"                                     \
    }

const struct shape placed_shape = {
    .name = "Placed",
    .help = "A seat in a room. It is given back unless the key is used in time.",
    .rows =
        (const struct shape_row[]){
            ROOM_ROWS,
            ROW(ID, "slot", struct placed_answer, slot, "of the seat"),
            ROW(TEXT, "key", struct placed_answer, key, "what the player sends to the game server"),
            {0},
        },
};

static void write_slot_id(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    json_id(w, ((const struct placed_seat *)object)->seat);
}

static void write_slot_key(struct json_writer *w, const void *object,
                           const struct core_config *config)
{
    (void)config;
    json_text(w, ((const struct placed_seat *)object)->key);
}

const struct shape slot_shape = {
    .name = "Slot",
    .help = "One player's seat.",
    .rows =
        (const struct shape_row[]){
            {.name = "slot", .kind = SHAPE_ID, .write = write_slot_id, .help = "of the seat"},
            {.name = "key",
             .kind = SHAPE_TEXT,
             .write = write_slot_key,
             .help = "what the player sends to the game server"},
            {0},
        },
};

static void write_slots(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct placed *p = ((const struct placed_answer *)object)->placed;
    json_open_object(w);
    for (size_t i = 0; i < p->n_seats; i++) {
        json_key_any(w, p->seats[i].account);
        shape_write(w, &slot_shape, &p->seats[i], config);
    }
    json_close_object(w);
}

const struct shape placed_multi_shape = {
    .name = "PlacedTogether",
    .help = "Seats in one room.",
    .rows =
        (const struct shape_row[]){
            ROOM_ROWS,
            {.name = "slots",
             .kind = SHAPE_MAP,
             .shape = &slot_shape,
             .write = write_slots,
             .help = "by account"},
            ROW(ID, "multi_id", struct placed_answer, ticket,
                "what those who were placed together have in common; the game server is told"),
            {0},
        },
};

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

static void write_room_players(struct json_writer *w, const void *object,
                               const struct core_config *config)
{
    (void)config;
    const struct view_room *room = object;
    json_int(w, room->reserved + room->taken);
}

const struct shape open_room_shape = {
    .name = "OpenRoom",
    .help = "A room that players can join.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_room, id, NULL),
            {.name = "players",
             .kind = SHAPE_INT32,
             .write = write_room_players,
             .help = "those on their way counted"},
            ROW(INT32, "max_players", struct view_room, max_players, NULL),
            ROW(TEXT, "region", struct view_room, region_name, NULL),
            ROW(TEXT, "version", struct view_room, version, NULL),
            {.name = "location",
             .kind = SHAPE_OBJECT,
             .shape = &location_shape,
             .write = write_room_location},
            ROW(JSON, "settings", struct view_room, settings, NULL),
            {0},
        },
};

const struct shape open_rooms_shape = {
    .name = "OpenRooms",
    .help = "Rooms, the best for the asker first.",
    .rows =
        (const struct shape_row[]){
            {.name = "rooms", .kind = SHAPE_ITEMS, .shape = &open_room_shape},
            {0},
        },
};

/* ── regions and counts ────────────────────────────────────────────────────────────────────── */

const struct shape map_place_shape = {
    .name = "MapPlace",
    .help = "Degrees on the map.",
    .rows =
        (const struct shape_row[]){
            ROW(DOUBLE, "latitude", struct region_config, latitude, NULL),
            ROW(DOUBLE, "longitude", struct region_config, longitude, NULL),
            {0},
        },
};

static void write_map_place(struct json_writer *w, const void *object,
                            const struct core_config *config)
{
    const struct region_config *region = object;
    if (region->located)
        shape_write(w, &map_place_shape, region, config);
    else
        json_none(w);
}

const struct shape play_region_shape = {
    .name = "PlayRegion",
    .help = "A region as players see it.",
    .rows =
        (const struct shape_row[]){
            {.name = "location",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &map_place_shape,
             .write = write_map_place},
            {0},
        },
};

static void write_regions(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)object;
    json_open_object(w);
    for (int code = 0; code < REGION_CODES; code++) {
        const struct region_config *region = &config->regions[code];
        if (!region->name[0])
            continue;
        json_key_any(w, str_of(region->name));
        shape_write(w, &play_region_shape, region, config);
    }
    json_close_object(w);
}

const struct shape play_regions_shape = {
    .name = "PlayRegions",
    .help = "Where rooms can be.",
    .rows =
        (const struct shape_row[]){
            {.name = "regions",
             .kind = SHAPE_MAP,
             .shape = &play_region_shape,
             .write = write_regions,
             .help = "by name"},
            ROW_OR_NULL(TEXT, "my_region", struct play_regions, mine,
                        "where the asker would be placed"),
            {0},
        },
};

const struct shape counts_shape = {
    .name = "Counts",
    .help = "How much is going on.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "rooms", struct core_counts, rooms_open, "open"),
            ROW(INT32, "players", struct core_counts, room_seats,
                "with a seat, those on their way counted"),
            {0},
        },
};

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

static const char *const seat_words[] = {"reserved", "taken", NULL};

const struct shape player_seat_shape = {
    .name = "PlayerSeat",
    .help = "Where a player is.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "account", struct player_seat, seat.account, NULL),
            ROW(ID, "room", struct player_seat, seat.room, NULL),
            ROW(ID, "slot", struct player_seat, seat.id, NULL),
            ROW_WORD("state", seat_words, struct player_seat, seat.state,
                     "reserved until he has come with his key"),
            ROW(TEXT, "game", struct player_seat, room.game, NULL),
            ROW(TEXT, "server", struct player_seat, room.kind, NULL),
            ROW(TEXT, "version", struct player_seat, room.version, NULL),
            ROW(TEXT, "region", struct player_seat, room.region_name, NULL),
            {.name = "location",
             .kind = SHAPE_OBJECT,
             .shape = &location_shape,
             .write = write_seat_location},
            ROW(JSON, "settings", struct player_seat, room.settings, NULL),
            {0},
        },
};

static void write_seats(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct player_answer *p = object;
    struct player_seat v;
    int64_t id = 0;
    json_open_array(w);
    while ((id = view_next_seat_of(p->core, str_of(p->account), id))) {
        if (view_room_seat(p->core, id, &v.seat) && view_room(p->core, v.seat.room, &v.room))
            shape_write(w, &player_seat_shape, &v, config);
    }
    json_close_array(w);
}

const struct shape player_shape = {
    .name = "Player",
    .help = "One player's seats, one for each game server he plays on.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "account", struct player_answer, account, NULL),
            {.name = "seats",
             .kind = SHAPE_ITEMS,
             .shape = &player_seat_shape,
             .write = write_seats},
            {0},
        },
};

/* ── bans ──────────────────────────────────────────────────────────────────────────────────── */

static void write_expires(struct json_writer *w, const void *object,
                          const struct core_config *config)
{
    (void)config;
    char text[PLAY_DATE_MAX];
    const struct view_ban *v = object;
    json_text(w, str_of(play_date_print(v->expires_wall_ms, text)));
}

const struct shape issued_ban_shape = {
    .name = "IssuedBan",
    .help = "A ban that was made.",
    .rows =
        (const struct shape_row[]){
            ROW(INT64, "id", struct view_ban, id, "a number, and not text as elsewhere"),
            {0},
        },
};

const struct shape played_ban_shape = {
    .name = "PlayerBan",
    .help = "Why somebody may not play.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct view_ban, id, NULL),
            ROW(TEXT, "account", struct view_ban, account, NULL),
            ROW_OR_NULL(TEXT, "ip", struct view_ban, address,
                        "from where he tried to join first; nobody joins from there"),
            ROW(TEXT, "reason", struct view_ban, reason, NULL),
            {.name = "expires",
             .kind = SHAPE_TEXT,
             .write = write_expires,
             .help = "YYYY-MM-DD HH:MM:SS in UTC"},
            {0},
        },
};

/* ── the rest ──────────────────────────────────────────────────────────────────────────────── */

const struct shape nothing_shape = {
    .name = "Nothing",
    .help = "It is done.",
    .rows = (const struct shape_row[]){{0}},
};

const struct shape refused_shape = {
    .name = "RefusedPlayer",
    .help = "One of several players because of whom none was placed.",
    .rows =
        (const struct shape_row[]){
            ROW(INT32, "index", struct play_refused, index, "in `accounts`, from 0"),
            ROW_OR_NULL(TEXT, "account", struct play_refused, account,
                        "null when his token does not say"),
            ROW(TEXT, "why", struct play_refused, why, NULL),
            {0},
        },
};

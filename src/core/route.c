#include "core/route.h"

#include "core/state.h"

#include <sodium.h>
#include <string.h>

static void derive(const struct core *core, int64_t seat, uint8_t ret[TOKEN_RAW])
{
    uint8_t input[16] = "route";
    for (size_t i = 0; i < 8; i++)
        input[8 + i] = (uint8_t)((uint64_t)seat >> (8 * i));
    (void)crypto_generichash(ret, TOKEN_RAW, input, sizeof(input), core->secret,
                             sizeof(core->secret));
}

static void raw_token(const struct core *core, const struct fleet *fleet, int64_t seat,
                      struct str account, uint8_t ret[TOKEN_RAW])
{
    if (token_mode_of(fleet, seat) == TOKEN_PLAYER_ID)
        envelope_player_token(account, ret);
    else
        derive(core, seat, ret);
}

void route_token(const struct core *core, const struct fleet *fleet, int64_t seat,
                 struct str account, char dst[ROUTE_TOKEN_SIZE])
{
    uint8_t raw[TOKEN_RAW];
    raw_token(core, fleet, seat, account, raw);
    envelope_token(raw, dst);
}

static void raw_of_seat(const struct core *core, const struct room_seat *seat,
                        uint8_t ret[TOKEN_RAW])
{
    raw_token(core, seat->room->fleet, seat->row.id, str_of(seat->row.account), ret);
}

static void token_of_seat(const struct core *core, const struct room_seat *seat,
                          char dst[ROUTE_TOKEN_SIZE])
{
    route_token(core, seat->room->fleet, seat->row.id, str_of(seat->row.account), dst);
}

/* ── tokens that two could have ────────────────────────────────────────────────────────────── */

static uint64_t key_of(const uint8_t raw[TOKEN_RAW])
{
    return str_hash(1, (struct str){(const char *)raw, TOKEN_RAW});
}

static void index_seat(struct core *core, struct room_seat *seat)
{
    uint8_t raw[TOKEN_RAW];
    raw_of_seat(core, seat, raw);
    seat->token_key = key_of(raw);
    chain_add(&core->seats_by_token, seat->token_key, &seat->by_token);
}

/* Tokens that are derived never meet, so nothing is indexed until the first that is not: then all
 * are, because one who is called like another's token must be found as well. */
static void index_all(struct core *core)
{
    size_t at = 0;
    if (core->tokens_indexed)
        return;
    core->tokens_indexed = true;
    for (struct room_seat *seat = NULL; (seat = object_next(core, ROW_room_seat, &at));)
        index_seat(core, seat);
}

/* A seat of somebody else, or of himself in another fleet, with that token: one proxy may stand
 * before both fleets. Seats of both kinds are looked at: the fleet may have been configured
 * otherwise when they were given. */
static struct room_seat *seat_with(const struct core *core, const struct fleet *fleet,
                                   const uint8_t raw[TOKEN_RAW], struct str account)
{
    struct chain_link *n = chain_first(&core->seats_by_token, key_of(raw));
    for (; n; n = n->next) {
        struct room_seat *seat = container_of(n, struct room_seat, by_token);
        uint8_t other[TOKEN_RAW];
        raw_of_seat(core, seat, other);
        bool his = seat->room->fleet == fleet && str_eq(str_of(seat->row.account), account);
        if (!his && memcmp(other, raw, TOKEN_RAW) == 0)
            return seat;
    }
    return NULL;
}

struct room_seat *route_taken(struct core *core, const struct fleet *fleet, struct str account)
{
    uint8_t raw[TOKEN_RAW];
    if (token_mode_now(fleet) != TOKEN_PLAYER_ID)
        return NULL; /* nobody else can have one that is derived */
    index_all(core);
    envelope_player_token(account, raw);
    return seat_with(core, fleet, raw, account);
}

struct room_seat *route_shared(struct core *core, const struct room_seat *seat)
{
    uint8_t raw[TOKEN_RAW];
    index_all(core);
    raw_of_seat(core, seat, raw);
    return seat_with(core, seat->room->fleet, raw, str_of(seat->row.account));
}

bool route_is_same(const struct fleet *fleet, struct str a, struct str b)
{
    uint8_t x[TOKEN_RAW];
    uint8_t y[TOKEN_RAW];
    envelope_player_token(a, x);
    envelope_player_token(b, y);
    return token_mode_now(fleet) == TOKEN_PLAYER_ID && memcmp(x, y, TOKEN_RAW) == 0;
}

void route_added(struct core *core, struct room_seat *seat)
{
    if (core->tokens_indexed)
        index_seat(core, seat);
    core->routes++;
}

void route_removed(struct core *core, struct room_seat *seat)
{
    if (core->tokens_indexed)
        chain_remove(&core->seats_by_token, seat->token_key, &seat->by_token);
    core->routes++;
}

/* ── clusters ──────────────────────────────────────────────────────────────────────────────── */

void route_tell(struct core *core, const struct room_seat *seat, bool on)
{
    char token[ROUTE_TOKEN_SIZE];
    token_of_seat(core, seat, token);
    struct str text = text_keep(core, str_of(token));
    struct effect *e = effect_add(core, EFFECT_ROUTE, 0);
    e->host = seat->room->row.host;
    e->object = seat->room->row.server;
    e->session = seat->room->row.id;
    e->ticket = seat->row.id;
    e->token = text;
    e->on = on;
}

void route_spawn(struct core *core, const struct room *room, struct spawn *s)
{
    struct buf tokens = {0};
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        char token[ROUTE_TOKEN_SIZE];
        token_of_seat(core, seat, token);
        if (tokens.len > 0)
            buf_append(&tokens, ",", 1);
        buf_append(&tokens, token, strlen(token));
    }
    s->tokens = text_keep(core, (struct str){(const char *)tokens.data, tokens.len});
    buf_done(&tokens);
    const struct allocation *a = allocation_of_ticket(core, room->row.ticket);
    s->ticket = text_keep(core, a ? str_of(a->row.name) : (struct str){0});
}

bool view_route(const struct core *core, int64_t id, struct view_route *ret)
{
    const struct room_seat *seat = room_seat_find(core, id);
    const struct room *room = seat ? seat->room : NULL;
    if (!seat || !room_seat_is_his(seat) || room_is_over(room) || room->row.ports_len < 2)
        return false;
    *ret = (struct view_route){
        .seat = id,
        .room = room->row.id,
        .fleet_id = seat->row.fleet,
        .fleet = view_fleet_name(core, seat->row.fleet),
        .player = seat->row.account,
        .address = room_address(room),
        .port = (uint16_t)(room->row.ports[0] | room->row.ports[1] << 8),
    };
    token_of_seat(core, seat, ret->token);
    return true;
}

uint64_t view_routes_generation(const struct core *core)
{
    return core->routes;
}

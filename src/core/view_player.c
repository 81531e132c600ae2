/* What core shows of players: where each is, whatever kind of place that is. */
#include "core/state.h"
#include "wire/names.h"

#include <inttypes.h>
#include <stdio.h>

struct showing {
    const struct core *core;
    struct str only; /* this player; empty = everybody */
    view_place_each *each;
    void *user;
};

static bool is_meant(const struct showing *s, struct str account)
{
    return s->only.len == 0 || str_eq(s->only, account);
}

static void show(const struct showing *s, struct view_place *place, struct str account)
{
    (void)str_copy(place->account, sizeof(place->account), account);
    if (!place->address)
        place->address = "";
    place->fleet = view_fleet_name(s->core, place->fleet_id);
    s->each(s->user, place);
}

/* ── rooms and lines ───────────────────────────────────────────────────────────────────────── */

static const char *seat_word(const struct room_seat *seat)
{
    if (seat->room->row.state == ROOM_STARTING)
        return "starting";
    if (seat->row.state == ROOM_SEAT_ROUTING)
        return "routing";
    return seat->row.state == ROOM_SEAT_TAKEN ? "taken" : "reserved";
}

static void show_seat(const struct showing *s, const struct room_seat *seat)
{
    struct view_room_seat v;
    if (!view_room_seat(s->core, seat->row.id, &v))
        return;
    struct view_place place = {
        .state = seat_word(seat),
        .fleet_id = seat->row.fleet,
        .room = seat->row.room,
        .server = seat->room->row.server,
        .seat = seat->row.id,
        .ticket = seat->row.ticket,
        .party = seat->row.multi,
        .address = seat->row.address,
        .since_wall_ms = v.joined_wall_ms ? v.joined_wall_ms : v.reserved_wall_ms,
        .deadline_wall_ms = v.deadline_wall_ms,
    };
    show(s, &place, str_of(seat->row.account));
}

/* He and those who came with him wait together. */
static void show_waiting(const struct showing *s, const struct allocation *a)
{
    struct view_allocation v;
    if (a->row.state != ALLOCATION_QUEUED || !view_allocation(s->core, a->row.id, &v))
        return;
    struct str party = a->row.party;
    for (struct str name; names_next(&party, &name);) {
        struct view_place place = {
            .state = "waiting",
            .fleet_id = a->row.fleet,
            .room = a->row.room,
            .ticket = a->row.id,
            .position = v.position,
            .since_wall_ms = v.queued_wall_ms,
            .deadline_wall_ms = v.deadline_wall_ms,
        };
        if (is_meant(s, name))
            show(s, &place, name);
    }
}

/* ── matches and lobbies ───────────────────────────────────────────────────────────────────── */

static void show_player(const struct showing *s, const struct seat *seat)
{
    char text[16];
    struct view_place place = {
        .state = "playing",
        .fleet_id = seat->row.fleet,
        .match = seat->session->row.id,
        .server = seat->session->row.server,
        .seat = seat->row.id,
        .ticket = seat->session->row.ticket,
        .lobby = seat->session->row.lobby,
    };
    (void)snprintf(text, sizeof(text), "%" PRId32, seat->row.account);
    show(s, &place, str_of(text));
}

static void show_match(const struct showing *s, const struct session *session)
{
    LIST_EACH(&session->seats, seat, struct seat, in_session)
    {
        if (seat->row.state == SEAT_TAKEN)
            show_player(s, seat);
    }
}

static void show_lobby_player(const struct showing *s, const struct lobby *lobby, int32_t account)
{
    char text[16];
    bool loading = lobby->row.state == LOBBY_LOADING;
    struct view_place place = {
        .state = loading ? "loading" : "started",
        .fleet_id = lobby->row.fleet,
        .match = lobby->row.session,
        .server = lobby->row.server,
        .ticket = lobby->row.ticket,
        .lobby = lobby_number(lobby->row.id),
        .since_wall_ms = wall_at(s->core->now, lobby->row.opened_core_ms),
        .deadline_wall_ms = loading ? wall_at(s->core->now, lobby->row.deadline_core_ms) : 0,
    };
    (void)snprintf(text, sizeof(text), "%" PRId32, account);
    show(s, &place, str_of(text));
}

static void show_lobby(const struct showing *s, const struct lobby *lobby)
{
    for (int i = 0; lobby->row.state == LOBBY_LOADING && i < lobby->n_players; i++)
        show_lobby_player(s, lobby, lobby->players[i].account);
}

/* ── everybody, or one ─────────────────────────────────────────────────────────────────────── */

void view_places_at(const struct core *core, enum row_kind kind, int64_t id, view_place_each *each,
                    void *user)
{
    const struct showing s = {.core = core, .each = each, .user = user};
    const void *object = object_find(core, kind, id);
    if (!object)
        return;
    if (kind == ROW_room_seat)
        show_seat(&s, object);
    else if (kind == ROW_allocation)
        show_waiting(&s, object);
    else if (kind == ROW_session)
        show_match(&s, object);
    else if (kind == ROW_lobby)
        show_lobby(&s, object);
}

static void show_matches_of(const struct showing *s, int32_t account)
{
    size_t at = 0;
    for (const struct fleet *fleet = NULL; (fleet = object_next(s->core, ROW_fleet, &at));) {
        const struct seat *seat =
            map_get(&s->core->seats_by_player, map_pair((int32_t)fleet->row.id, account));
        if (seat)
            show_player(s, seat);
    }
    struct chain_link *n = chain_first(&s->core->lobby_players, (uint32_t)account);
    for (; n; n = n->next) {
        const struct lobby_player *player = container_of(n, struct lobby_player, by_account);
        if (player->account == account && lobby_is_live(player->lobby))
            show_lobby_player(s, player->lobby, account);
    }
}

void view_places_of(const struct core *core, struct str account, view_place_each *each, void *user)
{
    const struct showing s = {.core = core, .only = account, .each = each, .user = user};
    struct chain_link *n = chain_first(&core->room_seats_by_player, str_hash(0, account));
    for (; n; n = n->next) {
        const struct room_seat *seat = container_of(n, struct room_seat, by_player);
        if (str_eq(str_of(seat->row.account), account))
            show_seat(&s, seat);
    }
    size_t at = 0;
    for (const struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        const struct allocation *a = allocation_of_player(core, (int32_t)fleet->row.id, account);
        if (a)
            show_waiting(&s, a);
    }
    char text[65];
    int32_t number = 0;
    if (str_copy(text, sizeof(text), account) && ban_chat_account(text, &number))
        show_matches_of(&s, number);
}

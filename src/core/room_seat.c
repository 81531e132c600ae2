/* Seats in rooms, and the keys that open them. */
#include "core/room_seat.h"

#include "base/plant.h"
#include "core/state.h"

#include <sodium.h>
#include <string.h>

/* A reservation whose time is over, on a host that is late, is looked at again after this. */
enum { LOOK_AGAIN_MS = 1000 };

struct room_seat *room_seat_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_room_seat, id);
}

static uint64_t player_key(struct str account)
{
    return str_hash(0, account);
}

bool room_seat_is_his(const struct room_seat *seat)
{
    return seat->room->row.state != ROOM_STARTING && seat->row.state != ROOM_SEAT_ROUTING;
}

struct room_seat *room_seat_of(const struct core *core, int32_t fleet, struct str account)
{
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    for (; n; n = n->next) {
        struct room_seat *seat = container_of(n, struct room_seat, by_player);
        if (seat->row.fleet == fleet && room_seat_is_his(seat) &&
            str_eq(str_of(seat->row.account), account))
            return seat;
    }
    return NULL;
}

bool room_seat_is_coming(const struct core *core, int32_t fleet, struct str account)
{
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    for (; n; n = n->next) {
        const struct room_seat *seat = container_of(n, struct room_seat, by_player);
        if (seat->row.fleet == fleet && str_eq(str_of(seat->row.account), account))
            return !room_seat_of(core, fleet, account);
    }
    return false;
}

int64_t view_next_seat_of(const struct core *core, struct str account, int64_t after)
{
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    int64_t next = 0;
    for (; n; n = n->next) {
        const struct room_seat *seat = container_of(n, struct room_seat, by_player);
        bool meant = room_seat_is_his(seat) && str_eq(str_of(seat->row.account), account) &&
                     seat->row.id > after;
        if (meant && (next == 0 || seat->row.id < next))
            next = seat->row.id;
    }
    return next;
}

/* ── keys ──────────────────────────────────────────────────────────────────────────────────── */

/* Its secret part as text, with a NUL. */
enum {
    SEAT_KEY_TEXT =
        sodium_base64_ENCODED_LEN(SEAT_KEY_RAW, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
};

struct str seat_key(const struct core *core, int64_t seat, char dst[SEAT_KEY_SIZE])
{
    uint8_t input[16] = "seat";
    uint8_t raw[SEAT_KEY_RAW];
    char number[24];
    for (size_t i = 0; i < 8; i++)
        input[8 + i] = (uint8_t)((uint64_t)seat >> (8 * i));
    (void)crypto_generichash(raw, sizeof(raw), input, sizeof(input), core->secret,
                             sizeof(core->secret));
    /* By hand: each join makes one, and snprintf would cost a fifth of it. */
    size_t at = sizeof(number);
    number[--at] = '.';
    for (int64_t rest = seat; rest > 0 || number[at] == '.'; rest /= 10)
        number[--at] = (char)('0' + rest % 10);
    size_t n = sizeof(number) - at;
    assert(seat >= 0 && n + SEAT_KEY_TEXT <= SEAT_KEY_SIZE);
    memcpy(dst, number + at, n);
    sodium_bin2base64(dst + n, SEAT_KEY_SIZE - n, raw, sizeof(raw),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return (struct str){dst, n + SEAT_KEY_TEXT - 1};
}

/* The number before the dot; 0 when there is none. */
static int64_t id_in_key(struct str key)
{
    int64_t id = 0;
    size_t i = 0;
    for (; i < key.len && i < 18 && key.at[i] >= '0' && key.at[i] <= '9'; i++)
        id = id * 10 + (key.at[i] - '0');
    return i < key.len && key.at[i] == '.' ? id : 0;
}

/* Ids are no secret: which seat is meant may show in the time, how close the rest came must not. */
struct room_seat *seat_of_key(const struct core *core, int64_t server, struct str key)
{
    char expected[SEAT_KEY_SIZE] = {0};
    char given[SEAT_KEY_SIZE] = {0};
    int64_t id = id_in_key(key);
    (void)seat_key(core, id, expected);
    bool fits = str_copy(given, sizeof(given), key);
    bool same = sodium_memcmp(expected, given, SEAT_KEY_SIZE) == 0;
    struct room_seat *seat = room_seat_find(core, id);
    return same && fits && seat && seat->room->row.server == server ? seat : NULL;
}

/* ── being and leaving ─────────────────────────────────────────────────────────────────────── */

static void count(struct room_seat *seat, int sign)
{
    if (seat->row.state == ROOM_SEAT_TAKEN)
        seat->room->taken += sign;
    else if (!PLANTED(seat_counted_late))
        seat->room->reserved += sign;
}

static struct room_seat *enter(struct core *core, const struct row_room_seat *row,
                               struct room *room)
{
    struct room_seat *seat = object_alloc(core, ROW_room_seat);
    seat->row = *row;
    row_own(ROW_room_seat, &seat->row);
    seat->room = room;
    seat->deadline.kind = DEADLINE_ROOM_SEAT;
    list_append(&room->seats, &seat->in_room);
    chain_add(&core->room_seats_by_player, player_key(str_of(row->account)), &seat->by_player);
    object_enter(core, &seat->object);
    count(seat, 1);
    return seat;
}

static struct effect *seat_note(struct core *core, const struct room_seat *seat, enum note kind)
{
    struct str account = text_keep(core, str_of(seat->row.account));
    struct effect *note = room_note(core, seat->room, kind);
    note->ticket = seat->row.ticket;
    note->object = seat->row.id;
    note->chat = account;
    note->asked_us = 0;
    return note;
}

/* Runs, or stands still when the room's host is away. */
static void set_deadline(struct core *core, struct room_seat *seat, int64_t left_ms)
{
    bool away = host_is_away(seat->room->host) && !PLANTED(reservation_hurried);
    seat->row.left_ms = away ? left_ms : 0;
    seat->row.deadline_core_ms = away ? 0 : core->now.core_ms + left_ms;
    if (away)
        deadline_clear(core, &seat->deadline);
    else
        deadline_set(core, &seat->deadline, DEADLINE_AWAKE,
                     deadline_now(core, DEADLINE_AWAKE) + left_ms);
    object_touch(core, &seat->object);
}

/* Whoever waits for a place elsewhere in the fleet has one now. */
static void settle(struct core *core, const struct room_seat *seat)
{
    allocations_of_placed_end(core, seat->row.fleet, str_of(seat->row.account));
}

static void reserve(struct core *core, struct room_seat *seat)
{
    seat->row.reserved_core_ms = core->now.core_ms;
    (void)seat_note(core, seat, NOTE_SEAT_RESERVED);
    if (room_config(seat->room)->taken_at_once)
        room_seat_take(core, seat, 0);
    else
        set_deadline(core, seat, room_config(seat->room)->reserve_ms);
    settle(core, seat);
}

/* In a cluster nobody is anywhere until a proxy lets him in. */
static bool needs_route(const struct room *room)
{
    return room->row.state == ROOM_OPEN && room->fleet->config &&
           room->fleet->config->provider == PROVIDER_AGONES;
}

void room_seat_routed(struct core *core, struct room_seat *seat)
{
    assert(seat->row.state == ROOM_SEAT_ROUTING);
    seat->row.state = ROOM_SEAT_RESERVED;
    object_touch(core, &seat->object);
    room_seat_move_here(core, seat);
    reserve(core, seat);
    core->routes++;
}

/* What the player brought; it is the door's business. */
static void take_player(struct room_seat *seat, const struct place_player *player)
{
    (void)str_copy(seat->row.address, sizeof(seat->row.address), player->address);
    long_set(&seat->row.info, player->info);
    long_set(&seat->row.sealed, player->sealed);
}

struct room_seat *room_seat_new(struct core *core, struct room *room, int64_t ticket,
                                const struct place_player *player, int64_t multi)
{
    struct row_room_seat row = {
        .id = object_new_id(core, ROW_seat),
        .room = room->row.id,
        .ticket = ticket,
        .fleet = room->row.fleet,
        .state = ROOM_SEAT_RESERVED,
        .multi = multi,
        .reserved_core_ms = core->now.core_ms,
    };
    (void)str_copy(row.account, sizeof(row.account), player->account);
    struct room_seat *seat = enter(core, &row, room);
    route_added(core, seat);
    take_player(seat, player);
    object_touch(core, &seat->object);
    if (needs_route(room)) {
        seat->row.state = ROOM_SEAT_ROUTING;
        route_tell(core, seat, true);
    } else if (room->row.state == ROOM_OPEN) {
        reserve(core, seat);
    }
    room_seats_changed(core, room);
    return seat;
}

void room_seat_again(struct core *core, struct room_seat *seat, int64_t ticket,
                     const struct place_player *player)
{
    seat->row.ticket = ticket;
    take_player(seat, player);
    object_touch(core, &seat->object);
    if (seat->room->row.state != ROOM_STARTING)
        reserve(core, seat);
}

void room_seat_unlink(struct core *core, struct room_seat *seat)
{
    if (!room_seat_is_his(seat))
        allocation_lost_seat(core, seat);
    deadline_clear(core, &seat->deadline);
    count(seat, -1);
    route_removed(core, seat);
    list_remove(&seat->in_room);
    chain_remove(&core->room_seats_by_player, player_key(str_of(seat->row.account)),
                 &seat->by_player);
    if (seat->row.multi)
        allocations_party_left(core, seat);
    object_delete(core, &seat->object);
}

static struct effect *left_note(struct core *core, const struct room_seat *seat, enum seat_end end,
                                struct str why)
{
    struct effect *note = seat_note(core, seat, NOTE_SEAT_LEFT);
    note->reason = (int8_t)end;
    note->text = why;
    return note;
}

void room_seat_leave(struct core *core, struct room_seat *seat, enum seat_end end, struct str why)
{
    struct room *room = seat->room;
    (void)left_note(core, seat, end, why);
    if (needs_route(room))
        route_tell(core, seat, false);
    room_seat_unlink(core, seat);
    room_seats_changed(core, room);
}

void room_seat_kick(struct core *core, struct room_seat *seat, enum seat_end end, struct str why)
{
    char key[SEAT_KEY_SIZE];
    if (seat->row.state == ROOM_SEAT_TAKEN && seat->room->host && !needs_route(seat->room)) {
        struct str text = text_keep(core, seat_key(core, seat->row.id, key));
        struct str url = text_keep(core, str_of(seat->room->host->row.url));
        struct effect *e = effect_add(core, EFFECT_KICK_SEAT, 0);
        e->host = seat->room->host->row.id;
        e->ip = url;
        e->object = seat->room->row.server;
        e->token = text;
        e->text = why;
    }
    room_seat_leave(core, seat, end, why);
}

void room_seats_kick(struct core *core, struct str account, struct str why)
{
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    for (struct chain_link *next = NULL; n; n = next) {
        struct room_seat *seat = container_of(n, struct room_seat, by_player);
        next = n->next;
        if (str_eq(str_of(seat->row.account), account))
            room_seat_kick(core, seat, SEAT_END_BANNED, why);
    }
}

void room_seat_take(struct core *core, struct room_seat *seat, int64_t seq)
{
    count(seat, -1);
    seat->row.state = ROOM_SEAT_TAKEN;
    count(seat, 1);
    seat->row.joined_seq = seq;
    seat->row.joined_core_ms = core->now.core_ms;
    seat->row.deadline_core_ms = seat->row.left_ms = 0;
    deadline_clear(core, &seat->deadline);
    object_touch(core, &seat->object);
    (void)seat_note(core, seat, NOTE_SEAT_TAKEN);
}

struct effect *room_seat_refused(struct core *core, const struct room_seat *seat, conn_id conn,
                                 int err)
{
    struct str account = text_keep(core, str_of(seat->row.account));
    struct effect *note = note_refused(core, conn, err);
    note->player = account;
    note->object = seat->row.id;
    note->session = seat->room->row.id;
    note->server_id = (int32_t)seat->room->row.server;
    note->fleet_id = seat->row.fleet;
    note->region_code = seat->room->row.region;
    return note;
}

void room_seat_shown(struct core *core, struct room_seat *seat, int64_t seq)
{
    assert(seat->row.state == ROOM_SEAT_TAKEN);
    seat->row.joined_seq = seq;
    object_touch(core, &seat->object);
}

/* That the player has joined may wait in the queue of an agent that is dead. The row keeps its
 * time: it is over, and when the host is heard or silent it gets another. */
void room_seat_deadline(struct core *core, struct room_seat *seat)
{
    if (host_is_late(core, seat->room->host) && !PLANTED(reservation_hurried)) {
        deadline_set(core, &seat->deadline, DEADLINE_AWAKE,
                     deadline_now(core, DEADLINE_AWAKE) + LOOK_AGAIN_MS);
        return;
    }
    room_seat_leave(core, seat, SEAT_END_EXPIRED, STR("the reservation ran out"));
}

/* ── all seats of a room ───────────────────────────────────────────────────────────────────── */

void room_seats_release(struct core *core, struct room *room, enum end_reason reason,
                        struct str why)
{
    enum seat_end end = room->row.state == ROOM_STARTING ? SEAT_END_FAILED : SEAT_END_ROOM;
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        left_note(core, seat, end, why)->load = (int32_t)reason;
        room_seat_unlink(core, seat);
    }
}

/* Each player comes along from where he was. */
void room_seats_open(struct core *core, struct room *room)
{
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        room_seat_move_here(core, seat);
        reserve(core, seat);
    }
}

void room_seat_move_here(struct core *core, struct room_seat *seat)
{
    struct str account = str_of(seat->row.account);
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    for (struct chain_link *next = NULL; n; n = next) {
        struct room_seat *other = container_of(n, struct room_seat, by_player);
        next = n->next;
        if (other != seat && other->row.fleet == seat->row.fleet && room_seat_is_his(other) &&
            str_eq(str_of(other->row.account), account))
            room_seat_kick(core, other, SEAT_END_MOVED, STR("moved to another room"));
    }
}

void room_seats_hand_on(struct core *core, struct room *from, struct room *to)
{
    LIST_EACH(&from->seats, seat, struct room_seat, in_room)
    {
        count(seat, -1);
        list_remove(&seat->in_room);
        seat->room = to;
        seat->row.room = to->row.id;
        list_append(&to->seats, &seat->in_room);
        count(seat, 1);
        object_touch(core, &seat->object);
    }
}

void room_seats_stand(struct core *core, struct room *room)
{
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        if (!deadline_is_set(&seat->deadline))
            continue;
        int64_t left_ms = deadline_at_ms(&seat->deadline) - deadline_now(core, DEADLINE_AWAKE);
        set_deadline(core, seat, left_ms > 1 ? left_ms : 1);
    }
}

/* All reservations that may run out have at least that much time. */
static void give_time(struct core *core, struct room *room, int64_t least_ms)
{
    LIST_EACH(&room->seats, seat, struct room_seat, in_room)
    {
        int64_t left_ms = seat->row.left_ms;
        if (seat->row.state != ROOM_SEAT_RESERVED || room->row.state != ROOM_OPEN)
            continue;
        if (seat->row.deadline_core_ms)
            left_ms = seat->row.deadline_core_ms - core->now.core_ms;
        set_deadline(core, seat, left_ms > least_ms ? left_ms : least_ms);
    }
}

/* A player may have joined while nobody could tell us: what waits to be said comes first. */
void room_seats_run(struct core *core, struct room *room)
{
    give_time(core, room, HOST_QUEUED_MS);
    queue_room_changed(core, room); /* those in line may enter again */
}

/* Until its host has been heard, or is silent, nobody knows. */
void room_seats_give_time(struct core *core, struct room *room)
{
    give_time(core, room, core->config.timeouts.host_ms + HOST_QUEUED_MS);
}

/* ── loading ───────────────────────────────────────────────────────────────────────────────── */

int room_seat_load_row(struct core *core, const struct row_room_seat *row)
{
    struct room *room = room_find(core, row->room);
    if (!room || room_is_over(room) || row->state <= 0 || row->state >= ROOM_SEAT_STATES ||
        row->fleet != room->row.fleet || room_free_seats(room) <= 0)
        return ERR_FORMAT;
    if (room->row.state != ROOM_STARTING && row->state != ROOM_SEAT_ROUTING &&
        room_seat_of(core, row->fleet, str_of(row->account)))
        return ERR_FORMAT; /* I3 */
    if (PLANTED(reservation_lost) && row->state == ROOM_SEAT_RESERVED)
        return 0;
    enter(core, row, room)->object.stored = true;
    return 0;
}

/* Until its host has been heard, or is silent, nobody knows whether the player has joined. */
void room_seat_loaded(struct core *core, struct room_seat *seat)
{
    int64_t heard_ms = core->now.core_ms + core->config.timeouts.host_ms + HOST_QUEUED_MS;
    int64_t at_ms = seat->row.deadline_core_ms;
    if (at_ms && seat->row.state == ROOM_SEAT_RESERVED)
        deadline_set(core, &seat->deadline, DEADLINE_AWAKE, at_ms > heard_ms ? at_ms : heard_ms);
}

/* Seats in rooms, and the keys that open them. */
#include "core/room_seat.h"

#include "core/state.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

struct room_seat *room_seat_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_room_seat, id);
}

static uint64_t player_key(struct str account)
{
    return str_hash(0, account);
}

struct room_seat *room_seat_of(const struct core *core, int32_t fleet, struct str account)
{
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    for (; n; n = n->next) {
        struct room_seat *seat = container_of(n, struct room_seat, by_player);
        if (seat->row.fleet == fleet && seat->room->row.state != ROOM_STARTING &&
            str_eq(str_of(seat->row.account), account))
            return seat;
    }
    return NULL;
}

int64_t view_next_seat_of(const struct core *core, struct str account, int64_t after)
{
    struct chain_link *n = chain_first(&core->room_seats_by_player, player_key(account));
    int64_t next = 0;
    for (; n; n = n->next) {
        const struct room_seat *seat = container_of(n, struct room_seat, by_player);
        bool meant = seat->room->row.state != ROOM_STARTING &&
                     str_eq(str_of(seat->row.account), account) && seat->row.id > after;
        if (meant && (next == 0 || seat->row.id < next))
            next = seat->row.id;
    }
    return next;
}

/* ── keys ──────────────────────────────────────────────────────────────────────────────────── */

struct str seat_key(const struct core *core, int64_t seat, char dst[SEAT_KEY_SIZE])
{
    uint8_t input[16] = "seat";
    uint8_t raw[SEAT_KEY_RAW];
    char text[sodium_base64_ENCODED_LEN(SEAT_KEY_RAW, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];
    for (size_t i = 0; i < 8; i++)
        input[8 + i] = (uint8_t)((uint64_t)seat >> (8 * i));
    (void)crypto_generichash(raw, sizeof(raw), input, sizeof(input), core->secret,
                             sizeof(core->secret));
    sodium_bin2base64(text, sizeof(text), raw, sizeof(raw),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    int n = snprintf(dst, SEAT_KEY_SIZE, "%" PRId64 ".%s", seat, text);
    assert(n > 0 && n < SEAT_KEY_SIZE);
    return (struct str){dst, (size_t)n};
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

/* ── loading and leaving ───────────────────────────────────────────────────────────────────── */

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
    if (row->state == ROOM_SEAT_TAKEN)
        room->taken++;
    else
        room->reserved++;
    return seat;
}

int room_seat_load_row(struct core *core, const struct row_room_seat *row)
{
    struct room *room = room_find(core, row->room);
    if (!room || room_is_over(room) || row->state <= 0 || row->state >= ROOM_SEAT_STATES ||
        row->fleet != room->row.fleet || room_free_seats(room) <= 0)
        return ERR_FORMAT;
    if (room->row.state != ROOM_STARTING && room_seat_of(core, row->fleet, str_of(row->account)))
        return ERR_FORMAT; /* I3 */
    enter(core, row, room)->object.stored = true;
    return 0;
}

/* What the disk holds of rooms, seats and bans, decoded from the bytes that were committed. Held
 * against it: no room has more seats than places (I1), no player two seats in the fleet (I3), no
 * banned account a seat (I10), no seat is promised before it is stored (I7), none is gone after a
 * restart (I5), no reservation is given back before its time, and nobody gives up a seat to move
 * unless he gets another. */
#include "sim/world.h"

#include "base/buf.h"
#include "core/row.h"
#include "core/view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STARTING = 1, OPEN = 2, RESERVED = 1, ROUTING = 3, TICKET_DONE = 2 };

/* Its copy of a row, made when absent. */
static void *keep(struct map *map, int64_t id, size_t size)
{
    void *kept = map_get(map, (uint64_t)id);
    if (!kept) {
        kept = xcalloc(1, size);
        map_put(map, (uint64_t)id, kept);
    }
    return kept;
}

static void drop_gone(struct world *w)
{
    size_t at = 0;
    struct shadow_seat *s = NULL;
    while ((s = map_next(&w->shadow_seats, &at))) {
        s->fresh = s->reopened = false;
        if (!s->gone)
            continue;
        if (s->early)
            world_broken(w,
                         "seat %" PRId64 " of %s was taken away before its time, nobody says why",
                         s->row.id, s->row.account);
        map_remove(&w->shadow_seats, (uint64_t)s->row.id);
        free(s);
        at = 0; /* the table has moved */
    }
}

static const struct row_room *room_of(const struct world *w, const struct shadow_seat *s)
{
    return map_get(&w->shadow_rooms, (uint64_t)s->row.room);
}

/* Seats in rooms that are starting are not where the player is yet, nor those of whom a proxy does
 * not know. */
bool shadow_sits(const struct world *w, const struct shadow_seat *s)
{
    const struct row_room *room = room_of(w, s);
    return !s->gone && room && room->state != STARTING && s->row.state != ROUTING;
}

static bool is_banned(const struct world *w, const char *account)
{
    size_t at = 0;
    for (const struct row_ban *ban = NULL; (ban = map_next(&w->shadow_bans, &at));) {
        if (strcmp(ban->account, account) == 0)
            return true;
    }
    return false;
}

static bool has_other(const struct world *w, const struct shadow_seat *s)
{
    size_t at = 0;
    for (const struct shadow_seat *o = NULL; (o = map_next(&w->shadow_seats, &at));) {
        if (o != s && shadow_sits(w, o) && o->row.fleet == s->row.fleet &&
            strcmp(o->row.account, s->row.account) == 0)
            return true;
    }
    return false;
}

int64_t shadow_seat_of(const struct world *w, int32_t fleet, const char *account)
{
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        if (shadow_sits(w, s) && s->row.fleet == fleet && strcmp(s->row.account, account) == 0)
            return s->row.id;
    }
    return 0;
}

/* The shortest time for which any fleet reserves. */
static int64_t least_reserve_ms(const struct world *w)
{
    int64_t least_ms = INT64_MAX;
    for (size_t i = 0; i < w->n_fleets; i++) {
        const struct fleet_config *f = &w->config.fleets[i];
        if (f->provider != PROVIDER_CHAT && f->reserve_ms < least_ms)
            least_ms = f->reserve_ms;
    }
    return least_ms;
}

/* While a commit hangs, a room may open and its reservations run out in one batch, and then no row
 * has their deadline. */
static bool may_have_run_out(const struct world *w, const struct shadow_seat *s,
                             const struct row_room *room, int64_t core_ms)
{
    if (s->row.deadline_core_ms || s->row.left_ms)
        return s->row.deadline_core_ms && s->row.deadline_core_ms <= core_ms;
    return room->opened_core_ms && core_ms - room->opened_core_ms >= least_reserve_ms(w);
}

/* A reservation ends when its time is over, or with its room, or because he moved or was banned. */
static void judge_gone(struct world *w, struct shadow_seat *s, int64_t core_ms)
{
    const struct row_room *room = room_of(w, s);
    bool over = !room || (room->state != STARTING && room->state != OPEN);
    s->early = s->row.state == RESERVED && !over && !may_have_run_out(w, s, room, core_ms) &&
               !has_other(w, s) && !is_banned(w, s->row.account);
}

static void judge_seat(struct world *w, const struct shadow_seat *s)
{
    if (!shadow_sits(w, s))
        return;
    if (has_other(w, s))
        world_wrong(w, "I3: %s has two seats in the fleet", s->row.account);
    if (is_banned(w, s->row.account))
        world_wrong(w, "I10: banned account %s has seat %" PRId64, s->row.account, s->row.id);
}

static void judge_room(struct world *w, const struct row_room *room)
{
    int32_t seats = 0;
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));)
        seats += !s->gone && s->row.room == room->id;
    if (seats > room->max_players)
        world_wrong(w, "I1: room %" PRId64 " has %d seats of %d", room->id, seats,
                    room->max_players);
}

static void take(struct map *map, const struct change *change, const void *row, size_t size)
{
    if (change->gone)
        free(map_remove(map, (uint64_t)change->id));
    else
        memcpy(keep(map, change->id, size), row, size);
}

static void take_seat(struct world *w, const struct change *change)
{
    struct shadow_seat *s = map_get(&w->shadow_seats, (uint64_t)change->id);
    if (change->gone) {
        if (s)
            s->gone = true;
        return;
    }
    bool fresh = !s;
    s = keep(&w->shadow_seats, change->id, sizeof(*s));
    s->reopened = s->row.joined_seq && change->room_seat.joined_seq != s->row.joined_seq;
    s->row = change->room_seat;
    s->fresh = fresh;
}

/* False when it says nothing about rooms. */
static bool take_row(struct world *w, const struct change *change)
{
    if (change->kind == ROW_room)
        take(&w->shadow_rooms, change, &change->room, sizeof(change->room));
    else if (change->kind == ROW_ban)
        take(&w->shadow_bans, change, &change->ban, sizeof(change->ban));
    else if (change->kind == ROW_room_ticket)
        take(&w->shadow_asked, change, &change->room_ticket, sizeof(change->room_ticket));
    else if (change->kind == ROW_room_seat)
        take_seat(w, change);
    else
        return false;
    return true;
}

static bool take_batch(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    bool any = false;
    while (change_decode(&c, &change))
        any |= take_row(w, &change);
    return any;
}

static int take_stored(void *user, const struct change *change)
{
    (void)take_row(user, change);
    return 0;
}

void shadow_rooms_set_back(struct world *w)
{
    struct store_tip tip;
    shadow_rooms_done(w);
    if (store_load(w->store, take_stored, w, &tip) != 0)
        world_wrong(w, "I5: a restored folder cannot be read");
    drop_gone(w);
}

void shadow_rooms_stored(struct world *w, const struct store_batch *batch)
{
    drop_gone(w);
    if (!take_batch(w, batch))
        return;
    size_t at = 0;
    for (struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        if (s->gone)
            judge_gone(w, s, batch->core_ms);
        else
            judge_seat(w, s);
    }
    at = 0;
    for (const struct row_room *room = NULL; (room = map_next(&w->shadow_rooms, &at));)
        judge_room(w, room);
}

static void judge_left(struct world *w, const struct effect *e)
{
    struct shadow_seat *s = map_get(&w->shadow_seats, (uint64_t)e->object);
    const struct row_room *room = s ? room_of(w, s) : NULL;
    bool ran_out = str_eq(e->text, STR("the reservation ran out"));
    if (s && s->early && ran_out)
        world_broken(w, "the reservation of %s ran out at %" PRId64 ", before its time",
                     s->row.account, s->row.deadline_core_ms);
    if (room && ran_out && machine_is_away(w, room->host))
        world_broken(w, "the reservation of %s ran out while its host was away", s->row.account);
    if (s)
        s->early = false;
}

/* A seat is given up in the step that gives another: either the disk has that one, or the next note
 * of a seat says that it came. */
static void judge_moved(struct world *w, const struct effect *e)
{
    bool moved = e->note == NOTE_SEAT_LEFT && (str_eq(e->text, STR("moved to another room")) ||
                                               str_eq(e->text, STR("moved to another seat")));
    bool came = e->note == NOTE_SEAT_RESERVED && e->fleet_id == w->moved_fleet &&
                str_eq(e->chat, str_of(w->moved));
    if (w->moved[0] && !came)
        shadow_rooms_released(w);
    w->moved[0] = '\0';
    if (!moved)
        return;
    (void)str_copy(w->moved, sizeof(w->moved), e->chat);
    w->moved_fleet = e->fleet_id;
    if (shadow_seat_of(w, w->moved_fleet, w->moved))
        w->moved[0] = '\0';
}

void shadow_rooms_released(struct world *w)
{
    if (w->moved[0])
        world_broken(w, "%s gave up his seat to move, and has no other", w->moved);
    w->moved[0] = '\0';
}

static void judge_placed(struct world *w, const struct effect *e)
{
    const struct row_room_ticket *ticket = map_get(&w->shadow_asked, (uint64_t)e->ticket);
    if (ticket && ticket->state == TICKET_DONE)
        return; /* the seat may be gone again with the batch that made it */
    for (size_t i = 0; i < e->placed->n_seats; i++) {
        if (!map_get(&w->shadow_seats, (uint64_t)e->placed->seats[i].seat))
            world_wrong(w, "I7: seat %" PRId64 " is promised before it is stored",
                        e->placed->seats[i].seat);
    }
}

void shadow_rooms_judge(struct world *w, const struct effect *e)
{
    if (e->kind == EFFECT_NOTE && e->note == NOTE_SEAT_LEFT)
        judge_left(w, e);
    if (e->kind == EFFECT_NOTE && (e->note == NOTE_SEAT_LEFT || e->note == NOTE_SEAT_RESERVED))
        judge_moved(w, e);
    if (e->kind == EFFECT_PLACED && !e->err)
        judge_placed(w, e);
}

/* Nobody will hear the notes of that batch any more. */
void shadow_rooms_crashed(struct world *w)
{
    size_t at = 0;
    for (struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));)
        s->early = false;
}

void shadow_rooms_restarted(struct world *w)
{
    size_t at = 0;
    struct view_room_seat seen;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        if (!s->gone && !view_room_seat(plane_core(w), s->row.id, &seen))
            world_wrong(w, "I5: seat %" PRId64 " of %s was lost in a restart", s->row.id,
                        s->row.account);
    }
}

static void free_all(struct map *map)
{
    size_t at = 0;
    for (void *kept = NULL; (kept = map_next(map, &at));)
        free(kept);
    map_done(map);
}

void shadow_rooms_done(struct world *w)
{
    free_all(&w->shadow_rooms);
    free_all(&w->shadow_seats);
    free_all(&w->shadow_bans);
    free_all(&w->shadow_asked);
}

/* What was being started when the backup was made: a match that its server had not acknowledged, a
 * room that had not initialised, a lobby whose players were loading, a seat whose player had not
 * come. Some time later each of them
 * runs with players in it, or came to nothing, and which of the two cannot be known. Asked for
 * again, it would go to a server or a host that has no room for it any more; given up, it would be
 * cancelled under its players. So neither: nothing is said of it to anybody, and its rows go. If it
 * runs it is like all that was started in the lost time: a match is a stranger that takes up its
 * slot, a server of a room belongs to no room and is left alone, and a seat is no place that could
 * be given again when its reservation runs out.
 *
 * Nobody waits for the answer: every connection of that time is gone. Who repeats his request has a
 * new one with new credentials. An allocation has a name that may be asked for, and perhaps a bus
 * that waits: it looks for another place (allocation_loaded); one in line that moves a party takes
 * nobody along whose seat went. Players of a lobby are told that it is over; its match goes even if
 * its server had it, for whether the lobby has started since is not known, and when its time to
 * load had passed it would be cancelled. */
#include "core/restore.h"

#include "core/lobby.h"
#include "core/state.h"
#include "wire/names.h"

#include <stdlib.h>
#include <string.h>

static struct change *staged(const struct setting_back *s, enum row_kind kind, int64_t id)
{
    return map_get(&s->core->staged, staged_key(kind, id));
}

static void drop(struct setting_back *s, struct change *c)
{
    if (!c || c->gone)
        return;
    c->gone = true;
    change_encode_gone(&s->out->changes, c->kind, c->id);
    s->out->n_changes++;
}

static void drop_ticket(struct setting_back *s, struct change *ticket)
{
    struct change *session = staged(s, ROW_session, ticket->ticket.session);
    if (session && session->session.state < SESSION_CANCELLING)
        drop(s, session);
    drop(s, ticket);
}

static void drop_room(struct setting_back *s, struct change *room)
{
    int64_t server = room->room.server;
    if (!s->begun_from || server < s->begun_from)
        s->begun_from = server;
    drop(s, room);
}

static void abort_lobby(struct setting_back *s, struct row_lobby *row)
{
    struct change *ticket = staged(s, ROW_ticket, row->ticket);
    if (ticket && (ticket->ticket.state == TICKET_OPEN || ticket->ticket.state == TICKET_DONE))
        drop_ticket(s, ticket);
    row->state = LOBBY_ABORTED;
    row->cause = LOBBY_CAUSE_OPERATOR;
    (void)str_copy(row->reason, sizeof(row->reason), STR("Muster was set back to a backup"));
    row->over_core_ms = s->how->then.core_ms;
    row->deadline_core_ms = row->over_core_ms + s->core->config.timeouts.keep_ms;
    for (int i = 0; i < row->flags_len; i++)
        row->flags[i] |= LOBBY_OWED;
    restore_put(s, ROW_lobby, row);
}

static bool is_gone(const struct change *c)
{
    return c && c->gone;
}

/* Whoever was to sit there, and what else is known of it. */
static void drop_belongings(struct setting_back *s, struct change *c)
{
    bool reserved = c->kind == ROW_room_seat && c->room_seat.state != ROOM_SEAT_TAKEN;
    bool of_gone =
        (c->kind == ROW_seat && is_gone(staged(s, ROW_session, c->seat.session))) ||
        (c->kind == ROW_room_seat && is_gone(staged(s, ROW_room, c->room_seat.room))) ||
        (c->kind == ROW_room_detail && is_gone(staged(s, ROW_room, c->room_detail.room))) ||
        (c->kind == ROW_ticket_regions && is_gone(staged(s, ROW_room_ticket, c->id)));
    if (of_gone || reserved)
        drop(s, c);
}

/* ── parties whose seats went ──────────────────────────────────────────────────────────────── */

/* Those that stay, by fleet and player: all of them are their players' own, for nobody sits in a
 * room that was being started. */
struct seats_left {
    const struct change **sorted;
    size_t n;
};

static int by_player(const void *a, const void *b)
{
    const struct row_room_seat *x = &(*(const struct change *const *)a)->room_seat;
    const struct row_room_seat *y = &(*(const struct change *const *)b)->room_seat;
    if (x->fleet != y->fleet)
        return x->fleet < y->fleet ? -1 : 1;
    return strcmp(x->account, y->account);
}

static void find_seats(const struct setting_back *s, struct seats_left *ret)
{
    size_t at = 0;
    ret->sorted = xcalloc(s->core->staged.len + 1, sizeof(*ret->sorted));
    for (const struct change *c = NULL; (c = map_next(&s->core->staged, &at));) {
        if (c->kind == ROW_room_seat && !c->gone)
            ret->sorted[ret->n++] = c;
    }
    qsort(ret->sorted, ret->n, sizeof(*ret->sorted), by_player);
}

/* 0 when he has no seat, or has one alone. */
static int64_t party_of(const struct seats_left *seats, int32_t fleet, struct str account)
{
    struct change wanted = {.kind = ROW_room_seat, .room_seat = {.fleet = fleet}};
    const struct change *key = &wanted;
    if (!str_copy(wanted.room_seat.account, sizeof(wanted.room_seat.account), account))
        return 0;
    const struct change **found =
        bsearch(&key, seats->sorted, seats->n, sizeof(*seats->sorted), by_player);
    return found ? (*found)->room_seat.multi : 0;
}

/* As allocation_drop_gone does it when a seat goes while we run. */
static void shrink(struct setting_back *s, const struct seats_left *seats,
                   const struct row_allocation *row)
{
    struct buf names = {0};
    struct row_allocation left = *row;
    int64_t party = party_of(seats, row->fleet, str_of(row->player));
    struct str rest = row->party;
    struct str name;
    for (int i = 0; names_next(&rest, &name); i++) {
        if (i < row->move_party || (party && party_of(seats, row->fleet, name) == party))
            names_add(&names, name);
    }
    left.party = (struct str){(const char *)names.data, names.len};
    if (left.party.len != row->party.len)
        restore_put(s, ROW_allocation, &left);
    buf_done(&names);
}

static void shrink_parties(struct setting_back *s)
{
    struct seats_left seats = {0};
    size_t at = 0;
    find_seats(s, &seats);
    for (const struct change *c = NULL; (c = map_next(&s->core->staged, &at));) {
        if (c->kind == ROW_allocation && c->allocation.state == ALLOCATION_QUEUED &&
            c->allocation.move_party > 0)
            shrink(s, &seats, &c->allocation);
    }
    free(seats.sorted);
}

void restore_end_begun(struct setting_back *s)
{
    const struct map *rows = &s->core->staged;
    size_t at = 0;
    for (struct change *c = NULL; (c = map_next(rows, &at));) {
        if (c->kind == ROW_ticket && c->ticket.state == TICKET_OPEN)
            drop_ticket(s, c);
        else if (c->kind == ROW_lobby && c->lobby.state == LOBBY_LOADING)
            abort_lobby(s, &c->lobby);
        else if (c->kind == ROW_room_ticket && c->room_ticket.state == ROOM_TICKET_OPEN)
            drop(s, c);
        else if (c->kind == ROW_room && c->room.state == ROOM_STARTING)
            drop_room(s, c);
    }
    at = 0;
    for (struct change *c = NULL; (c = map_next(rows, &at));)
        drop_belongings(s, c);
    shrink_parties(s);
}

#include "core/shelf.h"

#include "core/state.h"

#include <stdlib.h>
#include <string.h>

void shelf_done(struct shelf *s)
{
    free(s->rooms);
    *s = (struct shelf){0};
}

/* The first place whose room does not stand before (free, id). */
static size_t place_of(const struct shelf *s, int32_t free_seats, int64_t id)
{
    size_t low = 0;
    size_t high = s->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct room *r = s->rooms[middle];
        bool before = r->shelved_at < free_seats || (r->shelved_at == free_seats && r->row.id < id);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t shelf_first(const struct shelf *s, int32_t free_seats)
{
    return place_of(s, free_seats, 0);
}

static void take_away(struct shelf *s, struct room *room)
{
    size_t at = place_of(s, room->shelved_at, room->row.id);
    assert(at < s->n && s->rooms[at] == room);
    memmove(s->rooms + at, s->rooms + at + 1, (s->n - at - 1) * sizeof(struct room *));
    s->n--;
    room->shelved = false;
}

static void put_in(struct shelf *s, struct room *room)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        s->rooms = xrealloc(s->rooms, s->cap * sizeof(struct room *));
    }
    room->shelved_at = room_free_seats(room);
    room->shelved = true;
    size_t at = place_of(s, room->shelved_at, room->row.id);
    memmove(s->rooms + at + 1, s->rooms + at, (s->n - at) * sizeof(struct room *));
    s->rooms[at] = room;
    s->n++;
}

void shelf_update(struct room *room)
{
    struct shelf *s = &room->version->shelves[room->row.region];
    bool open = room->row.state == ROOM_OPEN;
    if (room->shelved && open && room->shelved_at == room_free_seats(room))
        return;
    if (room->shelved)
        take_away(s, room);
    if (open)
        put_in(s, room);
}

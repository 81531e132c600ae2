#include "core/queue.h"

#include "core/state.h"
#include "wire/names.h"

#include <stdlib.h>
#include <string.h>

enum { TRY_MS = 1000 };

static struct queue *queue_new(struct fleet *fleet, struct room *room)
{
    struct queue *q = xcalloc(1, sizeof(*q));
    q->fleet = fleet;
    q->room = room;
    q->tell.kind = DEADLINE_QUEUE_TELL;
    q->hold.kind = DEADLINE_QUEUE_HOLD;
    return q;
}

struct queue *queue_of(struct fleet *fleet, struct room *room)
{
    struct queue **q = room ? &room->queue : &fleet->queue;
    if (!*q)
        *q = queue_new(fleet, room);
    return *q;
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    free(q->line);
    free(q);
}

/* ── the line ──────────────────────────────────────────────────────────────────────────────── */

static int64_t key_of(const struct allocation *a)
{
    return a->row.queued_core_ms - (int64_t)a->row.priority * QUEUE_STEP_MS;
}

static bool is_before(const struct allocation *a, const struct allocation *b)
{
    int64_t x = key_of(a);
    int64_t y = key_of(b);
    return x != y ? x < y : a->row.id < b->row.id;
}

/* Where it stands, or would. */
static size_t place_of(const struct queue *q, const struct allocation *a)
{
    size_t low = 0;
    size_t high = q->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (is_before(q->line[middle], a))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void unhold(struct queue *q)
{
    if (!q->room || q->room->held == 0)
        return;
    q->room->held = 0;
    shelf_update(q->room);
}

/* Whoever is first now has been it from now on. */
static void first_changed(struct core *core, struct queue *q)
{
    unhold(q);
    q->first_since_core_ms = core->now.core_ms;
    if (q->n > 0)
        deadline_set(core, &q->hold, DEADLINE_CORE, core->now.core_ms + QUEUE_HOLD_MS);
    else
        deadline_clear(core, &q->hold);
}

static void positions_changed(struct core *core, struct queue *q)
{
    if (q->n > 0 && !deadline_is_set(&q->tell))
        deadline_set(core, &q->tell, DEADLINE_CORE, core->now.core_ms + QUEUE_TELL_MS);
    else if (q->n == 0)
        deadline_clear(core, &q->tell);
}

void queue_add(struct core *core, struct queue *q, struct allocation *a)
{
    if (q->n == q->cap) {
        q->cap = q->cap ? q->cap * 2 : 8;
        q->line = xrealloc(q->line, q->cap * sizeof(struct allocation *));
    }
    size_t i = place_of(q, a);
    memmove(&q->line[i + 1], &q->line[i], (q->n - i) * sizeof(struct allocation *));
    q->line[i] = a;
    q->n++;
    q->players += allocation_players(a);
    a->queue = q;
    if (i == 0)
        first_changed(core, q);
    if (q->room)
        queue_room_changed(core, q->room); /* after a start: whoever fits where none was held */
    positions_changed(core, q);
}

void queue_remove(struct core *core, struct allocation *a)
{
    struct queue *q = a->queue;
    size_t i = place_of(q, a);
    assert(i < q->n && q->line[i] == a);
    q->n--;
    memmove(&q->line[i], &q->line[i + 1], (q->n - i) * sizeof(struct allocation *));
    q->players -= allocation_players(a);
    a->queue = NULL;
    if (i == 0)
        first_changed(core, q);
    if (q->room)
        queue_room_changed(core, q->room); /* the next may fit where this one did not */
    positions_changed(core, q);
}

int32_t queue_position(const struct allocation *a, int32_t *ret_ahead)
{
    if (!a->queue)
        return 0;
    size_t i = place_of(a->queue, a);
    if (ret_ahead) {
        *ret_ahead = 0;
        for (size_t k = 0; k < i; k++)
            *ret_ahead += allocation_players(a->queue->line[k]);
    }
    return (int32_t)i + 1;
}

/* By how long the last seats that were given from a line were apart; 0 = nobody knows. */
static int64_t apart_ms(const struct queue *q)
{
    if (q->n_given < 2)
        return 0;
    int n = q->n_given < QUEUE_GIVEN ? q->n_given : QUEUE_GIVEN;
    int64_t last = q->given_core_ms[(q->n_given - 1) % QUEUE_GIVEN];
    int64_t first = q->given_core_ms[(q->n_given - n) % QUEUE_GIVEN];
    return (last - first) / (n - 1);
}

int64_t queue_eta_ms(const struct allocation *a)
{
    return a->queue ? apart_ms(a->queue) * queue_position(a, NULL) : 0;
}

double queue_rate_per_min(const struct queue *q)
{
    int64_t ms = apart_ms(q);
    return ms > 0 ? 60000.0 / (double)ms : 0;
}

static void given(struct core *core, struct queue *q)
{
    q->given_core_ms[q->n_given % QUEUE_GIVEN] = core->now.core_ms;
    q->n_given++;
    if (q->n_given == 2 * QUEUE_GIVEN)
        q->n_given = QUEUE_GIVEN; /* the ring's places stay the same */
}

/* ── serving ───────────────────────────────────────────────────────────────────────────────── */

void queue_room_changed(struct core *core, struct room *room)
{
    bool wanted = queue_waits(room->queue) || queue_waits(room->fleet->queue);
    if (wanted && !link_in_list(&room->to_serve))
        list_append(&core->to_serve, &room->to_serve);
}

void queue_room_over(struct core *core, struct room *room)
{
    if (queue_waits(room->queue) && !link_in_list(&room->to_serve))
        list_append(&core->to_serve, &room->to_serve);
}

/* Of two lines the one that comes first; each has its own cursor. */
static struct allocation *next_of(const struct queue *a, size_t i, const struct queue *b, size_t k)
{
    struct allocation *x = a && i < a->n ? a->line[i] : NULL;
    struct allocation *y = b && k < b->n ? b->line[k] : NULL;
    if (!x || !y)
        return x ? x : y;
    return is_before(x, y) ? x : y;
}

/* The first of a room's line has waited long enough for seats to be kept for it. */
static bool may_hold(const struct core *core, const struct queue *q, const struct allocation *a)
{
    return q->room && q->line[0] == a &&
           core->now.core_ms - q->first_since_core_ms >= QUEUE_HOLD_MS;
}

static void hold(struct room *room, int32_t seats)
{
    if (room->held == seats)
        return;
    room->held = seats;
    shelf_update(room);
}

static void serve_room(struct core *core, struct room *room)
{
    struct queue *own = room->queue;
    struct queue *any = seek_takes_any(room) ? room->fleet->queue : NULL;
    size_t i = 0;
    size_t k = 0;
    hold(room, 0);
    while (room_empty_seats(room) > 0) {
        struct allocation *a = next_of(own, i, any, k);
        if (!a)
            break;
        struct queue *q = a->queue;
        if (seek_fits(core, a, room)) {
            given(core, q);
            allocation_enter(core, a, room, "queue");
            continue; /* the next has moved up */
        }
        if (may_hold(core, q, a)) {
            hold(room, room_empty_seats(room));
            break;
        }
        *(q == own ? &i : &k) += 1;
    }
}

/* They look for their friends again, then for any place. */
static void disperse(struct core *core, struct room *room)
{
    while (queue_waits(room->queue)) {
        struct allocation *a = room->queue->line[0];
        allocation_reopen(core, a);
        seek_place(core, a);
    }
}

static void rooms_changed(struct core *core, const struct fleet *fleet)
{
    LIST_EACH(&fleet->versions, version, struct version, in_fleet)
    {
        for (int code = 0; code < REGION_CODES; code++) {
            const struct shelf *shelf = &version->shelves[code];
            for (size_t i = 0; i < shelf->n; i++)
                queue_room_changed(core, shelf->rooms[i]);
        }
    }
}

/* Whatever turned a version on or off: those who wait for any place are the first to have one. */
static void notice_versions(struct core *core)
{
    size_t at = 0;
    if (core->allocations_in[ALLOCATION_QUEUED] == 0)
        return;
    for (struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        if (!queue_waits(fleet->queue) || fleet->queue->version == seek_version(fleet))
            continue;
        fleet->queue->version = seek_version(fleet);
        rooms_changed(core, fleet);
    }
}

/* Each room that came to have a place, until nothing changes any more: who is moved away from one
 * makes room there. Everybody who is placed leaves a line, so it ends. */
void queues_serve(struct core *core)
{
    allocations_seek_again(core);
    notice_versions(core);
    while (!list_empty(&core->to_serve)) {
        struct room *room = container_of(list_first(&core->to_serve), struct room, to_serve);
        list_remove(&room->to_serve);
        if (room_is_over(room))
            disperse(core, room);
        else if (room->row.state == ROOM_OPEN && !host_is_away(room->host))
            serve_room(core, room);
    }
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

/* At most once in QUEUE_TELL_MS to each of them. */
static void tell_positions(struct core *core, struct queue *q)
{
    for (size_t i = 0; i < q->n; i++) {
        struct allocation *a = q->line[i];
        if (a->told_position == (int32_t)i + 1)
            continue;
        if (a->told_core_ms && core->now.core_ms - a->told_core_ms < QUEUE_TELL_MS) {
            positions_changed(core, q);
            continue;
        }
        a->told_position = (int32_t)i + 1;
        a->told_core_ms = core->now.core_ms;
        if (a->row.bus != BUS_HTTP)
            allocation_tell(core, a, a->row.bus, true);
    }
}

/* A party that stands first in the line of a fleet and fits nowhere: it waits for the room that has
 * the most places from now on, so that they can be kept for it. */
static void settle_on_room(struct core *core, struct queue *q)
{
    struct allocation *a = q->line[0];
    struct room *room = seek_emptiest(core, q->fleet, a);
    if (!room || room->row.max_players < allocation_players(a)) {
        deadline_set(core, &q->hold, DEADLINE_CORE, core->now.core_ms + TRY_MS);
        return; /* there may be one soon */
    }
    queue_remove(core, a);
    a->row.room = room->row.id;
    object_touch(core, &a->object);
    struct queue *own = queue_of(q->fleet, room);
    queue_add(core, own, a);
    own->first_since_core_ms -= own->line[0] == a ? QUEUE_HOLD_MS : 0;
    queue_room_changed(core, room);
}

void queue_deadline(struct core *core, struct queue *q, enum deadline_kind kind)
{
    if (kind == DEADLINE_QUEUE_TELL)
        tell_positions(core, q);
    else if (q->room)
        queue_room_changed(core, q->room);
    else if (q->n > 0 && allocation_players(q->line[0]) > 1)
        settle_on_room(core, q);
}

/* In order, as long as there are hosts for them; where none was for one, there is none for those
 * behind him either, unless they are of another region. What is being started has places for those
 * behind. */
static void try_hosts(struct core *core, struct queue *q)
{
    uint64_t without = 0; /* bit per region */
    for (size_t i = 0; i < q->n && seek_may_start(core, q->fleet, q->players);) {
        struct allocation *a = q->line[i];
        uint64_t bit = (uint64_t)1 << (a->row.region & 63);
        bool large = allocation_players(a) > q->fleet->config->max_players;
        if (!(without & bit) && !large && seek_start(core, a)) {
            given(core, q);
            continue; /* the next has moved up */
        }
        without |= large ? 0 : bit;
        i++;
    }
}

/* A version may have been switched on since: then its rooms have places. */
static void try_rooms(struct core *core, const struct fleet *fleet)
{
    struct room *room = seek_emptiest(core, fleet, NULL);
    if (room)
        queue_room_changed(core, room);
}

void queues_try_hosts(struct core *core)
{
    if (core->now.core_ms - core->tried_hosts_core_ms < TRY_MS ||
        core->allocations_in[ALLOCATION_QUEUED] == 0)
        return;
    core->tried_hosts_core_ms = core->now.core_ms;
    size_t at = 0;
    for (struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        if (!fleet->config || !queue_waits(fleet->queue))
            continue;
        try_rooms(core, fleet);
        try_hosts(core, fleet->queue);
    }
}

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
    list_init(&q->arrivals);
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

bool queue_comes_before(const struct allocation *a, const struct allocation *b)
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
        if (queue_comes_before(q->line[middle], a))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool came_before(const struct allocation *a, const struct allocation *b)
{
    int64_t x = a->row.queued_core_ms;
    int64_t y = b->row.queued_core_ms;
    return x != y ? x < y : a->row.id < b->row.id;
}

/* Nearly always he is the last who came. */
static void note_arrival(struct core *core, struct queue *q, struct allocation *a)
{
    struct link *next = &q->arrivals.head;
    while (next->prev != &q->arrivals.head &&
           came_before(a, container_of(next->prev, struct allocation, in_arrivals)))
        next = next->prev;
    list_insert_before(next, &a->in_arrivals);
    next = &core->waiting.head;
    while (next->prev != &core->waiting.head &&
           came_before(a, container_of(next->prev, struct allocation, in_waiting)))
        next = next->prev;
    list_insert_before(next, &a->in_waiting);
}

int64_t queues_oldest_ms(const struct core *core)
{
    const struct link *first = list_first(&core->waiting);
    if (!first)
        return 0;
    const struct allocation *oldest = container_of(first, struct allocation, in_waiting);
    return core->now.core_ms - oldest->row.queued_core_ms;
}

/* ── regions ───────────────────────────────────────────────────────────────────────────────── */

static void count_lined(const struct queue *q, const struct allocation *a, int32_t players)
{
    struct fleet *fleet = q->fleet;
    if (q->room)
        return;
    for (int i = 0; a->regions && i < a->regions->row.codes_len; i++)
        fleet->lined_own[a->regions->row.codes[i]] += players;
    if (a->regions)
        return;
    fleet->lined_near_all += players;
    fleet->lined_near[a->row.region & (REGION_CODES - 1)] += players;
}

int32_t queue_wants(const struct fleet *fleet, int8_t region)
{
    bool others = fleet->config && fleet->config->other_regions;
    return fleet->lined_own[region] + (others ? fleet->lined_near_all : fleet->lined_near[region]);
}

static uint64_t regions_wanted(const struct fleet *fleet)
{
    uint64_t regions = 0;
    for (int8_t code = 0; code < REGION_CODES; code++)
        regions |= queue_wants(fleet, code) > 0 ? UINT64_C(1) << code : 0;
    return regions;
}

/* Where an open room may help somebody in the line: a party may follow one of its own anywhere. */
static uint64_t regions_reached(const struct fleet *fleet)
{
    return fleet->lined_parties > 0 ? UINT64_MAX : regions_wanted(fleet);
}

static void positions_changed(struct core *core, struct queue *q)
{
    if (q->n > 0 && !deadline_is_set(&q->tell))
        deadline_set(core, &q->tell, DEADLINE_CORE, core->now.core_ms + QUEUE_TELL_MS);
    else if (q->n == 0)
        deadline_clear(core, &q->tell);
}

/* ── held seats ────────────────────────────────────────────────────────────────────────────── */

int32_t queue_held(const struct queue *q)
{
    const struct room *room = q->room ? q->room : q->held_in;
    return room && room->held_by == q ? room->held : 0;
}

static void hold(struct room *room, const struct queue *q, int32_t seats)
{
    const struct queue *by = seats > 0 ? q : NULL;
    if (room->held == seats && room->held_by == by)
        return;
    room->held = seats;
    room->held_by = by;
    list_remove(&room->in_held);
    if (by)
        list_append(&room->fleet->held, &room->in_held);
    shelf_update(room);
}

/* What a fleet's line has held is free for all again. */
static void hold_nowhere(struct core *core, struct queue *q)
{
    struct room *room = q->held_in;
    q->held_for = NULL;
    q->held_in = NULL;
    if (!room)
        return;
    if (room->held_by == q)
        hold(room, NULL, 0);
    queue_room_changed(core, room);
}

/* Seats that come free help whoever needs no more than there are, and may be there at all. */
static bool can_be_helped(const struct core *core, const struct queue *q,
                          const struct allocation *a)
{
    if (q->room)
        return seek_needs(core, a, q->room) <= q->room->row.max_players;
    return seek_best_to_hold(core, a) != NULL;
}

static const struct allocation *oldest_of(const struct queue *q)
{
    return container_of(list_first(&q->arrivals), struct allocation, in_arrivals);
}

static bool has_waited(const struct core *core, const struct allocation *a)
{
    return core->now.core_ms - a->row.queued_core_ms >= QUEUE_HOLD_MS;
}

/* Time is what makes it the elder, so nobody who comes later puts that off, be he before it in the
 * order; and whoever cannot be helped keeps nobody behind him from it. */
const struct allocation *queue_elder(const struct core *core, const struct queue *q)
{
    if (!queue_waits(q) || !has_waited(core, oldest_of(q)) ||
        (!q->room && !seek_emptiest(q->fleet, regions_reached(q->fleet))))
        return NULL;
    LIST_EACH(&q->arrivals, a, struct allocation, in_arrivals)
    {
        if (!has_waited(core, a))
            return NULL;
        if (can_be_helped(core, q, a))
            return a;
    }
    return NULL;
}

const struct allocation *queue_holder(const struct core *core, const struct room *room)
{
    const struct queue *q = room->held_by;
    if (!q)
        return NULL;
    return q->room ? queue_elder(core, q) : q->held_for;
}

/* He came to a line before somebody for whom seats are held: they may be his. */
static void notice_held(struct core *core, const struct allocation *a)
{
    LIST_EACH(&a->fleet->held, room, struct room, in_held)
    {
        const struct allocation *holder = queue_holder(core, room);
        if (holder && queue_comes_before(a, holder))
            queue_room_changed(core, room);
    }
}

/* A fleet's line: for whom, and where. Another room is only worth a change when it misses fewer
 * seats, so what was gathered in one is not given up for nothing. */
static void choose_held(struct core *core, struct queue *q)
{
    const struct allocation *elder = queue_elder(core, q);
    struct room *room = elder ? seek_best_to_hold(core, elder) : NULL;
    if (elder == q->held_for && room == q->held_in)
        return;
    hold_nowhere(core, q);
    q->held_for = elder;
    q->held_in = room;
    if (room)
        queue_room_changed(core, room);
}

/* The first in order who comes to it and does not fit keeps what is empty from all behind him. */
static bool holds_here(const struct core *core, const struct allocation *a, const struct room *room)
{
    const struct queue *q = a->queue;
    return q->room ? a == queue_elder(core, q) : a == q->held_for && room == q->held_in;
}

const struct allocation *queue_next_elder(const struct core *core, const struct queue *q)
{
    LIST_EACH(&q->arrivals, a, struct allocation, in_arrivals)
    {
        if (can_be_helped(core, q, a))
            return a;
    }
    return NULL;
}

/* A room's line: when somebody comes to be the elder. Whoever cannot be helped has no time of his
 * own, else he would keep those behind him from theirs. */
static void wait_for_elder(struct core *core, struct queue *q)
{
    if (!queue_waits(q))
        return;
    const struct allocation *next = queue_next_elder(core, q);
    if (next && !has_waited(core, next))
        deadline_set(core, &q->hold, DEADLINE_CORE, next->row.queued_core_ms + QUEUE_HOLD_MS);
    else
        deadline_clear(core, &q->hold);
}

/* ── coming and going ──────────────────────────────────────────────────────────────────────── */

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
    count_lined(q, a, allocation_players(a));
    q->fleet->lined_parties += !q->room && allocation_players(a) > 1;
    a->queue = q;
    note_arrival(core, q, a);
    if (q->room)
        queue_room_changed(core, q->room); /* after a start: whoever fits where none was held */
    else
        notice_held(core, a);
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
    count_lined(q, a, -allocation_players(a));
    q->fleet->lined_parties -= !q->room && allocation_players(a) > 1;
    a->queue = NULL;
    list_remove(&a->in_arrivals);
    list_remove(&a->in_waiting);
    if (a == q->held_for)
        hold_nowhere(core, q);
    if (q->room && q->room->held_by == q)
        hold(q->room, NULL, 0); /* perhaps for him; else it is held again before the step ends */
    if (q->n == 0)
        deadline_clear(core, &q->hold);
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
    struct queue *any = room->fleet->queue;
    hold(room, NULL, 0);
    if (any && any->held_in == room)
        hold_nowhere(core, any);
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
    return queue_comes_before(x, y) ? x : y;
}

/* Whoever is the first for a room has a place in a nearer one: that is offered before. It ends, for
 * whoever is the first there is no other who would have come to this one. */
static void serve_first(struct core *core, struct room *nearer, struct room *room)
{
    list_remove(&nearer->to_serve);
    list_insert_before(core->to_serve.head.next, &nearer->to_serve);
    if (!link_in_list(&room->to_serve))
        list_append(&core->to_serve, &room->to_serve);
}

static void serve_room(struct core *core, struct room *room)
{
    struct queue *own = room->queue;
    bool wanted = room->fleet->lined_parties > 0 || queue_wants(room->fleet, room->row.region) > 0;
    struct queue *any = wanted && seek_takes_any(room) ? room->fleet->queue : NULL;
    size_t i = 0;
    size_t k = 0;
    hold(room, NULL, 0);
    while (room_empty_seats(room) > 0) {
        struct allocation *a = next_of(own, i, any, k);
        if (!a)
            break;
        struct queue *q = a->queue;
        bool fits = seek_fits(core, a, room);
        struct room *nearer = fits && any && q == any ? seek_unserved_nearer(core, a, room) : NULL;
        if (nearer) {
            serve_first(core, nearer, room);
            return;
        }
        if (fits) {
            given(core, q);
            allocation_enter(core, a, room, "queue");
            if (any)
                choose_held(core, any); /* it may have been his */
            continue;                   /* the next has moved up */
        }
        if (holds_here(core, a, room)) {
            hold(room, q, room_empty_seats(room));
            break;
        }
        *(q == own ? &i : &k) += 1;
    }
    wait_for_elder(core, own);
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

/* What had no place for all of them may have one for those who are left. */
void queue_shrank(struct core *core, const struct allocation *a, int32_t players)
{
    a->queue->players -= players;
    count_lined(a->queue, a, -players);
    a->queue->fleet->lined_parties -= !a->queue->room && allocation_players(a) == 1;
    if (a->queue->room)
        queue_room_changed(core, a->queue->room);
    else
        rooms_changed(core, a->fleet);
}

void queues_loaded(struct core *core)
{
    size_t at = 0;
    for (struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));)
        rooms_changed(core, fleet);
}

/* Whatever turned a version on or off: those who wait for any place are the first to have one. And
 * whatever made another room the best one to hold seats in. */
static void notice_fleets(struct core *core)
{
    size_t at = 0;
    if (core->allocations_in[ALLOCATION_QUEUED] == 0)
        return;
    for (struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        if (!queue_waits(fleet->queue))
            continue;
        if (fleet->queue->version != seek_version(fleet))
            rooms_changed(core, fleet);
        fleet->queue->version = seek_version(fleet);
        choose_held(core, fleet->queue);
    }
}

static void serve(struct core *core, struct room *room)
{
    if (room_is_over(room)) {
        disperse(core, room);
        return;
    }
    if (room->row.state != ROOM_OPEN || host_is_away(room->host))
        return;
    if (queue_waits(room->fleet->queue))
        choose_held(core, room->fleet->queue); /* before anybody behind it has what came free */
    serve_room(core, room);
}

/* Each room that came to have a place, until nothing changes any more: who is moved away from one
 * makes room there. Everybody who is placed leaves a line, and who holds seats elsewhere misses
 * fewer there, so it ends. */
void queues_serve(struct core *core)
{
    allocations_seek_again(core);
    notice_fleets(core);
    while (!list_empty(&core->to_serve)) {
        struct room *room = container_of(list_first(&core->to_serve), struct room, to_serve);
        list_remove(&room->to_serve);
        serve(core, room);
        if (list_empty(&core->to_serve))
            notice_fleets(core);
    }
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

bool queue_is_told(const struct allocation *a)
{
    return a->told_position == queue_position(a, NULL) && a->told_room == a->row.room;
}

/* At most once in QUEUE_TELL_MS to each of them. */
static void tell_positions(struct core *core, struct queue *q)
{
    for (size_t i = 0; i < q->n; i++) {
        struct allocation *a = q->line[i];
        if (queue_is_told(a))
            continue;
        if (a->told_core_ms && core->now.core_ms - a->told_core_ms < QUEUE_TELL_MS) {
            positions_changed(core, q);
            continue;
        }
        a->told_position = (int32_t)i + 1;
        a->told_room = a->row.room;
        a->told_core_ms = core->now.core_ms;
        if (a->row.bus & BUSES_ALL)
            allocation_tell(core, a, a->row.bus, true);
    }
}

void queue_deadline(struct core *core, struct queue *q, enum deadline_kind kind)
{
    if (kind == DEADLINE_QUEUE_TELL)
        tell_positions(core, q);
    else
        queue_room_changed(core, q->room);
}

/* In order, as long as there are hosts for them; where none was for one, there is none for those
 * behind him either, unless they are of another region. What is being started has places for those
 * behind. */
static void try_hosts(struct core *core, struct queue *q)
{
    uint64_t without = ~regions_allowed(core, q->fleet->config->regions); /* bit per region */
    uint64_t busy = seek_busy(core, q->fleet);
    uint64_t wanted = regions_wanted(q->fleet);
    for (size_t i = 0; i < q->n && (wanted & ~(busy | without));) {
        if (!seek_start(core, q->line[i], busy, &without)) {
            i++;
            continue;
        }
        given(core, q); /* the next has moved up */
        busy = seek_busy(core, q->fleet);
        wanted = regions_wanted(q->fleet);
    }
}

/* A version may have been switched on since: then its rooms have places. */
static void try_rooms(struct core *core, const struct fleet *fleet)
{
    struct room *room = seek_emptiest(fleet, regions_reached(fleet));
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

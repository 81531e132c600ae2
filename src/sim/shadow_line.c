/* What the disk holds of allocations, decoded from the bytes that were committed. Held against it:
 * a name is one allocation and takes no more seats than it has players (I4), nobody who came later
 * gets a place that somebody in line could have had (Q3) nor, once a party has been the oldest of a
 * line for long enough, one of those that are held for it (Q4), everybody in line is answered in
 * time (I6), positions are positions in a line, and no result is told before it is stored (I7). */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/row.h"
#include "wire/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALLOCATION_QUEUED = 2, /* as the disk has it */
    ALLOCATION_DONE = 3,
    ALLOCATION_FAILED = 4,
    ROOM_STARTING = 1,
    STEP_MS = 60 * 1000, /* a step of priority */
    HOLD_MS = 30 * 1000,
    HOLD_SLACK_MS = 2000,
    LATE_SLACK_MS = 10 * 1000,
    LATE_MS = 20 * 1000, /* the disk's time, once it is late, and a token's that is routed anew */
};

/* ── taking over what was stored ───────────────────────────────────────────────────────────── */

static struct shadow_allocation *line_of(const struct world *w, int64_t id)
{
    return map_get(&w->shadow_lines, (uint64_t)id);
}

/* One batch more has been told since. */
static void next_batch(struct world *w)
{
    size_t at = 0;
    struct shadow_allocation *a = NULL;
    w->arena_ended = w->pods_ended = false;
    while ((a = map_next(&w->shadow_lines, &at))) {
        a->state_before = a->row.state;
        a->room_before = a->row.room;
        a->shrank = a->written = false;
        if (!a->over)
            continue;
        map_remove(&w->shadow_lines, (uint64_t)a->row.id);
        free(a);
        at = 0; /* the table has moved */
    }
}

static void copy_party(struct shadow_allocation *a, struct str names)
{
    int max = (int)(sizeof(a->party) / sizeof(*a->party));
    a->n_party = 0;
    for (struct str name; a->n_party < max && names_next(&names, &name);)
        (void)str_copy(a->party[a->n_party++], NAME_SIZE, name);
}

static void note_ask(struct world *w, const struct row_allocation *row)
{
    struct ask *ask = ask_named(w, str_of(row->name));
    if (!ask || ask->forgotten)
        return;
    if (ask->allocation && ask->allocation != row->id)
        world_broken(w, "I4: ask %" PRId64 " is allocations %" PRId64 " and %" PRId64, ask->number,
                     ask->allocation, row->id);
    if (ask->over && row->state < ALLOCATION_DONE)
        world_broken(w, "ask %" PRId64 " was over and is open again", ask->number);
    w->result->parties += ask->allocation == 0 && names_count(row->party) > 1;
    ask->allocation = row->id;
    ask->over = row->state >= ALLOCATION_DONE;
    ask->owed = row->owed != 0;
}

/* One that is open, or whose result nobody has taken, is only forgotten when there are too many.
 */
static void forget_ask(struct world *w, int64_t id)
{
    for (int i = 0; i < MAX_ASKS; i++) {
        struct ask *ask = &w->asks[i];
        if (ask->allocation != id)
            continue;
        /* Where few are kept, one may be answered and forgotten within a batch. */
        if ((!ask->over || ask->owed) && w->config.limits.tickets_kept > MAX_ASKS)
            world_broken(w, "ask %" PRId64 " was forgotten before its answer was heard",
                         ask->number);
        ask->forgotten = true;
        ask->unacked = 0;
        ask->owed = false;
    }
}

static void take_allocation(struct world *w, const struct change *change)
{
    struct shadow_allocation *a = line_of(w, change->id);
    bool over = !change->gone && change->allocation.state >= ALLOCATION_DONE;
    if (change->gone) {
        forget_ask(w, change->id);
        if (a)
            a->over = true;
        return;
    }
    const struct ask *ask = ask_named(w, str_of(change->allocation.name));
    bool ends = over && ask && !ask->over; /* else it is written once more */
    note_ask(w, &change->allocation);
    if (!a) {
        a = xcalloc(1, sizeof(*a));
        map_put(&w->shadow_lines, (uint64_t)change->id, a);
    }
    a->row = change->allocation;
    a->row.friends = a->row.party = a->row.seats = a->row.info = a->row.why = (struct str){0};
    a->over = over;
    a->written = true;
    a->ended = a->ended || ends;
    a->shrank = a->shrank || (a->n_party > names_count(change->allocation.party));
    copy_party(a, change->allocation.party);
}

static void take_fleet(struct world *w, const struct row_fleet *fleet)
{
    if (strcmp(fleet->name, "arena") == 0)
        w->arena_id = (int32_t)fleet->id;
    if (strcmp(fleet->name, "pods") == 0)
        w->pods_id = (int32_t)fleet->id;
}

static void take_version(struct world *w, const struct change *change)
{
    struct row_version *kept = map_get(&w->shadow_versions, (uint64_t)change->id);
    if (change->gone) {
        free(map_remove(&w->shadow_versions, (uint64_t)change->id));
        return;
    }
    if (!kept) {
        kept = xcalloc(1, sizeof(*kept));
        map_put(&w->shadow_versions, (uint64_t)change->id, kept);
    }
    *kept = change->version;
}

/* Those who were given a place in it stand in line again, perhaps within this very batch. */
static void take_room(struct world *w, const struct change *change)
{
    bool over = change->gone || change->room.end_reason;
    w->arena_ended =
        w->arena_ended || (over && (change->gone || change->room.fleet == w->arena_id));
    w->pods_ended = w->pods_ended || (over && (change->gone || change->room.fleet == w->pods_id));
}

static void take_batch(struct world *w, const struct store_batch *batch)
{
    struct cursor c = cursor_of(batch->changes, batch->len);
    struct change change;
    while (change_decode(&c, &change)) {
        if (change.kind == ROW_allocation)
            take_allocation(w, &change);
        else if (change.kind == ROW_fleet && !change.gone)
            take_fleet(w, &change.fleet);
        else if (change.kind == ROW_version)
            take_version(w, &change);
        else if (change.kind == ROW_room)
            take_room(w, &change);
    }
}

/* ── order ─────────────────────────────────────────────────────────────────────────────────── */

/* When it came, less a minute for each step of priority. */
static int64_t key_of(const struct shadow_allocation *a)
{
    int64_t came_ms = a->row.queued_core_ms ? a->row.queued_core_ms : a->row.opened_core_ms;
    return came_ms - (int64_t)a->row.priority * STEP_MS;
}

static bool sat_there(const struct world *w, const char *account, int64_t room)
{
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        if (s->row.room == room && !s->fresh && strcmp(s->row.account, account) == 0)
            return true;
    }
    return false;
}

static bool sits_there(const struct world *w, const char *account, int64_t room)
{
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        if (s->row.room == room && !s->fresh && shadow_sits(w, s) &&
            strcmp(s->row.account, account) == 0)
            return true;
    }
    return false;
}

/* One of them may have left in this batch: he needs a place again. */
static int needs(const struct world *w, const struct shadow_allocation *a, int64_t room)
{
    int n = 0;
    for (int i = 0; i < a->n_party; i++)
        n += !sits_there(w, a->party[i], room);
    return n;
}

/* … or have come in it, be it to leave again. */
static int needs_at_least(const struct world *w, const struct shadow_allocation *a, int64_t room)
{
    int n = a->n_party;
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        for (int i = 0; i < a->n_party; i++)
            n -= s->row.room == room && strcmp(s->row.account, a->party[i]) == 0;
    }
    return n;
}

static bool waits(const struct shadow_allocation *a)
{
    return !a->over && a->row.state == ALLOCATION_QUEUED && a->state_before == ALLOCATION_QUEUED &&
           a->row.room == a->room_before;
}

static bool is_open_to_all(const struct world *w, const struct row_room *room)
{
    const struct row_version *version = map_get(&w->shadow_versions, (uint64_t)room->version);
    return !version || !version->disabled;
}

/* What was taken together with that seat, by people who were not there before. */
static int taken_with(const struct world *w, const struct shadow_seat *s)
{
    int n = 0;
    size_t at = 0;
    for (const struct shadow_seat *o = NULL; (o = map_next(&w->shadow_seats, &at));)
        n += o->fresh && !o->gone && o->row.room == s->row.room && o->row.ticket == s->row.ticket &&
             !sat_there(w, o->row.account, o->row.room);
    return n;
}

/* Who asks for another room than the one he is in does not get that one. */
static bool wants_away(const struct world *w, const struct shadow_allocation *a, int64_t room)
{
    return (!a->row.rejoin || a->row.move_party) && sat_there(w, a->row.player, room);
}

/* A party that follows one of its own may be in any region; it is not judged. */
static bool may_be_in(const struct world *w, const struct shadow_allocation *a,
                      const struct row_room *room)
{
    const struct ask *ask = ask_named((struct world *)w, str_of(a->row.name));
    return ask && ask_may_be_in(w, ask, room->region);
}

/* ── held seats ────────────────────────────────────────────────────────────────────────────── */

/* In its line and all through the batch. */
static bool is_oldest(const struct world *w, const struct shadow_allocation *a)
{
    size_t at = 0;
    for (const struct shadow_allocation *b = NULL; (b = map_next(&w->shadow_lines, &at));) {
        bool queued = b->row.state == ALLOCATION_QUEUED || b->state_before == ALLOCATION_QUEUED;
        bool same = b->row.room == a->row.room || b->room_before == a->row.room;
        bool older = b->row.queued_core_ms < a->row.queued_core_ms ||
                     (b->row.queued_core_ms == a->row.queued_core_ms && b->row.id < a->row.id);
        if (b != a && b->row.fleet == a->row.fleet && queued && same && older)
            return false;
    }
    return true;
}

static bool has_line(const struct world *w, int64_t room)
{
    size_t at = 0;
    for (const struct shadow_allocation *b = NULL; (b = map_next(&w->shadow_lines, &at));) {
        if (b->row.room == room || b->room_before == room)
            return true;
    }
    return false;
}

/* At least as many, and at most, were empty there at any time in this batch. */
static int empty_at_least(const struct world *w, const struct row_room *room)
{
    int n = room->max_players;
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));)
        n -= s->row.room == room->id;
    return n;
}

static int empty_at_most(const struct world *w, const struct row_room *room)
{
    int n = room->max_players;
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));)
        n -= s->row.room == room->id && !s->fresh && !s->gone;
    return n;
}

/* Who waits for any place has seats held in the room that misses the fewest; which of several that
 * miss as many is not known here, nor what a room's own line has held. */
static bool is_best_for(const struct world *w, const struct shadow_allocation *a,
                        const struct row_room *room)
{
    size_t at = 0;
    int misses = needs(w, a, room->id) - empty_at_least(w, room) - 1; /* the one that was taken */
    if (has_line(w, room->id))
        return false;
    for (const struct row_room *other = NULL; (other = map_next(&w->shadow_rooms, &at));) {
        if (other->id != room->id && other->fleet == room->fleet &&
            needs_at_least(w, a, other->id) - empty_at_most(w, other) <= misses)
            return false;
    }
    return true;
}

/* ── being passed over ─────────────────────────────────────────────────────────────────────── */

/* He came later, and took what the other could have had. When a room ended in this batch, whoever
 * was placed there may stand in line again, and whoever waited there in another line: of those that
 * were written nobody can tell whether they waited when the seat was given, nor where seats were
 * held by then. Who was not written waited all the time. */
static void judge_passed(struct world *w, const struct shadow_seat *s, int64_t key, int64_t id,
                         const struct row_room *room)
{
    size_t at = 0;
    int taken = taken_with(w, s);
    bool ended = room->fleet == w->pods_id ? w->pods_ended : w->arena_ended;
    for (const struct shadow_allocation *b = NULL; (b = map_next(&w->shadow_lines, &at));) {
        bool of_room = b->row.room == room->id;
        bool of_any = b->row.room == 0 && is_open_to_all(w, room) && !wants_away(w, b, room->id) &&
                      may_be_in(w, b, room);
        bool earlier = key_of(b) < key || (key_of(b) == key && b->row.id < id);
        if (!waits(b) || b->shrank || (ended && b->written) || b->row.fleet != room->fleet ||
            !(of_room || of_any) || !earlier)
            continue;
        bool held = !ended && is_oldest(w, b) && needs(w, b, room->id) <= room->max_players &&
                    s->row.reserved_core_ms - b->row.queued_core_ms > HOLD_MS + HOLD_SLACK_MS &&
                    (of_room || is_best_for(w, b, room));
        if (needs(w, b, room->id) <= taken)
            world_broken(w, "Q3: %s took a seat of room %" PRId64 " before %s, who waits",
                         s->row.account, room->id, b->row.name);
        else if (held)
            world_broken(w, "Q4: %s took a seat of room %" PRId64 " that is held for %s",
                         s->row.account, room->id, b->row.name);
    }
}

static bool is_for(const struct shadow_allocation *a, const char *account)
{
    for (int i = 0; i < a->n_party; i++) {
        if (strcmp(a->party[i], account) == 0)
            return true;
    }
    return false;
}

/* With which request he came for that seat; NULL = with none. Whoever asks again while it is
 * reserved, here or by the players' door, makes it his newer request's; within one batch nobody
 * sees that an older one got it. */
static const struct shadow_allocation *first_request(struct world *w, const struct shadow_seat *s)
{
    size_t at = 0;
    const struct shadow_allocation *first = line_of(w, s->row.ticket);
    for (const struct shadow_allocation *b = NULL; (b = map_next(&w->shadow_lines, &at));) {
        bool his = b->row.state == ALLOCATION_DONE && b->row.room == s->row.room &&
                   is_for(b, s->row.account);
        if (his && (!first || key_of(b) < key_of(first)))
            first = b;
    }
    return first;
}

/* A room that is being started is for those it was started for. */
static void judge_seat(struct world *w, const struct shadow_seat *s)
{
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)s->row.room);
    const struct shadow_allocation *a = first_request(w, s);
    if (!room || room->opened_core_ms == 0 || room->opened_core_ms >= w->stored_core_ms ||
        s->row.reserved_core_ms <= room->opened_core_ms || sat_there(w, s->row.account, room->id))
        return;
    /* Without a request he may have come by the players' door, and again, within one batch: nobody
     * sees his first seat there. So only those count who stood in line before it. */
    judge_passed(w, s, a ? key_of(a) : w->before_core_ms, a ? a->row.id : 0, room);
}

/* ── every batch ───────────────────────────────────────────────────────────────────────────── */

static int64_t queue_ms(const struct world *w, int32_t fleet)
{
    return w->config.fleets[fleet == w->pods_id ? world_pods(w) : 1].queue_ms;
}

/* Whoever waits, or is being placed after he waited, has his answer when both times are over. */
static void judge_late(struct world *w, struct shadow_allocation *a)
{
    int64_t most_ms = queue_ms(w, a->row.fleet) + w->config.timeouts.place_ms + LATE_SLACK_MS;
    if (a->over || w->stored_core_ms - a->row.opened_core_ms <= most_ms)
        return;
    if (a->late_ms == 0)
        a->late_ms = w->now_ms;
    else if (w->now_ms - a->late_ms > LATE_MS)
        world_broken(w, "I6: %s of %s waits for %" PRId64 " ms", a->row.name, a->row.player,
                     w->stored_core_ms - a->row.opened_core_ms);
}

static void judge_seats_of(struct world *w, const struct shadow_allocation *a)
{
    int n = 0;
    size_t at = 0;
    for (const struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));)
        n += !s->gone && s->row.ticket == a->row.id;
    if (n > a->n_party)
        world_broken(w, "I4: %s has %d seats for %d players", a->row.name, n, a->n_party);
}

/* Something came of the request that took its place: it was not refused as it came. */
static bool took_its_place(const struct shadow_allocation *a, const struct shadow_allocation *b)
{
    bool refused = b->row.state == ALLOCATION_FAILED && b->row.queued_core_ms == 0 &&
                   b->row.room == 0 && b->row.ticket == 0;
    if (b->row.id <= a->row.id || b->row.fleet != a->row.fleet || refused)
        return false;
    if (b->row.move_party > 0 && b->state_before == 0)
        return true; /* whom it took along may have left it within this batch */
    for (int i = 0; i < a->n_party; i++) {
        for (int k = 0; k < b->n_party; k++) {
            if (strcmp(a->party[i], b->party[k]) == 0)
                return true;
        }
    }
    return false;
}

/* Whoever waits for a room and asks again, alone, waits for the same one if it is in the first
 * region of the newer request. In a cluster that may
 * have failed, and another be asked for, within one batch. One that only may have taken him along
 * is somebody else's, and has a room of its own. */
static void judge_taken_over(struct world *w, const struct shadow_allocation *a,
                             const struct shadow_allocation *b)
{
    bool alone = a->n_party == 1 && b->n_party == 1 && a->row.fleet != w->pods_id &&
                 strcmp(a->party[0], b->party[0]) == 0;
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)a->row.room);
    const struct ask *ask = ask_named(w, str_of(b->row.name));
    alone = alone && room && ask && ask_is_nearest(w, ask, room->region);
    bool started = b->row.queued_core_ms == 0 && b->row.ticket != 0;
    if (alone && started && a->row.ticket != 0 && b->row.ticket != a->row.ticket)
        world_broken(w, "%s of %s has another room started than the one that %s waited for",
                     b->row.name, b->row.player, a->row.name);
}

static void judge_superseded(struct world *w, const struct shadow_allocation *a)
{
    const struct shadow_allocation *next = NULL;
    size_t at = 0;
    if (a->row.error != ERR_SUPERSEDED || !a->ended)
        return;
    for (const struct shadow_allocation *b = NULL; (b = map_next(&w->shadow_lines, &at));) {
        if (took_its_place(a, b) && (!next || b->row.id < next->row.id))
            next = b;
    }
    if (next)
        judge_taken_over(w, a, next);
    else
        world_broken(w, "%s of %s made way for a request that was refused", a->row.name,
                     a->row.player);
}

static bool is_newly_done(const struct shadow_allocation *a)
{
    return a->row.state == ALLOCATION_DONE && a->state_before != ALLOCATION_DONE;
}

/* Who asks again and gets the seat he has may show its key again; nobody else may. He may have
 * shown it and left within one batch. */
static void judge_again(struct world *w, struct shadow_seat *s)
{
    size_t at = 0;
    int again = 0;
    for (const struct shadow_allocation *a = NULL; (a = map_next(&w->shadow_lines, &at));) {
        bool here = is_newly_done(a) && a->row.room == s->row.room && a->row.id != s->row.ticket;
        for (int i = 0; i < a->n_party && here; i++)
            again += strcmp(a->party[i], s->row.account) == 0;
    }
    s->asked_again += again;
    if (s->reopened && !s->gone && again == 0)
        world_broken(w, "the key of seat %" PRId64 " opens it again, and %s has not asked",
                     s->row.id, s->row.account);
}

static bool some_newly_done(const struct world *w)
{
    size_t at = 0;
    for (const struct shadow_allocation *a = NULL; (a = map_next(&w->shadow_lines, &at));) {
        if (is_newly_done(a))
            return true;
    }
    return false;
}

void shadow_lines_stored(struct world *w, const struct store_batch *batch)
{
    if (w->n_seekers == 0)
        return;
    next_batch(w);
    take_batch(w, batch);
    bool done = some_newly_done(w);
    size_t at = 0;
    for (struct shadow_seat *s = NULL; (s = map_next(&w->shadow_seats, &at));) {
        if (s->fresh && !s->gone)
            judge_seat(w, s);
        if (done || s->reopened)
            judge_again(w, s);
    }
    w->before_core_ms = w->stored_core_ms;
    w->stored_core_ms = batch->core_ms;
    at = 0;
    for (struct shadow_allocation *a = NULL; (a = map_next(&w->shadow_lines, &at));) {
        judge_late(w, a);
        judge_superseded(w, a);
        judge_seats_of(w, a);
        shadow_region_done(w, a);
    }
}

/* ── what is told ──────────────────────────────────────────────────────────────────────────── */

/* At most as many as stand in some line of the fleet, or are being placed from there. */
static void judge_position(struct world *w, const struct effect *e)
{
    const struct envelope_result *r = e->result;
    const struct shadow_allocation *mine = line_of(w, e->object);
    int32_t most = 0;
    size_t at = 0;
    for (const struct shadow_allocation *a = NULL; mine && (a = map_next(&w->shadow_lines, &at));)
        most += a->row.fleet == mine->row.fleet && a->row.queued_core_ms > 0;
    if (!mine && w->config.limits.tickets_kept < MAX_ASKS)
        return; /* as in judge_final: it came and was forgotten within the batch */
    if (!mine)
        world_broken(w, "I7: allocation %" PRId64 " is said to wait before that is stored",
                     e->object);
    else if (r->position < 0 || r->position > most)
        world_broken(w, "%s is told position %d of %d", mine->row.name, r->position, most);
}

static void count(struct world *w, const struct effect *e)
{
    struct sim_result *r = w->result;
    bool done = e->note == NOTE_ALLOCATION_DONE;
    r->sought += e->note == NOTE_ALLOCATION_OPENED;
    r->lined_up += e->note == NOTE_ALLOCATION_QUEUED;
    r->friends += done && str_eq(e->region, STR("friend"));
    r->served += done && e->wall_ms > 0;
    r->in_pods += done && e->fleet_id == w->pods_id;
}

void shadow_lines_judge(struct world *w, const struct effect *e)
{
    if (e->kind == EFFECT_NOTE)
        count(w, e);
    else if (e->result && e->object && e->result->status == ENVELOPE_QUEUED)
        judge_position(w, e);
}

void shadow_lines_check(struct world *w)
{
    size_t at = 0;
    for (const struct shadow_allocation *a = NULL; (a = map_next(&w->shadow_lines, &at));) {
        if (!a->over)
            world_broken(w, "%s of %s is never answered", a->row.name, a->row.player);
    }
}

static void free_all(struct map *map)
{
    size_t at = 0;
    for (void *kept = NULL; (kept = map_next(map, &at));)
        free(kept);
    map_done(map);
}

void shadow_lines_done(struct world *w)
{
    free_all(&w->shadow_lines);
    free_all(&w->shadow_versions);
}

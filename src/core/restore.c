/* Setting back. A backup is restored, and what was answered after it was made is forgotten here but
 * not out there: players have keys, game servers have matches, agents run rooms, readers of changes
 * have ids. Nothing that is said from now on may be taken for something that was said then. So:
 *
 * Numbers: every counter goes ahead by more than any Muster can have given, so many at once and so
 * many for each second that was lost. So none of that time is given again, nor a credential that is
 * derived from one; also when the same backup is restored a second time, for then more seconds are
 * lost. Where the rows that were served here last are still there, none of theirs is given again
 * whatever the clock says.
 *
 * Generations of enrolment tokens likewise: one that was made by a rotation in the lost time, and
 * perhaps revoked because it had leaked, must not be the result of the next rotation.
 *
 * Batches go on far ahead, so a reader's id of the lost time is before all that is held: he hears
 * of a gap and begins anew.
 *
 * What was being started is no more (restore_begun.c).
 *
 * Rooms take no more players than sit there by the rows. Others may have got seats in the lost
 * time, and their game servers do not say who is there. A place that comes free may be given:
 * whoever has it now, it was one of those that were counted. For the same reason such a room is not
 * ended because nobody is known to be in it (restore_may_hide).
 *
 * Servers that agents run and that belong to no room are not ended if they may be of the lost time
 * (host_list.c), until no room of that time can be open any more.
 *
 * The rest is what a restart does anyway: servers list their matches, agents their processes, and
 * what is not there is over; a match of the lost time is a stranger that takes up its slot. */
#include "core/restore.h"

#include "base/plant.h"
#include "core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far to go ahead. The part that is there in any case is for a clock that was set. */
struct ahead {
    int64_t at_once;
    int64_t per_second;
    int64_t seconds_max; /* older ones cannot matter any more */
    int64_t end;         /* no number may reach it */
};

/* Numbers of 56 bits (core_load), and those of servers and lobbies, which have 31 on the wire. */
static const struct ahead wide = {INT64_C(1) << 32, 1 << 20, INT32_MAX, INT64_C(1) << 56};
static const struct ahead narrow = {1 << 20, 32, 180 * 24 * 3600, INT32_MAX};
static const struct ahead generations = {1 << 16, 1, 180 * 24 * 3600, INT32_MAX};

int restore_load_row(struct core *core, const struct row_restore *row)
{
    if (row->id <= 1 || row->server_from > row->server_to)
        return ERR_FORMAT;
    struct restore *r = xcalloc(1, sizeof(*r));
    r->object.kind = ROW_restore;
    r->object.stored = true;
    r->row = *row;
    object_enter(core, &r->object);
    return 0;
}

int64_t core_epoch(const struct core *core)
{
    int64_t epoch = 1;
    size_t at = 0;
    for (const struct restore *r = NULL; (r = object_next(core, ROW_restore, &at));)
        epoch = r->row.id > epoch ? r->row.id : epoch;
    return epoch;
}

static int64_t longest_room_ms(const struct core *core)
{
    int64_t longest_ms = 0;
    for (size_t i = 0; i < core->config.n_fleets; i++) {
        if (core->config.fleets[i].session_ms > longest_ms)
            longest_ms = core->config.fleets[i].session_ms;
    }
    return longest_ms;
}

bool restore_may_hold(const struct core *core, int64_t server)
{
    size_t at = 0;
    for (const struct restore *r = NULL; (r = object_next(core, ROW_restore, &at));) {
        if (server >= r->row.server_from && server < r->row.server_to &&
            core->now.core_ms < r->row.at_core_ms + longest_room_ms(core))
            return true;
    }
    return false;
}

bool restore_is_after(const struct core *core, int64_t core_ms)
{
    size_t at = 0;
    const struct restore *r = NULL;
    while ((r = object_next(core, ROW_restore, &at)) && r->row.at_core_ms < core_ms)
        continue;
    return r != NULL;
}

bool restore_may_hide(const struct core *core, int64_t server)
{
    size_t at = 0;
    const struct restore *r = NULL;
    while ((r = object_next(core, ROW_restore, &at)) && server >= r->row.server_to)
        continue;
    return r != NULL;
}

/* ── what is written ───────────────────────────────────────────────────────────────────────── */

void restore_put(struct setting_back *s, enum row_kind kind, const void *row)
{
    change_encode_row(&s->out->changes, kind, row);
    s->out->n_changes++;
}

/* The rows that were served here last, of that kind and id; NULL = not known. */
static const struct change *before(const struct setting_back *s, enum row_kind kind, int64_t id)
{
    return s->how->before ? map_get(&s->how->before->staged, staged_key(kind, id)) : NULL;
}

static int go_ahead(const struct setting_back *s, const struct ahead *by, int64_t *number)
{
    int64_t seconds = s->lost_s < by->seconds_max ? s->lost_s : by->seconds_max;
    if (PLANTED(ids_not_ahead))
        return 0;
    *number += by->at_once + by->per_second * seconds;
    return *number < by->end ? 0 : ERR_TOO_MANY;
}

static bool is_narrow(enum row_kind kind)
{
    return kind == ROW_fleet || kind == ROW_server || kind == ROW_chat_server || kind == ROW_lobby;
}

static int move_counters(struct setting_back *s)
{
    int err = 0;
    for (int kind = 0; kind < ROW_KINDS && !err; kind++) {
        struct row_counter *row = &s->core->counter_rows[kind];
        err = go_ahead(s, is_narrow((enum row_kind)kind) ? &narrow : &wide, &row->next);
        const struct change *last = before(s, ROW_counter, kind);
        if (last && last->counter.next > row->next)
            row->next = last->counter.next; /* all that were given are below it */
        restore_put(s, ROW_counter, row);
    }
    return err;
}

static int move_generation(struct setting_back *s, struct row_enrolment *row)
{
    int64_t generation = row->generation;
    int err = go_ahead(s, &generations, &generation);
    if (err)
        return err;
    const struct change *last = before(s, ROW_enrolment, row->id);
    if (last && last->enrolment.generation > generation)
        generation = last->enrolment.generation;
    row->generation = (int32_t)generation;
    restore_put(s, ROW_enrolment, row);
    return 0;
}

static int by_id(const void *a, const void *b)
{
    int64_t x = (*(struct change *const *)a)->id;
    int64_t y = (*(struct change *const *)b)->id;
    return (x > y) - (x < y);
}

static void count_seat(struct setting_back *s, int64_t room)
{
    struct change wanted = {.id = room};
    struct change *key = &wanted;
    struct change **found = bsearch(&key, s->rooms, s->n_rooms, sizeof(*s->rooms), by_id);
    if (found)
        s->seats[found - s->rooms]++;
}

/* As many as sit there by these rows, and no more. */
static void close_rooms(struct setting_back *s)
{
    size_t at = 0;
    qsort(s->rooms, s->n_rooms, sizeof(*s->rooms), by_id);
    for (struct change *c = NULL; (c = map_next(&s->core->staged, &at));) {
        if (c->kind == ROW_room_seat && !c->gone)
            count_seat(s, c->room_seat.room);
    }
    for (size_t i = 0; i < s->n_rooms; i++) {
        struct row_room *row = &s->rooms[i]->room;
        if (row->state == ROOM_ENDED || row->max_players <= s->seats[i])
            continue;
        row->max_players = s->seats[i];
        restore_put(s, ROW_room, row);
    }
}

static void note_epoch(struct setting_back *s, int64_t epoch)
{
    int64_t least = epoch;
    for (size_t i = 0; i < s->n_epochs; i++) {
        int64_t other = s->epochs[i];
        if (other < least) {
            s->epochs[i] = least;
            least = other;
        }
    }
    if (s->n_epochs < RESTORES_KEPT - 1) {
        s->epochs[s->n_epochs++] = least;
        return;
    }
    change_encode_gone(&s->out->changes, ROW_restore, least);
    s->out->n_changes++;
}

static int look_at_rows(struct setting_back *s)
{
    struct core *core = s->core;
    size_t at = 0;
    int err = 0;
    for (struct change *c = NULL; !err && (c = map_next(&core->staged, &at));) {
        if (c->kind == ROW_counter && (c->counter.id < 0 || c->counter.id >= ROW_KINDS))
            err = ERR_FORMAT;
        else if (c->kind == ROW_counter)
            core->counter_rows[c->counter.id] = c->counter;
        else if (c->kind == ROW_enrolment)
            err = move_generation(s, &c->enrolment);
        else if (c->kind == ROW_restore)
            note_epoch(s, c->restore.id);
        else if (c->kind == ROW_room && !c->gone)
            s->rooms[s->n_rooms++] = c;
    }
    return err;
}

/* The time in seconds: greater than any that began before, whatever these rows know of those. */
static int64_t next_epoch(const struct setting_back *s)
{
    int64_t newest = s->how->wall_ms / 1000 - 1;
    for (size_t i = 0; i < s->n_epochs; i++)
        newest = s->epochs[i] > newest ? s->epochs[i] : newest;
    size_t at = 0;
    for (const struct change *c = NULL;
         s->how->before && (c = map_next(&s->how->before->staged, &at));) {
        if (c->kind == ROW_restore && c->id > newest)
            newest = c->id;
    }
    return newest + 1;
}

/* Far behind all that a reader can have seen, so that he finds a gap. */
static int next_batch(const struct setting_back *s, int64_t *ret)
{
    int64_t seq = s->how->seq;
    int err = go_ahead(s, &wide, &seq);
    if (s->how->before && s->how->before_seq + wide.at_once > seq)
        seq = s->how->before_seq + wide.at_once;
    *ret = seq + 1;
    return err || seq >= wide.end ? ERR_TOO_MANY : 0;
}

static void put_audit(struct setting_back *s)
{
    struct row_audit row = {
        .id = s->core->counter_rows[ROW_audit].next,
        .at_wall_ms = s->how->wall_ms,
        .verb = OPERATE_RESTORE,
    };
    (void)str_copy(row.who, sizeof(row.who), s->how->who);
    (void)snprintf(row.detail, sizeof(row.detail),
                   "batch %lld; what was done in the %lld s before is not known here",
                   (long long)s->how->seq, (long long)s->lost_s);
    s->core->counter_rows[ROW_audit].next++;
    restore_put(s, ROW_audit, &row);
    restore_put(s, ROW_counter, &s->core->counter_rows[ROW_audit]);
}

static int write_back(struct setting_back *s, int64_t *ret_epoch)
{
    struct core *core = s->core;
    int64_t batch_seq = 0;
    restore_end_begun(s);
    int err = look_at_rows(s);
    int64_t first_lost = core->counter_rows[ROW_server].next;
    struct row_restore row = {
        .id = next_epoch(s),
        .server_from = s->begun_from && s->begun_from < first_lost ? s->begun_from : first_lost,
        .at_core_ms = s->how->then.core_ms,
        .at_wall_ms = s->how->wall_ms,
    };
    if (!err)
        err = move_counters(s);
    if (!err)
        err = next_batch(s, &batch_seq);
    if (err)
        return err;
    row.server_to = core->counter_rows[ROW_server].next;
    close_rooms(s);
    put_audit(s);
    restore_put(s, ROW_restore, &row);
    s->out->seq = batch_seq;
    s->out->core_ms = s->how->then.core_ms;
    s->out->wall_ms = s->how->then.wall_ms;
    *ret_epoch = row.id;
    return 0;
}

int core_restore(struct core *core, const struct core_back *how, struct batch *batch,
                 int64_t *ret_epoch)
{
    struct setting_back s = {.core = core, .out = batch, .how = how};
    int64_t lost_ms = how->wall_ms - how->then.wall_ms;
    s.lost_s = lost_ms > 0 ? lost_ms / 1000 : 0;
    s.rooms = xcalloc(core->staged.len + 1, sizeof(struct change *));
    s.seats = xcalloc(core->staged.len + 1, sizeof(int32_t));
    int err = write_back(&s, ret_epoch);
    free(s.rooms);
    free(s.seats);
    return err;
}

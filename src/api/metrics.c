#include "api/metrics_parts.h"

#include "base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOMS_EACH_TICK = 512, HTTP_CONFLICT = 409 };

const char *const retry_names[RETRIES] = {"refused", "timed_out", "dropped", "not_ready", "other"};

const char *const how_names[HOWS] = {"rejoin", "friend", "room", "spawn", "queue", "other"};

static struct series *add_series(struct metrics *m, int32_t fleet_id, int8_t region)
{
    struct series *s = xcalloc(1, sizeof(*s));
    s->fleet_id = fleet_id;
    s->region = region;
    m->series = xrealloc(m->series, (m->n_series + 1) * sizeof(struct series *));
    m->series[m->n_series++] = s;
    map_put(&m->by_place, map_pair(fleet_id, region), s);
    return s;
}

struct series *series_of(struct metrics *m, int32_t fleet_id, int8_t region)
{
    if (m->last->fleet_id == fleet_id && m->last->region == region)
        return m->last;
    struct series *s = map_get(&m->by_place, map_pair(fleet_id, region));
    if (!s)
        s = m->n_series < SERIES_MAX ? add_series(m, fleet_id, region) : m->nowhere;
    m->last = s;
    return s;
}

struct metrics *metrics_new(int64_t wall_ms)
{
    struct metrics *m = xcalloc(1, sizeof(*m));
    m->started_wall_ms = wall_ms;
    m->nowhere = add_series(m, 0, -1);
    m->last = m->nowhere;
    recent_init(&m->recent, clock_monotonic_us());
    return m;
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_series; i++)
        free(m->series[i]);
    for (size_t i = 0; i < m->n_operations; i++)
        free(m->operations[i]);
    process_walk_done(&m->descriptors);
    map_done(&m->by_place);
    map_done(&m->by_operation);
    free(m->series);
    free(m);
}

void metrics_watch(struct metrics *m, const struct metrics_sources *sources)
{
    m->sources = *sources;
}

const struct metrics_sources *metrics_sources(const struct metrics *m)
{
    return &m->sources;
}

const struct core *metrics_core(const struct metrics *m)
{
    return m->sources.pipeline ? pipeline_core(m->sources.pipeline) : NULL;
}

/* ── what core decided ─────────────────────────────────────────────────────────────────────── */

static size_t error_of(int32_t err)
{
    return err <= 0 && err > -ERR_ORDER_END ? (size_t)-err : ERR_ORDER_INTERNAL;
}

/* -1 when it is not known since when: the request came before this process. */
static int64_t elapsed_us(int64_t since_us, int64_t now_us)
{
    if (since_us == 0)
        return -1;
    return now_us > since_us ? now_us - since_us : 0;
}

static void observe(struct histogram *h, int64_t us)
{
    if (us >= 0)
        histogram_add(h, &histogram_durations, us);
}

/* People load and stand in line for longer than any answer takes. */
static void observe_wait(struct histogram *h, int64_t us)
{
    if (us >= 0)
        histogram_add(h, &histogram_waits, us);
}

static void answered(struct metrics *m, struct series *s, const struct effect *e,
                     enum result result, int64_t now_us)
{
    int64_t us = elapsed_us(e->asked_us, now_us);
    s->results[result]++;
    observe(&s->durations[result], us);
    if (result == RESULT_DONE)
        minute_done(&m->recent.allocations, now_us, us);
    else if (result == RESULT_FAILED)
        minute_failed(&m->recent.allocations, now_us);
}

static void done(struct metrics *m, struct series *s, const struct effect *e, int64_t now_us)
{
    answered(m, s, e, RESULT_DONE, now_us);
    observe(&s->acks, elapsed_us(e->since_us, now_us));
    if (e->max > 0)
        histogram_add(&s->chosen_load, &histogram_ratios, (int64_t)e->load * 1000 / e->max);
}

static enum retry retry_of(struct str outcome)
{
    for (int i = 0; i < RETRY_OTHER; i++) {
        if (str_eq(outcome, str_of(retry_names[i])))
            return (enum retry)i;
    }
    return RETRY_OTHER;
}

/* The name of a region, also of a note that has only its number. */
static void copy_region(const struct metrics *m, const struct effect *e, char dst[16])
{
    const struct core *core = metrics_core(m);
    struct str name = e->region;
    if (name.len == 0 && core && e->region_code >= 0)
        name = str_of(core_config(core)->regions[e->region_code].name);
    (void)str_copy(dst, 16, name);
}

static void remember_refusal(struct metrics *m, const struct effect *e, int64_t wall_ms)
{
    struct metrics_refusal refusal = {
        .wall_ms = wall_ms,
        .err = e->err,
        .lobby = e->lobby,
        .server = e->server_id,
        .ticket = e->ticket,
    };
    (void)str_copy(refusal.chat, sizeof(refusal.chat), e->chat);
    copy_region(m, e, refusal.region);
    recent_refused(&m->recent, &refusal);
}

static void failed(struct metrics *m, struct series *s, const struct effect *e, int64_t now_us,
                   int64_t wall_ms)
{
    if (e->session == 0) /* nobody could be asked, so it was never said to be open */
        s->requests++;
    s->failed[error_of(e->err)]++;
    recent_reason(&m->recent, now_us, e->err);
    answered(m, s, e, RESULT_FAILED, now_us);
    remember_refusal(m, e, wall_ms);
}

/* These three are reasons of rooms that never were open. */
static void room_ended(struct series *s, int8_t reason)
{
    s->rooms_ended[reason >= 0 && reason < END_REASONS ? reason : END_NONE]++;
    s->spawned[SPAWNED_FAILED] += reason == END_SPAWN_FAILED;
    s->spawned[SPAWNED_TIMED_OUT] += reason == END_SPAWN_TIMEOUT;
    s->spawned[SPAWNED_GIVEN_UP] += reason == END_GIVEN_UP;
}

void metrics_placed(struct metrics *m, const struct effect *e, int64_t now_us)
{
    m->placed[error_of(e->err)]++;
    if (e->err == 0) {
        minute_done(&m->recent.joins, now_us, -1);
        return;
    }
    minute_failed(&m->recent.joins, now_us);
    recent_reason(&m->recent, now_us, e->err);
}

/* Tickets for rooms are counted apart: a spawn takes seconds where a server that runs takes none,
 * and one figure for both would say nothing of either. */
static bool is_for_room(const struct effect *e)
{
    bool ticket = e->note == NOTE_TICKET_OPENED || e->note == NOTE_TICKET_DONE ||
                  e->note == NOTE_TICKET_FAILED || e->note == NOTE_TICKET_RETRY;
    return ticket && e->lobby == 0;
}

static void join_note(struct metrics *m, struct series *s, const struct effect *e, int64_t now_us,
                      int64_t wall_ms)
{
    if (e->note == NOTE_TICKET_DONE) {
        s->joins[RESULT_DONE]++;
        observe(&s->join_durations, elapsed_us(e->asked_us, now_us));
    } else if (e->note == NOTE_TICKET_FAILED) {
        s->joins[RESULT_FAILED]++;
        s->joins_failed[error_of(e->err)]++;
        remember_refusal(m, e, wall_ms);
    }
}

/* ── places for players ────────────────────────────────────────────────────────────────────── */

static enum placed_how how_of(struct str word)
{
    int i = 0;
    while (i < HOW_OTHER && !str_eq(word, str_of(how_names[i])))
        i++;
    return (enum placed_how)i;
}

static void waited(struct player_figures *p, enum queue_end end, const struct effect *e)
{
    if (e->wall_ms > 0)
        histogram_add(&p->waits[end], &histogram_waits, e->wall_ms * 1000);
}

static void player_done(struct player_figures *p, const struct effect *e, int64_t now_us)
{
    enum placed_how how = how_of(e->region);
    p->done[how]++;
    p->friends[JOIN_JOINED] += how == HOW_FRIEND;
    observe(&p->durations, elapsed_us(e->asked_us, now_us));
    waited(p, QUEUE_SERVED, e);
}

static void player_failed(struct player_figures *p, const struct effect *e)
{
    p->failed[error_of(e->err)]++;
    p->friends[JOIN_UNAVAILABLE] += e->err == ERR_FRIEND_UNAVAILABLE;
    if (!e->on)
        return;
    p->abandoned[error_of(e->err)]++;
    waited(p, QUEUE_ABANDONED, e);
}

/* Of the last minute: how long one took says something of us only when he did not have to wait for
 * a place, and one that its own sender took back did not fail. */
static void player_counted(struct recent *r, const struct effect *e, int64_t now_us)
{
    bool waited_in_line = e->wall_ms > 0;
    if (e->note == NOTE_ALLOCATION_DONE)
        minute_done(&r->allocations, now_us, waited_in_line ? -1 : elapsed_us(e->asked_us, now_us));
    else if (e->note == NOTE_ALLOCATION_FAILED && err_status(e->err) != HTTP_CONFLICT)
        minute_failed(&r->allocations, now_us);
    if (e->note == NOTE_ALLOCATION_FAILED)
        recent_reason(r, now_us, e->err);
}

/* A line of its own has a room only for those who want to join somebody there. */
static void player_note(struct player_figures *p, const struct effect *e, int64_t now_us)
{
    if (e->note == NOTE_ALLOCATION_DONE)
        player_done(p, e, now_us);
    else if (e->note == NOTE_ALLOCATION_FAILED)
        player_failed(p, e);
    else if (e->note == NOTE_ALLOCATION_QUEUED)
        p->friends[JOIN_QUEUED] += e->session != 0;
    else if (e->note == NOTE_ALLOCATION_UNKNOWN_FRIENDS)
        p->friends[JOIN_NOT_FOUND]++;
}

/* ── lobbies ───────────────────────────────────────────────────────────────────────────────── */

static void lobby_note(struct lobby_figures *f, const struct effect *e, int64_t now_us)
{
    if (e->note == NOTE_LOBBY_CREATED) {
        f->players_asked += (uint64_t)e->load;
    } else if (e->note == NOTE_LOBBY_STARTED) {
        f->started++;
        f->players_started += (uint64_t)e->load;
        observe_wait(&f->starts, elapsed_us(e->since_us, now_us));
        observe_wait(&f->wholes, elapsed_us(e->asked_us, now_us));
    } else if (e->note == NOTE_LOBBY_ABORTED) {
        bool known = e->reason >= 0 && e->reason < LOBBY_CAUSES;
        f->aborted[known ? e->reason : LOBBY_CAUSE_NONE]++;
        f->unallocated[error_of(e->err)] += e->reason == LOBBY_CAUSE_ALLOCATION;
    }
}

void metrics_lobbies(const struct metrics *m, struct metrics_lobbies *ret)
{
    *ret = (struct metrics_lobbies){0};
    for (size_t i = 0; i < m->n_series; i++) {
        const struct lobby_figures *f = &m->series[i]->lobbies;
        ret->started += (int64_t)f->started;
        for (int cause = 0; cause < LOBBY_CAUSES; cause++)
            ret->aborted += (int64_t)f->aborted[cause];
    }
}

void metrics_note(struct metrics *m, const struct effect *e, int64_t now_us, int64_t wall_ms)
{
    /* What belongs to no fleet, a host say, is of no place of a fleet either. */
    struct series *s = series_of(m, e->fleet_id, e->fleet_id != 0 ? e->region_code : -1);
    s->notes[e->note]++;
    if (is_for_room(e)) {
        join_note(m, s, e, now_us, wall_ms);
        return;
    }
    switch (e->note) {
    case NOTE_TICKET_OPENED:
        s->requests++;
        break;
    case NOTE_TICKET_DONE:
        done(m, s, e, now_us);
        break;
    case NOTE_TICKET_FAILED:
        failed(m, s, e, now_us, wall_ms);
        break;
    case NOTE_TICKET_CANCELLED:
        if (e->err != 0) /* else it had been answered, and a match was given up */
            answered(m, s, e, RESULT_CANCELLED, now_us);
        break;
    case NOTE_TICKET_RETRY:
        s->retries[retry_of(e->text)]++;
        break;
    case NOTE_MATCH_READY:
        observe(&s->readies, elapsed_us(e->since_us, now_us));
        break;
    case NOTE_MATCH_ENDED:
        s->ended[e->reason >= 0 && e->reason < END_REASONS ? e->reason : END_NONE]++;
        break;
    case NOTE_ROOM_OPEN:
        s->spawned[SPAWNED_OPEN]++;
        observe(&s->spawns, elapsed_us(e->asked_us, now_us));
        break;
    case NOTE_ROOM_ENDED:
        room_ended(s, e->reason);
        break;
    case NOTE_SEAT_LEFT:
        s->expired += str_eq(e->text, STR("the reservation ran out"));
        s->players.moves += str_eq(e->text, STR("moved to another room"));
        break;
    case NOTE_ALLOCATION_QUEUED:
    case NOTE_ALLOCATION_DONE:
    case NOTE_ALLOCATION_FAILED:
    case NOTE_ALLOCATION_UNKNOWN_FRIENDS:
        player_note(&s->players, e, now_us);
        player_counted(&m->recent, e, now_us);
        break;
    case NOTE_LOBBY_CREATED:
    case NOTE_LOBBY_STARTED:
    case NOTE_LOBBY_ABORTED:
        lobby_note(&s->lobbies, e, now_us);
        break;
    case NOTE_REFUSED:
        s->refused[error_of(e->err)]++;
        recent_reason(&m->recent, now_us, e->err);
        remember_refusal(m, e, wall_ms);
        break;
    case NOTE_STOPPED:
        m->stopped_ms += e->wall_ms;
        break;
    default:
        break;
    }
}

void metrics_round_trip(struct metrics *m, conn_id conn, int64_t us)
{
    const struct core *core = metrics_core(m);
    struct view_peer peer;
    if (!core || !view_peer(core, conn, &peer) || peer.role != ROLE_SERVER)
        return;
    observe(&series_of(m, (int32_t)peer.fleet_id, peer.region)->round_trip, us);
}

/* ── store and HTTP ────────────────────────────────────────────────────────────────────────── */

void metrics_submitted(struct metrics *m, const struct store_batch *batch, int64_t now_us)
{
    m->submitted_us[m->n_submitted++] = now_us;
    histogram_add(&m->batch_bytes, &histogram_bytes, (int64_t)batch->len);
    histogram_add(&m->batch_changes, &histogram_counts, (int64_t)batch->n_changes);
    histogram_add(&m->batch_effects, &histogram_counts, (int64_t)batch->n_effects);
}

void metrics_committed(struct metrics *m, int result, int64_t us, int64_t now_us)
{
    observe(&m->commits, us);
    if (m->n_submitted > 0)
        m->n_submitted--;
    memmove(m->submitted_us, m->submitted_us + 1,
            (size_t)m->n_submitted * sizeof(m->submitted_us[0]));
    if (result == 0) {
        m->committed_us = now_us;
        minute_done(&m->recent.commits, now_us, us);
    } else {
        m->commits_failed++;
        minute_failed(&m->recent.commits, now_us);
    }
}

int64_t metrics_commit_under_way_us(const struct metrics *m, int64_t now_us)
{
    return m->n_submitted > 0 ? now_us - m->submitted_us[0] : 0;
}

/* The rare way: a name of another address may be a known one; at the limit the last is "other". */
static struct http_operation *add_operation(struct metrics *m, const char *name)
{
    struct http_operation *o = NULL;
    if (m->n_operations >= METRICS_OPERATIONS_MAX - 1)
        name = "other";
    for (size_t i = 0; i < m->n_operations && !o; i++)
        o = strcmp(m->operations[i]->name, name) == 0 ? m->operations[i] : NULL;
    if (!o) {
        o = xcalloc(1, sizeof(*o));
        o->name = name;
        m->operations[m->n_operations++] = o;
    }
    return o;
}

static struct http_operation *operation_of(struct metrics *m, const char *name)
{
    struct http_operation *o = map_get(&m->by_operation, (uint64_t)(uintptr_t)name);
    if (!o) {
        o = add_operation(m, name);
        if (m->by_operation.len < METRICS_OPERATIONS_MAX)
            map_put(&m->by_operation, (uint64_t)(uintptr_t)name, o);
    }
    return o;
}

static struct http_status *status_of(struct http_operation *o, int status)
{
    size_t i = 0;
    while (i < o->n_statuses && o->statuses[i].status != status)
        i++;
    if (i < o->n_statuses)
        return &o->statuses[i];
    if (o->n_statuses == METRICS_STATUSES_MAX)
        return &o->statuses[METRICS_STATUSES_MAX - 1];
    bool last = o->n_statuses == METRICS_STATUSES_MAX - 1;
    o->statuses[o->n_statuses].status = last ? 0 : status;
    return &o->statuses[o->n_statuses++];
}

void metrics_http(struct metrics *m, const char *operation, int status, int64_t us)
{
    struct http_operation *o = operation_of(m, operation ? operation : "unknown");
    status_of(o, status)->n++;
    observe(&o->durations, us);
}

/* ── agents ────────────────────────────────────────────────────────────────────────────────── */

static struct agent_figures *agent_calls_of(struct metrics *m, const char *what)
{
    size_t i = 0;
    while (i < m->n_agent_calls && strcmp(m->agent_calls[i].what, what) != 0)
        i++;
    assert(i < METRICS_AGENT_CALLS_MAX);
    if (i == m->n_agent_calls)
        m->agent_calls[m->n_agent_calls++].what = what;
    return &m->agent_calls[i];
}

void metrics_agent_call(struct metrics *m, const char *what, int status, int64_t us)
{
    struct agent_figures *f = agent_calls_of(m, what);
    enum agent_result result = AGENT_CALL_REFUSED;
    if (status == 0)
        result = AGENT_CALL_UNANSWERED;
    else if (status >= 200 && status < 300)
        result = AGENT_CALL_DONE;
    f->results[result]++;
    observe(&f->durations, us);
}

void metrics_agent_events(struct metrics *m, size_t n)
{
    histogram_add(&m->event_batches, &histogram_counts, (int64_t)n);
}

/* ── the loop ──────────────────────────────────────────────────────────────────────────────── */

void metrics_turn(struct metrics *m, int64_t us, int64_t now_us)
{
    histogram_add(&m->turns, &histogram_durations, us);
    int64_t slot = now_us / LONGEST_SLOT_US;
    struct longest *longest = &m->longest[slot % LONGEST_SLOTS];
    if (longest->slot != slot)
        *longest = (struct longest){.slot = slot};
    if (longest->us < us)
        longest->us = us;
}

/* ── uptimes ───────────────────────────────────────────────────────────────────────────────── */

/* Upper ends of all but the last; scrape.c has their names. */
static const int64_t uptime_ends_ms[UPTIMES - 1] = {
    60 * 1000L,       600 * 1000L,       3600 * 1000L,
    6 * 3600 * 1000L, 24 * 3600 * 1000L, 7 * 24 * 3600 * 1000L,
};

static void look_at(struct metrics *m, const struct view_server *server, int64_t wall_ms)
{
    if (!server->connected)
        return;
    int64_t up_ms = wall_ms - server->connected_wall_ms;
    if (up_ms < 0)
        up_ms = 0;
    int i = 0;
    while (i < UPTIMES - 1 && up_ms >= uptime_ends_ms[i])
        i++;
    struct uptimes *u = &series_of(m, (int32_t)server->fleet_id, server->region)->looking;
    u->counts[i]++;
    u->servers++;
    u->sum_ms += up_ms;
}

static void looked_at_all(struct metrics *m)
{
    for (size_t i = 0; i < m->n_series; i++) {
        m->series[i]->uptimes = m->series[i]->looking;
        m->series[i]->looking = (struct uptimes){0};
    }
    m->looked_at = 0;
}

static int32_t servers_in(const struct core *core)
{
    struct core_counts counts;
    core_count(core, &counts);
    return counts.servers[0] + counts.servers[1] + counts.servers[2] + counts.servers[3];
}

static void look_at_room(struct metrics *m, const struct view_room *room)
{
    struct room_figures *f = &series_of(m, (int32_t)room->fleet_id, room->region)->rooms_looking;
    f->rooms[LOOK_STARTING] += strcmp(room->state, "starting") == 0;
    f->rooms[LOOK_OPEN] += strcmp(room->state, "open") == 0;
    f->rooms[LOOK_ENDING] += strcmp(room->state, "ending") == 0;
    f->reserved += room->reserved;
    f->taken += room->taken;
}

static void looked_at_all_rooms(struct metrics *m)
{
    for (size_t i = 0; i < m->n_series; i++) {
        m->series[i]->rooms = m->series[i]->rooms_looking;
        m->series[i]->rooms_looking = (struct room_figures){0};
    }
    m->room_looked_at = 0;
}

static void look_at_rooms(struct metrics *m, const struct core *core)
{
    struct view_room room;
    for (int i = 0; i < ROOMS_EACH_TICK; i++) {
        m->room_looked_at = core_next(core, ROW_room, m->room_looked_at);
        if (m->room_looked_at == 0) {
            looked_at_all_rooms(m);
            return;
        }
        if (view_room(core, m->room_looked_at, &room))
            look_at_room(m, &room);
    }
}

/* A few each time: to look at 100,000 servers at once would hold up everybody for tens of
 * milliseconds. All are seen within 256 ticks. */
void metrics_tick(struct metrics *m, int64_t wall_ms)
{
    const struct core *core = metrics_core(m);
    struct view_server server;
    process_step(&m->descriptors);
    if (!core)
        return;
    look_at_rooms(m, core);
    if (m->looked_at == 0)
        m->look_each_tick = servers_in(core) / 256 + 16;
    for (int32_t i = 0; i < m->look_each_tick; i++) {
        m->looked_at = core_next(core, ROW_server, m->looked_at);
        if (m->looked_at == 0) {
            looked_at_all(m);
            return;
        }
        if (view_server(core, m->looked_at, &server))
            look_at(m, &server, wall_ms);
    }
}

/* ── the recent past ───────────────────────────────────────────────────────────────────────── */

const struct recent *metrics_recent(const struct metrics *m)
{
    return &m->recent;
}

size_t metrics_refusals(const struct metrics *m, struct metrics_refusal ret[RECENT_REFUSALS])
{
    return recent_refusals(&m->recent, ret);
}

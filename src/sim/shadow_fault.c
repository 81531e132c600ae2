/* Whose fault a failed start is said to be, held against what really happened. A host is passed
 * over only when its agent refused, was out of reach or was silent, or when servers of both fleets
 * failed there since anything worked; a version only when a start of its own failed there, and not
 * for what one player alone asked for; attempts of one outage count once; and no server is told
 * that it took too long when it was the control plane that stood still (all of it I12). */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"
#include "core/row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A server that a host was told to start. */
struct sim_start {
    int64_t server;
    bool tower;
    bool own;          /* with its fleet's own settings … */
    uint64_t settings; /* … or with a player's */
    char account[65];
    bool wrong; /* its agent refused, or could not be reached */
    int64_t slept_ms;
    int64_t reign;
};

static bool start_is_own(struct str settings)
{
    return settings.len == 0 || str_eq(settings, STR("{}"));
}

void shadow_faults_told(struct world *w, const struct spawn *spawn)
{
    if (map_get(&w->starts, (uint64_t)spawn->server))
        return;
    struct sim_start *s = xcalloc(1, sizeof(*s));
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)spawn->session);
    const struct row_room_ticket *ticket =
        room ? map_get(&w->shadow_asked, (uint64_t)room->ticket) : NULL;
    *s = (struct sim_start){
        .server = spawn->server,
        .tower = str_eq(spawn->fleet, STR("tower")),
        .own = start_is_own(spawn->settings),
        .settings = str_hash(0, spawn->settings),
        .slept_ms = w->leader->slept_ms,
        .reign = w->reign,
    };
    (void)str_copy(s->account, sizeof(s->account), str_of(ticket ? ticket->account : ""));
    map_put(&w->starts, (uint64_t)s->server, s);
}

void shadow_faults_wrong(struct world *w, int64_t server)
{
    struct sim_start *s = map_get(&w->starts, (uint64_t)server);
    if (s)
        s->wrong = true;
}

static struct machine *machine_with_host(struct world *w, int64_t host)
{
    for (int i = 0; i < w->n_machines; i++) {
        if (w->machines[i].host == host)
            return &w->machines[i];
    }
    return NULL;
}

/* The attempt began before the last failure that counted was known: it is of the same outage. What
 * is noted now was decided after the batch before was sealed. Within one millisecond a host may
 * fail, be well again and be asked anew, so an attempt of that millisecond may count. */
static bool outage_counts_twice(const struct world *w, const struct effect *e,
                                int64_t *blamed_core_ms)
{
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)e->session);
    bool again = room && *blamed_core_ms > 0 && room->created_core_ms < *blamed_core_ms;
    *blamed_core_ms = w->before_core_ms;
    return again;
}

static void fault_judge_host(struct world *w, const struct effect *e)
{
    struct machine *m = machine_with_host(w, e->object);
    const struct sim_start *s = map_get(&w->starts, (uint64_t)(int64_t)e->server_id);
    if (!m || !s)
        return;
    bool both = str_eq(e->text, STR("servers of two fleets do not start there"));
    bool silent = m->silent_ms == w->now_ms;
    if (both ? m->faulted != 3 : !s->wrong && !silent)
        world_broken(w,
                     "I12: host %d is passed over for server %" PRId64 ", which is not its fault",
                     m->index, s->server);
    if (outage_counts_twice(w, e, &m->blamed_core_ms))
        world_broken(w, "I12: one outage of host %d counts twice", m->index);
}

/* True when somebody else has asked with other settings. */
static bool start_is_not_alone(const struct world *w, const struct sim_start *s)
{
    size_t at = 0;
    for (const struct sim_start *o = NULL; (o = map_next(&w->starts, &at));) {
        if (!o->own && o->tower == s->tower && o->settings != s->settings &&
            strcmp(o->account, s->account) != 0)
            return true;
    }
    return false;
}

static void fault_judge_version(struct world *w, const struct effect *e)
{
    struct machine *m = machine_with_host(w, e->object);
    const struct sim_start *s = map_get(&w->starts, (uint64_t)(int64_t)e->server_id);
    if (!m || !s)
        return;
    if (w->arena_id && s->tower == (e->fleet_id == w->arena_id))
        world_broken(w, "I12: a version is blamed for server %" PRId64 " of another", s->server);
    if (!s->own && !start_is_not_alone(w, s))
        world_broken(w, "I12: what %s alone asked for is held against the version", s->account);
    if (outage_counts_twice(w, e, &m->blamed_there_core_ms[s->tower]))
        world_broken(w, "I12: one outage of a version on host %d counts twice", m->index);
    m->faulted |= s->tower ? 2 : 1;
}

/* Its time is what we were awake of it. */
static void fault_judge_late(struct world *w, const struct effect *e)
{
    const struct row_room *room = map_get(&w->shadow_rooms, (uint64_t)e->session);
    const struct sim_start *s = room ? map_get(&w->starts, (uint64_t)room->server) : NULL;
    const struct fleet_config *fleet = &w->config.fleets[s && s->tower ? w->tower : 1];
    if (!s || s->reign != w->reign || e->fleet_id != room->fleet || !w->arena_id ||
        (!s->tower && room->fleet != w->arena_id))
        return;
    int64_t began_ms = room->created_core_ms - w->core_offset_ms;
    int64_t awake_ms = w->now_ms - began_ms - (w->leader->slept_ms - s->slept_ms);
    if (awake_ms * w->leader->clock_permille / 1000 < fleet->spawn_ms)
        world_broken(w, "I12: server %" PRId64 " took too long after %" PRId64 " ms", s->server,
                     awake_ms);
}

void shadow_faults_judge(struct world *w, const struct effect *e)
{
    struct machine *m = machine_with_host(w, e->object);
    if (e->note == NOTE_HOST_SILENT && m)
        m->silent_ms = w->now_ms;
    else if (e->note == NOTE_ROOM_OPEN && m)
        m->faulted = 0;
    else if (e->note == NOTE_HOST_BACKOFF)
        fault_judge_host(w, e);
    else if (e->note == NOTE_VERSION_BACKOFF)
        fault_judge_version(w, e);
    else if (e->note == NOTE_TICKET_FAILED && e->err == ERR_SPAWN_TIMEOUT)
        fault_judge_late(w, e);
}

/* What is known of failures is forgotten. */
void shadow_faults_crashed(struct world *w)
{
    for (int i = 0; i < w->n_machines; i++) {
        struct machine *m = &w->machines[i];
        m->blamed_core_ms = m->blamed_there_core_ms[0] = m->blamed_there_core_ms[1] = 0;
    }
}

void shadow_faults_done(struct world *w)
{
    size_t at = 0;
    for (void *s = NULL; (s = map_next(&w->starts, &at));)
        free(s);
    map_done(&w->starts);
}

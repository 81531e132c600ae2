/* How Muster is: for load balancers, Prometheus and people. What monitors ask is answered without
 * core's help, so that it is answered when the disk hangs, too. */
#include "api/agones.h"
#include "api/bus.h"
#include "api/call.h"
#include "api/chat_client.h"
#include "api/chat_manager.h"
#include "api/chat_server.h"
#include "api/checkup_look.h"
#include "api/cluster.h"
#include "api/openapi.h"
#include "api/resource.h"
#include "base/clock.h"
#include "base/err.h"

#include <math.h>
#include <string.h>

void handle_health(struct call *c)
{
    call_render(c, &health_shape, &(struct health_answer){.status = "ok"});
    call_answer(c);
}

static const char *store_word(const struct call *c)
{
    bool writable = pipeline_state(c->rest->doors->pipeline) == PIPELINE_WRITABLE;
    return writable ? "writable" : "read_only";
}

static const char *door_address(const struct doors *d, const struct port *port,
                                char dst[ADDRESS_MAX])
{
    dst[0] = '\0';
    for (size_t i = 0; i < d->n; i++) {
        if (d->all[i].port == port && d->all[i].listener)
            listener_address(d->all[i].listener, dst);
    }
    return dst;
}

static void render_ready(struct call *c, const char *store)
{
    struct doors *d = c->rest->doors;
    char http[ADDRESS_MAX], server[ADDRESS_MAX], manager[ADDRESS_MAX];
    char client[ADDRESS_MAX];
    struct ready_answer answer = {
        .store = store,
        .config_digest = c->rest->config_digest,
        .ports = {.http = rest_address(c->rest, http),
                  .server = door_address(d, &chat_server_port, server),
                  .manager = door_address(d, &chat_manager_port, manager),
                  .client = door_address(d, &chat_client_port, client)},
    };
    call_render(c, &ready_shape, &answer);
}

/* Could it lead at once? */
static void ready_as_standby(struct call *c)
{
    const struct cluster_standby *standby = c->rest->standby;
    char why[CLUSTER_WHY_MAX];
    if (standby->is_ready(standby->user, why))
        render_ready(c, "followed");
    else
        call_refuse(c, ERR_NOT_READY, NULL, "%s", why);
    call_answer(c);
}

void handle_ready(struct call *c)
{
    const char *away = NULL;
    if (c->rest->standby) {
        ready_as_standby(c);
        return;
    }
    if (pipeline_state(c->rest->doors->pipeline) != PIPELINE_WRITABLE) {
        call_refuse(c, ERR_NOT_READY, NULL,
                    "The store is read-only: commits fail, so nothing can be changed.");
    } else if (!buses_are_ready(c->rest->buses, &away)) {
        call_refuse(c, ERR_NOT_READY, NULL, "%s: nobody can ask for an allocation through it.",
                    away);
    } else if (!agones_is_ready(c->rest->agones, &away)) {
        call_refuse(c, ERR_NOT_READY, NULL,
                    "Kubernetes is out of sight, so nothing is placed there: %s.", away);
    } else {
        render_ready(c, store_word(c));
    }
    call_answer(c);
}

void handle_metrics(struct call *c)
{
    buf_clear(&c->body);
    metrics_render(c->rest->metrics, &c->body);
    call_answer_as(c, METRICS_CONTENT_TYPE);
}

void handle_openapi(struct call *c)
{
    struct buf *kept = &c->rest->openapi;
    if (kept->len == 0)
        openapi_write(kept);
    call_answer_shared(c, (struct str){(const char *)kept->data, kept->len});
}

/* ── status ────────────────────────────────────────────────────────────────────────────────── */

static void sum_fleets(const struct core *core, struct view_group *ret)
{
    struct view_fleet fleet;
    int64_t id = 0;
    while ((id = core_next(core, ROW_fleet, id))) {
        if (!view_fleet(core, id, &fleet))
            continue;
        for (int i = 0; i < 4; i++)
            ret->servers[i] += fleet.group.servers[i];
        ret->slots_used += fleet.group.slots_used;
        ret->slots_total += fleet.group.slots_total;
    }
}

static void count_hosts(const struct core *core, struct hosts_answer *ret)
{
    struct view_host host;
    int64_t id = 0;
    while ((id = core_next(core, ROW_host, id))) {
        if (view_host(core, id, &host))
            ret->count[host.passed_over]++;
    }
}

static void count_rooms(const struct core *core, struct rooms_answer *ret)
{
    struct view_room room;
    int64_t id = 0;
    while ((id = core_next(core, ROW_room, id))) {
        if (!view_room(core, id, &room))
            continue;
        ret->starting += strcmp(room.state, "starting") == 0;
        ret->open += strcmp(room.state, "open") == 0;
        ret->ending += strcmp(room.state, "ending") == 0;
        ret->reserved += room.reserved;
        ret->taken += room.taken;
    }
}

static void count_queues(const struct core *core, struct queues_answer *ret)
{
    struct view_queue_place at = {0};
    struct view_queue q;
    while (view_next_queue(core, &at, &q)) {
        ret->entries += q.entries;
        ret->players += q.players;
        if (q.oldest_ms > ret->oldest_ms)
            ret->oldest_ms = q.oldest_ms;
    }
}

static void count_brokers(const struct buses *all, struct status_answer *ret)
{
    const struct bus *b = NULL;
    for (size_t i = 0; all && (b = buses_at(all, i)); i++) {
        struct bus_figures f = {0};
        b->ops->figures(b, &f);
        ret->brokers[ret->n_brokers++] = (struct broker_answer){
            .name = b->ops->name, .connected = f.connected, .lag = f.waiting, .unsent = f.unsent};
    }
}

static struct lobbies_answer count_lobbies(const struct metrics *metrics,
                                           const struct core_counts *counts)
{
    struct metrics_lobbies ever;
    metrics_lobbies(metrics, &ever);
    return (struct lobbies_answer){
        .loading = counts->lobbies_loading,
        .started = counts->lobbies_started,
        .ever_started = ever.started,
        .ever_aborted = ever.aborted,
        .clients = counts->clients,
    };
}

static double in_ms(const struct minute_figures *recent, int64_t us)
{
    return recent->done > 0 ? (double)us / 1000 : NAN;
}

static struct allocations_answer recent_allocations(const struct metrics *metrics)
{
    struct minute_figures recent;
    minute_read(&metrics_recent(metrics)->allocations, clock_monotonic_us(), &recent);
    return (struct allocations_answer){
        .per_s = recent.per_s,
        .done = recent.done,
        .failed = recent.failed,
        .p50_ms = in_ms(&recent, recent.p50_us),
        .p95_ms = in_ms(&recent, recent.p95_us),
        .p99_ms = in_ms(&recent, recent.p99_us),
    };
}

static struct joins_answer recent_joins(const struct metrics *metrics)
{
    struct minute_figures recent;
    minute_read(&metrics_recent(metrics)->joins, clock_monotonic_us(), &recent);
    return (struct joins_answer){.done = recent.done, .failed = recent.failed};
}

/* A store that keeps everything in memory has no figures of a disk. */
static struct storage_answer look_at_storage(const struct rest *r)
{
    struct minute_figures commits;
    minute_read(&metrics_recent(r->metrics)->commits, clock_monotonic_us(), &commits);
    struct storage_answer ret = {
        .commits = commits.done,
        .commit_p50_ms = in_ms(&commits, commits.p50_us),
        .commit_p99_ms = in_ms(&commits, commits.p99_us),
        .batches_waiting = pipeline_waiting(r->doors->pipeline),
        .backlog_bytes = (int64_t)pipeline_backlog(r->doors->pipeline),
    };
    if (store_figures(r->store, &ret.figures))
        ret.fold_lag = ret.figures.last_seq - ret.figures.folded_seq;
    return ret;
}

void handle_status(struct call *c)
{
    const struct rest *r = c->rest;
    const struct core *core = call_core(c);
    struct status_answer *answer = arena_alloc(&c->arguments.arena, sizeof(*answer));
    *answer = (struct status_answer){
        .version = MUSTER_VERSION,
        .started_wall_ms = r->started_wall_ms,
        .uptime_s = (r->doors->wall_ms - r->started_wall_ms) / 1000,
        .health = checkup_look(r, &c->arguments.arena),
        .store = store_word(c),
        .config_digest = r->config_digest,
        .allocations = recent_allocations(r->metrics),
        .joins = recent_joins(r->metrics),
        .storage = look_at_storage(r),
    };
    answer->n_refusals = metrics_refusals(r->metrics, answer->refusals);
    core_count(core, &answer->counts);
    sum_fleets(core, &answer->group);
    count_hosts(core, &answer->hosts);
    count_rooms(core, &answer->rooms);
    count_queues(core, &answer->queues);
    answer->lobbies = count_lobbies(r->metrics, &answer->counts);
    count_brokers(r->buses, answer);
    for (int code = 0; code < REGION_CODES; code++)
        answer->n_regions += view_region(core, (int8_t)code, &answer->regions[answer->n_regions]);
    call_render(c, &status_shape, answer);
    call_read(c);
}

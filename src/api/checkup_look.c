#include "api/checkup_look.h"

#include "api/agones.h"
#include "api/archives.h"
#include "api/bus.h"
#include "api/cluster.h"
#include "api/history.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/tls.h"
#include "store/pipeline.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)CHECKUP_BROKERS_MAX == (int)BUSES_MAX, "each bus has a place");

/* What is gathered of the fleets; sizes are known only at the end, so it is done twice: counted,
 * then written. */
struct gathered {
    struct checkup_fleet *fleets;
    size_t n_fleets;
    struct checkup_place *places;
    size_t n_places;
    struct checkup_version *quarantined;
    size_t n_quarantined;
};

static void look_at_store(const struct rest *r, int64_t now_us, struct checkup_facts *ret)
{
    struct minute_figures commits;
    struct store_figures figures;
    minute_read(&metrics_recent(r->metrics)->commits, now_us, &commits);
    ret->read_only = pipeline_state(r->doors->pipeline) != PIPELINE_WRITABLE;
    ret->commit_under_way_ms = metrics_commit_under_way_us(r->metrics, now_us) / 1000;
    ret->commits = commits.done;
    ret->commit_p50_ms = (double)commits.p50_us / 1000;
    ret->commit_p99_ms = (double)commits.p99_us / 1000;
    if (!store_figures(r->store, &figures))
        return;
    ret->fold_lag = figures.last_seq - figures.folded_seq;
    ret->fold_lag_ms = figures.fold_lag_ms;
    ret->disk_bytes = figures.disk_bytes;
    ret->disk_free_bytes = figures.disk_free_bytes;
}

static void look_at_cell(const struct rest *r, struct arena *arena, struct checkup_facts *ret)
{
    struct cell_view *view = arena_alloc(arena, sizeof(*view));
    struct cluster_answer *cluster = arena_alloc(arena, sizeof(*cluster));
    if (!store_cluster(r->store, view))
        return;
    cluster_describe(view, cluster);
    ret->cell = view->cell;
    ret->standbys = (int32_t)cluster->n_standbys;
    ret->standbys_ready = (int32_t)cluster->n_ready;
}

static void look_at_archives(const struct rest *r, struct checkup_facts *ret)
{
    char why[CLUSTER_WHY_MAX];
    if (r->archives && !archives_are_here(r->archives, why))
        snprintf(ret->archives_missing, sizeof(ret->archives_missing), "%.300s", why);
}

static void look_at_history(const struct rest *r, struct checkup_facts *ret)
{
    struct recorder_figures figures;
    if (!history_figures(r->lookups.history, &figures))
        return;
    ret->history_failing = figures.failing;
    ret->history_lost = figures.lost;
}

static void look_at_links(const struct rest *r, struct checkup_facts *ret)
{
    const struct bus *b = NULL;
    const char *why = NULL;
    for (size_t i = 0; r->buses && (b = buses_at(r->buses, i)); i++) {
        struct bus_figures f = {0};
        b->ops->figures(b, &f);
        ret->brokers[ret->n_brokers++] = (struct checkup_broker){
            .name = b->ops->name, .connected = f.connected, .unsent = f.unsent};
    }
    if (!agones_is_ready(r->agones, &why))
        ret->cluster_away = why;
}

/* A request that was refused with a status below 500 was its asker's mistake, or as he deserves. */
static void look_at_requests(const struct rest *r, int64_t now_us, struct checkup_facts *ret)
{
    const struct recent *recent = metrics_recent(r->metrics);
    struct minute_figures allocations, joins;
    int64_t reasons[ERR_ORDER_END];
    minute_read(&recent->allocations, now_us, &allocations);
    minute_read(&recent->joins, now_us, &joins);
    recent_reasons(recent, now_us, reasons);
    ret->answered = allocations.done + joins.done;
    for (int err = 1; err < ERR_ORDER_END; err++) {
        ret->answered += reasons[err];
        if (err_status(-err) < 500)
            continue;
        ret->unserved += reasons[err];
        if (reasons[err] > ret->worst_count) {
            ret->worst_count = reasons[err];
            ret->worst_err = -err;
        }
    }
}

static void look_at_certificates(const struct rest *r, struct checkup_facts *ret)
{
    const struct metrics_sources *sources = metrics_sources(r->metrics);
    const struct {
        const char *port;
        const struct tls *tls;
    } ports[CHECKUP_PORTS_MAX] = {{"http", sources->http_tls},
                                  {"server", sources->server_tls},
                                  {"manager", sources->manager_tls},
                                  {"client", sources->client_tls}};
    for (size_t i = 0; i < CHECKUP_PORTS_MAX; i++) {
        if (!ports[i].tls)
            continue;
        ret->certificates[ret->n_certificates++] = (struct checkup_certificate){
            .port = ports[i].port,
            .left_s = tls_expires_s(ports[i].tls) - r->doors->wall_ms / 1000,
        };
    }
}

static void look_at_servers(const struct core *core, int64_t id, struct gathered *g, bool write,
                            struct checkup_fleet *fleet)
{
    struct view_group group;
    fleet->places = write ? g->places + g->n_places : NULL;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (!view_group(core, id, code, &group))
            continue;
        if (write)
            g->places[g->n_places] = (struct checkup_place){
                .region = core_config(core)->regions[code].name, .group = group};
        g->n_places++;
        fleet->n_places++;
    }
}

static void look_at_versions(const struct core *core, int64_t id, struct gathered *g, bool write,
                             struct checkup_fleet *fleet)
{
    struct view_version v;
    for (size_t i = 0; view_version(core, id, i, &v); i++) {
        fleet->versions++;
        fleet->versions_enabled += v.enabled;
        if (!v.quarantined)
            continue;
        if (write)
            g->quarantined[g->n_quarantined] =
                (struct checkup_version){.fleet = v.fleet, .name = v.name, .reason = v.reason};
        g->n_quarantined++;
    }
}

static enum fleet_provider provider_of(const struct core *core, const char *name)
{
    const struct core_config *config = core_config(core);
    for (size_t i = 0; i < config->n_fleets; i++) {
        if (strcmp(config->fleets[i].name, name) == 0)
            return config->fleets[i].provider;
    }
    return PROVIDER_CHAT;
}

/* What was taken out of the configuration drains, and shall. */
static void look_at_fleets(const struct core *core, struct gathered *g, bool write)
{
    struct view_fleet v;
    g->n_fleets = g->n_places = g->n_quarantined = 0;
    for (int64_t id = 0; (id = core_next(core, ROW_fleet, id));) {
        if (!view_fleet(core, id, &v) || !v.configured)
            continue;
        struct checkup_fleet fleet = {.name = v.name, .provider = provider_of(core, v.name)};
        if (fleet.provider == PROVIDER_CHAT)
            look_at_servers(core, id, g, write, &fleet);
        else if (fleet.provider == PROVIDER_AGENT)
            look_at_versions(core, id, g, write, &fleet);
        if (write)
            g->fleets[g->n_fleets] = fleet;
        g->n_fleets++;
    }
}

static void gather_fleets(const struct core *core, struct arena *arena, struct checkup_facts *ret)
{
    struct gathered g = {0};
    look_at_fleets(core, &g, false);
    g.fleets = arena_alloc(arena, (g.n_fleets + 1) * sizeof(*g.fleets));
    g.places = arena_alloc(arena, (g.n_places + 1) * sizeof(*g.places));
    g.quarantined = arena_alloc(arena, (g.n_quarantined + 1) * sizeof(*g.quarantined));
    look_at_fleets(core, &g, true);
    ret->fleets = g.fleets;
    ret->n_fleets = g.n_fleets;
    ret->quarantined = g.quarantined;
    ret->n_quarantined = g.n_quarantined;
}

/* A cluster is a host to core only; whether it is in sight is a question of its own. */
static bool is_agent(const struct view_host *v)
{
    return strncmp(v->url, "agones:", 7) != 0;
}

static void gather_hosts(const struct rest *r, const struct core *core, struct arena *arena,
                         struct checkup_facts *ret)
{
    struct core_counts counts;
    struct view_host v;
    core_count(core, &counts);
    struct checkup_host *hosts = arena_alloc(arena, ((size_t)counts.hosts + 1) * sizeof(*hosts));
    for (int64_t id = 0; (id = core_next(core, ROW_host, id));) {
        if (!view_host(core, id, &v) || !is_agent(&v))
            continue;
        hosts[ret->n_hosts++] = (struct checkup_host){
            .id = v.id,
            .name = v.name,
            .region = v.region,
            .region_name = v.region_name,
            .passed_over = v.passed_over,
            .quiet_ms = v.heard_wall_ms ? r->doors->wall_ms - v.heard_wall_ms : -1,
            .failed_why = v.failed_why,
            .backoff_left_ms = v.backoff_left_ms,
            .cpu_percent = v.cpu_percent,
            .memory_percent = v.memory_percent,
        };
    }
    ret->hosts = hosts;
    ret->results_owed = counts.allocations_owed;
    ret->queue = counts.allocations_queued;
    ret->queue_oldest_ms = counts.queue_oldest_ms;
}

struct checkup_answer checkup_look(const struct rest *r, struct arena *arena)
{
    const struct core *core = pipeline_core(r->doors->pipeline);
    int64_t now_us = clock_monotonic_us();
    struct checkup_facts facts = {0};
    struct checkup *found = arena_alloc(arena, sizeof(*found));
    look_at_store(r, now_us, &facts);
    look_at_cell(r, arena, &facts);
    look_at_archives(r, &facts);
    look_at_history(r, &facts);
    look_at_links(r, &facts);
    look_at_requests(r, now_us, &facts);
    look_at_certificates(r, &facts);
    gather_fleets(core, arena, &facts);
    gather_hosts(r, core, arena, &facts);
    checkup(&facts, found);
    return (struct checkup_answer){
        .found = found,
        .status = checkup_status(found),
        .sentence = found->sentence,
        .wall_ms = r->doors->wall_ms,
    };
}

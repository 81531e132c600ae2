#include "api/agones_own.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "store/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALL_MS = 10 * 1000,
    BEAT_MS = 2000,
    BEAT_LEAST_MS = 100, /* between two, however much changes */
    EXITED_RUN_MS = 1,   /* how long it ran nobody tells us */
};

#define ACCOUNT "agones"

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static bool is_label(const char *text)
{
    for (const char *c = text; *c; c++) {
        bool plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-' || *c == '.';
        if (!plain)
            return false;
    }
    return *text != '\0';
}

/* Two fleets of ours on one of Kubernetes' would each take the other's servers for strangers. */
static bool judge(const struct agones_config *config, char why[256])
{
    for (size_t i = 0; i < config->n_fleets; i++) {
        const struct agones_fleet *f = &config->fleets[i];
        if (!is_label(f->name) || !is_label(f->namespace)) {
            snprintf(why, 256, "Fleet %.40s: '%.60s' in '%.60s' is no name that Kubernetes knows.",
                     f->fleet, f->name, f->namespace);
            return false;
        }
        if (strlen(f->fleet) + strlen("agones/") > 64) {
            snprintf(why, 256, "Fleet %.64s: a fleet of provider agones has at most 57 letters.",
                     f->fleet);
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            const struct agones_fleet *other = &config->fleets[k];
            if (strcmp(f->name, other->name) != 0 || strcmp(f->namespace, other->namespace) != 0)
                continue;
            snprintf(why, 256, "Fleets %.40s and %.40s are both the fleet %.100s of Kubernetes.",
                     other->fleet, f->fleet, f->name);
            return false;
        }
    }
    return true;
}

struct agones *agones_new(struct doors *doors, struct metrics *metrics,
                          const struct agones_config *config, char why[256])
{
    struct agones *a = xcalloc(1, sizeof(*a));
    if (!judge(config, why) || !identity_init(&a->identity, config, why)) {
        identity_done(&a->identity);
        free(a);
        return NULL;
    }
    a->doors = doors;
    a->metrics = metrics;
    a->conn = ++doors->last_id;
    a->instance = xstrdup(config->instance);
    a->now_ms = clock_monotonic_ms();
    a->dice = (uint32_t)clock_monotonic_us();
    list_init(&a->allocating);
    list_init(&a->busy);
    list_init(&a->held);
    list_init(&a->news);
    struct http_client_config http = {.ca_file = a->identity.ca_file,
                                      .certificate = a->identity.certificate,
                                      .key = a->identity.key,
                                      .timeout_ms = CALL_MS,
                                      .per_host = AGONES_POSTS_AT_ONCE + AGONES_WRITES_AT_ONCE + 8};
    a->client = http_client_new(doors->loop, &http);
    http.per_host = AGONES_FLEETS_MAX;
    a->watching = http_client_new(doors->loop, &http);
    a->n_fleets = config->n_fleets;
    a->fleets = xcalloc(a->n_fleets + 1, sizeof(*a->fleets));
    for (size_t i = 0; i < a->n_fleets; i++)
        cluster_fleet_init(&a->fleets[i], a, i, &config->fleets[i]);
    return a;
}

static void forget_spawns(struct agones *a)
{
    LIST_EACH(&a->allocating, spawn, struct allocating, in_list)
    {
        spawn->call = NULL; /* its client has ended */
        allocating_free(spawn);
    }
}

void agones_free(struct agones *a)
{
    if (!a)
        return;
    http_client_free(a->client);
    http_client_free(a->watching);
    forget_spawns(a);
    for (size_t i = 0; i < a->n_fleets; i++)
        cluster_fleet_done(&a->fleets[i]);
    LIST_EACH(&a->held, c, struct route_change, in_list)
    {
        list_remove(&c->in_list);
        route_failed(a, c, ERR_NOT_FOUND, "");
    }
    LIST_EACH(&a->news, n, struct news, in_list)
    {
        list_remove(&n->in_list);
        free(n);
    }
    map_done(&a->by_name);
    map_done(&a->by_token);
    map_done(&a->by_server);
    map_done(&a->spawns);
    identity_done(&a->identity);
    buf_done(&a->body);
    free(a->fleets);
    free(a->instance);
    free(a);
}

int64_t agones_pause_ms(struct agones *a, int tries, int64_t first_ms, int64_t most_ms)
{
    int64_t ms = first_ms;
    for (int i = 0; i < tries && ms < most_ms; i++)
        ms *= 2;
    ms = ms < most_ms ? ms : most_ms;
    a->dice = a->dice * 1664525u + 1013904223u;
    return ms - (int64_t)((uint64_t)ms / 2 * (a->dice >> 16) >> 16);
}

/* ── what core is told ─────────────────────────────────────────────────────────────────────── */

struct news *news_add(struct agones *a, enum news_kind kind, const struct cluster_fleet *fleet,
                      int64_t server)
{
    struct news *n = xcalloc(1, sizeof(*n));
    n->kind = kind;
    n->fleet = fleet;
    n->server = server;
    list_append(&a->news, &n->in_list);
    return n;
}

static void tell_agent(struct agones *a, const struct news *n, enum agent_verb verb)
{
    struct event e = {.kind = EVENT_AGENT, .conn = a->conn};
    e.agent = (struct agent_event){
        .verb = verb,
        .host = str_of(n->fleet->host),
        .account = STR(ACCOUNT),
        .server = n->server,
        .seq = ++a->seq,
        .settings = STR("{}"),
        .timed_out = n->timed_out,
        .exit_code = -1,
    };
    if (verb == AGENT_INITED) {
        e.agent.name = str_of(n->name);
        e.agent.address = str_of(n->address);
        e.agent.n_ports = n->n_ports;
        memcpy(e.agent.ports, n->ports, sizeof(n->ports));
    } else if (verb == AGENT_FAILED) {
        e.agent.text = str_of(n->text);
    } else {
        e.agent.tail = str_of(n->text);
        e.agent.run_ms = EXITED_RUN_MS;
    }
    doors_event(a->doors, &e);
}

static void tell(struct agones *a, const struct news *n)
{
    struct event e = {.conn = a->conn};
    switch (n->kind) {
    case NEWS_INITED:
        tell_agent(a, n, AGENT_INITED);
        return;
    case NEWS_FAILED:
        tell_agent(a, n, AGENT_FAILED);
        return;
    case NEWS_EXITED:
        tell_agent(a, n, AGENT_EXITED);
        return;
    case NEWS_HEARD:
        e.kind = EVENT_HOST_HEARD;
        e.host_heard = (struct host_heard){.server = n->server};
        break;
    case NEWS_ROUTED:
        e.kind = EVENT_ROUTED;
        e.routed = (struct routed){.seat = n->seat, .err = n->err, .text = str_of(n->text)};
        break;
    }
    doors_event(a->doors, &e);
}

static void tell_all(struct agones *a)
{
    LIST_EACH(&a->news, n, struct news, in_list)
    {
        list_remove(&n->in_list);
        tell(a, n);
        free(n);
    }
}

static void list_playing(const struct cluster_fleet *f, struct buf *ret)
{
    LIST_EACH(&f->playing_ones, g, struct gameserver, in_playing)
    {
        struct host_server s = {.server = g->server,
                                .session = g->session,
                                .state = g->shutdown ? HOST_SERVER_ENDING : HOST_SERVER_RUNNING,
                                .n_ports = g->n_ports};
        memcpy(s.ports, g->ports, sizeof(s.ports));
        buf_append(ret, &s, sizeof(s));
    }
}

/* More than core takes in one list can only be when an earlier run of ours allowed more: then none
 * is sent, for what is not listed counts as gone. */
static void beat(struct cluster_fleet *f)
{
    struct agones *a = f->agones;
    struct buf servers = {0};
    if (f->playing > CLUSTER_SERVERS_MAX)
        return;
    list_playing(f, &servers);
    struct event e = {.kind = EVENT_HOST_BEAT, .conn = a->conn};
    e.host_beat = (struct host_beat){
        .name = str_of(f->host),
        .account = STR(ACCOUNT),
        .address = str_of(f->config.name),
        .url = str_of(f->url),
        .region = f->config.region,
        .servers = (const struct host_server *)(const void *)servers.data,
        .n_servers = f->playing,
        .beat = ++f->beats,
        .fleet = str_of(f->config.fleet),
    };
    doors_event(a->doors, &e);
    buf_done(&servers);
    f->changed = false;
    f->beat_ms = a->now_ms;
}

static void beat_if_due(struct cluster_fleet *f)
{
    int64_t since_ms = f->agones->now_ms - f->beat_ms;
    /* A beat lists them all, so the more there are the less often. */
    int64_t least_ms = BEAT_LEAST_MS * (1 + (int64_t)f->playing / 1000);
    bool due = f->beats == 0 || since_ms >= BEAT_MS || (f->changed && since_ms >= least_ms);
    if (due && cluster_fleet_is_current(f))
        beat(f);
}

void agones_before_flush(struct agones *a)
{
    if (!a)
        return;
    a->now_ms = a->doors->monotonic_ms;
    identity_refresh(a, false);
    for (size_t i = 0; i < a->n_fleets; i++)
        cluster_fleet_run(&a->fleets[i]);
    allocating_run(a);
    route_run(a);
    mend_run(a);
    LIST_EACH(&a->busy, g, struct gameserver, in_busy)
    {
        gameserver_run(g);
    }
    tell_all(a);
    for (size_t i = 0; i < a->n_fleets; i++)
        beat_if_due(&a->fleets[i]);
}

/* ── what core wants ───────────────────────────────────────────────────────────────────────── */

static struct cluster_fleet *fleet_of_url(struct agones *a, struct str url)
{
    for (size_t i = 0; i < a->n_fleets; i++) {
        if (str_eq(url, str_of(a->fleets[i].url)))
            return &a->fleets[i];
    }
    return NULL;
}

static void log_refused(const struct effect *e)
{
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_WARN, "a fleet of Kubernetes is refused", "err=%s why=%s", err_code(e->err),
             log_quote(quoted, e->text));
}

static void do_effect(struct agones *a, const struct effect *e)
{
    struct cluster_fleet *f = NULL;
    switch (e->kind) {
    case EFFECT_SPAWN:
        f = fleet_of_url(a, e->spawn->url);
        if (f)
            allocate(a, f, e->spawn);
        break;
    case EFFECT_TERMINATE:
        f = fleet_of_url(a, e->ip);
        if (f)
            terminate(a, f, e->object);
        break;
    case EFFECT_ROUTE:
        route(a, e);
        break;
    case EFFECT_HOST_BEAT:
        if (e->conn == a->conn && e->err)
            log_refused(e);
        break;
    default:
        break;
    }
}

void agones_release(struct agones *a, const struct effect *effects, size_t n)
{
    for (size_t i = 0; a && i < n; i++)
        do_effect(a, &effects[i]);
}

/* ── how it is ─────────────────────────────────────────────────────────────────────────────── */

bool agones_is_ready(const struct agones *a, const char **ret_why)
{
    for (size_t i = 0; a && i < a->n_fleets; i++) {
        if (cluster_fleet_is_current(&a->fleets[i]))
            continue;
        *ret_why = a->fleets[i].why;
        return false;
    }
    return true;
}

void agones_count(const struct agones *a, struct agones_figures *ret)
{
    *ret = a->figures;
    ret->gameservers = (int64_t)a->n_kept;
    for (size_t i = 0; i < a->n_fleets; i++)
        ret->playing += (int64_t)a->fleets[i].playing;
    LIST_EACH(&a->busy, g, struct gameserver, in_busy)
    {
        ret->unwanted += g->shutdown;
    }
}

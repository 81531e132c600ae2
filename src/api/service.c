#include "api/service.h"

#include "api/agents.h"
#include "api/agones.h"
#include "api/archives.h"
#include "api/bus.h"
#include "api/cluster.h"
#include "api/door.h"
#include "api/feed.h"
#include "api/front.h"
#include "api/geo.h"
#include "api/login.h"
#include "api/metrics.h"
#include "api/rest.h"
#include "api/routes.h"
#include "api/trend.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "core/view.h"
#include "net/loop.h"
#include "net/notify.h"
#include "net/signals.h"
#include "store/pipeline.h"
#include "store/writer.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    STOP_COMMIT_MS = 5000, /* the last batch's time to become durable */
    STOP_FLUSH_MS = 500,   /* the last answers' time to leave */
};

/*   SERVING ──signal──▶ COMMITTING ──the pipeline is idle──▶ FLUSHING ──all is sent──▶ STOPPED
 * The last two moves also happen when their time is up. */
enum service_state { SERVING, COMMITTING, FLUSHING, STOPPED };

struct service {
    enum service_state state;
    int64_t give_up_ms; /* monotonic: when the state is left in any case */
    bool abandoned;     /* the last commit did not end in its time */
    bool signalled;     /* the process is to end, whatever ends the service */
    bool goes_on;       /* otherwise it does */
    enum service_end end;
    struct loop loop;
    struct loop_crowd players;
    struct doors doors;
    struct access *access;
    struct feed *feed;
    struct rest rest;
    struct login *login;
    struct agents *agents;
    struct buses *buses;
    struct agones *agones;     /* NULL = no fleet lives in Kubernetes */
    struct history *history;   /* NULL = none is kept */
    struct archives *archives; /* NULL = there is no other node to have them from */
    const char *config_digest;
    struct routes *routes; /* NULL = no proxy reads them from a file */
    struct geo *geo;
    struct store *store;
    struct writer *writer;
    struct pipeline *pipeline;
    struct metrics *metrics;
    struct trends *trends;
    uv_async_t committed;
    uv_signal_t on_term;
    uv_signal_t on_interrupt;
    uv_signal_t on_hangup;
    int (*reload)(void *user, const struct service_taker *taker);
    void *reload_user;
    struct notify *notify; /* NULL = nobody hears how we are */
};

static bool may_write(void *user)
{
    const struct service *s = user;
    return s->end != SERVICE_FENCED && store_holds(s->store);
}

/* Somebody else leads, or may: not one more word, and nobody is told why. True when it is so. */
static bool is_fenced(struct service *s)
{
    if (s->end == SERVICE_FENCED)
        return true;
    if (store_holds(s->store))
        return false;
    log_line(LOG_WARN, "the lease is lost; every connection is closed", "seq=%" PRId64,
             core_seq(pipeline_core(s->pipeline)));
    s->end = SERVICE_FENCED;
    s->state = STOPPED;
    loop_stop(&s->loop);
    return true;
}

static void on_commit_ended(void *user)
{
    struct service *s = user;
    uv_async_send(&s->committed);
}

static void on_committed(uv_async_t *handle)
{
    struct service *s = handle->data;
    int result = 0;
    while (!is_fenced(s) && writer_poll(s->writer, &result)) {
        doors_read_clocks(&s->doors);
        metrics_committed(s->metrics, result, writer_commit_us(s->writer), s->doors.monotonic_us);
        pipeline_committed(s->pipeline, result, s->doors.monotonic_ms, s->doors.wall_ms);
        doors_committed(&s->doors);
    }
}

static void submit(void *user, const struct store_batch *batch)
{
    struct service *s = user;
    metrics_submitted(s->metrics, batch, s->doors.monotonic_us);
    writer_submit(s->writer, batch);
}

static void durable(void *user, const struct store_batch *batch)
{
    struct service *s = user;
    feed_durable(s->feed, batch);
}

static void release(void *user, const struct effect *effects, size_t n)
{
    struct service *s = user;
    doors_release(&s->doors, effects, n);
    feed_release(s->feed, effects, n, s->doors.wall_ms);
    history_release(s->history, pipeline_core(s->pipeline), effects, n, s->doors.wall_ms,
                    s->config_digest);
    rest_release(&s->rest, effects, n);
    agents_release(s->agents, effects, n);
    buses_release(s->buses, effects, n);
    agones_release(s->agones, effects, n);
    routes_release(s->routes, effects, n);
}

static void enter(struct service *s, enum service_state state, int64_t limit_ms)
{
    s->state = state;
    s->give_up_ms = s->doors.monotonic_ms + limit_ms;
}

void service_stop(struct service *s)
{
    if (s->state != SERVING)
        return;
    doors_read_clocks(&s->doors);
    if (s->end == SERVICE_STOPPED) /* a node that steps down stays */
        notify_stopping(s->notify);
    doors_stop(&s->doors);
    feed_stop(s->feed);
    rest_stop(&s->rest);
    core_hasten(pipeline_core(s->pipeline));
    enter(s, COMMITTING, STOP_COMMIT_MS);
}

void service_step_down(struct service *s)
{
    if (s->state != SERVING)
        return;
    s->end = SERVICE_STEPPED_DOWN;
    log_line(LOG_INFO, "stepping down", "seq=%" PRId64, core_seq(pipeline_core(s->pipeline)));
    service_stop(s);
}

static void continue_stop(struct service *s)
{
    bool late = s->doors.monotonic_ms >= s->give_up_ms;
    if (s->state == COMMITTING && (late || !pipeline_busy(s->pipeline))) {
        s->abandoned = late;
        rest_give_up(&s->rest);
        enter(s, FLUSHING, STOP_FLUSH_MS);
        late = false;
    }
    if (s->state != FLUSHING)
        return;
    loop_write(&s->loop);
    if (late || (doors_unsent(&s->doors) == 0 && rest_is_idle(&s->rest))) {
        s->state = STOPPED;
        loop_stop(&s->loop);
    }
}

static void on_turn(void *user)
{
    struct service *s = user;
    if (is_fenced(s))
        return;
    doors_read_clocks(&s->doors);
    doors_before_flush(&s->doors);
    rest_before_flush(&s->rest);
    agents_go(s->agents);
    agents_before_flush(s->agents);
    buses_before_flush(s->buses);
    agones_before_flush(s->agones);
    routes_before_flush(s->routes);
    pipeline_flush(s->pipeline, s->doors.monotonic_ms, s->doors.wall_ms);
    doors_after_flush(&s->doors);
    feed_turn(s->feed, s->doors.monotonic_ms);
    history_turn(s->history);
    if (s->state != SERVING)
        continue_stop(s);
}

/* Once a second. */
static void take_trends(struct service *s)
{
    struct core_counts now;
    if (!trends_due(s->trends, s->doors.monotonic_us))
        return;
    core_count(pipeline_core(s->pipeline), &now);
    struct trend_gauges gauges = {
        .queue = now.allocations_queued,
        .oldest_wait_ms = now.queue_oldest_ms,
        .players = now.players + now.room_seats,
        .sessions = now.sessions_open,
        .rooms = now.rooms_open,
        .servers = now.servers[SERVER_AVAILABLE] + now.servers[SERVER_FULL] +
                   now.servers[SERVER_DRAINING] + now.rooms_starting + now.rooms_open +
                   now.rooms_ending,
    };
    trends_take(s->trends, metrics_recent(s->metrics), &gauges, s->doors.monotonic_us,
                s->doors.wall_ms);
}

static void on_tick(void *user)
{
    struct service *s = user;
    notify_tick(s->notify, clock_monotonic_ms());
    if (is_fenced(s) || s->state != SERVING)
        return;
    doors_tick(&s->doors);
    rest_tick(&s->rest);
    feed_tick(s->feed, s->doors.monotonic_ms, s->doors.wall_ms);
    history_tick(s->history, s->doors.wall_ms);
    if (s->archives)
        archives_tick(s->archives, s->doors.monotonic_ms);
    doors_event(&s->doors, &(struct event){.kind = EVENT_TICK});
    metrics_tick(s->metrics, s->doors.wall_ms);
    take_trends(s);
}

static void on_worked(void *user, int64_t us)
{
    struct service *s = user;
    metrics_turn(s->metrics, us, s->doors.monotonic_us);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct service *s = handle->data;
    signals_stop(number, &s->signalled);
    service_stop(s);
}

static void reload_geo(void *user, const char *file)
{
    struct service *s = user;
    char why[GEO_WHY_MAX];
    char quoted[LOG_QUOTE_MAX + 8];
    bool wanted = *file != '\0';
    struct geo *fresh = wanted ? geo_open(file, why) : NULL;
    if (wanted && !fresh) {
        log_line(LOG_WARN, "the geo file cannot be used; the one before stays",
                 "file=%s why=\"%s\"", log_quote(quoted, str_of(file)), why);
        return;
    }
    geo_close(s->geo);
    s->geo = s->rest.geo = fresh;
}

void service_reconfigure(struct service *s, const struct service_change *change)
{
    access_configure(s->access, change->gamespace, change->keys, change->n_keys);
    login_configure(s->login, change->login_url);
    s->rest.metrics_open = change->metrics_open;
    agents_configure(s->agents, change->launches, change->n_launches);
    s->rest.proxies = change->proxies;
    s->rest.n_proxies = change->n_proxies;
    doors_read_clocks(&s->doors);
    pipeline_reconfigure(s->pipeline, change->core, s->doors.monotonic_ms, s->doors.wall_ms);
}

static void reconfigure(void *user, const struct service_change *change)
{
    service_reconfigure(user, change);
}

static void on_hangup(uv_signal_t *handle, int number)
{
    (void)number;
    struct service *s = handle->data;
    if (s->state != SERVING || !s->reload)
        return;
    struct service_taker taker = {.reconfigure = reconfigure, .reload_geo = reload_geo, .user = s};
    notify_reloading(s->notify);
    bool taken = s->reload(s->reload_user, &taker) == 0;
    notify_ready(s->notify, taken ? "serving"
                                  : "serving; the configuration that was read last is "
                                    "refused, and the one before holds");
}

static void watch_signal(struct service *s, uv_signal_t *handle, uv_signal_cb call, int number)
{
    uv_signal_init(&s->loop.uv, handle);
    handle->data = s;
    uv_signal_start(handle, call, number);
}

static void watch_signals(struct service *s)
{
    signal(SIGPIPE, SIG_IGN);
    watch_signal(s, &s->on_term, on_signal, SIGTERM);
    watch_signal(s, &s->on_interrupt, on_signal, SIGINT);
    watch_signal(s, &s->on_hangup, on_hangup, SIGHUP);
}

static struct service *service_new(const struct front_places *places, struct store *store)
{
    struct service *s = xcalloc(1, sizeof(*s));
    struct loop_hooks hooks = {.turn = on_turn,
                               .tick = on_tick,
                               .worked = on_worked,
                               .user = s,
                               .may_write = store_is_shared(store) ? may_write : NULL};
    s->store = store;
    loop_init(&s->loop, &hooks, &places->servers);
    loop_share(&s->loop, &s->players, &places->players, places->both);
    doors_init(&s->doors, &s->loop);
    s->metrics = metrics_new(s->doors.wall_ms);
    s->doors.metrics = s->metrics;
    s->trends = trends_new();
    s->buses = buses_new(&s->doors, s->metrics);
    uv_async_init(&s->loop.uv, &s->committed, on_committed);
    s->committed.data = s;
    watch_signals(s);
    return s;
}

static int load(struct service *s, const struct service_config *config, char *why)
{
    struct pipeline_world world = {
        .submit = submit, .durable = durable, .release = release, .user = s};
    struct pipeline_loaded loaded = {.config = config->core,
                                     .secret = config->secret,
                                     .core = config->loaded,
                                     .tip = config->loaded_tip,
                                     .age_ms = config->loaded_age_ms};
    int err = loaded.core ? pipeline_adopt(s->store, &loaded, &world, s->doors.wall_ms,
                                           s->doors.monotonic_ms, &s->pipeline)
                          : pipeline_new(s->store, config->core, config->secret, &world,
                                         s->doors.wall_ms, s->doors.monotonic_ms, &s->pipeline);
    if (err != 0) {
        snprintf(why, SERVICE_WHY_MAX, "Cannot load the data folder: %s", err_sentence(err));
        return err;
    }
    s->doors.pipeline = s->pipeline;
    s->feed = feed_new(s->pipeline, ++s->doors.last_id, FEED_BYTES);
    err = feed_fill(s->feed, s->store, config->loaded ? FEED_TAKEN_OVER_BYTES : FEED_BYTES);
    if (err != 0) {
        snprintf(why, SERVICE_WHY_MAX, "Cannot read the newest changes of the data folder: %s",
                 err_sentence(err));
        return err;
    }
    s->writer = writer_start(s->store, on_commit_ended, s);
    return 0;
}

static int open_geo(struct service *s, const char *file, char *why)
{
    char reason[GEO_WHY_MAX];
    if (!file || !*file)
        return 0;
    s->geo = s->rest.geo = geo_open(file, reason);
    if (!s->geo)
        snprintf(why, SERVICE_WHY_MAX, "Cannot use the geo file %.80s: %.100s", file, reason);
    return s->geo ? 0 : ERR_IO;
}

/* ── archives that a leader lacks ──────────────────────────────────────────────────────────── */

static bool is_among(const uint8_t (*digests)[ARCHIVE_DIGEST], size_t n, const uint8_t *digest)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(digests[i], digest, ARCHIVE_DIGEST) == 0)
            return true;
    }
    return false;
}

/* It led before it had them all; others may. */
static size_t wanted_archives(void *user, uint8_t (*ret)[ARCHIVE_DIGEST], size_t max)
{
    const struct service *s = user;
    const struct core *core = pipeline_core(s->pipeline);
    struct view_deployment v;
    size_t n = 0;
    for (int64_t id = 0; (id = core_next(core, ROW_deployment, id));) {
        if (!view_deployment(core, id, &v) ||
            is_among((const uint8_t(*)[ARCHIVE_DIGEST])ret, n < max ? n : max, v.digest))
            continue;
        if (n < max)
            memcpy(ret[n], v.digest, ARCHIVE_DIGEST);
        n++;
    }
    return n;
}

static bool archive_source(void *user, size_t i, char ret[ARCHIVES_URL])
{
    const struct service *s = user;
    struct cell_view *view = xcalloc(1, sizeof(*view));
    bool found = store_cluster(s->store, view) && cluster_source(view, view->leader.id, i, ret);
    free(view);
    return found;
}

static void archives_changed(void *user)
{
    (void)user; /* who wants to know asks */
}

static void open_archives(struct service *s, const struct service_config *config)
{
    if (!config->node)
        return;
    s->archives = archives_new(&(struct archives_config){.loop = &s->loop,
                                                         .folder = config->http.deployments,
                                                         .access = s->access,
                                                         .node = config->node,
                                                         .ca_file = config->node_ca_file,
                                                         .wanted = wanted_archives,
                                                         .source = archive_source,
                                                         .changed = archives_changed,
                                                         .user = s});
    s->rest.archives = s->archives;
}

static void on_step_down(void *user)
{
    service_step_down(user);
}

static int open_http(struct service *s, const struct service_config *config, size_t connections,
                     char *why)
{
    const char *reason = NULL;
    struct rest_config http = config->http;
    http.connections = connections;
    http.held_fd = config->held.http;
    http.config_digest = config->config_digest;
    http.secret = config->secret;
    http.proxies = config->proxies;
    http.n_proxies = config->n_proxies;
    s->access = access_new(config->secret);
    access_configure(s->access, config->gamespace, config->keys, config->n_keys);
    s->doors.access = s->access;
    s->login = login_new(&s->doors, s->access);
    login_configure(s->login, config->login_url);
    s->agents = agents_new(&s->doors, s->access, s->login, s->metrics);
    agents_configure(s->agents, config->launches, config->n_launches);
    rest_init(&s->rest, &s->doors, s->access, s->metrics, s->feed);
    s->rest.trends = s->trends;
    s->rest.store = s->store;
    s->rest.agents = s->agents;
    s->rest.login = s->login;
    s->rest.buses = s->buses;
    s->rest.lookups.history = s->history;
    s->rest.step_down = store_is_shared(s->store) ? on_step_down : NULL;
    s->rest.step_down_user = s;
    if (open_geo(s, config->geo_file, why) != 0)
        return ERR_IO;
    int err = rest_start(&s->rest, &http, &reason);
    if (err != 0)
        snprintf(why, SERVICE_WHY_MAX, "Cannot listen for HTTP on %s:%u: %s", http.ip, http.port,
                 reason);
    return err;
}

static int open_buses(struct service *s, const struct service_config *config, char *why)
{
    _Static_assert((int)SERVICE_WHY_MAX >= (int)NATS_WHY_MAX &&
                       (int)SERVICE_WHY_MAX >= (int)PUBSUB_WHY_MAX,
                   "a sentence fits");
    struct bus *nats = config->nats ? nats_new(&s->doors, config->nats, why) : NULL;
    if (nats)
        buses_add(s->buses, nats);
    struct bus *pubsub = config->pubsub ? pubsub_new(&s->doors, config->pubsub, why) : NULL;
    if (pubsub)
        buses_add(s->buses, pubsub);
    s->rest.pubsub = pubsub;
    bool failed = (config->nats && !nats) || (config->pubsub && !pubsub);
    return failed ? ERR_BAD_ARGUMENT : 0;
}

/* Our mark on what we allocate: whoever has the data folder has it, and nobody else. */
static void instance_of(const uint8_t secret[CORE_SECRET_SIZE], char ret[33])
{
    uint8_t hash[16];
    crypto_generichash(hash, sizeof(hash), (const uint8_t *)"muster.dev/instance", 19, secret,
                       CORE_SECRET_SIZE);
    sodium_bin2hex(ret, 33, hash, sizeof(hash));
}

static int open_agones(struct service *s, const struct service_config *config, char *why)
{
    char instance[33];
    if (!config->agones)
        return 0;
    struct agones_config wanted = *config->agones;
    instance_of(config->secret, instance);
    wanted.instance = instance;
    s->agones = agones_new(&s->doors, s->metrics, &wanted, why);
    s->rest.agones = s->agones;
    return s->agones ? 0 : ERR_BAD_ARGUMENT;
}

int service_start(const struct service_config *config, struct store *store, struct service **ret,
                  char why[SERVICE_WHY_MAX])
{
    struct front_places places;
    if (!front_share(config, &places, why)) {
        core_free(config->loaded);
        store_close(store);
        return ERR_IO;
    }
    struct service *s = service_new(&places, store);
    s->history = history_new(&config->history);
    s->config_digest = config->config_digest ? config->config_digest : "";
    s->reload = config->reload;
    s->reload_user = config->reload_user;
    s->notify = config->notify;
    s->goes_on = config->goes_on;
    int err = load(s, config, why);
    if (err == 0)
        err = front_open(&s->doors, &s->players, config, why);
    if (err == 0)
        err = open_http(s, config, places.http, why);
    if (err == 0)
        err = open_buses(s, config, why);
    if (err == 0)
        err = open_agones(s, config, why);
    if (err == 0)
        open_archives(s, config);
    if (err == 0 && config->quilkin_file && config->quilkin_file[0])
        s->routes = routes_new(&s->doors, config->quilkin_file, config->quilkin_filters);
    if (err != 0) {
        service_free(s);
        return err;
    }
    metrics_watch(s->metrics, &(struct metrics_sources){.pipeline = s->pipeline,
                                                        .doors = &s->doors,
                                                        .store = s->store,
                                                        .http = s->rest.http,
                                                        .feed = s->feed,
                                                        .buses = s->buses,
                                                        .agones = s->agones,
                                                        .routes = s->routes,
                                                        .history = s->history,
                                                        .http_tls = config->http.tls,
                                                        .server_tls = config->server_tls,
                                                        .manager_tls = config->manager_tls,
                                                        .client_tls = config->client_tls});
    history_started(s->history, s->doors.wall_ms, s->config_digest);
    *ret = s;
    return 0;
}

void service_ports(const struct service *s, struct service_ports *ret)
{
    front_ports(&s->doors, &s->rest, ret);
}

void service_count(const struct service *s, struct core_counts *ret)
{
    core_count(pipeline_core(s->pipeline), ret);
}

bool service_has_tokens(const struct service *s)
{
    return core_next(pipeline_core(s->pipeline), ROW_enrolment, 0) != 0;
}

enum service_end service_run(struct service *s)
{
    log_gather(true);
    notify_ready(s->notify, "serving");
    if (s->goes_on)
        signals_run(&s->loop);
    else
        loop_run(&s->loop);
    log_gather(false);
    if (!s->abandoned) {
        if (s->end != SERVICE_FENCED)
            store_give_back(s->store);
        return s->signalled ? SERVICE_STOPPED : s->end;
    }
    /* The commit thread hangs in the disk and cannot be joined. Nobody was told of that commit. */
    log_line(LOG_ERROR, "the disk hangs; leaving without the last commit", "waited_ms=%d",
             STOP_COMMIT_MS);
    _exit(1);
}

/* A service that failed to start has no pipeline, but the loop's last turns call its hooks. */
static void no_hook(void *user)
{
    (void)user;
}

void service_free(struct service *s)
{
    if (!s)
        return;
    if (s->writer)
        writer_stop(s->writer);
    archives_free(s->archives);
    rest_done(&s->rest);
    buses_free(s->buses);
    agones_free(s->agones);
    routes_free(s->routes);
    agents_free(s->agents);
    login_free(s->login);
    doors_stop(&s->doors);
    doors_close(&s->doors);
    bool mute = s->end == SERVICE_FENCED;
    s->loop.hooks = (struct loop_hooks){
        .turn = no_hook, .tick = no_hook, .user = s, .may_write = mute ? may_write : NULL};
    uv_close((uv_handle_t *)&s->committed, NULL);
    uv_close((uv_handle_t *)&s->on_term, NULL);
    uv_close((uv_handle_t *)&s->on_interrupt, NULL);
    uv_close((uv_handle_t *)&s->on_hangup, NULL);
    loop_done(&s->loop);
    loop_crowd_done(&s->players);
    doors_done(&s->doors);
    feed_free(s->feed);
    access_free(s->access);
    geo_close(s->geo);
    pipeline_free(s->pipeline);
    trends_free(s->trends);
    history_free(s->history); /* those who look it up are gone with the loop */
    metrics_free(s->metrics);
    store_close(s->store);
    free(s);
}

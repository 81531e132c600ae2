#include "api/standby.h"

#include "api/access.h"
#include "api/archives.h"
#include "api/chat_client.h"
#include "api/chat_manager.h"
#include "api/chat_server.h"
#include "api/cluster.h"
#include "api/door.h"
#include "api/front.h"
#include "api/metrics.h"
#include "api/rest.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "net/loop.h"
#include "net/notify.h"
#include "net/signals.h"
#include "store/follower.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FLUSH_MS = 500,      /* the last answers' time to leave */
    FLUSH_LEADS_MS = 20, /* … when others wait for us to lead */
    BEHIND_MAX = 1000,   /* batches; who has more to catch up with could not lead at once */
};

/*   STANDING ──it leads, it fails, a signal──▶ FLUSHING ──all is sent, or late──▶ OVER */
enum standby_state { STANDING, FLUSHING, OVER };

struct standby {
    enum standby_state state;
    enum standby_end end;
    bool signalled;     /* the process is to end, whatever else ends this */
    int64_t give_up_ms; /* monotonic: when FLUSHING is left in any case */
    struct loop loop;
    struct loop_crowd players;
    struct doors doors;
    struct access *access;
    struct rest rest;
    struct metrics *metrics;
    struct cluster_standby shown;
    struct archives *archives;
    const struct cell_config *cell;
    int64_t hold_off_until_ms; /* monotonic */
    struct follower *follower; /* NULL = it was taken */
    struct follower_view seen; /* as it was when it last said that something changed */
    bool ready;                /* as it was told last */
    char why[CLUSTER_WHY_MAX]; /* … and why not */
    uv_async_t changed;
    uv_signal_t on_term;
    uv_signal_t on_interrupt;
    uv_signal_t on_hangup;
    int (*reload)(void *user, const struct service_taker *taker);
    void *reload_user;
    struct notify *notify; /* NULL = nobody hears how we are */
};

/* ── what is seen ──────────────────────────────────────────────────────────────────────────── */

/* An earlier life of this node may be in the lease still. It leads no more, and whoever was sent
 * to it would come back here. */
static const struct cell_node *leader_of(const struct standby *s)
{
    bool other = s->seen.leader_known && s->seen.leader.id != s->cell->self.id;
    return other ? &s->seen.leader : NULL;
}

/* For struct cluster_standby. */
static void look(void *user, struct cell_view *ret)
{
    struct standby *s = user;
    const struct cell_node *leader = leader_of(s);
    *ret = (struct cell_view){
        .epoch = s->seen.epoch, .seq = s->seen.head_seq, .lease_ms = s->cell->lease_ms};
    (void)str_copy(ret->cell, sizeof(ret->cell), str_of(s->cell->cell));
    if (leader) {
        ret->leader = *leader;
        ret->left_ms = s->seen.leader_left_ms;
    }
    if (s->follower)
        ret->n_nodes = follower_nodes(s->follower, ret->nodes, CELL_NODES_MAX);
}

static void follow(void *user, struct follower_view *ret)
{
    struct standby *s = user;
    *ret = s->seen;
}

static bool is_ready(void *user, char why[CLUSTER_WHY_MAX])
{
    struct standby *s = user;
    (void)snprintf(why, CLUSTER_WHY_MAX, "%s", s->why);
    return s->ready;
}

/* ── could it lead at once? ────────────────────────────────────────────────────────────────── */

static bool judge_following(const struct standby *s, char why[CLUSTER_WHY_MAX])
{
    const struct follower_view *v = &s->seen;
    int64_t behind = v->head_seq - v->seq;
    if (clock_monotonic_ms() < s->hold_off_until_ms && !leader_of(s))
        (void)snprintf(why, CLUSTER_WHY_MAX,
                       "This standby has stepped down a moment ago, and lets the others go first.");
    else if (v->state == FOLLOWER_LOADING)
        (void)snprintf(why, CLUSTER_WHY_MAX, "This standby is loading cell %s.", s->cell->cell);
    else if (v->state == FOLLOWER_AWAY)
        (void)snprintf(why, CLUSTER_WHY_MAX, "This standby does not reach the database. %s",
                       v->why);
    else if (v->state == FOLLOWER_FAILED)
        (void)snprintf(why, CLUSTER_WHY_MAX, "This standby cannot go on. %s", v->why);
    else if (behind > BEHIND_MAX)
        (void)snprintf(why, CLUSTER_WHY_MAX,
                       "This standby is %" PRId64 " batches behind and catching up.", behind);
    else
        return true;
    return false;
}

static void tell_ready(struct standby *s, bool ready)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (ready == s->ready)
        return;
    s->ready = ready;
    follower_set_ready(s->follower, ready);
    if (ready)
        log_line(LOG_INFO, "ready to lead", "cell=%s seq=%" PRId64, s->cell->cell, s->seen.seq);
    else
        log_line(LOG_WARN, "not ready to lead", "cell=%s why=%s", s->cell->cell,
                 log_quote(quoted, str_of(s->why)));
}

static void judge(struct standby *s)
{
    if (s->state != STANDING)
        return;
    s->why[0] = '\0';
    bool ready = judge_following(s, s->why) && archives_are_here(s->archives, s->why);
    tell_ready(s, ready);
}

/* ── ends ──────────────────────────────────────────────────────────────────────────────────── */

static void end(struct standby *s, enum standby_end how)
{
    if (s->state != STANDING)
        return;
    doors_read_clocks(&s->doors);
    s->state = FLUSHING;
    s->end = how;
    s->give_up_ms = s->doors.monotonic_ms + (how == STANDBY_LEADS ? FLUSH_LEADS_MS : FLUSH_MS);
    if (how == STANDBY_STOPPED)
        notify_stopping(s->notify);
    archives_stop(s->archives);
    doors_stop(&s->doors);
    rest_stop(&s->rest);
}

static void flush(struct standby *s)
{
    loop_write(&s->loop);
    bool sent = doors_unsent(&s->doors) == 0 && rest_is_idle(&s->rest);
    if (!sent && s->doors.monotonic_ms < s->give_up_ms)
        return;
    s->state = OVER;
    loop_stop(&s->loop);
}

/* ── what happens ──────────────────────────────────────────────────────────────────────────── */

/* One line for each change of leader, of which there should be few. */
static void say_leader(const struct standby *s)
{
    const struct cell_node *leader = leader_of(s);
    if (leader)
        log_line(LOG_INFO, "another node leads", "cell=%s leader=%s epoch=%" PRId64 " http=%s",
                 s->cell->cell, leader->name, s->seen.epoch, leader->http);
    else
        log_line(LOG_WARN, "nobody leads", "cell=%s epoch=%" PRId64, s->cell->cell, s->seen.epoch);
}

/* Whether a leader counts as known depends on the time, too, so this is done with each tick. */
static void see(struct standby *s)
{
    struct follower_view before = s->seen;
    if (s->state != STANDING)
        return;
    follower_look(s->follower, &s->seen);
    if (s->seen.state == FOLLOWER_LEADS || s->seen.state == FOLLOWER_FAILED) {
        end(s, s->seen.state == FOLLOWER_LEADS ? STANDBY_LEADS : STANDBY_FAILED);
        return;
    }
    if (s->seen.leader_known != before.leader_known || s->seen.leader.id != before.leader.id ||
        s->seen.epoch != before.epoch)
        say_leader(s);
    if (leader_of(s))
        s->hold_off_until_ms = 0; /* it has gone first */
    if (leader_of(s) && before.leader.id != s->seen.leader.id)
        archives_try_again(s->archives);
    if (s->seen.state == FOLLOWER_FOLLOWING && before.state != FOLLOWER_FOLLOWING)
        archives_look(s->archives);
    judge(s);
}

static void on_changed(uv_async_t *handle)
{
    see(handle->data);
}

/* On the follower's thread. */
static void wake(void *user)
{
    struct standby *s = user;
    uv_async_send(&s->changed);
}

static size_t wanted(void *user, uint8_t (*ret)[ARCHIVE_DIGEST], size_t max)
{
    _Static_assert((int)FOLLOWER_DIGEST == (int)ARCHIVE_DIGEST, "one digest");
    struct standby *s = user;
    return follower_deployments(s->follower, ret, max);
}

static bool source(void *user, size_t i, char ret[ARCHIVES_URL])
{
    struct standby *s = user;
    struct cell_view *view = xcalloc(1, sizeof(*view));
    look(s, view);
    bool found = cluster_source(view, s->cell->self.id, i, ret);
    free(view);
    return found;
}

static void on_archives(void *user)
{
    judge(user);
}

static void on_turn(void *user)
{
    struct standby *s = user;
    doors_read_clocks(&s->doors);
    rest_before_flush(&s->rest);
    if (s->state == FLUSHING)
        flush(s);
}

static void on_tick(void *user)
{
    struct standby *s = user;
    notify_tick(s->notify, clock_monotonic_ms());
    doors_tick(&s->doors);
    rest_tick(&s->rest);
    if (s->state != STANDING)
        return;
    see(s);
    if (s->state != STANDING)
        return;
    archives_tick(s->archives, s->doors.monotonic_ms);
    metrics_tick(s->metrics, s->doors.wall_ms);
}

static void on_worked(void *user, int64_t us)
{
    struct standby *s = user;
    metrics_turn(s->metrics, us, s->doors.monotonic_us);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct standby *s = handle->data;
    signals_stop(number, &s->signalled);
    end(s, STANDBY_STOPPED);
}

/* ── a configuration that was read again ───────────────────────────────────────────────────── */

/* Core hears of it from the service, once there is one. */
static void reconfigure(void *user, const struct service_change *change)
{
    struct standby *s = user;
    access_configure(s->access, change->gamespace, change->keys, change->n_keys);
    s->rest.metrics_open = change->metrics_open;
    s->rest.proxies = change->proxies;
    s->rest.n_proxies = change->n_proxies;
}

static void no_geo(void *user, const char *file)
{
    (void)user;
    (void)file;
}

static void on_hangup(uv_signal_t *handle, int number)
{
    (void)number;
    struct standby *s = handle->data;
    if (s->state != STANDING || !s->reload)
        return;
    struct service_taker taker = {.reconfigure = reconfigure, .reload_geo = no_geo, .user = s};
    notify_reloading(s->notify);
    bool taken = s->reload(s->reload_user, &taker) == 0;
    notify_ready(s->notify, taken ? "standing by"
                                  : "standing by; the configuration that was read last is refused, "
                                    "and the one before holds");
}

/* ── elsewhere ─────────────────────────────────────────────────────────────────────────────── */

static const char *address_of(const struct cell_node *node, const struct port *port)
{
    return port == &chat_server_port    ? node->server
           : port == &chat_manager_port ? node->manager
                                        : node->client;
}

/* Programs read it, too: docs/protocol.md promises its form. */
static void send_on(void *user, const struct port *port, char sentence[DOOR_SENTENCE_MAX])
{
    struct standby *s = user;
    const struct cell_node *leader = leader_of(s);
    if (leader)
        (void)snprintf(sentence, DOOR_SENTENCE_MAX,
                       "This node is a standby; the leader of cell %s is at %s", s->cell->cell,
                       address_of(leader, port));
    else
        (void)snprintf(sentence, DOOR_SENTENCE_MAX,
                       "This node is a standby; nobody leads cell %s now", s->cell->cell);
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void watch_signal(struct standby *s, uv_signal_t *handle, uv_signal_cb call, int number)
{
    uv_signal_init(&s->loop.uv, handle);
    handle->data = s;
    uv_signal_start(handle, call, number);
}

static struct standby *standby_new(const struct standby_config *config,
                                   const struct front_places *places)
{
    struct standby *s = xcalloc(1, sizeof(*s));
    struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .worked = on_worked, .user = s};
    s->cell = config->cell;
    s->hold_off_until_ms = config->hold_off_ms > 0 ? clock_monotonic_ms() + config->hold_off_ms : 0;
    s->reload = config->service->reload;
    s->reload_user = config->service->reload_user;
    s->notify = config->service->notify;
    s->shown = (struct cluster_standby){look, follow, is_ready, s};
    (void)snprintf(s->why, sizeof(s->why), "This standby is loading cell %s.", s->cell->cell);
    loop_init(&s->loop, &hooks, &places->servers);
    loop_share(&s->loop, &s->players, &places->players, places->both);
    doors_init(&s->doors, &s->loop);
    s->doors.send_on = send_on;
    s->doors.send_on_user = s;
    s->metrics = metrics_new(s->doors.wall_ms);
    uv_async_init(&s->loop.uv, &s->changed, on_changed);
    s->changed.data = s;
    (void)signal(SIGPIPE, SIG_IGN);
    watch_signal(s, &s->on_term, on_signal, SIGTERM);
    watch_signal(s, &s->on_interrupt, on_signal, SIGINT);
    watch_signal(s, &s->on_hangup, on_hangup, SIGHUP);
    return s;
}

static int open_http(struct standby *s, const struct service_config *c, size_t connections,
                     char *why)
{
    const char *reason = NULL;
    struct rest_config http = c->http;
    http.connections = connections;
    http.held_fd = c->held.http;
    http.config_digest = c->config_digest;
    http.secret = c->secret;
    http.proxies = c->proxies;
    http.n_proxies = c->n_proxies;
    http.data = NULL; /* nothing is backed up here */
    s->access = access_new(c->secret);
    access_configure(s->access, c->gamespace, c->keys, c->n_keys);
    rest_init(&s->rest, &s->doors, s->access, s->metrics, NULL);
    s->rest.standby = &s->shown;
    int err = rest_start(&s->rest, &http, &reason);
    if (err != 0)
        (void)snprintf(why, SERVICE_WHY_MAX, "Cannot listen for HTTP on %s:%u: %s", http.ip,
                       http.port, reason);
    return err;
}

static void watch(struct standby *s, const struct service_config *c)
{
    metrics_watch(s->metrics, &(struct metrics_sources){.doors = &s->doors,
                                                        .http = s->rest.http,
                                                        .standby = &s->shown,
                                                        .http_tls = c->http.tls,
                                                        .server_tls = c->server_tls,
                                                        .manager_tls = c->manager_tls,
                                                        .client_tls = c->client_tls});
}

int standby_start(const struct standby_config *config, struct standby **ret,
                  char why[SERVICE_WHY_MAX])
{
    const struct service_config *c = config->service;
    struct front_places places;
    if (!front_share(c, &places, why))
        return ERR_IO;
    struct standby *s = standby_new(config, &places);
    int err = front_open(&s->doors, &s->players, c, why);
    if (err == 0)
        err = open_http(s, c, places.http, why);
    if (err != 0) {
        standby_free(s);
        return err;
    }
    s->follower =
        follower_start(config->cell, config->core, c->secret, config->hold_off_ms, wake, s);
    s->archives = archives_new(&(struct archives_config){.loop = &s->loop,
                                                         .folder = c->http.deployments,
                                                         .access = s->access,
                                                         .node = config->cell->self.name,
                                                         .ca_file = config->ca_file,
                                                         .wanted = wanted,
                                                         .source = source,
                                                         .changed = on_archives,
                                                         .user = s});
    follower_set_ready(s->follower, false);
    watch(s, c);
    *ret = s;
    return 0;
}

void standby_ports(const struct standby *s, struct service_ports *ret)
{
    front_ports(&s->doors, &s->rest, ret);
}

enum standby_end standby_run(struct standby *s)
{
    log_gather(true);
    notify_ready(s->notify, "standing by");
    signals_run(&s->loop);
    log_gather(false);
    return s->signalled ? STANDBY_STOPPED : s->end;
}

const char *standby_why(const struct standby *s)
{
    return s->seen.why;
}

void standby_take(struct standby *s, struct core **ret_core, struct store_tip *ret_tip,
                  struct cell_term *ret_term)
{
    follower_take(s->follower, ret_core, ret_tip, ret_term);
    s->follower = NULL;
}

static void no_hook(void *user)
{
    (void)user;
}

void standby_free(struct standby *s)
{
    if (!s)
        return;
    follower_stop(s->follower); /* from here nobody wakes us */
    archives_free(s->archives);
    rest_done(&s->rest);
    doors_stop(&s->doors);
    doors_close(&s->doors);
    s->loop.hooks = (struct loop_hooks){.turn = no_hook, .tick = no_hook, .user = s};
    uv_close((uv_handle_t *)&s->changed, NULL);
    uv_close((uv_handle_t *)&s->on_term, NULL);
    uv_close((uv_handle_t *)&s->on_interrupt, NULL);
    uv_close((uv_handle_t *)&s->on_hangup, NULL);
    loop_done(&s->loop);
    loop_crowd_done(&s->players);
    doors_done(&s->doors);
    access_free(s->access);
    metrics_free(s->metrics);
    free(s);
}

#include "agent/agent.h"

#include "agent/deployments.h"
#include "agent/door.h"
#include "agent/game.h"
#include "agent/link.h"
#include "agent/outbox.h"
#include "agent/process.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/machine.h"
#include "net/curl.h"
#include "net/loop.h"
#include "net/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum {
    LEAVE_MS = 2000,    /* the last heartbeat's time */
    END_MS = 2000,      /* a game server's, when it ends with us */
    FOLDER_MODE = 0711, /* game servers of other uids must be able to pass through */
};

struct agent {
    const struct agent_config *config;
    struct loop loop;
    struct processes *processes;
    struct links *links;
    struct outbox *outbox;
    struct control *control;
    struct deployments *deployments;
    struct door *door;
    struct games games;
    struct machine machine;
    char url[ADDRESS_MAX + 16]; /* of our door, as the control plane can reach it */
    uv_signal_t on_term;
    uv_signal_t on_interrupt;
    bool watches_signals;
    bool stopping;
    bool ending;          /* … once the game servers have ended */
    int64_t give_up_ms;   /* monotonic: when we go even though the last heartbeat was not taken */
    struct notify notify; /* whoever started us hears how we are */
};

/* ── heartbeats ────────────────────────────────────────────────────────────────────────────── */

static void put_game(struct json_writer *w, const struct game *g)
{
    int n = 0;
    const uint16_t *ports = g->process ? process_ports(g->process, &n) : NULL;
    int64_t since_ms = g->process ? clock_wall_ms() - process_since_ms(g->process) : 0;
    json_open_object(w);
    json_key_id(w, "id", g->server);
    json_key_id(w, "session", g->session);
    json_key_int(w, "pid", g->process ? process_pid(g->process) : 0);
    json_key_text(w, "state", str_of(game_state_name(g)));
    json_key(w, "ports");
    json_open_array(w);
    for (int i = 0; i < n; i++)
        json_int(w, ports[i]);
    json_close_array(w);
    json_key_int(w, "since_ms", since_ms > 0 ? since_ms : 0);
    json_close_object(w);
}

static void put_games(const struct agent *a, struct json_writer *w)
{
    struct game *g;
    json_key(w, "servers");
    json_open_array(w);
    for (size_t at = 0; (g = games_next(&a->games, &at));) {
        if (g->phase != GAME_OVER && !g->prepared)
            put_game(w, g);
    }
    json_close_array(w);
}

static void put_deployments(const struct agent *a, struct json_writer *w)
{
    char hex[2 * ARCHIVE_DIGEST + 1];
    json_key(w, "deployments");
    json_open_array(w);
    for (size_t i = 0; i < deployments_count(a->deployments); i++) {
        sodium_bin2hex(hex, sizeof(hex), deployments_at(a->deployments, i), ARCHIVE_DIGEST);
        json_text(w, str_of(hex));
    }
    json_close_array(w);
}

static int slots_of(const struct process_limits *limits)
{
    int ports = limits->port_last - limits->port_first + 1;
    return limits->slots > 0 && limits->slots < ports ? limits->slots : ports;
}

static void describe(void *user, int64_t beat, bool leaving, struct buf *out)
{
    struct agent *a = user;
    const struct agent_config *config = a->config;
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "name", str_of(config->control.name));
    json_key_text(&w, "address", str_of(config->address));
    json_key_text(&w, "url", str_of(a->url));
    json_key_text(&w, "region", str_of(config->region));
    json_key_int(&w, "slots", slots_of(&config->limits));
    json_key_number(&w, "cpu_percent", (double)machine_cpu_percent(&a->machine), 1);
    json_key_number(&w, "memory_percent", (double)machine_memory_percent(), 1);
    json_key_number(&w, "disk_percent", (double)machine_disk_percent(config->data), 1);
    json_key_number(&w, "load", machine_load(), 2);
    json_key_int(&w, "beat", beat);
    json_key_bool(&w, "leaving", leaving);
    put_deployments(a, &w);
    put_games(a, &w);
    json_close_object(&w);
}

/* It is in the next heartbeat, or will be asked for again. */
static void on_fetched(void *user, const char *folder, int err, const char *why)
{
    (void)user, (void)folder, (void)err, (void)why;
}

static void on_beaten(void *user, const char *token, const struct json *fetch)
{
    struct agent *a = user;
    door_admit(a->door, token);
    for (size_t i = 0; i < json_length(fetch); i++) {
        uint8_t digest[ARCHIVE_DIGEST];
        if (archive_from_hex(json_get_text(json_item(fetch, i)), digest) &&
            !deployments_is_coming(a->deployments, digest))
            deployments_get(a->deployments, digest, on_fetched, a);
    }
}

static void on_answered(void *user, const struct outbox_event *e, const struct json *result,
                        const struct json *error)
{
    struct agent *a = user;
    games_answered(&a->games, e, result, error);
}

static void on_left(void *user)
{
    struct agent *a = user;
    loop_stop(&a->loop);
}

/* ── the loop ──────────────────────────────────────────────────────────────────────────────── */

static void on_turn(void *user)
{
    struct agent *a = user;
    if (a->links)
        links_turn(a->links);
    if (a->control)
        control_turn(a->control);
    if (a->links)
        links_turn(a->links); /* what was answered just now goes to game servers */
}

static void on_tick(void *user)
{
    struct agent *a = user;
    int64_t now_ms = clock_monotonic_ms();
    notify_tick(&a->notify, now_ms);
    if (!a->control)
        return; /* being made, or being freed */
    games_tick(&a->games, now_ms);
    control_tick(a->control, now_ms);
    deployments_tick(a->deployments, now_ms);
    door_tick(a->door, now_ms);
    if (a->ending && games_running(&a->games) == 0) {
        a->ending = false;
        control_leave(a->control);
    }
    if (a->stopping && now_ms >= a->give_up_ms)
        loop_stop(&a->loop);
}

/* We go when the last of them has; see on_tick. */
static void end_servers(struct agent *a)
{
    size_t at = 0;
    struct game *g;
    while ((g = games_next(&a->games, &at)))
        game_end(g, END_MS, "its agent was stopped");
    a->ending = true;
    a->give_up_ms += 2 * END_MS;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct agent *a = handle->data;
    if (a->stopping) {
        loop_stop(&a->loop);
        return;
    }
    a->stopping = a->games.leaving = true;
    a->give_up_ms = clock_monotonic_ms() + LEAVE_MS;
    notify_stopping(&a->notify);
    log_line(LOG_INFO,
             a->config->end_servers ? "stopping, and the game servers with us"
                                    : "stopping; game servers run on and wait for the next agent",
             "signal=%s servers=%zu untold=%zu", number == SIGTERM ? "SIGTERM" : "SIGINT",
             games_running(&a->games), outbox_count(a->outbox));
    if (a->config->end_servers)
        end_servers(a);
    else
        control_leave(a->control);
}

static void watch_signal(struct agent *a, uv_signal_t *handle, int number)
{
    uv_signal_init(&a->loop.uv, handle);
    handle->data = a;
    uv_signal_start(handle, on_signal, number);
}

/* ── making and ending it ──────────────────────────────────────────────────────────────────── */

static const char *control_url_of(void *user)
{
    struct agent *a = user;
    return control_url(a->control);
}

/* Each game server costs about ten, and there may be thousands. */
static void use_descriptors(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
}

static int open_folder(const char *folder, char why[AGENT_WHY_MAX])
{
    if (mkdir(folder, FOLDER_MODE) == 0 || errno == EEXIST)
        return 0;
    snprintf(why, AGENT_WHY_MAX, "Cannot make the folder %.300s: %s.", folder, strerror(errno));
    return ERR_IO;
}

static int open_processes(struct agent *a, char why[AGENT_WHY_MAX])
{
    char reason[PROCESS_WHY_MAX] = "";
    const struct agent_config *config = a->config;
    const struct process_ops ops = {
        .begun = games_process_begun, .over = games_process_over, .user = &a->games};
    int err = processes_open(&a->loop, config->data, config->shim, &config->limits, &ops,
                             &a->processes, reason);
    if (err != 0)
        snprintf(why, AGENT_WHY_MAX, "Cannot look after processes: %s.", reason);
    return err;
}

static int open_links(struct agent *a, char why[AGENT_WHY_MAX])
{
    char reason[LINK_WHY_MAX] = "";
    const char *problem = curl_load();
    a->links = problem ? NULL : links_open(&a->loop, reason);
    if (a->links)
        return 0;
    snprintf(why, AGENT_WHY_MAX, "Cannot start: %s.", problem ? problem : reason);
    return ERR_IO;
}

static int open_control(struct agent *a, char why[AGENT_WHY_MAX])
{
    char path[PATH_MAX];
    char reason[ARCHIVE_WHY_MAX] = "";
    const struct control_ops ops = {.describe = describe,
                                    .beaten = on_beaten,
                                    .answered = on_answered,
                                    .left = on_left,
                                    .user = a};
    snprintf(path, sizeof(path), "%s/events", a->config->data);
    int err = outbox_open(path, &a->outbox, reason);
    if (err == 0) {
        a->control = control_new(&a->loop, &a->config->control, a->outbox, &ops);
        err = deployments_open(&a->loop, control_client(a->control), control_url_of, a,
                               a->config->data, &a->deployments, reason);
    }
    if (err != 0)
        snprintf(why, AGENT_WHY_MAX, "%s", reason);
    return err;
}

static int open_door(struct agent *a, char why[AGENT_WHY_MAX])
{
    char bound[ADDRESS_MAX];
    const struct agent_config *config = a->config;
    int err = door_open(&a->loop, &a->games, config->listen_ip, config->listen_port,
                        config->control.token, &a->door, why);
    if (err != 0)
        return err;
    const char *port = strrchr(door_address(a->door, bound), ':') + 1;
    bool v6 = strchr(config->address, ':') != NULL;
    snprintf(a->url, sizeof(a->url), "http://%s%s%s:%s", v6 ? "[" : "", config->address,
             v6 ? "]" : "", port);
    return 0;
}

static void adopt(struct agent *a)
{
    a->games.processes = a->processes;
    a->games.links = a->links;
    a->games.outbox = a->outbox;
    a->games.deployments = a->deployments;
    games_adopt(&a->games);
}

int agent_start(const struct agent_config *config, struct agent **ret, char why[AGENT_WHY_MAX])
{
    struct agent *a = xcalloc(1, sizeof(*a));
    const struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = a};
    const struct loop_limits limits = {0};
    a->config = config;
    notify_open(&a->notify); /* first: no shim may inherit it */
    use_descriptors();
    loop_init(&a->loop, &hooks, &limits);
    games_init(&a->games);
    int err = open_folder(config->data, why);
    if (err == 0)
        err = open_processes(a, why);
    if (err == 0)
        err = open_links(a, why);
    if (err == 0)
        err = open_control(a, why);
    if (err == 0)
        err = open_door(a, why);
    if (err != 0) {
        agent_free(a);
        return err;
    }
    adopt(a);
    watch_signal(a, &a->on_term, SIGTERM);
    watch_signal(a, &a->on_interrupt, SIGINT);
    a->watches_signals = true;
    *ret = a;
    return 0;
}

void agent_run(struct agent *a)
{
    notify_ready(&a->notify, "looking after this host's game servers");
    loop_run(&a->loop);
}

void agent_free(struct agent *a)
{
    if (!a)
        return;
    door_close(a->door);
    deployments_close(a->deployments);
    games_done(&a->games);
    control_free(a->control);
    a->control = NULL;
    outbox_close(a->outbox);
    links_close(a->links);
    a->links = NULL;
    processes_close(a->processes);
    if (a->watches_signals) {
        uv_close((uv_handle_t *)&a->on_term, NULL);
        uv_close((uv_handle_t *)&a->on_interrupt, NULL);
    }
    loop_done(&a->loop);
    notify_close(&a->notify);
    free(a);
}

const char *agent_address(const struct agent *a, char dst[ADDRESS_MAX])
{
    return door_address(a->door, dst);
}

size_t agent_servers(const struct agent *a)
{
    return games_running(&a->games);
}

const char *agent_missing(const struct agent *a)
{
    return processes_missing(a->processes);
}

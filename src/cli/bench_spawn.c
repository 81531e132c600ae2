/* From asking for a room to its server's `inited`, through control plane, agent and shim, beside
 * the same program started bare by posix_spawn until its first word over ZeroMQ. One at a time; the
 * two take turns, and neither begins while the other's rest is still being done. */
#include "agent/zeromq.h"
#include "api/access.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_rooms.h"
#include "cli/beside.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROOMS_EACH = 20,
    WAIT_MS = 10 * 1000,
    REQUEST_MAX = 8 * 1024,
    HOST_TRIES = 100,
    SETTLE_US = 25 * 1000, /* the agent lays in what it gave; what ended is cleared away */
};

const struct arg bench_spawn_options[] = {
    BENCH_ARG_RUNS, BENCH_ARG_LOG_LEVEL, BENCH_ARG_DATA_ROOT, BENCH_ARG_JSON, {0},
};

/* ── bare ──────────────────────────────────────────────────────────────────────────────────── */

struct bare {
    void *context;
    const char *binary;
    const char *folder;
    int64_t n;
};

static bool hear_first_word(void *socket)
{
    char message[4096];
    return zeromq.recv(socket, message, sizeof(message), 0) > 0;
}

/* Milliseconds, or a negative number. */
static double start_bare(struct bare *b)
{
    static char *const no_environment[] = {NULL};
    char path[PATH_MAX], uri[PATH_MAX + 8];
    int wait_ms = WAIT_MS;
    int no_linger = 0;
    snprintf(path, sizeof(path), "%s/bare-%" PRId64, b->folder, b->n++);
    snprintf(uri, sizeof(uri), "ipc://%s", path);
    char *const argv[] = {(char *)b->binary, path, "1", NULL};
    pid_t pid = 0;
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int64_t start_ns = monotonic_ns();
    void *socket = zeromq.socket(b->context, ZMQ_PAIR);
    zeromq.setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zeromq.setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof(no_linger));
    bool ok = zeromq.bind(socket, uri) == 0 &&
              posix_spawn(&pid, b->binary, &quiet, NULL, argv, no_environment) == 0 &&
              hear_first_word(socket);
    double ms = (double)(monotonic_ns() - start_ns) / 1e6;
    posix_spawn_file_actions_destroy(&quiet);
    child_end(pid);
    zeromq.close(socket);
    (void)unlink(path);
    return ok ? ms : -1;
}

/* ── through Muster ────────────────────────────────────────────────────────────────────────── */

static const char config_format[] = "fleets:\n"
                                    "  - name: default\n"
                                    "  - name: bench\n"
                                    "    provider: agent\n"
                                    "    game: bench\n"
                                    "    server: room\n"
                                    "    binary: '%s'\n"
                                    "    ports: 1\n"
                                    "    max_players: 4\n"
                                    "    versions: [{name: '1'}]\n"
                                    "rates:\n"
                                    "  create: [{count: 1000000, seconds: 60}]\n"
                                    "  join: [{count: 1000000, seconds: 60}]\n";

/* Who asks keeps his connection, as the bare one keeps its ZeroMQ context: neither is part of a
 * start. */
static int ask_for_room(int client, const char *token, struct buf *answer)
{
    char request[REQUEST_MAX];
    int n = snprintf(request, sizeof(request),
                     "POST /create/bench/room/1?region=EU HTTP/1.1\r\nHost: bench\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
                     token);
    return bench_send(client, (struct str){request, (size_t)n}) ? bench_receive(client, answer) : 0;
}

/* The bare one is ended too: those that run on would be measured along with those that start. */
static bool end_room(int client, const char *admin, const struct buf *answer)
{
    char why[JSON_WHY_MAX], request[REQUEST_MAX];
    struct json *root = json_parse(str_of((const char *)answer->data), why);
    struct str id = json_get_text(json_member(root, "id"));
    int n = snprintf(request, sizeof(request),
                     "POST /v1/sessions/%.*s/end HTTP/1.1\r\nHost: bench\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
                     (int)id.len, id.at, admin);
    json_free(root);
    return bench_send(client, (struct str){request, (size_t)n}) &&
           bench_receive(client, NULL) == 200;
}

/* Milliseconds, or a negative number with why. */
static double start_room(struct bench *b, int client, const char *token, const char *admin)
{
    struct buf answer = {0};
    int64_t start_ns = monotonic_ns();
    int status = ask_for_room(client, token, &answer);
    double ms = (double)(monotonic_ns() - start_ns) / 1e6;
    bool ended = status == 200 && end_room(client, admin, &answer);
    if (!ended)
        bench_fail(b, "a room was answered with %d, or could not be ended: %.200s", status,
                   answer.len > 0 ? (const char *)answer.data : "");
    buf_done(&answer);
    return ended ? ms : -1;
}

/* The agent has said that it is there when a room can be had; this one also warms everything. */
static bool wait_for_host(struct bench *b, int client, const char *token)
{
    for (int i = 0; i < HOST_TRIES; i++) {
        struct buf answer = {0};
        int status = ask_for_room(client, token, &answer);
        buf_done(&answer);
        if (status == 200)
            return true;
        usleep(100 * 1000);
    }
    return bench_fail(b, "the agent did not become ready");
}

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

struct found {
    struct figure room, bare, ratio;
    double n;
};

static bool measure_run(struct bench *b, int client, struct bare *bare,
                        const struct bench_players *players, const char *admin, struct found *ret)
{
    static int64_t asked;
    struct figure rooms = {0}, bares = {0};
    for (int i = 0; i < ROOMS_EACH; i++) {
        usleep(SETTLE_US);
        double bare_ms = start_bare(bare);
        if (bare_ms < 0)
            return bench_fail(b, "%s did not say that it is ready", bare->binary);
        usleep(SETTLE_US);
        double ms = start_room(b, client, bench_player(players, asked++), admin);
        if (ms < 0)
            return false;
        figure_add(&bares, bare_ms);
        figure_add(&rooms, ms);
    }
    figure_add(&ret->room, figure_median(&rooms));
    figure_add(&ret->bare, figure_median(&bares));
    figure_add(&ret->ratio, figure_median(&rooms) / figure_median(&bares));
    ret->n += ROOMS_EACH;
    return true;
}

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "room_ms", &f->room, 2);
    bench_figure(b, "bare_ms", &f->bare, 2);
    bench_figure(b, "ratio", &f->ratio, 2);
    bench_number(b, "n", f->n, 0);
    struct bench_row *row = bench_row(
        b, "P6", "POST /create until its server is ready, one at a time", &f->room, "ms", 2);
    row->wanted = "≤ 1.3 × bare";
    row->reach = 1.3 / figure_median(&f->ratio);
    row->n = f->n;
    snprintf(row->yardstick, sizeof(row->yardstick),
             "the same program by posix_spawn until its first word: %.2f ms (%.2f ×)",
             figure_median(&f->bare), figure_median(&f->ratio));
}

static bool measure(struct bench *b, const struct served *s, const char *binary, const char *data,
                    const struct bench_players *players)
{
    char admin[BENCH_TOKEN_MAX];
    struct found found = {0};
    struct bare bare = {.context = zeromq.ctx_new(), .binary = binary, .folder = b->folder};
    int client = bench_connect(s->http);
    bool ok = client >= 0 && bench_read_token(b, data, admin) &&
              wait_for_host(b, client, bench_player(players, 0));
    for (int i = 0; ok && i < bench_options.runs; i++) {
        bench_run_begins(i);
        ok = measure_run(b, client, &bare, players, admin, &found);
    }
    if (client >= 0)
        close(client);
    zeromq.ctx_term(bare.context);
    if (ok)
        tell(b, &found);
    return ok;
}

bool bench_spawn(struct bench *b)
{
    char data[BENCH_PATH_MAX], binary[PATH_MAX], config[PATH_MAX + sizeof(config_format)];
    struct served s = {0};
    struct bench_players players = {0};
    pid_t agent = 0;
    const char *missing = zeromq_load();
    if (missing)
        return bench_fail(b, "%s", missing);
    if (!beside_find("arena", binary))
        return bench_fail(b,
                          "the example game 'arena' belongs beside this program and is not there");
    snprintf(config, sizeof(config), config_format, binary);
    bench_path(b, "spawn", data);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data, .config = config}) &&
              bench_players_make(&players, b, data, 200, 1) &&
              bench_agent_start(b, &s, &players, &agent) && measure(b, &s, binary, data, &players);
    if (agent > 0) {
        kill(agent, SIGTERM); /* it ends its servers */
        (void)waitpid(agent, NULL, 0);
    }
    served_end(&s, SIGKILL);
    bench_players_done(&players);
    bench_remove(b, "spawn");
    bench_remove(b, "agent");
    return ok;
}

int bench_spawn_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_spawn_options, bench_spawn);
}

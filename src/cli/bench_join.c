/* Players who join rooms over HTTP: each request gives one a durable seat in the next of a few
 * large rooms, moving him there, beside the same server answering a constant. The host is one that
 * says it has started the rooms; players never come to it. */
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_rooms.h"
#include "cli/cli.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ROOMS = 4,
    PLAYERS = 8000,
    TOKENS_MAX = 20,
    REQUEST_MAX = 8 * 1024,
    SPAWN_WAIT_S = 10,
};

static struct {
    int64_t connections;
    int64_t tokens;
} wish = {.connections = 64, .tokens = 1};

const struct arg bench_join_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = BENCH_CLIENTS_MAX,
     .value = "N",
     .help = "clients, each with one request under way (64)"},
    {.name = "--tokens",
     .kind = ARG_NUMBER,
     .into = &wish.tokens,
     .min = 1,
     .max = TOKENS_MAX,
     .value = "N",
     .help = "of each player, in turn; with 10 Muster has forgotten each when it comes again (1)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

static const char config[] = "fleets:\n"
                             "  - name: default\n"
                             "  - name: bench\n"
                             "    provider: agent\n"
                             "    game: bench\n"
                             "    server: room\n"
                             "    binary: /bin/true\n"
                             "    ports: 1\n"
                             "    max_players: 10000\n"
                             "    reserve_s: 3600\n"
                             "    versions: [{name: '1'}]\n"
                             "rates:\n"
                             "  create: [{count: 1000000, seconds: 60}]\n"
                             "  join: [{count: 1000000, seconds: 60}]\n";

/* ── a host that only says so ──────────────────────────────────────────────────────────────── */

struct host {
    const struct served *served;
    int listening;
    char url[64];
    struct bench_players players;
    char rooms[ROOMS][24];
    char servers[ROOMS][24]; /* "" = not started yet */
    int64_t beats;
    int64_t asked; /* joins so far */
};

static bool listen_somewhere(struct host *h, struct bench *b)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct timeval patience = {.tv_sec = SPAWN_WAIT_S};
    h->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(h->listening, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (h->listening < 0 || bind(h->listening, (struct sockaddr *)&a, sizeof(a)) != 0 ||
        listen(h->listening, 64) != 0 ||
        getsockname(h->listening, (struct sockaddr *)&a, &len) != 0)
        return bench_fail(b, "a host cannot listen");
    snprintf(h->url, sizeof(h->url), "http://127.0.0.1:%u", ntohs(a.sin_port));
    return true;
}

static int post(const struct host *h, const char *token, const char *path, const char *body,
                struct buf *answer)
{
    char request[REQUEST_MAX];
    int n = snprintf(request, sizeof(request),
                     "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     path, token, strlen(body), body);
    return bench_ask_once(h->served->http, (struct str){request, (size_t)n}, answer);
}

static bool beat(struct host *h, struct bench *b)
{
    char body[2048], servers[1024] = "";
    size_t len = 0;
    for (int i = 0; i < ROOMS && h->servers[i][0]; i++)
        len += (size_t)snprintf(servers + len, sizeof(servers) - len,
                                "%s{\"id\":\"%s\",\"session\":\"%s\",\"pid\":1,"
                                "\"state\":\"running\",\"ports\":[1],\"since_ms\":1}",
                                i > 0 ? "," : "", h->servers[i], h->rooms[i]);
    snprintf(body, sizeof(body),
             "{\"name\":\"bench\",\"address\":\"127.0.0.1\",\"url\":\"%s\",\"region\":\"EU\","
             "\"slots\":100,\"cpu_percent\":1,\"memory_percent\":1,\"beat\":%" PRId64
             ",\"deployments\":[],\"servers\":[%s]}",
             h->url, ++h->beats, servers);
    struct buf answer = {0};
    int status = post(h, h->players.host, "/v1/agent/heartbeat", body, &answer);
    bool ok = status == 200 || bench_fail(b, "a heartbeat was answered with %d: %.200s", status,
                                          (const char *)answer.data);
    buf_done(&answer);
    return ok;
}

/* The text behind "key":" in a JSON text. */
static bool text_of(const struct buf *json, const char *key, char *dst, size_t cap)
{
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\":\"", key);
    const char *at = json->len > 0 ? strstr((const char *)json->data, quoted) : NULL;
    const char *end = at ? strchr(at + strlen(quoted), '"') : NULL;
    at = at ? at + strlen(quoted) : NULL;
    return end && str_copy(dst, cap, (struct str){at, (size_t)(end - at)});
}

/* Takes one spawn and says that the server is ready. */
static bool start_server(struct host *h, struct bench *b, char server[24])
{
    static const char taken[] = "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
                                "Content-Length: 2\r\nConnection: close\r\n\r\n{}";
    char request[REQUEST_MAX] = "", body[512];
    int fd = accept(h->listening, NULL, NULL);
    size_t len = 0;
    ssize_t n = 1;
    while (fd >= 0 && n > 0 && !strstr(request, "\"server_id\":\"") && len < sizeof(request) - 1) {
        n = recv(fd, request + len, sizeof(request) - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
        request[len] = '\0';
    }
    struct buf text = {.data = (uint8_t *)request, .len = len};
    bool ok = text_of(&text, "server_id", server, 24) &&
              bench_send(fd, (struct str){taken, sizeof(taken) - 1});
    if (fd >= 0)
        close(fd);
    snprintf(body, sizeof(body),
             "{\"name\":\"bench\",\"events\":[{\"server\":\"%s\",\"seq\":1,\"event\":\"inited\","
             "\"pid\":1,\"ports\":[1]}]}",
             server);
    return (ok && post(h, h->players.host, "/v1/agent/events", body, NULL) == 200) ||
           bench_fail(b, "a room could not be started");
}

static bool open_room(struct host *h, struct bench *b, int i)
{
    char request[REQUEST_MAX];
    struct buf answer = {0};
    int n = snprintf(request, sizeof(request),
                     "POST /create/bench/room/1?region=EU HTTP/1.1\r\nHost: bench\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
                     bench_player(&h->players, i));
    int fd = bench_connect(h->served->http);
    bool ok = fd >= 0 && bench_send(fd, (struct str){request, (size_t)n});
    bool started = ok && start_server(h, b, h->servers[i]);
    int status = ok ? bench_receive(fd, &answer) : 0; /* also what kept it from being started */
    ok = (started || status != 200) &&
         (status == 200 ||
          bench_fail(b, "a room was answered with %d: %.200s", status, (const char *)answer.data));
    ok = ok && text_of(&answer, "id", h->rooms[i], sizeof(h->rooms[i]));
    if (fd >= 0)
        close(fd);
    buf_done(&answer);
    if (!ok && b->why[0] == '\0')
        bench_fail(b, "no room could be made");
    return ok;
}

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

static void next_join(void *user, struct buf *out)
{
    struct host *h = user;
    int64_t i = h->asked++;
    char *at = (char *)buf_extend(out, REQUEST_MAX);
    int n = snprintf(at, REQUEST_MAX,
                     "POST /room/bench/%s/join HTTP/1.1\r\nHost: bench\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
                     h->rooms[i / PLAYERS % ROOMS], bench_player(&h->players, i));
    out->len = (size_t)n;
}

static bool measure(struct bench *b, struct host *h, struct bench_pair *ret)
{
    int clients = (int)wish.connections;
    for (int i = 0; i < bench_options.runs; i++) {
        if (!beat(h, b) ||
            !bench_clients_run(b, h->served, clients, bench_next_constant, NULL, &ret->constant) ||
            !beat(h, b) || !bench_clients_run(b, h->served, clients, next_join, h, &ret->asked))
            return false;
        figure_add(&ret->ratio, ret->asked.rate.values[i] / ret->constant.rate.values[i]);
    }
    return true;
}

static void tell(struct bench *b, const struct bench_pair *p)
{
    bench_figure(b, "joins_per_s", &p->asked.rate, 0);
    bench_figure(b, "cpu_us_per_join", &p->asked.cpu, 2);
    struct bench_row *row =
        bench_pair_tell(b, p, "P3", "POST /room/…/join over HTTP: a durable seat each, 64 clients",
                        (int)wish.connections);
    row->wanted = "≥ 0.5 × a constant";
    row->reach = figure_median(&p->ratio) / 0.5;
}

bool bench_join(struct bench *b)
{
    char data[BENCH_PATH_MAX];
    static struct bench_pair found; /* large */
    struct served s = {0};
    struct host h = {.served = &s, .listening = -1};
    found = (struct bench_pair){0};
    bench_path(b, "join", data);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data, .config = config}) &&
              bench_players_make(&h.players, b, data, PLAYERS, (size_t)wish.tokens) &&
              listen_somewhere(&h, b) && beat(&h, b);
    for (int i = 0; ok && i < ROOMS; i++)
        ok = open_room(&h, b, i);
    ok = ok && measure(b, &h, &found);
    served_end(&s, SIGKILL);
    if (h.listening >= 0)
        close(h.listening);
    bench_players_done(&h.players);
    bench_remove(b, "join");
    if (ok)
        tell(b, &found);
    return ok;
}

int bench_join_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_join_options, bench_join);
}

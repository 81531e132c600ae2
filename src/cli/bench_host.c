#include "cli/bench_host.h"

#include "cli/bench_clients.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 8 * 1024, SPAWN_WAIT_S = 10 };

const char bench_host_fleet[] = "fleets:\n"
                                "  - name: default\n"
                                "  - name: bench\n"
                                "    provider: agent\n"
                                "    game: bench\n"
                                "    server: room\n"
                                "    binary: /bin/true\n"
                                "    ports: 1\n"
                                "    max_players: 10000\n"
                                "    reserve_s: 3600\n"
                                "    versions: [{name: '1'}]\n";

static bool listen_somewhere(struct bench_host *h, struct bench *b)
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

static int post(const struct bench_host *h, const char *token, const char *path, const char *body,
                struct buf *answer)
{
    char request[REQUEST_MAX];
    int n = snprintf(request, sizeof(request),
                     "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     path, token, strlen(body), body);
    return bench_ask_once(h->served->http, (struct str){request, (size_t)n}, answer);
}

bool bench_host_beat(struct bench_host *h, struct bench *b)
{
    char body[2048], servers[1024] = "";
    size_t len = 0;
    for (int i = 0; i < BENCH_HOST_ROOMS && h->servers[i][0]; i++)
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

/* Takes one request of Muster's about a server. */
static bool take_command(struct bench_host *h, char request[REQUEST_MAX], char server[24])
{
    static const char taken[] = "HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\n"
                                "Content-Length: 2\r\nConnection: close\r\n\r\n{}";
    int fd = accept(h->listening, NULL, NULL);
    size_t len = 0;
    ssize_t n = 1;
    request[0] = '\0';
    while (fd >= 0 && n > 0 && !strstr(request, "\"server_id\":\"") && len < REQUEST_MAX - 1) {
        n = recv(fd, request + len, REQUEST_MAX - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
        request[len] = '\0';
    }
    struct buf text = {.data = (uint8_t *)request, .len = len};
    bool ok = text_of(&text, "server_id", server, 24) &&
              bench_send(fd, (struct str){taken, sizeof(taken) - 1});
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Takes one spawn, whatever is said before it, and says that the server is ready. */
static bool start_server(struct bench_host *h, struct bench *b, char server[24])
{
    char request[REQUEST_MAX], body[512];
    bool ok = true;
    do
        ok = take_command(h, request, server);
    while (ok && strncmp(request, "POST /spawn ", 12) != 0);
    snprintf(body, sizeof(body),
             "{\"name\":\"bench\",\"events\":[{\"server\":\"%s\",\"seq\":1,\"event\":\"inited\","
             "\"pid\":1,\"ports\":[1]}]}",
             server);
    return (ok && post(h, h->players.host, "/v1/agent/events", body, NULL) == 200) ||
           bench_fail(b, "a room could not be started");
}

static bool open_room(struct bench_host *h, struct bench *b, int i)
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

bool bench_host_start(struct bench_host *h, struct bench *b)
{
    bool ok = listen_somewhere(h, b) && bench_host_beat(h, b);
    for (int i = 0; ok && i < BENCH_HOST_ROOMS; i++)
        ok = open_room(h, b, i);
    return ok;
}

void bench_host_done(struct bench_host *h)
{
    if (h->listening >= 0)
        close(h->listening);
    bench_players_done(&h->players);
}

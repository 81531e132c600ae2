/* Requests over HTTP: one object read with its token and scope, durably, beside the same server
 * answering a constant. Clients keep their connections and have one request each under way. */
#include "base/buf.h"
#include "base/str.h"
#include "cli/bench_child.h"
#include "cli/bench_load.h"
#include "cli/cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 100, ANSWER_MAX = 64 * 1024, TOKEN_MAX = 2048, WARM_UP_MS = 200 };

static struct {
    int64_t connections;
} wish = {.connections = 64};

const struct arg bench_http_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = CLIENTS_MAX,
     .value = "N",
     .help = "clients, each with one request under way (64)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

/* ── clients ───────────────────────────────────────────────────────────────────────────────── */

struct client {
    int fd;
    int64_t asked_ns;
    size_t len;
    char answer[ANSWER_MAX];
};

struct crowd {
    int epoll;
    int n;
    struct client clients[CLIENTS_MAX];
    struct buf request;
    struct durations latency;
    int64_t answered;
    bool measuring;
    char why[128]; /* "" = all is well */
};

static bool connect_to(struct client *c, const char *address)
{
    char ip[64];
    const char *colon = strchr(address, ':');
    struct sockaddr_in a = {.sin_family = AF_INET};
    if (!colon || !str_copy(ip, sizeof(ip), (struct str){address, (size_t)(colon - address)}) ||
        inet_pton(AF_INET, ip, &a.sin_addr) != 1)
        return false;
    a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return c->fd >= 0 && connect(c->fd, (struct sockaddr *)&a, sizeof(a)) == 0;
}

static void ask(struct crowd *crowd, struct client *c)
{
    c->len = 0;
    c->asked_ns = monotonic_ns();
    ssize_t n = send(c->fd, crowd->request.data, crowd->request.len, MSG_NOSIGNAL);
    if (n != (ssize_t)crowd->request.len)
        snprintf(crowd->why, sizeof(crowd->why), "a request could not be sent");
}

/* Bytes of a whole answer, 0 while it is not whole; anything but 200 is a failure. */
static size_t whole(struct crowd *crowd, const struct client *c)
{
    const char *end = memmem(c->answer, c->len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    if (strncmp(c->answer, "HTTP/1.1 200 ", 13) != 0)
        snprintf(crowd->why, sizeof(crowd->why), "answered with: %.60s", c->answer);
    const char *length = strcasestr(c->answer, "\r\nContent-Length: ");
    if (!length || length > end)
        return 0;
    size_t total = (size_t)(end + 4 - c->answer) + strtoul(length + 18, NULL, 10);
    return c->len >= total ? total : 0;
}

static void read_answer(struct crowd *crowd, struct client *c)
{
    ssize_t n = recv(c->fd, c->answer + c->len, ANSWER_MAX - 1 - c->len, MSG_DONTWAIT);
    if (n <= 0) {
        snprintf(crowd->why, sizeof(crowd->why), "Muster hung up on a client");
        return;
    }
    c->len += (size_t)n;
    c->answer[c->len] = '\0';
    if (whole(crowd, c) == 0)
        return;
    if (crowd->measuring) {
        durations_add(&crowd->latency, monotonic_ns() - c->asked_ns);
        crowd->answered++;
    }
    ask(crowd, c);
}

static void turn_until(struct crowd *crowd, int64_t until_ns)
{
    struct epoll_event events[CLIENTS_MAX];
    while (monotonic_ns() < until_ns && !crowd->why[0]) {
        int n = epoll_wait(crowd->epoll, events, CLIENTS_MAX, 10);
        for (int i = 0; i < n; i++)
            read_answer(crowd, events[i].data.ptr);
    }
}

static bool crowd_open(struct crowd *crowd, struct bench *b, const char *address)
{
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < wish.connections; i++) {
        struct client *c = &crowd->clients[crowd->n++];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        if (!connect_to(c, address) || epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
            return bench_fail(b, "%s: %s", address, strerror(errno));
    }
    return true;
}

static void crowd_close(struct crowd *crowd)
{
    for (int i = 0; i < crowd->n; i++)
        close(crowd->clients[i].fd);
    close(crowd->epoll);
    buf_done(&crowd->request);
    free(crowd);
}

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

struct found {
    struct figure rate, p50, p99, cpu;
    double n;
};

/* Asks for one path as fast as it is answered. */
static bool measure_path(struct bench *b, const struct served *s, const char *head,
                         struct found *ret)
{
    struct crowd *crowd = xcalloc(1, sizeof(*crowd));
    buf_append(&crowd->request, head, strlen(head));
    bool ok = crowd_open(crowd, b, s->http);
    for (int i = 0; ok && i < crowd->n; i++)
        ask(crowd, &crowd->clients[i]);
    turn_until(crowd, monotonic_ns() + (int64_t)WARM_UP_MS * 1000000);
    crowd->measuring = true;
    double cpu_us = process_cpu_us(s->pid);
    int64_t start_ns = monotonic_ns();
    turn_until(crowd, start_ns + bench_options.seconds * 1000000000);
    double seconds = (double)(monotonic_ns() - start_ns) / 1e9;
    cpu_us = process_cpu_us(s->pid) - cpu_us;
    if (ok && (crowd->why[0] || crowd->answered == 0))
        ok = bench_fail(b, "%s", crowd->why[0] ? crowd->why : "nothing was answered");
    if (ok) {
        figure_add(&ret->rate, (double)crowd->answered / seconds);
        figure_add(&ret->p50, durations_us(&crowd->latency, 0.5));
        figure_add(&ret->p99, durations_us(&crowd->latency, 0.99));
        figure_add(&ret->cpu, cpu_us / (double)crowd->answered);
        ret->n += (double)crowd->answered;
    }
    crowd_close(crowd);
    return ok;
}

static bool read_token(struct bench *b, const char *data, char token[TOKEN_MAX])
{
    char path[BENCH_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/admin.token", data);
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(token, TOKEN_MAX, f);
    if (f)
        (void)fclose(f);
    if (!ok)
        return bench_fail(b, "%s cannot be read", path);
    token[strcspn(token, "\r\n")] = '\0';
    return true;
}

/* The two take turns, so that a slow moment of the machine meets both. */
static bool measure(struct bench *b, const struct served *s, const char *token,
                    struct found *constant, struct found *object, struct figure *ratio)
{
    char head[TOKEN_MAX + 128];
    for (int i = 0; i < bench_options.runs; i++) {
        if (!measure_path(b, s, "GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n", constant))
            return false;
        snprintf(head, sizeof(head),
                 "GET /v1/servers/1 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n\r\n",
                 token);
        if (!measure_path(b, s, head, object))
            return false;
        figure_add(ratio, object->rate.values[i] / constant->rate.values[i]);
    }
    return true;
}

static void tell(struct bench *b, const struct found *constant, const struct found *object,
                 const struct figure *ratio)
{
    bench_figure(b, "objects_per_s", &object->rate, 0);
    bench_figure(b, "constants_per_s", &constant->rate, 0);
    bench_figure(b, "ratio", ratio, 3);
    bench_figure(b, "p50_us", &object->p50, 1);
    bench_figure(b, "p99_us", &object->p99, 1);
    bench_figure(b, "cpu_us_per_object", &object->cpu, 2);
    bench_figure(b, "cpu_us_per_constant", &constant->cpu, 2);
    bench_number(b, "connections", (double)wish.connections, 0);
    bench_number(b, "n", object->n, 0);
    struct bench_row *row =
        bench_row(b, "", "GET /v1/servers/{id} over HTTP, 64 clients with one request each",
                  &object->rate, "/s", 0);
    row->wanted = "";
    row->n = object->n;
    snprintf(row->yardstick, sizeof(row->yardstick),
             "GET /healthz, a constant: %.0f /s; ratio %.2f", figure_median(&constant->rate),
             figure_median(ratio));
    snprintf(row->cpu, sizeof(row->cpu), "%.1f µs", figure_median(&object->cpu));
}

bool bench_http(struct bench *b)
{
    char data[BENCH_PATH_MAX], token[TOKEN_MAX];
    static struct found constant, object; /* large */
    struct figure ratio = {0};
    struct served s = {0};
    struct load *load = NULL;
    constant = object = (struct found){0};
    bench_path(b, "http", data);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data});
    struct load_plan plan = {
        .pid = s.pid, .server = s.server, .manager = s.manager, .connections = 1, .servers = 1};
    ok = ok && load_open(&load, b, &plan) && read_token(b, data, token) &&
         measure(b, &s, token, &constant, &object, &ratio);
    load_close(load);
    served_end(&s, SIGKILL);
    bench_remove(b, "http");
    if (ok)
        tell(b, &constant, &object, &ratio);
    return ok;
}

int bench_http_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_http_options, bench_http);
}

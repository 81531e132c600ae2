#include "cli/bench_clients.h"

#include "cli/bench_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024, WARM_UP_MS = 200, LAST_MS = 10 * 1000 };

struct client {
    int fd;
    int64_t asked_ns;
    size_t len;
    char answer[ANSWER_MAX];
};

struct crowd {
    int epoll;
    int n;
    struct client clients[BENCH_CLIENTS_MAX];
    bench_next_request *next;
    void *user;
    struct buf request;
    struct durations latency;
    int64_t answered;
    int under_way;
    bool measuring;
    bool ending;   /* nobody asks again */
    char why[128]; /* "" = all is well */
};

/* ── one connection ────────────────────────────────────────────────────────────────────────── */

int bench_connect(const char *address)
{
    char ip[64];
    const char *colon = strchr(address, ':');
    struct sockaddr_in a = {.sin_family = AF_INET};
    if (!colon || !str_copy(ip, sizeof(ip), (struct str){address, (size_t)(colon - address)}) ||
        inet_pton(AF_INET, ip, &a.sin_addr) != 1)
        return -1;
    a.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

bool bench_send(int fd, struct str request)
{
    return send(fd, request.at, request.len, MSG_NOSIGNAL) == (ssize_t)request.len;
}

size_t bench_answer_size(const char *answer, size_t len)
{
    const char *end = memmem(answer, len, "\r\n\r\n", 4);
    const char *length = end ? strcasestr(answer, "\r\nContent-Length: ") : NULL;
    if (!length || length > end)
        return 0;
    size_t total = (size_t)(end + 4 - answer) + strtoul(length + 18, NULL, 10);
    return len >= total ? total : 0;
}

int bench_answer_status(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

int bench_receive(int fd, struct buf *body)
{
    char *answer = xcalloc(1, ANSWER_MAX);
    size_t len = 0;
    ssize_t n = 1;
    while (bench_answer_size(answer, len) == 0 && n > 0 && len < ANSWER_MAX - 1) {
        n = recv(fd, answer + len, ANSWER_MAX - 1 - len, 0);
        len += n > 0 ? (size_t)n : 0;
    }
    int status = bench_answer_size(answer, len) > 0 ? bench_answer_status(answer) : 0;
    const char *end = status ? strstr(answer, "\r\n\r\n") + 4 : answer;
    if (body)
        buf_append(body, end, len - (size_t)(end - answer));
    if (body)
        buf_append(body, "", 1);
    free(answer);
    return status;
}

int bench_ask_once(const char *address, struct str request, struct buf *body)
{
    int fd = bench_connect(address);
    int status = fd >= 0 && bench_send(fd, request) ? bench_receive(fd, body) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

/* ── many ──────────────────────────────────────────────────────────────────────────────────── */

static void ask(struct crowd *crowd, struct client *c)
{
    buf_clear(&crowd->request);
    crowd->next(crowd->user, &crowd->request);
    c->len = 0;
    c->asked_ns = monotonic_ns();
    crowd->under_way++;
    if (!bench_send(c->fd, (struct str){(const char *)crowd->request.data, crowd->request.len}))
        snprintf(crowd->why, sizeof(crowd->why), "a request could not be sent");
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
    if (bench_answer_size(c->answer, c->len) == 0)
        return;
    if (bench_answer_status(c->answer) != 200) {
        const char *body = strstr(c->answer, "\r\n\r\n") + 4;
        snprintf(crowd->why, sizeof(crowd->why), "answered with %d: %.90s",
                 bench_answer_status(c->answer), body);
    }
    if (crowd->measuring) {
        durations_add(&crowd->latency, monotonic_ns() - c->asked_ns);
        crowd->answered++;
    }
    crowd->under_way--;
    if (!crowd->ending)
        ask(crowd, c);
}

static void turn_until(struct crowd *crowd, int64_t until_ns)
{
    struct epoll_event events[BENCH_CLIENTS_MAX];
    while (monotonic_ns() < until_ns && !crowd->why[0] && crowd->under_way > 0) {
        int n = epoll_wait(crowd->epoll, events, BENCH_CLIENTS_MAX, 10);
        for (int i = 0; i < n; i++)
            read_answer(crowd, events[i].data.ptr);
    }
}

/* Clients of a real Muster are on other machines. Here the kernel takes whoever answers on a socket
 * for one that sleeps next, and puts the client it wakes on the same processor, where the two take
 * turns while the other processor has nothing to do. So the load stays on the last one, and Muster
 * goes where it likes. *ret_before is for sched_setaffinity afterwards. */
static void stay_on_one_processor(cpu_set_t *ret_before)
{
    size_t last = CPU_SETSIZE - 1;
    cpu_set_t one;
    CPU_ZERO(ret_before);
    if (sched_getaffinity(0, sizeof(*ret_before), ret_before) != 0)
        return;
    while (last > 0 && !CPU_ISSET(last, ret_before))
        last--;
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}

static bool crowd_open(struct crowd *crowd, struct bench *b, const char *address, int clients)
{
    crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < clients; i++) {
        struct client *c = &crowd->clients[crowd->n];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        c->fd = bench_connect(address);
        if (c->fd < 0)
            return bench_fail(b, "%s: %s", address, strerror(errno));
        crowd->n++;
        if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
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

bool bench_clients_run(struct bench *b, const struct served *s, int clients,
                       bench_next_request *next, void *user, struct bench_found *ret)
{
    struct crowd *crowd = xcalloc(1, sizeof(*crowd));
    crowd->next = next;
    crowd->user = user;
    cpu_set_t processors;
    stay_on_one_processor(&processors);
    bool ok = crowd_open(crowd, b, s->http, clients);
    for (int i = 0; ok && i < crowd->n; i++)
        ask(crowd, &crowd->clients[i]);
    turn_until(crowd, monotonic_ns() + (int64_t)WARM_UP_MS * 1000000);
    crowd->measuring = true;
    double cpu_us = process_cpu_us(s->pid);
    int64_t start_ns = monotonic_ns();
    turn_until(crowd, start_ns + bench_options.seconds * 1000000000);
    double seconds = (double)(monotonic_ns() - start_ns) / 1e9;
    cpu_us = process_cpu_us(s->pid) - cpu_us;
    crowd->measuring = false;
    crowd->ending = true;
    turn_until(crowd, monotonic_ns() + (int64_t)LAST_MS * 1000000);
    (void)sched_setaffinity(0, sizeof(processors), &processors);
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

void bench_next_constant(void *user, struct buf *out)
{
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n";
    (void)user;
    buf_append(out, request, sizeof(request) - 1);
}

struct bench_row *bench_pair_tell(struct bench *b, const struct bench_pair *p, const char *goal,
                                  const char *what, int clients)
{
    bench_figure(b, "constants_per_s", &p->constant.rate, 0);
    bench_figure(b, "ratio", &p->ratio, 3);
    bench_figure(b, "p50_us", &p->asked.p50, 1);
    bench_figure(b, "p99_us", &p->asked.p99, 1);
    bench_figure(b, "cpu_us_per_constant", &p->constant.cpu, 2);
    bench_number(b, "connections", (double)clients, 0);
    bench_number(b, "n", p->asked.n, 0);
    struct bench_row *row = bench_row(b, goal, what, &p->asked.rate, "/s", 0);
    row->wanted = "";
    row->n = p->asked.n;
    snprintf(row->yardstick, sizeof(row->yardstick),
             "GET /healthz, a constant: %.0f /s; ratio %.2f; %d clients",
             figure_median(&p->constant.rate), figure_median(&p->ratio), clients);
    snprintf(row->cpu, sizeof(row->cpu), "%.1f µs", figure_median(&p->asked.cpu));
    return row;
}

bool bench_read_token(struct bench *b, const char *data, char token[BENCH_TOKEN_MAX])
{
    char path[BENCH_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/admin.token", data);
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(token, BENCH_TOKEN_MAX, f);
    if (f)
        (void)fclose(f);
    if (!ok)
        return bench_fail(b, "%s cannot be read", path);
    token[strcspn(token, "\r\n")] = '\0';
    return true;
}

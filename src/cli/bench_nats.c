/* Allocations through NATS: a client publishes requests and reads results, with so many under way;
 * each moves a player to the room of a
 * friend, durably. Beside it the same client, broker and kind of
 * stream with a relay in Muster's place: it pulls each request, publishes a message as large as a
 * result and, when the stream has it, acknowledges. That is every message an allocation needs, and
 * none of its work. */
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_host.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    PLAYERS = 8000,
    UNDER_WAY_MAX = 8192,
    BROKER_WAIT_MS = 10 * 1000,
    LOOK_MS = 5,
    READ_SIZE = 256 * 1024,
    LINE_MAX = 512,
    RESULT_SIZE = 230, /* of a Success */
    PULL = 512,
};

static struct {
    int64_t under_way;
} wish = {.under_way = 512};

const struct arg bench_nats_options[] = {
    {.name = "--under-way",
     .kind = ARG_NUMBER,
     .into = &wish.under_way,
     .min = 1,
     .max = UNDER_WAY_MAX,
     .value = "N",
     .help = "requests whose result is still to come (512)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

/* ── the broker ────────────────────────────────────────────────────────────────────────────── */

struct broker {
    pid_t pid;
    char address[64];
};

static void become_broker(void *user)
{
    const char *folder = user;
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    execlp("nats-server", "nats-server", "-js", "-sd", folder, "-a", "127.0.0.1", "-p", "-1",
           "--ports_file_dir", folder, NULL);
    _exit(127);
}

static void look_later(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
}

/* It writes the ports it has chosen into a file. */
static bool read_address(const struct bench *b, struct broker *k)
{
    char name[64], path[BENCH_PATH_MAX], text[1024];
    snprintf(name, sizeof(name), "nats/nats-server_%d.ports", (int)k->pid);
    FILE *f = fopen(bench_path(b, name, path), "r");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    if (f)
        (void)fclose(f);
    text[n] = '\0';
    const char *at = strstr(text, "nats://");
    const char *end = at ? strchr(at, '"') : NULL;
    return end &&
           str_copy(k->address, sizeof(k->address), (struct str){at + 7, (size_t)(end - at) - 7});
}

static bool start_broker(struct bench *b, struct broker *k)
{
    char folder[BENCH_PATH_MAX];
    k->pid = child_start(become_broker, (void *)bench_path(b, "nats", folder));
    for (int waited_ms = 0; k->pid > 0 && waited_ms < BROKER_WAIT_MS; waited_ms += LOOK_MS) {
        if (read_address(b, k))
            return true;
        look_later();
    }
    return bench_fail(b, "nats-server does not start; install the package nats-server");
}

/* ── a client of its text protocol ─────────────────────────────────────────────────────────── */

struct client {
    struct bench *bench;
    int fd;
    struct buf in;
    size_t read; /* of it */
    struct buf out;
};

static bool fill(struct client *c)
{
    buf_consume(&c->in, c->read);
    c->read = 0;
    uint8_t *at = buf_extend(&c->in, READ_SIZE);
    ssize_t n = recv(c->fd, at, READ_SIZE, 0);
    c->in.len -= READ_SIZE - (size_t)(n > 0 ? n : 0);
    return n > 0 || bench_fail(c->bench, "nats-server has closed the connection");
}

/* The next line, without its end, in dst. */
static bool read_line(struct client *c, char dst[LINE_MAX])
{
    const uint8_t *end = NULL;
    while (!(end = c->in.len > c->read ? memchr(c->in.data + c->read, '\n', c->in.len - c->read)
                                       : NULL)) {
        if (!fill(c))
            return false;
    }
    size_t n = (size_t)(end - (c->in.data + c->read));
    snprintf(dst, LINE_MAX, "%.*s", (int)n, (const char *)c->in.data + c->read);
    c->read += n + 1;
    return true;
}

/* Texts are valid until the next call. */
struct message {
    char subject[LINE_MAX];
    char reply[LINE_MAX]; /* "" = none */
    struct str body;
};

static bool read_message(struct client *c, struct message *ret)
{
    char line[LINE_MAX], sid[LINE_MAX], last[LINE_MAX];
    do {
        if (!read_line(c, line))
            return false;
        if (strncmp(line, "PING", 4) == 0 && !bench_send(c->fd, STR("PONG\r\n")))
            return false;
    } while (strncmp(line, "MSG ", 4) != 0);
    int words = sscanf(line, "MSG %511s %511s %511s %511s", ret->subject, sid, ret->reply, last);
    size_t len = (size_t)strtoull(words == 4 ? last : ret->reply, NULL, 10);
    if (words != 4)
        ret->reply[0] = '\0';
    while (c->in.len - c->read < len + 2) {
        if (!fill(c))
            return false;
    }
    ret->body = (struct str){(const char *)c->in.data + c->read, len};
    c->read += len + 2;
    return true;
}

static bool has_more(const struct client *c)
{
    return c->in.len - c->read > LINE_MAX;
}

static bool flush(struct client *c)
{
    struct str out = {(const char *)c->out.data, c->out.len};
    bool sent = bench_send(c->fd, out);
    buf_clear(&c->out);
    return sent || bench_fail(c->bench, "nats-server is gone");
}

__attribute__((format(printf, 2, 3))) static void put(struct client *c, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_append(&c->out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* Only who publishes heads says that he knows them: others get messages without. */
static bool connect_client(struct client *c, const struct broker *k, bool heads,
                           const char *subject)
{
    char line[LINE_MAX] = "";
    c->fd = bench_connect(k->address);
    put(c, "CONNECT {\"verbose\":false,\"headers\":%s}\r\nSUB %s 1\r\nPING\r\n",
        heads ? "true" : "false", subject);
    bool ok = c->fd >= 0 && flush(c);
    while (ok && strncmp(line, "PONG", 4) != 0)
        ok = read_line(c, line);
    return ok || bench_fail(c->bench, "nats-server does not answer");
}

static void end_client(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
}

/* ── the relay ─────────────────────────────────────────────────────────────────────────────── */

static bool ask(struct client *c, const char *subject, const char *body)
{
    struct message m;
    put(c, "PUB $JS.API.%s relay.in.api %zu\r\n%s\r\n", subject, strlen(body), body);
    if (!flush(c) || !read_message(c, &m))
        return false;
    return !memmem(m.body.at, m.body.len, "\"error\"", 7) ||
           bench_fail(c->bench, "nats-server says %.*s", (int)m.body.len, m.body.at);
}

static bool make_relay(struct client *c)
{
    return ask(c, "STREAM.CREATE.RELAY",
               "{\"name\":\"RELAY\",\"subjects\":[\"relay.request\",\"relay.result\"],"
               "\"retention\":\"limits\",\"storage\":\"file\",\"max_consumers\":-1,"
               "\"max_msgs\":-1,\"max_bytes\":-1,\"num_replicas\":1}") &&
           ask(c, "CONSUMER.DURABLE.CREATE.RELAY.relay",
               "{\"stream_name\":\"RELAY\",\"config\":{\"durable_name\":\"relay\","
               "\"ack_policy\":\"explicit\",\"deliver_policy\":\"all\","
               "\"filter_subject\":\"relay.request\",\"max_ack_pending\":32768}}");
}

static void pull(struct client *c)
{
    static const char body[] = "{\"batch\":512,\"expires\":3600000000000}";
    put(c, "PUB $JS.API.CONSUMER.MSG.NEXT.RELAY.relay relay.in.pull %zu\r\n%s\r\n",
        sizeof(body) - 1, body);
}

struct relay {
    struct client client;
    const struct broker *broker;
    char (*replies)[128]; /* of requests whose result is on its way, in a ring */
    size_t next;
    int left; /* of the pull */
};

static void relay_one(struct relay *r, const struct message *m)
{
    struct client *c = &r->client;
    if (strncmp(m->subject, "relay.in.ok.", 12) == 0) {
        size_t i = (size_t)strtoull(m->subject + 12, NULL, 10);
        put(c, "PUB %s 4\r\n+ACK\r\n", r->replies[i % UNDER_WAY_MAX]);
        return;
    }
    if (!m->reply[0])
        return;
    snprintf(r->replies[r->next % UNDER_WAY_MAX], sizeof(r->replies[0]), "%.120s", m->reply);
    char head[128];
    int n = snprintf(head, sizeof(head), "NATS/1.0\r\nNats-Msg-Id: ticket-%020zu:Success\r\n\r\n",
                     r->next);
    put(c, "HPUB relay.result relay.in.ok.%zu %d %d\r\n%s%*s\r\n", r->next, n, n + RESULT_SIZE,
        head, RESULT_SIZE, "");
    r->next++;
    if (--r->left <= PULL / 2) {
        r->left += PULL;
        pull(c);
    }
}

static void run_relay(void *user)
{
    struct relay *r = user;
    struct message m;
    if (!connect_client(&r->client, r->broker, true, "relay.in.>"))
        return;
    r->left = PULL;
    pull(&r->client);
    bool ok = flush(&r->client);
    while (ok && read_message(&r->client, &m)) {
        relay_one(r, &m);
        if (!has_more(&r->client))
            ok = flush(&r->client);
    }
}

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

struct work {
    struct client client;
    const struct served *served;
    struct bench_host host;
    int64_t asked;
    const char *requests; /* the subject */
    const char *result;
};

/* In each room sits one who opened it. Everybody follows the first of them, then the next. */
static void put_request(struct work *w)
{
    char body[256];
    int64_t i = w->asked++;
    int n = snprintf(body, sizeof(body),
                     "{\"ticketId\":\"ticket-%012" PRId64
                     "\",\"fleet\":\"bench\",\"playerId\":\"player-%" PRId64
                     "\",\"joinOnIds\":[\"player-%" PRId64 "\"]}",
                     i, BENCH_HOST_ROOMS + i % PLAYERS, i / PLAYERS % BENCH_HOST_ROOMS);
    put(&w->client, "PUB %s %d\r\n%s\r\n", w->requests, n, body);
}

static bool send_requests(struct work *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        put_request(w);
    return flush(&w->client);
}

/* Answers that are there, at least one. */
static bool read_answers(struct work *w, int64_t *ret)
{
    struct message m;
    *ret = 0;
    do {
        if (!read_message(&w->client, &m))
            return false;
        bool failed = memmem(m.body.at, m.body.len, "\"Failure\"", 9) != NULL;
        if (failed)
            return bench_fail(w->client.bench, "a result was %.*s", (int)m.body.len, m.body.at);
        *ret += strcmp(m.subject, w->result) == 0;
    } while (*ret == 0 || has_more(&w->client));
    return true;
}

static bool run_once(struct work *w, const char *requests, const char *result,
                     struct bench_found *ret)
{
    int64_t n = 0, got = 0;
    w->requests = requests;
    w->result = result;
    double cpu_us = process_cpu_us(w->served->pid);
    int64_t begin_ns = monotonic_ns();
    int64_t end_ns = begin_ns + bench_options.seconds * 1000000000;
    if (!send_requests(w, wish.under_way))
        return false;
    int64_t under_way = wish.under_way;
    while (under_way > 0) {
        if (!read_answers(w, &got))
            return false;
        n += got;
        under_way -= got;
        if (monotonic_ns() >= end_ns)
            continue;
        if (!send_requests(w, got))
            return false;
        under_way += got;
    }
    double seconds = (double)(monotonic_ns() - begin_ns) / 1e9;
    figure_add(&ret->rate, (double)n / seconds);
    figure_add(&ret->cpu, (process_cpu_us(w->served->pid) - cpu_us) / (double)n);
    ret->n += (double)n;
    return true;
}

static bool measure(struct bench *b, struct work *w, struct bench_pair *ret)
{
    put(&w->client, "SUB muster.allocation.result 2\r\n");
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!run_once(w, "relay.request", "relay.result", &ret->constant) ||
            !bench_host_beat(&w->host, b) ||
            !run_once(w, "muster.allocation.request", "muster.allocation.result", &ret->asked))
            return false;
        figure_add(&ret->ratio, ret->asked.rate.values[i] / ret->constant.rate.values[i]);
    }
    return true;
}

static void tell(struct bench *b, const struct bench_pair *p)
{
    char plain[BENCH_PRINT_MAX], cpu[BENCH_PRINT_MAX], ratio[BENCH_PRINT_MAX];
    bench_figure(b, "allocations_per_s", &p->asked.rate, 0);
    bench_figure(b, "publish_and_ack_per_s", &p->constant.rate, 0);
    bench_figure(b, "ratio", &p->ratio, 3);
    bench_figure(b, "cpu_us_per_allocation", &p->asked.cpu, 2);
    bench_number(b, "under_way", (double)wish.under_way, 0);
    bench_number(b, "n", p->asked.n, 0);
    struct bench_row *row = bench_row(b, "", "allocations through NATS JetStream, 512 under way",
                                      &p->asked.rate, "/s", 0);
    row->wanted = "≥ 0.5 × publish-and-ack";
    row->reach = figure_median(&p->ratio) / 0.5;
    row->n = p->asked.n;
    snprintf(row->yardstick, sizeof(row->yardstick), "%s /s publish-and-ack: %s ×",
             bench_print(plain, figure_median(&p->constant.rate), 0),
             bench_print(ratio, figure_median(&p->ratio), 2));
    snprintf(row->cpu, sizeof(row->cpu), "%s µs",
             bench_print(cpu, figure_median(&p->asked.cpu), 1));
}

static bool await_ready(struct bench *b, const struct served *s)
{
    struct buf body = {0};
    int status = 0;
    for (int waited_ms = 0; status != 200 && waited_ms < BROKER_WAIT_MS; waited_ms += LOOK_MS) {
        buf_clear(&body);
        status = bench_ask_once(s->http, STR("GET /readyz HTTP/1.1\r\nHost: bench\r\n\r\n"), &body);
        if (status != 200)
            look_later();
    }
    buf_done(&body);
    return status == 200 || bench_fail(b, "Muster does not get to nats-server");
}

static bool start_muster(struct bench *b, struct work *w, struct served *s, const struct broker *k)
{
    char data[BENCH_PATH_MAX], config[1024];
    bench_path(b, "data", data);
    snprintf(config, sizeof(config), "%snats:\n  urls: ['nats://%s']\n", bench_host_fleet,
             k->address);
    return served_start(s, b, &(struct served_plan){.data = data, .config = config}) &&
           bench_players_make(&w->host.players, b, data, BENCH_HOST_ROOMS, 1) &&
           bench_host_start(&w->host, b) && await_ready(b, s);
}

static bool start_relay(struct bench *b, struct relay *r, pid_t *ret)
{
    struct client maker = {.bench = b, .fd = -1};
    bool ok = connect_client(&maker, r->broker, false, "relay.in.api") && make_relay(&maker);
    end_client(&maker);
    r->replies = xcalloc(UNDER_WAY_MAX, sizeof(*r->replies));
    *ret = ok ? child_start(run_relay, r) : 0;
    return ok;
}

bool bench_nats(struct bench *b)
{
    static struct bench_pair found; /* large */
    struct broker k = {0};
    struct served s = {0};
    struct relay r = {.client = {.bench = b, .fd = -1}, .broker = &k};
    struct work w = {
        .client = {.bench = b, .fd = -1}, .served = &s, .host = {.served = &s, .listening = -1}};
    pid_t relay = 0;
    found = (struct bench_pair){0};
    bool ok = start_broker(b, &k) && start_muster(b, &w, &s, &k) && start_relay(b, &r, &relay) &&
              connect_client(&w.client, &k, false, "relay.result") && measure(b, &w, &found);
    child_end(relay);
    served_end(&s, SIGKILL);
    child_end(k.pid);
    bench_host_done(&w.host);
    end_client(&w.client);
    free(r.replies);
    bench_remove(b, "data");
    bench_remove(b, "nats");
    if (ok)
        tell(b, &found);
    return ok;
}

int bench_nats_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_nats_options, bench_nats);
}

#include "cli/bench_echo.h"

#include "cli/bench_child.h"
#include "cli/bench_load.h"
#include "cli/bench_wire.h"
#include "cli/cli.h"
#include "wire/chat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ASKER_RING = 64 * 1024, ACK_LOBBY = FRAME_HEADER + 1, ALLOCATE_LOBBY = FRAME_HEADER };

/* What a process needs to begin. */
struct beginning {
    int listener;
    const char *far; /* A only */
    int hops;
};

struct relay {
    struct wire wire;
    struct wire_peer *hops;
    int n_hops;
    int next;
    struct wire_peer *askers[ASKER_RING]; /* by lobby */
    struct buf allocate;                  /* frames in which only the lobby changes */
    struct buf response;
};

static struct wire_peer *new_peer(struct wire *w)
{
    (void)w;
    return xcalloc(1, sizeof(struct wire_peer));
}

/* ── B: answers each ALLOCATE with an ACK ──────────────────────────────────────────────────── */

static void acknowledge(struct wire *w, struct wire_peer *p, const struct frame *f)
{
    (void)w;
    uint8_t ack[FRAME_HEADER + 5] = {7, 0, 0x05, 0x10, 1};
    memcpy(ack + ACK_LOBBY, f->payload, 4);
    wire_send(p, ack, sizeof(ack));
}

static void run_far(void *user)
{
    const struct beginning *beginning = user;
    struct wire w = {.frame = acknowledge, .accepted = new_peer};
    if (!wire_init(&w) || !wire_accept_on(&w, beginning->listener))
        return;
    for (;;)
        wire_turn(&w, -1);
}

/* ── A: passes requests on and answers back ────────────────────────────────────────────────── */

static void pass_on(struct wire *w, struct wire_peer *p, const struct frame *f)
{
    struct relay *r = container_of(w, struct relay, wire);
    if (f->code == 0x2002) {
        r->askers[(uint32_t)wire_i32(f->payload) % ASKER_RING] = p;
        memcpy(r->allocate.data + ALLOCATE_LOBBY, f->payload, 4);
        wire_send(&r->hops[r->next], r->allocate.data, r->allocate.len);
        r->next = (r->next + 1) % r->n_hops;
    } else {
        struct wire_peer *asker = r->askers[(uint32_t)wire_i32(f->payload + 1) % ASKER_RING];
        memcpy(r->response.data + FRAME_HEADER + 1, f->payload + 1, 4);
        wire_send(asker, r->response.data, r->response.len);
    }
}

static void make_frames(struct relay *r)
{
    struct str token = STR("MATCH_1234567_7f68c710-8647-83fa-5a33-740af93f8bc7_1794787146");
    chat_encode(&r->allocate, &(struct chat_message){.kind = CHAT_SV_ALLOCATE_MATCH,
                                                     .sv_allocate_match = {.match_token = token}});
    chat_encode(&r->response, &(struct chat_message){
                                  .kind = CHAT_MGR_SERVER_ALLOCATION_RESPONSE,
                                  .mgr_server_allocation_response = {
                                      .ok = true, .ip = STR("10.0.1.2"), .match_token = token}});
}

static void run_near(void *user)
{
    const struct beginning *beginning = user;
    struct relay *r = xcalloc(1, sizeof(*r));
    r->wire.frame = pass_on;
    r->wire.accepted = new_peer;
    r->n_hops = beginning->hops;
    r->hops = xcalloc((size_t)r->n_hops, sizeof(*r->hops));
    make_frames(r);
    if (!wire_init(&r->wire))
        _exit(1);
    for (int i = 0; i < r->n_hops; i++) {
        if (!wire_connect(&r->wire, &r->hops[i], beginning->far))
            _exit(1);
    }
    if (!wire_accept_on(&r->wire, beginning->listener))
        _exit(1);
    for (;;)
        wire_turn(&r->wire, -1);
}

bool echo_start(struct echo *e, struct bench *b, int hops)
{
    *e = (struct echo){0};
    struct beginning far = {.listener = wire_listener(e->far)};
    struct beginning near = {.listener = wire_listener(e->near), .far = e->far, .hops = hops};
    bool open = far.listener >= 0 && near.listener >= 0;
    if (open)
        e->b = child_start(run_far, &far);
    if (open && e->b > 0)
        e->a = child_start(run_near, &near);
    int error = errno;
    if (far.listener >= 0)
        close(far.listener);
    if (near.listener >= 0)
        close(near.listener);
    if (e->a > 0)
        return true;
    echo_end(e);
    return bench_fail(b, "the echo processes cannot be started: %s", strerror(error));
}

void echo_end(struct echo *e)
{
    child_end(e->a);
    child_end(e->b);
    *e = (struct echo){0};
}

/* ── one at a time ─────────────────────────────────────────────────────────────────────────── */

bool echo_line_open(struct echo_line *l, struct bench *b, const struct echo *e)
{
    struct wire w = {0};
    struct wire_peer p = {0};
    bool connected = wire_init(&w) && wire_connect(&w, &p, e->far);
    int error = errno;
    wire_done(&w); /* the socket alone is wanted, and blocking */
    l->fd = connected ? p.fd : -1;
    return connected || bench_fail(b, "%s: %s", e->far, strerror(error));
}

bool echo_line_turn(struct echo_line *l)
{
    uint8_t frame[74] = {72, 0, 0x04, 0x10};
    if (send(l->fd, frame, sizeof(frame), MSG_NOSIGNAL) != (ssize_t)sizeof(frame))
        return false;
    return recv(l->fd, frame, FRAME_HEADER + 5, MSG_WAITALL) == FRAME_HEADER + 5;
}

void echo_line_close(struct echo_line *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

/* ── the noun ──────────────────────────────────────────────────────────────────────────────── */

bool echo_measure(struct bench *b, int connections, int depth, int hops, double seconds,
                  struct load_result *ret)
{
    struct echo e;
    struct load *load = NULL;
    if (!echo_start(&e, b, hops))
        return false;
    struct load_plan plan = {
        .pid = e.a, .manager = e.near, .bare = true, .connections = connections, .depth = depth};
    bool ok = load_open(&load, b, &plan) && load_run(load, b, 0.3, seconds, ret);
    load_close(load);
    echo_end(&e);
    return ok;
}

static struct {
    int64_t connections;
    int64_t depth;
    int64_t hops;
} wish = {.connections = 64, .depth = 32, .hops = 64};

const struct arg bench_echo_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = 1000,
     .value = "N",
     .help = "clients (64)"},
    {.name = "--depth",
     .kind = ARG_NUMBER,
     .into = &wish.depth,
     .min = 1,
     .max = 1000,
     .value = "N",
     .help = "requests each has under way (32)"},
    {.name = "--hops",
     .kind = ARG_NUMBER,
     .into = &wish.hops,
     .min = 1,
     .max = 10000,
     .value = "N",
     .help = "connections between the two processes (64)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_JSON,
    {0},
};

bool bench_echo(struct bench *b)
{
    struct figure rate = {0}, p50 = {0}, p99 = {0}, cpu = {0};
    double n = 0;
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        static struct load_result r;
        if (!echo_measure(b, (int)wish.connections, (int)wish.depth, (int)wish.hops,
                          (double)bench_options.seconds, &r))
            return false;
        figure_add(&rate, (double)r.answered / r.seconds);
        figure_add(&p50, durations_us(&r.latency, 0.5));
        figure_add(&p99, durations_us(&r.latency, 0.99));
        figure_add(&cpu, r.cpu_us / (double)r.answered);
        n += (double)r.answered;
    }
    bench_figure(b, "two_hop_echo_per_s", &rate, 0);
    bench_figure(b, "p50_us", &p50, 1);
    bench_figure(b, "p99_us", &p99, 1);
    bench_figure(b, "cpu_us_per_echo", &cpu, 2);
    bench_number(b, "connections", (double)wish.connections, 0);
    bench_number(b, "depth", (double)wish.depth, 0);
    bench_number(b, "hops", (double)wish.hops, 0);
    bench_number(b, "n", n, 0);
    return true;
}

int bench_echo_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_echo_options, bench_echo);
}

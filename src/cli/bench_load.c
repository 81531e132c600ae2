#include "cli/bench_load.h"

#include "cli/bench_wire.h"
#include "wire/chat.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GREET_AT_ONCE = 64,    /* connections being greeted: less than a listener's queue */
    SENT_RING = 64 * 1024, /* by lobby; far more than are under way */
    WAIT_MS = 20000,       /* for an answer, before something is called broken */
    TURN_MS = 10,          /* heartbeats are looked at this often */
    REGION = 2,            /* EU */
    ROOM = 100,            /* matches a game server can hold */
    REQUEST_SIZE = FRAME_HEADER + 12,
    ACK_SIZE = FRAME_HEADER + 5,
    ENDED_SIZE = FRAME_HEADER + 13,
};

enum load_role { ROLE_GAME, ROLE_CHATTER };

struct load_peer {
    struct wire_peer wire;
    enum load_role role;
    int index;
    bool greeted;
    int32_t server_id;
    int32_t held[LOAD_KEEP_MAX + 1]; /* a ring of lobbies, oldest at `first` */
    int first;
    int n_held;
    uint8_t ended[ENDED_SIZE]; /* a frame in which only the lobby changes */
};

struct load {
    struct wire wire;
    struct load_plan plan;
    struct load_peer *games;
    struct load_peer *chatters;
    int greeted;
    bool lost;
    char refusal[128]; /* the last one's sentence */

    bool sending; /* an answered request is followed by the next one */
    bool measuring;
    int32_t lobby; /* the last one used */
    int64_t under_way;
    uint64_t answered;
    uint64_t failed;
    struct durations *latency;
    int64_t sent_ns[SENT_RING];

    int64_t beat_start_ns;
    int64_t beats;
    uint8_t request[REQUEST_SIZE];
    uint8_t ack[ACK_SIZE];
};

/* ── frames that are sent often are made once and patched ──────────────────────────────────── */

static void make_frame(uint8_t *dst, size_t size, const struct chat_message *m)
{
    struct buf b = {0};
    chat_encode(&b, m);
    assert(b.len == size);
    memcpy(dst, b.data, size);
    buf_done(&b);
}

static void make_frames(struct load *l)
{
    make_frame(l->request, REQUEST_SIZE,
               &(struct chat_message){.kind = CHAT_MGR_SERVER_ALLOCATION_REQUEST,
                                      .mgr_server_allocation_request = {.game_type = 1,
                                                                        .region = REGION,
                                                                        .player_count = 10,
                                                                        .average_rating = 1500}});
    make_frame(l->ack, ACK_SIZE,
               &(struct chat_message){.kind = CHAT_SV_ALLOCATE_MATCH_ACK,
                                      .sv_allocate_match_ack = {.success = true}});
}

static void make_ended(struct load_peer *p)
{
    make_frame(
        p->ended, ENDED_SIZE,
        &(struct chat_message){
            .kind = CHAT_SV_MATCH_ENDED,
            .sv_match_ended = {.server_id = p->server_id, .winning_team = 1, .duration_s = 600}});
}

static void send_message(struct load_peer *p, const struct chat_message *m)
{
    struct buf b = {0};
    chat_encode(&b, m);
    wire_send(&p->wire, b.data, b.len);
    buf_done(&b);
}

/* ── chat servers ──────────────────────────────────────────────────────────────────────────── */

static void ask(struct load *l, struct load_peer *p, int64_t now_ns)
{
    int32_t lobby = ++l->lobby;
    wire_put_i32(l->request + FRAME_HEADER, lobby);
    l->sent_ns[lobby % SENT_RING] = now_ns;
    l->under_way++;
    wire_send(&p->wire, l->request, REQUEST_SIZE);
}

/* payload: i8 ok, i32 lobby, then the place or a sentence */
static void on_answer(struct load *l, struct load_peer *p, const struct frame *f)
{
    int64_t now_ns = monotonic_ns();
    bool ok = f->payload_len > 5 && f->payload[0] == 1;
    if (l->measuring) {
        int32_t lobby = wire_i32(f->payload + 1);
        durations_add(l->latency, now_ns - l->sent_ns[lobby % SENT_RING]);
    }
    l->under_way--;
    l->answered++;
    if (!ok) {
        l->failed++;
        snprintf(l->refusal, sizeof(l->refusal), "%.*s", (int)f->payload_len - 5,
                 (const char *)f->payload + 5);
    }
    if (l->sending)
        ask(l, p, now_ns);
}

/* ── game servers ──────────────────────────────────────────────────────────────────────────── */

static void end_oldest(struct load_peer *p)
{
    wire_put_i32(p->ended + FRAME_HEADER + 4, p->held[p->first]);
    p->first = (p->first + 1) % (LOAD_KEEP_MAX + 1);
    p->n_held--;
    wire_send(&p->wire, p->ended, ENDED_SIZE);
}

static void on_allocate(struct load *l, struct load_peer *p, const struct frame *f)
{
    int32_t lobby = wire_i32(f->payload);
    wire_put_i32(l->ack + FRAME_HEADER + 1, lobby);
    wire_send(&p->wire, l->ack, ACK_SIZE);
    p->held[(p->first + p->n_held++) % (LOAD_KEEP_MAX + 1)] = lobby;
    if (p->n_held > l->plan.keep)
        end_oldest(p);
}

static void send_list(struct load_peer *p)
{
    uint8_t lobbies[4 * (LOAD_KEEP_MAX + 1)];
    for (int i = 0; i < p->n_held; i++)
        wire_put_i32(lobbies + (size_t)i * 4, p->held[(p->first + i) % (LOAD_KEEP_MAX + 1)]);
    struct chat_list list = {(uint32_t)p->n_held, lobbies, (size_t)p->n_held * 4};
    send_message(
        p, &(struct chat_message){.kind = CHAT_SV_MATCH_LIST,
                                  .sv_match_list = {.server_id = p->server_id, .lobbies = list}});
}

static void beat(struct load_peer *p)
{
    send_message(p, &(struct chat_message){.kind = CHAT_SV_HEARTBEAT,
                                           .sv_heartbeat = {.server_id = p->server_id,
                                                            .current_match_count = p->n_held,
                                                            .cpu_percent = 25,
                                                            .memory_percent = 40}});
}

/* Spread evenly: each server once in LOAD_BEAT_MS. */
static void beat_those_due(struct load *l)
{
    int64_t n = l->plan.servers;
    int64_t since_ms = (monotonic_ns() - l->beat_start_ns) / 1000000;
    int64_t due = since_ms * n / LOAD_BEAT_MS;
    for (; l->beats < due; l->beats++)
        beat(&l->games[l->beats % n]);
    wire_flush(&l->wire);
}

/* ── dispatch ──────────────────────────────────────────────────────────────────────────────── */

static void on_greeted(struct load *l, struct load_peer *p, const struct frame *f)
{
    if (f->payload_len < 5 || f->payload[0] != 1) {
        l->lost = true;
        return;
    }
    p->greeted = true;
    l->greeted++;
    if (p->role != ROLE_GAME)
        return;
    p->server_id = wire_i32(f->payload + 1);
    make_ended(p);
    beat(p); /* all report the same, so that none is better than the others from the beginning */
}

static void on_frame(struct wire *w, struct wire_peer *wire, const struct frame *f)
{
    struct load *l = container_of(w, struct load, wire);
    struct load_peer *p = container_of(wire, struct load_peer, wire);
    switch (f->code) {
    case 0x2003:
        on_answer(l, p, f);
        break;
    case 0x1004:
        on_allocate(l, p, f);
        break;
    case 0x1001:
    case 0x2001:
        on_greeted(l, p, f);
        break;
    case 0x1011:
        send_list(p);
        break;
    case 0x2A00:
        send_message(p, &(struct chat_message){.kind = CHAT_PONG});
        break;
    default:
        break; /* acknowledgements and news */
    }
}

static void on_lost(struct wire *w, struct wire_peer *p)
{
    (void)p;
    container_of(w, struct load, wire)->lost = true;
}

/* ── opening ───────────────────────────────────────────────────────────────────────────────── */

static void greet_as_game(struct load_peer *p)
{
    char ip[32];
    snprintf(ip, sizeof(ip), "10.0.%d.%d", p->index / 256, p->index % 256);
    send_message(p, &(struct chat_message){.kind = CHAT_SV_HANDSHAKE,
                                           .sv_handshake = {.server_token = STR("bench"),
                                                            .ip = str_of(ip),
                                                            .port = 7777,
                                                            .region = REGION,
                                                            .max_concurrent_matches = ROOM}});
}

static void greet_as_chatter(struct load_peer *p)
{
    char name[32];
    static const uint8_t regions[] = {REGION};
    snprintf(name, sizeof(name), "bench-%d", p->index);
    send_message(
        p, &(struct chat_message){.kind = CHAT_MGR_HANDSHAKE,
                                  .mgr_handshake = {.service_token = STR("bench"),
                                                    .chat_server_id = str_of(name),
                                                    .regions = {1, regions, sizeof(regions)}}});
}

static bool wait_for_greetings(struct load *l, struct bench *b, int wanted)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    while (l->greeted < wanted && !l->lost) {
        if (monotonic_ns() > deadline_ns)
            return bench_fail(b, "only %d of %d peers were greeted in %d s", l->greeted, wanted,
                              WAIT_MS / 1000);
        wire_turn(&l->wire, TURN_MS);
    }
    return !l->lost || bench_fail(b, "Muster refused or dropped peer %d", l->greeted + 1);
}

static bool connect_peers(struct load *l, struct bench *b, struct load_peer *peers, int n,
                          enum load_role role)
{
    const char *address = role == ROLE_GAME ? l->plan.server : l->plan.manager;
    for (int i = 0; i < n; i++) {
        struct load_peer *p = &peers[i];
        *p = (struct load_peer){.role = role, .index = i, .wire.fd = -1};
        if (!wire_connect(&l->wire, &p->wire, address))
            return bench_fail(b, "connection %d to %s: %s", i + 1, address, strerror(errno));
        if (l->plan.bare)
            continue;
        if (role == ROLE_GAME)
            greet_as_game(p);
        else
            greet_as_chatter(p);
        wire_flush(&l->wire);
        bool chunk_ends = (i + 1) % GREET_AT_ONCE == 0 || i + 1 == n;
        int before = role == ROLE_GAME ? 0 : l->plan.servers;
        if (chunk_ends && !wait_for_greetings(l, b, before + i + 1))
            return false;
    }
    return true;
}

bool load_open(struct load **ret, struct bench *b, const struct load_plan *plan)
{
    assert(plan->keep <= LOAD_KEEP_MAX);
    struct load *l = xcalloc(1, sizeof(*l));
    l->plan = *plan;
    l->lobby = plan->lobbies;
    l->wire.frame = on_frame;
    l->wire.lost = on_lost;
    make_frames(l);
    l->games = xcalloc((size_t)plan->servers, sizeof(*l->games));
    l->chatters = xcalloc((size_t)plan->connections, sizeof(*l->chatters));
    for (int i = 0; i < plan->servers; i++)
        l->games[i].wire.fd = -1;
    for (int i = 0; i < plan->connections; i++)
        l->chatters[i].wire.fd = -1;
    bool open = wire_init(&l->wire) || bench_fail(b, "no epoll: %s", strerror(errno));
    open = open && connect_peers(l, b, l->games, plan->servers, ROLE_GAME) &&
           connect_peers(l, b, l->chatters, plan->connections, ROLE_CHATTER);
    l->beat_start_ns = monotonic_ns();
    if (!open) {
        load_close(l);
        return false;
    }
    *ret = l;
    return true;
}

void load_close(struct load *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->plan.servers; i++)
        wire_close(&l->games[i].wire);
    for (int i = 0; i < l->plan.connections; i++)
        wire_close(&l->chatters[i].wire);
    wire_done(&l->wire);
    free(l->games);
    free(l->chatters);
    free(l);
}

/* ── running ───────────────────────────────────────────────────────────────────────────────── */

static bool turn_until(struct load *l, struct bench *b, int64_t until_ns)
{
    while (monotonic_ns() < until_ns && !l->lost) {
        wire_turn(&l->wire, TURN_MS);
        beat_those_due(l);
    }
    return !l->lost || bench_fail(b, "Muster hung up on a peer");
}

static void begin(struct load *l, struct load_result *ret, int64_t *ret_start_ns)
{
    memset(ret, 0, sizeof(*ret));
    l->latency = &ret->latency;
    l->measuring = true;
    ret->answered = l->answered;
    ret->failed = l->failed;
    ret->threads = process_threads(l->plan.pid);
    ret->cpu_us = process_cpu_us(l->plan.pid);
    ret->own_cpu_us = process_cpu_us(getpid());
    *ret_start_ns = monotonic_ns();
}

static void finish(struct load *l, struct load_result *ret, int64_t start_ns)
{
    ret->seconds = (double)(monotonic_ns() - start_ns) / 1e9;
    ret->cpu_us = process_cpu_us(l->plan.pid) - ret->cpu_us;
    ret->own_cpu_us = process_cpu_us(getpid()) - ret->own_cpu_us;
    struct thread_cpu now = process_threads(l->plan.pid);
    ret->threads = (struct thread_cpu){
        now.loop_us - ret->threads.loop_us, now.commit_us - ret->threads.commit_us,
        now.fold_us - ret->threads.fold_us, now.other_us - ret->threads.other_us};
    ret->answered = l->answered - ret->answered;
    ret->failed = l->failed - ret->failed;
    l->measuring = false;
}

/* However short the time, what is measured includes an answer. */
static bool wait_for_the_first(struct load *l, struct bench *b, const struct load_result *before)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    while (l->answered == before->answered && !l->lost && monotonic_ns() < deadline_ns)
        wire_turn(&l->wire, TURN_MS);
    return l->answered > before->answered || bench_fail(b, "no request was answered");
}

static bool wait_for_answers(struct load *l, struct bench *b)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    while (l->under_way > 0 && !l->lost && monotonic_ns() < deadline_ns)
        wire_turn(&l->wire, TURN_MS);
    if (l->under_way > 0)
        return bench_fail(b, "%" PRId64 " requests were never answered", l->under_way);
    return true;
}

bool load_run(struct load *l, struct bench *b, double warm_up_s, double seconds,
              struct load_result *ret)
{
    int64_t now_ns = monotonic_ns();
    l->sending = true;
    for (int i = 0; i < l->plan.connections; i++) {
        for (int k = 0; k < l->plan.depth; k++)
            ask(l, &l->chatters[i], now_ns);
    }
    wire_flush(&l->wire);
    if (!turn_until(l, b, now_ns + (int64_t)(warm_up_s * 1e9)))
        return false;
    int64_t start_ns;
    begin(l, ret, &start_ns);
    if (!turn_until(l, b, start_ns + (int64_t)(seconds * 1e9)) || !wait_for_the_first(l, b, ret))
        return false;
    finish(l, ret, start_ns);
    l->sending = false;
    if (!wait_for_answers(l, b))
        return false;
    return ret->answered > ret->failed ||
           bench_fail(b, "every request was refused, the last one with: %s", l->refusal);
}

bool load_idle(struct load *l, struct bench *b, double seconds, struct load_result *ret)
{
    int64_t start_ns;
    begin(l, ret, &start_ns);
    if (!turn_until(l, b, start_ns + (int64_t)(seconds * 1e9)))
        return false;
    finish(l, ret, start_ns);
    return true;
}

#include "cli/bench_lobbies.h"

#include "base/json.h"
#include "cli/bench_clients.h"
#include "cli/bench_wire.h"
#include "wire/chat.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    GREET_AT_ONCE = 64, /* connections being greeted: less than a listener's queue */
    RING = 64 * 1024,   /* by lobby; far more than are under way */
    WAIT_MS = 20000,    /* before something is called broken */
    TURN_MS = 10,
    BEAT_MS = 5000,
    ROOM = 1000,    /* matches a game server can hold */
    LIST_MAX = 255, /* … and list */
    REGION = 2,
    HTTP_EVENTS = 256,
    ANSWER_MAX = 32 * 1024,
    LOADED_SIZE = FRAME_HEADER + 9,
    ACK_SIZE = FRAME_HEADER + 5,
    ENDED_SIZE = FRAME_HEADER + 13,
};

enum role { ROLE_PLAYER, ROLE_GAME };

struct lane;

struct peer {
    struct wire_peer wire;
    enum role role;
    struct lane *lane; /* of a player */
    int32_t number;    /* a player's account, a server's id */
    int32_t *held;     /* of a server: its matches, room for ROOM */
    int n_held;
};

/* One lobby after the other, of the same players. */
struct lane {
    struct peer *players;
    int http; /* -1 with frames */
    struct buf request;
    char *answer;
    size_t answer_len;
    int64_t asked_ns;
    int started;   /* players who heard START */
    bool answered; /* its creation */
    bool over;     /* … and its match */
};

struct lobbies {
    struct wire wire;
    int http_epoll;
    struct lobbies_plan plan;
    struct peer *games;
    struct peer *players;
    struct lane *lanes;
    int greeted;
    int64_t beat_due_ns;

    struct lane *lane_of[RING]; /* by lobby */
    struct peer *game_of[RING];
    bool sending;
    bool measuring;
    int under_way;
    uint64_t started;
    uint64_t failed;
    struct durations *latency;
    char why[160]; /* what is broken; "" = all is well */
};

static void send_message(struct peer *p, const struct chat_message *m)
{
    struct buf b = {0};
    chat_encode(&b, m);
    wire_send(&p->wire, b.data, b.len);
    buf_done(&b);
}

static void frame_head(uint8_t *frame, size_t size, uint16_t code)
{
    size_t length = size - 2;
    frame[0] = (uint8_t)length;
    frame[1] = (uint8_t)(length >> 8);
    frame[2] = (uint8_t)code;
    frame[3] = (uint8_t)(code >> 8);
}

/* ── asking for lobbies ────────────────────────────────────────────────────────────────────── */

static void put_team(struct json_writer *w, const struct lane *lane, int from, int to)
{
    json_open_array(w);
    for (int i = from; i < to; i++) {
        char name[24];
        snprintf(name, sizeof(name), "player-%" PRId32, lane->players[i].number);
        json_open_object(w);
        json_key_int(w, "account", lane->players[i].number);
        json_key_text(w, "name", str_of(name));
        json_key_int(w, "slot", i - from);
        json_close_object(w);
    }
    json_close_array(w);
}

static void make_post(const struct lobbies *l, struct lane *lane)
{
    struct buf body = {0};
    struct json_writer w = {.out = &body};
    char head[BENCH_TOKEN_MAX + 256];
    int n = l->plan.players;
    json_open_object(&w);
    json_key_text(&w, "region", STR("EU"));
    json_key_int(&w, "type", 1);
    json_key_text(&w, "map", STR("caldera"));
    json_key(&w, "teams");
    json_open_array(&w);
    put_team(&w, lane, 0, (n + 1) / 2);
    put_team(&w, lane, (n + 1) / 2, n);
    json_close_array(&w);
    json_close_object(&w);
    int len = snprintf(head, sizeof(head),
                       "POST /v1/lobbies HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                       l->plan.token, body.len);
    buf_append(&lane->request, head, (size_t)len);
    buf_append(&lane->request, body.data, body.len);
    buf_done(&body);
}

static void make_ask(const struct lobbies *l, struct lane *lane)
{
    uint8_t frame[LOBBIES_ASK_SIZE] = {0};
    frame_head(frame, sizeof(frame), LOBBIES_ASK);
    wire_put_i32(frame + FRAME_HEADER, lane->players[0].number);
    wire_put_i32(frame + FRAME_HEADER + 4, l->plan.players);
    buf_append(&lane->request, frame, sizeof(frame));
}

static void begin(struct lobbies *l, struct lane *lane)
{
    lane->started = 0;
    lane->answered = false;
    lane->over = false;
    lane->answer_len = 0;
    lane->asked_ns = monotonic_ns();
    l->under_way++;
    struct str request = {(const char *)lane->request.data, lane->request.len};
    if (lane->http < 0)
        wire_send(&lane->players[0].wire, request.at, request.len);
    else if (!bench_send(lane->http, request))
        snprintf(l->why, sizeof(l->why), "a lobby could not be asked for");
}

static void continue_lane(struct lobbies *l, struct lane *lane)
{
    if (!lane->answered || !lane->over)
        return;
    l->under_way--;
    if (l->sending)
        begin(l, lane);
}

static void read_answer(struct lobbies *l, struct lane *lane)
{
    char *at = lane->answer + lane->answer_len;
    ssize_t n = recv(lane->http, at, ANSWER_MAX - 1 - lane->answer_len, MSG_DONTWAIT);
    if (n <= 0) {
        snprintf(l->why, sizeof(l->why), "Muster hung up on a client");
        return;
    }
    lane->answer_len += (size_t)n;
    lane->answer[lane->answer_len] = '\0';
    if (bench_answer_size(lane->answer, lane->answer_len) == 0)
        return;
    int status = bench_answer_status(lane->answer);
    if (status != 200 && status != 201)
        snprintf(l->why, sizeof(l->why), "answered with %d: %.100s", status,
                 strstr(lane->answer, "\r\n\r\n") + 4);
    lane->answered = true;
    continue_lane(l, lane);
}

static void http_turn(struct lobbies *l)
{
    struct epoll_event events[HTTP_EVENTS];
    int n = epoll_wait(l->http_epoll, events, HTTP_EVENTS, 0);
    for (int i = 0; i < n; i++)
        read_answer(l, events[i].data.ptr);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

static void on_created(struct lobbies *l, struct peer *p, const struct frame *f)
{
    uint8_t loaded[LOADED_SIZE];
    int32_t lobby = wire_i32(f->payload);
    l->lane_of[(uint32_t)lobby % RING] = p->lane;
    frame_head(loaded, sizeof(loaded), 0x0603);
    wire_put_i32(loaded + FRAME_HEADER, lobby);
    wire_put_i32(loaded + FRAME_HEADER + 4, p->number);
    loaded[FRAME_HEADER + 8] = 1;
    wire_send(&p->wire, loaded, sizeof(loaded));
}

/* What a server holds is what it reports and lists, so it is kept in earnest. */
static void let_go(struct peer *game, int32_t lobby)
{
    for (int i = 0; i < game->n_held; i++) {
        if (game->held[i] == lobby) {
            game->held[i] = game->held[--game->n_held];
            return;
        }
    }
}

static void end_match(struct peer *game, int32_t lobby)
{
    uint8_t ended[ENDED_SIZE] = {0};
    let_go(game, lobby);
    frame_head(ended, sizeof(ended), 0x100C);
    wire_put_i32(ended + FRAME_HEADER, game->number);
    wire_put_i32(ended + FRAME_HEADER + 4, lobby);
    ended[FRAME_HEADER + 8] = 1;
    wire_put_i32(ended + FRAME_HEADER + 9, 600);
    wire_send(&game->wire, ended, sizeof(ended));
}

static void on_start(struct lobbies *l, struct peer *p, const struct frame *f)
{
    int32_t lobby = wire_i32(f->payload);
    if (++p->lane->started < l->plan.players)
        return;
    if (l->measuring)
        durations_add(l->latency, monotonic_ns() - p->lane->asked_ns);
    l->started++;
    end_match(l->game_of[(uint32_t)lobby % RING], lobby);
}

/* i32 lobby, str reason */
static void on_aborted(struct lobbies *l, const struct frame *f)
{
    l->failed++;
    snprintf(l->why, sizeof(l->why), "a lobby was aborted: %.*s", (int)f->payload_len - 6,
             (const char *)f->payload + 4);
}

/* ── game servers ──────────────────────────────────────────────────────────────────────────── */

/* i32 lobby, i8 type, i8 mode, str token: accepted and ready at once */
static void on_allocate(struct lobbies *l, struct peer *p, const struct frame *f)
{
    uint8_t frames[ACK_SIZE + FRAME_HEADER + 8 + 256];
    int32_t lobby = wire_i32(f->payload);
    size_t token_len = f->payload_len - 6;
    uint8_t *ready = frames + ACK_SIZE;
    size_t ready_size = FRAME_HEADER + 8 + token_len;
    if (token_len > 256 || p->n_held == ROOM)
        return;
    p->held[p->n_held++] = lobby;
    l->game_of[(uint32_t)lobby % RING] = p;
    frame_head(frames, ACK_SIZE, 0x1005);
    frames[FRAME_HEADER] = 1;
    wire_put_i32(frames + FRAME_HEADER + 1, lobby);
    frame_head(ready, ready_size, 0x1006);
    wire_put_i32(ready + FRAME_HEADER, p->number);
    wire_put_i32(ready + FRAME_HEADER + 4, lobby);
    memcpy(ready + FRAME_HEADER + 8, f->payload + 6, token_len);
    wire_send(&p->wire, frames, ACK_SIZE + ready_size);
}

/* i8 ok, i32 lobby */
static void on_ended(struct lobbies *l, const struct frame *f)
{
    struct lane *lane = l->lane_of[(uint32_t)wire_i32(f->payload + 1) % RING];
    lane->over = true;
    continue_lane(l, lane);
}

static void beat(struct peer *p)
{
    send_message(p, &(struct chat_message){.kind = CHAT_SV_HEARTBEAT,
                                           .sv_heartbeat = {.server_id = p->number,
                                                            .current_match_count = p->n_held,
                                                            .cpu_percent = 25,
                                                            .memory_percent = 40}});
}

/* A full list proves nothing, so more than fit is as good as none. */
static void send_list(struct peer *p)
{
    uint8_t lobbies[4 * LIST_MAX];
    int n = p->n_held < LIST_MAX ? p->n_held : LIST_MAX;
    for (int i = 0; i < n; i++)
        wire_put_i32(lobbies + (size_t)i * 4, p->held[i]);
    struct chat_list list = {(uint32_t)n, lobbies, (size_t)n * 4};
    send_message(
        p, &(struct chat_message){.kind = CHAT_SV_MATCH_LIST,
                                  .sv_match_list = {.server_id = p->number, .lobbies = list}});
}

static void beat_when_due(struct lobbies *l)
{
    int64_t now_ns = monotonic_ns();
    if (now_ns < l->beat_due_ns)
        return;
    l->beat_due_ns = now_ns + (int64_t)BEAT_MS * 1000000;
    for (int i = 0; i < l->plan.servers; i++)
        beat(&l->games[i]);
    wire_flush(&l->wire);
}

/* ── dispatch ──────────────────────────────────────────────────────────────────────────────── */

static void on_greeted(struct lobbies *l, struct peer *p, const struct frame *f)
{
    if (f->payload_len < 5 || f->payload[0] != 1) {
        snprintf(l->why, sizeof(l->why), "Muster refused a peer: %.*s", (int)f->payload_len - 2,
                 (const char *)f->payload + 1);
        return;
    }
    l->greeted++;
    if (p->role == ROLE_GAME)
        p->number = wire_i32(f->payload + 1);
}

static void on_frame(struct wire *w, struct wire_peer *wire, const struct frame *f)
{
    struct lobbies *l = container_of(w, struct lobbies, wire);
    struct peer *p = container_of(wire, struct peer, wire);
    switch (f->code) {
    case 0x0602:
        on_created(l, p, f);
        break;
    case 0x0604:
        on_start(l, p, f);
        break;
    case 0x0605:
        on_aborted(l, f);
        break;
    case 0x1004:
        on_allocate(l, p, f);
        break;
    case 0x100D:
        on_ended(l, f);
        break;
    case 0x0601:
    case 0x1001:
        on_greeted(l, p, f);
        break;
    case 0x1011:
        send_list(p);
        break;
    case 0x2A00:
        send_message(p, &(struct chat_message){.kind = CHAT_PONG});
        break;
    case LOBBIES_ANSWER:
        p->lane->answered = true;
        continue_lane(l, p->lane);
        break;
    default:
        break; /* what the others do, and acknowledgements */
    }
}

static void on_lost(struct wire *w, struct wire_peer *p)
{
    struct lobbies *l = container_of(w, struct lobbies, wire);
    (void)p;
    if (!l->why[0])
        snprintf(l->why, sizeof(l->why), "Muster hung up on a peer");
}

/* ── opening ───────────────────────────────────────────────────────────────────────────────── */

static void turn(struct lobbies *l)
{
    struct pollfd p[] = {{.fd = l->wire.epoll, .events = POLLIN},
                         {.fd = l->http_epoll, .events = POLLIN}};
    if (poll(p, 2, TURN_MS) <= 0)
        return;
    if (p[0].revents)
        wire_turn(&l->wire, 0);
    if (p[1].revents)
        http_turn(l);
}

static void greet(const struct lobbies *l, struct peer *p, int i)
{
    char ip[32];
    snprintf(ip, sizeof(ip), "10.0.%d.%d", i / 256, i % 256);
    if (p->role == ROLE_PLAYER)
        send_message(
            p, &(struct chat_message){
                   .kind = CHAT_CL_CONNECT,
                   .cl_connect = {.account = p->number,
                                  .access_token = str_of(l->plan.token_of(l->plan.user, i))}});
    else
        send_message(p, &(struct chat_message){.kind = CHAT_SV_HANDSHAKE,
                                               .sv_handshake = {.server_token = STR("bench"),
                                                                .ip = str_of(ip),
                                                                .port = 7777,
                                                                .region = REGION,
                                                                .max_concurrent_matches = ROOM}});
}

static bool wait_for_greetings(struct lobbies *l, struct bench *b, int wanted)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    while (l->greeted < wanted && !l->why[0]) {
        if (monotonic_ns() > deadline_ns)
            return bench_fail(b, "only %d of %d peers were greeted in %d s", l->greeted, wanted,
                              WAIT_MS / 1000);
        turn(l);
    }
    return !l->why[0] || bench_fail(b, "%s", l->why);
}

static bool connect_peers(struct lobbies *l, struct bench *b, struct peer *peers, int n,
                          const char *address)
{
    int before = l->greeted;
    for (int i = 0; i < n; i++) {
        if (!wire_connect(&l->wire, &peers[i].wire, address))
            return bench_fail(b, "connection %d to %s: %s", i + 1, address, strerror(errno));
        greet(l, &peers[i], i);
        wire_flush(&l->wire);
        bool chunk_ends = (i + 1) % GREET_AT_ONCE == 0 || i + 1 == n;
        if (chunk_ends && !wait_for_greetings(l, b, before + i + 1))
            return false;
    }
    return true;
}

static bool open_lane(struct lobbies *l, struct bench *b, struct lane *lane)
{
    if (!l->plan.http) {
        make_ask(l, lane);
        return true;
    }
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = lane};
    make_post(l, lane);
    lane->answer = xcalloc(1, ANSWER_MAX);
    lane->http = bench_connect(l->plan.http);
    return (lane->http >= 0 && epoll_ctl(l->http_epoll, EPOLL_CTL_ADD, lane->http, &e) == 0) ||
           bench_fail(b, "%s: %s", l->plan.http, strerror(errno));
}

static void make_peers(struct lobbies *l)
{
    const struct lobbies_plan *plan = &l->plan;
    l->games = xcalloc((size_t)plan->servers, sizeof(*l->games));
    l->players = xcalloc((size_t)plan->lobbies * (size_t)plan->players, sizeof(*l->players));
    l->lanes = xcalloc((size_t)plan->lobbies, sizeof(*l->lanes));
    for (int i = 0; i < plan->servers; i++)
        l->games[i] = (struct peer){
            .role = ROLE_GAME, .wire.fd = -1, .held = xcalloc(ROOM, sizeof(*l->games[i].held))};
    for (int i = 0; i < plan->lobbies * plan->players; i++)
        l->players[i] = (struct peer){.role = ROLE_PLAYER,
                                      .wire.fd = -1,
                                      .number = i + 1,
                                      .lane = &l->lanes[i / plan->players]};
    for (int i = 0; i < plan->lobbies; i++)
        l->lanes[i] =
            (struct lane){.players = &l->players[(size_t)i * (size_t)plan->players], .http = -1};
}

bool lobbies_open(struct lobbies **ret, struct bench *b, const struct lobbies_plan *plan)
{
    struct lobbies *l = xcalloc(1, sizeof(*l));
    l->plan = *plan;
    l->wire.frame = on_frame;
    l->wire.lost = on_lost;
    l->http_epoll = epoll_create1(EPOLL_CLOEXEC);
    make_peers(l);
    bool open = (wire_init(&l->wire) && l->http_epoll >= 0) ||
                bench_fail(b, "no epoll: %s", strerror(errno));
    open = open && connect_peers(l, b, l->games, plan->servers, plan->server) &&
           connect_peers(l, b, l->players, plan->lobbies * plan->players, plan->client);
    for (int i = 0; open && i < plan->lobbies; i++)
        open = open_lane(l, b, &l->lanes[i]);
    if (!open) {
        lobbies_close(l);
        return false;
    }
    *ret = l;
    return true;
}

void lobbies_close(struct lobbies *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->plan.servers; i++) {
        wire_close(&l->games[i].wire);
        free(l->games[i].held);
    }
    for (int i = 0; i < l->plan.lobbies * l->plan.players; i++)
        wire_close(&l->players[i].wire);
    for (int i = 0; i < l->plan.lobbies; i++) {
        if (l->lanes[i].http >= 0)
            close(l->lanes[i].http);
        buf_done(&l->lanes[i].request);
        free(l->lanes[i].answer);
    }
    wire_done(&l->wire);
    if (l->http_epoll >= 0)
        close(l->http_epoll);
    free(l->games);
    free(l->players);
    free(l->lanes);
    free(l);
}

/* ── running ───────────────────────────────────────────────────────────────────────────────── */

static bool turn_until(struct lobbies *l, struct bench *b, int64_t until_ns)
{
    while (monotonic_ns() < until_ns && !l->why[0]) {
        turn(l);
        beat_when_due(l);
    }
    return !l->why[0] || bench_fail(b, "%s", l->why);
}

/* However short the time, what is measured includes a start. */
static bool wait_for_the_first(struct lobbies *l, struct bench *b, uint64_t before)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    while (l->started == before && !l->why[0] && monotonic_ns() < deadline_ns)
        turn(l);
    return l->started > before || bench_fail(b, "%s", l->why[0] ? l->why : "no lobby started");
}

static bool wait_for_the_last(struct lobbies *l, struct bench *b)
{
    int64_t deadline_ns = monotonic_ns() + (int64_t)WAIT_MS * 1000000;
    while (l->under_way > 0 && !l->why[0] && monotonic_ns() < deadline_ns)
        turn(l);
    return l->under_way == 0 ||
           bench_fail(b, "%s", l->why[0] ? l->why : "some lobbies never ended");
}

static bool measure(struct lobbies *l, struct bench *b, double seconds, struct lobbies_result *ret)
{
    memset(ret, 0, sizeof(*ret));
    l->latency = &ret->latency;
    l->measuring = true;
    uint64_t started = l->started;
    struct thread_cpu threads = process_threads(l->plan.pid);
    double cpu_us = process_cpu_us(l->plan.pid);
    double own_us = process_cpu_us(getpid());
    int64_t start_ns = monotonic_ns();
    if (!turn_until(l, b, start_ns + (int64_t)(seconds * 1e9)) ||
        !wait_for_the_first(l, b, started))
        return false;
    struct thread_cpu now = process_threads(l->plan.pid);
    ret->seconds = (double)(monotonic_ns() - start_ns) / 1e9;
    ret->cpu_us = process_cpu_us(l->plan.pid) - cpu_us;
    ret->own_cpu_us = process_cpu_us(getpid()) - own_us;
    ret->threads =
        (struct thread_cpu){now.loop_us - threads.loop_us, now.commit_us - threads.commit_us,
                            now.fold_us - threads.fold_us, now.other_us - threads.other_us};
    ret->started = l->started - started;
    ret->failed = l->failed;
    l->measuring = false;
    return true;
}

bool lobbies_run(struct lobbies *l, struct bench *b, double warm_up_s, double seconds,
                 struct lobbies_result *ret)
{
    l->sending = true;
    for (int i = 0; i < l->plan.lobbies; i++)
        begin(l, &l->lanes[i]);
    wire_flush(&l->wire);
    bool ok = turn_until(l, b, monotonic_ns() + (int64_t)(warm_up_s * 1e9)) &&
              measure(l, b, seconds, ret);
    l->sending = false;
    return ok && wait_for_the_last(l, b);
}

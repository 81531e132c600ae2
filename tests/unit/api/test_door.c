/* Doors with a real loop, a real core and a store in memory. Commits end when a test says so, which
 * shows what leaves before its batch is durable (nothing) and what is held back meanwhile. */
#include "api/access.h"
#include "api/chat_client.h"
#include "api/chat_manager.h"
#include "api/chat_server.h"
#include "api/conn.h"
#include "api/door.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/view.h"
#include "lib/loop.h"
#include "store/store.h"
#include "wire/put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVER_DOOR = 0, MANAGER_DOOR = 1, CLIENT_DOOR = 2, EU = 2 };

struct world {
    struct loop loop;
    struct doors doors;
    struct store *store;
    struct pipeline *pipeline;
    struct core_config config;
    struct store_batch submitted;
    bool is_submitted;
    bool commits_at_once;
    bool never_stopped; /* a pause of this test counts as time in which peers were heard */
};

/* One peer: a plain socket and what it has read. */
struct peer {
    struct world *world;
    int fd;
    struct buf in;
    struct chat_message m; /* the last message; points into `frame` */
    struct buf frame;
};

static void submit(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    assert_false(w->is_submitted);
    w->submitted = *batch;
    w->is_submitted = true;
}

static void release(void *user, const struct effect *effects, size_t n)
{
    struct world *w = user;
    doors_release(&w->doors, effects, n);
}

static void end_commit(struct world *w)
{
    assert_true(w->is_submitted);
    w->is_submitted = false;
    int result = store_commit(w->store, &w->submitted);
    doors_read_clocks(&w->doors);
    pipeline_committed(w->pipeline, result, w->doors.monotonic_ms, w->doors.wall_ms);
    doors_committed(&w->doors);
}

static void on_turn(void *user)
{
    struct world *w = user;
    doors_read_clocks(&w->doors);
    doors_before_flush(&w->doors);
    pipeline_flush(w->pipeline, w->doors.monotonic_ms, w->doors.wall_ms);
    while (w->commits_at_once && w->is_submitted)
        end_commit(w);
    doors_after_flush(&w->doors);
}

static void on_tick(void *user)
{
    struct world *w = user;
    if (w->never_stopped)
        w->doors.ticked_ms = INT64_MAX;
    doors_tick(&w->doors);
    doors_event(&w->doors, &(struct event){.kind = EVENT_TICK});
}

static int setup(void **state)
{
    static const uint8_t secret[CORE_SECRET_SIZE] = {1};
    struct world *w = calloc(1, sizeof(*w));
    struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = w};
    struct loop_limits limits = {.streams = 100, .streams_per_address = 100};
    struct pipeline_world world = {.submit = submit, .release = release, .user = w};
    struct listener_place place = {.ip = "127.0.0.1"};
    const char *why = NULL;
    log_set_level(LOG_ERROR);
    w->commits_at_once = true;
    w->store = store_open_memory();
    core_config_default(&w->config);
    w->config.any_token = true;
    loop_init(&w->loop, &hooks, &limits);
    doors_init(&w->doors, &w->loop);
    w->doors.access = access_new(secret);
    access_configure(w->doors.access, "1", NULL, 0);
    assert_int_equal(pipeline_new(w->store, &w->config, secret, &world, w->doors.wall_ms,
                                  w->doors.monotonic_ms, &w->pipeline),
                     0);
    w->doors.pipeline = w->pipeline;
    assert_int_equal(doors_open(&w->doors, &chat_server_port, &place, &why), 0);
    assert_int_equal(doors_open(&w->doors, &chat_manager_port, &place, &why), 0);
    assert_int_equal(doors_open(&w->doors, &chat_client_port, &place, &why), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    doors_stop(&w->doors);
    doors_close(&w->doors);
    loop_done(&w->loop);
    access_free(w->doors.access);
    doors_done(&w->doors);
    pipeline_free(w->pipeline);
    store_close(w->store);
    free(w);
    return 0;
}

/* Some turns in which nothing should happen: what is on its way over loopback has then arrived. */
static void settle(struct world *w)
{
    for (int i = 0; i < 4; i++)
        uv_run(&w->loop.uv, UV_RUN_ONCE);
}

static struct peer dial(struct world *w, int door)
{
    conn_id before = w->doors.last_id;
    struct peer p = {.world = w, .fd = listener_dial(w->doors.all[door].listener)};
    RUN_UNTIL(w, w->doors.last_id > before);
    return p;
}

static void hang_up(struct peer *p)
{
    close(p->fd);
    buf_done(&p->in);
    buf_done(&p->frame);
}

static void say(struct peer *p, const struct buf *bytes)
{
    assert_int_equal(send(p->fd, bytes->data, bytes->len, 0), (ssize_t)bytes->len);
}

static void say_message(struct peer *p, const struct chat_message *m)
{
    struct buf bytes = {0};
    chat_encode(&bytes, m);
    say(p, &bytes);
    buf_done(&bytes);
}

/* The next message into p->m. False when there is none yet, or never will be (*ret_end). */
static bool hear(struct peer *p, bool *ret_end)
{
    uint8_t chunk[4096];
    ssize_t n = recv(p->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0)
        buf_append(&p->in, chunk, (size_t)n);
    struct frame f;
    if (frame_next(p->in.data, p->in.len, FRAME_MAX, &f) != FRAME_OK) {
        *ret_end = n == 0;
        return false;
    }
    buf_clear(&p->frame);
    buf_append(&p->frame, f.payload, f.payload_len);
    struct cursor c = cursor_of(p->frame.data, p->frame.len);
    chat_decode(&c, chat_find(f.code, CHAT_FROM_US), &p->m);
    assert_false(cursor_failed(&c));
    buf_consume(&p->in, f.total);
    return true;
}

static void expect(struct peer *p, enum chat_kind kind)
{
    bool end = false;
    RUN_UNTIL(p->world, hear(p, &end) || end);
    assert_false(end);
    assert_string_equal(chat_name(p->m.kind), chat_name(kind));
}

static void expect_nothing(struct peer *p)
{
    bool end = false;
    settle(p->world);
    assert_false(hear(p, &end) || end);
}

static void expect_error(struct peer *p, const char *text)
{
    expect(p, CHAT_ERROR);
    assert_int_equal(p->m.error.message.len, strlen(text));
    assert_memory_equal(p->m.error.message.at, text, strlen(text));
    bool end = false;
    RUN_UNTIL(p->world, hear(p, &end) || end);
    assert_true(end);
}

static void put_server_hello(struct buf *to, int32_t port)
{
    chat_encode(to, &(struct chat_message){.kind = CHAT_SV_HANDSHAKE,
                                           .sv_handshake = {.server_token = STR("any"),
                                                            .ip = STR("10.0.0.1"),
                                                            .port = port,
                                                            .region = EU,
                                                            .max_concurrent_matches = 4}});
}

static void put_chat_hello(struct buf *to)
{
    static const uint8_t regions[] = {EU};
    chat_encode(to, &(struct chat_message){.kind = CHAT_MGR_HANDSHAKE,
                                           .mgr_handshake = {.service_token = STR("any"),
                                                             .chat_server_id = STR("chat-1"),
                                                             .regions = {1, regions, 1}}});
}

static void put_request(struct buf *to, int32_t lobby)
{
    chat_encode(to, &(struct chat_message){.kind = CHAT_MGR_SERVER_ALLOCATION_REQUEST,
                                           .mgr_server_allocation_request = {
                                               .lobby = lobby, .region = EU, .player_count = 10}});
}

static void put_heartbeat(struct buf *to, int32_t server_id, float cpu)
{
    chat_encode(to, &(struct chat_message){.kind = CHAT_SV_HEARTBEAT,
                                           .sv_heartbeat = {.server_id = server_id,
                                                            .current_match_count = 0,
                                                            .cpu_percent = cpu}});
}

static struct peer registered_server(struct world *w)
{
    struct peer p = dial(w, SERVER_DOOR);
    struct buf bytes = {0};
    put_server_hello(&bytes, 7777);
    say(&p, &bytes);
    buf_done(&bytes);
    expect(&p, CHAT_SV_HANDSHAKE_RESPONSE);
    assert_true(p.m.sv_handshake_response.ok);
    return p;
}

static struct conn *conn_of(struct world *w, conn_id id)
{
    return map_get(&w->doors.conns, id);
}

static void test_ping_before_the_handshake(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, MANAGER_DOOR);
    say_message(&p, &(struct chat_message){.kind = CHAT_PING});
    expect(&p, CHAT_PONG);
    hang_up(&p);
}

static void test_anything_else_before_the_handshake(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, MANAGER_DOOR);
    say_message(&p, &(struct chat_message){.kind = CHAT_MGR_HEARTBEAT});
    expect_error(&p, "Protocol error: MGR_HEARTBEAT came before the handshake");
    hang_up(&p);

    p = dial(w, SERVER_DOOR);
    say_message(&p, &(struct chat_message){.kind = CHAT_MGR_HEARTBEAT});
    expect_error(&p, "Protocol error: 0x2004 came before the handshake");
    hang_up(&p);
}

static void test_second_handshake(void **state)
{
    struct world *w = *state;
    struct peer p = registered_server(w);
    struct buf bytes = {0};
    put_server_hello(&bytes, 7778);
    say(&p, &bytes);
    buf_done(&bytes);
    expect_error(&p, "Protocol error: SV_HANDSHAKE is a second handshake");
    hang_up(&p);
}

static void test_handshake_above_its_limit(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, SERVER_DOOR);
    uint8_t header[] = {0x01, 0x04, 0x00, 0x10}; /* length 1025 */
    assert_int_equal(send(p.fd, header, sizeof(header), 0), sizeof(header));
    expect_error(&p, "Protocol error: frame too long");
    hang_up(&p);
}

static void test_handshake_too_late(void **state)
{
    struct world *w = *state;
    int64_t before_ms = clock_monotonic_ms();
    struct peer p = dial(w, SERVER_DOOR);
    struct conn *c = conn_of(w, w->doors.last_id);
    assert_in_range(c->due_ms, before_ms + DOOR_HELLO_MS, clock_monotonic_ms() + DOOR_HELLO_MS);
    c->due_ms = clock_monotonic_ms();
    expect_error(&p, "Protocol error: no handshake within 5 s");
    hang_up(&p);
}

static void test_handshake_is_not_late_when_we_were_stopped(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, SERVER_DOOR);
    struct conn *c = conn_of(w, w->doors.last_id);
    struct buf bytes = {0};
    put_server_hello(&bytes, 7777);
    say(&p, &bytes);
    buf_done(&bytes);
    c->due_ms = clock_monotonic_ms() - 40000; /* as if 45 s had passed since the last tick */
    w->doors.ticked_ms -= 45000;
    doors_tick(&w->doors);
    expect(&p, CHAT_SV_HANDSHAKE_RESPONSE);
    hang_up(&p);
}

static void test_bad_field_is_named_with_its_place(void **state)
{
    struct world *w = *state;
    struct peer p = registered_server(w);
    struct buf bytes = {0};
    put_heartbeat(&bytes, 1, 101);
    say(&p, &bytes);
    buf_done(&bytes);
    expect_error(&p, "Protocol error: SV_HEARTBEAT: number out of range at byte 8");
    hang_up(&p);
}

static void test_requests_behind_a_handshake_wait_for_its_answer(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, MANAGER_DOOR);
    struct buf bytes = {0};
    w->commits_at_once = false;
    put_chat_hello(&bytes);
    put_request(&bytes, 1);
    chat_encode(&bytes, &(struct chat_message){.kind = CHAT_PING});
    say(&p, &bytes);
    buf_done(&bytes);
    RUN_UNTIL(w, w->is_submitted);
    expect_nothing(&p); /* not even the PONG: it would tell that the PING was handled */
    struct core_counts counts;
    core_count(pipeline_core(w->pipeline), &counts);
    assert_int_equal(counts.tickets_open + counts.tickets_kept, 0);

    w->commits_at_once = true;
    end_commit(w);
    expect(&p, CHAT_MGR_HANDSHAKE_RESPONSE);
    assert_true(p.m.mgr_handshake_response.ok);
    expect(&p, CHAT_PONG);
    expect(&p, CHAT_MGR_SERVER_ALLOCATION_RESPONSE);
    hang_up(&p);
}

static void test_refused_handshake_is_answered_and_closed(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, SERVER_DOOR);
    struct buf bytes = {0};
    put_server_hello(&bytes, 80);
    put_heartbeat(&bytes, 1, 0); /* must not be looked at */
    say(&p, &bytes);
    buf_done(&bytes);
    expect(&p, CHAT_SV_HANDSHAKE_RESPONSE);
    assert_false(p.m.sv_handshake_response.ok);
    bool end = false;
    RUN_UNTIL(w, hear(&p, &end) || end);
    assert_true(end);
    hang_up(&p);
}

static void test_heartbeats_are_acknowledged_while_a_commit_hangs(void **state)
{
    struct world *w = *state;
    struct peer p = registered_server(w);
    struct peer other = dial(w, SERVER_DOOR);
    struct buf bytes = {0};
    w->commits_at_once = false;
    put_server_hello(&bytes, 7778);
    say(&other, &bytes);
    RUN_UNTIL(w, w->is_submitted);
    buf_clear(&bytes);
    put_heartbeat(&bytes, 1, 10);
    say(&p, &bytes);
    buf_done(&bytes);
    expect(&p, CHAT_SV_HEARTBEAT_ACK);
    assert_true(p.m.sv_heartbeat_ack.ok);
    expect_nothing(&other);
    end_commit(w);
    hang_up(&p);
    hang_up(&other);
}

static void test_answers_before_a_mistake_still_come(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, MANAGER_DOOR);
    struct buf bytes = {0};
    put_chat_hello(&bytes);
    say(&p, &bytes);
    expect(&p, CHAT_MGR_HANDSHAKE_RESPONSE);
    w->commits_at_once = false;
    buf_clear(&bytes);
    put_request(&bytes, 5);
    put_u16(&bytes, 0); /* a frame of length 0 */
    put_request(&bytes, 6);
    say(&p, &bytes);
    buf_done(&bytes);
    RUN_UNTIL(w, w->is_submitted);
    expect_nothing(&p);
    w->commits_at_once = true;
    end_commit(w);
    expect(&p, CHAT_MGR_SERVER_ALLOCATION_RESPONSE);
    assert_int_equal(p.m.mgr_server_allocation_response.lobby, 5);
    expect_error(&p, "Protocol error: frame length below 2");
    hang_up(&p);
}

static void test_core_hears_of_the_end(void **state)
{
    struct world *w = *state;
    struct peer server = registered_server(w);
    struct peer asker = dial(w, MANAGER_DOOR);
    struct buf bytes = {0};
    hang_up(&server);
    RUN_UNTIL(w, w->doors.conns.len == 1);
    put_chat_hello(&bytes);
    put_request(&bytes, 5);
    say(&asker, &bytes);
    buf_done(&bytes);
    expect(&asker, CHAT_MGR_HANDSHAKE_RESPONSE);
    expect(&asker, CHAT_MGR_SERVER_ALLOCATION_RESPONSE); /* else it would be asked first */
    assert_false(asker.m.mgr_server_allocation_response.ok);
    hang_up(&asker);
}

static void test_core_never_hears_of_a_stranger(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, SERVER_DOOR);
    struct conn *c = conn_of(w, w->doors.last_id);
    say_message(&p, &(struct chat_message){.kind = CHAT_PONG});
    settle(w);
    assert_false(c->owes_gone);
    hang_up(&p);
    RUN_UNTIL(w, w->doors.conns.len == 0);
}

static void test_unknown_commands_are_skipped(void **state)
{
    struct world *w = *state;
    struct peer p = registered_server(w);
    struct conn *c = conn_of(w, w->doors.last_id);
    struct buf bytes = {0};
    frame_close(&bytes, frame_open(&bytes, 0x7ABC));
    chat_encode(&bytes, &(struct chat_message){.kind = CHAT_MGR_HEARTBEAT}); /* other port */
    chat_encode(&bytes, &(struct chat_message){.kind = CHAT_ERROR, .error = {STR("e")}}); /* ours */
    put_heartbeat(&bytes, 1, 10);
    say(&p, &bytes);
    buf_done(&bytes);
    expect(&p, CHAT_SV_HEARTBEAT_ACK);
    assert_true(c->said_unknown);
    hang_up(&p);
}

static void test_ping_gives_the_round_trip_time(void **state)
{
    struct world *w = *state;
    int64_t before_ms = clock_monotonic_ms();
    struct peer p = registered_server(w);
    struct conn *c = conn_of(w, w->doors.last_id);
    assert_int_equal(c->rtt_us, -1);
    assert_in_range(c->due_ms, before_ms + DOOR_PING_MS, clock_monotonic_ms() + DOOR_PING_MS);
    c->due_ms = before_ms = clock_monotonic_ms();
    expect(&p, CHAT_PING);
    say_message(&p, &(struct chat_message){.kind = CHAT_PONG});
    RUN_UNTIL(w, c->rtt_us >= 0);
    assert_in_range(c->due_ms, before_ms + DOOR_PING_MS, clock_monotonic_ms() + DOOR_PING_MS);
    struct view_peer peer;
    struct view_server server;
    assert_true(view_peer(pipeline_core(w->pipeline), c->id, &peer));
    assert_true(view_server(pipeline_core(w->pipeline), peer.server, &server));
    assert_int_equal(server.round_trip_us, c->rtt_us);
    say_message(&p, &(struct chat_message){.kind = CHAT_PONG}); /* unasked: changes nothing */
    hang_up(&p);
}

/* Sends requests until the socket takes no more; returns how many bytes it took. */
static size_t flood(struct world *w, struct peer *p, const struct buf *bytes)
{
    size_t sent = 0, offset = 0;
    for (int idle = 0; idle < 50;) {
        ssize_t n = send(p->fd, bytes->data + offset, bytes->len - offset, MSG_DONTWAIT);
        idle = n > 0 ? 0 : idle + 1;
        if (n > 0) {
            sent += (size_t)n;
            offset = (offset + (size_t)n) % bytes->len;
        }
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    }
    return sent;
}

static void test_manager_port_waits_for_the_store(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, MANAGER_DOOR);
    struct peer server = registered_server(w);
    struct buf bytes = {0};
    put_chat_hello(&bytes);
    say(&p, &bytes);
    expect(&p, CHAT_MGR_HANDSHAKE_RESPONSE);

    w->commits_at_once = false;
    buf_clear(&bytes);
    for (int32_t i = 1; i <= 10000; i++)
        put_request(&bytes, i << 16); /* every one is new, then a repeat */
    flood(w, &p, &bytes);
    assert_true(w->doors.all[MANAGER_DOOR].held);
    size_t full = pipeline_backlog(w->pipeline);
    assert_in_range(full, chat_manager_port.backlog_max, 2 * chat_manager_port.backlog_max);

    buf_clear(&bytes);
    put_heartbeat(&bytes, 1, 10);
    say(&server, &bytes);
    expect(&server, CHAT_SV_HEARTBEAT_ACK); /* before any ALLOCATE_MATCH: those are not durable */
    assert_true(w->doors.all[MANAGER_DOOR].held);

    w->commits_at_once = true;
    end_commit(w);
    RUN_UNTIL(w, !w->doors.all[MANAGER_DOOR].held);
    buf_done(&bytes);
    hang_up(&p);
    hang_up(&server);
}

static void test_stop_sends_what_is_answered_and_reads_no_more(void **state)
{
    struct world *w = *state;
    struct peer p = dial(w, MANAGER_DOOR);
    struct buf bytes = {0};
    put_chat_hello(&bytes);
    say(&p, &bytes);
    expect(&p, CHAT_MGR_HANDSHAKE_RESPONSE);
    w->commits_at_once = false;
    buf_clear(&bytes);
    put_request(&bytes, 5);
    say(&p, &bytes);
    RUN_UNTIL(w, w->is_submitted);
    doors_stop(&w->doors);
    say(&p, &bytes);
    buf_done(&bytes);
    end_commit(w);
    expect(&p, CHAT_MGR_SERVER_ALLOCATION_RESPONSE);
    assert_int_equal(doors_unsent(&w->doors), 0);
    expect_nothing(&p);
    hang_up(&p);
}

static void test_a_door_counts_its_connections(void **state)
{
    struct world *w = *state;
    const struct door_figures *f = &w->doors.all[SERVER_DOOR].figures;
    struct peer good = registered_server(w);
    assert_int_equal(f->connections, 1);
    assert_true(f->received_bytes > 0);
    assert_true(f->sent_bytes > 0);
    struct peer bad = dial(w, SERVER_DOOR);
    say_message(&bad, &(struct chat_message){.kind = CHAT_SV_MATCH_LIST});
    RUN_UNTIL(w, f->protocol_errors == 1);
    hang_up(&bad);
    RUN_UNTIL(w, f->connections == 1);
    assert_int_equal(f->accepted, 2);
    assert_int_equal(f->cut, 0);
    assert_int_equal(w->doors.all[MANAGER_DOOR].figures.accepted, 0);
    hang_up(&good);
    RUN_UNTIL(w, f->connections == 0);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

/* Player 5 shows a token of that account. */
static struct peer greeting_player(struct world *w, const char *account)
{
    struct peer p = dial(w, CLIENT_DOOR);
    struct buf token = {0};
    access_issue(w->doors.access, account, ACCESS_GAME, w->doors.wall_ms, w->doors.wall_ms + 60000,
                 &token);
    say_message(&p, &(struct chat_message){
                        .kind = CHAT_CL_CONNECT,
                        .cl_connect = {.account = 5,
                                       .access_token = {(const char *)token.data, token.len}}});
    buf_done(&token);
    return p;
}

static struct peer player(struct world *w, const char *account)
{
    struct peer p = greeting_player(w, account);
    expect(&p, CHAT_CL_CONNECT_RESPONSE);
    return p;
}

static struct peer registered_player(struct world *w)
{
    struct peer p = player(w, "5");
    assert_true(p.m.cl_connect_response.ok);
    return p;
}

static void test_core_never_hears_of_a_player_with_a_bad_token(void **state)
{
    struct world *w = *state;
    struct peer first = registered_player(w);
    struct peer impostor = player(w, "6");
    assert_false(impostor.m.cl_connect_response.ok);
    assert_int_equal(impostor.m.cl_connect_response.error.len, strlen("Invalid token"));
    bool end = false;
    RUN_UNTIL(w, hear(&impostor, &end) || end);
    assert_true(end);
    hang_up(&impostor);
    expect_nothing(&first); /* else it would have been replaced */
    hang_up(&first);
}

static void test_longest_token_there_can_be_is_read(void **state)
{
    struct world *w = *state;
    char text[CURSOR_STR_MAX + 1];
    memset(text, 'x', sizeof(text));
    struct peer p = dial(w, CLIENT_DOOR);
    struct chat_message m = {.kind = CHAT_CL_CONNECT,
                             .cl_connect = {.account = 5, .access_token = {text, CURSOR_STR_MAX}}};
    say_message(&p, &m);
    expect(&p, CHAT_CL_CONNECT_RESPONSE);
    hang_up(&p);

    p = dial(w, CLIENT_DOOR);
    uint8_t header[] = {0x08, 0x04, 0x00, 0x06}; /* one byte more than it could have */
    assert_int_equal(send(p.fd, header, sizeof(header), 0), sizeof(header));
    expect_error(&p, "Protocol error: frame too long");
    hang_up(&p);
}

/* A PING comes now instead of in ten seconds. */
static void expect_ping(struct peer *p, struct conn *c)
{
    c->due_ms = clock_monotonic_ms();
    expect(p, CHAT_PING);
}

static void test_player_who_answers_no_ping_is_gone(void **state)
{
    struct world *w = *state;
    struct peer p = registered_player(w);
    struct conn *c = conn_of(w, w->doors.last_id);
    w->never_stopped = true;
    expect_ping(&p, c);
    expect_ping(&p, c);
    c->due_ms = clock_monotonic_ms();
    expect_error(&p, "Silent for too long");
    assert_int_equal(w->doors.all[CLIENT_DOOR].figures.silent, 1);
    assert_int_equal(w->doors.conns.len, 0);
    hang_up(&p);
}

static void test_any_frame_of_a_player_is_a_sign_of_life(void **state)
{
    struct world *w = *state;
    struct peer p = registered_player(w);
    struct conn *c = conn_of(w, w->doors.last_id);
    for (int i = 0; i < 3; i++) {
        expect_ping(&p, c);
        expect_ping(&p, c);
        say_message(&p, &(struct chat_message){.kind = CHAT_CL_PLAYER_LOADING_STATUS});
        RUN_UNTIL(w, c->unanswered == 0);
    }
    assert_int_equal(w->doors.all[CLIENT_DOOR].figures.silent, 0);
    hang_up(&p);
}

static void test_player_is_not_gone_when_we_were_stopped(void **state)
{
    struct world *w = *state;
    struct peer p = registered_player(w);
    struct conn *c = conn_of(w, w->doors.last_id);
    expect_ping(&p, c);
    expect_ping(&p, c);
    w->doors.ticked_ms -= 45000; /* as if we had been stopped */
    expect_ping(&p, c);
    expect_ping(&p, c);
    assert_int_equal(w->doors.all[CLIENT_DOOR].figures.silent, 0);
    hang_up(&p);
}

static void test_player_is_not_gone_while_he_is_not_read(void **state)
{
    struct world *w = *state;
    w->commits_at_once = false;
    struct peer p = greeting_player(w, "5");
    struct conn *c = conn_of(w, w->doors.last_id);
    RUN_UNTIL(w, c->state == CONN_ASKING);
    for (int i = 0; i < 4; i++)
        expect_ping(&p, c);
    RUN_UNTIL(w, w->is_submitted);
    end_commit(w);
    w->commits_at_once = true;
    expect(&p, CHAT_CL_CONNECT_RESPONSE);
    assert_true(p.m.cl_connect_response.ok);
    hang_up(&p);
}

static void test_servers_are_judged_by_their_heartbeats_alone(void **state)
{
    struct world *w = *state;
    struct peer p = registered_server(w);
    struct conn *c = conn_of(w, w->doors.last_id);
    for (int i = 0; i < 4; i++)
        expect_ping(&p, c);
    assert_int_equal(w->doors.all[SERVER_DOOR].figures.silent, 0);
    hang_up(&p);
}

/* ── clocks ────────────────────────────────────────────────────────────────────────────────── */

/* Seen: two looks at one match told two beginnings, a millisecond apart. */
static void the_clocks_keep_their_distance(void **state)
{
    struct world *w = *state;
    int64_t apart_ms = w->doors.wall_ms - w->doors.monotonic_ms;
    int64_t end_ms = clock_monotonic_ms() + 50;
    while (w->doors.monotonic_ms < end_ms) {
        doors_read_clocks(&w->doors);
        assert_int_equal(w->doors.wall_ms - w->doors.monotonic_ms, apart_ms);
    }
    int64_t before_ms = clock_wall_ms();
    doors_read_clocks(&w->doors);
    assert_in_range(w->doors.wall_ms, before_ms - 2, clock_wall_ms() + 2);
}

/* Seen: ten minutes past its time a token was taken, on a machine too busy to read two clocks
 * within a millisecond. */
static void a_clock_that_was_set_is_believed_however_long_the_reading_took(void **state)
{
    (void)state;
    int64_t waited_us = 30 * 1000;
    assert_int_equal(doors_distance(5000, 6000, 10), 5000);
    assert_int_equal(doors_distance(5000, 4000, 10), 5000);
    assert_int_equal(doors_distance(5000, 7000, 10), 7000);
    /* Only made to wait; each reading is cut to a microsecond. Seen, when it was cut to a
     * millisecond: the wall clock jumped by 16 ms, and back. */
    assert_int_equal(doors_distance(5000, 5000 + waited_us + 1, waited_us - 1), 5000);
    assert_int_equal(doors_distance(5000, 605000000, waited_us), 605000000);
    assert_int_equal(doors_distance(5000, -115000000, waited_us), -115000000);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_clocks_keep_their_distance),
        T(a_clock_that_was_set_is_believed_however_long_the_reading_took),
        T(test_ping_before_the_handshake),
        T(test_anything_else_before_the_handshake),
        T(test_second_handshake),
        T(test_handshake_above_its_limit),
        T(test_handshake_too_late),
        T(test_handshake_is_not_late_when_we_were_stopped),
        T(test_bad_field_is_named_with_its_place),
        T(test_requests_behind_a_handshake_wait_for_its_answer),
        T(test_refused_handshake_is_answered_and_closed),
        T(test_heartbeats_are_acknowledged_while_a_commit_hangs),
        T(test_answers_before_a_mistake_still_come),
        T(test_core_hears_of_the_end),
        T(test_core_never_hears_of_a_stranger),
        T(test_unknown_commands_are_skipped),
        T(test_ping_gives_the_round_trip_time),
        T(test_a_door_counts_its_connections),
        T(test_manager_port_waits_for_the_store),
        T(test_stop_sends_what_is_answered_and_reads_no_more),
        T(test_core_never_hears_of_a_player_with_a_bad_token),
        T(test_longest_token_there_can_be_is_read),
        T(test_player_who_answers_no_ping_is_gone),
        T(test_any_frame_of_a_player_is_a_sign_of_life),
        T(test_player_is_not_gone_when_we_were_stopped),
        T(test_player_is_not_gone_while_he_is_not_read),
        T(test_servers_are_judged_by_their_heartbeats_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Streams on a real loop, with plain sockets as their peers. The loop runs until what a test waits
 * for has happened; its tick bounds each step, a deadline the whole. */
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "lib/loop.h"
#include "net/listener.h"
#include "net/listening.h"
#include "net/loop.h"
#include "net/stream.h"

#include <fcntl.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RECORD = 4, PEERS_MAX = 64 };

/* The server's side of one connection: takes records of four bytes, as a door takes frames. */
struct peer {
    struct world *world;
    struct stream *stream;
    size_t records;
    size_t inputs;
    int closed;
    const char *why;
    bool pause_after_record;
    bool resume_in_turn;
    bool takes_nothing;
    char first[RECORD + 1];
};

struct world {
    struct loop loop;
    struct listener *listener;
    struct peer peers[PEERS_MAX];
    size_t n_peers;
    struct stream_limits limits;
    size_t turns;
    bool mute;
};

static size_t on_input(void *user, const uint8_t *data, size_t len)
{
    struct peer *p = user;
    size_t used = 0;
    p->inputs++;
    while (!p->takes_nothing && len - used >= RECORD) {
        if (p->records++ == 0)
            memcpy(p->first, data, RECORD);
        used += RECORD;
        if (p->pause_after_record) {
            stream_pause(p->stream);
            break;
        }
    }
    return used;
}

static void on_closed(void *user, const char *why)
{
    struct peer *p = user;
    p->closed++;
    p->why = why;
    p->stream = NULL;
}

static void on_accepted(void *user, struct stream *stream)
{
    static const struct stream_ops ops = {.input = on_input, .closed = on_closed};
    struct world *w = user;
    assert_true(w->n_peers < PEERS_MAX);
    struct peer *p = &w->peers[w->n_peers++];
    *p = (struct peer){.world = w, .stream = stream};
    stream_start(stream, &ops, p, &w->limits);
}

static void on_turn(void *user)
{
    struct world *w = user;
    w->turns++;
    for (size_t i = 0; i < w->n_peers; i++) {
        if (w->peers[i].resume_in_turn && w->peers[i].stream)
            stream_resume(w->peers[i].stream);
    }
}

static void on_tick(void *user)
{
    (void)user;
}

static bool may_write(void *user)
{
    return !((struct world *)user)->mute;
}

static int setup_with(void **state, size_t streams, size_t per_address)
{
    struct world *w = calloc(1, sizeof(*w));
    struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = w, .may_write = may_write};
    struct loop_limits limits = {.streams = streams, .streams_per_address = per_address};
    const char *why = NULL;
    w->limits.input_max = LOOP_READ_SIZE;
    w->limits.output_cap = 64 * 1024;
    log_set_level(LOG_ERROR);
    loop_init(&w->loop, &hooks, &limits);
    assert_int_equal(listener_start(&w->loop, &(struct listener_place){.ip = "127.0.0.1"},
                                    on_accepted, w, &w->listener, &why),
                     0);
    *state = w;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, 1000, 1000);
}

static int setup_two_streams(void **state)
{
    return setup_with(state, 2, 1000);
}

static int setup_two_per_address(void **state)
{
    return setup_with(state, 1000, 2);
}

static int teardown(void **state)
{
    struct world *w = *state;
    listener_stop(w->listener);
    for (size_t i = 0; i < w->n_peers; i++) {
        if (w->peers[i].stream)
            stream_close(w->peers[i].stream, "test over");
    }
    loop_done(&w->loop);
    for (size_t i = 0; i < w->n_peers; i++)
        assert_int_equal(w->peers[i].closed, 1);
    free(w);
    return 0;
}

/* A connected pair: the socket, and the stream on the other side. */
static struct peer *meet(struct world *w, int *ret_fd)
{
    size_t before = w->n_peers;
    *ret_fd = listener_dial(w->listener);
    RUN_UNTIL(w, w->n_peers > before);
    return &w->peers[before];
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* What has arrived on the socket; -1 at its end. Never waits. */
static ssize_t hear(int fd, void *dst, size_t cap)
{
    ssize_t n = recv(fd, dst, cap, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN ? 0 : -2;
    return n == 0 ? -1 : n;
}

static void test_port_zero_picks_one(void **state)
{
    struct world *w = *state;
    char text[ADDRESS_MAX];
    assert_int_equal(strncmp(listener_address(w->listener, text), "127.0.0.1:", 10), 0);
    assert_true(listener_port(w->listener) > 0);
}

/* Also what was said before it was so. */
static void test_a_mute_loop_says_nothing(void **state)
{
    struct world *w = *state;
    int fd = -1;
    char heard[16];
    struct peer *p = meet(w, &fd);
    stream_send(p->stream, "abcd", 4);
    w->mute = true;
    say(fd, "wxyz");
    RUN_UNTIL(w, p->records == 1);
    size_t turns = w->turns;
    RUN_UNTIL(w, w->turns > turns + 2);
    assert_int_equal(hear(fd, heard, sizeof(heard)), 0);
    stream_close(p->stream, "mute");
    RUN_UNTIL(w, hear(fd, heard, sizeof(heard)) < 0);
    close(fd);
}

static void test_address_in_use_is_said(void **state)
{
    struct world *w = *state;
    struct listener *second = NULL;
    const char *why = NULL;
    int err = listener_start(
        &w->loop, &(struct listener_place){.ip = "127.0.0.1", .port = listener_port(w->listener)},
        on_accepted, w, &second, &why);
    assert_int_equal(err, ERR_IO);
    assert_null(second);
    assert_string_equal(why, "address already in use");
}

static void test_a_name_is_no_address(void **state)
{
    struct world *w = *state;
    struct listener *second = NULL;
    const char *why = NULL;
    assert_int_equal(listener_start(&w->loop, &(struct listener_place){.ip = "localhost"},
                                    on_accepted, w, &second, &why),
                     ERR_IO);
    assert_string_equal(why, "not an IP address");
}

static void test_listens_on_ipv6(void **state)
{
    struct world *w = *state;
    struct listener *second = NULL;
    const char *why = NULL;
    char text[ADDRESS_MAX];
    if (listener_start(&w->loop, &(struct listener_place){.ip = "::1"}, on_accepted, w, &second,
                       &why) != 0)
        skip(); /* a machine without IPv6 */
    assert_int_equal(strncmp(listener_address(second, text), "[::1]:", 6), 0);
    listener_stop(second);
}

static uint16_t port_of(int fd)
{
    union address bound;
    listening_address(fd, &bound);
    return ntohs(bound.v4.sin_port);
}

/* A node goes from standing by to leading: whoever comes in between waits, on the same port. */
static void test_who_comes_while_nobody_serves_a_held_socket_waits(void **state)
{
    struct world *w = *state;
    const char *why = NULL;
    struct listener *first = NULL;
    struct listener *second = NULL;
    struct listener_place place = {.ip = "127.0.0.1",
                                   .held_fd = listening_open("127.0.0.1", 0, &why)};
    assert_true(place.held_fd > 0);
    assert_int_equal(listener_start(&w->loop, &place, on_accepted, w, &first, &why), 0);
    assert_int_equal(listener_port(first), port_of(place.held_fd));
    int before = listener_dial(first);
    RUN_UNTIL(w, w->n_peers == 1);
    listener_stop(first);
    uv_run(&w->loop.uv, UV_RUN_NOWAIT);

    union address to;
    assert_true(address_parse("127.0.0.1", port_of(place.held_fd), &to));
    int between = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(between, &to.any, sizeof(to.v4)), 0);
    assert_int_equal(listener_start(&w->loop, &place, on_accepted, w, &second, &why), 0);
    RUN_UNTIL(w, w->n_peers == 2);
    assert_int_equal(listener_port(second), port_of(place.held_fd));
    listener_stop(second);
    close(between);
    close(before);
    close(place.held_fd);
    RUN_UNTIL(w, w->peers[0].closed && w->peers[1].closed);
}

static void test_a_held_socket_that_is_none_is_told(void **state)
{
    struct world *w = *state;
    struct listener *l = NULL;
    const char *why = NULL;
    struct listener_place place = {.ip = "127.0.0.1", .held_fd = 1 << 20};
    assert_int_equal(listener_start(&w->loop, &place, on_accepted, w, &l, &why), ERR_IO);
    assert_string_equal(why, "bad file descriptor");
}

static void check_options(uv_handle_t *handle, void *user)
{
    static const struct {
        int level, name, value;
    } wanted[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30}, {IPPROTO_TCP, TCP_KEEPINTVL, 10},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 31000},
    };
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);
    uv_os_fd_t fd;
    if (handle->type != UV_TCP || uv_fileno(handle, &fd) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0)
        return;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        int value = 0;
        socklen_t len = sizeof(value);
        assert_int_equal(getsockopt(fd, wanted[i].level, wanted[i].name, &value, &len), 0);
        assert_int_equal(value, wanted[i].value);
    }
    ++*(int *)user;
}

static void test_accepted_sockets_find_dead_peers(void **state)
{
    struct world *w = *state;
    int fd;
    meet(w, &fd);
    int checked = 0;
    uv_walk(&w->loop.uv, check_options, &checked);
    assert_int_equal(checked, 1);
    close(fd);
}

static void test_bytes_one_by_one(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    const char *text = "abcdefghijkl";
    for (size_t i = 0; text[i]; i++) {
        size_t inputs = p->inputs;
        assert_int_equal(send(fd, text + i, 1, 0), 1);
        RUN_UNTIL(w, p->inputs > inputs);
    }
    assert_int_equal(p->records, 3);
    assert_string_equal(p->first, "abcd");
    close(fd);
}

static void test_many_records_in_one_read(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    char text[50 * RECORD + 1];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    say(fd, text);
    RUN_UNTIL(w, p->records == 50);
    assert_int_equal(p->inputs, 1);
    close(fd);
}

/* tcpi_data_segs_in of the kernel's struct tcp_info; glibc's ends before it. */
static uint32_t data_segments_in(int fd)
{
    uint32_t info[64] = {0};
    socklen_t len = sizeof(info);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len), 0);
    assert_true(len >= 156);
    return info[152 / sizeof(uint32_t)];
}

static void test_a_turns_output_is_one_write(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    for (int i = 0; i < 50; i++)
        stream_send(p->stream, "0123456789", 10);
    char text[1000];
    ssize_t got = 0;
    RUN_UNTIL(w, (got += hear(fd, text + got, sizeof(text) - (size_t)got)) >= 500);
    assert_int_equal(got, 500);
    assert_int_equal(data_segments_in(fd), 1);
    close(fd);
}

/* It stays when the rest is written, and goes in front of what is sent next. */
static void test_what_can_wait_goes_along(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    stream_send_along(p->stream, "abc", 3);
    stream_send_along(p->stream, "def", 3);
    loop_write(&w->loop);
    assert_int_equal(stream_unsent(p->stream), 6);
    stream_send(p->stream, "ghi", 3);
    stream_send_along(p->stream, "jkl", 3);
    loop_write(&w->loop);
    assert_int_equal(stream_unsent(p->stream), 0);
    char text[100];
    ssize_t got = 0;
    RUN_UNTIL(w, (got += hear(fd, text + got, sizeof(text) - (size_t)got)) >= 12);
    assert_memory_equal(text, "abcdefghijkl", 12);
    assert_int_equal(data_segments_in(fd), 1);
    close(fd);
}

static void test_what_waits_leaves_with_the_tick(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    char text[100];
    ssize_t got = 0;
    stream_send_along(p->stream, "abc", 3);
    RUN_UNTIL(w, (got += hear(fd, text + got, sizeof(text) - (size_t)got)) >= 3);
    stream_send_along(p->stream, "more", 4);
    stream_close(p->stream, "done"); /* whoever waits may go */
    RUN_UNTIL(w, p->closed);
    close(fd);
}

static void test_more_than_the_kernel_takes_arrives_in_order(void **state)
{
    struct world *w = *state;
    w->limits.output_cap = 64 * 1024 * 1024;
    int fd;
    struct peer *p = meet(w, &fd);
    enum { NUMBERS = 4 * 1024 * 1024 };
    uint32_t *sent = malloc(NUMBERS * sizeof(*sent)), *got = malloc(NUMBERS * sizeof(*got));
    for (uint32_t i = 0; i < NUMBERS; i++)
        sent[i] = i;
    stream_send(p->stream, sent, NUMBERS * sizeof(*sent));
    uv_run(&w->loop.uv, UV_RUN_ONCE);
    assert_true(stream_unsent(p->stream) > 0); /* else this tests nothing */
    stream_send(p->stream, "end", 3);

    size_t len = 0;
    char end[4] = "";
    while (len < NUMBERS * sizeof(*got)) {
        ssize_t n = hear(fd, (char *)got + len, NUMBERS * sizeof(*got) - len);
        assert_true(n >= 0);
        len += (size_t)n;
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(w, hear(fd, end, 3) == 3);
    assert_memory_equal(sent, got, NUMBERS * sizeof(*got));
    assert_string_equal(end, "end");
    assert_int_equal(stream_unsent(p->stream), 0);
    free(sent);
    free(got);
    close(fd);
}

static void test_peer_that_does_not_read_is_cut_off(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    char block[16 * 1024] = {0};
    size_t blocks = 0;
    while (!p->closed) {
        if (p->stream)
            stream_send(p->stream, block, sizeof(block));
        assert_true(++blocks < 10000);
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
        assert_true(p->closed || stream_unsent(p->stream) <= w->limits.output_cap);
    }
    assert_ptr_equal(p->why, stream_not_reading);
    close(fd);
}

static void test_a_burst_over_the_cap_is_fine_when_the_kernel_takes_it(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    char block[1024] = {0}, sink[4096];
    for (int i = 0; i < 100; i++)
        stream_send(p->stream, block, sizeof(block));
    size_t got = 0;
    while (got < 100 * sizeof(block)) {
        ssize_t n = hear(fd, sink, sizeof(sink));
        assert_true(n >= 0);
        got += (size_t)n;
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    }
    assert_int_equal(p->closed, 0);
    close(fd);
}

static void test_paused_input_is_held_and_handed_on(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    p->pause_after_record = true;
    say(fd, "aaaabbbbccccd");
    RUN_UNTIL(w, p->records == 1);

    say(fd, "ddd"); /* must stay in the kernel */
    size_t turns = w->turns;
    RUN_UNTIL(w, w->turns > turns + 4);
    assert_int_equal(p->inputs, 1);

    stream_resume(p->stream);
    uv_run(&w->loop.uv, UV_RUN_ONCE);
    assert_int_equal(p->records, 2); /* it paused again */
    p->pause_after_record = false;
    stream_resume(p->stream);
    RUN_UNTIL(w, p->records == 4);
    close(fd);
}

static void test_resumed_in_the_turn_hook(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    p->pause_after_record = p->resume_in_turn = true;
    say(fd, "aaaabbbbccccdddd");
    RUN_UNTIL(w, p->records == 4);
    assert_int_equal(p->inputs, 4);
    close(fd);
}

static void test_input_max_bounds_what_a_pause_keeps(void **state)
{
    struct world *w = *state;
    w->limits.input_max = 2 * RECORD;
    int fd;
    struct peer *p = meet(w, &fd);
    say(fd, "aaaabbbbccccdddd");
    RUN_UNTIL(w, p->records == 4);
    assert_int_equal(p->inputs, 2);
    close(fd);
}

static void test_who_leaves_more_than_a_frame_is_closed(void **state)
{
    static const char block[4096] = "abcd";
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    p->takes_nothing = true;
    RUN_UNTIL(w, send(fd, block, sizeof(block), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && p->closed == 1);
    assert_string_equal(p->why, uv_strerror(UV_ENOBUFS));
    close(fd);
}

static void test_last_words_arrive_though_input_was_unread(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    char junk[60000];
    memset(junk, 'j', sizeof(junk));
    p->pause_after_record = true;
    assert_int_equal(send(fd, junk, sizeof(junk), 0), (ssize_t)sizeof(junk));
    RUN_UNTIL(w, p->records == 1);
    stream_send(p->stream, "last words", 10);
    stream_finish(p->stream);
    stream_send(p->stream, "more", 4); /* too late */
    assert_int_equal(send(fd, junk, sizeof(junk), 0), (ssize_t)sizeof(junk));

    char text[32] = "";
    RUN_UNTIL(w, hear(fd, text, sizeof(text)) != 0);
    assert_string_equal(text, "last words");
    RUN_UNTIL(w, hear(fd, text, sizeof(text)) == -1);
    assert_int_equal(p->records, 1);
    close(fd);
    RUN_UNTIL(w, p->closed);
}

static void test_finish_is_cut_when_the_peer_lingers(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    int64_t began_ms = clock_monotonic_ms();
    stream_finish(p->stream);
    RUN_UNTIL(w, p->closed);
    assert_true(clock_monotonic_ms() - began_ms >= STREAM_FINISH_MS - LOOP_TICK_MS);
    assert_string_equal(p->why, "finished");
    close(fd);
}

static void test_peer_that_hangs_up(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    say(fd, "aaaabb"); /* the last record is cut short */
    close(fd);
    RUN_UNTIL(w, p->closed);
    assert_int_equal(p->records, 1);
    assert_string_equal(p->why, "peer closed");
}

static void test_peer_that_resets(void **state)
{
    struct world *w = *state;
    int fd;
    struct peer *p = meet(w, &fd);
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
    RUN_UNTIL(w, p->closed);
    assert_string_equal(p->why, "connection reset by peer");
}

/* Dials three; two may stay, the third is closed, and one that leaves makes room. */
static void check_two_fit(struct world *w)
{
    int first, second;
    struct peer *p = meet(w, &first);
    meet(w, &second);
    int third = listener_dial(w->listener);
    char byte;
    RUN_UNTIL(w, hear(third, &byte, 1) < 0);
    assert_int_equal(w->n_peers, 2);
    assert_int_equal(w->loop.streams, 2);
    assert_int_equal(listener_refused(w->listener), 1);
    close(third);

    close(first);
    RUN_UNTIL(w, p->closed);
    meet(w, &third);
    assert_int_equal(w->n_peers, 3);
    close(second);
    close(third);
}

static void test_total_cap(void **state)
{
    check_two_fit(*state);
}

static void test_cap_per_address(void **state)
{
    check_two_fit(*state);
}

/* A second listener, whose streams are a crowd of their own. */
struct outside {
    struct loop_crowd crowd;
    struct listener *listener;
};

static void open_outside(struct world *w, struct outside *o, size_t most, size_t together)
{
    const char *why = NULL;
    loop_share(&w->loop, &o->crowd, &(struct loop_limits){most, 1000}, together);
    struct listener_place place = {.ip = "127.0.0.1", .crowd = &o->crowd};
    assert_int_equal(listener_start(&w->loop, &place, on_accepted, w, &o->listener, &why), 0);
}

static void expect_refused(struct world *w, struct listener *listener)
{
    int64_t before = listener_refused(listener);
    int fd = listener_dial(listener);
    char byte;
    RUN_UNTIL(w, hear(fd, &byte, 1) < 0);
    assert_int_equal(listener_refused(listener), before + 1);
    close(fd);
}

static void close_outside(struct world *w, struct outside *o)
{
    listener_stop(o->listener);
    RUN_UNTIL(w, o->crowd.streams == 0);
    loop_crowd_done(&o->crowd);
}

static void test_a_crowd_cannot_take_the_places_of_another(void **state)
{
    struct world *w = *state;
    struct outside o;
    int outsider, inside;
    size_t before = w->n_peers;
    open_outside(w, &o, 1, 3);
    outsider = listener_dial(o.listener);
    RUN_UNTIL(w, w->n_peers > before);
    expect_refused(w, o.listener);
    meet(w, &inside);
    close(inside);
    close(outsider);
    close_outside(w, &o);
}

static void test_crowds_share_what_there_is(void **state)
{
    struct world *w = *state;
    struct outside o;
    int first, second;
    open_outside(w, &o, 2, 2);
    meet(w, &first);
    meet(w, &second);
    expect_refused(w, o.listener);
    close(first);
    close(second);
    close_outside(w, &o);
}

/* Forbids every descriptor above the ones that are open; returns what to restore. */
static struct rlimit no_more_descriptors(void)
{
    struct rlimit before, tight;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    close(next);
    tight = before;
    tight.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    return before;
}

static void test_calm_without_descriptors(void **state)
{
    struct world *w = *state;
    int kept, waiting[20];
    char byte;
    struct peer *p = meet(w, &kept);
    for (int i = 0; i < 20; i++)
        waiting[i] = listener_dial(w->listener); /* the kernel has accepted them, we have not */
    struct rlimit before = no_more_descriptors();
    for (int i = 0; i < 20; i++)
        RUN_UNTIL(w, hear(waiting[i], &byte, 1) < 0); /* turned away, not left waiting */
    size_t turns = w->turns;
    for (int64_t until_ms = clock_monotonic_ms() + 300; clock_monotonic_ms() < until_ms;)
        uv_run(&w->loop.uv, UV_RUN_ONCE);
    assert_in_range(w->turns - turns, 0, 50); /* it sleeps between ticks instead of spinning */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

    assert_int_equal(w->n_peers, 1);
    say(kept, "aaaa");
    RUN_UNTIL(w, p->records == 1);
    int fresh;
    meet(w, &fresh);
    for (int i = 0; i < 20; i++)
        close(waiting[i]);
    close(kept);
    close(fresh);
}

static void test_an_idle_stream_is_small(void **state)
{
    struct world *w = *state;
    int fds[50];
    char byte;
    meet(w, &fds[0]);
    size_t before = mallinfo2().uordblks;
    for (int i = 1; i < 50; i++) {
        struct peer *p = meet(w, &fds[i]);
        stream_send(p->stream, "x", 1);
        loop_write(&w->loop);
        RUN_UNTIL(w, hear(fds[i], &byte, 1) == 1);
    }
    size_t each = (mallinfo2().uordblks - before) / 49;
    assert_in_range(each, 0, 1024);
    for (int i = 0; i < 50; i++)
        close(fds[i]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_who_leaves_more_than_a_frame_is_closed),
        T(test_port_zero_picks_one),
        T(test_a_mute_loop_says_nothing),
        T(test_address_in_use_is_said),
        T(test_a_name_is_no_address),
        T(test_listens_on_ipv6),
        T(test_who_comes_while_nobody_serves_a_held_socket_waits),
        T(test_a_held_socket_that_is_none_is_told),
        T(test_accepted_sockets_find_dead_peers),
        T(test_bytes_one_by_one),
        T(test_many_records_in_one_read),
        T(test_a_turns_output_is_one_write),
        T(test_what_can_wait_goes_along),
        T(test_what_waits_leaves_with_the_tick),
        T(test_more_than_the_kernel_takes_arrives_in_order),
        T(test_peer_that_does_not_read_is_cut_off),
        T(test_a_burst_over_the_cap_is_fine_when_the_kernel_takes_it),
        T(test_paused_input_is_held_and_handed_on),
        T(test_resumed_in_the_turn_hook),
        T(test_input_max_bounds_what_a_pause_keeps),
        T(test_last_words_arrive_though_input_was_unread),
        T(test_finish_is_cut_when_the_peer_lingers),
        T(test_peer_that_hangs_up),
        T(test_peer_that_resets),
        T(test_calm_without_descriptors),
        T(test_an_idle_stream_is_small),
        cmocka_unit_test_setup_teardown(test_total_cap, setup_two_streams, teardown),
        cmocka_unit_test_setup_teardown(test_cap_per_address, setup_two_per_address, teardown),
        cmocka_unit_test_setup_teardown(test_a_crowd_cannot_take_the_places_of_another,
                                        setup_two_streams, teardown),
        cmocka_unit_test_setup_teardown(test_crowds_share_what_there_is, setup_two_streams,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

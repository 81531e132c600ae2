/* A Muster made of a listener, a clock that stands still and bytes written by hand. A FAKE_TEST is
 * given one that its game server is registered with; a test of how that comes about owns one on its
 * stack, between fake_listen and fake_stop. Nothing here sleeps: waiting is poll(2) on the socket
 * the awaited bytes come through. */
#pragma once

#include "muster.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fake {
    int listener;
    int peer; /* Muster's end of the connection */
    char address[32];
    int64_t now;
    struct muster_server *m;
    enum muster_answer answer; /* what the game says to an allocation */
    int64_t retry_ms;          /* of the last disconnect */
    char log[4096];            /* what the game was told, one line each */
};

static inline void note(struct fake *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline void note(struct fake *f, const char *format, ...)
{
    size_t at = strlen(f->log);
    va_list args;
    va_start(args, format);
    vsnprintf(f->log + at, sizeof(f->log) - at, format, args);
    va_end(args);
    strncat(f->log, "\n", sizeof(f->log) - strlen(f->log) - 1);
}

/* Compares what the game was told since the last look. */
#define told(f, text)                                                                              \
    do {                                                                                           \
        assert_string_equal((f)->log, text);                                                       \
        (f)->log[0] = '\0';                                                                        \
    } while (0)

static inline void on_registered(void *user, int32_t id)
{
    note(user, "registered %d", id);
}

static inline void on_disconnected(void *user, enum muster_error why, const char *text,
                                   int64_t retry_ms)
{
    ((struct fake *)user)->retry_ms = retry_ms;
    note(user, "disconnected %d %s", why, text);
}

static inline enum muster_answer on_allocate(void *user, const struct muster_match *match)
{
    note(user, "allocate %d %d %d %s", match->lobby, match->game_type, match->game_mode,
         match->token);
    return ((struct fake *)user)->answer;
}

static inline void on_cancelled(void *user, int32_t lobby, enum muster_cancel why)
{
    note(user, "cancelled %d %d", lobby, why);
}

static inline void on_ready(void *user, int32_t lobby, bool yes, const char *error)
{
    note(user, "ready %d %d %s", lobby, yes, error);
}

static inline void on_validated(void *user, int32_t lobby, int32_t account, uint64_t player,
                                bool yes, const char *error)
{
    note(user, "validated %d %d %d %d %s", lobby, account, (int)player, yes, error);
}

static inline void on_end(void *user, int32_t lobby, bool yes, const char *error)
{
    note(user, "ended %d %d %s", lobby, yes, error);
}

static inline void on_kick(void *user, int32_t lobby, int32_t account, const char *reason)
{
    note(user, "kick %d %d %s", lobby, account, reason);
}

static inline void on_drain(void *user, bool on)
{
    note(user, "drain %d", on);
}

static const struct muster_callbacks fake_callbacks = {
    .registered = on_registered,
    .disconnected = on_disconnected,
    .allocate = on_allocate,
    .cancelled = on_cancelled,
    .ready_answered = on_ready,
    .validated = on_validated,
    .end_answered = on_end,
    .kick = on_kick,
    .drain = on_drain,
};

static inline int64_t fake_clock(void *user)
{
    return ((struct fake *)user)->now;
}

/* The options every test starts from; a test changes what it is about. */
static inline struct muster_options fake_options(struct fake *f)
{
    return (struct muster_options){
        .server = f->address,
        .token = "T",
        .ip = "10.0.0.1",
        .port = 4660,
        .region = 2,
        .max_matches = 4,
        .jitter_seed = 1,
        .clock_ms = fake_clock,
        .clock_user = f,
    };
}

/* Its port can be taken over from a listener of ours that has connections. */
static inline int fake_socket(void)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    return fd;
}

static inline void fake_listen(struct fake *f)
{
    *f = (struct fake){.peer = -1, .now = 1000, .answer = MUSTER_ACCEPT};
    f->listener = fake_socket();
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(f->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(f->listener, 8), 0);
    socklen_t len = sizeof(a);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&a, &len), 0);
    snprintf(f->address, sizeof(f->address), "127.0.0.1:%d", ntohs(a.sin_port));
}

/* Whoever comes to this listener is refused by the kernel from now on. The port stays taken: left
 * free, one try in some ten thousand is given that very port to come from, and is connected with
 * itself. Closes the listener; returns what is to be closed in its place. */
static inline int fake_refuse(int listener)
{
    struct sockaddr_in a;
    socklen_t len = sizeof(a);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    close(listener);
    int taken = fake_socket();
    assert_int_equal(bind(taken, (struct sockaddr *)&a, sizeof(a)), 0);
    return taken;
}

static inline void fake_new(struct fake *f, const struct muster_options *o)
{
    assert_int_equal(muster_server_new(o, &fake_callbacks, f, &f->m), MUSTER_OK);
}

static inline void fake_stop(struct fake *f)
{
    muster_server_free(f->m);
    if (f->peer >= 0)
        close(f->peer);
    close(f->listener);
}

/* Bytes from "02 00 00 2A 'text'": hex pairs and quoted characters. Returns how many. */
static inline size_t bytes_of(const char *text, uint8_t *ret, size_t size)
{
    size_t n = 0;
    for (const char *at = text; *at;) {
        assert(n < size);
        if (*at == ' ') {
            at++;
        } else if (*at == '\'') {
            for (at++; *at != '\''; at++)
                ret[n++] = (uint8_t)*at;
            at++;
        } else {
            unsigned v;
            assert(sscanf(at, "%2x", &v) == 1);
            ret[n++] = (uint8_t)v;
            at += 2;
        }
    }
    return n;
}

static inline void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    assert_int_equal(poll(&p, 1, 5000), 1);
}

/* Reads exactly these bytes from the SDK. */
static inline void expect(struct fake *f, const char *text)
{
    uint8_t wanted[4096];
    uint8_t got[4096];
    size_t n = bytes_of(text, wanted, sizeof(wanted));
    for (size_t at = 0; at < n;) {
        wait_for(f->peer, POLLIN);
        ssize_t r = recv(f->peer, got + at, n - at, 0);
        assert_true(r > 0);
        at += (size_t)r;
    }
    assert_memory_equal(got, wanted, n);
}

/* What the SDK wrote is here as soon as it wrote it: both ends are in this process. */
static inline void expect_nothing(struct fake *f)
{
    uint8_t got;
    assert_int_equal(recv(f->peer, &got, 1, MSG_DONTWAIT), -1);
}

static inline void expect_closed(struct fake *f)
{
    uint8_t got;
    wait_for(f->peer, POLLIN);
    assert_true(recv(f->peer, &got, 1, 0) <= 0);
}

/* Sends these bytes and lets the SDK see them. */
static inline void say(struct fake *f, const char *text)
{
    uint8_t b[4096];
    size_t n = bytes_of(text, b, sizeof(b));
    assert_int_equal(send(f->peer, b, n, MSG_NOSIGNAL), n);
    wait_for(muster_server_fd(f->m), POLLIN);
    muster_server_poll(f->m);
}

static inline void later(struct fake *f, int64_t ms)
{
    f->now += ms;
    muster_server_poll(f->m);
}

/* Takes the connection the SDK makes now. */
static inline void accept_peer(struct fake *f)
{
    muster_server_poll(f->m);
    if (f->peer >= 0)
        close(f->peer);
    wait_for(f->listener, POLLIN);
    f->peer = accept(f->listener, NULL, NULL);
    assert_true(f->peer >= 0);
    int on = 1; /* what is said arrives, however little it is */
    setsockopt(f->peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    wait_for(muster_server_fd(f->m), POLLOUT);
    muster_server_poll(f->m);
}

#define HELLO "16 00 00 10 'T' 00 '10.0.0.1' 00 34 12 00 00 02 04 00 00 00"
#define HELLO_YES_3 "0F 00 01 10 01 03 00 00 00 88 13 00 00 00 00 00 00" /* time 5000 */
#define NO_MATCHES "07 00 11 10 03 00 00 00 00"
#define IDLE_HEARTBEAT "12 00 02 10 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"

/* From nothing to registered as server 3, with the greeting's frames read away. */
static inline void fake_register(struct fake *f)
{
    accept_peer(f);
    expect(f, HELLO);
    say(f, HELLO_YES_3);
    expect(f, NO_MATCHES IDLE_HEARTBEAT);
    told(f, "registered 3\n");
}

/* Muster goes away; the SDK notices and waits out its back-off. What Muster had not read is read
 * away first, because closing over it would be a reset and not a goodbye. */
static inline void fake_cut(struct fake *f)
{
    uint8_t unread[4096];
    while (recv(f->peer, unread, sizeof(unread), MSG_DONTWAIT) > 0)
        continue;
    close(f->peer);
    f->peer = -1;
    wait_for(muster_server_fd(f->m), POLLIN);
    muster_server_poll(f->m);
    assert_int_equal(muster_server_fd(f->m), -1);
    f->now += f->retry_ms;
}

#define ALLOCATE_7_A "0A 00 04 10 07 00 00 00 06 01 'A' 00"
#define ALLOCATE_7_B "0A 00 04 10 07 00 00 00 06 01 'B' 00"
#define ALLOCATED_7 "07 00 05 10 01 07 00 00 00"
#define REFUSED_7 "07 00 05 10 00 07 00 00 00"

/* Registered and holding lobby 7 with token A. */
static inline void fake_hold_7(struct fake *f)
{
    say(f, ALLOCATE_7_A);
    expect(f, ALLOCATED_7);
    told(f, "allocate 7 6 1 A\n");
}

static inline void fake_start(struct fake *f)
{
    fake_listen(f);
    struct muster_options o = fake_options(f);
    fake_new(f, &o);
    fake_register(f);
}

static inline int fake_setup(void **state)
{
    struct fake *f = malloc(sizeof(*f));
    assert_non_null(f);
    fake_start(f);
    *state = f;
    return 0;
}

static inline int fake_setup_holding_7(void **state)
{
    fake_setup(state);
    fake_hold_7(*state);
    return 0;
}

static inline int fake_teardown(void **state)
{
    fake_stop(*state);
    free(*state);
    return 0;
}

/* Begins registered as server 3; and, for the second, holding lobby 7. */
#define FAKE_TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
#define HOLDING_TEST(name)                                                                         \
    cmocka_unit_test_setup_teardown(name, fake_setup_holding_7, fake_teardown)

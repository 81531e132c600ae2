/* An agent made of a bound PAIR socket and messages written by hand, and a room that talks to it.
 * A ROOM_TEST is given both. Nothing here sleeps: waiting is on the sockets the awaited
 * message comes through. */
#pragma once

#include "muster_room.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

struct fake {
    char folder[32];
    char path[64];
    char endpoint[80];
    void *context;
    void *socket; /* the agent's end */
    struct muster_room *room;
    char heard[MUSTER_ROOM_MAX_MESSAGE + 1]; /* the last message of the room */
    char log[8192];                          /* what the game was told, one line each */
};

static inline int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

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

static inline void on_reply(void *user, const struct muster_room_answer *a)
{
    if (a->code)
        note(user, "no %d %s", a->code, a->text);
    else if (*a->access_token)
        note(user, "player %s %s [%s] %s", a->account, a->access_token, a->scopes, a->info);
    else
        note(user, "yes");
}

static inline void on_kick(void *user, const char *key, const char *reason)
{
    note(user, "kick %s (%s)", key, reason);
}

/* The agent starts, or starts again: binds the path. */
static inline void fake_bind(struct fake *f)
{
    f->socket = zmq_socket(f->context, ZMQ_PAIR);
    int no = 0;
    zmq_setsockopt(f->socket, ZMQ_LINGER, &no, sizeof(no));
    while (zmq_bind(f->socket, f->endpoint) != 0) /* the socket before it is still being closed */
        assert_int_equal(errno, EADDRINUSE);
}

static inline void fake_agent(struct fake *f)
{
    *f = (struct fake){.folder = "/tmp/muster-room-XXXXXX"};
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/agent", f->folder);
    snprintf(f->endpoint, sizeof(f->endpoint), "ipc://%s", f->path);
    f->context = zmq_ctx_new();
    fake_bind(f);
}

static inline void fake_room(struct fake *f, int repeat_ms)
{
    char *argv[] = {"game", f->path, "4000,4001", NULL};
    const struct muster_room_options options = {.repeat_ms = repeat_ms};
    const struct muster_room_callbacks callbacks = {.kick = on_kick};
    assert_int_equal(muster_room_new(3, argv, &options, &callbacks, f, &f->room), 0);
}

static inline void fake_stop(struct fake *f)
{
    muster_room_free(f->room);
    if (f->socket)
        zmq_close(f->socket);
    zmq_ctx_term(f->context);
    unlink(f->path);
    rmdir(f->folder);
}

/* Runs the room, woken by its descriptor alone, until the agent has received a message. */
static inline const char *hear(struct fake *f)
{
    int64_t until_ms = clock_ms() + PATIENCE_MS;
    for (;;) {
        int n = zmq_recv(f->socket, f->heard, sizeof(f->heard) - 1, ZMQ_DONTWAIT);
        if (n >= 0) {
            f->heard[n] = '\0';
            return f->heard;
        }
        zmq_pollitem_t items[] = {{.socket = f->socket, .events = ZMQ_POLLIN},
                                  {.fd = muster_room_fd(f->room), .events = ZMQ_POLLIN}};
        int64_t left_ms = until_ms - clock_ms();
        assert_true(left_ms > 0 && zmq_poll(items, 2, left_ms) > 0);
        if (items[1].revents)
            muster_room_poll(f->room, 0);
    }
}

#define hears(f, text) assert_string_equal(hear(f), text)

static inline void say_bytes(struct fake *f, const void *bytes, size_t n)
{
    assert_int_equal(zmq_send(f->socket, bytes, n, 0), n);
}

/* The agent says something; the room has taken it when this returns. */
static inline void say(struct fake *f, const char *text)
{
    say_bytes(f, text, strlen(text));
    muster_room_poll(f->room, PATIENCE_MS);
}

static inline int setup(void **state)
{
    struct fake *f = malloc(sizeof(*f));
    fake_agent(f);
    fake_room(f, 0);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    fake_stop(*state);
    free(*state);
    return 0;
}

#define ROOM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

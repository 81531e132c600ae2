#include "agent/link.h"

#include "agent/endpoint.h"
#include "agent/zeromq.h"
#include "base/buf.h"
#include "lib/loop.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { GOT_MAX = 4096 };

/* A link on a loop, and game servers on the other side of it: blocking sockets of another context,
 * as another process would have them. */
struct world {
    struct loop loop;
    struct links *links;
    struct game_link *link;
    char folder[32];
    char path[64];
    void *context;
    struct buf got; /* "message|" each */
    int n_got;
    bool closes; /* at the next message */
};

static void on_turn(void *user)
{
    struct world *w = user;
    if (w->links)
        links_turn(w->links);
}

static void on_tick(void *user)
{
    (void)user;
}

static void on_message(void *user, struct str bytes)
{
    struct world *w = user;
    w->n_got++;
    buf_append(&w->got, bytes.at, bytes.len);
    buf_append(&w->got, "|", 1);
    if (w->closes) {
        game_link_close(w->link);
        w->link = NULL;
    }
}

static void bind_link(struct world *w)
{
    char why[LINK_WHY_MAX] = "";
    w->link = links_bind(w->links, w->path, -1, 12, on_message, w, why);
    assert_string_equal(why, "");
    assert_non_null(w->link);
}

static int world_new(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    const struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = w};
    const struct loop_limits limits = {.streams = 10, .streams_per_address = 10};
    char why[LINK_WHY_MAX];
    loop_init(&w->loop, &hooks, &limits);
    w->links = links_open(&w->loop, why);
    assert_non_null(w->links);
    snprintf(w->folder, sizeof(w->folder), "/tmp/muster-link-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->path, sizeof(w->path), "%s/s", w->folder);
    w->context = zeromq.ctx_new();
    bind_link(w);
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    game_link_close(w->link);
    links_close(w->links);
    w->links = NULL;
    zeromq.ctx_term(w->context);
    loop_done(&w->loop);
    unlink(w->path);
    rmdir(w->folder);
    buf_done(&w->got);
    free(w);
    return 0;
}

static void *game_new(struct world *w)
{
    char endpoint[80];
    int linger = 0;
    int timeout_ms = 1;
    void *game = zeromq.socket(w->context, ZMQ_PAIR);
    zeromq.setsockopt(game, ZMQ_LINGER, &linger, sizeof(linger));
    zeromq.setsockopt(game, ZMQ_RCVTIMEO, &timeout_ms, sizeof(timeout_ms));
    snprintf(endpoint, sizeof(endpoint), "ipc://%s", w->path);
    assert_int_equal(zeromq.connect(game, endpoint), 0);
    return game;
}

static void say(void *game, const char *text)
{
    assert_int_equal(zeromq.send(game, text, strlen(text), 0), strlen(text));
}

/* The next message that the game has got, while the loop turns. */
static const char *heard(struct world *w, void *game)
{
    static char text[LINK_BYTES_MAX];
    int n = -1;
    struct patience patience = {0};
    while (n < 0) { /* the loop and the game wait in turns: neither knows of the other */
        assert_true(patience_lasts(&patience));
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
        n = zeromq.recv(game, text, sizeof(text) - 1, 0);
    }
    text[n] = '\0';
    return text;
}

static const char *got(struct world *w)
{
    buf_append(&w->got, "", 1);
    w->got.len--;
    return (const char *)w->got.data;
}

static void messages_go_both_ways(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    say(game, "one");
    say(game, "two");
    RUN_UNTIL(w, w->n_got == 2);
    assert_string_equal(got(w), "one|two|");
    assert_true(game_link_send(w->link, STR("three")));
    assert_string_equal(heard(w, game), "three");
    zeromq.close(game);
}

static void what_is_sent_before_the_peer_is_there_arrives(void **state)
{
    struct world *w = *state;
    assert_false(game_link_send_now(w->link, STR("lost")));
    assert_true(game_link_send(w->link, STR("kept 1")));
    assert_true(game_link_send(w->link, STR("kept 2")));
    void *game = game_new(w);
    assert_string_equal(heard(w, game), "kept 1");
    assert_string_equal(heard(w, game), "kept 2");
    zeromq.close(game);
}

/* It starts while ZeroMQ is still being told of its socket. */
static void who_came_before_the_link_is_heard(void **state)
{
    struct world *w = *state;
    struct endpoints endpoints;
    char why[LINK_WHY_MAX] = "";
    game_link_close(w->link);
    unlink(w->path);
    endpoints_init(&endpoints, w->folder);
    int listener = endpoints_listen(&endpoints, w->path);
    void *game = game_new(w);
    say(game, "early");
    w->link = links_bind(w->links, w->path, listener, 12, on_message, w, why);
    assert_non_null(w->link);
    RUN_UNTIL(w, w->n_got == 1);
    assert_string_equal(got(w), "early|");
    zeromq.close(game);
}

/* The descriptor is edge-like: answering from inside a message must not make us deaf. */
static void a_long_conversation_never_stalls(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    for (int i = 1; i <= 500; i++) {
        say(game, "ping");
        if (i % 3 == 0)
            say(game, "ping again");
        int want = i + i / 3;
        RUN_UNTIL(w, w->n_got == want);
        assert_true(game_link_send(w->link, STR("pong")));
        assert_string_equal(heard(w, game), "pong");
    }
    zeromq.close(game);
}

static void a_flood_is_taken_whole_and_in_order(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    char text[16];
    int sent = 0;
    while (sent < GOT_MAX) {
        int n = snprintf(text, sizeof(text), "%d", sent);
        if (zeromq.send(game, text, (size_t)n, ZMQ_DONTWAIT) == n)
            sent++;
        else
            uv_run(&w->loop.uv, UV_RUN_ONCE);
    }
    RUN_UNTIL(w, w->n_got == GOT_MAX);
    const char *at = got(w);
    for (int i = 0; i < GOT_MAX; i++) {
        char *end = NULL;
        assert_int_equal(strtol(at, &end, 10), i);
        at = end + 1;
    }
    zeromq.close(game);
}

static void a_peer_that_does_not_read_has_a_limit(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    say(game, "here");
    RUN_UNTIL(w, w->n_got == 1);
    static char big[64 * 1024];
    int taken = 0;
    while (taken < 10000 && game_link_send(w->link, (struct str){big, sizeof(big)}))
        taken++;
    assert_in_range(taken, LINK_UNSENT_MAX / sizeof(big), 1000);
    for (int i = 0; i < taken; i++)
        (void)heard(w, game);
    assert_true(game_link_send(w->link, STR("on we go")));
    assert_string_equal(heard(w, game), "on we go");
    zeromq.close(game);
}

static void a_message_in_parts_is_an_empty_one(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    zeromq.send(game, "a", 1, ZMQ_SNDMORE);
    zeromq.send(game, "b", 1, ZMQ_SNDMORE);
    zeromq.send(game, "c", 1, 0);
    say(game, "whole");
    RUN_UNTIL(w, w->n_got == 2);
    assert_string_equal(got(w), "|whole|");
    zeromq.close(game);
}

static void a_message_that_is_too_long_does_not_end_the_conversation(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    static char big[LINK_BYTES_MAX + 1];
    say(game, "before");
    RUN_UNTIL(w, w->n_got == 1);
    assert_int_equal(zeromq.send(game, big, sizeof(big), 0), sizeof(big));
    while (w->n_got == 1) { /* it may be lost on a connection that is being closed */
        zeromq.send(game, "after", 5, ZMQ_DONTWAIT);
        uv_run(&w->loop.uv, UV_RUN_ONCE);
    }
    assert_memory_equal(got(w), "before|after|", 13);
    zeromq.close(game);
}

static void a_link_may_be_closed_by_a_message(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    w->closes = true;
    say(game, "one");
    say(game, "two");
    RUN_UNTIL(w, !w->link);
    for (int i = 0; i < 10; i++)
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(w->n_got, 1);
    zeromq.close(game);
}

/* What happens when an agent is killed and the next one binds the same path. */
static void a_path_that_is_bound_again_finds_its_game(void **state)
{
    struct world *w = *state;
    void *game = game_new(w);
    char why[LINK_WHY_MAX];
    say(game, "to the first");
    RUN_UNTIL(w, w->n_got == 1);
    game_link_close(w->link);
    links_close(w->links);
    w->link = NULL;
    w->links = NULL;
    w->links = links_open(&w->loop, why);
    bind_link(w);
    assert_true(game_link_send(w->link, STR("from the second")));
    assert_string_equal(heard(w, game), "from the second");
    say(game, "to the second");
    RUN_UNTIL(w, w->n_got == 2);
    zeromq.close(game);
}

static void a_second_peer_is_reported_and_ignored(void **state)
{
    struct world *w = *state;
    char line[512] = "";
    int pipes[2];
    void *game = game_new(w);
    say(game, "first");
    RUN_UNTIL(w, w->n_got == 1);
    assert_int_equal(pipe(pipes), 0);
    int stderr_was = dup(STDERR_FILENO);
    dup2(pipes[1], STDERR_FILENO);
    void *second = game_new(w);
    struct pollfd said = {.fd = pipes[0], .events = POLLIN};
    RUN_UNTIL(w, poll(&said, 1, 0) > 0);
    dup2(stderr_was, STDERR_FILENO);
    assert_true(read(pipes[0], line, sizeof(line) - 1) > 0);
    assert_non_null(strstr(line, "a second process has connected"));
    assert_non_null(strstr(line, "server=12"));
    say(game, "still first");
    RUN_UNTIL(w, w->n_got == 2);
    assert_string_equal(got(w), "first|still first|");
    close(pipes[0]);
    close(pipes[1]);
    close(stderr_was);
    zeromq.close(second);
    zeromq.close(game);
}

static void a_path_that_cannot_be_is_a_clause(void **state)
{
    struct world *w = *state;
    char why[LINK_WHY_MAX] = "";
    assert_null(links_bind(w->links, "/nowhere/at/all", -1, 1, on_message, w, why));
    assert_non_null(strstr(why, "/nowhere/at/all"));
    assert_non_null(strstr(why, "No such file"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
    const struct CMUnitTest tests[] = {
        TEST(messages_go_both_ways),
        TEST(who_came_before_the_link_is_heard),
        TEST(what_is_sent_before_the_peer_is_there_arrives),
        TEST(a_long_conversation_never_stalls),
        TEST(a_flood_is_taken_whole_and_in_order),
        TEST(a_peer_that_does_not_read_has_a_limit),
        TEST(a_message_in_parts_is_an_empty_one),
        TEST(a_message_that_is_too_long_does_not_end_the_conversation),
        TEST(a_link_may_be_closed_by_a_message),
        TEST(a_path_that_is_bound_again_finds_its_game),
        TEST(a_second_peer_is_reported_and_ignored),
        TEST(a_path_that_cannot_be_is_a_clause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

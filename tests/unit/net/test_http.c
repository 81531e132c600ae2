#include "net/http.h"

#include "base/err.h"
#include "lib/certs.h"
#include "lib/loop.h"
#include "lib/tls_client.h"
#include "net/listening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KEPT_MAX = 64 };

struct client {
    struct link link;
    uv_poll_t ready;
    int fd;
    struct buf got;
    bool ended;
};

/* A server whose paths say what the test wants of it. */
struct world {
    struct loop loop;
    struct http_server *server;
    struct http_limits limits;
    struct tls *tls; /* NULL = plain */
    uint16_t port;
    struct http_request *kept[KEPT_MAX]; /* asked /later or /stream; NULL when done */
    int n_kept;
    int asked;
    int done;
    struct buf feed; /* what /stream sends next */
    bool feed_ends;
    int64_t now_ms; /* the server's clock, which moves when a test says so */
    int ticks;
    int turns;
    int asked_before;   /* this turn */
    int most_in_a_turn; /* requests that were handed over */
    struct list clients;
};

static void client_free(struct client *c);

static void on_turn(void *user)
{
    struct world *w = user;
    w->turns++;
    if (w->asked - w->asked_before > w->most_in_a_turn)
        w->most_in_a_turn = w->asked - w->asked_before;
    w->asked_before = w->asked;
}

static void on_tick(void *user)
{
    struct world *w = user;
    w->ticks++;
    if (w->server)
        http_server_tick(w->server, w->now_ms);
}

static bool print_argument(void *user, const char *key, const char *value)
{
    struct buf *out = user;
    char line[300];
    int n = snprintf(line, sizeof(line), "%s=%s;", key, value);
    buf_append(out, line, (size_t)n);
    return strcmp(key, "stop") != 0;
}

static void answer_text(struct http_request *r, int status, const char *text)
{
    struct buf body = {0};
    buf_append(&body, text, strlen(text));
    http_answer(r, status, "text/plain", &body, NULL);
    assert_null(body.data);
}

/* "POST /path k=v; [body] 127.0.0.1" */
static void answer_echo(struct http_request *r)
{
    struct buf body = {0};
    buf_append(&body, http_method_name(r), strlen(http_method_name(r)));
    buf_append(&body, " ", 1);
    buf_append(&body, http_path(r), strlen(http_path(r)));
    buf_append(&body, " ", 1);
    http_query(r, print_argument, &body);
    buf_append(&body, " [", 2);
    buf_append(&body, http_body(r).at, http_body(r).len);
    buf_append(&body, "] ", 2);
    buf_append(&body, http_peer(r), strlen(http_peer(r)));
    const struct http_field fields[] = {{"X-Extra", "yes"}, {NULL, NULL}};
    http_answer(r, 200, "text/plain", &body, fields);
}

static bool pull_feed(void *user, struct http_request *r, struct buf *out, size_t max)
{
    (void)r;
    struct world *w = user;
    size_t n = w->feed.len < max ? w->feed.len : max;
    buf_append(out, w->feed.data, n);
    buf_consume(&w->feed, n);
    return !(w->feed_ends && w->feed.len == 0);
}

static void keep(struct world *w, struct http_request *r)
{
    int at = w->n_kept;
    for (int i = 0; i < KEPT_MAX && at == KEPT_MAX; i++)
        at = w->kept[i] ? at : i;
    assert_true(at < KEPT_MAX);
    w->kept[at] = r;
    w->n_kept += at == w->n_kept;
}

static void burn(int64_t us)
{
    int64_t until_us = clock_monotonic_us() + us;
    while (clock_monotonic_us() < until_us)
        continue;
}

static char shared[8 << 20];

static void on_request(void *user, struct http_request *r)
{
    struct world *w = user;
    w->asked++;
    http_set_data(r, w);
    if (strcmp(http_path(r), "/later") == 0) {
        keep(w, r);
    } else if (strcmp(http_path(r), "/stream") == 0) {
        keep(w, r);
        http_stream(r, "text/event-stream", pull_feed, NULL);
    } else if (strcmp(http_path(r), "/big") == 0) {
        struct buf body = {0};
        memset(buf_extend(&body, 8 << 20), 'b', 8 << 20);
        http_answer(r, 200, "text/plain", &body, NULL);
    } else if (strcmp(http_path(r), "/shared") == 0) {
        memset(shared, 's', sizeof(shared));
        http_answer_shared(r, 200, "text/plain", (struct str){shared, sizeof(shared)}, NULL);
    } else if (strcmp(http_path(r), "/dear") == 0) {
        burn(1000);
        answer_text(r, 200, "dear");
    } else if (http_too_large(r)) {
        answer_text(r, 413, "too large");
    } else {
        answer_echo(r);
    }
}

static void on_done(void *user, struct http_request *r)
{
    struct world *w = user;
    assert_ptr_equal(http_data(r), w);
    w->done++;
    for (int i = 0; i < w->n_kept; i++) {
        if (w->kept[i] == r)
            w->kept[i] = NULL;
    }
}

static uint16_t port_of(const struct http_server *s)
{
    char text[ADDRESS_MAX];
    http_server_address(s, text);
    return (uint16_t)atoi(strrchr(text, ':') + 1);
}

/* With w->limits. */
static void world_start(struct world *w, const char *ip)
{
    http_server_stop(w->server);
    const struct http_ops ops = {.request = on_request, .done = on_done, .user = w};
    const char *why = NULL;
    const struct http_place place = {.ip = ip, .tls = w->tls};
    assert_int_equal(http_server_start(&w->loop, &place, &w->limits, &ops, &w->server, &why), 0);
    w->now_ms = clock_monotonic_ms();
    w->port = port_of(w->server);
}

static int world_new(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    const struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = w};
    const struct loop_limits limits = {.streams = 10, .streams_per_address = 10};
    loop_init(&w->loop, &hooks, &limits);
    list_init(&w->clients);
    w->limits = (struct http_limits){.connections = 100,
                                     .connections_per_address = 50,
                                     .body_max = 1000,
                                     .head_ms = 5000,
                                     .idle_ms = 20000,
                                     .suspend_ms = 10000};
    world_start(w, "127.0.0.1");
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    http_server_stop(w->server);
    w->server = NULL;
    tls_free(w->tls);
    assert_int_equal(w->asked, w->done);
    LIST_EACH(&w->clients, c, struct client, link)
    client_free(c);
    loop_done(&w->loop);
    buf_done(&w->feed);
    free(w);
    return 0;
}

/* ── a client on the same loop ─────────────────────────────────────────────────────────────── */

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)events;
    struct client *c = handle->data;
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0)
        buf_append(&c->got, bytes, (size_t)n);
    /* libuv says that the connection was reset while there is still something to read, and once. */
    if (status < 0 || n == 0 || (n < 0 && errno != EAGAIN)) {
        c->ended = true;
        uv_poll_stop(handle);
    }
}

static void client_read(struct client *c)
{
    uv_poll_start(&c->ready, UV_READABLE, on_readable);
}

/* Around a connected socket, which it owns. */
static struct client *client_of(struct world *w, int fd)
{
    struct client *c = xcalloc(1, sizeof(*c));
    int on = 1;
    c->fd = fd;
    list_append(&w->clients, &c->link);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    uv_poll_init(&w->loop.uv, &c->ready, c->fd);
    c->ready.data = c;
    client_read(c);
    return c;
}

static struct client *client_new(struct world *w)
{
    union address to;
    assert_true(address_parse("127.0.0.1", w->port, &to));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &to.any, sizeof(to.v4)), 0);
    return client_of(w, fd);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct client *c = handle->data;
    close(c->fd);
    buf_done(&c->got);
    free(c);
}

static void client_free(struct client *c)
{
    list_remove(&c->link);
    uv_close((uv_handle_t *)&c->ready, on_client_closed);
}

static void client_say(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool client_has(struct client *c, const char *text)
{
    return c->got.len > 0 && memmem(c->got.data, c->got.len, text, strlen(text)) != NULL;
}

static int client_count(struct client *c, const char *text)
{
    int n = 0;
    const uint8_t *at = c->got.data;
    const uint8_t *end = at ? at + c->got.len : NULL;
    while (at && (at = memmem(at, (size_t)(end - at), text, strlen(text)))) {
        n++;
        at++;
    }
    return n;
}

/* Says it and waits for an answer that has this. */
static void asks(struct world *w, struct client *c, const char *request, const char *answer)
{
    buf_clear(&c->got);
    client_say(c, request);
    RUN_UNTIL(w, client_has(c, answer) || c->ended);
    if (!client_has(c, answer)) {
        buf_append(&c->got, "", 1);
        fail_msg("\"%s\" is not in \"%s\"", answer, c->got.data);
    }
}

/* The server's clock goes on by at most a second for each tick. */
static void pass(struct world *w, int64_t ms)
{
    for (; ms > 0; ms -= 500) {
        w->now_ms += 500;
        on_tick(w);
    }
}

/* How often the loop turns while it has nothing to do but tick. */
static int turns_in_5_ticks(struct world *w)
{
    int ticks = w->ticks;
    int turns = w->turns;
    RUN_UNTIL(w, w->ticks >= ticks + 5);
    return w->turns - turns;
}

static struct http_figures figures(struct world *w)
{
    struct http_figures f;
    http_server_figures(w->server, &f);
    return f;
}

/* ── requests and answers ──────────────────────────────────────────────────────────────────── */

static void a_request_is_handed_over_whole(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    asks(w, c, "GET /a/b?x=1&y=2 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a/b x=1;y=2; [] 127.0.0.1");
    assert_true(client_has(c, "HTTP/1.1 200 OK\r\n"));
    assert_true(client_has(c, "X-Content-Type-Options: nosniff\r\n"));
    assert_true(client_has(c, "Cache-Control: no-store\r\n"));
    assert_true(client_has(c, "Content-Type: text/plain\r\n"));
    assert_true(client_has(c, "X-Extra: yes\r\n"));
    asks(w, c, "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
         "POST /p  [hello] 127.0.0.1");
    asks(w, c, "DELETE /d HTTP/1.1\r\nHost: h\r\n\r\n", "DELETE /d");
    assert_false(c->ended);
    RUN_UNTIL(w, w->done == 3);
    client_free(c);
}

static void an_answer_may_come_later(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    assert_int_equal(figures(w).requests, 1);
    answer_text(w->kept[0], 404, "there it is");
    RUN_UNTIL(w, client_has(c, "there it is"));
    assert_true(client_has(c, "HTTP/1.1 404 Not Found\r\n"));
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(figures(w).requests, 0);
    asks(w, c, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n", "GET /again");
    client_free(c);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /later HTTP/1.1\r\nHost: h\r\n\r\n"
                  "POST /3 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
                  "GET /4 HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "GET /1") && w->n_kept == 1);
    assert_int_equal(w->asked, 2);
    answer_text(w->kept[0], 200, "second");
    RUN_UNTIL(w, client_has(c, "GET /4"));
    const char *first = memmem(c->got.data, c->got.len, "GET /1", 6);
    const char *second = memmem(c->got.data, c->got.len, "second", 6);
    const char *third = memmem(c->got.data, c->got.len, "POST /3  [hi]", 13);
    assert_true(first < second && second < third);
    assert_int_equal(client_count(c, "HTTP/1.1 200 OK"), 4);
    client_free(c);
}

static void head_is_get_without_the_body(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "HEAD /later HTTP/1.1\r\nHost: h\r\n\r\n"
                  "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    assert_int_equal(http_method(w->kept[0]), HTTP_GET);
    assert_true(http_is_head(w->kept[0]));
    assert_string_equal(http_method_name(w->kept[0]), "HEAD");
    answer_text(w->kept[0], 200, "unseen");
    RUN_UNTIL(w, client_has(c, "GET /next"));
    assert_true(client_has(c, "Content-Length: 6\r\n"));
    assert_false(client_has(c, "unseen"));
    client_free(c);
}

static void an_answer_may_be_empty_and_change_its_head(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "DELETE /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    struct buf none = {0};
    http_answer(w->kept[0], 204, NULL, &none, NULL);
    RUN_UNTIL(w, client_has(c, "\r\n\r\n"));
    assert_true(client_has(c, "HTTP/1.1 204 No Content\r\n"));
    assert_false(client_has(c, "\r\nContent-Type:"));
    buf_clear(&c->got);

    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 2);
    (void)buf_extend(&none, 10); /* memory, but nothing in it */
    buf_clear(&none);
    const struct http_field fields[] = {
        {"cache-control", "max-age=60"}, {"X-Bad", "two\r\nlines"}, {"Allow", "GET"}, {NULL, NULL}};
    http_answer(w->kept[1], 405, "text/html", &none, fields);
    RUN_UNTIL(w, client_has(c, "\r\n\r\n"));
    assert_true(client_has(c, "Content-Length: 0\r\n"));
    assert_true(client_has(c, "cache-control: max-age=60\r\n"));
    assert_true(client_has(c, "Allow: GET\r\n"));
    assert_false(client_has(c, "no-store") || client_has(c, "lines"));
    client_free(c);
}

/* Such a client is answered at once or taken for gone; what must not be is that it stays. */
static void who_hangs_up_behind_his_request_does_not_stay(void **state)
{
    struct world *w = *state;
    struct client *now = client_new(w);
    struct client *later = client_new(w);
    client_say(now, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(now->fd, SHUT_WR);
    client_say(later, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(later->fd, SHUT_WR);
    RUN_UNTIL(w, w->n_kept == 1 && client_has(now, "GET /1"));
    answer_text(w->kept[0], 200, "here");
    RUN_UNTIL(w, w->done == 2);
    pass(w, w->limits.idle_ms + 1000);
    RUN_UNTIL(w, now->ended && later->ended);
    RUN_UNTIL(w, figures(w).connections == 0);
    client_free(now);
    client_free(later);
}

static void bodies_come_in_chunks_and_after_a_question(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    asks(w, c,
         "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n",
         "POST /c  [abcdefg]");
    asks(w, c, "POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
         "HTTP/1.1 100 Continue\r\n\r\n");
    asks(w, c, "body", "POST /e  [body]");
    client_free(c);
}

/* ── streams ───────────────────────────────────────────────────────────────────────────────── */

static void feed(struct world *w, const char *text)
{
    buf_append(&w->feed, text, strlen(text));
    http_wake(w->kept[0]);
}

static void a_stream_sends_what_there_is_and_sleeps(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "text/event-stream"));
    assert_int_equal(figures(w).streams, 1);
    feed(w, "one ");
    RUN_UNTIL(w, client_has(c, "one "));
    feed(w, "two ");
    RUN_UNTIL(w, client_has(c, "two "));
    assert_int_equal(figures(w).requests, 1);
    w->feed_ends = true;
    feed(w, "end");
    RUN_UNTIL(w, client_has(c, "0\r\n\r\n"));
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(figures(w).streams, 0);
    asks(w, c, "GET /after HTTP/1.1\r\nHost: h\r\n\r\n", "GET /after");
    client_free(c);
}

static void a_sleeping_stream_is_left_alone(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "text/event-stream"));
    pass(w, 100000);
    assert_true(turns_in_5_ticks(w) < 50);
    assert_false(c->ended);
    feed(w, "still there");
    RUN_UNTIL(w, client_has(c, "still there"));
    client_free(c);
}

static void a_stream_carries_more_than_any_buffer(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    size_t n = 3 << 20;
    memset(buf_extend(&w->feed, n), 'x', n);
    w->feed_ends = true;
    client_say(c, "GET /stream HTTP/1.0\r\n\r\n"); /* without chunks, so that they can be counted */
    RUN_UNTIL(w, c->ended);
    const uint8_t *body = memmem(c->got.data, c->got.len, "\r\n\r\n", 4);
    assert_non_null(body);
    assert_int_equal(c->got.data + c->got.len - (body + 4), n);
    client_free(c);
}

static void a_stream_whose_client_is_gone_ends_when_woken(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "text/event-stream"));
    client_free(c);
    assert_true(turns_in_5_ticks(w) < 50);
    assert_int_equal(w->done, 0);
    feed(w, ": anybody?\n"); /* which the client's system refuses */
    RUN_UNTIL(w, w->feed.len == 0 && turns_in_5_ticks(w) < 50);
    feed(w, ": nobody\n");
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(figures(w).connections, 0);
}

static void a_stream_that_is_not_read_is_cut(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "text/event-stream"));
    uv_poll_stop(&c->ready);
    size_t n = 32 << 20;
    memset(buf_extend(&w->feed, n), 'x', n);
    http_wake(w->kept[0]);
    size_t left;
    do { /* until the kernel takes no more: how much that is depends on what it remembers */
        left = w->feed.len;
        (void)turns_in_5_ticks(w);
    } while (w->feed.len < left);
    assert_true(turns_in_5_ticks(w) < 50);
    assert_true(w->feed.len > 0);
    assert_true(figures(w).answer_bytes < 64 * 1024);
    pass(w, w->limits.idle_ms + 1000);
    RUN_UNTIL(w, w->done == 1);
    client_free(c);
}

/* ── targets ───────────────────────────────────────────────────────────────────────────────── */

/* Each on its own connection, which ends, so that nothing behind it is taken for a request. */
static void refused_head(struct world *w, const char *head)
{
    struct client *c = client_new(w);
    client_say(c, head);
    client_say(c, "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, c->ended);
    if (!client_has(c, "HTTP/1.1 400 ") ||
        !client_has(c, "{\"error\":{\"code\":\"invalid_request\","))
        fail_msg("not refused: %s", head);
    assert_true(client_has(c, "Content-Type: application/json\r\n"));
    assert_int_equal(client_count(c, "HTTP/1.1"), 1);
    assert_int_equal(w->asked, 0);
    client_free(c);
}

static void a_broken_target_is_refused_without_asking(void **state)
{
    struct world *w = *state;
    refused_head(w, "GET /a%00b HTTP/1.1\r\nHost: h\r\n\r\n");
    refused_head(w, "POST /?a=%g HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    struct client *c = client_new(w);
    asks(w, c, "GET /%61?%62=%63+d&stop=1&e=2 HTTP/1.1\r\nHost: h\r\n\r\n",
         "GET /a b=c d;stop=1; []");
    client_free(c);
}

static void a_body_whose_end_is_in_doubt_is_refused(void **state)
{
    struct world *w = *state;
#define POST "POST / HTTP/1.1\r\nHost: h\r\n"
    refused_head(w, POST "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    refused_head(w, POST "Content-Length: 4\r\nContent-Length: 5\r\n\r\nhello");
    refused_head(w, POST "Content-Length: 4\r\nContent-Length: 4\r\n\r\nhell");
    refused_head(w, POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n");
    refused_head(w, POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n");
    refused_head(w, POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n");
    refused_head(w, POST "Content-Length : 4\r\n\r\nhell");
    refused_head(w, POST "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n");
#undef POST
}

/* What libmicrohttpd refuses itself never reaches us, and ends the connection. */
static void a_malformed_head_is_refused_and_the_connection_ends(void **state)
{
    static const char *const heads[] = {
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", /* no host */
        "GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: h\r\n\r\n",
    };
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        struct client *c = client_new(w);
        client_say(c, heads[i]);
        RUN_UNTIL(w, c->ended);
        if (client_has(c, "200 OK") || client_count(c, "HTTP/1.1") > 1)
            fail_msg("answered: %s", heads[i]);
        client_free(c);
    }
    assert_int_equal(w->asked, 0);
    RUN_UNTIL(w, figures(w).connections == 0);
}

static void a_head_without_end_is_refused(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET / HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < 200; i++)
        client_say(c, "X-More-And-More-And-More: and more and more and more and more and more and "
                      "more and more and more\r\n");
    RUN_UNTIL(w, client_has(c, "HTTP/1.1 431 "));
    RUN_UNTIL(w, c->ended);
    assert_int_equal(w->asked, 0);
    client_free(c);
}

/* A token may have 8 KiB, and browsers and proxies say a lot besides. */
static void a_long_token_among_other_fields_is_taken(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    char token[8 * 1024 + 1];
    memset(token, 't', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    client_say(c, "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ");
    client_say(c, token);
    for (int i = 0; i < 15; i++)
        client_say(
            c, "\r\nX-Forwarded-And-So-On: and more and more and more and more and more and more");
    client_say(c, "\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "200 OK"));
    client_free(c);
}

/* ── heads that cost more memory than a connection has ─────────────────────────────────────── */

/* A head with one piece that comes n times. */
struct crowded {
    const char *name;
    const char *before;
    const char *piece;
    const char *after;
    int status;  /* unless it is too much */
    bool always; /* it is never too much */
    bool every;  /* every number is tried */
};

static const struct crowded crowded[] = {
    {"arguments", "GET /?", "a&", " HTTP/1.1\r\nHost: h\r\n\r\n", 200, true, true},
    {"empty arguments", "GET /?", "=&", " HTTP/1.1\r\nHost: h\r\n\r\n", 200, true, false},
    {"arguments behind a body", "POST /?", "a=b&",
     " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", 200, true, false},
    {"cookies", "GET / HTTP/1.1\r\nHost: h\r\nCookie: ", "a;", "\r\n\r\n", 200, false, true},
    {"cookies with values", "GET / HTTP/1.1\r\nHost: h\r\nCookie: ", "a=b; ", "\r\n\r\n", 200,
     false, false},
    {"cookies without anything", "GET / HTTP/1.1\r\nCookie: ", ";", "\r\nHost: h\r\n\r\n", 200,
     false, false},
    {"cookies before a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nCookie: ", "a;",
     "\r\n\r\nhi", 200, false, false},
    {"cookies of an old client", "GET / HTTP/1.0\r\nCookie: ", "a;", "\r\n\r\n", 200, false, false},
    {"fields", "GET / HTTP/1.1\r\nHost: h\r\n", "a:b\r\n", "\r\n", 200, false, false},
    {"cookie fields", "GET / HTTP/1.1\r\nHost: h\r\n", "Cookie: a\r\n", "\r\n", 200, false, false},
    {"long fields", "GET / HTTP/1.1\r\nHost: h\r\n", "a: and a lot of text, for one name\r\n",
     "\r\n", 200, false, false},
    {"a long target", "GET /", "and-a-lot-of-text-in-one-word", " HTTP/1.1\r\nHost: h\r\n\r\n", 200,
     false, false},
    {"a long cookie", "GET / HTTP/1.1\r\nHost: h\r\nCookie: ", "and_a_lot_of_text_in_one_word_",
     "\r\n\r\n", 200, false, false},
    {"continued lines", "GET / HTTP/1.1\r\nHost: h\r\na: b\r\n", " and a lot of text\r\n", "\r\n",
     400, false, false},
    {"trailers", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
     "a:b\r\n", "\r\n", 200, false, false},
};

enum { CROWD_MAX = 400, HEAD_BYTES_MAX = 32 * 1024 };

static void put_crowded(char dst[HEAD_BYTES_MAX], const struct crowded *k, int n)
{
    size_t at = (size_t)snprintf(dst, HEAD_BYTES_MAX, "%s", k->before);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(dst + at, HEAD_BYTES_MAX - at, "%s", k->piece);
    snprintf(dst + at, HEAD_BYTES_MAX - at, "%s", k->after);
}

/* Of the last answer; 0 when there is none. */
static int status_of(const struct buf *got, int answers)
{
    static const char line[] = "HTTP/1.1 ";
    const char *at = (const char *)got->data;
    const char *end = at ? at + got->len : NULL;
    int status = 0;
    for (int i = 0; i < answers && at; i++) {
        at = memmem(at, (size_t)(end - at), line, sizeof(line) - 1);
        if (at && end - at >= 12) {
            status = atoi(at + sizeof(line) - 1);
            at++;
        } else {
            return 0;
        }
    }
    return status;
}

static void judge_crowded(const struct crowded *k, int n, int status)
{
    bool refused = status == 414 || status == 431;
    if (status != k->status && (k->always || !refused))
        fail_msg("%d %s were answered with %d", n, k->name, status);
}

/* On a connection of its own; `first` comes before it in the same packet or is answered before. */
static void say_crowded(struct world *w, const struct crowded *k, int n, const char *first,
                        bool kept)
{
    char head[HEAD_BYTES_MAX];
    struct client *c = client_new(w);
    int answers = first ? 2 : 1;
    if (first && kept)
        asks(w, c, first, "200 OK");
    if (first && kept)
        buf_clear(&c->got);
    else if (first)
        client_say(c, first);
    answers -= kept;
    put_crowded(head, k, n);
    (void)send(c->fd, head, strlen(head), MSG_NOSIGNAL);
    RUN_UNTIL(w, c->ended || status_of(&c->got, answers));
    judge_crowded(k, n, status_of(&c->got, answers));
    if (status_of(&c->got, answers) >= 400) {
        RUN_UNTIL(w, c->ended);
        assert_int_equal(client_count(c, "HTTP/1.1"), answers);
    }
    client_free(c);
    RUN_UNTIL(w, figures(w).connections == 0);
}

/* About where the memory ends for what is short. */
static bool is_near(int n)
{
    return n > 155 && n < 195;
}

static void no_head_is_too_crowded_for_an_answer(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(crowded) / sizeof(crowded[0]); i++) {
        for (int n = 1; n <= CROWD_MAX; n += crowded[i].every || is_near(n) ? 1 : 13)
            say_crowded(w, &crowded[i], n, NULL, false);
    }
    RUN_UNTIL(w, figures(w).connections == 0);
    assert_int_equal(w->asked, w->done);
}

static void a_crowded_head_is_judged_alike_behind_another_request(void **state)
{
    static const char first[] = "GET /first HTTP/1.1\r\nHost: h\r\n\r\n";
    struct world *w = *state;
    for (size_t i = 0; i < sizeof(crowded) / sizeof(crowded[0]); i++) {
        for (int n = 1; n <= CROWD_MAX; n += is_near(n) ? 2 : 40) {
            say_crowded(w, &crowded[i], n, first, false);
            say_crowded(w, &crowded[i], n + 1, first, true);
        }
    }
    RUN_UNTIL(w, figures(w).connections == 0);
    assert_int_equal(w->asked, w->done);
}

/* It is not looked at before the one in front of it has its answer. */
static void a_crowded_head_waits_behind_one_that_waits(void **state)
{
    struct world *w = *state;
    char head[HEAD_BYTES_MAX];
    for (int i = 0; i < 4; i++) {
        struct client *c = client_new(w);
        client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        put_crowded(head, &crowded[i], 200);
        client_say(c, head);
        RUN_UNTIL(w, w->asked == w->done + 1);
        int ticks = w->ticks;
        RUN_UNTIL(w, w->ticks > ticks + 3); /* by then it is suspended */
        int asked = w->asked;
        answer_text(w->kept[w->n_kept - 1], 200, "now");
        RUN_UNTIL(w, c->ended || status_of(&c->got, 2));
        judge_crowded(&crowded[i], 200, status_of(&c->got, 2));
        assert_true(w->asked >= asked);
        client_free(c);
        RUN_UNTIL(w, figures(w).connections == 0);
        assert_int_equal(w->asked, w->done);
    }
}

/* A head that has used up its memory and does not go on. */
static void a_crowded_head_that_stops_is_cut(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } starts[] = {{"GET /?", 6}, {"GET /\0?", 7}};
    struct world *w = *state;
    for (size_t i = 0; i < 2; i++) {
        for (int n = 170; n < 200; n++) {
            struct client *c = client_new(w);
            struct buf head = {0};
            buf_append(&head, starts[i].text, starts[i].n);
            for (int k = 0; k < n; k++)
                buf_append(&head, "a&", 2);
            buf_append(&head, " HTTP/1.1\r\n", 11);
            assert_int_equal(send(c->fd, head.data, head.len, MSG_NOSIGNAL), head.len);
            RUN_UNTIL(w, figures(w).connections == 1);
            pass(w, w->limits.head_ms + 1000);
            RUN_UNTIL(w, c->ended);
            RUN_UNTIL(w, figures(w).connections == 0);
            client_free(c);
            buf_done(&head);
        }
    }
    assert_int_equal(w->asked, 0);
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

static void a_head_that_drips_is_cut(void **state)
{
    struct world *w = *state;
    struct client *drips = client_new(w);
    struct client *silent = client_new(w);
    client_say(drips, "GET / HTTP/1.1\r\n");
    RUN_UNTIL(w, figures(w).connections == 2);
    for (int i = 0; i < 8; i++) {
        client_say(drips, "A: b\r\n");
        pass(w, 500);
        uv_run(&w->loop.uv, UV_RUN_ONCE);
    }
    assert_false(drips->ended);
    pass(w, 2000);
    RUN_UNTIL(w, drips->ended && silent->ended);
    assert_int_equal(drips->got.len + silent->got.len, 0);
    RUN_UNTIL(w, figures(w).connections == 0);
    client_free(drips);
    client_free(silent);
}

static void a_connection_between_requests_is_kept_for_a_while(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    asks(w, c, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /1");
    pass(w, 15000);
    asks(w, c, "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /2");
    client_say(c, "GET /3 HTTP");
    RUN_UNTIL(w, w->done == 2);
    pass(w, 15000);
    assert_true(turns_in_5_ticks(w) < 50);
    assert_false(c->ended);
    pass(w, 6000);
    RUN_UNTIL(w, c->ended);
    client_free(c);
}

static void a_body_that_drips_is_cut(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n");
    for (int i = 0; i < 39; i++) {
        client_say(c, "x");
        uv_run(&w->loop.uv, UV_RUN_ONCE);
        pass(w, 500);
    }
    assert_false(c->ended);
    pass(w, 2000);
    RUN_UNTIL(w, c->ended);
    assert_int_equal(w->asked, 0);
    client_free(c);
}

static void a_request_nobody_answers_gets_503(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    pass(w, 9000);
    assert_true(turns_in_5_ticks(w) < 50);
    assert_int_equal(c->got.len, 0);
    pass(w, 2000);
    answer_text(w->kept[0], 200, "too late"); /* ours is on its way */
    http_stream(w->kept[0], "text/plain", pull_feed, NULL);
    http_wake(w->kept[0]);
    RUN_UNTIL(w,
              client_has(c, "{\"error\":{\"code\":\"internal\",\"message\":\"Internal error\"}}"));
    assert_true(client_has(c, "HTTP/1.1 503 "));
    RUN_UNTIL(w, w->done == 1);
    asks(w, c, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /1");
    client_free(c);
}

static void a_client_that_vanished_is_found_by_the_deadline(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    client_free(c);
    assert_true(turns_in_5_ticks(w) < 50);
    pass(w, 11000);
    RUN_UNTIL(w, w->done == 1);
    RUN_UNTIL(w, figures(w).connections == 0);
}

static void client_reset(struct client *c)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    client_free(c);
}

static void a_request_is_over_when_its_client_goes_at_once(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    client_reset(c);
    RUN_UNTIL(w, w->done == 1);
}

/* It has waited for so long that it is suspended, so nobody knows. */
static void an_answer_to_a_client_that_is_gone_is_dropped(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    int ticks = (int)w->ticks;
    RUN_UNTIL(w, w->ticks >= ticks + 3);
    client_reset(c);
    RUN_UNTIL(w, w->ticks >= ticks + 5);
    answer_text(w->kept[0], 200, "nobody reads this");
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(figures(w).answer_bytes, 0);
}

/* Ticks that stayed away are our absence, not the clients'. */
static void time_stands_while_we_are_stopped(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    asks(w, c, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /1");
    w->now_ms += 3600 * 1000;
    on_tick(w);
    asks(w, c, "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /2");
    client_free(c);
}

/* ── size ──────────────────────────────────────────────────────────────────────────────────── */

static void what_a_client_does_not_read_is_counted(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    uv_poll_stop(&c->ready);
    client_say(c, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->asked == 1);
    assert_int_equal(figures(w).answer_bytes, 8 << 20);
    assert_true(turns_in_5_ticks(w) < 200);
    assert_int_equal(w->done, 0);
    client_read(c);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(figures(w).answer_bytes, 0);
    RUN_UNTIL(w, c->got.len > 8 << 20);
    client_free(c);
}

static void what_waits_is_counted_for_its_address(void **state)
{
    struct world *w = *state;
    struct client *a = client_new(w);
    struct client *b = client_new(w);
    client_say(a, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    client_say(b, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 2);
    http_hold(w->kept[0], 1000);
    http_hold(w->kept[1], 200);
    assert_int_equal(http_held_by_peer(w->kept[0]), 1200);
    assert_int_equal(figures(w).answer_bytes, 1200);
    answer_text(w->kept[0], 200, "ten bytes.");
    assert_int_equal(http_held_by_peer(w->kept[1]), 210);
    client_free(b);
    answer_text(w->kept[1], 200, "nobody");
    RUN_UNTIL(w, w->done == 2);
    assert_int_equal(figures(w).answer_bytes, 0);
    client_free(a);
}

static void a_shared_answer_is_nobodys_burden(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    uv_poll_stop(&c->ready);
    client_say(c, "GET /shared HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->asked == 1);
    assert_int_equal(figures(w).answer_bytes, 0);
    client_read(c);
    RUN_UNTIL(w, w->done == 1);
    RUN_UNTIL(w, c->got.len > sizeof(shared));
    assert_int_equal(c->got.data[c->got.len - 1], 's');
    client_free(c);
}

static void an_answer_that_is_not_read_is_cut(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    uv_poll_stop(&c->ready);
    client_say(c, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->asked == 1);
    pass(w, w->limits.idle_ms); /* so long an answer may take longer */
    assert_true(turns_in_5_ticks(w) < 200);
    assert_int_equal(w->done, 0);
    pass(w, (8 << 20) / 32 + 1000);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(figures(w).answer_bytes, 0);
    client_free(c);
}

static void say_x(struct client *c, int n)
{
    while (n-- > 0)
        client_say(c, "x");
}

static void a_body_that_is_too_large_is_told(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n");
    say_x(c, 1000);
    RUN_UNTIL(w, client_has(c, "POST /1  [xxxx"));
    buf_clear(&c->got);

    client_say(c, "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n");
    say_x(c, 1001);
    RUN_UNTIL(w, client_has(c, "too large"));
    assert_true(client_has(c, "HTTP/1.1 413 "));
    buf_clear(&c->got);

    client_say(c, "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 101; i++)
        client_say(c, "a\r\n0123456789\r\n");
    client_say(c, "0\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "too large"));
    asks(w, c, "GET /4 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /4");
    client_free(c);
}

static void who_announces_far_too_much_need_not_send_it(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n"
                  "Expect: 100-continue\r\n\r\n");
    RUN_UNTIL(w, client_has(c, "too large"));
    assert_false(client_has(c, "100 Continue"));
    RUN_UNTIL(w, c->ended);
    client_free(c);

    c = client_new(w);
    client_say(c, "POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    assert_true(http_too_large(w->kept[0]));
    assert_true(turns_in_5_ticks(w) < 50);
    answer_text(w->kept[0], 413, "no");
    RUN_UNTIL(w, client_has(c, "HTTP/1.1 413 ") && c->ended);
    client_free(c);
}

static void a_body_without_end_is_cut(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "POST /1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    char chunk[0x1000 + 9];
    memset(chunk, 'x', sizeof(chunk));
    memcpy(chunk, "1000\r\n", 6);
    memcpy(chunk + sizeof(chunk) - 3, "\r\n", 3);
    size_t sent = 0;
    while (!c->ended) {
        ssize_t n =
            send(c->fd, chunk + sent % (sizeof(chunk) - 1),
                 sizeof(chunk) - 1 - sent % (sizeof(chunk) - 1), MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += n > 0 ? (size_t)n : 0;
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
        assert_true(sent < 64 << 20);
    }
    assert_true(sent > 1 << 20);
    assert_int_equal(w->asked, 0);
    client_free(c);
}

/* ── connections ───────────────────────────────────────────────────────────────────────────── */

static void one_connection_too_many_is_closed(struct world *w)
{
    world_start(w, "127.0.0.1");
    struct client *a = client_new(w);
    struct client *b = client_new(w);
    asks(w, a, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a");
    asks(w, b, "GET /b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /b");
    struct client *c = client_new(w);
    RUN_UNTIL(w, c->ended);
    assert_int_equal(figures(w).connections, 2);
    client_free(c);
    client_free(a);
    RUN_UNTIL(w, figures(w).connections == 1);
    c = client_new(w);
    asks(w, c, "GET /c HTTP/1.1\r\nHost: h\r\n\r\n", "GET /c");
    client_free(b);
    client_free(c);
}

static void connections_have_a_limit(void **state)
{
    struct world *w = *state;
    w->limits.connections = 2;
    one_connection_too_many_is_closed(w);
}

static void connections_of_an_address_have_a_limit(void **state)
{
    struct world *w = *state;
    w->limits.connections_per_address = 2;
    one_connection_too_many_is_closed(w);
}

static void without_descriptors_clients_wait_and_nothing_spins(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    int lowest_free = dup(0);
    close(lowest_free);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none_left = {(rlim_t)lowest_free, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    client_say(c, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
    int turns = turns_in_5_ticks(w);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(turns < 50);
    assert_int_equal(w->asked, 0);
    RUN_UNTIL(w, client_has(c, "GET /1"));
    client_free(c);
}

static void many_clients_at_once(void **state)
{
    enum { N = 50 };
    struct world *w = *state;
    struct client *c[N];
    for (int i = 0; i < N; i++) {
        c[i] = client_new(w);
        client_say(c[i], i % 2 ? "GET /later HTTP/1.1\r\nHost: h\r\n\r\n"
                               : "GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    RUN_UNTIL(w, w->n_kept == N / 2);
    for (int i = 0; i < N / 2; i++)
        answer_text(w->kept[i], 200, "GET /now");
    for (int i = 0; i < N; i++) {
        RUN_UNTIL(w, client_has(c[i], "GET /now"));
        client_free(c[i]);
    }
    RUN_UNTIL(w, w->done == N);
}

static void on_other_work(uv_idle_t *handle)
{
    (void)handle;
    int64_t until_us = clock_monotonic_us() + 200;
    while (clock_monotonic_us() < until_us)
        continue;
}

/* Others that the loop serves have their turn in between, and half of the time if they want it. */
static void dear_requests_of_a_crowd_are_served_bit_by_bit(void **state)
{
    enum { N = 40 };
    struct world *w = *state;
    static uv_idle_t others; /* is closed after this */
    uv_idle_init(&w->loop.uv, &others);
    struct client *c[N];
    for (int i = 0; i < N; i++) {
        c[i] = client_new(w);
        asks(w, c[i], "GET /hello HTTP/1.1\r\nHost: h\r\n\r\n", "GET /hello");
    }
    for (int i = 0; i < N; i++)
        client_say(c[i], "GET /dear HTTP/1.1\r\nHost: h\r\n\r\n");
    uv_idle_start(&others, on_other_work);
    int64_t began_us = clock_monotonic_us();
    RUN_UNTIL(w, w->done == 2 * N);
    assert_true(clock_monotonic_us() - began_us >= 70 * 1000);
    assert_in_range(w->most_in_a_turn, 1, 8);
    uv_close((uv_handle_t *)&others, NULL);
    for (int i = 0; i < N; i++) {
        RUN_UNTIL(w, client_has(c[i], "dear"));
        client_free(c[i]);
    }
}

static void a_server_stops_while_requests_are_in_line(void **state)
{
    enum { N = 20 };
    struct world *w = *state;
    struct client *c[N];
    for (int i = 0; i < N; i++) {
        c[i] = client_new(w);
        client_say(c[i], "GET /dear HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    RUN_UNTIL(w, w->asked > 0);
    assert_true(w->asked < N);
    http_server_stop(w->server);
    w->server = NULL;
    for (int i = 0; i < N; i++) {
        RUN_UNTIL(w, c[i]->ended);
        client_free(c[i]);
    }
}

/* Clients that do anything at any time: after all of it nothing is left over. */
static void random_clients_leave_nothing_behind(void **state)
{
    static const char *const pieces[] = {
        "GET /now HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /later HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST /later HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HEAD /later HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n",
        "\r\n\x01\xff GET",
        "x",
    };
    enum { N = 12 };
    struct world *w = *state;
    struct client *c[N] = {NULL};
    struct dice dice = {99};
    for (int round = 0; round < 6000; round++) {
        size_t i = dice_below(&dice, N);
        const char *piece = pieces[dice_below(&dice, sizeof(pieces) / sizeof(pieces[0]))];
        size_t len = dice_below(&dice, 4) ? strlen(piece) : dice_below(&dice, strlen(piece));
        if (!c[i])
            c[i] = client_new(w);
        (void)send(c[i]->fd, piece, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        for (int k = 0; k < w->n_kept && dice_below(&dice, 3) == 0; k++) {
            buf_clear(&w->feed);
            buf_append(&w->feed, "data: x\n\n", dice_below(&dice, 9));
            w->feed_ends = dice_below(&dice, 4) == 0;
            if (w->kept[k] && dice_below(&dice, 2))
                http_wake(w->kept[k]); /* nothing, unless it is a stream */
            else if (w->kept[k])
                answer_text(w->kept[k], 200, "at last");
        }
        if (dice_below(&dice, 8) == 0 || c[i]->ended) {
            client_free(c[i]);
            c[i] = NULL;
        }
        if (dice_below(&dice, 50) == 0)
            pass(w, 3000);
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < N; i++) {
        if (c[i])
            client_free(c[i]);
    }
    w->feed_ends = true;
    for (int i = 0; i < 40 && figures(w).connections > 0; i++) {
        for (int k = 0; k < w->n_kept; k++) {
            if (w->kept[k])
                http_wake(w->kept[k]);
        }
        pass(w, 2000);
        uv_run(&w->loop.uv, UV_RUN_ONCE);
    }
    assert_true(w->asked > 500);
    assert_int_equal(figures(w).connections, 0);
    assert_int_equal(figures(w).requests, 0);
    assert_int_equal(figures(w).streams, 0);
    assert_int_equal(figures(w).answer_bytes, 0);
    assert_int_equal(w->done, w->asked);
}

/* ── the server ────────────────────────────────────────────────────────────────────────────── */

static void quiesced_it_answers_but_accepts_nobody(void **state)
{
    struct world *w = *state;
    struct client *c = client_new(w);
    client_say(c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    http_server_quiesce(w->server);
    http_server_quiesce(w->server);
    union address to;
    assert_true(address_parse("127.0.0.1", w->port, &to));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, &to.any, sizeof(to.v4)), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
    answer_text(w->kept[0], 200, "the last words");
    RUN_UNTIL(w, client_has(c, "the last words"));
    client_free(c);
}

static void stopping_ends_every_request(void **state)
{
    static const char *const requests[] = {
        "GET / HT",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf",
        "GET /later HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /later HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /big HTTP/1.1\r\nHost: h\r\n\r\n",
        "",
    };
    enum { N = sizeof(requests) / sizeof(requests[0]) };
    struct world *w = *state;
    struct client *c[N];
    for (int i = 0; i < N; i++) {
        c[i] = client_new(w);
        client_say(c[i], requests[i]);
        if (strstr(requests[i], "/big"))
            uv_poll_stop(&c[i]->ready);
    }
    RUN_UNTIL(w, w->asked == 4);
    answer_text(w->kept[0], 200, "given but not sent");
    http_server_stop(w->server);
    w->server = NULL;
    assert_int_equal(w->done, 4);
    for (int i = 0; i < N; i++) {
        client_read(c[i]);
        RUN_UNTIL(w, c[i]->ended);
        client_free(c[i]);
    }
}

static void an_address_that_cannot_be_had_is_told(void **state)
{
    struct world *w = *state;
    const struct http_ops ops = {.request = on_request, .done = on_done, .user = w};
    struct http_server *s = NULL;
    const char *why = NULL;
    const struct http_place taken = {.ip = "127.0.0.1", .port = w->port};
    int err = http_server_start(&w->loop, &taken, &w->limits, &ops, &s, &why);
    assert_int_equal(err, ERR_IO);
    assert_string_equal(why, "address already in use");
    const struct http_place named = {.ip = "localhost"};
    err = http_server_start(&w->loop, &named, &w->limits, &ops, &s, &why);
    assert_int_equal(err, ERR_IO);
    assert_string_equal(why, "not an IP address");
    assert_null(s);
    http_server_stop(NULL);
}

static void who_comes_while_nobody_serves_a_held_socket_waits(void **state)
{
    struct world *w = *state;
    const struct http_ops ops = {.request = on_request, .done = on_done, .user = w};
    const char *why = NULL;
    const struct http_place place = {.ip = "127.0.0.1",
                                     .held_fd = listening_open("127.0.0.1", 0, &why)};
    assert_true(place.held_fd > 0);
    http_server_stop(w->server);
    assert_int_equal(http_server_start(&w->loop, &place, &w->limits, &ops, &w->server, &why), 0);
    w->port = port_of(w->server);
    asks(w, client_new(w), "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a");
    http_server_stop(w->server);
    struct client *c = client_new(w);
    client_say(c, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(http_server_start(&w->loop, &place, &w->limits, &ops, &w->server, &why), 0);
    assert_int_equal(port_of(w->server), w->port);
    RUN_UNTIL(w, client_has(c, "GET /b"));
    close(place.held_fd);
}

static void ipv6_has_its_own_spelling(void **state)
{
    struct world *w = *state;
    world_start(w, "::1");
    char text[ADDRESS_MAX];
    assert_non_null(strstr(http_server_address(w->server, text), "[::1]:"));
    union address to;
    assert_true(address_parse("::1", w->port, &to));
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, &to.any, sizeof(to.v6)), 0);
    struct client *c = client_of(w, fd);
    asks(w, c, "GET /6 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /6  [] ::1");
    client_free(c);

    /* Who comes to an IPv6 socket over IPv4 has the address he always has. */
    world_start(w, "::");
    c = client_new(w);
    asks(w, c, "GET /4 HTTP/1.1\r\nHost: h\r\n\r\n", "GET /4  [] 127.0.0.1");
    client_free(c);
}

/* ── TLS ───────────────────────────────────────────────────────────────────────────────────── */

static struct certs certs;

static int make_certs(void **state)
{
    (void)state;
    certs_init(&certs);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

static void tls_dial(struct world *w, struct tls_client *c, const struct tls_client_wish *wish)
{
    union address to;
    assert_true(address_parse("127.0.0.1", w->port, &to));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, &to.any, sizeof(to.v4)), 0);
    tls_client_init(c, fd, wish);
}

/* What was heard so far goes to got. */
static bool tls_has(struct tls_client *c, struct buf *got, const char *text)
{
    char bytes[16384];
    size_t n = 0;
    while ((n = tls_client_hear(c, bytes, sizeof(bytes))) > 0)
        buf_append(got, bytes, n);
    return got->len > 0 && memmem(got->data, got->len, text, strlen(text)) != NULL;
}

static void tls_say(struct tls_client *c, const char *text)
{
    tls_client_say(c, text, strlen(text));
}

static void tls_asks(struct world *w, struct tls_client *c, const char *path, const char *answer)
{
    char request[200];
    struct buf got = {0};
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    tls_say(c, request);
    RUN_UNTIL(w, tls_has(c, &got, answer));
    buf_done(&got);
}

static void requests_come_over_tls(void **state)
{
    struct world *w = *state;
    w->tls = certs_load(certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "first", -1, 10), NULL);
    world_start(w, "127.0.0.1");
    const struct tls_client_wish wish = {.ca = certs.ca_path};
    struct tls_client c;
    tls_dial(w, &c, &wish);
    RUN_UNTIL(w, tls_client_shake(&c));
    assert_int_equal(c.error, 0);
    tls_asks(w, &c, "/1", "GET /1  [] 127.0.0.1");

    tls_say(&c, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 1);
    assert_true(turns_in_5_ticks(w) < 50);
    struct buf got = {0};
    answer_text(w->kept[0], 200, "behind the curtain");
    RUN_UNTIL(w, tls_has(&c, &got, "behind the curtain"));
    buf_clear(&got);

    tls_say(&c, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->n_kept == 2);
    assert_true(turns_in_5_ticks(w) < 50);
    buf_append(&w->feed, "an event", 8);
    http_wake(w->kept[1]);
    RUN_UNTIL(w, tls_has(&c, &got, "an event"));
    buf_done(&got);
    tls_client_done(&c);
}

/* The client must hear the answer before it hears that the connection ends. */
static void no_head_is_too_crowded_over_tls(void **state)
{
    struct world *w = *state;
    w->tls = certs_load(certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "first", -1, 10), NULL);
    world_start(w, "127.0.0.1");
    const struct tls_client_wish wish = {.ca = certs.ca_path};
    char head[HEAD_BYTES_MAX];
    for (size_t i = 0; i < sizeof(crowded) / sizeof(crowded[0]); i++) {
        for (int n = 1; n <= CROWD_MAX; n += is_near(n) ? 3 : 40) {
            struct tls_client c;
            struct buf got = {0};
            tls_dial(w, &c, &wish);
            RUN_UNTIL(w, tls_client_shake(&c));
            put_crowded(head, &crowded[i], n);
            tls_say(&c, head);
            RUN_UNTIL(w, tls_has(&c, &got, "HTTP/1.1 ") || c.error || c.ended);
            judge_crowded(&crowded[i], n, status_of(&got, 1));
            buf_done(&got);
            tls_client_done(&c);
        }
    }
    RUN_UNTIL(w, figures(w).connections == 0);
    assert_int_equal(w->asked, w->done);
}

static void a_long_answer_over_tls_is_whole(void **state)
{
    struct world *w = *state;
    w->tls = certs_load(certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "long", -1, 10), NULL);
    world_start(w, "127.0.0.1");
    struct tls_client c;
    struct buf got = {0};
    tls_dial(w, &c, &(struct tls_client_wish){0});
    RUN_UNTIL(w, tls_client_shake(&c));
    tls_say(&c, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, tls_has(&c, &got, "no such text") || got.len > 8 << 20);
    RUN_UNTIL(w, w->done == 1);
    buf_done(&got);
    tls_asks(w, &c, "/after", "GET /after");
    tls_client_done(&c);
}

static void a_new_certificate_is_for_new_connections(void **state)
{
    struct world *w = *state;
    struct certs_pair old = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "old", -1, 10);
    struct certs_pair renewed = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "renewed", -1, 20);
    w->tls = certs_load(old, NULL);
    world_start(w, "127.0.0.1");
    const struct tls_client_wish wish = {.ca = certs.ca_path};
    struct tls_client before;
    tls_dial(w, &before, &wish);
    RUN_UNTIL(w, tls_client_shake(&before));

    const struct tls_files files = {renewed.certificate, renewed.key, NULL};
    char why[TLS_WHY_MAX];
    assert_int_equal(tls_reload(w->tls, &files, why), 0);
    struct tls_client after;
    tls_dial(w, &after, &wish);
    RUN_UNTIL(w, tls_client_shake(&after));
    char name[64];
    tls_client_server_name(&before, name);
    assert_string_equal(name, "old");
    tls_client_server_name(&after, name);
    assert_string_equal(name, "renewed");
    tls_asks(w, &before, "/1", "GET /1");
    tls_asks(w, &after, "/2", "GET /2");
    tls_client_done(&before);
    tls_client_done(&after);
}

static void who_must_show_a_certificate_is_not_asked_without(void **state)
{
    struct world *w = *state;
    struct certs_pair server = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "strict", -1, 10);
    struct certs_pair known = certs_pair(&certs, certs.ca, CERTIFICATE_CLIENT, "known", -1, 10);
    w->tls = certs_load(server, certs.ca_path);
    world_start(w, "127.0.0.1");

    struct tls_client stranger;
    struct buf got = {0};
    tls_dial(w, &stranger, &(struct tls_client_wish){.ca = certs.ca_path});
    RUN_UNTIL(w, tls_client_shake(&stranger));
    /* In TLS 1.3 the client learns it only after its own half of the handshake. */
    (void)gnutls_record_send(stranger.session, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", 28);
    RUN_UNTIL(w, tls_has(&stranger, &got, "HTTP") || stranger.error || stranger.ended);
    assert_int_equal(got.len, 0);
    assert_int_equal(w->asked, 0);
    tls_client_done(&stranger);
    RUN_UNTIL(w, figures(w).connections == 0);
    buf_done(&got);

    struct tls_client friend;
    tls_dial(w, &friend,
             &(struct tls_client_wish){certs.ca_path, known.certificate, known.key, NULL});
    RUN_UNTIL(w, tls_client_shake(&friend));
    tls_asks(w, &friend, "/1", "GET /1");
    tls_client_done(&friend);
}

static void a_handshake_that_stalls_is_cut_and_costs_little(void **state)
{
    struct world *w = *state;
    w->tls = certs_load(certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "stall", -1, 10), NULL);
    world_start(w, "127.0.0.1");
    struct client *silent = client_new(w);
    struct client *half = client_new(w);
    struct client *plain = client_new(w);
    assert_int_equal(send(half->fd, "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL), 6);
    client_say(plain, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    struct tls_client hello; /* which never says more than that */
    tls_dial(w, &hello, &(struct tls_client_wish){0});
    (void)tls_client_shake(&hello);
    RUN_UNTIL(w, plain->ended && figures(w).connections == 3);
    assert_true(turns_in_5_ticks(w) < 500);
    pass(w, w->limits.head_ms + 1000);
    RUN_UNTIL(w, silent->ended && half->ended && figures(w).connections == 0);
    assert_int_equal(w->asked, 0);
    tls_client_done(&hello);
    client_free(silent);
    client_free(half);
    client_free(plain);
}

static void a_tls_client_that_does_not_read_costs_little(void **state)
{
    struct world *w = *state;
    w->tls = certs_load(certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "slow", -1, 10), NULL);
    world_start(w, "127.0.0.1");
    struct tls_client c;
    tls_dial(w, &c, &(struct tls_client_wish){0});
    RUN_UNTIL(w, tls_client_shake(&c));
    tls_say(&c, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
    RUN_UNTIL(w, w->asked == 1);
    assert_true(turns_in_5_ticks(w) < 1000);
    assert_int_equal(w->done, 0);
    pass(w, w->limits.idle_ms + (8 << 20) / 32 + 1000);
    RUN_UNTIL(w, w->done == 1);
    tls_client_done(&c);
}

/* Of a body that comes in few records, libmicrohttpd finds most in GnuTLS, where no descriptor
 * tells of it. */
static void a_body_over_tls_is_whole(void **state)
{
    struct world *w = *state;
    w->limits.body_max = 100000;
    w->tls = certs_load(certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "body", -1, 10), NULL);
    world_start(w, "127.0.0.1");
    struct tls_client c;
    struct buf got = {0};
    tls_dial(w, &c, &(struct tls_client_wish){0});
    RUN_UNTIL(w, tls_client_shake(&c));
    static char body[65000];
    memset(body, 'x', sizeof(body));
    int turns = w->turns;
    tls_say(&c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 65000\r\n\r\n");
    for (size_t at = 0; at < sizeof(body); at += 13000)
        tls_client_say(&c, body + at, 13000);
    RUN_UNTIL(w, tls_has(&c, &got, "x] 127.0.0.1"));
    assert_true(got.len > sizeof(body));
    assert_true(w->turns - turns < 500);
    buf_done(&got);
    tls_client_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_WORLD(test_) cmocka_unit_test_setup_teardown(test_, world_new, world_free)
        IN_WORLD(a_request_is_handed_over_whole),
        IN_WORLD(an_answer_may_come_later),
        IN_WORLD(pipelined_requests_are_answered_in_order),
        IN_WORLD(head_is_get_without_the_body),
        IN_WORLD(an_answer_may_be_empty_and_change_its_head),
        IN_WORLD(who_hangs_up_behind_his_request_does_not_stay),
        IN_WORLD(bodies_come_in_chunks_and_after_a_question),
        IN_WORLD(a_stream_sends_what_there_is_and_sleeps),
        IN_WORLD(a_sleeping_stream_is_left_alone),
        IN_WORLD(a_stream_carries_more_than_any_buffer),
        IN_WORLD(a_stream_whose_client_is_gone_ends_when_woken),
        IN_WORLD(a_stream_that_is_not_read_is_cut),
        IN_WORLD(a_broken_target_is_refused_without_asking),
        IN_WORLD(a_body_whose_end_is_in_doubt_is_refused),
        IN_WORLD(a_malformed_head_is_refused_and_the_connection_ends),
        IN_WORLD(a_head_without_end_is_refused),
        IN_WORLD(a_long_token_among_other_fields_is_taken),
        IN_WORLD(no_head_is_too_crowded_for_an_answer),
        IN_WORLD(a_crowded_head_is_judged_alike_behind_another_request),
        IN_WORLD(a_crowded_head_waits_behind_one_that_waits),
        IN_WORLD(a_crowded_head_that_stops_is_cut),
        IN_WORLD(a_head_that_drips_is_cut),
        IN_WORLD(a_connection_between_requests_is_kept_for_a_while),
        IN_WORLD(a_body_that_drips_is_cut),
        IN_WORLD(a_request_nobody_answers_gets_503),
        IN_WORLD(a_client_that_vanished_is_found_by_the_deadline),
        IN_WORLD(a_request_is_over_when_its_client_goes_at_once),
        IN_WORLD(an_answer_to_a_client_that_is_gone_is_dropped),
        IN_WORLD(time_stands_while_we_are_stopped),
        IN_WORLD(what_a_client_does_not_read_is_counted),
        IN_WORLD(what_waits_is_counted_for_its_address),
        IN_WORLD(a_shared_answer_is_nobodys_burden),
        IN_WORLD(an_answer_that_is_not_read_is_cut),
        IN_WORLD(a_body_that_is_too_large_is_told),
        IN_WORLD(who_announces_far_too_much_need_not_send_it),
        IN_WORLD(a_body_without_end_is_cut),
        IN_WORLD(connections_have_a_limit),
        IN_WORLD(connections_of_an_address_have_a_limit),
        IN_WORLD(without_descriptors_clients_wait_and_nothing_spins),
        IN_WORLD(many_clients_at_once),
        IN_WORLD(dear_requests_of_a_crowd_are_served_bit_by_bit),
        IN_WORLD(a_server_stops_while_requests_are_in_line),
        IN_WORLD(random_clients_leave_nothing_behind),
        IN_WORLD(quiesced_it_answers_but_accepts_nobody),
        IN_WORLD(stopping_ends_every_request),
        IN_WORLD(an_address_that_cannot_be_had_is_told),
        IN_WORLD(who_comes_while_nobody_serves_a_held_socket_waits),
        IN_WORLD(ipv6_has_its_own_spelling),
        IN_WORLD(requests_come_over_tls),
        IN_WORLD(no_head_is_too_crowded_over_tls),
        IN_WORLD(a_long_answer_over_tls_is_whole),
        IN_WORLD(a_new_certificate_is_for_new_connections),
        IN_WORLD(who_must_show_a_certificate_is_not_asked_without),
        IN_WORLD(a_handshake_that_stalls_is_cut_and_costs_little),
        IN_WORLD(a_tls_client_that_does_not_read_costs_little),
        IN_WORLD(a_body_over_tls_is_whole),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}

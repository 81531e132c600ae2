#include "net/http.h"

#include "lib/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { KEPT_MAX = 64 };

/* A server whose paths say what the test wants of it. */
struct world {
    struct loop loop;
    struct http_server *server;
    struct http_limits limits;
    uint16_t port;
    struct http_request *kept[KEPT_MAX]; /* asked /later or /stream; NULL when done */
    int n_kept;
    int asked;
    int done;
    struct buf feed; /* what /stream sends next */
    bool feed_ends;
    int pulls;
    int64_t ticks_ms; /* pretended on top of the clock */
};

static void nothing(void *user)
{
    (void)user;
}

static void on_tick(void *user)
{
    struct world *w = user;
    if (w->server)
        http_server_tick(w->server, clock_monotonic_ms() + w->ticks_ms);
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
    char peer[ADDRESS_MAX];
    buf_append(&body, http_method_name(r), strlen(http_method_name(r)));
    buf_append(&body, " ", 1);
    buf_append(&body, http_path(r), strlen(http_path(r)));
    buf_append(&body, " ", 1);
    http_query(r, print_argument, &body);
    buf_append(&body, " [", 2);
    buf_append(&body, http_body(r).at, http_body(r).len);
    buf_append(&body, "] ", 2);
    http_peer(r, peer);
    buf_append(&body, peer, strlen(peer));
    const struct http_field fields[] = {{"X-Extra", "yes"}, {NULL, NULL}};
    http_answer(r, 200, "text/plain", &body, fields);
}

static bool pull_feed(void *user, struct http_request *r, struct buf *out, size_t max)
{
    (void)r;
    struct world *w = user;
    size_t n = w->feed.len < max ? w->feed.len : max;
    w->pulls++;
    buf_append(out, w->feed.data, n);
    buf_consume(&w->feed, n);
    return !(w->feed_ends && w->feed.len == 0);
}

static void keep(struct world *w, struct http_request *r)
{
    assert_true(w->n_kept < KEPT_MAX);
    w->kept[w->n_kept++] = r;
}

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

static void world_start(struct world *w, const char *ip)
{
    const struct http_ops ops = {on_request, on_done, w};
    const char *why = NULL;
    assert_int_equal(http_server_start(&w->loop, ip, 0, NULL, &w->limits, &ops, &w->server, &why),
                     0);
    w->port = port_of(w->server);
}

static int world_new(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    const struct loop_hooks hooks = {.turn = nothing, .tick = on_tick, .user = w};
    const struct loop_limits limits = {.streams = 10, .streams_per_address = 10};
    loop_init(&w->loop, &hooks, &limits);
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
    assert_int_equal(w->asked, w->done);
    loop_done(&w->loop);
    buf_done(&w->feed);
    free(w);
    return 0;
}

/* ── a client on the same loop ─────────────────────────────────────────────────────────────── */

struct client {
    uv_poll_t ready;
    int fd;
    struct buf got;
    bool ended;
};

static void on_readable(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    struct client *c = handle->data;
    char bytes[65536];
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) {
        buf_append(&c->got, bytes, (size_t)n);
    } else if (n == 0 || errno != EAGAIN) {
        c->ended = true;
        uv_poll_stop(handle);
    }
}

static void client_read(struct client *c)
{
    uv_poll_start(&c->ready, UV_READABLE, on_readable);
}

static struct client *client_new(struct world *w)
{
    struct client *c = xcalloc(1, sizeof(*c));
    union address to;
    assert_true(address_parse("127.0.0.1", w->port, &to));
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(c->fd >= 0);
    int on = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    assert_int_equal(connect(c->fd, &to.any, sizeof(to.v4)), 0);
    uv_poll_init(&w->loop.uv, &c->ready, c->fd);
    c->ready.data = c;
    client_read(c);
    return c;
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
    uv_close((uv_handle_t *)&c->ready, on_client_closed);
}

static void client_say(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool client_has(struct client *c, const char *text)
{
    return memmem(c->got.data, c->got.len, text, strlen(text)) != NULL;
}

static int client_count(struct client *c, const char *text)
{
    int n = 0;
    const uint8_t *at = c->got.data;
    const uint8_t *end = at + c->got.len;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_WORLD(test_) cmocka_unit_test_setup_teardown(test_, world_new, world_free)
        IN_WORLD(a_request_is_handed_over_whole),
        IN_WORLD(an_answer_may_come_later),
        IN_WORLD(pipelined_requests_are_answered_in_order),
        IN_WORLD(head_is_get_without_the_body),
        IN_WORLD(bodies_come_in_chunks_and_after_a_question),
        IN_WORLD(a_stream_sends_what_there_is_and_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

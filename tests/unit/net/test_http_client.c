#include "net/http_client.h"

#include "lib/loop.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* A server whose paths say what the test wants of it, and a client on the same loop. */
struct world {
    struct loop loop;
    struct http_server *server;
    struct http_client *client;
    uint16_t port;
    int asked;
    int connections_seen;
    char authorization[200];
    char content_type[100];
    char flavour[100];         /* its header Flavour */
    struct http_request *kept; /* of /later */

    int done;
    int status;
    char why[HTTP_CLIENT_WHY_MAX];
    char location[300];
    struct buf body;
    struct http_call *followed;
    size_t pieces;    /* bytes that were followed */
    size_t enough;    /* … after which no more are wanted; 0 = all are */
    bool ends_client; /* when it is done */
    int asks_again;   /* from done: so many more */
};

static void on_turn(void *user)
{
    (void)user;
}

static void on_tick(void *user)
{
    struct world *w = user;
    if (w->server)
        http_server_tick(w->server, clock_monotonic_ms());
}

static void keep_header(const struct http_request *r, const char *name, char *ret, size_t cap)
{
    const char *value = http_header(r, name);
    snprintf(ret, cap, "%s", value ? value : "(none)");
}

static void answer_echo(struct http_request *r)
{
    struct buf body = {0};
    buf_append(&body, http_method_name(r), strlen(http_method_name(r)));
    buf_append(&body, " ", 1);
    buf_append(&body, http_path(r), strlen(http_path(r)));
    buf_append(&body, " [", 2);
    buf_append(&body, http_body(r).at, http_body(r).len);
    buf_append(&body, "]", 1);
    http_answer(r, 200, "text/plain", &body, NULL);
}

static void answer_bytes(struct http_request *r, size_t n)
{
    struct buf body = {0};
    memset(buf_extend(&body, n), 'x', n);
    http_answer(r, 200, "text/plain", &body, NULL);
}

static void on_request(void *user, struct http_request *r)
{
    struct world *w = user;
    struct http_figures figures;
    struct buf none = {0};
    const struct http_field elsewhere[] = {{"Location", "http://127.0.0.1:1/there?a=b"},
                                           {NULL, NULL}};
    w->asked++;
    http_server_figures(w->server, &figures);
    w->connections_seen = (int)figures.connections;
    keep_header(r, "Authorization", w->authorization, sizeof(w->authorization));
    keep_header(r, "Content-Type", w->content_type, sizeof(w->content_type));
    keep_header(r, "Flavour", w->flavour, sizeof(w->flavour));
    if (strcmp(http_path(r), "/later") == 0)
        w->kept = r;
    else if (strcmp(http_path(r), "/elsewhere") == 0)
        http_answer(r, 307, "text/plain", &none, elsewhere);
    else if (strcmp(http_path(r), "/long") == 0)
        answer_bytes(r, HTTP_CLIENT_ANSWER_MAX + 1);
    else if (strcmp(http_path(r), "/file") == 0)
        answer_bytes(r, 3 << 20);
    else if (strcmp(http_path(r), "/missing") == 0)
        http_answer(r, 404, "text/plain", &none, NULL);
    else
        answer_echo(r);
}

static void on_request_done(void *user, struct http_request *r)
{
    struct world *w = user;
    w->kept = w->kept == r ? NULL : w->kept;
}

static const char *url_of(const struct world *w, const char *path)
{
    static char url[200];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", w->port, path);
    return url;
}

static void on_done(void *user, const struct http_reply *reply)
{
    struct world *w = user;
    w->done++;
    w->status = reply->status;
    snprintf(w->why, sizeof(w->why), "%s", reply->why);
    snprintf(w->location, sizeof(w->location), "%s", reply->location);
    buf_clear(&w->body);
    buf_append(&w->body, reply->body.at, reply->body.len);
    buf_append(&w->body, "", 1);
    if (w->asks_again-- > 0)
        assert_non_null(
            http_client_ask(w->client, HTTP_GET, url_of(w, "/again"), STR(""), NULL, on_done, w));
    if (w->ends_client) {
        http_client_free(w->client);
        w->client = NULL;
    }
}

static struct http_call *ask(struct world *w, enum http_method method, const char *path,
                             const char *body)
{
    struct http_call *call =
        http_client_ask(w->client, method, url_of(w, path), str_of(body), NULL, on_done, w);
    assert_non_null(call);
    return call;
}

static void world_listen(struct world *w, struct tls *tls)
{
    const struct http_limits limits = {.connections = 100,
                                       .connections_per_address = 50,
                                       .body_max = 100000,
                                       .head_ms = 5000,
                                       .idle_ms = 20000,
                                       .suspend_ms = 10000};
    const struct http_ops ops = {.request = on_request, .done = on_request_done, .user = w};
    const struct http_place place = {.ip = "127.0.0.1", .tls = tls};
    const char *why = NULL;
    char text[ADDRESS_MAX];
    http_server_stop(w->server);
    assert_int_equal(http_server_start(&w->loop, &place, &limits, &ops, &w->server, &why), 0);
    http_server_address(w->server, text);
    w->port = (uint16_t)atoi(strrchr(text, ':') + 1);
}

static void world_client(struct world *w, const struct http_client_config *config)
{
    http_client_free(w->client);
    w->client = http_client_new(&w->loop, config);
}

static int world_new(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    const struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = w};
    const struct loop_limits limits = {.streams = 10, .streams_per_address = 10};
    loop_init(&w->loop, &hooks, &limits);
    world_listen(w, NULL);
    world_client(w, &(struct http_client_config){.token = "secret-1"});
    *state = w;
    return 0;
}

static int world_free(void **state)
{
    struct world *w = *state;
    http_client_free(w->client);
    http_server_stop(w->server);
    w->server = NULL;
    loop_done(&w->loop);
    buf_done(&w->body);
    free(w);
    return 0;
}

static void a_request_is_answered_later_and_once(void **state)
{
    struct world *w = *state;
    ask(w, HTTP_POST, "/echo", "{\"a\":1}");
    assert_int_equal(w->done, 0);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 200);
    assert_string_equal((char *)w->body.data, "POST /echo [{\"a\":1}]");
    assert_string_equal(w->authorization, "Bearer secret-1");
    assert_string_equal(w->content_type, "application/json");
    assert_string_equal(w->location, "");
    int ticks = w->asked;
    for (int i = 0; i < 5; i++)
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(w->done, 1);
    assert_int_equal(w->asked, ticks);
}

static void every_method_reaches_the_server(void **state)
{
    struct world *w = *state;
    static const struct {
        enum http_method method;
        const char *body;
        const char *answer;
    } rows[] = {{HTTP_GET, "", "GET /m []"},
                {HTTP_POST, "", "POST /m []"},
                {HTTP_PUT, "x", "PUT /m [x]"},
                {HTTP_DELETE, "", "DELETE /m []"},
                {HTTP_PATCH, "y", "PATCH /m [y]"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        w->done = 0;
        ask(w, rows[i].method, "/m", rows[i].body);
        RUN_UNTIL(w, w->done == 1);
        assert_string_equal((char *)w->body.data, rows[i].answer);
    }
}

static void the_token_can_be_replaced(void **state)
{
    struct world *w = *state;
    http_client_set_token(w->client, "secret-2");
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 1);
    assert_string_equal(w->authorization, "Bearer secret-2");
    http_client_set_token(w->client, NULL);
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 2);
    assert_string_equal(w->authorization, "(none)");
}

static void a_request_has_a_head_and_limits_of_its_own(void **state)
{
    struct world *w = *state;
    const struct http_field head[] = {{"Flavour", "sweet"}, {NULL, NULL}};
    struct http_client_request request = {.url = url_of(w, "/long"),
                                          .token = "its own",
                                          .head = head,
                                          .answer_max = HTTP_CLIENT_ANSWER_MAX + 1};
    assert_non_null(http_client_send(w->client, &request, on_done, w));
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 200);
    assert_string_equal(w->authorization, "Bearer its own");
    assert_string_equal(w->flavour, "sweet");

    request = (struct http_client_request){.url = url_of(w, "/later"), .timeout_ms = 100};
    assert_non_null(http_client_send(w->client, &request, on_done, w));
    RUN_UNTIL(w, w->done == 2);
    assert_string_equal(w->why, "no answer in time");
    assert_string_equal(w->flavour, "(none)");
}

static void requests_after_one_another_share_a_connection(void **state)
{
    struct world *w = *state;
    w->asks_again = 20;
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 21);
    assert_int_equal(w->connections_seen, 1);
}

static void many_at_once_use_few_connections(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 40; i++)
        ask(w, HTTP_POST, "/", "body");
    RUN_UNTIL(w, w->done == 40);
    assert_true(w->connections_seen > 1 && w->connections_seen <= 4);
}

/* libcurl's own way is to keep four for each request under way: then every burst connects anew. */
static void connections_stay_for_the_next_burst(void **state)
{
    struct world *w = *state;
    world_client(w, &(struct http_client_config){.per_host = 16});
    for (int i = 0; i < 40; i++)
        ask(w, HTTP_POST, "/", "body");
    RUN_UNTIL(w, w->done == 40);
    int opened = w->connections_seen;
    assert_true(opened > 8);
    w->asks_again = 20;
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 61);
    assert_int_equal(w->connections_seen, opened);
}

static void a_redirect_is_shown_and_not_followed(void **state)
{
    struct world *w = *state;
    ask(w, HTTP_POST, "/elsewhere", "x");
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 307);
    assert_string_equal(w->location, "http://127.0.0.1:1/there?a=b");
}

static void nobody_there_is_a_clause(void **state)
{
    struct world *w = *state;
    http_server_stop(w->server);
    w->server = NULL;
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 0);
    assert_string_equal(w->why, "connection refused");
}

static void a_url_that_is_none_is_a_clause(void **state)
{
    struct world *w = *state;
    const char *const urls[] = {"gopher://127.0.0.1/", "http://", "file:///etc/passwd"};
    for (int i = 0; i < 3; i++) {
        assert_non_null(http_client_ask(w->client, HTTP_GET, urls[i], STR(""), NULL, on_done, w));
        RUN_UNTIL(w, w->done == i + 1);
        assert_int_equal(w->status, 0);
        assert_true(strlen(w->why) > 10);
    }
}

static void silence_ends_with_the_time_limit(void **state)
{
    struct world *w = *state;
    world_client(w, &(struct http_client_config){.timeout_ms = 150});
    int64_t began_ms = clock_monotonic_ms();
    ask(w, HTTP_GET, "/later", "");
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 0);
    assert_string_equal(w->why, "no answer in time");
    assert_true(clock_monotonic_ms() - began_ms >= 150);
}

static void an_answer_that_is_too_long_is_refused(void **state)
{
    struct world *w = *state;
    ask(w, HTTP_GET, "/long", "");
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 0);
    assert_string_equal(w->why, "the answer is too long");
}

static void a_dropped_request_is_not_heard_of(void **state)
{
    struct world *w = *state;
    struct http_call *call = ask(w, HTTP_GET, "/later", "");
    RUN_UNTIL(w, w->kept);
    http_call_drop(call);
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 1);
    assert_string_equal((char *)w->body.data, "GET / []");
    answer_echo(w->kept); /* to nobody */
    RUN_UNTIL(w, !w->kept);
    assert_int_equal(w->done, 1);
}

static void an_ended_client_tells_nobody(void **state)
{
    struct world *w = *state;
    ask(w, HTTP_GET, "/later", "");
    ask(w, HTTP_GET, "/echo", "");
    RUN_UNTIL(w, w->done == 1 && w->kept);
    http_client_free(w->client);
    w->client = NULL;
    answer_echo(w->kept); /* to nobody */
    RUN_UNTIL(w, !w->kept);
    assert_int_equal(w->done, 1);
}

static void a_client_may_be_ended_by_an_answer(void **state)
{
    struct world *w = *state;
    w->ends_client = true;
    for (int i = 0; i < 4; i++)
        ask(w, HTTP_GET, "/echo", "");
    RUN_UNTIL(w, w->done == 1);
    for (int i = 0; i < 20; i++)
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(w->done, 1);
}

static void a_server_that_came_back_is_found_again(void **state)
{
    struct world *w = *state;
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 1);
    world_listen(w, NULL); /* another port: the kept connection is dead */
    ask(w, HTTP_GET, "/", "");
    RUN_UNTIL(w, w->done == 2);
    assert_int_equal(w->status, 200);
}

static struct http_call *download(struct world *w, const char *path, int fd, int64_t max)
{
    struct http_call *call =
        http_client_download(w->client, url_of(w, path), fd, max, 10000, on_done, w);
    assert_non_null(call);
    return call;
}

static void a_download_goes_into_the_file(void **state)
{
    struct world *w = *state;
    int fd = memfd_create("download", MFD_CLOEXEC);
    download(w, "/file", fd, 3 << 20);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 200);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 3 << 20);
    assert_int_equal(w->body.len, 1);

    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    download(w, "/missing", fd, 3 << 20);
    RUN_UNTIL(w, w->done == 2);
    assert_int_equal(w->status, 404);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    close(fd);
}

static void a_download_beyond_its_limit_is_refused(void **state)
{
    struct world *w = *state;
    int fd = memfd_create("download", MFD_CLOEXEC);
    download(w, "/file", fd, (3 << 20) - 1);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 0);
    assert_string_equal(w->why, "the answer is too long");
    assert_true(lseek(fd, 0, SEEK_CUR) < 3 << 20);
    close(fd);
}

static bool on_piece(void *user, struct str piece)
{
    struct world *w = user;
    assert_int_equal(http_call_status(w->followed), 200);
    w->pieces += piece.len;
    return w->enough == 0 || w->pieces < w->enough;
}

static void an_answer_is_followed_piece_by_piece(void **state)
{
    struct world *w = *state;
    w->followed = http_client_follow(w->client, url_of(w, "/file"), on_piece, on_done, w);
    assert_int_equal(http_call_status(w->followed), 0);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 200);
    assert_int_equal(w->pieces, 3 << 20); /* more than an answer may have that comes whole */
    assert_string_equal((char *)w->body.data, "");
}

static void who_has_enough_breaks_it_off(void **state)
{
    struct world *w = *state;
    w->enough = 1000;
    w->followed = http_client_follow(w->client, url_of(w, "/file"), on_piece, on_done, w);
    assert_int_equal(http_call_status(w->followed), 0);
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 0);
    assert_true(w->pieces >= 1000 && w->pieces < 3 << 20);
}

static void a_refusal_is_not_followed(void **state)
{
    struct world *w = *state;
    assert_non_null(http_client_follow(w->client, url_of(w, "/missing"), on_piece, on_done, w));
    RUN_UNTIL(w, w->done == 1);
    assert_int_equal(w->status, 404);
    assert_int_equal(w->pieces, 0);
}

/* A server that answers on a connection once, keeps it, and closes it when the next request has
 * come: libcurl would send that one again on a new connection. */
struct forgetful {
    int listening;
    int requests;
};

/* Head and body may come apart; only the body has a brace, at its end. */
static bool read_request(int fd)
{
    char bytes[4096];
    ssize_t n = 0;
    do
        n = read(fd, bytes, sizeof(bytes));
    while (n > 0 && bytes[n - 1] != '}');
    return n > 0;
}

static void *serve_forgetfully(void *user)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    struct forgetful *f = user;
    for (int fd; (fd = accept(f->listening, NULL, NULL)) >= 0; close(fd)) {
        for (int n = 0; n < 2 && read_request(fd); n++) {
            __atomic_add_fetch(&f->requests, 1, __ATOMIC_SEQ_CST);
            if (n == 0)
                assert_int_equal(write(fd, answer, sizeof(answer) - 1), sizeof(answer) - 1);
        }
    }
    return NULL;
}

static void what_may_be_sent_once_is_not_sent_again(void **state)
{
    struct world *w = *state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    struct forgetful f = {.listening = socket(AF_INET, SOCK_STREAM, 0)};
    pthread_t thread;
    char url[64];
    assert_int_equal(bind(f.listening, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(f.listening, 8), 0);
    assert_int_equal(getsockname(f.listening, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve_forgetfully, &f), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(at.sin_port));
    struct http_client_request request = {
        .method = HTTP_POST, .url = url, .body = STR("{\"a\":1}"), .once = true};
    for (int n = 1; n <= 2; n++) {
        assert_non_null(http_client_send(w->client, &request, on_done, w));
        RUN_UNTIL(w, w->done == n);
        assert_int_equal(w->status, n == 1 ? 200 : 0);
    }
    assert_int_equal(__atomic_load_n(&f.requests, __ATOMIC_SEQ_CST), 2);
    request.once = false; /* one that may be repeated is, behind our back, and answered */
    for (int n = 3; n <= 4; n++) {
        assert_non_null(http_client_send(w->client, &request, on_done, w));
        RUN_UNTIL(w, w->done == n);
        assert_int_equal(w->status, 200);
    }
    assert_int_equal(__atomic_load_n(&f.requests, __ATOMIC_SEQ_CST), 5);
    shutdown(f.listening, SHUT_RDWR);
    http_client_free(w->client); /* or the thread would read on */
    w->client = NULL;
    pthread_join(thread, NULL);
    close(f.listening);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_new, world_free)
    const struct CMUnitTest tests[] = {
        TEST(a_request_is_answered_later_and_once),
        TEST(every_method_reaches_the_server),
        TEST(the_token_can_be_replaced),
        TEST(a_request_has_a_head_and_limits_of_its_own),
        TEST(requests_after_one_another_share_a_connection),
        TEST(many_at_once_use_few_connections),
        TEST(connections_stay_for_the_next_burst),
        TEST(a_redirect_is_shown_and_not_followed),
        TEST(nobody_there_is_a_clause),
        TEST(a_url_that_is_none_is_a_clause),
        TEST(silence_ends_with_the_time_limit),
        TEST(an_answer_that_is_too_long_is_refused),
        TEST(a_dropped_request_is_not_heard_of),
        TEST(an_ended_client_tells_nobody),
        TEST(a_client_may_be_ended_by_an_answer),
        TEST(a_server_that_came_back_is_found_again),
        TEST(a_download_goes_into_the_file),
        TEST(a_download_beyond_its_limit_is_refused),
        TEST(an_answer_is_followed_piece_by_piece),
        TEST(who_has_enough_breaks_it_off),
        TEST(a_refusal_is_not_followed),
        TEST(what_may_be_sent_once_is_not_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

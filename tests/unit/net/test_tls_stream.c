/* Streams that speak TLS, on a real loop, with GnuTLS clients on real sockets as their peers: what
 * holds for plain streams holds for their plaintext. */
#include "base/log.h"
#include "lib/certs.h"
#include "lib/loop.h"
#include "lib/tls_client.h"
#include "net/stream.h"

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

enum { RECORD = 4, PEERS_MAX = 256 };

/* The server's side of one connection: takes records of four bytes, as a door takes frames. */
struct peer {
    struct stream *stream;
    size_t records;
    size_t inputs;
    size_t most; /* bytes of one input */
    int closed;
    const char *why;
    char tls_error[200];
    bool pause_after_record;
};

struct world {
    struct loop loop;
    struct listener *listener; /* TLS */
    struct listener *plain;
    struct tls *tls;
    struct peer peers[PEERS_MAX];
    size_t n_peers;
    struct stream_limits limits;
};

static struct certs certs;
static struct certs_pair server;

static size_t on_input(void *user, const uint8_t *data, size_t len)
{
    (void)data;
    struct peer *p = user;
    size_t used = 0;
    p->inputs++;
    p->most = len > p->most ? len : p->most;
    while (len - used >= RECORD) {
        p->records++;
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
    const char *error = stream_tls_error(p->stream);
    snprintf(p->tls_error, sizeof(p->tls_error), "%s", error ? error : "");
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
    *p = (struct peer){.stream = stream};
    stream_start(stream, &ops, p, &w->limits);
}

static void do_nothing(void *user)
{
    (void)user;
}

static int setup_with(void **state, const char *client_ca)
{
    struct world *w = calloc(1, sizeof(*w));
    struct loop_hooks hooks = {.turn = do_nothing, .tick = do_nothing, .user = w};
    struct loop_limits limits = {.streams = 1000, .streams_per_address = 1000};
    const char *why = NULL;
    w->limits = (struct stream_limits){.input_max = LOOP_READ_SIZE, .output_cap = 64 * 1024};
    log_set_level(LOG_ERROR);
    loop_init(&w->loop, &hooks, &limits);
    w->tls = certs_load(server, client_ca);
    assert_int_equal(listener_start(&w->loop,
                                    &(struct listener_place){.ip = "127.0.0.1", .tls = w->tls},
                                    on_accepted, w, &w->listener, &why),
                     0);
    assert_int_equal(listener_start(&w->loop, &(struct listener_place){.ip = "127.0.0.1"},
                                    on_accepted, w, &w->plain, &why),
                     0);
    *state = w;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

static int setup_mutual(void **state)
{
    return setup_with(state, certs.ca_path);
}

static int teardown(void **state)
{
    struct world *w = *state;
    listener_stop(w->listener);
    listener_stop(w->plain);
    for (size_t i = 0; i < w->n_peers; i++) {
        if (w->peers[i].stream)
            stream_close(w->peers[i].stream, "test is over");
    }
    loop_done(&w->loop);
    tls_free(w->tls);
    free(w);
    return 0;
}

/* Dials and shakes hands; returns the server's side. */
static struct peer *meet(struct world *w, struct tls_client *c)
{
    struct peer *p = &w->peers[w->n_peers];
    tls_client_init(c, listener_dial(w->listener), &(struct tls_client_wish){.ca = certs.ca_path});
    RUN_UNTIL(w, tls_client_shake(c) && p->stream && stream_established(p->stream));
    assert_true(c->done);
    return p;
}

/* Dials the plain port. */
static struct peer *meet_plain(struct world *w, int *ret_fd)
{
    struct peer *p = &w->peers[w->n_peers];
    *ret_fd = listener_dial(w->plain);
    RUN_UNTIL(w, p->stream);
    return p;
}

static void say(struct tls_client *c, const char *text)
{
    tls_client_say(c, text, strlen(text));
}

/* Whether `text` has come, one piece of it after the other. */
static bool hear(struct tls_client *c, char *text, size_t room)
{
    size_t len = strlen(text);
    text[len + tls_client_hear(c, text + len, room - 1 - len)] = '\0';
    return text[0] != '\0';
}

static void test_both_ways(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    say(&c, "aaaabb");
    RUN_UNTIL(w, p->records == 1);
    say(&c, "bbcccc");
    RUN_UNTIL(w, p->records == 3);
    char text[16] = "";
    stream_send(p->stream, "answer", 6);
    RUN_UNTIL(w, hear(&c, text, sizeof(text)));
    assert_string_equal(text, "answer");
    assert_null(stream_tls_error(p->stream));
    tls_client_done(&c);
    RUN_UNTIL(w, p->closed);
    assert_string_equal(p->why, "peer closed");
}

static void test_what_is_said_before_the_handshake_is_ignored(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = &w->peers[0];
    tls_client_init(&c, listener_dial(w->listener), &(struct tls_client_wish){.ca = certs.ca_path});
    RUN_UNTIL(w, p->stream);
    assert_false(stream_established(p->stream));
    stream_send(p->stream, "plaintext", 9);
    assert_int_equal(stream_unsent(p->stream), 0);
    RUN_UNTIL(w, tls_client_shake(&c) && stream_established(p->stream));
    stream_send(p->stream, "sealed", 6);
    char text[16] = "";
    RUN_UNTIL(w, hear(&c, text, sizeof(text)));
    assert_string_equal(text, "sealed");
    tls_client_done(&c);
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

static void test_a_turns_output_is_one_record_in_one_write(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    uint32_t before = data_segments_in(c.fd);
    for (int i = 0; i < 50; i++)
        stream_send(p->stream, "0123456789", 10);
    char text[1000];
    size_t got = 0;
    RUN_UNTIL(w, (got = tls_client_hear(&c, text, sizeof(text))) > 0);
    assert_int_equal(got, 500); /* a read gives one record */
    assert_int_equal(data_segments_in(c.fd) - before, 1);
    tls_client_done(&c);
}

static void test_more_than_the_kernel_takes_arrives_in_order(void **state)
{
    struct world *w = *state;
    w->limits.output_cap = 64 * 1024 * 1024;
    struct tls_client c;
    struct peer *p = meet(w, &c);
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
        len += tls_client_hear(&c, (char *)got + len, NUMBERS * sizeof(*got) - len);
        assert_int_equal(c.error, 0);
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    }
    RUN_UNTIL(w, tls_client_hear(&c, end, 3) == 3);
    assert_memory_equal(sent, got, NUMBERS * sizeof(*got));
    assert_string_equal(end, "end");
    assert_int_equal(stream_unsent(p->stream), 0);
    free(sent);
    free(got);
    tls_client_done(&c);
}

static void test_peer_that_does_not_read_is_cut_off(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    static char much[16 * 1024];
    for (int i = 0; i < 1000 && !p->closed; i++) {
        if (p->stream)
            stream_send(p->stream, much, sizeof(much));
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    }
    assert_int_equal(p->closed, 1);
    assert_string_equal(p->why, "does not read");
    tls_client_done(&c);
}

static void test_paused_input_is_held_and_handed_on(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    p->pause_after_record = true;
    say(&c, "aaaabbbbcccc");
    RUN_UNTIL(w, p->inputs == 1);
    say(&c, "dddd");
    uv_run(&w->loop.uv, UV_RUN_NOWAIT);
    assert_int_equal(p->records, 1);
    for (size_t i = 2; i <= 4; i++) {
        stream_resume(p->stream);
        RUN_UNTIL(w, p->records == i);
    }
    tls_client_done(&c);
}

/* The client's last handshake message and its first words come in one read. */
static void test_words_with_the_end_of_the_handshake(void **state)
{
    struct world *w = *state;
    for (int paused = 0; paused < 2; paused++) {
        struct tls_client c;
        struct peer *p = &w->peers[w->n_peers];
        int fd = listener_dial(w->listener);
        tls_client_init(&c, -1, &(struct tls_client_wish){.ca = certs.ca_path});
        assert_false(tls_client_shake(&c));
        assert_int_equal(send(fd, c.out.data, c.out.len, 0), c.out.len);
        buf_clear(&c.out);
        RUN_UNTIL(w, p->stream);
        while (!tls_client_shake(&c)) {
            uint8_t *at = buf_extend(&c.in, 4096);
            ssize_t n = recv(fd, at, 4096, MSG_DONTWAIT);
            c.in.len -= 4096 - (n > 0 ? (size_t)n : 0);
            uv_run(&w->loop.uv, UV_RUN_NOWAIT);
        }
        say(&c, "aaaa");
        if (paused)
            stream_pause(p->stream);
        assert_int_equal(send(fd, c.out.data, c.out.len, 0), c.out.len);
        if (paused) {
            uv_run(&w->loop.uv, UV_RUN_NOWAIT);
            assert_int_equal(p->inputs, 0);
            stream_resume(p->stream);
        }
        RUN_UNTIL(w, p->records == 1);
        close(fd);
        tls_client_done(&c);
    }
}

/* A stream that is paused while its handshake waits for its turn. */
static void test_pause_while_in_line(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = &w->peers[0];
    tls_client_init(&c, listener_dial(w->listener), &(struct tls_client_wish){.ca = certs.ca_path});
    RUN_UNTIL(w, p->stream);
    stream_pause(p->stream);
    assert_false(tls_client_shake(&c));
    for (int i = 0; i < 3; i++) {
        uv_run(&w->loop.uv, UV_RUN_NOWAIT);
        assert_false(tls_client_shake(&c));
    }
    stream_resume(p->stream);
    stream_resume(p->stream);
    RUN_UNTIL(w, tls_client_shake(&c) && stream_established(p->stream));
    tls_client_done(&c);
}

static void test_input_max_bounds_what_one_read_brings(void **state)
{
    struct world *w = *state;
    w->limits.input_max = 4096;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    static char much[16 * 1024];
    for (int i = 0; i < 4; i++)
        tls_client_say(&c, much, sizeof(much));
    RUN_UNTIL(w, p->records == 4 * sizeof(much) / RECORD);
    assert_in_range(p->most, 1, 16 * 1024 + 4096);
    tls_client_done(&c);
}

static void test_last_words_and_goodbye_arrive_though_input_was_unread(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    stream_send(p->stream, "last words", 10);
    stream_finish(p->stream);
    say(&c, "nobody reads this");
    char text[32] = "";
    RUN_UNTIL(w, hear(&c, text, sizeof(text)));
    assert_string_equal(text, "last words");
    RUN_UNTIL(w, tls_client_hear(&c, text, sizeof(text)) == 0 && (c.ended || c.error));
    assert_true(c.ended); /* a cut connection would be an error */
    assert_int_equal(p->records, 0);
    tls_client_done(&c);
    RUN_UNTIL(w, p->closed);
    assert_string_equal(p->tls_error, "");
}

static void test_a_peer_that_says_goodbye(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    struct peer *p = meet(w, &c);
    say(&c, "aaaa");
    gnutls_bye(c.session, GNUTLS_SHUT_WR);
    RUN_UNTIL(w, p->closed);
    assert_int_equal(p->records, 1);
    assert_string_equal(p->why, "peer closed");
    tls_client_done(&c);
}

static void test_finish_before_the_handshake_is_a_close(void **state)
{
    struct world *w = *state;
    int fd = listener_dial(w->listener);
    RUN_UNTIL(w, w->peers[0].stream);
    stream_finish(w->peers[0].stream);
    RUN_UNTIL(w, w->peers[0].closed);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    close(fd);
}

static void test_a_peer_without_tls_is_closed_with_an_alert(void **state)
{
    struct world *w = *state;
    struct peer *p = &w->peers[0];
    int fd = listener_dial(w->listener);
    static const uint8_t ping[] = {2, 0, 0, 0x2A};
    assert_int_equal(send(fd, ping, sizeof(ping), 0), sizeof(ping));
    uint8_t answer[16] = {0};
    RUN_UNTIL(w, recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0);
    assert_int_equal(answer[0], 21);
    RUN_UNTIL(w, recv(fd, answer, sizeof(answer), MSG_DONTWAIT) == 0);
    close(fd);
    RUN_UNTIL(w, p->closed);
    assert_string_equal(p->tls_error,
                        "the peer does not speak TLS, and this port speaks nothing else");
    assert_int_equal(p->inputs, 0);
}

static void test_a_client_without_a_certificate_is_refused(void **state)
{
    struct world *w = *state;
    struct tls_client c;
    char text[16] = "";
    struct peer *p = &w->peers[0];
    tls_client_init(&c, listener_dial(w->listener), &(struct tls_client_wish){.ca = certs.ca_path});
    RUN_UNTIL(w, tls_client_shake(&c));
    /* With TLS 1.3 the client is told after its own handshake has ended. */
    RUN_UNTIL(w, tls_client_hear(&c, text, sizeof(text)) == 0 && c.error);
    assert_int_equal(c.error, GNUTLS_E_FATAL_ALERT_RECEIVED);
    assert_int_equal(gnutls_alert_get(c.session), GNUTLS_A_CERTIFICATE_REQUIRED);
    tls_client_done(&c);
    RUN_UNTIL(w, p->closed);
    assert_string_equal(p->tls_error, "the peer shows no certificate, which client_ca requires");
    assert_int_equal(p->inputs, 0);
}

static void test_a_silent_peer_holds_no_session(void **state)
{
    struct world *w = *state;
    enum { SILENT = 50 };
    int fds[SILENT];
    fds[0] = listener_dial(w->listener);
    RUN_UNTIL(w, w->n_peers == 1);
    size_t before = mallinfo2().uordblks;
    for (int i = 1; i < SILENT; i++)
        fds[i] = listener_dial(w->listener);
    RUN_UNTIL(w, w->n_peers == SILENT);
    assert_in_range((mallinfo2().uordblks - before) / (SILENT - 1), 0, 1024);
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
}

static void test_an_idle_session_is_bounded(void **state)
{
    struct world *w = *state;
    enum { IDLE = 20 };
    int fds[IDLE];
    size_t each = 0;
    for (int i = 0; i < IDLE; i++) {
        struct tls_client c;
        struct peer *p = &w->peers[w->n_peers];
        size_t before = mallinfo2().uordblks;
        fds[i] = listener_dial(w->listener);
        tls_client_init(&c, fds[i], &(struct tls_client_wish){0});
        RUN_UNTIL(w, tls_client_shake(&c) && p->stream && stream_established(p->stream));
        c.fd = -1; /* the connection outlives the client, whose memory is not what is measured */
        tls_client_done(&c);
        each = mallinfo2().uordblks - before;
    }
    assert_in_range(each, 0, 16 * 1024);
    for (int i = 0; i < IDLE; i++)
        close(fds[i]);
}

/* A hundred clients speak at once: they are served in several turns, and in each of these a peer
 * that has been there all along is heard. */
static void test_a_storm_of_handshakes_leaves_others_their_turns(void **state)
{
    struct world *w = *state;
    enum { STORM = 100 };
    static struct tls_client clients[STORM];
    int fd;
    struct peer *steady = meet_plain(w, &fd);
    size_t first = w->n_peers;
    for (int i = 0; i < STORM; i++) {
        tls_client_init(&clients[i], listener_dial(w->listener), &(struct tls_client_wish){0});
        tls_client_shake(&clients[i]);
    }
    RUN_UNTIL(w, w->n_peers == first + STORM && !list_empty(&w->loop.shaking));
    size_t turns = 0;
    while (!list_empty(&w->loop.shaking)) {
        assert_int_equal(send(fd, "beat", RECORD, 0), RECORD);
        assert_true(uv_is_active((uv_handle_t *)&w->loop.hurry));
        uv_run(&w->loop.uv, UV_RUN_ONCE);
        turns++;
        assert_int_equal(steady->records, turns);
    }
    assert_in_range(turns, 2, STORM);
    for (int i = 0; i < STORM; i++)
        RUN_UNTIL(w, tls_client_shake(&clients[i]));
    RUN_UNTIL(w, list_empty(&w->loop.shaking));
    for (int i = 0; i < STORM; i++) {
        assert_true(clients[i].done);
        RUN_UNTIL(w, stream_established(w->peers[first + (size_t)i].stream));
        tls_client_done(&clients[i]);
    }
    assert_false(uv_is_active((uv_handle_t *)&w->loop.hurry)); /* it sleeps again */
    close(fd);
}

static void test_reload_while_connections_live(void **state)
{
    struct world *w = *state;
    struct certs_pair renewed = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "renewed", -1, 20);
    struct tls_files files = {renewed.certificate, renewed.key, NULL};
    char why[TLS_WHY_MAX], name[64], text[16] = "";
    struct tls_client old, new;
    struct peer *p = meet(w, &old);
    assert_int_equal(tls_reload(w->tls, &files, why), 0);
    meet(w, &new);
    tls_client_server_name(&old, name);
    assert_string_equal(name, "server");
    tls_client_server_name(&new, name);
    assert_string_equal(name, "renewed");
    say(&old, "aaaa");
    RUN_UNTIL(w, p->records == 1);
    stream_send(p->stream, "still", 5);
    RUN_UNTIL(w, hear(&old, text, sizeof(text)));
    assert_string_equal(text, "still");
    tls_client_done(&old);
    tls_client_done(&new);
}

static int make_certs(void **state)
{
    (void)state;
    certs_init(&certs);
    server = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "server", -1, 7);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_both_ways),
        T(test_what_is_said_before_the_handshake_is_ignored),
        T(test_a_turns_output_is_one_record_in_one_write),
        T(test_more_than_the_kernel_takes_arrives_in_order),
        T(test_peer_that_does_not_read_is_cut_off),
        T(test_paused_input_is_held_and_handed_on),
        T(test_words_with_the_end_of_the_handshake),
        T(test_pause_while_in_line),
        T(test_input_max_bounds_what_one_read_brings),
        T(test_last_words_and_goodbye_arrive_though_input_was_unread),
        T(test_a_peer_that_says_goodbye),
        T(test_finish_before_the_handshake_is_a_close),
        T(test_a_peer_without_tls_is_closed_with_an_alert),
        T(test_a_silent_peer_holds_no_session),
        T(test_an_idle_session_is_bounded),
        T(test_a_storm_of_handshakes_leaves_others_their_turns),
        T(test_reload_while_connections_live),
        cmocka_unit_test_setup_teardown(test_a_client_without_a_certificate_is_refused,
                                        setup_mutual, teardown),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}

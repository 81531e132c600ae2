/* The SDK with TLS against a fake Muster whose TLS is the real one's: whom it believes, what it
 * says when it does not, and that everything else is as without TLS. */
#include "../sdk/fake_muster.h"
#include "lib/certs.h"
#include "net/tls_session.h"

static struct certs certs;
static struct certs_pair server, client;
static const char *stranger_ca;

static int make_certs(void **state)
{
    (void)state;
    certs_init(&certs);
    server = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "server", -1, 7);
    client = certs_pair(&certs, certs.ca, CERTIFICATE_CLIENT, "client", -1, 7);
    struct certificate *stranger = certs_make(NULL, CERTIFICATE_AUTHORITY, "stranger", -1, 7);
    stranger_ca = certs_write(&certs, "stranger.pem", certificate_pem(stranger));
    certificate_free(stranger);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

/* The fake's TLS, beside it. */
struct secured {
    struct fake fake;
    struct tls_session *session;
    enum tls_result result;
    struct buf heard;
};

static void secured_done(struct secured *s)
{
    fake_stop(&s->fake);
    tls_session_free(s->session);
    buf_done(&s->heard);
}

/* Both sides do what they can once. */
static void turn(struct secured *s)
{
    uint8_t sealed[16384];
    muster_server_poll(s->fake.m);
    ssize_t n = recv(s->fake.peer, sealed, sizeof(sealed), MSG_DONTWAIT);
    if (n > 0 && s->result == TLS_GOES_ON) {
        uint8_t *to = buf_extend(&s->heard, sizeof(sealed) + TLS_RECORD_MAX);
        size_t len = 0;
        s->result = tls_session_open(s->session, sealed, (size_t)n, to, &len);
        s->heard.len -= sizeof(sealed) + TLS_RECORD_MAX - len;
    }
    struct buf out = {0};
    tls_session_seal(s->session, NULL, 0, false, &out);
    if (out.len > 0)
        assert_int_equal(send(s->fake.peer, out.data, out.len, MSG_NOSIGNAL), out.len);
    buf_done(&out);
}

#define TURN_UNTIL(s_, condition_)                                                                 \
    do {                                                                                           \
        for (int turns_ = 0; !(condition_); turns_++) {                                            \
            assert_true(turns_ < 100000);                                                          \
            turn(s_);                                                                              \
        }                                                                                          \
    } while (0)

/* A fake whose TLS is tls, and a game server that connects to it. */
static void meet(struct secured *s, struct tls *tls, const struct muster_options *o)
{
    s->session = tls_session_new(tls);
    s->result = TLS_GOES_ON;
    s->heard = (struct buf){0};
    fake_new(&s->fake, o);
    accept_peer(&s->fake);
}

static void say_sealed(struct secured *s, const char *text)
{
    uint8_t b[4096];
    struct buf out = {0};
    size_t n = bytes_of(text, b, sizeof(b));
    assert_true(tls_session_seal(s->session, b, n, false, &out));
    assert_int_equal(send(s->fake.peer, out.data, out.len, MSG_NOSIGNAL), out.len);
    buf_done(&out);
}

static void expect_sealed(struct secured *s, const char *text)
{
    uint8_t wanted[4096];
    size_t n = bytes_of(text, wanted, sizeof(wanted));
    TURN_UNTIL(s, s->heard.len >= n);
    assert_memory_equal(s->heard.data, wanted, n);
    buf_consume(&s->heard, n);
}

/* The game server registers over TLS with these options. */
static void check_registers(struct secured *s, struct tls *tls, const struct muster_options *o)
{
    meet(s, tls, o);
    expect_sealed(s, HELLO);
    say_sealed(s, HELLO_YES_3);
    expect_sealed(s, NO_MATCHES IDLE_HEARTBEAT);
    told(&s->fake, "registered 3\n");
}

/* … or does not, and the game is told why. */
static void check_fails(struct secured *s, struct tls *tls, const struct muster_options *o,
                        const char *words)
{
    char expected[512];
    meet(s, tls, o);
    TURN_UNTIL(s, s->fake.log[0]);
    snprintf(expected, sizeof(expected), "disconnected %d %s\n", MUSTER_E_TLS, words);
    assert_string_equal(s->fake.log, expected);
    assert_int_equal(s->heard.len, 0); /* nothing was said in confidence */
}

static struct muster_options options(struct secured *s)
{
    fake_listen(&s->fake);
    struct muster_options o = fake_options(&s->fake);
    o.tls_ca = certs.ca_path;
    return o;
}

static void test_registers_and_plays(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s); /* by the address 127.0.0.1 */
    check_registers(&s, tls, &o);
    say_sealed(&s, ALLOCATE_7_A);
    expect_sealed(&s, ALLOCATED_7);
    told(&s.fake, "allocate 7 6 1 A\n");
    say_sealed(&s, "02 00 00 2A");
    expect_sealed(&s, "02 00 01 2A");
    struct buf out = {0};
    tls_session_seal(s.session, NULL, 0, true, &out);
    assert_int_equal(send(s.fake.peer, out.data, out.len, 0), out.len);
    buf_done(&out);
    TURN_UNTIL(&s, s.fake.log[0]);
    told(&s.fake, "disconnected -5 Muster closed the connection\n");
    secured_done(&s);
    tls_free(tls);
}

static void test_says_goodbye(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    check_registers(&s, tls, &o);
    muster_server_free(s.fake.m);
    s.fake.m = NULL;
    uint8_t sealed[4096], plain[4096 + TLS_RECORD_MAX];
    size_t len = 0;
    ssize_t n = recv(s.fake.peer, sealed, sizeof(sealed), 0);
    assert_true(n > 0);
    assert_int_equal(tls_session_open(s.session, sealed, (size_t)n, plain, &len), TLS_ENDED);
    secured_done(&s);
    tls_free(tls);
}

static void test_many_frames_in_one_record_are_all_seen(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    check_registers(&s, tls, &o);
    /* More than the SDK reads in one go, and the socket is empty after the first. */
    static uint8_t pings[60 * 1024];
    for (size_t i = 0; i < sizeof(pings); i += 4)
        memcpy(pings + i, "\x02\x00\x00\x2A", 4);
    struct buf out = {0};
    assert_true(tls_session_seal(s.session, pings, sizeof(pings), false, &out));
    assert_int_equal(send(s.fake.peer, out.data, out.len, 0), out.len);
    buf_done(&out);
    TURN_UNTIL(&s, s.heard.len == sizeof(pings) || s.fake.log[0]);
    told(&s.fake, "");
    secured_done(&s);
    tls_free(tls);
}

/* poll(2) does not tell of what GnuTLS has read already; the timeout does. Here the last of the
 * reads of one poll gets a part of its record, since a frame begun before takes up room. */
static void test_the_timeout_tells_of_input_inside(void **state)
{
    (void)state;
    enum { KICK = 202, BEGUN = 102, PINGS = 4071 };
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    check_registers(&s, tls, &o);
    static uint8_t bytes[KICK + 4 * PINGS] = "\xC8\x00\x12\x10\x07\x00\x00\x00\x01";
    memset(bytes + 12, 'x', KICK - 13);
    for (size_t i = KICK; i < sizeof(bytes); i += 4)
        memcpy(bytes + i, "\x02\x00\x00\x2A", 4);
    struct buf out = {0};
    tls_session_seal(s.session, bytes, BEGUN - 2, false, &out);
    tls_session_seal(s.session, bytes + BEGUN - 2, 1, false, &out);
    tls_session_seal(s.session, bytes + BEGUN - 1, 1, false, &out);
    tls_session_seal(s.session, bytes + BEGUN, sizeof(bytes) - BEGUN, false, &out);
    assert_int_equal(send(s.fake.peer, out.data, out.len, 0), out.len);
    buf_done(&out);
    wait_for(muster_server_fd(s.fake.m), POLLIN);
    muster_server_poll(s.fake.m);
    assert_true(s.fake.log[0]);
    struct pollfd p = {.fd = muster_server_fd(s.fake.m), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(muster_server_timeout_ms(s.fake.m), 0);
    TURN_UNTIL(&s, s.heard.len == 4 * PINGS);
    assert_true(muster_server_timeout_ms(s.fake.m) > 0);
    secured_done(&s);
    tls_free(tls);
}

static void test_a_record_the_socket_did_not_take_whole(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    check_registers(&s, tls, &o);
    say_sealed(&s, ALLOCATE_7_A);
    expect_sealed(&s, ALLOCATED_7);
    int small = 4096;
    setsockopt(muster_server_fd(s.fake.m), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    setsockopt(s.fake.peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    char token[1001] = "";
    memset(token, 'x', 1000);
    for (int i = 0; i < MUSTER_MAX_VALIDATIONS; i++)
        assert_int_equal(muster_match_validate(s.fake.m, 7, i, token, 0), MUSTER_OK);
    for (int i = 0; i < 3; i++)
        muster_server_poll(s.fake.m);
    assert_true(muster_server_events(s.fake.m) & POLLOUT); /* else this tests nothing */
    TURN_UNTIL(&s, s.heard.len >= MUSTER_MAX_VALIDATIONS * (4 + 4 + 4 + 1001));
    for (int i = 0; i < MUSTER_MAX_VALIDATIONS; i++) {
        const uint8_t *frame = s.heard.data + i * (4 + 4 + 4 + 1001);
        assert_memory_equal(frame, "\xF3\x03\x0A\x10\x07\x00\x00\x00", 8);
        assert_int_equal(frame[8], i);
    }
    secured_done(&s);
    tls_free(tls);
}

static void test_a_server_of_another_authority(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    char words[256];
    o.tls_ca = stranger_ca;
    snprintf(words, sizeof(words), "Muster's certificate is not signed by an authority in %s",
             stranger_ca);
    check_fails(&s, tls, &o, words);
    secured_done(&s);
    tls_free(tls);
}

static void test_a_server_of_another_name(void **state)
{
    (void)state;
    static const char *const names[] = {"muster.example", "127.0.0.2", "::2"};
    struct tls *tls = certs_load(server, NULL);
    for (size_t i = 0; i < 3; i++) {
        struct secured s;
        struct muster_options o = options(&s);
        char words[256];
        o.tls_server_name = names[i];
        snprintf(words, sizeof(words), "Muster's certificate is not for %s", names[i]);
        check_fails(&s, tls, &o, words);
        secured_done(&s);
    }
    tls_free(tls);
}

static void test_the_name_may_be_told(void **state)
{
    (void)state;
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    struct tls *tls = certs_load(server, NULL);
    for (size_t i = 0; i < 3; i++) {
        struct secured s;
        struct muster_options o = options(&s);
        o.tls_server_name = names[i];
        check_registers(&s, tls, &o);
        secured_done(&s);
    }
    tls_free(tls);
}

/* Another door of the fake's, at an address its certificate is not for. */
static int listen_elsewhere(char ret[32])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7F000002)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(ret, 32, "127.0.0.2:%d", ntohs(a.sin_port));
    return fd;
}

/* Its next connection is at that listener. */
static void meet_again(struct secured *s, struct tls *tls, int listener)
{
    int own = s->fake.listener;
    tls_session_free(s->session);
    s->session = tls_session_new(tls);
    s->result = TLS_GOES_ON;
    buf_clear(&s->heard);
    s->fake.listener = listener;
    accept_peer(&s->fake);
    s->fake.listener = own;
}

static void test_each_address_is_asked_for_its_own_name(void **state)
{
    (void)state;
    struct secured s = {0};
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    char list[80];
    char there[32];
    int elsewhere = listen_elsewhere(there);
    snprintf(list, sizeof(list), "%s,%s", there, s.fake.address);
    o.server = list;
    fake_new(&s.fake, &o);
    meet_again(&s, tls, elsewhere);
    TURN_UNTIL(&s, s.fake.log[0]);
    told(&s.fake, "disconnected -15 Muster's certificate is not for 127.0.0.2\n");
    assert_int_equal(s.heard.len, 0);
    meet_again(&s, tls, s.fake.listener);
    expect_sealed(&s, HELLO);
    close(elsewhere);
    secured_done(&s);
    tls_free(tls);
}

/* Whoever could make a standby name him must still have the certificate of that address. */
static void test_a_named_leader_must_have_the_certificate_of_its_address(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    char there[32];
    char sentence[200];
    int elsewhere = listen_elsewhere(there);
    int n = snprintf(sentence, sizeof(sentence), "the leader of cell default is at %s", there);
    meet(&s, tls, &o);
    expect_sealed(&s, HELLO);
    char frame[300];
    snprintf(frame, sizeof(frame), "%02X 00 01 10 00 '%s' 00", 3 + n + 1, sentence);
    say_sealed(&s, frame);
    TURN_UNTIL(&s, s.fake.log[0]);
    assert_non_null(strstr(s.fake.log, "disconnected -19 "));
    s.fake.log[0] = '\0';
    meet_again(&s, tls, elsewhere);
    TURN_UNTIL(&s, s.fake.log[0]);
    told(&s.fake, "disconnected -15 Muster's certificate is not for 127.0.0.2\n");
    assert_int_equal(s.heard.len, 0); /* our token was not said to it */
    close(elsewhere);
    secured_done(&s);
    tls_free(tls);
}

static void test_a_certificate_that_is_not_for_servers(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(client, NULL);
    struct muster_options o = options(&s);
    meet(&s, tls, &o);
    TURN_UNTIL(&s, s.fake.log[0]);
    assert_non_null(strstr(s.fake.log, "disconnected -15 Muster's certificate is not"));
    secured_done(&s);
    tls_free(tls);
}

static void test_a_server_that_wants_a_certificate(void **state)
{
    (void)state;
    struct tls *tls = certs_load(server, certs.ca_path);
    struct secured s;
    struct muster_options o = options(&s);
    meet(&s, tls, &o);
    TURN_UNTIL(&s, s.fake.log[0]);
    told(&s.fake, "disconnected -15 Muster wants a certificate, and tls_certificate is not set\n");
    assert_int_equal(s.heard.len, 0);
    secured_done(&s);

    o = options(&s);
    o.tls_certificate = client.certificate;
    o.tls_key = client.key;
    check_registers(&s, tls, &o);
    secured_done(&s);
    tls_free(tls);
}

static void test_a_server_without_tls(void **state)
{
    (void)state;
    struct secured s = {0};
    struct muster_options o = options(&s);
    fake_new(&s.fake, &o);
    accept_peer(&s.fake);
    say(&s.fake, "28 00 FF 2A 'Protocol error: this port speaks plainly'");
    told(&s.fake, "disconnected -15 Muster does not speak TLS on this port\n");
    secured_done(&s);
}

static void test_a_server_that_does_not_shake_hands(void **state)
{
    (void)state;
    struct secured s = {0};
    struct muster_options o = options(&s);
    fake_new(&s.fake, &o);
    accept_peer(&s.fake);
    later(&s.fake, 4999);
    told(&s.fake, "");
    assert_int_equal(muster_server_events(s.fake.m), POLLIN);
    assert_int_equal(muster_server_timeout_ms(s.fake.m), 1);
    later(&s.fake, 1);
    told(&s.fake, "disconnected -15 Muster did not finish the TLS handshake in time\n");
    secured_done(&s);
}

static void test_plain_towards_tls(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    o.tls_ca = NULL;
    check_fails(&s, tls, &o, "Muster speaks TLS on this port, and we do not; tls_ca is not set");
    assert_int_equal(s.result, TLS_FAILED);
    secured_done(&s);
    tls_free(tls);
}

static int try_new(const char *ca, const char *certificate, const char *key)
{
    struct fake f = {.address = "127.0.0.1:1"};
    struct muster_options o = fake_options(&f);
    o.tls_ca = ca;
    o.tls_certificate = certificate;
    o.tls_key = key;
    struct muster_server *m = NULL;
    int error = muster_server_new(&o, NULL, NULL, &m);
    muster_server_free(m);
    return error;
}

static void test_files_are_checked_at_once(void **state)
{
    (void)state;
    assert_int_equal(try_new(certs.ca_path, NULL, NULL), MUSTER_OK);
    assert_int_equal(try_new(certs.ca_path, client.certificate, client.key), MUSTER_OK);
    assert_int_equal(try_new("/absent", NULL, NULL), MUSTER_E_TLS_CA);
    assert_int_equal(try_new(client.key, NULL, NULL), MUSTER_E_TLS_CA);
    assert_int_equal(try_new(certs.ca_path, "/absent", client.key), MUSTER_E_TLS_CERTIFICATE);
    assert_int_equal(try_new(certs.ca_path, client.certificate, server.key),
                     MUSTER_E_TLS_CERTIFICATE);
    assert_int_equal(try_new(certs.ca_path, client.certificate, NULL), MUSTER_E_OPTIONS);
    assert_int_equal(try_new(NULL, client.certificate, client.key), MUSTER_E_OPTIONS);
}

static void test_renewed_files_are_used_by_the_next_connection(void **state)
{
    (void)state;
    struct secured s;
    struct tls *tls = certs_load(server, NULL);
    struct muster_options o = options(&s);
    struct certificate *stranger = certs_make(NULL, CERTIFICATE_AUTHORITY, "other", -1, 7);
    o.tls_ca = certs_write(&certs, "changing.pem", certificate_pem(stranger));
    meet(&s, tls, &o);
    TURN_UNTIL(&s, s.fake.log[0]);
    s.fake.log[0] = '\0';
    certs_write(&certs, "changing.pem", certificate_pem(certs.ca));
    s.fake.now += s.fake.retry_ms;
    tls_session_free(s.session);
    s.session = tls_session_new(tls);
    s.result = TLS_GOES_ON;
    accept_peer(&s.fake);
    expect_sealed(&s, HELLO);
    secured_done(&s);
    certificate_free(stranger);
    tls_free(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_and_plays),
        cmocka_unit_test(test_says_goodbye),
        cmocka_unit_test(test_many_frames_in_one_record_are_all_seen),
        cmocka_unit_test(test_the_timeout_tells_of_input_inside),
        cmocka_unit_test(test_a_record_the_socket_did_not_take_whole),
        cmocka_unit_test(test_a_server_of_another_authority),
        cmocka_unit_test(test_a_server_of_another_name),
        cmocka_unit_test(test_the_name_may_be_told),
        cmocka_unit_test(test_each_address_is_asked_for_its_own_name),
        cmocka_unit_test(test_a_named_leader_must_have_the_certificate_of_its_address),
        cmocka_unit_test(test_a_certificate_that_is_not_for_servers),
        cmocka_unit_test(test_a_server_that_wants_a_certificate),
        cmocka_unit_test(test_a_server_without_tls),
        cmocka_unit_test(test_a_server_that_does_not_shake_hands),
        cmocka_unit_test(test_plain_towards_tls),
        cmocka_unit_test(test_files_are_checked_at_once),
        cmocka_unit_test(test_renewed_files_are_used_by_the_next_connection),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}

/* The bytes of every frame the SDK writes and reads, written out by hand from the protocol's
 * description, and what it does with bytes that are not a frame. */
#include "fake_muster.h"

static void test_handshake_and_heartbeat_bytes(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.token = "secret";
    o.port = 40001;
    o.region = 16;
    o.max_matches = 1000;
    fake_new(&f, &o);
    muster_server_set_load(f.m, 45.5f, 100.0f);
    accept_peer(&f);
    expect(&f, "1B 00 00 10 'secret' 00 '10.0.0.1' 00 41 9C 00 00 10 E8 03 00 00");
    say(&f, "0F 00 01 10 01 2A 00 00 00 88 13 00 00 00 00 00 00");
    assert_int_equal(muster_server_id(f.m), 42);
    expect(&f, "07 00 11 10 2A 00 00 00 00");
    expect(&f, "12 00 02 10 2A 00 00 00 00 00 00 00 00 00 36 42 00 00 C8 42");
    fake_stop(&f);
}

static void test_ping_is_answered_also_before_the_handshake(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    accept_peer(&f);
    expect(&f, HELLO);
    say(&f, "02 00 00 2A");
    expect(&f, "02 00 01 2A");
    say(&f, HELLO_YES_3);
    expect(&f, NO_MATCHES IDLE_HEARTBEAT);
    say(&f, "02 00 00 2A 02 00 00 2A");
    expect(&f, "02 00 01 2A 02 00 01 2A");
    say(&f, "02 00 01 2A"); /* a PONG nobody asked for is nothing */
    expect_nothing(&f);
    fake_stop(&f);
}

static void test_every_request_in_bytes(void **state)
{
    struct fake *f = *state;
    assert_int_equal(muster_match_ready(f->m, 7), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, "0C 00 06 10 03 00 00 00 07 00 00 00 'A' 00");
    assert_int_equal(muster_match_validate(f->m, 7, 500, "A", 9), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, "0C 00 0A 10 07 00 00 00 F4 01 00 00 'A' 00");
    assert_int_equal(muster_match_player_left(f->m, 7, 500), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, "0E 00 0E 10 03 00 00 00 07 00 00 00 F4 01 00 00");
    muster_server_drain(f->m, true);
    muster_server_poll(f->m);
    expect(f, "03 00 0F 10 01");
    say(f, "02 00 11 10");
    expect(f, "0B 00 11 10 03 00 00 00 01 07 00 00 00");
    assert_int_equal(muster_match_end(f->m, 7, 2, 300), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, "0F 00 0C 10 03 00 00 00 07 00 00 00 02 2C 01 00 00");
    expect_nothing(f);
}

static void test_every_answer_in_bytes(void **state)
{
    struct fake *f = *state;
    muster_match_ready(f->m, 7);
    say(f, "07 00 07 10 01 07 00 00 00");
    told(f, "ready 7 1 \n");
    muster_match_ready(f->m, 7);
    say(f, "17 00 07 10 00 07 00 00 00 'Match not found' 00");
    told(f, "ready 7 0 Match not found\n");
    muster_match_validate(f->m, 7, 500, "A", 9);
    muster_server_poll(f->m);
    say(f, "0B 00 0B 10 01 07 00 00 00 F4 01 00 00");
    told(f, "validated 7 500 9 1 \n");
    muster_match_validate(f->m, 7, 501, "B", 10);
    muster_server_poll(f->m);
    say(f, "1F 00 0B 10 00 07 00 00 00 F5 01 00 00 'Invalid match token' 00");
    told(f, "validated 7 501 10 0 Invalid match token\n");
    say(f, "0E 00 12 10 07 00 00 00 F4 01 00 00 'bye' 00");
    told(f, "kick 7 500 bye\n");
    muster_match_end(f->m, 7, 1, 60);
    muster_server_poll(f->m);
    say(f, "07 00 0D 10 01 07 00 00 00");
    told(f, "ended 7 1 \n");
}

static void test_frames_arrive_byte_by_byte(void **state)
{
    struct fake *f = *state;
    uint8_t b[64];
    size_t n = bytes_of(ALLOCATE_7_A "02 00 00 2A", b, sizeof(b));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(send(f->peer, &b[i], 1, 0), 1);
        wait_for(muster_server_fd(f->m), POLLIN);
        muster_server_poll(f->m);
    }
    told(f, "allocate 7 6 1 A\n");
    expect(f, ALLOCATED_7 "02 00 01 2A");
}

static void test_an_unknown_command_is_skipped(void **state)
{
    struct fake *f = *state;
    say(f, "05 00 99 19 01 02 03 02 00 00 2A");
    expect(f, "02 00 01 2A");
    told(f, "");
}

/* Each is refused by dropping the connection; none reaches the game. */
static void test_malformed_frames(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        const char *told;
    } cases[] = {
        {"01 00 00", "disconnected -7 impossible frame length\n"},
        {"00 00", "disconnected -7 impossible frame length\n"},
        {"01 40", "disconnected -7 impossible frame length\n"},
        {"03 00 00 2A 00", "disconnected -7 malformed command 2A00\n"}, /* left over */
        {"09 00 04 10 07 00 00 00 06 01 'A'", "disconnected -7 malformed command 1004\n"},
        {"0B 00 04 10 07 00 00 00 06 01 FF 'A' 00", "disconnected -7 malformed command 1004\n"},
        {"0B 00 04 10 07 00 00 00 06 01 C0 80 00", "disconnected -7 malformed command 1004\n"},
        {"0C 00 04 10 07 00 00 00 06 01 ED A0 80 00",
         "disconnected -7 malformed command 1004\n"},                            /* surrogate */
        {"06 00 04 10 07 00 00 00", "disconnected -7 malformed command 1004\n"}, /* too short */
        {"03 00 0F 10 02", "disconnected -7 malformed command 100F\n"},          /* flag of 2 */
        {"07 00 07 10 00 07 00 00 00", "disconnected -7 malformed command 1007\n"},
        {"0B 00 03 10 01 FF FF FF FF FF FF FF FF", "disconnected -7 malformed command 1003\n"},
        {HELLO_YES_3, "disconnected -7 unexpected command 1001\n"}, /* a second greeting */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fake f;
        fake_start(&f);
        say(&f, cases[i].bytes);
        told(&f, cases[i].told);
        assert_int_equal(muster_server_fd(f.m), -1);
        expect_closed(&f);
        fake_stop(&f);
    }
}

static void test_nothing_but_the_greeting_before_the_greeting(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    accept_peer(&f);
    say(&f, ALLOCATE_7_A);
    told(&f, "disconnected -7 unexpected command 1004\n");
    fake_stop(&f);
}

static void test_an_error_frame_is_the_reason_given(void **state)
{
    struct fake *f = *state;
    say(f, "0E 00 FF 2A 'Bad manners' 00");
    told(f, "disconnected -6 Bad manners\n");
}

/* The largest frame fits the input buffer, also behind a partial read. */
static void test_the_largest_text_passes_and_a_larger_does_not(void **state)
{
    struct fake *f = *state;
    for (int extra = 0; extra < 2; extra++) {
        uint8_t frame[2048] = {0};
        size_t text = 1024 + (size_t)extra;
        size_t length = 2 + 8 + text + 1;
        bytes_of("00 00 12 10 07 00 00 00 01 00 00 00", frame, sizeof(frame));
        frame[0] = (uint8_t)length;
        frame[1] = (uint8_t)(length >> 8);
        memset(frame + 12, 'x', text);
        assert_int_equal(send(f->peer, frame, 2 + length, 0), 2 + length);
        wait_for(muster_server_fd(f->m), POLLIN);
        muster_server_poll(f->m);
        assert_int_equal(muster_server_fd(f->m) >= 0, extra == 0);
    }
}

static void test_a_players_broken_token_never_reaches_the_wire(void **state)
{
    struct fake *f = *state;
    char huge[1100];
    memset(huge, 'x', sizeof(huge));
    huge[1025] = '\0';
    assert_int_equal(muster_match_validate(f->m, 7, 1, huge, 0), MUSTER_E_TEXT);
    assert_int_equal(muster_match_validate(f->m, 7, 1, "\xff", 0), MUSTER_E_TEXT);
    assert_int_equal(muster_match_validate(f->m, 7, 1, "\xf4\x90\x80\x80", 0), MUSTER_E_TEXT);
    assert_int_equal(muster_match_validate(f->m, 7, 1, "\xe2\x82", 0), MUSTER_E_TEXT);
    assert_int_equal(muster_match_validate(f->m, 7, 1, "caf\xc3\xa9 \xf0\x9f\x8e\xae", 0), 0);
    huge[1024] = '\0';
    assert_int_equal(muster_match_validate(f->m, 7, 1, huge, 0), MUSTER_OK);
}

/* What Muster does not read stays bounded: the connection is given up. */
static void test_a_muster_that_does_not_read_is_dropped(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    fake_register(&f);
    uint8_t pings[4096];
    for (size_t i = 0; i < sizeof(pings); i += 4)
        bytes_of("02 00 00 2A", pings + i, 4);
    int small = 4096;
    setsockopt(f.peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    setsockopt(muster_server_fd(f.m), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    for (int i = 0; i < 10000 && muster_server_fd(f.m) >= 0; i++) {
        send(f.peer, pings, sizeof(pings), MSG_DONTWAIT | MSG_NOSIGNAL);
        muster_server_poll(f.m);
    }
    told(&f, "disconnected -9 Muster does not read what is sent\n");
    fake_stop(&f);
}

/* Frames that are nearly right, from a fixed seed: whatever comes, the SDK either goes on or drops
 * the connection, and holds no more than it offered. */
static void test_damaged_frames(void **state)
{
    (void)state;
    static const char *const good[] = {
        ALLOCATE_7_A,
        ALLOCATE_7_B,
        "07 00 08 10 07 00 00 00 00",
        "02 00 11 10",
        "03 00 0F 10 01",
        "0B 00 03 10 01 00 00 00 00 00 00 00 00",
        "07 00 07 10 01 07 00 00 00",
        "0B 00 0B 10 01 07 00 00 00 F4 01 00 00",
        "07 00 0D 10 01 07 00 00 00",
        "0E 00 12 10 07 00 00 00 F4 01 00 00 'bye' 00",
        "02 00 00 2A",
    };
    enum { GOOD = sizeof(good) / sizeof(good[0]), ROUNDS = 3000 };
    struct fake f;
    fake_start(&f);
    srand48(7);
    int drops = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t b[64];
        size_t n = bytes_of(good[lrand48() % GOOD], b, sizeof(b));
        if (lrand48() % 2)
            b[2 + (size_t)lrand48() % (n - 2)] =
                (uint8_t)lrand48(); /* lengths have their own test */
        assert_int_equal(send(f.peer, b, n, MSG_NOSIGNAL), n);
        wait_for(muster_server_fd(f.m), POLLIN);
        muster_server_poll(f.m);
        muster_match_validate(f.m, 7, 500, "A", 1);
        muster_match_end(f.m, 7, 0, round % 5 ? -1 : 0); /* most are refused, some end it */
        assert_in_range(muster_server_match_count(f.m), 0, 4);
        f.log[0] = '\0';
        if (muster_server_fd(f.m) >= 0)
            continue;
        drops++;
        f.now += f.retry_ms;
        accept_peer(&f);
        say(&f, HELLO_YES_3);
        f.log[0] = '\0';
    }
    assert_in_range(drops, ROUNDS / 20, ROUNDS / 2); /* both outcomes were tried */
    fake_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handshake_and_heartbeat_bytes),
        cmocka_unit_test(test_ping_is_answered_also_before_the_handshake),
        HOLDING_TEST(test_every_request_in_bytes),
        HOLDING_TEST(test_every_answer_in_bytes),
        FAKE_TEST(test_frames_arrive_byte_by_byte),
        FAKE_TEST(test_an_unknown_command_is_skipped),
        cmocka_unit_test(test_malformed_frames),
        cmocka_unit_test(test_nothing_but_the_greeting_before_the_greeting),
        FAKE_TEST(test_an_error_frame_is_the_reason_given),
        FAKE_TEST(test_the_largest_text_passes_and_a_larger_does_not),
        HOLDING_TEST(test_a_players_broken_token_never_reaches_the_wire),
        cmocka_unit_test(test_a_muster_that_does_not_read_is_dropped),
        cmocka_unit_test(test_damaged_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The connection: greeting, Muster's clock, silence, losing Muster and finding it again. */
#include "fake_muster.h"

static void test_options_are_checked(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    char long_token[1024];
    memset(long_token, 'x', sizeof(long_token) - 1);
    long_token[1023] = '\0';
    struct muster_options bad[12];
    for (size_t i = 0; i < 12; i++)
        bad[i] = fake_options(&f);
    bad[0].server = NULL;
    bad[1].server = "127.0.0.1";
    bad[2].server = ":11032";
    bad[3].server = "127.0.0.1:";
    bad[4].ip = NULL;
    bad[5].port = 1023;
    bad[6].port = 65536;
    bad[7].region = -1;
    bad[8].max_matches = 0;
    bad[9].max_matches = 1001;
    bad[10].token = long_token;
    bad[11].token = "\xff";
    for (size_t i = 0; i < 12; i++) {
        struct muster_server *m = (struct muster_server *)&f;
        assert_int_equal(muster_server_new(&bad[i], &fake_callbacks, &f, &m), MUSTER_E_OPTIONS);
        assert_null(m);
    }
    struct muster_options o = fake_options(&f);
    o.server = "127.0.0.1:port";
    assert_int_equal(muster_server_new(&o, &fake_callbacks, &f, &f.m), MUSTER_E_RESOLVE);
    fake_stop(&f);
}

static void test_tls_is_refused_where_it_was_left_out(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.tls_ca = "/etc/ssl/certs/ca-certificates.crt";
    assert_int_equal(muster_server_new(&o, &fake_callbacks, &f, &f.m), MUSTER_E_TLS_ABSENT);
    fake_stop(&f);
}

/* Muster speaks TLS and answers our greeting with an alert. */
static void test_an_alert_of_tls_is_recognised(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    accept_peer(&f);
    say(&f, "15 03 03 00 02 02 0A");
    told(&f, "disconnected -15 Muster speaks TLS on this port, and we do not; tls_ca is not set\n");
    fake_stop(&f);
}

static void test_every_error_has_a_text(void **state)
{
    (void)state;
    for (int e = 0; e >= MUSTER_E_STANDBY; e--) {
        assert_string_not_equal(muster_error_text(e), "unknown error");
        for (int other = e - 1; other >= MUSTER_E_STANDBY; other--)
            assert_string_not_equal(muster_error_text(e), muster_error_text(other));
    }
    assert_string_equal(muster_error_text(-99), "unknown error");
}

static void test_a_refused_greeting_is_tried_again(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    accept_peer(&f);
    expect(&f, HELLO);
    say(&f, "11 00 01 10 00 'Invalid token' 00");
    told(&f, "disconnected -6 Invalid token\n");
    f.now += f.retry_ms;
    fake_register(&f);
    fake_stop(&f);
}

static void test_a_greeting_without_an_answer_is_given_up(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    accept_peer(&f);
    assert_int_equal(muster_server_timeout_ms(f.m), 10000);
    later(&f, 9999);
    told(&f, "");
    later(&f, 1);
    told(&f, "disconnected -8 Muster does not answer\n");
    fake_stop(&f);
}

static void test_nobody_listens(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    f.listener = fake_refuse(f.listener);
    muster_server_poll(f.m);
    if (muster_server_fd(f.m) >= 0) {
        wait_for(muster_server_fd(f.m), POLLOUT);
        muster_server_poll(f.m);
    }
    told(&f, "disconnected -4 Connection refused\n");
    fake_stop(&f);
}

/* The limit doubles from 200 ms to 10 s and the wait is anywhere below it. */
static void test_back_off_doubles_with_full_jitter(void **state)
{
    (void)state;
    struct fake f;
    int64_t most[8] = {0};
    int64_t least[8];
    memset(least, 0x7f, sizeof(least));
    for (uint64_t seed = 1; seed <= 200; seed++) {
        fake_listen(&f);
        struct muster_options o = fake_options(&f);
        o.jitter_seed = seed;
        fake_new(&f, &o);
        f.listener = fake_refuse(f.listener);
        for (int i = 0; i < 8; i++) {
            f.log[0] = '\0';
            muster_server_poll(f.m);
            if (muster_server_fd(f.m) >= 0) {
                wait_for(muster_server_fd(f.m), POLLOUT);
                muster_server_poll(f.m);
            }
            assert_string_equal(f.log, "disconnected -4 Connection refused\n");
            assert_int_equal(muster_server_timeout_ms(f.m), f.retry_ms);
            most[i] = f.retry_ms > most[i] ? f.retry_ms : most[i];
            least[i] = f.retry_ms < least[i] ? f.retry_ms : least[i];
            f.now += f.retry_ms;
        }
        fake_stop(&f);
    }
    static const int64_t limit[8] = {200, 400, 800, 1600, 3200, 6400, 10000, 10000};
    for (int i = 0; i < 8; i++) {
        assert_true(most[i] <= limit[i] && most[i] > limit[i] * 9 / 10);
        assert_true(least[i] < limit[i] / 10);
    }
}

static void test_a_lasting_connection_resets_the_back_off(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    for (int round = 0; round < 20; round++) {
        f.log[0] = '\0';
        fake_register(&f);
        later(&f, 10000);
        fake_cut(&f);
        assert_true(f.retry_ms <= 200);
    }
    fake_stop(&f);
}

/* Muster restarted a few times in a row must not keep its servers waiting. */
static void test_an_answered_greeting_makes_the_next_try_quick(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    int64_t most_ms = 0;
    for (int round = 0; round < 40; round++) {
        f.log[0] = '\0';
        fake_register(&f);
        fake_cut(&f);
        most_ms = f.retry_ms > most_ms ? f.retry_ms : most_ms;
    }
    assert_true(most_ms <= 800);
    assert_true(most_ms > 400); /* and yet not as quick as after a steady one */
    fake_stop(&f);
}

static void test_matches_and_what_is_owed_survive_a_lost_connection(void **state)
{
    struct fake *f = *state;
    say(f, "0A 00 04 10 08 00 00 00 00 00 'B' 00 0A 00 04 10 09 00 00 00 00 00 'C' 00");
    expect(f, "07 00 05 10 01 08 00 00 00 07 00 05 10 01 09 00 00 00");
    f->log[0] = '\0';
    muster_match_validate(f->m, 7, 500, "A", 1);
    muster_match_end(f->m, 8, 1, 60);
    muster_server_drain(f->m, true);
    muster_server_poll(f->m); /* said once, and never answered */
    fake_cut(f);
    told(f, "disconnected -5 Muster closed the connection\n");
    assert_int_equal(muster_server_id(f->m), 0);
    assert_int_equal(muster_server_match_count(f->m), 2);
    muster_match_ready(f->m, 9); /* and said while Muster is away */
    muster_match_player_left(f->m, 7, 501);

    accept_peer(f);
    expect(f, HELLO);
    say(f, HELLO_YES_3);
    told(f, "registered 3\n");
    expect(f, "0F 00 0C 10 03 00 00 00 08 00 00 00 01 3C 00 00 00"); /* the end before the list */
    expect(f, "03 00 0F 10 01");
    expect(f, "0F 00 11 10 03 00 00 00 02 07 00 00 00 09 00 00 00");
    expect(f, "12 00 02 10 03 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00");
    expect(f, "0C 00 06 10 03 00 00 00 09 00 00 00 'C' 00");
    expect(f, "0E 00 0E 10 03 00 00 00 07 00 00 00 F5 01 00 00");
    expect(f, "0C 00 0A 10 07 00 00 00 F4 01 00 00 'A' 00");
    expect_nothing(f);
}

static void test_what_was_answered_is_not_said_again(void **state)
{
    struct fake *f = *state;
    muster_match_ready(f->m, 7);
    muster_match_validate(f->m, 7, 500, "A", 1);
    muster_server_drain(f->m, false);
    muster_server_poll(f->m);
    say(f, "07 00 07 10 01 07 00 00 00 0B 00 0B 10 01 07 00 00 00 F4 01 00 00 03 00 10 10 00");
    muster_match_end(f->m, 7, 0, 0);
    muster_server_poll(f->m);
    say(f, "07 00 0D 10 01 07 00 00 00");
    f->log[0] = '\0';
    fake_cut(f);
    f->log[0] = '\0';
    fake_register(f);
    expect_nothing(f);
}

#define DRAIN_ON "03 00 0F 10 01"

/* Muster takes a server that returns without matches for a new process, which does not drain. */
static void test_a_draining_process_says_so_on_every_connection(void **state)
{
    struct fake *f = *state;
    muster_server_drain(f->m, true);
    muster_server_poll(f->m);
    expect(f, DRAIN_ON);
    for (int round = 0; round < 2; round++) {
        say(f, "03 00 10 10 01");
        assert_true(muster_server_drain_acknowledged(f->m));
        fake_cut(f);
        accept_peer(f);
        expect(f, HELLO);
        say(f, HELLO_YES_3);
        expect(f, DRAIN_ON NO_MATCHES IDLE_HEARTBEAT);
        assert_false(muster_server_drain_acknowledged(f->m));
    }
    expect_nothing(f);
}

static void test_an_operators_undrain_is_not_undone_by_a_reconnect(void **state)
{
    struct fake *f = *state;
    muster_server_drain(f->m, true);
    muster_server_poll(f->m);
    say(f, "03 00 10 10 01");
    say(f, "03 00 0F 10 00");
    told(f, "drain 0\n");
    fake_cut(f);
    f->log[0] = '\0';
    fake_register(f);
    expect_nothing(f);
}

static void test_an_unconfirmed_match_outlives_musters_absence(void **state)
{
    struct fake *f = *state;
    later(f, 9000);
    fake_cut(f);
    f->log[0] = '\0';
    f->now += 600000;
    accept_peer(f);
    expect(f, HELLO);
    say(f, HELLO_YES_3);
    told(f, "registered 3\n");
    expect(f, "0B 00 11 10 03 00 00 00 01 07 00 00 00");
    for (int s = 0; s < 140; s += 10) {
        later(f, 10000);
        say(f, "02 00 00 2A");
    }
    told(f, "");
    later(f, 10000);
    told(f, "cancelled 7 1\n");
}

static void test_a_server_that_does_not_know_the_list(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.no_match_list = true;
    fake_new(&f, &o);
    accept_peer(&f);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    expect(&f, IDLE_HEARTBEAT);
    say(&f, "02 00 11 10 02 00 00 2A");
    expect(&f, "02 00 01 2A");
    fake_stop(&f);
}

static void test_no_heartbeats_when_told_so(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.heartbeat_ms = -1;
    fake_new(&f, &o);
    accept_peer(&f);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    expect(&f, NO_MATCHES);
    later(&f, 9999);
    expect_nothing(&f);
    fake_stop(&f);
}

static void test_heartbeats_come_every_ten_seconds(void **state)
{
    struct fake *f = *state;
    for (int i = 0; i < 5; i++) {
        say(f, "0B 00 03 10 01 00 00 00 00 00 00 00 00");
        assert_int_equal(muster_server_timeout_ms(f->m), 10000);
        later(f, 9999);
        expect_nothing(f);
        assert_int_equal(muster_server_timeout_ms(f->m), 1);
        f->now++;
        say(f, "02 00 01 2A"); /* heard now, so no PING beside it */
        expect(f, IDLE_HEARTBEAT);
    }
}

/* Muster's clock is 1,000,000 ahead, and the way there takes as long as the way back. */
static void heartbeat_round_trip(struct fake *f, int64_t rtt, int64_t ahead)
{
    char text[80];
    int64_t time = f->now + rtt / 2 + ahead;
    f->now += rtt;
    snprintf(text, sizeof(text), "0B 00 03 10 01 %02X %02X %02X %02X 00 00 00 00",
             (unsigned)(time & 255), (unsigned)(time >> 8 & 255), (unsigned)(time >> 16 & 255),
             (unsigned)(time >> 24 & 255));
    say(f, text);
}

static void test_musters_clock_is_measured_and_smoothed(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    int64_t offset = 0;
    assert_false(muster_server_clock_offset_ms(f.m, &offset));
    assert_int_equal(muster_server_rtt_ms(f.m), -1);
    fake_register(&f);
    assert_true(muster_server_clock_offset_ms(f.m, &offset)); /* the greeting's: 5000 at 1000 */
    assert_int_equal(offset, 4000);

    heartbeat_round_trip(&f, 40, 1000000);
    assert_int_equal(muster_server_rtt_ms(f.m), 40);
    assert_true(muster_server_clock_offset_ms(f.m, &offset));
    assert_int_equal(offset, 1000000);

    later(&f, 10000); /* noise moves it by an eighth */
    heartbeat_round_trip(&f, 100, 1000080);
    muster_server_clock_offset_ms(f.m, &offset);
    assert_int_equal(offset, 1000010);

    later(&f, 10000); /* a clock that was set moves it at once */
    heartbeat_round_trip(&f, 0, 3000000);
    muster_server_clock_offset_ms(f.m, &offset);
    assert_int_equal(offset, 3000000);

    later(&f, 10000); /* with two on their way nobody knows whose answer it is */
    later(&f, 10000);
    heartbeat_round_trip(&f, 500, 3000500);
    assert_int_equal(muster_server_rtt_ms(f.m), 0);
    fake_stop(&f);
}

static void test_a_heartbeat_refused_means_greeting_again(void **state)
{
    struct fake *f = *state;
    say(f, "19 00 03 10 00 'Server not registered' 00");
    told(f, "disconnected -6 Server not registered\n");
    f->now += f->retry_ms;
    fake_register(f);
}

static void test_silence_is_asked_after_and_then_given_up(void **state)
{
    struct fake *f = *state;
    later(f, 10000);
    expect(f, IDLE_HEARTBEAT "02 00 00 2A");
    later(f, 10000);
    expect(f, IDLE_HEARTBEAT);
    expect_nothing(f); /* one PING is enough */
    later(f, 9999);
    told(f, "");
    later(f, 1);
    told(f, "disconnected -8 Muster does not answer\n");
}

/* A process that was stopped for a minute reads before it judges. */
static void test_silence_is_judged_after_reading(void **state)
{
    struct fake *f = *state;
    f->now += 60000;
    say(f, "02 00 00 2A");
    told(f, "");
    expect(f, "02 00 01 2A");
}

static void test_the_game_drops_the_connection(void **state)
{
    struct fake *f = *state;
    muster_server_disconnect(f->m);
    assert_int_equal(muster_server_timeout_ms(f->m), 0);
    muster_server_poll(f->m);
    told(f, "disconnected -10 the game dropped the connection\n");
    expect_closed(f);
    muster_server_disconnect(f->m); /* nothing to drop */
    assert_int_equal(muster_server_timeout_ms(f->m), f->retry_ms);
    assert_int_equal(muster_server_match_count(f->m), 1);
}

static void test_what_the_loop_waits_for(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    fake_new(&f, &o);
    assert_int_equal(muster_server_fd(f.m), -1);
    assert_int_equal(muster_server_events(f.m), 0);
    assert_int_equal(muster_server_timeout_ms(f.m), 0);
    fake_register(&f);
    assert_int_equal(muster_server_events(f.m), POLLIN);
    assert_int_equal(muster_server_timeout_ms(f.m), 10000);
    fake_hold_7(&f);
    muster_match_ready(f.m, 7); /* to be said now */
    assert_int_equal(muster_server_timeout_ms(f.m), 0);
    muster_server_poll(f.m);
    assert_int_equal(muster_server_timeout_ms(f.m), 10000);
    fake_stop(&f);
}

/* 120 KB of READYs are owed and the output buffer has 64: what has no room waits for the socket. */
static void test_a_full_house_of_owed_reports(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.max_matches = 1000;
    fake_new(&f, &o);
    accept_peer(&f);
    say(&f, HELLO_YES_3);
    char token[590];
    memset(token, 'x', sizeof(token) - 1);
    token[589] = '\0';
    for (int lobby = 1; lobby <= 200; lobby++) {
        char text[700];
        snprintf(text, sizeof(text), "56 02 04 10 %02X 00 00 00 00 00 '%s' 00", lobby, token);
        say(&f, text);
        assert_int_equal(muster_match_ready(f.m, lobby), MUSTER_OK);
        f.log[0] = '\0';
    }
    fake_cut(&f);
    f.log[0] = '\0';
    accept_peer(&f);
    expect(&f, "16 00 00 10 'T' 00 '10.0.0.1' 00 34 12 00 00 02 E8 03 00 00");
    say(&f, HELLO_YES_3);
    size_t want = 200u * (2 + 2 + 4 + 4 + 590) + (9 + 200 * 4) + 20;
    size_t got = 0;
    while (got < want) {
        uint8_t b[4096];
        ssize_t n = recv(f.peer, b, sizeof(b), MSG_DONTWAIT);
        if (n > 0)
            got += (size_t)n;
        else
            assert_int_equal(muster_server_fd(f.m) >= 0, 1);
        muster_server_poll(f.m);
    }
    assert_int_equal(got, want);
    told(&f, "registered 3\n");
    fake_stop(&f);
}

static void test_departures_while_away_are_bounded_and_the_newest_kept(void **state)
{
    struct fake *f = *state;
    fake_cut(f);
    for (int account = 0; account < MUSTER_MAX_LEFT + 1; account++)
        assert_int_equal(muster_match_player_left(f->m, 7, account), MUSTER_OK);
    accept_peer(f);
    expect(f, HELLO);
    say(f, HELLO_YES_3);
    expect(f, "0B 00 11 10 03 00 00 00 01 07 00 00 00");
    expect(f, "12 00 02 10 03 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00");
    for (int account = 1; account < MUSTER_MAX_LEFT + 1; account++) {
        char text[64];
        snprintf(text, sizeof(text), "0E 00 0E 10 03 00 00 00 07 00 00 00 %02X 00 00 00", account);
        expect(f, text);
    }
    expect_nothing(f);
}

static void test_ends_while_away_are_bounded(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.max_matches = 1;
    fake_new(&f, &o);
    accept_peer(&f);
    expect(&f, "16 00 00 10 'T' 00 '10.0.0.1' 00 34 12 00 00 02 01 00 00 00");
    say(&f, HELLO_YES_3);
    expect(&f, NO_MATCHES IDLE_HEARTBEAT);
    say(&f, ALLOCATE_7_A);
    muster_match_end(f.m, 7, 0, 0); /* two ends with room for one: the older is forgotten */
    say(&f, "0A 00 04 10 08 00 00 00 00 00 'B' 00");
    muster_match_end(f.m, 8, 0, 0);
    fake_cut(&f);
    accept_peer(&f);
    expect(&f, "16 00 00 10 'T' 00 '10.0.0.1' 00 34 12 00 00 02 01 00 00 00");
    say(&f, HELLO_YES_3);
    expect(&f, "0F 00 0C 10 03 00 00 00 08 00 00 00 00 00 00 00 00");
    expect(&f, NO_MATCHES IDLE_HEARTBEAT);
    expect_nothing(&f);
    fake_stop(&f);
}

static void test_freeing_says_what_is_owed(void **state)
{
    struct fake *f = *state;
    muster_match_end(f->m, 7, 1, 30);
    muster_server_free(f->m);
    f->m = NULL;
    expect(f, "0F 00 0C 10 03 00 00 00 07 00 00 00 01 1E 00 00 00");
    expect_closed(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_are_checked),
        cmocka_unit_test(test_tls_is_refused_where_it_was_left_out),
        cmocka_unit_test(test_an_alert_of_tls_is_recognised),
        cmocka_unit_test(test_every_error_has_a_text),
        cmocka_unit_test(test_a_refused_greeting_is_tried_again),
        cmocka_unit_test(test_a_greeting_without_an_answer_is_given_up),
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_back_off_doubles_with_full_jitter),
        cmocka_unit_test(test_a_lasting_connection_resets_the_back_off),
        cmocka_unit_test(test_an_answered_greeting_makes_the_next_try_quick),
        HOLDING_TEST(test_matches_and_what_is_owed_survive_a_lost_connection),
        HOLDING_TEST(test_what_was_answered_is_not_said_again),
        FAKE_TEST(test_a_draining_process_says_so_on_every_connection),
        FAKE_TEST(test_an_operators_undrain_is_not_undone_by_a_reconnect),
        HOLDING_TEST(test_an_unconfirmed_match_outlives_musters_absence),
        cmocka_unit_test(test_a_server_that_does_not_know_the_list),
        cmocka_unit_test(test_no_heartbeats_when_told_so),
        FAKE_TEST(test_heartbeats_come_every_ten_seconds),
        cmocka_unit_test(test_musters_clock_is_measured_and_smoothed),
        FAKE_TEST(test_a_heartbeat_refused_means_greeting_again),
        FAKE_TEST(test_silence_is_asked_after_and_then_given_up),
        FAKE_TEST(test_silence_is_judged_after_reading),
        HOLDING_TEST(test_the_game_drops_the_connection),
        cmocka_unit_test(test_what_the_loop_waits_for),
        cmocka_unit_test(test_a_full_house_of_owed_reports),
        HOLDING_TEST(test_departures_while_away_are_bounded_and_the_newest_kept),
        cmocka_unit_test(test_ends_while_away_are_bounded),
        HOLDING_TEST(test_freeing_says_what_is_owed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

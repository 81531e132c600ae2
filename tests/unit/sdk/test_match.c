/* The life of a match as the SDK keeps it: asked, held, confirmed, cancelled, ended, given up. */
#include "fake_muster.h"

#define CANCEL_7(token) "08 00 08 10 07 00 00 00 " token " 00"
#define CANCELLED_7 "07 00 09 10 01 07 00 00 00"
#define READY_7 "0C 00 06 10 03 00 00 00 07 00 00 00 'A' 00"
#define READY_7_YES "07 00 07 10 01 07 00 00 00"
#define ENDED_7_UNPLAYED "0F 00 0C 10 03 00 00 00 07 00 00 00 00 00 00 00 00"
#define ENDED_7_YES "07 00 0D 10 01 07 00 00 00"

static void test_a_repeated_allocate_asks_the_game_once(void **state)
{
    struct fake *f = *state;
    say(f, ALLOCATE_7_A);
    expect(f, ALLOCATED_7);
    told(f, "");
    assert_int_equal(muster_server_match_count(f->m), 1);
}

static void test_another_token_for_a_held_lobby_is_refused(void **state)
{
    struct fake *f = *state;
    say(f, ALLOCATE_7_B);
    expect(f, REFUSED_7);
    told(f, "");
    say(f, ALLOCATE_7_A); /* the first is untouched */
    expect(f, ALLOCATED_7);
}

static void test_the_game_refuses(void **state)
{
    struct fake *f = *state;
    f->answer = MUSTER_REFUSE;
    say(f, ALLOCATE_7_A);
    expect(f, REFUSED_7);
    told(f, "allocate 7 6 1 A\n");
    assert_int_equal(muster_server_match_count(f->m), 0);
    assert_int_equal(muster_match_ready(f->m, 7), MUSTER_E_UNKNOWN_MATCH);
}

static void test_the_game_answers_later(void **state)
{
    struct fake *f = *state;
    f->answer = MUSTER_LATER;
    say(f, ALLOCATE_7_A);
    say(f, ALLOCATE_7_A);
    expect_nothing(f);
    told(f, "allocate 7 6 1 A\n");
    assert_int_equal(muster_server_match_count(f->m), 1);
    assert_int_equal(muster_match_end(f->m, 7, 0, 0), MUSTER_E_UNKNOWN_MATCH);
    assert_int_equal(muster_match_answer(f->m, 7, true), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, ALLOCATED_7);
    assert_int_equal(muster_match_answer(f->m, 7, true), MUSTER_E_UNKNOWN_MATCH);

    say(f, "0A 00 04 10 08 00 00 00 06 01 'A' 00");
    assert_int_equal(muster_match_answer(f->m, 8, false), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, "07 00 05 10 00 08 00 00 00");
    assert_int_equal(muster_server_match_count(f->m), 1);
}

static void test_ready_accepts_what_was_still_to_be_answered(void **state)
{
    struct fake *f = *state;
    f->answer = MUSTER_LATER;
    say(f, ALLOCATE_7_A);
    assert_int_equal(muster_match_ready(f->m, 7), MUSTER_OK);
    muster_server_poll(f->m);
    expect(f, ALLOCATED_7 READY_7);
}

static void test_no_more_matches_than_offered(void **state)
{
    struct fake *f = *state;
    say(f, "0A 00 04 10 01 00 00 00 00 00 'A' 00 0A 00 04 10 02 00 00 00 00 00 'A' 00"
           "0A 00 04 10 03 00 00 00 00 00 'A' 00 0A 00 04 10 04 00 00 00 00 00 'A' 00");
    f->log[0] = '\0';
    say(f, "0A 00 04 10 05 00 00 00 00 00 'A' 00");
    told(f, "");
    expect(f, "07 00 05 10 01 01 00 00 00 07 00 05 10 01 02 00 00 00"
              "07 00 05 10 01 03 00 00 00 07 00 05 10 01 04 00 00 00"
              "07 00 05 10 00 05 00 00 00");
    assert_int_equal(muster_server_match_count(f->m), 4);
}

static void test_cancel_of_a_held_match(void **state)
{
    struct fake *f = *state;
    say(f, CANCEL_7("'A'"));
    expect(f, CANCELLED_7);
    told(f, "cancelled 7 0\n");
    assert_int_equal(muster_server_match_count(f->m), 0);
}

static void test_cancel_of_an_older_attempt_leaves_the_match(void **state)
{
    struct fake *f = *state;
    say(f, CANCEL_7("'B'"));
    expect(f, CANCELLED_7);
    told(f, "");
    assert_int_equal(muster_server_match_count(f->m), 1);
}

static void test_cancel_without_a_token_takes_whatever_is_held(void **state)
{
    struct fake *f = *state;
    say(f, "07 00 08 10 07 00 00 00 00");
    expect(f, CANCELLED_7);
    told(f, "cancelled 7 0\n");
}

static void test_cancel_of_an_unknown_match_is_acknowledged(void **state)
{
    struct fake *f = *state;
    say(f, CANCEL_7("'A'"));
    expect(f, CANCELLED_7);
    told(f, "");
}

static void test_an_unconfirmed_match_is_given_up_and_muster_told(void **state)
{
    struct fake *f = *state;
    for (int s = 0; s < 149; s += 10) { /* Muster stays in sight */
        say(f, "02 00 00 2A");
        later(f, s + 10 < 149 ? 10000 : 9999);
    }
    told(f, "");
    later(f, 1);
    told(f, "cancelled 7 1\n");
    assert_int_equal(muster_server_match_count(f->m), 0);
    say(f, ENDED_7_YES);
    told(f, "ended 7 1 \n");
}

static void start_expiring_soon(struct fake *f)
{
    fake_listen(f);
    struct muster_options o = fake_options(f);
    o.unconfirmed_ms = 5000;
    fake_new(f, &o);
    fake_register(f);
}

static void test_ready_answered_yes_confirms(void **state)
{
    (void)state;
    struct fake f;
    start_expiring_soon(&f);
    fake_hold_7(&f);
    muster_match_ready(f.m, 7);
    muster_server_poll(f.m);
    expect(&f, READY_7);
    say(&f, READY_7_YES);
    told(&f, "ready 7 1 \n");
    later(&f, 5001);
    told(&f, "");
    assert_int_equal(muster_server_match_count(f.m), 1);
    fake_stop(&f);
}

static void test_ready_refused_does_not_confirm(void **state)
{
    (void)state;
    struct fake f;
    start_expiring_soon(&f);
    fake_hold_7(&f);
    muster_match_ready(f.m, 7);
    muster_server_poll(f.m);
    expect(&f, READY_7);
    say(&f, "17 00 07 10 00 07 00 00 00 'Match not found' 00");
    later(&f, 5001);
    told(&f, "ready 7 0 Match not found\ncancelled 7 1\n");
    expect(&f, ENDED_7_UNPLAYED);
    fake_stop(&f);
}

static void test_an_admitted_player_confirms(void **state)
{
    (void)state;
    struct fake f;
    start_expiring_soon(&f);
    fake_hold_7(&f);
    muster_match_validate(f.m, 7, 500, "A", 1);
    muster_server_poll(f.m);
    say(&f, "0B 00 0B 10 01 07 00 00 00 F4 01 00 00");
    told(&f, "validated 7 500 1 1 \n");
    later(&f, 5001);
    told(&f, "");
    fake_stop(&f);
}

static void test_an_unanswered_later_is_given_up_too(void **state)
{
    (void)state;
    struct fake f;
    start_expiring_soon(&f);
    f.answer = MUSTER_LATER;
    say(&f, ALLOCATE_7_A);
    later(&f, 5000);
    told(&f, "allocate 7 6 1 A\ncancelled 7 1\n");
    expect(&f, REFUSED_7);
    fake_stop(&f);
}

static void test_ready_and_ended_are_repeated_until_answered(void **state)
{
    struct fake *f = *state;
    muster_match_ready(f->m, 7);
    muster_server_poll(f->m);
    expect(f, READY_7);
    say(f, "16 00 07 10 00 07 00 00 00 'Internal error' 00"); /* Muster cannot write just now */
    told(f, "");
    say(f, "02 00 00 2A");
    expect(f, "02 00 01 2A");
    later(f, 9999);
    expect_nothing(f);
    later(f, 1);
    expect(f, "12 00 02 10 03 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00"
              "02 00 00 2A" READY_7);
    say(f, READY_7_YES);
    told(f, "ready 7 1 \n");

    muster_match_end(f->m, 7, 0, 0);
    muster_server_poll(f->m);
    expect(f, ENDED_7_UNPLAYED);
    say(f, "16 00 0D 10 00 07 00 00 00 'Internal error' 00");
    later(f, 10000);
    expect(f, IDLE_HEARTBEAT "02 00 00 2A" ENDED_7_UNPLAYED);
    say(f, ENDED_7_YES);
    told(f, "ended 7 1 \n");
}

static void test_a_new_match_under_an_ending_number(void **state)
{
    struct fake *f = *state;
    muster_match_end(f->m, 7, 0, 0);
    muster_server_poll(f->m);
    expect(f, ENDED_7_UNPLAYED);
    say(f, ALLOCATE_7_A); /* the same one again is over */
    expect(f, REFUSED_7);
    say(f, ALLOCATE_7_B); /* another is another */
    expect(f, ALLOCATED_7);
    told(f, "allocate 7 6 1 B\n");
    later(f, 10000); /* the old end is not repeated into the new match */
    expect(f, "12 00 02 10 03 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00"
              "02 00 00 2A");
    expect_nothing(f);
}

static void test_one_account_is_asked_for_one_token_at_a_time(void **state)
{
    struct fake *f = *state;
    muster_match_validate(f->m, 7, 500, "X", 1); /* somebody who guesses */
    muster_match_validate(f->m, 7, 500, "A", 2);
    muster_match_validate(f->m, 7, 501, "A", 3);
    muster_server_poll(f->m);
    expect(f, "0C 00 0A 10 07 00 00 00 F4 01 00 00 'X' 00");
    expect(f, "0C 00 0A 10 07 00 00 00 F5 01 00 00 'A' 00");
    expect_nothing(f);
    say(f, "1F 00 0B 10 00 07 00 00 00 F4 01 00 00 'Invalid match token' 00");
    expect(f, "0C 00 0A 10 07 00 00 00 F4 01 00 00 'A' 00");
    say(f, "0B 00 0B 10 01 07 00 00 00 F5 01 00 00 0B 00 0B 10 01 07 00 00 00 F4 01 00 00");
    told(f, "validated 7 500 1 0 Invalid match token\nvalidated 7 501 3 1 \n"
            "validated 7 500 2 1 \n");
    say(f, "0B 00 0B 10 01 07 00 00 00 F4 01 00 00"); /* nobody asked */
    told(f, "");
}

static void test_a_yes_for_a_match_that_is_gone_is_a_no(void **state)
{
    struct fake *f = *state;
    muster_match_validate(f->m, 7, 500, "A", 1);
    muster_server_poll(f->m);
    say(f, CANCEL_7("'A'") "0B 00 0B 10 01 07 00 00 00 F4 01 00 00");
    told(f, "cancelled 7 0\nvalidated 7 500 1 0 Match not found\n");
}

static void test_validations_are_bounded(void **state)
{
    struct fake *f = *state;
    for (int i = 0; i < MUSTER_MAX_VALIDATIONS; i++)
        assert_int_equal(muster_match_validate(f->m, 7, i, "A", 1), MUSTER_OK);
    assert_int_equal(muster_match_validate(f->m, 7, 9999, "A", 1), MUSTER_E_FULL);
    muster_server_poll(f->m);
    say(f, "0B 00 0B 10 01 07 00 00 00 05 00 00 00");
    assert_int_equal(muster_match_validate(f->m, 7, 9999, "A", 1), MUSTER_OK);
}

/* A server that tests Muster answers too late on purpose. */
static void test_a_late_answer_is_sent_only_when_asked_for(void **state)
{
    (void)state;
    for (int late = 0; late <= 1; late++) {
        struct fake f;
        fake_listen(&f);
        struct muster_options o = fake_options(&f);
        o.late_answers = late;
        fake_new(&f, &o);
        fake_register(&f);
        f.answer = MUSTER_LATER;
        say(&f, ALLOCATE_7_A);
        say(&f, CANCEL_7("'A'"));
        expect(&f, "07 00 09 10 01 07 00 00 00");
        assert_int_equal(muster_match_answer(f.m, 7, true), MUSTER_E_UNKNOWN_MATCH);
        muster_server_poll(f.m);
        if (late)
            expect(&f, ALLOCATED_7);
        expect_nothing(&f);
        assert_int_equal(muster_server_match_count(f.m), 0);
        fake_stop(&f);
    }
}

static void test_drain_both_ways(void **state)
{
    struct fake *f = *state;
    say(f, "03 00 0F 10 01");
    expect(f, "03 00 10 10 01");
    told(f, "drain 1\n");
    say(f, "03 00 0F 10 00");
    expect(f, "03 00 10 10 00");
    told(f, "drain 0\n");

    assert_true(muster_server_drain_acknowledged(f->m));
    muster_server_drain(f->m, true);
    assert_false(muster_server_drain_acknowledged(f->m));
    muster_server_poll(f->m);
    expect(f, "03 00 0F 10 01");
    say(f, "03 00 10 10 00"); /* an older one's */
    assert_false(muster_server_drain_acknowledged(f->m));
    say(f, "03 00 10 10 01");
    assert_true(muster_server_drain_acknowledged(f->m));
}

static void test_the_reported_count_follows_unless_overridden(void **state)
{
    struct fake *f = *state;
    say(f, "02 00 01 2A");
    later(f, 10000);
    expect(f, "12 00 02 10 03 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00");
    muster_server_set_match_count(f->m, 99);
    muster_server_set_load(f->m, -5.0f, 400.0f);
    later(f, 10000);
    expect(f, "02 00 00 2A");
    expect(f, "12 00 02 10 03 00 00 00 63 00 00 00 00 00 00 00 00 00 C8 42");
}

/* A list of one byte's count that left some out would end the others at Muster. */
static void test_more_matches_than_a_list_can_name_are_not_listed(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    struct muster_options o = fake_options(&f);
    o.max_matches = 300;
    fake_new(&f, &o);
    accept_peer(&f);
    expect(&f, "16 00 00 10 'T' 00 '10.0.0.1' 00 34 12 00 00 02 2C 01 00 00");
    say(&f, HELLO_YES_3);
    expect(&f, NO_MATCHES IDLE_HEARTBEAT);
    for (int lobby = 1; lobby <= 256; lobby++) {
        char text[64];
        snprintf(text, sizeof(text), "0A 00 04 10 %02X %02X 00 00 00 00 'A' 00", lobby & 255,
                 lobby >> 8);
        say(&f, text);
        snprintf(text, sizeof(text), "07 00 05 10 01 %02X %02X 00 00", lobby & 255, lobby >> 8);
        expect(&f, text);
        f.log[0] = '\0';
    }
    say(&f, "02 00 11 10 02 00 00 2A");
    expect(&f, "02 00 01 2A");
    say(&f, "07 00 08 10 00 01 00 00 00"); /* lobby 256 is cancelled: now they fit */
    expect(&f, "07 00 09 10 01 00 01 00 00");
    say(&f, "02 00 11 10");
    expect(&f, "03 04 11 10 03 00 00 00 FF 01 00 00 00 02 00 00 00");
    fake_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOLDING_TEST(test_a_repeated_allocate_asks_the_game_once),
        HOLDING_TEST(test_another_token_for_a_held_lobby_is_refused),
        FAKE_TEST(test_the_game_refuses),
        FAKE_TEST(test_the_game_answers_later),
        FAKE_TEST(test_ready_accepts_what_was_still_to_be_answered),
        FAKE_TEST(test_no_more_matches_than_offered),
        HOLDING_TEST(test_cancel_of_a_held_match),
        HOLDING_TEST(test_cancel_of_an_older_attempt_leaves_the_match),
        HOLDING_TEST(test_cancel_without_a_token_takes_whatever_is_held),
        FAKE_TEST(test_cancel_of_an_unknown_match_is_acknowledged),
        HOLDING_TEST(test_an_unconfirmed_match_is_given_up_and_muster_told),
        cmocka_unit_test(test_ready_answered_yes_confirms),
        cmocka_unit_test(test_ready_refused_does_not_confirm),
        cmocka_unit_test(test_an_admitted_player_confirms),
        cmocka_unit_test(test_an_unanswered_later_is_given_up_too),
        HOLDING_TEST(test_ready_and_ended_are_repeated_until_answered),
        HOLDING_TEST(test_a_new_match_under_an_ending_number),
        HOLDING_TEST(test_one_account_is_asked_for_one_token_at_a_time),
        HOLDING_TEST(test_a_yes_for_a_match_that_is_gone_is_a_no),
        HOLDING_TEST(test_validations_are_bounded),
        cmocka_unit_test(test_a_late_answer_is_sent_only_when_asked_for),
        FAKE_TEST(test_drain_both_ways),
        HOLDING_TEST(test_the_reported_count_follows_unless_overridden),
        cmocka_unit_test(test_more_matches_than_a_list_can_name_are_not_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

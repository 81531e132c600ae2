#include "agent/pulse.h"

#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

enum { SERVERS = 4, TICK_MS = 100, PERIOD_MS = 500, LONG_MS = 3600 * 1000 };

/* Game servers that answer or not, and a clock that is turned by hand. */
struct bench {
    struct pulses pulses;
    struct pulse server[SERVERS];
    bool frozen[SERVERS];
    int asked[SERVERS];       /* questions */
    int64_t hung_ms[SERVERS]; /* on the clock; 0 = it is not */
    int64_t clock_ms;
};

static int bench_new(void **state)
{
    struct bench *b = calloc(1, sizeof(*b));
    b->clock_ms = 1000 * 1000;
    pulses_init(&b->pulses, b->clock_ms);
    *state = b;
    return 0;
}

static int bench_free(void **state)
{
    free(*state);
    return 0;
}

static void starts(struct bench *b, int i, int64_t period_ms)
{
    pulse_start(&b->pulses, &b->server[i], period_ms, period_ms);
}

static void answers(struct bench *b, int i)
{
    pulses_heard(&b->pulses);
    pulse_answered(&b->server[i], true);
}

static void tick_after(struct bench *b, int64_t ms)
{
    b->clock_ms += ms;
    pulses_tick(&b->pulses, b->clock_ms);
    for (int i = 0; i < SERVERS; i++) {
        if (!link_in_list(&b->server[i].link))
            continue;
        enum pulse_verdict verdict = pulse_look(&b->pulses, &b->server[i]);
        b->asked[i] += verdict == PULSE_ASK;
        if (verdict == PULSE_HUNG) {
            b->hung_ms[i] = b->clock_ms;
            pulse_stop(&b->server[i]);
        }
    }
    for (int i = 0; i < SERVERS; i++) {
        if (!b->frozen[i] && b->server[i].asked_ms)
            answers(b, i);
    }
}

static void pass(struct bench *b, int64_t ms)
{
    for (; ms > 0; ms -= TICK_MS)
        tick_after(b, TICK_MS);
}

static void what_is_soon_counts_from_now_and_not_from_the_last_tick(void **state)
{
    struct bench *b = *state;
    int64_t at_ms = pulses_soon_ms(&b->pulses, b->clock_ms + 90, 1500);
    tick_after(b, TICK_MS);
    assert_int_equal(at_ms - b->pulses.now_ms, 1500 - (TICK_MS - 90));
    at_ms = pulses_soon_ms(&b->pulses, b->clock_ms + LONG_MS, 1500); /* the agent did not run */
    assert_int_equal(at_ms - b->pulses.now_ms, PULSE_GAP_MAX_MS + 1500);
}

static void alone_it_is_judged_alone(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    b->frozen[0] = true;
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS - TICK_MS);
    assert_int_equal(b->asked[0], 3);
    assert_int_equal(b->hung_ms[0], 0);
    pass(b, TICK_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
}

static void each_is_asked_once_per_period(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, 4 * PERIOD_MS);
    pulse_start(&b->pulses, &b->server[2], LONG_MS, 0);
    pass(b, 4 * PERIOD_MS);
    assert_int_equal(b->asked[0], 4);
    assert_int_equal(b->asked[1], 1);
    assert_int_equal(b->asked[2], 1);
}

static void one_that_is_not_asked_says_nothing_of_the_machine(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, LONG_MS);
    b->frozen[0] = b->frozen[1] = true;
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
    assert_int_equal(b->asked[1], 0);
    assert_int_equal(b->hung_ms[1], 0);
}

static void one_that_answers_shows_that_the_machine_runs(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, PERIOD_MS);
    b->frozen[0] = true;
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
    pass(b, 10 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[1], 0);
}

/* It asks about its players and does not answer: what it says shows that the machine runs. */
static void words_of_its_own_are_no_answer(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, PERIOD_MS);
    b->frozen[0] = b->frozen[1] = true;
    for (int i = 0; i < 310 && !b->hung_ms[0]; i++) {
        pass(b, TICK_MS);
        pulses_heard(&b->pulses);
    }
    assert_int_not_equal(b->hung_ms[0], 0);
}

static void when_all_are_silent_nobody_is_judged(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, 4 * PERIOD_MS);
    b->frozen[0] = b->frozen[1] = true;
    pass(b, 20 * PULSE_ANSWER_MS);
    assert_true(b->pulses.all_silent);
    b->frozen[0] = b->frozen[1] = false;
    pass(b, PULSE_ANSWER_MS + TICK_MS);
    assert_false(b->pulses.all_silent);
    assert_int_equal(b->server[0].silent, 0);
    pass(b, 20 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[0] + b->hung_ms[1], 0);
    b->frozen[0] = true; /* … and is found all the same afterwards */
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS + TICK_MS);
    assert_int_not_equal(b->hung_ms[0], 0);
    assert_int_equal(b->hung_ms[1], 0);
}

/* The machine stands still for 35 s. The first was silent three times before the other one, which
 * had just answered, was asked. */
static void the_verdict_waits_for_those_who_are_asked(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, PERIOD_MS + 25 * 1000);
    b->frozen[0] = b->frozen[1] = true;
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS);
    assert_int_equal(b->server[0].silent, 2);
    assert_int_equal(b->hung_ms[0], 0);
    pass(b, 5 * 1000);
    assert_int_equal(b->asked[1], 2);
    assert_int_equal(b->server[0].silent, 0);
    b->frozen[0] = b->frozen[1] = false;
    pass(b, 20 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[0] + b->hung_ms[1], 0);
}

static void a_witness_that_answers_ends_the_wait(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, PERIOD_MS + 25 * 1000);
    b->frozen[0] = b->frozen[1] = true;
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[0], 0);
    answers(b, 1);
    pass(b, TICK_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
    assert_int_equal(b->hung_ms[1], 0);
}

/* Two hang at once. A third, whose turn is in an hour, is asked whether the machine runs. */
static void when_all_that_were_asked_are_silent_the_others_are_asked(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, PERIOD_MS);
    starts(b, 2, LONG_MS);
    b->frozen[0] = b->frozen[1] = true;
    pass(b, PERIOD_MS + PULSE_ANSWER_MS);
    assert_int_equal(b->asked[2], 1);
    pass(b, 3 * PULSE_ANSWER_MS);
    assert_int_not_equal(b->hung_ms[0], 0);
    assert_int_not_equal(b->hung_ms[1], 0);
    assert_int_equal(b->hung_ms[2], 0);
    assert_int_equal(b->server[2].silent, 0);
    int asked = b->asked[2];
    pass(b, 10 * PULSE_ANSWER_MS);
    assert_int_equal(b->asked[2], asked);
}

static void while_we_do_not_run_nobodys_time_runs(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    b->frozen[0] = true;
    pass(b, PERIOD_MS + 3 * PULSE_ANSWER_MS - TICK_MS);
    int64_t before_ms = b->pulses.now_ms;
    tick_after(b, 3600 * 1000);
    assert_int_equal(b->pulses.now_ms, before_ms + PULSE_GAP_MAX_MS);
    pass(b, PULSE_ANSWER_MS - TICK_MS); /* all of it again */
    assert_int_equal(b->hung_ms[0], 0);
    pass(b, TICK_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
}

static void a_slow_turn_of_ours_counts_whole(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    b->frozen[0] = true;
    for (int i = 0; i < 31; i++)
        tick_after(b, PULSE_GAP_MAX_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
}

static void a_late_answer_is_an_answer(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    b->frozen[0] = true;
    pass(b, PERIOD_MS + 2 * PULSE_ANSWER_MS);
    assert_int_equal(b->server[0].silent, 2);
    pulse_answered(&b->server[0], false);
    assert_int_equal(b->server[0].silent, 0);
    assert_int_not_equal(b->server[0].asked_ms, 0);
    pass(b, 3 * PULSE_ANSWER_MS - TICK_MS);
    assert_int_equal(b->hung_ms[0], 0);
    pass(b, TICK_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
}

static void one_that_is_not_watched_is_no_witness(void **state)
{
    struct bench *b = *state;
    starts(b, 0, PERIOD_MS);
    starts(b, 1, PERIOD_MS);
    b->frozen[0] = b->frozen[1] = true;
    pass(b, PERIOD_MS);
    pulse_stop(&b->server[1]);
    pass(b, 3 * PULSE_ANSWER_MS);
    assert_int_equal(b->hung_ms[0], b->clock_ms);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_new, bench_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_soon_counts_from_now_and_not_from_the_last_tick),
        TEST(alone_it_is_judged_alone),
        TEST(each_is_asked_once_per_period),
        TEST(one_that_is_not_asked_says_nothing_of_the_machine),
        TEST(one_that_answers_shows_that_the_machine_runs),
        TEST(words_of_its_own_are_no_answer),
        TEST(when_all_are_silent_nobody_is_judged),
        TEST(the_verdict_waits_for_those_who_are_asked),
        TEST(a_witness_that_answers_ends_the_wait),
        TEST(when_all_that_were_asked_are_silent_the_others_are_asked),
        TEST(while_we_do_not_run_nobodys_time_runs),
        TEST(a_slow_turn_of_ours_counts_whole),
        TEST(a_late_answer_is_an_answer),
        TEST(one_that_is_not_watched_is_no_witness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

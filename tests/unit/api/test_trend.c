#include "api/trend.h"

#include "lib/unit.h"

#include <stdlib.h>

enum { S = 1000000 };

/* The first second of a minute. */
static const int64_t start_us = 6000 * (int64_t)S;
static const int64_t wall_start_ms = 1700000000000;

struct clockwork {
    struct trends *trends;
    struct recent *recent;
    int64_t now_us;
    struct trend_gauges gauges;
};

/* As the loop does: ten looks in a second, whether or not something is due. */
static void pass(struct clockwork *c, int64_t us)
{
    for (int64_t until = c->now_us + us; c->now_us < until;) {
        c->now_us += S / 10;
        if (trends_due(c->trends, c->now_us))
            trends_take(c->trends, c->recent, &c->gauges, c->now_us,
                        wall_start_ms + (c->now_us - start_us) / 1000);
    }
}

static int begin(void **state)
{
    struct clockwork *c = calloc(1, sizeof(*c));
    c->trends = trends_new();
    c->recent = malloc(sizeof(*c->recent));
    c->now_us = start_us - S / 10;
    recent_init(c->recent, c->now_us);
    pass(c, S / 10);
    *state = c;
    return 0;
}

static int end(void **state)
{
    struct clockwork *c = *state;
    trends_free(c->trends);
    free(c->recent);
    free(c);
    return 0;
}

static const struct trend_point *second_before(const struct clockwork *c, size_t back)
{
    return trends_at(c->trends, TREND_TEN_MINUTES,
                     trends_count(c->trends, TREND_TEN_MINUTES) - 1 - back);
}

static void a_second_is_shown_when_it_is_over(void **state)
{
    struct clockwork *c = *state;
    assert_int_equal(trends_count(c->trends, TREND_TEN_MINUTES), 0);
    pass(c, S - S / 10);
    assert_int_equal(trends_count(c->trends, TREND_TEN_MINUTES), 0);
    pass(c, S / 10);
    assert_int_equal(trends_count(c->trends, TREND_TEN_MINUTES), 1);
    assert_int_equal(second_before(c, 0)->wall_ms, wall_start_ms);
    assert_int_equal(trends_count(c->trends, TREND_DAY), 0);
}

static void a_second_has_what_happened_in_it(void **state)
{
    struct clockwork *c = *state;
    minute_done(&c->recent->allocations, c->now_us, 1000);
    minute_done(&c->recent->allocations, c->now_us, 9000);
    minute_failed(&c->recent->allocations, c->now_us);
    minute_done(&c->recent->joins, c->now_us, -1);
    minute_failed(&c->recent->joins, c->now_us);
    minute_done(&c->recent->commits, c->now_us, 700);
    pass(c, S);
    minute_done(&c->recent->allocations, c->now_us, 5);
    pass(c, S);
    const struct trend_point *first = second_before(c, 1);
    assert_int_equal(first->allocations, 2);
    assert_int_equal(first->refused, 1);
    assert_int_equal(first->joins, 1);
    assert_int_equal(first->joins_failed, 1);
    assert_true(first->p50_us >= 1000 && first->p50_us < 1125);
    assert_true(first->p99_us >= 9000 && first->p99_us < 10125);
    assert_true(first->commit_p99_us >= 700);
    const struct trend_point *second = second_before(c, 0);
    assert_int_equal(second->allocations, 1);
    assert_int_equal(second->p99_us, 5);
    assert_int_equal(second->commit_p99_us, 0);
}

static void gauges_are_those_of_its_beginning(void **state)
{
    struct clockwork *c = *state;
    c->gauges = (struct trend_gauges){.queue = 3, .players = 40, .servers = 5};
    pass(c, S);
    c->gauges.queue = 4;
    pass(c, S);
    assert_int_equal(second_before(c, 1)->gauges.queue, 0);
    assert_int_equal(second_before(c, 0)->gauges.queue, 3);
    assert_int_equal(second_before(c, 0)->gauges.players, 40);
    assert_int_equal(second_before(c, 0)->gauges.servers, 5);
}

static void where_we_did_not_run_is_a_gap(void **state)
{
    struct clockwork *c = *state;
    pass(c, 3 * S);
    minute_done(&c->recent->allocations, c->now_us, 1000);
    c->gauges.players = 9;
    c->now_us += 45 * (int64_t)S;
    minute_done(&c->recent->allocations, c->now_us, 1000);
    pass(c, 3 * S);
    assert_int_equal(trends_count(c->trends, TREND_TEN_MINUTES), 7);
    const struct trend_point *before = second_before(c, 3), *after = second_before(c, 2);
    assert_int_equal(before->wall_ms, wall_start_ms + 3000);
    assert_int_equal(before->allocations, 1);
    assert_int_equal(before->gauges.players, 0);
    assert_true(after->wall_ms >= wall_start_ms + 48000);
    assert_int_equal(after->gauges.players, 9);
}

static void the_ring_keeps_ten_minutes(void **state)
{
    struct clockwork *c = *state;
    for (int i = 0; i < TREND_SECONDS + 50; i++) {
        for (int k = 0; k < i % 7; k++)
            minute_done(&c->recent->allocations, c->now_us, 100);
        pass(c, S);
    }
    assert_int_equal(trends_count(c->trends, TREND_TEN_MINUTES), TREND_SECONDS);
    for (int i = 0; i < TREND_SECONDS; i++) {
        const struct trend_point *p = trends_at(c->trends, TREND_TEN_MINUTES, (size_t)i);
        assert_int_equal(p->wall_ms, wall_start_ms + (i + 50) * 1000);
        assert_int_equal(p->allocations, (i + 50) % 7);
    }
}

static void a_minute_sums_its_seconds_and_keeps_the_worst_of_the_queue(void **state)
{
    struct clockwork *c = *state;
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 10; k++)
            minute_done(&c->recent->allocations, c->now_us, i == 30 ? 50000 : 100);
        minute_failed(&c->recent->joins, c->now_us);
        c->gauges.queue = i == 20 ? 99 : 1;
        c->gauges.oldest_wait_ms = i == 20 ? 5000 : 0;
        c->gauges.players = i;
        pass(c, S);
    }
    assert_int_equal(trends_count(c->trends, TREND_DAY), 1);
    const struct trend_point *m = trends_at(c->trends, TREND_DAY, 0);
    assert_int_equal(m->wall_ms, wall_start_ms);
    assert_int_equal(m->allocations, 600);
    assert_int_equal(m->joins_failed, 60);
    assert_int_equal(m->gauges.queue, 99);
    assert_int_equal(m->gauges.oldest_wait_ms, 5000);
    assert_int_equal(m->gauges.players, 58);
    assert_true(m->p50_us < 120 && m->p99_us >= 50000);
}

static void the_ring_keeps_a_day(void **state)
{
    struct clockwork *c = *state;
    pass(c, (TREND_MINUTES + 5) * (int64_t)60 * S);
    assert_int_equal(trends_count(c->trends, TREND_DAY), TREND_MINUTES);
    const struct trend_point *last = trends_at(c->trends, TREND_DAY, TREND_MINUTES - 1);
    const struct trend_point *first = trends_at(c->trends, TREND_DAY, 0);
    assert_int_equal(last->wall_ms - first->wall_ms,
                     (TREND_MINUTES - 1) * trends_step_ms(TREND_DAY));
    assert_int_equal(first->wall_ms, wall_start_ms + 5 * 60 * 1000);
}

static void a_minute_we_slept_through_has_no_point(void **state)
{
    struct clockwork *c = *state;
    pass(c, 10 * S);
    c->now_us += 180 * (int64_t)S;
    pass(c, 60 * S);
    assert_int_equal(trends_count(c->trends, TREND_DAY), 2);
    assert_int_equal(trends_at(c->trends, TREND_DAY, 0)->wall_ms, wall_start_ms);
    assert_true(trends_at(c->trends, TREND_DAY, 1)->wall_ms >= wall_start_ms + 190 * 1000);
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_second_is_shown_when_it_is_over),
        TEST(a_second_has_what_happened_in_it),
        TEST(gauges_are_those_of_its_beginning),
        TEST(where_we_did_not_run_is_a_gap),
        TEST(the_ring_keeps_ten_minutes),
        TEST(a_minute_sums_its_seconds_and_keeps_the_worst_of_the_queue),
        TEST(the_ring_keeps_a_day),
        TEST(a_minute_we_slept_through_has_no_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/recent.h"

#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { S = 1000000 };

static const int64_t start_us = 5000 * (int64_t)S;

static int begin(void **state)
{
    struct recent *r = malloc(sizeof(*r));
    recent_init(r, start_us);
    *state = r;
    return 0;
}

static int end(void **state)
{
    free(*state);
    return 0;
}

static struct metrics_recent at(const struct recent *r, int64_t now_us)
{
    struct metrics_recent ret;
    recent_read(r, now_us, &ret);
    return ret;
}

static void nothing_happened_reads_zero(void **state)
{
    struct metrics_recent now = at(*state, start_us);
    assert_true(now.per_s == 0);
    assert_int_equal(now.done + now.failed, 0);
    assert_int_equal(now.p50_us + now.p95_us + now.p99_us, 0);
}

static void done_and_failed_are_counted_apart(void **state)
{
    struct recent *r = *state;
    for (int i = 0; i < 7; i++)
        recent_allocated(r, start_us + i * S, 1000);
    recent_failed(r, start_us + 3 * S);
    struct metrics_recent now = at(r, start_us + 10 * S);
    assert_int_equal(now.done, 7);
    assert_int_equal(now.failed, 1);
    assert_true(now.per_s > 0.799 && now.per_s < 0.801);
}

static void the_first_second_is_not_extrapolated(void **state)
{
    struct recent *r = *state;
    recent_allocated(r, start_us + 10, 100);
    assert_true(at(r, start_us + 20).per_s == 1);
}

static void a_minute_later_all_is_forgotten(void **state)
{
    struct recent *r = *state;
    recent_allocated(r, start_us, 1000);
    recent_failed(r, start_us);
    assert_int_equal(at(r, start_us + 59 * S).done, 1);
    assert_int_equal(at(r, start_us + 60 * S).done, 0);
    assert_int_equal(at(r, start_us + 60 * S).failed, 0);
    assert_int_equal(at(r, start_us + 60 * S).p50_us, 0);
}

static void a_slot_is_emptied_before_it_is_used_again(void **state)
{
    struct recent *r = *state;
    recent_allocated(r, start_us, 1000);
    recent_allocated(r, start_us + 60 * S, 50);
    struct metrics_recent now = at(r, start_us + 60 * S);
    assert_int_equal(now.done, 1);
    assert_true(now.p99_us < 100);
}

static void a_steady_rate_is_read_as_it_is(void **state)
{
    struct recent *r = *state;
    for (int i = 0; i < 2000; i++)
        recent_allocated(r, start_us + i * (int64_t)S / 10, 1000);
    double per_s = at(r, start_us + 200 * (int64_t)S - 1).per_s;
    assert_true(per_s > 9.9 && per_s < 10.1);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void quantiles_are_at_most_an_eighth_too_high(void **state)
{
    enum { N = 4001 };
    static int64_t values[N];
    struct recent *r = *state;
    struct dice dice = {7};
    for (int i = 0; i < N; i++) {
        values[i] = (int64_t)(dice_roll(&dice) >> (33 + dice_below(&dice, 30)));
        recent_allocated(r, start_us, values[i]);
    }
    qsort(values, N, sizeof(values[0]), by_value);
    struct metrics_recent now = at(r, start_us);
    const int64_t got[] = {now.p50_us, now.p95_us, now.p99_us};
    const int percent[] = {50, 95, 99};
    for (int i = 0; i < 3; i++) {
        int64_t exact = values[(N * percent[i] + 99) / 100 - 1];
        assert_true(got[i] >= exact);
        assert_true(got[i] <= exact + exact / 8);
    }
}

static void absurd_durations_do_no_harm(void **state)
{
    struct recent *r = *state;
    recent_allocated(r, start_us, INT64_MAX);
    assert_true(at(r, start_us).p50_us >= (int64_t)UINT32_MAX);
    recent_allocated(r, start_us, -1); /* after a restart nobody knows when it was asked */
    assert_int_equal(at(r, start_us).done, 2);
}

static void refusals_are_newest_first_and_few(void **state)
{
    struct recent *r = *state;
    struct metrics_refusal got[RECENT_REFUSALS];
    assert_int_equal(recent_refusals(r, got), 0);
    for (int i = 1; i <= 25; i++) {
        struct metrics_refusal refusal = {.lobby = i, .chat = "chat-1"};
        snprintf(refusal.region, sizeof(refusal.region), "R%d", i);
        recent_refused(r, &refusal);
        size_t n = recent_refusals(r, got);
        assert_int_equal(n, i < RECENT_REFUSALS ? i : RECENT_REFUSALS);
        assert_int_equal(got[0].lobby, i);
    }
    assert_int_equal(got[RECENT_REFUSALS - 1].lobby, 6);
    assert_string_equal(got[0].region, "R25");
    assert_string_equal(got[0].chat, "chat-1");
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(nothing_happened_reads_zero),
        TEST(done_and_failed_are_counted_apart),
        TEST(the_first_second_is_not_extrapolated),
        TEST(a_minute_later_all_is_forgotten),
        TEST(a_slot_is_emptied_before_it_is_used_again),
        TEST(a_steady_rate_is_read_as_it_is),
        TEST(quantiles_are_at_most_an_eighth_too_high),
        TEST(absurd_durations_do_no_harm),
        TEST(refusals_are_newest_first_and_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

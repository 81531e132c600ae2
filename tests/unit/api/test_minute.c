#include "api/minute.h"

#include "lib/unit.h"

#include <stdlib.h>

enum { S = 1000000 };

static const int64_t start_us = 5000 * (int64_t)S;

static int begin(void **state)
{
    struct minute *m = malloc(sizeof(*m));
    minute_init(m, start_us);
    *state = m;
    return 0;
}

static int end(void **state)
{
    free(*state);
    return 0;
}

static struct minute_figures at(const struct minute *m, int64_t now_us)
{
    struct minute_figures ret;
    minute_read(m, now_us, &ret);
    return ret;
}

static void nothing_happened_reads_zero(void **state)
{
    struct minute_figures now = at(*state, start_us);
    assert_true(now.per_s == 0);
    assert_int_equal(now.done + now.failed, 0);
    assert_int_equal(now.p50_us + now.p95_us + now.p99_us, 0);
}

static void done_and_failed_are_counted_apart(void **state)
{
    struct minute *m = *state;
    for (int i = 0; i < 7; i++)
        minute_done(m, start_us + i * S, 1000);
    minute_failed(m, start_us + 3 * S);
    struct minute_figures now = at(m, start_us + 10 * S);
    assert_int_equal(now.done, 7);
    assert_int_equal(now.failed, 1);
    assert_true(now.per_s > 0.799 && now.per_s < 0.801);
}

static void the_first_second_is_not_extrapolated(void **state)
{
    struct minute *m = *state;
    minute_done(m, start_us + 10, 100);
    assert_true(at(m, start_us + 20).per_s == 1);
}

static void a_minute_later_all_is_forgotten(void **state)
{
    struct minute *m = *state;
    minute_done(m, start_us, 1000);
    minute_failed(m, start_us);
    assert_int_equal(at(m, start_us + 59 * S).done, 1);
    assert_int_equal(at(m, start_us + 60 * S).done, 0);
    assert_int_equal(at(m, start_us + 60 * S).failed, 0);
    assert_int_equal(at(m, start_us + 60 * S).p50_us, 0);
}

static void a_slot_is_emptied_before_it_is_used_again(void **state)
{
    struct minute *m = *state;
    minute_done(m, start_us, 1000);
    minute_done(m, start_us + MINUTE_SLOTS * S, 50);
    struct minute_figures now = at(m, start_us + MINUTE_SLOTS * S);
    assert_int_equal(now.done, 1);
    assert_true(now.p99_us < 100);
}

static void a_steady_rate_is_read_as_it_is(void **state)
{
    struct minute *m = *state;
    for (int i = 0; i < 2000; i++)
        minute_done(m, start_us + i * (int64_t)S / 10, 1000);
    double per_s = at(m, start_us + 200 * (int64_t)S - 1).per_s;
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
    struct minute *m = *state;
    struct dice dice = {7};
    for (int i = 0; i < N; i++) {
        values[i] = (int64_t)(dice_roll(&dice) >> (33 + dice_below(&dice, 30)));
        minute_done(m, start_us, values[i]);
    }
    qsort(values, N, sizeof(values[0]), by_value);
    struct minute_figures now = at(m, start_us);
    const int64_t got[] = {now.p50_us, now.p95_us, now.p99_us};
    const int percent[] = {50, 95, 99};
    for (int i = 0; i < 3; i++) {
        int64_t exact = values[(N * percent[i] + 99) / 100 - 1];
        assert_true(got[i] >= exact);
        assert_true(got[i] <= exact + exact / 8);
    }
}

static void one_duration_reads_as_the_largest_of_its_bucket(void **state)
{
    static const int64_t want[][2] = {
        {0, 0},   {7, 7},   {8, 8},     {15, 15},    {16, 17},     {17, 17},     {18, 19},
        {31, 31}, {32, 35}, {100, 103}, {960, 1023}, {1023, 1023}, {1024, 1151}, {1152, 1279}};
    struct minute *m = *state;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        minute_init(m, start_us);
        minute_done(m, start_us, want[i][0]);
        assert_int_equal(at(m, start_us).p50_us, want[i][1]);
        assert_int_equal(at(m, start_us).p99_us, want[i][1]);
    }
}

static void absurd_durations_do_no_harm(void **state)
{
    struct minute *m = *state;
    minute_done(m, start_us, INT64_MAX);
    assert_true(at(m, start_us).p50_us >= (int64_t)UINT32_MAX);
    minute_done(m, start_us, -1); /* after a restart nobody knows when it was asked */
    assert_int_equal(at(m, start_us).done, 2);
}

/* The next second has begun when one is looked at as a whole. */
static void a_second_is_read_when_others_have_begun(void **state)
{
    struct minute *m = *state;
    struct minute_figures second;
    minute_done(m, start_us, 1000);
    minute_done(m, start_us + S, 50);
    minute_failed(m, start_us + S);
    for (int later = 2; later < MINUTE_SLOTS; later++) {
        minute_done(m, start_us + later * (int64_t)S, 9);
        minute_read_seconds(m, start_us / S, 1, &second);
        assert_int_equal(second.done, 1);
        assert_true(second.p99_us >= 1000 && second.per_s == 1);
        minute_read_seconds(m, start_us / S, 2, &second);
        assert_int_equal(second.done, 2);
        assert_int_equal(second.failed, 1);
    }
    minute_read_seconds(m, start_us / S - 1, 1, &second);
    assert_int_equal(second.done + second.failed, 0);
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
        TEST(one_duration_reads_as_the_largest_of_its_bucket),
        TEST(absurd_durations_do_no_harm),
        TEST(a_second_is_read_when_others_have_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/histogram.h"

#include "lib/unit.h"

static const struct histogram_scale *const scales[] = {
    &histogram_durations, &histogram_waits, &histogram_ratios, &histogram_bytes, &histogram_counts,
};

enum { SCALES = sizeof(scales) / sizeof(scales[0]) };

/* By the definition: the first bound that is not below the value. */
static int bucket_by_walking(const struct histogram_scale *scale, int64_t value)
{
    int i = 0;
    while (i < scale->n && value > scale->bounds[i])
        i++;
    return i;
}

static void bounds_ascend(void **state)
{
    (void)state;
    for (int s = 0; s < SCALES; s++) {
        assert_in_range(scales[s]->n, 1, HISTOGRAM_BOUNDS_MAX);
        for (int i = 1; i < scales[s]->n; i++)
            assert_true(scales[s]->bounds[i - 1] < scales[s]->bounds[i]);
    }
}

static void a_bound_belongs_to_its_bucket(void **state)
{
    (void)state;
    for (int s = 0; s < SCALES; s++) {
        for (int i = 0; i < scales[s]->n; i++) {
            int64_t bound = scales[s]->bounds[i];
            assert_int_equal(histogram_bucket(scales[s], bound), i);
            assert_int_equal(histogram_bucket(scales[s], bound + 1), i + 1);
        }
    }
}

static void extremes_have_a_bucket(void **state)
{
    (void)state;
    for (int s = 0; s < SCALES; s++) {
        assert_int_equal(histogram_bucket(scales[s], INT64_MIN), 0);
        assert_int_equal(histogram_bucket(scales[s], 0), 0);
        assert_int_equal(histogram_bucket(scales[s], INT64_MAX), scales[s]->n);
    }
}

static void any_value_falls_where_walking_finds_it(void **state)
{
    (void)state;
    struct dice dice = {42};
    for (int i = 0; i < 100000; i++) {
        const struct histogram_scale *scale = scales[dice_below(&dice, SCALES)];
        int64_t value = (int64_t)(dice_roll(&dice) >> (1 + dice_below(&dice, 62)));
        assert_int_equal(histogram_bucket(scale, value), bucket_by_walking(scale, value));
    }
}

static void durations_reach_from_100_us_to_30_s(void **state)
{
    (void)state;
    const struct histogram_scale *d = &histogram_durations;
    assert_int_equal(d->unit, 1000000);
    assert_int_equal(d->bounds[0], 100);
    assert_int_equal(d->bounds[d->n - 1], 30000000);
    /* The goal for an allocation is stated at 5 s, so there must be a bound there. */
    assert_int_equal(d->bounds[histogram_bucket(d, 5000000)], 5000000);
}

static void count_and_sum_are_of_all_values(void **state)
{
    (void)state;
    struct histogram h = {0};
    assert_int_equal(histogram_count(&h), 0);
    histogram_add(&h, &histogram_durations, 99);
    histogram_add(&h, &histogram_durations, 101);
    histogram_add(&h, &histogram_durations, 31000000);
    assert_int_equal(histogram_count(&h), 3);
    assert_int_equal(h.sum, 31000200);
    assert_int_equal(h.counts[0], 1);
    assert_int_equal(h.counts[1], 1);
    assert_int_equal(h.counts[histogram_durations.n], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_ascend),
        cmocka_unit_test(a_bound_belongs_to_its_bucket),
        cmocka_unit_test(extremes_have_a_bucket),
        cmocka_unit_test(any_value_falls_where_walking_finds_it),
        cmocka_unit_test(durations_reach_from_100_us_to_30_s),
        cmocka_unit_test(count_and_sum_are_of_all_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

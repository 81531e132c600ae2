#include "fixture.h"

static int8_t chosen(struct fixture *f, uint64_t allowed, struct place p)
{
    return region_choose(f->core, allowed, &p);
}

static void what_is_given_counts_most(void **state)
{
    struct fixture *f = *state;
    struct place p = {.region = EU, .latencies = 1 << USE, .located = true};
    assert_int_equal(chosen(f, 0, p), EU);
    p.region = 40;
    assert_int_equal(chosen(f, 0, p), -1);
    p.region = REGION_AUTO;
    assert_int_equal(chosen(f, 0, p), -1);
}

static void then_the_lowest_latency_where_it_may_run(void **state)
{
    struct fixture *f = *state;
    struct place p = {.region = -1, .latencies = 1 << USE | 1 << EU | 1 << 3};
    p.latency_ms[USE] = 80;
    p.latency_ms[EU] = 31;
    p.latency_ms[3] = 5;
    assert_int_equal(chosen(f, 0, p), 3);
    assert_int_equal(chosen(f, 1 << USE | 1 << EU, p), EU);
}

static void then_the_nearest_on_the_map(void **state)
{
    struct fixture *f = *state;
    struct place p = {.region = -1, .located = true, .latitude = 52.5, .longitude = 13.4};
    assert_int_equal(chosen(f, 0, p), EU);
    p.latitude = 40.7;
    p.longitude = -74;
    assert_int_equal(chosen(f, 0, p), USE);
    /* Over the date line: Fiji is nearer to Sydney than to anything east of it. */
    p.latitude = -17.7;
    p.longitude = 179.9;
    assert_int_equal(chosen(f, 0, p), 11);
    p.longitude = -179.9;
    assert_int_equal(chosen(f, 0, p), 11);
    assert_int_equal(chosen(f, 1 << EU, p), EU);
}

static void then_the_default_then_the_first(void **state)
{
    struct fixture *f = *state;
    struct place p = {.region = -1};
    assert_int_equal(chosen(f, 0, p), 0);
    f->core->config.default_region = EU;
    assert_int_equal(chosen(f, 0, p), EU);
    assert_int_equal(chosen(f, 1 << 5 | 1 << 7, p), 5);
    memset(f->core->config.regions, 0, sizeof(f->core->config.regions));
    assert_int_equal(chosen(f, 0, p), -1);
}

static void others_come_by_distance_and_the_unknown_last(void **state)
{
    struct fixture *f = *state;
    int8_t order[REGION_CODES];
    f->core->config.regions[16].located = false; /* TR */
    uint64_t some = 1 << USE | 1 << EU | 1 << 9 | 1 << 16 | 1 << 11;
    assert_int_equal(regions_by_distance(f->core, some, EU, order), 5);
    const int8_t want[] = {EU, 9, USE, 11, 16};
    assert_memory_equal(order, want, sizeof(want));
    /* From a region where it may not run, and from nowhere. */
    assert_int_equal(regions_by_distance(f->core, 1 << USE | 1 << 9, EU, order), 2);
    assert_int_equal(order[0], 9);
    assert_int_equal(regions_by_distance(f->core, 1 << USE | 1 << 9, -1, order), 2);
    assert_int_equal(order[0], USE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_given_counts_most),
        FIXTURE_TEST(then_the_lowest_latency_where_it_may_run),
        FIXTURE_TEST(then_the_nearest_on_the_map),
        FIXTURE_TEST(then_the_default_then_the_first),
        FIXTURE_TEST(others_come_by_distance_and_the_unknown_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

static void reads(struct fixture *f, struct place p, bool alone, const char *want)
{
    static struct fleet_config config;
    struct fleet fleet = {.config = &config};
    struct ticket_regions own;
    struct region_order order;
    char text[REGIONS_TEXT_MAX];
    config.other_regions = true;
    for (int others = 1; others >= 0; others--) {
        config.other_regions = others;
        int8_t first = region_choose(f->core, 0, &p);
        bool is_own = ticket_regions_read(f->core, 0, &p, first, alone, &own);
        regions_in_order(f->core, &fleet, first, is_own ? &own : NULL, &order);
        assert_int_equal(order.codes[0], first);
        for (int i = 0; i < order.n; i++)
            assert_true(region_is_open_to(&fleet, first, is_own ? &own : NULL, order.codes[i]));
        regions_print(f->core, &order, text);
        size_t len = strcspn(want, "|");
        assert_int_equal(strlen(text), len);
        assert_memory_equal(text, want, len);
        want += want[len] == '|' ? len + 1 : 0; /* the same in both, unless it says otherwise */
    }
}

/* What is allowed where the fleet allows other regions | where it does not. */
static void the_request_comes_before_the_fleet(void **state)
{
    struct fixture *f = *state;
    f->core->config.default_region = EU;
    struct place p = {.region = -1};
    reads(f, p, false, "EU or elsewhere|EU");
    reads(f, p, true, "EU or elsewhere|EU");
    p.located = true;
    p.latitude = 40.7;
    p.longitude = -74;
    reads(f, p, true, "USE or elsewhere|USE");
    p.latencies = 1 << USE | 1 << EU | 1 << 16;
    p.latency_ms[USE] = 120;
    p.latency_ms[EU] = 10;
    p.latency_ms[16] = 40;
    reads(f, p, true, "EU, TR or USE");
    reads(f, p, false, "EU, TR or USE");
    p.my_region_only = true;
    reads(f, p, false, "EU");
    p.region = USE;
    reads(f, p, false, "USE");
    p.my_region_only = false;
    reads(f, p, true, "USE");
    reads(f, p, false, "USE or elsewhere|USE");
}

static void many_regions_are_counted(void **state)
{
    struct fixture *f = *state;
    struct place p = {.region = -1};
    struct fleet fleet = {.config = NULL}; /* its own regions outlive its configuration */
    for (int8_t code = 0; code < 8; code++) {
        p.latencies |= UINT64_C(1) << code;
        p.latency_ms[code] = 5; /* equal ones by their codes */
    }
    struct ticket_regions own;
    struct region_order order;
    char text[REGIONS_TEXT_MAX];
    assert_true(ticket_regions_read(f->core, 0, &p, 0, true, &own));
    regions_in_order(f->core, &fleet, 0, &own, &order);
    assert_int_equal(order.n, 8);
    regions_print(f->core, &order, text);
    assert_string_equal(text + strlen(text) - strlen(" or 4 others"), " or 4 others");
    f->core->config.regions[0].name[0] = '\0'; /* it is configured no more */
    regions_in_order(f->core, &fleet, 0, &own, &order);
    assert_int_equal(order.n, 7);
    assert_int_equal(order.codes[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(what_is_given_counts_most),
        FIXTURE_TEST(then_the_lowest_latency_where_it_may_run),
        FIXTURE_TEST(then_the_nearest_on_the_map),
        FIXTURE_TEST(then_the_default_then_the_first),
        FIXTURE_TEST(others_come_by_distance_and_the_unknown_last),
        FIXTURE_TEST(the_request_comes_before_the_fleet),
        FIXTURE_TEST(many_regions_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "core/rate.h"

#include "lib/unit.h"

#include <stdio.h>

static const struct rate_limit five_a_minute[RATE_LIMITS_MAX] = {{5, 60 * 1000}};

/* The oldest so many of each account, in order. */
struct history {
    int64_t at_ms[4096];
    int n;
};

static int within(const struct history *h, int64_t now_ms, int64_t ms)
{
    int n = 0;
    for (int i = 0; i < h->n; i++)
        n += h->at_ms[i] > now_ms - ms;
    return n;
}

static void so_many_and_no_more(void **state)
{
    (void)state;
    struct rates r;
    rates_init(&r);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 1000 + i), 0);
        rates_count(&r, RATE_JOIN, STR("a"), five_a_minute, 1000 + i);
    }
    int64_t wait_ms = rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 2000);
    assert_int_equal(wait_ms, 59 * 1000); /* the first leaves the window then, not later */
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 2000 + wait_ms), 0);
    assert_true(rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 1999 + wait_ms) > 0);
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("b"), five_a_minute, 2000), 0);
    assert_int_equal(rates_wait_ms(&r, RATE_CREATE, STR("a"), five_a_minute, 2000), 0);
    rates_done(&r);
}

static void who_is_allowed_many_waits_no_longer_than_a_window(void **state)
{
    (void)state;
    static const struct rate_limit many[RATE_LIMITS_MAX] = {{1000, 60 * 1000}};
    struct rates r;
    rates_init(&r);
    for (int i = 0; i < 1000; i++)
        rates_count(&r, RATE_JOIN, STR("a"), many, 1000 + i);
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), many, 1999), 60 * 1000);
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), many, 1999 + 60 * 1000), 0);
    rates_done(&r);
}

/* Against the plain definition: never more than allowed in any window, and who waits as long as he
 * was told may go on. */
static void never_more_than_allowed(void **state)
{
    (void)state;
    static const struct rate_limit limits[RATE_LIMITS_MAX] = {
        {5, 60 * 1000}, {10, 240 * 1000}, {20, 480 * 1000}, {40, 960 * 1000}};
    struct dice d = {7};
    static struct history h;
    struct rates r;
    int64_t now_ms = 5000;
    rates_init(&r);
    for (h.n = 0; h.n < 2000;) {
        now_ms += (int64_t)dice_below(&d, 4) * (int64_t)dice_below(&d, 20000);
        int64_t wait_ms = rates_wait_ms(&r, RATE_CREATE, STR("a"), limits, now_ms);
        if (wait_ms > 0) {
            assert_true(wait_ms <= 960 * 1000);
            now_ms += dice_below(&d, 2) ? wait_ms : 0;
            continue;
        }
        rates_count(&r, RATE_CREATE, STR("a"), limits, now_ms);
        h.at_ms[h.n++] = now_ms;
        for (int i = 0; i < RATE_LIMITS_MAX; i++)
            assert_true(within(&h, now_ms, limits[i].ms) <= limits[i].count);
    }
    rates_done(&r);
}

static void no_limit_is_none(void **state)
{
    (void)state;
    static const struct rate_limit none[RATE_LIMITS_MAX] = {0};
    struct rates r;
    rates_init(&r);
    for (int i = 0; i < 1000; i++)
        rates_count(&r, RATE_JOIN, STR("a"), none, 5);
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), none, 5), 0);
    rates_done(&r);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct rates r;
    char account[16];
    rates_init(&r);
    for (int i = 0; i < 5; i++)
        rates_count(&r, RATE_JOIN, STR("first"), five_a_minute, 5);
    for (int i = 0; i < 100 * 1000; i++) {
        snprintf(account, sizeof(account), "p%d", i);
        rates_count(&r, RATE_JOIN, str_of(account), five_a_minute, 6);
        if (i == 1000)
            assert_true(rates_wait_ms(&r, RATE_JOIN, STR("first"), five_a_minute, 6) > 0);
    }
    assert_int_equal(r.n, 64 * 1024);
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("first"), five_a_minute, 6), 0);
    struct rates fresh;
    rates_init(&fresh);
    rates_take_over(&fresh, &r);
    assert_int_equal(fresh.n, 64 * 1024);
    assert_int_equal(r.n, 0);
    rates_done(&r);
    rates_done(&fresh);
}

static void what_came_to_nothing_is_given_back_five_times_a_minute(void **state)
{
    (void)state;
    struct rates r;
    rates_init(&r);
    rates_give_back(&r, RATE_JOIN, STR("a"), 1000); /* it never asked */
    for (int i = 0; i < RATE_GIVEN_BACK + 5; i++) {
        assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 1000 + i), 0);
        rates_count(&r, RATE_JOIN, STR("a"), five_a_minute, 1000 + i);
        rates_give_back(&r, RATE_JOIN, STR("a"), 1000 + i);
    }
    assert_true(rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 1100) > 0);
    rates_give_back(&r, RATE_JOIN, STR("a"), 1000 + 61 * 1000);
    assert_int_equal(rates_wait_ms(&r, RATE_JOIN, STR("a"), five_a_minute, 62 * 1000), 0);
    rates_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_came_to_nothing_is_given_back_five_times_a_minute),
        cmocka_unit_test(so_many_and_no_more),
        cmocka_unit_test(who_is_allowed_many_waits_no_longer_than_a_window),
        cmocka_unit_test(never_more_than_allowed),
        cmocka_unit_test(no_limit_is_none),
        cmocka_unit_test(memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/recent.h"

#include "base/err.h"
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

static void reasons_are_counted_for_a_minute(void **state)
{
    struct recent *r = *state;
    int64_t counts[ERR_ORDER_END];
    recent_reason(r, start_us, ERR_NO_SERVERS);
    recent_reason(r, start_us + 30 * S, ERR_NO_SERVERS);
    recent_reason(r, start_us + 30 * S, ERR_BANNED);
    recent_reason(r, start_us + 30 * S, -4711); /* nobody knows it */
    recent_reasons(r, start_us + 59 * S, counts);
    assert_int_equal(counts[ERR_ORDER_NO_SERVERS], 2);
    assert_int_equal(counts[ERR_ORDER_BANNED], 1);
    assert_int_equal(counts[ERR_ORDER_INTERNAL], 1);
    recent_reasons(r, start_us + 60 * S, counts);
    assert_int_equal(counts[ERR_ORDER_NO_SERVERS], 1);
    recent_reason(r, start_us + 90 * (int64_t)S, ERR_BANNED);
    recent_reasons(r, start_us + 90 * (int64_t)S, counts);
    assert_int_equal(counts[ERR_ORDER_NO_SERVERS], 0);
    assert_int_equal(counts[ERR_ORDER_BANNED], 1);
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
        TEST(reasons_are_counted_for_a_minute),
        TEST(refusals_are_newest_first_and_few),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

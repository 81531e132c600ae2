#include "api/backoff.h"

#include "lib/unit.h"

static void pauses_grow_to_their_limit(void **state)
{
    (void)state;
    struct backoff b = {0};
    int64_t ms = BACKOFF_FIRST_MS;
    for (int i = 0; i < 100; i++) {
        int64_t wait_ms = backoff_next_ms(&b);
        assert_true(wait_ms >= ms / 2 && wait_ms <= ms);
        ms = ms * 2 < BACKOFF_LAST_MS ? ms * 2 : BACKOFF_LAST_MS;
    }
    assert_int_equal(b.failures, 100);
    b = (struct backoff){0};
    assert_true(backoff_next_ms(&b) <= BACKOFF_FIRST_MS);
}

static void two_do_not_come_back_together(void **state)
{
    (void)state;
    int same = 0;
    for (int i = 0; i < 100; i++) {
        struct backoff one = {.failures = 20}, other = {.failures = 20};
        same += backoff_next_ms(&one) == backoff_next_ms(&other);
    }
    assert_true(same < 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_grow_to_their_limit),
        cmocka_unit_test(two_do_not_come_back_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

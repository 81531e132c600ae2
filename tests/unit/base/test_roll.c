#include "base/roll.h"

#include "lib/unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void empty_has_nobody(void **state)
{
    (void)state;
    struct roll r = {0};
    assert_int_equal(roll_next(&r, 0), 0);
    assert_int_equal(roll_previous(&r, 0), 0);
    roll_done(&r);
}

static void walks_up_and_down(void **state)
{
    (void)state;
    struct roll r = {0};
    struct roll_place places[3] = {{0}};
    roll_add(&r, 2, &places[0]);
    roll_add(&r, 5, &places[1]);
    roll_add(&r, 9, &places[2]);
    assert_int_equal(roll_next(&r, 0), 2);
    assert_int_equal(roll_next(&r, 2), 5);
    assert_int_equal(roll_next(&r, 3), 5);
    assert_int_equal(roll_next(&r, 9), 0);
    assert_int_equal(roll_previous(&r, 0), 9);
    assert_int_equal(roll_previous(&r, 9), 5);
    assert_int_equal(roll_previous(&r, 2), 0);
    roll_remove(&r, &places[1]);
    roll_remove(&r, &places[1]); /* twice does no harm */
    assert_int_equal(roll_next(&r, 2), 9);
    assert_int_equal(roll_previous(&r, 9), 2);
    roll_done(&r);
}

/* Against the plainest model there is, through many closings of holes. */
static void agrees_with_a_table(void **state)
{
    (void)state;
    enum { N = 4000 };
    static struct roll_place places[N + 1];
    static bool there[N + 1];
    memset(places, 0, sizeof(places));
    memset(there, 0, sizeof(there));
    struct roll r = {0};
    uint32_t seed = 1;
    for (int id = 1; id <= N; id++) {
        roll_add(&r, id, &places[id]);
        there[id] = true;
        for (int k = 0; k < 2; k++) {
            seed = seed * 1664525 + 1013904223;
            int gone = 1 + (int)(seed >> 8) % id;
            if (seed & 64 && there[gone]) {
                roll_remove(&r, &places[gone]);
                there[gone] = false;
            }
        }
        int expected = 1 + (int)(seed >> 8) % id;
        int64_t found = roll_next(&r, expected - 1);
        while (expected <= id && !there[expected])
            expected++;
        assert_int_equal(found, expected <= id ? expected : 0);
    }
    assert_true(r.len <= 2 * r.n + 64);
    roll_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_nobody),
        cmocka_unit_test(walks_up_and_down),
        cmocka_unit_test(agrees_with_a_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

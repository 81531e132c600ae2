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
        int asked = 1 + (int)(seed >> 4) % (id + 10);
        assert_ptr_equal(roll_find(&r, asked), asked <= id && there[asked] ? &places[asked] : NULL);
    }
    size_t at = 0;
    for (int id = 1; id <= N; id++) {
        if (there[id])
            assert_ptr_equal(roll_walk(&r, &at), &places[id]);
    }
    assert_null(roll_walk(&r, &at));
    assert_true(r.len <= 2 * r.n + 64);
    roll_done(&r);
}

/* The oldest leave first, as finished tickets do: the table does not grow, and nobody is moved. */
static void a_queue_stays_small(void **state)
{
    (void)state;
    enum { N = 100000, KEPT = 1000 };
    struct roll_place *places = calloc(N + 1, sizeof(*places));
    assert_non_null(places);
    struct roll r = {0};
    for (int id = 1; id <= N; id++) {
        roll_add(&r, id, &places[id]);
        if (id > KEPT) {
            roll_remove(&r, &places[id - KEPT]);
            assert_null(roll_find(&r, id - KEPT));
            assert_ptr_equal(roll_find(&r, id - KEPT + 1), &places[id - KEPT + 1]);
            assert_int_equal(roll_next(&r, 0), id - KEPT + 1);
        }
        assert_ptr_equal(roll_find(&r, id), &places[id]);
    }
    assert_true(r.cap <= 4 * KEPT);
    for (int id = N; id > N - KEPT; id--)
        roll_remove(&r, &places[id]);
    assert_int_equal(r.len, 0);
    assert_null(roll_find(&r, N));
    roll_add(&r, N + 7, &places[0]);
    assert_ptr_equal(roll_find(&r, N + 7), &places[0]);
    roll_done(&r);
    free(places);
}

/* A start skips ids, so that there are gaps that never were anybody. */
static void finds_across_gaps(void **state)
{
    (void)state;
    enum { N = 300 };
    static struct roll_place places[N];
    struct roll r = {0};
    for (int i = 0; i < N; i++)
        roll_add(&r, i + i / 10 * 4096 + 1, &places[i]);
    for (int i = 0; i < N; i++) {
        int64_t id = i + i / 10 * 4096 + 1;
        assert_ptr_equal(roll_find(&r, id), &places[i]);
        assert_ptr_equal(roll_find(&r, id + 1), (i + 1) % 10 && i + 1 < N ? &places[i + 1] : NULL);
    }
    assert_null(roll_find(&r, 0));
    assert_null(roll_find(&r, -5));
    assert_null(roll_find(&r, INT64_MAX));
    roll_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_has_nobody),    cmocka_unit_test(walks_up_and_down),
        cmocka_unit_test(agrees_with_a_table), cmocka_unit_test(a_queue_stays_small),
        cmocka_unit_test(finds_across_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/map.h"

#include "lib/unit.h"

#include <stdbool.h>

enum { KEYS = 200, MANY = 20000 };

static int things[MANY];

static void an_empty_map_answers(void **state)
{
    (void)state;
    struct map m = {0};
    size_t at = 0;
    assert_null(map_get(&m, 0));
    assert_null(map_remove(&m, 0));
    assert_null(map_next(&m, &at));
    map_done(&m);
}

static void put_returns_what_was_there(void **state)
{
    (void)state;
    struct map m = {0};
    assert_null(map_put(&m, 7, &things[0]));
    assert_ptr_equal(map_put(&m, 7, &things[1]), &things[0]);
    assert_ptr_equal(map_get(&m, 7), &things[1]);
    assert_int_equal(m.len, 1);
    assert_ptr_equal(map_remove(&m, 7), &things[1]);
    assert_null(map_get(&m, 7));
    assert_int_equal(m.len, 0);
    map_done(&m);
}

static void extreme_keys_are_ordinary(void **state)
{
    (void)state;
    struct map m = {0};
    const uint64_t keys[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 1, 1ull << 63, map_pair(-1, -1), map_pair(-1, 0)};
    map_put(&m, keys[0], &things[0]);
    map_put(&m, keys[1], &things[1]);
    map_put(&m, keys[2], &things[2]);
    assert_ptr_equal(map_get(&m, 0), &things[0]);
    assert_ptr_equal(map_get(&m, 1), &things[1]);
    assert_ptr_equal(map_get(&m, UINT64_MAX), &things[2]);
    assert_null(map_get(&m, 1ull << 63));
    map_done(&m);
}

static void pairs_do_not_run_into_each_other(void **state)
{
    (void)state;
    assert_int_equal(map_pair(1, 2), 0x0000000100000002ull);
    assert_int_equal(map_pair(0, -1), 0x00000000FFFFFFFFull);
    assert_int_equal(map_pair(-1, 0), 0xFFFFFFFF00000000ull);
    assert_int_equal(map_pair(INT32_MIN, INT32_MAX), 0x800000007FFFFFFFull);
}

/* Where a key lands in a table of the first size when nobody is in its way. */
static size_t home_of(uint64_t key)
{
    struct map m = {0};
    map_put(&m, key, &things[0]);
    assert_int_equal(m.cap, 16);
    size_t i = 0;
    while (!m.slots[i].value)
        i++;
    map_done(&m);
    return i;
}

/* The next key after *from whose home is the given slot. */
static uint64_t key_with_home(uint64_t *from, size_t home)
{
    while (home_of(*from) != home)
        (*from)++;
    return (*from)++;
}

/* Ids that follow each other are near each other, so that looking up one brings the next along. */
static void neighbours_share_a_line(void **state)
{
    (void)state;
    for (uint64_t key = 4096; key < 4096 + 256; key += 4)
        for (uint64_t i = 1; i < 4; i++)
            assert_int_equal(home_of(key + i), home_of(key) + i);
}

/* A run of keys in one neighbourhood, wrapping around the end of the table; each is removed once
 * as the first, and all others must still be found. */
static void removal_shifts_a_colliding_run_back(void **state)
{
    (void)state;
    const size_t homes[] = {14, 14, 15, 14, 0, 15, 1, 5};
    enum { RUN = sizeof(homes) / sizeof(homes[0]) };
    uint64_t from = 1;
    uint64_t keys[RUN];
    for (int i = 0; i < RUN; i++)
        keys[i] = key_with_home(&from, homes[i]);
    for (int gone = 0; gone < RUN; gone++) {
        struct map m = {0};
        for (int i = 0; i < RUN; i++)
            map_put(&m, keys[i], &things[i]);
        assert_int_equal(m.cap, 16);
        for (int n = 0; n < RUN; n++) {
            int victim = (gone + n) % RUN;
            assert_ptr_equal(map_remove(&m, keys[victim]), &things[victim]);
            assert_null(map_remove(&m, keys[victim]));
            for (int k = n + 1; k < RUN; k++) {
                int other = (gone + k) % RUN;
                assert_ptr_equal(map_get(&m, keys[other]), &things[other]);
            }
        }
        assert_int_equal(m.len, 0);
        map_done(&m);
    }
}

/* Tombstones would make a table that only ever holds a few keys grow without end. */
static void coming_and_going_does_not_grow_the_table(void **state)
{
    (void)state;
    struct map m = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        map_put(&m, i, &things[0]);
        if (i >= 7)
            assert_non_null(map_remove(&m, i - 7));
    }
    assert_int_equal(m.len, 7);
    assert_int_equal(m.cap, 16);
    map_done(&m);
}

/* The walk meets every entry once: compared by a mark in the naive model. */
static void check_walk(const struct map *m, int *const *model, size_t n)
{
    bool met[KEYS] = {false};
    size_t at = 0;
    size_t count = 0;
    for (int *v = map_next(m, &at); v; v = map_next(m, &at)) {
        size_t key = (size_t)(v - things) % n;
        assert_ptr_equal(model[key], v);
        assert_false(met[key]);
        met[key] = true;
        count++;
    }
    assert_int_equal(count, m->len);
}

static void random_operations_agree_with_a_naive_model(void **state)
{
    (void)state;
    struct dice dice = {424242};
    struct map m = {0};
    int *model[KEYS] = {NULL};
    size_t len = 0;
    for (int step = 0; step < 200000; step++) {
        size_t k = dice_below(&dice, KEYS);
        /* Keys far apart and keys in a row both occur. */
        uint64_t key = k % 2 ? k : k * 0x9E3779B97F4A7C15u;
        /* Phases of filling and of emptying, so that both ends are reached. */
        bool fill = dice_below(&dice, 10) < (step / 20000 % 2 ? 2 : 8);
        if (fill) {
            int *value = &things[k + KEYS * dice_below(&dice, MANY / KEYS)];
            assert_ptr_equal(map_put(&m, key, value), model[k]);
            len += model[k] ? 0 : 1;
            model[k] = value;
        } else {
            assert_ptr_equal(map_remove(&m, key), model[k]);
            len -= model[k] ? 1 : 0;
            model[k] = NULL;
        }
        assert_int_equal(m.len, len);
        size_t probe = dice_below(&dice, KEYS);
        assert_ptr_equal(map_get(&m, probe % 2 ? probe : probe * 0x9E3779B97F4A7C15u),
                         model[probe]);
        if (step % 1000 == 0)
            check_walk(&m, model, KEYS);
    }
    map_done(&m);
    assert_int_equal(m.len, 0);
    for (size_t k = 0; k < KEYS; k++)
        assert_null(map_get(&m, k % 2 ? k : k * 0x9E3779B97F4A7C15u));
}

static void growth_loses_nobody(void **state)
{
    (void)state;
    struct map m = {0};
    for (uint64_t i = 0; i < MANY; i++)
        map_put(&m, map_pair((int32_t)i, 1), &things[i]);
    assert_int_equal(m.len, MANY);
    for (uint64_t i = 0; i < MANY; i++)
        assert_ptr_equal(map_get(&m, map_pair((int32_t)i, 1)), &things[i]);
    map_done(&m);
}

/* A large map grows bit by bit; while it does, entries stand in either table. */
static void a_large_map_is_whole_while_it_grows(void **state)
{
    (void)state;
    enum { LARGE = 300000, GONE_EVERY = 3 };
    struct map m = {0};
    size_t growing = 0;
    for (uint64_t i = 0; i < LARGE; i++) {
        void *value = &things[i % MANY];
        assert_null(map_put(&m, i * i, value));
        assert_ptr_equal(map_get(&m, i * i), value);
        growing += m.old_cap > 0;
        uint64_t other = i * 7919 % (i + 1); /* one of those before, or this one */
        bool gone = other % GONE_EVERY == 0 && other < i / 2;
        if (i % 2 == 0 && i > 1 && i / 2 % GONE_EVERY == 0)
            assert_ptr_equal(map_remove(&m, i / 2 * (i / 2)), &things[i / 2 % MANY]);
        else if (!gone && other % GONE_EVERY)
            assert_ptr_equal(map_put(&m, other * other, &things[other % MANY]),
                             &things[other % MANY]);
    }
    assert_true(growing > 0);
    size_t n = 0;
    size_t at = 0;
    while (map_next(&m, &at))
        n++;
    assert_int_equal(n, m.len);
    for (uint64_t i = 0; i < LARGE; i++) {
        bool gone = i % GONE_EVERY == 0 && i > 0 && i < LARGE / 2;
        assert_ptr_equal(map_get(&m, i * i), gone ? NULL : &things[i % MANY]);
        n -= !gone;
    }
    assert_int_equal(n, 0);
    map_done(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_answers),
        cmocka_unit_test(put_returns_what_was_there),
        cmocka_unit_test(extreme_keys_are_ordinary),
        cmocka_unit_test(pairs_do_not_run_into_each_other),
        cmocka_unit_test(neighbours_share_a_line),
        cmocka_unit_test(removal_shifts_a_colliding_run_back),
        cmocka_unit_test(coming_and_going_does_not_grow_the_table),
        cmocka_unit_test(random_operations_agree_with_a_naive_model),
        cmocka_unit_test(growth_loses_nobody),
        cmocka_unit_test(a_large_map_is_whole_while_it_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

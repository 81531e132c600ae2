#include "base/wheel.h"

#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 200 };

/* What a wheel must do, done the slow way: the least moment first, then the least turn. */
struct model {
    struct wheel wheel;
    struct wheel_node nodes[NODES];
    int64_t at_ms[NODES];
    int64_t turn[NODES]; /* 0 = not set */
    int64_t turns;
};

static struct model *new_model(void)
{
    struct model *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    wheel_init(&m->wheel);
    return m;
}

static void set(struct model *m, int i, int64_t at_ms)
{
    wheel_set(&m->wheel, &m->nodes[i], at_ms);
    m->at_ms[i] = at_ms;
    m->turn[i] = ++m->turns;
}

static void take(struct model *m, int i)
{
    wheel_remove(&m->wheel, &m->nodes[i]);
    m->turn[i] = 0;
}

/* The index of what is due first, or -1. */
static int first_due(const struct model *m, int64_t now_ms)
{
    int best = -1;
    for (int i = 0; i < NODES; i++) {
        if (!m->turn[i] || m->at_ms[i] > now_ms)
            continue;
        if (best < 0 || m->at_ms[i] < m->at_ms[best] ||
            (m->at_ms[i] == m->at_ms[best] && m->turn[i] < m->turn[best]))
            best = i;
    }
    return best;
}

static void expect_pop(struct model *m, int64_t now_ms)
{
    int want = first_due(m, now_ms);
    struct wheel_node *got = wheel_pop(&m->wheel, now_ms);
    assert_ptr_equal(got, want < 0 ? NULL : &m->nodes[want]);
    if (want < 0)
        return;
    assert_false(wheel_has(got));
    m->turn[want] = 0;
}

static void expect_all(struct model *m, int64_t now_ms)
{
    while (first_due(m, now_ms) >= 0)
        expect_pop(m, now_ms);
    expect_pop(m, now_ms);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(wheel_has(&m->nodes[i]), m->turn[i] != 0);
}

static void an_empty_wheel_has_nothing(void **state)
{
    (void)state;
    struct model *m = new_model();
    expect_pop(m, 0);
    expect_pop(m, INT64_MAX / 2);
    free(m);
}

static void one_moment_in_the_order_of_setting(void **state)
{
    (void)state;
    struct model *m = new_model();
    /* Set from afar, from nearer, and again: wherever they stand meanwhile. */
    set(m, 0, 100000);
    set(m, 1, 100000);
    expect_pop(m, 90000);
    set(m, 2, 100000);
    expect_pop(m, 99990);
    set(m, 3, 100000);
    set(m, 0, 100000);
    expect_all(m, 100000);
    free(m);
}

static void every_digit(void **state)
{
    (void)state;
    struct model *m = new_model();
    int n = 0;
    for (int bit = 0; bit < 62; bit++) {
        int64_t at_ms = (int64_t)1 << bit;
        set(m, n++, at_ms);
        set(m, n++, at_ms + 1);
        set(m, n++, at_ms - 1);
    }
    for (int bit = 0; bit < 62; bit++)
        expect_all(m, (int64_t)1 << bit);
    expect_all(m, INT64_MAX);
    free(m);
}

static void what_is_late_comes_first(void **state)
{
    (void)state;
    struct model *m = new_model();
    for (int i = 0; i < 10; i++)
        set(m, i, 1000);
    expect_pop(m, 1000);
    set(m, 20, 500); /* while others of a later moment wait */
    set(m, 21, -7);
    set(m, 22, 500);
    set(m, 23, 1000);
    expect_all(m, 1000);
    free(m);
}

static void time_never_goes_back(void **state)
{
    (void)state;
    struct model *m = new_model();
    expect_pop(m, 5000);
    set(m, 0, 6000);
    assert_null(wheel_pop(&m->wheel, 10));
    expect_all(m, 6000);
    free(m);
}

static void shifted_moments_keep_their_order(void **state)
{
    (void)state;
    struct model *m = new_model();
    expect_pop(m, 5000);
    for (int i = 0; i < NODES; i++)
        set(m, i, 5001 + i * 37 % 400 * 1000);
    wheel_shift(&m->wheel, -4000);
    for (int i = 0; i < NODES; i++)
        m->at_ms[i] -= 4000;
    for (int64_t now_ms = 1000; now_ms < 500000; now_ms += 777)
        expect_all(m, now_ms);
    free(m);
}

/* Whatever happens in whatever order, it does what the slow way does. */
static void like_the_slow_way(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 50; seed++) {
        struct model *m = new_model();
        int64_t now_ms = 0;
        srand(seed);
        for (int i = 0; i < 3000; i++) {
            int node = rand() % NODES;
            switch (rand() % 6) {
            case 0:
                now_ms += (int64_t)1 << rand() % 24;
                break;
            case 1:
                take(m, node);
                break;
            case 2:
                expect_pop(m, now_ms);
                break;
            case 3:
                expect_all(m, now_ms);
                break;
            default:
                set(m, node, now_ms - 50 + rand() % (1 << rand() % 26));
                break;
            }
        }
        expect_all(m, now_ms + (1 << 27));
        free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_wheel_has_nothing),
        cmocka_unit_test(one_moment_in_the_order_of_setting),
        cmocka_unit_test(every_digit),
        cmocka_unit_test(what_is_late_comes_first),
        cmocka_unit_test(time_never_goes_back),
        cmocka_unit_test(shifted_moments_keep_their_order),
        cmocka_unit_test(like_the_slow_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

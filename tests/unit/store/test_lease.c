#include "fixture.h"

#include "store/lease.h"

enum { US = 7, THEM = 9, LEASE_MS = 2000 };

static struct lease watcher(void)
{
    struct lease l;
    lease_init(&l, US, LEASE_MS);
    return l;
}

static void what_nobody_holds_may_be_taken_at_once(void **state)
{
    (void)state;
    struct lease l = watcher();
    assert_true(lease_watch(&l, &(struct lease_row){0, 0, 0}, 5));
    assert_false(lease_holds(&l, 5));
}

static void an_earlier_life_of_ours_may_be_taken_over_at_once(void **state)
{
    (void)state;
    struct lease l = watcher();
    assert_true(lease_watch(&l, &(struct lease_row){3, 40, US}, 5));
}

static void another_holder_is_waited_for_from_its_newest_beat_on(void **state)
{
    (void)state;
    struct lease l = watcher();
    struct lease_row row = {3, 40, THEM};
    assert_false(lease_watch(&l, &row, 100000)); /* however late we begin to look */
    assert_false(lease_watch(&l, &row, 101999));
    row.beat = 41;
    assert_false(lease_watch(&l, &row, 102001));
    assert_false(lease_watch(&l, &row, 104000));
    assert_true(lease_watch(&l, &row, 104001));
}

static void another_epoch_is_another_holder(void **state)
{
    (void)state;
    struct lease l = watcher();
    struct lease_row row = {3, 40, THEM};
    assert_false(lease_watch(&l, &row, 0));
    row.epoch = 4;
    assert_false(lease_watch(&l, &row, LEASE_MS));
    assert_true(lease_watch(&l, &row, 2 * LEASE_MS));
}

static void it_holds_from_when_it_was_asked_for(void **state)
{
    (void)state;
    struct lease l = watcher();
    lease_taken(&l, 4, 1000);
    assert_int_equal(l.epoch, 4);
    assert_true(lease_holds(&l, 1000 + 1799));
    assert_false(lease_holds(&l, 1000 + 1800));
    lease_renewed(&l, 1500);
    assert_true(lease_holds(&l, 1500 + 1799));
    assert_false(lease_holds(&l, 1500 + 1800));
}

static void what_is_lost_holds_no_more_and_is_watched_anew(void **state)
{
    (void)state;
    struct lease l = watcher();
    struct lease_row row = {5, 41, THEM};
    assert_false(lease_watch(&l, &row, 0));
    lease_taken(&l, 4, 1000);
    lease_lost(&l);
    assert_false(lease_holds(&l, 1001));
    assert_false(lease_watch(&l, &row, 9000)); /* not seen since 0: we did not look */
    assert_true(lease_watch(&l, &row, 9000 + LEASE_MS));
}

/* Whatever the delays, a watcher begins after the holder has ended. */
static void two_never_hold_at_once(void **state)
{
    (void)state;
    for (int64_t delay = 0; delay < 3000; delay += 7) {
        struct lease holder, other = watcher();
        struct lease_row row = {1, 1, THEM};
        lease_init(&holder, THEM, LEASE_MS);
        lease_taken(&holder, 1, 500); /* sent at 500, in the cell at 500 + delay, seen then */
        int64_t now = 500 + delay;
        while (!lease_watch(&other, &row, now))
            now += lease_watch_ms(&other);
        assert_false(lease_holds(&holder, now));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_holds_may_be_taken_at_once),
        cmocka_unit_test(an_earlier_life_of_ours_may_be_taken_over_at_once),
        cmocka_unit_test(another_holder_is_waited_for_from_its_newest_beat_on),
        cmocka_unit_test(another_epoch_is_another_holder),
        cmocka_unit_test(it_holds_from_when_it_was_asked_for),
        cmocka_unit_test(what_is_lost_holds_no_more_and_is_watched_anew),
        cmocka_unit_test(two_never_hold_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

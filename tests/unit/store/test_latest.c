#include "fixture.h"

#include "store/latest.h"

struct seen {
    size_t n;
    enum row_kind kinds[16];
    int64_t ids[16];
    bool gone[16];
    int stop_at; /* the call that returns ERR_TOO_MANY; 0: none */
};

static int see(void *user, const struct change *c)
{
    struct seen *s = user;
    s->kinds[s->n] = c->kind;
    s->ids[s->n] = c->id;
    s->gone[s->n] = c->gone;
    s->n++;
    return s->stop_at && s->n == (size_t)s->stop_at ? ERR_TOO_MANY : 0;
}

/* Seat 5 twice, seat -3 once, server 2 made and gone, fleet 9 gone. */
static void example(struct buf *changes)
{
    fixture_add(changes, ROW_seat, 5, 1);
    fixture_add(changes, ROW_server, 2, 1);
    fixture_add(changes, ROW_seat, -3, 1);
    change_encode_gone(changes, ROW_server, 2);
    fixture_add(changes, ROW_seat, 5, 2);
    change_encode_gone(changes, ROW_fleet, 9);
}

static void keeps_the_last_change_of_each_in_order(void **state)
{
    (void)state;
    struct buf changes = {0};
    struct latest l = {0};
    struct seen s = {0};
    example(&changes);
    assert_int_equal(latest_apply(&l, changes.data, changes.len), 0);
    assert_int_equal(latest_each(&l, see, &s), 0);
    assert_int_equal(s.n, 4);
    assert_true(s.kinds[0] == ROW_fleet && s.ids[0] == 9 && s.gone[0]);
    assert_true(s.kinds[1] == ROW_server && s.ids[1] == 2 && s.gone[1]);
    assert_true(s.kinds[2] == ROW_seat && s.ids[2] == -3 && !s.gone[2]);
    assert_true(s.kinds[3] == ROW_seat && s.ids[3] == 5 && !s.gone[3]);
    latest_done(&l);
    buf_done(&changes);
}

static void forgets_what_is_gone_when_asked(void **state)
{
    (void)state;
    struct buf changes = {0};
    struct latest l = {.forget_gone = true};
    struct seen s = {0};
    example(&changes);
    assert_int_equal(latest_apply(&l, changes.data, changes.len), 0);
    assert_int_equal(latest_each(&l, see, &s), 0);
    assert_int_equal(s.n, 2);
    buf_clear(&changes);
    change_encode_gone(&changes, ROW_seat, 5);
    change_encode_gone(&changes, ROW_seat, -3);
    assert_int_equal(latest_apply(&l, changes.data, changes.len), 0);
    assert_int_equal(l.bytes, 0);
    latest_done(&l);
    buf_done(&changes);
}

/* Objects that come, grow and go for ever leave nothing behind. */
static void stays_as_large_as_what_it_holds(void **state)
{
    (void)state;
    struct latest l = {.forget_gone = true};
    struct seen s = {0};
    struct buf changes = {0};
    for (int64_t id = 1; id <= 200000; id++) {
        buf_clear(&changes);
        fixture_add(&changes, ROW_seat, id, 1);
        if (id > 3)
            change_encode_gone(&changes, ROW_seat, id - 3);
        assert_int_equal(latest_apply(&l, changes.data, changes.len), 0);
    }
    assert_true(l.memory.used < 2 << 20);
    assert_int_equal(latest_each(&l, see, &s), 0);
    assert_int_equal(s.n, 3);
    assert_true(s.ids[0] == 199998 && s.ids[2] == 200000);
    latest_done(&l);
    buf_done(&changes);
}

static void says_when_a_batch_is_damaged(void **state)
{
    (void)state;
    struct buf changes = {0};
    struct latest l = {0};
    example(&changes);
    for (size_t cut = 1; cut < 10; cut++)
        assert_int_equal(latest_apply(&l, changes.data, changes.len - cut), ERR_FORMAT);
    latest_done(&l);
    buf_done(&changes);
}

static void a_sink_can_stop_it(void **state)
{
    (void)state;
    struct buf changes = {0};
    struct latest l = {0};
    struct seen s = {.stop_at = 2};
    example(&changes);
    assert_int_equal(latest_apply(&l, changes.data, changes.len), 0);
    assert_int_equal(latest_each(&l, see, &s), ERR_TOO_MANY);
    assert_int_equal(s.n, 2);
    latest_done(&l);
    buf_done(&changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_last_change_of_each_in_order),
        cmocka_unit_test(forgets_what_is_gone_when_asked),
        cmocka_unit_test(stays_as_large_as_what_it_holds),
        cmocka_unit_test(says_when_a_batch_is_damaged),
        cmocka_unit_test(a_sink_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

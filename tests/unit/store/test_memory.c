#include "fixture.h"

#include "store/memory.h"

static void gives_back_what_was_committed(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    model_check(store, 0);
    for (int64_t seq = 1; seq <= 300; seq++) {
        model_commit(store, seq, seq);
        if (seq % 37 == 0 || seq == 300)
            model_check(store, seq);
    }
    store_close(store);
}

static void gives_its_newest_batches(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    assert_int_equal(history_check(store, INT64_MAX, 0), 0);
    model_commit(store, 1, 10);
    assert_int_equal(history_check(store, INT64_MAX, 10), 10);
    struct buf newest = {0};
    model_batch(&newest, 10);
    assert_int_equal(history_check(store, (int64_t)newest.len, 10), 1);
    assert_int_equal(history_check(store, (int64_t)newest.len - 1, 10), 0);
    model_commit(store, 11, 300);
    assert_int_equal(history_check(store, INT64_MAX, 300), 64);
    buf_done(&newest);
    store_close(store);
}

static int count_rows(void *user, const struct change *c)
{
    (void)c;
    ++*(size_t *)user;
    return 0;
}

static void stays_as_large_as_what_lives(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    struct buf changes = {0};
    for (int64_t seq = 1; seq <= 20000; seq++) {
        buf_clear(&changes);
        fixture_add(&changes, ROW_ticket, seq, 1);
        if (seq > 1)
            change_encode_gone(&changes, ROW_ticket, seq - 1);
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
    }
    size_t n = 0;
    struct store_tip tip;
    assert_int_equal(store_load(store, count_rows, &n, &tip), 0);
    assert_in_range(n, 1, 200);
    buf_done(&changes);
    store_close(store);
}

static void refuses_a_batch_out_of_order(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    struct buf empty = {0};
    assert_int_equal(fixture_commit(store, 2, &empty), ERR_IO);
    model_commit(store, 1, 1);
    assert_int_equal(fixture_commit(store, 1, &empty), ERR_IO);
    assert_int_equal(fixture_commit(store, 3, &empty), ERR_IO);
    model_check(store, 1);
    store_close(store);
}

static void fails_as_told(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    struct buf changes = {0};
    model_commit(store, 1, 3);
    model_batch(&changes, 4);

    store_memory_fail(store, STORE_MEMORY_FAILS);
    assert_int_equal(fixture_commit(store, 4, &changes), ERR_IO);
    model_check(store, 3);

    store_memory_fail(store, STORE_MEMORY_UNKNOWN);
    assert_int_equal(fixture_commit(store, 4, &changes), ERR_IO);
    model_check(store, 4);

    store_memory_fail(store, STORE_MEMORY_WORKS);
    model_commit(store, 5, 5);
    model_check(store, 5);
    buf_done(&changes);
    store_close(store);
}

static int stop_at_third(void *user, const struct change *c)
{
    (void)c;
    return ++*(int *)user == 3 ? ERR_TOO_MANY : 0;
}

static void a_sink_can_stop_the_load(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    model_commit(store, 1, 100);
    int n = 0;
    struct store_tip tip = {.seq = 7};
    assert_int_equal(store_load(store, stop_at_third, &n, &tip), ERR_TOO_MANY);
    assert_int_equal(n, 3);
    assert_int_equal(tip.seq, 7);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_back_what_was_committed),
        cmocka_unit_test(gives_its_newest_batches),
        cmocka_unit_test(stays_as_large_as_what_lives),
        cmocka_unit_test(refuses_a_batch_out_of_order),
        cmocka_unit_test(fails_as_told),
        cmocka_unit_test(a_sink_can_stop_the_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

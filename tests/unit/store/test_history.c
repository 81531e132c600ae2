/* The newest batches stay readable after they are folded, across restarts and crashes. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

/* Folding is eager, and forty rows stay. */
static const struct sqlite_tuning remembering = {
    .history_rows = 40,
    .history_bytes = 1 << 20,
    .fold = {.interval_ms = 2, .rows = 4, .bytes = 1 << 16, .slice_bytes = 1 << 20},
};

static void an_empty_store_has_none(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &remembering);
    assert_int_equal(history_check(store, INT64_MAX, 0), 0);
    store_close(store);
    fixture_remove(folder);
}

static void it_is_bounded_by_bytes(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 10);
    struct buf newest = {0};
    model_batch(&newest, 10);
    assert_int_equal(history_check(store, (int64_t)newest.len, 10), 1);
    assert_int_equal(history_check(store, (int64_t)newest.len - 1, 10), 0);
    assert_int_equal(history_check(store, INT64_MAX, 10), 10);
    buf_done(&newest);
    store_close(store);
    fixture_remove(folder);
}

static void it_outlives_folds_and_restarts(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    int64_t last = 0;
    for (int round = 0; round < 8; round++) {
        struct store *store = fixture_open(folder, &remembering);
        int64_t kept = history_check(store, INT64_MAX, last);
        assert_true(kept >= (last < 40 ? last : 40));
        model_commit(store, last + 1, last + 30);
        last += 30;
        fixture_wait_folded(store, last);
        assert_true(history_check(store, INT64_MAX, last) >= (last < 40 ? last : 40));
        store_close(store);
    }
    fixture_remove(folder);
}

/* It does not grow for ever: what is folded and older than the window goes. */
static void it_is_bounded_by_rows(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &remembering);
    for (int64_t seq = 1; seq <= 400; seq++) {
        model_commit(store, seq, seq);
        if (seq % 20 == 0)
            fixture_wait_folded(store, seq);
    }
    assert_in_range(history_check(store, INT64_MAX, 400), 40, 40 + 32 + 20);
    store_close(store);
    fixture_remove(folder);
}

struct count {
    struct model model;
    int64_t given;
};

static int count_and_model(void *user, const struct change *c)
{
    struct count *n = user;
    n->given++;
    return model_sink(&n->model, c);
}

/* However much history there is, a load takes from the journal only what is not in the tables. */
static void a_load_replays_none_of_it(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &remembering);
    model_commit(store, 1, 40);
    fixture_wait_folded(store, 40);
    assert_int_equal(history_check(store, INT64_MAX, 40), 40);
    struct count n = {0};
    assert_int_equal(store_load(store, count_and_model, &n, &n.model.tip), 0);
    struct model wanted = {0};
    model_until(&wanted, 40);
    model_assert_equal(&n.model, &wanted);
    int64_t alive = 0;
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (int id = 0; id < MODEL_IDS; id++)
            alive += wanted.rows[kind][id].len > 0;
    assert_int_equal(n.given, alive);
    model_done(&n.model);
    model_done(&wanted);
    store_close(store);
    fixture_remove(folder);
}

static void fold_and_die(const char *folder)
{
    struct store *store = NULL;
    const char *why = "";
    if (sqlite_open_tuned(folder, &remembering, &store, &why) != 0)
        _exit(2);
    struct store_figures figures = {0};
    while (figures.folded_seq < 100)
        store_sqlite_figures(store, &figures);
    raise(SIGKILL);
}

static void killed_between_fold_and_trim_it_is_whole(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 100);
    store_close(store);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        fold_and_die(folder);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));

    store = fixture_open(folder, &remembering);
    assert_int_equal(history_check(store, INT64_MAX, 100), 100);
    model_commit(store, 101, 101);
    int64_t kept = history_check(store, INT64_MAX, 101);
    assert_in_range(kept, 40, 100); /* the first commit has trimmed */
    store_close(store);
    store = fixture_open(folder, &fixture_lazy);
    assert_int_equal(history_check(store, INT64_MAX, 101), kept);
    model_check(store, 101);
    store_close(store);
    fixture_remove(folder);
}

static int stop_at_third(void *user, const struct store_batch *batch)
{
    (void)batch;
    return ++*(int *)user == 3 ? ERR_TOO_MANY : 0;
}

static void a_sink_can_stop_it(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &remembering);
    model_commit(store, 1, 10);
    int n = 0;
    assert_int_equal(store_history(store, INT64_MAX, stop_at_third, &n), ERR_TOO_MANY);
    assert_int_equal(n, 3);
    store_close(store);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_store_has_none),
        cmocka_unit_test(it_is_bounded_by_bytes),
        cmocka_unit_test(it_outlives_folds_and_restarts),
        cmocka_unit_test(it_is_bounded_by_rows),
        cmocka_unit_test(a_load_replays_none_of_it),
        cmocka_unit_test(killed_between_fold_and_trim_it_is_whole),
        cmocka_unit_test(a_sink_can_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "fixture.h"
#include "store/memory.h"
#include "store/writer.h"

#include <semaphore.h>

static struct store_figures figures_of(struct store *store)
{
    struct store_figures figures;
    assert_true(store_figures(store, &figures));
    return figures;
}

static void a_new_store_lags_nowhere(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    struct store_figures figures = figures_of(store);
    assert_int_equal(figures.last_seq, 0);
    assert_int_equal(figures.fold_lag_ms, 0);
    assert_int_equal(figures.journal_rows, 0);
    assert_int_equal(figures.journal_bytes, 0);
    assert_int_equal(figures.commits, 0);
    assert_true(figures.state_bytes > 0);
    assert_true(figures.disk_free_bytes >= 0 && figures.disk_free_bytes < figures.disk_bytes);
    store_close(store);
    fixture_remove(folder);
}

/* Batches of the fixture are 10 ms of core time apart. */
static void the_lag_is_that_of_the_oldest_batch_that_waits(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 101);
    struct store_figures figures = figures_of(store);
    assert_int_equal(figures.last_seq, 101);
    assert_int_equal(figures.folded_seq, 0);
    assert_in_range(figures.fold_lag_ms, 1000, 1000 + 10000);
    assert_int_equal(figures.journal_rows, 101);
    assert_true(figures.journal_bytes > 101);
    assert_int_equal(figures.commits, 101);
    assert_true(figures.last_commit_us > 0);
    int64_t bytes = figures.journal_bytes;
    store_close(store);

    store = fixture_open(folder, &fixture_eager);
    fixture_wait_folded(store, 101);
    figures = figures_of(store);
    assert_int_equal(figures.last_seq, 101);
    assert_int_equal(figures.fold_lag_ms, 0);
    assert_int_equal(figures.journal_bytes, bytes);
    assert_int_equal(figures.commits, 0);
    store_close(store);
    fixture_remove(folder);
}

/* The batch before it is long folded; that time is no lag. */
static void a_batch_after_a_pause_has_no_lag_yet(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    model_commit(store, 1, 1);
    fixture_wait_folded(store, 1);
    store_close(store);
    store = fixture_open(folder, &fixture_lazy);
    struct buf changes = {0};
    model_batch(&changes, 2);
    struct store_batch batch = {.seq = 2, .epoch = 1, .core_ms = 3600 * 1000, .wall_ms = 1};
    batch.changes = changes.data;
    batch.len = changes.len;
    assert_int_equal(store_commit(store, &batch), 0);
    assert_in_range(figures_of(store).fold_lag_ms, 0, 10000);
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
}

static void a_store_may_have_none(void **state)
{
    (void)state;
    struct store *store = store_open_memory();
    struct store_figures figures = {.last_seq = 77};
    assert_false(store_figures(store, &figures));
    assert_int_equal(figures.last_seq, 77);
    store_close(store);
}

static void post(void *user)
{
    sem_post(user);
}

static int commit_for_a_millisecond(struct store *s, const struct store_batch *batch)
{
    (void)s;
    (void)batch;
    int64_t start_us = clock_monotonic_us();
    while (clock_monotonic_us() < start_us + 1000)
        continue;
    return ERR_IO;
}

static void the_writer_measures_commits_well_or_not(void **state)
{
    (void)state;
    static const struct store_ops ops = {.commit = commit_for_a_millisecond};
    struct store store = {&ops};
    sem_t ended;
    sem_init(&ended, 0, 0);
    struct writer *w = writer_start(&store, post, &ended);
    struct store_batch batch = {.seq = 1};
    int result = 0;
    writer_submit(w, &batch);
    while (sem_wait(&ended) != 0)
        continue;
    assert_int_equal(writer_commit_us(w), 0); /* nobody has been told of it */
    assert_true(writer_poll(w, &result));
    assert_int_equal(result, ERR_IO);
    assert_in_range(writer_commit_us(w), 1000, 10000000);
    writer_stop(w);
    sem_destroy(&ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_store_lags_nowhere),
        cmocka_unit_test(the_lag_is_that_of_the_oldest_batch_that_waits),
        cmocka_unit_test(a_batch_after_a_pause_has_no_lag_yet),
        cmocka_unit_test(a_store_may_have_none),
        cmocka_unit_test(the_writer_measures_commits_well_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Killed at any moment, the store gives back everything it said was durable. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

/* The child: commits from `next` on and reports each durable batch. Ends only by being killed. */
static void commit_and_report(const char *folder, int64_t next, int report)
{
    struct store *store = NULL;
    const char *why = "";
    if (sqlite_open_tuned(folder, &fixture_eager, &store, &why) != 0)
        _exit(2);
    struct buf changes = {0};
    for (int64_t seq = next;; seq++) {
        model_batch(&changes, seq);
        if (fixture_commit(store, seq, &changes) != 0)
            _exit(3);
        if (write(report, &seq, sizeof(seq)) != sizeof(seq))
            _exit(4);
    }
}

/* Runs a child, kills it after `reports` durable batches and a little, and returns the last one it
 * reported. */
static int64_t run_and_kill(const char *folder, int64_t next, int reports, unsigned spin)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        commit_and_report(folder, next, fds[1]);
    }
    close(fds[1]);
    int64_t last = next - 1;
    int64_t seq;
    for (int i = 0; i < reports; i++) {
        assert_int_equal(read(fds[0], &seq, sizeof(seq)), sizeof(seq));
        last = seq;
    }
    for (volatile unsigned i = 0; i < spin; i++)
        ;
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    while (read(fds[0], &seq, sizeof(seq)) == sizeof(seq))
        last = seq;
    close(fds[0]);
    return last;
}

static void loses_nothing_that_was_durable(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    int64_t next = 1;
    unsigned x = 20260101;
    for (int round = 0; round < 60; round++) {
        x = x * 1664525u + 1013904223u;
        int64_t reported = run_and_kill(folder, next, (int)(x >> 24) % 60, (x >> 8) % 400000);
        struct store *store = fixture_open(folder, round % 2 ? &fixture_lazy : &fixture_eager);
        struct store_tip tip = {0};
        assert_int_equal(store_tip(store, &tip), 0);
        /* The one after it may have become durable without the child's living to say so. */
        assert_in_range(tip.seq, reported, reported + 1);
        model_check(store, tip.seq);
        next = tip.seq + 1;
        store_close(store);
    }
    fixture_remove(folder);
}

/* Folded but not yet trimmed: the journal still has the rows the tables already hold. */
static void killed_between_fold_and_trim(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 100);
    store_close(store);

    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *child = NULL;
        const char *why = "";
        if (sqlite_open_tuned(folder, &fixture_eager, &child, &why) != 0)
            _exit(2);
        struct store_figures figures = {0};
        while (figures.folded_seq < 100)
            store_sqlite_figures(child, &figures);
        raise(SIGKILL);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));

    store = fixture_open(folder, &fixture_eager);
    struct store_figures figures;
    store_sqlite_figures(store, &figures);
    assert_int_equal(figures.folded_seq, 100);
    assert_int_equal(figures.journal_rows, 100);
    model_check(store, 100);
    model_commit(store, 101, 120);
    store_sqlite_figures(store, &figures);
    assert_true(figures.journal_rows < 100);
    model_check(store, 120);
    store_close(store);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loses_nothing_that_was_durable),
        cmocka_unit_test(killed_between_fold_and_trim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

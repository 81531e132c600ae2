/* A disk that takes no more: commits are refused, nothing that was durable is lost, and the same
 * store works again by itself when there is room. */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static int lift_file_size(void **state)
{
    (void)state;
    limit_file_size(RLIM_INFINITY);
    return 0;
}

/* Commits until one is refused five times in a row (a checkpoint may make a little room after the
 * first), and returns the last that was not. */
static int64_t commit_until_refused(struct store *store, int64_t next)
{
    struct buf changes = {0};
    int refusals = 0;
    while (refusals < 5 && next < 100000) {
        model_batch(&changes, next);
        int err = fixture_commit(store, next, &changes);
        assert_true(err == 0 || err == ERR_IO);
        refusals = err ? refusals + 1 : 0;
        next += err ? 0 : 1;
    }
    assert_int_equal(refusals, 5);
    buf_done(&changes);
    return next - 1;
}

static void a_file_that_may_not_grow(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    model_commit(store, 1, 50);
    int64_t last = 50;
    for (int round = 0; round < 3; round++) {
        limit_file_size(1 << 20);
        last = commit_until_refused(store, last + 1);
        model_check(store, last);
        lift_file_size(state);
        model_commit(store, last + 1, last + 100);
        last += 100;
        model_check(store, last);
    }
    fixture_wait_folded(store, last);
    model_check(store, last);
    store_close(store);
    store = fixture_open(folder, &fixture_lazy);
    model_check(store, last);
    store_close(store);
    fixture_remove(folder);
}

static void fill(const char *folder)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/ballast", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    static const char zeros[4096];
    while (write(fd, zeros, sizeof(zeros)) > 0)
        ;
    assert_int_equal(errno, ENOSPC);
    close(fd);
}

static void empty(const char *folder)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/ballast", folder);
    assert_int_equal(unlink(path), 0);
}

/* The store's only disk has no byte left: commits, folds and a new opening all meet it. It is large
 * enough for what the store keeps by itself, 4 MiB of log and as much of rows that could not be
 * folded: else there would be none left when the ballast is gone, either. */
static void a_disk_without_a_byte_left(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    /* In a mount namespace of our own, so that nothing stays mounted whatever happens. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=16m") != 0) {
        fixture_remove(folder);
        skip();
    }
    struct store *store = fixture_open(folder, &fixture_eager);
    model_commit(store, 1, 50);
    int64_t last = 50;
    for (int round = 0; round < 4; round++) {
        fill(folder);
        last = commit_until_refused(store, last + 1);
        model_check(store, last);
        if (round % 2) {
            store_close(store);
            store = fixture_open(folder, &fixture_eager);
            model_check(store, last);
        }
        empty(folder);
        model_commit(store, last + 1, last + 30);
        last += 30;
        model_check(store, last);
        fixture_wait_folded(store, last);
    }
    model_check(store, last);
    store_close(store);
    assert_int_equal(umount(folder), 0);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_file_that_may_not_grow, lift_file_size),
        cmocka_unit_test(a_disk_without_a_byte_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

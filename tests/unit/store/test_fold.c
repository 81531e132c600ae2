#include "fixture.h"

#include <sqlite3.h>

/* The scheduling policy of this process' fold thread; -1 = there is none. */
static int policy_of_fold(void)
{
    int policy = -1;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[512];
        char name[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (f && fgets(name, sizeof(name), f) && strcmp(name, "fold\n") == 0)
            policy = sched_getscheduler((pid_t)strtol(e->d_name, NULL, 10));
        if (f)
            (void)fclose(f);
    }
    closedir(dir);
    return policy;
}

/* Somebody else's transaction, in which the fold has to wait. */
static sqlite3 *block_state(const char *folder)
{
    char path[1024];
    sqlite3 *db = NULL;
    snprintf(path, sizeof(path), "%s/" STATE_FILE, folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return db;
}

/* A machine that is busy gives such a thread next to nothing; the journal must not grow for it. */
static void a_fold_that_falls_behind_is_not_kept_waiting(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    assert_int_equal(policy_of_fold(), SCHED_IDLE);
    sqlite3 *db = block_state(folder);
    int64_t seq = 2 * fixture_eager.fold.rows;
    model_commit(store, 1, seq);
    assert_int_equal(policy_of_fold(), SCHED_OTHER);
    seq++;
    model_commit(store, seq, seq);
    assert_int_equal(policy_of_fold(), SCHED_OTHER);
    assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
    fixture_wait_folded(store, seq);
    seq++;
    model_commit(store, seq, seq);
    assert_int_equal(policy_of_fold(), SCHED_IDLE);
    store_close(store);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fold_that_falls_behind_is_not_kept_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* A data folder of an older format is brought to this one where it stands, and loses nothing. */
#include "old_format.h"

#include <signal.h>
#include <sys/wait.h>

static int64_t ask(const char *folder, const char *file, const char *sql)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    int64_t value = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

static void assert_upgraded(const char *folder)
{
    static const char tables[] = "SELECT count(*) FROM sqlite_master WHERE type = 'table'";
    assert_int_equal(ask(folder, JOURNAL_FILE, "PRAGMA user_version"), ROW_FORMAT);
    assert_int_equal(ask(folder, STATE_FILE, "PRAGMA user_version"), ROW_FORMAT);
    assert_int_equal(ask(folder, STATE_FILE, tables), ROW_KINDS + 1);
}

static void is_upgraded_and_used(const struct old_version *version)
{
    char *folder = fixture_folder();
    old_folder(folder, version, 40, 60);
    assert_int_equal(ask(folder, STATE_FILE, "PRAGMA user_version"), version->format);
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_check(store, 60);
    assert_upgraded(folder);
    assert_int_equal(history_check(store, INT64_MAX, 60), 24); /* old batches read as they are */
    model_commit(store, 61, 120);                              /* … with the new kinds */
    model_check(store, 120);
    store_close(store);
    store = fixture_open(folder, &fixture_eager);
    fixture_wait_folded(store, 120);
    model_check(store, 120);
    store_close(store);
    old_done();
    fixture_remove(folder);
}

static void format_1_is_upgraded_and_used(void **state)
{
    (void)state;
    is_upgraded_and_used(&old_1);
}

static void format_2_without_rooms_is_upgraded_and_used(void **state)
{
    (void)state;
    is_upgraded_and_used(&old_2);
}

static void format_2_with_rooms_is_upgraded_and_used(void **state)
{
    (void)state;
    is_upgraded_and_used(&old_2_rooms);
}

static void format_3_is_upgraded_and_used(void **state)
{
    (void)state;
    is_upgraded_and_used(&old_3);
}

static void format_4_is_upgraded_and_used(void **state)
{
    (void)state;
    is_upgraded_and_used(&old_4);
}

static void an_empty_folder_of_an_old_format_is_upgraded(void **state)
{
    (void)state;
    const struct old_version *const versions[] = {&old_1, &old_2, &old_2_rooms, &old_3, &old_4};
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        char *folder = fixture_folder();
        old_folder(folder, versions[i], 0, 0);
        struct store *store = fixture_open(folder, &fixture_eager);
        assert_upgraded(folder);
        model_commit(store, 1, 50);
        fixture_wait_folded(store, 50);
        model_check(store, 50);
        store_close(store);
        fixture_remove(folder);
    }
}

/* Killed between the two files: one has the new format and the other not. */
static void a_half_upgraded_folder_is_finished(void **state)
{
    (void)state;
    static const char *const first[] = {JOURNAL_FILE, STATE_FILE};
    for (int i = 0; i < 2; i++) {
        char *folder = fixture_folder();
        old_folder(folder, &old_2_rooms, 10, 30);
        store_close(fixture_open(folder, &fixture_lazy));
        assert_upgraded(folder);
        ask(folder, first[i], "PRAGMA user_version = 2");
        struct store *store = fixture_open(folder, &fixture_lazy);
        assert_upgraded(folder);
        model_check(store, 30);
        store_close(store);
        old_done();
        fixture_remove(folder);
    }
}

static void killed_while_upgrading_it_is_finished(void **state)
{
    (void)state;
    unsigned x = 7;
    for (int round = 0; round < 40; round++) {
        char *folder = fixture_folder();
        old_folder(folder, round % 2 ? &old_1 : &old_2_rooms, 40, 60);
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            struct store *store = NULL;
            const char *why = "";
            close(fds[0]);
            (void)!write(fds[1], "x", 1);
            (void)sqlite_open_tuned(folder, &fixture_eager, &store, &why);
            pause();
        }
        close(fds[1]);
        char go;
        assert_int_equal(read(fds[0], &go, 1), 1);
        x = x * 1664525u + 1013904223u;
        for (volatile unsigned i = 0; i < (x >> 8) % 4000000; i++)
            ;
        assert_int_equal(kill(pid, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        close(fds[0]);
        struct store *store = fixture_open(folder, &fixture_lazy);
        assert_upgraded(folder);
        model_check(store, 60);
        store_close(store);
        fixture_remove(folder);
    }
    old_done();
}

static void older_and_newer_formats_are_refused_untouched(void **state)
{
    (void)state;
    static const int versions[] = {0, -1, ROW_FORMAT + 1};
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        char *folder = fixture_folder();
        char sql[64];
        struct store *store = NULL;
        const char *why = "";
        old_folder(folder, &old_1, 0, 0);
        snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", versions[i]);
        ask(folder, STATE_FILE, sql);
        assert_int_equal(sqlite_open_tuned(folder, &fixture_lazy, &store, &why), ERR_FORMAT);
        assert_non_null(strstr(why, "this Muster understands version"));
        assert_int_equal(ask(folder, STATE_FILE, "PRAGMA user_version"), versions[i]);
        assert_int_equal(ask(folder, STATE_FILE, "SELECT count(*) FROM sqlite_master"),
                         (int)old_1.kinds + 1);
        fixture_remove(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_1_is_upgraded_and_used),
        cmocka_unit_test(format_2_without_rooms_is_upgraded_and_used),
        cmocka_unit_test(format_2_with_rooms_is_upgraded_and_used),
        cmocka_unit_test(format_3_is_upgraded_and_used),
        cmocka_unit_test(format_4_is_upgraded_and_used),
        cmocka_unit_test(an_empty_folder_of_an_old_format_is_upgraded),
        cmocka_unit_test(a_half_upgraded_folder_is_finished),
        cmocka_unit_test(killed_while_upgrading_it_is_finished),
        cmocka_unit_test(older_and_newer_formats_are_refused_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

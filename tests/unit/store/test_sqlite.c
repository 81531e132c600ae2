#include "fixture.h"

#include <fcntl.h>
#include <sys/wait.h>

static void keeps_every_kind_of_row(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct buf changes = {0};
    struct model wanted = {0};
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (int id = 0; id < 5; id++)
            fixture_add(&changes, (enum row_kind)kind, id, 77);
    model_apply(&wanted, 1, &changes);

    /* From the journal, then from the tables, then from the tables of another opening. */
    for (int round = 0; round < 3; round++) {
        struct store *store = fixture_open(folder, round == 0 ? &fixture_lazy : &fixture_eager);
        if (round == 0)
            assert_int_equal(fixture_commit(store, 1, &changes), 0);
        else
            fixture_wait_folded(store, 1);
        struct model found = {0};
        assert_int_equal(store_load(store, model_sink, &found, &found.tip), 0);
        model_assert_equal(&found, &wanted);
        model_done(&found);
        store_close(store);
    }
    model_done(&wanted);
    buf_done(&changes);
    fixture_remove(folder);
}

static void keeps_the_extremes(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct row_ticket row = {.id = 3,
                             .lobby = INT32_MIN,
                             .regions = INT64_MIN,
                             .state = INT8_MIN,
                             .session = INT64_MAX,
                             .error = INT32_MAX,
                             .game_mode = INT8_MAX};
    row.tries_len = sizeof(row.tries);
    memset(row.tries, 0, sizeof(row.tries));
    struct row_fleet fleet = {.id = 0};
    memset(fleet.name, 'x', sizeof(fleet.name) - 1);
    struct buf changes = {0};
    change_encode_row(&changes, ROW_ticket, &row);
    change_encode_row(&changes, ROW_fleet, &fleet);
    struct model wanted = {0};
    model_apply(&wanted, 1, &changes);
    struct store *store = fixture_open(folder, &fixture_eager);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    fixture_wait_folded(store, 1);
    struct model found = {0};
    assert_int_equal(store_load(store, model_sink, &found, &found.tip), 0);
    model_assert_equal(&found, &wanted);
    model_done(&found);
    model_done(&wanted);
    store_close(store);
    buf_done(&changes);
    fixture_remove(folder);
}

static void an_empty_folder_is_an_empty_store(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    model_check(store, 0);
    store_close(store);
    store = fixture_open(folder, &fixture_eager);
    model_check(store, 0);
    model_commit(store, 1, 1);
    store_close(store);
    fixture_remove(folder);
}

static void loads_the_same_before_and_after_a_fold(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 200);
    model_check(store, 200);
    struct store_figures figures;
    store_sqlite_figures(store, &figures);
    assert_int_equal(figures.folded_seq, 0);
    assert_int_equal(figures.journal_rows, 200);
    assert_int_equal(figures.commits, 200);
    store_close(store);

    store = fixture_open(folder, &fixture_eager);
    fixture_wait_folded(store, 200);
    model_check(store, 200);
    model_commit(store, 201, 260);
    model_check(store, 260);
    fixture_wait_folded(store, 260);
    model_check(store, 260);
    store_close(store);
    fixture_remove(folder);
}

static void folds_more_than_one_slice(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    struct buf changes = {0};
    struct model wanted = {0};
    /* Three times what a slice takes. */
    for (int64_t seq = 1; seq <= 3; seq++) {
        buf_clear(&changes);
        while (changes.len < 1 << 20)
            fixture_add(&changes, ROW_ticket, (int64_t)(changes.len % MODEL_IDS), (unsigned)seq);
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
        model_apply(&wanted, seq, &changes);
    }
    store_close(store);
    store = fixture_open(folder, &fixture_eager);
    fixture_wait_folded(store, 3);
    struct model found = {0};
    assert_int_equal(store_load(store, model_sink, &found, &found.tip), 0);
    model_assert_equal(&found, &wanted);
    model_done(&found);
    model_done(&wanted);
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
}

static void a_gone_row_stays_gone(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    struct buf changes = {0};
    struct model wanted = {0};
    fixture_add(&changes, ROW_seat, 1, 1);
    fixture_add(&changes, ROW_seat, 2, 1);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    model_apply(&wanted, 1, &changes);
    fixture_wait_folded(store, 1);
    buf_clear(&changes);
    change_encode_gone(&changes, ROW_seat, 1);
    change_encode_gone(&changes, ROW_seat, 2);
    fixture_add(&changes, ROW_seat, 2, 9);
    change_encode_gone(&changes, ROW_server, 50);
    model_apply(&wanted, 2, &changes);
    assert_int_equal(fixture_commit(store, 2, &changes), 0);
    for (int round = 0; round < 2; round++) {
        struct model found = {0};
        assert_int_equal(store_load(store, model_sink, &found, &found.tip), 0);
        assert_int_equal(found.rows[ROW_seat][1].len, 0);
        model_assert_equal(&found, &wanted);
        model_done(&found);
        fixture_wait_folded(store, 2);
    }
    model_done(&wanted);
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
}

static void accepts_only_the_next_batch(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    struct buf empty = {0};
    assert_int_equal(fixture_commit(store, 2, &empty), ERR_IO);
    model_commit(store, 1, 5);
    assert_int_equal(fixture_commit(store, 5, &empty), ERR_IO);
    assert_int_equal(fixture_commit(store, 7, &empty), ERR_IO);
    model_check(store, 5);
    model_commit(store, 6, 6);
    model_check(store, 6);
    assert_int_equal(fixture_commit(store, 7, &empty), 0);
    struct store_tip tip;
    assert_int_equal(store_tip(store, &tip), 0);
    assert_int_equal(tip.seq, 7);
    store_close(store);
    fixture_remove(folder);
}

static int64_t query(const char *folder, const char *file, const char *sql)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    int rc = sqlite3_step(stmt);
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return value;
}

static void trims_what_is_folded_and_nothing_else(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 2000);
    assert_int_equal(query(folder, JOURNAL_FILE, "SELECT count(*) FROM journal"), 2000);
    store_close(store);

    store = fixture_open(folder, &fixture_eager);
    fixture_wait_folded(store, 2000);
    model_commit(store, 2001, 2100);
    struct store_figures figures;
    store_sqlite_figures(store, &figures);
    assert_in_range(figures.journal_rows, 8, 200);
    assert_int_equal(query(folder, JOURNAL_FILE, "SELECT count(*) FROM journal"),
                     figures.journal_rows);
    assert_int_equal(query(folder, JOURNAL_FILE, "SELECT max(seq) FROM journal"), 2100);
    assert_true(query(folder, JOURNAL_FILE, "SELECT min(seq) FROM journal") <=
                query(folder, STATE_FILE, "SELECT value FROM meta WHERE key = 'folded_seq'") + 1);
    model_check(store, 2100);
    store_close(store);
    store = fixture_open(folder, &fixture_lazy);
    model_check(store, 2100);
    store_close(store);
    fixture_remove(folder);
}

/* Large batches leave by the bytes they take, long before there are history_rows of them. */
static void trims_by_size_too(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    struct buf changes = {0};
    while (changes.len < 400000)
        fixture_add(&changes, ROW_ticket, 1, (unsigned)changes.len);
    for (int64_t seq = 1; seq <= 40; seq++) {
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
        fixture_wait_folded(store, seq);
    }
    struct store_figures figures;
    store_sqlite_figures(store, &figures);
    assert_in_range(figures.journal_rows, 1, 10);
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
}

static void assert_refused(const char *folder, int wanted, const char *part1, const char *part2)
{
    struct store *store = NULL;
    const char *why = "";
    assert_int_equal(store_open_sqlite(folder, &store, &why), wanted);
    assert_null(store);
    if (!strstr(why, folder) || !strstr(why, part1) || !strstr(why, part2))
        fail_msg("the sentence was: %s", why);
}

/* The journal always keeps its newest row, so somebody took it away, and answers with it. */
static void refuses_tables_without_their_journal(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    model_commit(store, 1, 20);
    fixture_wait_folded(store, 20);
    store_close(store);
    query(folder, JOURNAL_FILE, "DELETE FROM journal");
    assert_refused(folder, ERR_FORMAT, "stands at batch 20", "journal.db is empty");
    char path[1024];
    snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, folder);
    assert_int_equal(unlink(path), 0);
    assert_refused(folder, ERR_FORMAT, "stands at batch 20", "Restore the whole folder");
    fixture_remove(folder);
}

static void refuses_files_of_two_moments(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    model_commit(store, 1, 100);
    fixture_wait_folded(store, 100);
    store_close(store);
    query(folder, STATE_FILE, "UPDATE meta SET value = 3 WHERE key = 'folded_seq'");
    query(folder, JOURNAL_FILE, "DELETE FROM journal WHERE seq < 90");
    assert_refused(folder, ERR_FORMAT, "stands at batch 3", "Restore both");
    query(folder, STATE_FILE, "UPDATE meta SET value = 101 WHERE key = 'folded_seq'");
    assert_refused(folder, ERR_FORMAT, "stands at batch 101", "Restore both");
    query(folder, STATE_FILE, "UPDATE meta SET value = 89 WHERE key = 'folded_seq'");
    query(folder, JOURNAL_FILE, "DELETE FROM journal WHERE seq = 95");
    assert_refused(folder, ERR_FORMAT, "journal.db", "Restore");
    fixture_remove(folder);
}

static void a_second_opening_is_refused(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    assert_refused(folder, ERR_LOCKED, "in use by another", "--data");
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* The descriptor we inherited carries the lock too, so let the child open anew: the parent
         * still holds it. */
        struct store *second = NULL;
        const char *why = "";
        int err = store_open_sqlite(folder, &second, &why);
        _exit(err == ERR_LOCKED && strstr(why, folder) ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    model_commit(store, 1, 1);
    store_close(store);
    store = fixture_open(folder, &fixture_eager);
    model_check(store, 1);
    store_close(store);
    fixture_remove(folder);
}

static void an_unknown_version_is_refused(void **state)
{
    (void)state;
    static const char *const files[] = {JOURNAL_FILE, STATE_FILE};
    char understood[64];
    snprintf(understood, sizeof(understood), "understands version %d", ROW_FORMAT);
    char sql[64];
    for (int i = 0; i < 2; i++) {
        char *folder = fixture_folder();
        store_close(fixture_open(folder, &fixture_eager));
        query(folder, files[i], "PRAGMA user_version = 4242");
        assert_refused(folder, ERR_FORMAT, files[i], "format version 4242");
        assert_refused(folder, ERR_FORMAT, understood, "Start the Muster version");
        snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", ROW_FORMAT);
        query(folder, files[i], sql);
        query(folder, files[i], "PRAGMA application_id = 99");
        assert_refused(folder, ERR_FORMAT, files[i], "another program");
        snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", DBFILE_APPLICATION_ID);
        query(folder, files[i], sql);
        store_close(fixture_open(folder, &fixture_eager));
        fixture_remove(folder);
    }
}

static void overwrite(const char *folder, const char *file, long offset, size_t n)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    char noise[4096];
    memset(noise, 0x5A, sizeof(noise));
    assert_true(n <= sizeof(noise));
    assert_int_equal(pwrite(fd, noise, n, offset), (ssize_t)n);
    close(fd);
}

static void what_is_no_database_is_refused(void **state)
{
    (void)state;
    static const char *const files[] = {JOURNAL_FILE, STATE_FILE};
    for (int i = 0; i < 2; i++) {
        char *folder = fixture_folder();
        overwrite(folder, files[i], 0, 4096);
        assert_refused(folder, ERR_FORMAT, files[i],
                       "is damaged or no SQLite database: file is not a database");
        fixture_remove(folder);
    }
}

static int ignore(void *user, const struct change *c)
{
    (void)user;
    (void)c;
    return 0;
}

static void a_damaged_row_fails_the_load(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    struct store_tip tip;
    model_commit(store, 1, 9);
    query(folder, JOURNAL_FILE, "UPDATE journal SET changes = x'0500ffff' WHERE seq = 4");
    assert_int_equal(store_load(store, ignore, NULL, &tip), ERR_FORMAT);
    query(folder, JOURNAL_FILE, "UPDATE journal SET changes = x'' WHERE seq = 4");
    assert_int_equal(store_load(store, ignore, NULL, &tip), 0);
    query(folder, STATE_FILE, "INSERT INTO seat VALUES (1, 1, 1, 1, 300)");
    assert_int_equal(store_load(store, ignore, NULL, &tip), ERR_FORMAT);
    query(folder, STATE_FILE, "UPDATE seat SET state = 3");
    assert_int_equal(store_load(store, ignore, NULL, &tip), 0);
    query(folder, STATE_FILE, "INSERT INTO fleet VALUES (1, printf('%064d', 0))");
    assert_int_equal(store_load(store, ignore, NULL, &tip), ERR_FORMAT);
    query(folder, STATE_FILE, "UPDATE fleet SET name = CAST(x'fffe' AS TEXT)");
    assert_int_equal(store_load(store, ignore, NULL, &tip), ERR_FORMAT);
    store_close(store);
    fixture_remove(folder);
}

static void only_the_owner_may_read(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    char path[1024];
    snprintf(path, sizeof(path), "%s/data", folder);
    mode_t before = umask(0);
    struct store *store = fixture_open(path, &fixture_eager);
    model_commit(store, 1, 10);
    fixture_wait_folded(store, 10);
    umask(before);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    static const char *const files[] = {"lock",          "journal.db",   "journal.db-wal",
                                        "state.db",      "state.db-wal", "state.db-shm",
                                        "journal.db-shm"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char file[1100];
        snprintf(file, sizeof(file), "%s/%s", path, files[i]);
        assert_int_equal(stat(file, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
    }
    store_close(store);
    fixture_remove(xstrdup(path));
    fixture_remove(folder);
}

static void a_folder_that_cannot_be_made_is_refused(void **state)
{
    (void)state;
    assert_refused("/proc/muster/data", ERR_IO, "cannot be made", "No such file");
    char *folder = fixture_folder();
    char path[1024];
    snprintf(path, sizeof(path), "%s/file", folder);
    overwrite(folder, "file", 0, 1);
    assert_refused(path, ERR_IO, "cannot be opened", "Not a directory");
    fixture_remove(folder);
}

static void the_folder_may_be_a_link_but_not_a_file_in_it(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    char *elsewhere = fixture_folder();
    char path[1024];
    snprintf(path, sizeof(path), "%s/link", folder);
    assert_int_equal(symlink(elsewhere, path), 0);
    struct store *store = fixture_open(path, &fixture_eager);
    model_commit(store, 1, 3);
    store_close(store);
    store = fixture_open(elsewhere, &fixture_eager);
    model_check(store, 3);
    store_close(store);

    snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, folder);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_refused(folder, ERR_IO, JOURNAL_FILE, "cannot be opened");
    fixture_remove(elsewhere);
    fixture_remove(folder);
}

/* A commit that makes the log longer takes the disk longer. */
static void the_log_has_its_length_from_the_beginning(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    char path[1024];
    struct stat before, after;
    snprintf(path, sizeof(path), "%s/" JOURNAL_FILE "-wal", folder);
    struct store *store = fixture_open(folder, &fixture_eager);
    assert_int_equal(stat(path, &before), 0);
    model_commit(store, 1, 100);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_in_range(after.st_size, 4 << 20, 5 << 20);
    store_close(store);
    fixture_remove(folder);
}

/* Beyond what it begins with it grows in steps, so that few commits make it longer. */
static void the_log_grows_in_steps(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    struct buf changes = {0};
    while (changes.len < 20000)
        fixture_add(&changes, ROW_ticket, 1, (unsigned)changes.len);
    char path[1024];
    struct stat st;
    snprintf(path, sizeof(path), "%s/" JOURNAL_FILE "-wal", folder);
    assert_int_equal(stat(path, &st), 0);
    int64_t first = st.st_size;
    int64_t size = first;
    int longer = 0;
    for (int64_t seq = 1; seq <= 400; seq++) {
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
        assert_int_equal(stat(path, &st), 0);
        longer += st.st_size != size;
        size = st.st_size;
    }
    assert_in_range(size - first, 1 << 20, 20 << 20);
    assert_in_range(longer, 1, 20);
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
}

/* The log starts over while commits go on, so it stays small. */
static void the_log_does_not_grow_without_bound(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    struct buf changes = {0};
    while (changes.len < 200000)
        fixture_add(&changes, ROW_ticket, 1, (unsigned)changes.len);
    int64_t largest = 0;
    char path[1024];
    snprintf(path, sizeof(path), "%s/" JOURNAL_FILE "-wal", folder);
    for (int64_t seq = 1; seq <= 500; seq++) {
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        if (st.st_size > largest)
            largest = st.st_size;
    }
    /* 100 MB were written. */
    assert_in_range(largest, 1 << 20, 80 << 20);
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_kind_of_row),
        cmocka_unit_test(keeps_the_extremes),
        cmocka_unit_test(an_empty_folder_is_an_empty_store),
        cmocka_unit_test(loads_the_same_before_and_after_a_fold),
        cmocka_unit_test(folds_more_than_one_slice),
        cmocka_unit_test(a_gone_row_stays_gone),
        cmocka_unit_test(accepts_only_the_next_batch),
        cmocka_unit_test(trims_what_is_folded_and_nothing_else),
        cmocka_unit_test(trims_by_size_too),
        cmocka_unit_test(refuses_tables_without_their_journal),
        cmocka_unit_test(refuses_files_of_two_moments),
        cmocka_unit_test(a_second_opening_is_refused),
        cmocka_unit_test(an_unknown_version_is_refused),
        cmocka_unit_test(what_is_no_database_is_refused),
        cmocka_unit_test(a_damaged_row_fails_the_load),
        cmocka_unit_test(only_the_owner_may_read),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_refused),
        cmocka_unit_test(the_folder_may_be_a_link_but_not_a_file_in_it),
        cmocka_unit_test(the_log_has_its_length_from_the_beginning),
        cmocka_unit_test(the_log_grows_in_steps),
        cmocka_unit_test(the_log_does_not_grow_without_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

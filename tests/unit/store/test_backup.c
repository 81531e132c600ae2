/* Backups of a store that is in use, and data folders made of them. */
#include "unit/store/fixture.h"

#include "store/archive.h"
#include "store/backup.h"
#include "store/fold.h"
#include "store/restore.h"
#include "store/restore_unpack.h"
#include "store/state.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static _Atomic bool never;

/* ── copies ────────────────────────────────────────────────────────────────────────────────── */

static void remove_folder(char *folder)
{
    archive_remove("/", folder + 1);
    free(folder);
}

/* The copy holds the history up to where it says it stands. */
static void check_copy(const char *folder, const struct store_tip *tip)
{
    struct state copy = {0};
    struct why why;
    struct model found = {0};
    struct model wanted = {0};
    assert_int_equal(state_open(&copy, folder, &why), 0);
    assert_int_equal(state_load(&copy, model_sink, &found), 0);
    assert_int_equal(state_tip(&copy, &found.tip), SQLITE_OK);
    model_until(&wanted, tip->seq);
    model_assert_equal(&found, &wanted);
    model_done(&found);
    model_done(&wanted);
    state_close(&copy);
}

static void copy_and_check(struct store *store, int64_t at_least)
{
    char *into = fixture_folder();
    struct store_tip tip = {0};
    struct why why = {{0}};
    assert_int_equal(store_copy(store, into, &never, &tip, &why), 0);
    assert_true(tip.seq >= at_least);
    check_copy(into, &tip);
    remove_folder(into);
}

static void what_is_not_folded_is_in_the_copy(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    model_commit(store, 1, 40);
    copy_and_check(store, 40);
    model_commit(store, 41, 60);
    copy_and_check(store, 60);
    store_close(store);
    fixture_remove(folder);
}

struct committing {
    struct store *store;
    _Atomic bool stop;
    _Atomic int64_t last;
};

static void *commit_on(void *arg)
{
    struct committing *c = arg;
    while (!c->stop) {
        model_commit(c->store, c->last + 1, c->last + 1);
        c->last++;
    }
    return NULL;
}

/* Folding and trimming go on beside it, with a history so short that rows would be missed. */
static void a_copy_is_of_one_moment_while_commits_go_on(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct committing c = {.store = fixture_open(folder, &fixture_eager)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, commit_on, &c), 0);
    for (int i = 0; i < 20; i++) {
        int64_t before = c.last;
        copy_and_check(c.store, before);
        while (c.last < before + 20)
            sched_yield(); /* it commits after the copy, too */
    }
    c.stop = true;
    pthread_join(thread, NULL);
    model_check(c.store, c.last);
    store_close(c.store);
    fixture_remove(folder);
}

static void a_copy_that_is_stopped_says_so(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    char *into = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_lazy);
    _Atomic bool now = true;
    struct store_tip tip;
    struct why why;
    assert_int_equal(store_copy(store, into, &now, &tip, &why), ERR_IO);
    assert_non_null(strstr(why.text, "stopped"));
    archive_remove(into, STATE_FILE);
    assert_int_equal(dbfile_copy(folder, STATE_FILE, into, &never, &why), 0);
    assert_int_equal(fold_copy(into, folder, &fixture_lazy.fold, &now, &tip, &why), ERR_IO);
    assert_non_null(strstr(why.text, "stopped"));
    store_close(store);
    fixture_remove(folder);
    remove_folder(into);
}

/* A log beside the copy would not be in the backup. The last page of the file finds no room. */
static void a_copy_that_cannot_be_finished_is_refused(void **state)
{
    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN);
    char *folder = fixture_folder();
    char *into = fixture_folder();
    char *again = fixture_folder();
    char path[512];
    struct stat whole;
    struct store *store = fixture_open(folder, &fixture_lazy);
    struct buf changes = {0};
    struct store_tip tip;
    struct why why;
    for (int i = 1; i <= 3000; i++)
        fixture_add(&changes, ROW_server, i, 1);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    assert_int_equal(store_copy(store, into, &never, &tip, &why), 0);
    (void)snprintf(path, sizeof(path), "%s/" STATE_FILE, into);
    assert_int_equal(stat(path, &whole), 0);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit limit = {(rlim_t)whole.st_size - 1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int err = store_copy(store, again, &never, &tip, &why);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, ERR_IO);
    assert_non_null(strstr(why.text, "cannot be copied"));
    buf_done(&changes);
    store_close(store);
    fixture_remove(folder);
    remove_folder(into);
    remove_folder(again);
}

/* ── a folder, its backup, and back ────────────────────────────────────────────────────────── */

enum { SERVERS = 300 };

static void put_file(const char *folder, const char *name, const void *text, size_t len)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, text, len) == (ssize_t)len);
    close(fd);
}

/* A node with some rows, a secret and one deployment. */
static struct store *make_node(const char *folder)
{
    static const char archive[] = "not really an archive";
    char path[512];
    char hex[ARCHIVE_HEX];
    uint8_t digest[ARCHIVE_DIGEST];
    struct store *store = fixture_open(folder, &fixture_lazy);
    struct buf changes = {0};
    for (int i = 1; i <= SERVERS; i++)
        fixture_add(&changes, ROW_server, i, 1);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    buf_done(&changes);
    put_file(folder, "secret", "0123456789abcdef0123456789abcdef", 32);
    (void)snprintf(path, sizeof(path), "%s/deployments", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put_file(path, "draft", archive, sizeof(archive));
    (void)snprintf(path, sizeof(path), "%s/deployments/draft", folder);
    int fd = open(path, O_RDONLY);
    assert_int_equal(archive_digest(fd, NULL, digest), 0);
    close(fd);
    (void)snprintf(path, sizeof(path), "%s/deployments", folder);
    put_file(path, archive_hex(digest, hex), archive, sizeof(archive));
    return store;
}

static void take_backup(struct store *store, const char *folder, struct buf *ret)
{
    struct backup *b = NULL;
    const char *why = NULL;
    struct backup_wanted wanted = {
        .folder = folder, .version = "1.2.3", .wall_ms = 5000, .deployments = true};
    backup_make(store, &wanted, &never, &b);
    assert_false(backup_failed(b, &why));
    int more;
    do
        more = backup_read(b, ret, 700);
    while (more == 1);
    assert_int_equal(more, 0);
    backup_free(b);
}

static int in_memory(const void *data, size_t len)
{
    int fd = memfd_create("backup", MFD_CLOEXEC);
    assert_true(fd >= 0 && write(fd, data, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static int restore_bytes(const char *folder, const void *data, size_t len,
                         struct restore_report *report, struct why *why)
{
    int fd = in_memory(data, len);
    int err = restore_run(folder, fd, STR("root"), 3600 * 1000, report, why);
    close(fd);
    return err;
}

static int count_server(void *user, const struct change *c)
{
    *(int *)user += c->kind == ROW_server && !c->gone;
    return 0;
}

static int servers_in(const char *folder)
{
    int n = 0;
    struct store_tip tip;
    struct store *store = fixture_open(folder, &fixture_lazy);
    assert_int_equal(store_load(store, count_server, &n, &tip), 0);
    store_close(store);
    return n;
}

static int count_files(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

struct node {
    char *folder;
    struct buf backup;
};

static int setup(void **state)
{
    struct node *n = xcalloc(1, sizeof(*n));
    char *source = fixture_folder();
    struct store *store = make_node(source);
    take_backup(store, source, &n->backup);
    store_close(store);
    assert_int_equal(count_files(source), 5); /* nothing of the copy stays */
    remove_folder(source);
    n->folder = fixture_folder();
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    struct node *n = *state;
    remove_folder(n->folder);
    buf_done(&n->backup);
    free(n);
    return 0;
}

static void a_backup_becomes_a_folder(void **state)
{
    struct node *n = *state;
    struct restore_report report;
    struct why why = {{0}};
    assert_int_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why), 0);
    assert_string_equal(report.version, "1.2.3");
    assert_int_equal(report.batch, 1);
    assert_int_equal(report.deployments, 1);
    assert_string_equal(report.aside, "");
    assert_int_equal(servers_in(n->folder), SERVERS);
    struct store *store = fixture_open(n->folder, &fixture_lazy);
    struct store_tip tip;
    assert_int_equal(store_tip(store, &tip), 0);
    assert_true(tip.seq > (INT64_C(1) << 32));
    struct buf changes = {0};
    fixture_add(&changes, ROW_server, SERVERS + 1, 1);
    assert_int_equal(fixture_commit(store, tip.seq + 1, &changes), 0); /* and goes on */
    buf_done(&changes);
    store_close(store);
    assert_int_equal(servers_in(n->folder), SERVERS + 1);
}

/* Wherever it is cut, and whatever byte is wrong: nothing is touched. */
static void a_damaged_backup_changes_nothing(void **state)
{
    struct node *n = *state;
    struct restore_report report;
    struct why why = {{0}};
    size_t end = n->backup.len - 1024 - 512; /* after its sums only zeros follow */
    for (size_t cut = 0; cut < end; cut += end / 60) {
        assert_int_equal(restore_bytes(n->folder, n->backup.data, cut, &report, &why), ERR_FORMAT);
        assert_int_equal(count_files(n->folder), 0);
    }
    for (size_t at = 0; at < end; at += end / 60) {
        n->backup.data[at] ^= 0x40;
        assert_int_not_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why),
                             0);
        assert_int_equal(count_files(n->folder), 0);
        n->backup.data[at] ^= 0x40;
    }
}

static void what_was_there_is_moved_aside(void **state)
{
    struct node *n = *state;
    struct restore_report report;
    struct why why = {{0}};
    char aside[600];
    store_close(make_node(n->folder));
    put_file(n->folder, "admin.token", "old", 3);
    assert_true(restore_finds_data(n->folder));
    assert_int_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why), 0);
    (void)snprintf(aside, sizeof(aside), "%s/%s", n->folder, report.aside);
    assert_int_equal(count_files(aside), 5); /* two databases, secret, deployments, token */
    assert_int_equal(servers_in(n->folder), SERVERS);
    assert_int_equal(servers_in(aside), SERVERS);
}

static bool is_in(const char *folder, const char *name, struct stat *st)
{
    char path[600];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return lstat(path, st) == 0;
}

/* Whoever runs Muster could not start it otherwise. */
static void what_root_restores_belongs_to_whom_the_folder_does(void **state)
{
    struct node *n = *state;
    struct restore_report report;
    struct why why = {{0}};
    struct stat st;
    int fd = -1;
    if (geteuid() != 0)
        skip();
    store_close(make_node(n->folder));
    (void)snprintf(why.text, sizeof(why.text), "%s/lock", n->folder);
    assert_int_equal(unlink(why.text), 0);
    assert_int_equal(chown(n->folder, 1234, 1235), 0);
    assert_int_equal(store_lock_folder(n->folder, &fd, &why), 0);
    assert_int_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why), 0);
    close(fd);
    const char *const made[] = {"lock", STATE_FILE, "journal.db", "secret", report.aside};
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
        assert_true(is_in(n->folder, made[i], &st));
        assert_int_equal(st.st_uid, 1234);
        assert_int_equal(st.st_gid, 1235);
    }
}

/* They are somebody's, and were removed at the next start. */
static void only_what_a_restore_has_made_ready_is_taken(void **state)
{
    struct node *n = *state;
    static const char *const folders[] = {"restored-by-hand", "restored-20261116-120000-0000"};
    static const char *const files[] = {"restored-", "restored-20261116-120000-000"};
    char path[600];
    struct stat st;
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", n->folder, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        put_file(path, "secret", "of another", 10);
        put_file(n->folder, files[i], "text", 4);
    }
    store_close(fixture_open(n->folder, &fixture_lazy));
    for (size_t i = 0; i < 2; i++) {
        assert_true(is_in(n->folder, folders[i], &st));
        assert_true(is_in(n->folder, files[i], &st));
    }
    assert_false(is_in(n->folder, "secret", &st));
}

/* A child is killed wherever it happens to be. Afterwards the folder is the old or the new one. */
static int greatest_server(void *user, const struct change *c)
{
    int64_t *next = user;
    if (c->kind == ROW_counter && c->id == ROW_server && !c->gone)
        *next = c->counter.next;
    return 0;
}

static int64_t next_server(const char *folder, struct store_tip *tip)
{
    int64_t next = 0;
    struct store *store = fixture_open(folder, &fixture_lazy);
    assert_int_equal(store_load(store, greatest_server, &next, tip), 0);
    store_close(store);
    return next;
}

/* The clock was set back, or stands still; what was given since is in the folder's journal. */
static void numbers_of_the_folder_are_not_given_again(void **state)
{
    struct node *n = *state;
    struct restore_report report;
    struct why why = {{0}};
    struct store_tip first;
    struct store_tip second;
    struct buf changes = {0};
    assert_int_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why), 0);
    int64_t epoch = report.epoch;
    int64_t next = next_server(n->folder, &first) + 1000;
    struct row_counter given = {.id = ROW_server, .next = next};
    struct store *store = fixture_open(n->folder, &fixture_lazy);
    change_encode_row(&changes, ROW_counter, &given);
    assert_int_equal(fixture_commit(store, first.seq + 1, &changes), 0);
    store_close(store);
    assert_int_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why), 0);
    assert_string_equal(report.unread, "");
    assert_true(report.epoch > epoch);
    assert_true(next_server(n->folder, &second) >= next);
    assert_true(second.seq > first.seq + 2);
    buf_done(&changes);
}

/* That may be why it is restored. */
static void a_damaged_folder_is_restored_all_the_same(void **state)
{
    struct node *n = *state;
    struct restore_report report;
    struct why why = {{0}};
    store_close(make_node(n->folder));
    put_file(n->folder, STATE_FILE, "no database", 11);
    assert_int_equal(restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why), 0);
    assert_non_null(strstr(report.unread, STATE_FILE));
    assert_int_equal(servers_in(n->folder), SERVERS);
}

static void a_restore_that_is_killed_leaves_all_or_nothing(void **state)
{
    struct node *n = *state;
    struct store *store = fixture_open(n->folder, &fixture_lazy);
    struct buf changes = {0};
    fixture_add(&changes, ROW_server, 1, 1);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    buf_done(&changes);
    store_close(store);
    put_file(n->folder, "secret", "0123456789abcdef0123456789abcdef", 32);
    int old = 0;
    int new = 0;
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct restore_report report;
            struct why why;
            (void)restore_bytes(n->folder, n->backup.data, n->backup.len, &report, &why);
            _exit(0);
        }
        struct timespec pause = {0, i % 30 * 400 * 1000};
        (void)nanosleep(&pause, NULL);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        int servers = servers_in(n->folder);
        assert_true(servers == (new ? SERVERS : 1) || servers == SERVERS);
        old += servers == 1;
        new += servers == SERVERS;
    }
    assert_int_equal(old + new, 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_folded_is_in_the_copy),
        cmocka_unit_test(a_copy_is_of_one_moment_while_commits_go_on),
        cmocka_unit_test(a_copy_that_is_stopped_says_so),
        cmocka_unit_test(a_copy_that_cannot_be_finished_is_refused),
        cmocka_unit_test_setup_teardown(what_root_restores_belongs_to_whom_the_folder_does, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_what_a_restore_has_made_ready_is_taken, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_backup_becomes_a_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_backup_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_there_is_moved_aside, setup, teardown),
        cmocka_unit_test_setup_teardown(numbers_of_the_folder_are_not_given_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_folder_is_restored_all_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restore_that_is_killed_leaves_all_or_nothing, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

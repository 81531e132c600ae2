#include "postgres.h"

#include "fixture.h"

#include "store/cell_lease.h"
#include "store/cell_link.h"
#include "store/migrate.h"

#include <ftw.h>

enum { BATCHES = 300, WALL_S = 1700000000 };

static struct cell_config cell_of(const char *name)
{
    struct cell_config c = {.url = postgres_url(), .cell = name, .lease_ms = 500};
    memset(c.secret_print, 7, sizeof(c.secret_print));
    return c;
}

/* A folder with a history, of which most is folded. */
static char *filled_folder(void)
{
    char *folder = fixture_folder();
    struct store *store = fixture_open(folder, &fixture_eager);
    struct buf changes = {0};
    for (int64_t seq = 1; seq <= BATCHES; seq++) {
        model_batch(&changes, seq);
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
    }
    store_close(store);
    buf_done(&changes);
    return folder;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_folder(char *folder)
{
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(folder);
}

static bool exists(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static struct migrate_report moved(int err, const struct migrate_report *r, const struct why *why)
{
    if (err != 0)
        print_error("%s\n", why->text);
    assert_int_equal(err, 0);
    return *r;
}

static struct migrate_report to_cell(const char *folder, const struct cell_config *c)
{
    struct migrate_report r;
    struct why why = {""};
    int err = migrate_to_cell(folder, c, WALL_S * (int64_t)1000, &r, &why);
    return moved(err, &r, &why);
}

static struct migrate_report to_folder(const struct cell_config *c, const char *folder)
{
    struct migrate_report r;
    struct why why = {""};
    int err = migrate_to_folder(c, folder, WALL_S * (int64_t)1000, &r, &why);
    return moved(err, &r, &why);
}

static void refused(int err, const struct why *why, const char *sentence)
{
    if (err != ERR_FORMAT || !strstr(why->text, sentence))
        print_error("%d %s\n", err, why->text);
    assert_int_equal(err, ERR_FORMAT);
    assert_non_null(strstr(why->text, sentence));
}

static void there_and_back_all_is_the_same(void **state)
{
    (void)state;
    char *folder = filled_folder();
    struct cell_config c = cell_of("there");
    struct migrate_report there = to_cell(folder, &c);
    assert_int_equal(there.batch, BATCHES);
    assert_true(there.rows > 10);
    assert_true(there.history >= 8);
    assert_int_equal(postgres_ask("muster_there", "SELECT seq FROM fold"), BATCHES);
    assert_int_equal(postgres_ask("muster_there", "SELECT max(seq) FROM journal"), BATCHES);
    assert_false(exists(folder, "journal.db"));
    assert_true(exists(folder, there.aside));

    char *other = fixture_folder();
    struct migrate_report back = to_folder(&c, other);
    assert_string_equal(back.digest, there.digest);
    assert_int_equal(back.rows, there.rows);
    assert_int_equal(back.batch, BATCHES);
    assert_int_equal(back.history, there.history);
    assert_int_equal(postgres_ask(NULL, "SELECT count(*) FROM pg_namespace"
                                        " WHERE nspname LIKE 'muster_there_moved_%'"),
                     1);
    struct store *store = fixture_open(other, &fixture_eager);
    model_check(store, BATCHES);
    struct buf changes = {0};
    model_batch(&changes, BATCHES + 1); /* and goes on */
    assert_int_equal(fixture_commit(store, BATCHES + 1, &changes), 0);
    model_check(store, BATCHES + 1);
    buf_done(&changes);
    store_close(store);
    remove_folder(folder);
    remove_folder(other);
}

static void what_was_moved_is_not_served_any_more(void **state)
{
    (void)state;
    char *folder = filled_folder();
    struct cell_config c = cell_of("mark");
    struct store *store = NULL;
    const char *sentence = "";
    struct why why = {""};
    struct migrate_report r;
    (void)to_cell(folder, &c);
    assert_int_equal(store_open_sqlite(folder, &store, &sentence), ERR_FORMAT);
    assert_non_null(strstr(sentence, "was moved to cell mark"));
    refused(migrate_to_cell(folder, &c, 0, &r, &why), &why, "was moved to cell mark");
    (void)to_folder(&c, folder); /* back into the same folder */
    store = fixture_open(folder, &fixture_eager);
    model_check(store, BATCHES);
    store_close(store);
    remove_folder(folder);
}

static void a_cell_with_data_takes_no_other(void **state)
{
    (void)state;
    char *folder = filled_folder();
    char *second = filled_folder();
    struct cell_config c = cell_of("full");
    struct why why = {""};
    struct migrate_report r;
    (void)to_cell(folder, &c);
    refused(migrate_to_cell(second, &c, 0, &r, &why), &why, "holds data already, up to batch 300");
    struct store *store = fixture_open(second, &fixture_eager); /* it is as it was */
    model_check(store, BATCHES);
    store_close(store);
    refused(migrate_to_folder(&c, second, 0, &r, &why), &why, "holds data already");
    remove_folder(folder);
    remove_folder(second);
}

static void nothing_is_nothing_to_move(void **state)
{
    (void)state;
    char *folder = fixture_folder();
    struct cell_config c = cell_of("none");
    struct why why = {""};
    struct migrate_report r;
    refused(migrate_to_cell(folder, &c, 0, &r, &why), &why, "there is nothing to move");
    refused(migrate_to_folder(&c, folder, 0, &r, &why), &why, "there is nothing to move");
    assert_false(exists(folder, "restore.tmp"));
    remove_folder(folder);
}

static void another_secret_is_refused(void **state)
{
    (void)state;
    char *folder = filled_folder();
    char *other = fixture_folder();
    struct cell_config c = cell_of("secret");
    struct why why = {""};
    struct migrate_report r;
    (void)to_cell(folder, &c);
    c.secret_print[0] ^= 1;
    refused(migrate_to_folder(&c, other, 0, &r, &why), &why, "another secret");
    remove_folder(folder);
    remove_folder(other);
}

static void a_running_node_is_not_disturbed(void **state)
{
    (void)state;
    char *folder = filled_folder();
    struct cell_config c = cell_of("busy");
    struct why why = {""};
    struct migrate_report r;
    struct pg *pg = NULL;
    snprintf(c.self.name, sizeof(c.self.name), "node-1");
    c.self.id = 5;
    assert_int_equal(cell_prepare(&c, &why), 0);
    assert_int_equal(cell_connect(&c, "test", 5000, 5000, &pg, &why), 0);
    assert_int_equal(cell_lease_prepare(pg, &why), 0);
    assert_int_equal(cell_node_say(pg, &c.self, 0, true, &why), 0);
    refused(migrate_to_cell(folder, &c, 0, &r, &why), &why, "Node node-1 of cell busy is running");
    assert_true(exists(folder, "journal.db"));
    pg_close(pg);
    remove_folder(folder);
}

/* It was killed and holds the lease still; what it wakes up with is worth nothing. */
static void a_dead_leader_is_waited_for_and_shut_out(void **state)
{
    (void)state;
    char *folder = filled_folder();
    struct cell_config c = cell_of("dead");
    struct why why = {""};
    struct pg *pg = NULL;
    struct cell_lease_seen seen;
    int64_t epoch = 0;
    bool ours = true;
    c.self.id = 5;
    assert_int_equal(cell_prepare(&c, &why), 0);
    assert_int_equal(cell_connect(&c, "test", 5000, 5000, &pg, &why), 0);
    assert_int_equal(cell_lease_prepare(pg, &why), 0);
    assert_int_equal(cell_lease_read(pg, &seen, &why), 0);
    assert_int_equal(cell_lease_take(pg, &c.self, &seen.row, &epoch, &why), 0);
    assert_true(epoch > 0);
    int64_t began_ms = clock_monotonic_ms();
    (void)to_cell(folder, &c);
    assert_true(clock_monotonic_ms() - began_ms >= c.lease_ms);
    assert_int_equal(cell_lease_renew(pg, c.self.id, epoch, &ours, &why), 0);
    assert_false(ours);
    pg_close(pg);
    remove_folder(folder);
}

/* It died after the cell had everything and before the folder was tidied up. */
static void a_move_that_was_cut_off_is_ended_by_the_next(void **state)
{
    (void)state;
    char *folder = filled_folder();
    char keep[256];
    char command[640];
    struct cell_config c = cell_of("cut");
    struct migrate_report first = to_cell(folder, &c);
    snprintf(keep, sizeof(keep), "%s/%s", folder, first.aside);
    snprintf(command, sizeof(command), "mv %s/*.db* %s/ && rmdir %s", keep, folder, keep);
    assert_int_equal(system(command), 0);
    struct migrate_report again = to_cell(folder, &c);
    assert_string_equal(again.digest, first.digest);
    assert_false(exists(folder, "journal.db"));
    assert_true(exists(folder, again.aside));
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back_all_is_the_same),
        cmocka_unit_test(what_was_moved_is_not_served_any_more),
        cmocka_unit_test(a_cell_with_data_takes_no_other),
        cmocka_unit_test(nothing_is_nothing_to_move),
        cmocka_unit_test(another_secret_is_refused),
        cmocka_unit_test(a_running_node_is_not_disturbed),
        cmocka_unit_test(a_dead_leader_is_waited_for_and_shut_out),
        cmocka_unit_test(a_move_that_was_cut_off_is_ended_by_the_next),
    };
    return cmocka_run_group_tests(tests, postgres_setup, postgres_teardown);
}

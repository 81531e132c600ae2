/* The store of a cell while all is well: what goes in comes out, before and after folds, of as many
 * batches on their way as it takes; the lease is kept, and given back. */
#include "leader.h"

#include "store/state.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

static void check_load(struct store *store, const struct model *wanted)
{
    struct model found = {0};
    assert_int_equal(store_load(store, model_sink, &found, &found.tip), 0);
    model_assert_equal(&found, wanted);
    model_done(&found);
}

static void keeps_every_kind_of_row(void **state)
{
    (void)state;
    struct buf changes = {0};
    struct model wanted = {0};
    for (int kind = 0; kind < ROW_KINDS; kind++)
        for (int id = 0; id < 5; id++)
            fixture_add(&changes, (enum row_kind)kind, id, 77);
    model_apply(&wanted, 1, &changes);
    /* From the journal, then from the tables, then from the tables of another leader. */
    for (int round = 0; round < 3; round++) {
        static struct leader l;
        struct store *store = leader_start(&l, "kinds", round == 0 ? &leader_lazy : &leader_eager);
        if (round == 0)
            assert_int_equal(fixture_commit(store, 1, &changes), 0);
        else
            fixture_wait_folded(store, 1);
        check_load(store, &wanted);
        store_close(store);
    }
    model_done(&wanted);
    buf_done(&changes);
}

static void keeps_the_extremes(void **state)
{
    (void)state;
    struct row_ticket row = {.id = 3,
                             .lobby = INT32_MIN,
                             .regions = INT64_MIN,
                             .state = INT8_MIN,
                             .session = INT64_MAX,
                             .error = INT32_MAX,
                             .game_mode = INT8_MAX};
    row.tries_len = sizeof(row.tries);
    struct row_fleet fleet = {.id = 0};
    memset(fleet.name, '\\', sizeof(fleet.name) - 1); /* twice as long in the table */
    struct buf changes = {0};
    change_encode_row(&changes, ROW_ticket, &row);
    change_encode_row(&changes, ROW_fleet, &fleet);
    struct model wanted = {0};
    model_apply(&wanted, 1, &changes);
    static struct leader l;
    struct store *store = leader_start(&l, "extremes", &leader_eager);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    fixture_wait_folded(store, 1);
    check_load(store, &wanted);
    model_done(&wanted);
    store_close(store);
    buf_done(&changes);
}

static void loads_the_same_before_and_after_a_fold(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "folds", &leader_lazy);
    model_check(store, 0);
    model_commit(store, 1, 200);
    model_check(store, 200);
    struct store_figures figures = {0};
    assert_true(store_figures(store, &figures));
    assert_int_equal(figures.folded_seq, 0);
    assert_int_equal(figures.last_seq, 200);
    assert_int_equal(figures.journal_rows, 200);
    assert_int_equal(figures.journal_bytes,
                     postgres_ask("muster_folds", "SELECT sum(length(changes)) FROM journal"));
    assert_int_equal(figures.commits, 200);
    assert_true(figures.last_commit_us > 0 && figures.state_bytes > 0);
    assert_true(figures.fold_lag_ms >= (200 - 1) * 10);
    store_close(store);

    store = leader_start(&l, "folds", &leader_eager);
    fixture_wait_folded(store, 200);
    model_check(store, 200);
    model_commit(store, 201, 260);
    model_check(store, 260);
    fixture_wait_folded(store, 260);
    model_check(store, 260);
    assert_true(store_figures(store, &figures));
    assert_int_equal(figures.fold_lag_ms, 0);
    store_close(store);
}

static void folds_more_than_one_slice(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "slices", &leader_lazy);
    struct buf changes = {0};
    struct model wanted = {0};
    for (int64_t seq = 1; seq <= 3; seq++) { /* each fills one */
        buf_clear(&changes);
        while (changes.len < 1 << 20)
            fixture_add(&changes, ROW_ticket, (int64_t)(changes.len % MODEL_IDS), (unsigned)seq);
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
        model_apply(&wanted, seq, &changes);
    }
    store_close(store);
    store = leader_start(&l, "slices", &leader_eager);
    fixture_wait_folded(store, 3);
    check_load(store, &wanted);
    model_done(&wanted);
    buf_done(&changes);
    store_close(store);
}

/* More than one statement's worth of one kind. */
static void folds_many_objects(void **state)
{
    (void)state;
    enum { MANY = 10000 };
    static struct leader l;
    struct store *store = leader_start(&l, "many", &leader_eager);
    struct buf changes = {0};
    for (int64_t id = 1; id <= MANY; id++)
        fixture_add(&changes, ROW_seat, id, 1);
    assert_int_equal(fixture_commit(store, 1, &changes), 0);
    fixture_wait_folded(store, 1);
    assert_int_equal(postgres_ask("muster_many", "SELECT count(*) FROM seat"), MANY);
    buf_clear(&changes);
    for (int64_t id = 1; id <= MANY; id += 2)
        change_encode_gone(&changes, ROW_seat, id);
    assert_int_equal(fixture_commit(store, 2, &changes), 0);
    fixture_wait_folded(store, 2);
    assert_int_equal(postgres_ask("muster_many", "SELECT count(*) FROM seat"), MANY / 2);
    assert_int_equal(postgres_ask("muster_many", "SELECT min(id) FROM seat"), 2);
    buf_done(&changes);
    store_close(store);
}

static void a_gone_row_stays_gone(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "gone", &leader_eager);
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
    check_load(store, &wanted);
    fixture_wait_folded(store, 2);
    check_load(store, &wanted);
    model_done(&wanted);
    buf_done(&changes);
    store_close(store);
}

static void accepts_only_the_next_batch(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "next", &leader_eager);
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
    assert_true(store_holds(store));
    store_close(store);
}

/* ── several on their way ──────────────────────────────────────────────────────────────────── */

static void begin_one(struct store *store, int64_t seq)
{
    struct buf changes = {0};
    model_batch(&changes, seq);
    struct store_batch batch = {.seq = seq,
                                .epoch = 1,
                                .core_ms = seq * 10,
                                .wall_ms = seq * 100,
                                .changes = changes.data,
                                .len = changes.len};
    assert_int_equal(store->ops->begin(store, &batch), 0);
    buf_done(&changes); /* it is not needed any more */
}

static int end_one(struct store *store)
{
    int result = 99;
    assert_true(store->ops->end(store, -1, &result));
    return result;
}

static void several_are_on_their_way(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "several", &leader_eager);
    int depth = store_depth(store);
    assert_true(depth > 1);
    int64_t begun = 0;
    for (int64_t ended = 0; ended < 200; ended++) {
        while (begun - ended < depth && begun < 200)
            begin_one(store, ++begun);
        assert_int_equal(end_one(store), 0);
    }
    model_check(store, 200);
    /* After one that fails, those behind it fail. */
    begin_one(store, 201);
    begin_one(store, 203);
    begin_one(store, 204);
    assert_int_equal(end_one(store), 0);
    assert_int_equal(end_one(store), ERR_IO);
    assert_int_equal(end_one(store), ERR_IO);
    model_check(store, 201);
    model_commit(store, 202, 210);
    model_check(store, 210);
    store_close(store);
}

/* Whoever has more to begin does not wait for what is on its way. */
static void waiting_for_the_oldest_can_be_cut_short(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "woken", &leader_lazy);
    struct pg *pg = postgres_connect("muster_woken");
    struct why why = {""};
    leader_good(pg_script(pg, "BEGIN; LOCK TABLE journal", &why), &why);
    int wake = eventfd(0, EFD_CLOEXEC);
    int result = 99;
    begin_one(store, 1);
    assert_int_equal(eventfd_write(wake, 1), 0);
    assert_false(store->ops->end(store, wake, &result));
    begin_one(store, 2);
    assert_false(store->ops->end(store, wake, &result));
    leader_good(pg_script(pg, "COMMIT", &why), &why);
    assert_int_equal(end_one(store), 0);
    assert_int_equal(end_one(store), 0);
    model_check(store, 2);
    close(wake);
    pg_close(pg);
    store_close(store);
}

/* ── the journal ───────────────────────────────────────────────────────────────────────────── */

static void trims_what_is_folded_and_nothing_else(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "trim", &leader_lazy);
    model_commit(store, 1, 100);
    assert_int_equal(postgres_ask("muster_trim", "SELECT count(*) FROM journal"), 100);
    store_close(store);
    store = leader_start(&l, "trim", &leader_eager);
    leader_await("muster_trim", "SELECT min(seq) FROM journal", 93);
    struct store_figures figures = {0}; /* which follow when the database has said so */
    int64_t bytes = postgres_ask("muster_trim", "SELECT sum(length(changes)) FROM journal");
    FIXTURE_AWAIT(store, &figures, figures.journal_rows == 8 && figures.journal_bytes == bytes);
    model_check(store, 100);
    for (int64_t seq = 101; seq <= 300; seq++)
        model_commit(store, seq, seq);
    fixture_wait_folded(store, 300);
    model_check(store, 300);
    assert_int_equal(postgres_ask("muster_trim", "SELECT max(seq) FROM journal"), 300);
    int64_t rows = postgres_ask("muster_trim", "SELECT count(*) FROM journal");
    assert_true(rows >= 8);
    store_close(store);
}

static void trims_by_size_too(void **state)
{
    (void)state;
    static struct leader l;
    struct postgres_fold_tuning small = leader_eager;
    small.history_rows = 1000;
    struct store *store = leader_start(&l, "size", &small);
    struct buf changes = {0};
    while (changes.len < 300 << 10)
        fixture_add(&changes, ROW_ticket, (int64_t)(changes.len % MODEL_IDS), 1);
    for (int64_t seq = 1; seq <= 20; seq++)
        assert_int_equal(fixture_commit(store, seq, &changes), 0);
    /* A megabyte is three of them. */
    leader_await("muster_size", "SELECT (count(*) <= 7)::int FROM journal", 1);
    assert_true(postgres_ask("muster_size", "SELECT count(*) FROM journal") >= 3);
    assert_int_equal(postgres_ask("muster_size", "SELECT max(seq) FROM journal"), 20);
    /* One that is larger than all that stays is the newest, and stays. */
    while (changes.len < 2 << 20)
        fixture_add(&changes, ROW_ticket, (int64_t)(changes.len % MODEL_IDS), 1);
    assert_int_equal(fixture_commit(store, 21, &changes), 0);
    leader_await("muster_size", "SELECT count(*) FROM journal", 1);
    assert_int_equal(postgres_ask("muster_size", "SELECT max(seq) FROM journal"), 21);
    assert_int_equal(fixture_commit(store, 22, &changes), 0);
    buf_done(&changes);
    store_close(store);
}

static void the_history_is_bounded(void **state)
{
    (void)state;
    static struct leader l;
    struct postgres_fold_tuning forty = leader_eager;
    forty.history_rows = 40;
    struct store *store = leader_start(&l, "history", &forty);
    assert_int_equal(history_check(store, INT64_MAX, 0), 0);
    struct buf newest = {0};
    model_commit(store, 1, 10);
    model_batch(&newest, 10);
    assert_int_equal(history_check(store, (int64_t)newest.len, 10), 1);
    assert_int_equal(history_check(store, (int64_t)newest.len - 1, 10), 0);
    assert_int_equal(history_check(store, INT64_MAX, 10), 10);
    buf_done(&newest);
    model_commit(store, 11, 300);
    fixture_wait_folded(store, 300);
    leader_await("muster_history", "SELECT (count(*) < 40 + 32)::int FROM journal", 1);
    assert_in_range(history_check(store, INT64_MAX, 300), 40, 40 + 32);
    store_close(store);
}

static int stop_at_third(void *user, const struct store_batch *batch)
{
    (void)batch;
    return ++*(int *)user == 3 ? ERR_BAD_ARGUMENT : 0;
}

static void a_sink_can_stop_the_history(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "stopped", &leader_lazy);
    model_commit(store, 1, 10);
    int n = 0;
    assert_int_equal(store_history(store, INT64_MAX, stop_at_third, &n), ERR_BAD_ARGUMENT);
    assert_int_equal(n, 3);
    store_close(store);
}

static void damage_fails_the_load(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "damage", &leader_lazy);
    struct store_tip tip;
    struct model found = {0};
    model_commit(store, 1, 10);
    postgres_do("muster_damage", "UPDATE journal SET changes = '\\xff' WHERE seq = 5");
    assert_int_equal(store_load(store, model_sink, &found, &tip), ERR_FORMAT);
    postgres_do("muster_damage", "DELETE FROM journal WHERE seq = 5");
    assert_int_equal(store_load(store, model_sink, &found, &tip), ERR_FORMAT);
    model_done(&found);
    store_close(store);
}

/* As it is when a folder was moved into it: tables, and no journal. */
static void a_cell_without_a_journal_goes_on_from_its_tables(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "moved", &leader_eager);
    struct buf empty = {0};
    model_commit(store, 1, 7);
    fixture_wait_folded(store, 7);
    store_close(store);
    postgres_do("muster_moved", "DELETE FROM journal");
    store = leader_start(&l, "moved", &leader_eager);
    model_check(store, 7);
    assert_int_equal(fixture_commit(store, 9, &empty), ERR_IO);
    model_commit(store, 8, 12);
    fixture_wait_folded(store, 12);
    model_check(store, 12);
    store_close(store);
}

/* ── copies ────────────────────────────────────────────────────────────────────────────────── */

static void check_copy(const char *folder, const struct store_tip *tip)
{
    struct state copy = {0};
    struct model found = {0};
    struct model wanted = {0};
    struct why why = {""};
    leader_good(state_open(&copy, folder, &why), &why);
    assert_int_equal(state_tip(&copy, &found.tip), SQLITE_OK);
    assert_int_equal(state_load(&copy, model_sink, &found), 0);
    assert_int_equal(found.tip.seq, tip->seq);
    model_until(&wanted, tip->seq);
    model_assert_equal(&found, &wanted);
    model_done(&found);
    model_done(&wanted);
    state_close(&copy);
}

struct committing {
    struct store *store;
    _Atomic int64_t seq;
    _Atomic bool stop;
};

static void *commit_on(void *arg)
{
    struct committing *c = arg;
    struct buf changes = {0};
    while (!c->stop) {
        model_batch(&changes, c->seq + 1);
        if (fixture_commit(c->store, c->seq + 1, &changes) != 0)
            break;
        c->seq++;
    }
    buf_done(&changes);
    return NULL;
}

static void a_copy_is_of_one_moment_while_commits_go_on(void **state)
{
    (void)state;
    static struct leader l;
    struct committing c = {.store = leader_start(&l, "copy", &leader_eager)};
    _Atomic bool stop = false;
    struct why why = {""};
    pthread_t thread;
    model_commit(c.store, 1, 50);
    c.seq = 50;
    assert_int_equal(pthread_create(&thread, NULL, commit_on, &c), 0);
    for (int round = 0; round < 5; round++) {
        char *folder = fixture_folder();
        struct store_tip tip = {0};
        int64_t before = c.seq;
        leader_good(store_copy(c.store, folder, &stop, &tip, &why), &why);
        assert_true(tip.seq >= before);
        check_copy(folder, &tip);
        fixture_remove(folder);
    }
    c.stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(c.seq > 50);
    model_check(c.store, c.seq);
    store_close(c.store);
}

static void a_copy_that_cannot_be_made_says_so(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "nocopy", &leader_lazy);
    _Atomic bool stop = true;
    struct why why = {""};
    struct store_tip tip = {0};
    char *folder = fixture_folder();
    model_commit(store, 1, 50);
    assert_int_equal(store_copy(store, folder, &stop, &tip, &why), ERR_IO);
    assert_non_null(strstr(why.text, "it was stopped"));
    stop = false;
    assert_int_equal(store_copy(store, "/nowhere/at/all", &stop, &tip, &why), ERR_IO);
    assert_non_null(strstr(why.text, "/nowhere/at/all"));
    store_close(store);
    fixture_remove(folder);
}

/* ── the lease ─────────────────────────────────────────────────────────────────────────────── */

static void the_lease_is_renewed(void **state)
{
    (void)state;
    static struct leader l;
    leader_take(&l, postgres_url(), "renewed", 5, 8000);
    leader_open(&l, &leader_lazy);
    /* Every quarter of it, so by then it would have ended. */
    leader_await("muster_renewed", "SELECT (beat >= 6)::int FROM lease", 1);
    assert_true(store_holds(l.store));
    assert_int_equal(postgres_ask("muster_renewed", "SELECT holder FROM lease"), 5);
    model_commit(l.store, 1, 3);
    struct cell_view view = {0};
    struct patience patience = {0};
    while (view.n_nodes == 0 || view.nodes[0].seq < 3) {
        assert_true(patience_lasts(&patience));
        assert_true(store_cluster(l.store, &view));
        usleep(1000);
    }
    assert_string_equal(view.cell, "renewed");
    assert_int_equal(view.epoch, 1);
    assert_int_equal(view.seq, 3);
    assert_int_equal(view.lease_ms, 8000);
    assert_int_equal(view.leader.id, 5);
    assert_string_equal(view.leader.http, "http://10.0.0.5:9508");
    assert_int_equal(view.n_nodes, 1);
    assert_int_equal(view.nodes[0].node.id, 5);
    assert_true(view.nodes[0].ready);
    store_close(l.store);
}

static void what_is_given_back_can_be_had_at_once(void **state)
{
    (void)state;
    static struct leader l;
    struct buf empty = {0};
    struct store *store = leader_start(&l, "back", &leader_lazy);
    struct pg *standby = postgres_connect(NULL);
    struct why why = {""};
    model_commit(store, 1, 3);
    leader_await("muster_back", "SELECT count(*) FROM node", 1);
    leader_good(cell_listen(standby, "back", &why), &why);
    store_give_back(store);
    assert_int_equal(postgres_ask("muster_back", "SELECT holder FROM lease"), 0);
    assert_int_equal(postgres_ask("muster_back", "SELECT count(*) FROM node"), 0);
    assert_int_equal(pg_wait(standby, 10000, -1), PG_NEWS_NOTICE);
    assert_false(store_holds(store));
    assert_int_equal(fixture_commit(store, 4, &empty), ERR_IO);
    struct cell_view view = {0};
    assert_true(store_cluster(store, &view));
    assert_int_equal(view.leader.id, 0);
    store_give_back(store);
    store_close(store);
    pg_close(standby);
    assert_int_equal(postgres_ask("muster_back", "SELECT max(seq) FROM journal"), 3);
}

static void standbys_hear_of_batches(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "heard", &leader_lazy);
    struct pg *standby = postgres_connect(NULL);
    struct why why = {""};
    leader_good(cell_listen(standby, "heard", &why), &why);
    for (int64_t seq = 1; seq <= 20; seq++) {
        model_commit(store, seq, seq);
        assert_int_equal(pg_wait(standby, 10000, -1), PG_NEWS_NOTICE);
    }
    store_close(store);
    pg_close(standby);
}

static void a_cell_that_stands_elsewhere_is_not_opened(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "elsewhere", &leader_lazy);
    model_commit(store, 1, 3);
    store_close(store);
    leader_take(&l, postgres_url(), "elsewhere", 1, LEADER_LONG_MS);
    struct why why = {""};
    l.tip.seq = 2;
    assert_int_equal(postgres_open_tuned(&l.c, &l.term, &l.tip, &leader_lazy, &store, &why),
                     ERR_IO);
    assert_non_null(strstr(why.text, "ends with batch 3"));
    l.tip.seq = 4;
    assert_int_equal(postgres_open_tuned(&l.c, &l.term, &l.tip, &leader_lazy, &store, &why),
                     ERR_IO);
    assert_non_null(strstr(why.text, "has lost batches"));
    l.tip.seq = 3;
    l.term.epoch--;
    assert_int_equal(postgres_open_tuned(&l.c, &l.term, &l.tip, &leader_lazy, &store, &why),
                     ERR_IO);
    assert_non_null(strstr(why.text, "Another node leads"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_every_kind_of_row),
        cmocka_unit_test(keeps_the_extremes),
        cmocka_unit_test(loads_the_same_before_and_after_a_fold),
        cmocka_unit_test(folds_more_than_one_slice),
        cmocka_unit_test(folds_many_objects),
        cmocka_unit_test(a_gone_row_stays_gone),
        cmocka_unit_test(accepts_only_the_next_batch),
        cmocka_unit_test(several_are_on_their_way),
        cmocka_unit_test(waiting_for_the_oldest_can_be_cut_short),
        cmocka_unit_test(trims_what_is_folded_and_nothing_else),
        cmocka_unit_test(trims_by_size_too),
        cmocka_unit_test(the_history_is_bounded),
        cmocka_unit_test(a_sink_can_stop_the_history),
        cmocka_unit_test(damage_fails_the_load),
        cmocka_unit_test(a_cell_without_a_journal_goes_on_from_its_tables),
        cmocka_unit_test(a_copy_is_of_one_moment_while_commits_go_on),
        cmocka_unit_test(a_copy_that_cannot_be_made_says_so),
        cmocka_unit_test(the_lease_is_renewed),
        cmocka_unit_test(what_is_given_back_can_be_had_at_once),
        cmocka_unit_test(standbys_hear_of_batches),
        cmocka_unit_test(a_cell_that_stands_elsewhere_is_not_opened),
    };
    return cmocka_run_group_tests(tests, postgres_setup, postgres_teardown);
}

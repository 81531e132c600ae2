/* Who takes the lease, and when. */
#include "nodes.h"

#include "store/postgres.h"

/* Until the lease has been renewed so often, of which four times is as long as it lasts. */
static void wait_beats(const char *cell, int64_t n)
{
    char schema[32];
    snprintf(schema, sizeof(schema), "muster_%s", cell);
    int64_t first = postgres_ask(schema, "SELECT beat FROM lease");
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    while (postgres_ask(schema, "SELECT beat FROM lease") < first + n) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(10000);
    }
}

static void of_two_on_an_empty_cell_one_leads(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        char cell[16];
        struct node n[2];
        snprintf(cell, sizeof(cell), "two_%d", round);
        name_node(&n[0], cell, 1);
        name_node(&n[1], cell, 2);
        start(&n[0], 0);
        start(&n[1], 0);
        follower_set_ready(n[0].f, true);
        int64_t until_ms = clock_monotonic_ms() + LONG_MS;
        while (view(&n[0]).state != FOLLOWER_LEADS && view(&n[1]).state != FOLLOWER_LEADS) {
            assert_true(clock_monotonic_ms() < until_ms);
            usleep(1000);
        }
        int first = view(&n[0]).state == FOLLOWER_LEADS ? 0 : 1;
        /* It goes on renewing, so the other stays where it is. */
        (void)wait_state(&n[1 - first], FOLLOWER_FOLLOWING);
        wait_leader(&n[1 - first], first + 1);
        if (round == 0) /* longer than it would last */
            wait_beats(cell, 6);
        assert_int_equal(view(&n[first]).state, FOLLOWER_LEADS);
        wait_leader(&n[first], first + 1);
        assert_int_equal(view(&n[1 - first]).state, FOLLOWER_FOLLOWING);
        assert_int_equal(view(&n[1 - first]).epoch, 1);
        assert_string_equal(view(&n[1 - first]).leader.http, n[first].c.self.http);
        stop(&n[1 - first]);
        stop(&n[first]);
        char schema[24];
        snprintf(schema, sizeof(schema), "muster_%s", cell);
        assert_int_equal(postgres_ask(schema, "SELECT holder FROM lease"), 0);
        assert_int_equal(postgres_ask(schema, "SELECT count(*) FROM node"), 0);
    }
}

static void a_silent_leader_is_replaced(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "silent");
    for (int i = 0; i < 6; i++) { /* as long as it is not silent it stays */
        usleep(LEASE_MS * 250);
        renew(&l);
    }
    int64_t committed_ms = clock_boot_ms();
    commit_one(&l);
    assert_int_equal(view(&b).state, FOLLOWER_FOLLOWING);
    wait_leader(&b, 1);
    renew(&l);
    int64_t from_ms = clock_monotonic_ms();
    (void)wait_state(&b, FOLLOWER_LEADS);
    int64_t took_ms = clock_monotonic_ms() - from_ms;
    print_message("silent leader replaced after %lld ms, lease %d ms\n", (long long)took_ms,
                  LEASE_MS);
    assert_true(took_ms >= LEASE_MS - 1);
    assert_false(commit_bytes(&l, &(struct buf){0}));
    struct leader next;
    take_from(&b, &next);
    assert_int_equal(next.term.epoch, 2);
    assert_true(next.term.heard_ms >= committed_ms); /* on a clock that nobody sets */
    assert_true(next.term.heard_ms <= clock_boot_ms() - took_ms);
    same_as_fresh(&b.c, next.core, &next.tip, 3);
    end_leader(&a, &l);
    end_leader(&b, &next);
}

static void what_is_given_back_is_taken_at_once(void **state)
{
    (void)state;
    enum { N = 10 };
    int64_t took_us[N];
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "given");
    for (int i = 0; i < N; i++) {
        struct node *from = i % 2 == 0 ? &a : &b;
        struct node *to = i % 2 == 0 ? &b : &a;
        wait_leader(to, l.id);
        commit_one(&l);
        int64_t from_us = clock_monotonic_us();
        give_back(&l);
        (void)wait_state(to, FOLLOWER_LEADS);
        took_us[i] = clock_monotonic_us() - from_us;
        struct leader next;
        take_from(to, &next);
        assert_int_equal(next.tip.seq, i + 1);
        assert_int_equal(next.term.epoch, i + 2);
        int64_t id = l.id;
        end_leader(from, &l);
        l = next;
        start_ready(from, "given", id);
        (void)wait_state(from, FOLLOWER_FOLLOWING);
        renew(&l);
    }
    qsort(took_us, N, sizeof(*took_us), by_number);
    print_message("given back to taken: p50 %lld us, p95 %lld us, n %d\n",
                  (long long)took_us[N / 2], (long long)took_us[N * 95 / 100], N);
    assert_true(took_us[N / 2] < 500000);
    stop(N % 2 == 0 ? &b : &a);
    end_leader(N % 2 == 0 ? &a : &b, &l);
}

/* What is taken goes on in the leader's own store, and the other hears of it by the store's words.
 */
static void a_store_goes_on_from_there(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct node a;
    struct node b;
    struct core *core = NULL;
    struct store_tip tip;
    struct cell_term term;
    struct store *store = NULL;
    struct why why = {""};
    name_node(&a, "store", 1);
    name_node(&b, "store", 2);
    start(&a, 0);
    (void)wait_state(&a, FOLLOWER_LEADS);
    usleep(LEASE_MS * 300);
    int64_t from_ms = clock_boot_ms();
    follower_take(a.f, &core, &tip, &term);
    assert_int_equal(term.heard_ms, 0); /* everything was there before it */
    assert_true(term.lease.until_ms >= from_ms + a.c.lease_ms * 9 / 10);
    good(store_open_postgres(&a.c, &term, &tip, &store, &why), &why);
    start(&b, 0);
    follower_set_ready(b.f, true);
    (void)wait_state(&b, FOLLOWER_FOLLOWING);
    wait_leader(&b, 1);
    struct buf changes = {0};
    int64_t behind[N];
    from_ms = clock_monotonic_ms();
    for (int i = 0; i < N; i++) {
        changes.len = 0;
        make_batch(&changes, i + 1);
        struct store_batch batch = {i + 1, term.epoch, i, i, changes.data, changes.len, 0, 0};
        assert_int_equal(store_commit(store, &batch), 0);
        behind[i] = i + 1 - view(&b).seq;
    }
    qsort(behind, N, sizeof(*behind), by_number);
    print_message("behind a store: p50 %lld, p95 %lld, max %lld batches, n %d in %lld ms\n",
                  (long long)behind[N / 2], (long long)behind[N * 95 / 100],
                  (long long)behind[N - 1], N, (long long)(clock_monotonic_ms() - from_ms));
    wait_seq(&b, N);
    wait_beats("store", 5); /* nothing to write, and still there */
    assert_true(store_holds(store));
    assert_int_equal(view(&b).state, FOLLOWER_FOLLOWING);

    from_ms = clock_monotonic_ms();
    store_give_back(store);
    (void)wait_state(&b, FOLLOWER_LEADS);
    print_message("given back by a store to taken: %lld ms\n",
                  (long long)(clock_monotonic_ms() - from_ms));
    struct leader next;
    take_from(&b, &next);
    same_as_fresh(&b.c, next.core, &next.tip, 50);
    store_close(store);
    core_free(core);
    buf_done(&changes);
    close(a.changed_fd);
    end_leader(&b, &next);
}

/* Somebody steals what nobody has come for yet. */
static void a_lease_lost_before_it_is_taken_over_does_not_hold(void **state)
{
    (void)state;
    struct node a;
    struct leader l;
    start_ready(&a, "stolen", 1);
    (void)wait_state(&a, FOLLOWER_LEADS);
    postgres_do("muster_stolen", "UPDATE lease SET epoch = 9, holder = 5");
    usleep(LEASE_MS * 1000);
    assert_int_equal(view(&a).state, FOLLOWER_LEADS);
    take_from(&a, &l);
    assert_false(lease_holds(&l.term.lease, clock_boot_ms()));
    end_leader(&a, &l);
    assert_int_equal(postgres_ask("muster_stolen", "SELECT holder FROM lease"), 5);
}

/* A node that is there by its row alone, and does nothing. */
static void a_row_of_another(const char *schema, bool ready)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
             "INSERT INTO node VALUES (50, 'other', '', '', '', '', '', 0, %s,"
             " now() + interval '1 hour')",
             ready ? "true" : "false");
    postgres_do(schema, sql);
}

static int64_t led_after_ms(struct node *n, int64_t hold_off_ms, bool ready)
{
    int64_t from_ms = clock_monotonic_ms();
    start(n, hold_off_ms);
    follower_set_ready(n->f, ready);
    (void)wait_state(n, FOLLOWER_LEADS);
    int64_t took_ms = clock_monotonic_ms() - from_ms;
    follower_stop(n->f);
    return took_ms;
}

static void who_stepped_down_lets_others_go_first(void **state)
{
    (void)state;
    struct node n;
    name_node(&n, "hold", 1);
    /* Nobody else is there. */
    assert_true(led_after_ms(&n, 60000, true) < 30000);
    a_row_of_another("muster_hold", false);
    assert_true(led_after_ms(&n, 2500, true) >= 2499);
    /* Meanwhile it does not say that it could. */
    start(&n, 60000);
    follower_set_ready(n.f, true);
    (void)wait_state(&n, FOLLOWER_FOLLOWING);
    assert_int_equal(postgres_ask("muster_hold", "SELECT ready::int FROM node WHERE id = 1"), 0);
    stop(&n);
}

static void who_stepped_down_is_ready_when_another_leads(void **state)
{
    (void)state;
    struct node n;
    name_node(&n, "held", 1);
    n.c.lease_ms = 60000;
    assert_true(led_after_ms(&n, 0, true) < 30000);
    a_row_of_another("muster_held", true);
    start(&n, 60000);
    follower_set_ready(n.f, true);
    (void)wait_state(&n, FOLLOWER_FOLLOWING);
    assert_int_equal(postgres_ask("muster_held", "SELECT ready::int FROM node WHERE id = 1"), 0);
    postgres_do("muster_held", "UPDATE lease SET holder = 50, epoch = epoch + 1, beat = beat + 1");
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    while (postgres_ask("muster_held", "SELECT ready::int FROM node WHERE id = 1") != 1)
        assert_true(clock_monotonic_ms() < until_ms);
    assert_int_equal(view(&n).state, FOLLOWER_FOLLOWING);
    stop(&n);
}

static void who_is_not_ready_lets_others_go_first(void **state)
{
    (void)state;
    struct node n;
    name_node(&n, "unready", 1);
    n.c.lease_ms = 60000;
    assert_true(led_after_ms(&n, 0, false) < 30000); /* nobody else is there */
    a_row_of_another("muster_unready", false);
    assert_true(led_after_ms(&n, 0, false) < 30000); /* nobody who is */
    postgres_do("muster_unready", "UPDATE node SET ready = true");
    assert_true(led_after_ms(&n, 0, true) < 30000);
    n.c.lease_ms = 2000;
    assert_true(led_after_ms(&n, 0, false) >= 1999);
    /* It becomes ready meanwhile. */
    n.c.lease_ms = 60000;
    start(&n, 0);
    (void)wait_state(&n, FOLLOWER_FOLLOWING);
    usleep(200000);
    assert_int_equal(view(&n).state, FOLLOWER_FOLLOWING);
    follower_set_ready(n.f, true);
    (void)wait_state(&n, FOLLOWER_LEADS);
    stop(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_on_an_empty_cell_one_leads),
        cmocka_unit_test(a_silent_leader_is_replaced),
        cmocka_unit_test(what_is_given_back_is_taken_at_once),
        cmocka_unit_test(a_store_goes_on_from_there),
        cmocka_unit_test(a_lease_lost_before_it_is_taken_over_does_not_hold),
        cmocka_unit_test(who_stepped_down_lets_others_go_first),
        cmocka_unit_test(who_stepped_down_is_ready_when_another_leads),
        cmocka_unit_test(who_is_not_ready_lets_others_go_first),
    };
    return cmocka_run_group_tests(tests, nodes_setup, postgres_teardown);
}

/* What a standby has, and how it comes by it; test_takeover.c is about the lease. */
#include "nodes.h"

#include <malloc.h>

static void batches_are_followed_at_once(void **state)
{
    (void)state;
    enum { N = 400 };
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "batches");
    int64_t late_us[N];
    for (int i = 0; i < N; i++) {
        commit_one(&l);
        int64_t from_us = clock_monotonic_us();
        wait_seq(&b, l.tip.seq);
        late_us[i] = clock_monotonic_us() - from_us;
        if (i % 50 == 0)
            renew(&l);
    }
    qsort(late_us, N, sizeof(*late_us), by_number);
    print_message("applied after the commit: p50 %lld us, p95 %lld us, max %lld us, n %d\n",
                  (long long)late_us[N / 2], (long long)late_us[N * 95 / 100],
                  (long long)late_us[N - 1], N);
    assert_true(late_us[N / 2] < 50000);

    /* Now without waiting for it. */
    int64_t behind[N];
    for (int i = 0; i < N; i++) {
        commit_one(&l);
        behind[i] = l.tip.seq - view(&b).seq;
        if (i % 50 == 0)
            renew(&l);
    }
    qsort(behind, N, sizeof(*behind), by_number);
    print_message("behind while it runs: p50 %lld, p95 %lld, max %lld batches, n %d\n",
                  (long long)behind[N / 2], (long long)behind[N * 95 / 100],
                  (long long)behind[N - 1], N);
    assert_true(behind[N / 2] < 20); /* on a machine that has other work */
    wait_seq(&b, l.tip.seq);
    assert_int_equal(view(&b).head_seq, l.tip.seq);
    assert_int_equal(view(&b).state, FOLLOWER_FOLLOWING);

    give_back(&l);
    (void)wait_state(&b, FOLLOWER_LEADS);
    struct leader next;
    take_from(&b, &next);
    assert_int_equal(next.tip.seq, 2 * N);
    same_as_fresh(&b.c, next.core, &next.tip, 50);
    assert_false(commit_bytes(&l, &(struct buf){0}));
    commit_one(&next);
    /* It is a core: it can be started. */
    assert_true(lease_holds(&next.term.lease, clock_boot_ms()));
    end_leader(&a, &l);
    end_leader(&b, &next);
}

static void a_journal_that_was_trimmed_is_loaded_again(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "trimmed");
    for (int i = 0; i < 10; i++)
        commit_one(&l);
    wait_seq(&b, 10);
    /* All of it was folded and trimmed. */
    postgres_do("muster_trimmed",
                "BEGIN; DELETE FROM journal; DELETE FROM seat; INSERT INTO seat (id, session,"
                " fleet, account, state) VALUES (77, 1, 1, 1, 1);"
                "UPDATE fold SET seq = 100, core_ms = 1000, wall_ms = 10000;"
                "NOTIFY muster_trimmed; COMMIT");
    wait_seq(&b, 100);
    (void)wait_state(&b, FOLLOWER_FOLLOWING);
    /* … and some of it, so that there is a gap. */
    l.tip = (struct store_tip){100, 1000, 10000};
    postgres_do("muster_trimmed", "BEGIN; INSERT INTO journal VALUES"
                                  " (200, 1, 2000, 20000, '');"
                                  "UPDATE fold SET seq = 199, core_ms = 5, wall_ms = 6;"
                                  "DELETE FROM seat; INSERT INTO seat (id, session, fleet, account,"
                                  " state) VALUES (78, 1, 1, 1, 1);"
                                  "NOTIFY muster_trimmed; COMMIT");
    wait_seq(&b, 200);
    l.tip = (struct store_tip){200, 2000, 20000};
    renew(&l);
    commit_one(&l);
    wait_seq(&b, 201);
    (void)wait_state(&b, FOLLOWER_FOLLOWING);
    give_back(&l);
    (void)wait_state(&b, FOLLOWER_LEADS);
    struct leader next;
    take_from(&b, &next);
    same_as_fresh(&b.c, next.core, &next.tip, 3);
    end_leader(&a, &l);
    end_leader(&b, &next);
}

static const char cut_sql[] = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                              " WHERE application_name LIKE 'muster %'";

/* To a backup, or to a copy that had not heard of all. */
static void a_database_that_went_back_is_loaded_again(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "back");
    for (int i = 0; i < 10; i++)
        commit_one(&l);
    wait_seq(&b, 10);
    postgres_do("muster_back", "BEGIN; DELETE FROM journal WHERE seq > 6;"
                               "NOTIFY muster_back; COMMIT");
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    while (view(&b).seq != 6 || view(&b).state != FOLLOWER_FOLLOWING) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(1000);
    }
    /* Another history with the same numbers: only who connects again can meet that. */
    renew(&l);
    struct buf other = {0};
    change_encode_row(&other, ROW_fleet, &(struct row_fleet){.id = 99, .name = "other"});
    char sql[1024];
    int n = snprintf(sql, sizeof(sql), "BEGIN; UPDATE journal SET epoch = 7, changes = '\\x");
    for (size_t i = 0; i < other.len; i++)
        n += snprintf(sql + n, sizeof(sql) - (size_t)n, "%02x", other.data[i]);
    snprintf(sql + n, sizeof(sql) - (size_t)n, "' WHERE seq = 6; %s; COMMIT", cut_sql);
    postgres_do("muster_back", sql);
    buf_done(&other);
    l.tip = (struct store_tip){6, 60, 600};
    commit_one(&l);
    wait_seq(&b, 7);
    give_back(&l);
    (void)wait_state(&b, FOLLOWER_LEADS);
    struct leader next;
    take_from(&b, &next);
    same_as_fresh(&b.c, next.core, &next.tip, 3);
    end_leader(&a, &l);
    end_leader(&b, &next);
}

static void a_cut_connection_is_made_again(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "cut");
    for (int i = 0; i < 10; i++) {
        postgres_do(NULL, cut_sql);
        renew(&l);
        commit_one(&l);
        wait_seq(&b, i + 1);
    }
    (void)wait_state(&b, FOLLOWER_FOLLOWING);
    wait_leader(&b, 1);
    stop(&b);
    end_leader(&a, &l);
}

/* Which is worse than one that is cut: nobody says so. */
static void a_connection_that_hangs_is_given_up(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "hangs");
    pid_t backend = (pid_t)postgres_ask(NULL, "SELECT pid FROM pg_stat_activity"
                                              " WHERE application_name = 'muster follow'");
    assert_int_equal(kill(backend, SIGSTOP), 0);
    int64_t from_ms = clock_monotonic_ms();
    commit_one(&l);
    while (view(&b).seq < 1) {
        assert_true(clock_monotonic_ms() - from_ms < LONG_MS);
        renew(&l);
        usleep(10000);
    }
    print_message("went on %lld ms after its connection hung\n",
                  (long long)(clock_monotonic_ms() - from_ms));
    assert_int_equal(kill(backend, SIGCONT), 0);
    assert_int_equal(view(&b).state, FOLLOWER_FOLLOWING);
    stop(&b);
    end_leader(&a, &l);
}

static void a_database_that_goes_and_comes(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    /* One host that nobody answers at stands before it. */
    char url[200];
    snprintf(url, sizeof(url), "postgres://muster:open%%2Fsesame@127.0.0.1:1,127.0.0.1:%d/postgres",
             postgres.port);
    start_ready(&a, "gone", 1);
    (void)wait_state(&a, FOLLOWER_LEADS);
    take_from(&a, &l);
    name_node(&b, "gone", 2);
    b.c.url = url;
    start(&b, 0);
    follower_set_ready(b.f, true);
    commit_one(&l);
    (void)wait_state(&b, FOLLOWER_FOLLOWING);
    wait_seq(&b, 1);

    postgres_stop(SIGQUIT);
    struct follower_view v = wait_state(&b, FOLLOWER_AWAY);
    assert_non_null(strstr(v.why, "PostgreSQL at 127.0.0.1:"));
    assert_null(strstr(v.why, "sesame"));
    usleep(LEASE_MS * 1000 + 100000);
    v = view(&b);
    assert_int_equal(v.state, FOLLOWER_AWAY);
    assert_int_equal(v.leader.id, 1);
    assert_false(v.leader_known); /* it may be anybody by now */

    /* A node that starts while it is away waits for it. */
    struct node c;
    start_ready(&c, "gone", 3);
    v = wait_state(&c, FOLLOWER_AWAY);
    assert_int_equal(v.seq, 0);

    postgres_start();
    int64_t from_ms = clock_monotonic_ms();
    /* Nobody renewed meanwhile, so one of them leads. */
    int64_t until_ms = from_ms + LONG_MS;
    while (view(&b).state != FOLLOWER_LEADS && view(&c).state != FOLLOWER_LEADS) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(1000);
    }
    print_message("led again %lld ms after the database was back\n",
                  (long long)(clock_monotonic_ms() - from_ms));
    struct node *first = view(&b).state == FOLLOWER_LEADS ? &b : &c;
    struct node *other = first == &b ? &c : &b;
    (void)wait_state(other, FOLLOWER_FOLLOWING);
    pg_close(l.pg);
    core_free(l.core);
    take_from(first, &l);
    commit_one(&l);
    wait_seq(other, 2);
    give_back(&l);
    (void)wait_state(other, FOLLOWER_LEADS);
    struct leader next;
    take_from(other, &next);
    same_as_fresh(&a.c, next.core, &next.tip, 3);
    end_leader(other, &next);
    end_leader(first, &l);
    close(a.changed_fd);
}

static void it_can_be_stopped_at_any_moment(void **state)
{
    (void)state;
    struct node n;
    int64_t longest_ms = 0;
    for (int i = 0; i < 70; i++) {
        name_node(&n, "stops", 1);
        struct why why = {""};
        if (i == 20) /* it never came so far */
            good(cell_prepare(&n.c, &why), &why);
        start(&n, i % 3 == 0 ? 100 : 0);
        if (i % 2 == 0)
            follower_set_ready(n.f, true);
        usleep(i < 20 ? (unsigned)i * 4000 : (unsigned)(i - 20) * 1000);
        int64_t from_ms = clock_monotonic_ms();
        stop(&n);
        int64_t took_ms = clock_monotonic_ms() - from_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        assert_true(took_ms < 10000);
        if (postgres_ask(NULL, "SELECT count(*) FROM pg_tables WHERE schemaname = 'muster_stops'"
                               " AND tablename = 'node'") == 0)
            continue;
        assert_int_equal(postgres_ask("muster_stops", "SELECT count(*) FROM node"), 0);
        assert_int_equal(postgres_ask("muster_stops", "SELECT holder FROM lease"), 0);
    }
    print_message("stopped within %lld ms, n 70\n", (long long)longest_ms);

    /* Also while it waits for somebody. */
    struct pg *pg = postgres_connect("muster_stops");
    struct why why = {""};
    good(pg_script(pg, "BEGIN; LOCK TABLE seat IN ACCESS EXCLUSIVE MODE", &why), &why);
    name_node(&n, "stops", 1);
    start(&n, 0);
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    while (postgres_ask(NULL, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                              " AND application_name = 'muster load'") == 0)
        assert_true(clock_monotonic_ms() < until_ms);
    assert_int_equal(view(&n).state, FOLLOWER_LOADING);
    assert_int_equal(postgres_ask("muster_stops", "SELECT count(*) FROM node WHERE NOT ready"), 1);
    stop(&n); /* returns, though the lock is still held */
    assert_int_equal(postgres_ask("muster_stops", "SELECT count(*) FROM node"), 0);
    pg_close(pg);
    follower_stop(NULL);
}

static struct follower_view wait_failed(struct node *n)
{
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    while (view(n).state != FOLLOWER_FAILED) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(1000);
    }
    return view(n);
}

static void fails_with(const char *cell, const char *sql, const char *sentence)
{
    char schema[64];
    struct node n;
    snprintf(schema, sizeof(schema), "muster_%s", cell);
    postgres_do(schema, sql);
    start_ready(&n, cell, 7);
    struct follower_view v = wait_failed(&n);
    if (!strstr(v.why, sentence))
        print_error("%s\n", v.why);
    assert_non_null(strstr(v.why, sentence));
    stop(&n);
}

static void what_cannot_heal_is_said(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "damaged");
    commit_one(&l);
    wait_seq(&b, 1);
    /* While it follows, and not a word before. */
    struct buf bad = {0};
    make_batch(&bad, 2);
    buf_append(&bad, "\xff\x02", 2);
    assert_true(commit_bytes(&l, &bad));
    struct follower_view v = wait_failed(&b);
    assert_non_null(strstr(v.why, "Batch 2 in the journal"));
    buf_done(&bad);
    stop(&b);
    end_leader(&a, &l);

    fails_with("damaged", "UPDATE lease SET holder = 0", "Batch 2 in the journal");
    fails_with("damaged",
               "DELETE FROM journal; INSERT INTO journal VALUES (1, 1, 10, 100, ''), (3, 1, 30,"
               " 300, '')",
               "Batch 3 in the journal");
    fails_with("damaged",
               "DELETE FROM journal; UPDATE fold SET seq = 3, core_ms = 30, wall_ms = 300;"
               "INSERT INTO fleet VALUES (1, repeat('x', 100))",
               "Row 1 of the table \"fleet\"");
    fails_with("damaged", "DELETE FROM fleet; DELETE FROM lease", "\"lease\" and \"head\"");
    fails_with("damaged", "UPDATE cell SET row_format = row_format + 1", "understands version");
    fails_with("damaged", "UPDATE cell SET row_format = row_format - 1, secret_print = '\\x01'",
               "another secret");
    fails_with("no-name", "SELECT 1", "A cell's name");
}

/* A batch of a newer node's is not called damage. */
static void a_newer_node_that_leads_is_said(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "newer");
    postgres_do("muster_newer", "UPDATE cell SET row_format = row_format + 1");
    commit_one(&l);
    wait_seq(&b, 1); /* as long as it understands what is written */
    struct buf unknown = {0};
    buf_append(&unknown, "\x7e\x00newer", 7);
    assert_true(commit_bytes(&l, &unknown));
    assert_non_null(strstr(wait_failed(&b).why, "understands version"));
    buf_done(&unknown);
    stop(&b);
    end_leader(&a, &l);
}

static void nodes_are_seen(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "seen");
    commit_one(&l);
    wait_seq(&b, 1);
    struct cell_seen_node nodes[4];
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    size_t n = 0;
    do {
        usleep(1000);
        renew(&l);
        assert_true(clock_monotonic_ms() < until_ms);
        n = follower_nodes(b.f, nodes, 4);
    } while (n < 2 || nodes[1].seq != 1);
    assert_int_equal(nodes[1].node.id, 2);
    assert_true(nodes[1].ready);
    assert_true(nodes[1].heard_ms < 5000);
    assert_int_equal(follower_nodes(b.f, nodes, 1), 1);
    follower_set_ready(b.f, false);
    while (postgres_ask("muster_seen", "SELECT count(*) FROM node WHERE id = 2 AND ready") > 0)
        assert_true(clock_monotonic_ms() < until_ms);
    stop(&b);
    assert_int_equal(postgres_ask("muster_seen", "SELECT count(*) FROM node WHERE id = 2"), 0);
    end_leader(&a, &l);
}

static void add_deployment(struct buf *out, int64_t id, uint8_t first)
{
    struct row_deployment row = {.id = id, .digest_len = FOLLOWER_DIGEST};
    row.digest[0] = first;
    change_encode_row(out, ROW_deployment, &row);
}

static void deployments_are_seen(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    uint8_t digests[8][FOLLOWER_DIGEST];
    start_ready(&a, "deployed", 1);
    (void)wait_state(&a, FOLLOWER_LEADS);
    assert_int_equal(follower_deployments(a.f, digests, 8), 0);
    take_from(&a, &l);
    struct buf changes = {0};
    add_deployment(&changes, 1, 30);
    add_deployment(&changes, 2, 10);
    add_deployment(&changes, 3, 30);
    assert_true(commit_bytes(&l, &changes));
    changes.len = 0;

    /* Found when it is loaded … */
    start_ready(&b, "deployed", 2);
    (void)wait_state(&b, FOLLOWER_FOLLOWING);
    assert_int_equal(follower_deployments(b.f, digests, 8), 2);
    assert_int_equal(digests[0][0], 10);
    assert_int_equal(digests[1][0], 30);
    assert_int_equal(follower_deployments(b.f, NULL, 0), 2);

    /* … and as they come, change and go, of which it tells. */
    eventfd_t ignored;
    usleep(300000);
    (void)eventfd_read(b.changed_fd, &ignored);
    renew(&l);
    add_deployment(&changes, 4, 20);
    change_encode_gone(&changes, ROW_deployment, 1);
    add_deployment(&changes, 2, 11);
    assert_true(commit_bytes(&l, &changes));
    wait_seq(&b, 2);
    struct pollfd fd = {.fd = b.changed_fd, .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 5000), 1);
    memset(digests, 0, sizeof(digests));
    assert_int_equal(follower_deployments(b.f, digests, 2), 3);
    assert_int_equal(digests[0][0], 11);
    assert_int_equal(digests[1][0], 20);
    assert_int_equal(digests[2][0], 0);
    buf_done(&changes);
    stop(&b);
    end_leader(&a, &l);
}

struct asking {
    struct follower *f;
    _Atomic bool stop;
};

static void *ask_in_thread(void *arg)
{
    struct asking *a = arg;
    struct follower_view v;
    struct cell_seen_node nodes[CELL_NODES_MAX];
    uint8_t digests[4][FOLLOWER_DIGEST];
    for (int i = 0; !a->stop; i++) {
        follower_look(a->f, &v);
        (void)follower_nodes(a->f, nodes, CELL_NODES_MAX);
        (void)follower_deployments(a->f, digests, 4);
        follower_set_ready(a->f, i % 2 == 0);
        usleep(200);
    }
    return NULL;
}

static void anybody_may_ask_meanwhile(void **state)
{
    (void)state;
    struct node a;
    struct node b;
    struct leader l;
    lead_and_follow(&a, &l, &b, "asked");
    struct asking asking = {.f = b.f};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_in_thread, &asking), 0);
    struct buf changes = {0};
    for (int i = 0; i < 200; i++) {
        changes.len = 0;
        make_batch(&changes, i + 1);
        add_deployment(&changes, 1 + i % 9, (uint8_t)i);
        assert_true(commit_bytes(&l, &changes));
        if (i % 20 == 0)
            renew(&l);
    }
    wait_seq(&b, 200);
    give_back(&l);
    (void)wait_state(&b, FOLLOWER_LEADS);
    asking.stop = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct leader next;
    take_from(&b, &next);
    same_as_fresh(&b.c, next.core, &next.tip, 50);
    buf_done(&changes);
    end_leader(&a, &l);
    end_leader(&b, &next);
}

/* A standby lives as long as a leader does: what is replaced, or goes, must be freed. */
static void a_million_changes_leave_nothing_behind(void **state)
{
    (void)state;
    struct core *core = core_new(&config, secret);
    char settings[512];
    memset(settings, 's', sizeof(settings));
    size_t after_first = 0;
    for (int i = 0; i < 1000000; i++) {
        struct change c = {.kind = i % 3 == 0 ? ROW_seat : ROW_room, .id = 1 + i % 1000};
        c.gone = i % 7 == 0;
        c.row_id = c.id;
        if (c.kind == ROW_room && !c.gone)
            c.room.settings = (struct str){settings, (size_t)(i % 512)};
        assert_int_equal(core_load(core, &c), 0);
        if (i == 100000)
            after_first = mallinfo2().uordblks;
    }
    size_t at_end = mallinfo2().uordblks;
    print_message("in use after 100,000 changes %zu bytes, after 1,000,000 %zu\n", after_first,
                  at_end);
    assert_true(at_end < after_first + after_first / 4 + 4096);
    core_free(core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_followed_at_once),
        cmocka_unit_test(a_journal_that_was_trimmed_is_loaded_again),
        cmocka_unit_test(a_database_that_went_back_is_loaded_again),
        cmocka_unit_test(a_cut_connection_is_made_again),
        cmocka_unit_test(a_connection_that_hangs_is_given_up),
        cmocka_unit_test(a_database_that_goes_and_comes),
        cmocka_unit_test(it_can_be_stopped_at_any_moment),
        cmocka_unit_test(what_cannot_heal_is_said),
        cmocka_unit_test(a_newer_node_that_leads_is_said),
        cmocka_unit_test(nodes_are_seen),
        cmocka_unit_test(deployments_are_seen),
        cmocka_unit_test(anybody_may_ask_meanwhile),
        cmocka_unit_test(a_million_changes_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, nodes_setup, postgres_teardown);
}

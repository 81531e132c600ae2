#include "postgres.h"

#include "base/clock.h"
#include "base/err.h"
#include "lib/patience.h"
#include "store/cell_lease.h"
#include "store/cell_link.h"

#include <pthread.h>

enum { US = 7, THEM = 9, CROWD = 8 };

static struct cell_config cell_of(const char *name, int64_t node)
{
    struct cell_config c = {.url = postgres_url(), .cell = name, .lease_ms = 2000};
    c.self.id = node;
    snprintf(c.self.name, sizeof(c.self.name), "node-%d", (int)node);
    snprintf(c.self.http, sizeof(c.self.http), "http://10.0.0.%d:9508", (int)node);
    snprintf(c.self.server, sizeof(c.self.server), "10.0.0.%d:11031", (int)node);
    snprintf(c.self.manager, sizeof(c.self.manager), "10.0.0.%d:11032", (int)node);
    snprintf(c.self.client, sizeof(c.self.client), "10.0.0.%d:11033", (int)node);
    snprintf(c.self.version, sizeof(c.self.version), "1.2.%d", (int)node);
    return c;
}

static void good(int err, const struct why *why)
{
    if (err != 0)
        print_error("%s\n", why->text);
    assert_int_equal(err, 0);
}

/* A connection of one node's, to a cell that is there. */
static struct pg *joined(const struct cell_config *c)
{
    struct why why = {""};
    struct pg *pg = NULL;
    good(cell_prepare(c, &why), &why);
    good(cell_connect(c, "test", 5000, 10000, &pg, &why), &why);
    good(cell_lease_prepare(pg, &why), &why);
    return pg;
}

static struct cell_lease_seen seen(struct pg *pg)
{
    struct cell_lease_seen s;
    struct why why = {""};
    good(cell_lease_read(pg, &s, &why), &why);
    return s;
}

static int64_t take(struct pg *pg, const struct cell_config *c, const struct lease_row *row)
{
    struct why why = {""};
    int64_t epoch = -1;
    good(cell_lease_take(pg, &c->self, row, &epoch, &why), &why);
    return epoch;
}

static bool renew(struct pg *pg, int64_t node, int64_t epoch)
{
    struct why why = {""};
    bool ours = false;
    good(cell_lease_renew(pg, node, epoch, &ours, &why), &why);
    return ours;
}

/* A batch as a leader writes it; false when it is not the leader. */
static const char batch_sql[] =
    "INSERT INTO journal SELECT $1::bigint, epoch, 0, 0, '' FROM head WHERE epoch = $2::bigint"
    " AND writer = $3::bigint FOR SHARE OF head";

static bool commit_one(struct pg *pg, int64_t seq, int64_t epoch, int64_t node)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    struct why why = {""};
    pg_int(&args, seq);
    pg_int(&args, epoch);
    pg_int(&args, node);
    good(pg_query(pg, batch_sql, &args, &r, &why), &why);
    bool written = pg_affected(r) == 1;
    pg_free(r);
    return written;
}

static void taken_renewed_and_given_back(void **state)
{
    (void)state;
    struct cell_config c = cell_of("life", US);
    struct why why = {""};
    struct pg *pg = joined(&c);
    struct cell_lease_seen s = seen(pg);
    assert_int_equal(s.row.epoch, 0);
    assert_int_equal(s.leader.id, 0);
    assert_int_equal(take(pg, &c, &s.row), 1);

    s = seen(pg);
    assert_int_equal(s.row.epoch, 1);
    assert_int_equal(s.row.beat, 1);
    assert_int_equal(s.row.holder, US);
    assert_memory_equal(&s.leader.name, "node-7", 7);
    assert_string_equal(s.leader.http, c.self.http);
    assert_string_equal(s.leader.server, c.self.server);
    assert_string_equal(s.leader.manager, c.self.manager);
    assert_string_equal(s.leader.client, c.self.client);
    assert_string_equal(s.leader.version, c.self.version);

    assert_true(renew(pg, US, 1));
    assert_int_equal(seen(pg).row.beat, 2);
    assert_false(renew(pg, US, 2));
    assert_false(renew(pg, THEM, 1));

    good(cell_lease_give_back(pg, THEM, 1, &why), &why); /* not theirs to give */
    assert_int_equal(seen(pg).row.holder, US);
    good(cell_lease_give_back(pg, US, 1, &why), &why);
    s = seen(pg);
    assert_int_equal(s.row.holder, 0);
    assert_int_equal(s.row.epoch, 1);
    assert_int_equal(s.leader.id, 0);
    assert_string_equal(s.leader.http, "");
    assert_false(renew(pg, US, 1));
    assert_int_equal(take(pg, &c, &s.row), 2);
    pg_close(pg);
}

static void only_what_stands_as_it_was_seen_is_taken(void **state)
{
    (void)state;
    struct cell_config us = cell_of("stands", US);
    struct cell_config them = cell_of("stands", THEM);
    struct pg *a = joined(&us);
    struct pg *b = joined(&them);
    struct cell_lease_seen s = seen(a);
    assert_int_equal(take(a, &us, &s.row), 1);
    assert_int_equal(take(b, &them, &s.row), 0);
    s = seen(b);
    assert_true(renew(a, US, 1)); /* it lives after all */
    assert_int_equal(take(b, &them, &s.row), 0);
    s = seen(b);
    assert_int_equal(take(b, &them, &s.row), 2);
    assert_false(renew(a, US, 1));
    assert_int_equal(seen(a).row.holder, THEM);
    pg_close(a);
    pg_close(b);
}

static void who_lost_it_cannot_write(void **state)
{
    (void)state;
    struct cell_config us = cell_of("fenced", US);
    struct cell_config them = cell_of("fenced", THEM);
    struct pg *a = joined(&us);
    struct pg *b = joined(&them);
    struct cell_lease_seen s = seen(a);
    assert_int_equal(take(a, &us, &s.row), 1);
    assert_true(commit_one(a, 1, 1, US));
    s = seen(b);
    assert_int_equal(s.head_seq, 1);
    assert_int_equal(take(b, &them, &s.row), 2);
    assert_false(commit_one(a, 2, 1, US));
    assert_false(commit_one(a, 2, 2, US));
    assert_true(commit_one(b, 2, 2, THEM));
    assert_int_equal(postgres_ask("muster_fenced", "SELECT count(*) FROM journal"), 2);
    pg_close(a);
    pg_close(b);
}

struct taking {
    struct pg *pg;
    struct cell_config *c;
    struct lease_row row;
    int64_t epoch;
    int err;
};

static void *take_in_thread(void *arg)
{
    struct taking *t = arg;
    struct why why = {""};
    t->err = cell_lease_take(t->pg, &t->c->self, &t->row, &t->epoch, &why);
    return NULL;
}

/* Until one connection waits for another's lock. */
static void wait_for_a_lock(const char *schema)
{
    for (struct patience patience = {0};;) {
        if (postgres_ask(schema, "SELECT count(*) FROM pg_stat_activity"
                                 " WHERE wait_event_type = 'Lock'") > 0)
            return;
        assert_true(patience_lasts(&patience));
        usleep(2000);
    }
}

/* A batch that is on its way while the lease is taken is waited for, and stays. */
static void a_batch_under_way_is_before(void **state)
{
    (void)state;
    struct cell_config us = cell_of("before", US);
    struct cell_config them = cell_of("before", THEM);
    struct pg *a = joined(&us);
    struct pg *b = joined(&them);
    struct why why = {""};
    struct cell_lease_seen s = seen(a);
    assert_int_equal(take(a, &us, &s.row), 1);
    good(pg_script(a, "BEGIN", &why), &why);
    assert_true(commit_one(a, 1, 1, US));

    struct taking t = {.pg = b, .c = &them, .row = seen(b).row};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, take_in_thread, &t), 0);
    wait_for_a_lock("muster_before");
    good(pg_script(a, "COMMIT", &why), &why);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(t.err, 0);
    assert_int_equal(t.epoch, 2);
    assert_int_equal(postgres_ask("muster_before", "SELECT max(seq) FROM journal"), 1);
    assert_int_equal(postgres_ask("muster_before", "SELECT epoch FROM head"), 2);
    assert_int_equal(postgres_ask("muster_before", "SELECT writer FROM head"), THEM);
    assert_false(commit_one(a, 2, 1, US));
    assert_true(commit_one(b, 2, 2, THEM));
    pg_close(a);
    pg_close(b);
}

static void *commit_in_thread(void *arg)
{
    struct taking *t = arg;
    return (void *)(intptr_t)commit_one(t->pg, 1, 1, US);
}

/* … and one that waits for the lease to be taken is refused. */
static void a_batch_that_waits_is_refused(void **state)
{
    (void)state;
    struct cell_config us = cell_of("after", US);
    struct cell_config them = cell_of("after", THEM);
    struct pg *a = joined(&us);
    struct pg *b = joined(&them);
    struct why why = {""};
    struct cell_lease_seen s = seen(a);
    assert_int_equal(take(a, &us, &s.row), 1);
    s = seen(b);
    good(pg_script(b, "BEGIN", &why), &why);
    assert_int_equal(take(b, &them, &s.row), 2);
    struct taking t = {.pg = a};
    pthread_t thread;
    void *written = NULL;
    assert_int_equal(pthread_create(&thread, NULL, commit_in_thread, &t), 0);
    wait_for_a_lock("muster_after");
    good(pg_script(b, "COMMIT", &why), &why);
    assert_int_equal(pthread_join(thread, &written), 0);
    assert_null(written);
    assert_int_equal(postgres_ask("muster_after", "SELECT count(*) FROM journal"), 0);
    pg_close(a);
    pg_close(b);
}

/* Also where the database's owner chose another isolation. */
static void of_many_at_once_one_has_it(void **state)
{
    (void)state;
    struct cell_config c[CROWD];
    struct taking t[CROWD];
    pthread_t threads[CROWD];
    postgres_do(NULL, "ALTER ROLE muster SET default_transaction_isolation = 'serializable'");
    for (int i = 0; i < CROWD; i++) {
        c[i] = cell_of("crowd", i + 1);
        t[i] = (struct taking){.pg = joined(&c[i]), .c = &c[i]};
    }
    for (int round = 1; round <= 50; round++) {
        for (int i = 0; i < CROWD; i++)
            t[i].row = seen(t[i].pg).row;
        for (int i = 0; i < CROWD; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, take_in_thread, &t[i]), 0);
        int winners = 0;
        for (int i = 0; i < CROWD; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(t[i].err, 0);
            assert_true(t[i].epoch == 0 || t[i].epoch == round);
            winners += t[i].epoch == round;
        }
        assert_int_equal(winners, 1);
    }
    for (int i = 0; i < CROWD; i++)
        pg_close(t[i].pg);
    postgres_do(NULL, "ALTER ROLE muster RESET default_transaction_isolation");
}

static void listeners_hear_of_it(void **state)
{
    (void)state;
    struct cell_config us = cell_of("heard", US);
    struct cell_config other = cell_of("elsewhere", US);
    struct why why = {""};
    struct pg *a = joined(&us);
    struct pg *elsewhere = joined(&other);
    struct pg *b = joined(&us);
    good(cell_listen(b, "heard", &why), &why);
    struct cell_lease_seen s = seen(elsewhere);
    assert_int_equal(take(elsewhere, &other, &s.row), 1);
    assert_int_equal(pg_wait(b, 50, -1), PG_NEWS_NONE);
    s = seen(a);
    assert_int_equal(take(a, &us, &s.row), 1);
    assert_int_equal(pg_wait(b, 5000, -1), PG_NEWS_NOTICE);
    assert_true(renew(a, US, 1));
    assert_int_equal(take(a, &us, &s.row), 0);
    good(cell_lease_give_back(a, US, 9, &why), &why);
    assert_int_equal(pg_wait(b, 50, -1), PG_NEWS_NONE);
    good(cell_lease_give_back(a, US, 1, &why), &why);
    assert_int_equal(pg_wait(b, 5000, -1), PG_NEWS_NOTICE);
    pg_close(a);
    pg_close(b);
    pg_close(elsewhere);
}

static void nodes_come_and_go(void **state)
{
    (void)state;
    struct cell_config us = cell_of("nodes", US);
    struct cell_config them = cell_of("nodes", THEM);
    struct why why = {""};
    struct pg *pg = joined(&us);
    struct cell_seen_node nodes[4];
    size_t n = 9;
    good(cell_nodes_read(pg, nodes, 4, &n, &why), &why);
    assert_int_equal(n, 0);
    good(cell_node_say(pg, &them.self, 12, false, &why), &why);
    good(cell_node_say(pg, &us.self, 11, false, &why), &why);
    good(cell_node_say(pg, &us.self, 13, true, &why), &why);
    good(cell_nodes_read(pg, nodes, 4, &n, &why), &why);
    assert_int_equal(n, 2);
    assert_int_equal(nodes[0].node.id, US);
    assert_string_equal(nodes[0].node.http, us.self.http);
    assert_string_equal(nodes[0].node.version, us.self.version);
    assert_int_equal(nodes[0].seq, 13);
    assert_true(nodes[0].ready);
    assert_true(nodes[0].heard_ms >= 0 && nodes[0].heard_ms < 60000);
    /* Only that did not wait for the disk. */
    struct pg_result *r = NULL;
    good(pg_query(pg, "SELECT (current_setting('synchronous_commit') = 'on')::int", NULL, &r, &why),
         &why);
    assert_int_equal(pg_get_int(r, 0, 0), 1);
    pg_free(r);
    assert_int_equal(nodes[1].node.id, THEM);
    assert_int_equal(nodes[1].seq, 12);
    assert_false(nodes[1].ready);
    good(cell_nodes_read(pg, nodes, 1, &n, &why), &why);
    assert_int_equal(n, 1);

    postgres_do("muster_nodes", "UPDATE node SET heard = now() - interval '23 hours'");
    good(cell_nodes_read(pg, nodes, 4, &n, &why), &why);
    assert_true(nodes[1].heard_ms >= 23L * 3600 * 1000 && nodes[1].heard_ms < 24L * 3600 * 1000);
    postgres_do("muster_nodes", "UPDATE node SET heard = now() - interval '25 hours'");
    good(cell_node_say(pg, &us.self, 14, true, &why), &why);
    good(cell_nodes_read(pg, nodes, 4, &n, &why), &why);
    assert_int_equal(n, 1);
    assert_int_equal(nodes[0].node.id, US);
    good(cell_node_leave(pg, US, &why), &why);
    good(cell_node_leave(pg, US, &why), &why);
    good(cell_nodes_read(pg, nodes, 4, &n, &why), &why);
    assert_int_equal(n, 0);
    pg_close(pg);
}

static void damage_and_loss_are_said(void **state)
{
    (void)state;
    struct cell_config c = cell_of("broken", US);
    struct pg *pg = joined(&c);
    struct cell_lease_seen s;
    struct why why = {""};
    postgres_do("muster_broken", "INSERT INTO lease SELECT * FROM lease");
    assert_int_equal(cell_lease_read(pg, &s, &why), ERR_FORMAT);
    assert_non_null(strstr(why.text, "\"lease\" and \"head\""));
    postgres_do(NULL, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE pid <> pg_backend_pid() AND application_name = 'test'");
    assert_int_equal(cell_lease_read(pg, &s, &why), ERR_IO);
    assert_true(pg_lost(pg));
    pg_close(pg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_renewed_and_given_back),
        cmocka_unit_test(only_what_stands_as_it_was_seen_is_taken),
        cmocka_unit_test(who_lost_it_cannot_write),
        cmocka_unit_test(a_batch_under_way_is_before),
        cmocka_unit_test(a_batch_that_waits_is_refused),
        cmocka_unit_test(of_many_at_once_one_has_it),
        cmocka_unit_test(listeners_hear_of_it),
        cmocka_unit_test(nodes_come_and_go),
        cmocka_unit_test(damage_and_loss_are_said),
    };
    return cmocka_run_group_tests(tests, postgres_setup, postgres_teardown);
}

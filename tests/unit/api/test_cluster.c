/* What is said of a cell. */
#include "api/cluster.h"

#include "base/json.h"
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

static void add_node(struct cell_view *v, int64_t id, int64_t seq, bool ready, int64_t heard_ms)
{
    struct cell_seen_node *n = &v->nodes[v->n_nodes++];
    *n = (struct cell_seen_node){
        .node = {.id = id}, .seq = seq, .ready = ready, .heard_ms = heard_ms};
    (void)snprintf(n->node.name, sizeof(n->node.name), "node%d", (int)id);
    (void)snprintf(n->node.http, sizeof(n->node.http), "http://10.0.0.%d:9508", (int)id);
}

static struct cell_view a_cell(void)
{
    struct cell_view v = {.cell = "eu", .epoch = 7, .seq = 100, .lease_ms = 2000};
    v.leader = (struct cell_node){.id = 1, .name = "node1", .http = "http://10.0.0.1:9508"};
    add_node(&v, 1, 100, true, 300);
    return v;
}

static void assert_says(const struct cell_view *v, const char *sentence)
{
    struct cluster_answer a;
    cluster_describe(v, &a);
    assert_string_equal(a.sentence, sentence);
}

static void without_a_cell_nobody_else_can_lead(void **state)
{
    (void)state;
    struct cluster_answer a;
    cluster_describe(NULL, &a);
    assert_string_equal(a.store, "embedded");
    assert_string_equal(a.cell, "");
    assert_int_equal(a.n_nodes, 0);
    assert_string_equal(a.sentence,
                        "The data is in this node's own folder, so no other node can lead.");
}

static void the_sentence_counts_those_that_could_lead(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    assert_says(&v, "node1 leads cell eu in epoch 7; there is no standby, so nobody takes over "
                    "when it fails.");
    add_node(&v, 2, 99, false, 100);
    assert_says(&v, "node1 leads cell eu in epoch 7; its standby is not ready to take over.");
    v.nodes[1].ready = true;
    assert_says(&v, "node1 leads cell eu in epoch 7; its standby is ready to take over.");
    add_node(&v, 3, 98, false, 100);
    assert_says(&v, "node1 leads cell eu in epoch 7; 1 of 2 standbys is ready to take over.");
}

static void who_is_not_heard_is_away_and_not_counted(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    struct cluster_answer a;
    add_node(&v, 2, 90, true, CLUSTER_AWAY_MS);
    add_node(&v, 3, 98, true, CLUSTER_AWAY_MS - 1);
    cluster_describe(&v, &a);
    assert_string_equal(a.nodes[0].state, "leader");
    assert_string_equal(a.nodes[1].state, "away");
    assert_false(a.nodes[1].ready);
    assert_int_equal(a.nodes[1].behind, 10);
    assert_string_equal(a.nodes[2].state, "standby");
    assert_int_equal(a.n_standbys, 1);
    assert_int_equal(a.n_ready, 1);
}

static void others_are_asked_the_leader_first(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    char url[CLUSTER_URL];
    assert_false(cluster_source(&v, 1, 0, url));
    add_node(&v, 2, 99, false, 100);
    add_node(&v, 3, 99, true, CLUSTER_AWAY_MS);
    add_node(&v, 4, 99, true, 100);
    assert_true(cluster_source(&v, 1, 0, url));
    assert_string_equal(url, "http://10.0.0.2:9508");
    assert_true(cluster_source(&v, 1, 1, url));
    assert_string_equal(url, "http://10.0.0.4:9508");
    assert_false(cluster_source(&v, 1, 2, url));
    assert_true(cluster_source(&v, 4, 0, url));
    assert_string_equal(url, "http://10.0.0.1:9508");
    assert_true(cluster_source(&v, 4, 1, url));
    assert_string_equal(url, "http://10.0.0.2:9508");
    assert_false(cluster_source(&v, 4, 2, url));
    v.leader.id = 0;
    assert_true(cluster_source(&v, 4, 0, url));
    assert_string_equal(url, "http://10.0.0.1:9508");
}

/* Its row is a second old, and who leads is known by the lease, not by being heard. */
static void a_leader_that_is_not_heard_leads_still(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    struct cluster_answer a;
    v.nodes[0].heard_ms = 2 * CLUSTER_AWAY_MS;
    v.nodes[0].seq = 101; /* … and may be ahead of what we saw */
    cluster_describe(&v, &a);
    assert_string_equal(a.nodes[0].state, "leader");
    assert_int_equal(a.nodes[0].behind, 0);
}

/* Seen: a leader four batches behind itself, for it speaks once a second. */
static void a_leader_is_not_behind_itself(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    struct cluster_answer a;
    v.nodes[0].seq = 96;
    add_node(&v, 2, 96, true, 100);
    cluster_describe(&v, &a);
    assert_int_equal(a.nodes[0].seq, 100);
    assert_int_equal(a.nodes[0].behind, 0);
    assert_int_equal(a.nodes[1].behind, 4);
}

static void a_cell_may_have_no_leader(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    v.leader = (struct cell_node){0};
    v.nodes[0].heard_ms = 60 * 1000;
    assert_says(&v, "Nobody leads cell eu now; no standby is ready to.");
    add_node(&v, 2, 100, true, 100);
    assert_says(&v, "Nobody leads cell eu now; a standby that is ready takes over.");
}

static void the_leader_is_an_object_or_null(void **state)
{
    (void)state;
    struct cell_view v = a_cell();
    struct cluster_answer a;
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    cluster_describe(&v, &a);
    shape_write(&w, &cluster_shape, &a, NULL);
    buf_append(&out, "", 1);
    assert_non_null(strstr((const char *)out.data, "\"leader\":{\"name\":\"node1\""));
    buf_clear(&out);
    v.leader.id = 0;
    w = (struct json_writer){.out = &out};
    cluster_describe(&v, &a);
    shape_write(&w, &cluster_shape, &a, NULL);
    buf_append(&out, "", 1);
    assert_non_null(strstr((const char *)out.data, "\"leader\":null"));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_cell_nobody_else_can_lead),
        cmocka_unit_test(the_sentence_counts_those_that_could_lead),
        cmocka_unit_test(who_is_not_heard_is_away_and_not_counted),
        cmocka_unit_test(a_leader_that_is_not_heard_leads_still),
        cmocka_unit_test(a_leader_is_not_behind_itself),
        cmocka_unit_test(others_are_asked_the_leader_first),
        cmocka_unit_test(a_cell_may_have_no_leader),
        cmocka_unit_test(the_leader_is_an_object_or_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Several nodes: which one is asked next, whom they may send us to, and when to wait. */
#include "net/nodes.h"

#include "lib/unit.h"

#include <string.h>

static struct nodes nodes_of(const char *urls)
{
    struct nodes n = {.wait_max_ms = 5000};
    char why[NODES_WHY_MAX] = "";
    assert_int_equal(nodes_read_urls(&n, urls, why), 0);
    return n;
}

#define STANDBY_AT(address_) "This node is a standby; the leader of cell default is at " address_
#define NOBODY_LEADS "This node is a standby; nobody leads cell default now"

/* ── the list ──────────────────────────────────────────────────────────────────────────────── */

static void test_lists_of_urls(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://a:1,b:2,https://[::1]:3//,HTTP://d");
    assert_int_equal(n.n, 4);
    assert_string_equal(n.list[0], "http://a:1");
    assert_string_equal(n.list[1], "http://b:2");
    assert_string_equal(n.list[2], "https://[::1]:3");
    assert_string_equal(n.list[3], "HTTP://d");
    assert_string_equal(n.now, "http://a:1");
    assert_true(nodes_are_several(&n));
    n = nodes_of("http://a:1");
    assert_false(nodes_are_several(&n));
}

static void test_what_is_no_list_of_urls(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         ",",          "http://a,",  ",http://a",  "ftp://a",    "http://",
        "http:///", "http://a b", "http://u@a", "http://a?b", "http://a#b", "a,b,c,d,e,f,g,h,i"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct nodes n = {0};
        char why[NODES_WHY_MAX] = "";
        assert_int_equal(nodes_read_urls(&n, bad[i], why), -1);
        assert_string_not_equal(why, "");
    }
    struct nodes n = {0};
    char why[NODES_WHY_MAX];
    assert_int_equal(nodes_read_urls(&n, "http://a,ftp://b", why), -1);
    assert_string_equal(why, "a URL as http://10.0.0.1:9508, or several with commas between them, "
                             "not 'ftp://b'");
    assert_int_equal(nodes_read_urls(&n, bad[11], why), -1);
    assert_string_equal(why, "at most 8, with commas between them");
}

static void test_lists_of_addresses(void **state)
{
    (void)state;
    struct nodes n = {0};
    char why[NODES_WHY_MAX] = "";
    assert_int_equal(nodes_read_addresses(&n, "10.0.0.1:11032,[::1]:11032,muster-1.cell:1", why),
                     0);
    assert_int_equal(n.n, 3);
    assert_string_equal(n.now, "10.0.0.1:11032");
    static const char *const bad[] = {"",     "10.0.0.1", ":1",         "a:",    "a:x",
                                      "a:1,", "a:123456", "http://a:1", "a b:1", "a:1, b:2"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(nodes_read_addresses(&n, bad[i], why), -1);
}

/* ── rounds ────────────────────────────────────────────────────────────────────────────────── */

static void test_one_node_is_waited_for(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://a");
    int64_t last_ms = 0;
    for (int i = 0; i < 8; i++) {
        int64_t wait_ms = nodes_fail(&n, false);
        int64_t limit_ms = 200 << i < 5000 ? 200 << i : 5000;
        assert_in_range(wait_ms, limit_ms / 2, limit_ms);
        last_ms = wait_ms;
    }
    assert_true(last_ms >= 2500);
    assert_string_equal(n.now, "http://a");
    nodes_succeed(&n);
    assert_in_range(nodes_fail(&n, false), 100, 200);
}

static void test_the_others_are_asked_at_once(void **state)
{
    (void)state;
    struct nodes n = nodes_of("a,b,c");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(nodes_fail(&n, false), 0);
        assert_string_equal(n.now, "http://b");
        assert_int_equal(nodes_fail(&n, false), 0);
        assert_string_equal(n.now, "http://c");
        assert_in_range(nodes_fail(&n, false), 100 << round, 200 << round);
        assert_string_equal(n.now, "http://a");
    }
}

static void test_while_a_standby_answers_the_waits_are_short(void **state)
{
    (void)state;
    struct nodes n = nodes_of("a,b");
    for (int round = 0; round < 20; round++) {
        assert_int_equal(nodes_fail(&n, false), 0);
        assert_true(nodes_fail(&n, true) <= NODES_WAIT_STANDBY_MS);
    }
    assert_int_equal(nodes_fail(&n, false), 0); /* nobody answers at all any more */
    assert_true(nodes_fail(&n, false) >= 2500);
}

/* ── leaders that are named ────────────────────────────────────────────────────────────────── */

static void test_a_leader_is_followed(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://a:1");
    assert_true(nodes_follow_url(&n, "http://b:2/v1/servers?x=/"));
    assert_string_equal(n.now, "http://b:2");
    assert_true(n.is_named && nodes_are_several(&n));
    nodes_succeed(&n);
    assert_string_equal(n.now, "http://b:2");
    assert_in_range(nodes_fail(&n, false), 0, 0); /* it is gone: back to the list, at once */
    assert_string_equal(n.now, "http://a:1");
}

/* The lease of a leader that died is not over yet. It may take seconds to find that it is silent,
 * so the standby's word does not lead there again, and the list only now and then. */
static void test_a_leader_that_is_dead(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://dead,http://standby");
    int at_the_dead = 0;
    int at_the_standby = 0;
    while (at_the_standby < 40) {
        int64_t wait_ms = 0;
        if (strcmp(n.now, "http://dead") == 0) {
            at_the_dead++;
            (void)nodes_fail(&n, false);
            continue;
        }
        at_the_standby++;
        if (!nodes_follow_url(&n, "http://dead/x"))
            wait_ms = nodes_fail(&n, true);
        assert_true(wait_ms <= NODES_WAIT_STANDBY_MS);
    }
    assert_in_range(at_the_dead, 9, 12);
    while (strcmp(n.now, "http://standby") != 0)
        (void)nodes_fail(&n, false);
    nodes_succeed(&n); /* the standby leads now; the other may well be back by the next time */
    (void)nodes_fail(&n, false);
    assert_string_equal(n.now, "http://dead");
}

static void test_a_leader_that_is_dead_and_not_in_the_list(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://standby");
    for (int round = 0; round < 10; round++) {
        assert_true(nodes_follow_url(&n, "http://dead/x"));
        int64_t wait_ms = nodes_fail(&n, false);
        assert_true(wait_ms > 0 && wait_ms <= NODES_WAIT_STANDBY_MS);
        assert_string_equal(n.now, "http://standby");
    }
}

static void test_all_are_tried_when_all_are_silent(void **state)
{
    (void)state;
    struct nodes n = nodes_of("a,b,c");
    int tried[3] = {0};
    for (int i = 0; i < 30; i++) {
        tried[n.now[7] - 'a']++;
        (void)nodes_fail(&n, false);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(tried[i], 10);
    for (int i = 0; i < 32; i++) { /* b answers: it alone is asked often */
        bool answers = n.now[7] == 'b';
        tried[n.now[7] - 'a']++;
        (void)nodes_fail(&n, answers);
    }
    assert_true(tried[1] >= 10 + 16 && tried[0] > 10 && tried[2] > 10);
}

static void test_two_that_name_each_other_are_waited_out(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://a,http://b");
    int asked = 0;
    for (int waits = 0; waits < 20;) {
        const char *other = strcmp(n.now, "http://a") == 0 ? "http://b/" : "http://a/";
        asked++;
        if (!nodes_follow_url(&n, other))
            waits += nodes_fail(&n, true) > 0 ? 1 : 0;
    }
    assert_true(asked <= 20 * (2 + NODES_HOPS_MAX));
}

static void test_one_that_names_itself(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://a");
    assert_false(nodes_follow_url(&n, "http://a/v1/status"));
    assert_true(nodes_fail(&n, true) > 0);
}

static void test_who_may_name_whom(void **state)
{
    (void)state;
    struct nodes n = nodes_of("http://a,http://b");
    assert_true(nodes_follow_url(&n, "http://stranger"));
    assert_false(nodes_follow_url(&n, "http://stranger-s-friend"));
    assert_true(nodes_follow_url(&n, "http://b"));
    n = nodes_of("https://a");
    assert_false(nodes_follow_url(&n, "http://a"));
    assert_false(nodes_follow_url(&n, "http://b"));
    assert_true(nodes_follow_url(&n, "https://b"));
    n = nodes_of("http://a");
    assert_true(nodes_follow_url(&n, "https://b"));
    static const char *const bad[] = {"",           "/v1",       "ftp://b", "file:///etc/passwd",
                                      "http://",    "http:///x", "//b/v1",  "http://u:p@b/",
                                      "http://b c", "gopher://b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        n = nodes_of("http://a");
        assert_false(nodes_follow_url(&n, bad[i]));
    }
}

static void test_what_standbys_say(void **state)
{
    (void)state;
    struct str leader;
    assert_true(nodes_is_standby(STR(STANDBY_AT("10.0.0.1:11033")), &leader));
    assert_true(str_eq(leader, STR("10.0.0.1:11033")));
    assert_true(nodes_is_standby(STR("who is at home is at [::1]:1"), &leader));
    assert_true(str_eq(leader, STR("[::1]:1")));
    assert_true(nodes_is_standby(STR(NOBODY_LEADS), &leader));
    assert_int_equal(leader.len, 0);
    assert_false(nodes_is_standby(STR("Invalid token"), &leader));
    assert_false(nodes_is_standby(STR("Nobody is at home"), &leader) && leader.len == 0);
    assert_false(nodes_is_standby(STR("he is at the end"), &leader));
    assert_false(nodes_is_standby(STR(STANDBY_AT("")), &leader));
    assert_false(nodes_is_standby(STR(""), &leader));
}

static void test_sentences_are_followed(void **state)
{
    (void)state;
    struct nodes n = {.wait_max_ms = 2000};
    char why[NODES_WHY_MAX];
    assert_int_equal(nodes_read_addresses(&n, "a:1,b:1", why), 0);
    assert_false(nodes_follow_sentence(&n, STR(NOBODY_LEADS)));
    assert_false(nodes_follow_sentence(&n, STR("Invalid token")));
    assert_false(nodes_follow_sentence(&n, STR(STANDBY_AT("c"))));
    assert_false(nodes_follow_sentence(&n, STR(STANDBY_AT("http://c:1"))));
    assert_true(nodes_follow_sentence(&n, STR(STANDBY_AT("c:1"))));
    assert_string_equal(n.now, "c:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_urls),
        cmocka_unit_test(test_what_is_no_list_of_urls),
        cmocka_unit_test(test_lists_of_addresses),
        cmocka_unit_test(test_one_node_is_waited_for),
        cmocka_unit_test(test_the_others_are_asked_at_once),
        cmocka_unit_test(test_while_a_standby_answers_the_waits_are_short),
        cmocka_unit_test(test_a_leader_is_followed),
        cmocka_unit_test(test_a_leader_that_is_dead),
        cmocka_unit_test(test_a_leader_that_is_dead_and_not_in_the_list),
        cmocka_unit_test(test_all_are_tried_when_all_are_silent),
        cmocka_unit_test(test_two_that_name_each_other_are_waited_out),
        cmocka_unit_test(test_one_that_names_itself),
        cmocka_unit_test(test_who_may_name_whom),
        cmocka_unit_test(test_what_standbys_say),
        cmocka_unit_test(test_sentences_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

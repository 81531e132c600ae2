/* Several nodes: the list of addresses, standbys that name the leader, and who may be believed how
 * often. */
#include "fake_muster.h"

/* A Muster that leads or not, one of several: the fake's game server comes to its door. */
struct node {
    int listener;
    char address[32];
};

static struct node node_listen(void)
{
    struct fake f;
    fake_listen(&f);
    struct node n = {.listener = f.listener};
    memcpy(n.address, f.address, sizeof(n.address));
    return n;
}

/* Its process is gone. */
static void node_die(struct node *n)
{
    n->listener = fake_refuse(n->listener);
}

static void node_stop(struct node *n)
{
    close(n->listener);
}

/* A game server with this list; the fake's own listener is not in it. */
static void start_with(struct fake *f, const char *list)
{
    fake_listen(f);
    struct muster_options o = fake_options(f);
    o.server = list;
    fake_new(f, &o);
}

/* Takes the connection that comes to this node now. */
static void accept_at(struct fake *f, const struct node *n)
{
    int own = f->listener;
    f->listener = n->listener;
    accept_peer(f);
    f->listener = own;
}

static bool nobody_comes(const struct node *n)
{
    struct pollfd p = {.fd = n->listener, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* The greeting's refusal with this sentence. */
static void refuse(struct fake *f, const char *sentence)
{
    uint8_t frame[512] = {0};
    size_t n = 3 + strlen(sentence) + 1;
    frame[0] = (uint8_t)n;
    frame[2] = 0x01;
    frame[3] = 0x10;
    memcpy(frame + 5, sentence, strlen(sentence));
    assert_true(n < 256);
    assert_int_equal(send(f->peer, frame, 2 + n, MSG_NOSIGNAL), 2 + n);
    wait_for(muster_server_fd(f->m), POLLIN);
    muster_server_poll(f->m);
}

static void stand_by(struct fake *f, const char *leader)
{
    char sentence[256];
    snprintf(sentence, sizeof(sentence),
             "This node is a standby; the leader of cell default is at %s", leader);
    refuse(f, sentence);
}

#define NOBODY_LEADS "This node is a standby; nobody leads cell default now"

/* A try that the kernel refuses. */
static void fail_to_connect(struct fake *f)
{
    muster_server_poll(f->m);
    if (muster_server_fd(f->m) >= 0) {
        wait_for(muster_server_fd(f->m), POLLOUT);
        muster_server_poll(f->m);
    }
    told(f, "disconnected -4 Connection refused\n");
}

static void expect_told(struct fake *f, const char *start)
{
    assert_memory_equal(f->log, start, strlen(start));
    f->log[0] = '\0';
}

static char *list_of(char dst[256], const struct node *nodes, size_t n)
{
    dst[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(dst + strlen(dst), 256 - strlen(dst), "%s%s", i ? "," : "", nodes[i].address);
    return dst;
}

/* ── the list ──────────────────────────────────────────────────────────────────────────────── */

static void test_a_list_is_checked(void **state)
{
    (void)state;
    struct fake f;
    fake_listen(&f);
    static const struct {
        const char *server;
        int error;
    } cases[] = {
        {"127.0.0.1:1,127.0.0.1:2,[::1]:3", MUSTER_OK},
        {"127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4,127.0.0.1:5,127.0.0.1:6,127.0.0.1:7,"
         "127.0.0.1:8",
         MUSTER_OK},
        {"127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,127.0.0.1:4,127.0.0.1:5,127.0.0.1:6,127.0.0.1:7,"
         "127.0.0.1:8,127.0.0.1:9",
         MUSTER_E_OPTIONS},
        {"127.0.0.1:1,", MUSTER_E_OPTIONS},
        {",127.0.0.1:1", MUSTER_E_OPTIONS},
        {"127.0.0.1:1,,127.0.0.1:2", MUSTER_E_OPTIONS},
        {"127.0.0.1:1,127.0.0.1", MUSTER_E_OPTIONS},
        {"127.0.0.1:1,127.0.0.1:port", MUSTER_E_RESOLVE},
        {"no such host:1,127.0.0.1:2", MUSTER_OK}, /* left out */
        {"no such host:1,no such either:2", MUSTER_E_RESOLVE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct muster_options o = fake_options(&f);
        o.server = cases[i].server;
        assert_int_equal(muster_server_new(&o, &fake_callbacks, &f, &f.m), cases[i].error);
        muster_server_free(f.m);
        f.m = NULL;
    }
    fake_stop(&f);
}

static void test_the_next_address_is_tried_at_once(void **state)
{
    (void)state;
    struct fake f;
    char list[256];
    struct node nodes[3] = {node_listen(), node_listen(), node_listen()};
    node_die(&nodes[0]);
    start_with(&f, list_of(list, nodes, 3));
    fail_to_connect(&f);
    assert_int_equal(f.retry_ms, 0);
    assert_int_equal(muster_server_timeout_ms(f.m), 0);
    accept_at(&f, &nodes[1]);
    expect(&f, HELLO);
    refuse(&f, "Invalid token");
    told(&f, "disconnected -6 Invalid token\n");
    assert_int_equal(f.retry_ms, 0);
    accept_at(&f, &nodes[2]);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    told(&f, "registered 3\n");
    for (int i = 0; i < 3; i++)
        node_stop(&nodes[i]);
    fake_stop(&f);
}

/* One that swallows what is sent to it may not hold us up as long as the only one may. */
static void test_a_mute_address_is_given_up_sooner_where_there_are_others(void **state)
{
    (void)state;
    struct fake f;
    start_with(&f, "192.0.2.1:1,192.0.2.1:2");
    muster_server_poll(f.m);
    if (muster_server_fd(f.m) >= 0) /* else this machine has no way there and says so at once */
        assert_int_equal(muster_server_timeout_ms(f.m), 2000);
    fake_stop(&f);
}

/* After each round the wait doubles, as it does with one address. */
static void test_a_round_that_failed_is_waited_out(void **state)
{
    (void)state;
    int64_t most[4] = {0};
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct fake f;
        char list[256];
        struct node nodes[2] = {node_listen(), node_listen()};
        node_die(&nodes[0]);
        node_die(&nodes[1]);
        fake_listen(&f);
        struct muster_options o = fake_options(&f);
        o.server = list_of(list, nodes, 2);
        o.jitter_seed = seed;
        fake_new(&f, &o);
        for (int round = 0; round < 4; round++) {
            fail_to_connect(&f);
            assert_int_equal(f.retry_ms, 0);
            fail_to_connect(&f);
            most[round] = f.retry_ms > most[round] ? f.retry_ms : most[round];
            f.now += f.retry_ms;
        }
        node_stop(&nodes[0]);
        node_stop(&nodes[1]);
        fake_stop(&f);
    }
    static const int64_t limit[4] = {200, 400, 800, 1600};
    for (int i = 0; i < 4; i++)
        assert_true(most[i] <= limit[i] && most[i] > limit[i] * 8 / 10);
}

/* ── losing the leader ─────────────────────────────────────────────────────────────────────── */

static void test_matches_and_what_is_owed_go_to_the_next_leader(void **state)
{
    (void)state;
    struct fake f;
    char list[256];
    struct node nodes[2] = {node_listen(), node_listen()};
    start_with(&f, list_of(list, nodes, 2));
    accept_at(&f, &nodes[0]);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    expect(&f, NO_MATCHES IDLE_HEARTBEAT);
    told(&f, "registered 3\n");
    fake_hold_7(&f);
    later(&f, 9000);
    say(&f, "02 00 00 2A");
    muster_match_validate(f.m, 7, 500, "A", 1);
    later(&f, 2000); /* said, and never answered */
    node_die(&nodes[0]);
    fake_cut(&f);
    told(&f, "disconnected -5 Muster closed the connection\n");
    assert_int_equal(f.retry_ms, 0);

    accept_at(&f, &nodes[1]);
    expect(&f, HELLO);
    refuse(&f, NOBODY_LEADS);
    told(&f, "disconnected -19 " NOBODY_LEADS "\n");
    assert_int_equal(f.retry_ms, 0);
    fail_to_connect(&f); /* the first one again: the round is over */
    assert_int_equal(muster_server_match_count(f.m), 1);
    f.now += f.retry_ms;

    accept_at(&f, &nodes[1]);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    told(&f, "registered 3\n");
    expect(&f, "0B 00 11 10 03 00 00 00 01 07 00 00 00");
    expect(&f, "12 00 02 10 03 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00");
    expect(&f, "0C 00 0A 10 07 00 00 00 F4 01 00 00 'A' 00");
    expect_nothing(&f);
    node_stop(&nodes[0]);
    node_stop(&nodes[1]);
    fake_stop(&f);
}

/* Two processes that say they are the same server drive each other away; with two addresses they
 * must not do so as fast as they can. */
static void test_a_connection_that_does_not_last_is_waited_out(void **state)
{
    (void)state;
    struct fake f;
    char list[256];
    struct node nodes[2] = {node_listen(), node_listen()};
    int64_t waited_ms = 0;
    start_with(&f, list_of(list, nodes, 2));
    for (int round = 0; round < 20; round++) {
        accept_at(&f, &nodes[round % 2]);
        expect(&f, HELLO);
        say(&f, HELLO_YES_3);
        fake_cut(&f);
        waited_ms += f.retry_ms;
        assert_true(f.retry_ms <= 800);
        f.log[0] = '\0';
    }
    assert_true(waited_ms > 20 * 100);
    for (int i = 0; i < 2; i++)
        node_stop(&nodes[i]);
    fake_stop(&f);
}

/* While nobody leads somebody is about to: a standby that answers keeps the waits short. */
static void test_standbys_without_a_leader_keep_the_waits_short(void **state)
{
    (void)state;
    struct fake f;
    int64_t most_ms = 0;
    struct node standby = node_listen();
    start_with(&f, standby.address);
    for (int round = 0; round < 60; round++) {
        accept_at(&f, &standby);
        expect(&f, HELLO);
        refuse(&f, NOBODY_LEADS);
        most_ms = f.retry_ms > most_ms ? f.retry_ms : most_ms;
        f.now += f.retry_ms;
        f.log[0] = '\0';
    }
    assert_true(most_ms <= 1600 && most_ms > 800);
    node_stop(&standby);
    fake_stop(&f);
}

/* A machine that is gone closes nothing, and another may be leading already. */
static void test_a_silent_leader_is_left_sooner_where_there_are_others(void **state)
{
    (void)state;
    struct fake f;
    char list[256];
    struct node nodes[2] = {node_listen(), node_listen()};
    start_with(&f, list_of(list, nodes, 2));
    accept_at(&f, &nodes[0]);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    expect(&f, NO_MATCHES IDLE_HEARTBEAT);
    told(&f, "registered 3\n");
    assert_int_equal(muster_server_timeout_ms(f.m), 5000);
    later(&f, 4999);
    expect_nothing(&f);
    later(&f, 1);
    expect(&f, "02 00 00 2A");
    assert_int_equal(muster_server_timeout_ms(f.m), 5000);
    later(&f, 4999);
    told(&f, "");
    later(&f, 1);
    told(&f, "disconnected -8 Muster does not answer\n");
    assert_int_equal(f.retry_ms, 0);

    accept_at(&f, &nodes[1]); /* and one that lets us in and says nothing */
    expect(&f, HELLO);
    later(&f, 2999);
    told(&f, "");
    later(&f, 1);
    told(&f, "disconnected -8 Muster does not answer\n");
    for (int i = 0; i < 2; i++)
        node_stop(&nodes[i]);
    fake_stop(&f);
}

/* ── standbys that name the leader ─────────────────────────────────────────────────────────── */

static void test_a_standby_leads_to_the_leader_it_names(void **state)
{
    (void)state;
    struct fake f;
    struct node standby = node_listen();
    struct node leader = node_listen();
    start_with(&f, standby.address);
    accept_at(&f, &standby);
    expect(&f, HELLO);
    stand_by(&f, leader.address);
    expect_told(&f, "disconnected -19 This node is a standby; the leader of cell default is at ");
    assert_int_equal(f.retry_ms, 0);
    assert_string_equal(muster_server_address(f.m), standby.address);
    accept_at(&f, &leader);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3);
    told(&f, "registered 3\n");
    assert_string_equal(muster_server_address(f.m), leader.address);

    later(&f, 9000); /* it is lost: the list counts again, not what was said long ago */
    say(&f, "02 00 00 2A");
    later(&f, 2000);
    fake_cut(&f);
    accept_at(&f, &standby);
    assert_true(nobody_comes(&leader));
    node_stop(&standby);
    node_stop(&leader);
    fake_stop(&f);
}

/* The leader's lease is not over yet, so its standby still sends everybody there. */
static void test_a_standby_that_names_a_dead_leader(void **state)
{
    (void)state;
    struct fake f;
    struct node standby = node_listen();
    struct node dead = node_listen();
    int64_t most_ms = 0;
    node_die(&dead);
    start_with(&f, standby.address);
    for (int round = 0; round < 40; round++) {
        accept_at(&f, &standby);
        expect(&f, HELLO);
        stand_by(&f, dead.address);
        f.log[0] = '\0';
        fail_to_connect(&f);
        most_ms = f.retry_ms > most_ms ? f.retry_ms : most_ms;
        f.now += f.retry_ms;
    }
    assert_true(most_ms <= 1600 && most_ms > 800);
    accept_at(&f, &standby);
    expect(&f, HELLO);
    say(&f, HELLO_YES_3); /* it took over */
    told(&f, "registered 3\n");
    node_stop(&dead);
    node_stop(&standby);
    fake_stop(&f);
}

static void test_two_standbys_that_name_each_other_are_left_alone_for_a_while(void **state)
{
    (void)state;
    struct fake f;
    char list[256];
    struct node nodes[2] = {node_listen(), node_listen()};
    start_with(&f, list_of(list, nodes, 2));
    int tries = 0;
    int at = 0;
    int64_t waits = 0;
    while (tries < 1000 && waits < 50) {
        muster_server_poll(f.m);
        if (muster_server_fd(f.m) < 0) { /* it waits */
            waits++;
            f.now += f.retry_ms;
            continue;
        }
        at = nobody_comes(&nodes[0]) ? 1 : 0;
        accept_at(&f, &nodes[at]);
        expect(&f, HELLO);
        stand_by(&f, nodes[1 - at].address);
        f.log[0] = '\0';
        tries++;
    }
    assert_int_equal(waits, 50);
    assert_true(tries <= 51 * (2 + 3)); /* the list, and three leaders that are believed */
    for (int i = 0; i < 2; i++)
        node_stop(&nodes[i]);
    fake_stop(&f);
}

/* A name that is not in the list would have to be looked up, and that may block the game. */
static void test_a_leader_by_name_is_found_in_the_list_or_not_at_all(void **state)
{
    (void)state;
    struct fake f;
    struct node standby = node_listen();
    struct node leader = node_listen();
    char list[64];
    char named[64];
    snprintf(list, sizeof(list), "localhost%s", strchr(standby.address, ':'));
    start_with(&f, list);
    static const char *const useless[] = {"muster-1.cell:11032", "localhost", "localhost:0",
                                          "localhost:99999",     "",          "10.0.0.1:x",
                                          "the end of the road"};
    for (size_t i = 0; i < sizeof(useless) / sizeof(useless[0]); i++) {
        int tries = 0;
        while (nobody_comes(&standby) && tries++ < 10) { /* localhost may be ::1 first */
            muster_server_poll(f.m);
            if (muster_server_fd(f.m) < 0)
                f.now += f.retry_ms;
            else if (nobody_comes(&standby))
                wait_for(muster_server_fd(f.m), POLLOUT);
        }
        accept_at(&f, &standby);
        expect(&f, HELLO);
        stand_by(&f, useless[i]);
        f.log[0] = '\0';
        f.now += f.retry_ms;
    }
    snprintf(named, sizeof(named), "LOCALHOST%s", strchr(leader.address, ':'));
    int tries = 0;
    while (nobody_comes(&leader) && tries++ < 20) {
        muster_server_poll(f.m);
        if (muster_server_fd(f.m) < 0) {
            f.now += f.retry_ms;
        } else if (!nobody_comes(&standby)) {
            accept_at(&f, &standby);
            expect(&f, HELLO);
            stand_by(&f, named);
        }
    }
    accept_at(&f, &leader);
    expect(&f, HELLO);
    node_stop(&standby);
    node_stop(&leader);
    fake_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_is_checked),
        cmocka_unit_test(test_the_next_address_is_tried_at_once),
        cmocka_unit_test(test_a_mute_address_is_given_up_sooner_where_there_are_others),
        cmocka_unit_test(test_a_round_that_failed_is_waited_out),
        cmocka_unit_test(test_matches_and_what_is_owed_go_to_the_next_leader),
        cmocka_unit_test(test_a_connection_that_does_not_last_is_waited_out),
        cmocka_unit_test(test_standbys_without_a_leader_keep_the_waits_short),
        cmocka_unit_test(test_a_silent_leader_is_left_sooner_where_there_are_others),
        cmocka_unit_test(test_a_standby_leads_to_the_leader_it_names),
        cmocka_unit_test(test_a_standby_that_names_a_dead_leader),
        cmocka_unit_test(test_two_standbys_that_name_each_other_are_left_alone_for_a_while),
        cmocka_unit_test(test_a_leader_by_name_is_found_in_the_list_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "fixture.h"

/* The server that would be chosen for a new lobby, or 0; the attempt is taken back. */
static conn_id choice(struct fixture *f, conn_id chat, int8_t region)
{
    static int32_t lobby = 500000;
    struct event e = request(chat, ++lobby);
    e.allocate.region = region;
    step(f, &e);
    const struct effect *order = nth_effect(f, EFFECT_ALLOCATE, 0, 0);
    conn_id conn = order ? order->conn : 0;
    if (conn) {
        int64_t idle_ms = server_of(f, conn)->idle_since_core_ms;
        cancel(f, chat, lobby);
        cancel_ack(f, conn, lobby);
        server_of(f, conn)->idle_since_core_ms = idle_ms;
        server_refresh(f->core, server_of(f, conn));
    }
    return conn;
}

static void score_has_three_terms(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    struct server *server = server_of(f, conn);
    assert_true(placement_score(server) == 100.0);
    heartbeat(f, conn, 0, 50, 0);
    assert_true(placement_score(server) == 90.0);
    heartbeat(f, conn, 0, 0, 50);
    assert_true(placement_score(server) == 95.0);
    heartbeat(f, conn, 2, 0, 0);
    assert_true(placement_score(server) == 75.0);
    heartbeat(f, conn, 0, 0, 0);
    ask(f, chat, 1); /* reserved, not reported */
    assert_true(placement_score(server) == 87.5);
    heartbeat(f, conn, 3, 100, 100);
    assert_true(placement_score(server) == 100 - 37.5 - 20 - 10);
}

static void each_term_decides(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id a = server_up(f, 2000, 4);
    conn_id b = server_up(f, 2001, 4);
    heartbeat(f, a, 0, 1, 0);
    heartbeat(f, b, 0, 0, 0);
    assert_true(choice(f, chat, EU) == b);
    heartbeat(f, b, 0, 0, 3);
    assert_true(choice(f, chat, EU) == a);
    heartbeat(f, a, 1, 0, 0);
    assert_true(choice(f, chat, EU) == b);
    heartbeat(f, b, 0, 60, 1); /* 12.1 against 12.5 */
    assert_true(choice(f, chat, EU) == b);
    heartbeat(f, b, 0, 62, 2); /* 12.6 against 12.5 */
    assert_true(choice(f, chat, EU) == a);
}

/* Half full is half full, whatever the size. */
static void load_is_relative_to_the_size(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id small = server_up(f, 2000, 2);
    conn_id large = server_up(f, 2001, 100);
    heartbeat(f, small, 1, 0, 0);
    heartbeat(f, large, 49, 0, 0);
    assert_true(choice(f, chat, EU) == large);
    heartbeat(f, large, 51, 0, 0);
    assert_true(choice(f, chat, EU) == small);
}

static void ties_go_to_the_longest_idle_then_the_lowest_id(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id a = server_up(f, 2000, 4);
    conn_id b = server_up(f, 2001, 4);
    assert_true(choice(f, chat, EU) == a);
    pass(f, 1000);
    conn_id c = server_up(f, 2002, 4);
    assert_true(open_match(f, chat, 1, NULL) == a);
    match_ended(f, a, 1);
    heartbeat(f, a, 0, 0, 0);
    assert_true(open_match(f, chat, 2, NULL) == b);
    pass(f, 1000);
    match_ended(f, b, 2);
    heartbeat(f, b, 0, 0, 0);
    /* a has been idle since 1000 ms, c since it came (the same moment, but a higher id), b is last.
     */
    assert_true(choice(f, chat, EU) == a);
    struct event drain = {.kind = EVENT_DRAIN, .conn = a};
    drain.drain.on = true;
    step(f, &drain);
    assert_true(choice(f, chat, EU) == c);
}

static void region_auto_takes_the_best_of_the_connections_regions(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat"); /* USE and EU */
    conn_id eu = server_up(f, 2000, 4);
    struct chat_sv_handshake hello = server_hello_of(2001, 4);
    hello.region = USE;
    conn_id use = server_up_with(f, hello);
    hello.port = 2002;
    hello.region = 9;
    server_up_with(f, hello); /* idle, but not for this chat server */
    heartbeat(f, eu, 0, 30, 0);
    heartbeat(f, use, 0, 20, 0);
    assert_true(choice(f, chat, REGION_AUTO) == use);
    assert_true(choice(f, chat, EU) == eu);
    heartbeat(f, use, 0, 40, 0);
    assert_true(choice(f, chat, REGION_AUTO) == eu);
    heartbeat(f, eu, 4, 0, 0);
    assert_true(choice(f, chat, REGION_AUTO) == use);
}

static void everybody_passed_over_is_counted_by_reason(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id offline = server_up(f, 2000, 4);
    gone(f, offline);
    pass(f, 31000);
    conn_id away = server_up(f, 2001, 4);
    gone(f, away);
    conn_id returned = server_up(f, 2002, 4);
    gone(f, returned);
    server_back(f, 2002, 4);
    conn_id draining = server_up(f, 2003, 4);
    struct event drain = {.kind = EVENT_DRAIN, .conn = draining};
    drain.drain.on = true;
    step(f, &drain);
    conn_id failing = server_up(f, 2004, 4);
    ask(f, chat, 1);
    ack(f, failing, 1, false);
    conn_id full = server_up(f, 2005, 4);
    heartbeat(f, full, 4, 0, 0);
    conn_id good = server_up(f, 2006, 4);
    ask(f, chat, 2);
    effect(f, EFFECT_ALLOCATE, good);
    static const int32_t want[PASSED_REASONS] = {1, 1, 1, 1, 1, 1, 1};
    assert_memory_equal(ticket_of(f, chat, 2)->passed, want, sizeof(want));
}

static void fleet_taken_out_of_the_configuration_drains(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 4);
    seal(f);
    f->config.n_fleets = 0;
    crash(f, 1000);
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_back(f, 2000, 4);
    match_list(f, conn, 0);
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    assert_int_equal(ticket_of(f, chat, 1)->passed[PASSED_DRAINING], 1);
}

/* An ACK carries only the lobby id, so one server never holds two matches of the same id. */
static void equal_lobby_ids_of_two_owners_go_to_two_servers(void **state)
{
    struct fixture *f = *state;
    conn_id one = chat_up(f, "one");
    conn_id two = chat_up(f, "two");
    conn_id three = chat_up(f, "three");
    conn_id a = server_up(f, 2000, 4);
    conn_id b = server_up(f, 2001, 4);
    heartbeat(f, b, 0, 99, 99);
    assert_true(open_match(f, one, 7, NULL) == a);
    assert_true(open_match(f, two, 7, NULL) == b);
    ask(f, three, 7);
    answered(f, EFFECT_ALLOCATED, three, ERR_NO_SERVERS);
    ask(f, three, 8);
    effect(f, EFFECT_ALLOCATE, a);
}

/* However many better ones hold that lobby id, the one that does not is found. */
static void many_servers_with_that_lobby_id_hide_nobody(void **state)
{
    struct fixture *f = *state;
    char name[16];
    enum { OWNERS = 80 };
    conn_id last = server_up(f, 1999, 1);
    heartbeat(f, last, 0, 100, 100);
    for (int i = 0; i < OWNERS; i++) {
        server_up(f, 2000 + i, 10);
        snprintf(name, sizeof(name), "chat-%d", i);
        open_match(f, chat_up(f, name), 7, NULL);
    }
    ask(f, chat_up(f, "one-more"), 7);
    effect(f, EFFECT_ALLOCATE, last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(score_has_three_terms),
        FIXTURE_TEST(each_term_decides),
        FIXTURE_TEST(load_is_relative_to_the_size),
        FIXTURE_TEST(ties_go_to_the_longest_idle_then_the_lowest_id),
        FIXTURE_TEST(region_auto_takes_the_best_of_the_connections_regions),
        FIXTURE_TEST(everybody_passed_over_is_counted_by_reason),
        FIXTURE_TEST(fleet_taken_out_of_the_configuration_drains),
        FIXTURE_TEST(equal_lobby_ids_of_two_owners_go_to_two_servers),
        FIXTURE_TEST(many_servers_with_that_lobby_id_hide_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

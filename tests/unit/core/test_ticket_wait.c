/* Right after a start: whoever asks may be back before the servers are. Those that are known have
 * their time to report, and a ticket waits for them rather than fail. */
#include "lobbies.h"

enum { SHORT_MS = 10 * 1000 };

/* Everything so far is stored, and Muster starts again with nobody connected. */
static conn_id start_again(struct fixture *f)
{
    seal(f);
    crash(f, 1000);
    return chat_up(f, "chat");
}

/* One server of four slots is known and not back. */
static conn_id start_before_servers(struct fixture *f)
{
    (void)chat_up(f, "chat");
    (void)server_up(f, 2000, 4);
    return start_again(f);
}

static void waits(struct fixture *f, conn_id chat, int32_t lobby)
{
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, chat), 0);
    assert_int_equal(ticket_of(f, chat, lobby)->row.state, TICKET_OPEN);
    assert_int_equal(ticket_of(f, chat, lobby)->row.session, 0);
}

static void asks_and_waits(struct fixture *f, conn_id chat, int32_t lobby)
{
    ask(f, chat, lobby);
    waits(f, chat, lobby);
}

static void is_given(struct fixture *f, conn_id chat, conn_id server, int32_t lobby)
{
    assert_int_equal(effect(f, EFFECT_ALLOCATE, server)->lobby, lobby);
    ack(f, server, lobby, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

static void is_refused(struct fixture *f, conn_id chat, int32_t lobby)
{
    ask(f, chat, lobby);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
}

static void a_ticket_waits_for_a_server_that_is_not_back_yet(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    pass(f, 2000);
    waits(f, chat, 7);
    conn_id server = server_back(f, 2000, 4);
    waits(f, chat, 7); /* what it holds is not known */
    match_list(f, server, 0);
    is_given(f, chat, server, 7);
}

static void it_waits_for_one_that_cannot_list_too(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    conn_id server = server_back(f, 2000, 4);
    pass(f, f->config.timeouts.list_ms + TICK_MS);
    is_given(f, chat, server, 7);
}

/* Whoever was known is gone: now there is none. */
static void it_fails_when_the_time_to_report_is_over(void **state)
{
    struct fixture *f = *state;
    f->config.timeouts.heartbeat_ms = SHORT_MS;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    pass(f, SHORT_MS - 1000);
    waits(f, chat, 7);
    pass(f, 2000);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    is_refused(f, chat, 8);
}

/* Nobody was asked, so nobody was slow. */
static void it_waits_no_longer_than_a_ticket_lives(void **state)
{
    struct fixture *f = *state;
    f->config.timeouts.ticket_ms = SHORT_MS;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    pass(f, SHORT_MS + TICK_MS);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
}

static void nobody_waits_for_a_server_that_could_not_take_it(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    (void)server_up(f, 2000, 1); /* full */
    (void)open_match(f, chat, 1, NULL);
    struct event e = {.kind = EVENT_DRAIN, .conn = server_up(f, 2001, 1)};
    e.drain.on = true;
    step(f, &e);
    struct chat_sv_handshake elsewhere = server_hello_of(2002, 1);
    elsewhere.region = USE;
    (void)server_up_with(f, elsewhere);
    chat = start_again(f);
    is_refused(f, chat, 7);
    e = request(chat, 8);
    e.allocate.region = REGION_AUTO;
    step(f, &e);
    waits(f, chat, 8);
}

static void nobody_waits_for_a_server_while_muster_runs(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    gone(f, server_up(f, 2000, 4));
    is_refused(f, chat, 7);
    conn_id server = server_back(f, 2000, 4);
    is_refused(f, chat, 7);
    match_list(f, server, 0);
    ask(f, chat, 7);
    is_given(f, chat, server, 7);
}

/* Its match of before the start holds none of its slots; strangers do. */
static void it_fails_when_the_last_one_is_back_and_full(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    match_list(f, server_back(f, 2000, 4), 4, 91, 92, 93, 94);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
}

/* … in smaller, or in another region. */
static void it_fails_when_the_last_one_comes_back_elsewhere(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    struct chat_sv_handshake elsewhere = server_hello_of(2000, 4);
    elsewhere.region = USE;
    (void)server_up_with(f, elsewhere);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
}

static void who_came_first_is_served_first(void **state)
{
    struct fixture *f = *state;
    (void)chat_up(f, "chat");
    (void)server_up(f, 2000, 1);
    (void)server_up(f, 2001, 1);
    conn_id chat = start_again(f);
    asks_and_waits(f, chat, 9);
    asks_and_waits(f, chat, 8);
    asks_and_waits(f, chat, 7);
    conn_id first = server_back(f, 2000, 1);
    match_list(f, first, 0);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 1);
    is_given(f, chat, first, 9);
    asks_and_waits(f, chat, 8);
    conn_id second = server_back(f, 2001, 1);
    match_list(f, second, 0);
    assert_int_equal(effect(f, EFFECT_ALLOCATE, second)->lobby, 8);
    assert_int_equal(answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS)->lobby, 7);
}

static void asked_again_while_it_waits_one_answer_for_both(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    gone(f, chat);
    chat = chat_up(f, "chat");
    asks_and_waits(f, chat, 7);
    conn_id server = server_back(f, 2000, 4);
    match_list(f, server, 0);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 1);
    is_given(f, chat, server, 7);
}

static void one_that_waits_can_be_cancelled(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    cancel(f, chat, 7);
    answered(f, EFFECT_CANCELLED, chat, 0);
    answered(f, EFFECT_ALLOCATED, chat, ERR_TICKET_CANCELLED);
    match_list(f, server_back(f, 2000, 4), 0);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
}

static void a_second_start_finds_it_waiting(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    chat = start_again(f);
    asks_and_waits(f, chat, 7);
    conn_id server = server_back(f, 2000, 4);
    match_list(f, server, 0);
    is_given(f, chat, server, 7);
}

/* Who was asked and has not answered is none that can be waited for. */
static void a_server_that_was_tried_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    (void)server_up(f, 2000, 4);
    ask(f, chat, 7);
    chat = start_again(f);
    ask(f, chat, 7);
    pass(f, f->config.timeouts.ack_ms + TICK_MS);
    answered(f, EFFECT_ALLOCATED, chat, ERR_ALLOCATION_TIMEOUT);
}

static void after_a_try_it_waits_for_the_others(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    (void)server_up(f, 2000, 4);
    ask(f, chat, 7);
    (void)server_up(f, 2001, 4);
    chat = start_again(f);
    ask(f, chat, 7);
    pass(f, f->config.timeouts.ack_ms + TICK_MS);
    waits(f, chat, 7);
    conn_id server = server_back(f, 2001, 4);
    match_list(f, server, 0);
    is_given(f, chat, server, 7);
    assert_int_equal(ticket_of(f, chat, 7)->tries[0].outcome, TRY_TIMED_OUT);
}

static void it_goes_on_when_something_can_be_stored_again(void **state)
{
    struct fixture *f = *state;
    conn_id chat = start_before_servers(f);
    asks_and_waits(f, chat, 7);
    seal(f);
    lose_batch(f);
    conn_id server = server_back(f, 2000, 4);
    match_list(f, server, 0); /* which is let go */
    waits(f, chat, 7);
    store_up(f);
    match_list(f, server, 0);
    is_given(f, chat, server, 7);
}

/* A fresh core knows of no connection by itself; those that are back are not expected again. */
static void a_failed_commit_makes_nobody_wait(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    gone(f, server_up(f, 2000, 4));
    seal(f);
    lose_batch(f);
    store_up(f);
    is_refused(f, chat, 7);
}

static void a_lobby_of_ours_waits_too(void **state)
{
    struct fixture *f = *state;
    conn_id players[FOUR];
    char token[TOKEN_SIZE];
    (void)start_before_servers(f);
    clients_up(f, FOUR, players);
    int64_t id = post_four(f);
    load_all(f, id, players, FOUR);
    pass(f, 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    match_list(f, server_back(f, 2000, 4), 0);
    serve(f, ordered(f, token), id, token);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_ticket_waits_for_a_server_that_is_not_back_yet),
        FIXTURE_TEST(it_waits_for_one_that_cannot_list_too),
        FIXTURE_TEST(it_fails_when_the_time_to_report_is_over),
        FIXTURE_TEST(it_waits_no_longer_than_a_ticket_lives),
        FIXTURE_TEST(nobody_waits_for_a_server_that_could_not_take_it),
        FIXTURE_TEST(nobody_waits_for_a_server_while_muster_runs),
        FIXTURE_TEST(it_fails_when_the_last_one_is_back_and_full),
        FIXTURE_TEST(it_fails_when_the_last_one_comes_back_elsewhere),
        FIXTURE_TEST(who_came_first_is_served_first),
        FIXTURE_TEST(asked_again_while_it_waits_one_answer_for_both),
        FIXTURE_TEST(one_that_waits_can_be_cancelled),
        FIXTURE_TEST(a_second_start_finds_it_waiting),
        FIXTURE_TEST(a_server_that_was_tried_is_not_waited_for),
        FIXTURE_TEST(after_a_try_it_waits_for_the_others),
        FIXTURE_TEST(it_goes_on_when_something_can_be_stored_again),
        FIXTURE_TEST(a_failed_commit_makes_nobody_wait),
        FIXTURE_TEST(a_lobby_of_ours_waits_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

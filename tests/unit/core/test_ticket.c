#include "fixture.h"

static void refused(struct fixture *f, struct event e, int err)
{
    step(f, &e);
    assert_int_equal(answered(f, EFFECT_ALLOCATED, e.conn, err)->lobby, e.allocate.lobby);
    assert_int_equal(f->core->rolls[ROW_ticket].n, 0);
}

static void requests_have_limits(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 4);
    static const int32_t no_lobbies[] = {0, -1, INT32_MIN, 1 << 30, INT32_MAX};
    for (size_t i = 0; i < 5; i++)
        refused(f, request(chat, no_lobbies[i]), ERR_INVALID_LOBBY);
    static const int8_t no_regions[] = {1, 16, 18, 63, 64, -1, INT8_MIN, INT8_MAX};
    for (size_t i = 0; i < sizeof(no_regions); i++) {
        struct event e = request(chat, 1);
        e.allocate.region = no_regions[i];
        refused(f, e, ERR_REGION_NOT_SUPPORTED);
    }
    static const int8_t no_counts[] = {0, -1, 101, INT8_MIN, INT8_MAX};
    for (size_t i = 0; i < sizeof(no_counts); i++) {
        struct event e = request(chat, 1);
        e.allocate.player_count = no_counts[i];
        refused(f, e, ERR_INVALID_REQUEST);
    }
    static const int8_t no_types[] = {-1, 11, INT8_MIN, INT8_MAX};
    for (size_t i = 0; i < sizeof(no_types); i++) {
        struct event e = request(chat, 1);
        e.allocate.game_type = no_types[i];
        refused(f, e, ERR_INVALID_REQUEST);
    }
    ask(f, chat, (1 << 30) - 1);
    effect(f, EFFECT_ALLOCATE, 0);
}

/* ── the key in each state ─────────────────────────────────────────────────────────────────── */

static void asked_again_while_open_one_answer_for_both(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    ask(f, chat, 1);
    ask(f, chat, 1);
    assert_int_equal(f->batch.effects.len, 0);
    ack(f, conn, 1, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    assert_int_equal(server_of(f, conn)->held, 1);
}

static void asked_again_after_success_the_same_answer(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 4);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    int64_t answered_ms = f->now.wall_ms;
    server_up(f, 2001, 4); /* better by now */
    pass(f, 60000);
    ask(f, chat, 1);
    const struct effect *e = answered(f, EFFECT_ALLOCATED, chat, 0);
    assert_int_equal(e->server_id, 1);
    assert_true(str_eq(e->token, str_of(token)));
    assert_true(e->wall_ms == answered_ms);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
}

static void repeat_does_not_depend_on_what_else_it_says(void **state)
{
    struct fixture *f = *state;
    static const uint8_t only_use[] = {USE};
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 4);
    open_match(f, chat, 1, NULL);
    gone(f, chat);
    chat = say_chat_hello(f, "chat", only_use, 1);
    ask(f, chat, 1); /* in EU, for which this connection does not speak */
    answered(f, EFFECT_ALLOCATED, chat, 0);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_REGION_NOT_SUPPORTED);
}

static void asked_again_after_failure_a_new_ticket(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    int64_t first = ticket_of(f, chat, 1)->row.id;
    server_up(f, 2000, 4);
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, 0);
    assert_true(ticket_of(f, chat, 1)->row.id > first);
    assert_int_equal(f->core->rolls[ROW_ticket].n, 1);
    assert_int_equal(f->core->tickets_finished, 0);
}

static void asked_again_after_cancel_a_new_ticket(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    char first[TOKEN_SIZE];
    char second[TOKEN_SIZE];
    open_match(f, chat, 1, first);
    cancel(f, chat, 1);
    cancel_ack(f, conn, 1);
    open_match(f, chat, 1, second);
    assert_string_not_equal(first, second);
}

static void asked_again_after_the_end_no_such_lobby(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    f->core->config.timeouts.chat_ms = INT32_MAX;
    chat_beat(f, chat);
    open_match(f, chat, 1, NULL);
    match_ended(f, conn, 1);
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_INVALID_LOBBY);
    pass(f, f->config.timeouts.keep_ms);
    ask(f, chat, 1); /* forgotten: a new match */
    effect(f, EFFECT_ALLOCATE, conn);
}

static void equal_lobby_of_another_chat_server_is_another_match(void **state)
{
    struct fixture *f = *state;
    conn_id one = chat_up(f, "one");
    conn_id two = chat_up(f, "two");
    server_up(f, 2000, 4);
    server_up(f, 2001, 4);
    conn_id a = open_match(f, one, 1, NULL);
    conn_id b = open_match(f, two, 1, NULL);
    assert_true(a != b);
    cancel(f, one, 1);
    ask(f, two, 1);
    assert_int_equal(answered(f, EFFECT_ALLOCATED, two, 0)->server_id, id_of(f, b));
}

/* The CANCEL is on its way and arrives before the new ALLOCATE. */
static void cancelled_match_is_asked_for_again_at_once(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    open_match(f, chat, 1, NULL);
    cancel(f, chat, 1);
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, conn);
    cancel_ack(f, conn, 1); /* of the old one */
    assert_int_equal(state_of_session(f, 1), SESSION_OPENING);
    ack(f, conn, 1, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

/* An ACK of the old attempt may be under way, and could not be told from one of the new. */
static void attempt_without_an_answer_blocks_its_lobby_id(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    ask(f, chat, 1);
    cancel(f, chat, 1);
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    ack(f, conn, 1, true); /* there it is */
    effect(f, EFFECT_CANCEL, conn);
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void refusal_leaves_nothing_behind(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    ask(f, chat, 1);
    ack(f, conn, 1, false);
    effect(f, EFFECT_CANCEL, conn);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    assert_int_equal(f->core->rolls[ROW_session].n, 0);
    pass(f, 11000); /* its back-off */
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, conn);
}

/* ── retries ───────────────────────────────────────────────────────────────────────────────── */

static void five_servers(struct fixture *f, conn_id servers[5])
{
    for (int i = 0; i < 5; i++) {
        servers[i] = server_up(f, 2000 + i, 4);
        heartbeat(f, servers[i], 0, (float)(10 * i), 0);
    }
}

static void timeouts_go_to_the_next_best_at_most_three_times(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id servers[5];
    five_servers(f, servers);
    ask(f, chat, 1);
    for (int i = 0; i < 4; i++) {
        effect(f, EFFECT_ALLOCATE, servers[i]);
        pass(f, 4999);
        assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
        pass(f, 1);
        effect(f, EFFECT_CANCEL, servers[i]);
    }
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0); /* the fifth is never asked */
    answered(f, EFFECT_ALLOCATED, chat, ERR_ALLOCATION_TIMEOUT);
    const struct ticket *ticket = ticket_of(f, chat, 1);
    assert_int_equal(ticket->n_tries, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ticket->tries[i].server, id_of(f, servers[i]));
        assert_int_equal(ticket->tries[i].outcome, TRY_TIMED_OUT);
    }
}

static void refusals_and_drops_go_to_the_next_best(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id servers[5];
    five_servers(f, servers);
    ask(f, chat, 1);
    ack(f, servers[0], 1, false);
    effect(f, EFFECT_ALLOCATE, servers[1]);
    gone(f, servers[1]);
    effect(f, EFFECT_ALLOCATE, servers[2]);
    ack(f, servers[2], 1, true);
    assert_int_equal(answered(f, EFFECT_ALLOCATED, chat, 0)->server_id, id_of(f, servers[2]));
    const struct ticket *ticket = ticket_of(f, chat, 1);
    assert_int_equal(ticket->tries[0].outcome, TRY_REFUSED);
    assert_int_equal(ticket->tries[1].outcome, TRY_DROPPED);
    assert_int_equal(ticket->tries[2].outcome, TRY_ACKNOWLEDGED);
}

/* The text says how the last try ended, and nobody was left. */
static void failure_text_is_that_of_the_last_try(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id a = server_up(f, 2000, 4);
    ask(f, chat, 1);
    ack(f, a, 1, false);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    pass(f, 10000);
    cancel_ack(f, a, 1);
    ask(f, chat, 2);
    pass(f, 5000);
    answered(f, EFFECT_ALLOCATED, chat, ERR_ALLOCATION_TIMEOUT);
}

static void whole_ticket_has_thirty_seconds(void **state)
{
    struct fixture *f = *state;
    f->core->config.timeouts.ack_ms = 60000;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    server_up(f, 2001, 4);
    ask(f, chat, 1);
    pass(f, 29999);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    pass(f, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_ALLOCATION_TIMEOUT);
    effect(f, EFFECT_CANCEL, conn);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
}

/* ── cancel ────────────────────────────────────────────────────────────────────────────────── */

static void cancel_in_each_state(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    cancel(f, chat, 1);
    assert_int_equal(answered(f, EFFECT_CANCELLED, chat, ERR_MATCH_NOT_FOUND)->lobby, 1);
    ask(f, chat, 1);
    cancel(f, chat, 1); /* failed */
    answered(f, EFFECT_CANCELLED, chat, 0);
    conn_id conn = server_up(f, 2000, 4);
    ask(f, chat, 2);
    cancel(f, chat, 2); /* open: whoever waits is told so */
    answered(f, EFFECT_CANCELLED, chat, 0);
    answered(f, EFFECT_ALLOCATED, chat, ERR_TICKET_CANCELLED);
    effect(f, EFFECT_CANCEL, conn);
    cancel(f, chat, 2); /* repeated */
    answered(f, EFFECT_CANCELLED, chat, 0);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, conn), 0);
    open_match(f, chat, 3, NULL);
    cancel(f, chat, 3); /* done */
    answered(f, EFFECT_CANCELLED, chat, 0);
    effect(f, EFFECT_CANCEL, conn);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, 0), 0);
    open_match(f, chat, 4, NULL);
    match_ended(f, conn, 4);
    cancel(f, chat, 4); /* ended: still over */
    answered(f, EFFECT_CANCELLED, chat, 0);
    ask(f, chat, 4);
    answered(f, EFFECT_ALLOCATED, chat, ERR_INVALID_LOBBY);
}

static void chat_server_cannot_cancel_anothers_match(void **state)
{
    struct fixture *f = *state;
    conn_id one = chat_up(f, "one");
    conn_id two = chat_up(f, "two");
    server_up(f, 2000, 4);
    open_match(f, one, 1, NULL);
    cancel(f, two, 1);
    answered(f, EFFECT_CANCELLED, two, ERR_MATCH_NOT_FOUND);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
}

/* ── limits ────────────────────────────────────────────────────────────────────────────────── */

static void too_many_open_tickets_are_refused(void **state)
{
    struct fixture *f = *state;
    f->core->config.limits.tickets_open = 2;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 10);
    ask(f, chat, 1);
    ask(f, chat, 2);
    ask(f, chat, 3);
    answered(f, EFFECT_ALLOCATED, chat, ERR_TOO_MANY);
    assert_null(ticket_of(f, chat, 3));
    ask(f, chat, 1); /* a repeat is no new one */
    assert_int_equal(f->batch.effects.len, 0);
    ack(f, conn, 1, true);
    ask(f, chat, 3);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void newest_finished_tickets_are_kept(void **state)
{
    struct fixture *f = *state;
    f->core->config.limits.tickets_kept = 3;
    f->config.limits.tickets_kept = 3;
    conn_id chat = chat_up(f, "chat");
    for (int32_t lobby = 1; lobby <= 10; lobby++)
        ask(f, chat, lobby);
    assert_int_equal(f->core->rolls[ROW_ticket].n, 3);
    for (int32_t lobby = 1; lobby <= 10; lobby++)
        assert_int_equal(ticket_of(f, chat, lobby) != NULL, lobby > 7);
}

static void newest_finished_tickets_are_kept_after_a_restart(void **state)
{
    struct fixture *f = *state;
    enum { KEPT = 50 };
    conn_id chat = chat_up(f, "chat");
    f->core->config.limits.tickets_kept = KEPT;
    f->config.limits.tickets_kept = KEPT;
    for (int32_t lobby = 1; lobby <= KEPT; lobby++) {
        pass(f, 1);
        ask(f, chat, lobby);
    }
    seal(f);
    crash(f, 0);
    chat = chat_up(f, "chat");
    for (int32_t lobby = 101; lobby <= 120; lobby++)
        ask(f, chat, lobby);
    for (int32_t lobby = 1; lobby <= KEPT; lobby++)
        assert_int_equal(ticket_of(f, chat, lobby) != NULL, lobby > 20);
}

/* ── who is answered ───────────────────────────────────────────────────────────────────────── */

static void answer_goes_to_the_connection_that_asked_last(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    ask(f, chat, 1);
    ask(f, chat, 2);
    gone(f, chat);
    chat = chat_up(f, "chat");
    ask(f, chat, 1);
    ack(f, conn, 1, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    ack(f, conn, 2, true); /* nobody on this connection asked */
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(requests_have_limits),
        FIXTURE_TEST(asked_again_while_open_one_answer_for_both),
        FIXTURE_TEST(asked_again_after_success_the_same_answer),
        FIXTURE_TEST(repeat_does_not_depend_on_what_else_it_says),
        FIXTURE_TEST(asked_again_after_failure_a_new_ticket),
        FIXTURE_TEST(asked_again_after_cancel_a_new_ticket),
        FIXTURE_TEST(asked_again_after_the_end_no_such_lobby),
        FIXTURE_TEST(equal_lobby_of_another_chat_server_is_another_match),
        FIXTURE_TEST(cancelled_match_is_asked_for_again_at_once),
        FIXTURE_TEST(attempt_without_an_answer_blocks_its_lobby_id),
        FIXTURE_TEST(refusal_leaves_nothing_behind),
        FIXTURE_TEST(timeouts_go_to_the_next_best_at_most_three_times),
        FIXTURE_TEST(refusals_and_drops_go_to_the_next_best),
        FIXTURE_TEST(failure_text_is_that_of_the_last_try),
        FIXTURE_TEST(whole_ticket_has_thirty_seconds),
        FIXTURE_TEST(cancel_in_each_state),
        FIXTURE_TEST(chat_server_cannot_cancel_anothers_match),
        FIXTURE_TEST(too_many_open_tickets_are_refused),
        FIXTURE_TEST(newest_finished_tickets_are_kept),
        FIXTURE_TEST(newest_finished_tickets_are_kept_after_a_restart),
        FIXTURE_TEST(answer_goes_to_the_connection_that_asked_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

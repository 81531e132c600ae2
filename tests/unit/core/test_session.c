#include "fixture.h"

/* OPENING owes ALLOCATE, and its slot is taken before anybody is told. */
static void opening_takes_the_slot_and_orders(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    ask(f, chat, 1);
    const struct effect *order = effect(f, EFFECT_ALLOCATE, conn);
    assert_int_equal(order->lobby, 1);
    assert_int_equal(order->game_type, 1);
    assert_int_equal(order->game_mode, 2);
    assert_true(order->token.len > 0);
    assert_int_equal(state_of_session(f, 1), SESSION_OPENING);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_FULL);
    heartbeat(f, conn, 0, 0, 0); /* a report never overwrites a reservation */
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
}

static void ack_opens_and_answers(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    ask(f, chat, 1);
    char token[TOKEN_SIZE];
    assert_true(str_copy(token, sizeof(token), effect(f, EFFECT_ALLOCATE, conn)->token));
    ack(f, conn, 1, true);
    const struct effect *e = answered(f, EFFECT_ALLOCATED, chat, 0);
    assert_int_equal(e->lobby, 1);
    assert_int_equal(e->server_id, id_of(f, conn));
    assert_true(str_eq(e->ip, STR("10.0.0.1")));
    assert_int_equal(e->port, 2000);
    assert_true(str_eq(e->token, str_of(token)));
    assert_true(e->wall_ms == f->now.wall_ms);
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, 0), 0); /* READY has not come */
    ack(f, conn, 1, true);                                        /* repeated */
    assert_int_equal(f->batch.effects.len, 0);
    ack(f, conn, 1, false);
    assert_int_equal(f->batch.effects.len, 0);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
}

static void ready_before_the_ack_counts_as_the_ack(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    ask(f, chat, 1);
    char token[TOKEN_SIZE];
    assert_true(str_copy(token, sizeof(token), effect(f, EFFECT_ALLOCATE, conn)->token));
    ready(f, conn, 1, token);
    answered(f, EFFECT_READY, conn, 0);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    assert_int_equal(effect(f, EFFECT_MATCH_EVENT, chat)->event, MATCH_READY);
    ack(f, conn, 1, true);
    assert_int_equal(f->batch.effects.len, 0);
}

static void ready_errors(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    conn_id other = server_up(f, 2001, 1);
    heartbeat(f, other, 0, 50, 50);
    char token[TOKEN_SIZE];
    assert_true(open_match(f, chat, 1, token) == conn);
    ready(f, conn, 2, token);
    assert_int_equal(answered(f, EFFECT_READY, conn, ERR_MATCH_NOT_FOUND)->lobby, 2);
    ready(f, conn, 1, "MATCH_1_x_1");
    answered(f, EFFECT_READY, conn, ERR_INVALID_MATCH_TOKEN);
    ready(f, other, 1, "MATCH_1_x_1");
    answered(f, EFFECT_READY, other, ERR_INVALID_MATCH_TOKEN);
    ready(f, other, 1, token);
    answered(f, EFFECT_READY, other, ERR_NOT_ALLOCATED);
    match_ended(f, conn, 1);
    ready(f, conn, 1, token);
    answered(f, EFFECT_READY, conn, ERR_MATCH_NOT_FOUND);
}

static void late_ack_is_answered_with_a_cancel(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id slow = server_up(f, 2000, 1);
    ask(f, chat, 1);
    pass(f, 5000);
    effect(f, EFFECT_CANCEL, slow);
    answered(f, EFFECT_ALLOCATED, chat, ERR_ALLOCATION_TIMEOUT);
    ack(f, slow, 1, true);
    assert_true(effect(f, EFFECT_CANCEL, slow)->token.len > 0);
    assert_int_equal(count_notes(f, NOTE_LATE_ACK), 1);
    assert_int_equal(state_of_session(f, 1), SESSION_CANCELLING);
    cancel_ack(f, slow, 1);
    ack(f, slow, 1, true); /* nothing is known of it any more */
    assert_int_equal(effect(f, EFFECT_CANCEL, slow)->token.len, 0);
    ack(f, slow, 1, false);
    assert_int_equal(f->batch.effects.len, 0);
}

/* A second server's yes does not pass for the first one's. */
static void ack_counts_only_from_the_server_that_is_asked(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id a = server_up(f, 2000, 1);
    conn_id b = server_up(f, 2001, 1);
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, a);
    ack(f, b, 1, true);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    effect(f, EFFECT_CANCEL, b);
    pass(f, 5000);
    effect(f, EFFECT_ALLOCATE, b);
    ack(f, a, 1, true);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    effect(f, EFFECT_CANCEL, a);
    ack(f, b, 1, true);
    assert_int_equal(answered(f, EFFECT_ALLOCATED, chat, 0)->server_id, id_of(f, b));
}

/* What was asked on an old connection is not acknowledged on a new one before it is asked again. */
static void ack_counts_only_on_the_connection_that_was_asked(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 1);
    ask(f, chat, 1);
    seal(f);
    crash(f, 1000);
    chat = chat_up(f, "chat");
    conn_id conn = server_back(f, 2000, 1);
    ack(f, conn, 1, true);
    assert_int_equal(state_of_session(f, 1), SESSION_OPENING);
    match_list(f, conn, 0);
    effect(f, EFFECT_ALLOCATE, conn); /* still owed */
    ack(f, conn, 1, true);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0),
                     0); /* nobody asked on this connection */
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

/* ── cancelling ────────────────────────────────────────────────────────────────────────────── */

static void slot_is_free_when_cancel_went_to_a_live_connection(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    open_match(f, chat, 1, NULL);
    cancel(f, chat, 1);
    answered(f, EFFECT_CANCELLED, chat, 0);
    effect(f, EFFECT_CANCEL, conn);
    assert_int_equal(server_of(f, conn)->held, 0);
    ask(f, chat, 2);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void slot_is_held_while_cancel_is_owed(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    cancel(f, chat, 1);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, 0), 0);
    assert_int_equal(server_of(f, conn)->held, 1);
    crash(f, 1000); /* the cancel was not durable … */
    chat = chat_up(f, "chat");
    cancel(f, chat, 1);
    seal(f);
    crash(f, 1000); /* … now it is */
    chat = chat_up(f, "chat");
    conn = server_back(f, 2000, 1);
    match_list(f, conn, 1, 1);
    effect(f, EFFECT_CANCEL, conn);
    assert_int_equal(server_of(f, conn)->held, 0);
    cancel_ack(f, conn, 1);
    assert_null(session_of(f, 1));
}

static void list_without_it_settles_an_owed_cancel(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    cancel(f, chat, 1);
    conn = server_back(f, 2000, 1);
    match_list(f, conn, 0);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, 0), 0);
    assert_null(session_of(f, 1));
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void cancel_is_repeated_until_it_is_given_up(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    f->core->config.timeouts.chat_ms = INT32_MAX;
    chat_beat(f, chat);
    open_match(f, chat, 1, NULL);
    cancel(f, chat, 1);
    server_on(f, conn)->reports = 0;
    pass(f, 9999);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, conn), 0);
    pass(f, 1);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, conn), 1);
    pass(f, f->config.timeouts.lost_ms - 10000 - 1);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, conn), 58);
    pass(f, 1);
    assert_int_equal(count_notes(f, NOTE_CANCEL_GIVEN_UP), 1);
    assert_null(session_of(f, 1));
}

static void cancel_ack_counts_once_and_only_when_asked(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    cancel_ack(f, conn, 1);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    cancel_ack(f, conn, 99);
    cancel(f, chat, 1);
    cancel_ack(f, conn, 1);
    assert_null(session_of(f, 1));
    cancel_ack(f, conn, 1);
    assert_int_equal(f->batch.effects.len, 0);
}

static void ready_of_a_cancelled_match_is_refused_and_cancelled_again(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    cancel(f, chat, 1);
    ready(f, conn, 1, token);
    answered(f, EFFECT_READY, conn, ERR_NOT_ALLOCATED);
    effect(f, EFFECT_CANCEL, conn);
}

/* ── ends ──────────────────────────────────────────────────────────────────────────────────── */

static void match_ended_frees_the_slot_and_repeats_its_yes(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    open_match(f, chat, 1, NULL);
    match_ended(f, conn, 1);
    answered(f, EFFECT_MATCH_ENDED, conn, 0);
    assert_int_equal(effect(f, EFFECT_MATCH_EVENT, chat)->event, MATCH_ENDED);
    assert_int_equal(server_of(f, conn)->held, 0);
    match_ended(f, conn, 1);
    answered(f, EFFECT_MATCH_ENDED, conn, 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, chat), 0);
    match_ended(f, conn, 2);
    answered(f, EFFECT_MATCH_ENDED, conn, ERR_MATCH_NOT_FOUND);
    seal(f);
    crash(f, 1000);
    conn = server_back(f, 2000, 1);
    match_ended(f, conn, 1); /* also after a restart */
    answered(f, EFFECT_MATCH_ENDED, conn, 0);
}

static void match_of_another_server_cannot_be_ended(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 1);
    conn_id other = server_up(f, 2001, 1);
    open_match(f, chat, 1, NULL);
    match_ended(f, other, 1);
    answered(f, EFFECT_MATCH_ENDED, other, ERR_MATCH_NOT_FOUND);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
}

static void ended_match_is_forgotten_in_time(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    open_match(f, chat, 1, NULL);
    match_ended(f, conn, 1);
    pass(f, f->config.timeouts.keep_ms - 1);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
    pass(f, 1);
    assert_int_equal(f->core->rolls[ROW_session].n, 0);
    assert_int_equal(f->core->rolls[ROW_ticket].n, 0);
}

static void match_that_is_too_long_ends_for_all(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    f->core->config.timeouts.chat_ms = INT32_MAX;
    chat_beat(f, chat);
    open_match(f, chat, 1, NULL);
    pass(f, f->config.timeouts.session_ms - 1);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    pass(f, 1);
    assert_int_equal(effect(f, EFFECT_MATCH_EVENT, chat)->event, MATCH_ENDED);
    effect(f, EFFECT_CANCEL, conn);
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, ERR_INVALID_LOBBY);
}

/* ── READY required ────────────────────────────────────────────────────────────────────────── */

static void answer_waits_for_ready_where_required(void **state)
{
    struct fixture *f = *state;
    f->core->config.fleets[0].ready_required = true;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1);
    ask(f, chat, 1);
    char token[TOKEN_SIZE];
    assert_true(str_copy(token, sizeof(token), effect(f, EFFECT_ALLOCATE, conn)->token));
    pass(f, 4000);
    ack(f, conn, 1, true);
    assert_int_equal(f->batch.effects.len, 0);
    pass(f, 9999); /* the ACK's time is over, READY's is not */
    ready(f, conn, 1, token);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    answered(f, EFFECT_READY, conn, 0);
}

static void server_that_is_never_ready_is_cancelled(void **state)
{
    struct fixture *f = *state;
    f->core->config.fleets[0].ready_required = true;
    conn_id chat = chat_up(f, "chat");
    conn_id first = server_up(f, 2000, 1);
    conn_id second = server_up(f, 2001, 1);
    ask(f, chat, 1);
    ack(f, first, 1, true);
    ack(f, first, 1, true); /* a repeat does not buy time */
    pass(f, 5000);
    ack(f, first, 1, true);
    pass(f, 4999);
    assert_int_equal(f->batch.effects.len, 0);
    pass(f, 1);
    effect(f, EFFECT_CANCEL, first);
    effect(f, EFFECT_ALLOCATE, second);
    assert_int_equal(ticket_of(f, chat, 1)->tries[0].outcome, TRY_NOT_READY);
}

/* ── the store fails ───────────────────────────────────────────────────────────────────────── */

static void orders_are_given_again_after_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    cancel(f, chat, 1);
    ask(f, chat, 2);
    ack(f, conn, 2, true); /* in the batch that is lost */
    lose_batch(f);
    assert_int_equal(state_of_session(f, 1), SESSION_CANCELLING);
    assert_int_equal(state_of_session(f, 2), SESSION_OPENING);
    assert_int_equal(server_of(f, conn)->held, 2);
    store_up(f);
    assert_int_equal(effect(f, EFFECT_CANCEL, conn)->lobby, 1);
    assert_int_equal(effect(f, EFFECT_ALLOCATE, conn)->lobby, 2);
    ack(f, conn, 2, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(opening_takes_the_slot_and_orders),
        FIXTURE_TEST(ack_opens_and_answers),
        FIXTURE_TEST(ready_before_the_ack_counts_as_the_ack),
        FIXTURE_TEST(ready_errors),
        FIXTURE_TEST(late_ack_is_answered_with_a_cancel),
        FIXTURE_TEST(ack_counts_only_from_the_server_that_is_asked),
        FIXTURE_TEST(ack_counts_only_on_the_connection_that_was_asked),
        FIXTURE_TEST(slot_is_free_when_cancel_went_to_a_live_connection),
        FIXTURE_TEST(slot_is_held_while_cancel_is_owed),
        FIXTURE_TEST(list_without_it_settles_an_owed_cancel),
        FIXTURE_TEST(cancel_is_repeated_until_it_is_given_up),
        FIXTURE_TEST(cancel_ack_counts_once_and_only_when_asked),
        FIXTURE_TEST(ready_of_a_cancelled_match_is_refused_and_cancelled_again),
        FIXTURE_TEST(match_ended_frees_the_slot_and_repeats_its_yes),
        FIXTURE_TEST(match_of_another_server_cannot_be_ended),
        FIXTURE_TEST(ended_match_is_forgotten_in_time),
        FIXTURE_TEST(match_that_is_too_long_ends_for_all),
        FIXTURE_TEST(answer_waits_for_ready_where_required),
        FIXTURE_TEST(server_that_is_never_ready_is_cancelled),
        FIXTURE_TEST(orders_are_given_again_after_a_lost_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

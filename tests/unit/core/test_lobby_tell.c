/* What players are told of their lobbies: what is owed is told on whichever connection comes, once
 * it has left it is not repeated, and what was lost with a batch is said again. */
#include "lobbies.h"

enum { PAIR = 2 };

static int64_t post_pair(struct fixture *f)
{
    struct lobby_wanted wanted = wanted_of(four, PAIR);
    return post(f, &wanted);
}

static void add_hello(struct fixture *f, conn_id conn, int32_t account)
{
    struct event e = {.kind = EVENT_CLIENT_HELLO, .conn = conn};
    e.client_hello.account = account;
    add_step(f, &e);
}

static struct event abort_of(int64_t id, const char *reason)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER};
    e.operate = (struct operate){.verb = OPERATE_ABORT_LOBBY,
                                 .target = id,
                                 .who = STR("matchmaker"),
                                 .reason = str_of(reason)};
    return e;
}

static const struct effect *abort_lobby_of(struct fixture *f, int64_t id, const char *reason)
{
    struct event e = abort_of(id, reason);
    step(f, &e);
    return effect(f, EFFECT_OPERATED, MATCHMAKER);
}

/* The nth effect of the last batch that is no note. */
static const struct effect *nth_said(const struct fixture *f, int nth)
{
    for (size_t i = 0; i < f->batch.effects.len; i++) {
        if (f->batch.effects.items[i].kind != EFFECT_NOTE && nth-- == 0)
            return &f->batch.effects.items[i];
    }
    fail();
    return NULL;
}

static void is_said(const struct fixture *f, int nth, enum effect_kind kind, int64_t lobby)
{
    const struct effect *e = nth_said(f, nth);
    assert_string_equal(effect_name(e->kind), effect_name(kind));
    assert_int_equal(e->lobby, lobby ? lobby_number(lobby) : 0);
}

static void an_owed_end_survives_a_crash(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    int64_t id = post_pair(f);
    assert_int_equal(abort_lobby_of(f, id, "no")->err, 0);
    seal(f);
    crash(f, 100);
    conn_id conn = client_up(f, 2);
    const struct effect *e = effect(f, EFFECT_MATCH_ABORTED, conn);
    assert_true(str_eq(e->text, STR("no")) && e->on);
    seal(f);
    crash(f, 100); /* that it left is not stored yet, so it is told again rather than never */
    conn = client_up(f, 2);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), 1);
    seal(f);
    pass(f, CORE_STRUCK_OFF_MS);
    seal(f);
    crash(f, 100);
    conn = client_up(f, 2);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), 0);
    conn = client_up(f, 1); /* the other one has not been here */
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), 1);
}

static void who_connects_again_before_the_end_has_left_is_told_there(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    conn_id old = client_up(f, 1);
    int64_t id = post_pair(f);
    seal(f);
    struct event e = abort_of(id, "");
    add_step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, old), 1);
    conn_id newer = new_conn(f);
    add_hello(f, newer, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, newer), 1);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, old), 1);
    seal(f);
    seal(f);
    conn_id again = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, again), 0);
}

static void who_dropped_before_the_end_has_left_is_told_when_he_is_back(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    conn_id conn = client_up(f, 1);
    int64_t id = post_pair(f);
    seal(f);
    struct event e = abort_of(id, "");
    struct event drop = {.kind = EVENT_GONE, .conn = conn};
    add_step(f, &e);
    add_step(f, &drop);
    seal(f);
    seal(f);
    conn = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), 1);
}

static void who_comes_hears_the_oldest_end_first_and_then_where_he_is(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 4);
    conn_id other = client_up(f, 2);
    int64_t first = post_pair(f);
    (void)abort_lobby_of(f, first, "first");
    int64_t second = post_pair(f);
    (void)abort_lobby_of(f, second, "second");
    int64_t third = post_pair(f);
    say_loading(f, other, third, 2, true);
    (void)client_up(f, 1);
    is_said(f, 0, EFFECT_CLIENT_HELLO, 0);
    is_said(f, 1, EFFECT_MATCH_ABORTED, first);
    is_said(f, 2, EFFECT_MATCH_ABORTED, second);
    is_said(f, 3, EFFECT_LOBBY_CREATED, third);
    is_said(f, 4, EFFECT_LOADING, third);
    assert_true(nth_said(f, 4)->account == 2 && nth_said(f, 4)->on);
    assert_int_equal(count_effects(f, EFFECT_LOADING, 0), 1);
}

static int64_t start_pair(struct fixture *f, const conn_id *player)
{
    char token[TOKEN_SIZE];
    int64_t id = post_pair(f);
    serve(f, ordered(f, token), id, token);
    load_all(f, id, player, PAIR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
    return id;
}

static void who_comes_is_sent_into_his_newest_match_only(void **state)
{
    struct fixture *f = *state;
    conn_id player[PAIR];
    (void)server_up(f, 2000, 4);
    clients_up(f, PAIR, player);
    int64_t first = start_pair(f, player);
    int64_t second = start_pair(f, player);
    conn_id again = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, again), 1);
    assert_int_equal(effect(f, EFFECT_MATCH_START, again)->lobby, lobby_number(second));
    (void)abort_lobby_of(f, second, "");
    seal(f);
    again = client_up(f, 1); /* it is over, and the older one is not */
    assert_int_equal(effect(f, EFFECT_MATCH_START, again)->lobby, lobby_number(first));
}

static void who_takes_it_back_is_heard_by_the_others(void **state)
{
    struct fixture *f = *state;
    conn_id player[PAIR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    clients_up(f, PAIR, player);
    int64_t id = post_pair(f);
    serve(f, ordered(f, token), id, token);
    say_loading(f, player[0], id, 1, true);
    say_loading(f, player[0], id, 1, true); /* nothing new */
    assert_int_equal(count_effects(f, EFFECT_LOADING, 0), 0);
    say_loading(f, player[0], id, 1, false);
    assert_false(effect(f, EFFECT_LOADING, player[1])->on);
    say_loading(f, player[1], id, 2, true);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    say_loading(f, player[0], id, 1, true);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

static void nobody_speaks_for_another(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    (void)server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_pair(f);
    say_loading(f, player[0], id, 2, true);
    assert_int_equal(count_notes(f, NOTE_REFUSED), 1);
    say_loading(f, player[2], id, 3, true); /* he is in no lobby */
    say_loading(f, player[0], id + 1, 1, true);
    say_loading(f, 77, id, 1, true); /* who is that? */
    assert_int_equal(lobby_find(f->core, id)->loaded, 0);
}

static void what_was_lost_with_a_batch_is_said_again(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    int64_t over = post_pair(f);
    (void)abort_lobby_of(f, over, "");
    int64_t id = post_pair(f);
    seal(f);
    conn_id conn = new_conn(f);
    add_hello(f, conn, 1);
    lose_batch(f);
    assert_int_equal(answered(f, EFFECT_CLIENT_HELLO, conn, 0)->err, 0);
    is_said(f, 0, EFFECT_CLIENT_HELLO, 0);
    is_said(f, 1, EFFECT_MATCH_ABORTED, over);
    is_said(f, 2, EFFECT_LOBBY_CREATED, id);
    store_up(f);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, 0), 0);
    assert_int_equal(count_effects(f, EFFECT_LOBBY_CREATED, 0), 0);
}

static void a_lobby_that_was_never_stored_is_never_told(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    conn_id conn = client_up(f, 1);
    int64_t id = post_pair(f);
    assert_int_equal(count_effects(f, EFFECT_LOBBY_CREATED, conn), 1);
    lose_batch(f);
    answered(f, EFFECT_OPERATED, MATCHMAKER, ERR_INTERNAL);
    assert_int_equal(count_effects(f, EFFECT_LOBBY_CREATED, 0), 0);
    store_up(f);
    assert_int_equal(state_of_lobby(f, id), 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, 0), 0);
}

static void an_end_that_was_never_stored_is_no_end(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    conn_id conn = client_up(f, 1);
    int64_t id = post_pair(f);
    seal(f);
    struct event e = abort_of(id, "");
    add_step(f, &e);
    lose_batch(f);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), 0);
    store_up(f);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
}

/* His grace was over when the lobby was aborted, which could not be stored. */
static void who_was_gone_for_too_long_before_a_failed_commit_still_is(void **state)
{
    struct fixture *f = *state;
    conn_id player[PAIR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    clients_up(f, PAIR, player);
    int64_t id = post_pair(f);
    serve(f, ordered(f, token), id, token);
    gone(f, player[1]);
    pass(f, f->config.timeouts.player_gone_ms + 1000);
    assert_string_equal(reason_of_lobby(f, id), "Player disconnected");
    lose_batch(f);
    store_up(f);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    pass(f, f->config.timeouts.player_gone_ms + 1000);
    assert_string_equal(reason_of_lobby(f, id), "Player disconnected");
}

static void the_end_of_a_started_one_queues_nobody(void **state)
{
    struct fixture *f = *state;
    conn_id player[PAIR];
    conn_id server = server_up(f, 2000, 1);
    clients_up(f, PAIR, player);
    int64_t id = start_pair(f, player);
    assert_int_equal(abort_lobby_of(f, id, "")->err, 0);
    const struct effect *e = effect(f, EFFECT_MATCH_ABORTED, player[0]);
    assert_true(str_eq(e->text, STR("Ended by an operator")) && !e->on);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, server), 1);
    assert_int_equal(state_of_lobby(f, id), LOBBY_ENDED);
    assert_int_equal(abort_lobby_of(f, id, "")->err, ERR_ALREADY_OVER);
    assert_int_equal(abort_lobby_of(f, id + 1, "")->err, ERR_NOT_FOUND);
}

static void a_reason_that_is_too_long_is_refused(void **state)
{
    struct fixture *f = *state;
    char text[LOBBY_REASON_MAX + 2];
    memset(text, 'x', sizeof(text));
    text[LOBBY_REASON_MAX + 1] = '\0';
    (void)server_up(f, 2000, 1);
    conn_id conn = client_up(f, 1);
    int64_t id = post_pair(f);
    assert_int_equal(abort_lobby_of(f, id, text)->err, ERR_BAD_ARGUMENT);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    text[LOBBY_REASON_MAX] = '\0';
    assert_int_equal(abort_lobby_of(f, id, text)->err, 0);
    assert_true(str_eq(effect(f, EFFECT_MATCH_ABORTED, conn)->text, str_of(text)));
}

static void who_is_banned_is_not_let_in(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER};
    e.operate = (struct operate){.verb = OPERATE_BAN,
                                 .who = STR("root"),
                                 .account = STR("2"),
                                 .reason = STR("cheating"),
                                 .expires_wall_ms = f->now.wall_ms + 3600 * 1000};
    step(f, &e);
    answered(f, EFFECT_OPERATED, MATCHMAKER, 0);
    conn_id conn = say_client_hello(f, 2);
    answered(f, EFFECT_CLIENT_HELLO, conn, ERR_BANNED);
    assert_int_equal(client_conn(f->core, 2), 0);
    conn = say_client_hello(f, 0);
    answered(f, EFFECT_CLIENT_HELLO, conn, ERR_INVALID_REQUEST);
    struct lobby_wanted wanted = wanted_of(four, PAIR);
    const struct effect *refusal = post_as(f, &wanted, "");
    assert_int_equal(refusal->err, ERR_BANNED);
    assert_true(str_eq(refusal->text, STR("Player 2 is banned.")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(an_owed_end_survives_a_crash),
        FIXTURE_TEST(who_connects_again_before_the_end_has_left_is_told_there),
        FIXTURE_TEST(who_dropped_before_the_end_has_left_is_told_when_he_is_back),
        FIXTURE_TEST(who_comes_hears_the_oldest_end_first_and_then_where_he_is),
        FIXTURE_TEST(who_comes_is_sent_into_his_newest_match_only),
        FIXTURE_TEST(who_takes_it_back_is_heard_by_the_others),
        FIXTURE_TEST(nobody_speaks_for_another),
        FIXTURE_TEST(what_was_lost_with_a_batch_is_said_again),
        FIXTURE_TEST(a_lobby_that_was_never_stored_is_never_told),
        FIXTURE_TEST(an_end_that_was_never_stored_is_no_end),
        FIXTURE_TEST(who_was_gone_for_too_long_before_a_failed_commit_still_is),
        FIXTURE_TEST(the_end_of_a_started_one_queues_nobody),
        FIXTURE_TEST(a_reason_that_is_too_long_is_refused),
        FIXTURE_TEST(who_is_banned_is_not_let_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

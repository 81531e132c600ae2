#include "fixture.h"

struct scene {
    conn_id chat;
    conn_id server;
    char token[TOKEN_SIZE];
};

static struct scene open_scene(struct fixture *f)
{
    struct scene s = {.chat = chat_up(f, "chat")};
    server_up(f, 2000, 4);
    s.server = open_match(f, s.chat, 1, s.token);
    return s;
}

static void expect(struct fixture *f, conn_id server, int32_t account, int err)
{
    const struct effect *e = answered(f, EFFECT_VALIDATE, server, err);
    assert_int_equal(e->lobby, 1);
    assert_int_equal(e->account, account);
}

/* Each refusal also has every later mistake. */
static void errors_come_in_their_order(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    for (int32_t account = 1; account <= 10; account++) {
        validate(f, s.server, 1, account, s.token);
        expect(f, s.server, account, 0);
    }
    validate(f, s.server, 1, 11, s.token); /* the eleventh of ten */
    expect(f, s.server, 11, ERR_NOT_PART_OF_MATCH);
    pass(f, 120001);
    validate(f, s.server, 1, 11, s.token);
    expect(f, s.server, 11, ERR_MATCH_TOKEN_EXPIRED);
    validate(f, s.server, 1, 11, "wrong");
    expect(f, s.server, 11, ERR_INVALID_MATCH_TOKEN);
    assert_int_equal(session_of(f, 1)->admitted, 10);
}

static void first_entry_has_120_seconds(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    pass(f, 120000);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, 0);
    pass(f, 1);
    validate(f, s.server, 1, 2, s.token);
    expect(f, s.server, 2, ERR_MATCH_TOKEN_EXPIRED);
}

static void another_servers_token_is_wrong(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    conn_id other = server_up(f, 2001, 4);
    validate(f, other, 1, 1, s.token);
    expect(f, other, 1, ERR_INVALID_MATCH_TOKEN);
    ask(f, s.chat, 2);
    char token[TOKEN_SIZE];
    assert_true(str_copy(token, sizeof(token), effect(f, EFFECT_ALLOCATE, 0)->token));
    validate(f, s.server, 1, 1, token); /* another match's */
    expect(f, s.server, 1, ERR_INVALID_MATCH_TOKEN);
    validate(f, 99, 1, 1, s.token); /* nobody */
    answered(f, EFFECT_VALIDATE, 99, ERR_NOT_REGISTERED);
}

static void whoever_was_admitted_is_admitted_again(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    validate(f, s.server, 1, 1, s.token);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, 0);
    assert_int_equal(session_of(f, 1)->admitted, 1);
    player_left(f, s.server, 1, 1);
    assert_int_equal(session_of(f, 1)->seated, 0);
    player_left(f, s.server, 1, 1);
    assert_int_equal(session_of(f, 1)->seated, 0);
    pass(f, 600000);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, 0);
    assert_int_equal(session_of(f, 1)->seated, 1);
    seal(f);
    crash(f, 1000);
    chat_up(f, "chat");
    s.server = server_back(f, 2000, 4);
    match_list(f, s.server, 1, 1);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, 0);
}

static void player_moves_and_is_kicked_from_where_he_was(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    conn_id other = server_up(f, 2001, 4);
    char token[TOKEN_SIZE];
    assert_true(open_match(f, s.chat, 2, token) == other);
    validate(f, s.server, 1, 7, s.token);
    assert_int_equal(count_effects(f, EFFECT_KICK, 0), 0);
    validate(f, other, 2, 7, token);
    answered(f, EFFECT_VALIDATE, other, 0);
    const struct effect *kick = effect(f, EFFECT_KICK, s.server);
    assert_int_equal(kick->lobby, 1);
    assert_int_equal(kick->account, 7);
    assert_int_equal(session_of(f, 1)->seated, 0);
    assert_int_equal(session_of(f, 2)->seated, 1);
    player_left(f, s.server, 1, 7); /* the kicked one leaves; his new seat stays */
    assert_int_equal(session_of(f, 2)->seated, 1);
    validate(f, s.server, 1, 7, s.token); /* and back */
    effect(f, EFFECT_KICK, other);
    gone(f, s.server);
    validate(f, other, 2, 7, token); /* nobody to tell */
    assert_int_equal(count_effects(f, EFFECT_KICK, 0), 0);
}

static void seats_are_given_back_with_the_match(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    validate(f, s.server, 1, 1, s.token);
    validate(f, s.server, 1, 2, s.token);
    player_left(f, s.server, 1, 2);
    match_ended(f, s.server, 1);
    assert_int_equal(f->core->seats.len, 0);
    assert_int_equal(f->core->seats_by_player.len, 0);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, ERR_INVALID_MATCH_TOKEN);
    char token[TOKEN_SIZE];
    open_match(f, s.chat, 2, token);
    validate(f, s.server, 2, 1, token);
    assert_int_equal(count_effects(f, EFFECT_KICK, 0), 0);
    cancel(f, s.chat, 2);
    assert_int_equal(f->core->seats.len, 0);
    seal(f);
    crash(f, 0);
    assert_int_equal(f->core->seats.len, 0);
}

static void lost_match_keeps_its_seats(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    validate(f, s.server, 1, 1, s.token);
    gone(f, s.server);
    pass(f, 31000);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    assert_int_equal(session_of(f, 1)->seated, 1);
    s.server = server_back(f, 2000, 4);
    match_list(f, s.server, 1, 1);
    pass(f, 120000);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, 0);
}

/* A server that asks holds the match, whatever we have concluded from its absence. */
static void player_enters_a_lost_match_whose_server_is_back(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.server);
    pass(f, 31000);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    s.server = server_back(f, 2000, 4);
    validate(f, s.server, 1, 1, s.token);
    expect(f, s.server, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(errors_come_in_their_order),
        FIXTURE_TEST(first_entry_has_120_seconds),
        FIXTURE_TEST(another_servers_token_is_wrong),
        FIXTURE_TEST(whoever_was_admitted_is_admitted_again),
        FIXTURE_TEST(player_moves_and_is_kicked_from_where_he_was),
        FIXTURE_TEST(seats_are_given_back_with_the_match),
        FIXTURE_TEST(lost_match_keeps_its_seats),
        FIXTURE_TEST(player_enters_a_lost_match_whose_server_is_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

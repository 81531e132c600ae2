/* The corners of a lobby's life: its two times, servers that come and go before the start, a core
 * that sleeps or cannot store, and its limits. */
#include "lobbies.h"

static void configure(struct fixture *f)
{
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
}

static void is_aborted(struct fixture *f, int64_t id, enum lobby_cause cause, const char *reason)
{
    assert_int_equal(state_of_lobby(f, id), LOBBY_ABORTED);
    assert_string_equal(reason_of_lobby(f, id), reason);
    assert_int_equal(lobby_find(f->core, id)->row.cause, cause);
}

/* Its players load for at most twelve seconds; each of the servers is silent for five. */
static int64_t post_hurried(struct fixture *f, int servers, conn_id *player)
{
    f->config.timeouts.loading_ms = 12 * 1000;
    configure(f);
    for (int i = 0; i < servers; i++)
        (void)server_up(f, 2000 + i, 1);
    clients_up(f, FOUR, player);
    return post_four(f);
}

/* The order of the newest session, which may be of an earlier step. */
static conn_id asked_now(struct fixture *f, int64_t id, char token[TOKEN_SIZE])
{
    struct session *session = session_of(f, lobby_number(id));
    (void)token_of(f->core, &session->row, token);
    return session->server->conn;
}

static void a_server_may_come_later_than_all_have_loaded(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    int64_t id = post_hurried(f, 4, player);
    load_all(f, id, player, FOUR);
    pass(f, 14 * 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    conn_id server = asked_now(f, id, token);
    serve(f, server, id, token);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
}

static void no_server_comes_though_all_have_loaded(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    int64_t id = post_hurried(f, 4, player);
    load_all(f, id, player, FOUR);
    pass(f, 19 * 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    pass(f, 2 * 1000);
    is_aborted(f, id, LOBBY_CAUSE_ALLOCATION,
               "Server allocation failed: Server allocation timeout");
}

static void nobody_waits_for_who_loads_too_late_though_no_server_is_there(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    int64_t id = post_hurried(f, 4, player);
    load_all(f, id, player, FOUR - 1);
    pass(f, 13 * 1000);
    is_aborted(f, id, LOBBY_CAUSE_LOADING, "Loading timeout");
}

static void no_other_server_is_looked_for_after_the_time_to_load(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    int64_t id = post_hurried(f, 4, player);
    load_all(f, id, player, FOUR);
    pass(f, 12 * 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING); /* its ticket is still open */
    say_loading(f, player[0], id, 1, false);
    conn_id server = asked_now(f, id, token);
    serve(f, server, id, token);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    gone(f, server);
    is_aborted(f, id, LOBBY_CAUSE_SERVER, "Server lost");
}

static void a_lobby_that_loses_too_many_servers_is_given_up(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    for (int i = 0; i <= LOBBY_MOVES_MAX + 1; i++)
        (void)server_up(f, 2000 + i, 1);
    int64_t id = post_four(f);
    for (int i = 0; i <= LOBBY_MOVES_MAX; i++) {
        assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
        assert_int_equal(lobby_find(f->core, id)->row.moves, i);
        conn_id server = asked_now(f, id, token);
        serve(f, server, id, token);
        gone(f, server);
    }
    is_aborted(f, id, LOBBY_CAUSE_SERVER, "Server lost");
}

static void end_session(struct fixture *f, int64_t session)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER};
    e.operate = (struct operate){.verb = OPERATE_END, .target = session, .who = STR("root")};
    step(f, &e);
    answered(f, EFFECT_OPERATED, MATCHMAKER, 0);
}

static void an_operator_ends_its_match_while_players_load(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    (void)server_up(f, 2001, 1);
    int64_t id = post_four(f);
    server = ordered(f, token);
    serve(f, server, id, token);
    end_session(f, session_of(f, lobby_number(id))->row.id);
    is_aborted(f, id, LOBBY_CAUSE_OPERATOR, "Ended by an operator");
    assert_int_equal(count_effects(f, EFFECT_CANCEL, server), 1);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
}

static void a_server_that_ends_the_match_before_it_starts_is_left(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    (void)server_up(f, 2001, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    conn_id first = ordered(f, token);
    serve(f, first, id, token);
    match_ended(f, first, lobby_number(id));
    answered(f, EFFECT_MATCH_ENDED, first, 0);
    assert_int_equal(count_notes(f, NOTE_LOBBY_MOVED), 1);
    conn_id second = ordered(f, token);
    load_all(f, id, player, FOUR);
    serve(f, second, id, token);
    assert_true(str_eq(effect(f, EFFECT_MATCH_START, player[0])->token, str_of(token)));
}

static void a_server_that_comes_back_without_the_match_is_asked_anew(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char first[TOKEN_SIZE];
    char second[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    conn_id server = ordered(f, first);
    serve(f, server, id, first);
    gone(f, server);
    load_all(f, id, player, FOUR);
    conn_id back = server_back(f, 2000, 1);
    match_list(f, back, 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), 0);
    assert_true(ordered(f, second) == back);
    assert_string_not_equal(first, second);
    serve(f, back, id, second);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

static void nobody_is_gone_while_we_sleep(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    conn_id player = client_up(f, 1);
    int64_t id = post_four(f);
    serve(f, ordered(f, token), id, token);
    pass(f, 1000);
    gone(f, player);
    f->now.core_ms += 30 * 1000;
    f->now.wall_ms += 30 * 1000;
    add_tick(f);
    pass(f, f->config.timeouts.player_gone_ms - 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    pass(f, 2 * 1000);
    is_aborted(f, id, LOBBY_CAUSE_DISCONNECTED, "Player disconnected");
}

static void what_is_said_while_nothing_can_be_stored_counts_when_it_can(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    struct event down = {.kind = EVENT_STORE_DOWN};
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    step(f, &down);
    load_all(f, id, player, FOUR);
    say_loading(f, player[3], id, 4, false);
    say_loading(f, player[3], id, 4, true);
    assert_int_equal(count_effects(f, EFFECT_LOADING, 0), 0);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    struct lobby_wanted wanted = wanted_of(&four[3], 1);
    assert_int_equal(post_as(f, &wanted, "")->err, ERR_INTERNAL);
    store_up(f);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
}

static void as_many_live_as_the_limit_says(void **state)
{
    struct fixture *f = *state;
    f->config.limits.lobbies = 1;
    configure(f);
    (void)server_up(f, 2000, 4);
    struct lobby_wanted first = wanted_of(four, 1);
    struct lobby_wanted second = wanted_of(&four[1], 1);
    int64_t id = post(f, &first);
    assert_int_equal(post_as(f, &second, "")->err, ERR_TOO_MANY);
    pass(f, f->config.timeouts.loading_ms + 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_ABORTED);
    (void)post(f, &second);
}

static void numbers_begin_again_after_a_thousand_million(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    int64_t far = ((int64_t)1 << 31) + 5;
    f->core->next_id[ROW_lobby] = far;
    (void)server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    assert_true(id == far);
    assert_int_equal(effect(f, EFFECT_LOBBY_CREATED, player[0])->lobby, LOBBY_ID_FIRST + 5);
    conn_id server = ordered(f, token);
    assert_int_equal(effect(f, EFFECT_ALLOCATE, server)->lobby, LOBBY_ID_FIRST + 5);
    load_all(f, id, player, FOUR);
    serve(f, server, id, token);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    seal(f);
    crash(f, 100);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
    assert_int_equal(effect(f, EFFECT_MATCH_START, client_up(f, 1))->lobby, LOBBY_ID_FIRST + 5);
}

static void the_oldest_are_forgotten_first(void **state)
{
    struct fixture *f = *state;
    int64_t id[3];
    f->config.limits.tickets_kept = 2;
    configure(f);
    for (int i = 0; i < 3; i++) /* there is no server */
        id[i] = post_four(f);
    assert_int_equal(state_of_lobby(f, id[0]), 0);
    assert_int_equal(state_of_lobby(f, id[1]), LOBBY_ABORTED);
    conn_id conn = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), 2);
    seal(f);
    crash(f, 100);
    assert_int_equal(state_of_lobby(f, id[0]), 0);
    pass(f, f->config.timeouts.keep_ms + 1000);
    assert_int_equal(state_of_lobby(f, id[2]), 0);
    assert_int_equal(f->core->rolls[ROW_lobby_roster].n, 0);
}

static void names_may_be_empty(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    struct lobby_entry nameless = {.account = 1};
    struct lobby_wanted wanted = wanted_of(&nameless, 1);
    wanted.map = (struct str){0};
    conn_id conn = client_up(f, 1);
    int64_t id = post(f, &wanted);
    assert_int_equal(effect(f, EFFECT_LOBBY_CREATED, conn)->card->map.len, 0);
    assert_string_equal(lobby_find(f->core, id)->players[0].name, "");
}

static void a_refusal_says_nothing_about_the_one_before(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 4);
    struct lobby_wanted wanted = wanted_of(four, FOUR);
    struct lobby_wanted nobody = wanted_of(four, 0);
    (void)post_as(f, &wanted, "k");
    assert_true(post_as(f, &nobody, "")->text.len > 0);
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER};
    e.operate = (struct operate){.verb = OPERATE_CREATE_LOBBY,
                                 .who = STR("matchmaker"),
                                 .fleet = STR("default"),
                                 .key = STR("k"),
                                 .arguments = {1},
                                 .lobby = &nobody};
    step(f, &e);
    assert_int_equal(answered(f, EFFECT_OPERATED, MATCHMAKER, ERR_KEY_CONFLICT)->text.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_server_may_come_later_than_all_have_loaded),
        FIXTURE_TEST(no_server_comes_though_all_have_loaded),
        FIXTURE_TEST(nobody_waits_for_who_loads_too_late_though_no_server_is_there),
        FIXTURE_TEST(no_other_server_is_looked_for_after_the_time_to_load),
        FIXTURE_TEST(a_lobby_that_loses_too_many_servers_is_given_up),
        FIXTURE_TEST(an_operator_ends_its_match_while_players_load),
        FIXTURE_TEST(a_server_that_ends_the_match_before_it_starts_is_left),
        FIXTURE_TEST(a_server_that_comes_back_without_the_match_is_asked_anew),
        FIXTURE_TEST(nobody_is_gone_while_we_sleep),
        FIXTURE_TEST(what_is_said_while_nothing_can_be_stored_counts_when_it_can),
        FIXTURE_TEST(as_many_live_as_the_limit_says),
        FIXTURE_TEST(numbers_begin_again_after_a_thousand_million),
        FIXTURE_TEST(the_oldest_are_forgotten_first),
        FIXTURE_TEST(names_may_be_empty),
        FIXTURE_TEST(a_refusal_says_nothing_about_the_one_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

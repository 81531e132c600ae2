/* Every sentence of check_lobbies.c can be said: healthy lobbies, one thing broken by hand, and the
 * sentence that names it. Nothing runs after the break; the core is only freed. */
#include "lobbies.h"

/* One that loads with its server there, one that has started, one that was aborted and owes its
 * only player the news. */
struct scene {
    struct lobby *loading;
    struct lobby *started;
    struct lobby *aborted;
};

static struct scene scene(struct fixture *f)
{
    char token[TOKEN_SIZE];
    struct lobby_wanted first = wanted_of(four, 2);
    struct lobby_wanted second = wanted_of(&four[2], 1);
    struct lobby_wanted third = wanted_of(&four[3], 1);
    struct scene s;
    (void)server_up(f, 2000, 4);
    conn_id cem = client_up(f, 3);
    int64_t started = post(f, &second);
    serve(f, ordered(f, token), started, token);
    say_loading(f, cem, started, 3, true);
    int64_t aborted = post(f, &third);
    pass(f, f->config.timeouts.loading_ms + 1000);
    int64_t loading = post(f, &first);
    serve(f, ordered(f, token), loading, token);
    add_tick(f);
    s.loading = lobby_find(f->core, loading);
    s.started = lobby_find(f->core, started);
    s.aborted = lobby_find(f->core, aborted);
    assert_int_equal(s.loading->row.state, LOBBY_LOADING);
    assert_int_equal(s.started->row.state, LOBBY_STARTED);
    assert_int_equal(s.aborted->row.state, LOBBY_ABORTED);
    assert_null(core_check(f->core));
    return s;
}

static void is_said(struct fixture *f, const char *beginning, const char *end)
{
    const char *why = core_check(f->core);
    if (!why)
        fail_msg("not noticed: %s … %s", beginning, end);
    size_t len = strlen(why);
    assert_true(len >= strlen(end));
    assert_memory_equal(why, beginning, strlen(beginning));
    assert_string_equal(why + len - strlen(end), end);
}

static void a_lobby_is_not_found_by_its_number(void **state)
{
    struct fixture *f = *state;
    struct lobby *lobby = scene(f).loading;
    (void)map_remove(&f->core->lobbies_by_number, (uint32_t)lobby_number(lobby->row.id));
    is_said(f, "lobby ", " is not found by its number");
}

static void a_lobby_loads_for_ever(void **state)
{
    struct fixture *f = *state;
    deadline_clear(f->core, &scene(f).loading->deadline);
    is_said(f, "I6: lobby ", " has no deadline ahead");
}

static void a_lobby_is_kept_for_ever(void **state)
{
    struct fixture *f = *state;
    deadline_clear(f->core, &scene(f).aborted->deadline);
    is_said(f, "I6: lobby ", " has no deadline ahead");
}

static void a_lobby_has_started_another_match(void **state)
{
    struct fixture *f = *state;
    scene(f).started->row.session++;
    is_said(f, "L1: lobby ", " has started but its match is not there");
}

static void a_server_holds_what_is_over(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.aborted->row.ticket = s.loading->row.ticket;
    is_said(f, "L1: lobby ", " is over but its server holds it");
}

static void nobody_looks_for_a_server(void **state)
{
    struct fixture *f = *state;
    scene(f).loading->row.ticket = 0;
    is_said(f, "L1: lobby ", " loads but no server is looked for");
}

static void a_lobby_could_start(void **state)
{
    struct fixture *f = *state;
    struct lobby *lobby = scene(f).loading;
    lobby->loaded = lobby->n_players;
    is_said(f, "L1: lobby ", " could start and does not");
}

static void a_lobby_started_too_early(void **state)
{
    struct fixture *f = *state;
    scene(f).started->loaded = 0;
    is_said(f, "L1: lobby ", " started with 0 of 1 loaded");
}

static void the_loaded_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    scene(f).loading->loaded = 1;
    is_said(f, "lobby ", " counts 1 loaded of 0");
}

static void a_player_is_told_nothing(void **state)
{
    struct fixture *f = *state;
    lobby_unlist_player(f->core, &scene(f).loading->players[0]);
    is_said(f, "I7: player 1 of lobby ", " is told nothing, or too much");
}

static void a_player_is_owed_the_end_and_not_told(void **state)
{
    struct fixture *f = *state;
    lobby_unlist_player(f->core, &scene(f).aborted->players[0]);
    is_said(f, "I7: player 4 of lobby ", " is told nothing, or too much");
}

static void a_player_is_told_of_what_is_over(void **state)
{
    struct fixture *f = *state;
    scene(f).aborted->row.flags[0] = 0;
    is_said(f, "I7: player 4 of lobby ", " is told nothing, or too much");
}

static void the_end_of_a_living_one_is_owed(void **state)
{
    struct fixture *f = *state;
    scene(f).loading->row.flags[0] |= LOBBY_OWED;
    is_said(f, "L2: lobby ", " lives but somebody is owed its end");
}

static void somebody_is_waited_for_after_the_start(void **state)
{
    struct fixture *f = *state;
    struct deadline *gone = &scene(f).started->players[0].gone;
    deadline_set(f->core, gone, DEADLINE_AWAKE, deadline_now(f->core, DEADLINE_AWAKE) + 1000);
    is_said(f, "L2: lobby ", " waits for a player after its start");
}

static void a_player_loads_in_two(void **state)
{
    struct fixture *f = *state;
    struct lobby *lobby = scene(f).loading;
    lobby_unlist_player(f->core, &lobby->players[1]);
    lobby->players[1].account = 1;
    lobby_list_player(f->core, &lobby->players[1]);
    is_said(f, "L3: player 1 loads in two lobbies", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_lobby_is_not_found_by_its_number),
        FIXTURE_TEST(a_lobby_loads_for_ever),
        FIXTURE_TEST(a_lobby_is_kept_for_ever),
        FIXTURE_TEST(a_lobby_has_started_another_match),
        FIXTURE_TEST(a_server_holds_what_is_over),
        FIXTURE_TEST(nobody_looks_for_a_server),
        FIXTURE_TEST(a_lobby_could_start),
        FIXTURE_TEST(a_lobby_started_too_early),
        FIXTURE_TEST(the_loaded_are_counted_wrong),
        FIXTURE_TEST(a_player_is_told_nothing),
        FIXTURE_TEST(a_player_is_owed_the_end_and_not_told),
        FIXTURE_TEST(a_player_is_told_of_what_is_over),
        FIXTURE_TEST(the_end_of_a_living_one_is_owed),
        FIXTURE_TEST(somebody_is_waited_for_after_the_start),
        FIXTURE_TEST(a_player_loads_in_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is shown of lobbies: in each state, and from a stored row the same. */
#include "core/view.h"
#include "lobbies.h"

static struct view_lobby seen(struct fixture *f, int64_t id)
{
    struct view_lobby v;
    assert_true(view_lobby(f->core, id, &v));
    return v;
}

static struct view_lobby_player player_of(struct fixture *f, int64_t id, size_t i)
{
    struct view_lobby_player v;
    assert_true(view_lobby_player(f->core, id, i, &v));
    return v;
}

static void one_that_loads(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    conn_id player = client_up(f, 2);
    int64_t id = post_four(f);
    (void)ordered(f, token);
    struct view_lobby v = seen(f, id);
    assert_string_equal(v.state, "loading");
    assert_string_equal(v.queue, "in_lobby");
    assert_string_equal(v.cause, "");
    assert_string_equal(v.fleet, "default");
    assert_string_equal(v.region_name, "EU");
    assert_string_equal(v.map, "caldavar");
    assert_true(v.live && v.requeue && !v.allocated);
    assert_true(v.players == FOUR && v.loaded == 0 && v.connected == 1);
    assert_true(v.session == 0 && v.server == 0 && v.started_wall_ms == 0 && v.over_wall_ms == 0);
    assert_true(v.deadline_wall_ms - v.opened_wall_ms == f->config.timeouts.loading_ms);
    say_loading(f, player, id, 2, true);
    serve(f, server, id, token);
    v = seen(f, id);
    assert_true(v.allocated && v.loaded == 1 && v.server == id_of(f, server) && v.session != 0);
    struct view_lobby_player p = player_of(f, id, 1);
    assert_string_equal(p.name, "bob");
    assert_true(p.account == 2 && p.team == 0 && p.slot == 1 && p.group == 0);
    assert_true(p.loaded && p.connected && !p.owed);
    assert_false(player_of(f, id, 3).connected);
    assert_false(view_lobby_player(f->core, id, FOUR, &p));
    assert_false(view_lobby_player(f->core, id + 1, 0, &p));
    gone(f, server);
    assert_false(seen(f, id).allocated); /* it is not there */
    gone(f, player);
    v = seen(f, id);
    assert_true(v.deadline_wall_ms == f->now.wall_ms + f->config.timeouts.player_gone_ms);
    (void)client_up(f, 2);
    v = seen(f, id);
    assert_true(v.deadline_wall_ms - v.opened_wall_ms == f->config.timeouts.loading_ms);
}

static void one_that_has_started_and_is_over(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    load_all(f, id, player, FOUR);
    struct view_lobby v = seen(f, id);
    assert_string_equal(v.state, "started");
    assert_string_equal(v.queue, "in_match");
    assert_true(v.live && v.allocated && v.loaded == FOUR && v.started_wall_ms > 0);
    assert_true(v.deadline_wall_ms == 0);
    match_ended(f, server, lobby_number(id));
    v = seen(f, id);
    assert_string_equal(v.state, "ended");
    assert_string_equal(v.queue, "not_queued");
    assert_string_equal(v.cause, "");
    assert_string_equal(v.reason, "");
    assert_true(!v.live && !v.allocated && v.over_wall_ms > 0 && v.server == id_of(f, server));
}

static void one_that_was_aborted(void **state)
{
    struct fixture *f = *state;
    conn_id here = client_up(f, 1);
    struct lobby_wanted wanted = wanted_of(four, FOUR);
    int64_t queued = post(f, &wanted);
    wanted.requeue = false;
    wanted.region = REGION_AUTO;
    int64_t id = post(f, &wanted);
    assert_string_equal(seen(f, queued).queue, "queued");
    struct view_lobby v = seen(f, id);
    assert_string_equal(v.state, "aborted");
    assert_string_equal(v.queue, "not_queued");
    assert_string_equal(v.cause, "allocation");
    assert_string_equal(v.reason, "Server allocation failed: No servers available");
    assert_string_equal(v.region_name, "AUTO");
    assert_true(v.err == ERR_NO_SERVERS && !v.live && v.over_wall_ms > 0);
    assert_true(client_conn(f->core, 1) == here);
    seal(f);
    seal(f);
    assert_false(player_of(f, id, 0).owed); /* it has left */
    assert_true(player_of(f, id, 1).owed);
}

static void a_stored_row_shows_the_same(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    conn_id conn = client_up(f, 3);
    int64_t id = post_four(f);
    say_loading(f, conn, id, 3, true);
    struct view_lobby row;
    struct view_lobby now = seen(f, id);
    view_row_lobby(f->core, &lobby_find(f->core, id)->row, f->now, &row);
    assert_true(row.id == now.id && row.fleet_id == now.fleet_id && row.live == now.live);
    assert_true(row.players == now.players && row.loaded == 1 && now.loaded == 1);
    assert_true(row.opened_wall_ms == now.opened_wall_ms && row.moves == now.moves);
    assert_true(row.deadline_wall_ms == now.deadline_wall_ms && row.ticket == now.ticket);
    assert_string_equal(row.state, now.state);
    assert_string_equal(row.queue, now.queue);
    assert_string_equal(row.map, now.map);
    assert_string_equal(row.region_name, now.region_name);
    assert_string_equal(lobby_state_name(0), "?");
    assert_string_equal(lobby_state_name(LOBBY_STATES), "?");
    assert_string_equal(lobby_cause_name(LOBBY_CAUSES), "?");
    assert_string_equal(lobby_cause_name(-1), "?");
}

static void they_are_counted(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    struct core_counts counts;
    (void)server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    (void)ordered(f, token);
    core_count(f->core, &counts);
    assert_true(counts.lobbies_loading == 1 && counts.lobbies_started == 0 && counts.clients == 4);
    load_all(f, id, player, FOUR);
    serve(f, 1, id, token);
    gone(f, player[0]);
    core_count(f->core, &counts);
    assert_true(counts.lobbies_loading == 0 && counts.lobbies_started == 1 && counts.clients == 3);
    seal(f);
    crash(f, 100);
    core_count(f->core, &counts);
    assert_true(counts.lobbies_started == 1 && counts.clients == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(one_that_loads),       FIXTURE_TEST(one_that_has_started_and_is_over),
        FIXTURE_TEST(one_that_was_aborted), FIXTURE_TEST(a_stored_row_shows_the_same),
        FIXTURE_TEST(they_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

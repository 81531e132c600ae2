/* Lobbies: both orders of start, every way to be aborted, and what players hear. */
#include "core/view.h"
#include "lobbies.h"

static void starts_when_the_server_comes_last(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    assert_true(id >= LOBBY_ID_FIRST);
    assert_int_equal(count_effects(f, EFFECT_LOBBY_CREATED, 0), FOUR);
    assert_true(ordered(f, token) == server);
    load_all(f, id, player, FOUR);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), 0);
    ack(f, server, lobby_number(id), true);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), 0); /* it is not ready */
    ready(f, server, lobby_number(id), token);
    for (int i = 0; i < FOUR; i++) {
        const struct effect *e = effect(f, EFFECT_MATCH_START, player[i]);
        assert_int_equal(e->lobby, lobby_number(id));
        assert_true(str_eq(e->ip, STR("10.0.0.1")) && e->port == 2000);
        assert_true(str_eq(e->token, str_of(token)));
        assert_true(str_eq(e->card->map, STR("caldavar")));
        assert_int_equal(e->card->teams[0].n, 2);
    }
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

static void starts_when_the_last_player_has_loaded(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    for (int i = 0; i < FOUR; i++) {
        assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), 0);
        say_loading(f, player[i], id, i + 1, true);
        assert_int_equal(count_effects(f, EFFECT_LOADING, player[i]), 0); /* only the others */
        assert_int_equal(count_effects(f, EFFECT_LOADING, 0), FOUR - 1);
    }
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    say_loading(f, player[0], id, 1, false); /* too late */
    assert_int_equal(f->batch.effects.len, 0);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

static void is_aborted_when_there_is_no_server(void **state)
{
    struct fixture *f = *state;
    conn_id player = client_up(f, 1);
    int64_t id = post_four(f);
    assert_int_equal(state_of_lobby(f, id), LOBBY_ABORTED);
    const struct effect *e = effect(f, EFFECT_MATCH_ABORTED, player);
    assert_true(str_eq(e->text, STR("Server allocation failed: No servers available")));
    assert_true(e->on);
    /* Who comes later hears it too, once. */
    conn_id late = client_up(f, 2);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, late), 1);
    pass(f, TICK_MS); /* it has left */
    conn_id again = client_up(f, 2);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, again), 0);
}

static void gives_the_slot_back_when_aborted(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    assert_int_equal(server_status(server_of(f, server)), SERVER_FULL);
    pass(f, f->config.timeouts.loading_ms);
    assert_string_equal(reason_of_lobby(f, id), "Loading timeout");
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, 0), FOUR);
    assert_int_equal(effect(f, EFFECT_CANCEL, server)->lobby, lobby_number(id));
    cancel_ack(f, server, lobby_number(id));
    assert_int_equal(server_status(server_of(f, server)), SERVER_AVAILABLE);
}

static void waits_for_a_player_who_is_gone(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    gone(f, player[2]);
    pass(f, f->config.timeouts.player_gone_ms - 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    player[2] = client_up(f, 3);
    assert_int_equal(count_effects(f, EFFECT_LOBBY_CREATED, player[2]), 1);
    conn_id newer = client_up(f, 3); /* that is not leaving */
    assert_int_equal(count_effects(f, EFFECT_CLOSE, player[2]), 1);
    gone(f, player[2]);
    pass(f, f->config.timeouts.player_gone_ms + 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    gone(f, newer);
    pass(f, f->config.timeouts.player_gone_ms + 1000);
    assert_string_equal(reason_of_lobby(f, id), "Player disconnected");
}

static void takes_another_server_when_one_drops_before_the_start(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id first = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    conn_id second = server_up(f, 2001, 1);
    gone(f, first);
    assert_true(ordered(f, token) == second);
    load_all(f, id, player, FOUR);
    serve(f, second, id, token);
    assert_int_equal(effect(f, EFFECT_MATCH_START, player[0])->port, 2001);
    assert_int_equal(lobby_find(f->core, id)->row.moves, 1);
}

static void waits_for_its_only_server(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id first = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    gone(f, first);
    load_all(f, id, player, FOUR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING); /* nobody is sent to who is not there */
    conn_id back = server_back(f, 2000, 1);
    match_list(f, back, 1, lobby_number(id));
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
}

static void survives_a_crash_in_each_state(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    (void)ordered(f, token);
    load_all(f, id, player, FOUR);
    seal(f);
    crash(f, 100);
    conn_id back = server_back(f, 2000, 1);
    match_list(f, back, 0);
    clients_up(f, FOUR, player);
    serve(f, back, id, token);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    seal(f);
    crash(f, 100);
    conn_id late = client_up(f, 2);
    assert_true(str_eq(effect(f, EFFECT_MATCH_START, late)->token, str_of(token)));
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

static void admits_its_roster_only(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    int32_t number = lobby_number(id);
    serve(f, ordered(f, token), id, token);
    validate(f, server, number, 1, token);
    answered(f, EFFECT_VALIDATE, server, ERR_NOT_PART_OF_MATCH); /* nobody was told of it */
    pass(f, 50 * 1000);
    load_all(f, id, player, FOUR);
    pass(f, 100 * 1000); /* counted from the start */
    validate(f, server, number, 1, token);
    answered(f, EFFECT_VALIDATE, server, 0);
    validate(f, server, number, 5, token);
    answered(f, EFFECT_VALIDATE, server, ERR_NOT_PART_OF_MATCH);
    pass(f, 30 * 1000);
    validate(f, server, number, 2, token);
    answered(f, EFFECT_VALIDATE, server, ERR_MATCH_TOKEN_EXPIRED);
    validate(f, server, number, 5, token);
    answered(f, EFFECT_VALIDATE, server,
             ERR_MATCH_TOKEN_EXPIRED); /* said first, to strangers too */
    validate(f, server, number, 1, token);
    answered(f, EFFECT_VALIDATE, server, 0);
}

static void tells_players_of_a_match_that_ended_badly(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    load_all(f, id, player, FOUR);
    gone(f, server);
    pass(f, f->config.timeouts.heartbeat_ms + 1000);
    assert_int_equal(count_notes(f, NOTE_LOBBY_LOST), 1);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
    pass(f, f->config.timeouts.lost_ms + 1000);
    assert_int_equal(state_of_lobby(f, id), LOBBY_ENDED);
    const struct effect *e = effect(f, EFFECT_MATCH_ABORTED, player[0]);
    assert_true(str_eq(e->text, STR("Server lost")) && !e->on);
}

static void says_nothing_when_a_match_ends_well(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    load_all(f, id, player, FOUR);
    match_ended(f, server, lobby_number(id));
    assert_int_equal(state_of_lobby(f, id), LOBBY_ENDED);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, 0), 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, client_up(f, 1)), 0);
}

static void is_kept_while_nothing_can_be_stored(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    seal(f);
    for (int i = 0; i < FOUR; i++) {
        struct event e = {.kind = EVENT_LOADING, .conn = player[i]};
        e.loading = (struct chat_cl_player_loading_status){lobby_number(id), i + 1, true};
        add_step(f, &e);
    }
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    lose_batch(f); /* so nobody was told */
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), 0);
    store_up(f);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
}

/* The disk is full when the last one says so, and until it is too late. */
static void starts_though_the_last_word_could_not_be_stored_in_time(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    load_all(f, id, player, FOUR - 1);
    struct event down = {.kind = EVENT_STORE_DOWN};
    step(f, &down);
    say_loading(f, player[3], id, 4, true);
    pass(f, f->config.timeouts.loading_ms);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING);
    store_up(f);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
}

/* Servers come back one by one after a restart: the first to come is not better than its own. */
static void keeps_its_server_through_a_restart(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = post_four(f);
    serve(f, ordered(f, token), id, token);
    (void)server_up(f, 2001, 1);
    seal(f);
    crash(f, 100);
    conn_id other = server_back(f, 2001, 1);
    match_list(f, other, 0);
    clients_up(f, FOUR, player);
    load_all(f, id, player, FOUR);
    assert_int_equal(lobby_find(f->core, id)->row.moves, 0);
    conn_id back = server_back(f, 2000, 1);
    assert_int_equal(state_of_lobby(f, id), LOBBY_LOADING); /* its list has not come */
    match_list(f, back, 1, lobby_number(id));
    assert_true(str_eq(effect(f, EFFECT_MATCH_START, player[0])->token, str_of(token)));
}

static void is_aborted_by_whoever_may(void **state)
{
    struct fixture *f = *state;
    conn_id player = client_up(f, 1);
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    int64_t id = post_four(f);
    serve(f, ordered(f, token), id, token);
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER};
    e.operate = (struct operate){.verb = OPERATE_ABORT_LOBBY, .target = id, .who = STR("admin")};
    char longer[LOBBY_REASON_MAX + 1];
    memset(longer, 'x', sizeof(longer));
    e.operate.reason = (struct str){longer, sizeof(longer)};
    step(f, &e);
    answered(f, EFFECT_OPERATED, MATCHMAKER, ERR_BAD_ARGUMENT);
    e.operate.reason = STR("A cheater");
    step(f, &e);
    answered(f, EFFECT_OPERATED, MATCHMAKER, 0);
    assert_true(str_eq(effect(f, EFFECT_MATCH_ABORTED, player)->text, STR("A cheater")));
    assert_int_equal(count_effects(f, EFFECT_CANCEL, server), 1);
    step(f, &e);
    answered(f, EFFECT_OPERATED, MATCHMAKER, ERR_ALREADY_OVER);
}

/* Whoever is matched again and again while he is away is told of the newest, and costs no more. */
static void tells_of_the_newest_only_however_many_there_are(void **state)
{
    struct fixture *f = *state;
    struct lobby_wanted w = wanted_of(four, 1);
    int64_t last = 0;
    for (int i = 0; i < 3 * LOBBY_HEARD_MAX; i++)
        last = post(f, &w); /* there is no server */
    conn_id conn = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), LOBBY_HEARD_MAX);
    const struct effect *e = nth_effect(f, EFFECT_MATCH_ABORTED, conn, LOBBY_HEARD_MAX - 1);
    assert_int_equal(e->lobby, lobby_number(last));
    seal(f);
    crash(f, 100);
    assert_int_equal(lobbies_heard_by(f->core, 1), LOBBY_HEARD_MAX);
}

/* What is over makes way for the match that he may still go to. */
static void tells_of_a_match_that_is_played_however_many_are_over(void **state)
{
    struct fixture *f = *state;
    struct lobby_wanted w = wanted_of(four, 1);
    conn_id players[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, players, token);
    load_all(f, id, players, FOUR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
    gone(f, players[0]);
    for (int i = 0; i < 2 * LOBBY_HEARD_MAX; i++)
        (void)post(f, &w); /* there is no other server */
    conn_id conn = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, conn), LOBBY_HEARD_MAX - 1);
    assert_int_equal(effect(f, EFFECT_MATCH_START, conn)->lobby, lobby_number(id));
    seal(f);
    pass(f, 1000); /* those that were told are owed no more */
    assert_int_equal(lobbies_heard_by(f->core, 1), 1);
    assert_null(core_check(f->core));
}

/* His word may be lost on its way, so he is told whether it was heard. */
static void tells_him_that_he_has_loaded(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 1);
    conn_id conn = client_up(f, 1);
    int64_t id = post_four(f);
    conn_id again = client_up(f, 1);
    assert_int_equal(count_effects(f, EFFECT_LOADING, again), 0);
    say_loading(f, again, id, 1, true);
    conn = client_up(f, 1);
    assert_int_equal(effect(f, EFFECT_LOADING, conn)->account, 1);
    assert_true(effect(f, EFFECT_LOADING, conn)->on);
}

static void issue_ban(struct fixture *f, const char *account)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER};
    e.operate = (struct operate){.verb = OPERATE_BAN,
                                 .who = STR("admin"),
                                 .account = str_of(account),
                                 .reason = STR("cheat"),
                                 .expires_wall_ms = f->now.wall_ms + 3600 * 1000};
    step(f, &e);
    answered(f, EFFECT_OPERATED, MATCHMAKER, 0);
}

static void who_is_banned_while_he_loads_is_sent_nowhere(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    issue_ban(f, "3");
    assert_int_equal(count_effects(f, EFFECT_CLOSE, player[2]), 1);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, server), 1);
    assert_string_equal(reason_of_lobby(f, id), "Player disconnected");
    assert_int_equal(lobby_find(f->core, id)->row.gone, 3);
    conn_id back = say_client_hello(f, 3);
    answered(f, EFFECT_CLIENT_HELLO, back, ERR_BANNED);
}

/* Who was gone, and who was there when it was over, can be seen later. */
static void keeps_who_was_gone(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, player, token);
    gone(f, player[1]);
    pass(f, f->config.timeouts.player_gone_ms + 1000);
    gone(f, player[0]);
    seal(f);
    crash(f, 100);
    struct view_lobby lobby;
    struct view_lobby_player seen;
    assert_true(view_lobby(f->core, id, &lobby));
    assert_int_equal(lobby.gone, 2);
    assert_int_equal(lobby.connected, FOUR - 1);
    assert_true(view_lobby_player(f->core, id, 0, &seen) && seen.connected);
    assert_true(view_lobby_player(f->core, id, 1, &seen) && !seen.connected);
}

/* After a restart, too, the one that was over first is forgotten first. */
static void forgets_in_the_order_of_their_ends(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    struct lobby_wanted w = wanted_of(&four[0], 1);
    int64_t first = post(f, &w);
    serve(f, ordered(f, token), first, token);
    w = wanted_of(&four[1], 1);
    int64_t second = post(f, &w); /* no slot is left */
    pass(f, f->config.timeouts.loading_ms + 1000);
    assert_int_equal(state_of_lobby(f, first), LOBBY_ABORTED);
    seal(f);
    f->config.limits.tickets_kept = 1;
    crash(f, 100);
    add_tick(f);
    assert_int_equal(state_of_lobby(f, second), 0);
    assert_int_equal(state_of_lobby(f, first), LOBBY_ABORTED);
}

/* A commit that fails after the word has left does not make it be said again. */
static void what_has_left_is_not_owed_after_a_failed_commit(void **state)
{
    struct fixture *f = *state;
    (void)client_up(f, 1);
    struct lobby_wanted w = wanted_of(four, 1);
    int64_t id = post(f, &w);
    seal(f); /* it has left, and that will be written with the next batch */
    add_tick(f);
    lose_batch(f);
    store_up(f);
    pass(f, 2 * TICK_MS);
    assert_int_equal(lobby_find(f->core, id)->row.flags[0] & LOBBY_OWED, 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_ABORTED, client_up(f, 1)), 0);
}

static void need_not_wait_for_ready(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    f->config.fleets[0].ready_lobbies = false;
    struct event configure = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &configure);
    (void)server_up(f, 2000, 1);
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    conn_id server = ordered(f, token);
    load_all(f, id, player, FOUR);
    ack(f, server, lobby_number(id), true);
    assert_int_equal(count_effects(f, EFFECT_MATCH_START, 0), FOUR);
}

static void says_that_a_match_was_too_long_or_is_held_no_more(void **state)
{
    struct fixture *f = *state;
    conn_id player[FOUR];
    char token[TOKEN_SIZE];
    conn_id server = server_up(f, 2000, 2);
    int64_t id = serve_four(f, player, token);
    load_all(f, id, player, FOUR);
    pass(f, f->config.timeouts.session_ms + 1000);
    assert_true(str_eq(effect(f, EFFECT_MATCH_ABORTED, player[0])->text, STR("Match too long")));
    cancel_ack(f, server, lobby_number(id));
    id = post_four(f);
    serve(f, ordered(f, token), id, token);
    load_all(f, id, player, FOUR);
    gone(f, server);
    server = server_back(f, 2000, 2);
    match_list(f, server, 0);
    assert_true(str_eq(effect(f, EFFECT_MATCH_ABORTED, player[0])->text,
                       STR("Server no longer holds the match")));
}

static void refuses_what_cannot_be(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 4);
    struct lobby_wanted w = wanted_of(four, FOUR);
    w.n_players = 0;
    assert_int_equal(post_as(f, &w, "")->err, ERR_BAD_ARGUMENT);
    w = wanted_of(four, FOUR);
    w.region = 40;
    assert_int_equal(post_as(f, &w, "")->err, ERR_REGION_NOT_SUPPORTED);
    struct lobby_entry twice[2] = {four[0], four[0]};
    w = wanted_of(twice, 2);
    assert_true(str_eq(post_as(f, &w, "")->text, STR("Player 1 is named twice.")));
    int64_t id = post_four(f);
    w = wanted_of(&four[3], 1);
    const struct effect *e = post_as(f, &w, "");
    assert_int_equal(e->err, ERR_IN_LOBBY);
    char text[80];
    (void)snprintf(text, sizeof(text), "Player 4 is in lobby %lld already.", (long long)id);
    assert_true(str_eq(e->text, str_of(text)));
}

static void gives_the_same_lobby_for_the_same_key(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 4);
    struct lobby_wanted w = wanted_of(four, FOUR);
    int64_t id = post_as(f, &w, "k")->object;
    assert_true(post_as(f, &w, "k")->object == id);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
}

static void cuts_off_who_cannot_decide(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 4);
    conn_id conn = client_up(f, 1);
    int64_t id = post_four(f);
    for (int i = 0; i < LOBBY_CHANGES_MAX; i++) {
        say_loading(f, conn, id, 1, i % 2 == 0);
        assert_int_equal(count_effects(f, EFFECT_CLOSE, conn), 0);
    }
    say_loading(f, conn, id, 1, true);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, conn), 1);
}

static void speaking_for_others_is_counted_and_said_once(void **state)
{
    struct fixture *f = *state;
    (void)server_up(f, 2000, 4);
    conn_id conn = client_up(f, 1);
    int64_t id = post_four(f);
    say_loading(f, conn, id, 2, true);
    assert_int_equal(count_notes(f, NOTE_REFUSED), 1);
    for (int i = 0; i < 100; i++) {
        say_loading(f, conn, id, 2, true);
        assert_int_equal(count_notes(f, NOTE_REFUSED), 0);
    }
    assert_int_equal(f->core->spoofed, 101);
    assert_int_equal(lobby_find(f->core, id)->loaded, 0);
}

/* Whoever measures round trips asks on each PONG. */
static void a_player_is_no_peer_with_an_enrolment_token(void **state)
{
    struct fixture *f = *state;
    struct view_peer peer;
    conn_id conn = client_up(f, 1);
    assert_false(view_peer(f->core, conn, &peer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(starts_when_the_server_comes_last),
        FIXTURE_TEST(starts_when_the_last_player_has_loaded),
        FIXTURE_TEST(is_aborted_when_there_is_no_server),
        FIXTURE_TEST(gives_the_slot_back_when_aborted),
        FIXTURE_TEST(waits_for_a_player_who_is_gone),
        FIXTURE_TEST(takes_another_server_when_one_drops_before_the_start),
        FIXTURE_TEST(waits_for_its_only_server),
        FIXTURE_TEST(survives_a_crash_in_each_state),
        FIXTURE_TEST(admits_its_roster_only),
        FIXTURE_TEST(tells_players_of_a_match_that_ended_badly),
        FIXTURE_TEST(says_nothing_when_a_match_ends_well),
        FIXTURE_TEST(is_kept_while_nothing_can_be_stored),
        FIXTURE_TEST(starts_though_the_last_word_could_not_be_stored_in_time),
        FIXTURE_TEST(keeps_its_server_through_a_restart),
        FIXTURE_TEST(is_aborted_by_whoever_may),
        FIXTURE_TEST(tells_of_the_newest_only_however_many_there_are),
        FIXTURE_TEST(tells_of_a_match_that_is_played_however_many_are_over),
        FIXTURE_TEST(tells_him_that_he_has_loaded),
        FIXTURE_TEST(who_is_banned_while_he_loads_is_sent_nowhere),
        FIXTURE_TEST(keeps_who_was_gone),
        FIXTURE_TEST(forgets_in_the_order_of_their_ends),
        FIXTURE_TEST(what_has_left_is_not_owed_after_a_failed_commit),
        FIXTURE_TEST(need_not_wait_for_ready),
        FIXTURE_TEST(says_that_a_match_was_too_long_or_is_held_no_more),
        FIXTURE_TEST(refuses_what_cannot_be),
        FIXTURE_TEST(gives_the_same_lobby_for_the_same_key),
        FIXTURE_TEST(cuts_off_who_cannot_decide),
        FIXTURE_TEST(speaking_for_others_is_counted_and_said_once),
        FIXTURE_TEST(a_player_is_no_peer_with_an_enrolment_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

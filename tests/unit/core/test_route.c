/* Routing tokens: one for each seat, and in a cluster nobody is anywhere before his is in place. */
#include "seekers.h"

#include <sodium.h>

static void token_in(struct fixture *f, const struct room_seat *seat, char dst[ROUTE_TOKEN_SIZE])
{
    route_token(f->core, seat->room->fleet, seat->row.id, str_of(seat->row.account), dst);
}

static void use_player_ids(struct fixture *f)
{
    arena_of(f)->token = cluster_of(f)->token = TOKEN_PLAYER_ID;
    rooms_reconfigure(f);
    add_tick(f);
}

static void use_opaque_tokens(struct fixture *f)
{
    arena_of(f)->token = cluster_of(f)->token = TOKEN_OPAQUE;
    rooms_reconfigure(f);
    add_tick(f);
}

static bool is_token(struct fixture *f, const char *account, const char *token)
{
    char now[ROUTE_TOKEN_SIZE];
    token_in(f, seat_of(f, account), now);
    return strcmp(now, token) == 0;
}

static int modes(const struct fixture *f)
{
    return (int)f->core->rolls[ROW_token_mode].n;
}

/* ── tokens ────────────────────────────────────────────────────────────────────────────────── */

static void an_opaque_token_belongs_to_a_seat_and_survives_a_restart(void **state)
{
    struct fixture *f = *state;
    char first[ROUTE_TOKEN_SIZE];
    char again[ROUTE_TOKEN_SIZE];
    host_up(f, 0, EU);
    (void)room_with(f, "ann");
    token_in(f, seat_of(f, "ann"), first);
    assert_int_equal(strlen(first), 24);
    seal(f);
    crash(f, 1000);
    token_in(f, seat_of(f, "ann"), again);
    assert_string_equal(first, again);
    leaves(f, "ann");
    answered(f, EFFECT_PLACED, join(f, "ann", false), 0);
    token_in(f, seat_of(f, "ann"), again);
    assert_string_not_equal(first, again);
}

static void a_token_of_the_players_id_is_its_first_16_bytes(void **state)
{
    struct fixture *f = *state;
    use_player_ids(f);
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    conn_id conn = seeks(f, "lRTSKLe4sKQYbqo0", "");
    assert_true(str_eq(sought(f, conn, ENVELOPE_SUCCESS)->token, STR("bFJUU0tMZTRzS1FZYnFvMA==")));
}

static void the_second_player_with_a_token_is_refused(void **state)
{
    struct fixture *f = *state;
    use_player_ids(f);
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    sought(f, seeks(f, "0123456789abcdef-one", ""), ENVELOPE_SUCCESS);
    sought_not(f, seeks(f, "0123456789abcdef-two", ""), ERR_TOKEN_TAKEN,
               err_sentence(ERR_TOKEN_TAKEN));
    assert_int_equal(count_notes(f, NOTE_TOKEN_COLLISION), 1);
    leaves(f, "0123456789abcdef-one");
    sought(f, asks_for(f, "t3", "0123456789abcdef-two", "", ""), ENVELOPE_SUCCESS);
}

/* Whom the seat went to that the older request gave up has the token of one of the newer. */
static void who_waits_is_not_refused_for_the_token_of_one_served_before_him(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    use_player_ids(f);
    rooms_hosts[1].slots = 1;
    cluster_up(f, 1);
    struct room *room = cluster_room(f, "p1", "p2,p3,p4");
    queued_at(f, asks_cluster(f, "one", "0123456789abcdef-one", "", ""), 1);
    queued_at(f, asks_cluster(f, "two", "0123456789abcdef-two", "", ""), 2);
    (void)seat_key(f->core, cluster_seat(f, "p1")->row.id, key);
    say_left(f, room, key, 100);
    is_in_state(f, "one", ALLOCATION_OPEN); /* his token is under way */
    conn_id conn = asks_cluster(f, "both", "ann", "", "0123456789abcdef-one");
    has_failed(f, "one", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    is_in_state(f, "two", ALLOCATION_OPEN);
    sought(f, conn, ENVELOPE_QUEUED);
}

static void two_of_one_party_with_one_token_are_refused(void **state)
{
    struct fixture *f = *state;
    use_player_ids(f);
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    sought_not(f, asks_for(f, "t1", "0123456789abcdef-one", "", "0123456789abcdef-two"),
               ERR_TOKEN_TAKEN, err_sentence(ERR_TOKEN_TAKEN));
    assert_null(seat_of(f, "0123456789abcdef-one"));
}

static void a_player_is_refused_in_a_second_fleet_where_his_token_would_be_the_same(void **state)
{
    struct fixture *f = *state;
    use_player_ids(f);
    host_up(f, 0, EU);
    cluster_up(f, 1);
    (void)room_with(f, "ann");
    sought_not(f, asks_cluster(f, "t1", "ann", "", ""), ERR_TOKEN_TAKEN,
               err_sentence(ERR_TOKEN_TAKEN));
    assert_int_equal(count_notes(f, NOTE_TOKEN_COLLISION), 1);
    leaves(f, "ann");
    conn_id conn = asks_cluster(f, "t2", "ann", "", "");
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, conn), 0); /* a room is started for her */
}

static void a_seat_keeps_its_token_when_the_fleet_is_configured_otherwise(void **state)
{
    struct fixture *f = *state;
    static const char player_id[] = "bFJUU0tMZTRzS1FZYnFvMA==";
    char opaque[ROUTE_TOKEN_SIZE];
    host_up(f, 0, EU);
    (void)room_with(f, "ann");
    token_in(f, seat_of(f, "ann"), opaque);
    use_player_ids(f);
    assert_true(is_token(f, "ann", opaque));
    sought(f, seeks(f, "lRTSKLe4sKQYbqo0", ""), ENVELOPE_SUCCESS);
    assert_true(is_token(f, "lRTSKLe4sKQYbqo0", player_id));
    use_opaque_tokens(f);
    assert_true(is_token(f, "ann", opaque));
    assert_true(is_token(f, "lRTSKLe4sKQYbqo0", player_id));
    sought(f, seeks(f, "cid", ""), ENVELOPE_SUCCESS);
    assert_false(is_token(f, "cid", "Y2lkAAAAAAAAAAAAAAAAAA=="));
}

static void a_seat_keeps_its_token_over_a_restart_with_another_configuration(void **state)
{
    struct fixture *f = *state;
    char opaque[ROUTE_TOKEN_SIZE];
    host_up(f, 0, EU);
    (void)room_with(f, "ann");
    token_in(f, seat_of(f, "ann"), opaque);
    seal(f);
    arena_of(f)->token = TOKEN_PLAYER_ID;
    crash(f, 1000);
    assert_true(is_token(f, "ann", opaque));
    host_says(f, &rooms_hosts[0]);
    rooms_pass(f, TICK_MS);
    assert_true(is_token(f, "ann", opaque));
    sought(f, seeks(f, "lRTSKLe4sKQYbqo0", ""), ENVELOPE_SUCCESS);
    assert_true(is_token(f, "lRTSKLe4sKQYbqo0", "bFJUU0tMZTRzS1FZYnFvMA=="));
}

static void a_result_that_is_asked_for_again_has_the_token_that_it_had(void **state)
{
    struct fixture *f = *state;
    char first[ROUTE_TOKEN_SIZE];
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    struct str token = sought(f, asks_for(f, "t1", "ann", "", ""), ENVELOPE_SUCCESS)->token;
    assert_true(str_copy(first, sizeof(first), token));
    leaves(f, "ann");
    use_player_ids(f);
    token = sought(f, asks_for(f, "t1", "ann", "", ""), ENVELOPE_SUCCESS)->token;
    assert_true(str_eq(token, str_of(first)));
}

static void is_still_in_cluster(struct fixture *f, const char *text)
{
    char again[2000];
    conn_id conn = asks_cluster(f, "t1", "ann", "", "ben");
    print_result(sought(f, conn, ENVELOPE_SUCCESS), again, sizeof(again));
    assert_string_equal(again, text);
}

/* Only game servers of agents ask for keys. */
static void a_result_has_no_key_more_or_less_when_its_fleet_is_configured_no_more(void **state)
{
    struct fixture *f = *state;
    char text[2000];
    cluster_up(f, 0);
    conn_id conn = asks_cluster(f, "t1", "ann", "", "ben");
    init_room(f, spawned(f));
    print_result(sought(f, conn, ENVELOPE_SUCCESS), text, sizeof(text));
    assert_null(strstr(text, "\"key\""));
    f->config.n_fleets--;
    rooms_reconfigure(f);
    is_still_in_cluster(f, text);
    seal(f);
    crash(f, 1000);
    is_still_in_cluster(f, text);
    f->config.n_fleets++;
    cluster_of(f)->provider = PROVIDER_AGENT;
    rooms_reconfigure(f);
    rooms_pass(f, TICK_MS);
    is_still_in_cluster(f, text);
}

/* What was stored before keys were kept has those of the configuration it is read with first. */
static void whether_seats_have_keys_is_kept_from_now_on(void **state)
{
    struct fixture *f = *state;
    char text[2000];
    cluster_up(f, 0);
    conn_id conn = asks_cluster(f, "t1", "ann", "", "ben");
    init_room(f, spawned(f));
    print_result(sought(f, conn, ENVELOPE_SUCCESS), text, sizeof(text));
    LIST_EACH(&fleet_find_named(f->core, "cluster")->token_modes, m, struct token_mode, in_fleet)
    {
        m->row.mode &= TOKEN_PLAYER_ID;
        object_touch(f->core, &m->object);
    }
    seal(f);
    crash(f, 1000);
    int before = modes(f);
    is_still_in_cluster(f, text);
    rooms_pass(f, TICK_MS);
    assert_int_equal(modes(f), before);
    f->config.n_fleets--;
    rooms_reconfigure(f);
    is_still_in_cluster(f, text);
}

/* The bytes of a seat's token as text; false when they are none. */
static bool token_as_id(struct fixture *f, const char *account, char dst[TOKEN_RAW + 1])
{
    char token[ROUTE_TOKEN_SIZE];
    size_t len = 0;
    token_in(f, seat_of(f, account), token);
    assert_int_equal(sodium_base642bin((uint8_t *)dst, TOKEN_RAW, token, strlen(token), NULL, &len,
                                       NULL, sodium_base64_VARIANT_ORIGINAL),
                     0);
    dst[len] = '\0';
    return strlen(dst) == TOKEN_RAW;
}

/* A proxy knows no modes: whoever has the bytes gets the packets. */
static void a_players_id_that_is_anothers_opaque_token_is_refused(void **state)
{
    struct fixture *f = *state;
    char id[TOKEN_RAW + 1];
    host_up(f, 0, EU);
    (void)room_with(f, "ann,ben,cid");
    assert_true(token_as_id(f, "ann", id) || token_as_id(f, "ben", id));
    use_player_ids(f);
    sought_not(f, seeks(f, id, ""), ERR_TOKEN_TAKEN, err_sentence(ERR_TOKEN_TAKEN));
}

static void modes_that_no_seat_needs_are_forgotten(void **state)
{
    struct fixture *f = *state;
    int before = modes(f);
    host_up(f, 0, EU);
    for (int i = 0; i < 10; i++) {
        use_player_ids(f);
        use_opaque_tokens(f);
    }
    assert_int_equal(modes(f), before); /* one for each fleet */
    (void)room_with(f, "ann");
    use_player_ids(f);
    sought(f, seeks(f, "ben", ""), ENVELOPE_SUCCESS);
    use_opaque_tokens(f);
    use_player_ids(f);
    assert_int_equal(modes(f), before + 3); /* ann's, ben's, and one that nobody has, but for now */
    leaves(f, "ann");
    leaves(f, "ben");
    rooms_pass(f, f->config.timeouts.keep_ms + 1000);
    use_opaque_tokens(f);
    assert_int_equal(modes(f), before);
    assert_null(core_check(f->core));
}

static void a_fleet_that_is_taken_out_of_the_configuration_keeps_its_tokens(void **state)
{
    struct fixture *f = *state;
    use_player_ids(f);
    host_up(f, 0, EU);
    (void)room_with(f, "lRTSKLe4sKQYbqo0");
    (void)str_copy(arena_of(f)->name, sizeof(arena_of(f)->name), STR("other"));
    rooms_reconfigure(f);
    add_tick(f);
    assert_true(is_token(f, "lRTSKLe4sKQYbqo0", "bFJUU0tMZTRzS1FZYnFvMA=="));
}

/* The players' own door gives seats too. */
static void who_asks_for_a_room_is_refused_with_anothers_token(void **state)
{
    struct fixture *f = *state;
    use_player_ids(f);
    host_up(f, 0, EU);
    struct room *room = room_with(f, "0123456789abcdef-one");
    conn_id conn = enter(f, "0123456789abcdef-two", room->row.id);
    answered(f, EFFECT_PLACED, conn, ERR_TOKEN_TAKEN);
    conn = create(f, "0123456789abcdef-two");
    answered(f, EFFECT_PLACED, conn, ERR_TOKEN_TAKEN);
    assert_int_equal(count_notes(f, NOTE_TOKEN_COLLISION), 1);
}

static void a_seat_is_a_route_and_no_longer_than_it_is_one(void **state)
{
    struct fixture *f = *state;
    struct view_route route;
    host_up(f, 0, EU);
    (void)room_with(f, "ann");
    uint64_t generation = view_routes_generation(f->core);
    int64_t seat = seat_of(f, "ann")->row.id;
    assert_true(view_route(f->core, seat, &route));
    assert_string_equal(route.address, "203.0.113.7");
    assert_int_equal(route.port, 38000);
    leaves(f, "ann");
    assert_false(view_route(f->core, seat, &route));
    assert_true(view_routes_generation(f->core) > generation);
}

/* ── clusters ──────────────────────────────────────────────────────────────────────────────── */

static void the_first_players_tokens_go_along_with_the_spawn(void **state)
{
    struct fixture *f = *state;
    char token[ROUTE_TOKEN_SIZE];
    cluster_up(f, 0);
    conn_id conn = asks_cluster(f, "t1", "ann", "", "ben");
    const struct effect *e = nth_effect(f, EFFECT_SPAWN, 0, 0);
    assert_non_null(e);
    assert_true(str_eq(e->spawn->ticket, STR("t1")));
    assert_int_equal(e->spawn->tokens.len, 24 + 1 + 24);
    struct str tokens = {strndup(e->spawn->tokens.at, 24), 24};
    init_room(f, spawned(f));
    token_in(f, cluster_seat(f, "ann"), token);
    assert_true(str_eq(tokens, str_of(token)));
    assert_null(route(f, true, 0));
    assert_int_equal(sought(f, conn, ENVELOPE_SUCCESS)->key.len, 0);
    free((char *)tokens.at);
}

static void a_player_has_his_seat_when_his_token_is_in_place(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *room = cluster_room(f, "ben", "");
    conn_id conn = asks_cluster(f, "t1", "ann", "ben", "");
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, conn), 0);
    assert_null(cluster_seat(f, "ann"));
    assert_int_equal(room_free_seats(room), MAX_PLAYERS - 2);
    routed(f, route(f, true, 0)->ticket, 0);
    found_in(f, conn, room);
    assert_non_null(cluster_seat(f, "ann"));
}

static void a_room_of_a_cluster_is_not_entered_by_the_players_door(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *room = cluster_room(f, "ben", "");
    answered(f, EFFECT_PLACED, enter(f, "ann", room->row.id), ERR_WRONG_PROVIDER);
    assert_int_equal(room->reserved + room->taken, 1);
}

static void the_old_token_goes_when_the_new_one_is_in_place(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *first = cluster_room(f, "ann", "");
    asks_cluster(f, "ben", "ben", "", "x1,x2,x3");
    struct room *second = spawned(f);
    init_room(f, second);
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate = (struct operate){
        .verb = OPERATE_KICK, .target = cluster_seat(f, "x3")->row.id, .who = STR("root")};
    step(f, &e);
    assert_non_null(route(f, false, 0));
    int64_t old = cluster_seat(f, "ann")->row.id;
    conn_id conn = asks_cluster(f, "t1", "ann", "ben", "");
    assert_null(route(f, false, 0));
    assert_true(cluster_seat(f, "ann")->row.id == old);
    routed(f, route(f, true, 0)->ticket, 0);
    found_in(f, conn, second);
    assert_true(route(f, false, 0)->ticket == old);
    assert_int_equal(first->taken, 0);
}

static void a_token_that_cannot_be_placed_leaves_him_where_he_is(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *first = cluster_room(f, "ann", "x1,x2,x3");
    struct room *second = cluster_room(f, "ben", "");
    conn_id conn = asks_cluster(f, "t1", "ann", "ben", "");
    int64_t seat = route(f, true, 0)->ticket;
    routed(f, seat, ERR_IO);
    sought_not(f, conn, ERR_FRIEND_UNAVAILABLE, "friend's gameserver is not available");
    assert_true(cluster_seat(f, "ann")->room == first);
    assert_true(route(f, false, 0)->ticket == seat);
    assert_int_equal(second->taken + second->reserved, 1);
}

static void a_party_of_which_one_token_fails_does_not_move_at_all(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *first = cluster_room(f, "ann", "cid,x1,x2");
    struct room *second = cluster_room(f, "ben", "");
    conn_id conn = asks_cluster(f, "t1", "ann", "ben", "cid");
    int64_t ann = route(f, true, 0)->ticket;
    int64_t cid = route(f, true, 1)->ticket;
    routed(f, ann, 0);
    assert_true(cluster_seat(f, "ann")->room == first);
    routed(f, ann, 0); /* said twice */
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, conn), 0);
    routed(f, cid, ERR_IO);
    sought(f, conn, ENVELOPE_FAILURE);
    assert_true(cluster_seat(f, "ann")->room == first);
    assert_true(cluster_seat(f, "cid")->room == first);
    assert_non_null(route(f, false, 1)); /* both tokens are taken back */
    assert_int_equal(second->taken + second->reserved, 1);
}

static void a_party_arrives_when_the_last_token_is_in_place(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *room = cluster_room(f, "ben", "");
    conn_id conn = asks_cluster(f, "t1", "ann", "ben", "cid");
    int64_t ann = route(f, true, 0)->ticket;
    int64_t cid = route(f, true, 1)->ticket;
    routed(f, cid, 0);
    routed(f, ann, 0);
    found_in(f, conn, room);
    assert_int_equal(room->taken, 3);
}

static void a_server_that_ends_meanwhile_sends_him_on_looking(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *first = cluster_room(f, "ben", "");
    struct event e = wants_in_cluster(f, "t1", "ann");
    e.seek.friends = names_of("ben", &e.seek.n_friends);
    e.seek.any_room = true;
    step(f, &e);
    assert_non_null(route(f, true, 0));
    ends(f, first);
    struct room *second = spawned(f);
    init_room(f, second);
    found_in(f, e.conn, second);
}

static void a_server_that_ends_meanwhile_without_fallback_is_a_failure(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *first = cluster_room(f, "ben", "");
    conn_id conn = asks_cluster(f, "t1", "ann", "ben", "");
    ends(f, first);
    sought_not(f, conn, ERR_FRIENDS_NOT_FOUND, "friends not found on any gameserver");
}

static void a_token_that_nobody_answers_for_is_given_up_in_time(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *room = cluster_room(f, "ben", "");
    asks_cluster(f, "t1", "ann", "ben", "");
    rooms_pass(f, f->config.timeouts.place_ms + 1000);
    is_in_state(f, "t1", ALLOCATION_FAILED);
    assert_int_equal(room->reserved + room->taken, 1);
}

static void tokens_on_their_way_are_told_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct room *room = cluster_room(f, "ben", "");
    int64_t id = room->row.id;
    asks_cluster(f, "t1", "ann", "ben", "cid");
    int64_t ann = route(f, true, 0)->ticket;
    int64_t cid = route(f, true, 1)->ticket;
    routed(f, ann, 0);
    seal(f);
    crash(f, 1000);
    host_says(f, &rooms_hosts[0]);
    rooms_pass(f, TICK_MS);
    assert_true(route(f, true, 0) && route(f, true, 1)); /* which were placed nobody kept */
    routed(f, ann, 0);
    is_in_state(f, "t1", ALLOCATION_OPEN);
    routed(f, cid, 0);
    is_in_state(f, "t1", ALLOCATION_DONE);
    assert_true(cluster_seat(f, "cid")->room->row.id == id);
}

static void what_a_proxy_said_while_nothing_could_be_stored_is_asked_again(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    (void)cluster_room(f, "ben", "");
    asks_cluster(f, "t1", "ann", "ben", "");
    int64_t seat = route(f, true, 0)->ticket;
    struct event down = {.kind = EVENT_STORE_DOWN};
    step(f, &down);
    routed(f, seat, 0);
    is_in_state(f, "t1", ALLOCATION_OPEN);
    store_up(f);
    add_tick(f);
    assert_true(route(f, true, 0)->ticket == seat);
    routed(f, seat, 0);
    is_in_state(f, "t1", ALLOCATION_DONE);
}

/* It was told of the seat's token, so the newer request has the same seat. */
static void a_newer_request_takes_over_the_server_that_a_cluster_was_asked_for(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    asks_cluster(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    int64_t seat = allocation_seat(allocation_of(f, "t1"), 0);
    conn_id second = asks_cluster(f, "t2", "ann", "", "");
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    assert_int_equal(room->row.state, ROOM_STARTING);
    init_room(f, room);
    found_in(f, second, room);
    assert_true(cluster_seat(f, "ann")->row.id == seat);
}

static void a_cluster_without_a_free_server_lets_no_more_wait_than_may(void **state)
{
    struct fixture *f = *state;
    f->config.limits.queued = 1;
    rooms_reconfigure(f);
    cluster_up(f, 0);
    queued_at(f, seeks(f, "ann", ""), 1);
    conn_id conn = asks_cluster(f, "t1", "cat", "", "");
    fails_to_start(f, spawned(f), false);
    sought_not(f, conn, ERR_TOO_MANY, "too many players wait in line");
    assert_int_equal(f->core->allocations_in[ALLOCATION_QUEUED], 1);
}

/* Who came while a server was asked for does not push him out. */
static void who_was_tried_from_the_line_goes_back_to_it(void **state)
{
    struct fixture *f = *state;
    f->config.limits.queued = 1;
    rooms_reconfigure(f);
    cluster_up(f, 0);
    asks_cluster(f, "t1", "cat", "", "");
    fails_to_start(f, spawned(f), false);
    is_in_state(f, "t1", ALLOCATION_QUEUED);
    rooms_pass(f, 1000);
    is_in_state(f, "t1", ALLOCATION_OPEN);
    struct room *room = spawned(f);
    queued_at(f, seeks(f, "ann", ""), 1);
    fails_to_start(f, room, false);
    is_in_state(f, "t1", ALLOCATION_QUEUED);
}

static void a_cluster_without_a_free_server_lets_him_wait_and_asks_again(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    struct event e = wants_in_cluster(f, "t1", "ann");
    step(f, &e);
    fails_to_start(f, spawned(f), false);
    queued_at(f, e.conn, 1);
    rooms_pass(f, 1500);
    struct room *second = spawned(f);
    e.conn = new_conn(f);
    step(f, &e); /* he asks again meanwhile */
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, e.conn), 0);
    fails_to_start(f, second, false);
    queued_at(f, e.conn, 1);
    rooms_pass(f, 1500);
    init_room(f, spawned(f));
    is_in_state(f, "t1", ALLOCATION_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(an_opaque_token_belongs_to_a_seat_and_survives_a_restart),
        SEEKERS_TEST(a_token_of_the_players_id_is_its_first_16_bytes),
        SEEKERS_TEST(the_second_player_with_a_token_is_refused),
        SEEKERS_TEST(who_waits_is_not_refused_for_the_token_of_one_served_before_him),
        SEEKERS_TEST(two_of_one_party_with_one_token_are_refused),
        SEEKERS_TEST(a_player_is_refused_in_a_second_fleet_where_his_token_would_be_the_same),
        SEEKERS_TEST(a_seat_keeps_its_token_when_the_fleet_is_configured_otherwise),
        SEEKERS_TEST(a_seat_keeps_its_token_over_a_restart_with_another_configuration),
        SEEKERS_TEST(a_result_that_is_asked_for_again_has_the_token_that_it_had),
        SEEKERS_TEST(a_result_has_no_key_more_or_less_when_its_fleet_is_configured_no_more),
        SEEKERS_TEST(whether_seats_have_keys_is_kept_from_now_on),
        SEEKERS_TEST(a_players_id_that_is_anothers_opaque_token_is_refused),
        SEEKERS_TEST(modes_that_no_seat_needs_are_forgotten),
        SEEKERS_TEST(a_fleet_that_is_taken_out_of_the_configuration_keeps_its_tokens),
        SEEKERS_TEST(who_asks_for_a_room_is_refused_with_anothers_token),
        SEEKERS_TEST(a_seat_is_a_route_and_no_longer_than_it_is_one),
        SEEKERS_TEST(the_first_players_tokens_go_along_with_the_spawn),
        SEEKERS_TEST(a_player_has_his_seat_when_his_token_is_in_place),
        SEEKERS_TEST(a_room_of_a_cluster_is_not_entered_by_the_players_door),
        SEEKERS_TEST(the_old_token_goes_when_the_new_one_is_in_place),
        SEEKERS_TEST(a_token_that_cannot_be_placed_leaves_him_where_he_is),
        SEEKERS_TEST(a_party_of_which_one_token_fails_does_not_move_at_all),
        SEEKERS_TEST(a_party_arrives_when_the_last_token_is_in_place),
        SEEKERS_TEST(a_server_that_ends_meanwhile_sends_him_on_looking),
        SEEKERS_TEST(a_server_that_ends_meanwhile_without_fallback_is_a_failure),
        SEEKERS_TEST(a_token_that_nobody_answers_for_is_given_up_in_time),
        SEEKERS_TEST(tokens_on_their_way_are_told_again_after_a_restart),
        SEEKERS_TEST(what_a_proxy_said_while_nothing_could_be_stored_is_asked_again),
        SEEKERS_TEST(a_newer_request_takes_over_the_server_that_a_cluster_was_asked_for),
        SEEKERS_TEST(a_cluster_without_a_free_server_lets_no_more_wait_than_may),
        SEEKERS_TEST(who_was_tried_from_the_line_goes_back_to_it),
        SEEKERS_TEST(a_cluster_without_a_free_server_lets_him_wait_and_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

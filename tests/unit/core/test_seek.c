/* What place a player gets: where he is, where his friends are, anywhere; and what he is told when
 * there is none. */
#include "seekers.h"

/* ── where he is ───────────────────────────────────────────────────────────────────────────── */

static void who_has_a_seat_gets_the_same_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ann");
    int64_t seat = seat_of(f, "ann")->row.id;
    found_in(f, asks_for(f, "t1", "ann", "", ""), room);
    found_in(f, asks_for(f, "t2", "ann", "", ""), room);
    assert_true(seat_of(f, "ann")->row.id == seat);
    assert_true(allocation_seat(allocation_of(f, "t2"), 0) == seat);
    assert_int_equal(room->taken, 1);
}

static void a_seat_that_is_taken_does_not_expire(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    arena_of(f)->taken_at_once = false;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    conn_id conn = asks_for(f, "t1", "ann", "", "");
    assert_true(sought(f, conn, ENVELOPE_SUCCESS)->expires_wall_ms == f->now.wall_ms + 30 * 1000);
    say_joined(f, room, key, 2, 0);
    conn = asks_for(f, "t2", "ann", "", "");
    assert_true(sought(f, conn, ENVELOPE_SUCCESS)->expires_wall_ms == 0);
}

/* Seats that count as taken when they are given: the key is shown all the same. */
static void the_key_of_a_seat_taken_at_once_opens_it_once(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ann");
    (void)seat_key(f->core, seat_of(f, "ann")->row.id, key);
    say_joined(f, room, key, 2, 0);
    say_joined(f, room, key, 2, 0);
    say_joined(f, room, key, 3, ERR_KEY_USED);
}

/* His client crashed: he asks again, and the game server lets him in again, once. */
static void who_comes_back_may_show_his_key_again(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    arena_of(f)->taken_at_once = false;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    say_joined(f, room, key, 3, ERR_KEY_USED);
    conn_id conn = asks_for(f, "t1", "ann", "", "");
    assert_true(str_eq(sought(f, conn, ENVELOPE_SUCCESS)->key, str_of(key)));
    say_joined(f, room, key, 4, 0);
    say_joined(f, room, key, 5, ERR_KEY_USED);
}

static void without_rejoin_he_is_moved_to_another_room(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "ann,ben");
    struct room *second = room_with(f, "cid");
    struct event e = wants(f, "t1", "ann");
    e.seek.rejoin = false;
    step(f, &e);
    found_in(f, e.conn, second);
    assert_true(sits_in(f, "ann", second));
    assert_int_equal(first->taken, 1);
}

static void without_rejoin_a_reservation_stays_where_it_is(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->taken_at_once = false;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    struct room *first = room_with(f, "ann");
    (void)room_with(f, "cid");
    struct event e = wants(f, "t1", "ann");
    e.seek.rejoin = false;
    step(f, &e);
    found_in(f, e.conn, first);
}

/* Whoever waits for another room than his is not served with his own. */
static void without_rejoin_he_waits_for_a_room_that_is_not_his(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *first = room_with(f, "ann,ben");
    struct room *second = room_with(f, "p1,p2,p3,p4");
    h->leaving = true;
    host_says(f, h);
    struct event e = wants(f, "t1", "ann");
    e.seek.rejoin = false;
    step(f, &e);
    queued_at(f, e.conn, 1);
    leaves(f, "ben");
    assert_true(sits_in(f, "ann", first));
    is_in_state(f, "t1", ALLOCATION_QUEUED);
    leaves(f, "p1");
    assert_true(sits_in(f, "ann", second));
    is_in_state(f, "t1", ALLOCATION_DONE);
}

static void a_fallback_leaves_him_where_he_is(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "ann");
    (void)room_with(f, "ben,cid");
    struct event e = wants(f, "t1", "ann");
    e.seek.friends = names_of("nobody", &e.seek.n_friends);
    e.seek.any_room = true;
    step(f, &e);
    found_in(f, e.conn, first);
    assert_int_equal(count_notes(f, NOTE_ALLOCATION_UNKNOWN_FRIENDS), 1);
}

/* ── friends ───────────────────────────────────────────────────────────────────────────────── */

static void the_room_with_the_most_friends_is_taken(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ben");
    struct room *two = room_with(f, "cid,dan,eve");
    found_in(f, seeks(f, "ann", "ben,cid,dan"), two);
}

static void of_rooms_with_as_many_friends_the_emptiest_is_taken(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ben,x1,x2");
    struct room *empty = room_with(f, "cid,y1");
    found_in(f, seeks(f, "ann", "ben,cid"), empty);
}

static void a_full_room_is_passed_over_for_one_with_fewer_friends(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ben,cid,x1,x2");
    struct room *other = room_with(f, "dan");
    found_in(f, seeks(f, "ann", "ben,cid,dan"), other);
}

static void he_moves_to_his_friend_and_his_old_seat_is_free(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *old = room_with(f, "ann,x1");
    struct room *new = room_with(f, "ben");
    found_in(f, seeks(f, "ann", "ben"), new);
    assert_int_equal(old->taken, 1);
    assert_int_equal(new->taken, 2);
    assert_int_equal(count_effects(f, EFFECT_KICK_SEAT, 0), 1);
}

static void who_cannot_come_to_his_friends_keeps_his_seat(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *old = room_with(f, "ann");
    struct room *full = room_with(f, "p1,p2,p3,p4");
    sought_not(f, asks_for(f, "t1", "ann", "nobody", ""), ERR_FRIENDS_NOT_FOUND,
               "friends not found on any gameserver");
    assert_true(sits_in(f, "ann", old));
    queued_at(f, asks_for(f, "t2", "ann", "p1", ""), 1);
    assert_true(sits_in(f, "ann", old));
    leaves(f, "p2");
    assert_true(sits_in(f, "ann", full));
    assert_int_equal(old->taken, 0);
}

static void oneself_is_no_friend(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ann");
    found_in(f, asks_for(f, "t1", "ann", "ann", ""), seat_of(f, "ann")->room);
    sought_not(f, asks_for(f, "t2", "ann", "ann,nobody", ""), ERR_FRIENDS_NOT_FOUND,
               "friends not found on any gameserver");
}

static void with_fallback_any_room_will_do(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ben");
    struct event e = wants(f, "t1", "ann");
    e.seek.friends = names_of("nobody", &e.seek.n_friends);
    e.seek.any_room = true;
    step(f, &e);
    found_in(f, e.conn, room);
}

static void a_version_that_is_switched_off_keeps_those_who_belong_there(void **state)
{
    struct fixture *f = *state;
    char before[2000];
    char after[2000];
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2");
    print_result(sought(f, asks_for(f, "again", "ann", "p1", ""), ENVELOPE_SUCCESS), before,
                 sizeof(before));
    arena_of(f)->versions[0].disabled = true;
    rooms_reconfigure(f);
    print_result(sought(f, asks_for(f, "t2", "ann", "", ""), ENVELOPE_SUCCESS), after,
                 sizeof(after));
    assert_string_equal(strstr(before, "token"), strstr(after, "token"));
    found_in(f, seeks(f, "ben", "p1"), room);
    queued_at(f, seeks(f, "cid", "p1"), 1);
    leaves(f, "p2");
    is_in_state(f, "cid", ALLOCATION_DONE);
    sought_not(f, seeks(f, "dan", ""), ERR_NO_VERSION, err_sentence(ERR_NO_VERSION));
    struct event e = wants(f, "eve", "eve");
    e.seek.friends = names_of("nobody", &e.seek.n_friends);
    e.seek.any_room = true;
    step(f, &e);
    sought_not(f, e.conn, ERR_NO_VERSION, err_sentence(ERR_NO_VERSION));
}

static void a_friend_whose_host_is_away_is_not_available(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)room_with(f, "ben");
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    sought_not(f, seeks(f, "ann", "ben"), ERR_FRIEND_UNAVAILABLE,
               "friend's gameserver is not available");
}

static void a_friend_whose_room_is_starting_is_not_available(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    seeks(f, "ben", "");
    sought_not(f, seeks(f, "ann", "ben"), ERR_FRIEND_UNAVAILABLE,
               "friend's gameserver is not available");
}

/* ── anywhere ──────────────────────────────────────────────────────────────────────────────── */

static void the_fullest_room_is_filled_first(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "a1");
    struct room *full = room_with(f, "b1,b2,b3");
    found_in(f, seeks(f, "ann", ""), full);
}

static void a_fleet_that_spreads_fills_the_emptiest_first(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->spread = true;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    (void)room_with(f, "b1,b2,b3");
    struct room *empty = room_with(f, "a1");
    found_in(f, seeks(f, "ann", ""), empty);
}

static void without_a_room_one_is_started_and_others_wait_for_it_too(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id ann = seeks(f, "ann", "");
    struct room *room = spawned(f);
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, ann), 0);
    conn_id ben = seeks(f, "ben", "");
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    init_room(f, room);
    found_in(f, ann, room);
    found_in(f, ben, room);
    assert_int_equal(room->taken, 2);
}

static void a_room_that_does_not_start_fails_all_who_wait_for_it(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id ann = seeks(f, "ann", "");
    struct room *room = spawned(f);
    conn_id ben = seeks(f, "ben", "");
    fails_to_start(f, room, false);
    sought_not(f, ann, ERR_SPAWN_FAILED, "it did not start");
    sought_not(f, ben, ERR_SPAWN_FAILED, "it did not start");
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_SPAWN_FAILED);
}

static void a_room_that_takes_too_long_is_stopped_once(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    seeks(f, "ann", "");
    struct room *room = spawned(f);
    rooms_pass(f, 35 * 1000);
    has_failed(f, "ann", ERR_SPAWN_TIMEOUT, "the server did not initialise in 30 s");
    assert_int_equal(room->row.state, ROOM_ENDING);
    assert_int_equal(room->row.end_reason, END_SPAWN_TIMEOUT);
}

static void a_starting_room_that_an_operator_ends_fails_who_waits_for_it(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id ann = seeks(f, "ann", "");
    struct room *room = spawned(f);
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate = (struct operate){.verb = OPERATE_END, .target = room->row.id, .who = STR("root")};
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
    sought_not(f, ann, ERR_SPAWN_FAILED, "an operator ended the room");
    assert_int_equal(room->row.state, ROOM_ENDING);
    assert_int_equal(room->row.end_reason, END_BY_OPERATOR);
}

static void a_second_host_is_tried_with_the_same_seats(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    conn_id ann = seeks(f, "ann", "");
    fails_to_start(f, spawned(f), false);
    struct room *second = spawned(f);
    init_room(f, second);
    found_in(f, ann, second);
    assert_true(sits_in(f, "ann", second));
}

static void without_capacity_and_a_queue_it_fails(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->queue_when_full = false;
    rooms_reconfigure(f);
    sought_not(f, seeks(f, "ann", ""), ERR_NO_CAPACITY, "no capacity in fleet 'arena'");
}

static void without_capacity_he_stands_in_line(void **state)
{
    struct fixture *f = *state;
    conn_id conn = seeks(f, "ann", "");
    queued_at(f, conn, 1);
    assert_true(str_eq(sought(f, conn, ENVELOPE_QUEUED)->queue_id, STR("fleet-arena")));
    host_up(f, 0, EU);
    rooms_pass(f, 2 * 1000);
    struct room *room =
        room_find(f->core, seat_of(f, "ann") ? 0 : allocation_of(f, "ann")->row.room);
    assert_non_null(room);
    init_room(f, room);
    is_in_state(f, "ann", ALLOCATION_DONE);
}

/* ── the name of a request ─────────────────────────────────────────────────────────────────── */

static void a_repeat_gets_the_same_result_and_takes_nothing(void **state)
{
    struct fixture *f = *state;
    char first[1024];
    char second[1024];
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ben");
    struct event e = wants(f, "t1", "ann");
    step(f, &e);
    print_result(sought(f, e.conn, ENVELOPE_SUCCESS), first, sizeof(first));
    leaves(f, "ann");
    rooms_pass(f, 60 * 1000);
    e.conn = new_conn(f);
    step(f, &e);
    print_result(sought(f, e.conn, ENVELOPE_SUCCESS), second, sizeof(second));
    assert_string_equal(first, second);
    assert_null(seat_of(f, "ann"));
    assert_int_equal(room->taken, 1);
    seal(f);
    crash(f, 1000);
    e.conn = new_conn(f);
    step(f, &e);
    print_result(sought(f, e.conn, ENVELOPE_SUCCESS), second, sizeof(second));
    assert_string_equal(first, second);
}

static void a_repeat_of_a_failure_is_the_same_failure(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct event e = wants(f, "t1", "ann");
    e.seek.friends = names_of("ben", &e.seek.n_friends);
    step(f, &e);
    sought_not(f, e.conn, ERR_FRIENDS_NOT_FOUND, "friends not found on any gameserver");
    (void)room_with(f, "ben");
    e.conn = new_conn(f);
    step(f, &e);
    sought_not(f, e.conn, ERR_FRIENDS_NOT_FOUND, "friends not found on any gameserver");
    assert_null(seat_of(f, "ann"));
}

static void the_same_name_for_another_request_is_refused(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ben");
    struct event e = wants(f, "t1", "ann");
    step(f, &e);
    sought(f, e.conn, ENVELOPE_SUCCESS);
    e.seek.player = STR("cid");
    e.seek.arguments[0] = 1;
    e.conn = new_conn(f);
    step(f, &e);
    sought_not(f, e.conn, ERR_NAME_CONFLICT, "this ticketId was used for another request");
    assert_null(seat_of(f, "cid"));
}

static void whoever_repeats_while_it_is_open_waits_too(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct event e = wants(f, "t1", "ann");
    step(f, &e);
    struct room *room = spawned(f);
    conn_id conns[ALLOCATION_ASKERS] = {e.conn};
    for (int i = 1; i < ALLOCATION_ASKERS; i++) {
        e.conn = conns[i] = new_conn(f);
        step(f, &e);
        assert_int_equal(count_effects(f, EFFECT_SOUGHT, 0), 0);
    }
    e.conn = new_conn(f);
    step(f, &e);
    sought_not(f, e.conn, ERR_BUSY, err_sentence(ERR_BUSY));
    init_room(f, room);
    for (int i = 0; i < ALLOCATION_ASKERS; i++)
        found_in(f, conns[i], room);
}

static void a_newer_request_takes_over_the_room_that_is_being_started(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id first = asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    conn_id second = asks_for(f, "t2", "ann", "", "");
    sought_not(f, first, ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    conn_id third = asks_for(f, "t3", "ann", "", "");
    sought_not(f, second, ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    assert_int_equal(room->row.state, ROOM_STARTING);
    assert_int_equal(room->reserved, 1);
    init_room(f, room);
    found_in(f, third, room);
    is_in_state(f, "t1", ALLOCATION_CANCELLED);
    assert_true(seat_of(f, "ann")->row.ticket == allocation_of(f, "t3")->row.id);
}

/* What the older one has there is all that there is. */
static void a_room_for_one_is_taken_over_where_no_other_can_be_started(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->queue_when_full = false;
    arena_of(f)->max_players = 1;
    rooms_reconfigure(f);
    rooms_hosts[0].slots = 1;
    host_up(f, 0, EU);
    asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    int64_t id = room->row.id;
    asks_for(f, "t2", "ann", "", "");
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    seal(f);
    crash(f, 0); /* and it is stored */
    room = room_find(f->core, id);
    assert_int_equal(room->reserved, 1);
    init_room(f, room);
    is_in_state(f, "t2", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", room));
}

static void a_room_that_is_taken_over_goes_to_another_host_with_its_seats(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    conn_id second = asks_for(f, "t2", "ann", "", "");
    fails_to_start(f, room, false);
    struct room *other = spawned(f);
    init_room(f, other);
    found_in(f, second, other);
}

static void a_seat_in_a_starting_room_gives_way_to_a_later_one(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id created = create(f, "ann");
    struct room *starting = spawned(f);
    struct room *friends = room_with(f, "ben");
    found_in(f, seeks(f, "ann", "ben"), friends);
    init_room(f, starting); /* it was asked for first, but comes last */
    answered(f, EFFECT_PLACED, created, 0);
    assert_true(sits_in(f, "ann", starting));
    assert_int_equal(friends->taken, 1);
}

/* ── what is refused ───────────────────────────────────────────────────────────────────────── */

static void what_cannot_be_is_refused_in_words(void **state)
{
    struct fixture *f = *state;
    struct event e = wants(f, "t1", "");
    step(f, &e);
    sought_not(f, e.conn, ERR_PLAYER_REQUIRED, "playerID is required for allocation");
    e = wants(f, "t1", "ann");
    e.seek.where.fleet = STR("nowhere");
    step(f, &e);
    sought_not(f, e.conn, ERR_NO_SUCH_FLEET, "fleet 'nowhere' not found");
    e = wants(f, "t1", "ann");
    e.seek.where.fleet = STR("default");
    step(f, &e);
    sought_not(f, e.conn, ERR_WRONG_PROVIDER,
               "fleet 'default' takes matches of chat servers, not single players");
    e = wants(f, "", "ann");
    step(f, &e);
    sought_not(f, e.conn, ERR_BAD_ARGUMENT, err_sentence(ERR_BAD_ARGUMENT));
    e = wants(f, "t1", "ann");
    e.seek.priority = SEEK_PRIORITY_MAX + 1;
    step(f, &e);
    sought_not(f, e.conn, ERR_BAD_ARGUMENT, err_sentence(ERR_BAD_ARGUMENT));
    assert_int_equal(f->core->rolls[ROW_allocation].n, 0);
}

static void who_is_banned_is_told_until_when(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ben");
    bans(f, "ann");
    sought_not(f, seeks(f, "ann", ""), ERR_BANNED, "player is banned until 2023-11-15T22:13:20Z");
    assert_null(seat_of(f, "ann"));
}

static void a_name_that_a_player_gives_is_his_own(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ben");
    struct event e = wants(f, "t1", "ann");
    e.seek.bus = BUS_OWN;
    step(f, &e);
    found_in(f, e.conn, room);
    assert_null(allocation_named(f->core, STR(""), STR("t1")));
    int64_t own = allocation_named(f->core, STR("ann"), STR("t1"))->row.id;
    e = wants(f, "t1", "cid"); /* a service, for somebody else */
    step(f, &e);
    found_in(f, e.conn, room);
    e = wants(f, "t1", "dan");
    e.seek.bus = BUS_OWN;
    step(f, &e);
    found_in(f, e.conn, room);
    e = wants(f, "t1", "ann");
    e.seek.bus = BUS_OWN;
    step(f, &e); /* a repeat */
    assert_true(nth_effect(f, EFFECT_SOUGHT, e.conn, 0)->object == own);
    assert_int_equal(f->core->rolls[ROW_allocation].n, 3);
    assert_int_equal(room->taken, 4);
    seal(f);
    crash(f, 1000);
    assert_true(allocation_named(f->core, STR("ann"), STR("t1"))->row.id == own);
    assert_non_null(allocation_named(f->core, STR("dan"), STR("t1")));
    assert_non_null(allocation_named(f->core, STR(""), STR("t1")));
}

static void who_cancels_a_name_of_his_own_cancels_nobody_elses(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "t1", "ann", "p1", ""), 1);
    struct event e = wants(f, "t1", "ben");
    e.seek.bus = BUS_OWN;
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    queued_at(f, e.conn, 2);
    struct event no = {.kind = EVENT_UNSEEK, .conn = new_conn(f)};
    no.unseek.name = STR("t1");
    no.unseek.owner = STR("ben");
    step(f, &no);
    sought_not(f, no.conn, ERR_TICKET_CANCELLED, "the request was cancelled");
    is_in_state(f, "t1", ALLOCATION_QUEUED);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0); /* there is no bus to tell */
}

static void a_request_from_a_bus_is_answered_there_until_it_is_published(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "ben");
    struct event e = wants_by_bus(f, "t1", "ann");
    step(f, &e);
    const struct effect *r = nth_effect(f, EFFECT_RESULT, 0, 0);
    assert_non_null(r);
    assert_int_equal(r->verb, BUS_NATS);
    assert_int_equal(r->result->status, ENVELOPE_SUCCESS);
    int64_t id = r->object;
    int8_t done = r->event;
    assert_int_equal(f->core->n_allocations_owed, 1);
    struct event p = {.kind = EVENT_PUBLISHED, .published = {id, ALLOCATION_QUEUED, BUS_NATS}};
    step(f, &p);
    assert_int_equal(f->core->n_allocations_owed, 1); /* of another state */
    p.published.state = done;
    step(f, &p);
    assert_int_equal(f->core->n_allocations_owed, 0);
}

static void a_request_that_is_cancelled_gives_its_seats_back(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id ann = seeks(f, "ann", "");
    struct room *room = spawned(f);
    conn_id conn = new_conn(f);
    unseeks(f, conn, "ann");
    sought_not(f, ann, ERR_TICKET_CANCELLED, "the request was cancelled");
    sought(f, conn, ENVELOPE_FAILURE);
    assert_int_equal(room->row.state, ROOM_ENDING);
    conn = new_conn(f);
    unseeks(f, conn, "ann");
    sought_not(f, conn, ERR_ALREADY_OVER, err_sentence(ERR_ALREADY_OVER));
    conn = new_conn(f);
    unseeks(f, conn, "nobody");
    sought_not(f, conn, ERR_NOT_FOUND, err_sentence(ERR_NOT_FOUND));
}

/* ── how often ─────────────────────────────────────────────────────────────────────────────── */

static conn_id asks_himself(struct fixture *f, const char *name, const char *account)
{
    struct event e = wants(f, name, account);
    e.seek.bus = BUS_OWN;
    step(f, &e);
    return e.conn;
}

static void whoever_asks_by_their_own_token_is_limited_as_at_join(void **state)
{
    struct fixture *f = *state;
    f->config.join_rates[0] = (struct rate_limit){3, 60 * 1000};
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1");
    found_in(f, asks_himself(f, "t1", "ann"), room);
    found_in(f, asks_himself(f, "t1", "ann"), room); /* a repeat */
    answered(f, EFFECT_PLACED, join(f, "ann", false), 0);
    found_in(f, asks_himself(f, "t2", "ann"), room);
    conn_id conn = asks_himself(f, "t3", "ann");
    const struct effect *e = nth_effect(f, EFFECT_SOUGHT, conn, 0);
    assert_in_range(e->placed->retry_after_ms, 50 * 1000, 60 * 1000);
    sought_not(f, conn, ERR_RATE_LIMITED, "too many requests: try again in 60 s");
    answered(f, EFFECT_PLACED, join(f, "ann", false), ERR_RATE_LIMITED);
    found_in(f, asks_himself(f, "t2", "ann"), room);
    assert_null(allocation_named(f->core, STR("ann"), STR("t3")));
    rooms_pass(f, 60 * 1000);
    found_in(f, asks_himself(f, "t3", "ann"), room);
}

static void a_request_for_which_nothing_ran_is_given_back(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->queue_when_full = false;
    f->config.join_rates[0] = (struct rate_limit){1, 600 * 1000};
    rooms_reconfigure(f);
    answered(f, EFFECT_SOUGHT, asks_himself(f, "t1", "ann"), ERR_NO_CAPACITY);
    host_up(f, 0, EU);
    conn_id conn = asks_himself(f, "t2", "ann");
    heard_of(f, spawned(f), ERR_SPAWN_FAILED, FAULT_OF_CONFIG);
    answered(f, EFFECT_SOUGHT, conn, ERR_SPAWN_FAILED);
    conn = asks_himself(f, "t3", "ann");
    heard_of(f, spawned(f), ERR_SPAWN_FAILED, FAULT_OF_GAME); /* a process ran */
    answered(f, EFFECT_SOUGHT, conn, ERR_SPAWN_FAILED);
    answered(f, EFFECT_SOUGHT, asks_himself(f, "t4", "ann"), ERR_RATE_LIMITED);
}

static void services_and_buses_are_not_limited(void **state)
{
    struct fixture *f = *state;
    f->config.join_rates[0] = (struct rate_limit){3, 60 * 1000};
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1");
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "t%d", i);
        found_in(f, asks_for(f, name, "ann", "", ""), room);
        snprintf(name, sizeof(name), "b%d", i);
        struct event e = wants_by_bus(f, name, "ann");
        step(f, &e);
        is_in_state(f, name, ALLOCATION_DONE);
    }
    found_in(f, asks_himself(f, "own", "ann"), room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(who_has_a_seat_gets_the_same_again),
        SEEKERS_TEST(a_seat_that_is_taken_does_not_expire),
        SEEKERS_TEST(the_key_of_a_seat_taken_at_once_opens_it_once),
        SEEKERS_TEST(who_comes_back_may_show_his_key_again),
        SEEKERS_TEST(without_rejoin_he_is_moved_to_another_room),
        SEEKERS_TEST(without_rejoin_a_reservation_stays_where_it_is),
        SEEKERS_TEST(without_rejoin_he_waits_for_a_room_that_is_not_his),
        SEEKERS_TEST(a_fallback_leaves_him_where_he_is),
        SEEKERS_TEST(the_room_with_the_most_friends_is_taken),
        SEEKERS_TEST(of_rooms_with_as_many_friends_the_emptiest_is_taken),
        SEEKERS_TEST(a_full_room_is_passed_over_for_one_with_fewer_friends),
        SEEKERS_TEST(he_moves_to_his_friend_and_his_old_seat_is_free),
        SEEKERS_TEST(who_cannot_come_to_his_friends_keeps_his_seat),
        SEEKERS_TEST(oneself_is_no_friend),
        SEEKERS_TEST(with_fallback_any_room_will_do),
        SEEKERS_TEST(a_version_that_is_switched_off_keeps_those_who_belong_there),
        SEEKERS_TEST(a_friend_whose_host_is_away_is_not_available),
        SEEKERS_TEST(a_friend_whose_room_is_starting_is_not_available),
        SEEKERS_TEST(the_fullest_room_is_filled_first),
        SEEKERS_TEST(a_fleet_that_spreads_fills_the_emptiest_first),
        SEEKERS_TEST(without_a_room_one_is_started_and_others_wait_for_it_too),
        SEEKERS_TEST(a_room_that_does_not_start_fails_all_who_wait_for_it),
        SEEKERS_TEST(a_room_that_takes_too_long_is_stopped_once),
        SEEKERS_TEST(a_starting_room_that_an_operator_ends_fails_who_waits_for_it),
        SEEKERS_TEST(a_second_host_is_tried_with_the_same_seats),
        SEEKERS_TEST(without_capacity_and_a_queue_it_fails),
        SEEKERS_TEST(without_capacity_he_stands_in_line),
        SEEKERS_TEST(a_repeat_gets_the_same_result_and_takes_nothing),
        SEEKERS_TEST(a_repeat_of_a_failure_is_the_same_failure),
        SEEKERS_TEST(the_same_name_for_another_request_is_refused),
        SEEKERS_TEST(whoever_repeats_while_it_is_open_waits_too),
        SEEKERS_TEST(a_newer_request_takes_over_the_room_that_is_being_started),
        SEEKERS_TEST(a_room_for_one_is_taken_over_where_no_other_can_be_started),
        SEEKERS_TEST(a_room_that_is_taken_over_goes_to_another_host_with_its_seats),
        SEEKERS_TEST(a_seat_in_a_starting_room_gives_way_to_a_later_one),
        SEEKERS_TEST(what_cannot_be_is_refused_in_words),
        SEEKERS_TEST(who_is_banned_is_told_until_when),
        SEEKERS_TEST(a_name_that_a_player_gives_is_his_own),
        SEEKERS_TEST(who_cancels_a_name_of_his_own_cancels_nobody_elses),
        SEEKERS_TEST(a_request_from_a_bus_is_answered_there_until_it_is_published),
        SEEKERS_TEST(a_request_that_is_cancelled_gives_its_seats_back),
        SEEKERS_TEST(whoever_asks_by_their_own_token_is_limited_as_at_join),
        SEEKERS_TEST(a_request_for_which_nothing_ran_is_given_back),
        SEEKERS_TEST(services_and_buses_are_not_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lines: who is served when a place comes free, in which order, and who waits no more. */
#include "seekers.h"

static void a_full_room_has_a_line_with_positions_from_1(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    char id[32];
    conn_id ann = seeks(f, "ann", "p1");
    queued_at(f, ann, 1);
    snprintf(id, sizeof(id), "room-%d", (int)room->row.id);
    assert_true(str_eq(sought(f, ann, ENVELOPE_QUEUED)->queue_id, str_of(id)));
    queued_at(f, seeks(f, "ben", "p2"), 2);
    queued_at(f, seeks(f, "cid", "p1,p3"), 3);
    struct view_queue q;
    struct view_queue_place at = {0};
    assert_true(view_next_queue(f->core, &at, &q));
    assert_int_equal(q.entries, 3);
    assert_true(q.room == room->row.id);
    assert_false(view_next_queue(f->core, &at, &q));
}

static void how_long_it_stood_in_line_is_known_when_it_is_over(void **state)
{
    struct fixture *f = *state;
    struct view_allocation v;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    asks_for(f, "t1", "ann", "p1", "");
    rooms_pass(f, 7000);
    leaves(f, "p4");
    is_in_state(f, "t1", ALLOCATION_DONE);
    rooms_pass(f, 5000);
    assert_true(view_allocation(f->core, allocation_of(f, "t1")->row.id, &v));
    assert_in_range(v.waited_ms, 7000, 8000);
    asks_for(f, "t2", "ben", "", "");
    assert_true(view_allocation(f->core, allocation_of(f, "t2")->row.id, &v));
    assert_int_equal(v.waited_ms, 0);
}

/* Nothing can come between: it is the same step, so the same commit. */
static void a_seat_goes_to_the_head_of_the_line_in_the_step_that_frees_it(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    queued_at(f, seeks(f, "ben", "p1"), 2);
    leaves(f, "p4");
    assert_true(sits_in(f, "ann", room));
    is_in_state(f, "ann", ALLOCATION_DONE);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    assert_int_equal(queue_position(allocation_of(f, "ben"), NULL), 1);
    assert_int_equal(room->taken, MAX_PLAYERS);
}

static void players_who_ask_for_rooms_cannot_take_the_seat_either(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    leaves(f, "p4");
    answered(f, EFFECT_PLACED, enter(f, "eve", room->row.id), ERR_NO_PLACE);
    assert_true(sits_in(f, "ann", room));
}

static void priority_comes_first_then_who_came_first(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    queued_at(f, seeks(f, "ben", "p1"), 2);
    struct event e = wants(f, "vip", "vip");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    e.seek.priority = 1;
    step(f, &e);
    queued_at(f, e.conn, 1);
    leaves(f, "p2");
    is_in_state(f, "vip", ALLOCATION_DONE);
    leaves(f, "p3");
    is_in_state(f, "ann", ALLOCATION_DONE);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
}

static void a_minute_of_waiting_is_worth_one_priority(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    rooms_pass(f, QUEUE_STEP_MS + 1000);
    struct event e = wants(f, "vip", "vip");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    e.seek.priority = 1;
    step(f, &e);
    queued_at(f, e.conn, 2);
}

static void whoever_waits_too_long_fails(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct event e = wants_by_bus(f, "ann", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    rooms_pass(f, QUEUE_MS - 1000);
    is_in_state(f, "ann", ALLOCATION_QUEUED);
    rooms_pass(f, 2000);
    has_failed(f, "ann", ERR_QUEUE_TIMEOUT, "queue timeout after 120 s");
    const struct effect *r = nth_effect(f, EFFECT_RESULT, 0, 0);
    assert_non_null(r);
    assert_int_equal(r->result->status, ENVELOPE_FAILURE);
}

static void who_cancels_leaves_the_line(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    seeks(f, "ann", "p1");
    seeks(f, "ben", "p1");
    unseeks(f, new_conn(f), "ann");
    is_in_state(f, "ann", ALLOCATION_CANCELLED);
    assert_int_equal(queue_position(allocation_of(f, "ben"), NULL), 1);
}

static void an_operator_takes_somebody_out_of_line(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    seeks(f, "ann", "p1");
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate =
        (struct operate){.verb = OPERATE_DEQUEUE, .account = STR("ann"), .who = STR("root")};
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
    has_failed(f, "ann", ERR_TICKET_CANCELLED, "an operator took him out of line");
    e.operate.account = STR("nobody");
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, ERR_NOT_FOUND);
}

static void who_is_banned_leaves_the_line(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    seeks(f, "ann", "p1");
    bans(f, "ann");
    has_failed(f, "ann", ERR_BANNED, "player is banned until 2023-11-15T22:13:20Z");
    assert_int_equal(f->core->allocations_in[ALLOCATION_QUEUED], 0);
}

static void who_is_placed_elsewhere_leaves_the_line(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    seeks(f, "ann", "p1");
    (void)room_with(f, "ann");
    has_failed(f, "ann", ERR_ALREADY_OVER, "the player was placed elsewhere");
}

static void a_newer_request_of_the_player_takes_the_place_of_the_older(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "t1", "ann", "p1", ""), 1);
    queued_at(f, asks_for(f, "t2", "ann", "p1", ""), 1);
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    assert_int_equal(f->core->allocations_in[ALLOCATION_QUEUED], 1);
}

static void a_newer_request_that_fails_leaves_the_older_where_it_was(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "t1", "ann", "p1", ""), 1);
    queued_at(f, asks_for(f, "t2", "ben", "p1", ""), 2);
    rooms_pass(f, 5000);
    sought_not(f, asks_for(f, "t3", "ann", "nobody", ""), ERR_FRIENDS_NOT_FOUND,
               "friends not found on any gameserver");
    is_in_state(f, "t1", ALLOCATION_QUEUED);
    assert_int_equal(queue_position(allocation_of(f, "t1"), NULL), 1);
    leaves(f, "p2");
    is_in_state(f, "t1", ALLOCATION_DONE);
    is_in_state(f, "t2", ALLOCATION_QUEUED);
}

static void who_waits_for_a_room_goes_on_when_a_newer_request_fails(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    sought_not(f, asks_for(f, "t2", "ann", "nobody", ""), ERR_FRIENDS_NOT_FOUND,
               "friends not found on any gameserver");
    init_room(f, room);
    is_in_state(f, "t1", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", room));
}

static void a_party_that_fails_leaves_its_members_with_whom_they_wait(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "t1", "ann", "p1", "ben"), 1);
    queued_at(f, asks_for(f, "t2", "cid", "p1", ""), 2);
    sought_not(f, asks_for(f, "t3", "dan", "", "ben,cid,eve,flo"), ERR_NO_CAPACITY,
               "no capacity in fleet 'arena'");
    is_in_state(f, "t1", ALLOCATION_QUEUED);
    is_in_state(f, "t2", ALLOCATION_QUEUED);
    queued_at(f, asks_for(f, "t4", "dan", "p1", "ben,cid"), 1);
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    has_failed(f, "t2", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
}

static void who_waits_already_may_ask_anew_when_the_lines_are_full(void **state)
{
    struct fixture *f = *state;
    f->config.limits.queued = 1;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "t1", "ann", "p1", ""), 1);
    sought_not(f, asks_for(f, "t2", "ben", "p1", ""), ERR_TOO_MANY,
               "too many players wait in line");
    queued_at(f, asks_for(f, "t3", "ann", "p1", ""), 1);
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
}

static void when_the_room_ends_they_look_for_their_friends_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "p1,p2,p3,p4");
    struct room *second = room_with(f, "q1");
    conn_id conn = seeks(f, "ann", "p1,p2,q2");
    queued_at(f, conn, 1);
    answered(f, EFFECT_PLACED, enter(f, "q2", second->row.id), 0);
    is_in_state(f, "ann", ALLOCATION_QUEUED); /* nobody looks again before the room ends */
    ends(f, first);
    assert_true(sits_in(f, "ann", second));
    is_in_state(f, "ann", ALLOCATION_DONE);
}

static void when_the_room_ends_and_no_friend_is_left_it_fails_or_any_room_will_do(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "p1,p2,p3,p4");
    struct room *second = room_with(f, "q1");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    struct event e = wants(f, "ben", "ben");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    e.seek.any_room = true;
    step(f, &e);
    queued_at(f, e.conn, 2);
    ends(f, first);
    has_failed(f, "ann", ERR_FRIENDS_NOT_FOUND, "friends not found on any gameserver");
    is_in_state(f, "ben", ALLOCATION_DONE);
    assert_true(sits_in(f, "ben", second));
}

static void the_line_of_a_fleet_is_served_by_any_of_its_rooms(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct room *room = room_with(f, "q1,q2,q3,q4");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, seeks(f, "ann", ""), 1);
    queued_at(f, seeks(f, "ben", ""), 2);
    leaves(f, "q2");
    assert_true(sits_in(f, "ann", room));
    leaves(f, "p2");
    assert_false(sits_in(f, "ben", room));
    is_in_state(f, "ben", ALLOCATION_DONE);
}

/* Of two who wait for the same seat, one for this room and one for any, the first of them all. */
static void both_lines_are_one_order(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, seeks(f, "any", ""), 1);
    rooms_pass(f, 1000);
    queued_at(f, seeks(f, "mate", "p1"), 1);
    leaves(f, "p2");
    is_in_state(f, "any", ALLOCATION_DONE);
    is_in_state(f, "mate", ALLOCATION_QUEUED);
    leaves(f, "p3");
    is_in_state(f, "mate", ALLOCATION_DONE);
}

static void those_in_line_get_rooms_of_a_host_that_comes_in_order(void **state)
{
    struct fixture *f = *state;
    const char *names[] = {"a1", "a2", "a3", "a4", "a5"};
    for (int i = 0; i < 5; i++)
        queued_at(f, seeks(f, names[i], ""), i + 1);
    struct fake_host *h = host_up(f, 0, EU);
    h->slots = 1;
    host_says(f, h);
    rooms_pass(f, 1500);
    struct room *room = spawned(f);
    assert_int_equal(allocation_of(f, "a1")->row.state, ALLOCATION_OPEN);
    init_room(f, room);
    for (int i = 0; i < 4; i++)
        is_in_state(f, names[i], ALLOCATION_DONE);
    is_in_state(f, "a5", ALLOCATION_QUEUED);
}

static void nothing_is_started_for_a_line_while_no_version_is_on(void **state)
{
    struct fixture *f = *state;
    queued_at(f, seeks(f, "ann", ""), 1);
    arena_of(f)->versions[0].disabled = true;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    rooms_pass(f, 3000);
    assert_int_equal(f->core->rolls[ROW_room].n, 0);
    is_in_state(f, "ann", ALLOCATION_QUEUED);
    arena_of(f)->versions[0].disabled = false;
    rooms_reconfigure(f);
    rooms_pass(f, 1500);
    init_room(f, spawned(f));
    is_in_state(f, "ann", ALLOCATION_DONE);
}

static void a_region_without_hosts_keeps_nobody_of_another_waiting(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->other_regions = false;
    rooms_reconfigure(f);
    struct event e = wants(f, "far", "far");
    e.seek.where.region = USE;
    step(f, &e);
    queued_at(f, e.conn, 1);
    e = wants(f, "near", "near");
    e.seek.where.region = EU;
    step(f, &e);
    queued_at(f, e.conn, 2);
    host_up(f, 0, EU);
    rooms_pass(f, 1500);
    init_room(f, spawned(f));
    is_in_state(f, "near", ALLOCATION_DONE);
}

static void the_host_of_a_full_room_being_away_nobody_enters_until_it_is_back(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    seeks(f, "ann", "p1");
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    kicks(f, seat_of(f, "p4")->row.id);
    is_in_state(f, "ann", ALLOCATION_QUEUED);
    h->silent = false;
    rooms_pass(f, 6 * 1000);
    assert_true(sits_in(f, "ann", room));
}

static void more_than_the_limit_do_not_wait(void **state)
{
    struct fixture *f = *state;
    f->config.limits.queued = 1;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ann", "p1"), 1);
    sought_not(f, seeks(f, "ben", "p1"), ERR_TOO_MANY, "too many players wait in line");
}

static void positions_are_told_at_most_once_a_second(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    seeks(f, "a1", "p1");
    seeks(f, "a2", "p1");
    rooms_pass(f, 5000);
    unseeks(f, new_conn(f), "a1"); /* a change that is told in a second */
    rooms_pass(f, 500);
    struct event e = wants_by_bus(f, "ann", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    assert_int_equal(nth_effect(f, EFFECT_RESULT, 0, 0)->result->position, 2);
    unseeks(f, new_conn(f), "a2");
    rooms_pass(f, 750);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0); /* he was told less than 1 s ago */
    rooms_pass(f, 1000);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
    const struct effect *news = nth_effect(f, EFFECT_RESULT, 0, 0);
    assert_true(news->on);
    assert_int_equal(news->result->position, 1);
}

static void the_eta_comes_of_how_seats_were_given(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    assert_int_equal(sought(f, seeks(f, "a1", "p1"), ENVELOPE_QUEUED)->eta_s, 0);
    seeks(f, "a2", "p1");
    leaves(f, "p2");
    rooms_pass(f, 10 * 1000);
    leaves(f, "p3");
    assert_int_equal(sought(f, seeks(f, "a3", "p1"), ENVELOPE_QUEUED)->eta_s, 10);
    assert_int_equal(sought(f, seeks(f, "a4", "p1"), ENVELOPE_QUEUED)->eta_s, 20);
}

/* A newcomer who fits overtakes nobody who could have had the seat. */
static void one_alone_is_not_kept_behind_a_party_that_does_not_fit(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, asks_for(f, "three", "a1", "", "a2,a3"), 1);
    found_in(f, seeks(f, "ben", ""), room);
    queued_at(f, asks_for(f, "mates", "b1", "p1", "b2,b3"), 1);
    found_in(f, seeks(f, "cid", "p1"), room);
}

static void a_seat_that_a_newer_request_frees_goes_to_the_line_first(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    h->slots = 1;
    host_says(f, h);
    conn_id ann = asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    (void)asks_for(f, "party", "p1", "", "p2,p3");
    conn_id ben = asks_for(f, "ben", "ben", "", "");
    queued_at(f, ben, 1);
    (void)asks_for(f, "t2", "ann", "", "eve"); /* ann's seat in the starting room is free again */
    sought_not(f, ann, ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    init_room(f, room);
    is_in_state(f, "ben", ALLOCATION_DONE);
    is_in_state(f, "t2", ALLOCATION_QUEUED);
}

/* It was ann's before anybody stood in line. */
static void who_asks_again_while_his_room_starts_keeps_his_seat_there(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    h->slots = 1;
    host_says(f, h);
    asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    asks_for(f, "party", "p1", "", "p2,p3");
    queued_at(f, seeks(f, "ben", ""), 1);
    conn_id ann = asks_for(f, "t2", "ann", "", "");
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    init_room(f, room);
    found_in(f, ann, room);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(how_long_it_stood_in_line_is_known_when_it_is_over),
        SEEKERS_TEST(a_full_room_has_a_line_with_positions_from_1),
        SEEKERS_TEST(a_seat_goes_to_the_head_of_the_line_in_the_step_that_frees_it),
        SEEKERS_TEST(players_who_ask_for_rooms_cannot_take_the_seat_either),
        SEEKERS_TEST(priority_comes_first_then_who_came_first),
        SEEKERS_TEST(a_minute_of_waiting_is_worth_one_priority),
        SEEKERS_TEST(whoever_waits_too_long_fails),
        SEEKERS_TEST(who_cancels_leaves_the_line),
        SEEKERS_TEST(an_operator_takes_somebody_out_of_line),
        SEEKERS_TEST(who_is_banned_leaves_the_line),
        SEEKERS_TEST(who_is_placed_elsewhere_leaves_the_line),
        SEEKERS_TEST(a_newer_request_of_the_player_takes_the_place_of_the_older),
        SEEKERS_TEST(a_newer_request_that_fails_leaves_the_older_where_it_was),
        SEEKERS_TEST(who_waits_for_a_room_goes_on_when_a_newer_request_fails),
        SEEKERS_TEST(a_party_that_fails_leaves_its_members_with_whom_they_wait),
        SEEKERS_TEST(who_waits_already_may_ask_anew_when_the_lines_are_full),
        SEEKERS_TEST(when_the_room_ends_they_look_for_their_friends_again),
        SEEKERS_TEST(when_the_room_ends_and_no_friend_is_left_it_fails_or_any_room_will_do),
        SEEKERS_TEST(the_line_of_a_fleet_is_served_by_any_of_its_rooms),
        SEEKERS_TEST(both_lines_are_one_order),
        SEEKERS_TEST(those_in_line_get_rooms_of_a_host_that_comes_in_order),
        SEEKERS_TEST(nothing_is_started_for_a_line_while_no_version_is_on),
        SEEKERS_TEST(a_region_without_hosts_keeps_nobody_of_another_waiting),
        SEEKERS_TEST(the_host_of_a_full_room_being_away_nobody_enters_until_it_is_back),
        SEEKERS_TEST(more_than_the_limit_do_not_wait),
        SEEKERS_TEST(positions_are_told_at_most_once_a_second),
        SEEKERS_TEST(the_eta_comes_of_how_seats_were_given),
        SEEKERS_TEST(one_alone_is_not_kept_behind_a_party_that_does_not_fit),
        SEEKERS_TEST(a_seat_that_a_newer_request_frees_goes_to_the_line_first),
        SEEKERS_TEST(who_asks_again_while_his_room_starts_keeps_his_seat_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

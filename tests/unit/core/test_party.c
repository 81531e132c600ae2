/* Parties: everybody gets a seat in one room, or nobody does. */
#include "seekers.h"

static bool has_party(struct fixture *f, const char *account, int64_t party)
{
    const struct room_seat *seat = seat_of(f, account);
    return seat && seat->row.multi == party;
}

static conn_id moves_party(struct fixture *f, const char *name, const char *account,
                           const char *friends)
{
    struct event e = wants(f, name, account);
    e.seek.friends = names_of(friends, &e.seek.n_friends);
    e.seek.move_party = true;
    step(f, &e);
    return e.conn;
}

static void a_party_gets_seats_in_one_room(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2");
    struct room *other = room_with(f, "q1");
    conn_id conn = asks_for(f, "t1", "ann", "", "ben,cid");
    found_in(f, conn, other);
    const struct envelope_result *r = sought(f, conn, ENVELOPE_SUCCESS);
    assert_int_equal(r->n_party, 2);
    assert_true(str_eq(r->party[0].player_id, STR("ben")));
    assert_true(str_eq(r->party[1].player_id, STR("cid")));
    assert_false(str_eq(r->party[0].token, r->token));
    int64_t party = allocation_of(f, "t1")->row.id;
    assert_true(has_party(f, "ann", party) && has_party(f, "ben", party));
    assert_true(has_party(f, "cid", party));
    assert_true(r->party_id == party);
}

static void a_party_larger_than_a_room_fails_at_once(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    sought_not(f, asks_for(f, "t1", "ann", "", "a,b,c,d"), ERR_NO_CAPACITY,
               "no capacity in fleet 'arena'");
    assert_int_equal(f->core->rolls[ROW_room].n, 0);
}

static void a_party_with_somebody_banned_gets_no_seat(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1");
    bans(f, "ben");
    sought_not(f, asks_for(f, "t1", "ann", "", "ben"), ERR_BANNED,
               "player ben is banned until 2023-11-15T22:13:20Z");
    assert_null(seat_of(f, "ann"));
    assert_int_equal(room->taken, 1);
}

static void members_come_along_from_wherever_they_sit(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "ben,p1,p2,p3");
    struct room *second = room_with(f, "q1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben"), second);
    assert_true(sits_in(f, "ben", second));
    assert_int_equal(first->taken, 3);
}

static void a_party_that_does_not_fit_leaves_everybody_where_he_is(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "ben,p1");
    (void)room_with(f, "q1,q2,q3");
    queued_at(f, asks_for(f, "t1", "ann", "q1", "ben"), 1);
    assert_true(sits_in(f, "ben", first));
    assert_null(seat_of(f, "ann"));
}

static void a_party_waits_as_one_and_is_passed_over_by_who_fits(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "three", "a1", "p1", "a2,a3"), 1);
    queued_at(f, seeks(f, "ben", "p1"), 2);
    leaves(f, "p2");
    assert_true(sits_in(f, "ben", room));
    assert_int_equal(queue_position(allocation_of(f, "three"), NULL), 1);
}

/* A party of four for three seats, then held seats. */
static void after_half_a_minute_seats_are_held_for_the_first(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "three", "a1", "p1", "a2,a3"), 1);
    leaves(f, "p2");
    assert_int_equal(room->held, 0);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(room->held, 1);
    queued_at(f, seeks(f, "ben", "p1"), 2); /* there is a seat, but not for him */
    answered(f, EFFECT_PLACED, enter(f, "eve", room->row.id), ERR_NO_PLACE);
    leaves(f, "p3");
    assert_int_equal(room->held, 2);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    leaves(f, "p4");
    is_in_state(f, "three", ALLOCATION_DONE);
    assert_int_equal(room->held, 0);
    assert_int_equal(room->taken, 4);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
}

static void held_seats_are_given_to_others_when_the_party_goes(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    asks_for(f, "three", "a1", "p1", "a2,a3");
    leaves(f, "p2");
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    queued_at(f, seeks(f, "ben", "p1"), 2);
    unseeks(f, new_conn(f), "three");
    assert_true(sits_in(f, "ben", room));
    assert_int_equal(room->held, 0);
}

static void nothing_is_held_when_nobody_is_left_in_line(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    asks_for(f, "three", "a1", "p1", "a2,a3");
    leaves(f, "p2");
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(room->held, 1);
    unseeks(f, new_conn(f), "three");
    assert_int_equal(room->held, 0);
    found_in(f, seeks(f, "ben", "p1"), room);
}

/* Two rooms of four: one full, one with a place; nothing more can be started. */
struct pair {
    struct room *full;
    struct room *emptier;
};

static struct pair two_rooms(struct fixture *f)
{
    struct fake_host *h = host_up(f, 0, EU);
    struct pair arena = {.full = room_with(f, "p1,p2,p3,p4"), .emptier = room_with(f, "q1,q2,q3")};
    h->leaving = true;
    host_says(f, h);
    return arena;
}

static int32_t held_for_fleet(struct fixture *f)
{
    struct view_queue q;
    struct view_queue_place at = {0};
    return view_next_queue(f->core, &at, &q) && q.room == 0 ? q.held : -1;
}

static void seats_are_held_in_the_emptiest_room_for_who_waits_for_any(void **state)
{
    struct fixture *f = *state;
    struct pair arena = two_rooms(f);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(arena.emptier->held, 1);
    assert_int_equal(held_for_fleet(f), 1);
    conn_id ben = seeks(f, "ben", "");
    queued_at(f, ben, 2); /* in the same line as ever */
    assert_true(str_eq(sought(f, ben, ENVELOPE_QUEUED)->queue_id, STR("fleet-arena")));
    leaves(f, "q2");
    is_in_state(f, "two", ALLOCATION_DONE);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    assert_int_equal(arena.emptier->held, 0);
}

/* It used to wait for one room from then on, and those who came later got the others. */
static void who_has_seats_held_in_one_room_gets_another_that_empties(void **state)
{
    struct fixture *f = *state;
    struct pair arena = two_rooms(f);
    queued_at(f, asks_for(f, "three", "a1", "", "a2,a3"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(arena.emptier->held, 1);
    leaves(f, "p1");
    assert_int_equal(arena.full->held, 0); /* it is no better than the other */
    leaves(f, "p2");                       /* now it is */
    assert_int_equal(arena.emptier->held, 0);
    assert_int_equal(arena.full->held, 2);
    found_in(f, seeks(f, "ben", ""), arena.emptier);
    leaves(f, "p3");
    is_in_state(f, "three", ALLOCATION_DONE);
    assert_true(sits_in(f, "a3", arena.full));
    assert_int_equal(arena.full->held, 0);
}

static void what_comes_free_where_none_was_is_held_too(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct room *other = room_with(f, "q1,q2,q3,q4");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    queued_at(f, seeks(f, "ben", ""), 2);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    leaves(f, "q1"); /* wherever it is: it is not ben's */
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    assert_int_equal(other->held, 1);
    leaves(f, "q2");
    is_in_state(f, "two", ALLOCATION_DONE);
}

static void when_the_room_with_held_seats_ends_they_are_held_in_another(void **state)
{
    struct fixture *f = *state;
    struct pair arena = two_rooms(f);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    ends(f, arena.emptier);
    assert_int_equal(arena.emptier->held, 0);
    is_in_state(f, "two", ALLOCATION_QUEUED);
    leaves(f, "p1");
    assert_int_equal(arena.full->held, 1);
    queued_at(f, seeks(f, "ben", ""), 2);
    leaves(f, "p2");
    is_in_state(f, "two", ALLOCATION_DONE);
}

static void when_the_host_of_held_seats_is_away_they_are_held_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct fake_host *here = host_up(f, 0, EU);
    struct room *room = room_with(f, "q1,q2,q3");
    here->leaving = true;
    host_says(f, here);
    struct fake_host *there = host_up(f, 1, EU);
    struct room *other = room_with(f, "p1,p2,p3,p4");
    there->leaving = true;
    host_says(f, there);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(room->held, 1);
    here->silent = true;
    rooms_pass(f, 20 * 1000);
    assert_int_equal(room->held, 0);
    leaves(f, "p1");
    assert_int_equal(other->held, 1);
}

static void seats_held_for_the_fleet_are_given_to_others_when_the_party_goes(void **state)
{
    struct fixture *f = *state;
    struct pair arena = two_rooms(f);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    queued_at(f, seeks(f, "ben", ""), 2);
    unseeks(f, new_conn(f), "two");
    assert_true(sits_in(f, "ben", arena.emptier));
    assert_int_equal(arena.emptier->held, 0);
}

/* One after the other: what was held for the first is not given away in between. */
static void the_next_elder_has_what_was_held_for_the_first(void **state)
{
    struct fixture *f = *state;
    struct pair arena = two_rooms(f);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    queued_at(f, asks_for(f, "more", "b1", "", "b2"), 2);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    queued_at(f, seeks(f, "ben", ""), 3);
    unseeks(f, new_conn(f), "two");
    assert_int_equal(arena.emptier->held, 1);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    leaves(f, "q1");
    is_in_state(f, "more", ALLOCATION_DONE);
}

static void a_party_in_the_line_of_the_fleet_has_seats_held_as_soon_as_there_is_a_room(void **state)
{
    struct fixture *f = *state;
    queued_at(f, asks_for(f, "four", "a1", "", "a2,a3,a4"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_with(f, "p1");
    h->leaving = true;
    host_says(f, h);
    rooms_pass(f, 3000);
    assert_int_equal(room->held, 3);
    leaves(f, "p1");
    is_in_state(f, "four", ALLOCATION_DONE);
}

/* ── the elder ─────────────────────────────────────────────────────────────────────────────── */

static conn_id asks_as_vip(struct fixture *f, const char *name, const char *account,
                           const char *friends, const char *party)
{
    struct event e = wants(f, name, account);
    e.seek.friends = names_of(friends, &e.seek.n_friends);
    e.seek.party = names_of(party, &e.seek.n_party);
    e.seek.priority = 1;
    step(f, &e);
    return e.conn;
}

/* It used to begin anew whenever somebody came before it. */
static void who_comes_before_it_does_not_put_off_that_seats_are_held(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "three", "a1", "p1", "a2,a3"), 1);
    rooms_pass(f, QUEUE_HOLD_MS - 5000);
    queued_at(f, asks_as_vip(f, "vip", "v1", "p1", "v2"), 1);
    queued_at(f, seeks(f, "ben", "p1"), 3);
    rooms_pass(f, 6000);
    leaves(f, "p2");
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    assert_int_equal(room->held, 1);
    leaves(f, "p3"); /* who is before it in the order may have what is held */
    is_in_state(f, "vip", ALLOCATION_DONE);
    assert_int_equal(room->held, 0);
    leaves(f, "p4");
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    assert_int_equal(room->held, 1);
}

/* He is told at once, for he is before it. */
static void who_comes_before_it_gets_a_seat_that_was_held(void **state)
{
    struct fixture *f = *state;
    struct pair pair = two_rooms(f);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(pair.emptier->held, 1);
    (void)asks_as_vip(f, "vip", "vip", "", "");
    assert_true(sits_in(f, "vip", pair.emptier));
    is_in_state(f, "two", ALLOCATION_QUEUED);
}

/* Who does not fit either is no reason to keep anything from somebody who has waited for longer. */
static void seats_are_held_for_who_came_first_not_for_who_is_before_him(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    queued_at(f, seeks(f, "ben", "p1"), 1);
    queued_at(f, asks_as_vip(f, "vip", "v1", "p1", "v2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    leaves(f, "p2");
    is_in_state(f, "vip", ALLOCATION_QUEUED);
    assert_true(sits_in(f, "ben", room));
    leaves(f, "p3"); /* now it is the oldest */
    assert_int_equal(room->held, 1);
}

static void seats_are_held_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    int64_t id = room_with(f, "p1,p2,p3,p4")->row.id;
    queued_at(f, asks_for(f, "three", "a1", "p1", "a2,a3"), 1);
    queued_at(f, seeks(f, "ben", "p1"), 2);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    crash(f, 0);
    rooms_pass(f, 1000);
    leaves(f, "p2");
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    assert_int_equal(room_find(f->core, id)->held, 1);
}

/* There is but the room that he wants to leave: that keeps no party from it. */
static void who_cannot_be_helped_is_not_the_elder(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    h->leaving = true;
    host_says(f, h);
    struct event e = wants(f, "away", "p1");
    e.seek.rejoin = false;
    step(f, &e);
    queued_at(f, e.conn, 1);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 2);
    queued_at(f, seeks(f, "ben", ""), 3);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    leaves(f, "p2");
    assert_int_equal(room->held, 1);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    leaves(f, "p3");
    is_in_state(f, "two", ALLOCATION_DONE);
}

/* One of five sat there when they came to the line, so that seats could help them. */
static void who_is_behind_those_who_cannot_be_helped_has_seats_held_in_his_time(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,x1");
    queued_at(f, asks_for(f, "five", "a1", "p1", "x1,a2,a3,a4"), 1);
    leaves(f, "x1");
    rooms_pass(f, QUEUE_HOLD_MS + 10 * 1000);
    queued_at(f, asks_for(f, "two", "b1", "p1", "b2"), 2);
    rooms_pass(f, QUEUE_HOLD_MS - 2000);
    assert_int_equal(room->held, 0);
    rooms_pass(f, 4000);
    assert_int_equal(room->held, 1);
    queued_at(f, seeks(f, "eve", "p1"), 3);
    leaves(f, "p2");
    is_in_state(f, "two", ALLOCATION_DONE);
    is_in_state(f, "five", ALLOCATION_QUEUED);
}

static void a_member_who_is_placed_elsewhere_ends_the_waiting_of_his_party(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "two", "ann", "p1", "ben"), 1);
    struct room *other = room_with(f, "ben");
    has_failed(f, "two", ERR_ALREADY_OVER, "the player was placed elsewhere");
    leaves(f, "p2");
    leaves(f, "p3");
    assert_true(sits_in(f, "ben", other));
}

static void a_member_who_asks_for_himself_ends_the_waiting_of_his_party(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    queued_at(f, asks_for(f, "two", "ann", "p1", "ben"), 1);
    queued_at(f, seeks(f, "ben", "p1"), 1);
    has_failed(f, "two", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
}

static void a_party_takes_over_the_room_that_is_being_started_for_a_member(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->queue_when_full = false;
    rooms_reconfigure(f);
    rooms_hosts[0].slots = 1;
    host_up(f, 0, EU);
    conn_id alone = asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    conn_id both = asks_for(f, "t2", "ben", "", "ann");
    sought_not(f, alone, ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    assert_int_equal(room->reserved, 2);
    init_room(f, room);
    found_in(f, both, room);
    assert_true(sits_in(f, "ann", room) && sits_in(f, "ben", room));
    assert_true(seat_of(f, "ann")->row.multi == seat_of(f, "ben")->row.multi);
}

static void a_party_that_a_starting_room_has_no_places_for_changes_nothing(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->queue_when_full = false;
    rooms_reconfigure(f);
    rooms_hosts[0].slots = 1;
    host_up(f, 0, EU);
    asks_for(f, "t1", "ann", "", "");
    struct room *room = spawned(f);
    asks_for(f, "t2", "cid", "", "dan");
    sought_not(f, asks_for(f, "t3", "ben", "", "ann,eve"), ERR_NO_CAPACITY,
               "no capacity in fleet 'arena'");
    assert_int_equal(room->reserved, 3);
    init_room(f, room);
    is_in_state(f, "t1", ALLOCATION_DONE);
    is_in_state(f, "t2", ALLOCATION_DONE);
}

/* The places of those who do not come along any more are there for those who do. */
static void who_takes_over_a_starting_room_has_what_the_older_party_gives_up(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->queue_when_full = false;
    rooms_reconfigure(f);
    rooms_hosts[0].slots = 1;
    host_up(f, 0, EU);
    asks_for(f, "t1", "ann", "", "ben,cid,dan");
    struct room *room = spawned(f);
    conn_id both = asks_for(f, "t2", "ann", "", "eve,flo");
    has_failed(f, "t1", ERR_SUPERSEDED, err_sentence(ERR_SUPERSEDED));
    assert_int_equal(room->reserved, 3);
    init_room(f, room);
    found_in(f, both, room);
    assert_null(seat_of(f, "ben"));
    assert_true(seat_of(f, "ann")->row.multi == seat_of(f, "flo")->row.multi);
}

static void a_member_who_is_banned_ends_the_waiting_of_his_party(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    asks_for(f, "two", "ann", "p1", "ben");
    bans(f, "ben");
    has_failed(f, "two", ERR_BANNED, "player ben is banned until 2023-11-15T22:13:20Z");
}

static void a_member_who_is_banned_while_a_room_starts_ends_it_for_all(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = asks_for(f, "two", "ann", "", "ben");
    struct room *room = spawned(f);
    bans(f, "ben");
    sought_not(f, conn, ERR_BANNED, "player ben is banned until 2023-11-15T22:13:20Z");
    assert_int_equal(room->row.state, ROOM_ENDING);
}

static void a_member_whose_seat_is_taken_away_while_a_room_starts_ends_it_for_all(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = asks_for(f, "two", "ann", "", "ben");
    struct room *room = spawned(f);
    kicks(f, allocation_seat(allocation_of(f, "two"), 1));
    sought_not(f, conn, ERR_ALREADY_OVER, "the seat was taken away meanwhile");
    assert_int_equal(room->row.state, ROOM_ENDING);
}

static void two_members_who_ask_at_the_same_time_find_each_other(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2");
    (void)room_with(f, "q1");
    conn_id ann = asks_for(f, "t1", "ann", "", "ben");
    int64_t room = sought(f, ann, ENVELOPE_SUCCESS)->session_id;
    conn_id ben = asks_for(f, "t2", "ben", "", "ann");
    assert_true(sought(f, ben, ENVELOPE_SUCCESS)->session_id == room);
}

static void who_comes_along_joins_the_party_of_who_sits_already(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "ann,p1");
    (void)room_with(f, "q1,q2,q3");
    found_in(f, asks_for(f, "t1", "ann", "", "ben"), room);
    int64_t party = allocation_of(f, "t1")->row.id;
    assert_true(has_party(f, "ann", party));
    assert_true(has_party(f, "ben", party));
}

static void a_party_moves_together_and_stays_one(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben,cid"), first);
    int64_t party = allocation_of(f, "t1")->row.id;
    struct room *second = room_with(f, "q1");
    conn_id conn = moves_party(f, "t2", "ben", "q1");
    found_in(f, conn, second);
    assert_true(sought(f, conn, ENVELOPE_SUCCESS)->party_id == party);
    assert_int_equal(sought(f, conn, ENVELOPE_SUCCESS)->n_party, 2);
    assert_true(sits_in(f, "ann", second) && sits_in(f, "ben", second));
    assert_true(sits_in(f, "cid", second));
    assert_true(has_party(f, "ann", party) && has_party(f, "cid", party));
    assert_int_equal(first->taken, 1);
}

static void the_result_of_a_move_names_the_party_when_all_have_left(void **state)
{
    struct fixture *f = *state;
    char first[2048];
    char again[2048];
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    int64_t party = sought(f, asks_for(f, "t1", "ann", "", "ben"), ENVELOPE_SUCCESS)->party_id;
    (void)room_with(f, "q1");
    const struct envelope_result *r =
        sought(f, moves_party(f, "t2", "ben", "q1"), ENVELOPE_SUCCESS);
    print_result(r, first, sizeof(first));
    assert_true(r->party_id == party);
    leaves(f, "ann");
    leaves(f, "ben");
    seal(f);
    crash(f, 1000);
    host_says(f, &rooms_hosts[0]);
    print_result(sought(f, moves_party(f, "t2", "ben", "q1"), ENVELOPE_SUCCESS), again,
                 sizeof(again));
    assert_string_equal(first, again);
    struct view_allocation v;
    assert_true(view_allocation(f->core, allocation_of(f, "t2")->row.id, &v));
    assert_true(v.party == party);
    rooms_pass(f, f->config.timeouts.keep_ms + 1000);
    assert_int_equal(f->core->rolls[ROW_allocation_detail].n, 0);
}

static void a_party_that_cannot_move_stays_where_it_is(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben,cid"), first);
    (void)room_with(f, "q1,q2");
    queued_at(f, moves_party(f, "t2", "ben", "q1"), 1);
    assert_true(sits_in(f, "ann", first) && sits_in(f, "ben", first) && sits_in(f, "cid", first));
    leaves(f, "q2");
    assert_false(sits_in(f, "ann", first) || sits_in(f, "ben", first) || sits_in(f, "cid", first));
}

/* ann, ben and cid are a party beside p1, and wait for the room of q1, which has no place for
 * three.
 */
static struct room *party_in_line(struct fixture *f, struct room **ret_own)
{
    host_up(f, 0, EU);
    *ret_own = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben,cid"), *ret_own);
    struct room *full = room_with(f, "q1,q2,q3");
    queued_at(f, moves_party(f, "t2", "ann", "q1"), 1);
    return full;
}

static void who_left_the_party_while_it_waits_needs_no_seat(void **state)
{
    struct fixture *f = *state;
    struct room *own = NULL;
    struct room *full = party_in_line(f, &own);
    int64_t id = full->row.id;
    leaves(f, "cid");
    is_in_state(f, "t2", ALLOCATION_QUEUED);
    assert_int_equal(full->queue->players, 2);
    seal(f);
    crash(f, 1000); /* it is durable */
    host_up(f, 0, EU);
    full = room_find(f->core, id);
    leaves(f, "q2");
    is_in_state(f, "t2", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", full) && sits_in(f, "ben", full));
    assert_null(seat_of(f, "cid"));
    assert_int_equal(full->taken, 4);
}

static void a_party_that_shrinks_to_what_is_free_gets_it(void **state)
{
    struct fixture *f = *state;
    struct room *own = NULL;
    struct room *full = party_in_line(f, &own);
    leaves(f, "cid");
    leaves(f, "ben");
    is_in_state(f, "t2", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", full));
}

static void a_party_that_shrinks_in_the_line_of_the_fleet_gets_any_room(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *own = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben"), own);
    struct room *other = room_with(f, "q1,q2,q3");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, moves_party(f, "t2", "ann", ""), 1);
    leaves(f, "ben");
    assert_true(sits_in(f, "ann", other));
}

static void who_was_placed_elsewhere_while_his_party_waits_is_not_dragged_along(void **state)
{
    struct fixture *f = *state;
    struct room *own = NULL;
    struct room *full = party_in_line(f, &own);
    struct room *third = room_with(f, "cid");
    is_in_state(f, "t2", ALLOCATION_QUEUED);
    leaves(f, "q2");
    is_in_state(f, "t2", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", full) && sits_in(f, "ben", full) && sits_in(f, "cid", third));
}

static void who_asked_and_left_the_party_moves_alone(void **state)
{
    struct fixture *f = *state;
    struct room *own = NULL;
    struct room *full = party_in_line(f, &own);
    leaves(f, "ann");
    is_in_state(f, "t2", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", full) && sits_in(f, "ben", own) && sits_in(f, "cid", own));
}

static void who_was_named_comes_though_he_left(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *own = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben,cid"), own);
    struct room *full = room_with(f, "q1,q2,q3");
    struct event e = wants(f, "t2", "ann");
    e.seek.friends = names_of("q1", &e.seek.n_friends);
    e.seek.party = names_of("cid", &e.seek.n_party);
    e.seek.move_party = true;
    step(f, &e);
    leaves(f, "ben");
    leaves(f, "cid");
    is_in_state(f, "t2", ALLOCATION_QUEUED);
    leaves(f, "q2");
    assert_true(sits_in(f, "ann", full) && sits_in(f, "cid", full));
    assert_null(seat_of(f, "ben"));
}

static void a_party_that_moves_nowhere_in_particular_goes_to_another_room(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *first = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben"), first);
    struct room *second = room_with(f, "q1");
    found_in(f, moves_party(f, "t2", "ann", ""), second);
    assert_true(sits_in(f, "ben", second));
}

static void seats_are_not_held_where_it_is_for_a_party_that_wants_to_move(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *own = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben"), own);
    struct room *other = room_with(f, "q1,q2,q3,q4");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, moves_party(f, "t2", "ann", ""), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 2000);
    assert_int_equal(own->held, 0);
    leaves(f, "q1");
    assert_int_equal(other->held, 1);
    leaves(f, "q2");
    is_in_state(f, "t2", ALLOCATION_DONE);
    assert_true(sits_in(f, "ann", other) && sits_in(f, "ben", other));
}

static void a_party_that_would_grow_too_large_is_refused(void **state)
{
    struct fixture *f = *state;
    char others[512] = "";
    arena_of(f)->max_players = 64;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1");
    found_in(f, asks_for(f, "t1", "ann", "", "ben,cid"), room);
    for (int i = 0; i < 62; i++)
        snprintf(others + strlen(others), sizeof(others) - strlen(others), "%sx%d", i ? "," : "",
                 i);
    struct event e = wants(f, "t2", "ann");
    e.seek.party = names_of(others, &e.seek.n_party);
    e.seek.move_party = true;
    step(f, &e);
    sought_not(f, e.conn, ERR_BAD_ARGUMENT, err_sentence(ERR_BAD_ARGUMENT));
    assert_null(allocation_named(f->core, STR(""), STR("t2")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(a_party_gets_seats_in_one_room),
        SEEKERS_TEST(a_party_larger_than_a_room_fails_at_once),
        SEEKERS_TEST(a_party_with_somebody_banned_gets_no_seat),
        SEEKERS_TEST(members_come_along_from_wherever_they_sit),
        SEEKERS_TEST(a_party_that_does_not_fit_leaves_everybody_where_he_is),
        SEEKERS_TEST(a_party_waits_as_one_and_is_passed_over_by_who_fits),
        SEEKERS_TEST(after_half_a_minute_seats_are_held_for_the_first),
        SEEKERS_TEST(held_seats_are_given_to_others_when_the_party_goes),
        SEEKERS_TEST(nothing_is_held_when_nobody_is_left_in_line),
        SEEKERS_TEST(seats_are_held_in_the_emptiest_room_for_who_waits_for_any),
        SEEKERS_TEST(who_has_seats_held_in_one_room_gets_another_that_empties),
        SEEKERS_TEST(what_comes_free_where_none_was_is_held_too),
        SEEKERS_TEST(when_the_room_with_held_seats_ends_they_are_held_in_another),
        SEEKERS_TEST(when_the_host_of_held_seats_is_away_they_are_held_elsewhere),
        SEEKERS_TEST(seats_held_for_the_fleet_are_given_to_others_when_the_party_goes),
        SEEKERS_TEST(the_next_elder_has_what_was_held_for_the_first),
        SEEKERS_TEST(a_party_in_the_line_of_the_fleet_has_seats_held_as_soon_as_there_is_a_room),
        SEEKERS_TEST(who_comes_before_it_does_not_put_off_that_seats_are_held),
        SEEKERS_TEST(who_comes_before_it_gets_a_seat_that_was_held),
        SEEKERS_TEST(seats_are_held_for_who_came_first_not_for_who_is_before_him),
        SEEKERS_TEST(seats_are_held_again_after_a_restart),
        SEEKERS_TEST(who_cannot_be_helped_is_not_the_elder),
        SEEKERS_TEST(who_is_behind_those_who_cannot_be_helped_has_seats_held_in_his_time),
        SEEKERS_TEST(a_member_who_is_placed_elsewhere_ends_the_waiting_of_his_party),
        SEEKERS_TEST(a_member_who_asks_for_himself_ends_the_waiting_of_his_party),
        SEEKERS_TEST(a_party_takes_over_the_room_that_is_being_started_for_a_member),
        SEEKERS_TEST(a_party_that_a_starting_room_has_no_places_for_changes_nothing),
        SEEKERS_TEST(who_takes_over_a_starting_room_has_what_the_older_party_gives_up),
        SEEKERS_TEST(a_member_who_is_banned_ends_the_waiting_of_his_party),
        SEEKERS_TEST(a_member_who_is_banned_while_a_room_starts_ends_it_for_all),
        SEEKERS_TEST(a_member_whose_seat_is_taken_away_while_a_room_starts_ends_it_for_all),
        SEEKERS_TEST(two_members_who_ask_at_the_same_time_find_each_other),
        SEEKERS_TEST(who_comes_along_joins_the_party_of_who_sits_already),
        SEEKERS_TEST(a_party_moves_together_and_stays_one),
        SEEKERS_TEST(the_result_of_a_move_names_the_party_when_all_have_left),
        SEEKERS_TEST(a_party_that_cannot_move_stays_where_it_is),
        SEEKERS_TEST(who_left_the_party_while_it_waits_needs_no_seat),
        SEEKERS_TEST(a_party_that_shrinks_to_what_is_free_gets_it),
        SEEKERS_TEST(a_party_that_shrinks_in_the_line_of_the_fleet_gets_any_room),
        SEEKERS_TEST(who_was_placed_elsewhere_while_his_party_waits_is_not_dragged_along),
        SEEKERS_TEST(who_asked_and_left_the_party_moves_alone),
        SEEKERS_TEST(who_was_named_comes_though_he_left),
        SEEKERS_TEST(a_party_that_moves_nowhere_in_particular_goes_to_another_room),
        SEEKERS_TEST(seats_are_not_held_where_it_is_for_a_party_that_wants_to_move),
        SEEKERS_TEST(a_party_that_would_grow_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

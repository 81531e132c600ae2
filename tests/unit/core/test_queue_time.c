#include "seekers.h"

/* He had to wait for a server, which came to nothing; now he would stand in line. */
static struct room *asks_a_slow_cluster(struct fixture *f, conn_id *ret_conn)
{
    cluster_of(f)->queue_ms = 10 * 1000;
    rooms_reconfigure(f);
    (void)cluster_up(f, 0);
    *ret_conn = asks_cluster(f, "ann", "ann", "", "");
    return spawned(f);
}

static int64_t oldest_ms(const struct fixture *f)
{
    struct core_counts counts;
    core_count(f->core, &counts);
    return counts.queue_oldest_ms;
}

static void the_oldest_who_waits_anywhere_is_known(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    (void)room_with(f, "q1,q2,q3,q4");
    assert_int_equal(oldest_ms(f), 0);
    asks_for(f, "first", "ann", "p1", "");
    rooms_pass(f, 3000);
    asks_for(f, "second", "ben", "q1", "");
    rooms_pass(f, 1000);
    assert_int_equal(oldest_ms(f), 4000);
    kicks(f, seat_of(f, "p4")->row.id);
    assert_int_equal(oldest_ms(f), 1000);
    kicks(f, seat_of(f, "q4")->row.id);
    assert_int_equal(oldest_ms(f), 0);
}

static void who_comes_to_the_line_in_time_waits_for_what_is_left(void **state)
{
    struct fixture *f = *state;
    conn_id ann = 0;
    struct room *room = asks_a_slow_cluster(f, &ann);
    rooms_pass(f, 6 * 1000);
    fails_to_start(f, room, false);
    queued_at(f, ann, 1);
    assert_true(allocation_of(f, "ann")->row.deadline_core_ms ==
                allocation_of(f, "ann")->row.opened_core_ms + 10 * 1000);
}

static void who_comes_to_the_line_when_his_time_is_over_fails_at_once(void **state)
{
    struct fixture *f = *state;
    conn_id ann = 0;
    struct room *room = asks_a_slow_cluster(f, &ann);
    rooms_pass(f, 14 * 1000);
    fails_to_start(f, room, false);
    sought_not(f, ann, ERR_QUEUE_TIMEOUT, "queue timeout after 10 s");
}

static void who_comes_to_the_line_gets_what_came_free_while_he_waited_for_a_server(void **state)
{
    struct fixture *f = *state;
    (void)cluster_up(f, 0);
    struct room *full = cluster_room(f, "p1", "p2,p3,p4");
    conn_id ann = asks_cluster(f, "ann", "ann", "", "");
    struct room *room = spawned(f);
    kicks(f, cluster_seat(f, "p4")->row.id); /* nobody is in line for it */
    fails_to_start(f, room, false);
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, ann), 0); /* he does not wait */
    const struct effect *on = route(f, true, 0);
    assert_non_null(on);
    assert_true(on->session == full->row.id);
    routed(f, on->ticket, 0);
    found_in(f, ann, full);
    assert_int_equal(allocation_of(f, "ann")->row.queued_core_ms, 0);
}

/* A third of them was to come along, and left while the server was waited for. */
static void a_party_that_shrank_meanwhile_gets_what_is_free_for_those_who_are_left(void **state)
{
    struct fixture *f = *state;
    (void)cluster_up(f, 0);
    struct room *own = cluster_room(f, "ann", "ben,cid");
    struct room *other = cluster_room(f, "p1", "p2");
    struct event e = wants_in_cluster(f, "move", "ann");
    e.seek.move_party = true;
    step(f, &e);
    fails_to_start(f, spawned(f), false);
    queued_at(f, e.conn, 1);
    rooms_pass(f, 1500);
    struct room *third = spawned(f);
    kicks(f, cluster_seat(f, "cid")->row.id);
    fails_to_start(f, third, false);
    is_in_state(f, "move", ALLOCATION_OPEN);
    const struct effect *on = route(f, true, 0);
    assert_non_null(on);
    assert_true(on->session == other->row.id);
    assert_non_null(route(f, true, 1));
    assert_null(route(f, true, 2));
    assert_true(cluster_seat(f, "ann")->room == own); /* until a proxy knows them */
}

static void a_party_gets_the_room_of_one_of_them_when_the_others_fit_there(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    h->slots = 1;
    host_says(f, h);
    struct room *room = room_with(f, "p1,p2,p3");
    found_in(f, asks_for(f, "party", "ann", "", "p1"), room);
    assert_true(sits_in(f, "ann", room));
    assert_int_equal(room->taken, MAX_PLAYERS);
}

/* A place is held for two, and he comes before them. */
static struct event asks_for_a_held_place(struct fixture *f, enum seek_bus bus)
{
    struct fake_host *h = host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, asks_for(f, "two", "a1", "", "a2"), 1);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    struct event e = bus == BUS_HTTP ? wants(f, "vip", "vip") : wants_by_bus(f, "vip", "vip");
    e.seek.priority = 1;
    step(f, &e);
    return e;
}

static void
who_is_served_in_the_step_in_which_he_comes_to_the_line_is_not_told_that_he_waits(void **state)
{
    struct fixture *f = *state;
    struct event e = asks_for_a_held_place(f, BUS_HTTP);
    found_in(f, e.conn, seat_of(f, "p1")->room);
    assert_int_equal(count_notes(f, NOTE_ALLOCATION_QUEUED), 0);
    is_in_state(f, "two", ALLOCATION_QUEUED);
}

static void nor_is_his_bus(void **state)
{
    struct fixture *f = *state;
    char text[1024];
    char again[1024];
    struct event e = asks_for_a_held_place(f, BUS_NATS);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
    const struct effect *told = nth_effect(f, EFFECT_RESULT, 0, 0);
    assert_int_equal(told->result->status, ENVELOPE_SUCCESS);
    assert_false(told->on);
    print_result(told->result, text, sizeof(text));
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
    print_result(nth_effect(f, EFFECT_RESULT, 0, 0)->result, again, sizeof(again));
    assert_string_equal(again, text);
}

/* What he is told is where he stands when the step is over. */
static void who_comes_to_a_line_is_told_of_it_once(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct event e = wants_by_bus(f, "ann", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
    assert_int_equal(nth_effect(f, EFFECT_RESULT, 0, 0)->result->status, ENVELOPE_QUEUED);
    assert_int_equal(count_notes(f, NOTE_ALLOCATION_QUEUED), 1);
    assert_true(allocation_of(f, "ann")->row.owed);
}

/* The first of a room's line whose room ends is the first of the fleet's. */
static void who_comes_to_another_line_is_told_so_though_his_position_is_the_same(void **state)
{
    struct fixture *f = *state;
    rooms_hosts[0].slots = 2;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    (void)room_with(f, "q1,q2,q3,q4");
    h->leaving = true;
    host_says(f, h);
    struct event e = wants_by_bus(f, "ann", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    e.seek.any_room = true;
    step(f, &e);
    assert_true(str_eq(nth_effect(f, EFFECT_RESULT, 0, 0)->result->queue_id, STR("room-1")));
    ends(f, room);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0); /* he was told less than 1 s ago */
    rooms_pass(f, 1000);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
    const struct effect *news = nth_effect(f, EFFECT_RESULT, 0, 0);
    assert_true(news->on);
    assert_true(str_eq(news->result->queue_id, STR("fleet-arena")));
    assert_int_equal(news->result->position, 1);
    rooms_pass(f, 5000);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0); /* once */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(the_oldest_who_waits_anywhere_is_known),
        SEEKERS_TEST(who_comes_to_the_line_in_time_waits_for_what_is_left),
        SEEKERS_TEST(who_comes_to_the_line_when_his_time_is_over_fails_at_once),
        SEEKERS_TEST(who_comes_to_the_line_gets_what_came_free_while_he_waited_for_a_server),
        SEEKERS_TEST(a_party_that_shrank_meanwhile_gets_what_is_free_for_those_who_are_left),
        SEEKERS_TEST(a_party_gets_the_room_of_one_of_them_when_the_others_fit_there),
        SEEKERS_TEST(
            who_is_served_in_the_step_in_which_he_comes_to_the_line_is_not_told_that_he_waits),
        SEEKERS_TEST(nor_is_his_bus),
        SEEKERS_TEST(who_comes_to_a_line_is_told_of_it_once),
        SEEKERS_TEST(who_comes_to_another_line_is_told_so_though_his_position_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

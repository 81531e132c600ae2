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
    queued_at(f, ann, 1);
    const struct effect *on = route(f, true, 0);
    assert_non_null(on);
    assert_true(on->session == full->row.id);
    routed(f, on->ticket, 0);
    is_in_state(f, "ann", ALLOCATION_DONE);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(who_comes_to_the_line_in_time_waits_for_what_is_left),
        SEEKERS_TEST(who_comes_to_the_line_when_his_time_is_over_fails_at_once),
        SEEKERS_TEST(who_comes_to_the_line_gets_what_came_free_while_he_waited_for_a_server),
        SEEKERS_TEST(a_party_gets_the_room_of_one_of_them_when_the_others_fit_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

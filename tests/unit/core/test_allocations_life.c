/* Allocations across restarts, failed commits and time: what was said stays so, what is owed is
 * said again, what nobody needs is forgotten. */
#include "seekers.h"

static void published_by(struct fixture *f, int64_t allocation, int8_t state, enum seek_bus bus)
{
    struct event e = {.kind = EVENT_PUBLISHED, .published = {allocation, state, bus}};
    step(f, &e);
}

static void published(struct fixture *f, int64_t allocation, int8_t state)
{
    published_by(f, allocation, state, BUS_NATS);
}

/* Results that were just told to that bus, in that state. */
static int told_to(struct fixture *f, enum seek_bus bus, enum allocation_state state)
{
    int n = 0;
    const struct effect *e = NULL;
    for (int i = 0; (e = nth_effect(f, EFFECT_RESULT, 0, i)); i++)
        n += e->verb == (int8_t)bus && e->event == (int8_t)state;
    return n;
}

static void restart(struct fixture *f)
{
    seal(f);
    crash(f, 1000);
    for (int i = 0; i < ROOMS_HOSTS; i++) {
        if (rooms_hosts[i].name[0])
            host_says(f, &rooms_hosts[i]);
    }
}

static void in_line(struct fixture *f, const char *name, const char *friends, int32_t priority)
{
    struct event e = wants_by_bus(f, name, name);
    e.seek.friends = names_of(friends, &e.seek.n_friends);
    e.seek.priority = priority;
    step(f, &e);
    is_in_state(f, name, ALLOCATION_QUEUED);
}

/* ── restarts ──────────────────────────────────────────────────────────────────────────────── */

static void rows_of(struct core *core, struct buf *ret)
{
    static const enum row_kind kinds[] = {ROW_allocation, ROW_room_seat, ROW_room, ROW_room_ticket,
                                          ROW_room_detail};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        size_t at = 0;
        for (struct object *o = NULL; (o = object_next(core, kinds[i], &at));)
            change_encode_row(ret, kinds[i], object_row(o));
    }
}

static void a_core_that_is_loaded_is_the_same(void **state)
{
    struct fixture *f = *state;
    struct buf before = {0};
    struct buf after = {0};
    struct fake_host *h = host_up(f, 0, EU);
    cluster_up(f, 1);
    (void)room_with(f, "p1,p2,p3,p4");
    (void)cluster_room(f, "ben", "cid");
    asks_cluster(f, "routing", "dan", "ben", "");
    in_line(f, "a1", "p1", 0);
    rooms_pass(f, 1000);
    in_line(f, "a2", "p1", 1);
    in_line(f, "a3", "p1", 0);
    asks_for(f, "failed", "eve", "nobody", "");
    asks_for(f, "starting", "fay", "", "gus");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, asks_for(f, "any", "hal", "", "ida,jon"), 1);
    seal(f);
    rows_of(f->core, &before);
    struct core_counts was;
    struct core_counts is;
    core_count(f->core, &was);
    crash(f, 0);
    rows_of(f->core, &after);
    core_count(f->core, &is);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    assert_memory_equal(&was, &is, sizeof(was));
    assert_int_equal(queue_position(allocation_of(f, "a2"), NULL), 1);
    assert_int_equal(queue_position(allocation_of(f, "a1"), NULL), 2);
    assert_int_equal(queue_position(allocation_of(f, "a3"), NULL), 3);
    assert_int_equal(queue_position(allocation_of(f, "any"), NULL), 1);
    assert_null(core_check(f->core));
    buf_done(&before);
    buf_done(&after);
}

static void a_line_outlives_a_restart_and_is_served(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    int64_t room = room_with(f, "p1,p2,p3,p4")->row.id;
    in_line(f, "a1", "p1", 0);
    in_line(f, "a2", "p1", 0);
    restart(f);
    leaves(f, "p2");
    assert_true(sits_in(f, "a1", room_find(f->core, room)));
    is_in_state(f, "a2", ALLOCATION_QUEUED);
}

static void a_room_that_starts_during_a_restart_is_still_theirs(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct event e = wants_by_bus(f, "t1", "ann");
    step(f, &e);
    int64_t id = spawned(f)->row.id;
    restart(f);
    init_room(f, room_find(f->core, id));
    is_in_state(f, "t1", ALLOCATION_DONE);
    assert_int_equal(nth_effect(f, EFFECT_RESULT, 0, 0)->result->status, ENVELOPE_SUCCESS);
    assert_true(sits_in(f, "ann", room_find(f->core, id)));
}

static void the_time_in_line_goes_on_during_a_restart(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    in_line(f, "ann", "p1", 0);
    seal(f);
    crash(f, QUEUE_MS - 10 * 1000);
    rooms_pass(f, 5000);
    is_in_state(f, "ann", ALLOCATION_QUEUED);
    rooms_pass(f, 6000);
    has_failed(f, "ann", ERR_QUEUE_TIMEOUT, "queue timeout after 120 s");
}

enum first { FIRST_JOIN, FIRST_ENTER, FIRST_SEEK };

/* The first event after a start, with a party that has a seat held for it. */
static void comes_first_after_a_start(struct fixture *f, enum first first)
{
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    rooms_hosts[0].slots = 1;
    host_says(f, &rooms_hosts[0]);
    asks_for(f, "two", "a1", "p1", "a2");
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    leaves(f, "p2");
    assert_int_equal(room->held, 1);
    int64_t id = room->row.id;
    seal(f);
    crash(f, 1000);
    room = room_find(f->core, id);
    if (first == FIRST_JOIN)
        answered(f, EFFECT_PLACED, join(f, "eve", false), ERR_NO_PLACE);
    else if (first == FIRST_ENTER)
        answered(f, EFFECT_PLACED, enter(f, "eve", id), ERR_NO_PLACE);
    else
        queued_at(f, seeks(f, "eve", ""), 1);
    assert_int_equal(room->held, 1);
    leaves(f, "p3");
    is_in_state(f, "two", ALLOCATION_DONE);
    assert_true(sits_in(f, "a1", room) && sits_in(f, "a2", room));
}

static void a_join_right_after_a_start_takes_no_held_seat(void **state)
{
    comes_first_after_a_start(*state, FIRST_JOIN);
}

static void an_enter_right_after_a_start_takes_no_held_seat(void **state)
{
    comes_first_after_a_start(*state, FIRST_ENTER);
}

static void an_allocation_right_after_a_start_takes_no_held_seat(void **state)
{
    comes_first_after_a_start(*state, FIRST_SEEK);
}

/* The time of those in line passed while nobody ran. */
static void whose_time_in_line_is_over_at_a_start_gets_nothing(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    asks_for(f, "two", "a1", "p1", "a2");
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    leaves(f, "p2");
    int64_t id = room->row.id;
    seal(f);
    crash(f, QUEUE_MS);
    answered(f, EFFECT_PLACED, enter(f, "eve", id), 0);
    has_failed(f, "two", ERR_QUEUE_TIMEOUT, "queue timeout after 120 s");
}

/* ── what is owed ──────────────────────────────────────────────────────────────────────────── */

static void a_result_that_was_not_published_is_said_again_after_a_restart(void **state)
{
    struct fixture *f = *state;
    char first[1024];
    char again[1024];
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    struct event e = wants_by_bus(f, "t1", "ann");
    step(f, &e);
    int64_t id = nth_effect(f, EFFECT_RESULT, 0, 0)->object;
    print_result(nth_effect(f, EFFECT_RESULT, 0, 0)->result, first, sizeof(first));
    seal(f);
    crash(f, 1000);
    rooms_pass(f, TICK_MS);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
    print_result(nth_effect(f, EFFECT_RESULT, 0, 0)->result, again, sizeof(again));
    assert_string_equal(first, again);
    published(f, id, ALLOCATION_DONE);
    seal(f);
    crash(f, 1000);
    rooms_pass(f, TICK_MS);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0);
}

static void that_the_queue_was_told_does_not_settle_the_success(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    in_line(f, "ann", "p1", 0);
    int64_t id = allocation_of(f, "ann")->row.id;
    leaves(f, "p2");
    published(f, id, ALLOCATION_QUEUED); /* it comes late */
    assert_int_equal(f->core->n_allocations_owed, 1);
    published(f, id, ALLOCATION_DONE);
    assert_int_equal(f->core->n_allocations_owed, 0);
}

static void what_is_asked_for_through_two_buses_is_owed_to_both(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct event e = wants_by_bus(f, "t1", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    int64_t id = allocation_of(f, "t1")->row.id;
    published_by(f, id, ALLOCATION_QUEUED, BUS_NATS);
    e.seek.bus = BUS_PUBSUB;
    step(f, &e);
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_QUEUED), 1);
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_QUEUED), 0); /* it knows */
    assert_int_equal(allocation_of(f, "t1")->row.owed, BUS_PUBSUB);
    leaves(f, "p2");
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_DONE), 1);
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_DONE), 1);
    published_by(f, id, ALLOCATION_DONE, BUS_PUBSUB);
    restart(f);
    rooms_pass(f, TICK_MS);
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_DONE), 1);
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_DONE), 0);
    published_by(f, id, ALLOCATION_DONE, BUS_NATS);
    assert_int_equal(f->core->n_allocations_owed, 0);
}

static void what_was_asked_for_over_http_first_is_owed_to_the_bus_of_the_repeat(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct event e = wants(f, "t1", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    queued_at(f, e.conn, 1);
    e.conn = 0;
    e.seek.bus = BUS_PUBSUB;
    step(f, &e);
    restart(f); /* it is durable */
    leaves(f, "p2");
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_DONE), 1);
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_DONE), 0);
}

static void one_that_waits_for_its_room_answers_every_bus(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct event e = wants_by_bus(f, "t1", "ann");
    step(f, &e);
    struct room *room = spawned(f);
    e.seek.bus = BUS_PUBSUB;
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0);
    init_room(f, room);
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_DONE), 1);
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_DONE), 1);
}

static void while_nothing_can_be_stored_another_bus_is_not_answered(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct event e = wants_by_bus(f, "t1", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    step(f, &(struct event){.kind = EVENT_STORE_DOWN});
    step(f, &e);
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_QUEUED), 1);
    e.seek.bus = BUS_PUBSUB;
    step(f, &e);
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_QUEUED), 0); /* it comes again */
    assert_int_equal(allocation_of(f, "t1")->row.bus, BUS_NATS);
}

/* As folders have it in which a row named one bus. */
static void a_row_that_is_owed_to_its_one_bus_is_read(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    struct event e = wants_by_bus(f, "t1", "ann");
    e.seek.bus = BUS_PUBSUB;
    step(f, &e);
    allocation_of(f, "t1")->row.owed = 1;
    object_touch(f->core, &allocation_of(f, "t1")->object);
    restart(f);
    rooms_pass(f, TICK_MS);
    assert_int_equal(told_to(f, BUS_PUBSUB, ALLOCATION_DONE), 1);
    assert_int_equal(told_to(f, BUS_NATS, ALLOCATION_DONE), 0);
}

static void what_was_published_while_nothing_could_be_stored_is_said_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    struct event e = wants_by_bus(f, "t1", "ann");
    step(f, &e);
    struct event down = {.kind = EVENT_STORE_DOWN};
    step(f, &down);
    published(f, allocation_of(f, "t1")->row.id, ALLOCATION_DONE);
    assert_int_equal(f->core->n_allocations_owed, 1);
    store_up(f);
    add_tick(f);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1);
}

/* ── commits that fail ─────────────────────────────────────────────────────────────────────── */

static void a_request_whose_commit_fails_is_refused_and_takes_nothing(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    int64_t room = room_with(f, "p1")->row.id;
    conn_id conn = seeks(f, "ann", "");
    lose_batch(f);
    answered(f, EFFECT_SOUGHT, conn, ERR_INTERNAL);
    assert_null(seat_of(f, "ann"));
    assert_null(allocation_named(f->core, STR(""), STR("ann")));
    assert_int_equal(room_find(f->core, room)->taken, 1);
}

static void a_move_whose_commit_fails_leaves_the_player_where_he_was(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    int64_t first = room_with(f, "ann")->row.id;
    (void)room_with(f, "ben");
    seeks(f, "ann", "ben");
    lose_batch(f);
    assert_true(seat_of(f, "ann")->room->row.id == first);
}

static void whoever_waits_for_a_room_waits_on_after_a_failed_commit(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = seeks(f, "ann", "");
    struct room *room = spawned(f);
    int64_t id = room->row.id;
    init_room(f, room);
    found_in(f, conn, room);
    lose_batch(f); /* that it opened was never stored, so neither is the answer */
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, 0), 0);
    store_up(f);
    rooms_hosts[0].n_servers = 0;
    room = room_find(f->core, id);
    init_room(f, room);
    found_in(f, conn, room);
}

static void a_result_that_was_lost_with_its_commit_is_owed_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_with(f, "p1");
    struct event e = wants_by_bus(f, "t1", "ann");
    step(f, &e);
    seal(f);
    struct event e2 = wants_by_bus(f, "t2", "ben");
    step(f, &e2);
    lose_batch(f);
    store_up(f);
    add_tick(f);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 1); /* of t1; t2 is asked again */
    assert_true(str_eq(nth_effect(f, EFFECT_RESULT, 0, 0)->result->ticket_id, STR("t1")));
}

static void while_nothing_can_be_stored_only_what_is_settled_is_answered(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1");
    struct event e = wants(f, "t1", "ann");
    step(f, &e);
    struct event down = {.kind = EVENT_STORE_DOWN};
    step(f, &down);
    e.conn = new_conn(f);
    step(f, &e);
    found_in(f, e.conn, room);
    conn_id conn = seeks(f, "ben", "");
    answered(f, EFFECT_SOUGHT, conn, ERR_INTERNAL);
    struct event bus = wants_by_bus(f, "t3", "cid");
    step(f, &bus);
    assert_int_equal(count_effects(f, EFFECT_RESULT, 0), 0); /* so it is delivered again */
}

static void those_in_line_are_served_when_commits_work_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    int64_t room = room_with(f, "p1,p2,p3,p4")->row.id;
    in_line(f, "ann", "p1", 0);
    seal(f);
    leaves(f, "p2");
    lose_batch(f);
    is_in_state(f, "ann", ALLOCATION_QUEUED);
    store_up(f);
    leaves(f, "p2");
    assert_true(sits_in(f, "ann", room_find(f->core, room)));
}

/* ── time ──────────────────────────────────────────────────────────────────────────────────── */

static void what_is_over_is_kept_for_a_while_and_longer_when_it_is_owed(void **state)
{
    struct fixture *f = *state;
    asks_for(f, "t1", "ann", "nobody", "");
    struct event e = wants_by_bus(f, "t2", "ben");
    e.seek.friends = names_of("nobody", &e.seek.n_friends);
    step(f, &e);
    rooms_pass(f, 29 * 60 * 1000);
    assert_non_null(allocation_named(f->core, STR(""), STR("t1")));
    rooms_pass(f, 2 * 60 * 1000);
    assert_null(allocation_named(f->core, STR(""), STR("t1")));
    published(f, allocation_of(f, "t2")->row.id, ALLOCATION_FAILED);
    rooms_pass(f, 31 * 60 * 1000);
    assert_null(allocation_named(f->core, STR(""), STR("t2")));
    assert_int_equal(f->core->rolls[ROW_allocation].n, 0);
}

static void what_is_owed_to_a_bus_that_is_there_no_more_is_dropped_in_time(void **state)
{
    struct fixture *f = *state;
    struct event e = wants_by_bus(f, "t1", "ann");
    e.seek.friends = names_of("nobody", &e.seek.n_friends);
    step(f, &e);
    e.seek.bus = BUS_PUBSUB;
    step(f, &e);
    f->config.buses = BUS_PUBSUB;
    rooms_reconfigure(f);
    rooms_pass(f, 31 * 60 * 1000);
    assert_non_null(allocation_named(f->core, STR(""), STR("t1"))); /* one is there */
    published_by(f, allocation_of(f, "t1")->row.id, ALLOCATION_FAILED, BUS_PUBSUB);
    assert_int_equal(f->core->n_allocations_owed, 1);
    rooms_pass(f, 31 * 60 * 1000);
    assert_null(allocation_named(f->core, STR(""), STR("t1")));
    assert_int_equal(f->core->n_allocations_owed, 0);
    assert_int_equal(f->core->rolls[ROW_allocation].n, 0);
}

static void the_oldest_are_forgotten_when_there_are_too_many(void **state)
{
    struct fixture *f = *state;
    f->config.limits.tickets_kept = 2;
    rooms_reconfigure(f);
    asks_for(f, "t1", "ann", "nobody", "");
    asks_for(f, "t2", "ann", "nobody", "");
    struct event e = wants_by_bus(f, "t3", "ben");
    e.seek.friends = names_of("nobody", &e.seek.n_friends);
    step(f, &e);
    assert_null(allocation_named(f->core, STR(""), STR("t1")));
    asks_for(f, "t4", "ann", "nobody", "");
    asks_for(f, "t5", "ann", "nobody", "");
    assert_null(allocation_named(f->core, STR(""), STR("t3")));
    assert_int_equal(f->core->n_allocations_owed, 0);
}

static void a_request_that_nothing_comes_of_fails_in_time(void **state)
{
    struct fixture *f = *state;
    arena_of(f)->spawn_ms = 200 * 1000;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    seeks(f, "ann", "");
    struct room *room = spawned(f);
    rooms_pass(f, f->config.timeouts.place_ms + 1000);
    is_in_state(f, "ann", ALLOCATION_FAILED);
    assert_int_equal(room->row.state, ROOM_ENDING);
}

static void the_fleet_gone_from_the_configuration_nobody_waits_for_ever(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    in_line(f, "ann", "p1", 0);
    f->config.n_fleets -= 2;
    rooms_reconfigure(f);
    ends(f, room);
    has_failed(f, "ann", ERR_NO_VERSION, err_sentence(ERR_NO_VERSION));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(a_core_that_is_loaded_is_the_same),
        SEEKERS_TEST(a_line_outlives_a_restart_and_is_served),
        SEEKERS_TEST(a_room_that_starts_during_a_restart_is_still_theirs),
        SEEKERS_TEST(the_time_in_line_goes_on_during_a_restart),
        SEEKERS_TEST(a_join_right_after_a_start_takes_no_held_seat),
        SEEKERS_TEST(an_enter_right_after_a_start_takes_no_held_seat),
        SEEKERS_TEST(an_allocation_right_after_a_start_takes_no_held_seat),
        SEEKERS_TEST(whose_time_in_line_is_over_at_a_start_gets_nothing),
        SEEKERS_TEST(a_result_that_was_not_published_is_said_again_after_a_restart),
        SEEKERS_TEST(that_the_queue_was_told_does_not_settle_the_success),
        SEEKERS_TEST(what_was_published_while_nothing_could_be_stored_is_said_again),
        SEEKERS_TEST(what_is_asked_for_through_two_buses_is_owed_to_both),
        SEEKERS_TEST(what_was_asked_for_over_http_first_is_owed_to_the_bus_of_the_repeat),
        SEEKERS_TEST(one_that_waits_for_its_room_answers_every_bus),
        SEEKERS_TEST(while_nothing_can_be_stored_another_bus_is_not_answered),
        SEEKERS_TEST(a_row_that_is_owed_to_its_one_bus_is_read),
        SEEKERS_TEST(a_request_whose_commit_fails_is_refused_and_takes_nothing),
        SEEKERS_TEST(a_move_whose_commit_fails_leaves_the_player_where_he_was),
        SEEKERS_TEST(whoever_waits_for_a_room_waits_on_after_a_failed_commit),
        SEEKERS_TEST(a_result_that_was_lost_with_its_commit_is_owed_again),
        SEEKERS_TEST(while_nothing_can_be_stored_only_what_is_settled_is_answered),
        SEEKERS_TEST(those_in_line_are_served_when_commits_work_again),
        SEEKERS_TEST(what_is_over_is_kept_for_a_while_and_longer_when_it_is_owed),
        SEEKERS_TEST(what_is_owed_to_a_bus_that_is_there_no_more_is_dropped_in_time),
        SEEKERS_TEST(the_oldest_are_forgotten_when_there_are_too_many),
        SEEKERS_TEST(a_request_that_nothing_comes_of_fails_in_time),
        SEEKERS_TEST(the_fleet_gone_from_the_configuration_nobody_waits_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

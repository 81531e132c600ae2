/* Every sentence of check_allocations.c can be said: healthy allocations, one thing broken by hand,
 * and the sentence that names it. Nothing runs after the break; the core is only freed. */
#include "seekers.h"

#include "wire/names.h"

/* A full room, two in its line, one who waits for a room that is starting, one who failed. */
struct scene {
    struct room *full;
    struct room *roomy; /* with places */
    struct allocation *first;
    struct allocation *second;
    struct allocation *open;
    struct allocation *failed;
};

static struct scene scene(struct fixture *f)
{
    struct scene s;
    host_up(f, 0, EU);
    asks_for(f, "open", "cid", "", "");
    s.full = room_with(f, "p1,p2,p3,p4");
    s.roomy = room_with(f, "q1");
    asks_for(f, "first", "ann", "p1", "");
    asks_for(f, "second", "ben", "p1", "");
    asks_for(f, "failed", "dan", "nobody", "");
    rooms_pass(f, TICK_MS);
    s.first = allocation_of(f, "first");
    s.second = allocation_of(f, "second");
    s.open = allocation_of(f, "open");
    s.failed = allocation_of(f, "failed");
    assert_int_equal(s.open->row.state, ALLOCATION_OPEN);
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

static void an_allocation_has_no_deadline(void **state)
{
    struct fixture *f = *state;
    deadline_clear(f->core, &scene(f).first->deadline);
    is_said(f, "I6: allocation ", " has no deadline ahead");
}

static void an_allocation_waits_for_nothing(void **state)
{
    struct fixture *f = *state;
    list_remove(&scene(f).open->on_ticket);
    is_said(f, "I6: allocation ", " is open and waits for nothing");
}

static void an_allocation_is_in_no_line(void **state)
{
    struct fixture *f = *state;
    scene(f).first->queue = NULL;
    is_said(f, "allocation ", " is in the wrong line");
}

static void somebody_is_never_told_where_he_stands(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.first->told_room++;
    deadline_clear(f->core, &s.first->queue->tell);
    is_said(f, "allocation ", " is never told where it stands");
}

static void somebody_waits_for_what_was_said(void **state)
{
    struct fixture *f = *state;
    scene(f).failed->n_askers = 1;
    is_said(f, "allocation ", " has its answer and somebody waits");
}

static void an_allocation_has_another_name(void **state)
{
    struct fixture *f = *state;
    scene(f).failed->row.name[0] = 'F';
    is_said(f, "allocation ", " is not found by its name");
}

static void a_player_waits_twice(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    struct buf party = {0};
    names_add(&party, STR("ben"));
    long_set(&s.first->row.party, (struct str){(char *)party.data, party.len});
    is_said(f, "player ben waits twice", "");
    buf_done(&party);
}

static void somebody_waits_with_a_party_that_he_has_left(void **state)
{
    struct fixture *f = *state;
    (void)scene(f);
    asks_for(f, "two", "eve", "p1", "flo");
    allocation_of(f, "two")->row.move_party = 1;
    is_said(f, "player flo waits with a party that he has left", "");
}

static void a_result_is_owed_and_nobody_knows(void **state)
{
    struct fixture *f = *state;
    scene(f).failed->row.owed = true;
    is_said(f, "allocation ", " is owed and nobody knows");
}

static void a_line_is_out_of_order(void **state)
{
    struct fixture *f = *state;
    struct queue *q = scene(f).full->queue;
    struct allocation *first = q->line[0];
    q->line[0] = q->line[1];
    q->line[1] = first;
    is_said(f, "allocation ", " stands where it does not belong");
}

static void the_oldest_who_waits_is_not_known(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    list_remove(&s.second->in_waiting);
    list_insert_before(&s.first->in_waiting, &s.second->in_waiting);
    s.second->row.queued_core_ms = s.first->row.queued_core_ms + 1;
    is_said(f, "allocation ", " waits out of order");
}

static void somebody_is_not_among_those_who_wait(void **state)
{
    struct fixture *f = *state;
    list_remove(&scene(f).first->in_waiting);
    is_said(f, "1 allocations wait, 2 are in line", "");
}

/* One in the line of the fleet, who may play in EU only. */
static struct fleet *line_for_one_region(struct fixture *f)
{
    struct event e = wants(f, "one", "one");
    e.seek.where.region = EU;
    step(f, &e);
    queued_at(f, e.conn, 1);
    assert_null(core_check(f->core));
    return fleet_find_named(f->core, "arena");
}

static void the_players_for_a_region_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    line_for_one_region(f)->lined_own[EU]++;
    is_said(f, "2 players are counted in line for region 2 where 1 are", "");
}

static void the_parties_in_line_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    line_for_one_region(f)->lined_parties++;
    is_said(f, "1 parties are counted in line where 0 are", "");
}

static void the_players_of_a_line_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    scene(f).full->queue->players++;
    is_said(f, "3 players are counted in a line of 2", "");
}

static void somebody_waits_for_a_place_that_is_free(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.full->row.max_players++;
    shelf_update(s.full);
    is_said(f, "Q1: allocation ", " waits for a place that is free");
}

static void more_is_held_than_is_there(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.full->held = 1;
    shelf_update(s.full);
    is_said(f, "Q2: room ", " holds 1 seats of 0");
}

static void seats_are_held_for_nobody(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.roomy->held = 1;
    shelf_update(s.roomy);
    is_said(f, "Q2: room ", " holds seats for nobody");
}

/* The line for which they were held has none there. */
static void seats_are_held_without_a_reason(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    rooms_pass(f, QUEUE_HOLD_MS);
    s.roomy->held = 1;
    s.roomy->held_by = s.full->queue;
    shelf_update(s.roomy);
    is_said(f, "Q2: room ", " holds seats without a reason");
}

static void nothing_will_be_held_for_who_waits(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    deadline_clear(f->core, &s.full->queue->hold);
    is_said(f, "Q2: room ", " will hold no seats for who waits there");
}

static void nothing_is_held_for_who_has_waited(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3");
    asks_for(f, "two", "ann", "p1", "ben");
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(room->held, 1);
    room->held = 0;
    room->held_by = NULL;
    list_remove(&room->in_held);
    shelf_update(room);
    is_said(f, "Q2: room ", " will hold no seats for who waits there");
}

static void somebody_waits_for_any_place_and_one_is_free(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_with(f, "p1,p2,p3,p4");
    h->leaving = true;
    host_says(f, h);
    queued_at(f, asks_for(f, "any", "ann", "", ""), 1);
    room->row.max_players++;
    shelf_update(room);
    is_said(f, "Q1: allocation ", " waits for a place that is free");
}

static void seats_of_a_fleet_are_held_for_nobody(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    queue_of(s.full->fleet, NULL)->held_in = s.full;
    is_said(f, "Q2: seats of fleet arena are held for nobody", "");
}

static void somebody_never_came_to_the_line_he_is_in(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    list_remove(&s.first->in_arrivals);
    is_said(f, "1 came to a line of 2", "");
}

static void somebody_waits_for_a_room_that_is_over(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    ends(f, s.full); /* they have gone elsewhere */
    s.full->queue->line[0] = s.failed;
    s.full->queue->n = s.full->queue->players = 1;
    s.failed->queue = s.full->queue;
    list_append(&s.full->queue->arrivals, &s.failed->in_arrivals);
    s.failed->row.state = ALLOCATION_QUEUED;
    s.failed->told_position = 1;
    chain_add(&f->core->allocations_by_player, str_hash(0, STR("dan")),
              &s.failed->himself.by_player);
    s.failed->himself.of = s.failed;
    s.failed->members = &s.failed->himself;
    is_said(f, "I6: somebody waits for room ", ", which is over");
}

static void allocations_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    (void)scene(f);
    f->core->allocations_in[ALLOCATION_QUEUED]++;
    is_said(f, "3 allocations are counted in state 2 where 2 are", "");
}

static void what_is_finished_is_counted_wrong(void **state)
{
    struct fixture *f = *state;
    (void)scene(f);
    f->core->n_allocations_finished++;
    is_said(f, "allocations owed or finished are miscounted", "");
}

static void two_players_have_one_token(void **state)
{
    struct fixture *f = *state;
    cluster_up(f, 0);
    (void)cluster_room(f, "0123456789abcdef-one", "0123456789abcdef-two");
    assert_null(core_check(f->core));
    route_removed(f->core, cluster_seat(f, "0123456789abcdef-one"));
    route_removed(f->core, cluster_seat(f, "0123456789abcdef-two"));
    LIST_EACH(&fleet_find_named(f->core, "cluster")->token_modes, m, struct token_mode, in_fleet)
    {
        m->row.mode = TOKEN_PLAYER_ID;
    }
    route_added(f->core, cluster_seat(f, "0123456789abcdef-one"));
    route_added(f->core, cluster_seat(f, "0123456789abcdef-two"));
    is_said(f, "player 0123456789abcdef-", " has another's routing token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(an_allocation_has_no_deadline),
        SEEKERS_TEST(an_allocation_waits_for_nothing),
        SEEKERS_TEST(an_allocation_is_in_no_line),
        SEEKERS_TEST(somebody_is_never_told_where_he_stands),
        SEEKERS_TEST(somebody_waits_for_what_was_said),
        SEEKERS_TEST(an_allocation_has_another_name),
        SEEKERS_TEST(a_player_waits_twice),
        SEEKERS_TEST(somebody_waits_with_a_party_that_he_has_left),
        SEEKERS_TEST(a_result_is_owed_and_nobody_knows),
        SEEKERS_TEST(a_line_is_out_of_order),
        SEEKERS_TEST(the_oldest_who_waits_is_not_known),
        SEEKERS_TEST(somebody_is_not_among_those_who_wait),
        SEEKERS_TEST(the_players_of_a_line_are_counted_wrong),
        SEEKERS_TEST(the_players_for_a_region_are_counted_wrong),
        SEEKERS_TEST(the_parties_in_line_are_counted_wrong),
        SEEKERS_TEST(somebody_waits_for_a_place_that_is_free),
        SEEKERS_TEST(more_is_held_than_is_there),
        SEEKERS_TEST(seats_are_held_for_nobody),
        SEEKERS_TEST(seats_are_held_without_a_reason),
        SEEKERS_TEST(nothing_will_be_held_for_who_waits),
        SEEKERS_TEST(nothing_is_held_for_who_has_waited),
        SEEKERS_TEST(somebody_waits_for_any_place_and_one_is_free),
        SEEKERS_TEST(seats_of_a_fleet_are_held_for_nobody),
        SEEKERS_TEST(somebody_never_came_to_the_line_he_is_in),
        SEEKERS_TEST(somebody_waits_for_a_room_that_is_over),
        SEEKERS_TEST(allocations_are_counted_wrong),
        SEEKERS_TEST(what_is_finished_is_counted_wrong),
        SEEKERS_TEST(two_players_have_one_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

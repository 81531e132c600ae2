/* Every sentence of check_rooms.c can be said: healthy rooms, one thing broken by hand, and the
 * sentence that names it. Nothing runs after the break; the core is only freed. */
#include "rooms.h"

/* One open room with one reservation, one that is starting, one that ended, on one host. */
struct scene {
    struct host *host;
    struct room *room;
    struct room *starting;
    struct room *ended;
    struct room_seat *seat;
    struct room_ticket *ticket; /* of the one that is starting */
};

static struct scene scene(struct fixture *f)
{
    struct scene s;
    struct fake_host *h = host_up(f, 0, EU);
    s.room = open_room(f, "ann", NULL);
    s.ended = open_room(f, "ben", NULL);
    say_exited(f, s.ended, 2, 0);
    create(f, "cid");
    s.starting = spawned(f);
    rooms_pass(f, TICK_MS);
    s.host = the_host(f, h);
    s.seat = seat_of(f, "ann");
    s.ticket = room_ticket_find(f->core, s.starting->row.ticket);
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

static void let_pass(struct fixture *f, struct deadline *d)
{
    enum deadline_clock clock = (enum deadline_clock)d->clock;
    deadline_set(f->core, d, clock, deadline_now(f->core, clock) - 2000);
}

static void a_room_says_another_host(void **state)
{
    struct fixture *f = *state;
    scene(f).room->row.host = 77;
    is_said(f, "room ", " is on another host than it says");
}

static void a_host_counts_wrong(void **state)
{
    struct fixture *f = *state;
    scene(f).host->n_rooms++;
    is_said(f, "host 1 counts 3 rooms but has 2", "");
}

static void a_host_is_silent_for_ever(void **state)
{
    struct fixture *f = *state;
    let_pass(f, &scene(f).host->silence);
    is_said(f, "I6: host 1 may be silent for ever", "");
}

static void a_host_has_no_name(void **state)
{
    struct fixture *f = *state;
    strcpy(scene(f).host->row.name, "other");
    is_said(f, "host 1 is not found by its name", "");
}

static void seats_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    scene(f).room->taken++;
    is_said(f, "I1: room ", " counts 1/1 seats but has 1/0");
}

static void a_room_is_overfull(void **state)
{
    struct fixture *f = *state;
    scene(f).room->row.max_players = 0;
    is_said(f, "I1: room ", " seats 1 of 0");
}

static void a_room_that_is_over_has_seats(void **state)
{
    struct fixture *f = *state;
    scene(f).room->row.state = ROOM_ENDING;
    is_said(f, "I1: room ", " is over and has seats");
}

static void a_room_has_no_deadline(void **state)
{
    struct fixture *f = *state;
    deadline_clear(f->core, &scene(f).room->deadline);
    is_said(f, "I6: room ", " in state 2 has no deadline ahead");
}

static void a_spawn_is_not_said_again(void **state)
{
    struct fixture *f = *state;
    deadline_clear(f->core, &scene(f).starting->repeat);
    is_said(f, "I6: room ", " owes its host what nobody will say");
}

static void a_room_starts_for_nobody(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    struct link *first = list_first(&s.starting->seats);
    room_seat_unlink(f->core, container_of(first, struct room_seat, in_room));
    is_said(f, "room ", " is starting for nobody");
}

static void a_room_is_empty_for_ever(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    room_seat_unlink(f->core, s.seat);
    is_said(f, "I6: room ", " may be empty for ever");
}

static void an_ended_room_has_a_host(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.ended->host = s.host;
    is_said(f, "room ", " in state 4 has the wrong host");
}

static void a_room_is_on_the_wrong_shelf(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.room->shelved_at++;
    is_said(f, "room ", " is on the wrong shelf");
    s.room->shelved_at--;
    assert_null(core_check(f->core));
    s.room->version->shelves[EU].n--;
    is_said(f, "room ", " is on the wrong shelf");
}

static void a_room_is_not_found(void **state)
{
    struct fixture *f = *state;
    map_remove(&f->core->rooms_by_server, (uint64_t)scene(f).room->row.server);
    is_said(f, "room ", " is not found by its server");
}

static void a_seat_says_another_room(void **state)
{
    struct fixture *f = *state;
    scene(f).seat->row.room++;
    is_said(f, "seat ", " is in another room than it says");
}

static void a_player_has_two_seats(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    struct place_player ann = player("ann");
    struct room *second = open_room(f, "dan", NULL);
    f->core->out = &f->batch;
    (void)room_seat_new(f->core, second, s.ticket->row.id, &ann, 0);
    f->core->out = NULL;
    is_said(f, "I3: player ann has two seats", "");
}

static void a_seat_is_reserved_for_ever(void **state)
{
    struct fixture *f = *state;
    deadline_clear(f->core, &scene(f).seat->deadline);
    is_said(f, "I6: seat ", " is reserved for ever");
}

static void a_taken_seat_runs_out(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.seat->row.state = ROOM_SEAT_TAKEN;
    s.room->taken = 1;
    s.room->reserved = 0;
    is_said(f, "seat ", " is held and runs out all the same");
}

static void a_ticket_has_no_deadline(void **state)
{
    struct fixture *f = *state;
    let_pass(f, &scene(f).ticket->deadline);
    is_said(f, "I6: room ticket ", " has no deadline ahead");
}

static void a_ticket_is_open_for_nothing(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    s.ticket->row.room = s.room->row.id;
    is_said(f, "I6: room ticket ", " is open but no room is starting");
}

static void somebody_waits_for_what_was_said(void **state)
{
    struct fixture *f = *state;
    struct scene s = scene(f);
    struct room_ticket *done = room_ticket_find(f->core, s.room->row.ticket);
    assert_true(room_ticket_wait(done, 5));
    is_said(f, "room ticket ", " has its answer and somebody waits");
}

static void a_ticket_is_in_the_wrong_list(void **state)
{
    struct fixture *f = *state;
    list_append(&f->core->room_tickets_finished, &scene(f).ticket->in_finished);
    is_said(f, "room ticket ", " is in the wrong list");
}

static void rooms_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    (void)scene(f);
    f->core->rooms_in[ROOM_OPEN]++;
    is_said(f, "2 rooms are counted in state 2 where 1 are", "");
}

static void tickets_are_counted_wrong(void **state)
{
    struct fixture *f = *state;
    (void)scene(f);
    f->core->room_tickets_open++;
    is_said(f, "2/2 room tickets are counted where 1/2 are", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOMS_TEST(a_room_says_another_host),         ROOMS_TEST(a_host_counts_wrong),
        ROOMS_TEST(a_host_is_silent_for_ever),        ROOMS_TEST(a_host_has_no_name),
        ROOMS_TEST(seats_are_counted_wrong),          ROOMS_TEST(a_room_is_overfull),
        ROOMS_TEST(a_room_that_is_over_has_seats),    ROOMS_TEST(a_room_has_no_deadline),
        ROOMS_TEST(a_spawn_is_not_said_again),        ROOMS_TEST(a_room_starts_for_nobody),
        ROOMS_TEST(a_room_is_empty_for_ever),         ROOMS_TEST(an_ended_room_has_a_host),
        ROOMS_TEST(a_room_is_on_the_wrong_shelf),     ROOMS_TEST(a_room_is_not_found),
        ROOMS_TEST(a_seat_says_another_room),         ROOMS_TEST(a_player_has_two_seats),
        ROOMS_TEST(a_seat_is_reserved_for_ever),      ROOMS_TEST(a_taken_seat_runs_out),
        ROOMS_TEST(a_ticket_has_no_deadline),         ROOMS_TEST(a_ticket_is_open_for_nothing),
        ROOMS_TEST(somebody_waits_for_what_was_said), ROOMS_TEST(a_ticket_is_in_the_wrong_list),
        ROOMS_TEST(rooms_are_counted_wrong),          ROOMS_TEST(tickets_are_counted_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

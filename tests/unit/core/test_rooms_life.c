#include "rooms.h"

static struct event operates(enum operate_verb verb, int64_t target)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate = (struct operate){.verb = verb, .target = target, .who = STR("root")};
    return e;
}

static void an_empty_room_is_ended(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    rooms_pass(f, 400 * 1000);
    assert_int_equal(room->row.state, ROOM_OPEN);
    say_left(f, room, key, 3);
    rooms_pass(f, 299 * 1000);
    assert_int_equal(room->row.state, ROOM_OPEN);
    answered(f, EFFECT_PLACED, join(f, "ben", false), 0);
    rooms_pass(f, 31 * 1000); /* his reservation runs out */
    rooms_pass(f, 298 * 1000);
    assert_int_equal(room->row.state, ROOM_OPEN);
    rooms_pass(f, 2 * 1000);
    assert_int_equal(room->row.state, ROOM_ENDING);
    const struct effect *e = nth_effect(f, EFFECT_TERMINATE, 0, 0);
    assert_non_null(e);
    assert_true(e->object == room->row.server);
    assert_true(str_eq(e->ip, STR("http://host-1:9510")));
    assert_true(str_eq(e->text, STR("nobody is in it")));
    h->n_servers = 0;
    rooms_pass(f, 10 * 1000);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_EMPTY);
}

static void an_empty_room_is_not_given_a_new_life_by_a_restart(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    int64_t id = room->row.id;
    say_left(f, room, key, 2);
    rooms_pass(f, 200 * 1000);
    seal(f);
    crash(f, 50 * 1000);
    rooms_pass(f, 40 * 1000);
    assert_int_equal(room_find(f->core, id)->row.state, ROOM_OPEN);
    rooms_pass(f, 11 * 1000);
    assert_int_equal(room_find(f->core, id)->row.state, ROOM_ENDING);
}

static void a_room_that_lasts_too_long_is_ended(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    rooms_pass(f, 3599 * 1000);
    assert_int_equal(room->row.state, ROOM_OPEN);
    rooms_pass(f, 1000);
    assert_int_equal(room->row.state, ROOM_ENDING);
    assert_int_equal(room->row.end_reason, END_TOO_LONG);
    assert_null(seat_of(f, "ann"));
}

static void the_order_to_end_is_said_until_it_is_done(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    int64_t id = room->row.id;
    struct event e = operates(OPERATE_TERMINATE, room->row.server);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 1);
    rooms_pass(f, 10 * 1000);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 2);
    seal(f);
    crash(f, 1000);
    host_says(f, h);
    rooms_pass(f, 250);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 1);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard = (struct host_heard){.server = room_find(f->core, id)->row.server};
    step(f, &heard);
    rooms_pass(f, 14 * 1000);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 0);
    rooms_pass(f, 46 * 1000);
    assert_int_equal(room_find(f->core, id)->row.state, ROOM_ENDED); /* it is not waited for ever */
    assert_int_equal(room_find(f->core, id)->row.end_reason, END_BY_OPERATOR);
}

static void a_spawn_is_owed_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct place_player p = player("ann");
    struct event e = asks(7, PLACE_CREATE, &p);
    e.place.key = STR("k");
    step(f, &e);
    int64_t id = spawned(f)->row.id;
    seal(f);
    crash(f, 1000);
    host_says(f, h);
    rooms_pass(f, 250);
    struct room *room = spawned(f);
    assert_true(room->row.id == id);
    e.conn = 8;
    step(f, &e); /* whoever asks again waits for the same room */
    assert_int_equal(count_effects(f, EFFECT_PLACED, 8), 0);
    init_room(f, room);
    assert_true(answered(f, EFFECT_PLACED, 8, 0)->session == id);
}

static void a_ticket_does_not_wait_for_ever(void **state)
{
    struct fixture *f = *state;
    f->config.fleets[1].spawn_ms = 600 * 1000;
    rooms_reconfigure(f);
    struct fake_host *h = host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    host_runs(h, room);
    rooms_pass(f, 45 * 1000);
    answered(f, EFFECT_PLACED, conn, ERR_SPAWN_TIMEOUT);
    assert_int_equal(room->row.state, ROOM_ENDING);
    assert_int_equal(room->row.end_reason, END_GIVEN_UP);
}

static void what_was_never_stored_never_was(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    int64_t id = room->row.id;
    seal(f);
    conn_id conn = join(f, "ben", false);
    answered(f, EFFECT_PLACED, conn, 0);
    lose_batch(f);
    answered(f, EFFECT_PLACED, conn, ERR_INTERNAL);
    assert_null(seat_of(f, "ben"));
    assert_non_null(seat_of(f, "ann"));
    assert_int_equal(room_find(f->core, id)->reserved, 1);
}

static void who_waits_is_answered_after_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    int64_t id = room->row.id;
    seal(f);
    struct event e = says(room, AGENT_INITED, 1);
    step(f, &e);
    answered(f, EFFECT_PLACED, conn, 0);
    lose_batch(f); /* the room is starting again, and he still waits */
    assert_int_equal(count_effects(f, EFFECT_PLACED, conn), 0);
    answered(f, EFFECT_AGENT, 901, ERR_INTERNAL);
    store_up(f);
    room = room_find(f->core, id);
    e = says(room, AGENT_INITED, 1);
    step(f, &e);
    assert_true(answered(f, EFFECT_PLACED, conn, 0)->session == id);
}

static void limits_on_asking_outlive_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    f->config.join_rates[0] = (struct rate_limit){1, 60 * 1000};
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    join(f, "ann", false);
    seal(f);
    rooms_pass(f, 250);
    lose_batch(f);
    store_up(f);
    answered(f, EFFECT_PLACED, join(f, "ann", false), ERR_RATE_LIMITED);
}

static void while_nothing_can_be_stored_only_repeats_are_answered(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct place_player p = player("ann");
    struct event ask = asks(7, PLACE_CREATE, &p);
    ask.place.key = STR("k");
    step(f, &ask);
    struct room *room = spawned(f);
    init_room(f, room);
    key_of_answer(f, 7, key);
    struct event down = {.kind = EVENT_STORE_DOWN};
    step(f, &down);
    step(f, &ask);
    answered(f, EFFECT_PLACED, 7, 0);
    answered(f, EFFECT_PLACED, enter(f, "ben", room->row.id), ERR_INTERNAL);
    say_joined(f, room, key, 2, ERR_INTERNAL);
    say_joined(f, room, "1.x", 3, ERR_BAD_KEY);
    struct event check = says(room, AGENT_CHECK_DEPLOYMENT, 4);
    step(f, &check);
    answered(f, EFFECT_AGENT, 901, 0);
    store_up(f);
    say_joined(f, room, key, 2, 0);
}

static void operators_end_kick_and_terminate(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    struct event e = operates(OPERATE_KICK, seat_of(f, "ann")->row.id);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
    assert_int_equal(count_effects(f, EFFECT_KICK_SEAT, 0), 1);
    assert_null(seat_of(f, "ann"));
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, ERR_NOT_FOUND);
    e = operates(OPERATE_END, room->row.id);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
    assert_int_equal(room->row.state, ROOM_ENDING);
    e = operates(OPERATE_TERMINATE, room->row.server);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, ERR_ALREADY_OVER);
    e = operates(OPERATE_TERMINATE, 4242);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, ERR_NOT_FOUND);
    e = operates(OPERATE_DISABLE_HOST, 4242);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, ERR_NOT_FOUND);
    e = operates(OPERATE_STDIN, room->row.server);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
}

static void an_operator_ends_a_room_that_is_starting(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    struct event e = operates(OPERATE_END, room->row.id);
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
    refused_with(f, conn, ERR_SPAWN_FAILED, "an operator ended the room");
    assert_int_equal(room->row.state, ROOM_ENDING);
}

static void what_is_over_is_kept_up_to_a_limit(void **state)
{
    struct fixture *f = *state;
    f->config.limits.tickets_kept = 2;
    rooms_reconfigure(f);
    host_up(f, 0, EU);
    for (int i = 0; i < 4; i++)
        say_exited(f, open_room(f, "ann", NULL), 2, 0);
    assert_int_equal(f->core->rooms_in[ROOM_ENDED], 2);
    assert_int_equal(f->core->rolls[ROW_room].n, 2);
    assert_int_equal(f->core->rolls[ROW_room_ticket].n, 2);
    rooms_pass(f, f->config.timeouts.keep_ms + 1000);
    assert_int_equal(f->core->rolls[ROW_room].n, 0);
    assert_int_equal(f->core->rolls[ROW_room_ticket].n, 0);
}

/* Whatever happened, a core made of the journal says the same of everything. */
static void a_loaded_core_shows_the_same(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    answered(f, EFFECT_PLACED, join(f, "ben", false), 0);
    say_exited(f, open_room(f, "cid", NULL), 2, 1);
    create(f, "dan");
    int64_t starting = spawned(f)->row.id;
    seal(f);
    struct core *loaded = load_journal(f, f->now, core_seq(f->core));
    assert_null(core_check(loaded));
    for (int64_t id = 0; (id = core_next(f->core, ROW_room, id));) {
        struct view_room a;
        struct view_room b;
        assert_true(view_room(f->core, id, &a));
        assert_true(view_room(loaded, id, &b));
        assert_string_equal(a.state, b.state);
        assert_string_equal(a.end_reason, b.end_reason);
        assert_int_equal(a.reserved, b.reserved);
        assert_int_equal(a.taken, b.taken);
        assert_int_equal(a.n_ports, b.n_ports);
        assert_true(str_eq(a.settings, b.settings));
        assert_true(str_eq(a.tail, b.tail));
        assert_true(a.deadline_wall_ms == b.deadline_wall_ms);
    }
    assert_int_equal(room_find(loaded, starting)->row.state, ROOM_STARTING);
    for (int64_t id = 0; (id = core_next(f->core, ROW_room_seat, id));) {
        struct view_room_seat a;
        struct view_room_seat b;
        assert_true(view_room_seat(f->core, id, &a));
        assert_true(view_room_seat(loaded, id, &b));
        assert_string_equal(a.state, b.state);
        assert_true(str_eq(a.info, b.info));
        assert_true(str_eq(a.sealed, b.sealed));
    }
    core_free(loaded);
}

struct seen {
    int64_t rooms[8];
    int n;
    int most;
};

static bool see(void *user, int64_t room)
{
    struct seen *seen = user;
    seen->rooms[seen->n++] = room;
    return seen->n < seen->most;
}

static struct seen look(struct fixture *f, int8_t region, bool show_full, int most)
{
    struct seen seen = {.most = most};
    struct rooms_wanted wanted = {.fleet_id = fleet_find_named(f->core, "arena")->row.id,
                                  .version = "1.0",
                                  .region = region,
                                  .show_full = show_full};
    view_rooms_open(f->core, &wanted, see, &seen);
    return seen;
}

static void open_rooms_are_shown_best_first(void **state)
{
    struct fixture *f = *state;
    struct place_player far = player("far");
    host_up(f, 0, EU);
    struct fake_host *west = host_up(f, 1, USE);
    struct room *one = open_room(f, "a", NULL);
    struct room *two = open_room(f, "b", NULL);
    for (int i = 0; i < MAX_PLAYERS - 1; i++) {
        char account[8];
        snprintf(account, sizeof(account), "p%d", i);
        enter(f, account, two->row.id);
    }
    struct event e = asks(7, PLACE_CREATE, &far);
    e.place.region = USE;
    step(f, &e);
    struct room *three = spawned(f);
    assert_int_equal(look(f, EU, true, 8).n, 2); /* one that is starting is not open */
    init_room(f, three);
    struct seen seen = look(f, EU, true, 8);
    assert_int_equal(seen.n, 3);
    assert_true(seen.rooms[0] == two->row.id && seen.rooms[1] == one->row.id &&
                seen.rooms[2] == three->row.id);
    assert_int_equal(look(f, EU, false, 8).n, 2);
    assert_true(look(f, USE, false, 8).rooms[0] == three->row.id);
    assert_int_equal(look(f, USE, true, 1).n, 1);
    assert_true(view_next_seat_of(f->core, STR("far"), 0) == seat_of(f, "far")->row.id);
    west->silent = true;
    rooms_pass(f, 16 * 1000);
    assert_int_equal(look(f, USE, true, 8).n, 2);
    struct core_counts counts;
    core_count(f->core, &counts);
    assert_int_equal(counts.rooms_open, 3);
    assert_int_equal(counts.hosts, 2);
    assert_int_equal(counts.room_seats, MAX_PLAYERS + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOMS_TEST(an_empty_room_is_ended),
        ROOMS_TEST(an_empty_room_is_not_given_a_new_life_by_a_restart),
        ROOMS_TEST(a_room_that_lasts_too_long_is_ended),
        ROOMS_TEST(the_order_to_end_is_said_until_it_is_done),
        ROOMS_TEST(a_spawn_is_owed_after_a_restart),
        ROOMS_TEST(a_ticket_does_not_wait_for_ever),
        ROOMS_TEST(what_was_never_stored_never_was),
        ROOMS_TEST(who_waits_is_answered_after_a_lost_batch),
        ROOMS_TEST(limits_on_asking_outlive_a_lost_batch),
        ROOMS_TEST(while_nothing_can_be_stored_only_repeats_are_answered),
        ROOMS_TEST(operators_end_kick_and_terminate),
        ROOMS_TEST(an_operator_ends_a_room_that_is_starting),
        ROOMS_TEST(what_is_over_is_kept_up_to_a_limit),
        ROOMS_TEST(open_rooms_are_shown_best_first),
        ROOMS_TEST(a_loaded_core_shows_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "rooms.h"

static void a_host_registers_and_is_known_by_its_name(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    int64_t id = answered(f, EFFECT_HOST_BEAT, 900, 0)->object;
    assert_int_equal(count_notes(f, NOTE_HOST_REGISTERED), 1);
    h->cpu = 42;
    host_says(f, h);
    assert_true(answered(f, EFFECT_HOST_BEAT, 900, 0)->object == id);
    assert_int_equal(count_notes(f, NOTE_HOST_REGISTERED), 0);
    seal(f);
    assert_int_equal(f->batch.n_changes, 0); /* figures are soft */
    struct view_host view;
    assert_true(view_host(f->core, id, &view));
    assert_true(view.cpu_percent == 42);
    assert_int_equal(view.passed_over, HOST_PASSED_NOT);
    assert_true(view_host_named(f->core, STR("host-1")) == id);
    h->region = USE;
    host_says(f, h);
    assert_true(view_host(f->core, id, &view));
    assert_string_equal(view.region_name, "USE");
    seal(f);
    crash(f, 0);
    assert_true(view_host(f->core, id, &view));
    assert_string_equal(view.region_name, "USE");
    assert_int_equal(view.passed_over, HOST_PASSED_SILENT);
}

static void nonsense_is_refused(void **state)
{
    struct fixture *f = *state;
    struct fake_host h = {.name = "", .region = EU};
    host_says(f, &h);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_BAD_ARGUMENT);
    strcpy(h.name, "x");
    h.region = 40;
    host_says(f, &h);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_INVALID_REGION);
    h.region = EU;
    h.slots = -1;
    host_says(f, &h);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_INVALID_CAPACITY);
    f->config.limits.hosts = 0;
    rooms_reconfigure(f);
    h.slots = 0;
    host_says(f, &h);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_TOO_MANY);
}

static void a_reservation_stands_still_while_its_host_is_away(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    rooms_pass(f, 5000);
    h->silent = true;
    rooms_pass(f, 60 * 1000);
    assert_int_equal(room->reserved, 1);
    assert_true(seat_of(f, "ann")->row.deadline_core_ms == 0);
    struct view_room view;
    assert_true(view_room(f->core, room->row.id, &view));
    assert_true(view.host_away);
    answered(f, EFFECT_PLACED, enter(f, "ben", room->row.id), ERR_HOST_AWAY);
    h->silent = false;
    host_says(f, h);
    assert_int_equal(count_notes(f, NOTE_HOST_BACK), 1);
    int64_t left_ms = seat_of(f, "ann")->row.deadline_core_ms - f->now.core_ms;
    assert_in_range(left_ms, 5000, 15 * 1000);
    rooms_pass(f, left_ms - 1000);
    assert_int_equal(room->reserved, 1);
    rooms_pass(f, 1250);
    assert_int_equal(room->reserved, 0);
}

/* Its agent died at 20 s, the reservation ends at 30 s, and at 35 s the host counts as silent. */
static struct room *room_of_a_late_host(struct fixture *f, struct fake_host *h,
                                        char key[SEAT_KEY_SIZE])
{
    rooms_pass(f, HOST_BEAT_MS - f->now.core_ms % HOST_BEAT_MS);
    struct room *room = open_room(f, "ann", key);
    rooms_pass(f, 20 * 1000);
    h->silent = true;
    rooms_pass(f, 12 * 1000);
    assert_false(host_is_away(room->host));
    assert_true(seat_of(f, "ann")->row.deadline_core_ms < f->now.core_ms);
    return room;
}

static void a_reservation_does_not_run_out_while_a_heartbeat_is_overdue(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_of_a_late_host(f, h, key);
    h->silent = false;
    host_says(f, h);
    assert_int_equal(count_notes(f, NOTE_HOST_BACK), 0);
    rooms_pass(f, 4750); /* what its agent has queued comes first */
    say_joined(f, room, key, 2, 0);
    rooms_pass(f, 60 * 1000);
    assert_int_equal(room->taken, 1);
}

static void an_overdue_reservation_runs_out_soon_after_the_heartbeat(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_of_a_late_host(f, h, key);
    h->silent = false;
    host_says(f, h);
    rooms_pass(f, 4750);
    assert_int_equal(room->reserved, 1);
    rooms_pass(f, 250);
    assert_int_equal(room->reserved, 0);
}

static void an_overdue_reservation_stands_still_when_its_host_is_silent(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_of_a_late_host(f, h, key);
    rooms_pass(f, 30 * 1000);
    assert_true(host_is_away(room->host));
    assert_true(seat_of(f, "ann")->row.left_ms > 0);
    h->silent = false;
    host_says(f, h);
    rooms_pass(f, 4750);
    say_joined(f, room, key, 2, 0);
}

/* However short: a heartbeat every five seconds is late each time, by that measure. */
static void reservations_run_out_where_hosts_are_soon_silent(void **state)
{
    struct fixture *f = *state;
    f->config.timeouts.host_ms = 6000;
    rooms_reconfigure(f);
    (void)host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    rooms_pass(f, 36 * 1000);
    assert_int_equal(room->reserved, 0);
}

static void a_standing_reservation_survives_a_restart(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)open_room(f, "ann", NULL);
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    assert_true(seat_of(f, "ann")->row.left_ms > 0);
    seal(f);
    crash(f, 5 * 60 * 1000);
    rooms_pass(f, 60 * 1000);
    assert_non_null(seat_of(f, "ann"));
    host_says(f, h);
    assert_true(seat_of(f, "ann")->row.left_ms == 0);
    h->silent = false;
    rooms_pass(f, 31 * 1000);
    assert_null(seat_of(f, "ann"));
}

static void a_reservation_survives_a_restart_until_its_host_was_heard(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    int64_t id = room->row.id;
    seal(f);
    crash(f, 60 * 1000);
    add_tick(f);
    assert_non_null(seat_of(f, "ann"));
    host_says(f, h);
    rooms_pass(f, 4000);
    say_joined(f, room_find(f->core, id), key, 2, 0);
    rooms_pass(f, 60 * 1000);
    assert_int_equal(seat_of(f, "ann")->row.state, ROOM_SEAT_TAKEN);
}

static void a_host_that_stays_away_loses_its_rooms_and_is_forgotten(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    int64_t id = the_host(f, h)->row.id;
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    h->silent = true;
    rooms_pass(f, 16 * 1000);
    assert_int_equal(count_notes(f, NOTE_HOST_SILENT), 1);
    rooms_pass(f, 580 * 1000);
    assert_int_equal(room->row.state, ROOM_OPEN);
    rooms_pass(f, 10 * 1000);
    assert_int_equal(count_notes(f, NOTE_HOST_LOST), 1);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_HOST_LOST);
    assert_null(seat_of(f, "ann"));
    rooms_pass(f, 61 * 60 * 1000);
    struct view_host view;
    assert_false(view_host(f->core, id, &view));
    host_says(f, h);
    answered(f, EFFECT_HOST_BEAT, 900, 0);
}

static void a_lost_host_that_comes_back_ends_what_it_still_runs(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    h->silent = true;
    rooms_pass(f, 610 * 1000);
    assert_int_equal(room->row.state, ROOM_ENDED);
    host_says(f, h);
    const struct effect *e = nth_effect(f, EFFECT_TERMINATE, 0, 0);
    assert_non_null(e);
    assert_true(e->object == room->row.server);
    assert_int_equal(count_notes(f, NOTE_HOST_STRANGER), 1);
    struct view_host view;
    assert_true(view_host(f->core, the_host(f, h)->row.id, &view));
    assert_int_equal(view.strangers, 1);
}

/* After our data were lost, say: players may be on it. */
static void a_server_that_was_never_ours_is_told_of_once_and_left_alone(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    struct room foreign = {.row = {.id = 9000, .server = 9001}};
    host_runs(h, &foreign);
    host_says(f, h);
    assert_int_equal(count_notes(f, NOTE_HOST_STRANGER), 1);
    host_says(f, h);
    assert_int_equal(count_notes(f, NOTE_HOST_STRANGER), 0);
    assert_null(nth_effect(f, EFFECT_TERMINATE, 0, 0));
    assert_int_equal(room->row.state, ROOM_OPEN);
    struct view_host view;
    assert_true(view_host(f->core, the_host(f, h)->row.id, &view));
    assert_int_equal(view.strangers, 1);
}

static void a_room_missing_from_two_heartbeats_is_over(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    host_says(f, h);
    h->n_servers = 0;
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_OPEN);
    host_runs(h, room);
    host_says(f, h);
    h->n_servers = 0;
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_OPEN);
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_HOST_LOST);
}

static void a_spawn_on_its_way_is_not_missing(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    create(f, "ann");
    struct room *room = spawned(f);
    host_says(f, h);
    host_says(f, h);
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_STARTING);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard = (struct host_heard){.server = room->row.server, .spawn = true};
    step(f, &heard);
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_STARTING);
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_ENDED);
}

static void a_machine_under_another_name_keeps_its_rooms(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    struct fake_host *renamed = &rooms_hosts[1];
    *renamed = *h;
    renamed->silent = false;
    strcpy(renamed->name, "host-2");
    host_says(f, renamed);
    assert_string_equal(room->host->row.name, "host-2");
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 0);
    host_says(f, h);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 1);
    assert_int_equal(room->row.state, ROOM_OPEN);
}

static void our_own_sleep_makes_no_host_silent(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU)->silent = true;
    struct room *room = open_room(f, "ann", NULL);
    rooms_pass(f, 1000);
    f->now.core_ms += 120 * 1000;
    add_tick(f);
    assert_int_equal(count_notes(f, NOTE_HOST_SILENT), 0);
    assert_int_equal(room->reserved, 1);
}

static void while_nothing_can_be_stored_heartbeats_are_heard(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    int64_t id = room->row.id;
    seal(f);
    create(f, "ben"); /* this batch is lost */
    lose_batch(f);
    answered(f, EFFECT_PLACED, 0, ERR_INTERNAL);
    batch_clear(&f->batch);
    h->n_servers = 0;
    for (int i = 0; i < 3; i++) {
        struct event e = beat_of(h);
        add_step(f, &e);
    }
    assert_int_equal(count_effects(f, EFFECT_HOST_BEAT, 900), 3);
    assert_int_equal(room_find(f->core, id)->row.state, ROOM_OPEN);
    seal(f);
    struct fake_host other = {.name = "new", .region = EU};
    struct event e = beat_of(&other);
    add_step(f, &e);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_INTERNAL);
    store_up(f);
    create(f, "ben");
    (void)spawned(f);
}

static void a_second_silence_after_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)open_room(f, "ann", NULL);
    h->silent = true;
    rooms_pass(f, 16 * 1000); /* silent in this batch, which is lost */
    lose_batch(f);
    store_up(f);
    rooms_pass(f, 16 * 1000);
    assert_int_equal(count_notes(f, NOTE_HOST_SILENT), 1);
    assert_true(seat_of(f, "ann")->row.left_ms > 0);
    answered(f, EFFECT_PLACED, create(f, "ben"), ERR_NO_HOST);
}

/* ── whose a name is ───────────────────────────────────────────────────────────────────────── */

/* A heartbeat of that host with nothing on it, from another machine and another account. */
static void usurp(struct fixture *f, const struct fake_host *h)
{
    struct fake_host copy = {.region = USE};
    strcpy(copy.name, h->name);
    struct event e = beat_of(&copy);
    e.host_beat.account = STR("mallory");
    e.host_beat.url = STR("http://192.0.2.66:9510");
    step(f, &e);
}

static void a_name_belongs_to_the_account_that_registered_it(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    struct row_host before = the_host(f, h)->row;
    for (int i = 0; i < 3; i++) {
        seal(f);
        usurp(f, h);
        const struct effect *refusal = answered(f, EFFECT_HOST_BEAT, 900, ERR_FORBIDDEN);
        assert_true(str_eq(refusal->text, STR("Host host-1 belongs to another account.")));
        seal(f);
        assert_int_equal(f->batch.n_changes, 0);
    }
    assert_memory_equal(&the_host(f, h)->row, &before, sizeof(before));
    assert_int_equal(room->row.state, ROOM_OPEN);
    crash(f, 0); /* whose it is was stored */
    usurp(f, h);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_FORBIDDEN);
    host_says(f, h);
    answered(f, EFFECT_HOST_BEAT, 900, 0);
}

static void nobody_else_speaks_for_a_host(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    for (enum agent_verb verb = AGENT_INITED; verb < AGENT_VERBS; verb++) {
        struct event e = says(room, verb, 2);
        e.agent.account = STR("mallory");
        step(f, &e);
        const struct effect *refusal = answered(f, EFFECT_AGENT, 901, ERR_FORBIDDEN);
        assert_true(str_eq(refusal->text, STR("Host host-1 belongs to another account.")));
    }
    assert_int_equal(room->row.state, ROOM_OPEN);
    struct event e = says(room, AGENT_EXITED, 2);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

static void a_machine_of_another_account_cannot_list_a_room_away(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    struct fake_host thief = *h;
    strcpy(thief.name, "thief");
    struct event e = beat_of(&thief);
    e.host_beat.account = STR("mallory");
    step(f, &e);
    answered(f, EFFECT_HOST_BEAT, 900, 0);
    assert_string_equal(room->host->row.name, "host-1");
}

static void disable(struct fixture *f, const struct fake_host *h)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = 902};
    e.operate = (struct operate){.verb = OPERATE_DISABLE_HOST, .target = the_host(f, h)->row.id};
    step(f, &e);
    answered(f, EFFECT_OPERATED, 902, 0);
}

static void a_name_is_free_when_its_host_is_disabled_and_silent(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    int64_t id = the_host(f, h)->row.id;
    (void)open_room(f, "ann", NULL);
    disable(f, h);
    usurp(f, h); /* it is heard */
    answered(f, EFFECT_HOST_BEAT, 900, ERR_FORBIDDEN);
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    struct view_host before, after;
    assert_true(view_host(f->core, id, &before));
    assert_int_equal(before.rooms, 1);
    usurp(f, h);
    assert_true(answered(f, EFFECT_HOST_BEAT, 900, 0)->object == id);
    assert_true(view_host(f->core, id, &after));
    assert_string_equal(after.url, "http://192.0.2.66:9510");
    assert_true(after.disabled);
    assert_int_equal(after.rooms, 0);
    assert_true(after.registered_wall_ms > before.registered_wall_ms);
    host_says(f, h); /* and now it is the other's */
    answered(f, EFFECT_HOST_BEAT, 900, ERR_FORBIDDEN);
}

static void silence_alone_frees_no_name(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    h->silent = true;
    rooms_pass(f, 20 * 1000);
    usurp(f, h);
    answered(f, EFFECT_HOST_BEAT, 900, ERR_FORBIDDEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOMS_TEST(a_host_registers_and_is_known_by_its_name),
        ROOMS_TEST(nonsense_is_refused),
        ROOMS_TEST(a_reservation_stands_still_while_its_host_is_away),
        ROOMS_TEST(a_reservation_does_not_run_out_while_a_heartbeat_is_overdue),
        ROOMS_TEST(an_overdue_reservation_runs_out_soon_after_the_heartbeat),
        ROOMS_TEST(an_overdue_reservation_stands_still_when_its_host_is_silent),
        ROOMS_TEST(reservations_run_out_where_hosts_are_soon_silent),
        ROOMS_TEST(a_standing_reservation_survives_a_restart),
        ROOMS_TEST(a_reservation_survives_a_restart_until_its_host_was_heard),
        ROOMS_TEST(a_host_that_stays_away_loses_its_rooms_and_is_forgotten),
        ROOMS_TEST(a_lost_host_that_comes_back_ends_what_it_still_runs),
        ROOMS_TEST(a_server_that_was_never_ours_is_told_of_once_and_left_alone),
        ROOMS_TEST(a_room_missing_from_two_heartbeats_is_over),
        ROOMS_TEST(a_spawn_on_its_way_is_not_missing),
        ROOMS_TEST(a_machine_under_another_name_keeps_its_rooms),
        ROOMS_TEST(our_own_sleep_makes_no_host_silent),
        ROOMS_TEST(while_nothing_can_be_stored_heartbeats_are_heard),
        ROOMS_TEST(a_second_silence_after_a_lost_batch),
        ROOMS_TEST(a_name_belongs_to_the_account_that_registered_it),
        ROOMS_TEST(nobody_else_speaks_for_a_host),
        ROOMS_TEST(a_machine_of_another_account_cannot_list_a_room_away),
        ROOMS_TEST(a_name_is_free_when_its_host_is_disabled_and_silent),
        ROOMS_TEST(silence_alone_frees_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "rooms.h"

static void a_key_opens_one_seat_once(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    char other_key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    struct room *other = open_room(f, "ben", other_key);
    say_joined(f, room, other_key, 2, ERR_BAD_KEY);
    say_joined(f, room, "", 3, ERR_BAD_KEY);
    say_joined(f, room, "1.", 3, ERR_BAD_KEY);
    say_joined(f, other, key, 2, ERR_BAD_KEY);
    char forged[SEAT_KEY_SIZE];
    strcpy(forged, key);
    forged[strlen(forged) - 2] ^= 1;
    say_joined(f, room, forged, 4, ERR_BAD_KEY);
    say_joined(f, room, key, 5, 0);
    const struct effect *e = answered(f, EFFECT_AGENT, 901, 0);
    assert_true(str_eq(e->taken->account, STR("ann")));
    assert_true(str_eq(e->taken->info, STR("{}")));
    assert_true(str_eq(e->taken->sealed, STR("sealed")));
    assert_int_equal(e->verb, AGENT_JOINED);
    assert_int_equal(room->taken, 1);
    say_joined(f, room, key, 5, 0); /* repeated: the same answer */
    assert_true(str_eq(answered(f, EFFECT_AGENT, 901, 0)->taken->account, STR("ann")));
    say_joined(f, room, key, 6, ERR_KEY_USED);
    say_left(f, room, key, 7);
    assert_int_equal(room->taken, 0);
    say_left(f, room, key, 7);
    say_joined(f, room, key, 8, ERR_BAD_KEY);
}

static void who_came_from_an_address_that_is_banned_by_now_is_told_so(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "good", key);
    struct event ban = {.kind = EVENT_OPERATE, .conn = 6};
    ban.operate = (struct operate){.verb = OPERATE_BAN,
                                   .account = STR("bad"),
                                   .reason = STR("cheats"),
                                   .expires_wall_ms = f->now.wall_ms + 1000 * 1000};
    step(f, &ban);
    answered(f, EFFECT_PLACED, join(f, "bad", false), ERR_BANNED); /* from the same address */
    struct event e = says(room, AGENT_JOINED, 2);
    e.agent.key = str_of(key);
    step(f, &e);
    const struct effect *refusal = answered(f, EFFECT_AGENT, 901, ERR_BANNED);
    assert_true(str_eq(refusal->text, STR("the address of player good is banned: cheats")));
}

static void a_taken_seat_and_its_event_survive_a_restart(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    int64_t id = open_room(f, "ann", key)->row.id;
    say_joined(f, room_find(f->core, id), key, 5, 0);
    seal(f);
    crash(f, 1000);
    host_says(f, h);
    say_joined(f, room_find(f->core, id), key, 5, 0);
    say_joined(f, room_find(f->core, id), key, 6, ERR_KEY_USED);
}

static void a_reservation_runs_out(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    rooms_pass(f, 29750);
    assert_int_equal(room->reserved, 1);
    rooms_pass(f, 250);
    assert_int_equal(room->reserved, 0);
    say_joined(f, room, key, 2, ERR_BAD_KEY);
}

static void inited_may_come_twice(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    init_room(f, room);
    answered(f, EFFECT_PLACED, conn, 0);
    struct event e = says(room, AGENT_INITED, 1);
    e.agent.settings = STR("{\"map\":\"other\"}");
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
    assert_int_equal(count_effects(f, EFFECT_PLACED, 0), 0);
    assert_true(str_eq(room->row.settings, STR("{\"map\":\"dust\"}")));
}

static void inited_with_settings_that_are_none_is_refused(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    create(f, "ann");
    struct room *room = spawned(f);
    struct event e = says(room, AGENT_INITED, 1);
    e.agent.settings = STR("[1]");
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, ERR_BAD_ARGUMENT);
    assert_int_equal(room->row.state, ROOM_STARTING);
    init_room(f, room);
}

static void a_spawn_that_fails_soon_is_tried_on_another_host(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU)->cpu = 50;
    rooms_pass(f, HOST_BEAT_MS);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    assert_string_equal(room->host->row.name, "host-1");
    int64_t seat = container_of(list_first(&room->seats), struct room_seat, in_room)->row.id;
    say_exited(f, room, 1, 3);
    assert_int_equal(room->row.state, ROOM_ENDED);
    struct room *second = spawned(f);
    assert_string_equal(second->host->row.name, "host-2");
    assert_true(second->row.id != room->row.id && second->row.server != room->row.server);
    assert_true(str_eq(second->row.settings, room->row.settings));
    init_room(f, second);
    const struct effect *e = answered(f, EFFECT_PLACED, conn, 0);
    assert_true(e->placed->seats[0].seat == seat);
    struct view_room_ticket view;
    assert_true(view_room_ticket(f->core, e->ticket, &view));
    assert_int_equal(view.n_tries, 2);
    assert_string_equal(view.tries[0].outcome, "failed");
    assert_string_equal(view.tries[1].outcome, "opened");
    assert_string_equal(view.state, "done");
}

static void a_second_failure_is_the_answer(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    host_up(f, 2, EU);
    conn_id conn = create(f, "ann");
    say_exited(f, spawned(f), 1, 3);
    struct room *second = spawned(f);
    struct event e = says(second, AGENT_EXITED, 1);
    e.agent.exit_signal = 11;
    e.agent.tail = STR("oh no");
    step(f, &e);
    refused_with(f, conn, ERR_SPAWN_FAILED,
                 "the server was killed by signal 11 before it was ready");
    assert_true(
        str_eq(answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED)->placed->tail, STR("oh no")));
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    struct view_room view;
    assert_true(view_room(f->core, second->row.id, &view));
    assert_int_equal(view.exit_signal, 11);
    assert_string_equal(view.end_reason, "spawn_failed");
}

static int64_t retry_after_ms(struct fixture *f, conn_id conn, int err)
{
    return answered(f, EFFECT_PLACED, conn, err)->placed->retry_after_ms;
}

static void who_is_refused_is_told_when_a_host_is_back(void **state)
{
    struct fixture *f = *state;
    struct event heard = {.kind = EVENT_HOST_HEARD};
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    heard.host_heard = (struct host_heard){.server = spawned(f)->row.server,
                                           .spawn = true,
                                           .err = ERR_SPAWN_FAILED,
                                           .fault = FAULT_OF_HOST,
                                           .text = STR("no port is free")};
    step(f, &heard);
    assert_int_equal(retry_after_ms(f, conn, ERR_SPAWN_FAILED), 10 * 1000);
    rooms_pass(f, 4000);
    assert_int_equal(retry_after_ms(f, create(f, "ben"), ERR_NO_HOST), 6000);
    rooms_pass(f, 5500);
    assert_int_equal(retry_after_ms(f, create(f, "ben"), ERR_NO_HOST), 1000);
    host_up(f, 1, EU)->memory = 99; /* it may have memory again any moment */
    rooms_pass(f, HOST_BEAT_MS);
    create(f, "cid");
    heard.host_heard.server = spawned(f)->row.server;
    step(f, &heard);
    assert_int_equal(retry_after_ms(f, create(f, "ben"), ERR_NO_HOST), CHOICE_RETRY_MS);
}

static void who_may_try_another_host_at_once_is_told_so(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    host_up(f, 2, EU);
    conn_id conn = create(f, "ann");
    for (int i = 0; i < 2; i++) {
        struct event heard = {.kind = EVENT_HOST_HEARD};
        heard.host_heard = (struct host_heard){
            .server = spawned(f)->row.server, .spawn = true, .err = ERR_SPAWN_FAILED};
        step(f, &heard);
    }
    assert_int_equal(retry_after_ms(f, conn, ERR_SPAWN_FAILED), 1000);
}

static void a_late_failure_is_not_tried_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    host_runs(fake_of(room), room);
    rooms_pass(f, 11 * 1000);
    struct event e = says(room, AGENT_EXITED, 1);
    e.agent.exit_code = 1;
    step(f, &e);
    refused_with(f, conn, ERR_SPAWN_FAILED, "the server exited with status 1 before it was ready");
}

static void a_refused_spawn_goes_to_the_next_host(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    create(f, "ann");
    struct room *room = spawned(f);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard = (struct host_heard){.server = room->row.server,
                                           .spawn = true,
                                           .err = ERR_SPAWN_FAILED,
                                           .text = STR("no port is free")};
    step(f, &heard);
    assert_int_equal(room->row.state, ROOM_ENDED);
    struct view_room view;
    assert_true(view_room(f->core, room->row.id, &view));
    assert_true(str_eq(view.never_ran, STR("no port is free")));
    assert_string_equal(spawned(f)->host->row.name, "host-2");
}

static void a_spawn_that_nobody_hears_is_said_again_then_given_up(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard =
        (struct host_heard){.server = room->row.server, .spawn = true, .err = ERR_IO};
    for (int i = 0; i < 2; i++) {
        step(f, &heard);
        rooms_pass(f, 1000);
        assert_ptr_equal(spawned(f), room);
    }
    step(f, &heard);
    refused_with(f, conn, ERR_SPAWN_FAILED, "the agent of host host-1 cannot be reached");
    assert_int_equal(room->row.state, ROOM_ENDING); /* it may run */
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 1);
}

/* The login service is not the host's business, and another host would get no token either. */
static void a_host_is_not_blamed_for_the_login_service(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    host_up(f, 1, EU)->cpu = 90;
    host_says(f, &rooms_hosts[1]);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard = (struct host_heard){.server = room->row.server,
                                           .spawn = true,
                                           .err = ERR_LOGIN_FAILED,
                                           .text = STR("it answered 403")};
    for (int i = 0; i < 2; i++) {
        step(f, &heard);
        rooms_pass(f, 1000);
        assert_ptr_equal(spawned(f), room);
    }
    step(f, &heard);
    refused_with(f, conn, ERR_SPAWN_FAILED,
                 "the login service gave no token for the server: it answered 403");
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    assert_int_equal(host_passed_over(f->core, the_host(f, h)), HOST_PASSED_NOT);
    assert_int_equal(room->row.state, ROOM_ENDING);
}

static void a_host_is_not_blamed_for_a_slow_login_service(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    rooms_pass(f, 30 * 1000);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard = (struct host_heard){
        .server = room->row.server, .spawn = true, .err = ERR_LOGIN_FAILED, .text = STR("late")};
    step(f, &heard);
    rooms_pass(f, 4 * 1000);
    refused_with(f, conn, ERR_SPAWN_TIMEOUT,
                 "the login service gave no token for the server in time");
    assert_int_equal(host_passed_over(f->core, the_host(f, h)), HOST_PASSED_NOT);
}

static void a_spawn_that_never_reached_its_host_goes_elsewhere(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU)->silent = true;
    host_up(f, 1, EU)->cpu = 90;
    host_says(f, &rooms_hosts[1]);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    assert_string_equal(room->host->row.name, "host-1");
    rooms_pass(f, 14 * 1000);
    assert_int_equal(room->row.state, ROOM_STARTING);
    rooms_pass(f, 2 * 1000); /* it is silent by now, and said nothing of the spawn */
    assert_int_equal(room->row.state, ROOM_ENDING);
    struct room_ticket *ticket = room_ticket_find(f->core, room->row.ticket);
    struct room *second = room_find(f->core, ticket->row.room);
    assert_string_equal(second->host->row.name, "host-2");
    init_room(f, second);
    answered(f, EFFECT_PLACED, conn, 0);
}

static void a_spawn_that_was_taken_is_not_said_again(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    create(f, "ann");
    struct room *room = spawned(f);
    rooms_pass(f, 6000);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 1);
    struct event heard = {.kind = EVENT_HOST_HEARD};
    heard.host_heard = (struct host_heard){.server = room->row.server, .spawn = true};
    step(f, &heard);
    host_runs(&rooms_hosts[0], room);
    rooms_pass(f, 15 * 1000);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
}

/* Before the room is stored, so it is no more than a hint: once, and never instead of the spawn. */
static void its_host_may_begin_before_the_room_is_stored(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    create(f, "ann");
    const struct spawn *spawn = nth_effect(f, EFFECT_SPAWN, 0, 0)->spawn;
    assert_int_equal(f->batch.immediate.len, 1);
    assert_int_equal(f->batch.immediate.items[0].kind, EFFECT_PREPARE);
    assert_ptr_equal(f->batch.immediate.items[0].spawn, spawn);
    rooms_pass(f, 6000);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 1);
    assert_int_equal(f->batch.immediate.len, 0);
}

static void a_server_that_does_not_initialise_is_ended(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    host_runs(h, room);
    rooms_pass(f, 33 * 1000);
    refused_with(f, conn, ERR_SPAWN_TIMEOUT, "the server did not initialise in 30 s");
    assert_int_equal(room->row.state, ROOM_ENDING);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 1);
    struct event e = says(room, AGENT_INITED, 1);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, ERR_ALREADY_OVER);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 1);
    h->n_servers = 0;
    host_says(f, h);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_SPAWN_TIMEOUT);
}

static void the_agents_own_report_of_a_timeout_is_one(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    host_runs(h, room);
    rooms_pass(f, 29900); /* clocks differ */
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.ran = e.agent.timed_out = true;
    e.agent.exit_signal = 9;
    e.agent.text = STR("did not initialise in 30 s");
    e.agent.tail = STR("loading");
    step(f, &e);
    refused_with(f, conn, ERR_SPAWN_TIMEOUT, "did not initialise in 30 s");
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_true(str_eq(room->row.tail, STR("loading")));
}

static void how_a_failed_start_ended_is_kept(void **state)
{
    struct fixture *f = *state;
    struct view_room view;
    host_up(f, 0, EU);
    create(f, "ann");
    struct room *room = spawned(f);
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.ran = true;
    e.agent.exit_code = 77;
    e.agent.run_ms = 0; /* it may be as quick as that */
    e.agent.peak_memory = 4096;
    e.agent.dropped_bytes = 9;
    e.agent.tail = STR("no such map");
    step(f, &e);
    assert_true(view_room(f->core, room->row.id, &view));
    assert_string_equal(view.end_reason, "spawn_failed");
    assert_true(view.exit_seen);
    assert_int_equal(view.exit_code, 77);
    assert_int_equal(view.peak_memory, 4096);
    assert_int_equal(view.dropped_bytes, 9);
    assert_true(str_eq(view.tail, STR("no such map")));
    assert_true(str_eq(view.never_ran, STR("")));
    e.agent.exit_code = 1; /* its repeat, if it were another */
    step(f, &e);
    assert_int_equal(room->row.exit_code, 77);
}

static void why_one_never_ran_is_kept(void **state)
{
    struct fixture *f = *state;
    struct view_room view;
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    assert_true(view_room(f->core, room->row.id, &view));
    assert_false(view.exit_seen);
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.text = STR("cannot execute bin/game: No such file or directory");
    step(f, &e);
    const struct effect *answer = answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
    assert_int_equal(answer->placed->tail.len, 0); /* it printed nothing */
    assert_true(view_room(f->core, room->row.id, &view));
    assert_false(view.exit_seen);
    assert_true(str_eq(view.never_ran, e.agent.text));
    assert_true(str_eq(view.tail, STR("")));
}

/* It was ended before it was ready, so it tells that it failed. */
static void a_start_that_was_ended_is_over_when_its_agent_says_so(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    create(f, "ann");
    struct room *room = spawned(f);
    host_runs(h, room);
    struct event end = {.kind = EVENT_OPERATE, .conn = 6};
    end.operate =
        (struct operate){.verb = OPERATE_TERMINATE, .target = room->row.server, .who = STR("root")};
    step(f, &end);
    assert_int_equal(room->row.state, ROOM_ENDING);
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.ran = true;
    e.agent.exit_signal = 15;
    e.agent.run_ms = 20;
    host_drops(h, room->row.server);
    step(f, &e);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_BY_OPERATOR);
    assert_int_equal(room->row.exit_signal, 15);
    assert_int_equal(count_notes(f, NOTE_HOST_BACKOFF), 0);
}

static void an_exit_ends_the_room_with_a_report(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    say_joined(f, room, key, 2, 0);
    say_exited(f, room, 3, 7);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_EXITED);
    assert_int_equal(room->row.exit_code, 7);
    assert_null(seat_of(f, "ann"));
    struct view_room view;
    assert_true(view_room(f->core, room->row.id, &view));
    assert_true(str_eq(view.tail, STR("last words")));
    answered(f, EFFECT_PLACED, enter(f, "ann", room->row.id), ERR_NO_ROOM);
    say_exited(f, room, 3, 7);
    int64_t id = room->row.id;
    rooms_pass(f, f->config.timeouts.keep_ms);
    assert_false(view_room(f->core, id, &view));
}

static void one_that_hung_is_told_from_one_that_exited(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", key);
    struct event e = says(room, AGENT_EXITED, 2);
    e.agent.exit_signal = 9;
    e.agent.run_ms = 100;
    e.agent.hung = true;
    step(f, &e);
    assert_int_equal(room->row.state, ROOM_ENDED);
    assert_int_equal(room->row.end_reason, END_HUNG);
}

static void who_speaks_for_another_hosts_server_is_refused(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    host_up(f, 0, EU);
    host_up(f, 1, EU)->cpu = 99;
    rooms_pass(f, HOST_BEAT_MS);
    struct room *room = open_room(f, "ann", key);
    struct event e = says(room, AGENT_JOINED, 2);
    e.agent.host = STR("host-2");
    e.agent.key = str_of(key);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, ERR_NOT_FOUND);
    e.agent.verb = AGENT_EXITED;
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, ERR_NOT_FOUND);
    assert_int_equal(room->row.state, ROOM_OPEN);
    assert_int_equal(seat_of(f, "ann")->row.state, ROOM_SEAT_RESERVED);
}

static void what_is_too_long_is_cut(void **state)
{
    struct fixture *f = *state;
    static char text[8000];
    host_up(f, 0, EU);
    conn_id conn = create(f, "ann");
    struct room *room = spawned(f);
    for (size_t i = 0; i + 1 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.text = (struct str){text + 1, sizeof(text) - 1}; /* the cut is inside a character */
    e.agent.tail = (struct str){text, sizeof(text) - 1};
    step(f, &e);
    const struct effect *refusal = answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
    assert_int_equal(refusal->text.len, 1023);
    assert_int_equal(refusal->placed->tail.len, 4095);
    assert_int_equal((uint8_t)refusal->placed->tail.at[0], 0xC3);
    seal(f);
}

static void events_of_nobodys_server_are_answered(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    static const struct {
        enum agent_verb verb;
        int err;
    } want[] = {
        {AGENT_INITED, ERR_ALREADY_OVER},
        {AGENT_FAILED, 0},
        {AGENT_EXITED, 0},
        {AGENT_JOINED, ERR_BAD_KEY},
        {AGENT_LEFT, 0},
        {AGENT_UPDATE_SETTINGS, ERR_NO_ROOM},
        {AGENT_CHECK_DEPLOYMENT, ERR_NO_ROOM},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        struct event e = {.kind = EVENT_AGENT, .conn = 901};
        e.agent = (struct agent_event){.verb = want[i].verb,
                                       .host = STR("host-1"),
                                       .account = STR(ROOMS_ACCOUNT),
                                       .server = 12345};
        step(f, &e);
        answered(f, EFFECT_AGENT, 901, want[i].err);
        assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), want[i].verb == AGENT_INITED);
    }
}

static void deployments_can_be_asked_for(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    struct event e = says(room, AGENT_CHECK_DEPLOYMENT, 2);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
    f->config.fleets[1].versions[0].disabled = true;
    rooms_reconfigure(f);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, ERR_VERSION_DISABLED);
    f->config.fleets[1].n_versions = 0;
    rooms_reconfigure(f);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, ERR_NO_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOMS_TEST(a_key_opens_one_seat_once),
        ROOMS_TEST(who_came_from_an_address_that_is_banned_by_now_is_told_so),
        ROOMS_TEST(a_taken_seat_and_its_event_survive_a_restart),
        ROOMS_TEST(a_reservation_runs_out),
        ROOMS_TEST(inited_may_come_twice),
        ROOMS_TEST(inited_with_settings_that_are_none_is_refused),
        ROOMS_TEST(a_spawn_that_fails_soon_is_tried_on_another_host),
        ROOMS_TEST(a_second_failure_is_the_answer),
        ROOMS_TEST(who_is_refused_is_told_when_a_host_is_back),
        ROOMS_TEST(who_may_try_another_host_at_once_is_told_so),
        ROOMS_TEST(a_late_failure_is_not_tried_again),
        ROOMS_TEST(a_refused_spawn_goes_to_the_next_host),
        ROOMS_TEST(a_spawn_that_nobody_hears_is_said_again_then_given_up),
        ROOMS_TEST(a_host_is_not_blamed_for_the_login_service),
        ROOMS_TEST(a_host_is_not_blamed_for_a_slow_login_service),
        ROOMS_TEST(a_spawn_that_never_reached_its_host_goes_elsewhere),
        ROOMS_TEST(a_spawn_that_was_taken_is_not_said_again),
        ROOMS_TEST(its_host_may_begin_before_the_room_is_stored),
        ROOMS_TEST(a_server_that_does_not_initialise_is_ended),
        ROOMS_TEST(the_agents_own_report_of_a_timeout_is_one),
        ROOMS_TEST(how_a_failed_start_ended_is_kept),
        ROOMS_TEST(why_one_never_ran_is_kept),
        ROOMS_TEST(a_start_that_was_ended_is_over_when_its_agent_says_so),
        ROOMS_TEST(an_exit_ends_the_room_with_a_report),
        ROOMS_TEST(one_that_hung_is_told_from_one_that_exited),
        ROOMS_TEST(who_speaks_for_another_hosts_server_is_refused),
        ROOMS_TEST(what_is_too_long_is_cut),
        ROOMS_TEST(events_of_nobodys_server_are_answered),
        ROOMS_TEST(deployments_can_be_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

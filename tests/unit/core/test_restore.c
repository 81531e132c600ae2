/* Setting a folder back to an older moment: what was said in the time that is lost is out there. */
#include "unit/core/lobbies.h"
#include "unit/core/seekers.h"

static struct buf kept; /* the journal of the moment that is gone back to */
static struct instant kept_at;
static int64_t kept_seq;

static void keep(struct fixture *f)
{
    seal(f);
    buf_clear(&kept);
    buf_append(&kept, f->journal.data, f->journal.len);
    kept_at = f->now;
    kept_seq = core_seq(f->core);
}

static struct core *core_with(struct fixture *f, const struct buf *journal)
{
    struct change change;
    struct core *core = core_new(&f->config, fixture_secret);
    struct cursor c = cursor_of(journal->data, journal->len);
    while (change_decode(&c, &change))
        assert_int_equal(core_load(core, &change), 0);
    return core;
}

/* As `muster restore` does it, at the fixture's wall time, on another machine or over the folder
 * that was served last; then a start. */
static int64_t set_back_in(struct fixture *f, bool same_folder)
{
    struct batch batch = {0};
    int64_t epoch = 0;
    seal(f);
    struct core *core = core_with(f, &kept);
    struct core *before = same_folder ? core_with(f, &f->journal) : NULL;
    struct core_back how = {.seq = kept_seq,
                            .then = kept_at,
                            .wall_ms = f->now.wall_ms,
                            .who = STR("root"),
                            .before = before,
                            .before_seq = core_seq(f->core)};
    assert_int_equal(core_restore(core, &how, &batch, &epoch), 0);
    core_free(core);
    core_free(before);
    core_free(f->core);
    batch_clear(&f->batch);
    buf_clear(&f->journal);
    buf_append(&f->journal, kept.data, kept.len);
    buf_append(&f->journal, batch.changes.data, batch.changes.len);
    f->now.core_ms = core_resume_ms(batch.core_ms, batch.wall_ms, f->now.wall_ms);
    f->core = load_journal(f, f->now, batch.seq);
    assert_int_equal(core_epoch(f->core), epoch);
    batch_done(&batch);
    for (size_t i = 0; i < f->n_servers; i++)
        f->servers[i].conn = 0;
    return epoch;
}

static int64_t set_back(struct fixture *f)
{
    return set_back_in(f, false);
}

static int teardown(void **state)
{
    buf_done(&kept);
    return fixture_teardown(state);
}

#define RESTORE_TEST(name) cmocka_unit_test_setup_teardown(name, rooms_setup, teardown)
#define SEEKING_TEST(name) cmocka_unit_test_setup_teardown(name, seekers_setup, teardown)

static void no_number_of_the_lost_time_is_given_again(void **state)
{
    struct fixture *f = *state;
    int64_t given[ROW_KINDS];
    keep(f);
    conn_id chat = chat_up(f, "cs");
    server_up(f, 2000, 100);
    for (int32_t lobby = 1; lobby <= 50; lobby++)
        (void)open_match(f, chat, lobby, NULL);
    pass(f, 3600 * 1000);
    memcpy(given, f->core->next_id, sizeof(given));
    int64_t seq = core_seq(f->core);
    set_back(f);
    assert_true(core_seq(f->core) > seq);
    for (int kind = 0; kind < ROW_KINDS; kind++)
        assert_true(f->core->next_id[kind] > given[kind]);
}

/* The second one knows nothing of the first. */
static void the_same_backup_can_be_restored_twice(void **state)
{
    struct fixture *f = *state;
    int64_t given[ROW_KINDS];
    keep(f);
    pass(f, 60 * 1000);
    int64_t first = set_back(f);
    conn_id chat = chat_up(f, "cs");
    match_list(f, server_up(f, 2000, 100), 0);
    for (int32_t lobby = 1; lobby <= 50; lobby++)
        (void)open_match(f, chat, lobby, NULL);
    pass(f, 10 * 1000);
    memcpy(given, f->core->next_id, sizeof(given));
    int64_t seq = core_seq(f->core);
    assert_true(set_back(f) > first);
    assert_true(core_seq(f->core) > seq);
    for (int kind = 0; kind < ROW_KINDS; kind++)
        assert_true(f->core->next_id[kind] >= given[kind]);
}

/* … but its rows are there, so the clock may say what it likes. */
static void numbers_of_the_folder_are_not_given_again(void **state)
{
    struct fixture *f = *state;
    int64_t given[ROW_KINDS];
    keep(f);
    int64_t wall_ms = f->now.wall_ms;
    pass(f, 3600 * 1000);
    int64_t first = set_back_in(f, true);
    conn_id chat = chat_up(f, "cs");
    match_list(f, server_up(f, 2000, 100), 0);
    for (int32_t lobby = 1; lobby <= 50; lobby++)
        (void)open_match(f, chat, lobby, NULL);
    memcpy(given, f->core->next_id, sizeof(given));
    int64_t seq = core_seq(f->core);
    f->now.wall_ms = wall_ms - 7200 * 1000;
    assert_true(set_back_in(f, true) > first);
    assert_true(core_seq(f->core) > seq + 1); /* a reader finds a gap */
    for (int kind = 0; kind < ROW_KINDS; kind++)
        assert_true(f->core->next_id[kind] >= given[kind]);
}

static const struct effect *operate_as(struct fixture *f, enum operate_verb verb, int64_t target)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = new_conn(f)};
    e.operate = (struct operate){.verb = verb,
                                 .target = target,
                                 .who = STR("admin"),
                                 .name = STR("servers"),
                                 .role = ROLE_SERVER,
                                 .fleet = STR("default"),
                                 .regions = 1 << EU};
    step(f, &e);
    return answered(f, EFFECT_OPERATED, e.conn, 0);
}

static void text_of(char dst[ENROLMENT_TOKEN_SIZE], const struct effect *e)
{
    assert_true(str_copy(dst, ENROLMENT_TOKEN_SIZE, e->token));
}

/* It may have leaked, and have been revoked for that. */
static void a_token_of_the_lost_time_is_not_made_again(void **state)
{
    struct fixture *f = *state;
    char first[ENROLMENT_TOKEN_SIZE];
    char lost[ENROLMENT_TOKEN_SIZE];
    char now[ENROLMENT_TOKEN_SIZE];
    struct enrolment scratch;
    const struct effect *e = operate_as(f, OPERATE_ENROL, 0);
    int64_t id = e->object;
    f->core->config.any_token = f->config.any_token = false;
    text_of(first, e);
    keep(f);
    text_of(lost, operate_as(f, OPERATE_ROTATE, id));
    (void)operate_as(f, OPERATE_REVOKE, id);
    set_back(f);
    assert_non_null(enrolment_find(f->core, str_of(first), ROLE_SERVER, &scratch));
    assert_null(enrolment_find(f->core, str_of(lost), ROLE_SERVER, &scratch));
    text_of(now, operate_as(f, OPERATE_ROTATE, id));
    assert_string_not_equal(now, lost);
    assert_null(enrolment_find(f->core, str_of(lost), ROLE_SERVER, &scratch));
}

static void a_token_of_the_folder_is_not_made_again(void **state)
{
    struct fixture *f = *state;
    char lost[ENROLMENT_TOKEN_SIZE];
    char now[ENROLMENT_TOKEN_SIZE];
    int64_t id = operate_as(f, OPERATE_ENROL, 0)->object;
    keep(f);
    pass(f, 3600 * 1000);
    int64_t wall_ms = f->now.wall_ms;
    set_back_in(f, true);
    text_of(lost, operate_as(f, OPERATE_ROTATE, id));
    f->now.wall_ms = wall_ms; /* so by the clock alone they would be the same */
    set_back_in(f, true);
    text_of(now, operate_as(f, OPERATE_ROTATE, id));
    assert_string_not_equal(now, lost);
}

/* ── what was being started ────────────────────────────────────────────────────────────────── */

/* It was opened in the lost time and is played; its server is full with it. */
static void a_match_that_was_being_opened_is_neither_asked_for_nor_cancelled(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id chat = chat_up(f, "cs");
    conn_id server = server_up(f, 2000, 1);
    ask(f, chat, 7);
    keep(f);
    ack(f, server, 7, true);
    assert_true(str_copy(token, sizeof(token), answered(f, EFFECT_ALLOCATED, chat, 0)->token));
    set_back(f);
    server = server_back(f, 2000, 1);
    match_list(f, server, 1, 7);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
    assert_int_equal(server_of(f, server)->n_strangers, 1);
    for (int i = 0; i < 60; i++) { /* until long after its ticket would have run out */
        pass(f, 1000);
        heartbeat(f, server, 1, 10, 10);
        assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
        assert_int_equal(count_effects(f, EFFECT_CANCEL, 0), 0);
    }
    assert_null(core_check(f->core));
}

/* Who was never answered asks again. */
static void a_request_that_is_repeated_has_a_new_answer(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    conn_id chat = chat_up(f, "cs");
    conn_id server = server_up(f, 2000, 1);
    ask(f, chat, 7);
    assert_true(str_copy(token, sizeof(token), effect(f, EFFECT_ALLOCATE, server)->token));
    keep(f);
    set_back(f);
    chat = chat_up(f, "cs");
    server = server_back(f, 2000, 1);
    match_list(f, server, 0);
    ask(f, chat, 7);
    assert_false(str_eq(effect(f, EFFECT_ALLOCATE, server)->token, str_of(token)));
    ack(f, server, 7, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

/* It is new to us only: what it holds is heard before it is given more. */
static void a_server_that_came_in_the_lost_time_lists_its_matches(void **state)
{
    struct fixture *f = *state;
    keep(f);
    conn_id chat = chat_up(f, "cs");
    (void)server_up(f, 2000, 1);
    (void)open_match(f, chat, 7, NULL);
    set_back(f);
    chat = chat_up(f, "cs");
    conn_id server = say_server_hello(f, server_hello_of(2000, 1));
    remember_server(f, server, effect(f, EFFECT_SERVER_HELLO, server)->server_id);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, server), 1);
    ask(f, chat, 8);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    match_list(f, server, 1, 7);
    ask(f, chat, 8);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    match_ended(f, server, 7);
    heartbeat(f, server, 0, 10, 10);
    ask(f, chat, 8);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, server), 1);
}

/* Match 7 ended in the lost time and another had its id: what is cancelled is not what is there. */
static void a_slot_is_free_when_the_server_has_listed_what_it_holds(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "cs");
    (void)server_up(f, 2000, 1);
    (void)open_match(f, chat, 7, NULL);
    keep(f);
    set_back(f);
    chat = chat_up(f, "cs");
    conn_id server = server_back(f, 2000, 1);
    match_list(f, server, 1, 7);
    cancel(f, chat, 7);
    assert_int_equal(count_effects(f, EFFECT_CANCEL, server), 1);
    ask(f, chat, 8);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    cancel_ack(f, server, 7);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, server), 1);
    ask(f, chat, 8);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    match_list(f, server, 1, 7);
    ask(f, chat, 8);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    match_list(f, server, 0);
    ask(f, chat, 8);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, server), 1);
    assert_null(core_check(f->core));
}

/* Its players started in the lost time, or wait: nobody knows. Each hears that it is over, and its
 * match is not cancelled when the time to load has passed. */
static void a_lobby_that_was_loading_is_over(void **state)
{
    struct fixture *f = *state;
    conn_id players[FOUR];
    char token[TOKEN_SIZE];
    (void)server_up(f, 2000, 1);
    int64_t id = serve_four(f, players, token);
    keep(f);
    load_all(f, id, players, FOUR);
    assert_int_equal(state_of_lobby(f, id), LOBBY_STARTED);
    set_back(f);
    assert_int_equal(state_of_lobby(f, id), LOBBY_ABORTED);
    assert_string_equal(reason_of_lobby(f, id), "Muster was set back to a backup");
    conn_id server = server_back(f, 2000, 1);
    match_list(f, server, 1, lobby_number(id));
    for (int i = 0; i < 90; i++) {
        pass(f, 1000);
        heartbeat(f, server, 1, 10, 10);
        assert_int_equal(count_effects(f, EFFECT_CANCEL, 0), 0);
    }
    for (int i = 0; i < FOUR; i++) {
        conn_id conn = client_up(f, four[i].account);
        assert_int_equal(effect(f, EFFECT_MATCH_ABORTED, conn)->lobby, lobby_number(id));
    }
    assert_null(core_check(f->core));
}

/* It initialised in the lost time, and ann plays there. */
static void a_room_that_was_starting_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)create(f, "ann");
    struct room *room = spawned(f);
    int64_t id = room->row.id;
    int64_t server = room->row.server;
    keep(f);
    init_room(f, room);
    set_back(f);
    assert_null(room_find(f->core, id));
    for (int i = 0; i < 60; i++) {
        rooms_pass(f, 1000);
        host_says(f, h);
        assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
        assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 0);
    }
    assert_int_equal(the_host(f, h)->strangers, 1);
    assert_null(seat_of(f, "ann"));
    (void)create(f, "ann"); /* who was never answered asks again */
    assert_true(spawned(f)->row.server > server);
    assert_null(core_check(f->core));
}

/* A bus may wait for it. */
static void an_allocation_whose_room_was_starting_looks_for_another(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct event e = wants_by_bus(f, "first", "ann");
    step(f, &e);
    int64_t server = spawned(f)->row.server;
    is_in_state(f, "first", ALLOCATION_OPEN);
    keep(f);
    pass(f, 600 * 1000);
    set_back(f);
    assert_null(core_check(f->core));
    host_says(f, h);
    struct room *room = spawned(f);
    assert_true(room->row.server > server);
    init_room(f, room);
    is_in_state(f, "first", ALLOCATION_DONE);
    assert_null(core_check(f->core));
}

/* ann and ben are a party, and one of them has joined; the friends' room is full, so she who asks
 * that both move stands in line. */
static void party_in_line(struct fixture *f, const char *joined)
{
    char key[SEAT_KEY_SIZE];
    arena_of(f)->taken_at_once = false;
    rooms_reconfigure(f);
    (void)host_up(f, 0, EU);
    (void)room_with(f, "p1,p2,p3,p4");
    struct room *room = open_room(f, "q1", NULL);
    found_in(f, asks_for(f, "both", "ann", "", "ben"), room);
    (void)seat_key(f->core, seat_of(f, joined)->row.id, key);
    say_joined(f, room, key, 2, 0);
    struct event e = wants(f, "move", "ann");
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    e.seek.move_party = true;
    step(f, &e);
    queued_at(f, e.conn, 1);
    assert_int_equal(allocation_players(allocation_of(f, "move")), 2);
}

static void is_alone(struct fixture *f, const char *name)
{
    assert_null(core_check(f->core));
    is_in_state(f, name, ALLOCATION_QUEUED);
    assert_int_equal(allocation_players(allocation_of(f, name)), 1);
    assert_null(allocation_of_player(f->core, allocation_of(f, name)->row.fleet, STR("ben")));
}

/* As whenever somebody's seat goes: he is of the party no more, and is not taken along. */
static void whose_seat_is_dropped_waits_with_his_party_no_more(void **state)
{
    struct fixture *f = *state;
    party_in_line(f, "ann");
    keep(f);
    set_back(f);
    is_alone(f, "move");
    crash(f, 1000);
    is_alone(f, "move");
}

static void who_asked_and_is_dropped_moves_alone(void **state)
{
    struct fixture *f = *state;
    party_in_line(f, "ben");
    keep(f);
    set_back(f);
    is_alone(f, "move");
    assert_non_null(seat_of(f, "ben"));
}

/* Nobody is dropped whose player is there, nor whoever was named. */
static void a_party_that_is_there_waits_as_before(void **state)
{
    struct fixture *f = *state;
    char key[SEAT_KEY_SIZE];
    party_in_line(f, "ann");
    queued_at(f, asks_for(f, "named", "cat", "p1", "dan"), 2);
    (void)seat_key(f->core, seat_of(f, "ben")->row.id, key);
    say_joined(f, seat_of(f, "ben")->room, key, 3, 0);
    keep(f);
    set_back(f);
    assert_null(core_check(f->core));
    assert_int_equal(allocation_players(allocation_of(f, "move")), 2);
    assert_int_equal(allocation_players(allocation_of(f, "named")), 2);
}

/* ── rooms ─────────────────────────────────────────────────────────────────────────────────── */

/* ben got his seat in the lost time and plays: his place is nobody else's. */
static void a_room_takes_no_more_than_were_known(void **state)
{
    struct fixture *f = *state;
    char ann[SEAT_KEY_SIZE];
    char ben[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", ann);
    int64_t id = room->row.id;
    say_joined(f, room, ann, 2, 0);
    keep(f);
    key_of_answer(f, enter(f, "ben", id), ben);
    say_joined(f, room, ben, 3, 0);
    set_back(f);
    host_says(f, h);
    room = room_find(f->core, id);
    assert_int_equal(room->row.state, ROOM_OPEN);
    assert_int_equal(room_free_seats(room), 0);
    answered(f, EFFECT_PLACED, enter(f, "cid", id), ERR_NO_PLACE);
    say_left(f, room, ann, 4); /* one of those who were counted makes way for one */
    assert_int_equal(room_free_seats(room), 1);
    answered(f, EFFECT_PLACED, enter(f, "cid", id), 0);
    answered(f, EFFECT_PLACED, enter(f, "dan", id), ERR_NO_PLACE);
}

/* ann came in the lost time, and so did ben: when her reservation runs out no place is free. */
static void a_seat_whose_player_had_not_come_is_no_place(void **state)
{
    struct fixture *f = *state;
    char ann[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", ann);
    int64_t id = room->row.id;
    keep(f);
    say_joined(f, room, ann, 2, 0);
    (void)enter(f, "ben", id);
    set_back(f);
    host_says(f, h);
    assert_null(seat_of(f, "ann"));
    rooms_pass(f, 120 * 1000);
    room = room_find(f->core, id);
    assert_int_equal(room->row.state, ROOM_OPEN);
    assert_int_equal(room_free_seats(room), 0);
    answered(f, EFFECT_PLACED, enter(f, "cid", id), ERR_NO_PLACE);
    assert_null(core_check(f->core));
}

/* ben came in the lost time: he is there when ann has left. */
static void a_room_where_nobody_is_known_is_not_ended_for_that(void **state)
{
    struct fixture *f = *state;
    char ann[SEAT_KEY_SIZE];
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", ann);
    int64_t id = room->row.id;
    say_joined(f, room, ann, 2, 0);
    keep(f);
    set_back(f);
    host_says(f, h);
    say_left(f, room_find(f->core, id), ann, 3);
    rooms_pass(f, 1200 * 1000);
    assert_int_equal(room_find(f->core, id)->row.state, ROOM_OPEN);
    crash(f, 1000);
    host_says(f, h);
    rooms_pass(f, 600 * 1000);
    assert_int_equal(room_find(f->core, id)->row.state, ROOM_OPEN);
    rooms_pass(f, 2400 * 1000); /* but no longer than any room */
    assert_true(room_is_over(room_find(f->core, id)));
}

static void a_room_of_the_lost_time_goes_on_for_its_time(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    keep(f);
    int64_t lost = open_room(f, "ann", NULL)->row.server;
    set_back(f);
    assert_null(room_of_server(f->core, lost));
    host_says(f, h);
    assert_int_equal(the_host(f, h)->strangers, 1);
    assert_int_equal(count_effects(f, EFFECT_TERMINATE, 0), 0);
    struct room *other = open_room(f, "ben", NULL);
    assert_true(other->row.server > lost);
    f->now.core_ms += 3600 * 1000; /* no room of that time can be open any more */
    f->now.wall_ms += 3600 * 1000;
    host_says(f, h);
    assert_int_equal(nth_effect(f, EFFECT_TERMINATE, 0, 0)->object, lost);
}

/* As after any restart: what its host does not list is over. */
static void a_room_that_ended_in_the_lost_time_is_over(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = open_room(f, "ann", NULL);
    int64_t id = room->row.id;
    int64_t server = room->row.server;
    keep(f);
    host_drops(h, server);
    set_back(f);
    host_says(f, h);
    host_says(f, h);
    assert_true(room_is_over(room_find(f->core, id)));
}

static void it_stands_in_the_audit(void **state)
{
    struct fixture *f = *state;
    keep(f);
    pass(f, 5000);
    set_back(f);
    size_t at = 0;
    const struct audit *audit = object_next(f->core, ROW_audit, &at);
    const struct audit *last = audit;
    while ((audit = object_next(f->core, ROW_audit, &at)))
        last = audit->row.id > last->row.id ? audit : last;
    assert_int_equal(last->row.verb, OPERATE_RESTORE);
    assert_string_equal(last->row.who, "root");
    assert_non_null(strstr(last->row.detail, "5 s before"));
}

static void only_the_newest_restores_are_kept(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 12; i++) {
        keep(f);
        pass(f, 2000);
        set_back(f);
    }
    assert_int_equal(f->core->rolls[ROW_restore].n, 8);
    crash(f, 1000);
    assert_int_equal(f->core->rolls[ROW_restore].n, 8);
}

static void numbers_that_run_out_are_refused(void **state)
{
    struct fixture *f = *state;
    struct batch batch = {0};
    int64_t epoch = 0;
    struct core *core = core_new(&f->config, fixture_secret);
    struct change full = {.kind = ROW_counter,
                          .id = ROW_server,
                          .counter = {.id = ROW_server, .next = INT32_MAX - 1000}};
    assert_int_equal(core_load(core, &full), 0);
    struct core_back how = {
        .seq = 1, .then = f->now, .wall_ms = f->now.wall_ms, .who = STR("root")};
    assert_int_equal(core_restore(core, &how, &batch, &epoch), ERR_TOO_MANY);
    core_free(core);
    batch_done(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RESTORE_TEST(no_number_of_the_lost_time_is_given_again),
        RESTORE_TEST(the_same_backup_can_be_restored_twice),
        RESTORE_TEST(numbers_of_the_folder_are_not_given_again),
        RESTORE_TEST(a_token_of_the_lost_time_is_not_made_again),
        RESTORE_TEST(a_token_of_the_folder_is_not_made_again),
        RESTORE_TEST(a_match_that_was_being_opened_is_neither_asked_for_nor_cancelled),
        RESTORE_TEST(a_request_that_is_repeated_has_a_new_answer),
        RESTORE_TEST(a_server_that_came_in_the_lost_time_lists_its_matches),
        RESTORE_TEST(a_slot_is_free_when_the_server_has_listed_what_it_holds),
        RESTORE_TEST(a_lobby_that_was_loading_is_over),
        RESTORE_TEST(a_room_that_was_starting_is_left_alone),
        SEEKING_TEST(an_allocation_whose_room_was_starting_looks_for_another),
        SEEKING_TEST(whose_seat_is_dropped_waits_with_his_party_no_more),
        SEEKING_TEST(who_asked_and_is_dropped_moves_alone),
        SEEKING_TEST(a_party_that_is_there_waits_as_before),
        RESTORE_TEST(a_room_takes_no_more_than_were_known),
        RESTORE_TEST(a_seat_whose_player_had_not_come_is_no_place),
        RESTORE_TEST(a_room_where_nobody_is_known_is_not_ended_for_that),
        RESTORE_TEST(a_room_of_the_lost_time_goes_on_for_its_time),
        RESTORE_TEST(a_room_that_ended_in_the_lost_time_is_over),
        RESTORE_TEST(it_stands_in_the_audit),
        RESTORE_TEST(only_the_newest_restores_are_kept),
        RESTORE_TEST(numbers_that_run_out_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

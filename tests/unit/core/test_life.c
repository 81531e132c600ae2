#include "fixture.h"

/* ── core time ─────────────────────────────────────────────────────────────────────────────── */

static void resume_follows_the_wall_clock_within_bounds(void **state)
{
    (void)state;
    assert_true(core_resume_ms(5000, 1000000, 1000000) == 5000);
    assert_true(core_resume_ms(5000, 1000000, 1007000) == 12000);
    assert_true(core_resume_ms(5000, 1000000, 999999) == 5000);
    assert_true(core_resume_ms(5000, 1000000, 0) == 5000);
    assert_true(core_resume_ms(5000, 1000000, 1000000 + 600000) == 605000);
    assert_true(core_resume_ms(5000, 1000000, 1000000 + 600001) == 605000);
    assert_true(core_resume_ms(5000, 1000000, INT64_MAX / 2) == 605000);
}

static void core_time_never_goes_back(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 1);
    pass(f, 20000);
    f->now.core_ms -= 15000;
    seal(f);
    add_tick(f);
    assert_true(f->core->now.core_ms == f->now.core_ms + 15000);
    assert_true(server_of(f, conn)->conn == conn);
}

/* ── loading ───────────────────────────────────────────────────────────────────────────────── */

/* One of each: a running match with seats, one being opened, one cancelled and owed, one ended, one
 * ticket that failed. */
static void fill(struct fixture *f)
{
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 10);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    validate(f, conn, 1, 1001, token);
    validate(f, conn, 1, 1002, token);
    player_left(f, conn, 1, 1002);
    open_match(f, chat, 2, NULL);
    cancel(f, chat, 2);
    open_match(f, chat, 3, NULL);
    match_ended(f, conn, 3);
    struct event e = request(chat, 4);
    e.allocate.region = USE;
    step(f, &e);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    ask(f, chat, 5);
    effect(f, EFFECT_ALLOCATE, conn);
    seal(f);
}

static void write_object(struct object *o, struct buf *out)
{
    if (o->kind == ROW_ticket)
        ticket_keep_tries(container_of(o, struct ticket, object));
    change_encode_row(out, o->kind, object_row(o));
}

/* What a core knows, as it would write it. Seats are on no roll. */
static void write_all(struct core *core, struct buf *out)
{
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        size_t at = 0;
        struct object *o = NULL;
        while ((o = object_next(core, (enum row_kind)kind, &at)))
            write_object(o, out);
    }
    for (uint64_t id = 1; id < 20000; id++) {
        struct seat *seat = map_get(&core->seats, id);
        if (seat)
            write_object(&seat->object, out);
    }
}

static void loaded_core_holds_what_was_sealed(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct buf before = {0};
    struct buf after = {0};
    write_all(f->core, &before);
    crash(f, 1000);
    assert_null(core_check(f->core));
    write_all(f->core, &after);
    assert_true(before.len > 500);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    assert_int_equal(f->core->tickets_open, 1);
    assert_int_equal(f->core->tickets_finished, 3);
    core_seal(f->core, &f->batch);
    assert_int_equal(f->batch.changes.len, 0); /* loading changes nothing */
    buf_done(&before);
    buf_done(&after);
}

static void loaded_core_goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;
    fill(f);
    crash(f, 1000);
    conn_id chat = chat_up(f, "chat");
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    ask(f, chat, 3);
    answered(f, EFFECT_ALLOCATED, chat, ERR_INVALID_LOBBY);
    conn_id conn = server_back(f, 2000, 10);
    match_list(f, conn, 2, 1, 2);
    assert_int_equal(effect(f, EFFECT_CANCEL, conn)->lobby, 2);
    assert_int_equal(effect(f, EFFECT_ALLOCATE, conn)->lobby, 5);
    ask(f, chat, 5);
    ack(f, conn, 5, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

static void server_that_does_not_return_in_time_is_passed_by(void **state)
{
    struct fixture *f = *state;
    fill(f);
    crash(f, 1000);
    conn_id other = server_up(f, 2001, 10);
    pass(f, 5000); /* the ACK's time */
    assert_int_equal(effect(f, EFFECT_ALLOCATE, other)->lobby, 5);
}

/* Found by simulation: a clock set while we were down adds ten minutes of core time. */
static void nothing_is_given_up_before_servers_had_their_time(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 10);
    open_match(f, chat, 1, NULL);
    open_match(f, chat, 2, NULL);
    gone(f, conn);
    pass(f, 31000);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    cancel(f, chat, 2);
    seal(f);
    crash(f, f->config.timeouts.lost_ms);
    seal(f);
    add_tick(f);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    assert_int_equal(state_of_session(f, 2), SESSION_CANCELLING);
    conn = server_back(f, 2000, 10);
    match_list(f, conn, 2, 1, 2);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    assert_int_equal(effect(f, EFFECT_CANCEL, conn)->lobby, 2);
}

static void servers_get_a_full_timeout_after_a_start(void **state)
{
    struct fixture *f = *state;
    fill(f);
    crash(f, 500000);
    pass(f, 29999);
    assert_int_equal(count_notes(f, NOTE_SERVER_OFFLINE), 0);
    pass(f, 1);
    assert_int_equal(count_notes(f, NOTE_SERVER_OFFLINE), 1);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
}

static void ids_are_never_given_twice(void **state)
{
    struct fixture *f = *state;
    int64_t highest[ROW_KINDS] = {0};
    for (int round = 0; round < 4; round++) {
        char name[] = "chat-?";
        name[5] = (char)('a' + round);
        conn_id chat = chat_up(f, name);
        conn_id conn = server_up(f, 2000 + round, 2);
        char token[TOKEN_SIZE];
        assert_true(open_match(f, chat, 1, token) == conn);
        validate(f, conn, 1, 1001, token);
        const struct session *session = session_of(f, 1);
        const struct seat *seat =
            container_of(list_first(&session->seats), struct seat, in_session);
        int64_t ids[ROW_KINDS] = {0};
        ids[ROW_chat_server] = session->row.chat_server;
        ids[ROW_server] = session->row.server;
        ids[ROW_ticket] = session->row.ticket;
        ids[ROW_session] = session->row.id;
        ids[ROW_seat] = seat->row.id;
        for (int kind = ROW_chat_server; kind <= ROW_seat; kind++) {
            assert_true(ids[kind] > highest[kind]);
            highest[kind] = ids[kind];
        }
        seal(f);
        crash(f, 1000);
    }
}

/* ── damage ────────────────────────────────────────────────────────────────────────────────── */

/* The error of loading the fixture's journal with one more row. */
static int load_with(struct fixture *f, const struct change *extra)
{
    struct core *core = core_new(&f->config, fixture_secret);
    struct cursor c = cursor_of(f->journal.data, f->journal.len);
    struct change change;
    while (change_decode(&c, &change))
        assert_int_equal(core_load(core, &change), 0);
    for (int kind = ROW_counter + 1; kind < ROW_KINDS;
         kind++) { /* there may be a row 900 of each */
        change = (struct change){.kind = ROW_counter, .id = kind, .counter = {kind, 1 << 20}};
        assert_int_equal(core_load(core, &change), 0);
    }
    int err = core_load(core, extra);
    if (!err)
        err = core_loaded(core, 1, f->now);
    core_free(core);
    return err;
}

static void rows_that_cannot_be_are_refused(void **state)
{
    struct fixture *f = *state;
    fill(f);
    struct change bad[] = {
        {.kind = ROW_KINDS},
        {.kind = ROW_fleet, .id = -1},
        {.kind = ROW_fleet, .id = 0, .fleet = {.name = "none"}},
        {.kind = ROW_counter, .id = ROW_session, .counter = {.id = ROW_session, .next = 1}},
        {.kind = ROW_counter, .id = ROW_session, .counter = {.id = ROW_session, .next = -1}},
        {.kind = ROW_fleet, .id = (int64_t)1 << 56},
        {.kind = ROW_counter, .id = 9, .counter = {.id = ROW_KINDS, .next = 5}},
        {.kind = ROW_chat_server, .id = 900, .chat_server = {.id = 900, .fleet = 77}},
        {.kind = ROW_server, .id = 900, .server = {.id = 900, .fleet = 77, .max_sessions = 1}},
        {.kind = ROW_server, .id = 900, .server = {.id = 900, .fleet = 1}},
        {.kind = ROW_server,
         .id = 900,
         .server = {.id = 900, .fleet = 1, .max_sessions = 1, .region = 64}},
        {.kind = ROW_server,
         .id = 900,
         .server = {.id = 900, .fleet = 1, .max_sessions = 1, .region = -1}},
        {.kind = ROW_ticket, .id = 900, .ticket = {.id = 900, .chat_server = 77, .state = 1}},
        {.kind = ROW_ticket, .id = 900, .ticket = {.id = 900, .chat_server = 1, .state = 0}},
        {.kind = ROW_ticket,
         .id = 900,
         .ticket = {.id = 900, .chat_server = 1, .state = TICKET_STATES}},
        {.kind = ROW_ticket,
         .id = 900,
         .ticket = {.id = 900, .chat_server = 1, .state = 3, .tries_len = 1, .tries = {5}}},
        {.kind = ROW_ticket,
         .id = 900,
         .ticket = {.id = 900, .chat_server = 1, .state = 3, .tries_len = 2, .tries = {1}}},
        {.kind = ROW_session,
         .id = 900,
         .session = {.id = 900, .server = 77, .chat_server = 1, .state = 1}},
        {.kind = ROW_session,
         .id = 900,
         .session = {.id = 900, .server = 1, .chat_server = 77, .state = 1}},
        {.kind = ROW_session,
         .id = 900,
         .session = {.id = 900, .server = 1, .chat_server = 1, .state = -1}},
        {.kind = ROW_session,
         .id = 900,
         .session = {.id = 900, .server = 1, .chat_server = 1, .state = SESSION_STATES}},
        {.kind = ROW_seat, .id = 900, .seat = {.id = 900, .session = 77, .state = 1}},
        {.kind = ROW_seat, .id = 900, .seat = {.id = 900, .session = 1, .state = 0}},
        {.kind = ROW_seat, .id = 900, .seat = {.id = 900, .session = 1, .state = 3}},
        /* a second seat of a player who sits */
        {.kind = ROW_seat,
         .id = 900,
         .seat = {.id = 900, .session = 1, .fleet = 1, .account = 1001, .state = SEAT_TAKEN}},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        int err = load_with(f, &bad[i]);
        if (err != ERR_FORMAT)
            fail_msg("row %d was taken", (int)i);
    }
    struct change good = {.kind = ROW_fleet, .id = 900, .fleet = {.id = 900, .name = "other"}};
    assert_int_equal(load_with(f, &good), 0);
}

/* ── taking over after a lost batch ────────────────────────────────────────────────────────── */

static void lost_answers_become_internal_errors_once(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    seal(f);
    struct event events[] = {
        {.kind = EVENT_VALIDATE, .conn = conn, .validate = {1, 7, str_of(token)}},
        {.kind = EVENT_READY, .conn = conn, .ready = {id_of(f, conn), 1, str_of(token)}},
        {.kind = EVENT_MATCH_ENDED, .conn = conn, .match_ended = {id_of(f, conn), 1, 0, 0}},
        {.kind = EVENT_CANCEL, .conn = chat, .cancel = {99}},
    };
    for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
        add_step(f, &events[i]);
    struct event fresh = request(chat, 2); /* waits for its server */
    add_step(f, &fresh);
    lose_batch(f);
    assert_int_equal(answered(f, EFFECT_VALIDATE, conn, ERR_INTERNAL)->account, 7);
    assert_int_equal(answered(f, EFFECT_READY, conn, ERR_INTERNAL)->lobby, 1);
    assert_int_equal(answered(f, EFFECT_MATCH_ENDED, conn, ERR_INTERNAL)->lobby, 1);
    assert_int_equal(answered(f, EFFECT_CANCELLED, chat, ERR_INTERNAL)->lobby, 99);
    assert_int_equal(answered(f, EFFECT_ALLOCATED, chat, ERR_INTERNAL)->lobby, 2);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATE, 0), 0);
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, 0), 0);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    store_up(f);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    assert_null(ticket_of(f, chat, 2));
}

static void open_ticket_is_answered_later_once(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    ask(f, chat, 1);
    ack(f, conn, 1, true); /* its answer is lost */
    answered(f, EFFECT_ALLOCATED, chat, 0);
    lose_batch(f);
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    store_up(f);
    ack(f, conn, 1, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    ask(f, chat, 2);
    seal(f);
    lose_batch(f); /* nothing was answered, but somebody waits */
    assert_int_equal(count_effects(f, EFFECT_ALLOCATED, 0), 0);
    store_up(f);
    ack(f, conn, 2, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
}

static void peers_that_were_never_stored_are_sent_away(void **state)
{
    struct fixture *f = *state;
    conn_id old = server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat");
    seal(f);
    struct event hello = {.kind = EVENT_SERVER_HELLO, .conn = new_conn(f)};
    hello.server_hello = server_hello_of(2001, 4);
    add_step(f, &hello); /* a new one */
    struct event doubt = {.kind = EVENT_SERVER_HELLO, .conn = new_conn(f)};
    doubt.server_hello = server_hello_of(2000, 4);
    add_step(f, &doubt); /* undecided */
    lose_batch(f);
    answered(f, EFFECT_SERVER_HELLO, hello.conn, ERR_INTERNAL);
    answered(f, EFFECT_SERVER_HELLO, doubt.conn, ERR_INTERNAL);
    assert_null(peer_find(f->core, hello.conn));
    assert_null(peer_find(f->core, doubt.conn));
    assert_true(server_of(f, old)->conn == old);
    assert_true(chat_of(f, chat)->conn == chat);
}

static void soft_state_survives_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    match_list(f, conn, 1, 77);
    server_on(f, conn)->reports = 3;
    ask(f, chat, 1);
    ack(f, conn, 1, false); /* backs off */
    seal(f);
    pass(f, 5000);
    lose_batch(f);
    const struct server *server = server_of(f, conn);
    assert_int_equal(server->reported, 3);
    assert_true(server_has_stranger(server, 77));
    assert_int_equal(server->passed_over, PASSED_FAILING);
    store_up(f);
    match_list(f, conn, 1, 77);
    pass(f, 5000);
    assert_int_equal(server_of(f, conn)->passed_over, PASSED_NOT);
}

static void read_only_core_repeats_what_is_stored(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    ready(f, conn, 1, token);
    validate(f, conn, 1, 7, token);
    open_match(f, chat, 2, NULL);
    match_ended(f, conn, 2);
    seal(f);
    seal(f);
    lose_batch(f);
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_INVALID_LOBBY);
    ask(f, chat, 3);
    answered(f, EFFECT_ALLOCATED, chat, ERR_INTERNAL);
    ready(f, conn, 1, token);
    answered(f, EFFECT_READY, conn, 0);
    validate(f, conn, 1, 7, token);
    answered(f, EFFECT_VALIDATE, conn, 0);
    validate(f, conn, 1, 8, token);
    answered(f, EFFECT_VALIDATE, conn, ERR_INTERNAL);
    match_ended(f, conn, 2);
    answered(f, EFFECT_MATCH_ENDED, conn, 0);
    match_ended(f, conn, 1);
    answered(f, EFFECT_MATCH_ENDED, conn, ERR_INTERNAL);
    cancel(f, chat, 2);
    answered(f, EFFECT_CANCELLED, chat, 0);
    cancel(f, chat, 1);
    answered(f, EFFECT_CANCELLED, chat, ERR_INTERNAL);
    heartbeat(f, conn, 1, 0, 0);
    pass(f, 60000);
    gone(f, conn);
    core_seal(f->core, &f->batch);
    assert_int_equal(f->batch.changes.len, 0);
}

/* ── determinism ───────────────────────────────────────────────────────────────────────────── */

static void put_effect(struct buf *out, const struct effect *e)
{
    put_i32(out, (int32_t)e->kind);
    put_i64(out, (int64_t)e->conn);
    put_i32(out, e->err);
    put_i32(out, e->lobby);
    put_i32(out, e->server_id);
    put_i64(out, e->ticket);
    put_i64(out, e->session);
    put_i64(out, e->wall_ms);
    buf_append(out, e->token.at, e->token.len);
    buf_append(out, e->text.at, e->text.len);
    buf_append(out, e->servers.data, e->servers.len);
}

/* A thousand random steps; everything that comes out goes into `out`. */
static void live(struct buf *out)
{
    struct fixture *f = fixture_new();
    struct dice dice = {42};
    conn_id chats[] = {chat_up(f, "a"), chat_up(f, "b")};
    conn_id servers[] = {server_up(f, 2000, 3), server_up(f, 2001, 3), server_up(f, 2002, 3)};
    for (int i = 0; i < 1000; i++) {
        conn_id chat = chats[dice_below(&dice, 2)];
        conn_id server = servers[dice_below(&dice, 3)];
        int32_t lobby = (int32_t)dice_below(&dice, 12) + 1;
        uint64_t what = dice_below(&dice, 8);
        if (what < 2)
            ask(f, chat, lobby);
        else if (what < 5)
            ack(f, server, lobby, what < 4);
        else if (what == 5)
            match_ended(f, server, lobby);
        else if (what == 6)
            cancel(f, chat, lobby);
        else
            pass(f, (int64_t)dice_below(&dice, 4000));
        chat_of(f, chat);
        for (size_t k = 0; k < f->batch.effects.len; k++)
            put_effect(out, &f->batch.effects.items[k]);
    }
    seal(f);
    buf_append(out, f->journal.data, f->journal.len);
    fixture_free(f);
}

static void same_events_give_the_same_bytes(void **state)
{
    (void)state;
    struct buf one = {0};
    struct buf two = {0};
    live(&one);
    live(&two);
    assert_true(one.len > 50000);
    assert_int_equal(one.len, two.len);
    assert_memory_equal(one.data, two.data, one.len);
    buf_done(&one);
    buf_done(&two);
}

/* An object that comes and goes between two seals is never written. */
static void what_comes_and_goes_is_not_written(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    seal(f);
    struct event asked = request(chat, 1);
    struct event ok = {.kind = EVENT_ALLOCATE_ACK, .conn = conn, .allocate_ack = {false, 1}};
    struct event let_go = {.kind = EVENT_CANCEL_ACK, .conn = conn, .cancel_ack = {true, 1}};
    add_step(f, &asked);
    add_step(f, &ok);
    add_step(f, &let_go);
    core_seal(f->core, &f->batch);
    struct cursor c = cursor_of(f->batch.changes.data, f->batch.changes.len);
    struct change change;
    int tickets = 0;
    while (change_decode(&c, &change)) {
        assert_int_not_equal(change.kind, ROW_session);
        tickets += change.kind == ROW_ticket;
    }
    assert_int_equal(tickets, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_follows_the_wall_clock_within_bounds),
        FIXTURE_TEST(core_time_never_goes_back),
        FIXTURE_TEST(loaded_core_holds_what_was_sealed),
        FIXTURE_TEST(loaded_core_goes_on_where_it_was),
        FIXTURE_TEST(server_that_does_not_return_in_time_is_passed_by),
        FIXTURE_TEST(nothing_is_given_up_before_servers_had_their_time),
        FIXTURE_TEST(servers_get_a_full_timeout_after_a_start),
        FIXTURE_TEST(ids_are_never_given_twice),
        FIXTURE_TEST(rows_that_cannot_be_are_refused),
        FIXTURE_TEST(lost_answers_become_internal_errors_once),
        FIXTURE_TEST(open_ticket_is_answered_later_once),
        FIXTURE_TEST(peers_that_were_never_stored_are_sent_away),
        FIXTURE_TEST(soft_state_survives_a_lost_batch),
        FIXTURE_TEST(read_only_core_repeats_what_is_stored),
        cmocka_unit_test(same_events_give_the_same_bytes),
        FIXTURE_TEST(what_comes_and_goes_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

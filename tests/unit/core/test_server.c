#include "fixture.h"

/* ── hello ─────────────────────────────────────────────────────────────────────────────────── */

static void refused(struct fixture *f, struct chat_sv_handshake hello, int err)
{
    conn_id conn = say_server_hello(f, hello);
    answered(f, EFFECT_SERVER_HELLO, conn, err);
    assert_null(peer_find(f->core, conn));
    assert_int_equal(f->core->servers.len, 0);
}

/* Each hello has every later mistake too: the first one is named. */
static void hello_errors_come_in_their_order(void **state)
{
    struct fixture *f = *state;
    struct chat_sv_handshake hello = {.server_token = STR("wrong"), .ip = STR("nowhere")};
    hello.region = REGION_AUTO;
    f->core->config.any_token = false;
    refused(f, hello, ERR_INVALID_TOKEN);
    f->core->config.any_token = true;
    refused(f, hello, ERR_INVALID_IP);
    hello.ip = STR("10.0.0.1");
    refused(f, hello, ERR_INVALID_PORT);
    hello.port = 1024;
    refused(f, hello, ERR_INVALID_REGION);
    hello.region = EU;
    refused(f, hello, ERR_INVALID_CAPACITY);
    hello.max_concurrent_matches = 1000;
    conn_id conn = say_server_hello(f, hello);
    const struct effect *e = answered(f, EFFECT_SERVER_HELLO, conn, 0);
    assert_int_equal(e->server_id, 1);
    assert_true(e->wall_ms == fixture_wall_ms);
}

static void hello_limits_are_exact(void **state)
{
    struct fixture *f = *state;
    static const char *const no_addresses[] = {"", "0.0.0.0", "::", "10.0.0", "10.0.0.256", "host"};
    for (size_t i = 0; i < sizeof(no_addresses) / sizeof(*no_addresses); i++) {
        struct chat_sv_handshake hello = server_hello_of(2000, 1);
        hello.ip = str_of(no_addresses[i]);
        refused(f, hello, ERR_INVALID_IP);
    }
    refused(f, server_hello_of(1023, 1), ERR_INVALID_PORT);
    refused(f, server_hello_of(65536, 1), ERR_INVALID_PORT);
    refused(f, server_hello_of(-1, 1), ERR_INVALID_PORT);
    refused(f, server_hello_of(2000, 0), ERR_INVALID_CAPACITY);
    refused(f, server_hello_of(2000, 1001), ERR_INVALID_CAPACITY);
    refused(f, server_hello_of(2000, INT32_MIN), ERR_INVALID_CAPACITY);
    static const int8_t no_regions[] = {-1, 18, 63, 64, INT8_MIN, INT8_MAX};
    for (size_t i = 0; i < sizeof(no_regions); i++) {
        struct chat_sv_handshake hello = server_hello_of(2000, 1);
        hello.region = no_regions[i];
        refused(f, hello, ERR_INVALID_REGION);
    }
    struct chat_sv_handshake six = server_hello_of(65535, 1);
    six.ip = STR("2001:db8::1");
    server_up_with(f, six);
    server_up(f, 1024, 1);
}

static void enrolment_names_fleet_and_regions(void **state)
{
    struct fixture *f = *state;
    struct core_config *c = &f->core->config;
    c->any_token = false;
    c->n_enrolments = 2;
    core_hash_token(STR("of a server"), c->enrolments[0].hash);
    c->enrolments[0].role = ROLE_SERVER;
    c->enrolments[0].regions = (uint64_t)1 << EU;
    strcpy(c->enrolments[0].fleet, "default");
    core_hash_token(STR("of a chat server"), c->enrolments[1].hash);
    c->enrolments[1] = (struct enrolment){.role = ROLE_CHAT, .regions = UINT64_MAX};

    struct chat_sv_handshake hello = server_hello_of(2000, 1);
    hello.server_token = STR("of a chat server");
    refused(f, hello, ERR_INVALID_TOKEN);
    hello.server_token = STR("of a server");
    hello.region = USE;
    refused(f, hello, ERR_INVALID_REGION);
    hello.region = EU;
    conn_id conn = server_up_with(f, hello);
    assert_string_equal(server_of(f, conn)->fleet->row.name, "default");
}

static void too_many_servers_are_refused(void **state)
{
    struct fixture *f = *state;
    f->core->config.limits.servers = 2;
    server_up(f, 2001, 1);
    conn_id second = server_up(f, 2002, 1);
    conn_id third = say_server_hello(f, server_hello_of(2003, 1));
    answered(f, EFFECT_SERVER_HELLO, third, ERR_INTERNAL);
    gone(f, second);
    server_back(f, 2002, 1);
}

/* ── two connections, one address ──────────────────────────────────────────────────────────── */

static void old_connection_that_answers_stays(void **state)
{
    struct fixture *f = *state;
    conn_id old = server_up(f, 2000, 1);
    conn_id young = say_server_hello(f, server_hello_of(2000, 1));
    effect(f, EFFECT_PING, old);
    assert_int_equal(count_effects(f, EFFECT_SERVER_HELLO, young), 0);
    pong(f, old);
    answered(f, EFFECT_SERVER_HELLO, young, ERR_ALREADY_REGISTERED);
    assert_true(server_of(f, old)->conn == old);
    pass(f, 5000);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
    pong(f, old); /* an ordinary one */
    assert_int_equal(f->batch.effects.len, 0);
}

static void old_connection_that_is_mute_is_replaced(void **state)
{
    struct fixture *f = *state;
    conn_id old = server_up(f, 2000, 1);
    int32_t id = id_of(f, old);
    conn_id young = say_server_hello(f, server_hello_of(2000, 7));
    pass(f, 999);
    assert_int_equal(f->batch.effects.len, 0);
    pass(f, 1);
    effect(f, EFFECT_CLOSE, old);
    assert_int_equal(answered(f, EFFECT_SERVER_HELLO, young, 0)->server_id, id);
    effect(f, EFFECT_LIST_ASK, young);
    remember_server(f, young, id);
    assert_int_equal(server_of(f, young)->row.max_sessions, 7);
    gone(f, old); /* the door has closed it */
    assert_true(server_of(f, young)->conn == young);
}

static void third_hello_is_refused_at_once(void **state)
{
    struct fixture *f = *state;
    conn_id old = server_up(f, 2000, 1);
    conn_id second = say_server_hello(f, server_hello_of(2000, 1));
    conn_id third = say_server_hello(f, server_hello_of(2000, 1));
    answered(f, EFFECT_SERVER_HELLO, third, ERR_ALREADY_REGISTERED);
    gone(f, old);
    answered(f, EFFECT_SERVER_HELLO, second, 0);
}

static void challenger_that_leaves_changes_nothing(void **state)
{
    struct fixture *f = *state;
    conn_id old = server_up(f, 2000, 1);
    conn_id young = say_server_hello(f, server_hello_of(2000, 1));
    gone(f, young);
    pass(f, 5000);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
    assert_true(server_of(f, old)->conn == old);
}

static void challenger_may_not_speak_yet(void **state)
{
    struct fixture *f = *state;
    conn_id old = server_up(f, 2000, 1);
    conn_id young = say_server_hello(f, server_hello_of(2000, 1));
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = young};
    e.heartbeat.server_id = id_of(f, old);
    step(f, &e);
    assert_int_equal(f->batch.immediate.items[0].err, ERR_DISCONNECTED);
}

/* ── heartbeat, silence ────────────────────────────────────────────────────────────────────── */

static void wait_for_disk(struct fixture *f, int64_t ms)
{
    for (int64_t end_ms = f->now.core_ms + ms; f->now.core_ms < end_ms; add_tick(f)) {
        f->now.core_ms += TICK_MS;
        f->now.wall_ms += TICK_MS;
    }
}

/* Seen in a simulation: the disk took longer than a server has to list its matches, so it counted
 * as one that cannot before it was asked, and was given a match above what it held. */
static void time_to_list_begins_when_the_question_leaves(void **state)
{
    struct fixture *f = *state;
    int64_t list_ms = f->core->config.timeouts.list_ms;
    conn_id conn = server_up(f, 2000, 4);
    seal(f);
    gone(f, conn);
    conn = server_up(f, 2000, 4); /* its batch is not stored yet */
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, conn), 1);
    wait_for_disk(f, list_ms + 500);
    assert_false(server_of(f, conn)->listed);
    seal(f);
    wait_for_disk(f, list_ms - 500);
    assert_false(server_of(f, conn)->listed);
    wait_for_disk(f, 1000);
    assert_true(server_of(f, conn)->listed); /* it cannot, and its matches are not known */
}

static void heartbeat_is_answered_at_once(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    e.heartbeat = (struct chat_sv_heartbeat){id_of(f, conn), 3, 50, 25};
    step(f, &e);
    assert_int_equal(f->batch.immediate.len, 1);
    assert_int_equal(f->batch.immediate.items[0].err, 0);
    assert_true(f->batch.immediate.items[0].wall_ms == f->now.wall_ms);
    assert_int_equal(f->batch.effects.len, 0);
    assert_int_equal(server_load(server_of(f, conn)), 3);
    core_seal(f->core, &f->batch);
    assert_int_equal(f->batch.changes.len, 0); /* loads are soft */
}

static void spoofed_ids_are_refused_and_counted(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    conn_id other = server_up(f, 2001, 4);
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    e.heartbeat.server_id = id_of(f, other);
    step(f, &e);
    assert_int_equal(f->batch.immediate.items[0].err, ERR_NOT_REGISTERED);
    batch_clear(&f->batch);
    int32_t ids[] = {id_of(f, other), 0, -1};
    for (size_t i = 0; i < 3; i++) {
        struct event r = {.kind = EVENT_READY, .conn = conn};
        r.ready = (struct chat_sv_ready_for_match){ids[i], 7, STR("x")};
        step(f, &r);
        assert_int_equal(answered(f, EFFECT_READY, conn, ERR_NOT_REGISTERED)->lobby, 7);
        struct event m = {.kind = EVENT_MATCH_ENDED, .conn = conn};
        m.match_ended.server_id = ids[i];
        step(f, &m);
        answered(f, EFFECT_MATCH_ENDED, conn, ERR_NOT_REGISTERED);
    }
    struct event l = {.kind = EVENT_MATCH_LIST, .conn = conn};
    l.match_list.server_id = id_of(f, other);
    step(f, &l);
    struct event p = {.kind = EVENT_PLAYER_LEFT, .conn = conn};
    p.player_left.server_id = id_of(f, other);
    step(f, &p);
    assert_int_equal(count_notes(f, NOTE_REFUSED), 1); /* no answer, but a line */
    assert_int_equal(f->core->spoofed, 1 + 6 + 1 + 1);
}

static void silent_server_is_offline_and_its_matches_are_lost_once(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    ask(f, chat, 2);
    server_on(f, conn)->silent = true;
    ack(f, conn, 2, true);
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    e.heartbeat = (struct chat_sv_heartbeat){id_of(f, conn), 2, 0, 0};
    step(f, &e);
    pass(f, 29999);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
    pass(f, 1);
    effect(f, EFFECT_CLOSE, conn);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_OFFLINE);
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, chat), 2);
    assert_int_equal(effect(f, EFFECT_MATCH_EVENT, chat)->event, MATCH_LOST);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    step(f, &e); /* one that was under way */
    assert_int_equal(f->batch.immediate.items[0].err, ERR_DISCONNECTED);
    pass(f, 60000);
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, chat), 0);
}

static void dropped_server_is_unplaceable_at_once_and_offline_later(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_AVAILABLE);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    pass(f, 30000);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_OFFLINE);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
}

static void idle_offline_server_is_forgotten(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    int32_t id = id_of(f, conn);
    gone(f, conn);
    pass(f, 30000);
    pass(f, f->config.timeouts.forget_ms - 1);
    assert_int_equal(f->core->servers.len, 1);
    pass(f, 1);
    assert_int_equal(f->core->servers.len, 0);
    crash(f, 0); /* what was not sealed is lost */
    assert_int_equal(f->core->servers.len, 1);
    pass(f, 30000 + f->config.timeouts.forget_ms);
    seal(f);
    crash(f, 0);
    assert_int_equal(f->core->servers.len, 0);
    conn_id again = server_up(f, 2000, 2);
    assert_true(id_of(f, again) > id);
}

static void stopped_process_calls_nobody_silent(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    pass(f, 1000);
    f->now.core_ms += 45000;
    seal(f);
    add_tick(f);
    assert_int_equal(count_notes(f, NOTE_STOPPED), 1);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
    server_on(f, conn)->silent = true;
    pass(f, 28000);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
    pass(f, 2000);
    effect(f, EFFECT_CLOSE, conn);
}

/* After a stop the loop may read before its timers run. */
static void gap_is_noticed_by_whatever_happens_first(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 2);
    pass(f, 1000);
    f->now.core_ms += 20000;
    ask(f, chat, 1);
    effect(f, EFFECT_ALLOCATE, 0);
    pass(f, 5000);
    answered(f, EFFECT_ALLOCATED, chat, ERR_ALLOCATION_TIMEOUT);
}

/* The disk comes back in the same moment in which the process runs again. */
static void store_that_is_up_after_a_stop_calls_nobody_silent(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 2);
    pass(f, 1000);
    lose_batch(f);
    f->now.core_ms += 45000;
    store_up(f);
    assert_int_equal(count_effects(f, EFFECT_CLOSE, 0), 0);
    assert_int_equal(count_notes(f, NOTE_SERVER_OFFLINE), 0);
}

static void wall_clock_jumps_change_nothing(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    char token[TOKEN_SIZE];
    open_match(f, chat, 1, token);
    static const int64_t jumps_ms[] = {3600000, -7200000, 31000, -120000};
    for (size_t i = 0; i < 4; i++) {
        f->now.wall_ms += jumps_ms[i];
        pass(f, 1000);
        assert_int_equal(f->batch.effects.len, 0);
    }
    validate(f, conn, 1, 1001, token);
    answered(f, EFFECT_VALIDATE, conn, 0);
}

/* ── reconnect and match list ──────────────────────────────────────────────────────────────── */

static void reconnect_keeps_the_id_and_waits_for_the_list(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    int32_t id = id_of(f, conn);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    conn = server_back(f, 2000, 2);
    assert_int_equal(id_of(f, conn), id);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    match_list(f, conn, 1, 1);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    ask(f, chat, 2);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void restarted_server_without_matches_ends_them(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    open_match(f, chat, 2, NULL);
    gone(f, conn);
    conn = server_back(f, 2000, 2);
    match_list(f, conn, 1, 2);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
    assert_int_equal(state_of_session(f, 2), SESSION_OPEN);
    assert_int_equal(answered(f, EFFECT_MATCH_EVENT, chat, 0)->lobby, 1);
    assert_int_equal(effect(f, EFFECT_MATCH_EVENT, chat)->event, MATCH_ENDED);
}

static void lost_match_comes_back_with_its_server(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    pass(f, 31000);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    seal(f);
    chat_beat(f, chat);
    conn = server_back(f, 2000, 2);
    match_list(f, conn, 1, 1);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    assert_int_equal(answered(f, EFFECT_MATCH_EVENT, chat, 0)->event, MATCH_BACK);
}

static void lost_match_ends_after_its_time(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    f->core->config.timeouts.chat_ms = INT32_MAX;
    chat_beat(f, chat);
    pass(f, 30000);
    pass(f, f->config.timeouts.lost_ms - 1);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    pass(f, 1);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
    assert_int_equal(answered(f, EFFECT_MATCH_EVENT, chat, 0)->event, MATCH_ENDED);
}

static void server_that_does_not_list_is_placeable_after_two_seconds(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    pass(f, 31000);
    conn = server_back(f, 2000, 2);
    pass(f, 1999);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    pass(f, 1);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    ask(f, chat, 2);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void twice_fewer_matches_asks_for_the_list(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 4);
    open_match(f, chat, 1, NULL);
    open_match(f, chat, 2, NULL);
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    e.heartbeat = (struct chat_sv_heartbeat){id_of(f, conn), 1, 0, 0};
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, conn), 0);
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, conn), 1);
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, conn), 0); /* one at a time */
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    assert_int_equal(server_load(server_of(f, conn)), 2); /* what was reserved stays reserved */
    match_list(f, conn, 1, 2);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
    assert_int_equal(state_of_session(f, 2), SESSION_OPEN);
}

static void open_match_that_never_asks_again(struct fixture *f, conn_id *ret_chat, conn_id *ret)
{
    *ret_chat = chat_up(f, "chat");
    *ret = server_up(f, 2000, 4);
    f->core->config.timeouts.chat_ms = INT32_MAX;
    chat_beat(f, *ret_chat);
    open_match(f, *ret_chat, 1, NULL);
    open_match(f, *ret_chat, 2, NULL);
    server_of(f, *ret)->cannot_list = true;
}

static void two_zero_reports_of_a_server_without_lists_end_old_matches(void **state)
{
    struct fixture *f = *state;
    conn_id chat = 0;
    conn_id conn = 0;
    open_match_that_never_asks_again(f, &chat, &conn);
    pass(f, 151000);
    open_match(f, chat, 3, NULL);
    heartbeat(f, conn, 0, 0, 0);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    e.heartbeat.server_id = id_of(f, conn);
    step(f, &e);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
    assert_int_equal(state_of_session(f, 2), SESSION_ENDED);
    assert_int_equal(state_of_session(f, 3), SESSION_OPEN); /* too young */
    assert_int_equal(count_effects(f, EFFECT_MATCH_EVENT, chat), 2);
}

static void other_shortfalls_close_nothing(void **state)
{
    struct fixture *f = *state;
    conn_id chat = 0;
    conn_id conn = 0;
    open_match_that_never_asks_again(f, &chat, &conn);
    pass(f, 151000);
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    int notes = 0;
    for (int i = 0; i < 6; i++) { /* never zero twice in a row */
        e.heartbeat = (struct chat_sv_heartbeat){id_of(f, conn), i % 2, 0, 0};
        step(f, &e);
        notes += count_notes(f, NOTE_SERVER_SHORTFALL);
    }
    assert_int_equal(notes, 1);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, 0), 0);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    assert_int_equal(state_of_session(f, 2), SESSION_OPEN);
}

static void strangers_take_their_slots_and_ids(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 3);
    match_list(f, conn, 2, 100, 101);
    assert_int_equal(count_notes(f, NOTE_SERVER_UNKNOWN_MATCH), 1);
    match_list(f, conn, 2, 100, 101);
    assert_int_equal(count_notes(f, NOTE_SERVER_UNKNOWN_MATCH), 0); /* nothing new */
    ask(f, chat, 100);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    open_match(f, chat, 1, NULL);
    assert_int_equal(server_load(server_of(f, conn)), 3);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    match_ended(f, conn, 100);
    answered(f, EFFECT_MATCH_ENDED, conn, ERR_MATCH_NOT_FOUND);
    assert_false(server_has_stranger(server_of(f, conn), 100));
    heartbeat(f, conn, 1, 0, 0); /* the other one ended too */
    assert_int_equal(server_load(server_of(f, conn)), 1);
}

static void full_list_proves_nothing_about_the_rest(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 1000);
    open_match(f, chat, 1, NULL);
    uint8_t lobbies[255 * 4] = {0};
    for (int i = 0; i < 255; i++)
        lobbies[i * 4 + 1] = (uint8_t)i, lobbies[i * 4 + 2] = 1;
    struct event e = {.kind = EVENT_MATCH_LIST, .conn = conn};
    e.match_list.server_id = id_of(f, conn);
    e.match_list.lobbies = (struct chat_list){255, lobbies, sizeof(lobbies)};
    step(f, &e);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
}

static void addresses_nobody_can_be_reached_at_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const bad[] = {"0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1",
                                      "::",      "ff02::1",   "::ffff:0.0.0.0",  "::ffff:224.0.0.1",
                                      "1.2.3",   "1.2.3.4.5", "fe80::1%eth0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct chat_sv_handshake hello = server_hello_of(2000, 4);
        hello.ip = str_of(bad[i]);
        refused(f, hello, ERR_INVALID_IP);
    }
}

static void mapped_address_is_the_address(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    int32_t id = id_of(f, conn);
    gone(f, conn);
    struct chat_sv_handshake hello = server_hello_of(2000, 4);
    hello.ip = STR("::ffff:10.0.0.1");
    assert_int_equal(id_of(f, server_up_with(f, hello)), id);
}

static void two_spellings_of_an_address_are_one_server(void **state)
{
    struct fixture *f = *state;
    struct chat_sv_handshake hello = server_hello_of(2000, 4);
    hello.ip = STR("2001:db8::1");
    conn_id conn = server_up_with(f, hello);
    int32_t id = id_of(f, conn);
    gone(f, conn);
    hello.ip = STR("2001:DB8:0:0:0:0:0:1");
    assert_int_equal(id_of(f, server_up_with(f, hello)), id);
}

/* ── drain ─────────────────────────────────────────────────────────────────────────────────── */

static void server_drains_itself(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    struct event e = {.kind = EVENT_DRAIN, .conn = conn};
    e.drain.on = true;
    step(f, &e);
    assert_true(effect(f, EFFECT_DRAIN_ACK, conn)->on);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_DRAINING);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    ask(f, chat, 2);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    step(f, &e); /* repeated: the same acknowledgement, nothing to write */
    assert_true(effect(f, EFFECT_DRAIN_ACK, conn)->on);
    assert_int_equal(count_notes(f, NOTE_SERVER_DRAINING), 0);
    e.drain.on = false;
    step(f, &e);
    assert_false(effect(f, EFFECT_DRAIN_ACK, conn)->on);
    ask(f, chat, 2);
    effect(f, EFFECT_ALLOCATE, conn);
}

static void drain_itself(struct fixture *f, conn_id conn)
{
    struct event e = {.kind = EVENT_DRAIN, .conn = conn};
    e.drain.on = true;
    step(f, &e);
}

/* The recipe for an update: drain, exit, start the new one at the same address. */
static void next_process_is_not_bound_by_the_drain_of_the_last(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    drain_itself(f, conn);
    gone(f, conn);
    conn = server_back(f, 2000, 2);
    assert_int_equal(count_effects(f, EFFECT_DRAIN, conn), 0);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_DRAINING);
    match_list(f, conn, 0);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_AVAILABLE);
    assert_int_equal(count_notes(f, NOTE_SERVER_UNDRAINED), 1);
}

static void drain_said_again_after_a_reconnect_stands(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    drain_itself(f, conn);
    gone(f, conn);
    conn = server_back(f, 2000, 2);
    drain_itself(f, conn);
    match_list(f, conn, 0);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_DRAINING);
}

static void drain_of_a_server_that_holds_matches_survives_a_reconnect(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    drain_itself(f, conn);
    gone(f, conn);
    conn = server_back(f, 2000, 2);
    match_list(f, conn, 1, 1);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_DRAINING);
}

static void server_does_not_undo_an_operators_drain(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    struct event e = {.kind = EVENT_OPERATE};
    e.operate.target = id_of(f, conn);
    e.operate.verb = OPERATE_DRAIN;
    step(f, &e);
    struct event undrain = {.kind = EVENT_DRAIN, .conn = conn};
    step(f, &undrain);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_DRAINING);
    e.operate.verb = OPERATE_UNDRAIN;
    step(f, &e);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_AVAILABLE);
}

static void operator_drains_a_server(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    int32_t id = id_of(f, conn);
    struct event e = {.kind = EVENT_OPERATE, .conn = 7};
    e.operate.target = 99;
    e.operate.verb = OPERATE_DRAIN;
    step(f, &e);
    assert_int_equal(effect(f, EFFECT_OPERATED, 7)->err, ERR_NOT_FOUND);
    e.operate.target = id;
    step(f, &e);
    assert_true(effect(f, EFFECT_DRAIN, conn)->on);
    struct event ok = {.kind = EVENT_DRAIN_ACK, .conn = conn};
    step(f, &ok);
    assert_int_equal(f->batch.effects.len, 0);
    crash(f, 1000);
    conn = server_back(f, 2000, 2); /* it is still to drain, and is told so */
    assert_int_equal(id_of(f, conn), id);
    assert_true(effect(f, EFFECT_DRAIN, conn)->on);
    assert_int_equal(server_status(server_of(f, conn)), SERVER_DRAINING);
}

/* ── back-off ──────────────────────────────────────────────────────────────────────────────── */

static void refuse_once(struct fixture *f, conn_id chat, conn_id conn, int32_t lobby)
{
    ask(f, chat, lobby);
    effect(f, EFFECT_ALLOCATE, conn);
    ack(f, conn, lobby, false);
    answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
    cancel_ack(f, conn, lobby);
}

static void back_off_doubles_to_its_limit_and_is_reset_by_success(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    f->core->config.timeouts.chat_ms = INT32_MAX;
    chat_beat(f, chat);
    static const int64_t waits_ms[] = {10000, 20000, 40000, 80000, 160000, 300000, 300000};
    int32_t lobby = 1;
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(*waits_ms); i++) {
        refuse_once(f, chat, conn, lobby++);
        pass(f, waits_ms[i] - 1);
        ask(f, chat, lobby);
        answered(f, EFFECT_ALLOCATED, chat, ERR_NO_SERVERS);
        assert_int_equal(ticket_of(f, chat, lobby)->passed[PASSED_FAILING], 1);
        pass(f, 1);
    }
    open_match(f, chat, 1000, NULL);
    refuse_once(f, chat, conn, 1001);
    pass(f, 10000);
    ask(f, chat, 1002);
    effect(f, EFFECT_ALLOCATE, conn);
}

/* A connection that drops while it is being asked for many matches has failed once. */
static void one_drop_backs_off_once(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 10);
    for (int32_t lobby = 1; lobby <= 6; lobby++)
        ask(f, chat, lobby);
    gone(f, conn);
    conn = server_back(f, 2000, 10);
    match_list(f, conn, 0);
    pass(f, 10000);
    ask(f, chat, 7);
    effect(f, EFFECT_ALLOCATE, conn);
}

/* ── the store fails and recovers ──────────────────────────────────────────────────────────── */

/* Its list was let go while nothing could be written: it is asked again before anything is
 * concluded from its silence. */
static void store_down(struct fixture *f)
{
    struct event down = {.kind = EVENT_STORE_DOWN};
    step(f, &down);
}

/* We refused it or were deaf to it, so its silence is ours. */
static void server_away_while_read_only_has_its_time_afterwards(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    store_down(f);
    gone(f, conn);
    for (int i = 0; i < 40; i++) {
        pass(f, 1000);
        chat_beat(f, chat);
    }
    store_up(f);
    assert_int_equal(count_notes(f, NOTE_SERVER_OFFLINE), 0);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    pass(f, 31000);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
}

static void known_peers_come_back_while_read_only(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    int32_t id = id_of(f, conn);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    gone(f, chat);
    store_down(f);
    conn = server_up(f, 2000, 2);
    assert_int_equal(id_of(f, conn), id);
    chat = chat_up(f, "chat");
    ask(f, chat, 1);
    answered(f, EFFECT_ALLOCATED, chat, 0);

    struct chat_sv_handshake other = server_hello_of(2001, 2);
    /* a new one would have to be stored */
    answered(f, EFFECT_SERVER_HELLO, say_server_hello(f, other), ERR_INTERNAL);
    struct chat_sv_handshake larger = server_hello_of(2000, 3);
    gone(f, conn);
    /* and so would this */
    answered(f, EFFECT_SERVER_HELLO, say_server_hello(f, larger), ERR_INTERNAL);
    other.ip = STR("nowhere");
    answered(f, EFFECT_SERVER_HELLO, say_server_hello(f, other), ERR_INVALID_IP);
}

static void list_let_go_while_read_only_is_asked_for_again(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    pass(f, 31000);
    conn = server_back(f, 2000, 2);
    seal(f);
    lose_batch(f);
    match_list(f, conn, 0);
    pass(f, 10000);
    store_up(f);
    effect(f, EFFECT_LIST_ASK, conn);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    match_list(f, conn, 0);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
}

/* A server that cannot list came back in a batch that was lost: its match comes back all the same.
 */
static void lost_match_of_a_listless_server_survives_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id conn = server_up(f, 2000, 2);
    open_match(f, chat, 1, NULL);
    gone(f, conn);
    pass(f, 31000);
    conn = server_back(f, 2000, 2);
    pass(f, 2000);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    lose_batch(f);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
    store_up(f);
    pass(f, 2000);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
}

/* The order to close a connection was in the lost batch, and core no longer knows who speaks on it.
 */
static void connection_that_was_to_be_closed_is_closed_after_a_lost_batch(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 2);
    server_on(f, conn)->silent = true;
    pass(f, 30000);
    effect(f, EFFECT_CLOSE, conn);
    lose_batch(f);
    effect(f, EFFECT_CLOSE, conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(hello_errors_come_in_their_order),
        FIXTURE_TEST(hello_limits_are_exact),
        FIXTURE_TEST(enrolment_names_fleet_and_regions),
        FIXTURE_TEST(too_many_servers_are_refused),
        FIXTURE_TEST(old_connection_that_answers_stays),
        FIXTURE_TEST(old_connection_that_is_mute_is_replaced),
        FIXTURE_TEST(third_hello_is_refused_at_once),
        FIXTURE_TEST(challenger_that_leaves_changes_nothing),
        FIXTURE_TEST(challenger_may_not_speak_yet),
        FIXTURE_TEST(time_to_list_begins_when_the_question_leaves),
        FIXTURE_TEST(heartbeat_is_answered_at_once),
        FIXTURE_TEST(spoofed_ids_are_refused_and_counted),
        FIXTURE_TEST(silent_server_is_offline_and_its_matches_are_lost_once),
        FIXTURE_TEST(dropped_server_is_unplaceable_at_once_and_offline_later),
        FIXTURE_TEST(idle_offline_server_is_forgotten),
        FIXTURE_TEST(stopped_process_calls_nobody_silent),
        FIXTURE_TEST(gap_is_noticed_by_whatever_happens_first),
        FIXTURE_TEST(store_that_is_up_after_a_stop_calls_nobody_silent),
        FIXTURE_TEST(wall_clock_jumps_change_nothing),
        FIXTURE_TEST(reconnect_keeps_the_id_and_waits_for_the_list),
        FIXTURE_TEST(restarted_server_without_matches_ends_them),
        FIXTURE_TEST(lost_match_comes_back_with_its_server),
        FIXTURE_TEST(lost_match_ends_after_its_time),
        FIXTURE_TEST(server_that_does_not_list_is_placeable_after_two_seconds),
        FIXTURE_TEST(twice_fewer_matches_asks_for_the_list),
        FIXTURE_TEST(two_zero_reports_of_a_server_without_lists_end_old_matches),
        FIXTURE_TEST(other_shortfalls_close_nothing),
        FIXTURE_TEST(strangers_take_their_slots_and_ids),
        FIXTURE_TEST(full_list_proves_nothing_about_the_rest),
        FIXTURE_TEST(two_spellings_of_an_address_are_one_server),
        FIXTURE_TEST(server_drains_itself),
        FIXTURE_TEST(operator_drains_a_server),
        FIXTURE_TEST(addresses_nobody_can_be_reached_at_are_refused),
        FIXTURE_TEST(mapped_address_is_the_address),
        FIXTURE_TEST(next_process_is_not_bound_by_the_drain_of_the_last),
        FIXTURE_TEST(drain_said_again_after_a_reconnect_stands),
        FIXTURE_TEST(drain_of_a_server_that_holds_matches_survives_a_reconnect),
        FIXTURE_TEST(server_does_not_undo_an_operators_drain),
        FIXTURE_TEST(server_away_while_read_only_has_its_time_afterwards),
        FIXTURE_TEST(known_peers_come_back_while_read_only),
        FIXTURE_TEST(back_off_doubles_to_its_limit_and_is_reset_by_success),
        FIXTURE_TEST(one_drop_backs_off_once),
        FIXTURE_TEST(list_let_go_while_read_only_is_asked_for_again),
        FIXTURE_TEST(lost_match_of_a_listless_server_survives_a_lost_batch),
        FIXTURE_TEST(connection_that_was_to_be_closed_is_closed_after_a_lost_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

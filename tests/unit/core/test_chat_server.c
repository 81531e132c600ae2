#include "fixture.h"

/* ── hello ─────────────────────────────────────────────────────────────────────────────────── */

static void refused(struct fixture *f, const char *name, const uint8_t *regions, uint32_t n,
                    int err)
{
    conn_id conn = say_chat_hello(f, name, regions, n);
    answered(f, EFFECT_CHAT_HELLO, conn, err);
    assert_null(peer_find(f->core, conn));
}

static void hello_errors_come_in_their_order(void **state)
{
    struct fixture *f = *state;
    static const uint8_t no_region[] = {REGION_AUTO};
    static const uint8_t eu[] = {EU};
    f->core->config.any_token = false;
    refused(f, "no name", no_region, 1, ERR_INVALID_TOKEN);
    f->core->config.any_token = true;
    refused(f, "no name", no_region, 1, ERR_INVALID_CHAT_SERVER);
    refused(f, "name", no_region, 1, ERR_INVALID_REGION);
    say_chat_hello(f, "name", eu, 1);
    conn_id conn = f->last_conn;
    assert_true(answered(f, EFFECT_CHAT_HELLO, conn, 0)->wall_ms == fixture_wall_ms);
}

static void names_and_regions_have_limits(void **state)
{
    struct fixture *f = *state;
    static const uint8_t regions[] = {EU, 18, 0xFF, 64, USE};
    char name[66] = {0};
    memset(name, 'x', 65);
    refused(f, name, regions, 1, ERR_INVALID_CHAT_SERVER);
    refused(f, "", regions, 1, ERR_INVALID_CHAT_SERVER);
    refused(f, "a/b", regions, 1, ERR_INVALID_CHAT_SERVER);
    refused(f, "\xC3\xA9", regions, 1, ERR_INVALID_CHAT_SERVER);
    refused(f, "a", regions, 0, ERR_INVALID_REGION);
    refused(f, "a", regions, 2, ERR_INVALID_REGION); /* one bad region spoils the rest */
    refused(f, "a", regions + 2, 1, ERR_INVALID_REGION);
    refused(f, "a", regions + 3, 1, ERR_INVALID_REGION);
    name[64] = '\0';
    conn_id conn = say_chat_hello(f, name, regions, 1);
    answered(f, EFFECT_CHAT_HELLO, conn, 0);
    conn = say_chat_hello(f, "Az09._-", regions, 1);
    answered(f, EFFECT_CHAT_HELLO, conn, 0);
}

static void hello_lists_the_servers_of_its_regions(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 3);
    struct chat_sv_handshake elsewhere = server_hello_of(2001, 3);
    elsewhere.region = 9;
    server_up_with(f, elsewhere);
    conn_id offline = server_up(f, 2002, 3);
    gone(f, offline);
    pass(f, 31000);
    conn_id conn = chat_up(f, "chat");
    const struct effect *e = effect(f, EFFECT_CHAT_HELLO, conn);
    assert_int_equal(e->servers.n, 1);
    struct cursor c = cursor_of(e->servers.data, e->servers.len);
    struct chat_server_entry entry;
    chat_decode_server(&c, &entry);
    cursor_end(&c);
    assert_false(cursor_failed(&c));
    assert_int_equal(entry.server_id, 1);
    assert_true(str_eq(entry.ip, STR("10.0.0.1")));
    assert_int_equal(entry.port, 2000);
    assert_int_equal(entry.region, EU);
    assert_int_equal(entry.max_matches, 3);
}

static void list_is_cut_where_the_frame_is_full(void **state)
{
    struct fixture *f = *state;
    struct chat_sv_handshake hello = server_hello_of(0, 1);
    hello.ip = STR("2001:db8:1111:2222:3333:4444:5555:6666");
    for (int32_t port = 2000; port < 2500; port++) {
        hello.port = port;
        say_server_hello(f, hello);
    }
    conn_id conn = chat_up(f, "chat");
    const struct effect *e = effect(f, EFFECT_CHAT_HELLO, conn);
    assert_in_range(e->servers.n, 200, 499);
    assert_int_equal(e->servers.len, e->servers.n * (4 + 39 + 4 + 1 + 4));
    assert_in_range(2 + 1 + 8 + 4 + e->servers.len, FRAME_MAX - 64, FRAME_MAX);
}

static void too_many_chat_servers_are_refused(void **state)
{
    struct fixture *f = *state;
    static const uint8_t eu[] = {EU};
    f->core->config.limits.chat_servers = 1;
    chat_up(f, "a");
    refused(f, "b", eu, 1, ERR_INTERNAL);
}

static void old_connection_that_answers_stays(void **state)
{
    struct fixture *f = *state;
    static const uint8_t eu[] = {EU};
    conn_id old = chat_up(f, "chat");
    conn_id young = say_chat_hello(f, "chat", eu, 1);
    effect(f, EFFECT_PING, old);
    conn_id third = say_chat_hello(f, "chat", eu, 1);
    answered(f, EFFECT_CHAT_HELLO, third, ERR_CHAT_ALREADY_REGISTERED);
    pong(f, old);
    answered(f, EFFECT_CHAT_HELLO, young, ERR_CHAT_ALREADY_REGISTERED);
    assert_true(chat_of(f, old)->conn == old);
}

static void old_connection_that_is_mute_is_replaced(void **state)
{
    struct fixture *f = *state;
    static const uint8_t eu[] = {EU};
    conn_id old = chat_up(f, "chat");
    conn_id young = say_chat_hello(f, "chat", eu, 1);
    pass(f, 999);
    assert_int_equal(f->batch.effects.len, 0);
    pass(f, 1);
    effect(f, EFFECT_CLOSE, old);
    answered(f, EFFECT_CHAT_HELLO, young, 0);
    assert_true(chat_of(f, young)->conn == young);
    assert_true(chat_of(f, young)->regions == (uint64_t)1 << EU);
    gone(f, old);
    assert_true(chat_of(f, young)->conn == young);
}

static void silent_chat_server_is_gone_after_90_seconds(void **state)
{
    struct fixture *f = *state;
    conn_id conn = chat_up(f, "chat");
    pass(f, 60000);
    chat_beat(f, conn);
    assert_int_equal(f->batch.immediate.items[0].kind, EFFECT_CHAT_HEARTBEAT);
    pass(f, 89999);
    assert_int_equal(f->batch.effects.len, 0);
    pass(f, 1);
    effect(f, EFFECT_CLOSE, conn);
    assert_null(peer_find(f->core, conn));
}

static void chat_server_without_tickets_is_forgotten(void **state)
{
    struct fixture *f = *state;
    conn_id conn = chat_up(f, "chat");
    conn_id server = server_up(f, 2000, 2);
    open_match(f, conn, 1, NULL);
    match_ended(f, server, 1);
    gone(f, conn);
    pass(f, f->config.timeouts.keep_ms);
    assert_int_equal(f->core->chat_servers.len, 1);
    pass(f, f->config.timeouts.forget_ms);
    assert_int_equal(f->core->chat_servers.len, 0);
}

/* ── events ────────────────────────────────────────────────────────────────────────────────── */

/* The events told to that connection in the last step, as digits in their order. */
static const char *told(const struct fixture *f, conn_id conn)
{
    static char text[32];
    size_t n = 0;
    for (int i = 0; nth_effect(f, EFFECT_MATCH_EVENT, conn, i); i++)
        text[n++] = (char)('0' + nth_effect(f, EFFECT_MATCH_EVENT, conn, i)->event);
    text[n] = '\0';
    return text;
}

struct scene {
    conn_id chat;
    conn_id server;
    char token[TOKEN_SIZE];
};

/* A match is open; its chat server never falls silent. */
static struct scene open_scene(struct fixture *f)
{
    struct scene s = {0};
    f->core->config.timeouts.chat_ms = INT32_MAX;
    f->config.timeouts.chat_ms = INT32_MAX;
    s.chat = chat_up(f, "chat");
    s.server = server_up(f, 2000, 2);
    open_match(f, s.chat, 1, s.token);
    return s;
}

static void lose_server(struct fixture *f, struct scene *s)
{
    gone(f, s->server);
    pass(f, 31000);
    assert_int_equal(state_of_session(f, 1), SESSION_LOST);
}

static void return_server(struct fixture *f, struct scene *s)
{
    s->server = server_back(f, 2000, 2);
    match_list(f, s->server, 1, 1);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
}

static void events_come_as_they_happen(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    ready(f, s.server, 1, s.token);
    assert_string_equal(told(f, s.chat), "0");
    ready(f, s.server, 1, s.token); /* once */
    assert_string_equal(told(f, s.chat), "");
    lose_server(f, &s);
    assert_string_equal(told(f, s.chat), "1");
    return_server(f, &s);
    assert_string_equal(told(f, s.chat), "3");
    match_ended(f, s.server, 1);
    assert_string_equal(told(f, s.chat), "2");
    seal(f);
    seal(f);
    assert_int_equal(session_of(f, 1)->row.events_owed, 0);
}

static void events_wait_for_a_chat_server_that_is_away(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.chat);
    ready(f, s.server, 1, s.token);
    lose_server(f, &s);
    pass(f, f->config.timeouts.lost_ms);
    assert_int_equal(state_of_session(f, 1), SESSION_ENDED);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "012");
    assert_int_equal(nth_effect(f, EFFECT_MATCH_EVENT, s.chat, 2)->lobby, 1);
    /* The answer to its hello comes first. */
    assert_int_equal(f->batch.effects.items[0].kind, EFFECT_CHAT_HELLO);
}

static void lost_and_back_that_nobody_heard_of_cancel_out(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.chat);
    lose_server(f, &s);
    return_server(f, &s);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "");
}

/* It heard LOST, left before that was struck off, and must hear BACK. */
static void back_is_told_to_whoever_may_have_heard_lost(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    lose_server(f, &s);
    assert_string_equal(told(f, s.chat), "1");
    gone(f, s.chat);
    return_server(f, &s);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "13");
}

static void back_is_told_after_a_crash_that_followed_lost(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    lose_server(f, &s);
    assert_string_equal(told(f, s.chat), "1");
    seal(f); /* durable, so it has left; that it left is not yet durable */
    crash(f, 1000);
    return_server(f, &s);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "13");
}

static void back_is_told_after_a_lost_batch_that_followed_lost(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    lose_server(f, &s);
    seal(f);
    lose_batch(f);
    store_up(f);
    return_server(f, &s);
    const char *events = told(f, s.chat);
    assert_int_equal(events[strlen(events) - 1], '3');
}

/* LOST, BACK, LOST: whatever is told again, the last word is LOST. */
static void last_word_is_the_truth(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    lose_server(f, &s);
    return_server(f, &s);
    assert_string_equal(told(f, s.chat), "3");
    gone(f, s.chat); /* BACK may have been heard or not */
    lose_server(f, &s);
    s.chat = chat_up(f, "chat");
    const char *events = told(f, s.chat);
    assert_true(strlen(events) > 0);
    assert_int_equal(events[strlen(events) - 1], '1');
}

static void event_is_struck_off_when_its_batch_has_left(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    ready(f, s.server, 1, s.token);
    core_seal(f->core, &f->batch);
    assert_true(session_of(f, 1)->row.events_owed != 0); /* it leaves with this batch */
    buf_append(&f->journal, f->batch.changes.data, f->batch.changes.len);
    struct batch first = f->batch;
    f->batch = (struct batch){0};
    core_seal(f->core, &f->batch); /* the next is on its way before the first has left */
    assert_true(session_of(f, 1)->row.events_owed != 0);
    assert_int_equal(f->batch.changes.len, 0);
    core_left(f->core, &first);
    batch_done(&first);
    core_hasten(f->core);
    core_seal(f->core, &f->batch);
    assert_int_equal(session_of(f, 1)->row.events_owed, 0);
    assert_true(f->batch.changes.len > 0);
    buf_append(&f->journal, f->batch.changes.data, f->batch.changes.len);
    batch_clear(&f->batch);
    crash(f, 1000);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "");
}

/* Nobody waits until it is stored that an event has left, so that alone makes no batch at once. */
static void what_is_struck_off_waits_for_company(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    ready(f, s.server, 1, s.token);
    seal(f);
    int64_t seq = core_seq(f->core);
    seal(f);
    assert_int_equal(session_of(f, 1)->row.events_owed, 0);
    f->now.core_ms += CORE_STRUCK_OFF_MS - 1;
    add_tick(f);
    seal(f);
    assert_int_equal(core_seq(f->core), seq);
    f->now.core_ms += 1; /* long enough */
    add_tick(f);
    seal(f);
    assert_int_equal(core_seq(f->core), seq + 1);
    crash(f, 1000);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "");
}

static void what_is_struck_off_goes_with_the_next_batch(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    ready(f, s.server, 1, s.token);
    seal(f);
    seal(f);
    int64_t seq = core_seq(f->core);
    (void)server_up(f, 3000, 1);
    seal(f);
    assert_int_equal(core_seq(f->core), seq + 1);
    crash(f, 1000);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "");
}

/* Told on a hello, in a batch that changes nothing else. */
static void event_told_on_a_hello_is_struck_off_too(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.chat);
    ready(f, s.server, 1, s.token);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "0");
    seal(f);
    seal(f);
    gone(f, s.chat);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "");
}

static void event_is_repeated_after_a_crash(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    ready(f, s.server, 1, s.token);
    seal(f);
    crash(f, 1000); /* nobody knows whether it left */
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "0");
}

static void event_is_told_again_on_a_new_connection(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    ready(f, s.server, 1, s.token);
    gone(f, s.chat); /* before that batch had left */
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "0");
}

static void end_by_time_is_told_to_a_chat_server_that_was_away(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.chat);
    pass(f, f->config.timeouts.session_ms);
    assert_int_equal(state_of_session(f, 1), SESSION_CANCELLING);
    cancel_ack(f, s.server, 1);
    crash(f, 0);
    s.chat = chat_up(f, "chat");
    assert_string_equal(told(f, s.chat), "2");
    assert_true(str_eq(effect(f, EFFECT_MATCH_EVENT, s.chat)->text, STR("Match too long")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(hello_errors_come_in_their_order),
        FIXTURE_TEST(names_and_regions_have_limits),
        FIXTURE_TEST(hello_lists_the_servers_of_its_regions),
        FIXTURE_TEST(list_is_cut_where_the_frame_is_full),
        FIXTURE_TEST(too_many_chat_servers_are_refused),
        FIXTURE_TEST(old_connection_that_answers_stays),
        FIXTURE_TEST(old_connection_that_is_mute_is_replaced),
        FIXTURE_TEST(silent_chat_server_is_gone_after_90_seconds),
        FIXTURE_TEST(chat_server_without_tickets_is_forgotten),
        FIXTURE_TEST(events_come_as_they_happen),
        FIXTURE_TEST(events_wait_for_a_chat_server_that_is_away),
        FIXTURE_TEST(lost_and_back_that_nobody_heard_of_cancel_out),
        FIXTURE_TEST(back_is_told_to_whoever_may_have_heard_lost),
        FIXTURE_TEST(back_is_told_after_a_crash_that_followed_lost),
        FIXTURE_TEST(back_is_told_after_a_lost_batch_that_followed_lost),
        FIXTURE_TEST(last_word_is_the_truth),
        FIXTURE_TEST(event_is_struck_off_when_its_batch_has_left),
        FIXTURE_TEST(what_is_struck_off_waits_for_company),
        FIXTURE_TEST(what_is_struck_off_goes_with_the_next_batch),
        FIXTURE_TEST(event_told_on_a_hello_is_struck_off_too),
        FIXTURE_TEST(event_is_repeated_after_a_crash),
        FIXTURE_TEST(event_is_told_again_on_a_new_connection),
        FIXTURE_TEST(end_by_time_is_told_to_a_chat_server_that_was_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

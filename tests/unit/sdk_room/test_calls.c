/* What the game says to the agent, and what comes of the answers. */
#include "fake_agent.h"

static void test_ready_is_inited(void **state)
{
    struct fake *f = *state;
    assert_int_equal(muster_room_ready(f->room, NULL, on_reply, f), 0);
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"inited\",\"params\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"status\":\"OK\"}}");
    told(f, "yes\n");
    assert_false(muster_room_refused(f->room));
    assert_int_equal(muster_room_waiting(f->room), 0);
}

static void test_ready_may_carry_settings(void **state)
{
    struct fake *f = *state;
    assert_int_equal(muster_room_ready(f->room, "{\"map\": \"pit\"}", on_reply, f), 0);
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"inited\",\"params\":{\"settings\":"
             "{\"map\": \"pit\"}}}");
}

static void test_a_refused_ready_wishes_the_exit(void **state)
{
    struct fake *f = *state;
    muster_room_ready(f->room, NULL, on_reply, f);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":410,\"message\":\"given up\"}}");
    told(f, "no 410 given up\n");
    assert_true(muster_room_refused(f->room));
}

static void test_joined_says_who_he_is(void **state)
{
    struct fake *f = *state;
    assert_int_equal(muster_room_joined(f->room, "k1", NULL, NULL, on_reply, f), 0);
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"joined\",\"params\":{\"key\":\"k1\"}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"result\":{\"access_token\":\"t\\u00e9\",\"account\":\"anna\","
           "\"info\":{\"a\":[1, \"x\"]},\"scopes\":[\"game\",\"profile\"]},\"id\":1}");
    told(f, "player anna t\xc3\xa9 [game,profile] {\"a\":[1, \"x\"]}\n");
}

static void test_joined_may_extend_the_token(void **state)
{
    struct fake *f = *state;
    assert_int_equal(muster_room_joined(f->room, "k1", "tok", "a,b", on_reply, f), 0);
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"joined\",\"params\":{\"key\":\"k1\","
             "\"extend_token\":\"tok\",\"extend_scopes\":\"a,b\"}}");
    assert_int_equal(muster_room_joined(f->room, "k1", "tok", NULL, on_reply, f),
                     MUSTER_ROOM_E_TEXT);
}

/* The seed's shorter answer has neither account nor info. */
static void test_joined_needs_no_more_than_a_token(void **state)
{
    struct fake *f = *state;
    muster_room_joined(f->room, "k1", NULL, NULL, on_reply, f);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"access_token\":\"t\",\"scopes\":[]}}");
    told(f, "player  t [] {}\n");
    muster_room_joined(f->room, "k1", NULL, NULL, on_reply, f);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"access_token\":\"t\",\"account\":12}}");
    told(f, "player 12 t [] {}\n");
}

static void test_a_refusal_has_code_and_sentence(void **state)
{
    struct fake *f = *state;
    muster_room_joined(f->room, "k1", NULL, NULL, on_reply, f);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":403,\"message\":\"no such key\"}}");
    told(f, "no 403 no such key\n");
}

static void test_the_other_calls(void **state)
{
    struct fake *f = *state;
    assert_int_equal(muster_room_left(f->room, "k1", on_reply, f), 0);
    assert_int_equal(muster_room_update_settings(f->room, "{}", on_reply, f), 0);
    assert_int_equal(muster_room_check_deployment(f->room, on_reply, f), 0);
    assert_int_equal(muster_room_waiting(f->room), 3);
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"left\",\"params\":{\"key\":\"k1\"}}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"update_settings\",\"params\":"
             "{\"settings\":{}}}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"check_deployment\",\"params\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":410,\"message\":\"outdated\"}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{},\"error\":null}");
    told(f, "no 410 outdated\nyes\nyes\n");
    assert_int_equal(muster_room_waiting(f->room), 0);
}

static void test_texts_are_escaped_and_checked(void **state)
{
    struct fake *f = *state;
    muster_room_left(f->room, "a\"b\\c\n\xc3\xa4", NULL, NULL);
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"left\",\"params\":"
             "{\"key\":\"a\\u0022b\\u005cc\\u000a\xc3\xa4\"}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"); /* nobody wants to know: no crash */
    assert_int_equal(muster_room_waiting(f->room), 0);
    static const char *const not_utf8[] = {
        "\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "a\x80"};
    for (size_t i = 0; i < sizeof(not_utf8) / sizeof(not_utf8[0]); i++)
        assert_int_equal(muster_room_left(f->room, not_utf8[i], NULL, NULL), MUSTER_ROOM_E_TEXT);
    assert_int_equal(muster_room_left(f->room, "", NULL, NULL), MUSTER_ROOM_E_TEXT);
    assert_int_equal(muster_room_left(f->room, NULL, NULL, NULL), MUSTER_ROOM_E_TEXT);
    assert_int_equal(muster_room_update_settings(f->room, "[]", NULL, NULL),
                     MUSTER_ROOM_E_SETTINGS);
    assert_int_equal(muster_room_update_settings(f->room, NULL, NULL, NULL),
                     MUSTER_ROOM_E_SETTINGS);
    assert_int_equal(muster_room_ready(f->room, "{} {}", NULL, NULL), MUSTER_ROOM_E_SETTINGS);
    assert_int_equal(muster_room_waiting(f->room), 0);
}

static void test_an_answer_that_makes_no_sense_is_told_as_such(void **state)
{
    struct fake *f = *state;
    static const char *const nonsense[] = {
        "",
        ",\"result\":null",
        ",\"result\":{}",
        ",\"result\":{\"access_token\":5}",
        ",\"result\":{\"access_token\":\"a\\u0000b\"}",
        ",\"result\":{\"access_token\":\"t\",\"scopes\":[1]}",
        ",\"result\":{\"access_token\":\"t\",\"scopes\":\"game\"}",
        ",\"result\":{\"access_token\":\"t\",\"access_token\":\"u\"}",
        ",\"result\":{\"access_token\":\"t\"},\"result\":{\"access_token\":\"u\"}",
        ",\"error\":5",
        ",\"error\":{}",
        ",\"error\":{\"code\":\"x\",\"message\":\"m\"}",
        ",\"error\":{\"code\":0,\"message\":\"m\"}",
        ",\"error\":{\"code\":1.5,\"message\":\"m\"}",
        ",\"error\":{\"code\":99999999999,\"message\":\"m\"}",
        ",\"error\":{\"code\":5}",
    };
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        char answer[256];
        muster_room_joined(f->room, "k", NULL, NULL, on_reply, f);
        hear(f);
        snprintf(answer, sizeof(answer), "{\"jsonrpc\":\"2.0\",\"id\":%zu%s}", i + 1, nonsense[i]);
        say(f, answer);
        told(f, "no -1 the agent's answer is malformed\n");
    }
}

static void test_answers_to_nothing_are_ignored(void **state)
{
    struct fake *f = *state;
    muster_room_left(f->room, "k", on_reply, f);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"result\":{}}");
    told(f, "");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    told(f, "yes\n");
}

static void say_left(void *user, const struct muster_room_answer *answer)
{
    struct fake *f = user;
    note(f, "told %d", answer->code);
    assert_int_equal(muster_room_left(f->room, answer->account, on_reply, f), 0);
}

static void test_a_reply_may_call(void **state)
{
    struct fake *f = *state;
    muster_room_joined(f->room, "k", NULL, NULL, say_left, f);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"access_token\":\"t\",\"account\":\"a\"}}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"left\",\"params\":{\"key\":\"a\"}}");
    told(f, "told 0\n");
}

/* More than libzmq holds are said at once; each is sent once, in order, and answered. */
static void test_a_thousand_calls_in_bursts_by_the_descriptor(void **state)
{
    struct fake *f = *state;
    int64_t id = 0;
    for (int burst = 0; burst < 5; burst++) {
        for (int i = 0; i < 200; i++)
            assert_int_equal(muster_room_left(f->room, "k", on_reply, f), 0);
        for (int i = 0; i < 200; i++) {
            char expected[96];
            char answer[64];
            snprintf(expected, sizeof(expected), "\"id\":%lld,\"method\":\"left\"",
                     (long long)++id);
            assert_non_null(strstr(hear(f), expected));
            snprintf(answer, sizeof(answer), "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{}}",
                     (long long)id);
            say_bytes(f, answer, strlen(answer));
        }
        while (muster_room_waiting(f->room) > 0) {
            struct pollfd p = {.fd = muster_room_fd(f->room), .events = POLLIN};
            assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
            muster_room_poll(f->room, 0);
        }
        assert_int_equal(strlen(f->log), 200 * strlen("yes\n"));
        f->log[0] = '\0';
    }
}

static void test_a_quiet_descriptor_is_not_readable(void **state)
{
    struct fake *f = *state;
    muster_room_left(f->room, "k", on_reply, f);
    struct pollfd p = {.fd = muster_room_fd(f->room), .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 1); /* there is something to send */
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    assert_int_equal(poll(&p, 1, 0), 0);
    muster_room_poll(f->room, 0);
    assert_int_equal(poll(&p, 1, 0), 0);
}

static void test_an_unanswered_call_is_repeated_with_its_id(void **state)
{
    (void)state;
    static struct fake f;
    fake_agent(&f);
    fake_room(&f, 1000);
    int64_t before_ms = clock_ms();
    muster_room_joined(f.room, "k", NULL, NULL, on_reply, &f);
    muster_room_left(f.room, "k", on_reply, &f);
    static const char joined[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"joined\",\"params\":{\"key\":\"k\"}}";
    hears(&f, joined);
    assert_non_null(strstr(hear(&f), "\"id\":2"));
    hears(&f, joined); /* in the order they were said */
    assert_true(clock_ms() - before_ms >= 1000);
    assert_non_null(strstr(hear(&f), "\"id\":2"));
    say(&f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"access_token\":\"t\"}}");
    assert_non_null(strstr(hear(&f), "\"id\":2"));
    fake_stop(&f);
}

/* A busy agent forgets what it refuses. A player can be told so; a seat that is free again cannot.
 */
static void test_a_busy_agent_is_told_again(void **state)
{
    (void)state;
    static struct fake f;
    fake_agent(&f);
    fake_room(&f, 1000);
    const char *busy = "{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":{\"code\":503,\"message\":\"b\"}}";
    char answer[96];
    muster_room_ready(f.room, NULL, on_reply, &f);
    muster_room_left(f.room, "k", on_reply, &f);
    for (int id = 1; id <= 2; id++) {
        hear(&f);
        snprintf(answer, sizeof(answer), busy, id);
        say(&f, answer);
    }
    told(&f, "");
    assert_false(muster_room_refused(f.room));
    assert_int_equal(muster_room_waiting(f.room), 2);
    assert_non_null(strstr(hear(&f), "\"id\":1,\"method\":\"inited\""));
    assert_non_null(strstr(hear(&f), "\"id\":2,\"method\":\"left\""));
    say(&f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    say(&f, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}");
    told(&f, "yes\nyes\n");
    assert_int_equal(muster_room_waiting(f.room), 0);
    muster_room_joined(f.room, "k", NULL, NULL, on_reply, &f);
    hear(&f);
    snprintf(answer, sizeof(answer), busy, 3);
    say(&f, answer);
    told(&f, "no 503 b\n");
    fake_stop(&f);
}

/* What the dead agent had taken is said again; what it had not arrives anyway. */
static void test_an_agent_that_comes_back_gets_every_call(void **state)
{
    (void)state;
    static struct fake f;
    fake_agent(&f);
    fake_room(&f, 300);
    muster_room_joined(f.room, "taken", NULL, NULL, on_reply, &f);
    hear(&f);
    zmq_close(f.socket);
    muster_room_left(f.room, "away", on_reply, &f);
    muster_room_poll(f.room, 0);
    fake_bind(&f);
    bool taken = false;
    bool away = false;
    while (!taken || !away) {
        const char *call = hear(&f);
        taken = taken || strstr(call, "\"id\":1,\"method\":\"joined\"");
        away = away || strstr(call, "\"id\":2,\"method\":\"left\"");
    }
    say(&f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"access_token\":\"t\"}}");
    while (muster_room_waiting(f.room) > 1)
        muster_room_poll(f.room, PATIENCE_MS);
    told(&f, "player  t [] {}\n");
    fake_stop(&f);
}

static void test_what_waits_is_bounded(void **state)
{
    struct fake *f = *state;
    static char large[MUSTER_ROOM_MAX_MESSAGE];
    memset(large, 'x', sizeof(large) - 1);
    assert_int_equal(muster_room_left(f->room, large, NULL, NULL), MUSTER_ROOM_E_SIZE);
    large[60000] = '\0';
    int n = 0;
    int r;
    while ((r = muster_room_left(f->room, large, NULL, NULL)) == 0)
        n++;
    assert_int_equal(r, MUSTER_ROOM_E_FULL);
    assert_int_equal(n, MUSTER_ROOM_MAX_CALL_BYTES / (60000 + 64));
    assert_int_equal(muster_room_waiting(f->room), n);
    while ((r = muster_room_left(f->room, "k", NULL, NULL)) == 0)
        n++;
    assert_int_equal(r, MUSTER_ROOM_E_FULL);
    assert_in_range(n, 17, MUSTER_ROOM_MAX_CALLS);
}

static void test_so_many_calls_wait_and_no_more(void **state)
{
    struct fake *f = *state;
    for (int i = 0; i < MUSTER_ROOM_MAX_CALLS; i++)
        assert_int_equal(muster_room_check_deployment(f->room, on_reply, f), 0);
    assert_int_equal(muster_room_check_deployment(f->room, on_reply, f), MUSTER_ROOM_E_FULL);
    hear(f);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
    while (muster_room_waiting(f->room) == MUSTER_ROOM_MAX_CALLS)
        muster_room_poll(f->room, PATIENCE_MS);
    assert_int_equal(muster_room_check_deployment(f->room, on_reply, f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOM_TEST(test_ready_is_inited),
        ROOM_TEST(test_ready_may_carry_settings),
        ROOM_TEST(test_a_refused_ready_wishes_the_exit),
        ROOM_TEST(test_joined_says_who_he_is),
        ROOM_TEST(test_joined_may_extend_the_token),
        ROOM_TEST(test_joined_needs_no_more_than_a_token),
        ROOM_TEST(test_a_refusal_has_code_and_sentence),
        ROOM_TEST(test_the_other_calls),
        ROOM_TEST(test_texts_are_escaped_and_checked),
        ROOM_TEST(test_an_answer_that_makes_no_sense_is_told_as_such),
        ROOM_TEST(test_answers_to_nothing_are_ignored),
        ROOM_TEST(test_a_reply_may_call),
        ROOM_TEST(test_a_thousand_calls_in_bursts_by_the_descriptor),
        ROOM_TEST(test_a_quiet_descriptor_is_not_readable),
        cmocka_unit_test(test_an_unanswered_call_is_repeated_with_its_id),
        cmocka_unit_test(test_a_busy_agent_is_told_again),
        cmocka_unit_test(test_an_agent_that_comes_back_gets_every_call),
        ROOM_TEST(test_what_waits_is_bounded),
        ROOM_TEST(test_so_many_calls_wait_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

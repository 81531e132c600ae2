/* What the agent asks of the game, well or badly, and the strictness of the JSON reader. */
#include "fake_agent.h"

static void test_status_is_answered(void **state)
{
    struct fake *f = *state;
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"status\"}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"status\":\"ok\"}}");
    muster_room_set_ok(f->room, false);
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"status\",\"params\":{}}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"status\":\"not ok\"}}");
    muster_room_set_ok(f->room, true);
    say(f, " {\"method\":\"st\\u0061tus\",\"params\":[],\"id\":null,\"jsonrpc\":\"2.0\"}\n");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{\"status\":\"ok\"}}");
    told(f, "");
}

static void test_kick_is_told(void **state)
{
    struct fake *f = *state;
    say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"kick\",\"params\":{\"key\":\"k\",\"reason\":\"r\"}}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"kick\",\"params\":{\"key\":\"k2\"}}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"); /* the notification had no answer */
    told(f, "kick k (r)\nkick k2 ()\n");
}

/* One poll takes some, so that the game's loop goes on, and says that there are more: libzmq's own
 * descriptor would keep silent about them for ever. */
static void test_more_than_one_poll_takes_is_not_forgotten(void **state)
{
    struct fake *f = *state;
    static const char kick[] =
        "{\"jsonrpc\":\"2.0\",\"method\":\"kick\",\"params\":{\"key\":\"k\"}}";
    const size_t n = 800;
    for (size_t i = 0; i < n; i++)
        say_bytes(f, kick, strlen(kick));
    while (strlen(f->log) < n * strlen("kick k ()\n")) {
        struct pollfd p = {.fd = muster_room_fd(f->room), .events = POLLIN};
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        muster_room_poll(f->room, 0);
    }
}

static void test_malformed_calls_are_answered_and_nothing_ends(void **state)
{
    struct fake *f = *state;
    static const struct {
        const char *said;
        const char *id;
        int code;
    } malformed[] = {
        {"", "null", -32700},
        {"x", "null", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"", "null", -32700},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}}", "null", -32700},
        {"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}]", "null", -32600},
        {"5", "null", -32600},
        {"{\"id\":1,\"method\":\"status\"}", "1", -32600},
        {"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"status\"}", "1", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", "1", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"status\"}", "null", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"status\"}", "null", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":\"0123456789012345678901234567890123456789012345678901234567"
         "890123456789\",\"method\":\"status\"}",
         "null", -32600},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"dance\"}", "1", -32601},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"kick\"}", "1", -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"kick\",\"params\":[\"k\"]}", "1", -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"kick\",\"params\":{\"key\":1}}", "1", -32602},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"kick\",\"params\":{\"key\":\"\\u0000\"}}", "1",
         -32602},
    };
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        char expected[96];
        snprintf(expected, sizeof(expected),
                 "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,", malformed[i].id,
                 malformed[i].code);
        say(f, malformed[i].said);
        hear(f);
        f->heard[strlen(expected)] = '\0';
        assert_string_equal(f->heard, expected);
    }
    say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"dance\"}"); /* never answered */
    say(f, "{\"jsonrpc\":\"2.0\",\"method\":\"kick\"}");
    say(f, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"status\"}");
    hears(f, "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"status\":\"ok\"}}");
    told(f, "");
}

static void test_only_json_is_json(void **state)
{
    struct fake *f = *state;
    static const char *const not_json[] = {
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":-}",
        "{\"a\":1e}",
        "{\"a\":tru}",
        "{\"a\":True}",
        "{\"a\":NaN}",
        "{\"a\":[1,]}",
        "{\"a\":[1}",
        "{\"a\":\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\udc00\"}",
        "{\"a\":\"\\ud800\\u0041\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":\"\xc3\"}",
        "{\"a\":\"\\\"}",
        "{} x",
        "{}{}",
        "{\"a\":1 \"b\":2}",
        "\xef\xbb\xbf{}",
    };
    for (size_t i = 0; i < sizeof(not_json) / sizeof(not_json[0]); i++)
        assert_int_equal(muster_room_update_settings(f->room, not_json[i], NULL, NULL),
                         MUSTER_ROOM_E_SETTINGS);
    static const char *const json[] = {
        "{}",
        " { } ",
        "{\"a\":-0.5e+7,\"b\":[true,false,null,[],{}],\"\":\"\\ud83d\\ude00\\/\"}",
        "{\"a\":0}",
        "{\"a\":\"\xf0\x9f\x98\x80\"}",
    };
    for (size_t i = 0; i < sizeof(json) / sizeof(json[0]); i++)
        assert_int_equal(muster_room_update_settings(f->room, json[i], NULL, NULL), 0);
}

static void test_depth_is_bounded(void **state)
{
    struct fake *f = *state;
    char deep[160] = "{\"a\":";
    for (int i = 0; i < 63; i++)
        strcat(deep, "[");
    for (int i = 0; i < 63; i++)
        strcat(deep, "]");
    strcat(deep, "}");
    assert_int_equal(muster_room_update_settings(f->room, deep, NULL, NULL), 0);
    memmove(deep + 6, deep + 5, strlen(deep + 5) + 1); /* one more of each */
    deep[5] = '[';
    deep[strlen(deep) - 1] = '\0';
    strcat(deep, "]}");
    assert_int_equal(muster_room_update_settings(f->room, deep, NULL, NULL),
                     MUSTER_ROOM_E_SETTINGS);
}

static void test_a_nul_is_no_space(void **state)
{
    struct fake *f = *state;
    static const char call[] = "\0{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"status\"}";
    say_bytes(f, call, sizeof(call) - 1);
    assert_non_null(strstr(hear(f), "-32700"));
    say_bytes(f, call + 1, sizeof(call) - 1);
    assert_non_null(strstr(hear(f), "-32700"));
}

static void test_settings_are_read_by_name(void **state)
{
    (void)state;
    static const char s[] =
        "{\"map\":\"p\\u0069t\\n\",\"n\":12.5,\"on\":true,\"no\":null,\"list\":[],"
        "\"rules\":{\"rounds\":3,\"deep\":{\"x\":\"y\"}},\"nul\":\"\\u0000\"}";
    static const struct {
        const char *name;
        const char *value; /* NULL = there is none */
    } expected[] = {
        {"map", "pit\n"},      {"n", "12.5"},   {"on", "true"}, {"rules.rounds", "3"},
        {"rules.deep.x", "y"}, {"no", NULL},    {"list", NULL}, {"rules", NULL},
        {"rules.none", NULL},  {"map.x", NULL}, {"nul", NULL},  {"", NULL},
        {"rules.", NULL},      {"none", NULL},
    };
    char value[8];
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        bool there = muster_room_setting(s, expected[i].name, value, sizeof(value));
        assert_int_equal(there, expected[i].value != NULL);
        assert_string_equal(value, there ? expected[i].value : "");
    }
    char small[4];
    assert_false(muster_room_setting(s, "map", small, sizeof(small)));
    assert_string_equal(small, "");
    assert_false(muster_room_setting(s, "n", small, sizeof(small)));
    assert_true(muster_room_setting("{\"m\":\"abc\"}", "m", small, sizeof(small)));
    assert_string_equal(small, "abc");
    assert_false(muster_room_setting("{\"m\":1", "m", small, sizeof(small)));
    assert_false(muster_room_setting("{\"m\":1,\"m\":2}", "m", small, sizeof(small)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOM_TEST(test_status_is_answered),
        ROOM_TEST(test_kick_is_told),
        ROOM_TEST(test_more_than_one_poll_takes_is_not_forgotten),
        ROOM_TEST(test_malformed_calls_are_answered_and_nothing_ends),
        ROOM_TEST(test_only_json_is_json),
        ROOM_TEST(test_depth_is_bounded),
        ROOM_TEST(test_a_nul_is_no_space),
        cmocka_unit_test(test_settings_are_read_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/agones_object.h"

#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json *parse(const char *text)
{
    char why[JSON_WHY_MAX];
    struct json *v = json_parse(str_of(text), why);
    assert_non_null(v);
    return v;
}

#define ASSERT_STR(s_, text_)                                                                      \
    do {                                                                                           \
        struct str is_ = (s_);                                                                     \
        assert_int_equal(is_.len, strlen(text_));                                                  \
        assert_memory_equal(is_.at, text_, is_.len);                                               \
    } while (0)

#define GAMESERVER(state_, more_)                                                                  \
    "{\"metadata\":{\"name\":\"starx-1\",\"resourceVersion\":\"77\"" more_                         \
    "},\"status\":{\"state\":\"" state_ "\",\"address\":\"10.0.0.1\",\"ports\":["                  \
    "{\"name\":\"metrics\",\"port\":9000},{\"name\":\"game\",\"port\":7001}]}}"

static void test_a_gameserver_with_our_marks(void **state)
{
    (void)state;
    struct gameserver_object o;
    struct json *v = parse(GAMESERVER("Allocated", ",\"annotations\":{\"quilkin.dev/tokens\":"
                                                   "\"A,B\",\"muster.dev/server\":\"12\","
                                                   "\"muster.dev/session\":\"13\","
                                                   "\"muster.dev/instance\":\"me\"}"));
    assert_true(gameserver_read(v, "game", &o));
    ASSERT_STR(o.name, "starx-1");
    ASSERT_STR(o.version, "77");
    ASSERT_STR(o.address, "10.0.0.1");
    ASSERT_STR(o.tokens, "A,B");
    ASSERT_STR(o.instance, "me");
    assert_int_equal(o.state, GAMESERVER_ALLOCATED);
    assert_int_equal(o.server, 12);
    assert_int_equal(o.session, 13);
    assert_int_equal(o.n_ports, 2);
    assert_int_equal(o.ports[0], 7001);
    assert_int_equal(o.ports[1], 9000);
    json_free(v);
}

static void test_what_nobody_reads_is_passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *read; /* NULL = it is no JSON */
    } rows[] = {
        {"{\"spec\":{\"a\":[1,{\"b\":\"}]\"}]},\"c\":1}", "{\"c\":1,\"spec\":0}"},
        {"{\"managedFields\" :\n [{\"a\\\"]\":1}] , \"c\":2}", "{\"c\":2,\"managedFields\":0}"},
        {"[{\"spec\":{}},{\"spec\":[]}]", "[{\"spec\":0},{\"spec\":0}]"},
        {"{\"spec\":{\"not\":json}}", "{\"spec\":0}"},
        {"{\"a\":\"spec\",\"b\":{\"c\":\"\\\"spec\\\":{\"}}",
         "{\"a\":\"spec\",\"b\":{\"c\":\"\\\"spec\\\":{\"}}"},
        {"{\"spec\":\"text\",\"managedFields\":null}",
         "{\"managedFields\":null,\"spec\":\"text\"}"},
        {"{\"spec\":{\"a\":\"\\\\\"},\"b\":\"\\\\\\\"\"}", "{\"b\":\"\\\\\\\"\",\"spec\":0}"},
        {"{\"spec\":{\"a\":1}", NULL},
        {"{\"spec\":{\"a\":\"1}}", NULL},
        {"{\"spec\":[", NULL},
        {"{\"spec\":", NULL},
        {"{\"spec", NULL},
        {"{\"a\\", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char why[JSON_WHY_MAX];
        struct buf out = {0};
        struct json_writer w = {.out = &out};
        struct json *v = gameserver_parse(str_of(rows[i].text), why);
        assert_int_equal(v != NULL, rows[i].read != NULL);
        if (v) {
            json_any(&w, v);
            ASSERT_STR(((struct str){(const char *)out.data, out.len}), rows[i].read);
        }
        json_free(v);
        buf_done(&out);
    }
}

static void test_states(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum gameserver_state state;
    } rows[] = {
        {GAMESERVER("Ready", ""), GAMESERVER_OTHER},
        {GAMESERVER("Scheduled", ""), GAMESERVER_OTHER},
        {GAMESERVER("Reserved", ""), GAMESERVER_OTHER},
        {GAMESERVER("Allocated", ""), GAMESERVER_ALLOCATED},
        {GAMESERVER("Shutdown", ""), GAMESERVER_OVER},
        {GAMESERVER("Unhealthy", ""), GAMESERVER_OVER},
        {GAMESERVER("Error", ""), GAMESERVER_OVER},
        {GAMESERVER("Allocated", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\""),
         GAMESERVER_OVER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gameserver_object o;
        struct json *v = parse(rows[i].text);
        assert_true(gameserver_read(v, "", &o));
        assert_int_equal(o.state, rows[i].state);
        assert_int_equal(o.server, 0);
        assert_int_equal(o.ports[0], 9000); /* no name is given: the first */
        json_free(v);
    }
}

static void test_the_port_of_players_comes_first_however_many_there_are(void **state)
{
    (void)state;
    struct gameserver_object o;
    struct json *v = parse("{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},"
                           "\"status\":{\"ports\":[{\"port\":0},{\"port\":70000},{\"port\":1},"
                           "{\"port\":2},{\"port\":3},{\"port\":4},{\"port\":5},"
                           "{\"name\":\"game\",\"port\":6}]}}");
    assert_true(gameserver_read(v, "game", &o));
    assert_int_equal(o.n_ports, HOST_PORTS_MAX);
    assert_int_equal(o.ports[0], 6);
    assert_int_equal(o.ports[1], 1);
    json_free(v);
}

static void test_what_is_no_gameserver(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "[]",
        "{\"metadata\":{\"name\":\"a\"}}",
        "{\"metadata\":{\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"a/../b\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":[]}",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gameserver_object o;
        struct json *v = parse(rows[i]);
        assert_false(gameserver_read(v, "", &o));
        json_free(v);
    }
}

static void test_a_mark_that_is_no_number_is_none(void **state)
{
    (void)state;
    static const char *const rows[] = {"-1", "1x", "", "9999999999999999999", " 1"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[300];
        struct gameserver_object o;
        snprintf(text, sizeof(text),
                 "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\",\"annotations\":"
                 "{\"muster.dev/server\":\"%s\"}}}",
                 rows[i]);
        struct json *v = parse(text);
        assert_true(gameserver_read(v, "", &o));
        assert_int_equal(o.server, 0);
        json_free(v);
    }
}

static void test_events_of_a_watch(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum watch_kind kind;
        int code;
    } rows[] = {
        {"{\"type\":\"ADDED\",\"object\":" GAMESERVER("Ready", "") "}", WATCH_CHANGED, 0},
        {"{\"type\":\"MODIFIED\",\"object\":" GAMESERVER("Ready", "") "}", WATCH_CHANGED, 0},
        {"{\"type\":\"DELETED\",\"object\":" GAMESERVER("Ready", "") "}", WATCH_DELETED, 0},
        {"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}",
         WATCH_BOOKMARK, 0},
        {"{\"type\":\"ERROR\",\"object\":{\"code\":410,\"message\":\"too old\"}}", WATCH_ERROR,
         410},
    };
    static const char *const none[] = {
        "{\"type\":\"ADDED\"}",
        "{\"type\":\"ADDED\",\"object\":{}}",
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}",
        "{\"type\":\"ERROR\"}",
        "{\"type\":\"OTHER\",\"object\":" GAMESERVER("Ready", "") "}",
        "[1]",
        "{\"type\":1}"};
    struct watch_event e;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct json *v = parse(rows[i].text);
        assert_true(watch_event_read(v, "", &e));
        assert_int_equal(e.kind, rows[i].kind);
        assert_int_equal(e.code, rows[i].code);
        json_free(v);
    }
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct json *v = parse(none[i]);
        assert_false(watch_event_read(v, "", &e));
        json_free(v);
    }
}

static bool join(void *user, struct str line)
{
    struct buf *all = user;
    buf_append(all, line.at, line.len);
    buf_append(all, "|", 1);
    return line.len != 4 || memcmp(line.at, "stop", 4) != 0;
}

static void test_lines_come_whole_however_they_are_cut(void **state)
{
    (void)state;
    static const char text[] = "one\n\ntwo two\nthree\nrest";
    for (size_t size = 1; size < sizeof(text); size++) {
        struct watch_lines lines = {0};
        struct buf all = {0};
        for (size_t at = 0; at < strlen(text); at += size) {
            size_t n = strlen(text) - at < size ? strlen(text) - at : size;
            assert_true(watch_lines_take(&lines, (struct str){text + at, n}, join, &all));
        }
        assert_int_equal(all.len, 18);
        assert_memory_equal(all.data, "one|two two|three|", 18);
        watch_lines_done(&lines);
        buf_done(&all);
    }
}

static void test_who_has_enough_of_lines_gets_no_more(void **state)
{
    (void)state;
    struct watch_lines lines = {0};
    struct buf all = {0};
    assert_false(watch_lines_take(&lines, STR("a\nstop\nb\n"), join, &all));
    assert_int_equal(all.len, 7);
    watch_lines_done(&lines);
    buf_done(&all);
}

static void test_a_line_has_a_limit(void **state)
{
    (void)state;
    struct watch_lines lines = {0};
    struct buf all = {0};
    char *piece = malloc(AGONES_LINE_MAX);
    memset(piece, 'x', AGONES_LINE_MAX);
    assert_true(watch_lines_take(&lines, (struct str){piece, AGONES_LINE_MAX}, join, &all));
    assert_false(watch_lines_take(&lines, STR("y"), join, &all));
    free(piece);
    watch_lines_done(&lines);
    buf_done(&all);
}

static void test_answers_to_an_allocation(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool good;
        enum allocated_state state;
    } rows[] = {
        {"{\"status\":{\"state\":\"Allocated\",\"gameServerName\":\"a\",\"address\":\"h\","
         "\"ports\":[{\"name\":\"game\",\"port\":7}]}}",
         true, ALLOCATED_YES},
        {"{\"status\":{\"state\":\"Allocated\",\"gameServerName\":\"\"}}", false, ALLOCATED_YES},
        {"{\"status\":{\"state\":\"UnAllocated\"}}", true, ALLOCATED_NO},
        {"{\"status\":{\"state\":\"Contention\"}}", true, ALLOCATED_CONTENTION},
        {"{\"status\":{\"state\":\"\"}}", false, ALLOCATED_NO},
        {"{}", false, ALLOCATED_NO},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct allocated a;
        struct json *v = parse(rows[i].text);
        assert_int_equal(allocated_read(v, "game", &a), rows[i].good);
        if (rows[i].good)
            assert_int_equal(a.state, rows[i].state);
        json_free(v);
    }
}

static void test_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *token;
        bool on;
        const char *after;
    } rows[] = {
        {"", "A", true, "A"},         {"A", "B", true, "A,B"},        {"A,B", "A", true, "A,B"},
        {"A,B,C", "B", false, "A,C"}, {"A", "A", false, ""},          {"", "A", false, ""},
        {"A,B,A", "A", false, "B"},   {",A,,B,", "C", true, "A,B,C"}, {"AB,A", "A", false, "AB"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf b = {0};
        buf_append(&b, rows[i].before, strlen(rows[i].before));
        tokens_change(&b, str_of(rows[i].token), rows[i].on);
        ASSERT_STR(((struct str){(char *)b.data, b.len}), rows[i].after);
        buf_done(&b);
    }
    assert_true(tokens_have(STR("A,B"), STR("B")));
    assert_false(tokens_have(STR("AB,C"), STR("B")));
}

static void test_versions(void **state)
{
    (void)state;
    assert_true(version_is_older(STR("99"), STR("100")));
    assert_true(version_is_older(STR("100"), STR("101")));
    assert_false(version_is_older(STR("101"), STR("101")));
    assert_false(version_is_older(STR("102"), STR("101")));
    assert_false(version_is_older(STR("a1"), STR("101"))); /* nobody can tell */
    assert_false(version_is_older(STR(""), STR("1")));
}

static void test_a_refusal_in_words(void **state)
{
    (void)state;
    char why[AGONES_WHY_MAX];
    assert_string_equal(agones_refusal(403, STR("{\"message\":\"not you\"}"), why), "not you");
    assert_string_equal(agones_refusal(502, STR("<html>"), why), "the API server answered 502");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_gameserver_with_our_marks),
        cmocka_unit_test(test_what_nobody_reads_is_passed_over),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_the_port_of_players_comes_first_however_many_there_are),
        cmocka_unit_test(test_what_is_no_gameserver),
        cmocka_unit_test(test_a_mark_that_is_no_number_is_none),
        cmocka_unit_test(test_events_of_a_watch),
        cmocka_unit_test(test_lines_come_whole_however_they_are_cut),
        cmocka_unit_test(test_who_has_enough_of_lines_gets_no_more),
        cmocka_unit_test(test_a_line_has_a_limit),
        cmocka_unit_test(test_answers_to_an_allocation),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_a_refusal_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Answers of the API as rows, fields and JSON; and times for people. */
#include "cli/show.h"

#include "cli/when.h"
#include "lib/unit.h"

#include <string.h>

static const struct term plain = {.columns = 80, .rows = 24};
static const struct term coloured = {
    .is_terminal = true, .colours = true, .columns = 80, .rows = 24};
static const int64_t NOW_MS = 1794787200000; /* 2026-11-16T00:00:00Z */

static struct json *parse(const char *text)
{
    char why[JSON_WHY_MAX];
    struct json *v = json_parse(str_of(text), why);
    assert_non_null(v);
    return v;
}

static void expect(struct buf *out, const char *text)
{
    buf_append(out, "", 1);
    assert_string_equal((const char *)out->data, text);
    buf_done(out);
}

static void test_the_last_time_of_the_day(void **state)
{
    (void)state;
    const int64_t now_ms = NOW_MS + 2 * 3600 * 1000; /* two o'clock */
    int64_t ms = 0;
    assert_true(when_last(STR("01:30"), now_ms, &ms));
    assert_int_equal(ms, NOW_MS + 90 * 60 * 1000);
    assert_true(when_last(STR("03:12:30"), now_ms, &ms)); /* yesterday's */
    assert_int_equal(ms, NOW_MS - 86400 * 1000 + (3 * 3600 + 12 * 60 + 30) * 1000);
    assert_true(when_last(STR("2026-11-15T03:12:00Z"), now_ms, &ms));
    assert_int_equal(ms, NOW_MS - 86400 * 1000 + (3 * 3600 + 12 * 60) * 1000);
    static const char *const none[] = {"", "3:12", "24:00", "03:60", "03-12", "noon!", "03:12:3x"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(when_last(str_of(none[i]), now_ms, &ms));
}

static void test_times_for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t ago_ms;
        const char *text;
    } rows[] = {{0, "now"},
                {999, "now"},
                {-499, "now"},
                {1000, "1 s ago"},
                {59999, "59 s ago"},
                {60000, "1 m ago"},
                {-25000, "in 25 s"},
                {3599000, "59 m ago"},
                {3600000, "1 h ago"},
                {86400000, "1 d ago"},
                {-2591999000, "in 30 d"},
                {-3599900, "in 1 h"},
                {-5340000, "in 1 h"},
                {-43200000, "in 12 h"},
                {119999, "1 m ago"}};
    char text[WHEN_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(when_ago(NOW_MS - rows[i].ago_ms, NOW_MS, text), rows[i].text);
    assert_string_equal(when_lasted(45, text), "45 s");
    assert_string_equal(when_lasted(200, text), "3 m 20 s");
    assert_string_equal(when_lasted(18120, text), "5 h 2 m");
    assert_string_equal(when_lasted(12 * 86400 + 4 * 3600, text), "12 d 4 h");
    assert_string_equal(when_clock(NOW_MS + 29730000, text), "08:15:30");
}

static const struct show_column COLUMNS[] = {
    {"ID", "id", SHOW_NUMBER, false},
    {"STATUS", "status", SHOW_STATE, false},
    {"FULL", "servers.full", SHOW_NUMBER, false},
    {"CPU", "cpu_percent", SHOW_PERCENT, false},
    {"HEARD", "heard_at", SHOW_AGO, false},
    {"RTT", "round_trip_us", SHOW_MS, true},
    {"STILL", "eta_ms", SHOW_LASTS, true},
    {"REGIONS", "regions", SHOW_TEXT, true},
    {0},
};

static const char ITEM[] = "{\"id\":\"7\",\"status\":\"offline\",\"servers\":{\"full\":3},"
                           "\"cpu_percent\":45.5,\"heard_at\":\"2026-11-15T23:58:00.000Z\","
                           "\"round_trip_us\":1234,\"eta_ms\":60001,\"regions\":[\"EU\",\"USE\"]}";

static void rows(struct buf *out, const struct term *term, bool wide)
{
    struct table t;
    struct json *item = parse(ITEM);
    struct json *other =
        parse("{\"id\":\"8\",\"heard_at\":null,\"regions\":[],\"servers\":5,\"eta_ms\":0}");
    table_init(&t);
    show_columns(&t, COLUMNS, wide);
    show_row(&t, COLUMNS, wide, item, NOW_MS);
    show_row(&t, COLUMNS, wide, other, NOW_MS);
    table_print(&t, term, out);
    table_done(&t);
    json_free(item);
    json_free(other);
}

static void test_rows_of_a_table(void **state)
{
    (void)state;
    struct buf out = {0};
    rows(&out, &plain, false);
    expect(&out, "ID  STATUS   FULL  CPU  HEARD\n"
                 " 7  offline     3  46%  2 m ago\n"
                 " 8  -           -    -  -\n");
    rows(&out, &plain, true);
    expect(&out, "ID  STATUS   FULL  CPU  HEARD       RTT    STILL  REGIONS\n"
                 " 7  offline     3  46%  2 m ago  1.2 ms  1 m 1 s  EU,USE\n"
                 " 8  -           -    -  -             -        -  -\n");
    rows(&out, &coloured, false);
    assert_non_null(memmem(out.data, out.len, "\033[31moffline\033[0m", 16));
    buf_done(&out);
}

static void test_object_field_by_field(void **state)
{
    (void)state;
    struct buf out = {0};
    struct json *v = parse("{\"id\":\"7\",\"connected\":true,\"servers\":{\"full\":3,\"x\":null},"
                           "\"score\":99.25,\"at\":\"2026-11-15T23:58:00.000Z\",\"list\":[1,2]}");
    show_object(&out, &plain, v, NOW_MS);
    expect(&out, "id            7\n"
                 "connected     yes\n"
                 "servers.full  3\n"
                 "servers.x     -\n"
                 "score         99.2\n"
                 "at            2026-11-15T23:58:00.000Z (2 m ago)\n"
                 "list          1,2\n");
    json_free(v);
}

static void test_json_comes_back_as_it_was(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":[],\"b\":{},\"c\":[1,-2,0.1,1e+300,45.5],\"d\":\"q\\\"\\\\ \\n\",\"e\":null,"
        "\"f\":true,\"g\":false,\"h\":\"Köln\",\"i\":9007199254740993}";
    struct buf out = {0};
    struct json *v = parse(text);
    show_json(&out, v);
    expect(&out, text);
    json_free(v);
}

static void test_json_commands_no_terminal(void **state)
{
    (void)state;
    struct buf out = {0};
    struct json *v = parse("{\"a\\u001bb\":\"\\u001b[2J\x7F\xC2\x9B\xE2\x80\xAE\"}");
    show_json(&out, v);
    expect(&out, "{\"a\\u001bb\":\"\\u001b[2J\\u007f\\u009b\\u202e\"}");
    json_free(v);
}

static void test_paths(void **state)
{
    (void)state;
    struct json *v = parse("{\"a\":{\"b\":{\"c\":5}},\"n\":1}");
    assert_int_equal(json_get_int(show_at(v, "a.b.c")), 5);
    assert_null(show_at(v, "a.x.c"));
    assert_null(show_at(v, "n.b"));
    assert_null(show_at(v, "z"));
    assert_null(show_at(NULL, "a"));
    json_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_time_of_the_day),
        cmocka_unit_test(test_times_for_people),
        cmocka_unit_test(test_rows_of_a_table),
        cmocka_unit_test(test_object_field_by_field),
        cmocka_unit_test(test_json_comes_back_as_it_was),
        cmocka_unit_test(test_json_commands_no_terminal),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

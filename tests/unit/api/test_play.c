/* What players say: objects, truths and dates as arguments. */
#include "api/play.h"

#include "api/arguments.h"
#include "base/err.h"
#include "lib/unit.h"

#include <string.h>

static const struct operation sample = {
    .name = "sample",
    .method = HTTP_POST,
    .path = "/sample",
    .fields = {{.name = "settings", .kind = FIELD_JSON, .max = 40},
               {.name = "accounts", .kind = FIELD_OBJECTS, .min = 1, .max = 2},
               {.name = "full", .kind = FIELD_BOOL, .has_otherwise = true, .otherwise = true}},
};

static void assert_text(struct str text, const char *expected)
{
    assert_true(str_eq(text, str_of(expected)));
    assert_int_equal(text.at[text.len], '\0');
}

static void assert_refused(const char *name, const char *value, const char *why)
{
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put(&a, name, str_of(value)), ERR_BAD_ARGUMENT);
    assert_string_equal(a.why, why);
    assert_string_equal(a.wrong, name);
    arguments_done(&a);
}

static void assert_body_refused(const char *body, const char *why)
{
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put_json(&a, str_of(body)), ERR_BAD_ARGUMENT);
    assert_string_equal(a.why, why);
    arguments_done(&a);
}

/* The same arguments, whichever way they come. */
static void forms_and_json_say_the_same(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"settings\":{\"b\":[1,2.0],\"a\":\"\\n\"},\"accounts\":[{\"token\":\"x\"}],\"full\":"
        "false}",
        "{\"settings\":\"{\\\"a\\\":\\\"\\\\n\\\",\\\"b\\\":[1,2.0]}\","
        "\"accounts\":\"[{\\\"token\\\":\\\"x\\\"}]\",\"full\":\"0\"}",
    };
    uint8_t digests[3][ARGUMENTS_DIGEST];
    for (size_t i = 0; i < 3; i++) {
        struct arguments a;
        arguments_init(&a, &sample);
        if (i < 2)
            assert_int_equal(arguments_put_json(&a, str_of(bodies[i])), 0);
        else
            assert_int_equal(
                arguments_put_form(&a, STR("settings=%7b%22b%22%3a+%5b1%2c2.0%5d%2c%22a%22:%22%5cn"
                                           "%22%7D&full=false&accounts=[{%22token%22%3A%22x%22}]")),
                0);
        assert_int_equal(arguments_complete(&a), 0);
        assert_text(arguments_get(&a, "settings")->text, "{\"a\":\"\\n\",\"b\":[1,2.0]}");
        assert_int_equal(arguments_get(&a, "accounts")->n_items, 1);
        assert_text(arguments_get(&a, "accounts")->items[0], "{\"token\":\"x\"}");
        assert_int_equal(arguments_get(&a, "full")->number, 0);
        arguments_digest(&a, digests[i]);
        arguments_done(&a);
    }
    assert_memory_equal(digests[0], digests[1], ARGUMENTS_DIGEST);
    assert_memory_equal(digests[0], digests[2], ARGUMENTS_DIGEST);
}

static void what_is_not_given_is_what_the_row_says(void **state)
{
    (void)state;
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put_json(&a, STR("{\"settings\":null}")), 0);
    assert_int_equal(arguments_complete(&a), 0);
    assert_int_equal(arguments_get(&a, "full")->number, 1);
    assert_false(arguments_get(&a, "settings")->given);
    arguments_done(&a);
}

static void what_is_no_object_is_refused(void **state)
{
    (void)state;
    assert_refused("settings", "[]", "settings is a JSON object of at most 40 bytes, not '[]'.");
    assert_refused("settings", "{\"a\":\"0123456789012345678901234567890123\"}",
                   "settings is a JSON object of at most 40 bytes, not of 42.");
    assert_refused("accounts", "[]", "accounts is a list of 1 to 2 JSON objects, not of 0.");
    assert_refused("accounts", "[{},{},{}]",
                   "accounts is a list of 1 to 2 JSON objects, not of 3.");
    assert_refused("accounts", "[1]", "accounts is a list of 1 to 2 JSON objects, not '[1]'.");
    assert_refused("full", "yes", "full is true or false, not 'yes'.");
    assert_body_refused("{\"settings\":7}",
                        "settings is a JSON object of at most 40 bytes, not '7'.");
    assert_body_refused("{\"settings\":[]}",
                        "settings is a JSON object of at most 40 bytes, not '[]'.");
    assert_body_refused("{\"full\":1}", "full is true or false, not '1'.");
    assert_body_refused("{\"accounts\":{}}",
                        "accounts is a list of 1 to 2 JSON objects, not '{}'.");
    assert_body_refused("{\"accounts\":true}",
                        "accounts is a list of 1 to 2 JSON objects, not 'true'.");
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "{\"a\":1,\"a\":2}", "{\"a\":\"\\u0000\"}",
                                        "{a:1}"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct arguments a;
        arguments_init(&a, &sample);
        assert_int_equal(arguments_put(&a, "settings", str_of(texts[i])), ERR_BAD_ARGUMENT);
        assert_string_equal(a.wrong, "settings");
        assert_memory_equal(a.why, "settings is no JSON: ", strlen("settings is no JSON: "));
        arguments_done(&a);
    }
}

static void dates_are_read_and_written(void **state)
{
    (void)state;
    char text[PLAY_DATE_MAX];
    int64_t ms = 0;
    assert_true(play_date_read(STR("2026-11-16 08:15:30"), &ms));
    assert_int_equal(ms, 1794816930000);
    assert_string_equal(play_date_print(ms + 999, text), "2026-11-16 08:15:30");
    assert_true(play_date_read(STR("2028-02-29 00:00:00"), &ms));
    static const char *const wrong[] = {
        "",
        "2026-11-16",
        "2026-11-16T08:15:30",
        "2026-11-31 00:00:00",
        "2026-13-01 00:00:00",
        "2027-02-29 00:00:00",
        "2026-11-16 24:00:00",
        "2026-11-16 08:60:00",
        "2026-1 -16 08:15:30",
        "+026-11-16 08:15:30",
        "2026-11-16 08:15:30 ",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(play_date_read(str_of(wrong[i]), &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms_and_json_say_the_same),
        cmocka_unit_test(what_is_not_given_is_what_the_row_says),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(dates_are_read_and_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

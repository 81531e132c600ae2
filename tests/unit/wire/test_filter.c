#include "wire/filter.h"

#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

static bool matches(const char *filter, const char *settings)
{
    char why[FILTER_WHY_MAX] = "";
    struct filter *f = filter_parse(str_of(filter), why);
    if (!f)
        fail_msg("%s: %s", filter, why);
    char fault[JSON_WHY_MAX];
    struct json *s = json_parse(str_of(settings), fault);
    assert_non_null(s);
    bool yes = filter_matches(f, s);
    json_free(s);
    filter_free(f);
    return yes;
}

#define LETS(filter, settings)                                                                     \
    do {                                                                                           \
        if (!matches(filter, settings))                                                            \
            fail_msg("%s must match %s", filter, settings);                                        \
    } while (0)

#define STOPS(filter, settings)                                                                    \
    do {                                                                                           \
        if (matches(filter, settings))                                                             \
            fail_msg("%s must not match %s", filter, settings);                                    \
    } while (0)

static void refuses(const char *filter, const char *part)
{
    char why[FILTER_WHY_MAX] = "";
    struct filter *f = filter_parse(str_of(filter), why);
    if (f)
        fail_msg("%s was taken", filter);
    if (!strstr(why, part))
        fail_msg("%s: \"%s\" does not say \"%s\"", filter, why, part);
    assert_true(str_is_utf8(str_of(why)));
}

static void nothing_asked_is_always_there(void **state)
{
    (void)state;
    LETS("{}", "{}");
    LETS("{}", "{\"map\":\"dust\"}");
}

static void a_value_is_that_value(void **state)
{
    (void)state;
    LETS("{\"map\":\"dust\"}", "{\"map\":\"dust\",\"mode\":1}");
    STOPS("{\"map\":\"dust\"}", "{\"map\":\"dus\"}");
    STOPS("{\"map\":\"dust\"}", "{\"map\":\"dusty\"}");
    STOPS("{\"map\":\"dust\"}", "{\"map\":[\"dust\"]}");
    LETS("{\"ranked\":true}", "{\"ranked\":true}");
    STOPS("{\"ranked\":true}", "{\"ranked\":false}");
    STOPS("{\"ranked\":true}", "{\"ranked\":1}");
    STOPS("{\"ranked\":true}", "{\"ranked\":\"true\"}");
    LETS("{\"clan\":null}", "{\"clan\":null}");
    STOPS("{\"clan\":null}", "{\"clan\":0}");
    STOPS("{\"clan\":null}", "{}");
    LETS("{\"\":1}", "{\"\":1}");
}

static void numbers_compare_by_value(void **state)
{
    (void)state;
    LETS("{\"n\":1}", "{\"n\":1.0}");
    LETS("{\"n\":1.0}", "{\"n\":1}");
    LETS("{\"n\":-0.0}", "{\"n\":0}");
    STOPS("{\"n\":1}", "{\"n\":\"1\"}");
    /* A double cannot tell these apart. */
    STOPS("{\"n\":9007199254740993}", "{\"n\":9007199254740992.0}");
    STOPS("{\"n\":9007199254740992.0}", "{\"n\":9007199254740993}");
    LETS("{\"n\":{\"@func\":\">\",\"@value\":9007199254740992.0}}", "{\"n\":9007199254740993}");
    LETS("{\"n\":{\"@func\":\"<\",\"@value\":1e300}}", "{\"n\":9223372036854775807}");
    LETS("{\"n\":{\"@func\":\">\",\"@value\":-1e300}}", "{\"n\":-9223372036854775808}");
    LETS("{\"n\":{\"@func\":\"<\",\"@value\":9223372036854775807}}", "{\"n\":-1e300}");
    LETS("{\"n\":{\"@func\":\"<\",\"@value\":-1}}", "{\"n\":-1.5}");
    LETS("{\"n\":{\"@func\":\">\",\"@value\":-2}}", "{\"n\":-1.5}");
}

static void every_function(void **state)
{
    (void)state;
    static const struct {
        const char *func;
        bool below, same, above;
    } rows[] = {
        {"=", false, true, false}, {"!=", true, false, true}, {">", false, false, true},
        {"<", true, false, false}, {">=", false, true, true}, {"<=", true, true, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char number[80];
        char text[80];
        snprintf(number, sizeof(number), "{\"k\":{\"@func\":\"%s\",\"@value\":5}}", rows[i].func);
        snprintf(text, sizeof(text), "{\"k\":{\"@func\":\"%s\",\"@value\":\"m\"}}", rows[i].func);
        assert_int_equal(matches(number, "{\"k\":4}"), rows[i].below);
        assert_int_equal(matches(number, "{\"k\":4.999}"), rows[i].below);
        assert_int_equal(matches(number, "{\"k\":5}"), rows[i].same);
        assert_int_equal(matches(number, "{\"k\":5.0}"), rows[i].same);
        assert_int_equal(matches(number, "{\"k\":6}"), rows[i].above);
        assert_int_equal(matches(text, "{\"k\":\"\"}"), rows[i].below);
        assert_int_equal(matches(text, "{\"k\":\"lz\"}"), rows[i].below);
        assert_int_equal(matches(text, "{\"k\":\"m\"}"), rows[i].same);
        assert_int_equal(matches(text, "{\"k\":\"ma\"}"), rows[i].above);
        /* Without the key nothing matches; without an order only "something else" does. */
        bool other = strcmp(rows[i].func, "!=") == 0;
        STOPS(number, "{}");
        STOPS(number, "{\"j\":5}");
        assert_int_equal(matches(number, "{\"k\":\"5\"}"), other);
        assert_int_equal(matches(number, "{\"k\":null}"), other);
        assert_int_equal(matches(number, "{\"k\":[5]}"), other);
        assert_int_equal(matches(number, "{\"k\":{\"a\":5}}"), other);
        assert_int_equal(matches(text, "{\"k\":5}"), other);
    }
}

static void both_ends_belong_to_between(void **state)
{
    (void)state;
    const char *between = "{\"level\":{\"@func\":\"between\",\"@a\":1,\"@b\":9.5}}";
    STOPS(between, "{\"level\":0.999}");
    LETS(between, "{\"level\":1}");
    LETS(between, "{\"level\":5}");
    LETS(between, "{\"level\":9.5}");
    STOPS(between, "{\"level\":9.6}");
    STOPS(between, "{\"level\":\"5\"}");
    STOPS(between, "{}");
    LETS("{\"n\":{\"@func\":\"between\",\"@a\":\"b\",\"@b\":\"d\"}}", "{\"n\":\"c\"}");
    STOPS("{\"n\":{\"@func\":\"between\",\"@a\":\"b\",\"@b\":\"d\"}}", "{\"n\":\"da\"}");
    STOPS("{\"n\":{\"@func\":\"between\",\"@a\":9,\"@b\":1}}", "{\"n\":5}");
}

static void lists_are_any_of(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "{\"map\":[\"dust\",\"aztec\",3,true,null]}",
        "{\"map\":{\"@func\":\"in\",\"@values\":[\"dust\",\"aztec\",3,true,null]}}",
    };
    for (int i = 0; i < 2; i++) {
        LETS(forms[i], "{\"map\":\"dust\"}");
        LETS(forms[i], "{\"map\":\"aztec\"}");
        LETS(forms[i], "{\"map\":3.0}");
        LETS(forms[i], "{\"map\":true}");
        LETS(forms[i], "{\"map\":null}");
        STOPS(forms[i], "{\"map\":false}");
        STOPS(forms[i], "{\"map\":\"nuke\"}");
        STOPS(forms[i], "{\"map\":[\"dust\"]}");
        STOPS(forms[i], "{}");
    }
    STOPS("{\"map\":[]}", "{\"map\":\"dust\"}");
    STOPS("{\"map\":{\"@func\":\"in\",\"@values\":[]}}", "{\"map\":\"dust\"}");
}

/* Written as a condition of a query, "a or b" without brackets let rooms of any level through. */
static void two_values_of_in_do_not_escape_the_others(void **state)
{
    (void)state;
    const char *filter = "{\"level\":{\"@func\":\">=\",\"@value\":5},"
                         "\"map\":{\"@func\":\"in\",\"@values\":[\"dust\",\"aztec\"]},"
                         "\"ranked\":true}";
    LETS(filter, "{\"level\":5,\"map\":\"dust\",\"ranked\":true}");
    LETS(filter, "{\"level\":7,\"map\":\"aztec\",\"ranked\":true}");
    STOPS(filter, "{\"level\":1,\"map\":\"dust\",\"ranked\":true}");
    STOPS(filter, "{\"level\":1,\"map\":\"aztec\",\"ranked\":true}");
    STOPS(filter, "{\"level\":7,\"map\":\"aztec\",\"ranked\":false}");
    STOPS(filter, "{\"level\":7,\"map\":\"aztec\"}");
    STOPS(filter, "{\"level\":7,\"map\":\"nuke\",\"ranked\":true}");
}

static void dots_reach_into_objects(void **state)
{
    (void)state;
    LETS("{\"rules.fire\":false}", "{\"rules\":{\"fire\":false}}");
    STOPS("{\"rules.fire\":false}", "{\"rules\":{\"fire\":true}}");
    STOPS("{\"rules.fire\":false}", "{\"rules\":{\"water\":false}}");
    STOPS("{\"rules.fire\":false}", "{\"rules\":false}");
    STOPS("{\"rules.fire\":false}", "{\"rules\":[{\"fire\":false}]}");
    STOPS("{\"rules.fire\":false}", "{\"fire\":false}");
    STOPS("{\"rules.fire\":{\"@func\":\"!=\",\"@value\":1}}", "{\"rules\":{}}");
    LETS("{\"a.b.c\":{\"@func\":\"in\",\"@values\":[1,2]}}", "{\"a\":{\"b\":{\"c\":2}}}");
    STOPS("{\"a.b.c\":2}", "{\"a\":{\"b\":{\"c\":3}}}");
    STOPS("{\"a.b.c\":2}", "{\"a\":{\"b\":2}}");
    /* A key that is called so is meant first. */
    LETS("{\"a.b\":1}", "{\"a.b\":1,\"a\":{\"b\":2}}");
    STOPS("{\"a.b\":2}", "{\"a.b\":1,\"a\":{\"b\":2}}");
    LETS("{\".\":1}", "{\"\":{\"\":1}}");
    STOPS("{\"a.\":1}", "{\"a\":1}");
    STOPS("{\".a\":1}", "{\"a\":1}");
}

static void what_is_no_filter_is_refused_with_a_sentence(void **state)
{
    (void)state;
    refuses("", "no JSON");
    refuses("{\"a\":1", "no JSON");
    refuses("{\"a\":1,\"a\":2}", "no JSON");
    refuses("{\"a\":\"\\u0000\"}", "no JSON");
    refuses("[]", "a filter is a JSON object");
    refuses("\"map\"", "a filter is a JSON object");
    refuses("null", "a filter is a JSON object");
    refuses("{\"a\":{}}", "\"a\" is an object without @func");
    refuses("{\"a\":{\"@value\":1}}", "without @func");
    refuses("{\"a\":{\"b\":1}}", "without @func");
    refuses("{\"a\":{\"@func\":\"like\",\"@value\":1}}", "unknown @func");
    refuses("{\"a\":{\"@func\":\"IN\",\"@values\":[1]}}", "unknown @func");
    refuses("{\"a\":{\"@func\":\"\",\"@value\":1}}", "unknown @func");
    refuses("{\"a\":{\"@func\":1,\"@value\":1}}", "unknown @func");
    refuses("{\"a\":{\"@func\":\"=\"}}", "needs @value");
    refuses("{\"a\":{\"@func\":\"=\",\"@value\":[1]}}", "needs @value, a plain value");
    refuses("{\"a\":{\"@func\":\"!=\",\"@value\":{}}}", "needs @value, a plain value");
    refuses("{\"a\":{\"@func\":\">\",\"@value\":true}}", "a number or a text");
    refuses("{\"a\":{\"@func\":\"<=\",\"@value\":null}}", "a number or a text");
    refuses("{\"a\":{\"@func\":\"=\",\"@value\":1,\"@values\":[1]}}", "does not know");
    refuses("{\"a\":{\"@func\":\"between\",\"@a\":1}}", "needs @a and @b");
    refuses("{\"a\":{\"@func\":\"between\",\"@b\":1}}", "needs @a and @b");
    refuses("{\"a\":{\"@func\":\"between\",\"@a\":1,\"@b\":\"2\"}}", "two numbers or two texts");
    refuses("{\"a\":{\"@func\":\"between\",\"@a\":null,\"@b\":null}}", "two numbers or two texts");
    refuses("{\"a\":{\"@func\":\"between\",\"@a\":1,\"@b\":2,\"@c\":3}}", "does not know");
    refuses("{\"a\":{\"@func\":\"in\"}}", "needs @values");
    refuses("{\"a\":{\"@func\":\"in\",\"@value\":1}}", "needs @values");
    refuses("{\"a\":{\"@func\":\"in\",\"@values\":1}}", "needs @values, a list");
    refuses("{\"a\":{\"@func\":\"in\",\"@values\":[[1]]}}", "plain values");
    refuses("{\"a\":[{}]}", "plain values");
    refuses("{\"ok\":1,\"a\\n\":{}}", "\"a\\x0a\" is an object");
}

static void limits_are_said(void **state)
{
    (void)state;
    struct buf text = {0};
    char item[32];
    for (int i = 0; i <= FILTER_TERMS_MAX; i++) {
        snprintf(item, sizeof(item), "%s\"k%d\":1", i ? "," : "{", i);
        buf_append(&text, item, strlen(item));
    }
    buf_append(&text, "}", 2);
    refuses((const char *)text.data, "at most 32 fields");
    buf_clear(&text);
    buf_append(&text, "{\"a\":[0", 7);
    for (int i = 1; i < FILTER_VALUES_MAX; i++)
        buf_append(&text, ",0", 2);
    size_t full = text.len;
    buf_append(&text, "]}", 3);
    LETS((const char *)text.data, "{\"a\":0}");
    text.len = full;
    buf_append(&text, ",0]}", 5);
    refuses((const char *)text.data, "more than 64 values");
    buf_clear(&text);
    buf_append(&text, "{\"", 2);
    for (int i = 0; i < 5000; i++)
        buf_append(&text, "\xC3\xA5", 2);
    buf_append(&text, "\":{}}", 6);
    refuses((const char *)text.data, "…\" is an object without @func");
    buf_done(&text);
}

static void a_filter_outlives_what_it_was_made_of(void **state)
{
    (void)state;
    char why[FILTER_WHY_MAX];
    struct json *arguments = json_parse(
        STR("{\"settings\":{\"map\":[\"a\",\"b\"],\"n\":{\"@func\":\">\",\"@value\":1}}}"), why);
    struct filter *f = filter_of(json_member(arguments, "settings"), why);
    assert_non_null(f);
    json_free(arguments);
    struct json *yes = json_parse(STR("{\"map\":\"b\",\"n\":2}"), why);
    struct json *no = json_parse(STR("{\"map\":\"b\",\"n\":1}"), why);
    assert_true(filter_matches(f, yes));
    assert_false(filter_matches(f, no));
    json_free(yes);
    json_free(no);
    filter_free(f);
    filter_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_asked_is_always_there),
        cmocka_unit_test(a_value_is_that_value),
        cmocka_unit_test(numbers_compare_by_value),
        cmocka_unit_test(every_function),
        cmocka_unit_test(both_ends_belong_to_between),
        cmocka_unit_test(lists_are_any_of),
        cmocka_unit_test(two_values_of_in_do_not_escape_the_others),
        cmocka_unit_test(dots_reach_into_objects),
        cmocka_unit_test(what_is_no_filter_is_refused_with_a_sentence),
        cmocka_unit_test(limits_are_said),
        cmocka_unit_test(a_filter_outlives_what_it_was_made_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

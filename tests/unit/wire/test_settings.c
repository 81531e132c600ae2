#include "wire/settings.h"

#include "base/err.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

/* As text, valid until the buffer is done. */
static const char *text_of(struct buf *b)
{
    buf_append(b, "", 1);
    b->len--;
    return (const char *)b->data;
}

static void takes(const char *text, const char *expected)
{
    struct buf out = {0};
    char why[SETTINGS_WHY_MAX] = "";
    if (settings_take(str_of(text), &out, why))
        fail_msg("%s: %s", text, why);
    assert_string_equal(text_of(&out), expected);
    /* The one form is its own. */
    struct buf again = {0};
    assert_int_equal(settings_take((struct str){(const char *)out.data, out.len}, &again, why), 0);
    assert_string_equal(text_of(&again), expected);
    buf_done(&again);
    buf_done(&out);
}

static void refuses(struct str text, const char *part)
{
    struct buf out = {0};
    char why[SETTINGS_WHY_MAX] = "";
    buf_append(&out, "before", 6);
    assert_int_equal(settings_take(text, &out, why), ERR_BAD_ARGUMENT);
    assert_non_null(strstr(why, part));
    assert_true(str_is_utf8(str_of(why)));
    assert_string_equal(text_of(&out), "before");
    buf_done(&out);
}

static void merges(const char *base, const char *over, const char *expected)
{
    struct buf out = {0};
    char why[SETTINGS_WHY_MAX] = "";
    assert_int_equal(settings_merge(str_of(base), str_of(over), &out, why), 0);
    assert_string_equal(text_of(&out), expected);
    buf_done(&out);
}

static void equal_settings_are_equal_bytes(void **state)
{
    (void)state;
    takes("", "{}");
    takes(" { } ", "{}");
    takes("{\"b\" : 1, \"a\" : [ 2, {\"d\":null, \"c\":true} ]}",
          "{\"a\":[2,{\"c\":true,\"d\":null}],\"b\":1}");
    takes("{\"a\":[2,{\"d\":null,\"c\":true}],\n\t\"b\":1}",
          "{\"a\":[2,{\"c\":true,\"d\":null}],\"b\":1}");
    takes("{\"aa\":1,\"a\":2,\"B\":3,\"\":4,\"\xC3\xA5\":5}",
          "{\"\":4,\"B\":3,\"a\":2,\"aa\":1,\"\xC3\xA5\":5}");
}

static void numbers_keep_their_value(void **state)
{
    (void)state;
    takes("{\"n\":[0.1,1.0,1e2,-0.0,1e-7,9223372036854775807,-9223372036854775808]}",
          "{\"n\":[0.1,1.0,100.0,-0.0,1e-07,9223372036854775807,-9223372036854775808]}");
    takes("{\"n\":0.30000000000000004}", "{\"n\":0.30000000000000004}");
    takes("{\"n\":1.7976931348623157e308}", "{\"n\":1.7976931348623157e+308}");
    refuses(STR("{\"n\":1e999}"), "no JSON");
    refuses(STR("{\"n\":9223372036854775808}"), "no JSON");
    refuses(STR("{\"n\":NaN}"), "no JSON");
}

/* A server reads them from its environment, so a NUL would cut them off. */
static void a_nul_is_refused_and_newlines_are_escaped(void **state)
{
    (void)state;
    refuses(STR("{\"a\":\"x\\u0000y\"}"), "no JSON");
    refuses(STR("{\"a\\u0000\":1}"), "no JSON");
    refuses(STR("{\"a\":1}\0"), "NUL");
    refuses(STR("{\"a\":\"\0\"}"), "NUL");
    refuses(STR("{\"a\":\"x\ny\"}"), "no JSON");
    takes("{\"a\\nb\":\"x\\ny\\r\\t\\u0001\\u001b\\\"\\\\\\/\"}",
          "{\"a\\nb\":\"x\\ny\\r\\t\\u0001\\u001b\\\"\\\\/\"}");
    takes("{\"a\":\"\\u00e5\"}", "{\"a\":\"\xC3\xA5\"}");
    refuses(STR("{\"a\":\"\xFF\"}"), "no JSON");
    refuses(STR("{\"a\":\"\\ud800\"}"), "no JSON");
}

static void only_objects_are_settings(void **state)
{
    (void)state;
    refuses(STR("[]"), "a JSON object");
    refuses(STR("\"a\""), "a JSON object");
    refuses(STR("null"), "a JSON object");
    refuses(STR("{\"a\":1,\"a\":1}"), "no JSON");
    refuses(STR("{\"a\":1} {}"), "no JSON");
    refuses(STR("{\"a\":"), "no JSON");
    struct buf deep = {0};
    buf_append(&deep, "{\"a\":", 5);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_append(&deep, "[", 1);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_append(&deep, "]", 1);
    buf_append(&deep, "}", 1);
    refuses((struct str){(const char *)deep.data, deep.len}, "nested deeper");
    buf_done(&deep);
}

/* {"k":"xxx…"} of so many bytes. */
static struct str of_size(struct buf *b, const char *key, size_t size)
{
    buf_append(b, "{\"", 2);
    buf_append(b, key, strlen(key));
    buf_append(b, "\":\"", 3);
    while (b->len < size - 2)
        buf_append(b, "x", 1);
    buf_append(b, "\"}", 2);
    return (struct str){(const char *)b->data, b->len};
}

static void the_limit_is_of_bytes(void **state)
{
    (void)state;
    struct buf fits = {0};
    struct buf long_one = {0};
    struct buf out = {0};
    char why[SETTINGS_WHY_MAX];
    struct str at_limit = of_size(&fits, "a", SETTINGS_MAX);
    assert_int_equal(settings_take(at_limit, &out, why), 0);
    assert_int_equal(out.len, SETTINGS_MAX);
    refuses(of_size(&long_one, "a", SETTINGS_MAX + 1), "at most 49152 bytes");
    buf_clear(&long_one);
    refuses(of_size(&long_one, "a", 200 * 1024), "at most 49152 bytes");
    buf_done(&fits);
    buf_done(&long_one);
    buf_done(&out);
}

/* Written shorter than their one form, these would grow over the limit. */
static void what_grows_over_the_limit_is_refused(void **state)
{
    (void)state;
    struct buf numbers = {0};
    buf_append(&numbers, "{\"a\":[1e9", 9);
    while (numbers.len < SETTINGS_MAX - 8)
        buf_append(&numbers, ",1e9", 4);
    buf_append(&numbers, "]}", 2);
    refuses((struct str){(const char *)numbers.data, numbers.len}, "at most");
    buf_done(&numbers);
}

static void merging_puts_members_over_members(void **state)
{
    (void)state;
    merges("{}", "{}", "{}");
    merges("", "", "{}");
    merges("{\"b\":1}", "", "{\"b\":1}");
    merges("{}", "{\"b\":1}", "{\"b\":1}");
    merges("{\"a\":1,\"c\":3}", "{\"b\":2}", "{\"a\":1,\"b\":2,\"c\":3}");
    merges("{\"a\":1,\"c\":3}", "{\"c\":null,\"a\":[1]}", "{\"a\":[1],\"c\":null}");
    /* One level deep. */
    merges("{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"x\":3}}", "{\"a\":{\"x\":3}}");
}

static void a_merge_that_gets_too_long_is_refused(void **state)
{
    (void)state;
    struct buf base = {0};
    struct buf over = {0};
    struct buf out = {0};
    char why[SETTINGS_WHY_MAX];
    struct str b = of_size(&base, "a", SETTINGS_MAX - 100);
    struct str o = of_size(&over, "b", 101);
    assert_int_equal(settings_merge(b, o, &out, why), 0);
    assert_int_equal(out.len, SETTINGS_MAX);
    buf_clear(&over);
    o = of_size(&over, "b", 102);
    buf_clear(&out);
    assert_int_equal(settings_merge(b, o, &out, why), ERR_BAD_ARGUMENT);
    assert_string_equal(why, "settings are at most 49152 bytes");
    assert_int_equal(out.len, 0);
    assert_int_equal(settings_merge(b, STR("[]"), &out, why), ERR_BAD_ARGUMENT);
    assert_int_equal(settings_merge(STR("1"), STR("{}"), &out, why), ERR_BAD_ARGUMENT);
    assert_int_equal(out.len, 0);
    buf_done(&base);
    buf_done(&over);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_settings_are_equal_bytes),
        cmocka_unit_test(numbers_keep_their_value),
        cmocka_unit_test(a_nul_is_refused_and_newlines_are_escaped),
        cmocka_unit_test(only_objects_are_settings),
        cmocka_unit_test(the_limit_is_of_bytes),
        cmocka_unit_test(what_grows_over_the_limit_is_refused),
        cmocka_unit_test(merging_puts_members_over_members),
        cmocka_unit_test(a_merge_that_gets_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

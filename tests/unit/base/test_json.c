#include "base/json.h"

#include "lib/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was written so far, as text; valid until the next call. */
static const char *text_of(struct buf *b)
{
    buf_append(b, "", 1);
    b->len--;
    return (const char *)b->data;
}

#define WRITES(expected_, call_)                                                                   \
    do {                                                                                           \
        struct buf b_ = {0};                                                                       \
        struct json_writer writer_ = {.out = &b_};                                                 \
        struct json_writer *w = &writer_;                                                          \
        call_;                                                                                     \
        assert_string_equal(text_of(&b_), expected_);                                              \
        buf_done(&b_);                                                                             \
    } while (0)

static void commas_stand_between_and_nowhere_else(void **state)
{
    (void)state;
    struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_open_object(&w);
    json_key(&w, "none");
    json_open_array(&w);
    json_close_array(&w);
    json_key(&w, "some");
    json_open_array(&w);
    json_int(&w, 1);
    json_open_object(&w);
    json_close_object(&w);
    json_none(&w);
    json_open_array(&w);
    json_bool(&w, true);
    json_close_array(&w);
    json_bool(&w, false);
    json_close_array(&w);
    json_key_text(&w, "a", STR("b"));
    json_key_int(&w, "n", -5);
    json_key_number(&w, "x", 0.5, 3);
    json_key_bool(&w, "yes", true);
    json_close_object(&w);
    assert_string_equal(text_of(&b), "{\"none\":[],\"some\":[1,{},null,[true],false],\"a\":\"b\","
                                     "\"n\":-5,\"x\":0.500,\"yes\":true}");
    buf_done(&b);
}

static void text_is_escaped(void **state)
{
    (void)state;
    WRITES("\"\"", json_text(w, STR("")));
    WRITES("\"\"", json_text(w, (struct str){0}));
    WRITES("\"plain / text\"", json_text(w, STR("plain / text")));
    WRITES("\"\\\"\\\\\\n\\r\\t\\u0000\\u001f\x7f\"", json_text(w, STR("\"\\\n\r\t\0\x1f\x7f")));
    WRITES("\"å€😀\"", json_text(w, STR("å€😀")));
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    (void)state;
    WRITES("\"a\xEF\xBF\xBD"
           "b\"",
           json_text(w, STR("a\xFF"
                            "b")));
    WRITES("\"\xEF\xBF\xBD\xEF\xBF\xBD\"", json_text(w, STR("\xE2\x82"))); /* cut off */
    WRITES("\"\xEF\xBF\xBD\xEF\xBF\xBD\"", json_text(w, STR("\xC0\x80"))); /* overlong NUL */
}

static void numbers_are_numbers(void **state)
{
    (void)state;
    WRITES("0", json_int(w, 0));
    WRITES("9223372036854775807", json_int(w, INT64_MAX));
    WRITES("-9223372036854775808", json_int(w, INT64_MIN));
    WRITES("0.13", json_number(w, 0.125001, 2));
    WRITES("-3", json_number(w, -3.2, 0));
    WRITES("null", json_number(w, NAN, 2));
    WRITES("null", json_number(w, -INFINITY, 2));

    struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_number(&w, 1.7976931348623157e308, 17);
    assert_int_equal(b.len, 309 + 1 + 17);
    buf_done(&b);
}

static void ids_are_text_and_none_is_null(void **state)
{
    (void)state;
    WRITES("\"9007199254740993\"", json_id(w, 9007199254740993));
    WRITES("\"id\":\"12\"", json_key_id(w, "id", 12));
    WRITES("\"id\":null", json_key_id(w, "id", 0));
}

static void times_are_utc_with_milliseconds(void **state)
{
    (void)state;
    WRITES("\"2026-11-16T08:15:30.123Z\"", json_time(w, 1794816930123));
    WRITES("\"1970-01-01T00:00:00.001Z\"", json_time(w, 1));
    WRITES("\"1969-12-31T23:59:59.999Z\"", json_time(w, -1));
    WRITES("\"2024-02-29T00:00:00.000Z\"", json_time(w, 1709164800000));
    WRITES("\"9999-12-31T23:59:59.999Z\"", json_time(w, 253402300799999));
    WRITES("null", json_time(w, 253402300800000));
    WRITES("null", json_time(w, INT64_MAX));
    WRITES("null", json_time(w, INT64_MIN));
    WRITES("null", json_time(w, 0));
    WRITES("\"at\":null", json_key_time(w, "at", 0));
}

static struct json *must_parse(const char *text)
{
    char why[JSON_WHY_MAX] = "";
    struct json *v = json_parse(str_of(text), why);
    if (!v)
        fail_msg("%s: %s", text, why);
    return v;
}

static void every_kind_is_told(void **state)
{
    (void)state;
    struct json *v = must_parse("[null, true, false, -7, 1.5, \"x\", [], {}]");
    static const enum json_kind kinds[] = {JSON_KIND_NULL,  JSON_KIND_BOOL,  JSON_KIND_BOOL,
                                           JSON_KIND_INT,   JSON_KIND_REAL,  JSON_KIND_TEXT,
                                           JSON_KIND_ARRAY, JSON_KIND_OBJECT};
    assert_int_equal(json_kind(v), JSON_KIND_ARRAY);
    assert_int_equal(json_length(v), 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(json_kind(json_item(v, i)), kinds[i]);
    assert_true(json_get_bool(json_item(v, 1)));
    assert_false(json_get_bool(json_item(v, 2)));
    assert_int_equal(json_get_int(json_item(v, 3)), -7);
    assert_true(json_get_number(json_item(v, 3)) == -7.0);
    assert_true(json_get_number(json_item(v, 4)) == 1.5);
    assert_true(str_eq(json_get_text(json_item(v, 5)), STR("x")));
    assert_null(json_item(v, 8));
    json_free(v);
}

static void what_is_of_another_kind_reads_as_nothing(void **state)
{
    (void)state;
    struct json *v = must_parse("{\"text\":\"1\",\"int\":5,\"real\":2.5}");
    const struct json *text = json_member(v, "text");
    assert_int_equal(json_get_int(text), 0);
    assert_true(json_get_number(text) == 0.0);
    assert_false(json_get_bool(text));
    assert_int_equal(json_get_text(json_member(v, "int")).len, 0);
    assert_non_null(json_get_text(json_member(v, "int")).at);
    assert_int_equal(json_get_int(json_member(v, "real")), 0);
    assert_null(json_member(v, "other"));
    assert_null(json_member(text, "text"));
    assert_null(json_item(v, 0));
    assert_int_equal(json_length(v), 0);
    json_free(v);
    json_free(NULL);
}

static void an_object_is_walked_in_order(void **state)
{
    (void)state;
    struct json *v = must_parse("{\"b\":1,\"a\":2,\"\":3}");
    static const char *keys[] = {"b", "a", ""};
    void *at = NULL;
    const char *key = NULL;
    const struct json *value = NULL;
    int n = 0;
    while (json_next(v, &at, &key, &value)) {
        assert_string_equal(key, keys[n]);
        assert_int_equal(json_get_int(value), ++n);
    }
    assert_int_equal(n, 3);
    json_free(v);
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *texts[] = {
        "",
        "   ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "[1 2]",
        "nul",
        "True",
        "01",
        "+1",
        ".5",
        "1.",
        "1e",
        "NaN",
        "Infinity",
        "1e999",
        "[1]]",
        "{} x",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"a\nb\"",
        "\"\xFF\"",
        "\xEF\xBB\xBF{}",
        "\"\\ud800\"",
        "// x\n1",
        "\"\xC0\x80\"",
        "99999999999999999999",
        "{\"a\" 1}",
        "{\"a\":}",
        "[\"a\"",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char why[JSON_WHY_MAX] = "";
        struct json *v = json_parse(str_of(texts[i]), why);
        if (v)
            fail_msg("taken: %s", texts[i]);
        if (strncmp(why, "line ", 5) != 0 || !strstr(why, ", column "))
            fail_msg("%s: %s", texts[i], why);
        assert_true(str_is_utf8(str_of(why)));
    }
}

static void refuses(struct str text, const char *part)
{
    char why[JSON_WHY_MAX] = "";
    assert_null(json_parse(text, why));
    if (!strstr(why, part))
        fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static void duplicate_keys_and_nul_are_refused(void **state)
{
    (void)state;
    refuses(STR("{\"a\":1,\"a\":1}"), "duplicate");
    refuses(STR("[{\"x\":{\"a\":1,\"\\u0061\":1}}]"), "duplicate");
    refuses(STR("\"a\\u0000b\""), "line 1, column 10: \\u0000 must not be in a text");
    refuses(STR("{\"a\\u0000\":1}"), "\\u0000");
    refuses(STR("\"a\0b\""), "NUL");
    refuses(STR("1\0"), "NUL");
    refuses(STR("[1\0]"), "NUL");
    refuses(STR("{}\0"), "NUL");
    refuses((struct str){0}, "line 1");
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    char text[400] = "";
    char why[JSON_WHY_MAX];
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    json_free(must_parse(text));

    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    assert_null(json_parse(str_of(text), why));
    assert_string_equal(why, "nested deeper than 32");

    /* Brackets side by side, or in a text, or after an escaped quote, are not deep. */
    memset(text, 0, sizeof(text));
    strcpy(text, "[");
    for (int i = 0; i < 50; i++)
        strcat(text, "[],");
    strcat(text, "\"");
    for (int i = 0; i < 50; i++)
        strcat(text, "[{");
    strcat(text, "\\\"[[[[\\\\\"]");
    json_free(must_parse(text));
}

static void a_million_brackets_do_not_eat_the_stack(void **state)
{
    (void)state;
    size_t n = 1000000;
    char *text = xmalloc(n);
    memset(text, '[', n);
    refuses((struct str){text, n}, "nested deeper");
    /* Where our count is misled, since this is no JSON, the parser stops at the fault. */
    text[0] = '"';
    text[1] = '\n';
    refuses((struct str){text, n}, "line ");
    free(text);
}

static void size_has_a_limit(void **state)
{
    (void)state;
    char *text = xmalloc(JSON_SIZE_MAX + 1);
    memset(text, ' ', JSON_SIZE_MAX + 1);
    text[0] = '1';
    char why[JSON_WHY_MAX];
    struct json *v = json_parse((struct str){text, JSON_SIZE_MAX}, why);
    assert_int_equal(json_get_int(v), 1);
    json_free(v);
    refuses((struct str){text, JSON_SIZE_MAX + 1}, "longer than");
    free(text);
}

/* Random bytes, weighted to what must be escaped, come back as they were when they are text. */
static void what_was_written_reads_the_same(void **state)
{
    (void)state;
    struct dice dice = {77};
    for (int round = 0; round < 3000; round++) {
        char bytes[40];
        size_t n = dice_below(&dice, sizeof(bytes));
        for (size_t i = 0; i < n; i++)
            bytes[i] = (char)(1 + dice_below(&dice, dice_below(&dice, 2) ? 0x7f : 0xff));
        struct str s = {bytes, n};
        struct buf b = {0};
        struct json_writer w = {.out = &b};
        json_text(&w, s);
        char why[JSON_WHY_MAX];
        struct json *v = json_parse((struct str){(const char *)b.data, b.len}, why);
        assert_non_null(v);
        assert_true(!str_is_utf8(s) || str_eq(json_get_text(v), s));
        json_free(v);
        buf_done(&b);
    }
}

static void writes_again(const char *given, const char *expected)
{
    char why[JSON_WHY_MAX];
    struct json *v = json_parse(str_of(given), why);
    assert_non_null(v);
    WRITES(expected, json_any(w, v));
    json_free(v);
}

static void what_was_read_has_one_form(void **state)
{
    (void)state;
    writes_again(" [ ] ", "[]");
    writes_again("{\"b\":[1,{\"d\":null,\"c\":false}],\"a\\n\":\"\\u00e5\\u0007\"}",
                 "{\"a\\n\":\"\xC3\xA5\\u0007\",\"b\":[1,{\"c\":false,\"d\":null}]}");
    writes_again("[0.1,5.0,-0.0,1e21,0.1e-9,123456789012345678.0]",
                 "[0.1,5.0,-0.0,1e+21,1e-10,1.2345678901234568e+17]");
    char why[JSON_WHY_MAX];
    struct json *base = json_parse(STR("{\"z\":1,\"b\":2}"), why);
    struct json *over = json_parse(STR("{\"b\":{\"x\":1},\"a\":3}"), why);
    assert_int_equal(json_members(base), 2);
    WRITES("{\"a\":3,\"b\":{\"x\":1},\"z\":1}", json_any_over(w, base, over));
    WRITES("[{\"b\":2,\"z\":1},7]", {
        json_open_array(w);
        json_any(w, base);
        json_int(w, 7);
        json_close_array(w);
    });
    json_free(base);
    json_free(over);
}

static void what_is_kept_outlives_its_document(void **state)
{
    (void)state;
    char why[JSON_WHY_MAX];
    struct json *document = json_parse(STR("{\"a\":{\"b\":[1,2]}}"), why);
    struct json *kept = json_keep(json_member(document, "a"));
    json_free(document);
    WRITES("{\"b\":[1,2]}", json_any(w, kept));
    json_free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_has_one_form),
        cmocka_unit_test(what_is_kept_outlives_its_document),
        cmocka_unit_test(commas_stand_between_and_nowhere_else),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(numbers_are_numbers),
        cmocka_unit_test(ids_are_text_and_none_is_null),
        cmocka_unit_test(times_are_utc_with_milliseconds),
        cmocka_unit_test(every_kind_is_told),
        cmocka_unit_test(what_is_of_another_kind_reads_as_nothing),
        cmocka_unit_test(an_object_is_walked_in_order),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(duplicate_keys_and_nul_are_refused),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(a_million_brackets_do_not_eat_the_stack),
        cmocka_unit_test(size_has_a_limit),
        cmocka_unit_test(what_was_written_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/arguments.h"

#include "api/operation.h"
#include "base/err.h"
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

static const char *const colours[] = {"red", "green", "blue", NULL};

/* One of each kind. */
static const struct operation sample = {
    .name = "sample",
    .method = HTTP_POST,
    .path = "/sample/{id}",
    .fields = {{.name = "id", .kind = FIELD_ID, .required = true},
               {.name = "limit",
                .kind = FIELD_INT,
                .min = 1,
                .max = 1000,
                .has_otherwise = true,
                .otherwise = 100},
               {.name = "offset", .kind = FIELD_INT, .min = -5, .max = 5},
               {.name = "name", .kind = FIELD_TEXT, .min = 1, .max = 8},
               {.name = "colour", .kind = FIELD_WORD, .words = colours},
               {.name = "regions", .kind = FIELD_LIST, .min = 1, .max = 3},
               {.name = "shades", .kind = FIELD_LIST, .min = 1, .max = 3}},
};

static void assert_why(struct arguments *a, int err, const char *wrong, const char *why)
{
    assert_int_equal(err, ERR_BAD_ARGUMENT);
    assert_string_equal(a->why, why);
    if (wrong)
        assert_string_equal(a->wrong, wrong);
    else
        assert_null(a->wrong);
}

static void assert_text(struct str text, const char *expected)
{
    assert_true(str_eq(text, str_of(expected)));
    assert_int_equal(text.at[text.len], '\0');
}

static void texts_are_read(void **state)
{
    (void)state;
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put(&a, "id", STR("9223372036854775807")), 0);
    assert_int_equal(arguments_put(&a, "offset", STR("-5")), 0);
    assert_int_equal(arguments_put(&a, "name", STR("Zoë")), 0);
    assert_int_equal(arguments_put(&a, "colour", STR("blue")), 0);
    assert_int_equal(arguments_put(&a, "regions", STR("EU,USE")), 0);
    assert_int_equal(arguments_put(&a, "shades", STR("[\"red\", \"green\"]")), 0);
    assert_int_equal(arguments_put(&a, "access_token", STR("secret")), 0);
    assert_int_equal(arguments_complete(&a), 0);
    assert_int_equal(arguments_get(&a, "id")->number, INT64_MAX);
    assert_int_equal(arguments_get(&a, "offset")->number, -5);
    assert_int_equal(arguments_get(&a, "limit")->number, 100);
    assert_false(arguments_get(&a, "limit")->given);
    assert_text(arguments_get(&a, "name")->text, "Zoë");
    assert_text(arguments_get(&a, "colour")->text, "blue");
    assert_int_equal(arguments_get(&a, "regions")->n_items, 2);
    assert_text(arguments_get(&a, "regions")->items[1], "USE");
    assert_int_equal(arguments_get(&a, "shades")->n_items, 2);
    assert_text(arguments_get(&a, "shades")->items[0], "red");
    assert_text(a.access_token, "secret");
    arguments_done(&a);
}

static void bodies_are_read(void **state)
{
    (void)state;
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(
        arguments_put_json(&a, STR("{\"id\":\"7\",\"limit\":5,\"offset\":null,\"name\":4711,"
                                   "\"regions\":[\"EU\"],\"shades\":\"red,blue\","
                                   "\"access_token\":\"t\"}")),
        0);
    assert_int_equal(arguments_get(&a, "id")->number, 7);
    assert_int_equal(arguments_get(&a, "limit")->number, 5);
    assert_false(arguments_get(&a, "offset")->given);
    assert_text(arguments_get(&a, "name")->text, "4711");
    assert_int_equal(arguments_get(&a, "regions")->n_items, 1);
    assert_int_equal(arguments_get(&a, "shades")->n_items, 2);
    assert_text(a.access_token, "t");
    arguments_done(&a);

    arguments_init(&a, &sample);
    assert_int_equal(
        arguments_put_form(&a, STR("id=7&name=a+b%26c&regions=%5B%22EU%22%5D&access_token=t")), 0);
    assert_int_equal(arguments_get(&a, "id")->number, 7);
    assert_text(arguments_get(&a, "name")->text, "a b&c");
    assert_int_equal(arguments_get(&a, "regions")->n_items, 1);
    assert_text(a.access_token, "t");
    arguments_done(&a);
}

static void each_mistake_has_its_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *value;
        const char *why;
    } cases[] = {
        {"id", "x", "id is a decimal number from 1 on, not 'x'."},
        {"id", "0", "id is a decimal number from 1 on, not '0'."},
        {"id", "", "id is a decimal number from 1 on, not ''."},
        {"id", "+1", "id is a decimal number from 1 on, not '+1'."},
        {"id", " 1", "id is a decimal number from 1 on, not ' 1'."},
        {"id", "1e3", "id is a decimal number from 1 on, not '1e3'."},
        {"id", "-", "id is a decimal number from 1 on, not '-'."},
        {"id", "9223372036854775808",
         "id is a decimal number from 1 on, not '9223372036854775808'."},
        {"id", "99999999999999999999",
         "id is a decimal number from 1 on, not '99999999999999999999'."},
        {"limit", "0", "limit is a whole number from 1 to 1000, not '0'."},
        {"limit", "1001", "limit is a whole number from 1 to 1000, not '1001'."},
        {"limit", "many", "limit is a whole number from 1 to 1000, not 'many'."},
        {"offset", "-6", "offset is a whole number from -5 to 5, not '-6'."},
        {"name", "", "name is text of 1 to 8 bytes without control characters, not ''."},
        {"name", "a\nb", "name is text of 1 to 8 bytes without control characters, not 'a\\x0ab'."},
        {"name", "\xff", "name is text of 1 to 8 bytes without control characters, not '\\xff'."},
        {"name", "nine bytes",
         "name is text of 1 to 8 bytes without control characters, not 'nine bytes'."},
        {"colour", "rde", "colour is red, green or blue, not 'rde'."},
        {"regions", "",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not ''."},
        {"regions", "a,,b",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not ''."},
        {"regions", "[]",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not '[]'."},
        {"regions", "[1]",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not '[1]'."},
        {"regions", "[\"a\"",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not "
         "'[\\\"a\\\"'."},
        {"regions", "a,b,c,d",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not 'd'."},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct arguments a;
        arguments_init(&a, &sample);
        int err = arguments_put(&a, cases[i].name, str_of(cases[i].value));
        assert_why(&a, err, cases[i].name, cases[i].why);
        arguments_done(&a);
    }
}

static void json_of_the_wrong_kind_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *wrong;
        const char *why;
    } cases[] = {
        {"[]", NULL, "The body is no JSON object."},
        {"{\"id\":1.5}", "id", "id is a decimal number from 1 on, not '1.5'."},
        {"{\"id\":true}", "id", "id is a decimal number from 1 on, not 'true'."},
        {"{\"id\":{}}", "id", "id is a decimal number from 1 on, not '{}'."},
        {"{\"name\":[\"a\"]}", "name",
         "name is text of 1 to 8 bytes without control characters, not '[\\\"a\\\"]'."},
        {"{\"regions\":7}", "regions",
         "regions is a list of 1 to 3 texts, as JSON or with commas between them, not '7'."},
        {"{\"access_token\":7}", "access_token", "access_token is text."},
    };
    struct arguments a;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        arguments_init(&a, &sample);
        int err = arguments_put_json(&a, str_of(cases[i].body));
        assert_why(&a, err, cases[i].wrong, cases[i].why);
        arguments_done(&a);
    }
    static const char *const malformed[] = {
        "", "{", "{\"id\":1,}", "{\"id\":1,\"id\":2}", "\xff", "{\"name\":\"\\u0000\"}"};
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        arguments_init(&a, &sample);
        assert_int_equal(arguments_put_json(&a, str_of(malformed[i])), ERR_BAD_ARGUMENT);
        assert_true(strncmp(a.why, "The body is no JSON: ", 21) == 0);
        arguments_done(&a);
    }
}

static void a_broken_form_is_refused(void **state)
{
    (void)state;
    struct arguments a;
    static const struct str bodies[] = {STR("id=%zz"), STR("id=1%00"), STR("id=1\0&name=x")};
    for (size_t i = 0; i < 3; i++) {
        arguments_init(&a, &sample);
        int err = arguments_put_form(&a, bodies[i]);
        assert_why(&a, err, NULL, "The body is no form: an escape in it is wrong.");
        arguments_done(&a);
    }
}

static void a_wrong_name_suggests_the_right_one(void **state)
{
    (void)state;
    struct arguments a;
    arguments_init(&a, &sample);
    assert_why(&a, arguments_put(&a, "limt", STR("1")), "limt",
               "There is no argument 'limt'. Did you mean 'limit'?");
    assert_why(&a, arguments_put(&a, "zebra", STR("1")), "zebra", "There is no argument 'zebra'.");
    static const struct operation bare = {.name = "bare", .path = "/bare"};
    arguments_done(&a);
    arguments_init(&a, &bare);
    assert_why(&a, arguments_put(&a, "x", STR("1")), "x",
               "There is no argument 'x'; this takes none.");
    arguments_done(&a);
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    struct arguments a;
    char name[5000];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put(&a, name, STR("1")), ERR_BAD_ARGUMENT);
    assert_true(strlen(a.why) < 100);
    assert_int_equal(strlen(a.wrong), ARGUMENTS_SHOWN_MAX);
    arguments_done(&a);
}

static void an_argument_comes_once(void **state)
{
    (void)state;
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put(&a, "id", STR("1")), 0);
    assert_why(&a, arguments_put(&a, "id", STR("1")), "id", "id is given twice.");
    assert_int_equal(arguments_put(&a, "access_token", STR("1")), 0);
    assert_why(&a, arguments_put_json(&a, STR("{\"access_token\":\"2\"}")), "access_token",
               "access_token is given twice.");
    arguments_done(&a);
}

static void what_is_required_is_missed(void **state)
{
    (void)state;
    struct arguments a;
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put_json(&a, STR("{\"id\":null}")), 0);
    assert_why(&a, arguments_complete(&a), "id", "id is missing.");
    arguments_done(&a);
}

static void digest(const struct operation *o, const char *json, uint8_t ret[ARGUMENTS_DIGEST])
{
    struct arguments a;
    arguments_init(&a, o);
    assert_int_equal(arguments_put_json(&a, str_of(json)), 0);
    assert_int_equal(arguments_complete(&a), 0);
    arguments_digest(&a, ret);
    arguments_done(&a);
}

static void equal_arguments_have_one_digest_however_they_came(void **state)
{
    (void)state;
    uint8_t first[ARGUMENTS_DIGEST], other[ARGUMENTS_DIGEST];
    struct arguments a;
    digest(&sample, "{\"id\":7,\"regions\":[\"EU\",\"USE\"],\"access_token\":\"x\"}", first);
    digest(&sample, "{\"regions\":\"EU,USE\",\"limit\":100,\"id\":\"7\"}", other);
    assert_memory_equal(first, other, ARGUMENTS_DIGEST);
    arguments_init(&a, &sample);
    assert_int_equal(arguments_put_form(&a, STR("id=7&regions=EU%2CUSE")), 0);
    assert_int_equal(arguments_complete(&a), 0);
    arguments_digest(&a, other);
    arguments_done(&a);
    assert_memory_equal(first, other, ARGUMENTS_DIGEST);
}

static void other_arguments_have_another_digest(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"id\":7}",
        "{\"id\":8}",
        "{\"id\":7,\"limit\":99}",
        "{\"id\":7,\"offset\":0}",
        "{\"id\":7,\"name\":\"a\"}",
        "{\"id\":7,\"colour\":\"red\"}",
        "{\"id\":7,\"regions\":[\"ab\"]}",
        "{\"id\":7,\"regions\":[\"a\",\"b\"]}",
        "{\"id\":7,\"shades\":[\"red\"]}",
    };
    enum { N = sizeof(bodies) / sizeof(bodies[0]) };
    static struct operation renamed;
    uint8_t digests[N + 1][ARGUMENTS_DIGEST];
    renamed = sample;
    renamed.name = "another";
    for (size_t i = 0; i < N; i++)
        digest(&sample, bodies[i], digests[i]);
    digest(&renamed, bodies[0], digests[N]);
    for (size_t i = 0; i <= N; i++) {
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(digests[i], digests[j], ARGUMENTS_DIGEST);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read),
        cmocka_unit_test(bodies_are_read),
        cmocka_unit_test(each_mistake_has_its_sentence),
        cmocka_unit_test(json_of_the_wrong_kind_is_refused),
        cmocka_unit_test(a_broken_form_is_refused),
        cmocka_unit_test(a_wrong_name_suggests_the_right_one),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(an_argument_comes_once),
        cmocka_unit_test(what_is_required_is_missed),
        cmocka_unit_test(equal_arguments_have_one_digest_however_they_came),
        cmocka_unit_test(other_arguments_have_another_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

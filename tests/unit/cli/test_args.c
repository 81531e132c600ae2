/* Reading command lines. What is printed on a refusal is for people; that there is one, and that
 * nothing is half taken, is tested. */
#include "cli/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct got {
    int64_t number;
    const char *text;
    const char *word;
    bool flag;
};

/* words ends with NULL; the verb is put before it. */
static bool parse(struct got *got, const char *const *words)
{
    *got = (struct got){.number = 7, .text = "default"};
    const struct arg table[] = {
        {"--number", ARG_NUMBER, &got->number, -5, 100},
        {"--numbers", ARG_FLAG, &got->flag, 0, 0},
        {"--text", ARG_TEXT, &got->text, 0, 0},
        {"FILE", ARG_WORD, &got->word, 0, 0},
        {0},
    };
    char *argv[16] = {(char *)"verb"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    return args_parse(argc, argv, table);
}

static void test_what_is_not_given_stays(void **state)
{
    (void)state;
    struct got got;
    assert_true(parse(&got, (const char *const[]){NULL}));
    assert_int_equal(got.number, 7);
    assert_string_equal(got.text, "default");
    assert_null(got.word);
    assert_false(got.flag);
}

static void test_values_behind_a_blank_or_an_equals_sign(void **state)
{
    (void)state;
    struct got got;
    const char *blank[] = {"--number", "-5", "--text", "x y", "--numbers", "-", NULL};
    assert_true(parse(&got, blank));
    assert_int_equal(got.number, -5);
    assert_string_equal(got.text, "x y");
    assert_string_equal(got.word, "-");
    assert_true(got.flag);
    const char *equals[] = {"--number=100", "--text=--odd", "file", NULL};
    assert_true(parse(&got, equals));
    assert_int_equal(got.number, 100);
    assert_string_equal(got.text, "--odd");
    assert_string_equal(got.word, "file");
    assert_false(got.flag);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        {"--number", "101"},
        {"--number", "-6"},
        {"--number", "1x"},
        {"--number", ""},
        {"--number", "1e3"},
        {"--number"},
        {"--number", "--text"},
        {"--num", "1"},
        {"--numbers=1"},
        {"--text"},
        {"--textual", "x"},
        {"--unknown"},
        {"--number", "99999999999999999999"},
        {"one", "two"}, /* which the second must not replace in silence */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct got got;
        assert_false(parse(&got, bad[i]));
    }
}

static void test_regions_by_name_and_number(void **state)
{
    (void)state;
    assert_int_equal(args_region("USE"), 0);
    assert_int_equal(args_region("eu"), 2);
    assert_int_equal(args_region("TR"), 16);
    assert_int_equal(args_region("auto"), 17);
    assert_int_equal(args_region("15"), 15);
    assert_int_equal(args_region("64"), -1);
    assert_int_equal(args_region("-1"), -1);
    assert_int_equal(args_region("EUX"), -1);
    assert_int_equal(args_region(""), -1);
    assert_string_equal(args_region_name(3), "SG");
    assert_string_equal(args_region_name(17), "AUTO");
    assert_string_equal(args_region_name(40), "?");
    assert_non_null(strstr(args_region_names(), "USE USW EU"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_given_stays),
        cmocka_unit_test(test_values_behind_a_blank_or_an_equals_sign),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_regions_by_name_and_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

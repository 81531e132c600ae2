/* Reading command lines. What is printed on a refusal is for people; that there is one, and that
 * nothing is half taken, is tested. */
#include "cli/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct got {
    int64_t number;
    int64_t seconds;
    const char *choice;
    const char *list;
    const char *text;
    const char *word;
    bool flag;
    bool quick;
};

/* words ends with NULL; the verb is put before it. */
static bool parse(struct got *got, const char *const *words)
{
    *got = (struct got){.number = 7, .text = "default"};
    const struct arg table[] = {
        {.name = "--number", .kind = ARG_NUMBER, .into = &got->number, .min = -5, .max = 100},
        {.name = "--numbers", .kind = ARG_FLAG, .into = &got->flag},
        {.name = "--text", .kind = ARG_TEXT, .into = &got->text},
        {.name = "FILE", .kind = ARG_WORD, .into = &got->word},
        {0},
    };
    static const char *const formats[] = {"table", "wide", "json", NULL};
    const struct arg more[] = {
        {.name = "--output",
         .kind = ARG_CHOICE,
         .into = &got->choice,
         .words = formats,
         .letter = 'o',
         .value = "FORMAT",
         .help = "how"},
        {.name = "--expires", .kind = ARG_SECONDS, .into = &got->seconds, .min = 1, .max = 8640000},
        {.name = "--list", .kind = ARG_LIST, .into = &got->list, .words = formats},
        {.name = "--quick", .kind = ARG_FLAG, .into = &got->quick, .letter = 'q'},
        {0},
    };
    char *argv[16] = {(char *)"verb"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    return args_parse_all(argc, argv, (const struct arg *const[]){table, more, NULL});
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

static void test_letters(void **state)
{
    (void)state;
    struct got got;
    assert_true(parse(&got, (const char *const[]){"-o", "wide", "-q", "file", NULL}));
    assert_string_equal(got.choice, "wide");
    assert_string_equal(got.word, "file");
    assert_true(got.quick);
    assert_true(parse(&got, (const char *const[]){"-ojson", NULL}));
    assert_string_equal(got.choice, "json");
    assert_true(parse(&got, (const char *const[]){"--output=table", NULL}));
    assert_string_equal(got.choice, "table");
    assert_true(parse(&got, (const char *const[]){"--list", "wide,json", NULL}));
    assert_string_equal(got.list, "wide,json");
}

static void test_seconds_with_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {{"90", 90}, {"90s", 90}, {"5m", 300}, {"2h", 7200}, {"30d", 2592000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct got got;
        assert_true(parse(&got, (const char *const[]){"--expires", rows[i].text, NULL}));
        assert_int_equal(got.seconds, rows[i].seconds);
    }
}

static void test_help_of_a_row(void **state)
{
    (void)state;
    static const char *const words[] = {"a", NULL};
    const char *choice = NULL;
    int64_t seconds = 0;
    const struct arg table[] = {
        {.name = "--output",
         .kind = ARG_CHOICE,
         .into = &choice,
         .words = words,
         .letter = 'o',
         .value = "FORMAT",
         .help = "how to print"},
        {.name = "--hidden", .kind = ARG_TEXT, .into = &choice},
        {.name = "--x", .kind = ARG_TEXT, .into = &choice, .value = "Y", .help = "a line"},
        {.name = "--grace",
         .kind = ARG_SECONDS,
         .into = &seconds,
         .max = 9,
         .value = "TIME",
         .help = "for how long"},
        {.name = "--with-a-long-name",
         .kind = ARG_TEXT,
         .into = &choice,
         .value = "VALUE",
         .help = "many words that do not fit into one line of the help, so that it goes on in the "
                 "next"},
        {0},
    };
    char *text = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&text, &len);
    args_print_help(to, table);
    fclose(to);
    assert_string_equal(text, "  -o, --output FORMAT   how to print: a\n"
                              "  --x Y                 a line\n"
                              "  --grace TIME          for how long; or 5m, 2h, 30d\n"
                              "  --with-a-long-name VALUE\n"
                              "                        many words that do not fit into one line of "
                              "the help, so that it\n"
                              "                        goes on in the next\n");
    free(text);
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
        {"-x"},
        {"-qq"},
        {"-o"},
        {"-o", "jsn"},
        {"-o", "tables"},
        {"--list", "wide,jsn"},
        {"--list", "wide;json"},
        {"--expires", "0"},
        {"--expires", "5w"},
        {"--expires", "5mm"},
        {"--expires", "m"},
        {"--expires", "99999999999999d"},
        {"--expires", "101d"},
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

static void test_words_are_taken_in_order(void **state)
{
    (void)state;
    const char *first = NULL, *second = NULL, *option = NULL;
    const struct arg table[] = {
        {.name = "SERVER", .kind = ARG_WORD, .into = &first},
        {.name = "--text", .kind = ARG_TEXT, .into = &option},
        {.name = "LINE", .kind = ARG_WORD, .into = &second},
        {0},
    };
    char *argv[] = {(char *)"verb", (char *)"3",      (char *)"--text",
                    (char *)"t",    (char *)"say hi", (char *)"more"};
    assert_true(args_parse(5, argv, table));
    assert_string_equal(first, "3");
    assert_string_equal(second, "say hi");
    assert_string_equal(option, "t");
    first = second = NULL;
    assert_false(args_parse(6, argv, table));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_given_stays),
        cmocka_unit_test(test_values_behind_a_blank_or_an_equals_sign),
        cmocka_unit_test(test_letters),
        cmocka_unit_test(test_seconds_with_units),
        cmocka_unit_test(test_help_of_a_row),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_regions_by_name_and_number),
        cmocka_unit_test(test_words_are_taken_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

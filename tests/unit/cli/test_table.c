/* Tables, the text in them, and what is kept from a terminal. */
#include "cli/table.h"

#include "lib/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct term plain = {.columns = 80, .rows = 24};
static const struct term coloured = {
    .is_terminal = true, .colours = true, .columns = 80, .rows = 24};

static void expect(struct buf *out, const char *text)
{
    buf_append(out, "", 1);
    assert_string_equal((const char *)out->data, text);
    buf_done(out);
}

static void cells(struct table *t, const char *const *texts)
{
    for (; *texts; texts++)
        table_cell(t, STYLE_PLAIN, str_of(*texts));
}

static void test_columns_are_as_wide_as_they_must(void **state)
{
    (void)state;
    struct table t;
    struct buf out = {0};
    table_init(&t);
    table_add_column(&t, "ID", true);
    table_add_column(&t, "FLEET", false);
    table_add_column(&t, "LOAD", true);
    table_add_column(&t, "NOTE", false);
    cells(&t,
          (const char *const[]){"1", "arena", "4", "", "100", "a-longer-name", "12", "x", NULL});
    assert_int_equal(table_rows(&t), 2);
    table_print(&t, &plain, &out);
    expect(&out, " ID  FLEET          LOAD  NOTE\n"
                 "  1  arena             4  \n"
                 "100  a-longer-name    12  x\n");
    table_done(&t);
}

static void test_rows_are_sorted_by_several_columns(void **state)
{
    (void)state;
    struct table t;
    struct buf out = {0};
    table_init(&t);
    table_add_column(&t, "ROOM", true);
    table_add_column(&t, "POSITION", true);
    table_add_column(&t, "PLAYER", false);
    cells(&t, (const char *const[]){"9", "10", "ann", "10", "1", "ben", "9", "2", "cid", "9", "2",
                                    "dan", NULL});
    table_sort(&t, 1);
    table_sort(&t, 0);
    table_print(&t, &plain, &out);
    expect(&out, "ROOM  POSITION  PLAYER\n"
                 "   9         2  cid\n"
                 "   9         2  dan\n"
                 "   9        10  ann\n"
                 "  10         1  ben\n");
    table_done(&t);
}

static void test_width_counts_characters_not_bytes(void **state)
{
    (void)state;
    struct table t;
    struct buf out = {0};
    table_init(&t);
    table_add_column(&t, "NAME", false);
    table_add_column(&t, "N", true);
    cells(&t, (const char *const[]){"Köln", "1", "東京都庁", "2", "ab", "3", NULL});
    table_print(&t, &plain, &out);
    expect(&out, "NAME  N\n"
                 "Köln  1\n"
                 "東京都庁  2\n"
                 "ab    3\n");
    assert_int_equal(term_width(STR("a\xFFz")), 3); /* a byte that is no text is one '?' */
    table_done(&t);
}

static void test_no_rows_still_have_titles(void **state)
{
    (void)state;
    struct table t;
    struct buf out = {0};
    table_init(&t);
    table_add_column(&t, "ID", true);
    table_add_column(&t, "X", false);
    table_print(&t, &plain, &out);
    expect(&out, "ID  X\n");
    table_done(&t);
}

static void test_printed_in_parts_it_stays_aligned(void **state)
{
    (void)state;
    struct table t;
    struct buf out = {0};
    table_init(&t);
    table_add_column(&t, "ID", true);
    table_add_column(&t, "X", false);
    cells(&t, (const char *const[]){"12345", "a", NULL});
    table_print(&t, &plain, &out);
    assert_int_equal(table_rows(&t), 0);
    cells(&t, (const char *const[]){"7", "b", NULL});
    table_print(&t, &plain, &out);
    expect(&out, "   ID  X\n"
                 "12345  a\n"
                 "    7  b\n");
    table_done(&t);
}

static void test_colours_do_not_move_columns(void **state)
{
    (void)state;
    struct table t;
    struct buf out = {0};
    table_init(&t);
    table_add_column(&t, "STATUS", false);
    table_add_column(&t, "N", true);
    table_cell(&t, STYLE_BAD, STR("offline"));
    table_cell(&t, STYLE_PLAIN, STR("1"));
    table_cell(&t, STYLE_GOOD, STR("up"));
    table_cell(&t, STYLE_PLAIN, STR("22"));
    table_print(&t, &coloured, &out);
    expect(&out, "\033[1mSTATUS\033[0m    \033[1mN\033[0m\n"
                 "\033[31moffline\033[0m   1\n"
                 "\033[32mup\033[0m       22\n");
    table_done(&t);
}

static void test_text_of_others_commands_no_terminal(void **state)
{
    (void)state;
    struct buf out = {0};
    term_put_text(&out, STR("a\033[2Jb\nc\td\x7F"
                            "e\xC2\x9B"
                            "f\xE2\x80\xAEg\xE2\x81\xA6h\xFFi\xC3"));
    expect(&out, "a?[2Jb?c?d?e?f?g?h?i?");
    term_put_text(&out, STR("Köln \"q\" \\ €"));
    expect(&out, "Köln \"q\" \\ €");
    term_put_text(&out, (struct str){"a\0b", 3});
    expect(&out, "a?b");
}

static void test_fit_cuts_lines_and_says_what_is_missing(void **state)
{
    (void)state;
    struct buf out = {0};
    term_fit(&out, STR("one\ntwo\n"), 80, 5);
    expect(&out, "one\ntwo\n");
    term_fit(&out, STR("one\ntwo"), 80, 2);
    expect(&out, "one\ntwo\n");
    term_fit(&out, STR("1\n2\n3\n4\n"), 80, 3);
    expect(&out, "1\n2\n... 2 more\n");
    term_fit(&out, STR("Käse und Brot\n\nab\n"), 4, 5);
    expect(&out, "Käse\n\nab\n");
    term_fit(&out, STR("\033[31mabcdef\033[0m\n"), 3, 5);
    expect(&out, "\033[31mabc\033[0m\n");
    term_fit(&out, STR("1\n2\n"), 80, 1);
    expect(&out, "... 2 more\n");
    term_fit(&out, STR("1\n2\n"), 3, 1);
    expect(&out, "...\n");
}

/* A pseudo-terminal's end that a program would write to. */
static int open_terminal(int *ret_master)
{
    *ret_master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_int_equal(grantpt(*ret_master), 0);
    assert_int_equal(unlockpt(*ret_master), 0);
    int fd = open(ptsname(*ret_master), O_RDWR | O_NOCTTY);
    assert_true(fd >= 0);
    return fd;
}

static void test_colours_only_where_they_are_wanted(void **state)
{
    (void)state;
    struct term term;
    int master;
    int fd = open_terminal(&master);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    term_look(&term, fd, false);
    assert_true(term.is_terminal && term.colours);
    assert_int_equal(term.columns, 80); /* a size of 0 x 0 is none */
    term_look(&term, fd, true);
    assert_true(term.is_terminal && !term.colours);
    setenv("NO_COLOR", "1", 1);
    term_look(&term, fd, false);
    assert_false(term.colours);
    setenv("NO_COLOR", "", 1);
    term_look(&term, fd, false);
    assert_true(term.colours);
    setenv("TERM", "dumb", 1);
    term_look(&term, fd, false);
    assert_false(term.colours);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    setenv("TERM", "xterm", 1);
    term_look(&term, ends[1], false);
    assert_false(term.is_terminal || term.colours);
    close(ends[0]);
    close(ends[1]);
    close(fd);
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_are_as_wide_as_they_must),
        cmocka_unit_test(test_rows_are_sorted_by_several_columns),
        cmocka_unit_test(test_width_counts_characters_not_bytes),
        cmocka_unit_test(test_no_rows_still_have_titles),
        cmocka_unit_test(test_printed_in_parts_it_stays_aligned),
        cmocka_unit_test(test_colours_do_not_move_columns),
        cmocka_unit_test(test_text_of_others_commands_no_terminal),
        cmocka_unit_test(test_fit_cuts_lines_and_says_what_is_missing),
        cmocka_unit_test(test_colours_only_where_they_are_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

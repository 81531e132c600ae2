/* The table of verbs: what every one of a kind must have. */
#include "cli/help.h"
#include "cli/remote.h"

#include "lib/unit.h"

#include <string.h>

static const struct arg *find(const struct command *c, struct ask *ask, const char *name)
{
    const struct arg *tables[HELP_TABLES_MAX + 1];
    help_tables(c, ask, tables);
    for (size_t i = 0; tables[i]; i++) {
        for (const struct arg *arg = tables[i]; arg->name; arg++) {
            if (args_is_option(arg) && strcmp(arg->name, name) == 0)
                return arg;
        }
    }
    return NULL;
}

static void has_output(const struct command *c)
{
    static const char *const words[] = {"table", "wide", "json", NULL};
    struct ask ask;
    const struct arg *output = find(c, &ask, "--output");
    if (!output || output->letter != 'o')
        fail_msg("'muster %s' has no -o", c->name);
    for (size_t i = 0; words[i]; i++)
        assert_string_equal(output->words[i], words[i]);
}

static void test_every_verb_that_looks_has_output_watch_and_no_color(void **state)
{
    (void)state;
    int n = 0;
    for (const struct command *c = commands; c->name; c++) {
        struct ask ask;
        if (c->group != GROUP_LOOK)
            continue;
        has_output(c);
        const struct arg *watch = find(c, &ask, "--watch");
        if (!watch || watch->letter != 'w' || watch->kind != ARG_FLAG)
            fail_msg("'muster %s' has no -w, --watch", c->name);
        if (!find(c, &ask, "--no-color"))
            fail_msg("'muster %s' has no --no-color", c->name);
        n++;
    }
    assert_true(n > 20);
}

static void test_every_verb_that_changes_over_http_has_output(void **state)
{
    (void)state;
    for (const struct command *c = commands; c->name; c++) {
        if (c->group == GROUP_CHANGE && help_is_remote(c))
            has_output(c);
    }
}

/* No two options of a verb have one name or one letter: only the first would ever be heard. */
static void check_unique(const struct command *c)
{
    struct ask ask;
    const struct arg *tables[HELP_TABLES_MAX + 1];
    bool letters[128] = {0};
    help_tables(c, &ask, tables);
    for (size_t i = 0; tables[i]; i++) {
        for (const struct arg *arg = tables[i]; arg->name; arg++) {
            struct ask other;
            if (!args_is_option(arg))
                continue;
            const struct arg *first = find(c, &other, arg->name);
            if (first->help != arg->help || (arg->letter && letters[(int)arg->letter]))
                fail_msg("'muster %s' has two of %s or its letter", c->name, arg->name);
            letters[(int)arg->letter] = true;
        }
    }
}

static void test_options_are_told_apart(void **state)
{
    (void)state;
    for (const struct command *c = commands; c->name; c++)
        check_unique(c);
}

static void test_every_verb_says_what_it_is(void **state)
{
    (void)state;
    for (const struct command *c = commands; c->name; c++) {
        if (!c->run || !c->summary || !c->synopsis || (!c->about && !c->operation))
            fail_msg("'muster %s' is not described", c->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_verb_that_looks_has_output_watch_and_no_color),
        cmocka_unit_test(test_every_verb_that_changes_over_http_has_output),
        cmocka_unit_test(test_options_are_told_apart),
        cmocka_unit_test(test_every_verb_says_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

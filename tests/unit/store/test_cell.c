#include "postgres.h"

#include "base/err.h"
#include "store/cell.h"
#include "store/tables.h"

#include <pthread.h>

static struct cell_config cell_of(const char *name)
{
    struct cell_config c = {.url = postgres_url(), .cell = name, .lease_ms = 2000};
    memset(c.secret_print, 7, sizeof(c.secret_print));
    return c;
}

static void prepared(const struct cell_config *c)
{
    struct why why = {""};
    int err = cell_prepare(c, &why);
    if (err != 0)
        print_error("%s\n", why.text);
    assert_int_equal(err, 0);
}

static void refused(const struct cell_config *c, int wanted, const char *sentence)
{
    struct why why = {""};
    int err = cell_prepare(c, &why);
    if (err != wanted || !strstr(why.text, sentence))
        print_error("%d %s\n", err, why.text);
    assert_int_equal(err, wanted);
    assert_non_null(strstr(why.text, sentence));
    assert_null(strstr(why.text, "sesame"));
}

static void a_cell_is_made_once(void **state)
{
    (void)state;
    struct cell_config c = cell_of("once");
    prepared(&c);
    postgres_do("muster_once", "UPDATE head SET writer = 5");
    prepared(&c);
    assert_int_equal(postgres_ask("muster_once", "SELECT writer FROM head"), 5);
    assert_int_equal(postgres_ask(NULL, "SELECT count(*) FROM pg_tables"
                                        " WHERE schemaname = 'muster_once'"),
                     ROW_KINDS + 6);
    assert_int_equal(postgres_ask("muster_once", "SELECT count(*) FROM lease WHERE holder = 0"), 1);
    /* Kept as it comes, and outside of the row when it is long. */
    assert_int_equal(postgres_ask("muster_once",
                                  "SELECT count(*) FROM pg_attribute WHERE attname = 'changes'"
                                  " AND attrelid = 'journal'::regclass AND attstorage = 'e'"),
                     1);
}

static void names_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "Eu", "a-b", "a\"; DROP SCHEMA public; --",
                                      "abcdefghijklmnopqrstuvwxyz0123456"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cell_config c = cell_of(bad[i]);
        refused(&c, ERR_FORMAT, "A cell's name");
    }
    assert_true(cell_name_is_good("abcdefghijklmnopqrstuvwxyz012345"));
}

static void a_newer_cell_is_refused_and_left_alone(void **state)
{
    (void)state;
    struct cell_config c = cell_of("newer");
    prepared(&c);
    postgres_do("muster_newer", "UPDATE cell SET row_format = row_format + 1");
    refused(&c, ERR_FORMAT, "understands version");
    assert_int_equal(postgres_ask("muster_newer", "SELECT row_format FROM cell"), ROW_FORMAT + 1);
    postgres_do("muster_newer", "UPDATE cell SET row_format = row_format - 1, format = 2");
    refused(&c, ERR_FORMAT, "version 2.");
}

static void an_older_cell_gets_the_tables_it_lacks(void **state)
{
    (void)state;
    struct cell_config c = cell_of("older");
    prepared(&c);
    postgres_do("muster_older", "DROP TABLE lobby; DROP TABLE restore; INSERT INTO fleet VALUES"
                                " (3, 'kept'); UPDATE cell SET row_format = 1");
    /* With another secret nothing is brought up. */
    c.secret_print[0] = 8;
    refused(&c, ERR_FORMAT, "another secret");
    assert_int_equal(postgres_ask("muster_older", "SELECT row_format FROM cell"), 1);
    c.secret_print[0] = 7;
    prepared(&c);
    assert_int_equal(postgres_ask("muster_older", "SELECT row_format FROM cell"), ROW_FORMAT);
    assert_int_equal(postgres_ask("muster_older", "SELECT count(*) FROM lobby"), 0);
    assert_int_equal(postgres_ask("muster_older", "SELECT count(*) FROM restore"), 0);
    assert_int_equal(postgres_ask("muster_older", "SELECT id FROM fleet WHERE name = 'kept'"), 3);
}

static void another_programs_schema_is_left_alone(void **state)
{
    (void)state;
    postgres_do(NULL, "CREATE SCHEMA muster_theirs; CREATE TABLE muster_theirs.t (a int)");
    struct cell_config c = cell_of("theirs");
    refused(&c, ERR_FORMAT, "another program");
    assert_int_equal(
        postgres_ask(NULL, "SELECT count(*) FROM pg_tables WHERE schemaname = 'muster_theirs'"), 1);
}

/* A role that may do nothing is told what to ask for, and after that it can. */
static void a_schema_that_we_may_not_make(void **state)
{
    (void)state;
    char url[160];
    snprintf(url, sizeof(url), "postgres://poor:sesame@127.0.0.1:%d/postgres", postgres.port);
    postgres_do(NULL, "CREATE ROLE poor LOGIN PASSWORD 'sesame'");
    struct cell_config c = cell_of("poor");
    c.url = url;
    refused(&c, ERR_IO, "CREATE SCHEMA muster_poor AUTHORIZATION");
    postgres_do(NULL, "CREATE SCHEMA muster_poor AUTHORIZATION poor");
    prepared(&c);
}

static void a_database_that_has_not_all_letters(void **state)
{
    (void)state;
    postgres_do(NULL, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    char url[160];
    snprintf(url, sizeof(url), "postgres://muster:open%%2Fsesame@127.0.0.1:%d/latin",
             postgres.port);
    struct cell_config c = cell_of("latin");
    c.url = url;
    refused(&c, ERR_FORMAT, "UTF8");
}

static void *prepare_in_thread(void *arg)
{
    struct why why = {""};
    int err = cell_prepare(arg, &why);
    if (err != 0)
        print_error("%s\n", why.text);
    return (void *)(intptr_t)err;
}

static void several_at_once_make_one_cell(void **state)
{
    (void)state;
    struct cell_config c = cell_of("crowd");
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, prepare_in_thread, &c), 0);
    for (int i = 0; i < 8; i++) {
        void *err = NULL;
        assert_int_equal(pthread_join(threads[i], &err), 0);
        assert_null(err);
    }
    assert_int_equal(postgres_ask("muster_crowd", "SELECT count(*) FROM cell"), 1);
    assert_int_equal(postgres_ask("muster_crowd", "SELECT count(*) FROM head"), 1);
}

static void a_damaged_cell_is_said(void **state)
{
    (void)state;
    struct cell_config c = cell_of("damaged");
    prepared(&c);
    postgres_do("muster_damaged", "DELETE FROM cell");
    refused(&c, ERR_FORMAT, "damaged");
}

static void text_goes_there_and_back(const char *text, size_t len, const char *kept)
{
    struct buf out = {0};
    char back[64];
    tables_text(&out, (struct str){text, len});
    assert_int_equal(out.len, strlen(kept));
    assert_memory_equal(out.data, kept, out.len);
    assert_true(tables_untext((struct str){kept, strlen(kept)}, back, sizeof(back)));
    assert_int_equal(strlen(back), len);
    assert_memory_equal(back, text, len);
    buf_done(&out);
}

static void text_that_is_no_utf8_is_kept_with_escapes(void **state)
{
    (void)state;
    text_goes_there_and_back("plain \xc3\xa9", 8, "plain \xc3\xa9");
    text_goes_there_and_back("a\\b", 3, "a\\\\b");
    text_goes_there_and_back("cut \xc3", 5, "cut \\xc3");
    text_goes_there_and_back("\\xff\xff", 5, "\\\\xff\\xff");
    char back[4];
    assert_false(tables_untext(STR("\\"), back, sizeof(back)));
    assert_false(tables_untext(STR("\\x0"), back, sizeof(back)));
    assert_false(tables_untext(STR("\\x00"), back, sizeof(back)));
    assert_false(tables_untext(STR("\\xgg"), back, sizeof(back)));
    assert_false(tables_untext(STR("long"), back, sizeof(back)));
    assert_true(tables_untext(STR("shr"), back, sizeof(back)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_is_made_once),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(a_newer_cell_is_refused_and_left_alone),
        cmocka_unit_test(an_older_cell_gets_the_tables_it_lacks),
        cmocka_unit_test(another_programs_schema_is_left_alone),
        cmocka_unit_test(a_schema_that_we_may_not_make),
        cmocka_unit_test(a_database_that_has_not_all_letters),
        cmocka_unit_test(several_at_once_make_one_cell),
        cmocka_unit_test(a_damaged_cell_is_said),
        cmocka_unit_test(text_that_is_no_utf8_is_kept_with_escapes),
    };
    return cmocka_run_group_tests(tests, postgres_setup, postgres_teardown);
}

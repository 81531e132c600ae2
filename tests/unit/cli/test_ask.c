/* Questions made of command lines: names, limits and words are those of the operation's row. */
#include "cli/ask.h"

#include "cli/client.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

/* words ends with NULL. */
static bool parse(struct ask *a, const char *operation, const char *word, const char *const *words)
{
    char *argv[16] = {(char *)"verb"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    ask_init(a, operation, word);
    return args_parse(argc, argv, a->table) && ask_check(a, "verb");
}

static void expect_path(const struct ask *a, const char *path)
{
    struct buf b = {0};
    ask_put_path(a, &b);
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.data, path);
    buf_done(&b);
}

static void expect_body(const struct ask *a, const char *body)
{
    struct buf b = {0};
    ask_put_body(a, &b);
    buf_append(&b, "", 1);
    assert_string_equal((const char *)b.data, body);
    buf_done(&b);
}

static void test_filters_go_into_the_query(void **state)
{
    (void)state;
    struct ask a;
    assert_true(parse(&a, "list_servers", NULL, (const char *const[]){NULL}));
    expect_path(&a, "/v1/servers");
    const char *filters[] = {"-f", "a b&c", "--region=EU", "--status", "full", NULL};
    assert_true(parse(&a, "list_servers", NULL, filters));
    expect_path(&a, "/v1/servers?fleet=a%20b%26c&region=EU&status=full");
    assert_true(parse(&a, "list_sessions", NULL, (const char *const[]){"--server", "7", NULL}));
    expect_path(&a, "/v1/sessions?server=7");
}

static void test_pages_are_no_options(void **state)
{
    (void)state;
    struct ask a;
    assert_false(parse(&a, "list_servers", NULL, (const char *const[]){"--cursor", "1", NULL}));
    assert_false(parse(&a, "list_servers", NULL, (const char *const[]){"--limit", "1", NULL}));
    assert_true(parse(&a, "list_servers", NULL, (const char *const[]){NULL}));
    assert_true(ask_has(&a, "cursor"));
    ask_set_number(&a, "limit", 50);
    ask_set(&a, "cursor", "12");
    expect_path(&a, "/v1/servers?limit=50&cursor=12");
}

static void test_number_in_the_path(void **state)
{
    (void)state;
    struct ask a;
    assert_true(parse(&a, "drain_server", "SERVER", (const char *const[]){"12", NULL}));
    expect_path(&a, "/v1/servers/12/drain");
    expect_body(&a, "");
    static const char *const bad[] = {"x", "", "-1", "1/../2", "1 2", "99999999999999999999"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(parse(&a, "drain_server", "SERVER", (const char *const[]){bad[i], NULL}));
    assert_false(parse(&a, "drain_server", "SERVER", (const char *const[]){NULL}));
}

static void test_seconds_are_times(void **state)
{
    (void)state;
    struct ask a;
    const char *wait[] = {"7", "--wait", "20s", NULL};
    assert_true(parse(&a, "get_ticket", "TICKET", wait));
    expect_path(&a, "/v1/tickets/7?wait=20");
    assert_int_equal(ask_number(&a, "wait"), 20);
    const char *grace[] = {"3", "--grace", "2h", NULL};
    assert_true(parse(&a, "rotate_token", "TOKEN", grace));
    expect_path(&a, "/v1/tokens/3/rotate");
    expect_body(&a, "{\"grace_s\":7200}");
}

static void test_body_of_what_changes(void **state)
{
    (void)state;
    struct ask a;
    const char *enrol[] = {"--role",    "server",    "--fleet", "a\"b", "--regions",
                           "EU,USE,SG", "--expires", "30d",     NULL};
    assert_true(parse(&a, "enrol", NULL, enrol));
    expect_path(&a, "/v1/tokens");
    expect_body(&a, "{\"role\":\"server\",\"fleet\":\"a\\\"b\",\"regions\":[\"EU\",\"USE\",\"SG\"],"
                    "\"expires_in_s\":2592000}");
}

static void test_a_field_may_be_a_word_too(void **state)
{
    (void)state;
    struct ask a;
    ask_init(&a, "issue_access_token", NULL);
    ask_add_word(&a, "account", "ACCOUNT");
    char *argv[] = {(char *)"verb", (char *)"robot", (char *)"--scopes", (char *)"game_host"};
    assert_true(args_parse(4, argv, a.table) && ask_check(&a, "verb"));
    expect_body(&a, "{\"account\":\"robot\",\"scopes\":[\"game_host\"]}");
}

static void test_what_the_verb_puts_into_the_path(void **state)
{
    (void)state;
    struct ask a;
    assert_true(parse(&a, "get_server", NULL, (const char *const[]){NULL}));
    ask_set(&a, "id", "7");
    expect_path(&a, "/v1/servers/7");
    assert_false(parse(&a, "get_server", NULL, (const char *const[]){"7", NULL}));
}

static void test_what_the_row_refuses(void **state)
{
    (void)state;
    struct ask a;
    assert_false(parse(&a, "enrol", NULL, (const char *const[]){"--role", "server", NULL}));
    assert_false(
        parse(&a, "enrol", NULL, (const char *const[]){"--role", "king", "--fleet", "f", NULL}));
    assert_false(parse(&a, "list_servers", NULL, (const char *const[]){"--status", "up", NULL}));
    assert_false(
        parse(&a, "get_ticket", "TICKET", (const char *const[]){"7", "--wait", "1000000", NULL}));
}

static void test_every_operation_can_be_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_operations; i++) {
        struct ask a;
        ask_init(&a, operations[i].name, "ID");
        size_t n = 0;
        while (a.table[n].name)
            n++;
        assert_true(n <= OPERATION_FIELDS_MAX);
    }
}

static void test_client_refuses_settings_that_cannot_be(void **state)
{
    (void)state;
    char why[CLIENT_WHY_MAX];
    unsetenv("MUSTER_URL");
    unsetenv("MUSTER_TOKEN");
    static const char *const urls[] = {"ftp://a", "http://",      "http://a b", "http://u@h",
                                       "",        "http://a?b=c", "http://a#b"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        const struct client_settings set = {.url = urls[i], .token = "t", .stop_fd = -1};
        assert_null(client_open(&set, why));
        assert_non_null(strstr(why, "URL"));
    }
    static const char *const tokens[] = {"", "a b", "a\r\nX-Other: 1", "\xC3\xA4"};
    for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
        const struct client_settings set = {.url = "h:1", .token = tokens[i], .stop_fd = -1};
        assert_null(client_open(&set, why));
        assert_non_null(strstr(why, "--token"));
    }
    const struct client_settings good = {.url = "localhost:99/", .token = "t", .stop_fd = -1};
    struct client *c = client_open(&good, why);
    assert_non_null(c);
    assert_string_equal(client_url(c), "http://localhost:99");
    client_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters_go_into_the_query),
        cmocka_unit_test(test_pages_are_no_options),
        cmocka_unit_test(test_number_in_the_path),
        cmocka_unit_test(test_seconds_are_times),
        cmocka_unit_test(test_body_of_what_changes),
        cmocka_unit_test(test_a_field_may_be_a_word_too),
        cmocka_unit_test(test_what_the_verb_puts_into_the_path),
        cmocka_unit_test(test_what_the_row_refuses),
        cmocka_unit_test(test_every_operation_can_be_asked),
        cmocka_unit_test(test_client_refuses_settings_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

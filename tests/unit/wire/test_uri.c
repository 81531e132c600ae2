#include "wire/uri.h"

#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "path|key=value|…" */
static void reads(const char *target, const char *expected)
{
    struct uri u;
    char text[512];
    assert_true(uri_parse(target, &u));
    int n = snprintf(text, sizeof(text), "%s", uri_path(&u));
    size_t at = 0;
    const char *key = NULL;
    const char *value = NULL;
    while (uri_next(&u, &at, &key, &value))
        n += snprintf(text + n, sizeof(text) - (size_t)n, "|%s=%s", key, value);
    assert_string_equal(text, expected);
    uri_done(&u);
    assert_string_equal(uri_path(&u), "");
}

static void refuses(const char *target)
{
    struct uri u;
    size_t at = 0;
    const char *key = NULL;
    const char *value = NULL;
    if (uri_parse(target, &u))
        fail_msg("%s was taken", target);
    assert_string_equal(uri_path(&u), "");
    assert_false(uri_next(&u, &at, &key, &value));
    uri_done(&u);
}

static void paths_are_decoded(void **state)
{
    (void)state;
    reads("/", "/");
    reads("/v1/servers", "/v1/servers");
    reads("/a%20b%2Fc%2fd+e", "/a b%2Fc%2Fd+e");
    reads("/%C3%A5%FF", "/\xC3\xA5\xFF");
    reads("/%2525", "/%2525");
    reads("*", "*");
    reads("", "/");
}

/* What is between two slashes may hold one, and a percent sign. */
static void a_segment_is_what_was_escaped(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"plain", "plain"}, {"a%2Fb", "a/b"}, {"100%25", "100%"}, {"%252F", "%2F"}, {"%2F", "/"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char target[64];
        struct uri u;
        struct buf segment = {0};
        (void)snprintf(target, sizeof(target), "/x/%s", names[i][0]);
        assert_true(uri_parse(target, &u));
        assert_null(strchr(uri_path(&u) + 3, '/'));
        uri_segment(&segment, str_of(uri_path(&u) + 3));
        buf_append(&segment, "", 1);
        assert_string_equal((const char *)segment.data, names[i][1]);
        buf_done(&segment);
        uri_done(&u);
    }
}

static void queries_are_arguments_in_order(void **state)
{
    (void)state;
    reads("/p?a=1&b=2&a=3", "/p|a=1|b=2|a=3");
    reads("/p?", "/p");
    reads("/p?&&", "/p");
    reads("/p?key", "/p|key=");
    reads("/p?key&last", "/p|key=|last=");
    reads("/p?key=", "/p|key=");
    reads("/p?=value", "/p|=value");
    reads("/p?a=b=c&d=?/", "/p|a=b=c|d=?/");
    reads("/p?a+b=c+d&e%3Df=%26%2B%25", "/p|a b=c d|e=f=&+%");
    reads("?a=1", "/|a=1");
}

static void who_names_the_authority_means_the_same(void **state)
{
    (void)state;
    reads("http://example.org:9508/a?b=c", "/a|b=c");
    reads("HTTPS://example.org", "/");
    reads("https://example.org?b=c", "/|b=c");
    reads("http:/a", "http:/a");
}

static void broken_escapes_and_nul_are_refused(void **state)
{
    (void)state;
    refuses("/%");
    refuses("/%2");
    refuses("/%zz");
    refuses("/%2z");
    refuses("/%z2");
    refuses("/% 1");
    refuses("/%-1");
    refuses("/a%00b");
    refuses("/p?a=%0");
    refuses("/p?a=%00");
    refuses("/p?%00");
    refuses("/p?%4=1");
    refuses("/p?a=1&b%");
}

/* Any bytes escaped one by one come back. */
static void what_was_escaped_comes_back(void **state)
{
    (void)state;
    struct dice dice = {4711};
    for (int round = 0; round < 2000; round++) {
        char plain[32] = "/";
        char target[200] = "/";
        size_t n = 1 + dice_below(&dice, 30);
        for (size_t i = 1; i < n; i++) {
            plain[i] = (char)(1 + dice_below(&dice, 255));
            snprintf(target + strlen(target), 4, "%%%02x", (unsigned char)plain[i]);
        }
        struct uri u;
        struct buf segment = {0};
        assert_true(uri_parse(target, &u));
        assert_null(strchr(uri_path(&u) + 1, '/')); /* it is one segment */
        uri_segment(&segment, str_of(uri_path(&u) + 1));
        buf_append(&segment, "", 1);
        assert_string_equal((const char *)segment.data, plain + 1);
        buf_done(&segment);
        uri_done(&u);
    }
}

/* Whoever is sent to another node asks there for what he asked here. */
static void a_target_that_was_put_reads_the_same(void **state)
{
    (void)state;
    static const char *const targets[][2] = {
        {"/", "/"},
        {"/v1/players/a%2Fb/journey?from=2h&to=", "/v1/players/a%2Fb/journey?from=2h&to="},
        {"/a%20b%25c%0d%0aX:%20y", "/a%20b%25c%0D%0AX%3A%20y"},
        {"/p?settings=%7B%22a%22:1%7D&x+y", "/p?settings=%7B%22a%22%3A1%7D&x%20y="},
        {"http://proxy:1/a?b=%26c", "/a?b=%26c"},
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct uri first;
        struct uri again;
        struct buf put = {0};
        assert_true(uri_parse(targets[i][0], &first));
        uri_put(&put, &first);
        buf_append(&put, "", 1);
        assert_string_equal((const char *)put.data, targets[i][1]);
        assert_true(uri_parse((const char *)put.data, &again));
        assert_int_equal(first.text.len, again.text.len);
        assert_memory_equal(first.text.data, again.text.data, first.text.len);
        buf_done(&put);
        uri_done(&first);
        uri_done(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_decoded),
        cmocka_unit_test(a_segment_is_what_was_escaped),
        cmocka_unit_test(queries_are_arguments_in_order),
        cmocka_unit_test(who_names_the_authority_means_the_same),
        cmocka_unit_test(broken_escapes_and_nul_are_refused),
        cmocka_unit_test(what_was_escaped_comes_back),
        cmocka_unit_test(a_target_that_was_put_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

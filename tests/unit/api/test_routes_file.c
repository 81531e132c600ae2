/* The file of routes: its text, and that it is written over such that nobody reads half of it. */
#include "api/routes_file.h"
#include "lib/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/muster-routes-XXXXXX";
static char path[64];

static int setup(void **state)
{
    (void)state;
    (void)strcpy(folder, "/tmp/muster-routes-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/routes.yaml", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static struct route_line line(const char *token, const char *address, uint16_t port)
{
    struct route_line l = {0};
    route_line_set(&l, token, address, port);
    return l;
}

static const char *rendered(struct route_line *lines, size_t n)
{
    static char text[4096];
    struct buf out = {0};
    routes_sort(lines, n);
    routes_render(&out, false, lines, n);
    assert_true(out.len < sizeof(text));
    memcpy(text, out.data, out.len);
    text[out.len] = '\0';
    buf_done(&out);
    return text;
}

static void test_no_routes(void **state)
{
    (void)state;
    assert_string_equal(rendered(NULL, 0), "version: v1alpha1\nclusters: [{endpoints: []}]\n");
}

static void test_filters_when_wanted(void **state)
{
    (void)state;
    struct buf out = {0};
    routes_render(&out, true, NULL, 0);
    buf_append(&out, "", 1);
    assert_string_equal((const char *)out.data,
                        "version: v1alpha1\n"
                        "filters:\n"
                        "- name: quilkin.filters.capture.v1alpha1.Capture\n"
                        "  config: {suffix: {size: 16, remove: true}}\n"
                        "- name: quilkin.filters.token_router.v1alpha1.TokenRouter\n"
                        "clusters: [{endpoints: []}]\n");
    buf_done(&out);
}

static void test_tokens_of_one_endpoint_stand_together(void **state)
{
    (void)state;
    struct route_line lines[] = {line("bbbb", "10.0.0.2", 7), line("cccc", "10.0.0.1", 7),
                                 line("aaaa", "10.0.0.2", 7), line("dddd", "2001:db8::1", 9)};
    assert_string_equal(rendered(lines, 4),
                        "version: v1alpha1\n"
                        "clusters:\n"
                        "- endpoints:\n"
                        "  - address: \"10.0.0.1:7\"\n"
                        "    metadata: {quilkin.dev: {tokens: [\"cccc\"]}}\n"
                        "  - address: \"10.0.0.2:7\"\n"
                        "    metadata: {quilkin.dev: {tokens: [\"aaaa\", \"bbbb\"]}}\n"
                        "  - address: \"[2001:db8::1]:9\"\n"
                        "    metadata: {quilkin.dev: {tokens: [\"dddd\"]}}\n");
}

static void test_what_moves_does_not_stay(void **state)
{
    (void)state;
    struct route_line before[] = {line("aaaa", "10.0.0.1", 7), line("bbbb", "10.0.0.1", 7)};
    struct route_line next[] = {line("bbbb", "10.0.0.1", 7), line("cccc", "10.0.0.1", 7),
                                line("aaaa", "10.0.0.2", 7)};
    struct route_line stay[3];
    assert_int_equal(routes_stay(before, 2, next, 3, stay), 2);
    assert_string_equal(stay[0].token, "bbbb");
    assert_string_equal(stay[1].token, "cccc");
    assert_int_equal(routes_stay(NULL, 0, next, 3, stay), 3);
    assert_int_equal(routes_stay(before, 2, NULL, 0, stay), 0);
}

static void put(const char *text)
{
    struct buf b = {0};
    buf_append(&b, text, strlen(text));
    assert_int_equal(routes_put(path, &b), 0);
    buf_done(&b);
}

static size_t file_size(ino_t *ret_inode)
{
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    *ret_inode = s.st_ino;
    return (size_t)s.st_size;
}

/* The text, and nothing but empty lines behind it. */
static void assert_file(const char *text)
{
    static char got[64 * 1024];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(got, 1, sizeof(got), f);
    fclose(f);
    assert_memory_equal(got, text, strlen(text));
    for (size_t i = strlen(text); i < n; i++)
        assert_int_equal(got[i], '\n');
}

static void put_long(size_t len)
{
    char *text = malloc(len + 1);
    assert_non_null(text);
    memset(text, 'x', len);
    text[len - 1] = '\n';
    text[len] = '\0';
    put(text);
    assert_file(text);
    free(text);
}

static void test_the_file_is_written_over_and_never_shows_the_end_of_the_old_one(void **state)
{
    (void)state;
    ino_t first = 0, now = 0;
    put("a: 123456\n");
    assert_file("a: 123456\n");
    assert_int_equal(file_size(&first), 4096);
    put("a: 1\n");
    assert_file("a: 1\n");
    put("a: 12345678\n");
    assert_file("a: 12345678\n");
    assert_int_equal(file_size(&now), 4096);
    assert_true(first == now); /* a watcher of the data still watches it */
}

static void test_its_length_seldom_changes(void **state)
{
    (void)state;
    ino_t inode = 0;
    put_long(4096);
    assert_int_equal(file_size(&inode), 4096);
    put_long(4097);
    assert_int_equal(file_size(&inode), 8192);
    put_long(100);
    assert_int_equal(file_size(&inode), 8192);
    put_long(8192);
    assert_int_equal(file_size(&inode), 8192);
}

static void test_empty_lines_go_when_they_are_most_of_it(void **state)
{
    (void)state;
    ino_t first = 0, now = 0;
    put_long(40000);
    assert_int_equal(file_size(&first), 65536);
    put("a: 1\n");
    assert_int_equal(file_size(&now), 4096);
    assert_file("a: 1\n");
    assert_true(first == now);
}

static void test_no_such_folder(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_append(&b, "x", 1);
    assert_int_not_equal(routes_put("/nowhere/at/all", &b), 0);
    buf_done(&b);
    put("x\n"); /* for teardown */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_routes),
        cmocka_unit_test(test_filters_when_wanted),
        cmocka_unit_test(test_tokens_of_one_endpoint_stand_together),
        cmocka_unit_test(test_what_moves_does_not_stay),
        cmocka_unit_test_setup_teardown(
            test_the_file_is_written_over_and_never_shows_the_end_of_the_old_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_its_length_seldom_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty_lines_go_when_they_are_most_of_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_no_such_folder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

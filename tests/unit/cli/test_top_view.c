/* What `muster top` shows: how lines are shared, which host is worst, which region comes next. */
#include "cli/top_view.h"

#include "lib/unit.h"

#include <string.h>

static struct json *parsed(const char *text)
{
    char why[JSON_WHY_MAX];
    struct json *v = json_parse(str_of(text), why);
    assert_non_null(v);
    return v;
}

static void shared(size_t rows, const size_t wanted[3], size_t a, size_t b, size_t c)
{
    size_t got[3];
    top_view_share(rows, wanted, got, 3);
    assert_int_equal(got[0], a);
    assert_int_equal(got[1], b);
    assert_int_equal(got[2], c);
}

static void test_lines_are_shared(void **state)
{
    (void)state;
    shared(100, (const size_t[]){3, 1, 20}, 3, 1, 20);
    shared(16, (const size_t[]){17, 40, 20}, 4, 3, 3); /* 6 for titles and blank lines */
    shared(15, (const size_t[]){1, 40, 20}, 1, 4, 4);
    shared(16, (const size_t[]){17, 0, 20}, 6, 0, 6); /* what is empty costs nothing */
    shared(7, (const size_t[]){17, 40, 20}, 5, 0, 0); /* the second does not fit */
    shared(3, (const size_t[]){17, 1, 20}, 0, 1, 0);
    shared(0, (const size_t[]){17, 40, 20}, 0, 0, 0);
}

static void test_hosts_in_trouble_come_first_and_those_taken_out_last(void **state)
{
    (void)state;
    struct json *v = parsed("[{\"id\":\"1\",\"load_percent\":10,\"rooms\":1,\"heard_at\":\"2\"},"
                            "{\"id\":\"2\",\"load_percent\":99,\"rooms\":3,\"heard_at\":\"3\","
                            "\"passed_over\":\"disabled\"},"
                            "{\"id\":\"3\",\"load_percent\":20.5,\"rooms\":9,\"heard_at\":\"9\"},"
                            "{\"id\":\"4\",\"load_percent\":1,\"rooms\":0,\"heard_at\":\"1\","
                            "\"passed_over\":\"failing\"}]");
    static const char *const orders[TOP_SORTS] = {
        [TOP_WORST] = "4312", [TOP_LOAD] = "2314", [TOP_ROOMS] = "3214", [TOP_HEARD] = "4123"};
    for (int sort = 0; sort < TOP_SORTS; sort++) {
        const struct json *hosts[4];
        for (size_t i = 0; i < 4; i++)
            hosts[i] = json_item(v, i);
        top_view_sort(hosts, 4, (enum top_sort)sort);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(json_get_text(json_member(hosts[i], "id")).at[0], orders[sort][i]);
    }
    json_free(v);
}

static void expect_next(const struct json *status, const struct json *host, const char *region,
                        const char *next)
{
    const struct top_view v = {
        .status = status, .hosts = &host, .n_hosts = 1, .region = region, .url = ""};
    struct str got = top_view_next_region(&v);
    assert_true(str_eq(got, str_of(next)));
}

static void test_next_region_has_servers_or_hosts(void **state)
{
    (void)state;
    struct json *status = parsed("{\"regions\":[{\"name\":\"A\",\"servers\":{\"available\":1}},"
                                 "{\"name\":\"B\",\"servers\":{}},"
                                 "{\"name\":\"C\",\"servers\":{}},"
                                 "{\"name\":\"D\",\"servers\":{\"offline\":2}}]}");
    struct json *host = parsed("{\"region\":\"C\"}");
    expect_next(status, host, "", "A");
    expect_next(status, host, "A", "C");
    expect_next(status, host, "C", "D");
    expect_next(status, host, "D", "");
    expect_next(status, host, "gone", "");
    json_free(status);
    json_free(host);
}

/* What is shown never has more lines than there are, whatever there is to say. */
static void test_frame_fits_its_rows(void **state)
{
    (void)state;
    const struct term term = {.columns = 80, .rows = 24};
    struct json *status =
        parsed("{\"regions\":[{\"name\":\"A\",\"servers\":{\"available\":1}},"
               "{\"name\":\"B\",\"servers\":{\"available\":1}},"
               "{\"name\":\"C\",\"servers\":{\"available\":1}}],"
               "\"refusals\":[{\"message\":\"x\"},{\"message\":\"y\"},{\"message\":\"z\"}]}");
    struct json *host = parsed("{\"id\":\"1\",\"region\":\"C\"}");
    const struct json *hosts[] = {host, host, host, host};
    for (size_t rows = 12; rows < 40; rows++) {
        struct buf out = {0};
        size_t lines = 0;
        const struct top_view v = {
            .status = status, .hosts = hosts, .n_hosts = 4, .region = "", .url = ""};
        top_view_put(&out, &term, &v, rows);
        for (size_t i = 0; i < out.len; i++)
            lines += out.data[i] == '\n' ? 1 : 0;
        assert_true(lines <= rows);
        buf_done(&out);
    }
    json_free(status);
    json_free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_are_shared),
        cmocka_unit_test(test_hosts_in_trouble_come_first_and_those_taken_out_last),
        cmocka_unit_test(test_next_region_has_servers_or_hosts),
        cmocka_unit_test(test_frame_fits_its_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

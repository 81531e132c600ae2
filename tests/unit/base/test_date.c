#include "base/date.h"

#include "lib/unit.h"

#include <time.h>

static void dates_are_as_the_library_prints_them(void **state)
{
    (void)state;
    /* Every 31 hours and a bit, over more than 400 years and so over every kind of leap year. */
    for (int64_t s = 0; s < (int64_t)450 * 366 * 86400; s += 31 * 3600 + 1801) {
        char expected[DATE_SIZE];
        char got[DATE_SIZE];
        struct tm t;
        time_t seconds = (time_t)s;
        assert_non_null(gmtime_r(&seconds, &t));
        assert_true(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%SZ", &t) > 0);
        assert_string_equal(date_print(s * 1000 + 999, got), expected);
        int64_t back_ms = 0;
        assert_true(date_parse(str_of(got), &back_ms));
        assert_int_equal(back_ms, s * 1000);
    }
}

static void what_lies_outside_is_the_nearest(void **state)
{
    (void)state;
    char got[DATE_SIZE];
    assert_string_equal(date_print(-1, got), "1970-01-01T00:00:00Z");
    assert_string_equal(date_print(253402300799999, got), "9999-12-31T23:59:59Z");
    assert_string_equal(date_print(INT64_MAX, got), "9999-12-31T23:59:59Z");
}

static void dates_are_read(void **state)
{
    (void)state;
    int64_t ms = 0;
    assert_true(date_parse(STR("2026-11-16T00:00:00.000Z"), &ms));
    assert_int_equal(ms, 1794787200000);
    assert_true(date_parse(STR("1970-01-01T00:00:01.500Z"), &ms));
    assert_int_equal(ms, 1500);
    assert_true(date_parse(STR("2024-02-29T23:59:59Z"), &ms));
    static const char *const none[] = {
        "",
        "yesterday",
        "2026-11-16",
        "2026-11-16T00:00:00.000Zx",
        "2026-11-16T00:00:00.000x",
        "2026-11-16 00:00:00.000Z",
        "2026-11-16T00:00:00,000Z",
        "2026-02-29T00:00:00Z",
        "2026-00-10T00:00:00Z",
        "2026-13-10T00:00:00Z",
        "2026-11-00T00:00:00Z",
        "2026-11-16T24:00:00Z",
        "2026-11-16T00:60:00Z",
        "2026-11-16T00:00:60Z",
        "1969-12-31T23:59:59Z",
        "2026-11-16T0a:00:00Z",
        "12",
    };
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_false(date_parse(str_of(none[i]), &ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_as_the_library_prints_them),
        cmocka_unit_test(what_lies_outside_is_the_nearest),
        cmocka_unit_test(dates_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

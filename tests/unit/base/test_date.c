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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_as_the_library_prints_them),
        cmocka_unit_test(what_lies_outside_is_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/lasted.h"

#include "lib/unit.h"

static void is_read(int64_t ms, const char *text)
{
    char dst[LASTED_MAX];
    assert_string_equal(lasted(dst, ms), text);
}

static void units_fit_what_is_told(void **state)
{
    (void)state;
    is_read(0, "0 s");
    is_read(41999, "41 s");
    is_read(119999, "119 s");
    is_read(120000, "2 min");
    is_read(2 * 3600 * 1000 - 1, "119 min");
    is_read(2 * 3600 * 1000, "2 h");
    is_read(48LL * 3600 * 1000, "2 days");
    is_read(INT64_MAX, "106751991167 days");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(units_fit_what_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

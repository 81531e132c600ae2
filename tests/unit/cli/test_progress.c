/* How far something is, where lines are not written over. */
#include "cli/progress.h"

#include "lib/unit.h"

#include <string.h>
#include <unistd.h>

static void test_lines_say_only_what_is_new(void **state)
{
    (void)state;
    int ends[2];
    char got[256] = "";
    struct progress p;
    assert_int_equal(pipe(ends), 0);
    progress_init(&p, ends[1]);
    assert_false(p.over);
    progress_show(&p, "2 matches left", ", 1 s");
    progress_show(&p, "2 matches left", ", 2 s");
    progress_show(&p, "1 match left", ", 3 s");
    progress_wipe(&p);
    close(ends[1]);
    assert_true(read(ends[0], got, sizeof(got) - 1) > 0);
    assert_string_equal(got, "2 matches left\n1 match left\n");
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_say_only_what_is_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/process.h"

#include "lib/unit.h"

#include <fcntl.h>
#include <unistd.h>

/* The system says how many descriptors there are; a walk must agree. */
static int64_t walk_all(struct process_walk *walk, int *ret_steps)
{
    *ret_steps = 0;
    walk->walked = false;
    while (!walk->walked) {
        process_walk_step(walk);
        (*ret_steps)++;
    }
    return walk->counted;
}

static void walk_counts_descriptors_a_few_at_a_time(void **state)
{
    (void)state;
    enum { MANY = 600 };
    struct process_walk walk = {0};
    int steps = 0;
    int64_t before = walk_all(&walk, &steps);
    int fds[MANY];
    for (int i = 0; i < MANY; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fds[i] >= 0);
    }
    assert_int_equal(walk_all(&walk, &steps), before + MANY);
    assert_true(steps >= 3);
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
    process_walk_step(&walk); /* one that is not finished is given up in order */
    process_walk_done(&walk);
    assert_null(walk.folder);
}

static void figures_are_those_of_a_process(void **state)
{
    (void)state;
    struct process_walk walk = {0};
    struct process_figures figures;
    int steps = 0;
    walk_all(&walk, &steps);
    process_read(&walk, &figures);
    assert_true(figures.resident_bytes > 100 * 1024 && figures.virtual_bytes > 0);
    assert_true(figures.open_fds >= 3 && figures.max_fds >= figures.open_fds);
    assert_true(figures.cpu_us >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walk_counts_descriptors_a_few_at_a_time),
        cmocka_unit_test(figures_are_those_of_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

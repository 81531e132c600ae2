/* The loop tells how long it worked between two waits. */
#include "lib/loop.h"

#include <stdbool.h>

enum { WORK_US = 3000 };

struct world {
    struct loop loop;
    int ticks;
    int told;
    bool works;
    int64_t worked_us; /* of the last turn with a tick in it */
};

static void burn(int64_t us)
{
    int64_t end_us = clock_monotonic_us() + us;
    while (clock_monotonic_us() < end_us)
        continue;
}

static void on_turn(void *user)
{
    (void)user;
}

static void on_tick(void *user)
{
    struct world *w = user;
    w->ticks++;
    w->works = w->ticks == 2;
    if (w->works)
        burn(WORK_US);
}

static void on_worked(void *user, int64_t us)
{
    struct world *w = user;
    w->told++;
    if (w->works)
        w->worked_us = us;
    w->works = false;
}

static void begin(struct world *w, bool tell)
{
    *w = (struct world){.ticks = 0};
    struct loop_hooks hooks = {.turn = on_turn, .tick = on_tick, .user = w};
    if (tell)
        hooks.worked = on_worked;
    struct loop_limits limits = {.streams = 1, .streams_per_address = 1};
    loop_init(&w->loop, &hooks, &limits);
}

/* The wait for the tick is a hundred milliseconds and must not be taken for work. */
static void work_is_told_and_waiting_is_not(void **state)
{
    (void)state;
    struct world w;
    begin(&w, true);
    int64_t start_us = clock_monotonic_us();
    RUN_UNTIL(&w, w.worked_us > 0);
    int64_t all_us = clock_monotonic_us() - start_us;
    assert_in_range(w.worked_us, WORK_US, all_us - LOOP_TICK_MS * 1000 / 2);
    loop_done(&w.loop);
}

static void nobody_need_listen(void **state)
{
    (void)state;
    struct world w;
    begin(&w, false);
    RUN_UNTIL(&w, w.ticks == 2);
    assert_int_equal(w.told, 0);
    loop_done(&w.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_told_and_waiting_is_not),
        cmocka_unit_test(nobody_need_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "rooms.h"

static struct view_removal removal_of(struct fixture *f, const struct fake_host *h)
{
    struct view_removal v;
    assert_true(view_removal(f->core, the_host(f, h)->row.id, &v));
    return v;
}

static void answer_is(struct fixture *f, const struct fake_host *h, bool now, const char *sentence)
{
    struct view_removal v = removal_of(f, h);
    assert_string_equal(v.sentence, sentence);
    assert_int_equal(v.now, now);
}

static void disable(struct fixture *f, const struct fake_host *h)
{
    struct host *host = the_host(f, h);
    host->row.disabled = 1;
}

static void an_idle_host_may_go(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)host_up(f, 1, EU);
    answer_is(f, h, true,
              "Yes: nothing runs on it. Disable it first, so that nothing is started there "
              "meanwhile.");
    disable(f, h);
    answer_is(f, h, true, "Yes: nothing runs on it.");
}

static void the_last_one_of_a_region_leaves_a_hole(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)host_up(f, 1, USE);
    disable(f, h);
    answer_is(f, h, true,
              "Yes: nothing runs on it. No other host of EU is healthy: without it no room can be "
              "started there.");
}

static void a_host_with_rooms_stays(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)open_room(f, "ann", NULL);
    rooms_pass(f, 5000);
    answer_is(f, h, false,
              "No: 1 room with 1 player runs on it; disable it, and it is free when they end (the "
              "oldest since 5 s). No other host of EU is healthy: without it no room can be "
              "started there.");
    struct fake_host *other = host_up(f, 1, EU);
    other->cpu = 34;
    host_says(f, other);
    disable(f, h);
    answer_is(f, h, false,
              "No: 1 room with 1 player runs on it; it gets nothing new, and is free when they end "
              "(the oldest since 5 s). The other hosts of EU have room for what is new: 1 healthy, "
              "at 34 % at most.");
}

static void what_runs_on_a_silent_host_is_not_known(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)open_room(f, "ann", NULL);
    h->silent = true;
    rooms_pass(f, 60 * 1000);
    struct view_removal v = removal_of(f, h);
    assert_false(v.now);
    assert_non_null(strstr(v.sentence, "No: 1 room with 1 player may still run on it, though "
                                       "nobody hears it (the oldest since "));
}

static void nobody_knows_what_is_left_on_a_lost_host(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct fake_host *other = host_up(f, 1, EU);
    h->silent = true;
    rooms_pass(f, f->core->config.timeouts.host_ms + 1000);
    assert_int_equal(the_host(f, h)->quiet, HOST_SILENT);
    assert_false(removal_of(f, h).now);
    rooms_pass(f, 1800 * 1000 - f->core->config.timeouts.host_ms - 1000);
    assert_int_equal(the_host(f, h)->quiet, HOST_LOST);
    answer_is(f, h, false,
              "No: nothing that we know of runs on it, but it has not been heard for 30 min; look "
              "at the machine first.");
    the_host(f, h)->strangers = 1; /* as it last said */
    assert_non_null(strstr(removal_of(f, h).sentence, "No: nothing that we know of"));
    answer_is(
        f, other, true,
        "Yes: nothing runs on it. Disable it first, so that nothing is started there "
        "meanwhile. No other host of EU is healthy: without it no room can be started there.");
}

static void a_host_that_has_not_spoken_since_the_start_is_not_idle(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)host_up(f, 1, EU);
    the_host(f, h)->heard_core_ms = 0;
    answer_is(f, h, false,
              "No: nothing that we know of runs on it, but it has not been heard since Muster "
              "started; look at the machine first.");
}

static void strangers_are_looked_at_first(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)host_up(f, 1, EU);
    the_host(f, h)->strangers = 2;
    answer_is(f, h, false,
              "No: nothing of ours runs on it, but 2 servers do that nobody here knows; look at "
              "the machine first.");
}

static void a_cluster_is_no_machine(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    (void)str_copy(the_host(f, h)->row.url, sizeof(the_host(f, h)->row.url), STR("agones:x"));
    answer_is(f, h, false,
              "No: it stands for a fleet in Kubernetes; take that out of the configuration.");
}

static void nobody_knows_it(void **state)
{
    struct fixture *f = *state;
    struct view_removal v;
    assert_false(view_removal(f->core, 4711, &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOMS_TEST(an_idle_host_may_go),
        ROOMS_TEST(the_last_one_of_a_region_leaves_a_hole),
        ROOMS_TEST(a_host_with_rooms_stays),
        ROOMS_TEST(what_runs_on_a_silent_host_is_not_known),
        ROOMS_TEST(nobody_knows_what_is_left_on_a_lost_host),
        ROOMS_TEST(a_host_that_has_not_spoken_since_the_start_is_not_idle),
        ROOMS_TEST(strangers_are_looked_at_first),
        ROOMS_TEST(a_cluster_is_no_machine),
        ROOMS_TEST(nobody_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

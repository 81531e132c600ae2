#include "sim/sim.h"

#include "base/log.h"
#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_result run_with(int nodes, uint64_t seed, double hours)
{
    struct sim_options options = {.seed = seed, .nodes = nodes, .hours = hours};
    struct sim_result result;
    sim_run_seed(&options, &result);
    if (result.violations)
        fail_msg("seed %d: %s", (int)seed, result.why);
    return result;
}

static struct sim_result run(uint64_t seed, double hours)
{
    return run_with(0, seed, hours);
}

static void same_seed_same_run(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        for (int nodes = 1; nodes <= 2; nodes++) {
            struct sim_result one = run_with(nodes, seed, 0.1);
            struct sim_result two = run_with(nodes, seed, 0.1);
            assert_true(one.hash == two.hash);
            assert_memory_equal(&one, &two, sizeof(one));
        }
    }
}

static void the_seed_decides_how_many_nodes_there_are(void **state)
{
    (void)state;
    int two = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct sim_result any = run(seed, 0.01);
        bool cell = any.takeovers > 0;
        assert_true(any.hash == run_with(cell ? 2 : 1, seed, 0.01).hash);
        two += cell;
    }
    assert_in_range(two, 5, 15);
}

static void other_seed_other_run(void **state)
{
    (void)state;
    uint64_t hashes[20];
    for (size_t i = 0; i < 20; i++) {
        hashes[i] = run(i + 1, 0.02).hash;
        for (size_t k = 0; k < i; k++)
            assert_true(hashes[i] != hashes[k]);
    }
}

/* A zero is believed only when there was something to go wrong. */
static void long_run_goes_through_everything(void **state)
{
    (void)state;
    struct sim_result sum = {0};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct sim_result r = run(seed, 1.0);
        assert_in_range(r.simulated_ms, 3600 * 1000, 2 * 3600 * 1000);
        assert_true(r.steps > 10000);
        sum.answers += r.answers;
        sum.successes += r.successes;
        sum.seats += r.seats;
        sum.joined += r.joined;
        sum.sought += r.sought;
        sum.lined_up += r.lined_up;
        sum.served += r.served;
        sum.friends += r.friends;
        sum.parties += r.parties;
        sum.in_pods += r.in_pods;
        sum.results += r.results;
        sum.redelivered += r.redelivered;
        sum.routes += r.routes;
        sum.crashes += r.crashes;
        sum.failed_commits += r.failed_commits;
        sum.cuts += r.cuts;
        sum.shown += r.shown;
        sum.caught_up += r.caught_up;
    }
    assert_true(sum.answers > sum.successes);
    assert_true(sum.successes > 100);
    assert_true(sum.joined > 100);
    assert_true(sum.seats > sum.joined);
    assert_true(sum.sought > 500);
    assert_true(sum.parties > 100 && sum.parties < sum.sought);
    assert_true(sum.friends > 50);
    assert_true(sum.lined_up > 100);
    assert_true(sum.served > 30 && sum.served < sum.lined_up);
    assert_true(sum.in_pods > 50);
    assert_true(sum.routes > 30);
    assert_true(sum.results > 300);
    assert_true(sum.redelivered > 50);
    assert_true(sum.crashes > 10);
    assert_true(sum.failed_commits > 10);
    assert_true(sum.cuts > 10);
    assert_true(sum.shown > 1000);
    assert_true(sum.caught_up > 0);
}

/* The same of what two nodes have between them. */
static void two_nodes_go_through_everything(void **state)
{
    (void)state;
    struct sim_result sum = {0};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct sim_result r = run_with(2, seed, 1.0);
        assert_true(r.steps > 5000);
        sum.takeovers += r.takeovers;
        sum.silenced += r.silenced;
        sum.step_downs += r.step_downs;
        sum.unknown_commits += r.unknown_commits;
        sum.fenced_commits += r.fenced_commits;
        sum.crashes += r.crashes;
        sum.successes += r.successes;
        sum.caught_up += r.caught_up;
    }
    assert_true(sum.takeovers > 100);
    assert_true(sum.silenced > 50 && sum.silenced < sum.takeovers);
    assert_true(sum.step_downs > 5);
    assert_true(sum.unknown_commits > 100);
    assert_true(sum.fenced_commits > 10);
    assert_true(sum.crashes > 20);
    assert_true(sum.successes > 100);
    assert_true(sum.caught_up > 0);
}

static void trace_changes_nothing_and_tells_all(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    struct sim_options options = {.seed = 7, .hours = 0.05, .trace = open_memstream(&text, &len)};
    assert_non_null(options.trace);
    struct sim_result traced;
    sim_run_seed(&options, &traced);
    fclose(options.trace);
    assert_true(traced.hash == run(7, 0.05).hash);
    assert_non_null(strstr(text, "server registered"));
    assert_non_null(strstr(text, "ticket opened"));
    assert_non_null(strstr(text, "fault"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_seed_same_run),
        cmocka_unit_test(other_seed_other_run),
        cmocka_unit_test(the_seed_decides_how_many_nodes_there_are),
        cmocka_unit_test(long_run_goes_through_everything),
        cmocka_unit_test(two_nodes_go_through_everything),
        cmocka_unit_test(trace_changes_nothing_and_tells_all),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

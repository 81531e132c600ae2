/* `muster sim`: runs the simulator over many seeds, on all cores, and says which one broke what. */
#include "sim/sim.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "core/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORKERS = 64, SEEDS_MAX = 1000000000, HOURS_MAX = 1000 };

struct plan {
    uint64_t first;
    int64_t seeds;
    int64_t nodes;
    double hours;
    bool json;
    bool trace;
};

struct total {
    int64_t violations;
    int64_t steps;
    double simulated_hours;
    int64_t answers;
    int64_t successes;
    int64_t waited;
    int64_t seats;
    int64_t prepared;
    int64_t prepared_in_vain;
    int64_t sought;
    int64_t lined_up;
    int64_t served;
    int64_t friends;
    int64_t parties;
    int64_t in_pods;
    int64_t results;
    int64_t redelivered;
    int64_t lobbies;
    int64_t started;
    int64_t moved;
    int64_t aborted[LOBBY_CAUSES];
    int64_t crashes;
    int64_t restores;
    int64_t failed_commits;
    int64_t takeovers;
    int64_t silenced;
    int64_t step_downs;
    int64_t unknown_commits;
    int64_t fenced_commits;
    int64_t cuts;
    uint64_t hash;
};

/* What a worker sends for each seed. */
struct report {
    uint64_t seed;
    struct sim_result result;
};

static void run_one(const struct plan *plan, uint64_t seed, struct sim_result *ret)
{
    struct sim_options options = {
        .seed = seed,
        .nodes = (int)plan->nodes,
        .hours = plan->hours,
        .trace = plan->trace ? stdout : NULL,
    };
    sim_run_seed(&options, ret);
}

static void worker(const struct plan *plan, int index, int workers, int fd)
{
    for (int64_t i = index; i < plan->seeds; i += workers) {
        struct report report;
        memset(&report, 0, sizeof(report));
        report.seed = plan->first + (uint64_t)i;
        run_one(plan, report.seed, &report.result);
        /* A report is smaller than PIPE_BUF, so it arrives whole. */
        if (write(fd, &report, sizeof(report)) != (ssize_t)sizeof(report))
            _exit(1);
    }
    (void)fflush(stdout);
    _exit(0);
}

static void add(const struct plan *plan, struct total *total, const struct report *report)
{
    const struct sim_result *r = &report->result;
    total->violations += r->violations;
    total->steps += r->steps;
    total->simulated_hours += (double)r->simulated_ms / 3600e3;
    total->answers += r->answers;
    total->successes += r->successes;
    total->waited += r->waited;
    total->seats += r->seats;
    total->prepared += r->prepared;
    total->prepared_in_vain += r->prepared_in_vain;
    total->sought += r->sought;
    total->lined_up += r->lined_up;
    total->served += r->served;
    total->friends += r->friends;
    total->parties += r->parties;
    total->in_pods += r->in_pods;
    total->results += r->results;
    total->redelivered += r->redelivered;
    total->lobbies += r->lobbies;
    total->started += r->started;
    total->moved += r->moved;
    for (int i = 0; i < LOBBY_CAUSES; i++)
        total->aborted[i] += r->aborted[i];
    total->crashes += r->crashes;
    total->restores += r->restores;
    total->failed_commits += r->failed_commits;
    total->takeovers += r->takeovers;
    total->silenced += r->silenced;
    total->step_downs += r->step_downs;
    total->unknown_commits += r->unknown_commits;
    total->fenced_commits += r->fenced_commits;
    total->cuts += r->cuts;
    total->hash += r->hash * (report->seed | 1); /* the order of arrival must not matter */
    static const char *const forced[] = {"", " --nodes 1", " --nodes 2"};
    FILE *out = plan->json ? stderr : stdout;
    if (r->violations)
        (void)fprintf(out,
                      "seed %" PRIu64 ": VIOLATION at %" PRId64 " ms: %s (trace hash %016" PRIx64
                      ")\n  replay: %s sim --seeds 1 --seed %" PRIu64 " --hours %g%s --trace\n",
                      report->seed, r->at_ms, r->why, r->hash, cli_program, report->seed,
                      plan->hours, forced[plan->nodes]);
    else if (plan->seeds <= 10 && !plan->json)
        (void)fprintf(out, "seed %" PRIu64 ": ok, %" PRId64 " steps, trace hash %016" PRIx64 "\n",
                      report->seed, r->steps, r->hash);
}

static int run_workers(const struct plan *plan, struct total *total)
{
    int pipes[2];
    if (pipe(pipes))
        return -1;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int workers = plan->trace || cores < 1 ? 1 : (int)(cores < MAX_WORKERS ? cores : MAX_WORKERS);
    for (int i = 0; i < workers; i++) {
        pid_t pid = fork();
        if (pid < 0)
            return -1;
        if (pid == 0) {
            (void)close(pipes[0]);
            worker(plan, i, workers, pipes[1]);
        }
    }
    (void)close(pipes[1]);
    struct report report;
    int64_t got = 0;
    while (read(pipes[0], &report, sizeof(report)) == (ssize_t)sizeof(report)) {
        add(plan, total, &report);
        got++;
    }
    (void)close(pipes[0]);
    int status = 0;
    int failed = 0;
    for (int i = 0; i < workers; i++)
        failed |= wait(&status) < 0 || status != 0;
    if (failed || got != plan->seeds) {
        (void)fprintf(stderr, "muster sim: a worker died after %" PRId64 " of %" PRId64 " seeds\n",
                      got, plan->seeds);
        return -1;
    }
    return 0;
}

static bool parse_hours(const char *text, double *ret)
{
    char *end = NULL;
    double v = strtod(text, &end);
    if (end == text || *end || !(v > 0 && v <= HOURS_MAX)) /* NaN neither */
        return args_refuse("sim", "--hours takes a number above 0 and up to %d, not '%s'",
                           HOURS_MAX, text);
    *ret = v;
    return true;
}

static struct {
    struct plan plan;
    int64_t first;
    const char *hours;
} set = {.plan = {.seeds = 100}, .first = 1, .hours = "0.25"};

const struct arg sim_options[] = {
    {.name = "--seeds",
     .kind = ARG_NUMBER,
     .into = &set.plan.seeds,
     .min = 1,
     .max = SEEDS_MAX,
     .value = "N",
     .help = "how many seeds to run (100)"},
    {.name = "--seed",
     .kind = ARG_NUMBER,
     .into = &set.first,
     .min = 0,
     .max = INT64_MAX - SEEDS_MAX,
     .value = "S",
     .help = "the first of them (1); with --seeds 1 the way to replay one"},
    {.name = "--hours",
     .kind = ARG_TEXT,
     .into = &set.hours,
     .value = "H",
     .help = "simulated hours of trouble per seed (0.25)"},
    {.name = "--nodes",
     .kind = ARG_NUMBER,
     .into = &set.plan.nodes,
     .min = 1,
     .max = 2,
     .value = "N",
     .help = "1 node, or 2 with a cell (the seed decides: 2 in a third of them)"},
    {.name = "--json",
     .kind = ARG_FLAG,
     .into = &set.plan.json,
     .help = "one line of JSON instead of text"},
    {.name = "--trace",
     .kind = ARG_FLAG,
     .into = &set.plan.trace,
     .help = "print everything that happens (use with one seed; not with --json)"},
    {0},
};

static bool parse(int argc, char **argv, struct plan *ret)
{
    if (!args_parse(argc, argv, sim_options) || !parse_hours(set.hours, &set.plan.hours))
        return false;
    set.plan.first = (uint64_t)set.first;
    *ret = set.plan;
    return !(ret->json && ret->trace) ||
           args_refuse(argv[0], "--trace is for people and --json for programs; choose one");
}

static void print_json(const struct plan *plan, const struct total *t, double seconds)
{
    printf("{\"seeds\":%" PRId64 ",\"violations\":%" PRId64 ",\"steps\":%" PRId64
           ",\"simulated_hours\":%.2f,\"seconds\":%.2f,\"first_seed\":%" PRIu64
           ",\"answers\":%" PRId64 ",\"successes\":%" PRId64 ",\"waited\":%" PRId64
           ",\"seats\":%" PRId64 ",\"prepared\":%" PRId64 ",\"prepared_in_vain\":%" PRId64,
           plan->seeds, t->violations, t->steps, t->simulated_hours, seconds, plan->first,
           t->answers, t->successes, t->waited, t->seats, t->prepared, t->prepared_in_vain);
    printf(",\"allocations\":%" PRId64 ",\"queued\":%" PRId64 ",\"from_queue\":%" PRId64
           ",\"friends\":%" PRId64 ",\"parties\":%" PRId64 ",\"in_cluster\":%" PRId64
           ",\"published\":%" PRId64 ",\"redelivered\":%" PRId64,
           t->sought, t->lined_up, t->served, t->friends, t->parties, t->in_pods, t->results,
           t->redelivered);
    printf(",\"lobbies\":%" PRId64 ",\"lobbies_started\":%" PRId64 ",\"lobbies_moved\":%" PRId64,
           t->lobbies, t->started, t->moved);
    for (int8_t i = 1; i < LOBBY_CAUSES; i++)
        printf("%s\"%s\":%" PRId64, i == 1 ? ",\"lobbies_aborted\":{" : ",", lobby_cause_name(i),
               t->aborted[i]);
    printf("},\"restores\":%" PRId64 ",\"crashes\":%" PRId64 ",\"failed_commits\":%" PRId64
           ",\"takeovers\":%" PRId64 ",\"silenced\":%" PRId64 ",\"step_downs\":%" PRId64
           ",\"unknown_commits\":%" PRId64 ",\"fenced_commits\":%" PRId64 ",\"cuts\":%" PRId64
           ",\"hash\":\"%016" PRIx64 "\"}\n",
           t->restores, t->crashes, t->failed_commits, t->takeovers, t->silenced, t->step_downs,
           t->unknown_commits, t->fenced_commits, t->cuts, t->hash);
}

static void print_total(const struct plan *plan, const struct total *t, double seconds)
{
    if (plan->json) {
        print_json(plan, t, seconds);
        return;
    }
    printf("%" PRId64 " seeds, %" PRId64 " violations, %" PRId64
           " steps, %.1f simulated hours in %.1f s (%.0f times real time)\n",
           plan->seeds, t->violations, t->steps, t->simulated_hours, seconds,
           t->simulated_hours * 3600 / (seconds > 0 ? seconds : 1));
    printf("players: %" PRId64 " allocations (%" PRId64 " of parties), %" PRId64
           " with friends, %" PRId64 " in line, %" PRId64 " served from there, %" PRId64
           " in a cluster; %" PRId64 " results published, %" PRId64 " requests redelivered\n",
           t->sought, t->parties, t->friends, t->lined_up, t->served, t->in_pods, t->results,
           t->redelivered);
    printf("lobbies: %" PRId64 " created, %" PRId64 " started, %" PRId64 " moves, aborted:",
           t->lobbies, t->started, t->moved);
    for (int8_t i = 1; i < LOBBY_CAUSES; i++)
        printf("%s %" PRId64 " %s", i == 1 ? "" : ",", t->aborted[i], lobby_cause_name(i));
    printf("\ncells: %" PRId64 " terms began, %" PRId64 " leases lost, %" PRId64
           " given back, %" PRId64 " commits of unknown outcome, %" PRId64 " fenced",
           t->takeovers, t->silenced, t->step_downs, t->unknown_commits, t->fenced_commits);
    printf("\nwent through: %" PRId64 " answers (%" PRId64 " successes, %" PRId64
           " waited), %" PRId64 " seats in rooms, %" PRId64 " servers prepared (%" PRId64
           " in vain), %" PRId64 " crashes, %" PRId64 " restores, %" PRId64
           " failed commits, %" PRId64 " cut connections; hash of all traces %016" PRIx64 "\n",
           t->answers, t->successes, t->waited, t->seats, t->prepared, t->prepared_in_vain,
           t->crashes, t->restores, t->failed_commits, t->cuts, t->hash);
}

int sim_run(int argc, char **argv)
{
    struct plan plan;
    if (!parse(argc, argv, &plan))
        return EXIT_USAGE;
    log_set_level(LOG_ERROR);
    (void)fflush(stdout);
    struct total total = {0};
    int64_t start_ms = clock_monotonic_ms();
    if (run_workers(&plan, &total))
        return EXIT_REFUSED;
    print_total(&plan, &total, (double)(clock_monotonic_ms() - start_ms) / 1000.0);
    return total.violations ? EXIT_REFUSED : EXIT_DONE;
}

/* P1 and P2: allocations over the chat ports, durable, with game servers that acknowledge. */
#include "cli/bench_child.h"
#include "cli/bench_echo.h"
#include "cli/bench_load.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WANTED_PER_S = 50000, KEEP = 4 };

static struct {
    int64_t connections;
    int64_t depth;
    int64_t servers;
} wish = {.connections = 64, .depth = 32, .servers = 1000};

const struct arg bench_allocate_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = 1000,
     .value = "N",
     .help = "chat servers (64)"},
    {.name = "--depth",
     .kind = ARG_NUMBER,
     .into = &wish.depth,
     .min = 1,
     .max = 1000,
     .value = "N",
     .help = "requests each has under way (32)"},
    {.name = "--servers",
     .kind = ARG_NUMBER,
     .into = &wish.servers,
     .min = 1,
     .max = 15000,
     .value = "N",
     .help = "game servers (1000)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

struct found {
    struct figure rate, p50, p99, cpu, loop, commit, fold, other, own;
    struct figure echo, echo_wide, ratio, ratio_wide;
    double n;
    double failed;
};

static void take(struct found *f, const struct load_result *r)
{
    double n = (double)r->answered;
    figure_add(&f->rate, n / r->seconds);
    figure_add(&f->p50, durations_us(&r->latency, 0.5));
    figure_add(&f->p99, durations_us(&r->latency, 0.99));
    figure_add(&f->cpu, r->cpu_us / n);
    figure_add(&f->loop, r->threads.loop_us / n);
    figure_add(&f->commit, r->threads.commit_us / n);
    figure_add(&f->fold, r->threads.fold_us / n);
    figure_add(&f->other, r->threads.other_us / n);
    figure_add(&f->own, r->own_cpu_us / n);
    f->n += n;
    f->failed += (double)r->failed;
}

/* The yardstick, once as it is asked for and once with as many connections behind the first hop as
 * there are game servers, which is what the same frames cost at least in this shape. */
static bool measure_echo(struct bench *b, struct found *f, double rate)
{
    static struct load_result r; /* large */
    double seconds = (double)bench_options.seconds / 2;
    int connections = (int)wish.connections;
    int depth = (int)wish.depth;
    if (!echo_measure(b, connections, depth, connections, seconds, &r))
        return false;
    figure_add(&f->echo, (double)r.answered / r.seconds);
    figure_add(&f->ratio, rate / ((double)r.answered / r.seconds));
    if (!echo_measure(b, connections, depth, (int)wish.servers, seconds, &r))
        return false;
    figure_add(&f->echo_wide, (double)r.answered / r.seconds);
    figure_add(&f->ratio_wide, rate / ((double)r.answered / r.seconds));
    return true;
}

static bool measure(struct bench *b, struct load *load, struct found *f)
{
    static struct load_result r; /* large */
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!load_run(load, b, 0.5, (double)bench_options.seconds, &r))
            return false;
        take(f, &r);
        if (!measure_echo(b, f, (double)r.answered / r.seconds))
            return false;
    }
    return true;
}

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "allocations_per_s", &f->rate, 0);
    bench_figure(b, "two_hop_echo_per_s", &f->echo, 0);
    bench_figure(b, "ratio", &f->ratio, 3);
    bench_figure(b, "same_shape_echo_per_s", &f->echo_wide, 0);
    bench_figure(b, "same_shape_ratio", &f->ratio_wide, 3);
    bench_figure(b, "p50_us", &f->p50, 0);
    bench_figure(b, "p99_us", &f->p99, 0);
    bench_figure(b, "cpu_us_per_allocation", &f->cpu, 2);
    bench_figure(b, "loop_us_per_allocation", &f->loop, 2);
    bench_figure(b, "commit_us_per_allocation", &f->commit, 2);
    bench_figure(b, "fold_us_per_allocation", &f->fold, 2);
    bench_figure(b, "other_us_per_allocation", &f->other, 2);
    bench_figure(b, "load_us_per_allocation", &f->own, 2);
    bench_number(b, "connections", (double)wish.connections, 0);
    bench_number(b, "depth", (double)wish.depth, 0);
    bench_number(b, "servers", (double)wish.servers, 0);
    bench_number(b, "n", f->n, 0);
    bench_number(b, "failed", f->failed, 0);
    bench_text(b, "log_level", bench_options.log_level);
    bench_text(b, "log_to", "/dev/null");
    bench_text(b, "file_system", b->file_system);

    bool by_default = strcmp(bench_options.log_level, "info") == 0;
    struct bench_row *row = bench_row(b, "P1",
                                      by_default ? "durable allocations, 64 connections × 32 under "
                                                   "way, 1,000 game servers, log level info"
                                                 : "the same at another log level (warn)",
                                      &f->rate, "/s", 0);
    row->wanted = by_default ? "≥ 50,000/s, then 100,000/s" : "";
    row->reach = by_default ? figure_median(&f->rate) / WANTED_PER_S : 0;
    row->n = f->n;
    char echo[BENCH_PRINT_MAX], wide[BENCH_PRINT_MAX];
    snprintf(row->yardstick, sizeof(row->yardstick),
             "two echo hops %s/s (%.2f ×); of this shape %s/s (%.2f ×)",
             bench_print(echo, figure_median(&f->echo), 0), figure_median(&f->ratio),
             bench_print(wide, figure_median(&f->echo_wide), 0), figure_median(&f->ratio_wide));
    snprintf(row->cpu, sizeof(row->cpu), "%.1f µs (loop %.1f)", figure_median(&f->cpu),
             figure_median(&f->loop));
}

bool bench_allocate(struct bench *b)
{
    char data[BENCH_PATH_MAX];
    static struct found f; /* large */
    f = (struct found){0};
    struct served s = {0};
    struct load *load = NULL;
    struct served_plan how = {.data = bench_path(b, "allocate", data), .config = BENCH_ROOMY};
    if (!served_start(&s, b, &how))
        return false;
    struct load_plan plan = {.pid = s.pid,
                             .server = s.server,
                             .manager = s.manager,
                             .connections = (int)wish.connections,
                             .depth = (int)wish.depth,
                             .servers = (int)wish.servers,
                             .keep = KEEP};
    bool ok = load_open(&load, b, &plan) && measure(b, load, &f);
    load_close(load);
    served_end(&s, SIGKILL);
    bench_remove(b, "allocate");
    if (ok)
        tell(b, &f);
    return ok;
}

int bench_allocate_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_allocate_options, bench_allocate);
}

/* ── one at a time ─────────────────────────────────────────────────────────────────────────── */

const struct arg bench_single_options[] = {
    BENCH_ARG_RUNS,      BENCH_ARG_SECONDS, BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT, BENCH_ARG_JSON,    {0},
};

enum { RECORD = 512 }; /* about what the journal writes for one change of state */

/* What an allocation cannot do without: twice there and back, twice on the disk. */
static bool bare_steps(struct echo_line *line, int fd)
{
    static const uint8_t record[RECORD];
    for (int i = 0; i < 2; i++) {
        if (!echo_line_turn(line) || write(fd, record, sizeof(record)) != RECORD ||
            fdatasync(fd) != 0)
            return false;
    }
    return true;
}

static bool measure_bare(struct bench *b, double seconds, struct durations *ret)
{
    char path[BENCH_PATH_MAX];
    struct echo e = {0};
    struct echo_line line = {-1};
    int fd = open(bench_path(b, "bare", path), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    bool ok = fd >= 0 || bench_fail(b, "%s: %s", path, strerror(errno));
    ok = ok && echo_start(&e, b, 1) && echo_line_open(&line, b, &e);
    int64_t until_ns = monotonic_ns() + (int64_t)(seconds * 1e9);
    while (ok && monotonic_ns() < until_ns) {
        int64_t start_ns = monotonic_ns();
        ok = bare_steps(&line, fd) || bench_fail(b, "%s: %s", path, strerror(errno));
        durations_add(ret, monotonic_ns() - start_ns);
    }
    echo_line_close(&line);
    echo_end(&e);
    if (fd >= 0)
        close(fd);
    return ok;
}

struct single {
    struct figure p50, p99, bare50, bare99, over99, cpu;
    double n;
};

static bool measure_single(struct bench *b, struct load *load, struct single *f)
{
    static struct load_result r; /* large, as the next */
    static struct durations bare;
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        memset(&bare, 0, sizeof(bare));
        if (!load_run(load, b, 0.2, (double)bench_options.seconds, &r) ||
            !measure_bare(b, (double)bench_options.seconds, &bare))
            return false;
        figure_add(&f->p50, durations_us(&r.latency, 0.5));
        figure_add(&f->p99, durations_us(&r.latency, 0.99));
        figure_add(&f->bare50, durations_us(&bare, 0.5));
        figure_add(&f->bare99, durations_us(&bare, 0.99));
        figure_add(&f->over99, durations_us(&r.latency, 0.99) - durations_us(&bare, 0.99));
        figure_add(&f->cpu, r.cpu_us / (double)r.answered);
        f->n += (double)r.answered;
    }
    return true;
}

static void tell_single(struct bench *b, const struct single *f)
{
    bench_figure(b, "p50_us", &f->p50, 0);
    bench_figure(b, "p99_us", &f->p99, 0);
    bench_figure(b, "bare_p50_us", &f->bare50, 0);
    bench_figure(b, "bare_p99_us", &f->bare99, 0);
    bench_figure(b, "p99_over_bare_us", &f->over99, 0);
    bench_figure(b, "cpu_us_per_allocation", &f->cpu, 1);
    bench_number(b, "n", f->n, 0);
    bench_text(b, "log_level", bench_options.log_level);
    bench_text(b, "file_system", b->file_system);
    struct bench_row *row =
        bench_row(b, "P2", "one allocation at a time, 99th percentile", &f->p99, "µs", 0);
    double limit_us = figure_median(&f->bare99) + 300;
    row->wanted = "≤ 2 fdatasync + 2 round trips + 300 µs";
    row->reach = limit_us / figure_median(&f->p99);
    row->n = f->n;
    snprintf(row->yardstick, sizeof(row->yardstick),
             "those alone: p99 %.0f µs, p50 %.0f µs (allocation p50 %.0f µs)",
             figure_median(&f->bare99), figure_median(&f->bare50), figure_median(&f->p50));
    snprintf(row->cpu, sizeof(row->cpu), "%.0f µs", figure_median(&f->cpu));
}

bool bench_single(struct bench *b)
{
    char data[BENCH_PATH_MAX];
    static struct single f; /* large */
    f = (struct single){0};
    struct served s = {0};
    struct load *load = NULL;
    if (!served_start(&s, b, &(struct served_plan){.data = bench_path(b, "single", data)}))
        return false;
    struct load_plan plan = {.pid = s.pid,
                             .server = s.server,
                             .manager = s.manager,
                             .connections = 1,
                             .depth = 1,
                             .servers = 4,
                             .keep = KEEP};
    bool ok = load_open(&load, b, &plan) && measure_single(b, load, &f);
    load_close(load);
    served_end(&s, SIGKILL);
    bench_remove(b, "single");
    if (ok)
        tell_single(b, &f);
    return ok;
}

int bench_single_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_single_options, bench_single);
}

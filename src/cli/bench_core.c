/* P5 and half of P4: what an allocation and a heartbeat cost in core alone, with few and with many
 * servers. */
#include "cli/bench_child.h"
#include "cli/bench_crowd.h"
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { HOLD = 4000, PERIOD_MS = 10000, PER_RUN = 50000 };

static struct {
    int64_t few;
    int64_t many;
    int64_t allocations;
} wish = {.few = 1000, .many = 100000, .allocations = PER_RUN};

const struct arg bench_core_options[] = {
    {.name = "--few",
     .kind = ARG_NUMBER,
     .into = &wish.few,
     .min = 1,
     .max = 200000,
     .value = "N",
     .help = "servers to begin with (1000)"},
    {.name = "--many",
     .kind = ARG_NUMBER,
     .into = &wish.many,
     .min = 1,
     .max = 200000,
     .value = "N",
     .help = "servers to compare with (100000)"},
    {.name = "--allocations",
     .kind = ARG_NUMBER,
     .into = &wish.allocations,
     .min = 1,
     .max = 10000000,
     .value = "N",
     .help = "in one run (50000)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_JSON,
    {0},
};

struct found {
    struct figure few, many, growth, beat, share;
    double mib;
};

static double us_of_allocations(struct crowd *c)
{
    int n = (int)wish.allocations;
    double before_us = process_cpu_us(getpid());
    crowd_allocate(c, n, HOLD, 0);
    return (process_cpu_us(getpid()) - before_us) / n;
}

static void measure(struct crowd *few, struct crowd *many, struct found *f)
{
    /* The first round fills both to the same number of open matches. */
    (void)us_of_allocations(few);
    (void)us_of_allocations(many);
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        double few_us = us_of_allocations(few);
        double many_us = us_of_allocations(many);
        figure_add(&f->few, few_us);
        figure_add(&f->many, many_us);
        figure_add(&f->growth, many_us / few_us);
        double before_us = process_cpu_us(getpid());
        crowd_beat(many, PERIOD_MS);
        double beat_us = process_cpu_us(getpid()) - before_us;
        figure_add(&f->beat, beat_us / (double)wish.many);
        figure_add(&f->share, beat_us / (PERIOD_MS * 1000.0));
    }
}

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "few_us_per_allocation", &f->few, 2);
    bench_figure(b, "many_us_per_allocation", &f->many, 2);
    bench_figure(b, "growth", &f->growth, 2);
    bench_figure(b, "us_per_heartbeat", &f->beat, 3);
    bench_figure(b, "heartbeats_core_share", &f->share, 4);
    bench_number(b, "many_mib", f->mib, 1);
    bench_number(b, "few", (double)wish.few, 0);
    bench_number(b, "many", (double)wish.many, 0);
    bench_number(b, "n", (double)(wish.allocations * bench_options.runs), 0);

    struct bench_row *row = bench_row(
        b, "P5", "allocation in core with 100,000 servers : with 1,000", &f->growth, "×", 2);
    row->wanted = "≤ 1.5 ×";
    row->reach = 1.5 / figure_median(&f->growth);
    row->n = (double)(wish.allocations * bench_options.runs);
    snprintf(row->yardstick, sizeof(row->yardstick), "with 1,000 servers %.2f µs",
             figure_median(&f->few));
    snprintf(row->cpu, sizeof(row->cpu), "%.2f µs", figure_median(&f->many));

    row =
        bench_row(b, "P4", "100,000 servers in core, a heartbeat each 10 s", &f->share, "core", 3);
    row->wanted = "≤ 0.25 core";
    row->reach = 0.25 / figure_median(&f->share);
    row->n = (double)(wish.many * bench_options.runs);
    snprintf(row->cpu, sizeof(row->cpu), "%.2f µs a heartbeat", figure_median(&f->beat));

    struct figure memory = {.values = {f->mib}, .n = 1};
    row = bench_row(b, "P4", "100,000 servers in core, memory", &memory, "MiB", 0);
    row->wanted = "≤ 512 MB";
    row->reach = 512e6 / (f->mib * 1024 * 1024);
    row->n = (double)wish.many;
}

bool bench_core(struct bench *b)
{
    static struct found f; /* large */
    f = (struct found){0};
    struct crowd *few = xcalloc(1, sizeof(*few));
    struct crowd *many = xcalloc(1, sizeof(*many));
    int64_t before_kib = process_own_kib(getpid());
    crowd_init(many, (int)wish.many, NULL, NULL, NULL);
    f.mib = (double)(process_own_kib(getpid()) - before_kib) / 1024;
    crowd_init(few, (int)wish.few, NULL, NULL, NULL);
    measure(few, many, &f);
    crowd_done(few);
    crowd_done(many);
    free(few);
    free(many);
    tell(b, &f);
    return true;
}

int bench_core_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_core_options, bench_core);
}

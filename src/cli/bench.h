/* Benchmarks: what the nouns of `muster bench` share. A noun measures the same thing several times
 * into figures, and says what it found as fields (for --json and people) and as rows of the table
 * that `make bench` writes. All of it belongs to the process that measures. */
#pragma once

#include "cli/args.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BENCH_RUNS_MAX = 64,
    BENCH_FIELDS_MAX = 64,
    BENCH_ROWS_MAX = 64,
    BENCH_PATH_MAX = 512,
    BENCH_WHY_MAX = 512,
};

/* ── figures ───────────────────────────────────────────────────────────────────────────────── */

/* One thing measured once per run. Zeroed = nothing yet. */
struct figure {
    double values[BENCH_RUNS_MAX];
    int n;
};

void figure_add(struct figure *f, double value);
double figure_median(const struct figure *f); /* 0 of nothing; likewise the next two */
double figure_least(const struct figure *f);
double figure_most(const struct figure *f);

/* Times of single operations, kept to about one in a hundred. Zeroed = nothing yet. */
enum { DURATIONS_FINE = 64, DURATIONS_BUCKETS = DURATIONS_FINE * 34 };
struct durations {
    uint32_t counts[DURATIONS_BUCKETS];
    uint64_t n;
};

void durations_add(struct durations *d, int64_t ns);
double durations_us(const struct durations *d, double share); /* 0.99 = the 99th percentile */

/* A number for people: "1,234.5". Returns dst. */
enum { BENCH_PRINT_MAX = 48 };
const char *bench_print(char dst[BENCH_PRINT_MAX], double value, int decimals);

/* ── one benchmark ─────────────────────────────────────────────────────────────────────────── */

struct bench_field {
    const char *name; /* static */
    int decimals;
    bool is_text;
    struct figure figure;
    char text[96];
};

/* A row of the table. */
struct bench_row {
    const char *goal;    /* "P1"; "" = not among the goals; static, as the next two */
    const char *what;    /* what was measured */
    const char *wanted;  /* the goal in words; "" = none */
    double reach;        /* measured : wanted, so that 1 and more is met; 0 = no goal */
    char value[48];      /* the median, with its unit */
    char spread[64];     /* least – most */
    char yardstick[128]; /* what was measured beside it; "" = nothing */
    char cpu[64];        /* per operation; "" = not measured */
    int runs;
    double n; /* operations over all runs */
};

struct bench {
    const char *folder; /* on the disk that is measured; removed afterwards */
    const char *file_system;
    char why[BENCH_WHY_MAX]; /* when something failed */
    struct bench_field fields[BENCH_FIELDS_MAX];
    int n_fields;
    struct bench_row rows[BENCH_ROWS_MAX];
    int n_rows;
};

/* What the command line says, for every noun. */
struct bench_options {
    int64_t runs;
    int64_t seconds; /* of one run */
    bool json;
    const char *log_level; /* of the Muster that is measured */
    const char *data_root; /* where its folder is made */
};
extern struct bench_options bench_options;

#define BENCH_ARG_RUNS                                                                             \
    {                                                                                              \
        .name = "--runs", .kind = ARG_NUMBER, .into = &bench_options.runs, .min = 1,               \
        .max = BENCH_RUNS_MAX, .value = "N", .help = "each figure is the median of so many (5)"    \
    }
#define BENCH_ARG_SECONDS                                                                          \
    {                                                                                              \
        .name = "--seconds", .kind = ARG_NUMBER, .into = &bench_options.seconds, .min = 1,         \
        .max = 3600, .value = "N", .help = "of one run (2)"                                        \
    }
#define BENCH_ARG_LOG_LEVEL                                                                        \
    {                                                                                              \
        .name = "--log-level", .kind = ARG_CHOICE, .into = &bench_options.log_level,               \
        .words = bench_log_levels, .value = "LEVEL",                                               \
        .help = "of the Muster that is measured (info, as by default); it logs to /dev/null"       \
    }
#define BENCH_ARG_DATA_ROOT                                                                        \
    {                                                                                              \
        .name = "--data-root", .kind = ARG_TEXT, .into = &bench_options.data_root, .value = "DIR", \
        .help = "a folder on the disk to measure (./build, or TMPDIR)"                             \
    }
#define BENCH_ARG_JSON                                                                             \
    {                                                                                              \
        .name = "--json", .kind = ARG_FLAG, .into = &bench_options.json,                           \
        .help = "one line of JSON instead of text"                                                 \
    }
extern const char *const bench_log_levels[];

/* Each adds a field, in the order of the calls. A figure is told by its median and its spread. */
void bench_figure(struct bench *b, const char *name, const struct figure *f, int decimals);
void bench_number(struct bench *b, const char *name, double value, int decimals);
void bench_text(struct bench *b, const char *name, const char *text);

/* A new row; value and spread are those of f, "1,234 /s" for unit "/s". The caller adds the rest.
 */
struct bench_row *bench_row(struct bench *b, const char *goal, const char *what,
                            const struct figure *f, const char *unit, int decimals);

/* Says in b->why what went wrong; always false. */
bool bench_fail(struct bench *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* folder/name. Returns dst. */
const char *bench_path(const struct bench *b, const char *name, char dst[BENCH_PATH_MAX]);

/* Removes folder/name with all that is in it. */
void bench_remove(const struct bench *b, const char *name);

/* Says on standard error how far it is: each noun before its run i, `bench all` before its part i
 * of n. On a terminal the line is written over. */
void bench_run_begins(int i);
void bench_part_begins(int i, int n, const char *name);

/* Measures, adds fields and rows. False: b->why is set. */
typedef bool bench_measure(struct bench *b);

bench_measure bench_allocate;
bench_measure bench_single;
bench_measure bench_echo;
bench_measure bench_connections;
bench_measure bench_core;
bench_measure bench_friends;
bench_measure bench_store;
bench_measure bench_http;
bench_measure bench_join;
bench_measure bench_join_few; /* with half as many clients */
bench_measure bench_lobby;
bench_measure bench_nats;
bench_measure bench_postgres;
bench_measure bench_agones;
bench_measure bench_spawn;
bench_measure bench_restart;
bench_measure bench_footprint;

/* Reads argv into the table, measures in a child (so that nothing is left behind however it ends)
 * and prints what was found. Returns the exit code. */
int bench_main(int argc, char **argv, const struct arg *table, bench_measure *measure);

/* Writes folder/RESULTS.md and folder/results.svg. */
bool bench_report(struct bench *b, const char *folder, const char *commit);

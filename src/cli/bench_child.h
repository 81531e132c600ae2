/* Processes that a benchmark starts and watches: the real `muster serve`, and small peers of its
 * own. Each ends when the benchmark does, whatever ended that. */
#pragma once

#include "cli/bench.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct served {
    pid_t pid;
    int out; /* what it prints */
    char server[64];
    char manager[64];
    char client[64];
    char http[64];
    double ready_ms; /* from before fork to the ready line */
};

/* Room for every game server on one address. */
#define BENCH_ROOMY "listen: {connections: 19000, connections_per_address: 19000}\n"

/* What differs from `muster serve --dev --log-level LEVEL` on free ports; NULL = nothing. */
struct served_plan {
    const char *data;
    const char *config; /* the text of a configuration file */
    const char *store;  /* PostgreSQL */
};

/* Starts Muster and waits for its ready line. What it logs goes to /dev/null. */
bool served_start(struct served *s, struct bench *b, const struct served_plan *plan);

/* Ends it with that signal and waits. A zeroed one is fine. */
void served_end(struct served *s, int signal);

/* Runs `run` in a child that exits with it, or dies with us. -1 with errno. */
pid_t child_start(void (*run)(void *user), void *user);
void child_end(pid_t pid);

/* Processor time a process has used so far, in µs, and where inside Muster: by its threads. */
double process_cpu_us(pid_t pid);
struct thread_cpu {
    double loop_us;
    double commit_us;
    double fold_us;
    double other_us;
};
struct thread_cpu process_threads(pid_t pid);

/* Resident memory, and the part of it that is its own (neither files nor shared). */
int64_t process_resident_kib(pid_t pid);
int64_t process_own_kib(pid_t pid);

int64_t monotonic_ns(void);

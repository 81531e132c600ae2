/* Figures of this process as the system has them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process_figures {
    int64_t cpu_us;
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t open_fds;
    int64_t max_fds;
};

/* Counting our descriptors where the system does not say how many there are (Linux before 6.2): the
 * folder is walked a few at a time, because a walk of 15,000 at once would stop everything for tens
 * of milliseconds. Embedded: a zeroed struct begins. */
struct process_walk {
    void *folder; /* DIR of the walk under way; NULL = none is */
    int64_t seen;
    int64_t counted; /* by the last whole walk */
    bool walked;
};

/* A few steps, where they are needed; process_walk_step takes them in any case. */
void process_step(struct process_walk *walk);
void process_walk_step(struct process_walk *walk);
void process_walk_done(struct process_walk *walk);

/* What cannot be had is -1. */
void process_read(const struct process_walk *walk, struct process_figures *ret);

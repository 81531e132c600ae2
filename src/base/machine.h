/* How busy this machine is, as Linux tells in /proc. Where it does not tell, nothing is. */
#pragma once

#include <stdint.h>

/* The last look at the processors; embedded and zeroed by whoever asks. */
struct machine {
    uint64_t busy;
    uint64_t all;
};

/* Share of all processors that was busy since the last call, 0–100; 0 at the first. */
float machine_cpu_percent(struct machine *last);

/* Share of memory that could not be given to a new process, 0–100. */
float machine_memory_percent(void);

/* Share of the file system around that path that is in use, 0–100. */
float machine_disk_percent(const char *path);

/* Processes that run or want to, averaged over a minute. */
double machine_load(void);

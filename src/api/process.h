/* Figures of this process as the system has them. */
#pragma once

#include <stdint.h>

struct process_figures {
    int64_t cpu_us;
    int64_t resident_bytes;
    int64_t virtual_bytes;
    int64_t open_fds;
    int64_t max_fds;
};

/* What cannot be had is -1. */
void process_read(struct process_figures *ret);

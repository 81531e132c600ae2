/* The game server's first moments: from the shim's copy of itself to its main(), through everything
 * that it may not have of ours. Part of the shim. */
#pragma once

#include "shim/shim.h"

#include <stdbool.h>
#include <sys/types.h>

/* What start needs of the job, unpacked. Texts belong to the job. */
struct start {
    const char *folder;
    const char *cgroup; /* "" = none */
    char **argv;
    char **env;
    uint32_t uid;
    int64_t files, processes, file_bytes;
    int in_fd, out_fd; /* its ends of the pipes */
    bool batch;        /* we are a batch job, and it is to be none */
};

/* What can be done before there is a job, because a shim waits for one and a game server for its
 * start: eighty system calls. Before the first start. */
void start_prepare(void);

/* Returns when it runs its own code: its pid; or 0, and *ret_step and *ret_errno say what could not
 * be done. */
pid_t start(const struct start *s, enum shim_step *ret_step, int *ret_errno);

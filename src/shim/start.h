/* The game server's first moments: from a child of the shim to its main(), through everything that
 * it may not have of ours. The child is there before anybody knows what it will be: it does
 * whatever needs no job, and waits for one. Part of the shim. */
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
};

/* What can be done before there is a job, because a shim waits for one and a game server for its
 * start: eighty system calls. Before the first start. */
void start_prepare(void);

/* Runs in the child, in our memory, while we sleep. Waits until it is known what to start and fills
 * *ret; false = nothing. */
typedef bool start_await(void *user, struct start *ret);

/* in_fd and out_fd are the child's ends of the pipes. Returns when it runs its own code: its pid;
 * or 0 when it was not to, and then *ret_step is SHIM_STEP_NONE, or when that could not be done,
 * and *ret_step and *ret_errno say why. */
pid_t start(int in_fd, int out_fd, start_await *await, void *user, enum shim_step *ret_step,
            int *ret_errno);

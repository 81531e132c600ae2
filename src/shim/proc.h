/* What the kernel says of processes. Libc alone: used by the shim, and built into the agent as
 * well, so that both prove a process in the same words. */
#pragma once

#include "shim/shim.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

int64_t proc_monotonic_ms(void);
int64_t proc_wall_ms(void);

/* Waits until fd can be read, or somebody closed the other end. False = not until then. */
bool proc_await(int fd, int64_t until_ms);

/* When it started, in clock ticks since boot; 0 = there is no such process. */
uint64_t proc_start_ticks(pid_t pid);

/* "" when it cannot be read. */
void proc_boot_id(char ret[SHIM_BOOT_MAX]);

/* The pid that a pidfd stands for; -1 = it is gone, or this is no pidfd. */
pid_t proc_pid_of(int pidfd);

/* -1 with errno. */
int proc_pidfd_open(pid_t pid);
int proc_pidfd_signal(int pidfd, int sig);

/* True when the process is over (whoever reaps it). */
bool proc_is_over(int pidfd);

/* How a process ended that somebody else has reaped. False = not reaped yet, or a kernel that does
 * not tell (before 6.15). */
bool proc_exit_of(int pidfd, int *ret_wait_status);

/* A child of this thread's, ended or not, of that session; 0 = there is none. Nobody else's pid
 * until it is reaped. */
pid_t proc_child_in_session(pid_t session);

/* Reaps one child that has ended: its pid, 0 = none has, -1 = there are no children. pidfd -1 =
 * any child. */
pid_t proc_reap(int pidfd, int *ret_code, int *ret_signal, int64_t *ret_peak_memory);

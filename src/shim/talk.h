/* Messages with descriptors over the seqpacket socket between agent and shim. Libc alone: the shim
 * has it, and the agent as well. */
#pragma once

#include "shim/shim.h"

#include <sys/types.h>

/* Which descriptors come along is in m->fds; fds holds them in the order of the bits, -1 where
 * there is none. Never waits. 0, or -1 with errno. */
int talk_send(int sock, const struct shim_message *m, const int fds[SHIM_FDS_MAX],
              const char *tail);

/* Reads one message. fds is filled with what came along (the caller closes it), -1 where nothing
 * did; tail (SHIM_TAIL_MAX, or NULL) gets m->tail_len bytes. 1 = a message, 0 = the other has gone
 * or is of another version, -1 with errno. */
int talk_receive(int sock, struct shim_message *m, int fds[SHIM_FDS_MAX], char *tail, int flags);

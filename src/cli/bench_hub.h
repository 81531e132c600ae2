/* The yardstick of a lobby: a process that passes as many frames of the same sizes between the same
 * connections, and does nothing else: no HTTP, no tokens, no state, nothing on a disk.
 *
 *   ask ─▶ hub ─CREATED─▶ players ─LOADING─▶ hub ─LOADING─▶ the others
 *                         hub ─ALLOCATE─▶ server ─ACK, READY─▶ hub ─START─▶ players
 */
#pragma once

#include "cli/bench.h"

#include <sys/types.h>

struct hub {
    pid_t pid;
    char address[64]; /* for players and servers */
};

bool hub_start(struct hub *h, struct bench *b, int players, int lobbies);
void hub_end(struct hub *h); /* a zeroed one is fine */

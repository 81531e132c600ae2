/* Sandbox: where a game server may write, who it is and what it may use. The parts that need this
 * host's permission are on where it is given, and a sentence says what is not. The rest (rlimits,
 * no_new_privs, no capabilities) is done by the shim on the way to the game server's main().
 * Owned by struct processes, which embeds it. */
#pragma once

#include "agent/process.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* What a socket's address has room for, with its NUL. */
enum { SANDBOX_SOCKET_MAX = 108, SANDBOX_MISSING_MAX = 512 };

struct sandbox {
    char folder[PATH_MAX];
    char sockets[SANDBOX_SOCKET_MAX]; /* folder of the folders of endpoints, one per uid */
    char cgroup[PATH_MAX];            /* "" = none */
    uid_t uid_first;                  /* 0 = they run as we do */
    int64_t memory_bytes;
    int64_t processes;
    char missing[SANDBOX_MISSING_MAX];
};

/* What one game server gets. */
struct sandbox_place {
    uid_t uid;                         /* (uid_t)-1 = ours */
    char scratch[PATH_MAX];            /* its own folder, empty */
    char endpoint[SANDBOX_SOCKET_MAX]; /* never used before */
    char cgroup[PATH_MAX];             /* the file that takes it in; "" = none */
};

/* 0, or an error with why. */
int sandbox_open(struct sandbox *s, const char *folder, const struct process_limits *limits,
                 char why[PROCESS_WHY_MAX]);

/* Makes the scratch folder of a slot that somebody may soon have. Failing is no harm: sandbox_enter
 * makes it too, and says why. */
void sandbox_prepare(const struct sandbox *s, int slot);

/* Makes its folders. 0, or an error with why; what was made is removed by sandbox_leave. */
int sandbox_enter(const struct sandbox *s, int64_t server, int slot, struct sandbox_place *ret,
                  char why[PROCESS_WHY_MAX]);

/* The endpoint has been bound: its uid may connect. Nothing when it has not. */
void sandbox_let_in(const char *endpoint);

/* It is reaped and forgotten. Scratch folders belong to slots and stay; one that is not empty is
 * moved to `away` instead, a path nobody has, for somebody who can take the time to remove it: true
 * then. */
bool sandbox_leave(const struct sandbox *s, int64_t server, int slot, const char *endpoint,
                   const char *away);

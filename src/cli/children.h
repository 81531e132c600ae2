/* Child processes of `muster dev`: this very binary with other verbs, whose output is read line by
 * line. They are ended by pid, in order; should this process die without a chance to do that, the
 * kernel ends them (PR_SET_PDEATHSIG). Embedded in whoever starts them. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CHILDREN_MAX = 11,
    CHILD_ARGS_MAX = 28,
    CHILD_LINE_MAX = 4096, /* a longer line is cut in pieces */
};

struct child {
    pid_t pid;           /* 0 = not running */
    int out;             /* what it prints; -1 = closed */
    int code;            /* its exit code when it has ended, -1 when a signal ended it */
    int64_t patience_ms; /* how long children_end waits before it insists; 0 = 10 s */
    char name[24];
    struct buf line;
};

struct children {
    struct child all[CHILDREN_MAX];
    int stop_fd; /* readable when we are asked to stop */

    /* A line that child number i printed. */
    void (*on_line)(void *user, int i, const char *line);

    /* A sentence about a child: it could not be started, or how it ended. */
    void (*on_note)(void *user, const char *sentence);
    void *user;
};

void children_init(struct children *c, int stop_fd);
void children_done(struct children *c); /* none may be running */

/* Starts number i, which does not run; args begins with the verb and ends with NULL. False with a
 * sentence said. */
bool children_start(struct children *c, int i, const char *name, const char *const *args);

bool children_runs(const struct children *c, int i);

/* Hands out what comes until the deadline, a line, an end or a wish to stop; true for the last. */
bool children_turn(struct children *c, int64_t deadline_ms);

/* Asks numbers first..last to end, hands out what they still say, insists when one does not. */
void children_end(struct children *c, int first, int last);

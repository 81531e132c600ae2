/* Following the log of a game server: its last lines, then what it says, until it is gone. Owned by
 * whoever follows. */
#pragma once

#include "agent/process.h"

#include <limits.h>

struct process_follow {
    int fd; /* -1 = nothing was said yet */
    char path[PATH_MAX];
};

/* From so many lines before the end. */
void process_follow_init(struct process_follow *f, const struct process *p, int lines);
void process_follow_done(struct process_follow *f);

/* Appends what there is, at most max bytes. */
void process_follow_read(struct process_follow *f, struct buf *out, size_t max);

/* How far something is: on a terminal one line that is written over, elsewhere a line whenever
 * there is something new to say. Embedded in whoever waits. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum { PROGRESS_MAX = 256 };

struct progress {
    int fd;
    bool over;  /* lines are written over */
    bool drawn; /* one stands there */
    char said[PROGRESS_MAX];
};

/* Looks what stands behind descriptor fd. */
void progress_init(struct progress *p, int fd);

/* Says it. `more` changes all the time, such as a clock, and is shown only where it is written
 * over; "" = nothing. Both are our own text. */
void progress_show(struct progress *p, const char *what, const char *more);

/* Takes the line away, before something else is printed. */
void progress_wipe(struct progress *p);

/* A terminal taken over for as long as something is shown live: the alternate screen, without
 * cursor and echo. It is given back at screen_close, at exit and when a signal ends the process;
 * ctrl-z gives it back too, and fg takes it again. One per process. */
#pragma once

#include "base/str.h"

#include <stdint.h>

/* Takes the terminal of descriptor fd, which must be one. */
void screen_open(int fd);

/* Gives it back. Does nothing when it is not taken. */
void screen_close(void);

/* Shows text, whose lines are separated by '\n', cut to the terminal's size of this moment. Lines
 * are written over those that are there, in one go, so nothing flickers; what is shown already is
 * not written again. */
void screen_draw(struct str text);

/* Waits until the deadline (of clock_monotonic_ms), a change of the terminal's size, or one of the
 * descriptors is readable. Returns the index of that one, or -1. fds of -1 are passed over. */
int screen_wait(const int *fds, int n, int64_t deadline_ms);

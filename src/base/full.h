/* Writes that failed for want of room: the disk is full, a quota is used up, or the file would be
 * longer than this process may make one (ulimit -f, LimitFSIZE of a unit). The signal that comes
 * with the last (SIGXFSZ) is ignored by every program of ours, so that it is an error like any. */
#pragma once

#include <stdbool.h>

/* error is an errno: there may be room again. */
bool full_is(int error);

/* Why a file could not be written: a clause that says what to do when that is plain, or else what
 * strerror says. */
const char *full_reason(int error);

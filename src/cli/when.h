/* Times for people: "3 m ago". Pure functions. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEN_MAX = 32 };

/* "now", "45 s ago", "3 m ago", "5 h ago", "12 d ago"; "in 25 s" for what is to come. Returns dst.
 */
const char *when_ago(int64_t wall_ms, int64_t now_ms, char dst[WHEN_MAX]);

/* "45 s", "3 m 20 s", "5 h 2 m", "12 d 4 h". Returns dst. */
const char *when_lasted(int64_t seconds, char dst[WHEN_MAX]);

/* The last "08:15" or "08:15:30" of a day, UTC, that is not after now_ms; or a whole date, as
 * "2026-11-16T08:15:30Z". False when it is neither. */
bool when_last(struct str text, int64_t now_ms, int64_t *ret_wall_ms);

/* "08:15:30" of the day, UTC. Returns dst. */
const char *when_clock(int64_t wall_ms, char dst[WHEN_MAX]);

/* "2026-11-16 08:15:30 UTC". Returns dst. */
const char *when_date(int64_t wall_ms, char dst[WHEN_MAX]);

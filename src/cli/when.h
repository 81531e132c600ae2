/* Times for people: "3 m ago". Pure functions. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WHEN_MAX = 32 };

/* "2026-11-16T08:15:30.123Z" as Unix milliseconds; false when it is no such text. */
bool when_parse(struct str text, int64_t *ret_wall_ms);

/* "now", "45 s ago", "3 m ago", "5 h ago", "12 d ago"; "in 25 s" for what is to come. Returns dst.
 */
const char *when_ago(int64_t wall_ms, int64_t now_ms, char dst[WHEN_MAX]);

/* "45 s", "3 m 20 s", "5 h 2 m", "12 d 4 h". Returns dst. */
const char *when_lasted(int64_t seconds, char dst[WHEN_MAX]);

/* "08:15:30" of the day, UTC. Returns dst. */
const char *when_clock(int64_t wall_ms, char dst[WHEN_MAX]);

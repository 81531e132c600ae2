/* Moments as people write them in arguments. Pure. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define MOMENT_FORM "a time ago such as 90s, 15m, 2h or 7d, or a date as 2026-11-16T03:12:00Z (UTC)"

/* Unix milliseconds of "2h" before now_ms, or of a date in UTC with or without milliseconds. False
 * when it is neither. */
bool moment_parse(struct str text, int64_t now_ms, int64_t *ret_ms);

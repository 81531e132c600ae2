/* Dates as text, by arithmetic alone: no time zone, no state. Pure. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum { DATE_SIZE = 80 }; /* more than any: what a compiler cannot prove it wants room for */

/* "2026-11-16T08:04:42Z" of Unix time in milliseconds, rounded down. Years 1970 to 9999; what lies
 * outside is the nearest of them. Returns dst. */
const char *date_print(int64_t wall_ms, char dst[DATE_SIZE]);

/* Unix milliseconds of "2026-11-16T08:04:42Z" or "2026-11-16T08:04:42.123Z"; false when it is
 * neither, or no such day or hour is. */
bool date_parse(struct str text, int64_t *ret_wall_ms);

/* Everything at a glance, for `muster status` and the screen of `muster dev`. */
#pragma once

#include "base/json.h"
#include "cli/term.h"

#include <stdint.h>

/* Appends what GET /v1/status answered, for people: a few lines, a table of the regions that have
 * servers (with `wide`: of all), and the newest refusals, at most so many. */
void status_put(struct buf *out, const struct term *term, const struct json *status, bool wide,
                size_t refusals, int64_t now_ms);

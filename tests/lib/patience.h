/* How long a test waits for an event before it calls that a hang. Time in which the test itself was
 * not run counts as a moment only, as everywhere in Muster: a pause of the machine delays a test
 * and never fails it. */
#pragma once

#include "base/clock.h"

#include <stdbool.h>

enum { PATIENCE_MS = 30000, PATIENCE_STEP_MS = 200 };

struct patience {
    int64_t asked_ms; /* 0 = not yet */
    int64_t spent_ms;
};

/* To be asked at least every PATIENCE_STEP_MS while the event has not come. */
static inline bool patience_lasts(struct patience *p)
{
    int64_t now_ms = clock_monotonic_ms();
    int64_t step_ms = p->asked_ms == 0 ? 0 : now_ms - p->asked_ms;
    p->asked_ms = now_ms;
    p->spent_ms += step_ms < PATIENCE_STEP_MS ? step_ms : PATIENCE_STEP_MS;
    return p->spent_ms < PATIENCE_MS;
}

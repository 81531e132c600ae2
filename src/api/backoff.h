/* How long to wait before the next attempt: twice as long after each failure, and never quite the
 * same, so that those who lost a service together do not come back together. Embedded; zeroed is
 * "nothing has failed". */
#pragma once

#include <sodium.h>
#include <stdint.h>

enum { BACKOFF_FIRST_MS = 200, BACKOFF_LAST_MS = 30 * 1000 };

struct backoff {
    int failures; /* in a row */
};

/* It failed: from half to all of the time that is due. */
static inline int64_t backoff_next_ms(struct backoff *b)
{
    int64_t ms = BACKOFF_FIRST_MS;
    for (int i = 0; i < b->failures && ms < BACKOFF_LAST_MS; i++)
        ms *= 2;
    if (ms > BACKOFF_LAST_MS)
        ms = BACKOFF_LAST_MS;
    b->failures++;
    return ms / 2 + (int64_t)randombytes_uniform((uint32_t)(ms / 2) + 1);
}

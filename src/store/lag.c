#include "store/lag.h"

#include "base/clock.h"

void lag_init(struct lag *l, int64_t seq, int64_t core_ms)
{
    l->last_seq = seq;
    l->last_core_ms = core_ms;
    l->last_us = clock_monotonic_us();
}

void lag_committed(struct lag *l, int64_t seq, int64_t core_ms, int64_t folded)
{
    l->last_us = clock_monotonic_us();
    if (folded >= seq - 1)
        l->waiting_since_core_ms = core_ms;
    l->last_core_ms = core_ms;
    l->last_seq = seq;
}

/* The oldest batch that waits came right after the newest folded one, or, when that was long ago,
 * it is the first that found nothing waiting. */
int64_t lag_ms(const struct lag *l, int64_t folded, int64_t folded_core_ms)
{
    if (l->last_seq <= folded)
        return 0;
    int64_t since_ms = folded_core_ms;
    if (since_ms < l->waiting_since_core_ms)
        since_ms = l->waiting_since_core_ms;
    int64_t ms = l->last_core_ms - since_ms + (clock_monotonic_us() - l->last_us) / 1000;
    return ms > 0 ? ms : 0;
}

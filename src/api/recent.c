#include "api/recent.h"

#include <stdbool.h>
#include <string.h>

enum { US_PER_S = 1000000 };

void recent_init(struct recent *r, int64_t now_us)
{
    memset(r, 0, sizeof(*r));
    minute_init(&r->allocations, now_us);
    minute_init(&r->joins, now_us);
    minute_init(&r->commits, now_us);
}

void recent_reason(struct recent *r, int64_t now_us, int err)
{
    int64_t second = now_us / US_PER_S;
    struct recent_reasons *slot = &r->reasons[second % MINUTE_SECONDS];
    if (slot->second != second)
        *slot = (struct recent_reasons){.second = second};
    slot->counts[err < 0 && err > -ERR_ORDER_END ? -err : ERR_ORDER_INTERNAL]++;
}

void recent_reasons(const struct recent *r, int64_t now_us, int64_t ret[ERR_ORDER_END])
{
    int64_t last = now_us / US_PER_S;
    memset(ret, 0, ERR_ORDER_END * sizeof(*ret));
    for (size_t i = 0; i < MINUTE_SECONDS; i++) {
        const struct recent_reasons *slot = &r->reasons[i];
        bool in = slot->second > last - MINUTE_SECONDS && slot->second <= last;
        for (size_t err = 0; in && err < ERR_ORDER_END; err++)
            ret[err] += slot->counts[err];
    }
}

void recent_refused(struct recent *r, const struct metrics_refusal *refusal)
{
    r->refusals[r->n_refusals++ % RECENT_REFUSALS] = *refusal;
}

size_t recent_refusals(const struct recent *r, struct metrics_refusal ret[RECENT_REFUSALS])
{
    size_t n = r->n_refusals < RECENT_REFUSALS ? r->n_refusals : RECENT_REFUSALS;
    for (size_t i = 0; i < n; i++)
        ret[i] = r->refusals[(r->n_refusals - 1 - i) % RECENT_REFUSALS];
    return n;
}

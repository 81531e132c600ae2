#include "api/recent.h"

#include <string.h>

enum { US_PER_S = 1000000 };

void recent_init(struct recent *r, int64_t now_us)
{
    memset(r, 0, sizeof(*r));
    r->since_us = now_us;
}

/* The first eight buckets hold one value each; from there three bits below the highest one choose
 * among eight buckets of its power of two. */
static size_t bucket_of(int64_t us)
{
    if (us < 8)
        return us < 0 ? 0 : (size_t)us;
    int power = 63 - __builtin_clzll((unsigned long long)us);
    if (power > 31)
        return RECENT_BUCKETS - 1;
    return (size_t)(power - 2) * 8 + ((size_t)us >> (power - 3) & 7);
}

/* The largest value of that bucket. */
static int64_t bucket_top(size_t bucket)
{
    if (bucket < 8)
        return (int64_t)bucket;
    size_t power = bucket / 8 + 2;
    return (int64_t)((bucket % 8 + 9) << (power - 3)) - 1;
}

/* The slot of this second; a slot of an earlier minute is emptied first. */
static struct recent_slot *slot_of(struct recent *r, int64_t now_us)
{
    int64_t second = now_us / US_PER_S;
    struct recent_slot *slot = &r->slots[second % RECENT_SECONDS];
    if (slot->second != second) {
        memset(slot, 0, sizeof(*slot));
        slot->second = second;
    }
    return slot;
}

void recent_allocated(struct recent *r, int64_t now_us, int64_t duration_us)
{
    struct recent_slot *slot = slot_of(r, now_us);
    slot->done++;
    if (duration_us >= 0)
        slot->counts[bucket_of(duration_us)]++;
}

void recent_failed(struct recent *r, int64_t now_us)
{
    slot_of(r, now_us)->failed++;
}

struct minute {
    int64_t done;
    int64_t failed;
    int64_t measured;
    int64_t counts[RECENT_BUCKETS];
};

static void add_slot(struct minute *m, const struct recent_slot *slot)
{
    m->done += slot->done;
    m->failed += slot->failed;
    for (size_t i = 0; slot->done > 0 && i < RECENT_BUCKETS; i++) {
        m->counts[i] += slot->counts[i];
        m->measured += slot->counts[i];
    }
}

/* The smallest duration that `percent` of the measured ones do not exceed. */
static int64_t quantile(const struct minute *m, int percent)
{
    int64_t rank = (m->measured * percent + 99) / 100;
    int64_t seen = 0;
    for (size_t i = 0; rank > 0 && i < RECENT_BUCKETS; i++) {
        seen += m->counts[i];
        if (seen >= rank)
            return bucket_top(i);
    }
    return 0;
}

/* Answers of the first moments would otherwise be extrapolated to absurd rates. */
static double seconds_watched(const struct recent *r, int64_t now_us, int64_t first_second)
{
    int64_t from_us = first_second * US_PER_S;
    if (from_us < r->since_us)
        from_us = r->since_us;
    int64_t us = now_us - from_us;
    return us < US_PER_S ? 1 : (double)us / US_PER_S;
}

void recent_read(const struct recent *r, int64_t now_us, struct metrics_recent *ret)
{
    struct minute minute = {0};
    int64_t last = now_us / US_PER_S;
    int64_t first = last - RECENT_SECONDS + 1;
    for (size_t i = 0; i < RECENT_SECONDS; i++) {
        const struct recent_slot *slot = &r->slots[i];
        if (slot->second >= first && slot->second <= last)
            add_slot(&minute, slot);
    }
    *ret = (struct metrics_recent){
        .per_s = (double)(minute.done + minute.failed) / seconds_watched(r, now_us, first),
        .done = minute.done,
        .failed = minute.failed,
        .p50_us = quantile(&minute, 50),
        .p95_us = quantile(&minute, 95),
        .p99_us = quantile(&minute, 99),
    };
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

#include "api/minute.h"

#include <stddef.h>
#include <string.h>

enum { US_PER_S = 1000000 };

void minute_init(struct minute *m, int64_t now_us)
{
    memset(m, 0, sizeof(*m));
    m->since_us = now_us;
}

/* The first eight buckets hold one value each; from there three bits below the highest one choose
 * among eight buckets of its power of two. */
static size_t bucket_of(int64_t us)
{
    if (us < 8)
        return us < 0 ? 0 : (size_t)us;
    int power = 63 - __builtin_clzll((unsigned long long)us);
    if (power > 31)
        return MINUTE_BUCKETS - 1;
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

/* The slot of this second; one of an earlier minute is emptied first. */
static struct minute_slot *slot_of(struct minute *m, int64_t now_us)
{
    int64_t second = now_us / US_PER_S;
    struct minute_slot *slot = &m->slots[second % MINUTE_SLOTS];
    if (slot->second != second) {
        memset(slot, 0, sizeof(*slot));
        slot->second = second;
    }
    return slot;
}

void minute_done(struct minute *m, int64_t now_us, int64_t duration_us)
{
    struct minute_slot *slot = slot_of(m, now_us);
    slot->done++;
    if (duration_us >= 0)
        slot->counts[bucket_of(duration_us)]++;
}

void minute_failed(struct minute *m, int64_t now_us)
{
    slot_of(m, now_us)->failed++;
}

struct sums {
    int64_t done;
    int64_t failed;
    int64_t measured;
    int64_t counts[MINUTE_BUCKETS];
};

static void add_slot(struct sums *sums, const struct minute_slot *slot)
{
    sums->done += slot->done;
    sums->failed += slot->failed;
    for (size_t i = 0; slot->done > 0 && i < MINUTE_BUCKETS; i++) {
        sums->counts[i] += slot->counts[i];
        sums->measured += slot->counts[i];
    }
}

/* The smallest duration that `percent` of the measured ones do not exceed. */
static int64_t quantile(const struct sums *sums, int percent)
{
    int64_t rank = (sums->measured * percent + 99) / 100;
    int64_t seen = 0;
    for (size_t i = 0; rank > 0 && i < MINUTE_BUCKETS; i++) {
        seen += sums->counts[i];
        if (seen >= rank)
            return bucket_top(i);
    }
    return 0;
}

static void read_seconds(const struct minute *m, int64_t first, int64_t n, double seconds,
                         struct minute_figures *ret)
{
    struct sums sums = {0};
    for (size_t i = 0; i < MINUTE_SLOTS; i++) {
        const struct minute_slot *slot = &m->slots[i];
        if (slot->second >= first && slot->second < first + n)
            add_slot(&sums, slot);
    }
    *ret = (struct minute_figures){
        .per_s = (double)(sums.done + sums.failed) / seconds,
        .done = sums.done,
        .failed = sums.failed,
        .p50_us = quantile(&sums, 50),
        .p95_us = quantile(&sums, 95),
        .p99_us = quantile(&sums, 99),
    };
}

/* What came in the first moments would otherwise be extrapolated to absurd rates. */
static double seconds_watched(const struct minute *m, int64_t now_us, int64_t first_second)
{
    int64_t from_us = first_second * US_PER_S;
    if (from_us < m->since_us)
        from_us = m->since_us;
    int64_t us = now_us - from_us;
    return us < US_PER_S ? 1 : (double)us / US_PER_S;
}

void minute_read(const struct minute *m, int64_t now_us, struct minute_figures *ret)
{
    int64_t first = now_us / US_PER_S - MINUTE_SECONDS + 1;
    read_seconds(m, first, MINUTE_SECONDS, seconds_watched(m, now_us, first), ret);
}

void minute_read_seconds(const struct minute *m, int64_t first, int64_t n,
                         struct minute_figures *ret)
{
    read_seconds(m, first, n, (double)n, ret);
}

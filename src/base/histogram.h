/* A histogram: how many values fell between the bounds of a fixed scale, and their sum. Adding is a
 * few nanoseconds and never allocates; counts only grow, as Prometheus wants them.
 *
 * A zeroed struct is an empty histogram. It does not know its scale: whoever owns it does. */
#pragma once

#include <stdint.h>

enum { HISTOGRAM_BOUNDS_MAX = 17 };

/* A bucket holds values up to and including its bound; one more holds those above the last. */
struct histogram_scale {
    int64_t unit; /* values are written divided by this: 1,000,000 for microseconds in seconds */
    int n;
    int64_t bounds[HISTOGRAM_BOUNDS_MAX]; /* ascending */
};

extern const struct histogram_scale histogram_durations; /* microseconds: 100 us to 30 s */
extern const struct histogram_scale histogram_waits;     /* of people, microseconds: to 120 s */
extern const struct histogram_scale histogram_ratios;    /* thousandths: 0.1 to 1 */
extern const struct histogram_scale histogram_bytes;     /* 256 to 16 Mi */
extern const struct histogram_scale histogram_counts;    /* 1 to 100,000 */

struct histogram {
    int64_t sum;
    uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1];
};

/* Halves the range instead of walking it: a value costs the same wherever it falls. */
static inline int histogram_bucket(const struct histogram_scale *scale, int64_t value)
{
    int from = 0;
    int to = scale->n;
    while (from < to) {
        int middle = (from + to) / 2;
        if (value <= scale->bounds[middle])
            to = middle;
        else
            from = middle + 1;
    }
    return from;
}

static inline void histogram_add(struct histogram *h, const struct histogram_scale *scale,
                                 int64_t value)
{
    h->counts[histogram_bucket(scale, value)]++;
    h->sum += value;
}

/* How many values were added. */
uint64_t histogram_count(const struct histogram *h);

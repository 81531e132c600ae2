#include "base/histogram.h"

const struct histogram_scale histogram_durations = {
    .unit = 1000000,
    .n = 17,
    .bounds = {100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000,
               1000000, 2500000, 5000000, 10000000, 30000000},
};

const struct histogram_scale histogram_waits = {
    .unit = 1000000,
    .n = 17,
    .bounds = {1000, 10000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
               15000000, 20000000, 30000000, 45000000, 60000000, 90000000, 120000000},
};

const struct histogram_scale histogram_ratios = {
    .unit = 1000,
    .n = 10,
    .bounds = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000},
};

const struct histogram_scale histogram_bytes = {
    .unit = 1,
    .n = 9,
    .bounds = {256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20},
};

const struct histogram_scale histogram_counts = {
    .unit = 1,
    .n = 16,
    .bounds = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000},
};

uint64_t histogram_count(const struct histogram *h)
{
    uint64_t n = 0;
    for (int i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
        n += h->counts[i];
    return n;
}

/* Medians, spreads and percentiles. */
#include "cli/bench.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void figure_add(struct figure *f, double value)
{
    assert(f->n < BENCH_RUNS_MAX);
    f->values[f->n++] = value;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double figure_median(const struct figure *f)
{
    double sorted[BENCH_RUNS_MAX];
    if (f->n == 0)
        return 0;
    memcpy(sorted, f->values, (size_t)f->n * sizeof(sorted[0]));
    qsort(sorted, (size_t)f->n, sizeof(sorted[0]), by_size);
    return (sorted[(f->n - 1) / 2] + sorted[f->n / 2]) / 2;
}

double figure_least(const struct figure *f)
{
    double v = f->n ? f->values[0] : 0;
    for (int i = 1; i < f->n; i++)
        v = f->values[i] < v ? f->values[i] : v;
    return v;
}

double figure_most(const struct figure *f)
{
    double v = f->n ? f->values[0] : 0;
    for (int i = 1; i < f->n; i++)
        v = f->values[i] > v ? f->values[i] : v;
    return v;
}

/* Below DURATIONS_FINE each value has its own bucket; above, each power of two is cut into that
 * many halves' worth of equal parts. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < DURATIONS_FINE)
        return (size_t)ns;
    int shift = 63 - __builtin_clzll(ns) - 6; /* brings ns into [64, 128) */
    size_t i = (size_t)(shift + 1) * DURATIONS_FINE + (size_t)(ns >> shift) - DURATIONS_FINE;
    return i < DURATIONS_BUCKETS ? i : DURATIONS_BUCKETS - 1;
}

static double middle_of(size_t bucket)
{
    if (bucket < DURATIONS_FINE)
        return (double)bucket;
    size_t shift = bucket / DURATIONS_FINE - 1;
    double width = (double)((uint64_t)1 << shift);
    return ((double)(bucket % DURATIONS_FINE + DURATIONS_FINE) + 0.5) * width;
}

void durations_add(struct durations *d, int64_t ns)
{
    d->counts[bucket_of(ns > 0 ? (uint64_t)ns : 0)]++;
    d->n++;
}

double durations_us(const struct durations *d, double share)
{
    uint64_t wanted = (uint64_t)((double)d->n * share);
    uint64_t seen = 0;
    for (size_t i = 0; i < DURATIONS_BUCKETS; i++) {
        seen += d->counts[i];
        if (seen > wanted || (seen > 0 && seen == d->n))
            return middle_of(i) / 1000;
    }
    return 0;
}

const char *bench_print(char dst[BENCH_PRINT_MAX], double value, int decimals)
{
    char plain[40];
    int n = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
    int whole = decimals ? n - decimals - 1 : n;
    int first = plain[0] == '-' ? 1 : 0;
    char *at = dst;
    for (int i = 0; i < n && at < dst + BENCH_PRINT_MAX - 2; i++) {
        if (i > first && i < whole && (whole - i) % 3 == 0)
            *at++ = ',';
        *at++ = plain[i];
    }
    *at = '\0';
    return dst;
}

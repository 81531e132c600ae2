#include "api/trend.h"

#include "base/buf.h"

#include <assert.h>
#include <stdlib.h>

enum { US_PER_S = 1000000 };

struct ring {
    struct trend_point *points;
    size_t cap;
    size_t n; /* ever */
};

struct trends {
    int64_t second; /* the one that has begun, of the monotonic clock; -1 = none yet */
    struct trend_point now;
    bool in_minute; /* some second of this minute is over */
    struct trend_point minute;
    struct trend_point of_seconds[TREND_SECONDS];
    struct trend_point of_minutes[TREND_MINUTES];
    struct ring rings[2];
};

struct trends *trends_new(void)
{
    struct trends *t = xcalloc(1, sizeof(*t));
    t->second = -1;
    t->rings[TREND_TEN_MINUTES] = (struct ring){t->of_seconds, TREND_SECONDS, 0};
    t->rings[TREND_DAY] = (struct ring){t->of_minutes, TREND_MINUTES, 0};
    return t;
}

void trends_free(struct trends *t)
{
    free(t);
}

bool trends_due(const struct trends *t, int64_t now_us)
{
    return now_us / US_PER_S != t->second;
}

static void keep(struct ring *ring, const struct trend_point *point)
{
    ring->points[ring->n++ % ring->cap] = *point;
}

static void take_quantiles(struct trend_point *point, const struct recent *recent, int64_t first,
                           int64_t n)
{
    struct minute_figures allocations, commits;
    minute_read_seconds(&recent->allocations, first, n, &allocations);
    minute_read_seconds(&recent->commits, first, n, &commits);
    point->p50_us = allocations.p50_us;
    point->p95_us = allocations.p95_us;
    point->p99_us = allocations.p99_us;
    point->commit_p99_us = commits.p99_us;
}

static void add_to_minute(struct trends *t, const struct trend_point *second)
{
    struct trend_point *m = &t->minute;
    if (!t->in_minute)
        *m = (struct trend_point){.wall_ms = second->wall_ms};
    t->in_minute = true;
    struct trend_gauges before = m->gauges;
    m->allocations += second->allocations;
    m->refused += second->refused;
    m->joins += second->joins;
    m->joins_failed += second->joins_failed;
    m->gauges = second->gauges;
    if (m->gauges.queue < before.queue)
        m->gauges.queue = before.queue;
    if (m->gauges.oldest_wait_ms < before.oldest_wait_ms)
        m->gauges.oldest_wait_ms = before.oldest_wait_ms;
}

static void second_is_over(struct trends *t, const struct recent *recent)
{
    struct trend_point *point = &t->now;
    struct minute_figures allocations, joins;
    minute_read_seconds(&recent->allocations, t->second, 1, &allocations);
    minute_read_seconds(&recent->joins, t->second, 1, &joins);
    point->allocations = allocations.done;
    point->refused = allocations.failed;
    point->joins = joins.done;
    point->joins_failed = joins.failed;
    take_quantiles(point, recent, t->second, 1);
    keep(&t->rings[TREND_TEN_MINUTES], point);
    add_to_minute(t, point);
}

static void minute_is_over(struct trends *t, const struct recent *recent, int64_t minute)
{
    take_quantiles(&t->minute, recent, minute * MINUTE_SECONDS, MINUTE_SECONDS);
    keep(&t->rings[TREND_DAY], &t->minute);
    t->in_minute = false;
}

void trends_take(struct trends *t, const struct recent *recent, const struct trend_gauges *gauges,
                 int64_t now_us, int64_t wall_ms)
{
    int64_t second = now_us / US_PER_S;
    assert(second != t->second);
    if (t->second >= 0) {
        int64_t minute = t->second / MINUTE_SECONDS;
        second_is_over(t, recent);
        if (second / MINUTE_SECONDS != minute)
            minute_is_over(t, recent, minute);
    }
    t->second = second;
    t->now = (struct trend_point){.wall_ms = wall_ms, .gauges = *gauges};
}

size_t trends_count(const struct trends *t, enum trend_window window)
{
    const struct ring *ring = &t->rings[window];
    return ring->n < ring->cap ? ring->n : ring->cap;
}

const struct trend_point *trends_at(const struct trends *t, enum trend_window window, size_t i)
{
    const struct ring *ring = &t->rings[window];
    size_t n = trends_count(t, window);
    assert(i < n);
    return &ring->points[(ring->n - n + i) % ring->cap];
}

int64_t trends_step_ms(enum trend_window window)
{
    return window == TREND_DAY ? TREND_MINUTE_MS : TREND_SECOND_MS;
}

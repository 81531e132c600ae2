/* Trends: how the last ten minutes went, second by second, and the last day, minute by minute. Two
 * rings of points of a fixed size, in memory only: a start begins anew.
 *
 * A point is taken when its second is over. A second in which this process did not run has no
 * point, and nothing is made up for it: points have a time, and whoever draws them sees the gap.
 *
 * Owned by the service; on the loop's thread. */
#pragma once

#include "api/recent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TREND_SECONDS = 600, TREND_MINUTES = 1440 };
enum { TREND_SECOND_MS = 1000, TREND_MINUTE_MS = 60 * 1000 };

/* How things are at a moment. */
struct trend_gauges {
    int32_t queue; /* allocations in line */
    int64_t oldest_wait_ms;
    int32_t players;  /* who sit somewhere, or have a seat reserved */
    int32_t sessions; /* open matches */
    int32_t rooms;    /* open */
    int32_t servers;  /* that are not offline */
};

/* A second or a minute. */
struct trend_point {
    int64_t wall_ms; /* when it began */
    int64_t allocations;
    int64_t refused;
    int64_t p50_us; /* this and the next two: of allocations; 0 = there was none */
    int64_t p95_us;
    int64_t p99_us;
    int64_t joins;
    int64_t joins_failed;
    int64_t commit_p99_us; /* 0 = there was none */

    /* As they were when it began; of a minute: when its last second did, but for the queue, of
     * which that is the worst of its seconds. */
    struct trend_gauges gauges;
};

enum trend_window { TREND_TEN_MINUTES, TREND_DAY };

struct trends;

struct trends *trends_new(void);
void trends_free(struct trends *t); /* NULL is fine */

/* True when another second has begun since the last trends_take, which is then to be called. */
bool trends_due(const struct trends *t, int64_t now_us);

/* A second begins: makes the points that are over, from what is kept of the recent past. now_us is
 * monotonic, of the same clock as `recent`. */
void trends_take(struct trends *t, const struct recent *recent, const struct trend_gauges *gauges,
                 int64_t now_us, int64_t wall_ms);

/* How many points there are, and the i-th, oldest first. */
size_t trends_count(const struct trends *t, enum trend_window window);
const struct trend_point *trends_at(const struct trends *t, enum trend_window window, size_t i);

/* How long a point lasts. */
int64_t trends_step_ms(enum trend_window window);

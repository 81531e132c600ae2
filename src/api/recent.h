/* The recent past: how allocations went in the last minute, and the last refusals. Embedded in the
 * metrics; a zeroed struct is ready.
 *
 * The minute is a ring of one-second slots, each with a histogram whose buckets grow by an eighth,
 * so a quantile is at most that much too high. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    RECENT_SECONDS = 60,
    RECENT_BUCKETS = 8 * 29, /* up to 2^32 us */
    RECENT_REFUSALS = 20,
};

/* Allocations of the last RECENT_SECONDS. */
struct metrics_recent {
    double per_s; /* answered, well or not; over the time since the start when that is less */
    int64_t done;
    int64_t failed;
    int64_t p50_us; /* of those done; 0 when there is none */
    int64_t p95_us;
    int64_t p99_us;
};

/* One refused request. Ids are 0 where there is none, texts "". */
struct metrics_refusal {
    int64_t wall_ms;
    int32_t err;
    int32_t lobby;
    int32_t server;
    int64_t ticket;
    char chat[65];
    char region[16];
};

struct recent_slot {
    int64_t second; /* of the monotonic clock, plus 1; 0 = never used */
    int64_t done;
    int64_t failed;
    uint32_t counts[RECENT_BUCKETS]; /* of those done */
};

struct recent {
    int64_t since_second; /* of the first look at the clock, plus 1 */
    struct recent_slot slots[RECENT_SECONDS];
    struct metrics_refusal refusals[RECENT_REFUSALS];
    size_t n_refusals; /* ever */
};

/* The clock when counting began. */
void recent_init(struct recent *r, int64_t now_us);

void recent_allocated(struct recent *r, int64_t now_us, int64_t duration_us);
void recent_failed(struct recent *r, int64_t now_us);

void recent_refuse(struct recent *r, const struct metrics_refusal *refusal);

void recent_read(const struct recent *r, int64_t now_us, struct metrics_recent *ret);
size_t recent_refusals(const struct recent *r, struct metrics_refusal ret[RECENT_REFUSALS]);

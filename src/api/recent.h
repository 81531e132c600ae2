/* The recent past: how allocations went in the last minute, and the last refusals. Embedded in the
 * metrics.
 *
 * The minute is a ring of one-second slots. Each has a histogram whose buckets split every power of
 * two into eight, so a quantile is at most an eighth too high. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    RECENT_SECONDS = 60,
    RECENT_BUCKETS = 8 * 30, /* up to 2^32 us; longer ones are counted with the last */
    RECENT_REFUSALS = 20,
};

/* Allocations answered in the last RECENT_SECONDS. */
struct metrics_recent {
    double per_s; /* well or not; over the time since the start when that is shorter */
    int64_t done;
    int64_t failed;
    int64_t p50_us; /* of those done; 0 when there is none */
    int64_t p95_us;
    int64_t p99_us;
};

/* One refused request or failed ticket. Ids are 0 where there is none, texts "". */
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
    int64_t second; /* of the monotonic clock */
    int64_t done;
    int64_t failed;
    uint32_t counts[RECENT_BUCKETS]; /* of those done whose duration is known */
};

struct recent {
    int64_t since_us; /* monotonic: counting began */
    struct recent_slot slots[RECENT_SECONDS];
    struct metrics_refusal refusals[RECENT_REFUSALS];
    size_t n_refusals; /* ever */
};

void recent_init(struct recent *r, int64_t now_us);

/* duration_us < 0: not known. */
void recent_allocated(struct recent *r, int64_t now_us, int64_t duration_us);
void recent_failed(struct recent *r, int64_t now_us);
void recent_read(const struct recent *r, int64_t now_us, struct metrics_recent *ret);

/* Copied. */
void recent_refused(struct recent *r, const struct metrics_refusal *refusal);

/* Newest first; returns how many. */
size_t recent_refusals(const struct recent *r, struct metrics_refusal ret[RECENT_REFUSALS]);

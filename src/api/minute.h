/* A minute: how often something happened in each of the last seconds, well or not, and how long it
 * took. Embedded by whoever counts.
 *
 * It is a ring of one-second slots. Each has a histogram whose buckets split every power of two
 * into eight, so a quantile is at most an eighth too high. A few slots more than a minute has
 * seconds are kept, so that a second can still be read when the next ones have begun. */
#pragma once

#include <stdint.h>

enum {
    MINUTE_SECONDS = 60,
    MINUTE_SLOTS = 64,
    MINUTE_BUCKETS = 8 * 30, /* up to 2^32 us; longer ones are counted with the last */
};

/* Some seconds together. */
struct minute_figures {
    double per_s; /* well or not; over the time since the start when that is shorter */
    int64_t done;
    int64_t failed;
    int64_t p50_us; /* of those done; 0 when there is none */
    int64_t p95_us;
    int64_t p99_us;
};

struct minute_slot {
    int64_t second; /* of the monotonic clock */
    int64_t done;
    int64_t failed;
    uint32_t counts[MINUTE_BUCKETS]; /* of those done whose duration is known */
};

struct minute {
    int64_t since_us; /* monotonic: counting began */
    struct minute_slot slots[MINUTE_SLOTS];
};

void minute_init(struct minute *m, int64_t now_us);

/* duration_us < 0: not known. */
void minute_done(struct minute *m, int64_t now_us, int64_t duration_us);
void minute_failed(struct minute *m, int64_t now_us);

/* The last MINUTE_SECONDS, with the one that has begun. */
void minute_read(const struct minute *m, int64_t now_us, struct minute_figures *ret);

/* So many whole seconds of the monotonic clock from `first` on; those that are forgotten, or to
 * come, are empty. */
void minute_read_seconds(const struct minute *m, int64_t first, int64_t n,
                         struct minute_figures *ret);

/* The recent past: how allocations, joins and commits went in the last minute, why requests were
 * refused in it, and the last refusals. Embedded in the metrics. */
#pragma once

#include "api/minute.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { RECENT_REFUSALS = 20 };

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

/* Those of one second, by error as a positive number. */
struct recent_reasons {
    int64_t second; /* of the monotonic clock */
    uint32_t counts[ERR_ORDER_END];
};

struct recent {
    struct minute allocations; /* of matches, and of places for players */
    struct minute joins;       /* answers to players who wanted a seat in a room */
    struct minute commits;
    struct recent_reasons reasons[MINUTE_SECONDS];
    struct metrics_refusal refusals[RECENT_REFUSALS];
    size_t n_refusals; /* ever */
};

void recent_init(struct recent *r, int64_t now_us);

/* A request was refused or failed with that error. */
void recent_reason(struct recent *r, int64_t now_us, int err);

/* How often each was the reason in the last minute. */
void recent_reasons(const struct recent *r, int64_t now_us, int64_t ret[ERR_ORDER_END]);

/* Copied. */
void recent_refused(struct recent *r, const struct metrics_refusal *refusal);

/* Newest first; returns how many. */
size_t recent_refusals(const struct recent *r, struct metrics_refusal ret[RECENT_REFUSALS]);

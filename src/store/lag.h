/* Lag: since when the oldest batch that is not folded is durable. Embedded by a store; whoever
 * commits writes, anybody reads. */
#pragma once

#include "store/store.h"

#include <stdatomic.h>

struct lag {
    _Atomic int64_t last_seq; /* the newest durable batch … */
    _Atomic int64_t last_core_ms;
    _Atomic int64_t last_us;               /* … and when it became so (monotonic) */
    _Atomic int64_t waiting_since_core_ms; /* of the newest that found all before it folded */
};

void lag_init(struct lag *l, int64_t seq, int64_t core_ms);

/* A batch became durable; folded is the newest that is in the tables. */
void lag_committed(struct lag *l, int64_t seq, int64_t core_ms, int64_t folded);

int64_t lag_ms(const struct lag *l, int64_t folded, int64_t folded_core_ms);

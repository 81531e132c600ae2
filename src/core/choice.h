/* The choice of a host for a new server. Visible inside src/core only. */
#pragma once

#include "core/core.h"

struct fleet;
struct host;

enum {
    CHOICE_WHY_MAX = 256,
    CHOICE_RETRY_MS = 5 * 1000, /* about a heartbeat: worth asking again, if nobody knows better */
};

/* There is none. */
struct no_host {
    char why[CHOICE_WHY_MAX]; /* a clause */
    int64_t retry_ms;         /* when it is worth asking again: at least a second */
};

/* The least loaded healthy host in that region; `elsewhere`: or else in the next nearest where the
 * fleet may run. Hosts in except[] are not asked again. NULL with *ret when there is none. */
struct host *choose_host(const struct core *core, const struct fleet *fleet, int8_t region,
                         bool elsewhere, const int64_t *except, int n_except, struct no_host *ret);

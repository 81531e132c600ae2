/* The choice of a host for a new server. Visible inside src/core only. */
#pragma once

#include "core/core.h"

struct fleet;
struct host;

enum { CHOICE_WHY_MAX = 256 };

/* The least loaded healthy host in that region; `elsewhere`: or else in the next nearest where the
 * fleet may run. Hosts in except[] are not asked again. NULL with a sentence when there is none. */
struct host *choose_host(const struct core *core, const struct fleet *fleet, int8_t region,
                         bool elsewhere, const int64_t *except, int n_except,
                         char why[CHOICE_WHY_MAX]);

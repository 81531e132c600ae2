/* The choice of a host for a new server. Visible inside src/core only. */
#pragma once

#include "core/core.h"

struct fleet;
struct host;
struct region_order;
struct version;

enum {
    CHOICE_WHY_MAX = 320,
    CHOICE_RETRY_MS = 5 * 1000, /* about a heartbeat: worth asking again, if nobody knows better */
};

/* There is none. */
struct no_host {
    char why[CHOICE_WHY_MAX]; /* a clause */
    int64_t retry_ms;         /* when it is worth asking again: at least a second */
};

/* What is to be started, and where. */
struct choice {
    const struct fleet *fleet;
    const struct version *version;    /* NULL: nothing is known of it yet */
    const struct region_order *where; /* the first of these regions that has a host is taken */
    bool trial;            /* to find out whether a version that is quarantined works again */
    const int64_t *except; /* hosts that are not asked again */
    int n_except;
};

/* The least loaded healthy host, in the first of the regions that has one, on which that version
 * may be started. NULL with *ret when there is none. */
struct host *choose_host(const struct core *core, const struct choice *choice, struct no_host *ret);

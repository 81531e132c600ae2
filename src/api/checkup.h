/* Checkup: what is wrong with Muster and what to do about it, in words for whoever is woken up by
 * it. A pure function from facts to findings; gathering the facts is in checkup_look.c.
 *
 * A finding is critical when players cannot be served because of it, now or very soon; it is a
 * warning when something needs a hand. What nobody has set up yet is neither: it is a hint. */
#pragma once

#include "core/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHECKUP_FINDINGS_MAX = 64, /* what is found after these is only counted */
    CHECKUP_HINTS_MAX = 8,
    CHECKUP_BROKERS_MAX = 4,
    CHECKUP_PORTS_MAX = 4,
    CHECKUP_SENTENCE_MAX = 320,
};

struct checkup_broker {
    const char *name;
    bool connected;
    int64_t unsent;
};

struct checkup_certificate {
    const char *port;
    int64_t left_s; /* until it runs out; below 0: it has */
};

/* The servers of a fleet that registered, in one region. */
struct checkup_place {
    const char *region;
    struct view_group group;
};

struct checkup_fleet {
    const char *name;
    enum fleet_provider provider;
    const struct checkup_place *places; /* where there are servers; of PROVIDER_CHAT */
    size_t n_places;
    int32_t versions;         /* this and the next: of PROVIDER_AGENT */
    int32_t versions_enabled; /* … that players can join */
};

struct checkup_host {
    int64_t id;
    const char *name;
    int8_t region;
    const char *region_name;
    enum host_passed_over passed_over;
    int64_t quiet_ms; /* since its last heartbeat; -1 = there was none since the start */
    int64_t backoff_left_ms;
    const char *failed_why;
    float cpu_percent;
    float memory_percent;
};

/* A version that is closed in some region because its servers do not start. */
struct checkup_version {
    const char *fleet;
    const char *name;
    const char *reason;
};

struct checkup_facts {
    bool read_only;
    int64_t commit_under_way_ms; /* 0 = none is */
    int64_t commits;             /* in the last minute */
    double commit_p50_ms;
    double commit_p99_ms;
    int64_t fold_lag; /* batches */
    int64_t fold_lag_ms;
    int64_t disk_bytes; /* 0 = not known */
    int64_t disk_free_bytes;
    const char *cell;       /* the store is shared under this name; NULL = it is this node's own */
    int32_t standbys;       /* … by so many that are there */
    int32_t standbys_ready; /* … of whom so many could lead at once */
    char archives_missing[CHECKUP_SENTENCE_MAX]; /* a sentence; "" = none is */
    bool history_failing;                        /* its last lines could not be written */
    int64_t history_lost;                        /* lines since the start */

    struct checkup_broker brokers[CHECKUP_BROKERS_MAX];
    size_t n_brokers;
    int32_t results_owed;
    const char *cluster_away; /* a clause; NULL = it is in sight, or there is none */

    int64_t answered; /* requests of the last minute, well or not */
    int64_t unserved; /* … of which refused though nobody but us is to blame */
    int worst_err;    /* the most frequent reason of these … */
    int64_t worst_count;

    int32_t queue;
    int64_t queue_oldest_ms;

    struct checkup_certificate certificates[CHECKUP_PORTS_MAX];
    size_t n_certificates;

    const struct checkup_fleet *fleets; /* those that are configured */
    size_t n_fleets;
    const struct checkup_host *hosts; /* of agents */
    size_t n_hosts;
    const struct checkup_version *quarantined;
    size_t n_quarantined;
};

enum checkup_severity { CHECKUP_HINT, CHECKUP_WARNING, CHECKUP_CRITICAL };

struct checkup_finding {
    const char *code;
    enum checkup_severity severity;
    char sentence[CHECKUP_SENTENCE_MAX];
    const char *advice;
    char command[96]; /* one that shows more, or mends it */
    char page[48];    /* of the console */
};

struct checkup {
    enum checkup_severity worst; /* HINT = all is well */
    char sentence[2 * CHECKUP_SENTENCE_MAX];
    struct checkup_finding findings[CHECKUP_FINDINGS_MAX]; /* the worst first */
    size_t n_findings;
    size_t n_more; /* found, but not kept */
    struct checkup_finding hints[CHECKUP_HINTS_MAX];
    size_t n_hints;
    struct checkup_finding spare; /* what has no place above is written here */
};

/* Nothing in *ret points into facts. */
void checkup(const struct checkup_facts *facts, struct checkup *ret);

/* "healthy" "degraded" "broken" */
const char *checkup_status(const struct checkup *c);

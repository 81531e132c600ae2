/* Resources: the shapes of everything the HTTP API answers with, over core's views. */
#pragma once

#include "api/access.h"
#include "api/bus.h"
#include "api/merge.h"
#include "api/metrics.h"
#include "api/resource_insight.h"
#include "api/shape.h"
#include "core/view.h"
#include "store/store.h"

extern const struct shape region_shape;       /* struct view_region */
extern const struct shape fleet_shape;        /* struct fleet_answer */
extern const struct shape server_shape;       /* struct server_answer */
extern const struct shape session_shape;      /* struct session_answer */
extern const struct shape ticket_shape;       /* struct ticket_answer */
extern const struct shape why_shape;          /* struct why_answer */
extern const struct shape token_shape;        /* struct token_answer */
extern const struct shape made_token_shape;   /* struct token_answer, with its text */
extern const struct shape access_token_shape; /* struct access_answer */
extern const struct shape me_shape;           /* struct me_answer */
extern const struct shape audit_shape;        /* struct view_audit */
extern const struct shape status_shape;       /* struct status_answer */
extern const struct shape health_shape;       /* struct health_answer */
extern const struct shape ports_shape;        /* struct ports_answer */
extern const struct shape ready_shape;        /* struct ready_answer */

/* Every one, and those they consist of; closed by NULL. */
extern const struct shape *const shapes[];

struct why_answer {
    struct ticket_answer ticket;
    const char *sentence;
};

struct token_answer {
    struct view_token view;
    const char *text; /* the token itself: shown once, to whoever made it */
};

struct access_answer {
    const char *account;
    const struct str *scopes;
    size_t n_scopes;
    int64_t issued_wall_ms;
    int64_t expires_wall_ms;
    const char *text;
};

struct me_answer {
    const struct access_grant *who;
    const char *account;
    int64_t expires_wall_ms;
    const char *gamespace;
};

struct allocations_answer {
    double per_s;
    int64_t done;
    int64_t failed;
    double p50_ms; /* this and the next two: NaN when none was done */
    double p95_ms;
    double p99_ms;
};

/* Answers to players who wanted a seat. */
struct joins_answer {
    int64_t done;
    int64_t failed;
};

/* What the store is doing. */
struct storage_answer {
    double commit_p50_ms; /* this and the next: NaN when there was none */
    double commit_p99_ms;
    int64_t commits;
    int32_t batches_waiting;
    int64_t backlog_bytes;
    int64_t fold_lag; /* batches */
    struct store_figures figures;
};

/* How many hosts there are, by what is wrong with them, and what is in rooms. */
struct hosts_answer {
    int32_t count[HOST_PASSED_REASONS];
};

struct rooms_answer {
    int32_t starting;
    int32_t open;
    int32_t ending;
    int32_t reserved;
    int32_t taken;
};

/* Those who stand in line. */
struct queues_answer {
    int32_t entries;
    int32_t players;
    int64_t oldest_ms;
};

/* Lobbies now, and since the start of the process. */
struct lobbies_answer {
    int32_t loading;
    int32_t started;
    int64_t ever_started;
    int64_t ever_aborted;
    int32_t clients;
};

struct broker_answer {
    const char *name;
    bool connected;
    int64_t lag; /* -1 = it does not say */
    int64_t unsent;
};

struct status_answer {
    const char *version;
    int64_t started_wall_ms;
    int64_t uptime_s;
    struct checkup_answer health;
    const char *store;
    const char *config_digest;
    struct view_group group; /* all servers */
    struct core_counts counts;
    struct hosts_answer hosts;
    struct rooms_answer rooms;
    struct queues_answer queues;
    struct lobbies_answer lobbies;
    struct broker_answer brokers[BUSES_MAX];
    size_t n_brokers;
    struct allocations_answer allocations;
    struct joins_answer joins;
    struct storage_answer storage;
    struct view_region regions[REGION_CODES];
    size_t n_regions;
    struct metrics_refusal refusals[RECENT_REFUSALS];
    size_t n_refusals;
};

struct health_answer {
    const char *status;
};

struct ports_answer {
    const char *http;
    const char *server;
    const char *manager;
    const char *client;
};

struct ready_answer {
    const char *store;
    const char *config_digest;
    struct ports_answer ports;
};

/* Words for filters and schemas; closed by NULL. */
extern const char *const server_status_words[];
extern const char *const session_kind_words[];
extern const char *const provider_words[];
extern const char *const session_state_words[];
extern const char *const ticket_state_words[];
extern const char *const role_words[];

/* The inside of the metrics, shared by metrics.c, which counts, and scrape.c, which shows. */
#pragma once

#include "api/metrics.h"
#include "api/process.h"
#include "base/err.h"
#include "base/histogram.h"
#include "base/map.h"
#include "core/view.h"
#include "store/pipeline.h"

#include <stdbool.h>

enum metric {
#define M(id, type, name, labels, help, seed) METRIC_##id,
#include "api/metrics.def"
#undef M
    METRICS
};

/* Where tickets end. */
enum result { RESULT_DONE, RESULT_FAILED, RESULT_CANCELLED, RESULTS };

/* Why a ticket went on to the next server, in core's words. */
enum retry { RETRY_REFUSED, RETRY_TIMED_OUT, RETRY_DROPPED, RETRY_NOT_READY, RETRY_OTHER, RETRIES };
extern const char *const retry_names[RETRIES];

/* How long servers have been connected, as a distribution. */
enum { UPTIMES = 7 };
struct uptimes {
    int32_t counts[UPTIMES];
    int32_t servers;
    int64_t sum_ms;
};

/* Rooms that are not over, and the seats in them. */
enum room_look { LOOK_STARTING, LOOK_OPEN, LOOK_ENDING, LOOK_STATES };
struct room_figures {
    int32_t rooms[LOOK_STATES];
    int32_t reserved;
    int32_t taken;
};

/* Where spawns end. */
enum spawned { SPAWNED_OPEN, SPAWNED_FAILED, SPAWNED_TIMED_OUT, SPAWNED_GIVEN_UP, SPAWNED_ENDS };

/* How players were placed, in core's words. */
enum placed_how { HOW_REJOIN, HOW_FRIEND, HOW_ROOM, HOW_SPAWN, HOW_QUEUE, HOW_OTHER, HOWS };
extern const char *const how_names[HOWS];

/* What came of the wish to join friends. */
enum friend_join { JOIN_JOINED, JOIN_QUEUED, JOIN_NOT_FOUND, JOIN_UNAVAILABLE, FRIEND_JOINS };

enum queue_end { QUEUE_SERVED, QUEUE_ABANDONED, QUEUE_ENDS };

/* Places for players, of one fleet in one region. */
struct player_figures {
    uint64_t done[HOWS];
    uint64_t failed[ERR_ORDER_END];
    uint64_t friends[FRIEND_JOINS];
    uint64_t abandoned[ERR_ORDER_END];
    uint64_t moves;
    struct histogram durations;
    struct histogram waits[QUEUE_ENDS];
};

/* Lobbies of one fleet in one region. */
struct lobby_figures {
    uint64_t started;
    uint64_t aborted[LOBBY_CAUSES];
    uint64_t unallocated[ERR_ORDER_END]; /* … of which by LOBBY_CAUSE_ALLOCATION, by error */
    uint64_t players_asked;
    uint64_t players_started;
    struct histogram starts; /* from its server to the start */
    struct histogram wholes; /* from the request to it */
};

/* One fleet in one region. Made when something is first counted or seen there, kept for ever: what
 * was counted must not vanish. */
struct series {
    int32_t fleet_id; /* 0 = none */
    int8_t region;    /* -1 = none or several */
    uint64_t notes[NOTES];
    uint64_t requests;
    uint64_t results[RESULTS];
    uint64_t failed[ERR_ORDER_END]; /* by error, as a positive number */
    uint64_t refused[ERR_ORDER_END];
    uint64_t retries[RETRIES];
    uint64_t ended[END_REASONS];
    struct histogram durations[RESULTS];
    struct histogram acks;
    struct histogram readies;
    struct histogram chosen_load;
    struct histogram round_trip;
    struct uptimes uptimes; /* of the last look at all servers */
    struct uptimes looking; /* of the one under way */

    uint64_t joins[RESULTS]; /* tickets for rooms, this and the next two */
    uint64_t joins_failed[ERR_ORDER_END];
    struct histogram join_durations;
    uint64_t spawned[SPAWNED_ENDS];
    uint64_t rooms_ended[END_REASONS];
    uint64_t expired; /* reservations */
    struct histogram spawns;
    struct room_figures rooms; /* of the last look at all rooms */
    struct room_figures rooms_looking;
    struct player_figures players;
    struct lobby_figures lobbies;
};

/* At most a series for each fleet and region there can be, and one for what has neither. */
enum { SERIES_MAX = CORE_MAX_FLEETS * (REGION_CODES + 1) + 1 };

struct http_status {
    int status;
    uint64_t n;
};

struct http_operation {
    const char *name;
    struct histogram durations;
    struct http_status statuses[METRICS_STATUSES_MAX];
    size_t n_statuses;
};

/* Requests to agents of one kind. */
enum agent_result {
    AGENT_CALL_DONE,
    AGENT_CALL_REFUSED,
    AGENT_CALL_UNANSWERED,
    AGENT_CALL_RESULTS
};

struct agent_figures {
    const char *what;
    uint64_t results[AGENT_CALL_RESULTS];
    struct histogram durations;
};

/* The longest turn of the loop in each of the last six stretches of ten seconds. */
enum { LONGEST_SLOTS = 6, LONGEST_SLOT_US = 10000000 };
struct longest {
    int64_t slot;
    int64_t us;
};

struct metrics {
    int64_t started_wall_ms;
    struct metrics_sources sources;

    struct map by_place; /* map_pair(fleet, region) -> struct series */
    struct series **series;
    size_t n_series;
    struct series *nowhere; /* fleet 0, region -1 */
    struct series *last;    /* found last: allocations come in crowds */

    struct recent recent;
    int64_t stopped_ms;

    struct histogram commits;
    struct histogram batch_bytes;
    struct histogram batch_changes;
    struct histogram batch_effects;
    uint64_t commits_failed;
    int64_t submitted_us[PIPELINE_DEPTH_MAX]; /* monotonic, of those under way, oldest first */
    int n_submitted;
    int64_t committed_us; /* monotonic, of the last that succeeded; 0 = none did */

    struct map by_operation; /* address of the name -> struct http_operation */
    struct http_operation *operations[METRICS_OPERATIONS_MAX];
    size_t n_operations;

    struct agent_figures agent_calls[METRICS_AGENT_CALLS_MAX];
    size_t n_agent_calls;
    struct histogram event_batches; /* of agents */

    struct histogram turns;
    struct longest longest[LONGEST_SLOTS];

    uint64_t placed[ERR_ORDER_END]; /* answers to players, by error; 0 is a yes */
    int64_t room_looked_at;         /* id of the room that was looked at last; 0 = begin anew */
    int64_t looked_at;              /* id of the server that was looked at last; 0 = begin anew */
    int32_t look_each_tick;
    struct process_walk descriptors;
};

struct series *series_of(struct metrics *m, int32_t fleet_id, int8_t region);

/* NULL when no pipeline is watched. */
const struct core *metrics_core(const struct metrics *m);

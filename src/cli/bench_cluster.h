/* A stand-in for a Kubernetes API server with Agones in it, in a process of its own: lists,
 * watches, allocations and merge patches of GameServers in memory. It is far faster than a real
 * one, which keeps every write on disk, three times over; held to a rate it takes writes one after
 * the other at that rate. It speaks plain HTTP/1.1. Belongs to the benchmark that started it. */
#pragma once

#include "cli/bench.h"

#include <stdatomic.h>
#include <sys/types.h>

enum cluster_fleet_name {
    CLUSTER_SOLO,    /* the oldest game ends when there are too many, and a new server comes */
    CLUSTER_FRIENDS, /* games go on */
    CLUSTER_RAW,     /* nobody watches it */
    CLUSTER_FLEETS,
};
extern const char *const cluster_fleet_names[CLUSTER_FLEETS];

/* Shared with the stand-in. */
struct cluster_shared {
    _Atomic int64_t writes_per_s; /* 0 = as many as it can */
    _Atomic int64_t posts;        /* counted since the start: allocations, … */
    _Atomic int64_t allocated;    /* … that were given a GameServer */
    _Atomic int64_t patches;
    _Atomic int64_t conflicts;   /* … of which were refused with 409 */
    _Atomic int64_t other_calls; /* requests that it does not know */
};

struct cluster_plan {
    int servers[CLUSTER_FLEETS];
    int playing;      /* games of CLUSTER_SOLO at most */
    int object_bytes; /* of a GameServer's JSON, about */
};

/* Zeroed = not started. */
struct cluster {
    pid_t pid;
    char address[64];
    struct cluster_shared *shared;
};

/* False with b->why set. */
bool cluster_start(struct cluster *c, struct bench *b, const struct cluster_plan *plan);
void cluster_end(struct cluster *c);

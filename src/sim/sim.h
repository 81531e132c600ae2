/* The simulator: the real core and the real pipeline in a made-up world of game servers, chat
 * servers, a network and a disk, all driven by one random seed. Time is simulated, so an hour takes
 * well under a second, and the same seed gives the same run, event for event. */
#pragma once

#include "core/effect.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sim_options {
    uint64_t seed;
    int nodes;    /* 1 or 2; 0 = the seed decides */
    double hours; /* simulated time with faults; a quiet quarter of an hour follows */
    FILE *trace;  /* NULL, or where to write one line per thing that happens */
};

struct sim_result {
    uint64_t hash; /* of everything that happened */
    int64_t steps; /* core steps, each followed by a look at the invariants */
    int64_t simulated_ms;
    int32_t violations; /* 0 or 1: a run stops at the first */
    char why[256];      /* the broken invariant */
    int64_t at_ms;      /* when */

    /* What the run went through, so that a zero can be believed. */
    int64_t answers;
    int64_t successes;
    int64_t waited;                /* tickets that waited for servers to come back after a start */
    int64_t seats;                 /* in rooms, given to players */
    int64_t joined;                /* … of which they came to */
    int64_t prepared;              /* servers that a host began before their room was stored */
    int64_t prepared_in_vain;      /* … of which it ended by itself */
    int64_t sought;                /* allocations that were opened */
    int64_t lined_up;              /* … of which stood in line */
    int64_t served;                /* … and got a place from there */
    int64_t friends;               /* … found one where a friend is */
    int64_t parties;               /* … were for several */
    int64_t in_pods;               /* … had one in the cluster */
    int64_t results;               /* published */
    int64_t redelivered;           /* requests that a broker said again */
    int64_t routes;                /* tokens that a proxy was given while its server was in use */
    int64_t lobbies;               /* created */
    int64_t started;               /* … all had loaded and a server was there */
    int64_t moved;                 /* … how often one went to another server before its start */
    int64_t aborted[LOBBY_CAUSES]; /* … by enum lobby_cause */
    int64_t crashes;
    int64_t restores;
    int64_t failed_commits;
    int64_t takeovers;       /* how often a node began to lead a cell */
    int64_t silenced;        /* … one lost its lease */
    int64_t step_downs;      /* … one gave it back */
    int64_t unknown_commits; /* of which the cell had to be asked */
    int64_t fenced_commits;  /* of an older epoch, or an older connection */
    int64_t cuts;
    int64_t shown;     /* batches a reader of changes was shown */
    int64_t caught_up; /* … of which he learnt only after a restart */
};

void sim_run_seed(const struct sim_options *options, struct sim_result *ret);

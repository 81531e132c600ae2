/* A host that only says it has started what it was asked for, in a few large rooms: for benchmarks
 * in which nobody comes to a game server. Belongs to the benchmark. */
#pragma once

#include "cli/bench_child.h"
#include "cli/bench_rooms.h"

enum { BENCH_HOST_ROOMS = 4, BENCH_HOST_SEATS = 10000 };

struct bench_host {
    const struct served *served;
    int listening; /* -1 = not yet */
    char url[64];
    struct bench_players players;
    char rooms[BENCH_HOST_ROOMS][24];
    char servers[BENCH_HOST_ROOMS][24]; /* "" = not started yet */
    int64_t beats;
};

/* The fleet of its rooms in a configuration; what else it says follows. */
extern const char bench_host_fleet[];

/* Listens, and opens the rooms; its players have been made. Every one of these is false with b->why
 * set. */
bool bench_host_start(struct bench_host *h, struct bench *b);

/* To be called more often than Muster takes it for lost: before each run. */
bool bench_host_beat(struct bench_host *h, struct bench *b);
void bench_host_done(struct bench_host *h);

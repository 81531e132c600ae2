/* Lobbies under load: so many of them under way, each with its players, who are connected to the
 * client port, load at once and hear the start; and game servers that take every match at once and
 * end it when the last player has heard. All of them live in this process. Owned by the benchmark
 * that opened it. */
#pragma once

#include "cli/bench.h"
#include "cli/bench_child.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lobbies_plan {
    pid_t pid;          /* whose processor time counts */
    const char *server; /* addresses of the doors */
    const char *client;
    const char *http;  /* NULL: lobbies are asked for on `client`, with frames; see bench_hub.h */
    const char *token; /* with http */
    int players;       /* of a lobby */
    int lobbies;       /* under way */
    int servers;
    const char *(*token_of)(void *user, int player); /* his access token */
    void *user;
};

struct lobbies_result {
    double seconds;
    uint64_t started;
    uint64_t failed;
    double cpu_us; /* of the process under load */
    struct thread_cpu threads;
    double own_cpu_us;
    struct durations latency; /* from asking for a lobby to the last of its players' START */
};

struct lobbies;

/* Connects and greets everybody. */
bool lobbies_open(struct lobbies **ret, struct bench *b, const struct lobbies_plan *plan);
void lobbies_close(struct lobbies *l); /* NULL is fine */

/* Keeps the lobbies under way for warm_up_s and then seconds, of which ret tells; waits for the
 * last of them to end. */
bool lobbies_run(struct lobbies *l, struct bench *b, double warm_up_s, double seconds,
                 struct lobbies_result *ret);

/* Frames in place of HTTP: a lobby is asked for with its number of players and their first account,
 * and answered with its id, each padded to about the size of what it stands for. */
enum {
    LOBBIES_ASK = 0x7001,    /* i32 first account, i32 players */
    LOBBIES_ANSWER = 0x7002, /* i32 lobby */
    LOBBIES_ASK_SIZE = 1200,
    LOBBIES_ANSWER_SIZE = 2000,
};

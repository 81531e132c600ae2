/* What the benchmarks of rooms share: players with access tokens, and the real agent. */
#pragma once

#include "cli/bench.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct served;

enum { BENCH_ROOM_TOKEN_MAX = 512 };

/* Zeroed = none. */
struct bench_players {
    char (*tokens)[BENCH_ROOM_TOKEN_MAX]; /* of scope game: one of each player, then the next */
    size_t n;                             /* tokens */
    char host[BENCH_ROOM_TOKEN_MAX];      /* of scope game_host */
};

/* Signs their tokens, so many for each, with the secret of a Muster's data folder. */
bool bench_players_make(struct bench_players *p, struct bench *b, const char *data, size_t n,
                        size_t tokens_each);

/* The same for players whose accounts are the numbers 1 to n, one token each. */
bool bench_accounts_make(struct bench_players *p, struct bench *b, const char *data, size_t n);
void bench_players_done(struct bench_players *p);

/* The i-th token, over and over. */
const char *bench_player(const struct bench_players *p, int64_t i);

/* Starts `muster agent` for that Muster, in folder/agent; it ends its servers when it is ended. */
bool bench_agent_start(struct bench *b, const struct served *s, const struct bench_players *p,
                       pid_t *ret);

/* Where players come in to a game server without a game: each connects over TCP, shows "LOBBY
 * ACCOUNT TOKEN" in one line, and hears "welcome" or "refused: WHY" in another. Embedded in
 * game_server.c; used from one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GAME_DOOR_VISITORS = 256, GAME_DOOR_LINE = 512, GAME_DOOR_TOKEN = 256 };

struct game_door_visitor {
    int fd; /* -1 = the place is free */
    uint32_t serial;
    size_t len;
    char line[GAME_DOOR_LINE];
    bool asked;
};

struct game_door {
    int epoll; /* readable when there is something to do; -1 = closed */
    int listener;
    uint32_t serial;
    struct game_door_visitor visitors[GAME_DOOR_VISITORS];

    /* Somebody wants to enter; game_door_answer is due, now or later. */
    void (*knock)(void *user, uint64_t visitor, int32_t lobby, int32_t account, const char *token);
    void *user;
};

/* Opens on a bound socket, which stays the caller's. False with errno. */
bool game_door_open(struct game_door *d, int bound);
void game_door_close(struct game_door *d); /* a closed one is fine */

/* Lets in and reads whoever is there, without waiting. */
void game_door_turn(struct game_door *d);

/* Answers and closes. A visitor who has gone is passed over. */
void game_door_answer(struct game_door *d, uint64_t visitor, bool yes, const char *why);

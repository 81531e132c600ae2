/* Players: what the handlers of the player API (play*.c) share, and what the agents' door needs of
 * it: the access token of a player who has joined. Nothing is owned here. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

struct call;
struct rest;

enum { PLAY_WHY_MAX = 224 };

/* What a game server is told of a player who came with his key: his access token and the words of
 * its scopes. Both start empty; play_joined_done frees them. */
struct play_joined {
    struct buf token;
    struct buf scopes; /* "game,profile": a comma list */
};

/* Opens `sealed`, the token of a seat (view_seat_of_key, view_room_seat), and, when both
 * extend_token and extend_scopes are given (not empty), extends it: the same account and gamespace,
 * its own scopes and those of extend_token that extend_scopes (a comma list, or "*" for all) asks
 * for. A repeat gives the same token. To be called before EVENT_AGENT is stepped, because a seat
 * stays reserved when this fails. 0, or an error with a sentence: ERR_BAD_ACCESS_TOKEN,
 * ERR_NO_SIGNING_KEY (the player's token was issued elsewhere, so nobody here may sign another). */
int play_joined(struct rest *r, struct str sealed, struct str extend_token,
                struct str extend_scopes, struct play_joined *ret, char why[PLAY_WHY_MAX]);
void play_joined_done(struct play_joined *j);

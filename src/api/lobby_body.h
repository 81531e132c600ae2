/* Who is to be in a lobby, as a request says it: teams of players, and groups of those who came
 * together. Owns nothing: texts are copied into the arena it is given. */
#pragma once

#include "base/arena.h"
#include "core/event.h"

enum { LOBBY_WHERE_MAX = 80, LOBBY_WHY_MAX = 280 };

struct lobby_body {
    struct lobby_entry players[LOBBY_PLAYERS_MAX];
    size_t n_players;
    char where[LOBBY_WHERE_MAX]; /* after a refusal: "teams[0][3].account" */
    char why[LOBBY_WHY_MAX];     /* … and a sentence */
};

/* Each team a JSON list of {"account", "name", "slot"}, each group one of accounts. A name that is
 * missing is the account, a slot the place in its team; who is in no group is one of his own. 0, or
 * ERR_BAD_ARGUMENT with where and why. */
int lobby_body_read(struct lobby_body *b, struct arena *arena, const struct str *teams,
                    size_t n_teams, const struct str *groups, size_t n_groups);

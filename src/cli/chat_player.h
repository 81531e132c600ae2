/* A player on Muster's client port, without a game: he says who he is and what he has loaded. What
 * he hears is for whoever owns him, which embeds him; used from one thread. */
#pragma once

#include "cli/chat_link.h"
#include "cli/client.h"

#include <stdbool.h>
#include <stdint.h>

struct chat_player {
    struct chat_link link; /* fd -1 = not connected */
    int32_t account;
};

/* Connects and says who he is; Muster's answer comes as a message. NULL, or why not, as
 * chat_link_open. */
const char *chat_player_open(struct chat_player *p, int32_t account, const char *token,
                             const char *address, const struct chat_tls_wish *tls, int timeout_ms);
void chat_player_close(struct chat_player *p); /* a closed one is fine */

/* False when Muster does not take it; the next message says why. */
bool chat_player_load(struct chat_player *p, int32_t lobby, bool loaded);

enum { CHAT_PLAYER_TOKEN_MAX = 2048 };

/* An access token for that player, made by a Muster of whom the client is an administrator. */
enum client_result chat_player_token(struct client *client, int32_t account,
                                     char ret[CHAT_PLAYER_TOKEN_MAX], struct client_answer *answer);

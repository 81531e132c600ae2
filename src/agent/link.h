/* Links: the ZeroMQ PAIR sockets on which game servers speak to us, one for each. They carry whole
 * messages and know nothing of what is in them. Owned by the agent; used on the loop's thread.
 *
 * ZeroMQ's descriptor is edge-like: it tells of a change once, and any send or receive may swallow
 * the news of another. So after each of them a link is looked at until there is nothing left, at
 * the end of the turn, before the loop waits again. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct links;
struct game_link;

enum {
    LINK_WHY_MAX = 256,
    LINK_BYTES_MAX = 256 * 1024,   /* a longer message costs its sender the connection */
    LINK_QUEUE_MAX = 64,           /* messages that wait in ZeroMQ, each way */
    LINK_UNSENT_MAX = 1024 * 1024, /* bytes kept for a peer that is away or does not read */
    LINK_TURN_MAX = 32,            /* messages of one link in one turn */
};

/* bytes are valid until it returns; a message of several parts is handed over as an empty one. It
 * may close the link. */
typedef void game_link_message(void *user, struct str bytes);

/* NULL with why, a clause, when ZeroMQ is not there. */
struct links *links_open(struct loop *loop, char why[LINK_WHY_MAX]);

/* Every link must have been closed. NULL is fine. */
void links_close(struct links *ls);

/* Hands on what has come and sends what can be sent. Called at the end of each turn. */
void links_turn(struct links *ls);

/* Binds the path: the game server connects to it. listener, when it is not -1, is a socket that
 * listens there already, and is taken, whatever happens. name is for the log. NULL with why. */
struct game_link *links_bind(struct links *ls, const char *path, int listener, int64_t name,
                             game_link_message *message, void *user, char why[LINK_WHY_MAX]);

/* Nothing is handed over any more; what was not sent is lost. The path stays, and
 * may be bound again. NULL is fine. */
void game_link_close(struct game_link *l);

/* Nothing is handed over until game_link_release: what comes waits in ZeroMQ, and is handed over by
 * that call. */
void game_link_hold(struct game_link *l);
void game_link_release(struct game_link *l);

/* Sends, now or when the peer is there. False when too much waits for it already. */
bool game_link_send(struct game_link *l, struct str bytes);

/* The same, if the peer can take it now. */
bool game_link_send_now(struct game_link *l, struct str bytes);

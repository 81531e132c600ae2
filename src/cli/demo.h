/* What `muster dev` runs: Muster, six game servers in three regions, a chat server that asks for a
 * match every second, an agent that starts arenas, and players who come and go there; with --lobby
 * a matchmaker with players of its own; and which commands to try with them. Embedded in dev.c. */
#pragma once

#include "cli/children.h"

#include <stdio.h>

enum {
    DEMO_GAMES = 6,
    DEMO_SERVE = 0, /* places among the children; the game servers stand between */
    DEMO_CHAT = DEMO_GAMES + 1,
    DEMO_AGENT,
    DEMO_BOTS,
    DEMO_MATCHMAKER,
    DEMO_ADDRESS_MAX = 64,
    DEMO_COMMAND_MAX = 512,
    DEMO_LINK_MAX = 1024,
};

struct demo {
    /* Settings. */
    const char *data;
    bool any_port;
    int64_t game_port;
    bool lobbies; /* with a matchmaker */
    bool faults;  /* everybody misbehaves now and then, and processes are killed */

    struct children children;
    char http[DEMO_ADDRESS_MAX]; /* addresses, once Muster has said them */
    char server[DEMO_ADDRESS_MAX];
    char manager[DEMO_ADDRESS_MAX];
    char client[DEMO_ADDRESS_MAX];
    char console[DEMO_LINK_MAX];    /* a link that opens the console, logged in; "" = none yet */
    bool ready;                     /* Muster has said them since it was last started */
    int64_t game_ports[DEMO_GAMES]; /* by game server */
    struct json *stats;             /* what the matchmaker counts; NULL = nothing yet */
    struct buf summary;             /* what it said at its end */
    int registered[DEMO_GAMES + 1]; /* numbers of the game servers by child; 0 = not yet */
    int64_t lobby;                  /* a number nobody has used, for commands to try */
    bool rooms;                     /* the arena is there, so there is an agent, too */
};

enum demo_start { DEMO_STARTED, DEMO_STOPPED, DEMO_FAILED };

/* Starts all of it in order, and returns when the game servers are registered and the chat server
 * asks. `ready` is called before the chat server starts. DEMO_FAILED: why has been said through the
 * children's on_note. */
enum demo_start demo_start(struct demo *d, void (*ready)(void *user), void *user);

/* Looks at a line that child i printed; the demo learns addresses and numbers from them. False when
 * it is not for people. */
bool demo_line(struct demo *d, int i, const char *line);

/* "chat: " …: what stands before the lines of child i; game servers say themselves who they are. */
const char *demo_prefix(int i);

/* Starts child i again: Muster on the same ports, or a game server at the same address. */
enum demo_start demo_restart(struct demo *d, int i);

/* The chat server and the players of rooms end without Muster; those who did are started again. */
void demo_revive(struct demo *d);

/* Ends all of it, in order. False when the matchmaker found something wrong. */
bool demo_end(struct demo *d);
void demo_done(struct demo *d);

/* Commands to try, as they must be typed for this Muster; each returns dst. */
const char *demo_console(const struct demo *d, char dst[DEMO_COMMAND_MAX]);
const char *demo_allocate(const struct demo *d, char dst[DEMO_COMMAND_MAX]);
const char *demo_why(const struct demo *d, char dst[DEMO_COMMAND_MAX]);
const char *demo_drain(const struct demo *d, char dst[DEMO_COMMAND_MAX]);
const char *demo_room(const struct demo *d, char dst[DEMO_COMMAND_MAX]);

/* What runs and what can be tried, in a few paragraphs. */
void demo_print_hints(const struct demo *d, FILE *to);

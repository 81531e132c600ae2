/* The players of the demo matchmaker: each is connected to the client port, loads when he is in a
 * lobby, enters its match at the game server, and may misbehave as his script says. What they hear
 * goes into the ledger. Embedded in matchmaker.c; used from one thread.
 *
 *   away ──connects──▶ waiting ──is in a lobby──▶ loading ──it starts──▶ playing ──▶ waiting
 */
#pragma once

#include "cli/chat_player.h"
#include "cli/lobby_ledger.h"
#include "net/nodes.h"

#include <poll.h>

/* What a player does wrong in one lobby. */
enum match_script {
    SCRIPT_NONE,
    SCRIPT_NEVER_LOAD, /* connected, and never says that he has loaded */
    SCRIPT_BLINK,      /* leaves, and is back soon enough */
    SCRIPT_QUIT,       /* leaves, and is back too late */
    SCRIPT_TWICE,      /* connects a second time while he is connected */
    SCRIPT_WAVER,      /* has loaded, then has not, then has */
    SCRIPT_CRASH,      /* leaves when it starts, and comes back to hear it again */
    MATCH_SCRIPTS,
};

struct match_player {
    int32_t account;
    char *token;
    struct nodes nodes;          /* which of them he is at */
    bool sent_on;                /* to another one, which he goes to at once */
    struct chat_player links[2]; /* the other one is replaced by it, until Muster closes that */
    int at;                      /* which one counts */
    bool greeted;                /* Muster has welcomed him */
    int32_t lobby;               /* he is in, or in its match; 0 = free */
    int32_t entered;             /* the lobby whose match he has entered */
    int visit;                   /* his connection to a game server; -1 = none */
    enum match_script script;
    int64_t since_ms; /* not welcomed since then; 0 = he is */

    int64_t load_due_ms; /* INT64_MAX = not due; likewise the others */
    int64_t unload_due_ms;
    int64_t leave_due_ms;
    int64_t come_due_ms;
    int64_t twice_due_ms;
};

struct match_crowd {
    struct nodes nodes; /* client ports, as each player begins with them */
    struct chat_tls_wish tls;
    bool enter; /* at the game server, which is `muster game-server --door` */
    struct ledger *ledger;
    struct match_player *players;
    int n;
    uint64_t luck;
    bool unreachable; /* said already */
    int64_t quit_ms;  /* how long one who quits is away */
    uint64_t entered;
    uint64_t refused;

    /* One line about what happened. */
    void (*say)(void *user, const char *line);
    void *user;
};

enum { MATCH_FDS = 3 }; /* for each player */

void match_crowd_add(struct match_crowd *c, int32_t account, const char *token);
void match_crowd_done(struct match_crowd *c);

/* MATCH_FDS for each player, and what to do with them when some are ready. */
void match_crowd_fds(const struct match_crowd *c, struct pollfd *ret);
void match_crowd_heard(struct match_crowd *c, const struct pollfd *fds);

/* Does what is due; when the next thing is (clock_monotonic_ms). */
int64_t match_crowd_act(struct match_crowd *c);

/* Everybody who is away comes now, and nobody misbehaves any more. */
void match_crowd_gather(struct match_crowd *c);
bool match_crowd_is_there(const struct match_crowd *c);

/* n players who are connected and free, by chance; false when there are not so many. */
bool match_crowd_pick(struct match_crowd *c, int n, struct match_player **ret);

/* He is in that lobby, and does this wrong in it. */
void match_crowd_seat(struct match_crowd *c, struct match_player *p, int32_t lobby,
                      enum match_script script);

/* That lobby is over: whoever was in it is free. */
void match_crowd_release(struct match_crowd *c, int32_t lobby);

/* A number from 0 to below n, good enough for who does what when. */
int64_t match_crowd_roll(struct match_crowd *c, int64_t n);

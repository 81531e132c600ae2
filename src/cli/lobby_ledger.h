/* The books of whoever makes lobbies and has their players: what was asked for, what each player
 * heard, what Muster says of it; and whether that can all be true. It does no I/O and knows no
 * clock. Owned by the matchmaker.
 *
 * Every lobby must start or be aborted, never both and never neither, and each of its players must
 * hear which. Who was not connected all the time may have missed it, with two exceptions: that a
 * lobby was aborted is owed to those who were away by then; and while its match lasts, its start is
 * said on every connection. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LEDGER_PLAYERS_MAX = 16,
    LEDGER_TEXT_MAX = 160,
    LEDGER_FLYING_MS = 1000, /* so long news of an abort may be under way to who then leaves */
};

/* As Muster says it; LOADING until it has said anything. */
enum ledger_state { LEDGER_LOADING, LEDGER_STARTED, LEDGER_ENDED, LEDGER_ABORTED, LEDGER_STATES };

struct ledger_player {
    int32_t account;
    bool heard_start;
    bool heard_abort;
    bool requeued;    /* … and was queued again, as he heard */
    bool was_away;    /* at some time while it was open */
    bool owed;        /* was away, for long enough, when others heard that it was aborted */
    bool told_here;   /* that it started, on the connection he has */
    bool promised;    /* as Muster says it lasts: that must be there for him to read */
    bool turned_away; /* at the game server, by Muster's word */
    int64_t since_ms; /* not connected since then; 0 = he is connected */
};

struct ledger_lobby {
    int32_t id;
    bool requeue;
    bool learned; /* from its players: its creation was not answered */
    int64_t created_ms;
    int64_t started_ms; /* when the first player heard it; 0 = nobody did */
    struct ledger_player players[LEDGER_PLAYERS_MAX];
    int n_players;
    char match[LEDGER_TEXT_MAX];  /* token and address, as first heard; "" = not started */
    char reason[LEDGER_TEXT_MAX]; /* of the abort, as heard or as Muster says */
    char wrong[LEDGER_TEXT_MAX];  /* the first contradiction while it was going on; "" = none */

    enum ledger_state state;
    char cause[16]; /* "" = none */
    char queue[16]; /* where its groups stand; "" = not asked */
    bool open;      /* Muster has not said that it is over */
};

struct ledger {
    struct ledger_lobby **lobbies; /* as they were created */
    size_t n;
    size_t cap;
};

void ledger_done(struct ledger *l);

/* A lobby that was created. One that was heard of before it was known is completed. */
struct ledger_lobby *ledger_add(struct ledger *l, int32_t id, bool requeue, int64_t now_ms);
struct ledger_lobby *ledger_find(const struct ledger *l, int32_t id); /* or NULL */

/* He is in it; since_ms as in struct ledger_player. Twice is once. */
void ledger_add_player(struct ledger_lobby *b, int32_t account, int64_t since_ms);

/* His connection is gone; heard_all: whatever was said on it has been entered. */
void ledger_left(struct ledger *l, int32_t account, bool heard_all, int64_t now_ms);
/* Muster has welcomed him, on a connection on which he has heard nothing yet. */
void ledger_came(struct ledger *l, int32_t account);

/* What he heard. A lobby that nobody knew is taken up: its creation was not answered. */
void ledger_heard_start(struct ledger *l, int32_t id, int32_t account, struct str ip, int32_t port,
                        struct str token, int64_t now_ms);
void ledger_heard_abort(struct ledger *l, int32_t id, int32_t account, struct str reason,
                        bool requeued, int64_t now_ms);

/* Muster did not let him into its match, though he showed its token; which is wrong if it says
 * later that the match lasts. Not for a token whose time was over. */
void ledger_turned_away(struct ledger *l, int32_t id, int32_t account);

/* What Muster says; cause, reason and queue may be empty. known: it knows the lobby at all. Whoever
 * was welcomed has been entered before Muster was asked; then, if a match lasts that lasted when
 * Muster was asked before, its start has been said on his connection. */
struct ledger_news {
    bool known;
    struct str state;
    struct str cause;
    struct str reason;
    struct str queue;
    bool requeue;
};
void ledger_said(const struct ledger *l, struct ledger_lobby *b, const struct ledger_news *news);

/* How many lobbies are in that state. */
size_t ledger_count(const struct ledger *l, enum ledger_state state);

/* What is wrong with it, as a clause ("player 7 heard …"); NULL = nothing. Only to be asked when
 * nothing is to come any more. */
const char *ledger_wrong(const struct ledger_lobby *b, char dst[LEDGER_TEXT_MAX]);

/* Appends the number of lobbies in each state, of aborts by their reason, and one line for each
 * lobby with which something is wrong. Returns how many those are. */
size_t ledger_put_summary(struct buf *out, const struct ledger *l);

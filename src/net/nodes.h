/* The nodes of Muster that a client knows: which one is asked now, which one is next when that one
 * fails or stands by for another, and how long to wait when none of them was of use. A node is what
 * a person wrote, "host:port" of a chat port or the URL of an HTTP port. Embedded in whoever asks,
 * which owns nothing by it.
 *
 * A round is each node of the list once, and a few leaders that standbys named on the way; within
 * one the next is asked at once. While a standby answers, those that did not are asked in every
 * fourth round only, and nobody follows it to one of them: they may take seconds to be silent, and
 * it may not know yet that its leader is gone.
 *
 * Whom to believe: a node of the list may name anybody, for it could
 * as well pass on what it is told; one that was only named may name nodes of the list alone, and
 * nobody leads from https to http. So what goes along with a request (an access token) is shown to
 * nobody but those who were configured, and those whom one of them named. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NODES_MAX = 8,
    NODES_TEXT_MAX = 272,
    NODES_HOPS_MAX = 3,         /* leaders that are believed in one round */
    NODES_WAIT_FIRST_MS = 200,  /* after the first round that failed; doubled with each further */
    NODES_WAIT_STANDBY_MS = 800 /* at most, while a standby answers: somebody is about to lead */
};

struct nodes {
    char list[NODES_MAX][NODES_TEXT_MAX];
    size_t n;
    int64_t wait_max_ms; /* set by whoever owns it: NODES_WAIT_FIRST_MS at least */

    char now[NODES_TEXT_MAX]; /* is asked */
    bool is_named;            /* … and is not of the list: a standby named it */
    size_t at;                /* of the list: `now`, or whoever named it */
    size_t tried;             /* of the list, in this round */
    int hops;                 /* leaders that were believed in this round */
    int rounds;               /* that failed in a row */
    uint32_t silent;          /* of the list, by bits: did not answer since somebody last served */
    bool stood_by;            /* somebody in this round said that he does … */
    bool in_cell;             /* … or ever: there are several, whatever the list says */
};

/* ── the list ──────────────────────────────────────────────────────────────────────────────── */

/* Reads texts with commas between them and begins with the first. 0, or -1: then why is a clause
 * about what is wrong ("there are more than 8"). */
enum { NODES_WHY_MAX = 320 };
int nodes_read_addresses(struct nodes *n, const char *text, char why[NODES_WHY_MAX]);

/* The same for URLs: "host:port" is http; slashes at the end are dropped. */
int nodes_read_urls(struct nodes *n, const char *text, char why[NODES_WHY_MAX]);

/* True when there is another one to ask, or was said to be. */
bool nodes_are_several(const struct nodes *n);

/* ── what came of asking ───────────────────────────────────────────────────────────────────── */

/* It did what was asked. */
void nodes_succeed(struct nodes *n);

/* It did not; the next of the list is it now. stands_by: it answered that it is not the leader.
 * Returns how long to wait first, somewhere between half of it and all; 0 = not at all. */
int64_t nodes_fail(struct nodes *n, bool stands_by);

/* It sent us to this URL, of whose path nothing is kept; or said in its refusal where the leader
 * is. False when that is not to be believed, or not said: then it has failed. */
bool nodes_follow_url(struct nodes *n, const char *location);
bool nodes_follow_sentence(struct nodes *n, struct str sentence);

/* ── what a standby's chat port says ───────────────────────────────────────────────────────── */

/* True for the refusal of a node that does not lead, with *leader where it says the leader is, or
 * "" when nobody leads. */
bool nodes_is_standby(struct str sentence, struct str *leader);

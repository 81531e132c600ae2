/* The follower: a standby's thread. It loads the cell, follows its journal, keeps the node's row
 * and watches the lease; when nobody renews it, it takes it and has the core that goes on.
 *
 *   LOADING ──▶ FOLLOWING ◀──▶ AWAY       from any: FAILED
 *                   └──lease taken, all of the journal applied──▶ LEADS
 *
 * Owned by whoever started it; ends with follower_take or follower_stop. */
#pragma once

#include "core/core.h"
#include "store/cell.h"
#include "store/digests.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct follower;

enum follower_state {
    FOLLOWER_LOADING,
    FOLLOWER_FOLLOWING,
    FOLLOWER_AWAY, /* the database does not answer */
    FOLLOWER_LEADS,
    FOLLOWER_FAILED, /* it cannot go on: why is a sentence */
};

struct follower_view {
    enum follower_state state;
    int64_t seq;      /* the newest batch it has applied */
    int64_t head_seq; /* … and the newest there was when it last looked */
    int64_t epoch;
    struct cell_node leader;
    bool leader_known;
    int64_t leader_left_ms; /* so long it counts as known, should it not be heard again */
    char why[256];          /* AWAY, FAILED */
};

/* What c and core point to must live until it ends; the secret is copied. `changed` is called on
 * its thread when something of the view other than numbers of batches, or what is deployed,
 * changed, and must only wake the loop. For hold_off_ms it does not take the lease unless nobody
 * else is there (after a step-down), and says that it is not ready; no longer than until another
 * leads. */
struct follower *follower_start(const struct cell_config *c, const struct core_config *core,
                                const uint8_t secret[CORE_SECRET_SIZE], int64_t hold_off_ms,
                                void (*changed)(void *user), void *user);

/* Any thread, this and the next three. */
void follower_look(struct follower *f, struct follower_view *ret);

/* The nodes of the cell as the table had them when it last looked; returns how many, at most max.
 */
size_t follower_nodes(struct follower *f, struct cell_seen_node *ret, size_t max);

/* The digests of all deployments of the state it has, each once. Returns how many there are; of
 * them the first max are in ret. */
enum { FOLLOWER_DIGEST = DIGEST_SIZE };
size_t follower_deployments(struct follower *f, uint8_t (*ret)[FOLLOWER_DIGEST], size_t max);

/* What its row says: whether this node could lead at once; until then it could not. A node that is
 * not ready leaves the lease to those that are, for lease_ms, and takes it at once when there are
 * none. */
void follower_set_ready(struct follower *f, bool ready);

/* After FOLLOWER_LEADS, which does not end in any other way: everything up to the head is loaded.
 * The core is the caller's from now on. Until now the lease was renewed; the rest of its time is
 * the caller's to go on with, and is there in any case but one: when it could not be renewed or was
 * taken by somebody else, then term.lease does not hold. Ends the thread and frees f. */
void follower_take(struct follower *f, struct core **ret_core, struct store_tip *ret_tip,
                   struct cell_term *ret_term);

/* Instead of follower_take; NULL is fine. Gives back the lease and removes the node's row, as far
 * as the database answers soon. */
void follower_stop(struct follower *f);

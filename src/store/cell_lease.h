/* The lease and the nodes of a cell as they stand in PostgreSQL: each call is one statement, so
 * what it says is of one moment. What it means for this node is lease.h's to judge. Nothing is
 * owned; the connection is the caller's. Each returns 0, or ERR_IO or ERR_FORMAT with a sentence;
 * after ERR_IO ask pg_lost(). */
#pragma once

#include "store/cell.h"
#include "store/libpq.h"

/* What stands there now. */
struct cell_lease_seen {
    struct lease_row row;
    struct cell_node leader; /* of row.holder; id 0 = nobody */
    int64_t head_seq;        /* the newest batch of the journal */
};

/* Once for a connection, before the others. */
int cell_lease_prepare(struct pg *pg, struct why *why);

int cell_lease_read(struct pg *pg, struct cell_lease_seen *ret, struct why *why);

/* Takes it, if it stands as `seen` does still. From then on nobody can write with an older epoch:
 * the head of the journal is given to the new one in the same transaction, so a batch of the old
 * leader's is either before this moment or refused. *ret_epoch 0: somebody else was faster. */
int cell_lease_take(struct pg *pg, const struct cell_node *self, const struct lease_row *seen,
                    int64_t *ret_epoch, struct why *why);

/* *ret_ours false: it is somebody else's by now. */
int cell_lease_renew(struct pg *pg, int64_t node, int64_t epoch, bool *ret_ours, struct why *why);

/* Others may have it at once, and hear so. Nothing happens when it is not ours any more. */
int cell_lease_give_back(struct pg *pg, int64_t node, int64_t epoch, struct why *why);

/* The node's own row: that it is there, what it has, whether it could lead. Rows of nodes that
 * were not heard for a day are removed on the way. */
int cell_node_say(struct pg *pg, const struct cell_node *self, int64_t seq, bool ready,
                  struct why *why);

/* The row of a node that ends in order. */
int cell_node_leave(struct pg *pg, int64_t node, struct why *why);

/* At most max, by name; *ret_n says how many. */
int cell_nodes_read(struct pg *pg, struct cell_seen_node *ret, size_t max, size_t *ret_n,
                    struct why *why);

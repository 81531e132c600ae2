/* The keeper: the thread of the leader of a cell that renews the lease, keeps the node's row, looks
 * who else is there, and wakes the standbys when there are new batches. Embedded by the store of a
 * cell, which starts it last and stops it first. */
#pragma once

#include "store/bell.h"
#include "store/cell.h"
#include "store/dbfile.h"
#include "store/libpq.h"
#include "store/tenure.h"

struct keeper {
    const struct cell_config *cell;
    struct tenure *tenure;
    const _Atomic int64_t *last_seq;

    /* The thread's own. */
    struct lease lease;
    struct pg *pg; /* NULL = none */
    struct complaint complaint;
    int64_t renew_ms; /* when each is next, on clock_boot_ms() */
    int64_t say_ms;
    int64_t wake_ms;
    int64_t try_ms; /* to connect */

    _Atomic bool news; /* batches that the standbys were not told of */
    _Atomic bool giving_back;
    struct bell bell;
    pthread_t thread;
    bool started;

    pthread_mutex_t view_lock; /* guards what follows */
    struct cell_seen_node nodes[CELL_NODES_MAX];
    size_t n_nodes;
};

/* last_seq: the newest durable batch. What is pointed to must outlive it. 0 or ERR_NO_MEMORY. */
int keeper_start(struct keeper *k, const struct cell_config *cell, const struct cell_term *term,
                 struct tenure *tenure, const _Atomic int64_t *last_seq);

/* Ends the thread; of no more use than to be closed then. Ends the tenure, too, and lets others
 * have the lease at once if PostgreSQL answers. */
void keeper_give_back(struct keeper *k);
void keeper_close(struct keeper *k);

/* Any thread, these two. There are new batches. */
void keeper_notice(struct keeper *k);
void keeper_view(struct keeper *k, struct cell_view *ret);

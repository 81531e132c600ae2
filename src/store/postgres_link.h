/* Link: the connection on which the leader of a cell writes its batches, and the batches that are
 * on their way there. One thread at a time. Embedded by the store of a cell.
 *
 *            connected, and the head is ours
 *     AWAY ────────────────────────────────▶ SENDING ──answered──▶ durable
 *       ▲                                       │
 *       └────lost, late, warned, or nothing─────┘
 *
 * Who claims the head gives it a writer that was never there before, and so waits for what an
 * earlier connection had begun and shuts it out: only after that is it known where the journal
 * ends, and a batch that is not there can never come by itself any more. So it is sent again then,
 * and never before. Docs: decisions/0044. */
#pragma once

#include "base/buf.h"
#include "store/dbfile.h"
#include "store/libpq.h"
#include "store/tenure.h"

enum { LINK_DEPTH = 4 };

/* A batch on its way. */
struct link_batch {
    int64_t seq;
    int64_t core_ms;
    int64_t wall_ms;
    size_t len;
    struct buf changes; /* until it is durable: it may have to be sent once more */
    bool sent;          /* on this connection */
    bool refused;       /* it never will be durable */
    int ignored;        /* how often it was answered with nothing */
    int64_t begun_us;
    int64_t waits_ms; /* since when it is the oldest that was sent */
};

struct postgres_link {
    const struct cell_config *cell;
    struct tenure *tenure;
    struct pg *pg; /* NULL = none */
    int64_t writer;
    struct store_tip tip; /* the newest batch that is known to be durable */
    struct link_batch batches[LINK_DEPTH];
    int first;
    int n;
    int64_t try_ms; /* not before (monotonic) */
    struct complaint complaint;
};

/* Everything up to tip is there, and nothing else. 0, or ERR_IO or ERR_FORMAT with a sentence. */
int link_open(struct postgres_link *l, const struct cell_config *cell, struct tenure *tenure,
              const struct store_tip *tip, struct why *why);
void link_close(struct postgres_link *l);

/* As the store's begin and end. What cannot be begun ends with a failure. *ret: the batch that
 * ended, until the next call. */
void link_begin(struct postgres_link *l, const struct store_batch *batch);
bool link_end(struct postgres_link *l, int wake_fd, int *ret_result, const struct link_batch **ret);

/* Nothing is on its way. Afterwards nobody but this connection can add to the journal of our
 * epoch, and *ret is where it ends. */
int link_tip(struct postgres_link *l, struct store_tip *ret);

/* A node that stands by: it reads the cell into a core, follows the journal, watches the lease, and
 * takes it when nobody renews it. What it knows of the lease it knows from lease.c alone. */
#include "sim/world.h"

#include "base/err.h"
#include "base/plant.h"
#include "store/latest.h"

#include <inttypes.h>

enum { ANSWER_MS = 2000 }; /* then it asks anew, and hears the old answer no more */

static void ask(struct node *n, struct errand *e)
{
    n->asked = e->number;
    n->asked_ms = e->sent_ms;
    errand_send(n->w, e);
}

void watcher_stop(struct node *n)
{
    core_free(n->core);
    n->core = NULL;
    n->asked = 0;
    n->taken = false;
}

void watcher_start(struct node *n, int64_t hold_off_ms)
{
    watcher_stop(n);
    n->life++;
    n->hold_off_ms = node_ms(n) + hold_off_ms;
    lease_init(&n->lease, n->index + 1, n->w->cell.lease_ms);
    (void)node_after(n, 0, HAPPENS_WATCH, n->life);
}

/* It had the lease, and it ran out before everything was read. */
static void let_go(struct node *n)
{
    n->taken = false;
    lease_lost(&n->lease);
}

static void look(struct node *n)
{
    if (n->asked && node_ms(n) - n->asked_ms < ANSWER_MS)
        return;
    if (n->taken && !node_holds(n))
        let_go(n);
    ask(n, errand_new(n, n->core ? CELL_WATCH : CELL_LOAD));
}

void watcher_wake(struct node *n)
{
    (void)node_after(n, lease_watch_ms(&n->lease), HAPPENS_WATCH, n->life);
    look(n);
}

void watcher_notified(struct node *n)
{
    look(n);
}

/* ── following ─────────────────────────────────────────────────────────────────────────────── */

static int feed(void *user, const struct change *change)
{
    return core_load(user, change);
}

/* The journal as far as it went when it was asked for. */
struct slice {
    struct node *n;
    int64_t end;
};

static int follow_batch(void *user, const struct store_batch *batch)
{
    const struct slice *slice = user;
    struct node *n = slice->n;
    if (batch->seq != n->tip.seq + 1 || batch->seq > slice->end)
        return 0;
    int err = changes_each(batch->changes, batch->len, feed, n->core);
    if (err)
        world_wrong(n->w, "I5: batch %" PRId64 " cannot be read: %s", batch->seq, err_code(err));
    n->tip = (struct store_tip){batch->seq, batch->core_ms, batch->wall_ms};
    n->heard = true;
    n->heard_ms = node_ms(n);
    return err;
}

/* What is missing may have been folded meanwhile: then it reads everything. */
static void follow(struct node *n, int64_t end)
{
    struct slice slice = {n, end};
    (void)store_history(n->w->store, INT64_MAX, follow_batch, &slice);
    if (n->tip.seq >= end)
        return;
    watcher_stop(n);
}

/* ── the lease ─────────────────────────────────────────────────────────────────────────────── */

static void try_to_take(struct node *n, const struct lease_row *row)
{
    struct errand *e = errand_new(n, CELL_TAKE);
    e->row = *row;
    e->writer = ++n->w->cell.writers;
    ask(n, e);
}

static void hear_watch(struct node *n, const struct errand *e)
{
    bool taken = n->taken;
    follow(n, e->tip.seq);
    if (taken && n->core) {
        if (node_holds(n))
            node_lead(n);
        else
            let_go(n);
    } else if (taken) {
        n->taken = true; /* everything is read anew */
    } else if (lease_watch(&n->lease, &e->row, node_ms(n)) && n->core &&
               node_ms(n) >= n->hold_off_ms) {
        try_to_take(n, &e->row);
    }
}

static void hear_taken(struct node *n, const struct errand *e)
{
    if (e->epoch == 0)
        return;
    lease_taken(&n->lease, e->epoch, PLANTED(lease_from_answer) ? node_ms(n) : e->sent_ms);
    n->writer = e->writer;
    n->taken = true;
    world_trace(n->w, "cell   node %d has the lease, epoch %" PRId64, n->index, e->epoch);
    look(n);
}

void watcher_hear(struct node *n, struct errand *e)
{
    if (e->number != n->asked)
        return;
    n->asked = 0;
    switch (e->verb) {
    case CELL_LOAD:
        n->core = e->core;
        n->tip = e->tip;
        n->heard = false;
        n->configured = e->configured;
        e->core = NULL;
        look(n);
        break;
    case CELL_WATCH:
        hear_watch(n, e);
        break;
    case CELL_TAKE:
        hear_taken(n, e);
        break;
    default:
        break;
    }
}

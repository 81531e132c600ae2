/* How a node leads its cell. Its batches go over one connection, several at once. When one is not
 * answered that connection is given up, and a new one claims the head: after that it is known what
 * is stored, and what is not is sent again, as store/postgres_link.c does it. It renews its lease,
 * and gives it back when it steps down. */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/plant.h"

#include <inttypes.h>
#include <string.h>

enum {
    RETRY_MS = 50,
    IGNORED_MAX = 3,
    STEP_DOWN_MS = 5000,
    HOLD_OFF_LEASES = 2,
};

/* ── batches ───────────────────────────────────────────────────────────────────────────────── */

static void send_batch(struct node *n, const struct node_commit *c)
{
    struct errand *e = errand_new(n, CELL_COMMIT);
    uint8_t *changes = xmalloc(c->batch.len + 1);
    if (c->batch.len > 0)
        memcpy(changes, c->batch.changes, c->batch.len);
    e->batch = c->batch;
    e->batch.changes = changes;
    e->before_ms = c->before_ms;
    e->reign = n->reign;
    errand_send(n->w, e);
    node_after(n, n->w->cell.lease_ms / 2, HAPPENS_GIVE_UP, e->line)->conn = (conn_id)c->batch.seq;
}

void leader_submit(struct node *n)
{
    if (n->writes)
        send_batch(n, &n->commits[n->n_commits - 1]);
    if (!n->dies_in_commit)
        return;
    n->dies_in_commit = false;
    (void)node_after(n, random_between(&n->w->random, 0, 6), HAPPENS_CRASH, n->life);
}

static void claim_after(struct node *n, int64_t delay_ms)
{
    n->link.line++;
    n->writes = false;
    (void)node_after(n, delay_ms, HAPPENS_CLAIM, n->link.line);
}

static void drop_connection(struct node *n)
{
    claim_after(n, RETRY_MS);
}

void leader_gives_up(struct node *n, int64_t line, int64_t seq)
{
    bool waits = line == n->link.line && n->n_commits > 0 && n->commits[0].batch.seq <= seq;
    if (!waits || node_is_fenced(n))
        return;
    n->w->result->unknown_commits += n->n_commits;
    drop_connection(n);
}

/* A claim that is not answered is made again, over another connection. */
void leader_claims(struct node *n, int64_t line)
{
    if (line != n->link.line || n->writes || node_is_fenced(n))
        return;
    claim_after(n, n->w->cell.lease_ms / 4);
    errand_send(n->w, errand_new(n, CELL_CLAIM));
}

/* Nothing of ours can be added any more but over this connection. */
static void hear_claimed(struct node *n, const struct errand *e)
{
    if (e->refused) {
        lease_lost(&n->lease);
        (void)node_is_fenced(n);
        return;
    }
    n->writer = e->writer;
    n->link.resolved_line = e->line;
    if (!PLANTED(blind_retry))
        n->tip = e->tip;
    for (int i = 0; i < n->n_commits; i++) {
        if (n->commits[i].batch.seq > n->tip.seq)
            send_batch(n, &n->commits[i]);
    }
    n->writes = true;
    while (n->n_commits > 0 && n->commits[0].batch.seq <= n->tip.seq) {
        (void)node_oldest(n);
        node_committed(n, 0);
    }
}

/* Nothing was done, because the head is not this connection's: it is another node's, or a claim of
 * ours came late. Who claims it will know. */
static void hear_ignored(struct node *n)
{
    drop_connection(n);
    if (++n->ignored < IGNORED_MAX)
        return;
    lease_lost(&n->lease);
    (void)node_is_fenced(n);
}

/* The batch was not stored, for sure, and so are those behind it not. */
static void hear_failed(struct node *n)
{
    drop_connection(n);
    for (int i = n->n_commits; i > 0; i--) {
        (void)node_oldest(n);
        node_committed(n, ERR_IO);
    }
}

static void hear_commit(struct node *n, const struct errand *e)
{
    if (e->refused) {
        hear_ignored(n);
    } else if (e->err) {
        hear_failed(n);
    } else {
        n->ignored = 0;
        n->tip = (struct store_tip){e->batch.seq, e->batch.core_ms, e->batch.wall_ms};
        (void)node_oldest(n);
        node_committed(n, 0);
    }
}

/* ── the lease ─────────────────────────────────────────────────────────────────────────────── */

/* Whoever keeps the lease hears it, before or after others find that it has run out. */
static void hear_renewed(struct node *n, const struct errand *e)
{
    if (e->refused)
        lease_lost(&n->lease);
    else if (n->lease.held)
        lease_renewed(&n->lease, PLANTED(lease_from_answer) ? node_ms(n) : e->sent_ms);
    (void)node_is_fenced(n);
}

void leader_hear(struct node *n, const struct errand *e)
{
    if (e->verb == CELL_RENEW)
        hear_renewed(n, e);
    else if (e->line != n->link.line || node_is_fenced(n))
        return; /* that connection was given up */
    else if (e->verb == CELL_COMMIT)
        hear_commit(n, e);
    else if (e->verb == CELL_CLAIM)
        hear_claimed(n, e);
}

void leader_renew(struct node *n)
{
    int64_t lease_ms = n->w->cell.lease_ms;
    if (node_is_fenced(n))
        return;
    errand_send(n->w, errand_new(n, CELL_RENEW));
    if (n->stops_in_renewal)
        node_stop(n, random_between(&n->w->random, lease_ms / 2, 5 * lease_ms));
    n->stops_in_renewal = false;
    (void)node_after(n, lease_renew_ms(&n->lease), HAPPENS_RENEW, n->reign);
}

void leader_step_down(struct node *n)
{
    if (!n->steps_down_ms)
        n->steps_down_ms = n->w->now_ms;
}

/* Nothing is taken in any more; when all that was is stored, others may have the lease at once. */
void leader_end(struct node *n)
{
    struct world *w = n->w;
    pipeline_flush(n->pipeline, node_ms(n), node_wall_ms(n));
    if (pipeline_busy(n->pipeline) && w->now_ms - n->steps_down_ms < STEP_DOWN_MS)
        return;
    if (pipeline_busy(n->pipeline)) {
        node_crash(n);
        return;
    }
    w->result->step_downs++;
    struct errand *e = errand_new(n, CELL_GIVE_BACK);
    node_falls_silent(n, HOLD_OFF_LEASES * w->cell.lease_ms);
    errand_send(w, e);
}

/* Errands, and the line that each node has to the cell: late, cut, cut in one direction, losing
 * what goes over it. What a node gave up may still arrive. */
#include "sim/world.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdlib.h>

/* ── the line ──────────────────────────────────────────────────────────────────────────────── */

/* What is decided waits for so long before it is told. */
void link_holds_up(const struct node *n, int64_t until_ms)
{
    struct world *w = n->w;
    until_ms += w->cell.lease_ms; /* it waits for an answer, claims the head, and sends again */
    if (n == w->leader && w->disk_slow_until_ms < until_ms)
        w->disk_slow_until_ms = until_ms;
}

void link_cut(struct node *n, int64_t length_ms, bool loses, bool one_way)
{
    n->link.cut_until_ms = n->w->now_ms + length_ms;
    n->link.cut_loses = loses;
    n->link.cut_one_way = one_way;
    link_holds_up(n, n->link.cut_until_ms);
}

bool link_is_cut(const struct node *n)
{
    return n->w->now_ms < n->link.cut_until_ms;
}

/* … for an errand on that way. */
static bool is_closed(const struct node *n, const struct errand *e)
{
    return link_is_cut(n) && !(e->back && n->link.cut_one_way);
}

bool link_is_lossy(const struct node *n)
{
    return n->w->now_ms < n->link.lossy_until_ms;
}

int64_t link_delay_ms(const struct node *n)
{
    struct random *r = &n->w->random;
    if (n->w->now_ms < n->link.slow_until_ms)
        return random_between(r, 50, 3000);
    return random_chance(r, 2) ? random_between(r, 20, 400) : random_between(r, 0, 2);
}

/* ── errands ───────────────────────────────────────────────────────────────────────────────── */

struct errand *errand_new(struct node *n, enum cell_verb verb)
{
    struct errand *e = xcalloc(1, sizeof(*e));
    *e = (struct errand){
        .verb = verb,
        .node = n->index,
        .life = n->life,
        .number = ++n->errands,
        .sent_ms = node_ms(n),
        .epoch = n->lease.epoch,
        .writer = n->writer,
        .line = n->link.line,
    };
    return e;
}

void errand_free(struct errand *e)
{
    if (!e)
        return;
    free((void *)e->batch.changes);
    core_free(e->core);
    free(e);
}

/* It was granted, and it takes most of its time, or more, until that is heard. */
static int64_t grant_late(struct node *n)
{
    struct random *r = &n->w->random;
    int64_t lease_ms = n->w->cell.lease_ms;
    n->link.grants_late = false;
    bool loses = random_chance(r, 50);
    link_cut(n, random_between(r, 2 * lease_ms, 5 * lease_ms), loses, true);
    return random_between(r, lease_ms / 5, lease_ms * 3 / 2);
}

/* Commits go one after the other over one connection. */
void errand_send(struct world *w, struct errand *e)
{
    struct node *n = &w->nodes[e->node];
    int64_t *last_ms = e->back ? &n->link.to_node_ms : &n->link.to_cell_ms;
    bool late = e->verb == CELL_RENEW && e->back && n->link.grants_late;
    int64_t at_ms = w->now_ms + (late ? grant_late(n) : link_delay_ms(n));
    if (e->verb == CELL_COMMIT) {
        at_ms = at_ms > *last_ms ? at_ms : *last_ms;
        *last_ms = at_ms;
    }
    struct happening *h = world_after(w, at_ms - w->now_ms, HAPPENS_ERRAND);
    h->node = e->node;
    h->errand = e;
}

bool errand_waits(const struct world *w, struct happening *h)
{
    const struct node *n = &w->nodes[h->node];
    if (!is_closed(n, h->errand) || n->link.cut_loses)
        return false;
    h->at_ms = n->link.cut_until_ms;
    return true;
}

/* One that goes over a connection that lost another before it is lost too. */
static bool is_lost(const struct node *n, const struct errand *e)
{
    const struct cell_link *link = &n->link;
    if (e->verb == CELL_COMMIT && e->line <= link->lost_line)
        return true;
    if (e->verb == CELL_COMMIT && (e->back ? link->loses_answer : link->loses_request))
        return true;
    return is_closed(n, e) || (link_is_lossy(n) && random_chance(&n->w->random, e->back ? 30 : 10));
}

/* Often the other end hears of a broken connection before its patience ends. */
static void lose(struct node *n, const struct errand *e)
{
    struct cell_link *link = &n->link;
    world_trace(n->w, "cell   errand %" PRId64 " of node %d is lost, %s", e->number, n->index,
                e->back ? "done" : "not done");
    if (e->verb != CELL_COMMIT)
        return;
    link->loses_answer = link->loses_answer && !e->back;
    link->loses_request = link->loses_request && e->back;
    link->lost_line = e->line > link->lost_line ? e->line : link->lost_line;
    if (random_chance(&n->w->random, 50))
        node_after(n, 1, HAPPENS_GIVE_UP, e->line)->conn = (conn_id)e->batch.seq;
}

void errand_arrive(struct world *w, struct happening *h)
{
    struct errand *e = h->errand;
    struct node *n = &w->nodes[e->node];
    if (is_lost(n, e)) {
        lose(n, e);
        return;
    }
    if (e->back) {
        if (e->life == n->life && !n->down)
            node_hear(n, e);
        return;
    }
    cell_run(w, e);
    e->back = true;
    if (e->unsaid) {
        lose(n, e);
        return;
    }
    h->errand = NULL;
    errand_send(w, e);
}

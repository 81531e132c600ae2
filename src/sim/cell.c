/* The cell, and what must hold of it: only who has the newest epoch writes, a
 * batch once and in its place (I8); only who has the lease speaks; and when somebody can lead,
 * somebody does. */
#include "sim/world.h"

#include "base/err.h"
#include "base/plant.h"
#include "core/view.h"
#include "store/memory.h"

#include <inttypes.h>
#include <string.h>

enum {
    LOOK_MS = 1000,
    SETTLE_MS = 8 * 1000, /* some errands, each of which may have a slow moment */
    AHEAD_MS = 60 * 1000, /* what a batch may take on its way, and clocks that run fast */
};

static const uint8_t secret[CORE_SECRET_SIZE] = "a fixed secret, for simulations";

void cell_init(struct world *w)
{
    static const int64_t leases_ms[] = {2000, 2000, 3000, 5000, 10 * 1000};
    w->cell = (struct cell){.lease_ms = leases_ms[random_between(&w->random, 0, 4)]};
    world_after(w, LOOK_MS, HAPPENS_CELL);
}

/* ── what it does ──────────────────────────────────────────────────────────────────────────── */

static void judge_appended(struct world *w, const struct errand *e)
{
    if (e->epoch != w->cell.lease.epoch)
        world_wrong(w,
                    "I8: node %d writes batch %" PRId64 " in epoch %" PRId64
                    ", and the newest is %" PRId64,
                    e->node, e->batch.seq, e->epoch, w->cell.lease.epoch);
    else if (e->line < w->nodes[e->node].link.resolved_line)
        world_wrong(w, "I8: batch %" PRId64 " of node %d, which it has given up, is written",
                    e->batch.seq, e->node);
}

/* Whose turn it is to lead, and what his clocks are set to, shortens nobody's time. A node that saw
 * nothing of its predecessor has only the wall clocks to go by. */
static void judge_time(struct world *w, const struct errand *e)
{
    struct cell *c = &w->cell;
    int64_t passed_ms = e->batch.core_ms - c->core_ms;
    int64_t went_by_ms = w->now_ms - c->stored_ms;
    if (c->stored_ms > 0 && w->nodes[e->node].heard && passed_ms > went_by_ms + AHEAD_MS)
        world_wrong(w, "I6: node %d took %" PRId64 " ms off every deadline", e->node,
                    passed_ms - went_by_ms);
    c->core_ms = e->batch.core_ms;
    c->stored_ms = w->now_ms;
}

/* Who wrote it may be gone: then nobody hears of it. */
static void appended(struct world *w, const struct errand *e)
{
    judge_appended(w, e);
    judge_time(w, e);
    plane_stored(w, &e->batch, e->before_ms);
    if (w->leader && w->leader->reign == e->reign)
        return;
    plane_told(w, INT64_MAX);
    shadow_rooms_crashed(w);
}

/* The head moves from n-1 to n in our epoch and by our hand, or not at all. */
static void commit(struct world *w, struct errand *e)
{
    struct store_tip tip = {0};
    bool ours = e->epoch == w->cell.epoch && e->writer == w->cell.writer;
    if (!ours && !PLANTED(unfenced_commit)) {
        e->refused = true;
        w->result->fenced_commits++;
        return;
    }
    bool failing = w->now_ms < w->disk_fails_until_ms;
    store_memory_fail(w->store, failing ? w->disk_mode : STORE_MEMORY_WORKS);
    (void)store_tip(w->store, &tip);
    int64_t before = tip.seq;
    e->err = store_commit(w->store, &e->batch);
    store_memory_fail(w->store, STORE_MEMORY_WORKS);
    (void)store_tip(w->store, &tip);
    if (tip.seq == before)
        return;
    e->unsaid = e->err != 0;
    appended(w, e);
}

static void claim(struct world *w, struct errand *e)
{
    struct cell *c = &w->cell;
    e->refused = e->epoch != c->epoch;
    if (e->refused)
        return;
    c->writer = e->writer = ++c->writers;
    (void)store_tip(w->store, &e->tip);
}

static bool is_holder(const struct world *w, const struct errand *e)
{
    const struct lease_row *row = &w->cell.lease;
    return row->holder == w->nodes[e->node].lease.node && row->epoch == e->epoch;
}

static void renew(struct world *w, struct errand *e)
{
    e->refused = !is_holder(w, e);
    if (e->refused)
        return;
    w->cell.lease.beat++;
    w->cell.moved_ms = w->now_ms;
}

/* From now on nobody writes in an older epoch. */
static void take(struct world *w, struct errand *e)
{
    struct cell *c = &w->cell;
    e->epoch = 0;
    if (c->lease.epoch != e->row.epoch || c->lease.beat != e->row.beat)
        return;
    c->lease.epoch++;
    c->lease.beat++;
    c->lease.holder = w->nodes[e->node].lease.node;
    c->moved_ms = w->now_ms;
    c->epoch = e->epoch = c->lease.epoch;
    c->writer = e->writer;
}

/* The others hear of it at once, if they can be reached. */
static void give_back(struct world *w, struct errand *e)
{
    if (!is_holder(w, e))
        return;
    w->cell.lease.holder = 0;
    w->cell.lease.beat++;
    w->cell.moved_ms = w->now_ms;
    for (int i = 0; i < w->n_nodes; i++) {
        struct node *n = &w->nodes[i];
        if (i != e->node && !link_is_cut(n) && !link_is_lossy(n))
            (void)node_after(n, link_delay_ms(n), HAPPENS_NOTIFY, n->life);
    }
}

static int feed(void *user, const struct change *change)
{
    return core_load(user, change);
}

static void load(struct world *w, struct errand *e)
{
    e->core = core_new(&w->config, secret);
    e->configured = w->configured;
    e->err = store_load(w->store, feed, e->core, &e->tip);
    if (e->err)
        world_wrong(w, "I5: what was stored cannot be loaded: %s", err_code(e->err));
}

void cell_run(struct world *w, struct errand *e)
{
    switch (e->verb) {
    case CELL_COMMIT:
        commit(w, e);
        break;
    case CELL_CLAIM:
        claim(w, e);
        break;
    case CELL_RENEW:
        renew(w, e);
        break;
    case CELL_TAKE:
        take(w, e);
        break;
    case CELL_GIVE_BACK:
        give_back(w, e);
        break;
    case CELL_LOAD:
        load(w, e);
        break;
    case CELL_WATCH:
        e->row = w->cell.lease;
        (void)store_tip(w->store, &e->tip);
        break;
    }
    world_mix(w, (uint64_t)e->verb << 56 ^ (uint64_t)e->epoch << 8 ^ (uint64_t)e->number << 24);
}

/* ── the store of whoever leads ────────────────────────────────────────────────────────────── */

static bool reaches(const struct node *n)
{
    return !link_is_cut(n) && !(link_is_lossy(n) && random_chance(&n->w->random, 30));
}

static int cell_load(struct store *s, store_sink *sink, void *user, struct store_tip *ret)
{
    struct node *n = container_of(s, struct node, store);
    return reaches(n) ? store_load(n->w->store, sink, user, ret) : ERR_IO;
}

/* On a connection of its own, which takes the pen: what is still on its way over an older one
 * comes too late. */
static int cell_tip(struct store *s, struct store_tip *ret)
{
    struct node *n = container_of(s, struct node, store);
    struct cell *c = &n->w->cell;
    if (!reaches(n))
        return ERR_IO;
    if (c->epoch != n->lease.epoch) {
        lease_lost(&n->lease);
        return ERR_IO;
    }
    c->writer = n->writer = ++c->writers;
    if (!reaches(n))
        return ERR_IO; /* the answer got lost */
    n->link.resolved_line = ++n->link.line;
    n->writes = true;
    if (!PLANTED(blind_retry))
        (void)store_tip(n->w->store, &n->tip);
    *ret = n->tip;
    return 0;
}

/* Commits are begun with errands. */
static int cell_commit(struct store *s, const struct store_batch *batch)
{
    (void)s;
    (void)batch;
    return ERR_IO;
}

void cell_open(struct node *n, int depth)
{
    n->ops = (struct store_ops){
        .load = cell_load, .commit = cell_commit, .tip = cell_tip, .depth = depth};
    n->store = (struct store){&n->ops};
}

/* ── what must hold ────────────────────────────────────────────────────────────────────────── */

void cell_judge_voice(const struct node *n)
{
    struct world *w = n->w;
    if (w->n_nodes == 1)
        return;
    if (!node_holds(n))
        world_wrong(w, "I8: node %d speaks, and its lease has run out", n->index);
    for (int i = 0; i < w->n_nodes; i++) {
        if (&w->nodes[i] != n && node_holds(&w->nodes[i]))
            world_wrong(w, "I8: node %d speaks while node %d has the lease", n->index, i);
    }
}

/* The same objects are there, and core counts them alike. */
static bool are_alike(const struct core *a, const struct core *b)
{
    struct core_counts counts_a;
    struct core_counts counts_b;
    memset(&counts_a, 0, sizeof(counts_a));
    memset(&counts_b, 0, sizeof(counts_b));
    core_count(a, &counts_a);
    core_count(b, &counts_b);
    if (memcmp(&counts_a, &counts_b, sizeof(counts_a)) != 0)
        return false;
    for (int kind = 0; kind < ROW_KINDS; kind++) {
        int64_t id = 0;
        do {
            int64_t next = core_next(a, (enum row_kind)kind, id);
            if (next != core_next(b, (enum row_kind)kind, id))
                return false;
            id = next;
        } while (id != 0);
    }
    return true;
}

/* What it has followed, row by row, is what is stored. */
static void judge_followed(struct node *n)
{
    struct world *w = n->w;
    struct store_tip tip = {0};
    struct core *core = core_new(&w->config, secret);
    int64_t age_ms = node_tip_age_ms(n);
    int64_t written_ms = age_ms >= 0 ? node_wall_ms(n) - age_ms : n->tip.wall_ms;
    int64_t core_ms = core_resume_ms(n->tip.core_ms, written_ms, node_wall_ms(n));
    int err = store_load(w->store, feed, core, &tip);
    if (!err)
        err = core_loaded(core, tip.seq, (struct instant){core_ms, node_wall_ms(n)});
    if (tip.seq != n->tip.seq)
        world_wrong(w, "I5: node %d leads with batch %" PRId64 ", and the cell has %" PRId64,
                    n->index, n->tip.seq, tip.seq);
    else if (err ||
             (n->configured == w->configured && !are_alike(core, pipeline_core(n->pipeline))))
        world_wrong(w, "I5: node %d leads with something else than what is stored", n->index);
    core_free(core);
}

void cell_judge_start(struct node *n)
{
    struct world *w = n->w;
    judge_followed(n);
    for (int i = 0; i < w->n_nodes; i++) {
        if (&w->nodes[i] != n && node_holds(&w->nodes[i]))
            world_wrong(w, "I8: node %d leads while node %d has the lease", n->index, i);
    }
}

/* Nothing keeps it from leading, now. */
static bool is_able(const struct node *n)
{
    const struct world *w = n->w;
    bool line = !link_is_cut(n) && !link_is_lossy(n) && w->now_ms >= n->link.slow_until_ms;
    return line && !n->down && !node_is_stopped(n) && !n->steps_down_ms &&
           (n->core || n->pipeline) && node_ms(n) >= n->hold_off_ms;
}

/* When the lease has run out for a watcher with a slow clock, and he had time to see it and to take
 * it. */
static int64_t patience_ms(const struct world *w)
{
    int64_t lease_ms = w->cell.lease_ms;
    return lease_ms * 106 / 100 + 3 * lease_ms / 10 + SETTLE_MS;
}

void cell_look(struct world *w)
{
    struct cell *c = &w->cell;
    world_after(w, LOOK_MS, HAPPENS_CELL);
    if (w->leader && node_holds(w->leader))
        c->led_ms = w->now_ms;
    for (int i = 0; i < w->n_nodes; i++) {
        struct node *n = &w->nodes[i];
        if (!is_able(n))
            n->able_ms = w->now_ms;
        int64_t since_ms = n->able_ms > c->led_ms ? n->able_ms : c->led_ms;
        since_ms = since_ms > c->moved_ms ? since_ms : c->moved_ms;
        if (w->now_ms - since_ms > patience_ms(w))
            world_wrong(w, "nobody leads for %" PRId64 " ms, and node %d could",
                        w->now_ms - c->led_ms, i);
    }
}

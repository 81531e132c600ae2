/* The disk of a node that is alone. It takes its time, fails, and says so or the contrary; a crash
 * leaves any first part of what was on its way. */
#include "sim/world.h"

#include "store/memory.h"

void disk_submit(struct node *n)
{
    struct world *w = n->w;
    bool slow = w->now_ms < w->disk_slow_until_ms;
    int64_t delay = slow ? random_between(&w->random, 50, 3000) : random_between(&w->random, 0, 4);
    if (n->dies_in_commit) {
        n->dies_in_commit = false;
        (void)node_after(n, random_between(&w->random, 0, delay), HAPPENS_CRASH, n->life);
    }
    (void)node_after(n, delay, HAPPENS_COMMITTED, n->reign);
}

/* Gives it to the disk. What is behind one that is not there is not taken. */
static int commit(struct world *w, const struct node_commit *c)
{
    struct store_tip tip = {0};
    int result = store_commit(w->store, &c->batch);
    if (store_tip(w->store, &tip) == 0 && tip.seq == c->batch.seq)
        plane_stored(w, &c->batch, c->before_ms);
    return result;
}

void disk_committed(struct node *n)
{
    struct world *w = n->w;
    if (n->n_commits == 0)
        return;
    struct node_commit c = node_oldest(n);
    bool failing = w->now_ms < w->disk_fails_until_ms;
    store_memory_fail(w->store, failing ? w->disk_mode : STORE_MEMORY_WORKS);
    int result = commit(w, &c);
    store_memory_fail(w->store, STORE_MEMORY_WORKS);
    node_committed(n, result);
}

void disk_crash(struct node *n)
{
    while (n->n_commits > 0 && random_chance(&n->w->random, 50)) {
        struct node_commit c = node_oldest(n);
        (void)commit(n->w, &c);
    }
    n->n_commits = 0;
}

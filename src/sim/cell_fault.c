/* What goes wrong between two nodes and their cell, and with their leases. */
#include "sim/world.h"

static struct node *some_node(struct world *w)
{
    struct node *any = &w->nodes[random_between(&w->random, 0, w->n_nodes - 1)];
    return random_chance(&w->random, 70) && w->leader ? w->leader : any;
}

/* One of them cannot reach the database, though perhaps everybody else. */
static void cut_one(struct world *w)
{
    struct node *n = some_node(w);
    bool loses = random_chance(&w->random, 50);
    bool one_way = random_chance(&w->random, 20);
    int64_t most_ms = random_chance(&w->random, 25) ? 120 * 1000 : 4 * w->cell.lease_ms;
    link_cut(n, random_between(&w->random, 100, most_ms), loses, one_way);
}

static void cut_all(struct world *w)
{
    bool loses = random_chance(&w->random, 50);
    int64_t length_ms = random_between(&w->random, 100, 20 * 1000);
    for (int i = 0; i < w->n_nodes; i++)
        link_cut(&w->nodes[i], length_ms, loses, false);
}

static void slow(struct world *w)
{
    struct node *n = some_node(w);
    n->link.slow_until_ms = w->now_ms + random_between(&w->random, 1000, 15 * 1000);
    link_holds_up(n, n->link.slow_until_ms);
}

static void lossy(struct world *w)
{
    struct node *n = some_node(w);
    n->link.lossy_until_ms = w->now_ms + random_between(&w->random, 500, 15 * 1000);
    link_holds_up(n, n->link.lossy_until_ms);
}

/* Nobody knows whether the next batch is there. */
static void unknown(struct world *w)
{
    struct node *n = some_node(w);
    bool done = random_chance(&w->random, 70);
    n->link.loses_answer = done;
    n->link.loses_request = !done;
    link_holds_up(n, w->now_ms);
}

static void late_grant(struct world *w)
{
    if (w->leader)
        w->leader->link.grants_late = true;
}

/* A node is stopped with its request for more time on the way. */
static void stop_in_renewal(struct world *w)
{
    if (w->leader)
        w->leader->stops_in_renewal = true;
}

static void step_down(struct world *w)
{
    if (w->leader)
        leader_step_down(w->leader);
}

/* The leader has the database, and nobody else has the leader. */
static void cut_peers(struct world *w)
{
    struct node *n = some_node(w);
    n->peers_cut_until_ms = w->now_ms + random_between(&w->random, 500, 40 * 1000);
    if (n == w->leader)
        plane_cut_off(n);
}

void cell_fault(struct world *w)
{
    static const struct {
        const char *name;
        void (*strike)(struct world *w);
        int weight;
    } faults[] = {
        {"a node loses the cell", cut_one, 28},
        {"both lose the cell", cut_all, 8},
        {"a slow line", slow, 12},
        {"a lossy line", lossy, 12},
        {"an unknown commit", unknown, 16},
        {"step down", step_down, 6},
        {"a node loses its peers", cut_peers, 6},
        {"a late grant", late_grant, 6},
        {"stop in a renewal", stop_in_renewal, 6},
    };
    int64_t roll = random_between(&w->random, 0, 99);
    size_t i = 0;
    while (roll >= faults[i].weight)
        roll -= faults[i++].weight;
    world_trace(w, "fault  %s", faults[i].name);
    faults[i].strike(w);
}

void cell_heal(struct world *w)
{
    for (int i = 0; i < w->n_nodes; i++) {
        struct cell_link *link = &w->nodes[i].link;
        link->cut_until_ms = link->slow_until_ms = link->lossy_until_ms = 0;
        link->loses_answer = link->loses_request = link->grants_late = false;
        w->nodes[i].stops_in_renewal = false;
        w->nodes[i].peers_cut_until_ms = 0;
    }
}

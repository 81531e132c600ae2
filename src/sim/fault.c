/* What goes wrong, when, and for how long. */
#include "sim/world.h"

#include "store/memory.h"

#include <inttypes.h>

static struct node *some_node(struct world *w)
{
    if (w->n_nodes == 1)
        return &w->nodes[0];
    struct node *any = &w->nodes[random_between(&w->random, 0, w->n_nodes - 1)];
    return w->leader && random_chance(&w->random, 60) ? w->leader : any;
}

static struct wire *some_wire(struct world *w)
{
    if (w->wires.len == 0)
        return NULL;
    int64_t skip = random_between(&w->random, 0, (int64_t)w->wires.len - 1);
    size_t at = 0;
    struct wire *wire = map_next(&w->wires, &at);
    while (skip-- > 0)
        wire = map_next(&w->wires, &at);
    return wire;
}

/* Each end learns of it within its time. */
static void cut_within(struct world *w, struct wire *wire, int64_t plane_max_ms,
                       int64_t peer_max_ms)
{
    int64_t plane_ms = random_between(&w->random, 0, plane_max_ms);
    int64_t peer_ms = random_between(&w->random, 0, peer_max_ms);
    wire_cut(w, wire, plane_ms, peer_ms);
}

static void cut(struct world *w)
{
    struct wire *wire = some_wire(w);
    if (wire)
        cut_within(w, wire, 500, 500);
}

/* One end learns long after the other. */
static void half_open(struct world *w)
{
    struct wire *wire = some_wire(w);
    if (!wire)
        return;
    bool plane_late = random_chance(&w->random, 50);
    cut_within(w, wire, plane_late ? 60000 : 300, plane_late ? 300 : 60000);
}

/* A server is cut off while it is being asked, and we die before it is back: what is owed to it
 * must have been written down. */
static void cut_and_crash(struct world *w)
{
    for (int i = 0; i < w->n_games; i++) {
        struct wire *wire = wire_find(w, w->games[i].conn);
        if (wire && random_chance(&w->random, 50))
            cut_within(w, wire, 100, 9000);
    }
    struct happening *h = world_after(w, random_between(&w->random, 0, 3000), HAPPENS_CRASH);
    h->node = some_node(w)->index;
    h->life = w->nodes[h->node].life;
}

static void crash(struct world *w)
{
    node_crash(some_node(w));
}

/* What is being written may be there afterwards or not, and nobody was told. */
static void crash_in_commit(struct world *w)
{
    some_node(w)->dies_in_commit = true;
}

static void stall(struct world *w)
{
    struct wire *wire = some_wire(w);
    if (wire)
        wire->stalled_until_ms = w->now_ms + random_between(&w->random, 100, 45 * 1000);
}

/* A whole region cannot be reached, sometimes longer than a lost match is waited for. */
static void partition(struct world *w)
{
    int8_t region = (int8_t)random_between(&w->random, 0, 2);
    bool long_one = random_chance(&w->random, 20);
    int64_t length = random_between(&w->random, 1000, long_one ? 700 * 1000 : 60 * 1000);
    size_t at = 0;
    struct wire *wire = NULL;
    while ((wire = map_next(&w->wires, &at))) {
        if (wire->kind == WIRE_GAME && w->games[wire->actor].region == region)
            wire->stalled_until_ms = w->now_ms + length;
    }
}

static void stop(struct world *w)
{
    int64_t length = random_between(&w->random, 1100, 90 * 1000);
    node_stop(some_node(w), length);
}

static void fail_disk(struct world *w)
{
    bool unknown = random_chance(&w->random, 40);
    w->disk_mode = unknown ? STORE_MEMORY_UNKNOWN : STORE_MEMORY_FAILS;
    w->disk_fails_until_ms = w->now_ms + random_between(&w->random, 1, 20 * 1000);
    if (w->n_nodes > 1 && w->leader) /* whoever hears nothing waits, and asks */
        link_holds_up(w->leader, w->disk_fails_until_ms);
}

static void slow_disk(struct world *w)
{
    w->disk_slow_until_ms = w->now_ms + random_between(&w->random, 1000, 10 * 1000);
}

static void jump_clock(struct world *w)
{
    static const int64_t steps_ms[] = {3600 * 1000, -3600 * 1000, 31 * 1000, -120 * 1000};
    some_node(w)->wall_offset_ms += steps_ms[random_between(&w->random, 0, 3)];
}

void fault_next(struct world *w)
{
    static const struct {
        const char *name;
        void (*strike)(struct world *w);
        int weight;
    } faults[] = {
        {"cut", cut, 20},
        {"half-open", half_open, 10},
        {"stall", stall, 15},
        {"partition", partition, 4},
        {"stop", stop, 5},
        {"failing disk", fail_disk, 8},
        {"slow disk", slow_disk, 12},
        {"clock jump", jump_clock, 6},
        {"crash", crash, 14},
        {"cut and crash", cut_and_crash, 8},
        {"crash in a commit", crash_in_commit, 6},
        {"host", machine_fault, 16},
        {"broker", broker_fault, 6},
        {"backup", backup_fault, 38}, /* the last: in other worlds the die stops before its most */
    };
    if (w->quiet)
        return;
    if (random_chance(&w->random, 6)) {
        game_restart(w, &w->games[random_between(&w->random, 0, w->n_games - 1)]);
    } else if (w->n_nodes > 1 && random_chance(&w->random, 40)) {
        cell_fault(w);
    } else {
        int64_t roll = random_between(&w->random, 0, w->backs_up ? 167 : 137);
        size_t i = 0;
        while (roll >= faults[i].weight)
            roll -= faults[i++].weight;
        world_trace(w, "fault  %s", faults[i].name);
        faults[i].strike(w);
    }
    world_after(w, random_between(&w->random, 100, 40 * 1000), HAPPENS_FAULT);
}

/* The weather clears: whatever is stalled or slow ends now. */
void faults_end(struct world *w)
{
    w->quiet = true;
    for (int i = 0; i < w->n_nodes; i++)
        w->nodes[i].dies_in_commit = false;
    w->disk_slow_until_ms = 0;
    w->disk_fails_until_ms = 0;
    w->broker_away_until_ms = 0;
    cell_heal(w);
    size_t at = 0;
    struct wire *wire = NULL;
    while ((wire = map_next(&w->wires, &at))) {
        if (wire->stalled_until_ms > w->now_ms + 1000 && wire->plane_open && wire->peer_open)
            wire->stalled_until_ms = w->now_ms + 1000;
    }
}

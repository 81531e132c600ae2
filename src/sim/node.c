/* A node's process: it starts, takes in events, lets out what they cause, stands still, falls
 * silent and crashes, which loses everything but what is stored, and perhaps what was on its way
 * there. */
#include "sim/world.h"

#include "base/err.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t secret[CORE_SECRET_SIZE] = "a fixed secret, for simulations";

enum { WALL_START_S = 1700000000, TICK_MS = 250, HOUR_MS = 3600 * 1000 };

/* Its clocks agree with nobody's; an hour apart, and one second in twenty fast or slow. */
static void set_clocks(struct node *n)
{
    struct random *r = &n->w->random;
    int64_t worst = random_chance(r, 40) ? 50 : 2;
    n->clock_permille += random_between(r, -worst, worst);
    n->clock_start_ms = random_between(r, 0, 1000 * (int64_t)HOUR_MS);
    if (random_chance(r, 30))
        n->wall_offset_ms = random_chance(r, 50) ? HOUR_MS : -HOUR_MS;
}

void node_init(struct world *w, struct node *n, int index)
{
    *n = (struct node){
        .w = w, .index = index, .down = true, .clock_permille = 1000, .link = {.line = 1}};
    if (w->n_nodes == 1)
        return;
    set_clocks(n);
    cell_open(n, store_depth(w->store));
}

void node_done(struct node *n)
{
    pipeline_free(n->pipeline);
    watcher_stop(n);
}

int64_t node_ms(const struct node *n)
{
    return n->clock_start_ms + n->w->now_ms * n->clock_permille / 1000;
}

int64_t node_wall_ms(const struct node *n)
{
    return (int64_t)WALL_START_S * 1000 + n->w->now_ms + n->wall_offset_ms;
}

int64_t node_tip_age_ms(const struct node *n)
{
    return n->heard ? node_ms(n) - n->heard_ms : -1;
}

bool node_is_stopped(const struct node *n)
{
    return n->w->now_ms < n->stopped_until_ms;
}

void node_stop(struct node *n, int64_t length_ms)
{
    if (node_is_stopped(n))
        return;
    n->stopped_until_ms = n->w->now_ms + length_ms;
    n->slept_ms += length_ms;
}

bool node_holds(const struct node *n)
{
    return n->w->n_nodes == 1 || lease_holds(&n->lease, node_ms(n));
}

bool node_is_fenced(struct node *n)
{
    if (node_holds(n))
        return false;
    world_trace(n->w, "node   %d has lost the lease", n->index);
    n->w->result->silenced++;
    node_falls_silent(n, 0);
    return true;
}

struct happening *node_after(const struct node *n, int64_t delay_ms, int kind, int64_t life)
{
    struct happening *h = world_after(n->w, delay_ms, (enum happening_kind)kind);
    h->node = n->index;
    h->life = life;
    return h;
}

static void look(struct node *n)
{
    struct world *w = n->w;
    w->result->steps++;
    const char *why = n->pipeline ? core_check(pipeline_core(n->pipeline)) : NULL;
    if (why)
        world_wrong(w, "%s", why);
}

/* ── commits ───────────────────────────────────────────────────────────────────────────────── */

static void on_submit(void *user, const struct store_batch *batch)
{
    struct node *n = user;
    struct world *w = n->w;
    n->commits[n->n_commits++] = (struct node_commit){*batch, w->submitted_ms};
    w->submitted_ms = w->now_ms;
    w->submitted_reign = n->reign;
    w->core_offset_ms = batch->core_ms - w->now_ms;
    if (w->n_nodes == 1)
        disk_submit(n);
    else
        leader_submit(n);
}

static void on_durable(void *user, const struct store_batch *batch)
{
    struct node *n = user;
    reader_durable(n->w, batch);
    plane_told(n->w, batch->seq);
}

static void on_release(void *user, const struct effect *effects, size_t n_effects)
{
    plane_release(user, effects, n_effects);
}

struct node_commit node_oldest(struct node *n)
{
    struct node_commit c = n->commits[0];
    n->n_commits--;
    memmove(n->commits, n->commits + 1, (size_t)n->n_commits * sizeof(c));
    return c;
}

/* Nobody's silence counts while nothing could be stored, be it for a moment. */
static void store_is_up(const struct node *n, bool was_down)
{
    if (was_down && pipeline_state(n->pipeline) == PIPELINE_WRITABLE)
        machines_get_time(n->w);
}

void node_committed(struct node *n, int result)
{
    struct world *w = n->w;
    if (result) {
        w->result->failed_commits++;
        w->commit_failed_ms = w->now_ms;
    }
    bool was_down = result != 0 || pipeline_state(n->pipeline) == PIPELINE_READ_ONLY;
    pipeline_committed(n->pipeline, result, node_ms(n), node_wall_ms(n));
    store_is_up(n, was_down);
    look(n);
}

/* ── its life ──────────────────────────────────────────────────────────────────────────────── */

static const struct pipeline_world *around(struct node *n, struct pipeline_world *ret)
{
    *ret = (struct pipeline_world){
        .submit = on_submit, .durable = on_durable, .release = on_release, .user = n};
    return ret;
}

static void leads(struct node *n, int err)
{
    struct world *w = n->w;
    if (err) {
        world_wrong(w, "I5: what was stored cannot be loaded: %s", err_code(err));
        return;
    }
    w->leader = n;
    n->led_ms = w->now_ms;
    n->ticked = false;
    reader_catch_up(w);
    shadow_rooms_restarted(w);
    machines_get_time(w);
    look(n);
    (void)node_after(n, 0, HAPPENS_TICK, n->reign);
}

static void start_alone(struct node *n)
{
    struct world *w = n->w;
    struct pipeline_world its;
    backup_restore(w);
    n->life++;
    n->reign = ++w->reign;
    leads(n, pipeline_new(w->store, &w->config, secret, around(n, &its), node_wall_ms(n),
                          node_ms(n), &n->pipeline));
}

void node_start(struct node *n)
{
    n->down = false;
    if (n->w->n_nodes == 1)
        start_alone(n);
    else
        watcher_start(n, 0);
}

void node_lead(struct node *n)
{
    struct world *w = n->w;
    struct pipeline_world its;
    struct core *core = n->core;
    n->core = NULL;
    n->taken = false;
    n->n_commits = 0;
    if (w->leader)
        plane_falls(w); /* it may not know yet */
    n->reign = ++w->reign;
    world_trace(w, "node   %d leads, from batch %" PRId64, n->index, n->tip.seq);
    struct pipeline_loaded loaded = {.config = &w->config,
                                     .secret = secret,
                                     .core = core,
                                     .tip = n->tip,
                                     .age_ms = node_tip_age_ms(n)};
    leads(n, pipeline_adopt(&n->store, &loaded, around(n, &its), node_wall_ms(n), node_ms(n),
                            &n->pipeline));
    if (!n->pipeline)
        return;
    n->writes = true;
    n->ignored = 0;
    w->result->takeovers++;
    cell_judge_start(n);
    if (n->configured != w->configured) {
        pipeline_reconfigure(n->pipeline, &w->config, node_ms(n), node_wall_ms(n));
        pipeline_flush(n->pipeline, node_ms(n), node_wall_ms(n));
    }
    (void)node_after(n, 0, HAPPENS_RENEW, n->reign);
}

/* Every connection is closed, and nobody is told why. What is on its way to be stored may be. */
static void stops_leading(struct node *n)
{
    struct world *w = n->w;
    if (w->n_nodes == 1)
        disk_crash(n);
    n->n_commits = 0;
    n->link.line++;
    n->steps_down_ms = 0;
    pipeline_free(n->pipeline);
    n->pipeline = NULL;
    wires_node_died(w, n);
    if (w->leader == n)
        plane_falls(w);
}

void node_falls_silent(struct node *n, int64_t hold_off_ms)
{
    stops_leading(n);
    watcher_start(n, hold_off_ms);
}

void node_crash(struct node *n)
{
    struct world *w = n->w;
    if (n->down)
        return;
    n->down = true;
    watcher_stop(n);
    if (n->pipeline)
        stops_leading(n);
    n->stopped_until_ms = 0;
    lease_lost(&n->lease);
    w->result->crashes++;
    (void)node_after(n, random_between(&w->random, 10, 40 * 1000), HAPPENS_RESTART, n->life);
}

void node_event(struct node *n, const struct event *event)
{
    struct world *w = n->w;
    if (node_is_fenced(n) || n->steps_down_ms)
        return;
    struct whither_seen seen;
    plane_hear(n, event);
    shadow_region_before(n, event, &seen);
    pipeline_event(n->pipeline, event, node_ms(n), node_wall_ms(n));
    n->ticked = n->ticked || event->kind == EVENT_TICK;
    shadow_region_after(n, &seen);
    look(n);
    /* Somebody looks while what he sees is still on its way to the disk. */
    bool fresh = event->kind == EVENT_ALLOCATE || event->kind == EVENT_ALLOCATE_ACK;
    if (fresh && random_chance(&w->random, 5))
        operator_reads(w);
    bool was_down = pipeline_state(n->pipeline) == PIPELINE_READ_ONLY;
    if (!w->broken)
        pipeline_flush(n->pipeline, node_ms(n), node_wall_ms(n));
    store_is_up(n, was_down);
}

void node_tick(struct node *n)
{
    struct event tick = {.kind = EVENT_TICK};
    if (!n->steps_down_ms)
        node_event(n, &tick);
    else if (!node_is_fenced(n))
        leader_end(n);
    (void)node_after(n, TICK_MS, HAPPENS_TICK, n->reign);
}

void node_hear(struct node *n, struct errand *e)
{
    if (n->pipeline)
        leader_hear(n, e);
    else
        watcher_hear(n, e);
}

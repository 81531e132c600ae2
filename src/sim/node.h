/* A node of the control plane: the real pipeline and core, on clocks of its own. Alone it has a
 * disk; of two, one leads their cell (cell.h) and the other stands by (watcher.c).
 *
 *          start             lease taken, all is read
 *     DOWN ─────▶ STANDS BY ──────────────────────────▶ LEADS        from any: crash ──▶ DOWN
 *                     ◀───────lease lost, stepped down───┘
 *
 * Owned by the world. */
#pragma once

#include "sim/cell.h"
#include "store/pipeline.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct world;

struct node_commit {
    struct store_batch batch;
    int64_t before_ms; /* when the batch before it was given to the disk */
};

struct node {
    struct world *w;
    int index;
    bool down;
    int64_t life;              /* raised when it starts, and when it stands by again */
    struct pipeline *pipeline; /* NULL = it does not lead */
    int64_t reign;             /* since when it does: see struct world */
    int64_t led_ms;            /* … and when that was */
    bool ticked;               /* its core has been ticked since */

    int64_t stopped_until_ms; /* nothing happens to it before */
    int64_t slept_ms;         /* how long it was stopped in all */
    int64_t clock_start_ms;   /* what its clock showed in the beginning … */
    int64_t clock_permille;   /* … and how fast it runs */
    int64_t wall_offset_ms;
    int64_t peers_cut_until_ms; /* nobody but the cell can reach it */

    struct node_commit commits[PIPELINE_DEPTH_MAX]; /* under way, oldest first */
    int n_commits;
    bool dies_in_commit; /* it will crash while the next batch is being committed */

    /* Of two. */
    bool writes;           /* the connection for its batches stands */
    bool stops_in_renewal; /* it will be stopped as soon as it has asked for the lease again */
    bool taken;            /* the lease is its; what was written before is still being read */
    int ignored;           /* so often in a row its batches were not taken */
    struct store store;    /* its end of the cell */
    struct store_ops ops;
    struct cell_link link;
    struct lease lease;
    int64_t writer;       /* as whom the head knows it */
    struct store_tip tip; /* the newest batch that it has, or knows to be stored */
    bool heard;           /* … and it came while it stood by … */
    int64_t heard_ms;     /* … on its clock */
    int64_t errands;
    int64_t steps_down_ms; /* when it was told to; 0 = it was not */

    /* Standing by. */
    struct core *core;   /* what it has read; NULL = nothing yet */
    int64_t configured;  /* the configuration that core was made with */
    int64_t asked;       /* the errand it waits for; 0 = none */
    int64_t asked_ms;    /* … on its clock */
    int64_t hold_off_ms; /* on its clock: it does not take the lease before */
    int64_t able_ms;     /* since when it could lead */
};

void node_init(struct world *w, struct node *n, int index);
void node_done(struct node *n);

/* Its clocks. */
int64_t node_ms(const struct node *n);
int64_t node_wall_ms(const struct node *n);

/* How long ago its newest batch came; -1 when it was there before it. */
int64_t node_tip_age_ms(const struct node *n);

bool node_is_stopped(const struct node *n);
void node_stop(struct node *n, int64_t length_ms);

/* May it speak? */
bool node_holds(const struct node *n);

/* May it not? Then it is silent from now on, and stands by. */
bool node_is_fenced(struct node *n);

void node_start(struct node *n);
void node_crash(struct node *n);

/* It has the lease and has read everything. */
void node_lead(struct node *n);

/* It does not lead any more, and for hold_off_ms leaves that to others. */
void node_falls_silent(struct node *n, int64_t hold_off_ms);

void node_event(struct node *n, const struct event *event);
void node_tick(struct node *n);
void node_hear(struct node *n, struct errand *e);

/* What became of the oldest commit, which node_oldest has taken out. */
struct node_commit node_oldest(struct node *n);
void node_committed(struct node *n, int result);

/* Something that will happen to it; kind is an enum happening_kind. */
struct happening *node_after(const struct node *n, int64_t delay_ms, int kind, int64_t life);

/* disk.c: where a node that is alone stores its batches. The newest is submitted; the oldest is
 * done; whoever waits for them is gone. */
void disk_submit(struct node *n);
void disk_committed(struct node *n);
void disk_crash(struct node *n);

/* leader.c: how a node leads a cell. No answer came for batches up to seq on that connection. */
void leader_submit(struct node *n);
void leader_hear(struct node *n, const struct errand *e);
void leader_gives_up(struct node *n, int64_t line, int64_t seq);
void leader_claims(struct node *n, int64_t line); /* it is time to */
void leader_renew(struct node *n);

/* It steps down; each tick since: is it done? */
void leader_step_down(struct node *n);
void leader_end(struct node *n);

/* watcher.c: how a node stands by. It looks; it is told that there is something to see; it is
 * answered. */
void watcher_start(struct node *n, int64_t hold_off_ms);
void watcher_stop(struct node *n);
void watcher_wake(struct node *n);
void watcher_notified(struct node *n);
void watcher_hear(struct node *n, struct errand *e);

/* The pipeline: from event to released effect. It feeds core, keeps one batch open while those
 * before it are being committed (as many at once as the store takes, store_depth), releases effects
 * strictly in order once their batch is durable, and handles commits that fail. It knows no thread
 * and no loop: the daemon drives it with the writer, the simulator with its own disk.
 *
 *   event ─▶ core_step ─▶ open batch ─ flush ─▶ committing ─ committed(0) ─▶ effects leave
 *                                                   │
 *                                                   │ committed(err)
 *                                                   ▼
 *        stored after all? then as above; else refuse what the lost batches would have answered,
 *        reload, and be read-only: a probe is sent each second until one commits
 */
#pragma once

#include "core/core.h"
#include "store/store.h"

struct pipeline;

enum { PIPELINE_DEPTH_MAX = 8 }; /* the writer's too */

/* The world around it. All are called on the caller's thread, from within pipeline_* calls. */
struct pipeline_world {
    /* Begin committing; pipeline_committed is called later with the result, in the same order. The
     * bytes stay valid until then. */
    void (*submit)(void *user, const struct store_batch *batch);

    /* This batch is durable: called once for each, in order of their numbers without a gap, before
     * its effects are released; also for one whose outcome was unknown and that is there after all,
     * never for one that is lost. The bytes are valid during the call. May be NULL. Must not call
     * back into the pipeline. */
    void (*durable)(void *user, const struct store_batch *batch);

    /* Do these effects, in order. Strings are valid during the call only. Must not call back into
     * the pipeline: what closing a connection causes comes as an event of its own, later. */
    void (*release)(void *user, const struct effect *effects, size_t n);

    void *user;
};

enum pipeline_state {
    PIPELINE_WRITABLE,
    PIPELINE_READ_ONLY, /* a commit failed; a probe is sent each second */
};

/* Loads the store into a new core, or returns why it cannot be (the store has logged where). The
 * store must outlive the pipeline. */
int pipeline_new(struct store *store, const struct core_config *config,
                 const uint8_t secret[CORE_SECRET_SIZE], const struct pipeline_world *world,
                 int64_t wall_ms, int64_t monotonic_ms, struct pipeline **ret);

/* A core that core_load was given every row up to the tip, and what it was made with. */
struct pipeline_loaded {
    const struct core_config *config;
    const uint8_t *secret; /* CORE_SECRET_SIZE bytes */
    struct core *core;
    struct store_tip tip;

    /* How long ago the batch at the tip came, on a clock that nobody sets; negative when that is
     * not known, and then the wall clocks of who wrote it and of this machine say it. */
    int64_t age_ms;
};

/* The same with a core that is loaded. It belongs to the pipeline from now on, also on failure. */
int pipeline_adopt(struct store *store, const struct pipeline_loaded *loaded,
                   const struct pipeline_world *world, int64_t wall_ms, int64_t monotonic_ms,
                   struct pipeline **ret);
void pipeline_free(struct pipeline *p);

/* monotonic_ms may start anywhere; only its differences count. */
void pipeline_event(struct pipeline *p, const struct event *event, int64_t monotonic_ms,
                    int64_t wall_ms);

/* The configuration was read again: core works with it from now on, and so does one that is loaded
 * after a failed commit. */
void pipeline_reconfigure(struct pipeline *p, const struct core_config *config,
                          int64_t monotonic_ms, int64_t wall_ms);

/* End of a loop turn: hand over the open batch when the store takes one more. */
void pipeline_flush(struct pipeline *p, int64_t monotonic_ms, int64_t wall_ms);

void pipeline_committed(struct pipeline *p, int result, int64_t monotonic_ms, int64_t wall_ms);

/* True while a batch is being committed or waits to be. */
bool pipeline_busy(const struct pipeline *p);

/* How many batches have something in them that is not durable: those being committed, and the one
 * that waits for them. */
int pipeline_waiting(const struct pipeline *p);

/* Bytes the open batch holds: a door stops reading requests while this is above its limit. */
size_t pipeline_backlog(const struct pipeline *p);

enum pipeline_state pipeline_state(const struct pipeline *p);
struct core *pipeline_core(struct pipeline *p);

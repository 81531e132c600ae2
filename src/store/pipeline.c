#include "store/pipeline.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/plant.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_MS = 1000 };

struct pipeline {
    struct store *store;
    struct core_config config;
    uint8_t secret[CORE_SECRET_SIZE];
    struct pipeline_world world;
    struct core *core;

    struct batch batches[PIPELINE_DEPTH_MAX + 2];
    struct batch *open;
    struct batch *ending; /* it is stored, and its effects are leaving; NULL = none is */
    struct batch *flight[PIPELINE_DEPTH_MAX]; /* being committed, oldest first */
    int results[PIPELINE_DEPTH_MAX];          /* … of those that have ended */
    int n_flight;
    int n_ended;
    int depth;       /* at most so many are being committed at once */
    bool probing;    /* what is being committed is a probe */
    bool odd;        /* the last commit failed, but its row is there: that was said */
    bool unresolved; /* a commit failed and the store could not say whether it is there */

    enum pipeline_state state;
    int64_t next_try_ms; /* monotonic: when to probe or ask again */

    /* core time = core_start + (monotonic − monotonic_start) */
    int64_t core_start_ms;
    int64_t monotonic_start_ms;
};

static struct instant instant_of(const struct pipeline *p, int64_t monotonic_ms, int64_t wall_ms)
{
    return (struct instant){p->core_start_ms + monotonic_ms - p->monotonic_start_ms, wall_ms};
}

static int feed(void *user, const struct change *change)
{
    return core_load(user, change);
}

/* A core made of what the store holds. */
static int load_core(struct pipeline *p, struct store_tip *tip, struct core **ret)
{
    struct core *core = core_new(&p->config, p->secret);
    int err = store_load(p->store, feed, core, tip);
    if (err) {
        core_free(core);
        return err;
    }
    *ret = core;
    return 0;
}

static struct pipeline *make(struct store *store, const struct core_config *config,
                             const uint8_t secret[CORE_SECRET_SIZE],
                             const struct pipeline_world *world)
{
    struct pipeline *p = xcalloc(1, sizeof(*p));
    p->store = store;
    p->config = *config;
    memcpy(p->secret, secret, CORE_SECRET_SIZE);
    p->world = *world;
    p->open = &p->batches[0];
    p->depth = store_depth(store);
    assert(p->depth <= PIPELINE_DEPTH_MAX);
    return p;
}

/* Its core has every row up to the tip, which was written at written_ms by our wall clock. */
static int begin(struct pipeline *p, const struct store_tip *tip, int64_t written_ms,
                 int64_t wall_ms, int64_t monotonic_ms)
{
    p->monotonic_start_ms = monotonic_ms;
    p->core_start_ms = tip->seq ? core_resume_ms(tip->core_ms, written_ms, wall_ms) : (int64_t)1;
    return core_loaded(p->core, tip->seq, instant_of(p, monotonic_ms, wall_ms));
}

int pipeline_new(struct store *store, const struct core_config *config,
                 const uint8_t secret[CORE_SECRET_SIZE], const struct pipeline_world *world,
                 int64_t wall_ms, int64_t monotonic_ms, struct pipeline **ret)
{
    struct pipeline *p = make(store, config, secret, world);
    struct store_tip tip = {0};
    int err = load_core(p, &tip, &p->core);
    if (!err)
        err = begin(p, &tip, tip.wall_ms, wall_ms, monotonic_ms);
    if (err)
        pipeline_free(p);
    else
        *ret = p;
    return err;
}

int pipeline_adopt(struct store *store, const struct pipeline_loaded *loaded,
                   const struct pipeline_world *world, int64_t wall_ms, int64_t monotonic_ms,
                   struct pipeline **ret)
{
    struct pipeline *p = make(store, loaded->config, loaded->secret, world);
    const struct store_tip *tip = &loaded->tip;
    p->core = loaded->core;
    bool known = loaded->age_ms >= 0 && !PLANTED(takeover_by_wall_clock);
    int64_t written_ms = known ? wall_ms - loaded->age_ms : tip->wall_ms;
    int err = begin(p, tip, written_ms, wall_ms, monotonic_ms);
    if (err)
        pipeline_free(p);
    else
        *ret = p;
    return err;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    core_free(p->core);
    for (size_t i = 0; i < sizeof(p->batches) / sizeof(p->batches[0]); i++)
        batch_done(&p->batches[i]);
    sodium_memzero(p->secret, sizeof(p->secret));
    free(p);
}

static void release(struct pipeline *p, struct effects *effects, size_t from)
{
    if (effects->len > from)
        p->world.release(p->world.user, effects->items + from, effects->len - from);
    effects->len = from;
}

static struct store_batch row_of(const struct pipeline *p, const struct batch *batch)
{
    return (struct store_batch){
        .seq = batch->seq,
        .epoch = core_epoch(p->core),
        .core_ms = batch->core_ms,
        .wall_ms = batch->wall_ms,
        .changes = batch->changes.data,
        .len = batch->changes.len,
        .n_changes = batch->n_changes,
        .n_effects = batch->effects.len,
    };
}

static void show(struct pipeline *p, const struct store_batch *row)
{
    if (p->world.durable)
        p->world.durable(p->world.user, row);
}

static void submit(struct pipeline *p, struct batch *batch)
{
    p->flight[p->n_flight++] = batch;
    struct store_batch row = row_of(p, batch);
    if (PLANTED(shown_before_stored))
        show(p, &row);
    p->world.submit(p->world.user, &row);
}

static void step(struct pipeline *p, enum event_kind kind, struct instant now)
{
    struct event event = {.kind = kind};
    core_step(p->core, &event, now, p->open);
}

/* ── commits that fail ─────────────────────────────────────────────────────────────────────── */

/* One that is neither open nor on its way: there is one more than can be. */
static struct batch *spare(struct pipeline *p)
{
    for (size_t i = 0; i < sizeof(p->batches) / sizeof(p->batches[0]); i++) {
        struct batch *b = &p->batches[i];
        bool used = b == p->open || b == p->ending;
        for (int k = 0; k < p->n_flight; k++)
            used |= b == p->flight[k];
        if (!used)
            return b;
    }
    abort();
}

/* Takes the oldest out of those that are being committed. */
static void land(struct pipeline *p)
{
    p->n_flight--;
    p->n_ended--;
    memmove(p->flight, p->flight + 1, (size_t)p->n_flight * sizeof(p->flight[0]));
    memmove(p->results, p->results + 1, (size_t)p->n_ended * sizeof(p->results[0]));
}

/* The failed batch and those built on it are gone: start again from what is stored, refuse what
 * they would have answered. */
static int fall_back(struct pipeline *p, struct instant now)
{
    assert(p->n_ended == p->n_flight);
    struct store_tip tip = {0};
    struct core *fresh = NULL;
    int err = load_core(p, &tip, &fresh);
    if (!err)
        err = core_loaded(fresh, tip.seq, now);
    if (err) {
        core_free(fresh);
        return err;
    }
    const struct effects *lost[PIPELINE_DEPTH_MAX + 1];
    size_t n_lost = 0;
    for (int i = 0; i < p->n_flight; i++)
        lost[n_lost++] = &p->flight[i]->effects;
    lost[n_lost++] = &p->open->effects;
    struct batch refusals = {0};
    core_take_over(fresh, p->core, lost, n_lost, &refusals, now);
    p->core = fresh;
    for (int i = 0; i < p->n_flight; i++)
        batch_clear(p->flight[i]);
    batch_clear(p->open);
    p->n_flight = p->n_ended = 0;
    release(p, &refusals.effects, 0);
    batch_done(&refusals);
    return 0;
}

/* Hands the open batch to the store, when there is anything in it to store. */
static bool hand_over(struct pipeline *p)
{
    struct batch *batch = p->open;
    core_seal(p->core, batch);
    if (batch->changes.len == 0)
        return false;
    submit(p, batch);
    p->open = spare(p);
    return true;
}

static bool may_hand_over(const struct pipeline *p)
{
    return p->state == PIPELINE_WRITABLE && !p->probing && p->n_ended == 0 &&
           p->n_flight < p->depth && !core_is_clean(p->core);
}

/* The oldest of those that are being committed is. The next one is on its way before the effects of
 * this one leave, so that the disk does not wait while answers are written; what it strikes off is
 * what had left before. */
static void durable(struct pipeline *p)
{
    struct batch *batch = p->ending = p->flight[0];
    struct store_batch row = row_of(p, batch);
    land(p);
    if (p->probing)
        core_numbered(p->core, batch->seq);
    if (may_hand_over(p))
        (void)hand_over(p);
    if (!PLANTED(shown_before_stored))
        show(p, &row);
    release(p, &batch->effects, 0);
    core_left(p->core, batch);
    p->probing = false;
    batch_clear(batch);
    p->ending = NULL;
}

static void become_writable(struct pipeline *p, struct instant now)
{
    if (p->state == PIPELINE_WRITABLE)
        return;
    p->state = PIPELINE_WRITABLE;
    log_line(LOG_INFO, "store writable again", "seq=%" PRId64, core_seq(p->core));
    step(p, EVENT_STORE_UP, now);
}

static void become_read_only(struct pipeline *p, struct instant now)
{
    if (p->state == PIPELINE_READ_ONLY)
        return;
    p->state = PIPELINE_READ_ONLY;
    log_line(LOG_WARN, "store cannot be written; refusing what would change anything",
             "seq=%" PRId64, p->flight[0]->seq);
    step(p, EVENT_STORE_DOWN, now);
}

/* Which of them are there and which not? Only the store knows; until it says, nothing leaves. All
 * have ended, so what is not there now will never be. */
static void resolve(struct pipeline *p, int64_t monotonic_ms, struct instant now)
{
    struct store_tip tip = {0};
    assert(p->n_flight > 0 && p->n_ended == p->n_flight);
    p->next_try_ms = monotonic_ms + PROBE_MS;
    p->unresolved = true;
    if (store_tip(p->store, &tip))
        return;
    while (p->n_flight > 0 && p->flight[0]->seq <= tip.seq)
        durable(p);
    if (p->n_flight == 0) {
        p->unresolved = false;
        become_writable(p, now);
    } else if (p->probing) {
        batch_clear(p->flight[0]);
        land(p);
        p->probing = false;
        p->unresolved = false;
    } else if (!fall_back(p, now)) {
        p->unresolved = false;
    }
}

static void probe(struct pipeline *p, int64_t monotonic_ms, struct instant now)
{
    struct batch *batch = spare(p);
    batch_clear(batch);
    batch->seq = core_seq(p->core) + 1;
    batch->core_ms = now.core_ms;
    batch->wall_ms = now.wall_ms;
    p->probing = true;
    p->next_try_ms = monotonic_ms + PROBE_MS;
    submit(p, batch);
}

/* ── the ordinary way ──────────────────────────────────────────────────────────────────────── */

/* A planted bug: a repeat of a request is answered at once, whatever its answer rests on. */
static bool only_answers(const struct effects *effects, size_t from)
{
    for (size_t i = from; i < effects->len; i++) {
        if (effects->items[i].kind != EFFECT_ALLOCATED)
            return false;
    }
    return effects->len > from;
}

void pipeline_event(struct pipeline *p, const struct event *event, int64_t monotonic_ms,
                    int64_t wall_ms)
{
    size_t before = p->open->effects.len;
    core_step(p->core, event, instant_of(p, monotonic_ms, wall_ms), p->open);
    release(p, &p->open->immediate, 0);
    if (PLANTED(answer_before_commit))
        release(p, &p->open->effects, 0);
    if (PLANTED(repeat_before_durable) && event->kind == EVENT_ALLOCATE &&
        only_answers(&p->open->effects, before))
        release(p, &p->open->effects, before);
}

void pipeline_reconfigure(struct pipeline *p, const struct core_config *config,
                          int64_t monotonic_ms, int64_t wall_ms)
{
    p->config = *config;
    struct event event = {.kind = EVENT_CONFIGURE, .configure = &p->config};
    pipeline_event(p, &event, monotonic_ms, wall_ms);
}

static void flush_read_only(struct pipeline *p, int64_t monotonic_ms, int64_t wall_ms)
{
    bool due = monotonic_ms >= p->next_try_ms;
    if (p->unresolved) { /* what is open may rest on what nobody knows */
        if (due)
            resolve(p, monotonic_ms, instant_of(p, monotonic_ms, wall_ms));
        return;
    }
    release(p, &p->open->effects, 0);
    batch_clear(p->open);
    if (due && p->n_flight == 0)
        probe(p, monotonic_ms, instant_of(p, monotonic_ms, wall_ms));
}

void pipeline_flush(struct pipeline *p, int64_t monotonic_ms, int64_t wall_ms)
{
    if (p->state == PIPELINE_READ_ONLY) {
        flush_read_only(p, monotonic_ms, wall_ms);
        return;
    }
    if (p->n_flight == p->depth || p->n_ended > 0)
        return;
    if (p->n_flight > 0 && core_is_clean(p->core))
        return; /* what it says leaves behind those that are on their way */
    struct batch *batch = p->open;
    if (!hand_over(p) && p->n_flight == 0) {
        release(p, &batch->effects, 0);
        core_left(p->core, batch);
        batch_clear(batch);
    }
}

/* A commit that failed after its row was there. Nothing is lost, so nothing is refused: going down
 * and up again for each of them would make every server list its matches, over and over. */
static void take_those_that_are_there(struct pipeline *p)
{
    struct store_tip tip = {0};
    if (store_tip(p->store, &tip) || tip.seq < p->flight[0]->seq)
        return;
    if (!p->odd)
        log_line(LOG_WARN, "a commit failed, but what it was to store is there", "seq=%" PRId64,
                 p->flight[0]->seq);
    p->odd = true;
    while (p->n_flight > 0 && p->flight[0]->seq <= tip.seq)
        durable(p);
}

/* After a failure nothing more is handed over, and it is looked at when all that were under way
 * have ended: one that is on its way still could arrive after we have looked. */
static void settle(struct pipeline *p, int64_t monotonic_ms, struct instant now)
{
    while (p->n_ended > 0 && p->results[0] == 0) {
        p->odd = false;
        durable(p);
    }
    if (p->n_ended > 0 && p->n_ended == p->n_flight)
        take_those_that_are_there(p);
    if (p->n_flight == 0) {
        become_writable(p, now);
    } else if (p->n_ended == p->n_flight) {
        become_read_only(p, now);
        resolve(p, monotonic_ms, now);
    }
}

void pipeline_committed(struct pipeline *p, int result, int64_t monotonic_ms, int64_t wall_ms)
{
    assert(p->n_ended < p->n_flight && !p->unresolved);
    p->results[p->n_ended++] = result;
    settle(p, monotonic_ms, instant_of(p, monotonic_ms, wall_ms));
    pipeline_flush(p, monotonic_ms, wall_ms);
}

int pipeline_waiting(const struct pipeline *p)
{
    return p->n_flight + (p->open->effects.len > 0);
}

bool pipeline_busy(const struct pipeline *p)
{
    return pipeline_waiting(p) > 0;
}

size_t pipeline_backlog(const struct pipeline *p)
{
    return p->open->arena.used + p->open->effects.len * sizeof(struct effect);
}

enum pipeline_state pipeline_state(const struct pipeline *p)
{
    return p->state;
}

struct core *pipeline_core(struct pipeline *p)
{
    return p->core;
}

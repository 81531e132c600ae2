/* The control plane: the real pipeline and core on a simulated disk. It can crash (losing
 * everything but what the disk has, and perhaps the commit under way), stand still, and find its
 * disk failing. */
#include "sim/world.h"

#include "base/err.h"
#include "store/memory.h"

#include <inttypes.h>
#include <string.h>

static const uint8_t secret[CORE_SECRET_SIZE] = "a fixed secret, for simulations";

static void on_submit(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    w->committing = true;
    w->commit = *batch;
    w->core_offset_ms = batch->core_ms - w->now_ms;
    bool slow = w->now_ms < w->disk_slow_until_ms;
    int64_t delay = slow ? random_between(&w->random, 50, 3000) : random_between(&w->random, 0, 4);
    if (w->dies_in_commit) {
        w->dies_in_commit = false;
        world_after(w, random_between(&w->random, 0, delay), HAPPENS_CRASH)->life = w->plane_life;
    }
    world_after(w, delay, HAPPENS_COMMITTED)->life = w->plane_life;
}

static void on_durable(void *user, const struct store_batch *batch)
{
    reader_durable(user, batch);
}

/* Silence is only silence when no heartbeat came in that time and we were awake to hear it. */
static void judge_close(struct world *w, const struct effect *e)
{
    struct wire *wire = wire_find(w, e->conn);
    if (!wire || !wire->game || !str_eq(e->text, STR("Silent for too long")))
        return;
    const struct game *g = &w->games[wire->actor];
    int64_t slept = w->slept_ms - g->slept_at_beat_ms;
    int64_t silent = w->now_ms - g->last_beat_arrived_ms - slept;
    if (g->conn == e->conn && silent < w->config.timeouts.heartbeat_ms - 1000)
        world_broken(w, "false Offline: game %d was heard %" PRId64 " ms ago", g->index, silent);
}

/* A heartbeat counts from when it is acknowledged: one that comes after its server was given up
 * does not make that wrong. */
static void note_beat(struct world *w, conn_id conn)
{
    struct wire *wire = wire_find(w, conn);
    if (!wire || !wire->game)
        return;
    w->games[wire->actor].last_beat_arrived_ms = w->now_ms;
    w->games[wire->actor].slept_at_beat_ms = w->slept_ms;
}

static struct game *game_on(struct world *w, conn_id conn)
{
    struct wire *wire = wire_find(w, conn);
    return wire && wire->game ? &w->games[wire->actor] : NULL;
}

/* Who comes with a token that was revoked, and heard so before, is not let in. */
static void hear_hello(struct world *w, conn_id conn)
{
    struct game *g = game_on(w, conn);
    if (g && g->conn == conn)
        g->must_be_refused = g->enrolment[0] && operator_revoked(w, g->enrolment_id);
}

static void judge_hello(struct world *w, const struct effect *e)
{
    struct game *g = game_on(w, e->conn);
    if (g && g->conn == e->conn && g->must_be_refused && !e->err)
        world_broken(w, "game %d was let in with the revoked token %" PRId64, g->index,
                     g->enrolment_id);
}

/* Its matches were given up for lost; it may still hold them when it comes back. */
static void given_up(struct world *w, int32_t server_id)
{
    for (int i = 0; i < w->n_games; i++) {
        if (w->games[i].server_id == server_id)
            w->games[i].long_out_ms = w->now_ms;
    }
}

static void release_sought(struct world *w, const struct effect *e)
{
    if (e->kind == EFFECT_ROUTE) {
        cluster_route(w, e);
        return;
    }
    shadow_lines_judge(w, e);
    asks_judge(w, e);
    if (e->kind == EFFECT_RESULT)
        broker_result(w, e);
    else if (!random_chance(&w->random, 3)) /* else it gets lost */
        (void)reply_later(w, e, random_between(&w->random, 0, 20));
}

static void on_release(void *user, const struct effect *effects, size_t n)
{
    struct world *w = user;
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = &effects[i];
        world_mix(w, (uint64_t)e->kind << 48 ^ (uint64_t)(uint32_t)e->lobby << 16 ^ e->conn);
        if (e->kind == EFFECT_NOTE) {
            shadow_rooms_judge(w, e);
            shadow_lines_judge(w, e);
            if (e->note == NOTE_MATCH_ENDED && str_eq(e->text, STR("Server lost")))
                given_up(w, e->server_id);
            world_trace(w,
                        "note   %s ticket %" PRId64 " session %" PRId64 " server %d lobby %d: %s",
                        note_text(e->note), e->ticket, e->session, e->server_id, e->lobby,
                        err_code(e->err));
            continue;
        }
        world_trace(w, "effect %s to conn %" PRIu64 " lobby %d: %s", effect_name(e->kind), e->conn,
                    e->lobby, err_code(e->err));
        bool refused_hello =
            (e->kind == EFFECT_SERVER_HELLO || e->kind == EFFECT_CHAT_HELLO) && e->err;
        shadow_judge(w, e);
        shadow_rooms_judge(w, e);
        if (e->kind == EFFECT_HEARTBEAT && !e->err)
            note_beat(w, e->conn);
        if (e->kind == EFFECT_SERVER_HELLO)
            judge_hello(w, e);
        if (e->kind == EFFECT_READ || e->kind == EFFECT_OPERATED) {
            operator_hear(w, e);
            continue;
        }
        if (e->kind == EFFECT_SPAWN || e->kind == EFFECT_TERMINATE || e->kind == EFFECT_KICK_SEAT) {
            machine_command(w, e);
            continue;
        }
        if (e->kind == EFFECT_PLACED || e->kind == EFFECT_HOST_BEAT || e->kind == EFFECT_AGENT) {
            if (e->kind == EFFECT_HOST_BEAT)
                machine_beat(w, e);
            (void)reply_later(w, e, random_between(&w->random, 0, 20));
            continue;
        }
        if (e->kind == EFFECT_SOUGHT || e->kind == EFFECT_RESULT || e->kind == EFFECT_ROUTE) {
            release_sought(w, e);
            continue;
        }
        if (e->kind == EFFECT_CLOSE)
            judge_close(w, e);
        else
            wire_to_peer(w, e);
        if (e->kind == EFFECT_CLOSE || refused_hello)
            wire_closed_by_plane(w, e->conn);
    }
    shadow_rooms_released(w);
}

static void look(struct world *w)
{
    w->result->steps++;
    const char *why = w->pipeline ? core_check(pipeline_core(w->pipeline)) : NULL;
    if (why)
        world_broken(w, "%s", why);
}

void plane_start(struct world *w)
{
    struct pipeline_world around = {
        .submit = on_submit, .durable = on_durable, .release = on_release, .user = w};
    w->plane_life++;
    int err = pipeline_new(w->store, &w->config, secret, &around, world_wall_ms(w), w->now_ms,
                           &w->pipeline);
    if (err) {
        world_broken(w, "I5: what was stored cannot be loaded: %s", err_code(err));
        return;
    }
    reader_catch_up(w);
    shadow_rooms_restarted(w);
    machines_get_time(w);
    look(w);
    world_after(w, 0, HAPPENS_TICK)->life = w->plane_life;
}

/* The commit under way may have reached the disk or not; nobody was told. */
void plane_crash(struct world *w)
{
    if (!w->pipeline)
        return;
    if (w->committing && random_chance(&w->random, 50)) {
        (void)store_commit(w->store, &w->commit);
        shadow_stored(w, &w->commit);
        shadow_rooms_stored(w, &w->commit);
        shadow_lines_stored(w, &w->commit);
        reader_stored(w, &w->commit);
    }
    w->committing = false;
    shadow_rooms_crashed(w);
    pipeline_free(w->pipeline);
    w->pipeline = NULL;
    w->result->crashes++;
    w->stopped_until_ms = 0;
    wires_plane_died(w);
    operator_plane_died(w);
    seekers_plane_died(w);
    world_after(w, random_between(&w->random, 10, 40 * 1000), HAPPENS_RESTART)->life =
        w->plane_life;
}

/* Nobody's silence counts while nothing could be stored, be it for a moment. */
static void store_is_up(struct world *w, bool was_down)
{
    if (was_down && pipeline_state(w->pipeline) == PIPELINE_WRITABLE)
        machines_get_time(w);
}

void plane_event(struct world *w, const struct event *event)
{
    world_mix(w, (uint64_t)event->kind << 40 ^ event->conn);
    world_trace(w, "event  %s from conn %" PRIu64, event_name(event->kind), event->conn);
    if (event->kind == EVENT_SERVER_HELLO) {
        note_beat(w, event->conn);
        hear_hello(w, event->conn);
    }
    pipeline_event(w->pipeline, event, w->now_ms, world_wall_ms(w));
    look(w);
    /* Somebody looks while what he sees is still on its way to the disk. */
    bool fresh = event->kind == EVENT_ALLOCATE || event->kind == EVENT_ALLOCATE_ACK;
    if (fresh && random_chance(&w->random, 5))
        operator_reads(w);
    bool was_down = pipeline_state(w->pipeline) == PIPELINE_READ_ONLY;
    if (!w->broken)
        pipeline_flush(w->pipeline, w->now_ms, world_wall_ms(w));
    store_is_up(w, was_down);
}

void plane_tick(struct world *w)
{
    struct event tick = {.kind = EVENT_TICK};
    plane_event(w, &tick);
    world_after(w, 250, HAPPENS_TICK)->life = w->plane_life;
}

void plane_committed(struct world *w)
{
    if (!w->committing)
        return;
    w->committing = false;
    bool failing = w->now_ms < w->disk_fails_until_ms;
    store_memory_fail(w->store, failing ? w->disk_mode : STORE_MEMORY_WORKS);
    int result = store_commit(w->store, &w->commit);
    store_memory_fail(w->store, STORE_MEMORY_WORKS);
    if (result)
        w->result->failed_commits++;
    if (!result || w->disk_mode == STORE_MEMORY_UNKNOWN) {
        shadow_stored(w, &w->commit);
        shadow_rooms_stored(w, &w->commit);
        shadow_lines_stored(w, &w->commit);
        reader_stored(w, &w->commit);
    }
    bool was_down = result != 0 || pipeline_state(w->pipeline) == PIPELINE_READ_ONLY;
    pipeline_committed(w->pipeline, result, w->now_ms, world_wall_ms(w));
    store_is_up(w, was_down);
    look(w);
}

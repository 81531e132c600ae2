/* The control plane as everybody else sees it: what comes in is noted, and what leaves is held
 * against all that was noted and stored, and then sent. */
#include "sim/world.h"

#include "base/buf.h"
#include "base/err.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Silence is only silence when no heartbeat came in that time and we were awake to hear it. */
static void judge_close(struct world *w, const struct effect *e)
{
    struct wire *wire = wire_find(w, e->conn);
    if (!wire || wire->kind != WIRE_GAME || !str_eq(e->text, STR("Silent for too long")))
        return;
    const struct game *g = &w->games[wire->actor];
    int64_t slept = w->nodes[wire->node].slept_ms - g->slept_at_beat_ms;
    int64_t silent = w->now_ms - g->last_beat_arrived_ms - slept;
    silent = silent * w->nodes[wire->node].clock_permille / 1000;
    if (g->conn == e->conn && silent < w->config.timeouts.heartbeat_ms - 1000)
        world_broken(w, "false Offline: game %d was heard %" PRId64 " ms ago", g->index, silent);
}

/* A heartbeat counts from when it is acknowledged: one that comes after its server was given up
 * does not make that wrong. */
static void note_beat(struct world *w, conn_id conn)
{
    struct wire *wire = wire_find(w, conn);
    if (!wire || wire->kind != WIRE_GAME)
        return;
    w->games[wire->actor].last_beat_arrived_ms = w->now_ms;
    w->games[wire->actor].slept_at_beat_ms = w->nodes[wire->node].slept_ms;
}

static struct game *game_on(struct world *w, conn_id conn)
{
    struct wire *wire = wire_find(w, conn);
    return wire && wire->kind == WIRE_GAME ? &w->games[wire->actor] : NULL;
}

/* Who comes with a token that was revoked, and heard so before, is not let in. */
static void hear_hello(struct world *w, conn_id conn)
{
    struct game *g = game_on(w, conn);
    if (g && g->conn == conn)
        g->must_be_refused = g->said_enrolment_id && operator_revoked(w, g->said_enrolment_id);
}

static void judge_hello(struct world *w, const struct effect *e)
{
    struct game *g = game_on(w, e->conn);
    if (g && g->conn == e->conn && g->must_be_refused && !e->err)
        world_broken(w, "game %d was let in with the revoked token %" PRId64, g->index,
                     g->said_enrolment_id);
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

void plane_release(struct node *n, const struct effect *effects, size_t n_effects)
{
    struct world *w = n->w;
    cell_judge_voice(n);
    for (size_t i = 0; i < n_effects; i++) {
        const struct effect *e = &effects[i];
        world_mix(w, (uint64_t)e->kind << 48 ^ (uint64_t)(uint32_t)e->lobby << 16 ^ e->conn);
        if (e->kind == EFFECT_NOTE) {
            shadow_tickets_judge(w, e);
            shadow_rooms_judge(w, e);
            shadow_faults_judge(w, e);
            shadow_lines_judge(w, e);
            shadow_lobbies_judge(w, e);
            if ((e->note == NOTE_MATCH_ENDED && str_eq(e->text, STR("Server lost"))) ||
                e->note == NOTE_CANCEL_GIVEN_UP)
                given_up(w, e->server_id);
            world_trace(w,
                        "note   %s ticket %" PRId64 " session %" PRId64 " server %d lobby %d: %s",
                        note_text(e->note), e->ticket, e->session, e->server_id, e->lobby,
                        err_code(e->err));
            continue;
        }
        world_trace(w, "effect %s to conn %" PRIu64 " lobby %d: %s", effect_name(e->kind), e->conn,
                    e->lobby, err_code(e->err));
        bool refused_hello = (e->kind == EFFECT_SERVER_HELLO || e->kind == EFFECT_CHAT_HELLO ||
                              e->kind == EFFECT_CLIENT_HELLO) &&
                             e->err;
        shadow_judge(w, e);
        shadow_rooms_judge(w, e);
        shadow_lobbies_judge(w, e);
        backup_judge(w, e);
        if (e->kind == EFFECT_HEARTBEAT && !e->err)
            note_beat(w, e->conn);
        if (e->kind == EFFECT_SERVER_HELLO)
            judge_hello(w, e);
        if (e->kind == EFFECT_READ || e->kind == EFFECT_OPERATED) {
            operator_hear(w, e);
            matchmaker_hear(w, e);
            continue;
        }
        if (e->kind == EFFECT_SPAWN || e->kind == EFFECT_PREPARE || e->kind == EFFECT_TERMINATE ||
            e->kind == EFFECT_KICK_SEAT) {
            machine_command(w, e);
            continue;
        }
        if (e->kind == EFFECT_PLACED)
            shadow_region_judge(w, e);
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

static const char *where(const struct node *n)
{
    if (n->w->n_nodes == 1)
        return "";
    return n->index == 0 ? " at node 0" : " at node 1";
}

void plane_hear(struct node *n, const struct event *event)
{
    struct world *w = n->w;
    world_mix(w, (uint64_t)event->kind << 40 ^ event->conn);
    world_trace(w, "event  %s from conn %" PRIu64 "%s", event_name(event->kind), event->conn,
                where(n));
    if (event->kind == EVENT_SERVER_HELLO) {
        note_beat(w, event->conn);
        hear_hello(w, event->conn);
    }
    shadow_lobbies_event(w, event);
}

struct node *plane_door(struct world *w)
{
    if (w->n_nodes == 1)
        return &w->nodes[0];
    struct node *any = &w->nodes[random_between(&w->random, 0, w->n_nodes - 1)];
    return w->leader && random_chance(&w->random, 80) ? w->leader : any;
}

void plane_cut_off(struct node *n)
{
    struct world *w = n->w;
    size_t at = 0;
    for (struct wire *wire = NULL; (wire = map_next(&w->wires, &at));) {
        if (wire->node == n->index && wire->stalled_until_ms < n->peers_cut_until_ms)
            wire->stalled_until_ms = n->peers_cut_until_ms;
    }
    for (int i = 0; i < w->n_machines; i++)
        w->machines[i].cut_until_ms = n->peers_cut_until_ms;
    w->broker_away_until_ms = n->peers_cut_until_ms;
}

void plane_stored(struct world *w, const struct store_batch *batch, int64_t before_ms)
{
    if (w->n_untold == MAX_UNTOLD) {
        world_wrong(w, "I8: batch %" PRId64 " is one more than can have been on their way",
                    batch->seq);
        return;
    }
    struct untold *kept = &w->untold[w->n_untold++];
    uint8_t *changes = xmalloc(batch->len + 1);
    if (batch->len > 0)
        memcpy(changes, batch->changes, batch->len);
    *kept = (struct untold){*batch, before_ms};
    kept->batch.changes = changes;
    reader_stored(w, batch);
}

static void tell(struct world *w, const struct store_batch *batch)
{
    shadow_stored(w, batch);
    shadow_tickets_stored(w, batch);
    shadow_rooms_stored(w, batch);
    shadow_lines_stored(w, batch);
    shadow_lobbies_stored(w, batch);
}

void plane_told(struct world *w, int64_t seq)
{
    int n = 0;
    for (; n < w->n_untold && w->untold[n].batch.seq <= seq; n++) {
        w->submitted_before_ms = w->untold[n].before_ms;
        tell(w, &w->untold[n].batch);
        free((void *)w->untold[n].batch.changes);
    }
    w->n_untold -= n;
    memmove(w->untold, w->untold + n, (size_t)w->n_untold * sizeof(w->untold[0]));
}

void plane_done(struct world *w)
{
    for (int i = 0; i < w->n_untold; i++)
        free((void *)w->untold[i].batch.changes);
}

void plane_falls(struct world *w)
{
    w->leader = NULL;
    plane_told(w, INT64_MAX); /* what is stored is, though nobody will be told */
    shadow_rooms_crashed(w);
    shadow_faults_crashed(w);
    operator_plane_died(w);
    matchmaker_plane_died(w);
    seekers_plane_died(w);
}

struct node *plane_awake(const struct world *w)
{
    struct node *n = w->leader;
    return n && !node_is_stopped(n) && !n->steps_down_ms && node_holds(n) ? n : NULL;
}

struct happening *plane_after(struct world *w, int64_t delay_ms, enum happening_kind kind)
{
    struct happening *h = world_after(w, delay_ms, kind);
    h->node = w->leader ? w->leader->index : 0;
    h->life = w->reign;
    return h;
}

struct core *plane_core(const struct world *w)
{
    return pipeline_core(w->leader->pipeline);
}

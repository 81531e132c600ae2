/* A simulated game server: an honest process on a bad day. It treats (lobby, token) as idempotent,
 * acknowledges every CANCEL, lists its matches, and repeats MATCH_ENDED until it is answered. Some
 * are slow, some refuse, some never answer, some cannot list, some claim more matches than they
 * have. */
#include "sim/world.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_MS = 10 * 1000, LOADING_MS = 60 * 1000, DROP_MS = 3 * 1000, LATE_MS = 20 * 1000 };

static void wake_after(struct world *w, struct game *g, int64_t delay_ms)
{
    struct happening *h = world_after(w, delay_ms, HAPPENS_GAME);
    h->actor = g->index;
    h->life = g->life;
}

void game_init(struct world *w, struct game *g, int index)
{
    struct random *r = &w->random;
    *g = (struct game){.index = index, .port = 20000 + index};
    g->region = (int8_t)random_between(r, 0, 2);
    g->max = (int32_t)random_between(r, 1, 5);
    g->knows_list = random_chance(r, 80);
    g->says_ready = random_chance(r, 60);
    g->refuse_percent = random_chance(r, 30) ? (int)random_between(r, 1, 60) : 0;
    g->silent_percent = random_chance(r, 30) ? (int)random_between(r, 1, 60) : 0;
    g->ack_max_ms = random_chance(r, 30) ? 9000 : 50;
    g->match_max_ms = random_chance(r, 30) ? 1200 * 1000 : 90 * 1000;
    g->match_max_ms = random_between(r, 5 * 1000, g->match_max_ms);
    g->lies_by = random_chance(r, 10) ? (int32_t)random_between(r, 1, 2) : 0;
    wake_after(w, g, random_between(r, 0, 5000));
}

static struct held_match *find_match(struct game *g, int32_t lobby)
{
    for (int i = 0; i < g->n_matches; i++) {
        if (g->matches[i].lobby == lobby)
            return &g->matches[i];
    }
    return NULL;
}

/* A match that has ended is no longer held, even while nobody has confirmed that. */
static int32_t held_by(const struct game *g)
{
    int32_t n = 0;
    for (int i = 0; i < g->n_matches; i++)
        n += !g->matches[i].ending;
    return n;
}

static void drop_match(struct game *g, struct held_match *m)
{
    *m = g->matches[--g->n_matches];
}

static void say_hello(struct world *w, struct game *g)
{
    struct wire *wire = wire_open(w, WIRE_GAME, g->index);
    g->conn = wire->id;
    g->said_enrolment_id = g->enrolment[0] ? g->enrolment_id : 0;
    g->wired_ms = wire->plane_open ? w->now_ms : g->wired_ms;
    g->registered = false;
    struct letter *l = letter_new(EVENT_SERVER_HELLO, g->conn);
    l->event.server_hello = (struct chat_sv_handshake){
        .server_token = g->enrolment[0] ? letter_text(l, g->enrolment) : STR("x"),
        .ip = STR("10.0.0.1"),
        .port = g->port,
        .region = g->region,
        .max_concurrent_matches = g->max,
    };
    wire_to_plane(w, l);
}

static void say_heartbeat(struct world *w, struct game *g)
{
    struct letter *l = letter_new(EVENT_HEARTBEAT, g->conn);
    float cpu_percent = (float)random_between(&w->random, 0, 100);
    float memory_percent = (float)random_between(&w->random, 0, 100);
    l->event.heartbeat = (struct chat_sv_heartbeat){
        .server_id = g->server_id,
        .current_match_count = held_by(g) + g->lies_by,
        .cpu_percent = cpu_percent,
        .memory_percent = memory_percent,
    };
    wire_to_plane(w, l);
}

static void say_list(struct world *w, struct game *g)
{
    if (!g->knows_list)
        return;
    struct letter *l = letter_new(EVENT_MATCH_LIST, g->conn);
    uint32_t n = 0;
    for (int i = 0; i < g->n_matches; i++) {
        uint32_t lobby = (uint32_t)g->matches[i].lobby;
        for (int k = 0; k < 4 && !g->matches[i].ending; k++)
            l->list[4 * n + (uint32_t)k] = (uint8_t)(lobby >> (8 * k));
        n += !g->matches[i].ending;
    }
    l->event.match_list = (struct chat_sv_match_list){
        .server_id = g->server_id,
        .lobbies = {n, l->list, 4 * (size_t)n},
    };
    wire_to_plane(w, l);
}

static void say_ended(struct world *w, struct game *g, int32_t lobby)
{
    struct letter *l = letter_new(EVENT_MATCH_ENDED, g->conn);
    l->event.match_ended = (struct chat_sv_match_ended){
        .server_id = g->server_id, .lobby = lobby, .winning_team = 1, .duration_s = 60};
    wire_to_plane(w, l);
}

static void say_later(struct world *w, struct game *g, struct letter *l, int64_t delay_ms)
{
    struct happening *h = world_after(w, delay_ms, HAPPENS_SPEAK);
    h->actor = g->index;
    h->life = g->life;
    h->letter = l;
}

/* Mostly after it said READY, and before everybody has loaded; or so late that their time is over
 * before it is known to be lost. */
static void drop_later(struct world *w, const struct game *g)
{
    bool late = random_chance(&w->random, 50);
    int64_t delay_ms =
        random_between(&w->random, late ? LATE_MS : 100, late ? LOADING_MS : DROP_MS);
    struct happening *h = world_after(w, delay_ms, HAPPENS_DROP);
    h->actor = g->index;
    h->life = g->life;
}

static void say_ack(struct world *w, struct game *g, int32_t lobby, bool success)
{
    struct letter *l = letter_new(EVENT_ALLOCATE_ACK, g->conn);
    l->event.allocate_ack = (struct chat_sv_allocate_match_ack){.success = success, .lobby = lobby};
    say_later(w, g, l, random_between(&w->random, 0, g->ack_max_ms));
}

static void say_ready(struct world *w, struct game *g, const struct held_match *m)
{
    struct letter *l = letter_new(EVENT_READY, g->conn);
    l->event.ready = (struct chat_sv_ready_for_match){
        .server_id = g->server_id, .lobby = m->lobby, .match_token = letter_text(l, m->token)};
    say_later(w, g, l, random_between(&w->random, 0, 2 * g->ack_max_ms));
}

static void say_validate(struct world *w, struct game *g, const struct held_match *m)
{
    struct letter *l = letter_new(EVENT_VALIDATE, g->conn);
    int32_t account = (int32_t)random_between(&w->random, 1, 30);
    l->event.validate = (struct chat_sv_validate_token){
        .lobby = m->lobby, .account = account, .match_token = letter_text(l, m->token)};
    wire_to_plane(w, l);
    if (random_chance(&w->random, 20)) {
        struct letter *left = letter_new(EVENT_PLAYER_LEFT, g->conn);
        left->event.player_left = (struct chat_sv_player_left){
            .server_id = g->server_id, .lobby = m->lobby, .account = account};
        say_later(w, g, left, random_between(&w->random, 0, 20 * 1000));
    }
}

void game_speak(struct world *w, struct game *g, struct letter *letter)
{
    /* What was thought on an old connection is not said on a new one. */
    if (letter->event.conn != g->conn) {
        free(letter);
        return;
    }
    wire_to_plane(w, letter);
}

static void end_old_matches(struct world *w, struct game *g)
{
    for (int i = 0; i < g->n_matches; i++) {
        struct held_match *m = &g->matches[i];
        if (m->ends_ms <= w->now_ms)
            m->ending = true;
        if (m->ending && g->registered)
            say_ended(w, g, m->lobby);
    }
}

/* A match that a server holds for a while, and of which the control plane knows nothing although
 * the server is there and has listed it, was never let go: a leak. A server that cannot list its
 * matches is not judged, nor one that was away so long that its matches were given up for lost, nor
 * a match that may be of a time that a restore has lost. */
void game_check_leaks(struct world *w, const struct game *g)
{
    int64_t settled_ms = w->now_ms - 60 * 1000;
    bool judged = g->registered && g->knows_list && g->registered_ms < settled_ms && w->leader;
    for (int i = 0; i < g->n_matches && judged; i++) {
        const struct held_match *m = &g->matches[i];
        bool of_lost_time = w->set_back_ms && m->since_ms <= w->set_back_ms;
        if (m->ending || m->since_ms < g->long_out_ms || m->since_ms > settled_ms || of_lost_time)
            continue;
        if (!core_knows_match(plane_core(w), g->server_id, m->lobby))
            world_wrong(w, "leak: game %d holds lobby %d since %" PRId64 " ms, nobody knows why",
                        g->index, m->lobby, m->since_ms);
        else if (m->lobby >= OWN_LOBBIES && shadow_lobby_is_over(w, m->lobby))
            world_wrong(w, "leak: game %d still holds the match of lobby %d, which is over",
                        g->index, m->lobby);
    }
}

void game_wake(struct world *w, struct game *g)
{
    game_check_leaks(w, g);
    if (!g->conn) {
        say_hello(w, g);
    } else if (g->registered) {
        end_old_matches(w, g);
        say_heartbeat(w, g);
        if (g->n_matches > 0 && random_chance(&w->random, 50))
            say_validate(w, g, &g->matches[random_between(&w->random, 0, g->n_matches - 1)]);
        if (!w->quiet && random_chance(&w->random, 1)) {
            struct letter *l = letter_new(EVENT_DRAIN, g->conn);
            l->event.drain.on = random_chance(&w->random, 50);
            wire_to_plane(w, l);
        }
    }
    wake_after(w, g, HEARTBEAT_MS);
}

static void hear_allocate(struct world *w, struct game *g, const struct effect *e)
{
    struct held_match *m = find_match(g, e->lobby);
    if (m && str_eq(str_of(m->token), e->token)) {
        say_ack(w, g, e->lobby, true); /* asked again: the same yes */
        return;
    }
    if (m && m->ending) { /* given anew, so its end has been heard */
        drop_match(g, m);
        m = NULL;
    }
    if (m && !g->knows_list) { /* it could not say that it still holds that one */
        say_ack(w, g, e->lobby, false);
        return;
    }
    if (m) {
        world_wrong(w, "game %d was given lobby %d twice", g->index, e->lobby);
        return;
    }
    if (held_by(g) >= g->max && g->knows_list) {
        world_wrong(w, "I2: game %d was given lobby %d while it holds %d of %d", g->index, e->lobby,
                    held_by(g), g->max);
        return;
    }
    if (random_chance(&w->random, g->refuse_percent) || g->n_matches >= MAX_MATCHES) {
        say_ack(w, g, e->lobby, false);
        return;
    }
    m = &g->matches[g->n_matches++];
    *m = (struct held_match){
        .lobby = e->lobby,
        .since_ms = w->now_ms,
        .ends_ms = w->now_ms + random_between(&w->random, 1000, g->match_max_ms),
    };
    if (e->lobby >= OWN_LOBBIES && random_chance(&w->random, 90))
        m->ends_ms += LOADING_MS; /* most are played at least as long as their players load */
    (void)str_copy(m->token, sizeof(m->token), e->token);
    if (e->lobby >= OWN_LOBBIES && !w->quiet && random_chance(&w->random, g->drop_percent))
        drop_later(w, g);
    if (random_chance(&w->random, g->silent_percent))
        return;
    bool ready_first = random_chance(&w->random, 10);
    if (!ready_first)
        say_ack(w, g, e->lobby, true);
    if (g->says_ready || ready_first)
        say_ready(w, g, m);
}

static void hear_cancel(struct world *w, struct game *g, const struct effect *e)
{
    struct held_match *m = find_match(g, e->lobby);
    if (m && (e->token.len == 0 || str_eq(str_of(m->token), e->token)))
        drop_match(g, m);
    struct letter *l = letter_new(EVENT_CANCEL_ACK, g->conn);
    l->event.cancel_ack = (struct chat_sv_cancel_match_ack){.success = true, .lobby = e->lobby};
    say_later(w, g, l, random_between(&w->random, 0, 20));
}

static void hear_ended_answer(struct game *g, const struct effect *e)
{
    struct held_match *m = find_match(g, e->lobby);
    if (m && m->ending && e->err != ERR_INTERNAL)
        drop_match(g, m);
}

static void hear_ready_answer(struct game *g, const struct effect *e)
{
    struct held_match *m = find_match(g, e->lobby);
    if (!m)
        return;
    if (e->err == 0)
        m->ready = true;
}

void game_hear(struct world *w, struct game *g, const struct effect *e)
{
    if (e->conn != g->conn)
        return;
    switch (e->kind) {
    case EFFECT_SERVER_HELLO:
        if (e->err) {
            g->enrolment[0] = '\0'; /* the next time with the one that stands in the file */
            return;
        }
        g->registered = true;
        g->registered_ms = w->now_ms;
        g->server_id = e->server_id;
        say_heartbeat(w, g);
        say_list(w, g);
        break;
    case EFFECT_ALLOCATE:
        hear_allocate(w, g, e);
        break;
    case EFFECT_CANCEL:
        hear_cancel(w, g, e);
        break;
    case EFFECT_MATCH_ENDED:
        hear_ended_answer(g, e);
        break;
    case EFFECT_READY:
        hear_ready_answer(g, e);
        break;
    case EFFECT_LIST_ASK:
        say_list(w, g);
        break;
    case EFFECT_PING:
        wire_to_plane(w, letter_new(EVENT_PONG, g->conn));
        break;
    case EFFECT_DRAIN: {
        struct letter *l = letter_new(EVENT_DRAIN_ACK, g->conn);
        l->event.drain.on = e->on;
        wire_to_plane(w, l);
        break;
    }
    default:
        break;
    }
}

/* Its earlier wake-ups and thoughts are void. */
static void come_back_after(struct world *w, struct game *g, int64_t delay_ms)
{
    g->conn = 0;
    g->registered = false;
    g->life++;
    wake_after(w, g, delay_ms);
}

void game_disconnected(struct world *w, struct game *g)
{
    come_back_after(w, g, random_between(&w->random, 50, 8000));
}

void game_restart(struct world *w, struct game *g)
{
    world_trace(w, "game %d: its process restarts", g->index);
    if (g->conn)
        wire_closed_by_peer(w, g->conn);
    g->n_matches = 0;
    game_disconnected(w, g);
}

void game_drop(struct world *w, struct game *g)
{
    struct random *r = &w->random;
    if (!g->conn || w->quiet)
        return;
    if (random_chance(r, 30)) {
        game_restart(w, g);
        return;
    }
    wire_closed_by_peer(w, g->conn);
    come_back_after(w, g, random_between(r, 50, g->away_max_ms));
}

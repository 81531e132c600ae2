#include "cli/bench_crowd.h"

#include "base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHAT_CONN = 1,  /* game servers' connections follow it */
    TOGETHER = 256, /* allocations in one batch */
    REGION = 2,
    ROOM = 100,
    TICK_MS = 100,
};

static void step(struct crowd *c, struct event *e)
{
    core_step(c->core, e, c->now, &c->batch);
}

static void seal(struct crowd *c)
{
    core_seal(c->core, &c->batch);
    core_left(c->core, &c->batch);
    if (c->sealed)
        c->sealed(c->user, &c->batch);
}

static void tick(struct crowd *c, int64_t ms)
{
    c->now.core_ms += ms;
    c->now.wall_ms += ms;
    step(c, &(struct event){.kind = EVENT_TICK});
}

static void register_server(struct crowd *c, int i)
{
    char ip[32];
    snprintf(ip, sizeof(ip), "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
    step(c, &(struct event){.kind = EVENT_SERVER_HELLO,
                            .conn = (conn_id)(CHAT_CONN + 1 + i),
                            .server_hello = {.server_token = STR("bench"),
                                             .ip = str_of(ip),
                                             .port = 7777,
                                             .region = REGION,
                                             .max_concurrent_matches = ROOM}});
    if (i % TOGETHER != TOGETHER - 1)
        return;
    tick(c, 1);
    seal(c);
    batch_clear(&c->batch);
}

void crowd_init(struct crowd *c, int servers, const uint8_t *secret,
                void (*sealed)(void *user, const struct batch *batch), void *user)
{
    static const uint8_t no_secret[CORE_SECRET_SIZE];
    static const uint8_t regions[] = {REGION};
    struct core_config *config = xcalloc(1, sizeof(*config));
    core_config_default(config);
    config->any_token = true;
    memset(c, 0, sizeof(*c));
    c->now = (struct instant){.core_ms = 1, .wall_ms = 1700000000000};
    c->servers = servers;
    c->sealed = sealed;
    c->user = user;
    c->core = core_new(config, secret ? secret : no_secret);
    free(config);
    int err = core_loaded(c->core, 0, c->now);
    assert(err == 0);
    (void)err;
    for (int i = 0; i < servers; i++)
        register_server(c, i);
    step(c, &(struct event){.kind = EVENT_CHAT_HELLO,
                            .conn = CHAT_CONN,
                            .chat_hello = {.service_token = STR("bench"),
                                           .chat_server_id = STR("bench"),
                                           .regions = {1, regions, sizeof(regions)}}});
    seal(c);
    batch_clear(&c->batch);
}

void crowd_done(struct crowd *c)
{
    core_free(c->core);
    batch_done(&c->batch);
}

/* Server ids are given from 1 on, in the order of the connections. */
static int32_t id_of(conn_id conn)
{
    return (int32_t)conn - CHAT_CONN;
}

static void end_oldest(struct crowd *c)
{
    const struct crowd_match *m = &c->held[c->first];
    step(c, &(struct event){
                .kind = EVENT_MATCH_ENDED,
                .conn = m->conn,
                .match_ended = {.server_id = m->server_id, .lobby = m->lobby, .winning_team = 1}});
    c->first = (c->first + 1) % CROWD_HELD_MAX;
    c->n_held--;
}

static void seat_players(struct crowd *c, conn_id conn, int32_t lobby, struct str token,
                         int players)
{
    for (int i = 0; i < players; i++)
        step(c, &(struct event){.kind = EVENT_VALIDATE,
                                .conn = conn,
                                .validate = {.lobby = lobby,
                                             .account = lobby * 100 + i + 1,
                                             .match_token = token}});
}

/* What game servers do about the effects of a sealed batch. */
static void acknowledge(struct crowd *c, const struct effects *effects, int hold, int players)
{
    for (size_t i = 0; i < effects->len; i++) {
        const struct effect *e = &effects->items[i];
        if (e->kind != EFFECT_ALLOCATE)
            continue;
        step(c, &(struct event){.kind = EVENT_ALLOCATE_ACK,
                                .conn = e->conn,
                                .allocate_ack = {.success = true, .lobby = e->lobby}});
        seat_players(c, e->conn, e->lobby, e->token, players);
        c->held[(c->first + c->n_held++) % CROWD_HELD_MAX] =
            (struct crowd_match){e->conn, id_of(e->conn), e->lobby};
        if (c->n_held > hold)
            end_oldest(c);
    }
}

static void ask(struct crowd *c)
{
    step(c, &(struct event){.kind = EVENT_ALLOCATE,
                            .conn = CHAT_CONN,
                            .allocate = {.lobby = ++c->lobby,
                                         .game_type = 1,
                                         .region = REGION,
                                         .player_count = 10,
                                         .average_rating = 1500}});
}

void crowd_allocate(struct crowd *c, int n, int hold, int players)
{
    assert(hold < CROWD_HELD_MAX);
    struct batch asked = {0};
    for (int done = 0; done < n; done += TOGETHER) {
        int now = n - done < TOGETHER ? n - done : TOGETHER;
        tick(c, 1);
        for (int i = 0; i < now; i++)
            ask(c);
        seal(c);
        struct batch empty = asked;
        asked = c->batch;
        c->batch = empty;
        acknowledge(c, &asked.effects, hold, players);
        seal(c);
        batch_clear(&asked);
        batch_clear(&c->batch);
    }
    batch_done(&asked);
}

void crowd_beat(struct crowd *c, int64_t period_ms)
{
    int64_t start_ms = c->now.core_ms;
    int64_t ticked_ms = start_ms;
    for (int i = 0; i < c->servers; i++) {
        int64_t at_ms = start_ms + period_ms * i / c->servers;
        if (at_ms - ticked_ms >= TICK_MS) {
            tick(c, at_ms - ticked_ms);
            ticked_ms = at_ms;
            seal(c);
        }
        step(c, &(struct event){.kind = EVENT_HEARTBEAT,
                                .conn = (conn_id)(CHAT_CONN + 1 + i),
                                .heartbeat = {.server_id = i + 1,
                                              .cpu_percent = (float)((i * 7 + start_ms) % 100),
                                              .memory_percent = (float)(i % 90)}});
        c->batch.immediate.len = 0; /* they leave at once */
    }
    tick(c, start_ms + period_ms - ticked_ms);
    seal(c);
    batch_clear(&c->batch);
}

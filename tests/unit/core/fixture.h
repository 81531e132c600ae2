/* What the core tests share: a core, made-up peers on made-up connections, and a journal it can be
 * loaded from again. Each step is a batch of its own, sealed (and so durable) when the next one
 * begins; its effects can be looked at until then. The invariants are looked at after every step.
 * A fixture belongs to its test: made by fixture_setup, freed by fixture_teardown. */
#pragma once

#include "core/state.h"
#include "lib/unit.h"
#include "wire/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EU = 2, USE = 0, TICK_MS = 250, BEAT_MS = 10 * 1000, FIXTURE_PEERS = 128 };

static const int64_t fixture_wall_ms = 1700000000000;

/* A game server that sends heartbeats while time passes. */
struct fixture_server {
    conn_id conn;
    int32_t id;
    bool silent;
    int32_t reports; /* what it says it holds; -1 = the truth as core sees it */
};

struct fixture {
    struct core_config config;
    struct core *core;
    struct batch batch;
    struct buf journal; /* every sealed change */
    struct instant now;
    int64_t next_beat_ms;
    conn_id last_conn;
    struct fixture_server servers[FIXTURE_PEERS];
    size_t n_servers;
};

static const uint8_t fixture_secret[CORE_SECRET_SIZE] = "0123456789abcdef0123456789abcde";

static inline struct fixture *fixture_new(void)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    core_config_default(&f->config);
    f->config.any_token = true;
    f->core = core_new(&f->config, fixture_secret);
    f->now = (struct instant){1000, fixture_wall_ms};
    assert_int_equal(core_loaded(f->core, 0, f->now), 0);
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    core_free(f->core);
    batch_done(&f->batch);
    buf_done(&f->journal);
    free(f);
}

static inline int fixture_setup(void **state)
{
    *state = fixture_new();
    return 0;
}

static inline int fixture_teardown(void **state)
{
    fixture_free(*state);
    return 0;
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* ── steps ─────────────────────────────────────────────────────────────────────────────────── */

/* The open batch is durable and its effects have left. */
static inline void seal(struct fixture *f)
{
    core_seal(f->core, &f->batch);
    buf_append(&f->journal, f->batch.changes.data, f->batch.changes.len);
    core_left(f->core, &f->batch);
    batch_clear(&f->batch);
}

/* One more event in the open batch. */
static inline void add_step(struct fixture *f, const struct event *event)
{
    core_step(f->core, event, f->now, &f->batch);
    const char *broken = core_check(f->core);
    if (broken)
        fail_msg("%s", broken);
}

static inline void step(struct fixture *f, const struct event *event)
{
    seal(f);
    add_step(f, event);
}

static inline void add_tick(struct fixture *f)
{
    struct event tick = {.kind = EVENT_TICK};
    add_step(f, &tick);
}

static inline void beat(struct fixture *f, struct fixture_server *s)
{
    struct server *server = map_get(&f->core->servers, (uint64_t)s->id);
    if (s->silent || !server || server->conn != s->conn)
        return;
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = s->conn};
    e.heartbeat.server_id = s->id;
    e.heartbeat.current_match_count = s->reports < 0 ? server->open : s->reports;
    add_step(f, &e);
}

/* Time passes in one batch: ticks, and heartbeats of every server that is not silent. */
static inline void pass(struct fixture *f, int64_t ms)
{
    seal(f);
    int64_t end_ms = f->now.core_ms + ms;
    while (f->now.core_ms < end_ms) {
        int64_t left_ms = end_ms - f->now.core_ms;
        int64_t by_ms = left_ms < TICK_MS ? left_ms : TICK_MS;
        f->now.core_ms += by_ms;
        f->now.wall_ms += by_ms;
        bool beats = f->now.core_ms >= f->next_beat_ms;
        for (size_t i = 0; beats && i < f->n_servers; i++)
            beat(f, &f->servers[i]);
        if (beats)
            f->next_beat_ms = f->now.core_ms + BEAT_MS;
        add_tick(f);
    }
}

/* ── effects of the last step ──────────────────────────────────────────────────────────────── */

static inline const struct effect *nth_effect(const struct fixture *f, enum effect_kind kind,
                                              conn_id conn, int nth)
{
    for (size_t i = 0; i < f->batch.effects.len; i++) {
        const struct effect *e = &f->batch.effects.items[i];
        if (e->kind == kind && (!conn || e->conn == conn) && nth-- == 0)
            return e;
    }
    return NULL;
}

/* The first such effect, which must exist. conn 0: to whomever. */
static inline const struct effect *effect(const struct fixture *f, enum effect_kind kind,
                                          conn_id conn)
{
    const struct effect *e = nth_effect(f, kind, conn, 0);
    if (!e)
        fail_msg("no effect of kind %d to connection %d", (int)kind, (int)conn);
    assert_true(e->conn != 0);
    return e;
}

static inline int count_effects(const struct fixture *f, enum effect_kind kind, conn_id conn)
{
    int n = 0;
    while (nth_effect(f, kind, conn, n))
        n++;
    return n;
}

static inline int count_notes(const struct fixture *f, enum note note)
{
    int n = 0;
    for (size_t i = 0; i < f->batch.effects.len; i++) {
        const struct effect *e = &f->batch.effects.items[i];
        n += e->kind == EFFECT_NOTE && e->note == note;
    }
    return n;
}

/* An answer with that outcome, exactly one. */
static inline const struct effect *answered(const struct fixture *f, enum effect_kind kind,
                                            conn_id conn, int err)
{
    assert_int_equal(count_effects(f, kind, conn), 1);
    const struct effect *e = effect(f, kind, conn);
    assert_string_equal(err_sentence(e->err), err_sentence(err));
    assert_int_equal(e->err, err);
    return e;
}

/* ── game servers ──────────────────────────────────────────────────────────────────────────── */

static inline conn_id new_conn(struct fixture *f)
{
    return ++f->last_conn;
}

static inline struct chat_sv_handshake server_hello_of(int32_t port, int32_t max)
{
    return (struct chat_sv_handshake){.server_token = STR("token"),
                                      .ip = STR("10.0.0.1"),
                                      .port = port,
                                      .region = EU,
                                      .max_concurrent_matches = max};
}

/* A hello on a new connection; its outcome is not looked at. */
static inline conn_id say_server_hello(struct fixture *f, struct chat_sv_handshake hello)
{
    struct event e = {.kind = EVENT_SERVER_HELLO, .conn = new_conn(f), .server_hello = hello};
    step(f, &e);
    return e.conn;
}

static inline struct fixture_server *server_on(struct fixture *f, conn_id conn)
{
    for (size_t i = 0; i < f->n_servers; i++) {
        if (f->servers[i].conn == conn)
            return &f->servers[i];
    }
    fail_msg("no server on connection %d", (int)conn);
    return NULL;
}

static inline int32_t id_of(struct fixture *f, conn_id conn)
{
    return server_on(f, conn)->id;
}

static inline struct server *server_of(struct fixture *f, conn_id conn)
{
    struct server *server = map_get(&f->core->servers, (uint64_t)id_of(f, conn));
    assert_non_null(server);
    return server;
}

/* The registered server speaks on that connection from here on. */
static inline void remember_server(struct fixture *f, conn_id conn, int32_t id)
{
    for (size_t i = 0; i < f->n_servers; i++) {
        if (f->servers[i].id == id) {
            f->servers[i].conn = conn;
            f->servers[i].silent = false;
            return;
        }
    }
    assert_true(f->n_servers < FIXTURE_PEERS);
    f->servers[f->n_servers++] = (struct fixture_server){.conn = conn, .id = id, .reports = -1};
}

static inline conn_id server_up_with(struct fixture *f, struct chat_sv_handshake hello)
{
    conn_id conn = say_server_hello(f, hello);
    remember_server(f, conn, answered(f, EFFECT_SERVER_HELLO, conn, 0)->server_id);
    return conn;
}

/* A server of region EU; its address is its port. */
static inline conn_id server_up(struct fixture *f, int32_t port, int32_t max)
{
    return server_up_with(f, server_hello_of(port, max));
}

static inline void gone(struct fixture *f, conn_id conn)
{
    struct event e = {.kind = EVENT_GONE, .conn = conn};
    step(f, &e);
}

static inline void pong(struct fixture *f, conn_id conn)
{
    struct event e = {.kind = EVENT_PONG, .conn = conn};
    step(f, &e);
}

static inline void heartbeat(struct fixture *f, conn_id conn, int32_t count, float cpu, float mem)
{
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = conn};
    e.heartbeat = (struct chat_sv_heartbeat){id_of(f, conn), count, cpu, mem};
    step(f, &e);
    batch_clear(
        &f->batch); /* its acknowledgement; whatever else it caused is looked at elsewhere */
}

static inline void ack(struct fixture *f, conn_id conn, int32_t lobby, bool success)
{
    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = conn};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){success, lobby};
    step(f, &e);
}

static inline void ready(struct fixture *f, conn_id conn, int32_t lobby, const char *token)
{
    struct event e = {.kind = EVENT_READY, .conn = conn};
    e.ready = (struct chat_sv_ready_for_match){id_of(f, conn), lobby, str_of(token)};
    step(f, &e);
}

static inline void cancel_ack(struct fixture *f, conn_id conn, int32_t lobby)
{
    struct event e = {.kind = EVENT_CANCEL_ACK, .conn = conn};
    e.cancel_ack = (struct chat_sv_cancel_match_ack){true, lobby};
    step(f, &e);
}

static inline void match_ended(struct fixture *f, conn_id conn, int32_t lobby)
{
    struct event e = {.kind = EVENT_MATCH_ENDED, .conn = conn};
    e.match_ended = (struct chat_sv_match_ended){id_of(f, conn), lobby, 1, 60};
    step(f, &e);
}

static inline void validate(struct fixture *f, conn_id conn, int32_t lobby, int32_t account,
                            const char *token)
{
    struct event e = {.kind = EVENT_VALIDATE, .conn = conn};
    e.validate = (struct chat_sv_validate_token){lobby, account, str_of(token)};
    step(f, &e);
}

static inline void player_left(struct fixture *f, conn_id conn, int32_t lobby, int32_t account)
{
    struct event e = {.kind = EVENT_PLAYER_LEFT, .conn = conn};
    e.player_left = (struct chat_sv_player_left){id_of(f, conn), lobby, account};
    step(f, &e);
}

/* The server lists n matches: the lobby ids that follow. */
static inline void match_list(struct fixture *f, conn_id conn, int n, ...)
{
    struct buf b = {0};
    va_list lobbies;
    va_start(lobbies, n);
    for (int i = 0; i < n; i++)
        put_i32(&b, va_arg(lobbies, int32_t));
    va_end(lobbies);
    struct event e = {.kind = EVENT_MATCH_LIST, .conn = conn};
    e.match_list.server_id = id_of(f, conn);
    e.match_list.lobbies = (struct chat_list){(uint32_t)n, b.data, b.len};
    step(f, &e);
    buf_done(&b);
}

/* The server comes back on a new connection, under its old id; its list has not been heard. */
static inline conn_id server_back(struct fixture *f, int32_t port, int32_t max)
{
    conn_id conn = server_up(f, port, max);
    assert_int_equal(count_effects(f, EFFECT_LIST_ASK, conn), 1);
    return conn;
}

/* ── chat servers ──────────────────────────────────────────────────────────────────────────── */

static inline conn_id say_chat_hello(struct fixture *f, const char *name, const uint8_t *regions,
                                     uint32_t n)
{
    struct event e = {.kind = EVENT_CHAT_HELLO, .conn = new_conn(f)};
    e.chat_hello.service_token = STR("token");
    e.chat_hello.chat_server_id = str_of(name);
    e.chat_hello.regions = (struct chat_list){n, regions, n};
    step(f, &e);
    return e.conn;
}

/* A chat server of regions USE and EU. */
static inline conn_id chat_up(struct fixture *f, const char *name)
{
    static const uint8_t regions[] = {USE, EU};
    conn_id conn = say_chat_hello(f, name, regions, 2);
    answered(f, EFFECT_CHAT_HELLO, conn, 0);
    return conn;
}

static inline struct chat_server *chat_of(struct fixture *f, conn_id conn)
{
    struct peer *peer = peer_find(f->core, conn);
    assert_non_null(peer);
    return peer->chat;
}

static inline void chat_beat(struct fixture *f, conn_id conn)
{
    struct event e = {.kind = EVENT_CHAT_HEARTBEAT, .conn = conn};
    step(f, &e);
}

static inline struct event request(conn_id conn, int32_t lobby)
{
    struct event e = {.kind = EVENT_ALLOCATE, .conn = conn};
    e.allocate = (struct chat_mgr_server_allocation_request){
        .lobby = lobby, .game_type = 1, .game_mode = 2, .region = EU, .player_count = 10};
    return e;
}

static inline void ask(struct fixture *f, conn_id conn, int32_t lobby)
{
    struct event e = request(conn, lobby);
    step(f, &e);
}

static inline void cancel(struct fixture *f, conn_id conn, int32_t lobby)
{
    struct event e = {.kind = EVENT_CANCEL, .conn = conn};
    e.cancel.lobby = lobby;
    step(f, &e);
}

/* Asks, and the server it is given to says yes. Returns that server's connection and copies the
 * match token. */
static inline conn_id open_match(struct fixture *f, conn_id chat, int32_t lobby,
                                 char token[TOKEN_SIZE])
{
    char scratch[TOKEN_SIZE];
    ask(f, chat, lobby);
    const struct effect *order = effect(f, EFFECT_ALLOCATE, 0);
    conn_id server = order->conn;
    assert_true(str_copy(token ? token : scratch, TOKEN_SIZE, order->token));
    ack(f, server, lobby, true);
    answered(f, EFFECT_ALLOCATED, chat, 0);
    return server;
}

/* The newest session of that lobby, or NULL. */
static inline struct session *session_of(struct fixture *f, int32_t lobby)
{
    struct session *newest = NULL;
    size_t at = 0;
    for (struct session *session; (session = object_next(f->core, ROW_session, &at));)
        if (session->row.lobby == lobby)
            newest = session; /* they come by id */
    return newest;
}

static inline int state_of_session(struct fixture *f, int32_t lobby)
{
    struct session *session = session_of(f, lobby);
    return session ? session->row.state : 0;
}

static inline struct ticket *ticket_of(struct fixture *f, conn_id chat, int32_t lobby)
{
    uint64_t key = map_pair((int32_t)chat_of(f, chat)->row.id, lobby);
    return map_get(&f->core->tickets_by_key, key);
}

/* ── the store, as far as core knows it ────────────────────────────────────────────────────── */

/* A core made of the journal, as a start would. */
static inline struct core *load_journal(struct fixture *f, struct instant now, int64_t seq)
{
    struct core *core = core_new(&f->config, fixture_secret);
    struct cursor c = cursor_of(f->journal.data, f->journal.len);
    struct change change;
    while (change_decode(&c, &change))
        assert_int_equal(core_load(core, &change), 0);
    assert_false(cursor_failed(&c));
    assert_int_equal(core_loaded(core, seq, now), 0);
    return core;
}

/* kill -9 and a new start `away_ms` later: what was not sealed is lost, and so is every
 * connection. */
static inline void crash(struct fixture *f, int64_t away_ms)
{
    int64_t seq = core_seq(f->core);
    f->now.core_ms += away_ms;
    f->now.wall_ms += away_ms;
    core_free(f->core);
    batch_clear(&f->batch);
    f->core = load_journal(f, f->now, seq);
    for (size_t i = 0; i < f->n_servers; i++)
        f->servers[i].conn = 0;
}

/* The open batch could not be stored. */
static inline void lose_batch(struct fixture *f)
{
    struct event down = {.kind = EVENT_STORE_DOWN};
    add_step(f, &down);
    struct batch refusals = {0};
    struct core *fresh = load_journal(f, f->now, core_seq(f->core));
    const struct effects *lost[] = {&f->batch.effects};
    core_take_over(fresh, f->core, lost, 1, &refusals, f->now);
    f->core = fresh;
    batch_done(&f->batch);
    f->batch = refusals;
}

/* Commits work again. */
static inline void store_up(struct fixture *f)
{
    struct event up = {.kind = EVENT_STORE_UP};
    batch_clear(&f->batch);
    add_step(f, &up);
}

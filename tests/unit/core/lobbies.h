/* What the tests of lobbies share, on top of fixture.h: players who connect, load and leave, and
 * somebody who posts accepted matches. Everybody is named by his account, from 1. */
#pragma once

#include "core/client.h"
#include "core/lobby.h"
#include "core/lobby_tell.h"
#include "fixture.h"

enum { MATCHMAKER = 800, FOUR = 4 };

/* Teams of two and two, groups {1 2} {3} {4}. */
static const struct lobby_entry four[FOUR] = {
    {{"ann", 3}, 1, 0, 0, 0},
    {{"bob", 3}, 2, 0, 1, 0},
    {{"cem", 3}, 3, 1, 0, 1},
    {{"dan", 3}, 4, 1, 1, 2},
};

static inline struct lobby_wanted wanted_of(const struct lobby_entry *players, size_t n)
{
    return (struct lobby_wanted){.game_type = 1,
                                 .game_mode = 2,
                                 .region = EU,
                                 .average_rating = 1500,
                                 .map = STR("caldavar"),
                                 .requeue = true,
                                 .players = players,
                                 .n_players = n};
}

static inline const struct effect *post_as(struct fixture *f, const struct lobby_wanted *wanted,
                                           const char *key)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = MATCHMAKER, .at_us = 5};
    e.operate = (struct operate){.verb = OPERATE_CREATE_LOBBY,
                                 .who = STR("matchmaker"),
                                 .fleet = STR("default"),
                                 .key = str_of(key),
                                 .lobby = wanted};
    step(f, &e);
    return effect(f, EFFECT_OPERATED, MATCHMAKER);
}

static inline int64_t post(struct fixture *f, const struct lobby_wanted *wanted)
{
    const struct effect *e = post_as(f, wanted, "");
    assert_int_equal(e->err, 0);
    return e->object;
}

/* The lobby of those four. */
static inline int64_t post_four(struct fixture *f)
{
    struct lobby_wanted wanted = wanted_of(four, FOUR);
    return post(f, &wanted);
}

static inline conn_id say_client_hello(struct fixture *f, int32_t account)
{
    struct event e = {.kind = EVENT_CLIENT_HELLO, .conn = new_conn(f)};
    e.client_hello.account = account;
    step(f, &e);
    return e.conn;
}

static inline conn_id client_up(struct fixture *f, int32_t account)
{
    conn_id conn = say_client_hello(f, account);
    answered(f, EFFECT_CLIENT_HELLO, conn, 0);
    return conn;
}

/* Accounts 1 to n; ret[account - 1] is where he is. */
static inline void clients_up(struct fixture *f, int n, conn_id *ret)
{
    for (int i = 0; i < n; i++)
        ret[i] = client_up(f, i + 1);
}

static inline void say_loading(struct fixture *f, conn_id conn, int64_t lobby, int32_t account,
                               bool loaded)
{
    struct event e = {.kind = EVENT_LOADING, .conn = conn};
    e.loading = (struct chat_cl_player_loading_status){lobby_number(lobby), account, loaded};
    step(f, &e);
}

static inline void load_all(struct fixture *f, int64_t lobby, const conn_id *conns, int n)
{
    for (int i = 0; i < n; i++)
        say_loading(f, conns[i], lobby, i + 1, true);
}

/* The order that the last step gave: its server's connection, and its token. */
static inline conn_id ordered(struct fixture *f, char token[TOKEN_SIZE])
{
    const struct effect *order = effect(f, EFFECT_ALLOCATE, 0);
    assert_true(str_copy(token, TOKEN_SIZE, order->token));
    return order->conn;
}

/* Its server takes it and is ready. */
static inline void serve(struct fixture *f, conn_id server, int64_t lobby, const char *token)
{
    ack(f, server, lobby_number(lobby), true);
    ready(f, server, lobby_number(lobby), token);
}

/* The four are connected and in a lobby that has its server: all that is missing is their loading.
 */
static inline int64_t serve_four(struct fixture *f, conn_id player[FOUR], char token[TOKEN_SIZE])
{
    clients_up(f, FOUR, player);
    int64_t id = post_four(f);
    serve(f, ordered(f, token), id, token);
    return id;
}

static inline int state_of_lobby(struct fixture *f, int64_t id)
{
    const struct lobby *lobby = lobby_find(f->core, id);
    return lobby ? lobby->row.state : 0;
}

static inline const char *reason_of_lobby(struct fixture *f, int64_t id)
{
    return lobby_find(f->core, id)->row.reason;
}

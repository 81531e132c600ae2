/* The three ports as tables: every message they take becomes the right event with its fields, every
 * effect the right message with its fields. Bytes are the wire's tests' business. */
#include "api/chat_client.h"
#include "api/chat_manager.h"
#include "api/chat_server.h"
#include "base/err.h"
#include "lib/unit.h"

#include <string.h>

static const struct port_row *row_of(const struct port *port, enum chat_kind kind)
{
    for (size_t i = 0; i < port->n_rows; i++) {
        if (port->rows[i].message == kind)
            return &port->rows[i];
    }
    return NULL;
}

static struct event event_of(const struct port *port, const struct chat_message *m)
{
    const struct port_row *row = row_of(port, m->kind);
    assert_non_null(row);
    struct event e;
    memset(&e, 0xA5, sizeof(e));
    port_event(row, 77, m, &e);
    assert_int_equal(e.conn, 77);
    return e;
}

static void assert_str(struct str got, const char *wanted)
{
    assert_int_equal(got.len, strlen(wanted));
    assert_memory_equal(got.at, wanted, got.len);
}

static void test_each_port_takes_what_is_addressed_to_it(void **state)
{
    (void)state;
    for (int k = 0; k < CHAT_KINDS; k++) {
        uint16_t page = chat_code(k) & 0xFF00;
        bool to_us = chat_direction(k) & CHAT_TO_US;
        assert_int_equal(row_of(&chat_server_port, k) != NULL, to_us && page == 0x1000);
        assert_int_equal(row_of(&chat_manager_port, k) != NULL, to_us && page == 0x2000);
        assert_int_equal(row_of(&chat_client_port, k) != NULL, to_us && page == 0x0600);
    }
    assert_in_range(chat_server_port.n_rows, 1, PORT_ROWS_MAX);
    assert_in_range(chat_manager_port.n_rows, 1, PORT_ROWS_MAX);
    assert_in_range(chat_client_port.n_rows, 1, PORT_ROWS_MAX);
}

static void test_heartbeats_get_through_when_requests_wait(void **state)
{
    (void)state;
    assert_true(chat_server_port.backlog_max >= 4 * chat_manager_port.backlog_max);
    assert_true(chat_manager_port.backlog_max > chat_client_port.backlog_max);
}

static void test_server_hello(void **state)
{
    (void)state;
    struct chat_message m = {.kind = CHAT_SV_HANDSHAKE,
                             .sv_handshake = {.server_token = STR("t"),
                                              .ip = STR("10.0.0.1"),
                                              .port = 7777,
                                              .region = 2,
                                              .max_concurrent_matches = 4}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_SERVER_HELLO);
    assert_str(e.server_hello.server_token, "t");
    assert_str(e.server_hello.ip, "10.0.0.1");
    assert_int_equal(e.server_hello.port, 7777);
    assert_int_equal(e.server_hello.region, 2);
    assert_int_equal(e.server_hello.max_concurrent_matches, 4);
}

static void test_heartbeat(void **state)
{
    (void)state;
    struct chat_message m = {
        .kind = CHAT_SV_HEARTBEAT,
        .sv_heartbeat = {
            .server_id = 3, .current_match_count = 2, .cpu_percent = 40, .memory_percent = 50}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_HEARTBEAT);
    assert_int_equal(e.heartbeat.server_id, 3);
    assert_int_equal(e.heartbeat.current_match_count, 2);
    assert_true(e.heartbeat.cpu_percent == 40 && e.heartbeat.memory_percent == 50);
}

static void test_acknowledgements(void **state)
{
    (void)state;
    struct chat_message m = {.kind = CHAT_SV_ALLOCATE_MATCH_ACK,
                             .sv_allocate_match_ack = {.success = true, .lobby = 9}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_ALLOCATE_ACK);
    assert_true(e.allocate_ack.success);
    assert_int_equal(e.allocate_ack.lobby, 9);

    m = (struct chat_message){.kind = CHAT_SV_CANCEL_MATCH_ACK,
                              .sv_cancel_match_ack = {.success = true, .lobby = 8}};
    e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_CANCEL_ACK);
    assert_int_equal(e.cancel_ack.lobby, 8);
}

static void test_ready_and_validate(void **state)
{
    (void)state;
    struct chat_message m = {
        .kind = CHAT_SV_READY_FOR_MATCH,
        .sv_ready_for_match = {.server_id = 3, .lobby = 9, .match_token = STR("MATCH_9")}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_READY);
    assert_int_equal(e.ready.lobby, 9);
    assert_str(e.ready.match_token, "MATCH_9");

    m = (struct chat_message){
        .kind = CHAT_SV_VALIDATE_TOKEN,
        .sv_validate_token = {.lobby = 9, .account = 5, .match_token = STR("MATCH_9")}};
    e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_VALIDATE);
    assert_int_equal(e.validate.account, 5);
    assert_str(e.validate.match_token, "MATCH_9");
}

static void test_ends_and_leavers(void **state)
{
    (void)state;
    struct chat_message m = {
        .kind = CHAT_SV_MATCH_ENDED,
        .sv_match_ended = {.server_id = 3, .lobby = 9, .winning_team = 1, .duration_s = 60}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_MATCH_ENDED);
    assert_int_equal(e.match_ended.winning_team, 1);
    assert_int_equal(e.match_ended.duration_s, 60);

    m = (struct chat_message){.kind = CHAT_SV_PLAYER_LEFT,
                              .sv_player_left = {.server_id = 3, .lobby = 9, .account = 5}};
    e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_PLAYER_LEFT);
    assert_int_equal(e.player_left.account, 5);
}

static void test_drain_both_ways(void **state)
{
    (void)state;
    struct chat_message m = {.kind = CHAT_SV_DRAIN, .sv_drain = {.on = true}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_DRAIN);
    assert_true(e.drain.on);
    m = (struct chat_message){.kind = CHAT_SV_DRAIN_ACK, .sv_drain_ack = {.on = false}};
    e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_DRAIN_ACK);
    assert_false(e.drain.on);
}

static void test_match_list(void **state)
{
    (void)state;
    uint8_t lobbies[8] = {7};
    struct chat_message m = {.kind = CHAT_SV_MATCH_LIST,
                             .sv_match_list = {.server_id = 3, .lobbies = {2, lobbies, 8}}};
    struct event e = event_of(&chat_server_port, &m);
    assert_int_equal(e.kind, EVENT_MATCH_LIST);
    assert_int_equal(e.match_list.lobbies.n, 2);
    assert_ptr_equal(e.match_list.lobbies.data, lobbies);
}

static void test_manager_requests(void **state)
{
    (void)state;
    struct chat_message m = {.kind = CHAT_MGR_HANDSHAKE,
                             .mgr_handshake = {.service_token = STR("t"),
                                               .chat_server_id = STR("chat-1"),
                                               .regions = {.n = 1}}};
    struct event e = event_of(&chat_manager_port, &m);
    assert_int_equal(e.kind, EVENT_CHAT_HELLO);
    assert_str(e.chat_hello.chat_server_id, "chat-1");

    m = (struct chat_message){.kind = CHAT_MGR_SERVER_ALLOCATION_REQUEST,
                              .mgr_server_allocation_request = {.lobby = 9,
                                                                .game_type = 1,
                                                                .game_mode = 2,
                                                                .region = 3,
                                                                .player_count = 10,
                                                                .average_rating = 1500}};
    e = event_of(&chat_manager_port, &m);
    assert_int_equal(e.kind, EVENT_ALLOCATE);
    assert_int_equal(e.allocate.lobby, 9);
    assert_int_equal(e.allocate.region, 3);
    assert_int_equal(e.allocate.average_rating, 1500);

    m = (struct chat_message){.kind = CHAT_MGR_ALLOCATION_CANCEL,
                              .mgr_allocation_cancel = {.lobby = 4}};
    e = event_of(&chat_manager_port, &m);
    assert_int_equal(e.kind, EVENT_CANCEL);
    assert_int_equal(e.cancel.lobby, 4);

    m = (struct chat_message){.kind = CHAT_MGR_HEARTBEAT};
    assert_int_equal(event_of(&chat_manager_port, &m).kind, EVENT_CHAT_HEARTBEAT);
}

static void test_players_requests(void **state)
{
    (void)state;
    struct chat_message m = {.kind = CHAT_CL_CONNECT,
                             .cl_connect = {.account = 5, .access_token = STR("t")}};
    struct event e = event_of(&chat_client_port, &m);
    assert_int_equal(e.kind, EVENT_CLIENT_HELLO);
    assert_int_equal(e.client_hello.account, 5);
    assert_str(e.client_hello.access_token, "t");

    m = (struct chat_message){
        .kind = CHAT_CL_PLAYER_LOADING_STATUS,
        .cl_player_loading_status = {.lobby = 9, .account = 5, .loaded = true}};
    e = event_of(&chat_client_port, &m);
    assert_int_equal(e.kind, EVENT_LOADING);
    assert_int_equal(e.loading.lobby, 9);
    assert_int_equal(e.loading.account, 5);
    assert_true(e.loading.loaded);
}

/* ── players' tokens ───────────────────────────────────────────────────────────────────────── */

enum { NOW_S = 1700000000 };

/* What the port says of a token of `account` with those scopes, shown by player 5 a minute before
 * and when it expires. */
static int judged(const char *account, uint32_t scopes, int64_t late_s, char why[ACCESS_WHY_MAX])
{
    static const uint8_t secret[32] = {1};
    struct access *access = access_new(secret);
    struct buf token = {0};
    int64_t wall_ms = (int64_t)NOW_S * 1000;
    access_configure(access, "1", NULL, 0);
    access_issue(access, account, scopes, wall_ms, wall_ms + 60000, &token);
    struct chat_message hello = {
        .kind = CHAT_CL_CONNECT,
        .cl_connect = {.account = 5, .access_token = {(const char *)token.data, token.len}}};
    int err = chat_client_port.judge(access, &hello, wall_ms + late_s * 1000, why);
    buf_done(&token);
    access_free(access);
    return err;
}

static void test_a_players_own_token_is_taken(void **state)
{
    (void)state;
    char why[ACCESS_WHY_MAX] = "";
    assert_int_equal(judged("5", ACCESS_GAME, 0, why), 0);
    assert_int_equal(judged("5", ACCESS_GAME | ACCESS_ADMIN, 59, why), 0);
}

static void test_other_tokens_are_not(void **state)
{
    (void)state;
    char why[ACCESS_WHY_MAX] = "";
    assert_int_equal(judged("5", ACCESS_GAME, 60, why), ERR_INVALID_TOKEN);
    assert_non_null(strstr(why, "expired"));
    assert_int_equal(judged("6", ACCESS_GAME, 0, why), ERR_INVALID_TOKEN);
    assert_string_equal(why, "it is account 6's, not 5's");
    assert_int_equal(judged("05", ACCESS_GAME, 0, why), ERR_INVALID_TOKEN);
    assert_int_equal(judged("5", ACCESS_ADMIN | ACCESS_READ, 0, why), ERR_INVALID_TOKEN);
    assert_string_equal(why, "it has no scope game");
}

/* One effect with everything in it, so that a field taken from the wrong place shows. */
static struct chat_message told(const struct port *port, enum effect_kind kind, int err)
{
    static const uint8_t players[2];
    static const struct lobby_card card = {.game_type = 7,
                                           .game_mode = 8,
                                           .map = STR("the map"),
                                           .teams = {{1, players, 1}, {2, players + 1, 1}}};
    struct effect e = {
        .kind = kind,
        .conn = 77,
        .err = err,
        .lobby = 101,
        .server_id = 102,
        .account = 103,
        .port = 104,
        .game_type = 5,
        .game_mode = 6,
        .event = MATCH_BACK,
        .on = true,
        .ticket = 107,
        .session = 108,
        .wall_ms = 109,
        .ip = STR("the ip"),
        .token = STR("the token"),
        .text = STR("the text"),
        .servers = {.n = 0},
        .card = &card,
    };
    struct chat_message m;
    memset(&m, 0xA5, sizeof(m));
    port->message(&e, &m);
    return m;
}

static void test_answers_of_the_server_port(void **state)
{
    (void)state;
    struct chat_message m = told(&chat_server_port, EFFECT_SERVER_HELLO, 0);
    assert_int_equal(m.kind, CHAT_SV_HANDSHAKE_RESPONSE);
    assert_true(m.sv_handshake_response.ok);
    assert_int_equal(m.sv_handshake_response.server_id, 102);
    assert_int_equal(m.sv_handshake_response.time_ms, 109);
    m = told(&chat_server_port, EFFECT_SERVER_HELLO, ERR_INVALID_CAPACITY);
    assert_false(m.sv_handshake_response.ok);
    assert_str(m.sv_handshake_response.error, "Invalid capacity");

    m = told(&chat_server_port, EFFECT_HEARTBEAT, 0);
    assert_int_equal(m.kind, CHAT_SV_HEARTBEAT_ACK);
    assert_int_equal(m.sv_heartbeat_ack.server_time_ms, 109);
    m = told(&chat_server_port, EFFECT_HEARTBEAT, ERR_DISCONNECTED);
    assert_str(m.sv_heartbeat_ack.error, "Server disconnected");

    m = told(&chat_server_port, EFFECT_READY, ERR_MATCH_NOT_FOUND);
    assert_int_equal(m.kind, CHAT_SV_READY_FOR_MATCH_RESPONSE);
    assert_false(m.sv_ready_for_match_response.ok);
    assert_int_equal(m.sv_ready_for_match_response.lobby, 101);
    assert_str(m.sv_ready_for_match_response.error, "Match not found");

    m = told(&chat_server_port, EFFECT_VALIDATE, ERR_NOT_PART_OF_MATCH);
    assert_int_equal(m.kind, CHAT_SV_VALIDATE_TOKEN_RESPONSE);
    assert_int_equal(m.sv_validate_token_response.account, 103);
    assert_str(m.sv_validate_token_response.error, "Not part of this match");

    m = told(&chat_server_port, EFFECT_MATCH_ENDED, 0);
    assert_int_equal(m.kind, CHAT_SV_MATCH_ENDED_RESPONSE);
    assert_true(m.sv_match_ended_response.ok);
    assert_int_equal(m.sv_match_ended_response.lobby, 101);
}

static void test_commands_of_the_server_port(void **state)
{
    (void)state;
    struct chat_message m = told(&chat_server_port, EFFECT_ALLOCATE, 0);
    assert_int_equal(m.kind, CHAT_SV_ALLOCATE_MATCH);
    assert_int_equal(m.sv_allocate_match.lobby, 101);
    assert_int_equal(m.sv_allocate_match.game_type, 5);
    assert_int_equal(m.sv_allocate_match.game_mode, 6);
    assert_str(m.sv_allocate_match.match_token, "the token");

    m = told(&chat_server_port, EFFECT_CANCEL, 0);
    assert_int_equal(m.kind, CHAT_SV_CANCEL_MATCH);
    assert_int_equal(m.sv_cancel_match.lobby, 101);
    assert_str(m.sv_cancel_match.match_token, "the token");

    m = told(&chat_server_port, EFFECT_DRAIN, 0);
    assert_int_equal(m.kind, CHAT_SV_DRAIN);
    assert_true(m.sv_drain.on);
    m = told(&chat_server_port, EFFECT_DRAIN_ACK, 0);
    assert_int_equal(m.kind, CHAT_SV_DRAIN_ACK);
    assert_true(m.sv_drain_ack.on);

    assert_int_equal(told(&chat_server_port, EFFECT_LIST_ASK, 0).kind, CHAT_SV_MATCH_LIST_ASK);

    m = told(&chat_server_port, EFFECT_KICK, 0);
    assert_int_equal(m.kind, CHAT_SV_KICK_PLAYER);
    assert_int_equal(m.sv_kick_player.account, 103);
    assert_str(m.sv_kick_player.reason, "the text");
}

static void test_answers_and_news_of_the_manager_port(void **state)
{
    (void)state;
    struct chat_message m = told(&chat_manager_port, EFFECT_ALLOCATED, 0);
    assert_int_equal(m.kind, CHAT_MGR_SERVER_ALLOCATION_RESPONSE);
    assert_true(m.mgr_server_allocation_response.ok);
    assert_int_equal(m.mgr_server_allocation_response.lobby, 101);
    assert_int_equal(m.mgr_server_allocation_response.server_id, 102);
    assert_str(m.mgr_server_allocation_response.ip, "the ip");
    assert_int_equal(m.mgr_server_allocation_response.port, 104);
    assert_str(m.mgr_server_allocation_response.match_token, "the token");
    assert_int_equal(m.mgr_server_allocation_response.allocation_time_ms, 109);
    m = told(&chat_manager_port, EFFECT_ALLOCATED, ERR_NO_SERVERS);
    assert_false(m.mgr_server_allocation_response.ok);
    assert_str(m.mgr_server_allocation_response.error, "No servers available");

    m = told(&chat_manager_port, EFFECT_CHAT_HELLO, 0);
    assert_int_equal(m.kind, CHAT_MGR_HANDSHAKE_RESPONSE);
    assert_int_equal(m.mgr_handshake_response.time_ms, 109);
    m = told(&chat_manager_port, EFFECT_CHAT_HELLO, ERR_CHAT_ALREADY_REGISTERED);
    assert_str(m.mgr_handshake_response.error, "Chat Server already registered");

    m = told(&chat_manager_port, EFFECT_CANCELLED, ERR_MATCH_NOT_FOUND);
    assert_int_equal(m.kind, CHAT_MGR_ALLOCATION_CANCEL_RESPONSE);
    assert_str(m.mgr_allocation_cancel_response.error, "Match not found");

    m = told(&chat_manager_port, EFFECT_CHAT_HEARTBEAT, 0);
    assert_int_equal(m.kind, CHAT_MGR_HEARTBEAT_ACK);
    assert_int_equal(m.mgr_heartbeat_ack.time_ms, 109);

    m = told(&chat_manager_port, EFFECT_MATCH_EVENT, 0);
    assert_int_equal(m.kind, CHAT_MGR_MATCH_EVENT);
    assert_int_equal(m.mgr_match_event.kind, MATCH_BACK);
    assert_str(m.mgr_match_event.reason, "the text");
}

static void test_answers_and_news_of_the_client_port(void **state)
{
    (void)state;
    struct chat_message m = told(&chat_client_port, EFFECT_CLIENT_HELLO, 0);
    assert_int_equal(m.kind, CHAT_CL_CONNECT_RESPONSE);
    assert_true(m.cl_connect_response.ok);
    assert_int_equal(m.cl_connect_response.time_ms, 109);
    m = told(&chat_client_port, EFFECT_CLIENT_HELLO, ERR_BANNED);
    assert_false(m.cl_connect_response.ok);
    assert_str(m.cl_connect_response.error, "This player is banned");

    m = told(&chat_client_port, EFFECT_LOBBY_CREATED, 0);
    assert_int_equal(m.kind, CHAT_CL_MATCH_LOBBY_CREATED);
    assert_int_equal(m.cl_match_lobby_created.lobby, 101);
    assert_int_equal(m.cl_match_lobby_created.game_type, 7);
    assert_int_equal(m.cl_match_lobby_created.game_mode, 8);
    assert_str(m.cl_match_lobby_created.map, "the map");
    assert_int_equal(m.cl_match_lobby_created.team1.n, 1);
    assert_int_equal(m.cl_match_lobby_created.team2.n, 2);

    m = told(&chat_client_port, EFFECT_LOADING, 0);
    assert_int_equal(m.kind, CHAT_CL_PLAYER_LOADING_STATUS);
    assert_int_equal(m.cl_player_loading_status.lobby, 101);
    assert_int_equal(m.cl_player_loading_status.account, 103);
    assert_true(m.cl_player_loading_status.loaded);

    m = told(&chat_client_port, EFFECT_MATCH_ABORTED, 0);
    assert_int_equal(m.kind, CHAT_CL_MATCH_ABORTED);
    assert_int_equal(m.cl_match_aborted.lobby, 101);
    assert_str(m.cl_match_aborted.reason, "the text");
    assert_true(m.cl_match_aborted.requeued);
}

static void test_match_start_of_the_client_port(void **state)
{
    (void)state;
    struct chat_message m = told(&chat_client_port, EFFECT_MATCH_START, 0);
    assert_int_equal(m.kind, CHAT_CL_MATCH_START);
    assert_int_equal(m.cl_match_start.lobby, 101);
    assert_str(m.cl_match_start.ip, "the ip");
    assert_int_equal(m.cl_match_start.port, 104);
    assert_str(m.cl_match_start.match_token, "the token");
    assert_int_equal(m.cl_match_start.game_type, 7);
    assert_int_equal(m.cl_match_start.game_mode, 8);
    assert_str(m.cl_match_start.map, "the map");
    assert_int_equal(m.cl_match_start.team1.n, 1);
    assert_int_equal(m.cl_match_start.team2.n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_port_takes_what_is_addressed_to_it),
        cmocka_unit_test(test_heartbeats_get_through_when_requests_wait),
        cmocka_unit_test(test_server_hello),
        cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_acknowledgements),
        cmocka_unit_test(test_ready_and_validate),
        cmocka_unit_test(test_ends_and_leavers),
        cmocka_unit_test(test_drain_both_ways),
        cmocka_unit_test(test_match_list),
        cmocka_unit_test(test_manager_requests),
        cmocka_unit_test(test_answers_of_the_server_port),
        cmocka_unit_test(test_commands_of_the_server_port),
        cmocka_unit_test(test_answers_and_news_of_the_manager_port),
        cmocka_unit_test(test_players_requests),
        cmocka_unit_test(test_a_players_own_token_is_taken),
        cmocka_unit_test(test_other_tokens_are_not),
        cmocka_unit_test(test_answers_and_news_of_the_client_port),
        cmocka_unit_test(test_match_start_of_the_client_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "api/chat_server.h"

#include <stdlib.h>

static const struct port_row rows[] = {
    PORT_ROW(SV_ALLOCATE_MATCH_ACK, sv_allocate_match_ack, ALLOCATE_ACK, allocate_ack),
    PORT_ROW(SV_HEARTBEAT, sv_heartbeat, HEARTBEAT, heartbeat),
    PORT_ROW(SV_READY_FOR_MATCH, sv_ready_for_match, READY, ready),
    PORT_ROW(SV_VALIDATE_TOKEN, sv_validate_token, VALIDATE, validate),
    PORT_ROW(SV_MATCH_ENDED, sv_match_ended, MATCH_ENDED, match_ended),
    PORT_ROW(SV_PLAYER_LEFT, sv_player_left, PLAYER_LEFT, player_left),
    PORT_ROW(SV_CANCEL_MATCH_ACK, sv_cancel_match_ack, CANCEL_ACK, cancel_ack),
    PORT_ROW(SV_MATCH_LIST, sv_match_list, MATCH_LIST, match_list),
    PORT_ROW(SV_HANDSHAKE, sv_handshake, SERVER_HELLO, server_hello),
    PORT_ROW(SV_DRAIN, sv_drain, DRAIN, drain),
    PORT_ROW(SV_DRAIN_ACK, sv_drain, DRAIN_ACK, drain),
};

static void message(const struct effect *e, struct chat_message *ret)
{
    bool ok = e->err == 0;
    struct str error = port_error(e);
    switch (e->kind) {
    case EFFECT_SERVER_HELLO:
        ret->kind = CHAT_SV_HANDSHAKE_RESPONSE;
        ret->sv_handshake_response = (struct chat_sv_handshake_response){
            .ok = ok, .server_id = e->server_id, .time_ms = e->wall_ms, .error = error};
        return;
    case EFFECT_HEARTBEAT:
        ret->kind = CHAT_SV_HEARTBEAT_ACK;
        ret->sv_heartbeat_ack =
            (struct chat_sv_heartbeat_ack){.ok = ok, .server_time_ms = e->wall_ms, .error = error};
        return;
    case EFFECT_ALLOCATE:
        ret->kind = CHAT_SV_ALLOCATE_MATCH;
        ret->sv_allocate_match = (struct chat_sv_allocate_match){.lobby = e->lobby,
                                                                 .game_type = e->game_type,
                                                                 .game_mode = e->game_mode,
                                                                 .match_token = e->token};
        return;
    case EFFECT_READY:
        ret->kind = CHAT_SV_READY_FOR_MATCH_RESPONSE;
        ret->sv_ready_for_match_response =
            (struct chat_sv_ready_for_match_response){.ok = ok, .lobby = e->lobby, .error = error};
        return;
    case EFFECT_VALIDATE:
        ret->kind = CHAT_SV_VALIDATE_TOKEN_RESPONSE;
        ret->sv_validate_token_response = (struct chat_sv_validate_token_response){
            .ok = ok, .lobby = e->lobby, .account = e->account, .error = error};
        return;
    case EFFECT_MATCH_ENDED:
        ret->kind = CHAT_SV_MATCH_ENDED_RESPONSE;
        ret->sv_match_ended_response =
            (struct chat_sv_match_ended_response){.ok = ok, .lobby = e->lobby, .error = error};
        return;
    case EFFECT_CANCEL:
        ret->kind = CHAT_SV_CANCEL_MATCH;
        ret->sv_cancel_match =
            (struct chat_sv_cancel_match){.lobby = e->lobby, .match_token = e->token};
        return;
    case EFFECT_DRAIN:
        ret->kind = CHAT_SV_DRAIN;
        ret->sv_drain = (struct chat_sv_drain){.on = e->on};
        return;
    case EFFECT_DRAIN_ACK:
        ret->kind = CHAT_SV_DRAIN_ACK;
        ret->sv_drain_ack = (struct chat_sv_drain_ack){.on = e->on};
        return;
    case EFFECT_LIST_ASK:
        ret->kind = CHAT_SV_MATCH_LIST_ASK;
        return;
    case EFFECT_KICK:
        ret->kind = CHAT_SV_KICK_PLAYER;
        ret->sv_kick_player = (struct chat_sv_kick_player){
            .lobby = e->lobby, .account = e->account, .reason = e->text};
        return;
    default:
        abort();
    }
}

const struct port chat_server_port = {
    .name = "server",
    .hello = CHAT_SV_HANDSHAKE,
    .hello_max = FRAME_HANDSHAKE_MAX,
    .greeting = EFFECT_SERVER_HELLO,
    .output_cap = 64 * 1024,
    .backlog_max = 64 * 1024 * 1024, /* far above the other: heartbeats must get through */
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .message = message,
};

#include "api/chat_manager.h"

#include <stdlib.h>

static const struct port_row rows[] = {
    PORT_ROW(MGR_SERVER_ALLOCATION_REQUEST, mgr_server_allocation_request, ALLOCATE, allocate),
    PORT_ROW(MGR_ALLOCATION_CANCEL, mgr_allocation_cancel, CANCEL, cancel),
    PORT_ROW_EMPTY(MGR_HEARTBEAT, CHAT_HEARTBEAT),
    PORT_ROW(MGR_HANDSHAKE, mgr_handshake, CHAT_HELLO, chat_hello),
};

static void message(const struct effect *e, struct chat_message *ret)
{
    bool ok = e->err == 0;
    struct str error = port_error(e);
    switch (e->kind) {
    case EFFECT_CHAT_HELLO:
        ret->kind = CHAT_MGR_HANDSHAKE_RESPONSE;
        ret->mgr_handshake_response = (struct chat_mgr_handshake_response){
            .ok = ok, .time_ms = e->wall_ms, .servers = e->servers, .error = error};
        return;
    case EFFECT_ALLOCATED:
        ret->kind = CHAT_MGR_SERVER_ALLOCATION_RESPONSE;
        ret->mgr_server_allocation_response =
            (struct chat_mgr_server_allocation_response){.ok = ok,
                                                         .lobby = e->lobby,
                                                         .server_id = e->server_id,
                                                         .ip = e->ip,
                                                         .port = e->port,
                                                         .match_token = e->token,
                                                         .allocation_time_ms = e->wall_ms,
                                                         .error = error};
        return;
    case EFFECT_CANCELLED:
        ret->kind = CHAT_MGR_ALLOCATION_CANCEL_RESPONSE;
        ret->mgr_allocation_cancel_response = (struct chat_mgr_allocation_cancel_response){
            .ok = ok, .lobby = e->lobby, .error = error};
        return;
    case EFFECT_CHAT_HEARTBEAT:
        ret->kind = CHAT_MGR_HEARTBEAT_ACK;
        ret->mgr_heartbeat_ack = (struct chat_mgr_heartbeat_ack){.time_ms = e->wall_ms};
        return;
    case EFFECT_MATCH_EVENT:
        ret->kind = CHAT_MGR_MATCH_EVENT;
        ret->mgr_match_event =
            (struct chat_mgr_match_event){.lobby = e->lobby, .kind = e->event, .reason = e->text};
        return;
    default:
        abort();
    }
}

const struct port chat_manager_port = {
    .name = "manager",
    .hello = CHAT_MGR_HANDSHAKE,
    .hello_max = FRAME_HANDSHAKE_MAX,
    .greeting = EFFECT_CHAT_HELLO,
    .output_cap = 1024 * 1024,
    .backlog_max = 16 * 1024 * 1024,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .message = message,
};

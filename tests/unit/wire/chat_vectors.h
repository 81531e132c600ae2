/* Every message of the chat protocol as bytes, as fields and as text, written out by hand from the
 * protocol's description. Never produced by the encoder: a vector that fails shows a changed
 * protocol, and the peers out there have not changed with it. */
#pragma once

#include "wire/chat.h"

/* Bytes are hex digits in pairs (blanks do not count) and 'text' for ASCII as it stands. */
struct vector {
    enum chat_direction direction;
    const char *bytes; /* the whole frame */
    struct chat_message message;
    const char *text;
};

/* clang-format off */
#define S(literal) {(literal), sizeof(literal) - 1}
#define LIST(n_, literal) {(n_), (const uint8_t *)(literal), sizeof(literal) - 1}
#define M(kind_, member_, ...) {.kind = CHAT_##kind_, .member_ = {__VA_ARGS__}}

#define TIME_MS 1700000000000
#define TEAM_1 "\xE9\x03\x00\x00" "Ann\0" "\x00" "\xEA\x03\x00\x00" "Bo\0" "\x01"
#define TEAM_2 "\xEB\x03\x00\x00" "C\0" "\x00"
#define SERVERS                                                                                    \
    "\x07\x00\x00\x00" "10.0.0.5\0" "\x87\x69\x00\x00" "\x02" "\x04\x00\x00\x00"                  \
    "\x08\x00\x00\x00" "::1\0" "\xE3\x2B\x00\x00" "\x00" "\xE8\x03\x00\x00"

static const struct vector vectors[] = {
    {CHAT_BOTH, "0200 002A", {.kind = CHAT_PING}, "PING"},
    {CHAT_BOTH, "0200 012A", {.kind = CHAT_PONG}, "PONG"},
    {CHAT_FROM_US, "1100 FF2A 'Protocol error' 00",
     M(ERROR, error, .message = S("Protocol error")),
     "ERROR message=\"Protocol error\""},
    {CHAT_FROM_US, "0300 FF2A 00",
     M(ERROR, error, .message = S("")),
     "ERROR message=\"\""},
    {CHAT_FROM_US, "0A00 FF2A 'a' 22 'b' 5C 0A C29B 00",
     M(ERROR, error, .message = S("a\"b\\\n\xC2\x9B")),
     "ERROR message=\"a\\\"b\\\\\\x0a\\xc2\\x9b\""},

    {CHAT_TO_US, "1A00 0010 'tok-1' 00 '10.0.0.5' 00 87690000 02 04000000",
     M(SV_HANDSHAKE, sv_handshake, .server_token = S("tok-1"), .ip = S("10.0.0.5"), .port = 27015,
       .region = 2, .max_concurrent_matches = 4),
     "SV_HANDSHAKE server_token=\"tok-1\" ip=\"10.0.0.5\" port=27015 region=2 "
     "max_concurrent_matches=4"},
    {CHAT_TO_US, "1400 0010 'cl' C3A9 00 '::1' 00 FFFFFFFF 80 00000080",
     M(SV_HANDSHAKE, sv_handshake, .server_token = S("cl\xC3\xA9"), .ip = S("::1"), .port = -1,
       .region = -128, .max_concurrent_matches = INT32_MIN),
     "SV_HANDSHAKE server_token=\"cl\xC3\xA9\" ip=\"::1\" port=-1 region=-128 "
     "max_concurrent_matches=-2147483648"},
    {CHAT_FROM_US, "0F00 0110 01 07000000 0068E5CF8B010000",
     M(SV_HANDSHAKE_RESPONSE, sv_handshake_response, .ok = true, .server_id = 7,
       .time_ms = TIME_MS),
     "SV_HANDSHAKE_RESPONSE ok=1 server_id=7 time_ms=1700000000000"},
    {CHAT_FROM_US, "1100 0110 00 'Invalid token' 00",
     M(SV_HANDSHAKE_RESPONSE, sv_handshake_response, .error = S("Invalid token")),
     "SV_HANDSHAKE_RESPONSE ok=0 error=\"Invalid token\""},

    {CHAT_TO_US, "1200 0210 07000000 03000000 00004841 0000C842",
     M(SV_HEARTBEAT, sv_heartbeat, .server_id = 7, .current_match_count = 3, .cpu_percent = 12.5f,
       .memory_percent = 100.0f),
     "SV_HEARTBEAT server_id=7 current_match_count=3 cpu_percent=12.5 memory_percent=100.0"},
    {CHAT_TO_US, "1200 0210 FFFFFFFF 40420F00 00000000 00000000",
     M(SV_HEARTBEAT, sv_heartbeat, .server_id = -1, .current_match_count = 1000000),
     "SV_HEARTBEAT server_id=-1 current_match_count=1000000 cpu_percent=0.0 memory_percent=0.0"},
    {CHAT_FROM_US, "0B00 0310 01 0068E5CF8B010000",
     M(SV_HEARTBEAT_ACK, sv_heartbeat_ack, .ok = true, .server_time_ms = TIME_MS),
     "SV_HEARTBEAT_ACK ok=1 server_time_ms=1700000000000"},
    {CHAT_FROM_US, "1900 0310 00 'Server not registered' 00",
     M(SV_HEARTBEAT_ACK, sv_heartbeat_ack, .error = S("Server not registered")),
     "SV_HEARTBEAT_ACK ok=0 error=\"Server not registered\""},

    {CHAT_FROM_US, "1500 0410 2A000000 01 18 'MATCH_42_g_1' 00",
     M(SV_ALLOCATE_MATCH, sv_allocate_match, .lobby = 42, .game_type = 1, .game_mode = 24,
       .match_token = S("MATCH_42_g_1")),
     "SV_ALLOCATE_MATCH lobby=42 game_type=1 game_mode=24 match_token=\"MATCH_42_g_1\""},
    {CHAT_TO_US, "0700 0510 01 2A000000",
     M(SV_ALLOCATE_MATCH_ACK, sv_allocate_match_ack, .success = true, .lobby = 42),
     "SV_ALLOCATE_MATCH_ACK success=1 lobby=42"},
    {CHAT_TO_US, "0700 0510 00 2A000000",
     M(SV_ALLOCATE_MATCH_ACK, sv_allocate_match_ack, .success = false, .lobby = 42),
     "SV_ALLOCATE_MATCH_ACK success=0 lobby=42"},
    {CHAT_TO_US, "1700 0610 07000000 2A000000 'MATCH_42_g_1' 00",
     M(SV_READY_FOR_MATCH, sv_ready_for_match, .server_id = 7, .lobby = 42,
       .match_token = S("MATCH_42_g_1")),
     "SV_READY_FOR_MATCH server_id=7 lobby=42 match_token=\"MATCH_42_g_1\""},
    {CHAT_FROM_US, "0700 0710 01 2A000000",
     M(SV_READY_FOR_MATCH_RESPONSE, sv_ready_for_match_response, .ok = true, .lobby = 42),
     "SV_READY_FOR_MATCH_RESPONSE ok=1 lobby=42"},
    {CHAT_FROM_US, "1700 0710 00 2A000000 'Match not found' 00",
     M(SV_READY_FOR_MATCH_RESPONSE, sv_ready_for_match_response, .lobby = 42,
       .error = S("Match not found")),
     "SV_READY_FOR_MATCH_RESPONSE ok=0 lobby=42 error=\"Match not found\""},
    {CHAT_FROM_US, "1300 0810 2A000000 'MATCH_42_g_1' 00",
     M(SV_CANCEL_MATCH, sv_cancel_match, .lobby = 42, .match_token = S("MATCH_42_g_1")),
     "SV_CANCEL_MATCH lobby=42 match_token=\"MATCH_42_g_1\""},
    {CHAT_TO_US, "0700 0910 01 2A000000",
     M(SV_CANCEL_MATCH_ACK, sv_cancel_match_ack, .success = true, .lobby = 42),
     "SV_CANCEL_MATCH_ACK success=1 lobby=42"},

    {CHAT_TO_US, "1700 0A10 2A000000 E9030000 'MATCH_42_g_1' 00",
     M(SV_VALIDATE_TOKEN, sv_validate_token, .lobby = 42, .account = 1001,
       .match_token = S("MATCH_42_g_1")),
     "SV_VALIDATE_TOKEN lobby=42 account=1001 match_token=\"MATCH_42_g_1\""},
    {CHAT_FROM_US, "0B00 0B10 01 2A000000 E9030000",
     M(SV_VALIDATE_TOKEN_RESPONSE, sv_validate_token_response, .ok = true, .lobby = 42,
       .account = 1001),
     "SV_VALIDATE_TOKEN_RESPONSE ok=1 lobby=42 account=1001"},
    {CHAT_FROM_US, "2200 0B10 00 2A000000 E9030000 'Not part of this match' 00",
     M(SV_VALIDATE_TOKEN_RESPONSE, sv_validate_token_response, .lobby = 42, .account = 1001,
       .error = S("Not part of this match")),
     "SV_VALIDATE_TOKEN_RESPONSE ok=0 lobby=42 account=1001 error=\"Not part of this match\""},
    {CHAT_TO_US, "0F00 0C10 07000000 2A000000 02 08070000",
     M(SV_MATCH_ENDED, sv_match_ended, .server_id = 7, .lobby = 42, .winning_team = 2,
       .duration_s = 1800),
     "SV_MATCH_ENDED server_id=7 lobby=42 winning_team=2 duration_s=1800"},
    {CHAT_FROM_US, "0700 0D10 01 2A000000",
     M(SV_MATCH_ENDED_RESPONSE, sv_match_ended_response, .ok = true, .lobby = 42),
     "SV_MATCH_ENDED_RESPONSE ok=1 lobby=42"},
    {CHAT_FROM_US, "1700 0D10 00 2A000000 'Match not found' 00",
     M(SV_MATCH_ENDED_RESPONSE, sv_match_ended_response, .lobby = 42,
       .error = S("Match not found")),
     "SV_MATCH_ENDED_RESPONSE ok=0 lobby=42 error=\"Match not found\""},
    {CHAT_TO_US, "0E00 0E10 07000000 2A000000 E9030000",
     M(SV_PLAYER_LEFT, sv_player_left, .server_id = 7, .lobby = 42, .account = 1001),
     "SV_PLAYER_LEFT server_id=7 lobby=42 account=1001"},

    {CHAT_BOTH, "0300 0F10 01", M(SV_DRAIN, sv_drain, .on = true), "SV_DRAIN on=1"},
    {CHAT_BOTH, "0300 0F10 00", M(SV_DRAIN, sv_drain, .on = false), "SV_DRAIN on=0"},
    {CHAT_BOTH, "0300 1010 01", M(SV_DRAIN_ACK, sv_drain_ack, .on = true), "SV_DRAIN_ACK on=1"},
    {CHAT_BOTH, "0300 1010 00", M(SV_DRAIN_ACK, sv_drain_ack, .on = false), "SV_DRAIN_ACK on=0"},
    {CHAT_TO_US, "0F00 1110 07000000 02 2A000000 FEFFFFFF",
     M(SV_MATCH_LIST, sv_match_list, .server_id = 7,
       .lobbies = LIST(2, "\x2A\x00\x00\x00\xFE\xFF\xFF\xFF")),
     "SV_MATCH_LIST server_id=7 lobbies=[42 -2]"},
    {CHAT_TO_US, "0700 1110 07000000 00",
     M(SV_MATCH_LIST, sv_match_list, .server_id = 7, .lobbies = LIST(0, "")),
     "SV_MATCH_LIST server_id=7 lobbies=[]"},
    {CHAT_FROM_US, "0200 1110", {.kind = CHAT_SV_MATCH_LIST_ASK}, "SV_MATCH_LIST_ASK"},
    {CHAT_FROM_US, "1100 1210 2A000000 E9030000 'banned' 00",
     M(SV_KICK_PLAYER, sv_kick_player, .lobby = 42, .account = 1001, .reason = S("banned")),
     "SV_KICK_PLAYER lobby=42 account=1001 reason=\"banned\""},

    {CHAT_TO_US, "1100 0020 'svc' 00 'chat-1' 00 03 00 02 FF",
     M(MGR_HANDSHAKE, mgr_handshake, .service_token = S("svc"), .chat_server_id = S("chat-1"),
       .regions = LIST(3, "\x00\x02\xFF")),
     "MGR_HANDSHAKE service_token=\"svc\" chat_server_id=\"chat-1\" regions=[0 2 -1]"},
    {CHAT_TO_US, "0E00 0020 'svc' 00 'chat-1' 00 00",
     M(MGR_HANDSHAKE, mgr_handshake, .service_token = S("svc"), .chat_server_id = S("chat-1"),
       .regions = LIST(0, "")),
     "MGR_HANDSHAKE service_token=\"svc\" chat_server_id=\"chat-1\" regions=[]"},
    {CHAT_FROM_US, "3600 0120 01 0068E5CF8B010000 02000000"
                   "07000000 '10.0.0.5' 00 87690000 02 04000000"
                   "08000000 '::1' 00 E32B0000 00 E8030000",
     M(MGR_HANDSHAKE_RESPONSE, mgr_handshake_response, .ok = true, .time_ms = TIME_MS,
       .servers = LIST(2, SERVERS)),
     "MGR_HANDSHAKE_RESPONSE ok=1 time_ms=1700000000000 servers=["
     "{server_id=7 ip=\"10.0.0.5\" port=27015 region=2 max_matches=4}"
     "{server_id=8 ip=\"::1\" port=11235 region=0 max_matches=1000}]"},
    {CHAT_FROM_US, "0F00 0120 01 0068E5CF8B010000 00000000",
     M(MGR_HANDSHAKE_RESPONSE, mgr_handshake_response, .ok = true, .time_ms = TIME_MS,
       .servers = LIST(0, "")),
     "MGR_HANDSHAKE_RESPONSE ok=1 time_ms=1700000000000 servers=[]"},
    {CHAT_FROM_US, "1100 0120 00 'Invalid token' 00",
     M(MGR_HANDSHAKE_RESPONSE, mgr_handshake_response, .error = S("Invalid token")),
     "MGR_HANDSHAKE_RESPONSE ok=0 error=\"Invalid token\""},

    {CHAT_TO_US, "0E00 0220 2A000000 01 03 02 0A DC050000",
     M(MGR_SERVER_ALLOCATION_REQUEST, mgr_server_allocation_request, .lobby = 42, .game_type = 1,
       .game_mode = 3, .region = 2, .player_count = 10, .average_rating = 1500),
     "MGR_SERVER_ALLOCATION_REQUEST lobby=42 game_type=1 game_mode=3 region=2 player_count=10 "
     "average_rating=1500"},
    {CHAT_TO_US, "0E00 0220 FFFFFF7F 7F 80 11 FF FFFFFFFF",
     M(MGR_SERVER_ALLOCATION_REQUEST, mgr_server_allocation_request, .lobby = INT32_MAX,
       .game_type = 127, .game_mode = -128, .region = 17, .player_count = -1,
       .average_rating = -1),
     "MGR_SERVER_ALLOCATION_REQUEST lobby=2147483647 game_type=127 game_mode=-128 region=17 "
     "player_count=-1 average_rating=-1"},
    {CHAT_FROM_US, "2D00 0320 01 2A000000 07000000 '10.0.0.5' 00 87690000 'MATCH_42_g_1' 00"
                   "8900000000000000",
     M(MGR_SERVER_ALLOCATION_RESPONSE, mgr_server_allocation_response, .ok = true, .lobby = 42,
       .server_id = 7, .ip = S("10.0.0.5"), .port = 27015, .match_token = S("MATCH_42_g_1"),
       .allocation_time_ms = 137),
     "MGR_SERVER_ALLOCATION_RESPONSE ok=1 lobby=42 server_id=7 ip=\"10.0.0.5\" port=27015 "
     "match_token=\"MATCH_42_g_1\" allocation_time_ms=137"},
    {CHAT_FROM_US, "1C00 0320 00 2A000000 'No servers available' 00",
     M(MGR_SERVER_ALLOCATION_RESPONSE, mgr_server_allocation_response, .lobby = 42,
       .error = S("No servers available")),
     "MGR_SERVER_ALLOCATION_RESPONSE ok=0 lobby=42 error=\"No servers available\""},

    {CHAT_TO_US, "0200 0420", {.kind = CHAT_MGR_HEARTBEAT}, "MGR_HEARTBEAT"},
    {CHAT_FROM_US, "0A00 0520 0068E5CF8B010000",
     M(MGR_HEARTBEAT_ACK, mgr_heartbeat_ack, .time_ms = TIME_MS),
     "MGR_HEARTBEAT_ACK time_ms=1700000000000"},
    {CHAT_FROM_US, "0A00 0520 0000000000000080",
     M(MGR_HEARTBEAT_ACK, mgr_heartbeat_ack, .time_ms = INT64_MIN),
     "MGR_HEARTBEAT_ACK time_ms=-9223372036854775808"},
    {CHAT_TO_US, "0600 0620 2A000000",
     M(MGR_ALLOCATION_CANCEL, mgr_allocation_cancel, .lobby = 42),
     "MGR_ALLOCATION_CANCEL lobby=42"},
    {CHAT_FROM_US, "0700 0720 01 2A000000",
     M(MGR_ALLOCATION_CANCEL_RESPONSE, mgr_allocation_cancel_response, .ok = true, .lobby = 42),
     "MGR_ALLOCATION_CANCEL_RESPONSE ok=1 lobby=42"},
    {CHAT_FROM_US, "1700 0720 00 2A000000 'Match not found' 00",
     M(MGR_ALLOCATION_CANCEL_RESPONSE, mgr_allocation_cancel_response, .lobby = 42,
       .error = S("Match not found")),
     "MGR_ALLOCATION_CANCEL_RESPONSE ok=0 lobby=42 error=\"Match not found\""},
    {CHAT_FROM_US, "1300 0820 2A000000 01 'server lost' 00",
     M(MGR_MATCH_EVENT, mgr_match_event, .lobby = 42, .kind = 1, .reason = S("server lost")),
     "MGR_MATCH_EVENT lobby=42 kind=1 reason=\"server lost\""},
    {CHAT_FROM_US, "0800 0820 2A000000 00 00",
     M(MGR_MATCH_EVENT, mgr_match_event, .lobby = 42, .kind = 0, .reason = S("")),
     "MGR_MATCH_EVENT lobby=42 kind=0 reason=\"\""},

    {CHAT_TO_US, "0A00 0006 E9030000 'jwt' 00",
     M(CL_CONNECT, cl_connect, .account = 1001, .access_token = S("jwt")),
     "CL_CONNECT account=1001 access_token=\"jwt\""},
    {CHAT_FROM_US, "0B00 0106 01 0068E5CF8B010000",
     M(CL_CONNECT_RESPONSE, cl_connect_response, .ok = true, .time_ms = TIME_MS),
     "CL_CONNECT_RESPONSE ok=1 time_ms=1700000000000"},
    {CHAT_FROM_US, "1100 0106 00 'Invalid token' 00",
     M(CL_CONNECT_RESPONSE, cl_connect_response, .error = S("Invalid token")),
     "CL_CONNECT_RESPONSE ok=0 error=\"Invalid token\""},
    {CHAT_FROM_US, "2B00 0206 00000040 01 00 'caldavar' 00"
                   "02 E9030000 'Ann' 00 00 EA030000 'Bo' 00 01"
                   "01 EB030000 'C' 00 00",
     M(CL_MATCH_LOBBY_CREATED, cl_match_lobby_created, .lobby = 1 << 30, .game_type = 1,
       .game_mode = 0, .map = S("caldavar"), .team1 = LIST(2, TEAM_1), .team2 = LIST(1, TEAM_2)),
     "CL_MATCH_LOBBY_CREATED lobby=1073741824 game_type=1 game_mode=0 map=\"caldavar\" "
     "team1=[{account=1001 name=\"Ann\" slot=0}{account=1002 name=\"Bo\" slot=1}] "
     "team2=[{account=1003 name=\"C\" slot=0}]"},
    {CHAT_FROM_US, "0B00 0206 00000040 01 00 00 00 00",
     M(CL_MATCH_LOBBY_CREATED, cl_match_lobby_created, .lobby = 1 << 30, .game_type = 1,
       .game_mode = 0, .map = S(""), .team1 = LIST(0, ""), .team2 = LIST(0, "")),
     "CL_MATCH_LOBBY_CREATED lobby=1073741824 game_type=1 game_mode=0 map=\"\" team1=[] team2=[]"},
    {CHAT_BOTH, "0B00 0306 00000040 E9030000 01",
     M(CL_PLAYER_LOADING_STATUS, cl_player_loading_status, .lobby = 1 << 30, .account = 1001,
       .loaded = true),
     "CL_PLAYER_LOADING_STATUS lobby=1073741824 account=1001 loaded=1"},
    {CHAT_BOTH, "0B00 0306 00000040 E9030000 00",
     M(CL_PLAYER_LOADING_STATUS, cl_player_loading_status, .lobby = 1 << 30, .account = 1001,
       .loaded = false),
     "CL_PLAYER_LOADING_STATUS lobby=1073741824 account=1001 loaded=0"},
    {CHAT_FROM_US, "4500 0406 00000040 '10.0.0.5' 00 87690000 'MATCH_42_g_1' 00 01 00"
                   "'caldavar' 00"
                   "02 E9030000 'Ann' 00 00 EA030000 'Bo' 00 01"
                   "01 EB030000 'C' 00 00",
     M(CL_MATCH_START, cl_match_start, .lobby = 1 << 30, .ip = S("10.0.0.5"), .port = 27015,
       .match_token = S("MATCH_42_g_1"), .game_type = 1, .game_mode = 0, .map = S("caldavar"),
       .team1 = LIST(2, TEAM_1), .team2 = LIST(1, TEAM_2)),
     "CL_MATCH_START lobby=1073741824 ip=\"10.0.0.5\" port=27015 match_token=\"MATCH_42_g_1\" "
     "game_type=1 game_mode=0 map=\"caldavar\" "
     "team1=[{account=1001 name=\"Ann\" slot=0}{account=1002 name=\"Bo\" slot=1}] "
     "team2=[{account=1003 name=\"C\" slot=0}]"},
    {CHAT_FROM_US, "1700 0506 00000040 'Loading timeout' 00 01",
     M(CL_MATCH_ABORTED, cl_match_aborted, .lobby = 1 << 30, .reason = S("Loading timeout"),
       .requeued = true),
     "CL_MATCH_ABORTED lobby=1073741824 reason=\"Loading timeout\" requeued=1"},
    {CHAT_FROM_US, "1B00 0506 00000040 'Player disconnected' 00 00",
     M(CL_MATCH_ABORTED, cl_match_aborted, .lobby = 1 << 30, .reason = S("Player disconnected"),
       .requeued = false),
     "CL_MATCH_ABORTED lobby=1073741824 reason=\"Player disconnected\" requeued=0"},
};
/* clang-format on */

enum { VECTORS = sizeof(vectors) / sizeof(vectors[0]) };

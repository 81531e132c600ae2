#include "api/chat_client.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct port_row rows[] = {
    PORT_ROW(CL_PLAYER_LOADING_STATUS, cl_player_loading_status, LOADING, loading),
    PORT_ROW(CL_CONNECT, cl_connect, CLIENT_HELLO, client_hello),
};

/* A player's token is for the account he says he is, and for playing. */
static int judge(struct access *access, const struct chat_message *hello, int64_t wall_ms,
                 char why[ACCESS_WHY_MAX])
{
    struct access_grant grant;
    char account[16];
    if (access_check(access, hello->cl_connect.access_token, wall_ms, &grant, why) != 0)
        return ERR_INVALID_TOKEN;
    snprintf(account, sizeof(account), "%d", hello->cl_connect.account);
    if (strcmp(grant.account, account) != 0) {
        snprintf(why, ACCESS_WHY_MAX, "it is account %s's, not %s's", grant.account, account);
        return ERR_INVALID_TOKEN;
    }
    if (!(grant.scopes & ACCESS_GAME)) {
        snprintf(why, ACCESS_WHY_MAX, "it has no scope %s", access_scope_name(ACCESS_GAME));
        return ERR_INVALID_TOKEN;
    }
    return 0;
}

static void message(const struct effect *e, struct chat_message *ret)
{
    switch (e->kind) {
    case EFFECT_CLIENT_HELLO:
        ret->kind = CHAT_CL_CONNECT_RESPONSE;
        ret->cl_connect_response = (struct chat_cl_connect_response){
            .ok = e->err == 0, .time_ms = e->wall_ms, .error = port_error(e)};
        return;
    case EFFECT_LOBBY_CREATED:
        ret->kind = CHAT_CL_MATCH_LOBBY_CREATED;
        ret->cl_match_lobby_created =
            (struct chat_cl_match_lobby_created){.lobby = e->lobby,
                                                 .game_type = e->card->game_type,
                                                 .game_mode = e->card->game_mode,
                                                 .map = e->card->map,
                                                 .team1 = e->card->teams[0],
                                                 .team2 = e->card->teams[1]};
        return;
    case EFFECT_LOADING:
        ret->kind = CHAT_CL_PLAYER_LOADING_STATUS;
        ret->cl_player_loading_status = (struct chat_cl_player_loading_status){
            .lobby = e->lobby, .account = e->account, .loaded = e->on};
        return;
    case EFFECT_MATCH_START:
        ret->kind = CHAT_CL_MATCH_START;
        ret->cl_match_start = (struct chat_cl_match_start){.lobby = e->lobby,
                                                           .ip = e->ip,
                                                           .port = e->port,
                                                           .match_token = e->token,
                                                           .game_type = e->card->game_type,
                                                           .game_mode = e->card->game_mode,
                                                           .map = e->card->map,
                                                           .team1 = e->card->teams[0],
                                                           .team2 = e->card->teams[1]};
        return;
    case EFFECT_MATCH_ABORTED:
        ret->kind = CHAT_CL_MATCH_ABORTED;
        ret->cl_match_aborted =
            (struct chat_cl_match_aborted){.lobby = e->lobby, .reason = e->text, .requeued = e->on};
        return;
    default:
        abort();
    }
}

const struct port chat_client_port = {
    .name = "client",
    .hello = CHAT_CL_CONNECT,
    .hello_max = 2 + 4 + CURSOR_STR_MAX + 1, /* command, account, the longest token there can be */
    .greeting = EFFECT_CLIENT_HELLO,
    .judge = judge,
    .must_pong = true, /* a player has no heartbeat */
    .output_cap = 64 * 1024,
    .backlog_max = 8 * 1024 * 1024, /* players wait first: there are the most of them */
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
    .message = message,
};

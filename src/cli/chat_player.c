#include "cli/chat_player.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TOKEN_S = 24 * 3600 };

const char *chat_player_open(struct chat_player *p, int32_t account, const char *token,
                             const char *address, const struct chat_tls_wish *tls, int timeout_ms)
{
    p->account = account;
    const char *why = chat_link_open(&p->link, address, tls, timeout_ms);
    if (why)
        return why;
    const struct chat_message hello = {
        .kind = CHAT_CL_CONNECT, .cl_connect = {.account = account, .access_token = str_of(token)}};
    (void)chat_link_send(&p->link, &hello); /* when that fails, so does reading, which says why */
    return NULL;
}

void chat_player_close(struct chat_player *p)
{
    if (p->link.fd >= 0)
        chat_link_done(&p->link);
}

bool chat_player_load(struct chat_player *p, int32_t lobby, bool loaded)
{
    const struct chat_message status = {
        .kind = CHAT_CL_PLAYER_LOADING_STATUS,
        .cl_player_loading_status = {.lobby = lobby, .account = p->account, .loaded = loaded}};
    return chat_link_send(&p->link, &status);
}

static void put_wish(struct buf *out, int32_t account)
{
    char text[16];
    struct json_writer w = {.out = out};
    snprintf(text, sizeof(text), "%" PRId32, account);
    json_open_object(&w);
    json_key_text(&w, "account", str_of(text));
    json_key(&w, "scopes");
    json_open_array(&w);
    json_text(&w, STR("game"));
    json_close_array(&w);
    json_key_int(&w, "expires_in_s", TOKEN_S);
    json_close_object(&w);
}

enum client_result chat_player_token(struct client *client, int32_t account,
                                     char ret[CHAT_PLAYER_TOKEN_MAX], struct client_answer *answer)
{
    struct buf body = {0};
    put_wish(&body, account);
    enum client_result result =
        client_call(client, HTTP_POST, "/v1/access-tokens", &body, CLIENT_TIMEOUT_S, answer);
    buf_done(&body);
    struct str token = json_get_text(json_member(answer->json, "token"));
    if (result == CLIENT_DONE && !str_copy(ret, CHAT_PLAYER_TOKEN_MAX, token)) {
        snprintf(answer->why, sizeof(answer->why), "Muster gave a token that is too long");
        return CLIENT_UNREACHABLE;
    }
    return result;
}

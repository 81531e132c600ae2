#include "cli/demo_rooms.h"

#include "base/full.h"
#include "base/json.h"
#include "cli/beside.h"
#include "cli/client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_S = 366 * 24 * 3600 };

/* Small and short-lived, so that rooms appear, fill and vanish while somebody looks. */
static void put_arena(struct json_writer *w, const char *binary)
{
    json_open_object(w);
    json_key_text(w, "name", STR("arena"));
    json_key_text(w, "provider", STR("agent"));
    json_key_text(w, "game", STR("arena"));
    json_key_text(w, "server", STR("main"));
    json_key_text(w, "binary", str_of(binary));
    json_key_int(w, "max_players", 4);
    json_key_int(w, "empty_timeout_s", 5);
    json_key(w, "versions");
    json_open_array(w);
    json_open_object(w);
    json_key_text(w, "name", STR("1.0"));
    json_close_object(w);
    json_close_array(w);
    json_close_object(w);
}

/* Somebody watches; he should not have to wait for a minute to see a lobby fail. */
static void put_short_timeouts(struct json_writer *w)
{
    json_key(w, "timeouts");
    json_open_object(w);
    json_key_int(w, "loading_ms", 8000);
    json_key_int(w, "player_gone_ms", 3000);
    json_key_int(w, "ack_ms", 1000);
    json_key_int(w, "ready_ms", 1500);
    json_key_int(w, "ticket_ms", 6000);
    json_key_int(w, "heartbeat_ms", 15000);
    json_key_int(w, "lost_ms", 10000);
    json_key_int(w, "backoff_first_ms", 1000);
    json_key_int(w, "backoff_max_ms", 4000);
    json_close_object(w);
}

/* JSON is YAML. */
static void put_config(struct buf *out, const char *arena, bool faults)
{
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "default_region", STR("EU"));
    if (faults)
        put_short_timeouts(&w);
    json_key(&w, "fleets");
    json_open_array(&w);
    json_open_object(&w);
    json_key_text(&w, "name", STR("default"));
    json_close_object(&w);
    if (arena)
        put_arena(&w, arena);
    json_close_array(&w);
    json_close_object(&w);
    buf_append(out, "\n", 1);
}

static bool write_file(const char *path, const struct buf *text)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return false;
    bool written = fwrite(text->data, 1, text->len, f) == text->len;
    return fclose(f) == 0 && written;
}

bool demo_rooms_configure(const char *data, bool faults, char ret_path[DEMO_PATH_MAX],
                          bool *ret_arena, char why[DEMO_WHY_MAX])
{
    char arena[PATH_MAX];
    struct buf text = {0};
    *ret_arena = beside_find("arena", arena) && strlen(arena) < 256;
    int n = snprintf(ret_path, DEMO_PATH_MAX, "%s/dev.yaml", data);
    put_config(&text, *ret_arena ? arena : NULL, faults);
    (void)mkdir(data, 0700); /* there already, or fopen says what is wrong */
    bool written = n > 0 && n < DEMO_PATH_MAX && write_file(ret_path, &text);
    if (!written)
        snprintf(why, DEMO_WHY_MAX, "cannot write %.150s: %s", ret_path, full_reason(errno));
    buf_done(&text);
    return written;
}

static void put_wish(struct buf *out)
{
    struct json_writer w = {.out = out};
    json_open_object(&w);
    json_key_text(&w, "account", STR("dev"));
    json_key(&w, "scopes");
    json_open_array(&w);
    json_text(&w, STR("game_host"));
    json_close_array(&w);
    json_key_int(&w, "expires_in_s", TOKEN_S);
    json_close_object(&w);
}

bool demo_rooms_token(const char *http, const char *data, char ret[DEMO_TOKEN_MAX],
                      char why[DEMO_WHY_MAX])
{
    char url[128], problem[CLIENT_WHY_MAX];
    struct client_answer answer = {0};
    struct buf body = {0};
    bool made = false;
    snprintf(url, sizeof(url), "http://%s", http);
    const struct client_settings settings = {.url = url, .data = data, .stop_fd = -1};
    struct client *c = client_open(&settings, problem);
    put_wish(&body);
    if (c && client_call(c, HTTP_POST, "/v1/access-tokens", &body, CLIENT_TIMEOUT_S, &answer) ==
                 CLIENT_DONE)
        made = str_copy(ret, DEMO_TOKEN_MAX, json_get_text(json_member(answer.json, "token")));
    if (!made)
        snprintf(why, DEMO_WHY_MAX, "%.250s", c ? answer.why : problem);
    client_answer_done(&answer);
    client_close(c);
    buf_done(&body);
    return made;
}

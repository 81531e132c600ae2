#include "agent/door.h"

#include "agent/game.h"
#include "agent/process_follow.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "net/http.h"
#include "net/loop.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECTIONS = 256,
    CONNECTIONS_PER_ADDRESS = 128,
    BODY_MAX = 512 * 1024, /* settings twice, an environment, arguments */
    HEAD_MS = 5000,
    IDLE_MS = 120 * 1000,
    SUSPEND_MS = 30 * 1000,
    GRACE_MS = 5000,
    GRACE_MAX_MS = 3600 * 1000,
    LINES = 200,
    LINES_MAX = 10 * 1000,
    STDIN_MAX = 4095,

    STATUS_OK = 200,
    STATUS_ACCEPTED = 202,
    STATUS_CONFLICT = 409,
};

struct door {
    struct games *games;
    struct http_server *server;
    char *tokens[DOOR_TOKENS]; /* the first is --token; then the newest of the control plane's */
    struct list followers;
};

/* Somebody who follows a log. */
struct follower {
    struct link link;
    struct door *door;
    struct http_request *request;
    int64_t server;
    bool last; /* it is over: what is read now is the rest */
    struct process_follow log;
    struct buf held; /* read, but it may be half of a secret */
};

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void refuse_as(struct http_request *r, int status, const char *code, const char *message)
{
    struct buf body = {0};
    struct json_writer w = {.out = &body};
    json_open_object(&w);
    json_key(&w, "error");
    json_open_object(&w);
    json_key_text(&w, "code", str_of(code));
    json_key_text(&w, "message", str_of(message));
    json_close_object(&w);
    json_close_object(&w);
    http_answer(r, status, "application/json", &body, NULL);
}

static void refuse(struct http_request *r, int err, const char *message)
{
    refuse_as(r, err_status(err), err_code(err), message);
}

static void agree(struct http_request *r, int status)
{
    http_answer_shared(r, status, "application/json", STR("{}"), NULL);
}

/* ── who may ───────────────────────────────────────────────────────────────────────────────── */

static bool same_token(const char *known, const char *shown)
{
    size_t len = strlen(known);
    return strlen(shown) == len && sodium_memcmp(known, shown, len) == 0;
}

static bool may_enter(const struct door *d, struct http_request *r)
{
    static const char scheme[] = "Bearer ";
    const char *header = http_header(r, "Authorization");
    bool may = false;
    if (!header) {
        refuse(r, ERR_NO_ACCESS_TOKEN, "An access token is needed: Authorization: Bearer TOKEN.");
        return false;
    }
    if (strncasecmp(header, scheme, strlen(scheme)) == 0) {
        for (size_t i = 0; i < DOOR_TOKENS; i++)
            may |= d->tokens[i] && same_token(d->tokens[i], header + strlen(scheme));
    }
    if (!may)
        refuse(r, ERR_BAD_ACCESS_TOKEN, "This agent does not know the access token.");
    return may;
}

void door_admit(struct door *d, const char *token)
{
    if (!token[0] || (d->tokens[1] && strcmp(d->tokens[1], token) == 0))
        return;
    free(d->tokens[2]);
    d->tokens[2] = d->tokens[1];
    d->tokens[1] = xstrdup(token);
}

/* ── what can be asked ─────────────────────────────────────────────────────────────────────── */

static void on_spawn(struct door *d, struct http_request *r, bool prepare)
{
    char why[GAME_WHY_MAX] = "";
    int err = prepare ? games_prepare(d->games, http_body(r), why)
                      : games_spawn(d->games, http_body(r), why);
    if (err == 0)
        agree(r, STATUS_ACCEPTED);
    else if (err == ERR_BAD_ARGUMENT || err == ERR_BUSY)
        refuse(r, err, why);
    else
        refuse_as(r, STATUS_CONFLICT, err_code(err), why);
}

/* The body as an object; NULL when it is none and that was said. An empty one is {}. */
static struct json *read_body(struct http_request *r)
{
    char fault[JSON_WHY_MAX];
    struct str body = http_body(r).len > 0 ? http_body(r) : STR("{}");
    struct json *root = json_parse(body, fault);
    if (root && json_kind(root) == JSON_KIND_OBJECT)
        return root;
    json_free(root);
    refuse(r, ERR_BAD_ARGUMENT, "The body is no JSON object.");
    return NULL;
}

static void on_terminate(struct door *d, struct game *g, struct http_request *r)
{
    (void)d;
    char why[GAME_WHY_MAX];
    struct json *body = read_body(r);
    if (!body)
        return;
    const struct json *wish = json_member(body, "grace_ms");
    int64_t grace_ms = wish && json_kind(wish) == JSON_KIND_INT ? json_get_int(wish) : GRACE_MS;
    struct str said = json_get_text(json_member(body, "why"));
    int len = (int)(said.len < 150 ? said.len : 150);
    snprintf(why, sizeof(why), "The server was ended by the control plane%s%.*s.", len ? ": " : "",
             len, len ? said.at : "");
    json_free(body);
    if (grace_ms < 0 || grace_ms > GRACE_MAX_MS) {
        refuse(r, ERR_BAD_ARGUMENT, "'grace_ms' is a number from 0 to 3600000.");
        return;
    }
    if (g)
        game_end(g, grace_ms, why);
    agree(r, STATUS_ACCEPTED);
}

static void on_kick(struct door *d, struct game *g, struct http_request *r)
{
    (void)d;
    struct json *body = read_body(r);
    if (!body)
        return;
    struct str key = json_get_text(json_member(body, "key"));
    if (key.len == 0) {
        refuse(r, ERR_BAD_ARGUMENT, "'key' is needed.");
    } else {
        if (g)
            game_kick(g, key, json_get_text(json_member(body, "reason")));
        agree(r, STATUS_ACCEPTED);
    }
    json_free(body);
}

static void refuse_unknown(struct http_request *r)
{
    refuse(r, ERR_NOT_FOUND, "This server does not run here.");
}

static void on_stdin(struct door *d, struct game *g, struct http_request *r)
{
    (void)d;
    struct json *body = read_body(r);
    if (!body)
        return;
    struct str line = json_get_text(json_member(body, "line"));
    if (!g || !g->process)
        refuse_unknown(r);
    else if (line.len > STDIN_MAX || (line.len > 0 && memchr(line.at, '\n', line.len)))
        refuse(r, ERR_BAD_ARGUMENT, "'line' is one line of at most 4095 bytes.");
    else if (process_write(g->process, line) != 0)
        refuse_as(r, STATUS_CONFLICT, "io", "The server does not read its standard input.");
    else
        agree(r, STATUS_OK);
    json_free(body);
}

static void put_ports(struct json_writer *w, const uint16_t *ports, int n)
{
    json_key(w, "ports");
    json_open_array(w);
    for (int i = 0; i < n; i++)
        json_int(w, ports[i]);
    json_close_array(w);
}

static void put_number_if(struct json_writer *w, const char *key, bool known, int64_t value)
{
    json_key(w, key);
    if (known)
        json_int(w, value);
    else
        json_none(w);
}

static void put_state(struct json_writer *w, const struct game *g)
{
    bool over = g->phase == GAME_OVER;
    bool known = over && g->end.ran && g->end.exit_code >= 0;
    int n = g->n_ports;
    const uint16_t *ports = g->process ? process_ports(g->process, &n) : g->ports;
    int64_t run_ms = g->process ? clock_wall_ms() - process_since_ms(g->process) : g->end.run_ms;
    json_key_id(w, "id", g->server);
    json_key_id(w, "session", g->session);
    json_key_int(w, "pid", g->process ? process_pid(g->process) : g->pid);
    json_key_text(w, "state", str_of(game_state_name(g)));
    put_ports(w, ports, n);
    put_number_if(w, "exit_code", known && !g->end.exit_signal, g->end.exit_code);
    put_number_if(w, "exit_signal", known && g->end.exit_signal, g->end.exit_signal);
    put_number_if(w, "peak_memory", over, g->end.peak_memory);
    json_key_int(w, "run_ms", run_ms);
    put_number_if(w, "dropped_bytes", over, g->end.dropped_bytes);
    json_key_text(w, "why", str_of(g->why));
}

static void on_show(struct door *d, struct game *g, struct http_request *r)
{
    (void)d;
    struct buf body = {0};
    struct buf tail = {0};
    struct json_writer w = {.out = &body};
    if (!g) {
        refuse_unknown(r);
        return;
    }
    game_tail(g, PROCESS_TAIL_LINES, &tail);
    json_open_object(&w);
    put_state(&w, g);
    json_key_text(&w, "tail", (struct str){(const char *)tail.data, tail.len});
    json_close_object(&w);
    buf_done(&tail);
    http_answer(r, STATUS_OK, "application/json", &body, NULL);
}

/* ── logs ──────────────────────────────────────────────────────────────────────────────────── */

struct log_wish {
    int64_t lines;
    bool follow;
};

static bool take_log_argument(void *user, const char *key, const char *value)
{
    struct log_wish *wish = user;
    if (strcmp(key, "lines") == 0)
        wish->lines = strtoll(value, NULL, 10);
    if (strcmp(key, "follow") == 0)
        wish->follow = strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
    return true;
}

/* A word that has no end yet waits for the rest of it, unless nothing more comes for now. */
static bool pull_log(void *user, struct http_request *r, struct buf *out, size_t max)
{
    (void)user;
    struct follower *f = http_data(r);
    const struct game *g = games_find(f->door->games, f->server);
    if (!g)
        return false; /* its secrets are forgotten, so nothing more can be shown */
    const struct secrets *secrets = &g->secrets;
    size_t had = out->len;
    size_t before = f->held.len;
    process_follow_read(&f->log, &f->held, max);
    bool more = f->held.len > before;
    size_t open = more ? secrets_open(secrets, &f->held) : 0;
    struct buf shown = {0};
    buf_append(&shown, f->held.data, f->held.len - open);
    secrets_blank(secrets, &shown, 0, false);
    buf_append(out, shown.data, shown.len);
    buf_consume(&f->held, f->held.len - open);
    buf_done(&shown);
    return more || out->len > had || !f->last;
}

static void follow(struct door *d, const struct game *g, struct http_request *r, int lines)
{
    struct follower *f = xcalloc(1, sizeof(*f));
    *f = (struct follower){.door = d, .request = r, .server = g->server};
    process_follow_init(&f->log, g->process, lines);
    list_append(&d->followers, &f->link);
    http_set_data(r, f);
    http_stream(r, "text/plain; charset=utf-8", pull_log, NULL);
}

static void on_logs(struct door *d, struct game *g, struct http_request *r)
{
    struct log_wish wish = {.lines = LINES};
    struct buf body = {0};
    http_query(r, take_log_argument, &wish);
    if (!g) {
        refuse_unknown(r);
        return;
    }
    if (wish.lines < 0 || wish.lines > LINES_MAX) {
        refuse(r, ERR_BAD_ARGUMENT, "'lines' is a number from 0 to 10000.");
        return;
    }
    if (wish.follow && g->process) {
        follow(d, g, r, (int)wish.lines);
        return;
    }
    game_tail(g, (int)wish.lines, &body);
    http_answer(r, STATUS_OK, "text/plain; charset=utf-8", &body, NULL);
}

/* ── routes ────────────────────────────────────────────────────────────────────────────────── */

static const struct {
    enum http_method method;
    const char *verb; /* behind the server's number; "" = nothing */
    void (*handle)(struct door *d, struct game *g, struct http_request *r);
} routes[] = {
    {HTTP_GET, "", on_show},
    {HTTP_GET, "logs", on_logs},
    {HTTP_POST, "terminate", on_terminate},
    {HTTP_POST, "kick", on_kick},
    {HTTP_POST, "stdin", on_stdin},
};

/* "/servers/12/logs" */
static void route_server(struct door *d, struct http_request *r, const char *rest)
{
    char *end = NULL;
    int64_t server = strtoll(rest, &end, 10);
    const char *verb = *end == '/' ? end + 1 : end;
    bool known = false;
    for (size_t i = 0; server > 0 && i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (strcmp(verb, routes[i].verb) != 0)
            continue;
        known = true;
        if (http_method(r) == routes[i].method) {
            routes[i].handle(d, games_find(d->games, server), r);
            return;
        }
    }
    if (known)
        refuse(r, ERR_METHOD_NOT_ALLOWED, "This method is not allowed here.");
    else
        refuse(r, ERR_NOT_FOUND, "There is no such path. docs/agent-protocol.md lists them.");
}

static void on_request(void *user, struct http_request *r)
{
    struct door *d = user;
    static const char servers[] = "/servers/";
    const char *path = http_path(r);
    http_set_data(r, NULL);
    if (!may_enter(d, r))
        return;
    if (http_too_large(r))
        refuse(r, ERR_TOO_LARGE, "The body is larger than 512 KiB.");
    else if (strcmp(path, "/spawn") == 0 && http_method(r) == HTTP_POST)
        on_spawn(d, r, false);
    else if (strcmp(path, "/prepare") == 0 && http_method(r) == HTTP_POST)
        on_spawn(d, r, true);
    else if (strncmp(path, servers, strlen(servers)) == 0)
        route_server(d, r, path + strlen(servers));
    else
        refuse(r, ERR_NOT_FOUND, "There is no such path. docs/agent-protocol.md lists them.");
}

static void on_done(void *user, struct http_request *r)
{
    (void)user;
    struct follower *f = http_data(r);
    if (!f)
        return;
    list_remove(&f->link);
    process_follow_done(&f->log);
    buf_done(&f->held);
    free(f);
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

int door_open(struct loop *loop, struct games *games, const char *ip, uint16_t port,
              const char *token, struct door **ret, char why[DOOR_WHY_MAX])
{
    const struct http_limits limits = {.connections = CONNECTIONS,
                                       .connections_per_address = CONNECTIONS_PER_ADDRESS,
                                       .body_max = BODY_MAX,
                                       .head_ms = HEAD_MS,
                                       .idle_ms = IDLE_MS,
                                       .suspend_ms = SUSPEND_MS};
    struct door *d = xcalloc(1, sizeof(*d));
    const struct http_ops ops = {.request = on_request, .done = on_done, .user = d};
    const struct http_place place = {.ip = ip, .port = port};
    const char *reason = NULL;
    d->games = games;
    d->tokens[0] = xstrdup(token);
    list_init(&d->followers);
    if (http_server_start(loop, &place, &limits, &ops, &d->server, &reason) == 0) {
        *ret = d;
        return 0;
    }
    snprintf(why, DOOR_WHY_MAX, "Cannot listen on %s:%u: %s.", ip, port, reason);
    door_close(d);
    return ERR_IO;
}

void door_close(struct door *d)
{
    if (!d)
        return;
    http_server_stop(d->server);
    for (size_t i = 0; i < DOOR_TOKENS; i++)
        free(d->tokens[i]);
    free(d);
}

const char *door_address(const struct door *d, char dst[ADDRESS_MAX])
{
    return http_server_address(d->server, dst);
}

void door_tick(struct door *d, int64_t monotonic_ms)
{
    LIST_EACH(&d->followers, f, struct follower, link)
    {
        const struct game *g = games_find(d->games, f->server);
        f->last = !g || !g->process;
        http_wake(f->request);
    }
    http_server_tick(d->server, monotonic_ms);
}

#include "api/rest.h"

#include "api/call.h"
#include "api/cluster.h"
#include "api/console.h"
#include "api/feed.h"
#include "api/forwarded.h"
#include "api/pubsub.h"
#include "base/err.h"
#include "store/backup.h"
#include "wire/uri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HEAD_MS = 5000,
    IDLE_MS = 60 * 1000,
    SUSPEND_MS = (REST_WAIT_MAX_S + 30) * 1000, /* we answer before this: it is the last resort */
};

/* ── a request comes in ────────────────────────────────────────────────────────────────────── */

/* All of these return 0, or an error with the refusal rendered. */

static int route(struct call *c, struct route *ret)
{
    const char *path = http_path(c->http);
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    operation_route(http_method(c->http), path, ret);
    if (ret->operation) {
        call_is(c, ret->operation);
        return 0;
    }
    if (ret->methods == 0) {
        call_refuse(c, ERR_NOT_FOUND, NULL,
                    "There is no %s. GET /openapi.json lists what there is.",
                    arguments_show(shown, str_of(path)));
        return ERR_NOT_FOUND;
    }
    size_t len = 0;
    for (int m = 0; m < HTTP_OTHER; m++) {
        if (ret->methods & 1u << m)
            len += (size_t)snprintf(
                c->allow + len, sizeof(c->allow) - len, "%s%s", len > 0 ? ", " : "",
                m == HTTP_GET ? "GET, HEAD" : http_method_word((enum http_method)m));
    }
    call_refuse(c, ERR_METHOD_NOT_ALLOWED, NULL, "Here %s can be used, not %s.", c->allow,
                arguments_show(shown, str_of(http_method_name(c->http))));
    return ERR_METHOD_NOT_ALLOWED;
}

/* A browser says on whose behalf it writes; a page from elsewhere may not. */
static int check_origin(struct call *c)
{
    const char *origin = http_header(c->http, "Origin");
    const char *host = http_header(c->http, "Host");
    if (!origin || !operation_changes(c->operation))
        return 0;
    const char *authority = strstr(origin, "://");
    if (authority && host && strcasecmp(authority + 3, host) == 0)
        return 0;
    call_refuse(c, ERR_FORBIDDEN, NULL, "A page from elsewhere (Origin) may not change anything.");
    return ERR_FORBIDDEN;
}

/* Who asks, behind the proxies that are believed. */
static void find_address(struct call *c)
{
    struct rest *r = c->rest;
    struct buf chain = {0};
    if (r->n_proxies > 0)
        http_header_list(c->http, "X-Forwarded-For", &chain);
    forwarded_client(r->proxies, r->n_proxies, http_peer(c->http),
                     (struct str){(const char *)chain.data, chain.len},
                     http_header(c->http, "X-Real-IP"), c->address);
    buf_done(&chain);
}

static int check_token(struct call *c, struct str token)
{
    char why[ACCESS_WHY_MAX];
    int err = access_check(c->rest->access, token, c->rest->doors->wall_ms, &c->who, why);
    if (err != 0)
        call_refuse(c, err, NULL, "The access token is not valid: %s.", why);
    c->bearer = token;
    return err;
}

static bool needs_token(const struct call *c)
{
    bool open = c->rest->metrics_open && c->operation->handle == handle_metrics;
    return operation_needs_token(c->operation) && !open;
}

static const char bearer[] = "Bearer ";

/* Before the arguments are looked at, when it is in the head. */
static int check_header(struct call *c, bool *ret_known)
{
    const char *header = http_header(c->http, "Authorization");
    *ret_known = false;
    if (!header || !needs_token(c))
        return 0;
    if (strncasecmp(header, bearer, strlen(bearer)) != 0) {
        call_refuse(c, ERR_BAD_ACCESS_TOKEN, NULL,
                    "The header Authorization is not of the form: Bearer TOKEN.");
        return ERR_BAD_ACCESS_TOKEN;
    }
    *ret_known = true;
    return check_token(c, str_of(header + strlen(bearer)));
}

static int check_scope(struct call *c, bool known)
{
    int err = 0;
    if (!needs_token(c))
        return 0;
    if (!known && c->arguments.access_token.len == 0) {
        call_refuse(c, ERR_NO_ACCESS_TOKEN, NULL,
                    "An access token is needed: Authorization: Bearer TOKEN.");
        return ERR_NO_ACCESS_TOKEN;
    }
    if (!known)
        err = check_token(c, c->arguments.access_token);
    uint32_t missing = c->operation->scope & ~c->who.scopes;
    if (err == 0 && missing != 0 &&
        !((c->operation->own_scope | c->operation->other_scope) & c->who.scopes)) {
        err = ERR_FORBIDDEN;
        call_refuse(c, err, NULL, "This needs the scope %s, which the access token has not.",
                    access_scope_name(missing & -missing));
    }
    return err;
}

static bool put_query(void *user, const char *key, const char *value)
{
    struct call *c = user;
    if (arguments_put(&c->arguments, key, str_of(value)) == 0)
        return true;
    call_refuse_argument(c);
    return false;
}

static bool is_type(const char *header, const char *type)
{
    size_t len = strlen(type);
    return header && strncasecmp(header, type, len) == 0 &&
           (header[len] == '\0' || header[len] == ';' || header[len] == ' ');
}

static const char upload_type[] = "application/octet-stream";

static int put_body(struct call *c)
{
    struct str body = http_body(c->http);
    const char *type = http_header(c->http, "Content-Type");
    if (body.len == 0)
        return 0;
    if (is_type(type, "application/json"))
        return c->operation->asks ? 0 : arguments_put_json(&c->arguments, body);
    if (c->operation->asks || !is_type(type, "application/x-www-form-urlencoded")) {
        call_refuse(c, ERR_UNSUPPORTED_TYPE, NULL, "The body must be application/json%s.",
                    c->operation->asks ? "" : " or application/x-www-form-urlencoded");
        return ERR_UNSUPPORTED_TYPE;
    }
    if (body.at[0] == '{')
        return arguments_refuse(&c->arguments, NULL,
                                "The body is JSON, but sent as a form. Add the header "
                                "Content-Type: application/json.");
    return arguments_put_form(&c->arguments, body);
}

static int put_segment(struct call *c, const char *name, struct str segment)
{
    struct buf whole = {0};
    if (!memchr(segment.at, '%', segment.len)) /* as nearly all are */
        return arguments_put(&c->arguments, name, segment);
    uri_segment(&whole, segment);
    int err = arguments_put(&c->arguments, name, (struct str){(const char *)whole.data, whole.len});
    buf_done(&whole);
    return err;
}

static int gather(struct call *c, const struct route *route)
{
    for (size_t i = 0; c->operation->fields[i].name; i++) {
        if (route->in_path[i].len > 0 &&
            put_segment(c, c->operation->fields[i].name, route->in_path[i]) != 0) {
            call_refuse_argument(c);
            return ERR_BAD_ARGUMENT;
        }
    }
    http_query(c->http, put_query, c);
    if (c->status != 200)
        return ERR_BAD_ARGUMENT;
    if (c->operation->upload)
        return 0;
    if (http_too_large(c->http)) {
        call_refuse(c, ERR_TOO_LARGE, NULL, "The body is larger than %zu bytes.",
                    c->operation->body_max ? c->operation->body_max : (size_t)REST_BODY_MAX);
        return ERR_TOO_LARGE;
    }
    int err = put_body(c);
    if (err == ERR_BAD_ARGUMENT)
        call_refuse_argument(c);
    return err;
}

/* Said only to those who may upload at all. */
static int check_upload(struct call *c)
{
    if (!c->operation->upload || is_type(http_header(c->http, "Content-Type"), upload_type))
        return 0;
    call_refuse(c, ERR_UNSUPPORTED_TYPE, NULL, "The body must be %s.", upload_type);
    return ERR_UNSUPPORTED_TYPE;
}

static int check_key(struct call *c)
{
    const char *key = http_header(c->http, "Idempotency-Key");
    if (!key || (key[0] && strlen(key) <= REST_KEY_MAX))
        return 0;
    call_refuse(c, ERR_BAD_ARGUMENT, "Idempotency-Key", "An Idempotency-Key has 1 to %d bytes.",
                REST_KEY_MAX);
    return ERR_BAD_ARGUMENT;
}

/* Answers that nobody reads must not fill the memory, nor one address all there is for them. */
static int check_room(struct call *c)
{
    struct http_figures figures;
    http_server_figures(c->rest->http, &figures);
    const char *why = NULL;
    if (c->rest->stopping)
        why = "Muster is stopping.";
    else if (c->operation->always)
        why = NULL;
    else if (figures.answer_bytes > REST_HELD_MAX)
        why = "Too many answers wait to be read.";
    else if (http_held_by_peer(c->http) > REST_HELD_BY_PEER_MAX)
        why = "Too many answers wait to be read by this address.";
    if (!why)
        return 0;
    call_refuse(c, ERR_BUSY, NULL, "%s", why);
    return ERR_BUSY;
}

static int check(struct call *c)
{
    struct route found;
    bool known = false;
    int err = route(c, &found);
    if (err == 0)
        err = check_room(c);
    if (err == 0)
        err = check_origin(c);
    if (err == 0)
        err = check_header(c, &known);
    if (err == 0)
        err = gather(c, &found);
    if (err == 0)
        err = check_scope(c, known);
    if (err == 0)
        err = check_upload(c);
    if (err == 0)
        err = check_key(c);
    if (err == 0 && (err = arguments_complete(&c->arguments)) != 0)
        call_refuse_argument(c);
    return err;
}

/* What a standby does not answer itself. */
static bool is_leaders(const struct http_request *http)
{
    struct route found;
    operation_route(http_method(http), http_path(http), &found);
    bool known = found.operation && found.operation->by_any_node;
    return !known && http_path(http)[0] == '/';
}

static void on_request(void *user, struct http_request *http)
{
    struct rest *r = user;
    const struct console_file *file = console_find(http_path(http));
    if (file && http_method(http) == HTTP_GET) {
        console_answer(file, http);
        return;
    }
    struct call *c = call_new(r, http);
    doors_read_clocks(r->doors);
    find_address(c);
    if (r->standby && is_leaders(http))
        cluster_send_on(c);
    else if (check(c) == 0)
        c->operation->handle(c);
    else
        call_answer(c);
}

/* Only what says so is looked at: everything else is small, and routed once. */
static bool is_upload(void *user, const struct http_request *http)
{
    (void)user;
    struct route found;
    if (!is_type(http_header(http, "Content-Type"), upload_type))
        return false;
    operation_route(http_method(http), http_path(http), &found);
    return found.operation && found.operation->upload;
}

/* A heartbeat of a large host is long; only who may send one is listened to for so long. */
static size_t body_max(void *user, const struct http_request *http)
{
    struct rest *r = user;
    struct route found;
    struct access_grant who;
    char why[ACCESS_WHY_MAX];
    const char *length = http_header(http, "Content-Length");
    const char *token = http_header(http, "Authorization");
    if (!length || strtoull(length, NULL, 10) <= REST_BODY_MAX || !token ||
        strncasecmp(token, bearer, strlen(bearer)) != 0)
        return REST_BODY_MAX;
    operation_route(http_method(http), http_path(http), &found);
    if (!found.operation || found.operation->body_max == 0)
        return REST_BODY_MAX;
    if (found.operation->handle == handle_pubsub_push)
        return pubsub_may_push(r->pubsub, http) ? found.operation->body_max : REST_BODY_MAX;
    doors_read_clocks(r->doors);
    int err = access_check(r->access, str_of(token + strlen(bearer)), r->doors->wall_ms, &who, why);
    bool may = err == 0 && (who.scopes & found.operation->scope) == found.operation->scope;
    return may ? found.operation->body_max : REST_BODY_MAX;
}

static void on_done(void *user, struct http_request *http)
{
    (void)user;
    if (http_data(http)) /* a file of the console is no call */
        call_free(http_data(http));
}

/* ── core speaks ───────────────────────────────────────────────────────────────────────────── */

/* Whoever waits for a ticket's end looks at it again. */
static void wake_waiting(struct rest *r, int64_t ticket)
{
    struct chain_link *n = NULL;
    while ((n = chain_first(&r->waiting, (uint64_t)ticket)))
        call_wake(container_of(n, struct call, by_ticket));
}

static void hear_note(struct rest *r, const struct effect *e)
{
    bool placed = e->note == NOTE_ALLOCATION_DONE || e->note == NOTE_ALLOCATION_FAILED;
    bool over = e->note == NOTE_TICKET_DONE || e->note == NOTE_TICKET_FAILED ||
                e->note == NOTE_TICKET_CANCELLED;
    if (over && r->waiting.len > 0)
        wake_waiting(r, e->ticket);
    bool left = e->note == NOTE_LOBBY_STARTED || e->note == NOTE_LOBBY_ABORTED;
    if ((placed || left) && r->waiting.len > 0)
        wake_waiting(r, e->object);
}

static bool is_asked_for(enum effect_kind kind)
{
    return kind == EFFECT_PLACED || kind == EFFECT_HOST_BEAT || kind == EFFECT_AGENT ||
           kind == EFFECT_SOUGHT;
}

void rest_release(struct rest *r, const struct effect *effects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = &effects[i];
        struct call *c = NULL;
        if (e->kind == EFFECT_PLACED)
            metrics_placed(r->metrics, e, r->doors->monotonic_us);
        if (e->kind == EFFECT_NOTE)
            hear_note(r, e);
        else if (e->kind == EFFECT_READ && (c = map_get(&r->calls, e->conn)))
            call_was_read(c, e->err);
        else if (e->kind == EFFECT_OPERATED && (c = map_get(&r->calls, e->conn)))
            call_was_operated(c, e);
        else if (is_asked_for(e->kind) && (c = map_get(&r->calls, e->conn)))
            call_was_answered(c, e);
    }
}

/* ── time passes ───────────────────────────────────────────────────────────────────────────── */

void rest_before_flush(struct rest *r)
{
    LIST_EACH(&r->resuming, c, struct call, in_list)
    {
        c->resume(c);
    }
    if (r->http)
        http_server_go(r->http);
}

/* What a call waits for may have come while this process was stopped, and is not read yet. */
static void rest_forgive(struct rest *r, int64_t gap_ms)
{
    LIST_EACH(&r->storing, stored, struct call, in_list)
    {
        stored->due_ms += gap_ms;
    }
    LIST_EACH(&r->asking, asked, struct call, in_list)
    {
        asked->due_ms += gap_ms;
    }
}

void rest_tick(struct rest *r)
{
    int64_t now_ms = r->doors->monotonic_ms;
    int64_t gap_ms = now_ms - r->ticked_ms;
    struct link *n = NULL;
    if (r->ticked_ms > 0 && gap_ms > DOOR_GAP_MS)
        rest_forgive(r, gap_ms);
    r->ticked_ms = now_ms;
    if (r->http)
        http_server_tick(r->http, now_ms);
    while ((n = list_first(&r->storing)) && container_of(n, struct call, in_list)->due_ms <= now_ms)
        call_give_up(container_of(n, struct call, in_list));
    LIST_EACH(&r->patient, c, struct call, in_list)
    {
        if (c->due_ms <= now_ms)
            call_wake(c);
    }
    LIST_EACH(&r->asking, c, struct call, in_list)
    {
        if (c->due_ms <= now_ms)
            call_is_late(c);
    }
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

void rest_init(struct rest *r, struct doors *doors, struct access *access, struct metrics *metrics,
               struct feed *feed)
{
    *r = (struct rest){.doors = doors,
                       .access = access,
                       .metrics = metrics,
                       .feed = feed,
                       .config_digest = "",
                       .started_wall_ms = doors->wall_ms};
    list_init(&r->storing);
    list_init(&r->patient);
    list_init(&r->asking);
    list_init(&r->resuming);
    list_init(&r->lookups.waiting);
}

int rest_start(struct rest *r, const struct rest_config *config, const char **ret_why)
{
    struct http_limits limits = {
        .connections = config->connections,
        .connections_per_address = config->connections_per_address,
        .body_max = REST_BODY_MAX,
        .head_ms = HEAD_MS,
        .idle_ms = IDLE_MS,
        .suspend_ms = SUSPEND_MS,
    };
    struct http_ops ops = {.request = on_request,
                           .done = on_done,
                           .user = r,
                           .is_upload = is_upload,
                           .body_max = body_max};
    seal_init(&r->seal, config->secret);
    r->proxies = config->proxies;
    r->n_proxies = config->n_proxies;
    r->metrics_open = config->metrics_open;
    r->deployments = config->deployments;
    deploy_sweep(r->deployments);
    r->data = config->data;
    backup_sweep(r->data);
    r->config_digest = config->config_digest ? config->config_digest : "";
    struct http_place place = {config->ip, config->port, config->tls, config->held_fd};
    return http_server_start(r->doors->loop, &place, &limits, &ops, &r->http, ret_why);
}

const char *rest_address(const struct rest *r, char dst[ADDRESS_MAX])
{
    return http_server_address(r->http, dst);
}

void rest_stop(struct rest *r)
{
    r->stopping = true;
    if (r->http)
        http_server_quiesce(r->http);
    LIST_EACH(&r->patient, c, struct call, in_list)
    {
        call_wake(c);
    }
}

void rest_give_up(struct rest *r)
{
    LIST_EACH(&r->asking, c, struct call, in_list)
    {
        call_refuse(c, ERR_BUSY, NULL,
                    "Muster is stopping. What was asked for may still happen: ask again with the "
                    "same Idempotency-Key.");
        call_answer(c);
    }
}

bool rest_is_idle(const struct rest *r)
{
    struct http_figures figures = {0};
    if (r->http)
        http_server_figures(r->http, &figures);
    return figures.requests == 0;
}

void rest_done(struct rest *r)
{
    http_server_stop(r->http);
    r->http = NULL;
    map_done(&r->calls);
    map_done(&r->waiting);
    buf_done(&r->openapi);
    calls_done(r);
}

#include "api/agents.h"

#include "api/login.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/list.h"
#include "base/log.h"
#include "core/view.h"
#include "store/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALL_MS = 5000,      /* an agent answers at once; what takes long it tells by events */
    CALLS_PER_AGENT = 8, /* connections */
    WATCHERS_PER_AGENT = 64,
    GRACE_MS = 5000, /* from SIGTERM to SIGKILL */
    URL_MAX = 512,
    TOKEN_SPARE_MS = 3600 * 1000, /* a server's own token outlives the longest room by this */
};

/* One request under way. */
struct agent_call {
    struct agents *agents;
    struct link in_list;
    struct http_call *http;
    const char *what;
    int64_t began_us;
    http_done *done;
    http_piece *each; /* NULL: the answer comes whole */
    void *user;       /* NULL: this call */

    int64_t host;
    int64_t server; /* a command of core's: what it is about */
    bool spawn;
};

/* What core is still to be told. */
struct heard {
    struct link in_list;
    int64_t server;
    bool spawn;
    int err;
    enum fault_cause fault;
    char text[AGENTS_WHY_MAX];
};

/* A spawn whose server's token the login service has yet to give. */
struct held {
    struct agents *agents;
    struct link in_list;
    struct list login;
    int64_t host;
    int64_t server;
    char url[URL_MAX];
    struct buf body; /* without the token and what closes it */
};

struct agents {
    struct doors *doors;
    const struct access *access;
    struct login *login;
    struct metrics *metrics;
    struct http_client *client;
    struct http_client *watching; /* what goes on for long must not keep commands waiting */
    struct buf token;             /* the last that was made */
    char token_of[ACCESS_ACCOUNT_MAX + 1];
    const struct launch *launches;
    size_t n_launches;
    struct list calls;
    size_t n_calls;
    struct list heard;
    struct list held; /* at most one for each room that starts */
    struct buf body;  /* scratch */
};

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct agents *agents_new(struct doors *doors, const struct access *access, struct login *login,
                          struct metrics *metrics)
{
    struct agents *a = xcalloc(1, sizeof(*a));
    a->doors = doors;
    a->access = access;
    a->login = login;
    a->metrics = metrics;
    list_init(&a->calls);
    list_init(&a->heard);
    list_init(&a->held);
    struct http_client_config config = {.timeout_ms = CALL_MS, .per_host = CALLS_PER_AGENT};
    a->client = http_client_new(doors->loop, &config);
    config.per_host = WATCHERS_PER_AGENT;
    a->watching = http_client_new(doors->loop, &config);
    return a;
}

const char *agents_token(struct agents *a, int64_t host)
{
    char account[ACCESS_ACCOUNT_MAX + 1];
    struct view_host view;
    bool known = view_host(pipeline_core(a->doors->pipeline), host, &view);
    /* Since when it is its account's, in full: a token's own times are whole seconds. */
    snprintf(account, sizeof(account), "muster-host-%" PRId64 "-%" PRId64, host,
             known ? view.registered_wall_ms : 0);
    if (strcmp(account, a->token_of) != 0) { /* one for ever: signing takes longer than asking */
        memcpy(a->token_of, account, sizeof(account));
        buf_clear(&a->token);
        access_issue(a->access, account, ACCESS_HOST, 0, 0, &a->token);
        buf_append(&a->token, "", 1);
    }
    return (const char *)a->token.data;
}

void agents_configure(struct agents *a, const struct launch *launches, size_t n)
{
    a->launches = launches;
    a->n_launches = n;
}

static void end_call(struct agent_call *call)
{
    list_remove(&call->in_list);
    call->agents->n_calls--;
    free(call);
}

static void held_free(struct held *h)
{
    login_forget(&h->login);
    list_remove(&h->in_list);
    buf_done(&h->body);
    free(h);
}

void agents_free(struct agents *a)
{
    if (!a)
        return;
    http_client_free(a->client);
    http_client_free(a->watching);
    LIST_EACH(&a->calls, call, struct agent_call, in_list)
    {
        end_call(call);
    }
    LIST_EACH(&a->heard, h, struct heard, in_list)
    {
        list_remove(&h->in_list);
        free(h);
    }
    LIST_EACH(&a->held, h, struct held, in_list)
    {
        held_free(h);
    }
    buf_done(&a->token);
    buf_done(&a->body);
    free(a);
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

const char *agents_why(const struct http_reply *reply, char dst[AGENTS_WHY_MAX])
{
    char why[JSON_WHY_MAX];
    if (reply->status == 0) {
        snprintf(dst, AGENTS_WHY_MAX, "%s", reply->why);
        return dst;
    }
    struct json *root = json_parse(reply->body, why);
    const struct json *error = root ? json_member(root, "error") : NULL;
    const struct json *message = error ? json_member(error, "message") : NULL;
    struct str text = message ? json_get_text(message) : (struct str){0};
    if (text.len > 0)
        snprintf(dst, AGENTS_WHY_MAX, "%.*s", (int)text.len, text.at);
    else
        snprintf(dst, AGENTS_WHY_MAX, "the agent answered %d", reply->status);
    json_free(root);
    return dst;
}

static void on_done(void *user, const struct http_reply *reply)
{
    struct agent_call *call = user;
    metrics_agent_call(call->agents->metrics, call->what, reply->status,
                       clock_monotonic_us() - call->began_us);
    call->done(call->user ? call->user : call, reply);
    end_call(call);
}

static bool on_piece(void *user, struct str piece)
{
    struct agent_call *call = user;
    return call->each(call->user, piece);
}

static struct agent_call *begin(struct agents *a, const struct agent_call *draft,
                                enum http_method method, const char *url, const char *path,
                                struct str body)
{
    char target[URL_MAX];
    int n = snprintf(target, sizeof(target), "%s%s", url, path);
    if (a->n_calls >= AGENTS_CALLS_MAX || n >= (int)sizeof(target))
        return NULL;
    struct http_client *client = draft->each ? a->watching : a->client;
    http_client_set_token(client, agents_token(a, draft->host));
    struct agent_call *call = xmalloc(sizeof(*call));
    *call = *draft;
    call->agents = a;
    call->began_us = clock_monotonic_us();
    call->in_list = (struct link){0};
    call->http = call->each ? http_client_follow(client, target, on_piece, on_done, call)
                            : http_client_ask(client, method, target, body, NULL, on_done, call);
    if (!call->http) {
        free(call);
        return NULL;
    }
    list_append(&a->calls, &call->in_list);
    a->n_calls++;
    return call;
}

struct agent_call *agents_ask(struct agents *a, const struct agent_request *request)
{
    struct agent_call draft = {.what = request->what,
                               .host = request->host,
                               .each = request->each,
                               .done = request->done,
                               .user = request->user};
    return begin(a, &draft, request->method, request->url, request->path, request->body);
}

void agent_call_drop(struct agent_call *call)
{
    if (!call)
        return;
    http_call_drop(call->http);
    end_call(call);
}

/* ── commands of core ──────────────────────────────────────────────────────────────────────── */

/* Not told at once: it may be that core's effects are just being released. */
static struct heard *tell(struct agents *a, int64_t server, bool spawn, int err, const char *text)
{
    struct heard *h = xcalloc(1, sizeof(*h));
    h->server = server;
    h->spawn = spawn;
    h->err = err;
    snprintf(h->text, sizeof(h->text), "%s", text);
    list_append(&a->heard, &h->in_list);
    return h;
}

void agents_go(struct agents *a)
{
    http_client_go(a->client);
}

void agents_before_flush(struct agents *a)
{
    LIST_EACH(&a->heard, h, struct heard, in_list)
    {
        struct event e = {.kind = EVENT_HOST_HEARD,
                          .host_heard = {.server = h->server,
                                         .spawn = h->spawn,
                                         .err = h->err,
                                         .fault = h->fault,
                                         .text = str_of(h->text)}};
        doors_event(a->doors, &e);
        list_remove(&h->in_list);
        free(h);
    }
}

/* An agent that does not know our token, or is having trouble itself, has taken and refused
 * nothing: as if nobody had answered. */
static int error_of(const struct http_reply *reply)
{
    int status = reply->status;
    if (status >= 200 && status < 300)
        return 0;
    if (status == 0 || status == 401 || status == 403 || status >= 500)
        return ERR_IO;
    return ERR_SPAWN_FAILED;
}

/* An agent refuses with spawn_failed or bad_argument when there is no such binary or deployment,
 * and with other words when it has no place, or leaves. */
static enum fault_cause refusal_fault(const struct http_reply *reply)
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse(reply->body, why);
    const struct json *error = root ? json_member(root, "error") : NULL;
    const struct json *code = error ? json_member(error, "code") : NULL;
    struct str word = code ? json_get_text(code) : (struct str){0};
    bool config = str_eq(word, str_of(err_code(ERR_SPAWN_FAILED))) ||
                  str_eq(word, str_of(err_code(ERR_BAD_ARGUMENT)));
    json_free(root);
    return config ? FAULT_OF_CONFIG : FAULT_OF_HOST;
}

static void log_failure(const struct agent_call *call, const char *why)
{
    struct log_entry l;
    if (!log_enabled(LOG_WARN))
        return;
    log_begin(&l, LOG_WARN, "agent did not take a command");
    log_word(&l, "command", call->what);
    log_int(&l, "server", call->server);
    log_text(&l, "text", str_of(why));
    log_end(&l);
}

static void on_command_done(void *user, const struct http_reply *reply)
{
    const struct agent_call *call = user;
    char why[AGENTS_WHY_MAX] = "";
    int err = error_of(reply);
    if (err != 0)
        log_failure(call, agents_why(reply, why));
    struct heard *h = tell(call->agents, call->server, call->spawn, err, why);
    if (err == ERR_SPAWN_FAILED)
        h->fault = refusal_fault(reply);
}

/* Nothing is owed of a kick: a server that does not hear it keeps a player whose seat is gone. */
static void on_kick_done(void *user, const struct http_reply *reply)
{
    char why[AGENTS_WHY_MAX];
    if (error_of(reply) != 0)
        log_failure(user, agents_why(reply, why));
}

static struct str scratch(const struct agents *a)
{
    return (struct str){(const char *)a->body.data, a->body.len};
}

static struct json_writer begin_body(struct agents *a)
{
    buf_clear(&a->body);
    return (struct json_writer){.out = &a->body};
}

static const char *copy_url(char dst[URL_MAX], struct str url)
{
    (void)str_copy(dst, URL_MAX, url);
    return dst;
}

/* ── spawn ─────────────────────────────────────────────────────────────────────────────────── */

static const struct launch *launch_of(const struct agents *a, struct str fleet)
{
    for (size_t i = 0; i < a->n_launches; i++) {
        if (str_eq(fleet, str_of(a->launches[i].fleet)))
            return &a->launches[i];
    }
    return NULL;
}

const char *agents_binary_of(const struct agents *a, const char *fleet)
{
    const struct launch *l = launch_of(a, str_of(fleet));
    return l ? l->binary : "";
}

static void write_digest(struct json_writer *w, const struct spawn *s)
{
    char hex[2 * OPERATE_DIGEST + 1];
    for (size_t i = 0; i < OPERATE_DIGEST; i++)
        snprintf(hex + 2 * i, 3, "%02x", s->digest[i]);
    json_key(w, "deployment");
    if (s->deployment != 0)
        json_text(w, str_of(hex));
    else
        json_none(w);
}

static void write_process(struct json_writer *w, const struct launch *l)
{
    json_key_text(w, "binary", str_of(l->binary));
    json_key_text(w, "endpoint", l->endpoint_uri ? STR("uri") : STR("path"));
    json_key_int(w, "ports", l->ports);
    json_key(w, "arguments");
    json_open_array(w);
    for (size_t i = 0; i < l->n_arguments; i++)
        json_text(w, str_of(l->arguments[i]));
    json_close_array(w);
    json_key(w, "env");
    json_open_array(w);
    for (size_t i = 0; i < l->n_env; i++) {
        json_open_object(w);
        json_key_text(w, "key", str_of(l->env[i].key));
        json_key_text(w, "value", str_of(l->env[i].value));
        json_close_object(w);
    }
    json_close_array(w);
}

static struct str server_settings(const struct launch *l, struct str version)
{
    const char *settings = l->server_settings;
    for (size_t i = 0; i < l->n_versions; i++) {
        if (l->versions[i].server_settings && str_eq(version, str_of(l->versions[i].name)))
            settings = l->versions[i].server_settings;
    }
    return settings ? str_of(settings) : STR("{}");
}

/* The services by name, as the seed's game servers read them. */
static void write_discover(struct json_writer *w, const struct launch *l)
{
    json_key(w, "discovery_services");
    json_open_object(w);
    for (size_t i = 0; i < l->n_discover; i++) {
        json_key_any(w, str_of(l->discover[i].key));
        json_text(w, str_of(l->discover[i].value));
    }
    json_close_object(w);
}

static int64_t longest_room_ms(const struct agents *a, struct str fleet)
{
    const struct core_config *config = core_config(pipeline_core(a->doors->pipeline));
    for (size_t i = 0; i < config->n_fleets; i++) {
        if (str_eq(fleet, str_of(config->fleets[i].name)))
            return config->fleets[i].session_ms;
    }
    return 0;
}

/* All but the server's token, which comes last. */
static void write_spawn(struct agents *a, const struct launch *l, const struct spawn *s)
{
    struct json_writer w = begin_body(a);
    json_open_object(&w);
    json_key_id(&w, "server_id", s->server);
    json_key_id(&w, "session_id", s->session);
    json_key_text(&w, "fleet", s->fleet);
    json_key_text(&w, "version", s->version);
    write_digest(&w, s);
    write_process(&w, l);
    json_key(&w, "room_settings");
    json_raw(&w, s->settings.len > 0 ? s->settings : STR("{}"));
    json_key(&w, "server_settings");
    json_raw(&w, server_settings(l, s->version));
    json_key_id(&w, "room_id", s->session);
    json_key_int(&w, "max_players", s->max_players);
    write_discover(&w, l);
    json_key_int(&w, "spawn_timeout_ms", s->within_ms);
    json_key_int(&w, "status_period_ms", l->status_period_ms);
}

/* token empty: there is none. */
static void close_spawn(struct buf *body, struct str token)
{
    struct json_writer w = {.out = body, .comma = true};
    json_key(&w, "login_access_token");
    if (token.len > 0)
        json_text(&w, token);
    else
        json_none(&w);
    json_close_object(&w);
}

static void send_spawn(struct agents *a, int64_t host, int64_t server, const char *url,
                       struct str body)
{
    struct agent_call draft = {
        .what = "spawn", .done = on_command_done, .host = host, .server = server, .spawn = true};
    if (!begin(a, &draft, HTTP_POST, url, "/spawn", body))
        (void)tell(a, server, true, ERR_IO, "too many requests to agents are under way");
}

/* ── … held for the login service ─── */

static void on_token(void *user, const struct login_answer *answer)
{
    struct held *h = user;
    struct agents *a = h->agents;
    if (answer->err == 0) {
        close_spawn(&h->body, answer->token);
        send_spawn(a, h->host, h->server, h->url,
                   (struct str){(const char *)h->body.data, h->body.len});
    } else {
        (void)tell(a, h->server, true, ERR_LOGIN_FAILED, answer->why);
    }
    held_free(h);
}

static struct held *hold(struct agents *a, const struct spawn *s)
{
    struct held *h = xcalloc(1, sizeof(*h));
    h->agents = a;
    h->host = s->host;
    h->server = s->server;
    (void)copy_url(h->url, s->url);
    list_init(&h->login);
    buf_append(&h->body, a->body.data, a->body.len);
    list_append(&a->held, &h->in_list);
    return h;
}

/* A server that is to be ended must not be started by what was held meanwhile. */
static void drop_held(struct agents *a, int64_t server)
{
    LIST_EACH(&a->held, h, struct held, in_list)
    {
        if (h->server == server)
            held_free(h);
    }
}

/* True with the token, or false: then the spawn goes when it comes, or core is told. */
static bool fetch_token(struct agents *a, const struct launch *l, const struct spawn *s,
                        struct buf *ret)
{
    drop_held(a, s->server); /* core says it again while it waits: that one stands for both */
    struct held *h = hold(a, s);
    struct login_asker asker = {.waiting = &h->login, .done = on_token, .user = h};
    enum login_begun begun = login_issue(a->login, l->token_account, l->token_scopes, &asker, ret);
    if (begun == LOGIN_ASKED)
        return false;
    held_free(h);
    if (begun == LOGIN_BUSY)
        (void)tell(a, s->server, true, ERR_LOGIN_FAILED, "too much is asked of it at once");
    return begun == LOGIN_KNOWN;
}

/* Made anew for each attempt: a server that is spawned again gets one that is as long valid. */
static void make_token(const struct agents *a, const struct launch *l, const struct spawn *s,
                       struct buf *ret)
{
    int64_t now_ms = a->doors->wall_ms;
    access_issue_words(a->access, l->token_account, l->token_scopes, now_ms,
                       now_ms + longest_room_ms(a, s->fleet) + TOKEN_SPARE_MS, ret);
}

static void spawn(struct agents *a, const struct spawn *s)
{
    char url[URL_MAX];
    struct buf token = {0};
    bool ready = true;
    const struct launch *l = launch_of(a, s->fleet);
    if (!l) {
        tell(a, s->server, true, ERR_SPAWN_FAILED, "The configuration does not say how")->fault =
            FAULT_OF_CONFIG;
        return;
    }
    write_spawn(a, l, s);
    if (l->token_account[0] && login_is_set(a->login))
        ready = fetch_token(a, l, s, &token);
    else if (l->token_account[0])
        make_token(a, l, s, &token);
    if (ready) {
        close_spawn(&a->body, (struct str){(const char *)token.data, token.len});
        send_spawn(a, s->host, s->server, copy_url(url, s->url), scratch(a));
    }
    buf_done(&token);
}

/* Nobody waits for what becomes of it: an agent that does not know this is asked by the spawn. */
static void on_prepare_done(void *user, const struct http_reply *reply)
{
    (void)user, (void)reply;
}

/* The spawn must say the same, to the byte. A token is another each time, so who wants one waits.
 */
static void prepare(struct agents *a, const struct spawn *s)
{
    char url[URL_MAX];
    const struct launch *l = launch_of(a, s->fleet);
    struct agent_call draft = {
        .what = "prepare", .done = on_prepare_done, .host = s->host, .server = s->server};
    if (!l || l->token_account[0])
        return;
    write_spawn(a, l, s);
    close_spawn(&a->body, STR(""));
    (void)begin(a, &draft, HTTP_POST, copy_url(url, s->url), "/prepare", scratch(a));
}

/* ── the others ────────────────────────────────────────────────────────────────────────────── */

static void terminate(struct agents *a, const struct effect *e)
{
    char url[URL_MAX], path[64];
    struct agent_call draft = {
        .what = "terminate", .done = on_command_done, .host = e->host, .server = e->object};
    struct json_writer w = begin_body(a);
    drop_held(a, e->object);
    json_open_object(&w);
    json_key_text(&w, "why", e->text);
    json_key_int(&w, "grace_ms", GRACE_MS);
    json_close_object(&w);
    snprintf(path, sizeof(path), "/servers/%" PRId64 "/terminate", e->object);
    if (!begin(a, &draft, HTTP_POST, copy_url(url, e->ip), path, scratch(a)))
        (void)tell(a, e->object, false, ERR_IO, "too many requests to agents are under way");
}

static void kick(struct agents *a, const struct effect *e)
{
    char url[URL_MAX], path[64];
    struct agent_call draft = {
        .what = "kick", .done = on_kick_done, .host = e->host, .server = e->object};
    struct json_writer w = begin_body(a);
    json_open_object(&w);
    json_key_text(&w, "key", e->token);
    json_key_text(&w, "reason", e->text);
    json_close_object(&w);
    snprintf(path, sizeof(path), "/servers/%" PRId64 "/kick", e->object);
    (void)begin(a, &draft, HTTP_POST, copy_url(url, e->ip), path, scratch(a));
}

/* A fleet of Kubernetes is a host to core, too, and has no agent: see agones.h. */
static bool is_cluster(const struct effect *e)
{
    bool spawn = e->kind == EFFECT_SPAWN || e->kind == EFFECT_PREPARE;
    struct str url = spawn ? e->spawn->url : e->ip;
    return url.len >= 7 && memcmp(url.at, "agones:", 7) == 0;
}

void agents_release(struct agents *a, const struct effect *effects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_cluster(&effects[i]))
            continue;
        if (effects[i].kind == EFFECT_SPAWN)
            spawn(a, effects[i].spawn);
        else if (effects[i].kind == EFFECT_PREPARE)
            prepare(a, effects[i].spawn);
        else if (effects[i].kind == EFFECT_TERMINATE)
            terminate(a, &effects[i]);
        else if (effects[i].kind == EFFECT_KICK_SEAT)
            kick(a, &effects[i]);
    }
}

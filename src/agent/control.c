#include "agent/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/http_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCHES = 8,      /* under way at once */
    SLOW_BATCHES = 6, /* of which may be slow ones */
    BEAT_TIMEOUT_MS = 5000,
    BEAT_ONE_OF_TIMEOUT_MS = 2500, /* … where another node could take it meanwhile */
    PROBE_MS = 1000,
    PROBE_TIMEOUT_MS = 2000,
    EVENTS_TIMEOUT_MS = 30 * 1000, /* some answers take the control plane a while */
    WAIT_MAX_MS = 5000,
    INTERVAL_MIN_MS = 200,
    PATH_MAX_BYTES = NODES_TEXT_MAX + 64,
    CAREFUL_EVENTS = OUTBOX_BATCH_EVENTS, /* sent one by one after a batch was refused */

    STATUS_OK = 200,
    STATUS_BAD = 400,
    STATUS_UNAUTHORIZED = 401,
    STATUS_FORBIDDEN = 403,
    STATUS_TOO_LARGE = 413,
    STATUS_UNPROCESSABLE = 422,
    STATUS_UNAVAILABLE = 503,
};

/* One way to the control plane: which node is tried, and when next. */
struct road {
    struct nodes nodes;
    uint64_t failures; /* counts all: what was asked before the last one is late news */
    int64_t due_ms;    /* not before this */
    char complaint[HTTP_CLIENT_WHY_MAX]; /* the last one; "" = it is well */
};

struct batch {
    struct control *control;
    uint64_t number;
    struct http_call *call; /* NULL = free */
    uint64_t failures;      /* of its road, when it was sent */
    size_t n;
};

struct control {
    struct control_config config;
    struct control_ops ops;
    struct outbox *outbox;
    int64_t now_ms;

    struct http_client *beats;
    struct road beat_road;
    struct http_call *beat_call;
    struct http_call *probe_call;
    int64_t probe_due_ms;
    int64_t beat;
    int64_t interval_ms;
    bool leaving;

    struct http_client *client;
    struct road event_road;
    struct batch batches[BATCHES];
    uint64_t last_batch;
    size_t careful; /* events that are still to be sent one by one */
};

/* ── roads ─────────────────────────────────────────────────────────────────────────────────── */

static void road_is_well(struct road *r, const char *what)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (r->complaint[0])
        log_line(LOG_INFO, "the control plane is back", "for=%s url=%s", what,
                 log_quote(quoted, str_of(r->nodes.now)));
    r->complaint[0] = '\0';
    nodes_succeed(&r->nodes);
}

/* Whoever reads it should look at the right place: the network, our token, or there. */
static const char *trouble(int status)
{
    if (status == 0)
        return "the control plane does not answer; what is to be told waits";
    if (status == STATUS_UNAUTHORIZED || status == STATUS_FORBIDDEN)
        return "the control plane refuses our access token; what is to be told waits";
    return "the control plane cannot take what it is told; it waits";
}

/* Each reason is logged once, not each try. */
static void road_complain(struct road *r, const char *what, int status, const char *why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    char url[LOG_QUOTE_MAX + 8];
    if (strcmp(r->complaint, why) == 0)
        return;
    snprintf(r->complaint, sizeof(r->complaint), "%s", why);
    log_line(LOG_WARN, trouble(status), "for=%s url=%s reason=%s", what,
             log_quote(url, str_of(r->nodes.now)), log_quote(quoted, str_of(why)));
}

static bool is_redirect(const struct http_reply *reply)
{
    return (reply->status == 307 || reply->status == 308) && reply->location[0];
}

/* What is wrong with an answer that is not 200, as a clause. */
static const char *clause(const struct http_reply *reply, char ret[HTTP_CLIENT_WHY_MAX])
{
    char why[JSON_WHY_MAX];
    if (reply->status == 0)
        return reply->why;
    struct json *root = json_parse(reply->body, why);
    struct str said = json_get_text(json_member(json_member(root, "error"), "message"));
    int len = (int)(said.len < 150 ? said.len : 150);
    snprintf(ret, HTTP_CLIENT_WHY_MAX, "it answered %d%s%.*s", reply->status, len ? ": " : "", len,
             len ? said.at : "");
    json_free(root);
    return ret;
}

/* It waits for whoever will lead. */
static bool stands_by(const struct http_reply *reply)
{
    char why[JSON_WHY_MAX];
    if (reply->status != STATUS_UNAVAILABLE)
        return is_redirect(reply);
    struct json *root = json_parse(reply->body, why);
    struct str code = json_get_text(json_member(json_member(root, "error"), "code"));
    bool nobody_leads = str_eq(code, STR("no_leader"));
    json_free(root);
    return nobody_leads;
}

/* What was asked is asked again: of the leader that this one names, or of the next. */
static void road_failed(struct road *r, const struct control *c, const char *what,
                        const struct http_reply *reply)
{
    char why[HTTP_CLIENT_WHY_MAX];
    r->failures++;
    r->due_ms = c->now_ms;
    if (is_redirect(reply) && nodes_follow_url(&r->nodes, reply->location))
        return;
    road_complain(r, what, reply->status, clause(reply, why));
    r->due_ms = c->now_ms + nodes_fail(&r->nodes, stands_by(reply));
}

/* ── heartbeats ────────────────────────────────────────────────────────────────────────────── */

static void beat_now(struct control *c);
static void drop_batches(struct control *c);

/* To where heartbeats are taken. What is under way to another node would be waited for in vain when
 * that one is gone, and is not taken twice when it is not. */
static void lead_events(struct control *c)
{
    struct road *r = &c->event_road;
    char quoted[LOG_QUOTE_MAX + 8];
    r->due_ms = 0; /* it is there: what waits need not wait any longer */
    if (strcmp(r->nodes.now, c->beat_road.nodes.now) == 0)
        return;
    log_line(LOG_INFO, "another node leads", "url=%s",
             log_quote(quoted, str_of(c->beat_road.nodes.now)));
    drop_batches(c);
    r->nodes = c->beat_road.nodes;
}

static void on_beat_taken(struct control *c, const struct http_reply *reply)
{
    char why[JSON_WHY_MAX];
    char token[8 * 1024];
    struct json *root = json_parse(reply->body, why);
    int64_t interval_ms = json_get_int(json_member(root, "interval_ms"));
    c->interval_ms = c->config.heartbeat_ms;
    if (interval_ms >= INTERVAL_MIN_MS && interval_ms < c->interval_ms)
        c->interval_ms = interval_ms;
    if (!str_copy(token, sizeof(token), json_get_text(json_member(root, "token"))))
        token[0] = '\0';
    road_is_well(&c->beat_road, "heartbeats");
    lead_events(c);
    c->ops.beaten(c->ops.user, token, json_member(root, "fetch"));
    explicit_bzero(token, sizeof(token));
    json_free(root);
}

static void on_beat_answered(void *user, const struct http_reply *reply)
{
    struct control *c = user;
    struct road *r = &c->beat_road;
    c->beat_call = NULL;
    bool taken = reply->status == STATUS_OK;
    if (taken)
        on_beat_taken(c, reply);
    else
        road_failed(r, c, "heartbeats", reply);
    bool again = !taken && r->due_ms <= c->now_ms;
    if (!taken && r->due_ms > c->now_ms + c->interval_ms)
        r->due_ms = c->now_ms + c->interval_ms;
    if (again)
        beat_now(c);
    if (c->leaving && !c->beat_call)
        c->ops.left(c->ops.user);
}

static void drop_call(struct http_call **call)
{
    if (*call)
        http_call_drop(*call);
    *call = NULL;
}

static void beat_now(struct control *c)
{
    char url[PATH_MAX_BYTES];
    struct buf body = {0};
    snprintf(url, sizeof(url), "%s/v1/agent/heartbeat", c->beat_road.nodes.now);
    c->ops.describe(c->ops.user, ++c->beat, c->leaving, &body);
    c->beat_road.due_ms = c->now_ms + c->interval_ms;
    c->probe_due_ms = c->now_ms + PROBE_MS;
    drop_call(&c->probe_call);
    c->beat_call =
        http_client_ask(c->beats, HTTP_POST, url, (struct str){(const char *)body.data, body.len},
                        NULL, on_beat_answered, c);
    buf_done(&body);
}

void control_leave(struct control *c)
{
    c->leaving = true;
    drop_call(&c->probe_call);
    drop_call(&c->beat_call);
    beat_now(c);
    if (!c->beat_call)
        c->ops.left(c->ops.user);
}

/* A new leader uses no host before it has heard from it, so we must not sit out an interval with
 * the old one. A Muster that does not know the question (404) is none of several. */
static void on_probed(void *user, const struct http_reply *reply)
{
    struct control *c = user;
    c->probe_call = NULL;
    if (reply->status != 0 && reply->status != STATUS_UNAVAILABLE)
        return;
    c->beat_road.due_ms = c->now_ms + nodes_fail(&c->beat_road.nodes, reply->status != 0);
}

static void probe(struct control *c)
{
    char url[PATH_MAX_BYTES];
    c->probe_due_ms = c->now_ms + PROBE_MS;
    snprintf(url, sizeof(url), "%s/leader", c->beat_road.nodes.now);
    c->probe_call =
        http_client_send(c->beats,
                         &(struct http_client_request){
                             .method = HTTP_GET, .url = url, .timeout_ms = PROBE_TIMEOUT_MS},
                         on_probed, c);
}

static bool is_probe_due(const struct control *c)
{
    bool well = c->beat_road.complaint[0] == '\0' && c->beat > 0;
    return well && !c->beat_call && !c->probe_call && c->now_ms >= c->probe_due_ms &&
           nodes_are_several(&c->beat_road.nodes);
}

/* ── events ────────────────────────────────────────────────────────────────────────────────── */

static void log_dropped_event(const struct outbox_event *e, const char *why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    log_line(LOG_ERROR, "the control plane refuses an event; it is dropped",
             "server=%lld seq=%lld event=%s reason=%s", (long long)e->server, (long long)e->seq,
             e->verb, log_quote(quoted, str_of(why)));
}

/* False when it is no answer to anything we asked. */
static bool take_answer(struct control *c, const struct batch *b, const struct json *item)
{
    char server[32];
    if (!str_copy(server, sizeof(server), json_get_text(json_member(item, "server"))))
        return false;
    int64_t seq = json_get_int(json_member(item, "seq"));
    struct outbox_event *e = outbox_find(c->outbox, strtoll(server, NULL, 10), seq);
    const struct json *result = json_member(item, "result");
    const struct json *error = json_member(item, "error");
    if (!e || e->batch != b->number || !result == !error)
        return false;
    if (str_eq(json_get_text(json_member(error, "code")), STR("bad_argument")))
        log_dropped_event(e, json_get_text(json_member(error, "message")).at);
    c->ops.answered(c->ops.user, e, result, error);
    outbox_settle(c->outbox, e);
    return true;
}

/* The only one of a batch, which will never be taken: it would keep all behind it back for ever. */
static void give_up_event(struct control *c, const struct batch *b, const char *why)
{
    char parse_why[JSON_WHY_MAX];
    struct json *error =
        json_parse(STR("{\"code\":\"refused\",\"message\":\"The control plane refuses this.\","
                       "\"status\":400}"),
                   parse_why);
    struct outbox_event *e = outbox_of_batch(c->outbox, b->number);
    log_dropped_event(e, why);
    c->ops.answered(c->ops.user, e, NULL, error);
    outbox_settle(c->outbox, e);
    json_free(error);
}

/* It answered under a number that we did not give: there is one it cannot read. That is found by
 * sending one at a time. False when it makes no sense at all. */
static bool hear_nameless(struct control *c, const struct batch *b, const struct json *answers)
{
    const struct json *error = json_member(json_item(answers, 0), "error");
    if (json_length(answers) != b->n || (b->n == 1 && !error))
        return false;
    if (b->n == 1)
        give_up_event(c, b, json_get_text(json_member(error, "message")).at);
    else
        c->careful = CAREFUL_EVENTS;
    return true;
}

static void on_batch_taken(struct control *c, struct batch *b, const struct http_reply *reply)
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse(reply->body, why);
    const struct json *answers = json_member(root, "answers");
    size_t taken = 0;
    for (size_t i = 0; i < json_length(answers); i++)
        taken += take_answer(c, b, json_item(answers, i));
    if (taken == b->n || hear_nameless(c, b, answers)) {
        road_is_well(&c->event_road, "events");
    } else {
        road_complain(&c->event_road, "events", STATUS_OK,
                      "its answer does not answer what it was told");
        c->event_road.failures++;
        c->event_road.due_ms = c->now_ms + nodes_fail(&c->event_road.nodes, false);
    }
    json_free(root);
}

static bool is_refusal(int status)
{
    return status == STATUS_BAD || status == STATUS_TOO_LARGE || status == STATUS_UNPROCESSABLE;
}

/* Several fail together when a node goes, and that is one failure of it. */
static void batch_failed(struct control *c, const struct batch *b, const struct http_reply *reply)
{
    if (b->failures != c->event_road.failures)
        return;
    road_failed(&c->event_road, c, "events", reply);
    c->probe_due_ms = 0; /* heartbeats should know soon */
}

static void on_batch_answered(void *user, const struct http_reply *reply)
{
    struct batch *b = user;
    struct control *c = b->control;
    char why[HTTP_CLIENT_WHY_MAX];
    b->call = NULL;
    if (reply->status == STATUS_OK)
        on_batch_taken(c, b, reply);
    else if (is_refusal(reply->status) && b->n == 1)
        give_up_event(c, b, clause(reply, why));
    else if (is_refusal(reply->status))
        c->careful = CAREFUL_EVENTS;
    else
        batch_failed(c, b, reply);
    outbox_return(c->outbox, b->number);
}

static void drop_batches(struct control *c)
{
    for (int i = 0; i < BATCHES; i++) {
        struct batch *b = &c->batches[i];
        if (!b->call)
            continue;
        http_call_drop(b->call);
        b->call = NULL;
        outbox_return(c->outbox, b->number);
    }
}

/* False when there is nothing to send. */
static bool send_batch(struct control *c, struct batch *b)
{
    char url[PATH_MAX_BYTES];
    struct buf body = {0};
    struct buf events = {0};
    uint64_t number = c->last_batch + 1;
    b->n = outbox_take(c->outbox, number, c->careful ? 1 : OUTBOX_BATCH_EVENTS,
                       b < &c->batches[SLOW_BATCHES], &events);
    if (b->n == 0)
        return false;
    struct json_writer w = {.out = &body};
    json_open_object(&w);
    json_key_text(&w, "name", str_of(c->config.name));
    json_key(&w, "events");
    json_open_array(&w);
    buf_append(&body, events.data, events.len);
    json_close_array(&w);
    json_close_object(&w);
    buf_done(&events);
    c->last_batch = b->number = number;
    c->careful -= c->careful > 0;
    b->failures = c->event_road.failures;
    snprintf(url, sizeof(url), "%s/v1/agent/events", c->event_road.nodes.now);
    b->call =
        http_client_ask(c->client, HTTP_POST, url, (struct str){(const char *)body.data, body.len},
                        NULL, on_batch_answered, b);
    buf_done(&body);
    if (!b->call)
        outbox_return(c->outbox, number);
    return b->call != NULL;
}

/* While it is away one batch tries the road for all. */
static void send_batches(struct control *c)
{
    for (int i = 0; i < BATCHES; i++) {
        bool tries = c->event_road.complaint[0] != '\0';
        bool waits = outbox_count(c->outbox) == 0 || c->now_ms < c->event_road.due_ms;
        if (waits || (tries && i > 0))
            return;
        if (c->batches[i].call) {
            if (tries)
                return;
            continue;
        }
        if (!send_batch(c, &c->batches[i]))
            return;
    }
}

void control_turn(struct control *c)
{
    send_batches(c);
    http_client_go(c->client);
}

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

void control_tick(struct control *c, int64_t monotonic_ms)
{
    c->now_ms = monotonic_ms;
    if (c->leaving)
        return;
    if (!c->beat_call && monotonic_ms >= c->beat_road.due_ms)
        beat_now(c);
    else if (is_probe_due(c))
        probe(c);
}

struct control *control_new(struct loop *loop, const struct control_config *config,
                            struct outbox *outbox, const struct control_ops *ops)
{
    struct control *c = xcalloc(1, sizeof(*c));
    struct http_client_config wish = {.token = config->token,
                                      .ca_file = config->ca_file,
                                      .timeout_ms = config->nodes.n > 1 ? BEAT_ONE_OF_TIMEOUT_MS
                                                                        : BEAT_TIMEOUT_MS,
                                      .per_host = 1};
    c->config = *config;
    c->ops = *ops;
    c->outbox = outbox;
    c->interval_ms = config->heartbeat_ms;
    c->now_ms = clock_monotonic_ms();
    c->beats = http_client_new(loop, &wish);
    wish.timeout_ms = EVENTS_TIMEOUT_MS;
    wish.per_host = BATCHES;
    c->client = http_client_new(loop, &wish);
    c->config.nodes.wait_max_ms = WAIT_MAX_MS;
    c->beat_road.nodes = c->event_road.nodes = c->config.nodes;
    for (int i = 0; i < BATCHES; i++)
        c->batches[i].control = c;
    return c;
}

void control_free(struct control *c)
{
    if (!c)
        return;
    http_client_free(c->beats);
    http_client_free(c->client);
    free(c);
}

const char *control_url(const struct control *c)
{
    return c->beat_road.nodes.now;
}

struct http_client *control_client(const struct control *c)
{
    return c->client;
}

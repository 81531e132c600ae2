#include "agent/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/http_client.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCHES = 8,      /* under way at once */
    SLOW_BATCHES = 6, /* of which may be slow ones */
    BEAT_TIMEOUT_MS = 5000,
    EVENTS_TIMEOUT_MS = 30 * 1000, /* some answers take the control plane a while */
    WAIT_FIRST_MS = 200,           /* before the second try; doubled with each further one */
    WAIT_MAX_MS = 5000,
    INTERVAL_MIN_MS = 200,
    HOPS_MAX = 4, /* redirects in a row */
    PATH_MAX_BYTES = CONTROL_URL_MAX + 64,
    CAREFUL_EVENTS = OUTBOX_BATCH_EVENTS, /* sent one by one after a batch was refused */

    STATUS_OK = 200,
    STATUS_BAD = 400,
    STATUS_UNAUTHORIZED = 401,
    STATUS_FORBIDDEN = 403,
    STATUS_TOO_LARGE = 413,
    STATUS_UNPROCESSABLE = 422,
};

/* One way to the control plane: which address is tried, and when next. */
struct road {
    size_t at; /* of the configured ones */
    char base[CONTROL_URL_MAX];
    int hops;
    int failures;                        /* in a row */
    int64_t due_ms;                      /* not before this */
    char complaint[HTTP_CLIENT_WHY_MAX]; /* the last one; "" = it is well */
};

struct batch {
    struct control *control;
    uint64_t number;
    struct http_call *call; /* NULL = free */
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

static void road_init(struct road *r, const struct control *c)
{
    snprintf(r->base, sizeof(r->base), "%s", c->config.urls[0]);
}

static void road_is_well(struct road *r, const char *what)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (r->complaint[0])
        log_line(LOG_INFO, "the control plane is back", "for=%s url=%s", what,
                 log_quote(quoted, str_of(r->base)));
    r->complaint[0] = '\0';
    r->failures = 0;
    r->hops = 0;
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
             log_quote(url, str_of(r->base)), log_quote(quoted, str_of(why)));
}

/* Somewhere between half of it and all of it, so that a thousand agents do not come at once. */
static int64_t jittered(int64_t ms)
{
    return ms / 2 + (int64_t)randombytes_uniform((uint32_t)(ms / 2 + 1));
}

/* The next address, after a while. */
static void road_failed(struct road *r, const struct control *c)
{
    int doublings = r->failures < 5 ? r->failures : 5;
    int64_t wait_ms = (int64_t)WAIT_FIRST_MS << doublings;
    r->failures++;
    r->hops = 0;
    r->at = (r->at + 1) % c->config.n_urls;
    snprintf(r->base, sizeof(r->base), "%s", c->config.urls[r->at]);
    r->due_ms = c->now_ms + jittered(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
}

static bool is_redirect(const struct http_reply *reply)
{
    return (reply->status == 307 || reply->status == 308) && reply->location[0];
}

/* To whoever leads now: the scheme and host of where we were sent. */
static bool road_turn(struct road *r, const char *location)
{
    const char *host = strstr(location, "://");
    if (!host || r->hops++ >= HOPS_MAX)
        return false;
    size_t len = (size_t)(host + 3 - location) + strcspn(host + 3, "/?#");
    return str_copy(r->base, sizeof(r->base), (struct str){location, len});
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

/* True when the same can be asked again at once, elsewhere. */
static bool road_take(struct road *r, const struct control *c, const char *what,
                      const struct http_reply *reply)
{
    char why[HTTP_CLIENT_WHY_MAX];
    if (is_redirect(reply) && road_turn(r, reply->location))
        return true;
    road_complain(r, what, reply->status, clause(reply, why));
    road_failed(r, c);
    return false;
}

/* ── heartbeats ────────────────────────────────────────────────────────────────────────────── */

static void beat_now(struct control *c);

static void beat_over(struct control *c)
{
    if (c->leaving)
        c->ops.left(c->ops.user);
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
    c->event_road.due_ms = 0; /* it is there: what waits need not wait any longer */
    c->ops.beaten(c->ops.user, token, json_member(root, "fetch"));
    explicit_bzero(token, sizeof(token));
    json_free(root);
}

static void on_beat_answered(void *user, const struct http_reply *reply)
{
    struct control *c = user;
    c->beat_call = NULL;
    if (reply->status == STATUS_OK)
        on_beat_taken(c, reply);
    else if (road_take(&c->beat_road, c, "heartbeats", reply))
        c->beat_road.due_ms = 0;
    else if (c->beat_road.due_ms > c->now_ms + c->interval_ms)
        c->beat_road.due_ms = c->now_ms + c->interval_ms;
    beat_over(c);
}

static void beat_now(struct control *c)
{
    char url[PATH_MAX_BYTES];
    struct buf body = {0};
    snprintf(url, sizeof(url), "%s/v1/agent/heartbeat", c->beat_road.base);
    c->ops.describe(c->ops.user, ++c->beat, c->leaving, &body);
    c->beat_road.due_ms = c->now_ms + c->interval_ms;
    c->beat_call =
        http_client_ask(c->beats, HTTP_POST, url, (struct str){(const char *)body.data, body.len},
                        NULL, on_beat_answered, c);
    buf_done(&body);
}

void control_leave(struct control *c)
{
    c->leaving = true;
    if (c->beat_call)
        http_call_drop(c->beat_call);
    c->beat_call = NULL;
    beat_now(c);
    if (!c->beat_call)
        beat_over(c);
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
        road_failed(&c->event_road, c);
    }
    json_free(root);
}

static bool is_refusal(int status)
{
    return status == STATUS_BAD || status == STATUS_TOO_LARGE || status == STATUS_UNPROCESSABLE;
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
    else if (road_take(&c->event_road, c, "events", reply))
        c->event_road.due_ms = 0;
    outbox_return(c->outbox, b->number);
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
    snprintf(url, sizeof(url), "%s/v1/agent/events", c->event_road.base);
    b->call =
        http_client_ask(c->client, HTTP_POST, url, (struct str){(const char *)body.data, body.len},
                        NULL, on_batch_answered, b);
    buf_done(&body);
    if (!b->call)
        outbox_return(c->outbox, number);
    return b->call != NULL;
}

/* While it is away one batch tries the road for all. */
void control_turn(struct control *c)
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

/* ── the whole ─────────────────────────────────────────────────────────────────────────────── */

void control_tick(struct control *c, int64_t monotonic_ms)
{
    c->now_ms = monotonic_ms;
    if (!c->beat_call && !c->leaving && monotonic_ms >= c->beat_road.due_ms)
        beat_now(c);
}

struct control *control_new(struct loop *loop, const struct control_config *config,
                            struct outbox *outbox, const struct control_ops *ops)
{
    struct control *c = xcalloc(1, sizeof(*c));
    struct http_client_config wish = {.token = config->token,
                                      .ca_file = config->ca_file,
                                      .timeout_ms = BEAT_TIMEOUT_MS,
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
    road_init(&c->beat_road, c);
    road_init(&c->event_road, c);
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
    return c->beat_road.base;
}

struct http_client *control_client(const struct control *c)
{
    return c->client;
}

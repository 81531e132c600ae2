/* Every kind of request is a stream with its own back-off. Whatever happens ends in pubsub_wake,
 * and at the end of the turn `work` begins what can be begun, so that much at once is one request.
 *
 * A pull is held open by Google until there is a message, so it does not show whether we are
 * connected. The first one, and the first after a failure, is therefore answered at once. */
#include "api/pubsub_parts.h"

#include "api/door.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "net/loop.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PULL_MESSAGES = 100,
    PULLS = 2,
    CONNECTIONS_BESIDE = 4,        /* for all that is no pull */
    PULL_MS = 120 * 1000,          /* Google holds one for about 90 s */
    ASK_MS = 15 * 1000,            /* any other request */
    ANSWER_MAX = 16 * 1024 * 1024, /* a message of 10 MB in base64 */
    EMPTY_MS = 250,                /* between pulls that were not held */
    LOST_AFTER = 2,                /* failures in a row: one may be a connection that aged */
};

static const char default_endpoint[] = "https://pubsub.googleapis.com";
static const char default_keys[] = "https://www.googleapis.com/oauth2/v3/certs";

static void work(struct pubsub *p);

/* ── streams ───────────────────────────────────────────────────────────────────────────────── */

static void on_timer(uv_timer_t *handle)
{
    work(handle->data);
}

void pubsub_wake(struct pubsub *p)
{
    if (!p->ended)
        uv_timer_start(&p->timer, on_timer, 0, 0);
}

bool pubsub_may(const struct pubsub *p, enum pubsub_kind kind)
{
    return clock_monotonic_ms() >= p->streams[kind].not_before_ms;
}

bool pubsub_ask(struct pubsub *p, enum pubsub_kind kind, const struct buf *body, http_done *done,
                void *user)
{
    struct pubsub_stream *s = &p->streams[kind];
    const char *token = p->token ? google_token_get(p->token) : NULL;
    struct http_client_request request = {
        .method = HTTP_POST,
        .url = s->url,
        .body = {(const char *)body->data, body->len},
        .token = token,
        .timeout_ms = kind == STREAM_PULL ? PULL_MS : ASK_MS,
        .answer_max = ANSWER_MAX,
    };
    if (p->token && !token)
        return false;
    if (!http_client_send(p->client, &request, done, user))
        return false;
    s->under_way++;
    return true;
}

/* Those that are repeated until they succeed: their failures in a row say how things are now. */
static bool shows_health(enum pubsub_kind kind)
{
    return kind == STREAM_PULL || kind == STREAM_PUBLISH || kind == STREAM_BURY;
}

static bool all_is_well(const struct pubsub *p)
{
    for (int i = 0; i < STREAMS; i++) {
        if (shows_health((enum pubsub_kind)i) && p->streams[i].backoff.failures > 0)
            return false;
    }
    return true;
}

static void connect_again(struct pubsub *p)
{
    if (p->connected || !all_is_well(p))
        return;
    p->connected = true;
    p->figures.reconnected += p->was_connected;
    p->was_connected = true;
    log_line(LOG_INFO, "Pub/Sub is connected", "reconnected=%" PRId64, p->figures.reconnected);
}

/* What an operator can do about it. */
static const char *advice(enum pubsub_kind kind, int status)
{
    bool reads = kind <= STREAM_EXTEND;
    if (status == 403)
        return reads ? "the account needs roles/pubsub.subscriber on this subscription"
                     : "the account needs roles/pubsub.publisher on this topic";
    if (status == 404)
        return reads ? "there is no such subscription" : "there is no such topic";
    return NULL;
}

/* Google's own sentence, or what went wrong on the way. */
static void said(const struct http_reply *reply, char dst[PUBSUB_SAID_MAX])
{
    char ignored[JSON_WHY_MAX];
    struct json *root = reply->status ? json_parse(reply->body, ignored) : NULL;
    const struct json *error =
        root && json_kind(root) == JSON_KIND_OBJECT ? json_member(root, "error") : NULL;
    const struct json *text =
        error && json_kind(error) == JSON_KIND_OBJECT ? json_member(error, "message") : NULL;
    struct str message = text ? json_get_text(text) : str_of(reply->why);
    size_t len = message.len < PUBSUB_SAID_MAX ? message.len : PUBSUB_SAID_MAX - 1;
    (void)str_copy(dst, PUBSUB_SAID_MAX, (struct str){message.at, len});
    json_free(root);
}

static void log_failure(const struct pubsub_stream *s, enum pubsub_kind kind,
                        const struct http_reply *reply, int64_t wait_ms)
{
    char text[PUBSUB_SAID_MAX];
    struct log_entry e;
    const char *help = advice(kind, reply->status);
    if (!log_enabled(LOG_WARN))
        return;
    said(reply, text);
    log_begin(&e, LOG_WARN, reply->status ? "Pub/Sub refused a request" : "Pub/Sub did not answer");
    log_word(&e, "request", s->what);
    log_text(&e, "name", str_of(s->name));
    if (reply->status)
        log_int(&e, "status", reply->status);
    log_text(&e, "why", str_of(text));
    if (help)
        log_text(&e, "help", str_of(help));
    log_int(&e, "again_ms", wait_ms);
    log_end(&e);
}

static void fail(struct pubsub *p, enum pubsub_kind kind, const struct http_reply *reply)
{
    struct pubsub_stream *s = &p->streams[kind];
    int64_t wait_ms = backoff_next_ms(&s->backoff);
    s->not_before_ms = clock_monotonic_ms() + wait_ms;
    log_failure(s, kind, reply, wait_ms);
    if (s->backoff.failures >= LOST_AFTER && shows_health(kind))
        p->connected = false;
}

bool pubsub_ended(struct pubsub *p, enum pubsub_kind kind, const struct http_reply *reply)
{
    struct pubsub_stream *s = &p->streams[kind];
    s->under_way--;
    pubsub_wake(p);
    if (reply->status == 200) {
        s->backoff = (struct backoff){0};
        s->not_before_ms = 0;
        connect_again(p);
        return true;
    }
    if (reply->status == 401 && p->token)
        google_token_refused(p->token);
    fail(p, kind, reply);
    return false;
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

struct pubsub_message *pubsub_message_new(struct pubsub *p, const char *ack_id, conn_id call)
{
    struct pubsub_message *m = xcalloc(1, sizeof(*m));
    m->id = ++p->last_id;
    m->ack_id = ack_id ? xstrdup(ack_id) : NULL;
    m->call = call;
    m->came_ms = clock_monotonic_ms();
    m->due_ms = m->came_ms + PUBSUB_EXTEND_AFTER_MS;
    map_put(&p->messages, m->id, m);
    return m;
}

void pubsub_message_free(struct pubsub *p, struct pubsub_message *m)
{
    map_remove(&p->messages, m->id);
    list_remove(&m->in_age);
    list_remove(&m->in_parked);
    buf_done(&m->parked);
    free(m->ack_id);
    free(m);
}

bool pubsub_decode(struct str text, struct buf *out)
{
    size_t len = 0;
    if (text.len == 0)
        return true;
    uint8_t *at = buf_extend(out, text.len);
    bool ok = sodium_base642bin(at, text.len, text.at, text.len, NULL, &len, NULL,
                                sodium_base64_VARIANT_ORIGINAL) == 0;
    out->len = out->len - text.len + len;
    return ok;
}

/* ── pulling ───────────────────────────────────────────────────────────────────────────────── */

static void hand_in(struct pubsub *p, struct pubsub_message *m, struct str body, bool readable)
{
    doors_read_clocks(p->doors);
    if (readable)
        bus_received(&p->bus, m->id, body, m->again);
    else
        pubsub_bury(&p->bus, m->id, body, "its data is no base64");
}

static void take_message(struct pubsub *p, const struct json *received)
{
    const struct json *id = json_member(received, "ackId");
    const struct json *message = json_member(received, "message");
    const struct json *attempt = json_member(received, "deliveryAttempt");
    bool has = message && json_kind(message) == JSON_KIND_OBJECT;
    const struct json *data = has ? json_member(message, "data") : NULL;
    struct str text = data ? json_get_text(data) : (struct str){0};
    struct str ack_id = id ? json_get_text(id) : (struct str){0};
    if (ack_id.len == 0)
        return; /* nobody could acknowledge it */
    struct pubsub_message *m = pubsub_message_new(p, ack_id.at, 0);
    m->again = attempt && json_get_int(attempt) > 1;
    list_append(&p->fresh, &m->in_age);
    p->figures.received++;
    p->figures.redelivered += m->again;
    bool readable = pubsub_decode(text, &m->parked);
    if (p->held && readable) {
        list_append(&p->parked, &m->in_parked);
        return;
    }
    struct buf body = m->parked; /* m may be gone when it is handed in */
    m->parked = (struct buf){0};
    hand_in(p, m, readable ? (struct str){(const char *)body.data, body.len} : text, readable);
    buf_done(&body);
}

static size_t take_messages(struct pubsub *p, struct str body)
{
    char why[JSON_WHY_MAX];
    char quoted[LOG_QUOTE_MAX + 8];
    struct json *root = json_parse(body, why);
    const struct json *list =
        root && json_kind(root) == JSON_KIND_OBJECT ? json_member(root, "receivedMessages") : NULL;
    size_t n = list && json_kind(list) == JSON_KIND_ARRAY ? json_length(list) : 0;
    if (!root)
        log_line(LOG_WARN, "Pub/Sub answered a pull with what is no JSON", "why=%s",
                 log_quote(quoted, str_of(why)));
    for (size_t i = 0; i < n; i++) {
        const struct json *received = json_item(list, i);
        if (json_kind(received) == JSON_KIND_OBJECT)
            take_message(p, received);
    }
    json_free(root);
    return n;
}

static bool was_too_long(const struct http_reply *reply)
{
    return reply->status == 0 && strcmp(reply->why, "the answer is too long") == 0;
}

/* Google may end a pull that found nothing with 504 instead of an empty answer. */
static bool was_only_empty(const struct pubsub_pull *pull, const struct http_reply *reply)
{
    bool long_ago = clock_monotonic_ms() - pull->began_ms > ASK_MS;
    return reply->status == 504 && long_ago;
}

static void on_pulled(void *user, const struct http_reply *reply)
{
    struct pubsub_pull *pull = user;
    struct pubsub *p = pull->pubsub;
    struct http_reply counts = *reply;
    pull->under_way = false;
    if (was_only_empty(pull, reply))
        counts = (struct http_reply){.status = 200, .why = ""};
    if (was_too_long(reply) && p->pull_now > 1)
        p->pull_now /= 2;
    if (pubsub_ended(p, STREAM_PULL, &counts)) {
        size_t n = take_messages(p, counts.body);
        if (counts.body.len < ANSWER_MAX / 4 && n > 0 && p->pull_now < p->pull_messages)
            p->pull_now++;
        int64_t now_ms = clock_monotonic_ms();
        if (n == 0 && now_ms - pull->began_ms < EMPTY_MS)
            p->streams[STREAM_PULL].not_before_ms = now_ms + EMPTY_MS;
    }
}

static void begin_pull(struct pubsub *p, struct pubsub_pull *pull)
{
    struct buf body = {0};
    struct json_writer w = {.out = &body};
    json_open_object(&w);
    json_key_int(&w, "maxMessages", p->pull_now);
    json_key_bool(&w, "returnImmediately", !p->connected);
    json_close_object(&w);
    pull->pubsub = p;
    pull->began_ms = clock_monotonic_ms();
    pull->under_way = pubsub_ask(p, STREAM_PULL, &body, on_pulled, pull);
    buf_done(&body);
}

static void begin_pulls(struct pubsub *p)
{
    int wanted = p->connected ? p->pulls : 1;
    if (!*p->subscription || p->held || !pubsub_may(p, STREAM_PULL) ||
        p->messages.len >= PUBSUB_OUTSTANDING_MAX)
        return;
    for (int i = 0; i < wanted; i++) {
        if (!p->pulling[i].under_way)
            begin_pull(p, &p->pulling[i]);
    }
}

/* ── work ──────────────────────────────────────────────────────────────────────────────────── */

/* Without a subscription nothing is asked until there is a result, so a token is all we can try. */
static void try_push_only(struct pubsub *p)
{
    if (!*p->subscription && (!p->token || google_token_get(p->token)))
        connect_again(p);
}

static void note_due(int64_t *due_ms, int64_t at_ms)
{
    if (at_ms > 0 && (*due_ms == 0 || at_ms < *due_ms))
        *due_ms = at_ms;
}

static void note_oldest(int64_t *due_ms, const struct list *list)
{
    struct link *n = list_first(list);
    if (n)
        note_due(due_ms, container_of(n, struct pubsub_message, in_age)->due_ms);
}

static void work(struct pubsub *p)
{
    int64_t due_ms = 0, now_ms = clock_monotonic_ms();
    try_push_only(p);
    pubsub_extend(p);
    pubsub_send(p);
    begin_pulls(p);
    for (int i = 0; i < STREAMS; i++) {
        if (p->streams[i].not_before_ms > now_ms)
            note_due(&due_ms, p->streams[i].not_before_ms);
    }
    if (p->streams[STREAM_EXTEND].under_way == 0 && pubsub_may(p, STREAM_EXTEND)) {
        note_oldest(&due_ms, &p->fresh);
        note_oldest(&due_ms, &p->extended);
    }
    if (due_ms > 0)
        uv_timer_start(&p->timer, on_timer, (uint64_t)(due_ms > now_ms ? due_ms - now_ms : 1), 0);
}

/* ── what the bus asks for ─────────────────────────────────────────────────────────────────── */

static struct pubsub *of(struct bus *b)
{
    return container_of(b, struct pubsub, bus);
}

static void start(struct bus *b)
{
    pubsub_wake(of(b));
}

static void hold(struct bus *b, bool on)
{
    struct pubsub *p = of(b);
    struct link *n;
    p->held = on;
    while (!p->held && (n = list_first(&p->parked))) {
        struct pubsub_message *m = container_of(n, struct pubsub_message, in_parked);
        struct buf body = m->parked;
        m->parked = (struct buf){0};
        list_remove(n);
        hand_in(p, m, (struct str){(const char *)body.data, body.len}, true);
        buf_done(&body);
    }
    pubsub_wake(p);
}

static void figures(const struct bus *b, struct bus_figures *ret)
{
    const struct pubsub *p = (const struct pubsub *)(const void *)b;
    *ret = p->figures;
    ret->connected = p->connected;
    ret->unsent = (int64_t)p->results.n;
    ret->waiting = -1;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

static void on_closed(uv_handle_t *handle)
{
    struct pubsub *p = handle->data;
    free(p->project);
    free(p->subscription);
    free(p->topic);
    free(p->dead_topic);
    free(p->audience);
    free(p->account);
    free(p);
}

static void free_messages(struct pubsub *p)
{
    size_t at = 0;
    struct pubsub_message *m;
    while ((m = map_next(&p->messages, &at))) {
        pubsub_message_free(p, m);
        at = 0;
    }
    map_done(&p->messages);
}

static void pubsub_free(struct bus *b)
{
    struct pubsub *p = of(b);
    p->ended = true;
    google_token_free(p->token);
    google_keys_free(p->keys);
    http_client_free(p->client);
    free_messages(p);
    pubsub_queue_done(&p->results);
    pubsub_queue_done(&p->dead);
    pubsub_queue_done(&p->acks);
    uv_close((uv_handle_t *)&p->timer, on_closed);
}

static const struct bus_ops ops = {
    .name = "pubsub",
    .kind = BUS_PUBSUB,
    .start = start,
    .publish = pubsub_publish,
    .acknowledge = pubsub_acknowledge,
    .bury = pubsub_bury,
    .hold = hold,
    .figures = figures,
    .free = pubsub_free,
};

static void on_token(void *user)
{
    struct pubsub *p = user;
    if (*google_token_why(p->token) && !google_token_get(p->token))
        p->connected = false;
    pubsub_wake(p);
}

/* Names become parts of URLs, so of what Google allows in them "%" is left out. A project of a
 * domain has a colon. */
static bool is_name(const char *name)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+:";
    return strlen(name) <= PUBSUB_NAME_MAX && strspn(name, plain) == strlen(name);
}

static bool is_usable(const struct pubsub_config *c, char *why)
{
    const char *const names[][2] = {{"project", c->project},
                                    {"subscription", c->subscription},
                                    {"topic", c->topic},
                                    {"dead_topic", c->dead_topic}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (is_name(names[i][1]))
            continue;
        snprintf(why, PUBSUB_WHY_MAX, "Pub/Sub: this is no name for a %s: %.100s", names[i][0],
                 names[i][1]);
        return false;
    }
    if (!*c->project || !*c->topic)
        snprintf(why, PUBSUB_WHY_MAX, "Pub/Sub needs a project and a topic for results");
    else if (!*c->subscription && !*c->push_audience)
        snprintf(why, PUBSUB_WHY_MAX,
                 "Pub/Sub needs a subscription to pull from, or an audience of those who push");
    else if (*c->push_audience && !*c->push_account)
        snprintf(why, PUBSUB_WHY_MAX, "Pub/Sub: who may push? The account is missing");
    else
        return true;
    return false;
}

static void set_stream(struct pubsub *p, enum pubsub_kind kind, const char *endpoint,
                       const char *collection, const char *name, const char *verb)
{
    struct pubsub_stream *s = &p->streams[kind];
    s->what = verb;
    s->name = name;
    snprintf(s->url, sizeof(s->url), "%s/v1/projects/%s/%s/%s:%s", endpoint, p->project, collection,
             name, verb);
}

static void set_streams(struct pubsub *p, const char *configured, const char *emulator)
{
    char endpoint[PUBSUB_URL_MAX / 4];
    if (emulator)
        snprintf(endpoint, sizeof(endpoint), "http://%s", emulator);
    else
        snprintf(endpoint, sizeof(endpoint), "%s", *configured ? configured : default_endpoint);
    size_t len = strlen(endpoint);
    while (len > 0 && endpoint[len - 1] == '/')
        endpoint[--len] = '\0';
    set_stream(p, STREAM_PULL, endpoint, "subscriptions", p->subscription, "pull");
    set_stream(p, STREAM_ACK, endpoint, "subscriptions", p->subscription, "acknowledge");
    set_stream(p, STREAM_EXTEND, endpoint, "subscriptions", p->subscription, "modifyAckDeadline");
    set_stream(p, STREAM_PUBLISH, endpoint, "topics", p->topic, "publish");
    set_stream(p, STREAM_BURY, endpoint, "topics", p->dead_topic, "publish");
}

static int within(int value, int otherwise, int max)
{
    value = value > 0 ? value : otherwise;
    return value < max ? value : max;
}

static struct pubsub *allocate(struct doors *doors, const struct pubsub_config *config)
{
    struct pubsub *p = xcalloc(1, sizeof(*p));
    p->bus.ops = &ops;
    p->doors = doors;
    p->project = xstrdup(config->project);
    p->subscription = xstrdup(config->subscription);
    p->topic = xstrdup(config->topic);
    p->dead_topic = xstrdup(config->dead_topic);
    p->audience = xstrdup(config->push_audience);
    p->account = xstrdup(config->push_account);
    p->pull_messages = within(config->pull_messages, PULL_MESSAGES, PUBSUB_PULL_MAX);
    p->pull_now = p->pull_messages;
    p->pulls = within(config->pulls, PULLS, PUBSUB_PULLS_MAX);
    p->dead_batch = PUBSUB_BATCH_MAX;
    list_init(&p->fresh);
    list_init(&p->extended);
    list_init(&p->parked);
    pubsub_queue_init(&p->results);
    pubsub_queue_init(&p->dead);
    pubsub_queue_init(&p->acks);
    uv_timer_init(&doors->loop->uv, &p->timer);
    p->timer.data = p;
    p->client = http_client_new(
        doors->loop, &(struct http_client_config){.timeout_ms = ASK_MS,
                                                  .per_host = p->pulls + CONNECTIONS_BESIDE});
    return p;
}

struct bus *pubsub_new(struct doors *doors, const struct pubsub_config *config,
                       char why[PUBSUB_WHY_MAX])
{
    const char *emulator = getenv("PUBSUB_EMULATOR_HOST");
    emulator = emulator && *emulator ? emulator : NULL;
    if (!is_usable(config, why))
        return NULL;
    struct pubsub *p = allocate(doors, config);
    set_streams(p, config->endpoint, emulator);
    if (!emulator) {
        _Static_assert((int)GOOGLE_WHY_MAX == (int)PUBSUB_WHY_MAX, "one sentence");
        p->token =
            google_token_new(doors->loop, p->client, config->credentials_file, on_token, p, why);
        if (!p->token) {
            pubsub_free(&p->bus);
            return NULL;
        }
    }
    if (*p->audience)
        p->keys = google_keys_new(doors->loop, p->client,
                                  *config->push_keys ? config->push_keys : default_keys);
    return &p->bus;
}

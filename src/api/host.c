/* The agents' door: heartbeats and events of hosts, as docs/agent-protocol.md says. Bodies are read
 * here and not as arguments: they are lists of objects, and what is not known in them is ignored.
 */
#include "api/host.h"
#include "api/agents.h"
#include "api/call.h"
#include "api/login.h"
#include "api/play.h"
#include "base/err.h"
#include "wire/settings.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    EVENTS_MAX = 256,
    FETCH_MAX = 16,     /* deployments that one heartbeat's answer names */
    INTERVAL_MS = 5000, /* from one heartbeat to the next */
    PERCENT_MAX = 1000, /* what a counter that wraps may say; more than 100 is taken for 100 */
    KEY_MAX = 128,
    SENTENCE_MAX = 1024,
    TAIL_MAX = 4096,
    TOKEN_MAX = ACCESS_TOKEN_MAX,
};

/* ── shapes, for the description ───────────────────────────────────────────────────────────── */

#define KEY(name_, kind_, help_)                                                                   \
    {                                                                                              \
        .name = (name_), .kind = (kind_), .help = (help_)                                          \
    }
#define OPTIONAL(name_, kind_, help_)                                                              \
    {                                                                                              \
        .name = (name_), .kind = (kind_), .may_be_absent = true, .help = (help_)                   \
    }

static const char *const state_words[] = {"starting", "running", "ending", NULL};
static const char *const cause_words[] = {"game", "host", "configuration", NULL};
static const char *const event_words[] = {"inited", "failed",          "exited",           "joined",
                                          "left",   "update_settings", "check_deployment", NULL};

const struct shape host_server_shape = {
    .name = "HostServer",
    .help = "A server as its agent sees it.",
    .rows =
        (const struct shape_row[]){
            KEY("id", SHAPE_ID, "as in the spawn"),
            KEY("session", SHAPE_ID, "as in the spawn"),
            KEY("pid", SHAPE_INT32, NULL),
            {.name = "state", .kind = SHAPE_WORD, .words = state_words},
            KEY("ports", SHAPE_INTS, "at most 4"),
            OPTIONAL("since_ms", SHAPE_INT64, "for how long it is in this state"),
            {0},
        },
};

const struct shape host_beat_shape = {
    .name = "HostBeat",
    .help = "An agent's heartbeat.",
    .rows =
        (const struct shape_row[]){
            KEY("name", SHAPE_TEXT, "who it is, at most 64 bytes"),
            KEY("address", SHAPE_TEXT, "where players reach its servers"),
            KEY("url", SHAPE_TEXT, "where Muster reaches the agent"),
            KEY("region", SHAPE_TEXT, "the name of its region"),
            OPTIONAL("slots", SHAPE_INT32, "servers it will run at once; 0: as many as it can"),
            KEY("cpu_percent", SHAPE_DOUBLE, NULL),
            KEY("memory_percent", SHAPE_DOUBLE, NULL),
            OPTIONAL("disk_percent", SHAPE_DOUBLE, NULL),
            OPTIONAL("load", SHAPE_DOUBLE, NULL),
            KEY("beat", SHAPE_INT64, "counts up from 1 while the agent runs"),
            OPTIONAL("leaving", SHAPE_BOOL, "it is being stopped: nothing new, please"),
            OPTIONAL("deployments", SHAPE_TEXTS, "those it has, by their SHA-256 in hex"),
            {.name = "servers",
             .kind = SHAPE_ITEMS,
             .shape = &host_server_shape,
             .help = "all that run there"},
            {0},
        },
};

struct beat_answer {
    int64_t host;
    const char *token;
    int64_t interval_ms;
    const uint8_t *lacking[FETCH_MAX];
    size_t n_lacking;
};

static void write_fetch(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct beat_answer *v = object;
    char hex[2 * OPERATE_DIGEST + 1];
    (void)config;
    json_open_array(w);
    for (size_t i = 0; i < v->n_lacking; i++)
        json_text(w, str_of(sodium_bin2hex(hex, sizeof(hex), v->lacking[i], OPERATE_DIGEST)));
    json_close_array(w);
}

const struct shape host_beat_answer_shape = {
    .name = "HostBeatAnswer",
    .help = "What an agent is told.",
    .rows =
        (const struct shape_row[]){
            {.name = "host",
             .kind = SHAPE_ID,
             .offset = offsetof(struct beat_answer, host),
             .help = "the number of the host"},
            {.name = "token",
             .kind = SHAPE_TEXT,
             .offset = offsetof(struct beat_answer, token),
             .help = "what Muster will show when it calls"},
            {.name = "interval_ms",
             .kind = SHAPE_INT64,
             .offset = offsetof(struct beat_answer, interval_ms),
             .help = "from one heartbeat to the next"},
            {.name = "fetch",
             .kind = SHAPE_TEXTS,
             .write = write_fetch,
             .help = "deployments to pull now, by their SHA-256 in hex"},
            {0},
        },
};

const struct shape agent_event_shape = {
    .name = "AgentEvent",
    .help = "Something that happened to a server.",
    .rows =
        (const struct shape_row[]){
            KEY("server", SHAPE_ID, NULL),
            KEY("seq", SHAPE_INT64, "counts up from 1 for each server"),
            {.name = "event", .kind = SHAPE_WORD, .words = event_words},
            OPTIONAL("pid", SHAPE_INT32, "inited"),
            OPTIONAL("ports", SHAPE_INTS, "inited"),
            OPTIONAL("settings", SHAPE_JSON, "inited, update_settings"),
            OPTIONAL("text", SHAPE_TEXT, "failed: a sentence"),
            OPTIONAL("tail", SHAPE_TEXT, "failed, exited: its last lines"),
            OPTIONAL("timed_out", SHAPE_BOOL, "failed: it was ended because it took too long"),
            {.name = "cause",
             .kind = SHAPE_WORD,
             .words = cause_words,
             .may_be_absent = true,
             .help = "failed: whose fault it was; absent: the agent cannot tell"},
            OPTIONAL("exit_code", SHAPE_INT32,
                     "exited, failed; -1: nobody could tell; failed without it and without "
                     "exit_signal: no process was started"),
            OPTIONAL("exit_signal", SHAPE_INT32, "exited, failed"),
            OPTIONAL("peak_memory", SHAPE_INT64, "exited, failed: bytes"),
            OPTIONAL("run_ms", SHAPE_INT64, "exited, failed"),
            OPTIONAL("dropped_bytes", SHAPE_INT64, "exited, failed: of its output, not in its log"),
            OPTIONAL("hung", SHAPE_BOOL, "exited: it was ended because it did not answer"),
            OPTIONAL("key", SHAPE_TEXT, "joined, left"),
            OPTIONAL("extend_token", SHAPE_TEXT, "joined"),
            OPTIONAL("extend_scopes", SHAPE_TEXT, "joined"),
            {0},
        },
};

const struct shape agent_events_shape = {
    .name = "AgentEvents",
    .help = "What happened on a host, in order.",
    .rows =
        (const struct shape_row[]){
            KEY("name", SHAPE_TEXT, "of the host"),
            {.name = "events",
             .kind = SHAPE_ITEMS,
             .shape = &agent_event_shape,
             .help = "at most 256"},
            {0},
        },
};

const struct shape agent_refusal_shape = {
    .name = "AgentRefusal",
    .help = "Why an event was refused.",
    .rows =
        (const struct shape_row[]){
            KEY("code", SHAPE_TEXT, "a word for machines"),
            KEY("message", SHAPE_TEXT, "a sentence for people"),
            KEY("status", SHAPE_INT32, "as of an HTTP answer"),
            {0},
        },
};

const struct shape agent_answer_shape = {
    .name = "AgentAnswer",
    .help = "What came of an event: a result or an error.",
    .rows =
        (const struct shape_row[]){
            {.name = "server",
             .kind = SHAPE_ID,
             .may_be_null = true,
             .help = "null: the event did not say it"},
            KEY("seq", SHAPE_INT64, "0: the event did not say it"),
            OPTIONAL("result", SHAPE_JSON, "joined: access_token, account, info and scopes"),
            {.name = "error",
             .kind = SHAPE_OBJECT,
             .may_be_absent = true,
             .shape = &agent_refusal_shape},
            {0},
        },
};

const struct shape agent_answers_shape = {
    .name = "AgentAnswers",
    .help = "What came of each event, in the order asked.",
    .rows =
        (const struct shape_row[]){
            {.name = "answers", .kind = SHAPE_ITEMS, .shape = &agent_answer_shape},
            {0},
        },
};

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

/* The first mistake stays; what is read after it is 0 or "". */
struct reader {
    const char *wrong; /* the member meant; NULL = none is */
    bool failed;
    char why[ARGUMENTS_WHY_MAX];
};

static void fault(struct reader *r, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(struct reader *r, const char *key, const char *format, ...)
{
    va_list args;
    if (r->failed)
        return;
    va_start(args, format);
    vsnprintf(r->why, sizeof(r->why), format, args);
    va_end(args);
    r->failed = true;
    r->wrong = key;
}

/* A member that is there and not null. */
static const struct json *member(struct reader *r, const struct json *object, const char *key,
                                 bool required)
{
    const struct json *v = json_member(object, key);
    if (v && json_kind(v) != JSON_KIND_NULL)
        return v;
    if (required)
        fault(r, key, "%s is missing.", key);
    return NULL;
}

static struct str read_text(struct reader *r, const struct json *object, const char *key,
                            size_t min, size_t max)
{
    const struct json *v = member(r, object, key, min > 0);
    if (!v)
        return (struct str){"", 0};
    struct str text = json_get_text(v);
    if (json_kind(v) != JSON_KIND_TEXT || text.len < min || text.len > max) {
        fault(r, key, "%s is text of %zu to %zu bytes.", key, min, max);
        return (struct str){"", 0};
    }
    return text;
}

/* The end of a text that may be longer than we keep: cut, and not within a character. An event that
 * was refused for its length would come again for ever. */
static struct str read_end(struct reader *r, const struct json *object, const char *key, size_t max)
{
    struct str text = read_text(r, object, key, 0, SIZE_MAX);
    size_t skip = text.len > max ? text.len - max : 0;
    while (skip > 0 && skip < text.len && ((uint8_t)text.at[skip] & 0xC0) == 0x80)
        skip++;
    return (struct str){text.at + skip, text.len - skip};
}

static int64_t read_int(struct reader *r, const struct json *object, const char *key, int64_t min,
                        int64_t max, bool required)
{
    const struct json *v = member(r, object, key, required);
    if (!v)
        return 0;
    int64_t n = json_get_int(v);
    if (json_kind(v) == JSON_KIND_INT && n >= min && n <= max)
        return n;
    fault(r, key, "%s is a whole number from %" PRId64 " to %" PRId64 ".", key, min, max);
    return 0;
}

/* A decimal number as text. */
static int64_t read_id(struct reader *r, const struct json *object, const char *key)
{
    int64_t id = 0;
    struct str text = read_text(r, object, key, 1, 18);
    for (size_t i = 0; i < text.len && id >= 0; i++)
        id = text.at[i] >= '0' && text.at[i] <= '9' ? id * 10 + (text.at[i] - '0') : -1;
    if (id > 0)
        return id;
    fault(r, key, "%s is a decimal number as text, from 1 on.", key);
    return 0;
}

static float read_percent(struct reader *r, const struct json *object, const char *key)
{
    const struct json *v = member(r, object, key, true);
    bool number = v && (json_kind(v) == JSON_KIND_INT || json_kind(v) == JSON_KIND_REAL);
    double percent = number ? json_get_number(v) : -1;
    if (!(percent >= 0 && percent <= PERCENT_MAX)) {
        fault(r, key, "%s is a number from 0 to 100.", key);
        return 0;
    }
    return (float)(percent > 100 ? 100 : percent);
}

static bool read_bool(struct reader *r, const struct json *object, const char *key)
{
    const struct json *v = member(r, object, key, false);
    if (v && json_kind(v) != JSON_KIND_BOOL)
        fault(r, key, "%s is true or false.", key);
    return v && json_get_bool(v);
}

static size_t read_array(struct reader *r, const struct json *object, const char *key, size_t max,
                         bool required, const struct json **ret)
{
    *ret = member(r, object, key, required);
    if (!*ret)
        return 0;
    if (json_kind(*ret) == JSON_KIND_ARRAY && json_length(*ret) <= max)
        return json_length(*ret);
    fault(r, key, "%s is a list of at most %zu.", key, max);
    return 0;
}

static int read_ports(struct reader *r, const struct json *object, uint16_t ret[HOST_PORTS_MAX])
{
    const struct json *list = NULL;
    size_t n = read_array(r, object, "ports", HOST_PORTS_MAX, false, &list);
    for (size_t i = 0; i < n; i++) {
        const struct json *v = json_item(list, i);
        int64_t port = json_kind(v) == JSON_KIND_INT ? json_get_int(v) : 0;
        if (port < 1 || port > UINT16_MAX)
            fault(r, "ports", "A port is a whole number from 1 to 65535.");
        else
            ret[i] = (uint16_t)port;
    }
    return (int)n;
}

static int read_word(struct reader *r, const struct json *object, const char *key,
                     const char *const *words)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct str text = read_text(r, object, key, 1, 64);
    for (int i = 0; words[i]; i++) {
        if (str_eq(text, str_of(words[i])))
            return i;
    }
    fault(r, key, "%s cannot be %s.", key, arguments_show(shown, text));
    return 0;
}

/* An object in its one form, or "" when it is not there. */
static struct str read_settings(struct reader *r, const struct json *object, struct arena *arena)
{
    const struct json *v = member(r, object, "settings", false);
    struct buf text = {0};
    if (!v)
        return (struct str){"", 0};
    struct json_writer w = {.out = &text};
    json_any(&w, v);
    if (json_kind(v) != JSON_KIND_OBJECT || text.len > SETTINGS_MAX)
        fault(r, "settings", "settings is an object of at most %d bytes.", SETTINGS_MAX);
    struct str copy = arena_str(arena, (struct str){(const char *)text.data, text.len});
    buf_done(&text);
    return copy;
}

/* The body as a JSON object, or NULL with the fault. */
static struct json *read_body(struct reader *r, const struct call *c)
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse(http_body(c->http), why);
    if (!root)
        fault(r, NULL, "The body is no JSON: %s.", why);
    else if (json_kind(root) != JSON_KIND_OBJECT)
        fault(r, NULL, "The body is no JSON object.");
    return root;
}

static void refuse_body(struct call *c, const struct reader *r)
{
    call_refuse(c, ERR_BAD_ARGUMENT, r->wrong, "%s", r->why);
    call_answer(c);
}

/* ── heartbeats ────────────────────────────────────────────────────────────────────────────── */

static void read_host_server(struct reader *r, const struct json *v, struct host_server *ret)
{
    if (json_kind(v) != JSON_KIND_OBJECT) {
        fault(r, "servers", "servers is a list of objects.");
        return;
    }
    *ret = (struct host_server){
        .server = read_id(r, v, "id"),
        .session = read_id(r, v, "session"),
        .pid = (int32_t)read_int(r, v, "pid", 0, INT32_MAX, false),
        .state =
            (enum host_server_state)(HOST_SERVER_STARTING + read_word(r, v, "state", state_words)),
    };
    ret->n_ports = read_ports(r, v, ret->ports);
}

static void read_servers(struct reader *r, const struct json *root, struct arena *arena,
                         struct host_beat *beat)
{
    const struct json *list = NULL;
    size_t n = read_array(r, root, "servers", HOST_SERVERS_MAX, true, &list);
    struct host_server *servers = arena_alloc(arena, (n + 1) * sizeof(*servers));
    for (size_t i = 0; i < n && !r->failed; i++)
        read_host_server(r, json_item(list, i), &servers[i]);
    beat->servers = servers;
    beat->n_servers = n;
}

static void read_deployments(struct reader *r, const struct json *root, struct arena *arena,
                             struct host_beat *beat)
{
    const struct json *list = NULL;
    size_t n = read_array(r, root, "deployments", HOST_DEPLOYMENTS_MAX, false, &list);
    uint8_t(*digests)[OPERATE_DIGEST] = arena_alloc(arena, (n + 1) * sizeof(*digests));
    for (size_t i = 0; i < n; i++) {
        struct str hex = json_get_text(json_item(list, i));
        if (hex.len != 2 * OPERATE_DIGEST ||
            sodium_hex2bin(digests[i], OPERATE_DIGEST, hex.at, hex.len, NULL, NULL, NULL) != 0)
            fault(r, "deployments", "A deployment is a SHA-256 of 64 digits in hex.");
    }
    beat->deployments = (const uint8_t(*)[OPERATE_DIGEST])digests;
    beat->n_deployments = n;
}

static bool is_url(struct str url)
{
    return (url.len > 7 && memcmp(url.at, "http://", 7) == 0) ||
           (url.len > 8 && memcmp(url.at, "https://", 8) == 0);
}

static void read_beat(struct reader *r, struct call *c, const struct json *root,
                      struct host_beat *ret)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    *ret = (struct host_beat){
        .name = read_text(r, root, "name", 1, 64),
        .account = str_of(c->who.account),
        .address = read_text(r, root, "address", 1, 253),
        .url = read_text(r, root, "url", 1, 253),
        .slots = (int32_t)read_int(r, root, "slots", 0, HOST_SERVERS_MAX, false),
        .cpu_percent = read_percent(r, root, "cpu_percent"),
        .memory_percent = read_percent(r, root, "memory_percent"),
        .beat = read_int(r, root, "beat", 1, INT64_MAX, true),
        .leaving = read_bool(r, root, "leaving"),
    };
    if (!r->failed && !is_url(ret->url))
        fault(r, "url", "url begins with http:// or https://.");
    struct str region = read_text(r, root, "region", 1, 15);
    int code = call_find_region(call_core(c), region);
    if (code < 0)
        fault(r, "region", "There is no region %s.", arguments_show(shown, region));
    ret->region = (int8_t)code;
    read_servers(r, root, &c->arguments.arena, ret);
    read_deployments(r, root, &c->arguments.arena, ret);
}

static void refuse_beat(struct call *c, const struct effect *e)
{
    if (e->text.len > 0)
        call_refuse(c, e->err, NULL, "%.*s", (int)e->text.len, e->text.at);
    else
        call_refuse(c, e->err, NULL, "%s.", err_sentence(e->err));
}

static void hear_beat(struct call *c, const struct effect *e)
{
    if (e->err != 0) {
        refuse_beat(c, e);
    } else {
        struct beat_answer answer = {.host = e->object,
                                     .token = agents_token(c->rest->agents, e->object),
                                     .interval_ms = INTERVAL_MS};
        answer.n_lacking = view_lacking(call_core(c), e->object, answer.lacking, FETCH_MAX);
        call_render(c, &host_beat_answer_shape, &answer);
    }
    call_answer(c);
}

void handle_agent_heartbeat(struct call *c)
{
    struct reader r = {0};
    struct event e = {.kind = EVENT_HOST_BEAT};
    struct json *root = read_body(&r, c);
    if (!r.failed)
        read_beat(&r, c, root, &e.host_beat);
    if (r.failed)
        refuse_body(c, &r);
    else
        call_step(c, &e, REST_STORE_MS, hear_beat);
    json_free(root);
}

/* ── events ────────────────────────────────────────────────────────────────────────────────── */

/* One event on its way, and what came of it. Texts are in the call's arena. */
struct item {
    struct call *call;
    int64_t server;
    int64_t seq;
    enum agent_verb verb;
    int err;
    struct str message;
    struct str token; /* JOINED, this and the next */
    struct str scopes;
    struct str account;
    struct str info;
};

/* Its events are stepped when no answer of the login service is to come: first the tokens, because
 * a seat stays reserved when its player's cannot be had. */
struct work {
    struct item *items;
    size_t n;
    size_t asking; /* the login service's answers that are still to come */
    size_t left;   /* core's */
};

static struct str keep(struct call *c, struct str text)
{
    return arena_str(&c->arguments.arena, text);
}

static void refuse_item(struct item *item, int err, const char *message)
{
    item->err = err;
    item->message = keep(item->call, str_of(message));
}

/* ── … the tokens of those who joined ─── */

static void keep_joined(struct item *item, struct play_joined *joined)
{
    struct call *c = item->call;
    item->token = keep(c, (struct str){(const char *)joined->token.data, joined->token.len});
    item->scopes = keep(c, (struct str){(const char *)joined->scopes.data, joined->scopes.len});
}

static void refuse_extension(struct item *item, const char *clause)
{
    char why[PLAY_WHY_MAX];
    snprintf(why, sizeof(why), "The login service did not extend the access token: %s.", clause);
    refuse_item(item, ERR_LOGIN_FAILED, why);
}

static void take_extended(struct item *item, struct str token)
{
    struct play_joined joined = {0};
    char why[PLAY_WHY_MAX];
    int err = play_joined_extended(item->call->rest, token, &joined, why);
    if (err != 0)
        refuse_item(item, err, why);
    else
        keep_joined(item, &joined);
    play_joined_done(&joined);
}

static void go_on(struct call *c);

static void on_extended(void *user, const struct login_answer *answer)
{
    struct item *item = user;
    struct call *c = item->call;
    struct work *work = c->work;
    if (answer->err != 0)
        refuse_extension(item, answer->why);
    else
        take_extended(item, answer->token);
    if (--work->asking == 0)
        go_on(c);
}

static void ask_issuer(struct item *item, const char *account, const struct play_joined *joined,
                       struct str extend_token, struct str extend_scopes)
{
    struct call *c = item->call;
    struct work *work = c->work;
    struct buf token = {0};
    struct login_asker asker = {.waiting = &c->login, .done = on_extended, .user = item};
    struct str own = {(const char *)joined->token.data, joined->token.len};
    switch (
        login_extend(c->rest->login, account, own, extend_token, extend_scopes, &asker, &token)) {
    case LOGIN_KNOWN:
        take_extended(item, (struct str){(const char *)token.data, token.len});
        break;
    case LOGIN_ASKED:
        work->asking++;
        break;
    case LOGIN_BUSY:
        refuse_extension(item, "too much is asked of it at once");
        break;
    }
    buf_done(&token);
}

/* A key that opens no seat is core's to judge: it may be a repeat. */
static void open_token(struct item *item, struct str key, struct str extend_token,
                       struct str extend_scopes)
{
    struct call *c = item->call;
    struct view_room_seat seat;
    struct play_joined joined = {0};
    char why[PLAY_WHY_MAX] = "";
    int64_t id = view_seat_of_key(call_core(c), item->server, key);
    if (id == 0 || !view_room_seat(call_core(c), id, &seat))
        return;
    int err = play_joined(c->rest, seat.sealed, extend_token, extend_scopes, &joined, why);
    if (err != 0)
        refuse_item(item, err, why);
    else if (joined.elsewhere)
        ask_issuer(item, seat.account, &joined, extend_token, extend_scopes);
    else
        keep_joined(item, &joined);
    play_joined_done(&joined);
}

/* A list of words, or a text with commas between them. */
static struct str read_scopes(struct reader *r, const struct json *v, struct call *c)
{
    const struct json *list = json_member(v, "extend_scopes");
    struct buf words = {0};
    if (!list || json_kind(list) != JSON_KIND_ARRAY)
        return read_text(r, v, "extend_scopes", 0, TOKEN_MAX);
    for (size_t i = 0; i < json_length(list); i++) {
        struct str word = json_get_text(json_item(list, i));
        buf_append(&words, ",", i > 0);
        buf_append(&words, word.at, word.len);
    }
    struct str copy = keep(c, (struct str){(const char *)words.data, words.len});
    buf_done(&words);
    return copy;
}

/* A game server that has no master token, where it thinks it has one, must not go on with a token
 * that is not extended. */
static bool is_without_master(const struct json *v, struct str token, struct str scopes)
{
    const struct json *given = json_member(v, "extend_token");
    return scopes.len > 0 && token.len == 0 && given && json_kind(given) == JSON_KIND_TEXT;
}

static void open_item(struct item *item, const struct json *v)
{
    struct reader r = {0};
    const struct json *event = json_member(v, "event");
    if (item->err != 0 || !event || !str_eq(json_get_text(event), STR("joined")))
        return;
    struct str key = read_text(&r, v, "key", 1, KEY_MAX);
    struct str token = read_text(&r, v, "extend_token", 0, TOKEN_MAX);
    struct str scopes = read_scopes(&r, v, item->call);
    if (r.failed)
        refuse_item(item, ERR_BAD_ARGUMENT, r.why);
    else if (is_without_master(v, token, scopes))
        refuse_item(item, ERR_BAD_ACCESS_TOKEN,
                    "The access token cannot be extended: extend_token is empty.");
    else
        open_token(item, key, token, scopes);
}

/* ── … what is said ─── */

static void read_exit(struct reader *r, const struct json *v, struct agent_event *e)
{
    e->exit_code = (int32_t)read_int(r, v, "exit_code", -1, 255, false);
    e->exit_signal = (int32_t)read_int(r, v, "exit_signal", 0, 255, false);
    e->peak_memory = read_int(r, v, "peak_memory", 0, INT64_MAX, false);
    e->run_ms = read_int(r, v, "run_ms", 0, INT64_MAX, false);
    e->dropped_bytes = read_int(r, v, "dropped_bytes", 0, INT64_MAX, false);
    e->tail = read_end(r, v, "tail", TAIL_MAX);
}

/* An agent that does not say whose fault it was says how the server ended, when it ran. */
static enum fault_cause event_read_fault(struct reader *r, const struct json *v,
                                         const struct agent_event *e)
{
    static const enum fault_cause causes[] = {FAULT_OF_GAME, FAULT_OF_HOST, FAULT_OF_CONFIG};
    bool exited = json_member(v, "exit_code") || json_member(v, "exit_signal");
    if (json_member(v, "cause"))
        return causes[read_word(r, v, "cause", cause_words)];
    return e->timed_out || (exited && e->exit_code >= 0) ? FAULT_OF_GAME : FAULT_UNKNOWN;
}

static void read_event(struct reader *r, struct call *c, const struct json *v, struct item *item,
                       struct agent_event *e)
{
    item->verb = e->verb = (enum agent_verb)(AGENT_INITED + read_word(r, v, "event", event_words));
    if (r->failed)
        return;
    switch (e->verb) {
    case AGENT_INITED:
        e->pid = (int32_t)read_int(r, v, "pid", 1, INT32_MAX, true);
        e->n_ports = read_ports(r, v, e->ports);
        e->settings = read_settings(r, v, &c->arguments.arena);
        break;
    case AGENT_FAILED:
        e->timed_out = read_bool(r, v, "timed_out");
        e->ran = json_member(v, "exit_code") || json_member(v, "exit_signal");
        read_exit(r, v, e);
        e->fault = event_read_fault(r, v, e);
        e->text = read_end(r, v, "text", SENTENCE_MAX);
        break;
    case AGENT_EXITED:
        read_exit(r, v, e);
        e->hung = read_bool(r, v, "hung");
        break;
    case AGENT_JOINED:
    case AGENT_LEFT:
        e->key = read_text(r, v, "key", 1, KEY_MAX);
        break;
    case AGENT_UPDATE_SETTINGS:
        e->settings = read_settings(r, v, &c->arguments.arena);
        if (e->settings.len == 0)
            fault(r, "settings", "settings is missing.");
        break;
    case AGENT_CHECK_DEPLOYMENT:
    case AGENT_VERBS:
        break;
    }
}

/* {"multi_id": …} beside what the player brought. */
static struct str info_of(struct call *c, const struct taken *taken)
{
    char own[48], why[SETTINGS_WHY_MAX];
    struct buf merged = {0};
    struct str info = taken->info.len > 0 ? taken->info : STR("{}");
    if (taken->multi == 0)
        return keep(c, info);
    snprintf(own, sizeof(own), "{\"multi_id\":\"%" PRId64 "\"}", taken->multi);
    bool whole = settings_merge(info, str_of(own), &merged, why) == 0;
    struct str copy =
        keep(c, whole ? (struct str){(const char *)merged.data, merged.len} : str_of(own));
    buf_done(&merged);
    return copy;
}

static void write_joined(struct json_writer *w, const struct item *item)
{
    struct str left = item->scopes;
    json_key_text(w, "access_token", item->token);
    json_key_text(w, "account", item->account);
    json_key(w, "info");
    json_raw(w, item->info);
    json_key(w, "scopes");
    json_open_array(w);
    while (left.len > 0) {
        const char *comma = memchr(left.at, ',', left.len);
        size_t len = comma ? (size_t)(comma - left.at) : left.len;
        json_text(w, (struct str){left.at, len});
        size_t taken = comma ? len + 1 : len;
        left = (struct str){left.at + taken, left.len - taken};
    }
    json_close_array(w);
}

/* To a game server a version that was turned off is as gone as one that nobody knows; 410 tells it
 * of a newer deployment. */
static int item_status(const struct item *item)
{
    bool is_off = item->verb == AGENT_CHECK_DEPLOYMENT && item->err == ERR_VERSION_DISABLED;
    return err_status(is_off ? ERR_NO_VERSION : item->err);
}

static void write_item(struct json_writer *w, const struct item *item)
{
    json_open_object(w);
    json_key_id(w, "server", item->server);
    json_key_int(w, "seq", item->seq);
    json_key(w, item->err == 0 ? "result" : "error");
    json_open_object(w);
    if (item->err != 0) {
        json_key_text(w, "code", str_of(err_code(item->err)));
        json_key_text(w, "message", item->message);
        json_key_int(w, "status", item_status(item));
    } else if (item->verb == AGENT_JOINED) {
        write_joined(w, item);
    }
    json_close_object(w);
    json_close_object(w);
}

/* What could not be stored may come again, and then it is taken: of none of them anything is known.
 */
static bool is_unknown(int err)
{
    return err == ERR_INTERNAL || err == ERR_IO;
}

static void answer_events(struct call *c, const struct work *work)
{
    struct json_writer w = call_writer(c);
    json_open_object(&w);
    json_key(&w, "answers");
    json_open_array(&w);
    for (size_t i = 0; i < work->n; i++)
        write_item(&w, &work->items[i]);
    json_close_array(&w);
    json_close_object(&w);
    for (size_t i = 0; i < work->n; i++) {
        if (is_unknown(work->items[i].err))
            call_refuse(c, ERR_INTERNAL, NULL, "It cannot be stored now. Send all of it again.");
    }
    call_answer(c);
}

static void hear_event(struct call *c, const struct effect *e)
{
    struct work *work = c->work;
    struct item *item = &work->items[e->conn - c->first_number];
    if (e->err != 0) {
        item->err = e->err;
        item->message = keep(c, e->text.len > 0 ? e->text : str_of(err_sentence(e->err)));
    } else if (e->taken) {
        item->account = keep(c, e->taken->account);
        item->info = info_of(c, e->taken);
    }
    if (--work->left == 0)
        answer_events(c, work);
}

/* Who and which. One that does not say it is answered in its place all the same: those beside it
 * must not wait for its sender to mend it. */
static void read_item(struct call *c, const struct json *v, struct item *ret)
{
    struct reader r = {0};
    *ret = (struct item){.call = c};
    if (json_kind(v) != JSON_KIND_OBJECT) {
        fault(&r, NULL, "An event is an object.");
    } else {
        ret->server = read_id(&r, v, "server");
        ret->seq = read_int(&r, v, "seq", 1, INT64_MAX, true);
    }
    if (r.failed)
        refuse_item(ret, ERR_BAD_ARGUMENT, r.why);
}

static void read_items(struct reader *r, struct call *c, const struct json *root, struct work *work)
{
    const struct json *list = NULL;
    work->n = read_array(r, root, "events", EVENTS_MAX, true, &list);
    work->items = arena_alloc(&c->arguments.arena, (work->n + 1) * sizeof(struct item));
    for (size_t i = 0; i < work->n; i++)
        read_item(c, json_item(list, i), &work->items[i]);
}

/* One by one: what an event changed the next one sees. */
static void step_item(struct call *c, struct str host, const struct json *v, struct item *item,
                      conn_id number)
{
    struct work *work = c->work;
    struct reader r = {0};
    struct event e = {
        .kind = EVENT_AGENT,
        .conn = number,
        .agent = {.host = host,
                  .account = str_of(c->who.account),
                  .server = item->server,
                  .seq = item->seq},
    };
    if (item->err != 0)
        return;
    read_event(&r, c, v, item, &e.agent);
    if (r.failed) {
        refuse_item(item, ERR_BAD_ARGUMENT, r.why);
        return;
    }
    work->left++;
    call_step(c, &e, REST_STORE_MS, hear_event);
}

/* root was read before and found to be right. */
static void step_items(struct call *c, const struct json *root)
{
    struct work *work = c->work;
    struct str host = json_get_text(json_member(root, "name"));
    const struct json *list = json_member(root, "events");
    conn_id first = call_numbers(c, work->n);
    work->left = 1; /* ours, so that no answer is the last one before all are asked */
    for (size_t i = 0; i < work->n; i++)
        step_item(c, host, json_item(list, i), &work->items[i], first + i);
    if (--work->left == 0)
        answer_events(c, work);
}

/* The body is read again: nobody has to keep what was read while he waited. */
static void go_on(struct call *c)
{
    struct reader r = {0};
    struct json *root = read_body(&r, c);
    step_items(c, root);
    json_free(root);
}

static void begin_items(struct call *c, const struct json *root)
{
    struct work *work = c->work;
    const struct json *list = json_member(root, "events");
    for (size_t i = 0; i < work->n; i++)
        open_item(&work->items[i], json_item(list, i));
    if (work->asking > 0)
        call_await(c, LOGIN_MS + REST_STORE_MS, NULL);
    else
        step_items(c, root);
}

void handle_agent_events(struct call *c)
{
    struct reader r = {0};
    struct work *work = arena_alloc(&c->arguments.arena, sizeof(*work));
    *work = (struct work){0};
    c->work = work;
    struct json *root = read_body(&r, c);
    if (!r.failed) {
        (void)read_text(&r, root, "name", 1, 64);
        read_items(&r, c, root, work);
    }
    metrics_agent_events(c->rest->metrics, work->n);
    if (r.failed)
        refuse_body(c, &r);
    else
        begin_items(c, root);
    json_free(root);
}

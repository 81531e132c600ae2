/* What a game server and we say to each other: JSON-RPC, each side calling the other. Whatever it
 * sends, it gets an answer, and the conversation goes on; calls that need the control plane wait in
 * the outbox, and their answers come back through games_answered. */
#include "agent/game.h"

#include "agent/link.h"
#include "agent/outbox.h"
#include "base/log.h"
#include "wire/rpc.h"
#include "wire/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    END_GRACE_MS = 5 * 1000,
    REFUSED_AFTER_MS = 5 * 1000, /* an error to inited: it has this long to go by itself */
    CODE_BUSY = 503,
    CODE_ENDING = 409,
};

static void send_buf(struct game *g, struct buf *message)
{
    bool sent = !g->link ||
                game_link_send(g->link, (struct str){(const char *)message->data, message->len});
    if (!sent)
        log_line(LOG_WARN, "a game server does not read what it is told; an answer is dropped",
                 "server=%" PRId64, g->server);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static void answer_error(struct game *g, const char *id, int code, const char *why)
{
    struct buf message = {0};
    if (!id[0])
        return; /* a notification */
    rpc_error(&message, id, code, why);
    send_buf(g, &message);
    buf_done(&message);
}

static void answer_result(struct game *g, const char *id, struct str result)
{
    struct buf message = {0};
    if (!id[0])
        return;
    rpc_result(&message, id, result);
    send_buf(g, &message);
    buf_done(&message);
}

static void answer_clear(struct game_answer *a)
{
    free(a->verb);
    free(a->key);
    free(a->id);
    if (a->message.data)
        explicit_bzero(a->message.data, a->message.len); /* there is a token in it */
    buf_done(&a->message);
    *a = (struct game_answer){0};
}

void game_forget_answers(struct game *g)
{
    for (size_t i = 0; i < GAME_ANSWERS_MAX; i++)
        answer_clear(&g->answers[i]);
}

static struct game_answer *find_answer(struct game *g, const char *verb, const char *key,
                                       const char *id)
{
    for (size_t i = 0; i < GAME_ANSWERS_MAX; i++) {
        struct game_answer *a = &g->answers[i];
        bool same = a->verb && strcmp(a->verb, verb) == 0 && strcmp(a->key, key) == 0;
        if (same && (!id || strcmp(a->id, id) == 0))
            return a;
    }
    return NULL;
}

/* Takes the message. Only calls about a key are kept: what they did stays done. */
static void keep_answer(struct game *g, const struct outbox_event *e, struct buf *message)
{
    struct game_answer *a = &g->answers[g->next_answer];
    g->next_answer = (g->next_answer + 1) % GAME_ANSWERS_MAX;
    answer_clear(a);
    *a = (struct game_answer){.verb = xstrdup(e->verb),
                              .key = xstrdup(e->key),
                              .id = xstrdup(e->id),
                              .message = *message};
    *message = (struct buf){0};
}

/* ── calls that the control plane answers ──────────────────────────────────────────────────── */

/* Some count their calls anew, or not at all: without a key only the same words are the same call.
 */
static bool says_the_same(const struct outbox_event *e, const char *key, struct str members)
{
    size_t len = strlen(e->text);
    if (key[0] || members.len < 2)
        return true;
    return len >= members.len &&
           memcmp(e->text + len - (members.len - 1), members.at + 1, members.len - 1) == 0;
}

/* True when it is a repeat of a call that waits, or of one that was answered: then it has been seen
 * to. */
static bool is_repeat(struct game *g, const struct rpc_message *m, const char *key,
                      struct str members)
{
    if (!m->id[0] || strcmp(m->id, "null") == 0)
        return false;
    struct outbox_event *waiting =
        outbox_find_call(g->games->outbox, g->server, m->method, key, m->id);
    if (waiting && says_the_same(waiting, key, members))
        return true;
    struct game_answer *a = key[0] ? find_answer(g, m->method, key, m->id) : NULL;
    if (a)
        send_buf(g, &a->message);
    return a != NULL;
}

static void pass_on(struct game *g, const struct rpc_message *m, const char *key,
                    const struct buf *members)
{
    struct str text = {(const char *)members->data, members->len};
    if (is_repeat(g, m, key, text))
        return;
    if (!outbox_add(g->games->outbox, g->server, m->method, key, m->id, text))
        answer_error(g, m->id, CODE_BUSY, "Too many calls wait for the control plane.");
}

/* The key of a call; false when it has none and was told so. */
static bool take_key(struct game *g, const struct rpc_message *m, char ret[OUTBOX_KEY_MAX])
{
    const struct json *key = json_member(m->params, "key");
    if (key && json_kind(key) == JSON_KIND_TEXT && json_get_text(key).len > 0 &&
        str_copy(ret, OUTBOX_KEY_MAX, json_get_text(key)))
        return true;
    answer_error(g, m->id, RPC_INVALID_PARAMS, "key is needed: a text of 1 to 255 bytes");
    return false;
}

/* Writes settings as a member; false when they cannot be and it was told so. */
static bool put_settings(struct game *g, const struct rpc_message *m, bool needed,
                         struct json_writer *w)
{
    const struct json *settings = json_member(m->params, "settings");
    bool given = settings && json_kind(settings) != JSON_KIND_NULL;
    if (!given && !needed)
        return true;
    if (!given || json_kind(settings) != JSON_KIND_OBJECT) {
        answer_error(g, m->id, RPC_INVALID_PARAMS, "settings must be an object");
        return false;
    }
    json_key(w, "settings");
    size_t before = w->out->len;
    json_any(w, settings);
    if (w->out->len - before <= SETTINGS_MAX)
        return true;
    answer_error(g, m->id, RPC_INVALID_PARAMS, "settings are longer than 48 KiB");
    return false;
}

static void put_ports(const struct game *g, struct json_writer *w)
{
    int n = 0;
    const uint16_t *ports = process_ports(g->process, &n);
    json_key(w, "ports");
    json_open_array(w);
    for (int i = 0; i < n; i++)
        json_int(w, ports[i]);
    json_close_array(w);
}

static void tell_inited(struct game *g, const struct rpc_message *m)
{
    struct buf members = {0};
    struct json_writer w = {.out = &members};
    json_open_object(&w);
    json_key_int(&w, "pid", process_pid(g->process));
    put_ports(g, &w);
    if (put_settings(g, m, false, &w)) {
        json_close_object(&w);
        pass_on(g, m, "", &members);
        g->called_inited = true;
        g->phase = GAME_INITING;
    }
    buf_done(&members);
}

static void on_inited(struct game *g, const struct rpc_message *m)
{
    if (g->refusal)
        answer_error(g, m->id, g->refusal, g->refusal_why);
    else if (g->phase == GAME_STARTING)
        tell_inited(g, m);
    else if (g->phase == GAME_RUNNING)
        answer_result(g, m->id, STR("{\"status\":\"OK\"}"));
    else if (g->phase != GAME_INITING) /* then the first one is still to be answered */
        answer_error(g, m->id, CODE_ENDING, "The server is being ended.");
}

/* A text, or a list of texts. */
static bool is_scopes(const struct json *v)
{
    bool good = json_kind(v) == JSON_KIND_TEXT || json_kind(v) == JSON_KIND_ARRAY;
    for (size_t i = 0; i < json_length(v); i++)
        good = good && json_kind(json_item(v, i)) == JSON_KIND_TEXT;
    return good;
}

static bool put_extension(struct game *g, const struct rpc_message *m, struct json_writer *w)
{
    const struct json *token = json_member(m->params, "extend_token");
    const struct json *scopes = json_member(m->params, "extend_scopes");
    if (token && json_kind(token) != JSON_KIND_NULL) {
        if (json_kind(token) != JSON_KIND_TEXT) {
            answer_error(g, m->id, RPC_INVALID_PARAMS, "extend_token must be a text");
            return false;
        }
        json_key_text(w, "extend_token", json_get_text(token));
    }
    if (scopes && json_kind(scopes) != JSON_KIND_NULL) {
        if (!is_scopes(scopes)) {
            answer_error(g, m->id, RPC_INVALID_PARAMS,
                         "extend_scopes must be a text or a list of texts");
            return false;
        }
        json_key(w, "extend_scopes");
        json_any(w, scopes);
    }
    return true;
}

static void on_joined(struct game *g, const struct rpc_message *m)
{
    char key[OUTBOX_KEY_MAX];
    struct buf members = {0};
    struct json_writer w = {.out = &members};
    if (!take_key(g, m, key))
        return;
    json_open_object(&w);
    json_key_text(&w, "key", str_of(key));
    if (put_extension(g, m, &w)) {
        json_close_object(&w);
        pass_on(g, m, key, &members);
    }
    if (members.data)
        explicit_bzero(members.data, members.len);
    buf_done(&members);
}

static void on_left(struct game *g, const struct rpc_message *m)
{
    char key[OUTBOX_KEY_MAX];
    struct buf members = {0};
    struct json_writer w = {.out = &members};
    if (!take_key(g, m, key))
        return;
    struct game_answer *joined = find_answer(g, "joined", key, NULL);
    if (joined) /* whoever shows this key again is to be asked about again */
        answer_clear(joined);
    json_open_object(&w);
    json_key_text(&w, "key", str_of(key));
    json_close_object(&w);
    pass_on(g, m, key, &members);
    buf_done(&members);
}

static void on_update_settings(struct game *g, const struct rpc_message *m)
{
    struct buf members = {0};
    struct json_writer w = {.out = &members};
    json_open_object(&w);
    if (put_settings(g, m, true, &w)) {
        json_close_object(&w);
        pass_on(g, m, "", &members);
    }
    buf_done(&members);
}

static void on_check_deployment(struct game *g, const struct rpc_message *m)
{
    struct buf none = {0};
    pass_on(g, m, "", &none);
}

static const struct {
    const char *name;
    void (*call)(struct game *g, const struct rpc_message *m);
} methods[] = {
    {"inited", on_inited},
    {"joined", on_joined},
    {"left", on_left},
    {"update_settings", on_update_settings},
    {"check_deployment", on_check_deployment},
};

static void on_call(struct game *g, struct rpc_message *m)
{
    char why[RPC_METHOD_MAX + 40];
    if (m->kind == RPC_NOTIFICATION)
        m->id[0] = '\0';
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(m->method, methods[i].name) == 0) {
            methods[i].call(g, m);
            return;
        }
    }
    snprintf(why, sizeof(why), "there is no method %s", m->method);
    answer_error(g, m->id, RPC_NO_SUCH_METHOD, why);
}

/* ── the control plane has answered ────────────────────────────────────────────────────────── */

static int code_of(const struct json *error)
{
    int64_t status = json_get_int(json_member(error, "status"));
    return status >= 100 && status < 1000 ? (int)status : RPC_INTERNAL;
}

static const char *message_of(const struct json *error)
{
    struct str text = json_get_text(json_member(error, "message"));
    return text.len > 0 ? text.at : "The control plane refuses this.";
}

static void inited_answered(struct game *g, const char *id, const struct json *error)
{
    if (!error) {
        process_inited(g->process);
        if (g->phase == GAME_INITING)
            game_runs(g, process_spec(g->process)->status_period_ms);
        answer_result(g, id, STR("{\"status\":\"OK\"}"));
        return;
    }
    g->refusal = code_of(error);
    snprintf(g->refusal_why, sizeof(g->refusal_why), "%s", message_of(error));
    answer_error(g, id, g->refusal, g->refusal_why);
    if (g->phase != GAME_INITING)
        return;
    g->phase = GAME_GIVEN_UP;
    g->deadline_ms = g->games->pulses.now_ms + REFUSED_AFTER_MS;
}

static void put_answer(struct buf *out, const struct outbox_event *e, const struct json *result,
                       const struct json *error)
{
    struct buf text = {0};
    if (error) {
        rpc_error(out, e->id, code_of(error), message_of(error));
        return;
    }
    json_any(&(struct json_writer){.out = &text}, result);
    rpc_result(out, e->id, (struct str){(const char *)text.data, text.len});
    explicit_bzero(text.data, text.len);
    buf_done(&text);
}

void games_answered(struct games *gs, const struct outbox_event *e, const struct json *result,
                    const struct json *error)
{
    struct game *g = games_find(gs, e->server);
    struct buf message = {0};
    if (!g || !g->process)
        return; /* it is gone, and nobody waits for the answer */
    if (strcmp(e->verb, "inited") == 0) {
        inited_answered(g, e->id, error);
        return;
    }
    if (!e->id[0])
        return;
    secrets_take_json(&g->secrets, result);
    put_answer(&message, e, result, error);
    send_buf(g, &message);
    if (e->key[0])
        keep_answer(g, e, &message);
    buf_done(&message);
}

/* ── is it alive? ──────────────────────────────────────────────────────────────────────────── */

static void hung(struct game *g, const char *what)
{
    char why[GAME_WHY_MAX];
    snprintf(why, sizeof(why), "The server hung: %s.", what);
    g->hung = true;
    game_end(g, END_GRACE_MS, why);
}

static void ask_status(struct game *g)
{
    struct buf message = {0};
    rpc_call(&message, "status", STR(""), ++g->status_id);
    if (g->link) /* a question that cannot be sent is one that is not answered */
        (void)game_link_send_now(g->link, (struct str){(const char *)message.data, message.len});
    buf_done(&message);
}

void game_watch(struct game *g)
{
    enum pulse_verdict verdict = pulse_look(&g->games->pulses, &g->pulse);
    if (verdict == PULSE_HUNG)
        hung(g, "it did not answer status three times in a row");
    else if (verdict == PULSE_ASK)
        ask_status(g);
}

static void on_answer(struct game *g, const struct rpc_message *m)
{
    struct str status = json_get_text(json_member(m->result, "status"));
    int64_t id = strtoll(m->id, NULL, 10);
    if (id <= 0 || id > g->status_id || g->phase != GAME_RUNNING)
        return; /* to nothing that we have asked */
    if (m->kind != RPC_RESULT || strcasecmp(status.at, "ok") != 0) {
        hung(g, "it answered status with something else than ok");
        return;
    }
    pulse_answered(&g->pulse, id == g->status_id);
}

/* ── messages ──────────────────────────────────────────────────────────────────────────────── */

void game_message(void *user, struct str bytes)
{
    struct game *g = user;
    struct rpc_message m;
    pulses_heard(&g->games->pulses);
    rpc_decode(bytes, &m);
    switch (m.kind) {
    case RPC_CALL:
    case RPC_NOTIFICATION:
        on_call(g, &m);
        break;
    case RPC_RESULT:
    case RPC_ERROR:
        on_answer(g, &m);
        break;
    case RPC_MALFORMED:
        answer_error(g, m.id, m.error_code, m.why);
        break;
    }
    rpc_done(&m);
}

void game_kick(struct game *g, struct str key, struct str reason)
{
    struct buf params = {0};
    struct buf message = {0};
    struct json_writer w = {.out = &params};
    if (!g->link)
        return;
    json_open_object(&w);
    json_key_text(&w, "key", key);
    json_key_text(&w, "reason", reason);
    json_close_object(&w);
    rpc_notify(&message, "kick", (struct str){(const char *)params.data, params.len});
    send_buf(g, &message);
    buf_done(&params);
    buf_done(&message);
}

#include "wire/rpc.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

static void malformed(struct rpc_message *m, enum rpc_error code, const char *why)
{
    m->kind = RPC_MALFORMED;
    m->error_code = code;
    (void)snprintf(m->why, sizeof(m->why), "%s", why);
}

/* Text of somebody else's, cut where a character ends. */
static void copy_cut(char *dst, size_t cap, struct str s)
{
    size_t n = 0;
    size_t next = 0;
    while ((next = str_char_len((struct str){s.at + n, s.len - n})) > 0 && n + next < cap)
        n += next;
    memcpy(dst, s.at, n);
    dst[n] = '\0';
}

/* False when an id can be no such thing; then it is not known. */
static bool take_id(struct rpc_message *m, const struct json *id)
{
    switch (json_kind(id)) {
    case JSON_KIND_BOOL:
    case JSON_KIND_ARRAY:
    case JSON_KIND_OBJECT:
        malformed(m, RPC_INVALID_REQUEST, "an id is a number, a text or null");
        return false;
    default:
        break;
    }
    struct buf text = {0};
    json_any(&(struct json_writer){.out = &text}, id);
    bool fits = str_copy(m->id, sizeof(m->id), (struct str){(const char *)text.data, text.len});
    buf_done(&text);
    if (fits)
        return true;
    memcpy(m->id, "null", sizeof("null"));
    malformed(m, RPC_INVALID_REQUEST, "the id is too long");
    return false;
}

static void take_call(struct rpc_message *m, const struct json *method, bool has_id)
{
    const struct json *params = json_member(m->root, "params");
    if (json_kind(method) != JSON_KIND_TEXT) {
        malformed(m, RPC_INVALID_REQUEST, "a method is a text");
    } else if (json_member(m->root, "result") || json_member(m->root, "error")) {
        malformed(m, RPC_INVALID_REQUEST, "a call has no result and no error");
    } else if (!str_copy(m->method, sizeof(m->method), json_get_text(method))) {
        malformed(m, RPC_NO_SUCH_METHOD, "no method has such a long name");
    } else if (params && json_kind(params) != JSON_KIND_NULL &&
               json_kind(params) != JSON_KIND_OBJECT) {
        malformed(m, RPC_INVALID_PARAMS, "params are an object, by name");
    } else {
        m->kind = has_id ? RPC_CALL : RPC_NOTIFICATION;
        m->params = params && json_kind(params) == JSON_KIND_OBJECT ? params : NULL;
    }
}

static void take_error(struct rpc_message *m, const struct json *error)
{
    const struct json *code = json_member(error, "code");
    const struct json *text = json_member(error, "message");
    if (!code || json_kind(code) != JSON_KIND_INT || json_get_int(code) < INT_MIN ||
        json_get_int(code) > INT_MAX || !text || json_kind(text) != JSON_KIND_TEXT) {
        malformed(m, RPC_INVALID_REQUEST, "an error has a code and a message");
        return;
    }
    m->kind = RPC_ERROR;
    m->error_code = (int)json_get_int(code);
    copy_cut(m->why, sizeof(m->why), json_get_text(text));
}

static void take_answer(struct rpc_message *m, bool has_id)
{
    const struct json *error = json_member(m->root, "error");
    m->result = json_member(m->root, "result");
    /* Some answer with both, one of them null. */
    if (error && m->result && json_kind(error) == JSON_KIND_NULL)
        error = NULL;
    else if (error && m->result && json_kind(m->result) == JSON_KIND_NULL)
        m->result = NULL;

    if (!error && !m->result)
        malformed(m, RPC_INVALID_REQUEST, "neither a method, nor a result, nor an error");
    else if (error && m->result)
        malformed(m, RPC_INVALID_REQUEST, "an answer is a result or an error, not both");
    else if (!has_id)
        malformed(m, RPC_INVALID_REQUEST, "an answer has an id");
    else if (error)
        take_error(m, error);
    else
        m->kind = RPC_RESULT;
    if (m->kind != RPC_RESULT)
        m->result = NULL;
}

static void take_object(struct rpc_message *m)
{
    const struct json *version = json_member(m->root, "jsonrpc");
    const struct json *method = json_member(m->root, "method");
    const struct json *id = json_member(m->root, "id");
    if (id && !take_id(m, id))
        return;
    if (!version || !str_eq(json_get_text(version), STR("2.0")))
        malformed(m, RPC_INVALID_REQUEST, "\"jsonrpc\" is not \"2.0\"");
    else if (method)
        take_call(m, method, id);
    else
        take_answer(m, id);
}

void rpc_decode(struct str bytes, struct rpc_message *ret)
{
    *ret = (struct rpc_message){.id = "null"};
    if (bytes.len > RPC_MESSAGE_MAX) {
        malformed(ret, RPC_INVALID_REQUEST, "the message is too long");
        return;
    }
    char fault[JSON_WHY_MAX];
    ret->root = json_parse(bytes, fault);
    if (!ret->root)
        malformed(ret, RPC_PARSE_ERROR, fault);
    else if (json_kind(ret->root) == JSON_KIND_ARRAY)
        malformed(ret, RPC_INVALID_REQUEST, "a batch: one message is one call");
    else if (json_kind(ret->root) != JSON_KIND_OBJECT)
        malformed(ret, RPC_INVALID_REQUEST, "a message is an object");
    else
        take_object(ret);
}

void rpc_done(struct rpc_message *m)
{
    json_free(m->root);
    *m = (struct rpc_message){0};
}

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

static void put_text(struct buf *out, const char *text)
{
    json_text(&(struct json_writer){.out = out}, str_of(text));
}

static void put_call(struct buf *out, const char *method, struct str params)
{
    put(out, "{\"jsonrpc\":\"2.0\",\"method\":");
    put_text(out, method);
    if (params.len > 0) {
        put(out, ",\"params\":");
        buf_append(out, params.at, params.len);
    }
}

void rpc_call(struct buf *out, const char *method, struct str params, int64_t id)
{
    put_call(out, method, params);
    put(out, ",\"id\":");
    json_int(&(struct json_writer){.out = out}, id);
    put(out, "}");
}

void rpc_notify(struct buf *out, const char *method, struct str params)
{
    put_call(out, method, params);
    put(out, "}");
}

void rpc_result(struct buf *out, const char *id, struct str result)
{
    put(out, "{\"jsonrpc\":\"2.0\",\"result\":");
    if (result.len > 0)
        buf_append(out, result.at, result.len);
    else
        put(out, "null");
    put(out, ",\"id\":");
    put(out, id);
    put(out, "}");
}

void rpc_error(struct buf *out, const char *id, int code, const char *why)
{
    put(out, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":");
    json_int(&(struct json_writer){.out = out}, code);
    put(out, ",\"message\":");
    put_text(out, why);
    put(out, "},\"id\":");
    put(out, id);
    put(out, "}");
}

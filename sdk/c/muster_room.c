/* One conversation with the agent: JSON-RPC 2.0 over a ZeroMQ PAIR socket that the agent binds and
 * we connect.
 *
 * A call is written once, by the function the game calls, and kept as text until it is answered:
 *
 *     unsent ──the socket takes it──▶ sent ──answered──▶ freed, its reply called
 *        ▲                             │
 *        └────── repeat_ms without ────┘   with the same id, so that the agent can tell a repeat
 *
 * Both lists are in the order of what is due, so only their heads are looked at. Answers to the
 * agent's own calls are not kept: an agent that does not read will ask again.
 *
 * The descriptor. ZMQ_FD is no socket's readiness but the mailbox of libzmq's thread: it is
 * readable when something happened, and any call of libzmq may take that news. A loop that sends,
 * does not look at ZMQ_EVENTS afterwards and waits for ZMQ_FD waits for ever. Here only
 * muster_room_poll touches the socket, and it ends either with nothing left to do or with the timer
 * set to now. The game is given an epoll descriptor of the two, mailbox and timer, which is an
 * ordinary readable one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "muster_room.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum {
    REPEAT_MS = 10000,
    LINGER_MS = 200,
    RECONNECT_MS = 100, /* doubling up to */
    RECONNECT_MAX_MS = 1000,
    QUEUED = 64,           /* messages libzmq holds either way; the rest waits in our list */
    MESSAGES_A_POLL = 256, /* so that the agent cannot starve the game's loop */
    DEPTH_MAX = 64,        /* of JSON; the player API takes 32, and an answer wraps what it took */
    NAME_MAX_BYTES = 64,   /* of a member we look for */
    ID_MAX = 64,           /* of the JSON text of the agent's ids */
    REPLY_MAX = 512,
};

enum rpc_error {
    RPC_PARSE_ERROR = -32700,
    RPC_INVALID_REQUEST = -32600,
    RPC_NO_SUCH_METHOD = -32601,
    RPC_INVALID_PARAMS = -32602,
};

/* The agent can take no more calls just now, since it cannot reach the control plane. */
enum { AGENT_BUSY = 503 };

enum kind { CALL_READY, CALL_JOINED, CALL_LEFT, CALL_OTHER };

struct call {
    TAILQ_ENTRY(call) link;
    uint64_t id;
    int64_t due_ms; /* sent: when it is said again */
    enum kind kind;
    muster_room_reply reply;
    void *user;
    size_t len;
    char text[];
};
TAILQ_HEAD(calls, call);

struct muster_room {
    struct muster_room_start start; /* its strings are ours */
    struct muster_room_callbacks calls;
    void *user;
    int64_t repeat_ms;

    void *context;
    void *socket;
    int epoll;
    int timer;
    bool awake; /* poll runs, or the timer is set to now: nothing needs to be woken */

    struct calls unsent; /* in the order they are to be sent */
    struct calls sent;   /* in the order they are due again */
    size_t n_calls;
    size_t call_bytes;
    uint64_t last_id;

    bool not_ok;
    bool refused;

    int out_error; /* of the call that is being written: the first that went wrong */
    size_t out_len;
    char out[MUSTER_ROOM_MAX_MESSAGE];
    size_t text_len;
    char text[MUSTER_ROOM_MAX_MESSAGE + 8]; /* texts of the answer that is being told */
    char in[MUSTER_ROOM_MAX_MESSAGE];
};

const char *muster_room_error_text(int error)
{
    switch ((enum muster_room_error)error) {
    case MUSTER_ROOM_OK:
        return "no error";
    case MUSTER_ROOM_E_ARGUMENTS:
        return "the command line is not <binary> <endpoint> <ports> ...: an agent starts this "
               "program";
    case MUSTER_ROOM_E_ENVIRONMENT:
        return "an environment variable of the agent is malformed";
    case MUSTER_ROOM_E_ENDPOINT:
        return "the endpoint cannot be connected to";
    case MUSTER_ROOM_E_SYSTEM:
        return "out of descriptors or threads";
    case MUSTER_ROOM_E_MEMORY:
        return "out of memory";
    case MUSTER_ROOM_E_TEXT:
        return "the text is missing or not UTF-8";
    case MUSTER_ROOM_E_SETTINGS:
        return "the settings are not a JSON object";
    case MUSTER_ROOM_E_SIZE:
        return "the message would be too large";
    case MUSTER_ROOM_E_FULL:
        return "too many calls wait for an answer";
    }
    return "unknown error";
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- JSON: a strict reader that builds nothing. It finds pieces of the text it was given. */

struct piece {
    const char *at; /* NULL = absent */
    size_t len;
};

struct reader {
    const char *at;
    const char *end;
    int depth;
};

static bool is_kind(struct piece p, char first)
{
    return p.at && *p.at == first;
}

static bool is_word(struct piece p, const char *word)
{
    return p.at && p.len == strlen(word) && memcmp(p.at, word, p.len) == 0;
}

/* Length of the well-formed UTF-8 sequence at the front of s, 0 when there is none. */
static size_t utf8_sequence(const char *s, const char *end)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = (unsigned char)*s;
    size_t n = first < 0x80             ? 1
               : (first & 0xE0) == 0xC0 ? 2
               : (first & 0xF0) == 0xE0 ? 3
               : (first & 0xF8) == 0xF0 ? 4
                                        : 0;
    if (n < 2 || n > (size_t)(end - s))
        return n < 2 ? n : 0;
    uint32_t c = first & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char next = (unsigned char)s[i];
        if ((next & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (next & 0x3Fu);
    }
    bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    return c < least[n] || c > 0x10FFFF || surrogate ? 0 : n;
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at s; -1 when they are none. */
static int hex_unit(const char *s, const char *end)
{
    if (end - s < 4)
        return -1;
    int unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(s[i]);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* What follows a backslash at s: its length, 0 when it is malformed, and the character it means. */
static size_t escape(const char *s, const char *end, uint32_t *ret)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (s == end)
        return 0;
    const char *simple = *s ? strchr(names, *s) : NULL;
    if (simple) {
        *ret = (unsigned char)values[simple - names];
        return 1;
    }
    int high = *s == 'u' ? hex_unit(s + 1, end) : -1;
    if (high < 0 || (high >= 0xDC00 && high <= 0xDFFF))
        return 0;
    *ret = (uint32_t)high;
    if (high < 0xD800 || high > 0xDBFF)
        return 5;
    int low = end - s >= 11 && s[5] == '\\' && s[6] == 'u' ? hex_unit(s + 7, end) : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return 0;
    *ret = 0x10000 + (((uint32_t)high - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
    return 11;
}

static bool read_string(struct reader *r, struct piece *ret)
{
    if (!take(r, '"'))
        return false;
    const char *start = r->at - 1;
    while (r->at < r->end && *r->at != '"') {
        uint32_t ignored;
        size_t n =
            *r->at == '\\' ? escape(r->at + 1, r->end, &ignored) : utf8_sequence(r->at, r->end);
        if (n == 0 || (unsigned char)*r->at < 0x20)
            return false;
        r->at += *r->at == '\\' ? n + 1 : n;
    }
    if (r->at == r->end)
        return false;
    r->at++;
    *ret = (struct piece){start, (size_t)(r->at - start)};
    return true;
}

static size_t digits(struct reader *r)
{
    const char *start = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return (size_t)(r->at - start);
}

static bool read_number(struct reader *r)
{
    if (r->at < r->end && *r->at == '-')
        r->at++;
    const char *whole = r->at;
    size_t n = digits(r);
    if (n == 0 || (n > 1 && *whole == '0'))
        return false;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (digits(r) == 0)
            return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        return digits(r) > 0;
    }
    return true;
}

static bool read_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool read_value(struct reader *r, struct piece *ret);
static bool text_equals(struct piece string, const char *text);

/* Reads an object. With a name, *ret is the member of that name where there is one; two of them are
 * malformed, since which one counts would be anybody's guess. */
static bool read_object(struct reader *r, const char *name, struct piece *ret)
{
    if (!take(r, '{'))
        return false;
    if (take(r, '}'))
        return true;
    do {
        struct piece key;
        struct piece value;
        if (!read_string(r, &key) || !take(r, ':') || !read_value(r, &value))
            return false;
        if (!name || !text_equals(key, name))
            continue;
        if (ret->at)
            return false;
        *ret = value;
    } while (take(r, ','));
    return take(r, '}');
}

static bool read_array(struct reader *r)
{
    struct piece ignored;
    if (!take(r, '['))
        return false;
    if (take(r, ']'))
        return true;
    do {
        if (!read_value(r, &ignored))
            return false;
    } while (take(r, ','));
    return take(r, ']');
}

static bool read_kind(struct reader *r)
{
    struct piece ignored = {0};
    switch (*r->at) {
    case '{':
        return read_object(r, NULL, &ignored);
    case '[':
        return read_array(r);
    case '"':
        return read_string(r, &ignored);
    case 't':
        return read_word(r, "true");
    case 'f':
        return read_word(r, "false");
    case 'n':
        return read_word(r, "null");
    default:
        return read_number(r);
    }
}

static bool read_value(struct reader *r, struct piece *ret)
{
    skip_space(r);
    if (r->at == r->end || r->depth == DEPTH_MAX)
        return false;
    const char *start = r->at;
    r->depth++;
    bool well = read_kind(r);
    r->depth--;
    *ret = (struct piece){start, (size_t)(r->at - start)};
    return well;
}

/* One value and nothing else. */
static bool read_whole(const char *text, size_t len, struct piece *ret)
{
    struct reader r = {text, text + len, 0};
    if (!read_value(&r, ret))
        return false;
    skip_space(&r);
    return r.at == r.end;
}

/* The member of a well-formed object. False when there are two; *ret is absent when there is none,
 * or no object. */
static bool member(struct piece object, const char *name, struct piece *ret)
{
    *ret = (struct piece){0};
    if (!is_kind(object, '{'))
        return true;
    struct reader r = {object.at, object.at + object.len, 0};
    return read_object(&r, name, ret);
}

static size_t put_utf8(uint32_t c, char ret[4])
{
    if (c < 0x80) {
        ret[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint32_t lead[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        ret[i] = (char)(0x80 | (c & 0x3F));
    ret[0] = (char)(lead[n] | c);
    return n;
}

/* Writes a well-formed string's text and a NUL. False when it holds a NUL or is too long. */
static bool string_text(struct piece string, char *ret, size_t size, size_t *ret_len)
{
    const char *s = string.at + 1;
    const char *end = string.at + string.len - 1;
    size_t len = 0;
    while (s < end) {
        char bytes[4];
        size_t n = 1;
        bytes[0] = *s;
        if (*s == '\\') {
            uint32_t c = 0;
            s += escape(s + 1, end, &c);
            n = put_utf8(c, bytes);
            if (c == 0)
                return false;
        }
        if (n >= size - len)
            return false;
        memcpy(ret + len, bytes, n);
        len += n;
        s++;
    }
    ret[len] = '\0';
    *ret_len = len;
    return true;
}

static bool text_equals(struct piece string, const char *text)
{
    char name[NAME_MAX_BYTES];
    size_t len;
    return string_text(string, name, sizeof(name), &len) && strcmp(name, text) == 0;
}

static bool is_object(const char *json)
{
    struct piece whole;
    return read_whole(json, strlen(json), &whole) && is_kind(whole, '{');
}

bool muster_room_setting(const char *settings, const char *name, char *ret, size_t size)
{
    *ret = '\0';
    struct piece at;
    if (!read_whole(settings, strlen(settings), &at))
        return false;
    for (;;) {
        size_t n = strcspn(name, ".");
        char part[NAME_MAX_BYTES];
        if (n >= sizeof(part))
            return false;
        memcpy(part, name, n);
        part[n] = '\0';
        if (!member(at, part, &at) || !at.at)
            return false;
        if (name[n] == '\0')
            break;
        name += n + 1;
    }
    size_t len;
    if (is_kind(at, '"') && string_text(at, ret, size, &len))
        return true;
    bool fits = !strchr("\"{[n", *at.at) && at.len < size;
    snprintf(ret, size, "%.*s", fits ? (int)at.len : 0, at.at);
    return fits;
}

/* ---- The descriptor. */

/* Makes the descriptor readable at this time; negative = never. */
static void set_timer(struct muster_room *room, int64_t at_ms)
{
    struct itimerspec t = {0};
    if (at_ms >= 0) {
        t.it_value.tv_sec = (time_t)(at_ms / 1000);
        t.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000 + 1; /* all zero would disarm it */
    }
    int r = timerfd_settime(room->timer, TFD_TIMER_ABSTIME, &t, NULL);
    assert(r == 0);
    (void)r;
}

static void wake(struct muster_room *room)
{
    if (room->awake)
        return;
    room->awake = true;
    set_timer(room, 0);
}

int muster_room_fd(const struct muster_room *room)
{
    return room->epoll;
}

/* ---- Calls of the game. The message is written into out and kept as a struct call. */

static void put(struct muster_room *room, const char *text, size_t n)
{
    if (n > sizeof(room->out) - room->out_len) {
        room->out_error = room->out_error ? room->out_error : MUSTER_ROOM_E_SIZE;
        return;
    }
    memcpy(room->out + room->out_len, text, n);
    room->out_len += n;
}

static void put_text(struct muster_room *room, const char *text)
{
    put(room, text, strlen(text));
}

static void put_quoted(struct muster_room *room, const char *text)
{
    const char *end = text + strlen(text);
    put(room, "\"", 1);
    while (text < end && !room->out_error) {
        size_t n = utf8_sequence(text, end);
        char escaped[8];
        if (n == 0) {
            room->out_error = MUSTER_ROOM_E_TEXT;
        } else if (*text == '"' || *text == '\\' || (unsigned char)*text < 0x20) {
            snprintf(escaped, sizeof(escaped), "\\u%04x", (unsigned)*text);
            put_text(room, escaped);
        } else {
            put(room, text, n);
        }
        text += n;
    }
    put(room, "\"", 1);
}

static void begin_call(struct muster_room *room, const char *method)
{
    char head[128];
    int n = snprintf(head, sizeof(head),
                     "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":{",
                     (unsigned long long)(room->last_id + 1), method);
    room->out_error = 0;
    room->out_len = 0;
    put(room, head, (size_t)n);
}

static void put_name(struct muster_room *room, const char *name)
{
    if (room->out[room->out_len - 1] != '{')
        put(room, ",", 1);
    put_quoted(room, name);
    put(room, ":", 1);
}

static void put_member(struct muster_room *room, const char *name, const char *text)
{
    put_name(room, name);
    if (text && *text)
        put_quoted(room, text);
    else
        room->out_error = MUSTER_ROOM_E_TEXT;
}

static void put_settings(struct muster_room *room, const char *settings)
{
    put_name(room, "settings");
    if (settings && is_object(settings))
        put_text(room, settings);
    else
        room->out_error = MUSTER_ROOM_E_SETTINGS;
}

static int end_call(struct muster_room *room, enum kind kind, muster_room_reply reply, void *user)
{
    put(room, "}}", 2);
    if (room->out_error)
        return room->out_error;
    if (room->n_calls == MUSTER_ROOM_MAX_CALLS ||
        room->out_len > MUSTER_ROOM_MAX_CALL_BYTES - room->call_bytes)
        return MUSTER_ROOM_E_FULL;
    struct call *call = malloc(sizeof(*call) + room->out_len);
    if (!call)
        return MUSTER_ROOM_E_MEMORY;
    *call = (struct call){
        .id = ++room->last_id, .kind = kind, .reply = reply, .user = user, .len = room->out_len};
    memcpy(call->text, room->out, room->out_len);
    TAILQ_INSERT_TAIL(&room->unsent, call, link);
    room->n_calls++;
    room->call_bytes += call->len;
    wake(room);
    return MUSTER_ROOM_OK;
}

int muster_room_ready(struct muster_room *room, const char *settings, muster_room_reply reply,
                      void *user)
{
    begin_call(room, "inited");
    if (settings)
        put_settings(room, settings);
    return end_call(room, CALL_READY, reply, user);
}

int muster_room_joined(struct muster_room *room, const char *key, const char *extend_token,
                       const char *extend_scopes, muster_room_reply reply, void *user)
{
    begin_call(room, "joined");
    put_member(room, "key", key);
    if (extend_token || extend_scopes) {
        put_member(room, "extend_token", extend_token);
        put_member(room, "extend_scopes", extend_scopes);
    }
    return end_call(room, CALL_JOINED, reply, user);
}

int muster_room_left(struct muster_room *room, const char *key, muster_room_reply reply, void *user)
{
    begin_call(room, "left");
    put_member(room, "key", key);
    return end_call(room, CALL_LEFT, reply, user);
}

int muster_room_update_settings(struct muster_room *room, const char *settings,
                                muster_room_reply reply, void *user)
{
    begin_call(room, "update_settings");
    put_settings(room, settings);
    return end_call(room, CALL_OTHER, reply, user);
}

int muster_room_check_deployment(struct muster_room *room, muster_room_reply reply, void *user)
{
    begin_call(room, "check_deployment");
    return end_call(room, CALL_OTHER, reply, user);
}

/* ---- Answers of the agent. */

/* A text of the answer, kept until the reply returns. NULL when it holds a NUL. */
static const char *keep_text(struct muster_room *room, struct piece string)
{
    char *text = room->text + room->text_len;
    size_t len;
    if (!string_text(string, text, sizeof(room->text) - room->text_len, &len))
        return NULL;
    room->text_len += len + 1;
    return text;
}

/* A piece of JSON as it stands. */
static const char *keep_json(struct muster_room *room, struct piece json)
{
    char *text = room->text + room->text_len;
    if (json.len >= sizeof(room->text) - room->text_len)
        return NULL;
    memcpy(text, json.at, json.len);
    text[json.len] = '\0';
    room->text_len += json.len + 1;
    return text;
}

/* ["a","b"] as "a,b". */
static const char *keep_list(struct muster_room *room, struct piece list)
{
    struct reader r = {list.at, list.at + list.len, 0};
    struct piece item;
    char *text = room->text + room->text_len;
    *text = '\0';
    if (!take(&r, '['))
        return NULL;
    if (take(&r, ']')) {
        room->text_len++;
        return text;
    }
    do {
        if (!read_string(&r, &item) || !keep_text(room, item))
            return NULL;
        room->text[room->text_len - 1] = ',';
    } while (take(&r, ','));
    room->text[room->text_len - 1] = '\0';
    return text;
}

/* The player of a yes to joined. An agent may leave out all but the access token. */
static bool player_of(struct muster_room *room, struct piece result, struct muster_room_answer *ret)
{
    struct piece token;
    struct piece account;
    struct piece scopes;
    struct piece info;
    if (!member(result, "access_token", &token) || !member(result, "account", &account) ||
        !member(result, "scopes", &scopes) || !member(result, "info", &info) ||
        !is_kind(token, '"'))
        return false;
    ret->access_token = keep_text(room, token);
    if (account.at)
        ret->account = is_kind(account, '"') ? keep_text(room, account) : keep_json(room, account);
    if (scopes.at)
        ret->scopes = keep_list(room, scopes);
    ret->info = info.at ? keep_json(room, info) : "{}";
    return ret->access_token && ret->account && ret->scopes && ret->info;
}

static bool refusal_of(struct muster_room *room, struct piece error, struct muster_room_answer *ret)
{
    struct piece code;
    struct piece message;
    if (!member(error, "code", &code) || !code.at || !member(error, "message", &message) ||
        !is_kind(message, '"'))
        return false;
    char number[24] = "";
    if (code.len < sizeof(number))
        memcpy(number, code.at, code.len);
    char *end;
    long n = strtol(number, &end, 10);
    if (end == number || *end || n == 0 || n < INT_MIN || n > INT_MAX)
        return false;
    ret->code = (int)n;
    ret->text = keep_text(room, message);
    return ret->text != NULL;
}

static struct call *find_call(struct muster_room *room, struct piece id)
{
    char number[24];
    struct calls *lists[] = {&room->sent, &room->unsent}; /* unsent: about to be repeated */
    for (size_t i = 0; i < 2; i++) {
        struct call *call;
        TAILQ_FOREACH(call, lists[i], link)
        {
            snprintf(number, sizeof(number), "%llu", (unsigned long long)call->id);
            if (!is_word(id, number))
                continue;
            TAILQ_REMOVE(lists[i], call, link);
            return call;
        }
    }
    return NULL;
}

/* It is said again when there is no answer by then. */
static void keep_sent(struct muster_room *room, struct call *call)
{
    call->due_ms = now_ms() + room->repeat_ms;
    TAILQ_INSERT_TAIL(&room->sent, call, link);
}

static void take_answer(struct muster_room *room, struct piece whole, struct piece id)
{
    struct call *call = find_call(room, id);
    if (!call) /* the second answer to a call that was repeated */
        return;
    const struct muster_room_answer yes = {
        .text = "", .account = "", .access_token = "", .scopes = "", .info = ""};
    struct muster_room_answer answer = yes;
    struct piece result;
    struct piece error;
    room->text_len = 0;
    bool well = member(whole, "result", &result) && member(whole, "error", &error);
    bool failed = well && error.at && !is_word(error, "null");
    if (failed)
        well = refusal_of(room, error, &answer);
    else if (well && call->kind == CALL_JOINED)
        well = player_of(room, result, &answer);
    else
        well = well && result.at;
    if (!well) {
        answer = yes;
        answer.code = MUSTER_ROOM_MALFORMED;
        answer.text = "the agent's answer is malformed";
    }
    if (answer.code == AGENT_BUSY && (call->kind == CALL_READY || call->kind == CALL_LEFT)) {
        keep_sent(room, call); /* nobody else would say it again, and a seat would be lost */
        return;
    }
    room->n_calls--;
    room->call_bytes -= call->len;
    if (call->kind == CALL_READY && answer.code)
        room->refused = true;
    if (call->reply)
        call->reply(call->user, &answer);
    free(call);
}

/* ---- Calls of the agent. */

static void send_reply(struct muster_room *room, struct piece id, const char *what,
                       const char *body)
{
    char reply[REPLY_MAX];
    int n = snprintf(reply, sizeof(reply), "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"%s\":%s}",
                     (int)id.len, id.at, what, body);
    assert(n > 0 && (size_t)n < sizeof(reply));
    zmq_send(room->socket, reply, (size_t)n, ZMQ_DONTWAIT);
}

static void send_error(struct muster_room *room, struct piece id, enum rpc_error code,
                       const char *why)
{
    char body[REPLY_MAX / 2];
    snprintf(body, sizeof(body), "{\"code\":%d,\"message\":\"%s\"}", (int)code, why);
    send_reply(room, id, "error", body);
}

/* Tells the game; true when the call was well-formed. */
static bool take_kick(struct muster_room *room, struct piece params)
{
    struct piece key;
    struct piece reason;
    room->text_len = 0;
    if (!member(params, "key", &key) || !member(params, "reason", &reason) || !is_kind(key, '"') ||
        (reason.at && !is_kind(reason, '"')))
        return false;
    const char *key_text = keep_text(room, key);
    const char *reason_text = reason.at ? keep_text(room, reason) : "";
    if (!key_text || !reason_text)
        return false;
    if (room->calls.kick)
        room->calls.kick(room->user, key_text, reason_text);
    return true;
}

static void take_call(struct muster_room *room, struct piece method, struct piece id,
                      struct piece params)
{
    bool well = true;
    const char *result = "{}";
    if (text_equals(method, "status")) {
        result = room->not_ok ? "{\"status\":\"not ok\"}" : "{\"status\":\"ok\"}";
    } else if (text_equals(method, "kick")) {
        well = take_kick(room, params);
    } else {
        if (id.at)
            send_error(room, id, RPC_NO_SUCH_METHOD, "a room answers status and kick");
        return;
    }
    if (!id.at) /* a notification */
        return;
    if (well)
        send_reply(room, id, "result", result);
    else
        send_error(room, id, RPC_INVALID_PARAMS, "kick wants a key and may have a reason");
}

static void take_message(struct muster_room *room, const char *bytes, size_t n)
{
    const struct piece unknown = {"null", 4};
    struct piece whole;
    if (!read_whole(bytes, n, &whole)) {
        send_error(room, unknown, RPC_PARSE_ERROR, "not JSON");
        return;
    }
    struct piece version;
    struct piece method;
    struct piece id;
    struct piece params;
    bool well = is_kind(whole, '{') && member(whole, "jsonrpc", &version) &&
                member(whole, "method", &method) && member(whole, "id", &id) &&
                member(whole, "params", &params);
    if (well && !method.at) {
        take_answer(room, whole, id);
        return;
    }
    bool bad_id = well && id.at && (id.len > ID_MAX || strchr("{[tf", *id.at));
    if (!well || bad_id || !is_word(version, "\"2.0\"") || !is_kind(method, '"'))
        send_error(room, well && id.at && !bad_id ? id : unknown, RPC_INVALID_REQUEST,
                   "not a JSON-RPC 2.0 call");
    else
        take_call(room, method, id, params);
}

/* ---- The socket. */

/* Takes what has arrived, at most so many; returns how many there were. */
static int receive(struct muster_room *room, int most)
{
    int taken = 0;
    while (taken < most) {
        int n = zmq_recv(room->socket, room->in, sizeof(room->in), ZMQ_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        taken++;
        if ((size_t)n <= sizeof(room->in)) /* ZMQ_MAXMSGSIZE sees to it */
            take_message(room, room->in, (size_t)n);
    }
    return taken;
}

/* Sends what is to be sent, or to be sent again, until libzmq takes no more. */
static int send_calls(struct muster_room *room)
{
    int64_t now = now_ms();
    struct call *call;
    while ((call = TAILQ_FIRST(&room->sent)) && call->due_ms <= now) {
        TAILQ_REMOVE(&room->sent, call, link);
        TAILQ_INSERT_TAIL(&room->unsent, call, link);
    }
    int sent = 0;
    while ((call = TAILQ_FIRST(&room->unsent))) {
        if (zmq_send(room->socket, call->text, call->len, ZMQ_DONTWAIT) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        TAILQ_REMOVE(&room->unsent, call, link);
        keep_sent(room, call);
        sent++;
    }
    return sent;
}

static int socket_events(struct muster_room *room)
{
    int events = 0;
    size_t size = sizeof(events);
    zmq_getsockopt(room->socket, ZMQ_EVENTS, &events, &size);
    return events;
}

/* Until there is nothing to do, or enough was done; true when anything was. */
static bool work(struct muster_room *room)
{
    uint64_t expirations;
    ssize_t ignored = read(room->timer, &expirations, sizeof(expirations));
    (void)ignored; /* nothing there is the ordinary case */
    room->awake = true;
    int done = 0;
    bool more;
    do {
        done += receive(room, MESSAGES_A_POLL - done > 0 ? MESSAGES_A_POLL - done : 0);
        done += send_calls(room);
        int events = socket_events(room); /* last: it also takes the mailbox's news */
        more = (events & ZMQ_POLLIN) || ((events & ZMQ_POLLOUT) && !TAILQ_EMPTY(&room->unsent));
    } while (more && done < MESSAGES_A_POLL);
    struct call *next = TAILQ_FIRST(&room->sent);
    room->awake = more;
    set_timer(room, more ? 0 : next ? next->due_ms : -1);
    return done > 0;
}

void muster_room_poll(struct muster_room *room, int timeout_ms)
{
    int64_t until_ms = now_ms() + timeout_ms;
    while (!work(room)) {
        int64_t left_ms = timeout_ms < 0 ? -1 : until_ms - now_ms();
        if (timeout_ms >= 0 && left_ms <= 0)
            return;
        struct pollfd p = {.fd = room->epoll, .events = POLLIN};
        if (poll(&p, 1, (int)left_ms) < 0) /* a signal: the game may want to look at it */
            return;
    }
}

/* ---- Start and end. */

/* "32765,32766" */
static bool read_ports(const char *text, struct muster_room_start *start)
{
    do {
        char *end;
        unsigned long port = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || port == 0 || port > UINT16_MAX ||
            start->n_ports == MUSTER_ROOM_MAX_PORTS)
            return false;
        start->ports[start->n_ports++] = (uint16_t)port;
        text = end;
    } while (*text++ == ',');
    return text[-1] == '\0';
}

static bool read_max_players(struct muster_room_start *start)
{
    const char *text = getenv("game_max_players");
    if (!text || !*text)
        return true;
    char *end;
    long n = strtol(text, &end, 10);
    start->max_players = (int)n;
    return *end == '\0' && n > 0 && n <= INT_MAX;
}

/* A copy of the variable, or of what is assumed without it. */
static int copy_variable(const char *name, const char *without, const char **ret)
{
    const char *text = getenv(name);
    if (!text || !*text)
        text = without;
    if (*without == '{' && !is_object(text))
        return MUSTER_ROOM_E_ENVIRONMENT;
    *ret = strdup(text);
    return *ret ? MUSTER_ROOM_OK : MUSTER_ROOM_E_MEMORY;
}

static int read_start(int argc, char *const argv[], struct muster_room_start *start)
{
    if (argc < 3 || !*argv[1] || !read_ports(argv[2], start))
        return MUSTER_ROOM_E_ARGUMENTS;
    if (!read_max_players(start))
        return MUSTER_ROOM_E_ENVIRONMENT;
    char *endpoint = NULL;
    if (asprintf(&endpoint, "%s%s", strstr(argv[1], "://") ? "" : "ipc://", argv[1]) < 0)
        return MUSTER_ROOM_E_MEMORY;
    start->endpoint = endpoint;
    const struct {
        const char *name;
        const char *without;
        const char **ret;
    } variables[] = {
        {"room_id", "", &start->room_id},
        {"room_settings", "{}", &start->room_settings},
        {"server_settings", "{}", &start->server_settings},
        {"discovery_services", "{}", &start->discovery_services},
        {"login_access_token", "", &start->login_access_token},
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        int r = copy_variable(variables[i].name, variables[i].without, variables[i].ret);
        if (r)
            return r;
    }
    return MUSTER_ROOM_OK;
}

static void set_option(void *socket, int option, int value)
{
    int r = zmq_setsockopt(socket, option, &value, sizeof(value));
    assert(r == 0);
    (void)r;
}

/* ZMQ_IMMEDIATE stays off: with it a lost connection takes the pipe away, and a new one that comes
 * before we looked is refused by the PAIR for ever. */
static int open_socket(struct muster_room *room)
{
    room->context = zmq_ctx_new();
    room->socket = room->context ? zmq_socket(room->context, ZMQ_PAIR) : NULL;
    if (!room->socket)
        return MUSTER_ROOM_E_SYSTEM;
    set_option(room->socket, ZMQ_LINGER, LINGER_MS);
    set_option(room->socket, ZMQ_SNDHWM, QUEUED);
    set_option(room->socket, ZMQ_RCVHWM, QUEUED);
    set_option(room->socket, ZMQ_RECONNECT_IVL, RECONNECT_MS);
    set_option(room->socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS);
    int64_t largest = MUSTER_ROOM_MAX_MESSAGE;
    zmq_setsockopt(room->socket, ZMQ_MAXMSGSIZE, &largest, sizeof(largest));
    if (zmq_connect(room->socket, room->start.endpoint) < 0)
        return MUSTER_ROOM_E_ENDPOINT;
    return MUSTER_ROOM_OK;
}

static int open_descriptor(struct muster_room *room)
{
    int mailbox = -1;
    size_t size = sizeof(mailbox);
    struct epoll_event readable = {.events = EPOLLIN};
    room->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    room->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (room->timer < 0 || room->epoll < 0 ||
        zmq_getsockopt(room->socket, ZMQ_FD, &mailbox, &size) < 0 ||
        epoll_ctl(room->epoll, EPOLL_CTL_ADD, room->timer, &readable) < 0 ||
        epoll_ctl(room->epoll, EPOLL_CTL_ADD, mailbox, &readable) < 0)
        return MUSTER_ROOM_E_SYSTEM;
    return MUSTER_ROOM_OK;
}

int muster_room_new(int argc, char *const argv[], const struct muster_room_options *options,
                    const struct muster_room_callbacks *callbacks, void *user,
                    struct muster_room **ret)
{
    *ret = NULL;
    struct muster_room *room = calloc(1, sizeof(*room));
    if (!room)
        return MUSTER_ROOM_E_MEMORY;
    room->timer = room->epoll = -1;
    room->repeat_ms = options && options->repeat_ms > 0 ? options->repeat_ms : REPEAT_MS;
    if (callbacks)
        room->calls = *callbacks;
    room->user = user;
    TAILQ_INIT(&room->unsent);
    TAILQ_INIT(&room->sent);
    int r = read_start(argc, argv, &room->start);
    if (!r)
        r = open_socket(room);
    if (!r)
        r = open_descriptor(room);
    if (r) {
        muster_room_free(room);
        return r;
    }
    wake(room); /* the mailbox may hold news from before it was watched */
    *ret = room;
    return MUSTER_ROOM_OK;
}

static void free_calls(struct calls *calls)
{
    struct call *call;
    while ((call = TAILQ_FIRST(calls))) {
        TAILQ_REMOVE(calls, call, link);
        free(call);
    }
}

void muster_room_free(struct muster_room *room)
{
    if (!room)
        return;
    if (room->socket)
        zmq_close(room->socket);
    if (room->context)
        zmq_ctx_term(room->context);
    if (room->epoll >= 0)
        close(room->epoll);
    if (room->timer >= 0)
        close(room->timer);
    free_calls(&room->unsent);
    free_calls(&room->sent);
    free((char *)room->start.endpoint);
    free((char *)room->start.room_id);
    free((char *)room->start.room_settings);
    free((char *)room->start.server_settings);
    free((char *)room->start.discovery_services);
    free((char *)room->start.login_access_token);
    free(room);
}

const struct muster_room_start *muster_room_started(const struct muster_room *room)
{
    return &room->start;
}

bool muster_room_refused(const struct muster_room *room)
{
    return room->refused;
}

void muster_room_set_ok(struct muster_room *room, bool ok)
{
    room->not_ok = !ok;
}

size_t muster_room_waiting(const struct muster_room *room)
{
    return room->n_calls;
}

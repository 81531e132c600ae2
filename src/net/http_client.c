#include "net/http_client.h"

#include "base/full.h"
#include "base/list.h"
#include "net/curl.h"
#include "net/loop.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 10 * 1000,
    CONNECT_MS = 5 * 1000,
    PER_HOST = 4,
    KEPT_MAX = 256, /* connections without a request, to all hosts */
    STATUS_OK = 200,
    TOKEN_HEADER_MAX = 16 * 1024,
    HEADER_NAME_MAX = 64,
};

struct http_client {
    struct loop *loop;
    CURLM *multi; /* NULL until the first request, and again once it is ended */
    uv_timer_t due;
    int handles; /* of the loop's, that must be closed before the client is freed */
    bool ended;
    struct list calls;
    char *token;
    char *ca_file;
    char *certificate;
    char *key;
    int64_t timeout_ms;
    long per_host;
};

/* A socket of libcurl's that it wants watched. */
struct watched {
    struct http_client *client;
    uv_poll_t ready;
    curl_socket_t fd;
};

struct http_call {
    struct http_client *client;
    struct link link;
    CURL *easy;
    struct curl_slist *headers;
    http_done *done;
    void *user;
    char error[CURL_ERROR_SIZE];

    struct buf body;
    http_piece *each; /* who is given a good answer piece by piece; NULL = nobody */
    int fd;           /* where a good answer goes; -1 = into body */
    int64_t max;      /* bytes of what goes there */
    int64_t body_max; /* … and of any other answer */
    int64_t got;
    const char *fault; /* why we refused the rest of it; NULL = we did not */

    struct buf once; /* what is sent, when it may be sent only once … */
    size_t sent;     /* … so much of it was */
};

/* ── the loop ──────────────────────────────────────────────────────────────────────────────── */

static void tell_finished(struct http_client *c);

static void client_closed_handle(struct http_client *c)
{
    if (--c->handles > 0 || !c->ended)
        return;
    free(c->token);
    free(c->ca_file);
    free(c->certificate);
    free(c->key);
    free(c);
}

static void act(struct http_client *c, curl_socket_t fd, int events)
{
    int running = 0;
    if (!c->multi)
        return;
    curl.multi_socket_action(c->multi, fd, events, &running);
    tell_finished(c);
}

static void on_due(uv_timer_t *handle)
{
    act(handle->data, CURL_SOCKET_TIMEOUT, 0);
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    struct watched *w = handle->data;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    act(w->client, w->fd, flags);
}

static void on_watched_closed(uv_handle_t *handle)
{
    struct watched *w = handle->data;
    struct http_client *c = w->client;
    free(w);
    client_closed_handle(c);
}

static void on_due_closed(uv_handle_t *handle)
{
    client_closed_handle(handle->data);
}

static struct watched *watch(struct http_client *c, curl_socket_t fd)
{
    struct watched *w = xcalloc(1, sizeof(*w));
    w->client = c;
    w->fd = fd;
    if (uv_poll_init_socket(&c->loop->uv, &w->ready, fd) != 0) {
        free(w);
        return NULL;
    }
    w->ready.data = w;
    c->handles++;
    curl.multi_assign(c->multi, fd, w);
    return w;
}

/* libcurl says what it waits for. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket)
{
    (void)easy;
    struct http_client *c = user;
    struct watched *w = of_socket;
    if (what == CURL_POLL_REMOVE) {
        if (w)
            uv_close((uv_handle_t *)&w->ready, on_watched_closed);
        return 0;
    }
    w = w ? w : watch(c, fd);
    if (!w)
        return -1;
    int events = what & CURL_POLL_IN ? UV_READABLE : 0;
    events |= what & CURL_POLL_OUT ? UV_WRITABLE : 0;
    uv_poll_start(&w->ready, events, on_ready);
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *user)
{
    (void)multi;
    struct http_client *c = user;
    if (timeout_ms < 0) {
        uv_timer_stop(&c->due);
        return 0;
    }
    uv_update_time(&c->loop->uv); /* a long turn would make it fire early, and again */
    uv_timer_start(&c->due, on_due, (uint64_t)timeout_ms, 0);
    return 0;
}

/* ── the client ────────────────────────────────────────────────────────────────────────────── */

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

struct http_client *http_client_new(struct loop *loop, const struct http_client_config *config)
{
    struct http_client *c = xcalloc(1, sizeof(*c));
    c->loop = loop;
    c->token = copy(config->token);
    c->ca_file = copy(config->ca_file);
    c->certificate = copy(config->certificate);
    c->key = copy(config->key);
    c->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : TIMEOUT_MS;
    c->per_host = config->per_host > 0 ? config->per_host : PER_HOST;
    list_init(&c->calls);
    uv_timer_init(&loop->uv, &c->due);
    c->due.data = c;
    c->handles = 1;
    return c;
}

/* libcurl is loaded by whoever asks first: many a Muster has nobody to ask. */
static bool prepare(struct http_client *c)
{
    if (c->multi)
        return true;
    if (c->ended || curl_load())
        return false;
    c->multi = curl.multi_init();
    if (!c->multi)
        abort(); /* out of memory, as in xcalloc */
    curl.multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl.multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl.multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl.multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    curl.multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, c->per_host);
    /* Else it keeps four for each request under way, and closes the rest when there are few. */
    curl.multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_MAX);
    return true;
}

void http_client_set_token(struct http_client *c, const char *token)
{
    char *next = copy(token);
    free(c->token);
    c->token = next;
}

void http_client_go(struct http_client *c)
{
    if (c->multi && uv_is_active((uv_handle_t *)&c->due) && uv_timer_get_due_in(&c->due) == 0)
        act(c, CURL_SOCKET_TIMEOUT, 0);
}

/* It is in no multi any more. */
static void call_free(struct http_call *call)
{
    curl.easy_cleanup(call->easy);
    curl.slist_free_all(call->headers);
    buf_done(&call->body);
    buf_done(&call->once);
    free(call);
}

void http_client_free(struct http_client *c)
{
    if (!c || c->ended)
        return;
    c->ended = true;
    struct link *n;
    while ((n = list_first(&c->calls)))
        http_call_drop(container_of(n, struct http_call, link));
    CURLM *multi = c->multi;
    if (multi)
        curl.multi_cleanup(multi); /* closes its sockets, so on_socket is called */
    c->multi = NULL;
    uv_close((uv_handle_t *)&c->due, on_due_closed);
}

/* ── a request ─────────────────────────────────────────────────────────────────────────────── */

static size_t refuse_rest(struct http_call *call, const char *fault)
{
    call->fault = fault;
    return 0;
}

static long status_of(const struct http_call *call)
{
    long status = 0;
    curl.easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* Only a good answer goes into the file; a refusal is read like any other. */
static size_t on_data(char *at, size_t size, size_t n, void *user)
{
    struct http_call *call = user;
    size_t len = size * n;
    if (call->each && status_of(call) == STATUS_OK)
        return call->each(call->user, (struct str){at, len})
                   ? len
                   : refuse_rest(call, "the rest was not wanted");
    bool into_file = call->fd >= 0 && status_of(call) == STATUS_OK;
    int64_t max = into_file ? call->max : call->body_max;
    call->got += (int64_t)len;
    if (call->got > max)
        return refuse_rest(call, "the answer is too long");
    if (!into_file) {
        buf_append(&call->body, at, len);
        return len;
    }
    for (size_t done = 0; done < len;) {
        ssize_t written = write(call->fd, at + done, len - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return refuse_rest(call, written < 0 ? full_reason(errno) : "the file takes no more");
        done += (size_t)written;
    }
    return len;
}

static void add_header(struct http_call *call, const char *name, const char *value)
{
    char line[TOKEN_HEADER_MAX];
    int n = snprintf(line, sizeof(line), "%s%s", name, value);
    if (n > 0 && (size_t)n < sizeof(line))
        call->headers = curl.slist_append(call->headers, line);
    explicit_bzero(line, sizeof(line));
}

static void set_method(struct http_call *call, enum http_method method, struct str body)
{
    CURL *easy = call->easy;
    if (method == HTTP_GET) {
        curl.easy_setopt(easy, CURLOPT_HTTPGET, 1L);
        return;
    }
    curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
    curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body.len > 0 ? body.at : "");
    static const char *const names[] = {
        [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE", [HTTP_PATCH] = "PATCH"};
    if (names[method])
        curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, names[method]);
}

static size_t on_send(char *dst, size_t size, size_t n, void *user)
{
    struct http_call *call = user;
    size_t left = call->once.len - call->sent;
    size_t len = left < size * n ? left : size * n;
    if (len > 0)
        memcpy(dst, call->once.data + call->sent, len);
    call->sent += len;
    return len;
}

/* libcurl wants to send it again. */
static int on_rewind(void *user, curl_off_t offset, int origin)
{
    const struct http_call *call = user;
    bool unsent = call->sent == 0 && offset == 0 && origin == SEEK_SET;
    return unsent ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void send_once(struct http_call *call, struct str body)
{
    CURL *easy = call->easy;
    buf_append(&call->once, body.at, body.len);
    curl.easy_setopt(easy, CURLOPT_POST, 1L);
    curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.len);
    curl.easy_setopt(easy, CURLOPT_READFUNCTION, on_send);
    curl.easy_setopt(easy, CURLOPT_READDATA, call);
    curl.easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
    curl.easy_setopt(easy, CURLOPT_SEEKDATA, call);
}

static void set_security(struct http_call *call, const char *token)
{
    const struct http_client *c = call->client;
    CURL *easy = call->easy;
    if (c->ca_file)
        curl.easy_setopt(easy, CURLOPT_CAINFO, c->ca_file);
    if (c->certificate && c->key) {
        curl.easy_setopt(easy, CURLOPT_SSLCERT, c->certificate);
        curl.easy_setopt(easy, CURLOPT_SSLKEY, c->key);
    }
    if (token || c->token)
        add_header(call, "Authorization: Bearer ", token ? token : c->token);
}

/* token NULL = the client's. */
static struct http_call *call_new(struct http_client *c, const char *url, const char *token,
                                  int64_t timeout_ms, http_done *done, void *user)
{
    if (!prepare(c))
        return NULL;
    struct http_call *call = xcalloc(1, sizeof(*call));
    *call = (struct http_call){.client = c, .done = done, .user = user, .fd = -1};
    call->body_max = HTTP_CLIENT_ANSWER_MAX;
    CURL *easy = call->easy = curl.easy_init();
    if (!easy)
        abort(); /* out of memory, as in xcalloc */
    curl.easy_setopt(easy, CURLOPT_URL, url);
    curl.easy_setopt(easy, CURLOPT_PRIVATE, call);
    curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(easy, CURLOPT_PROXY, ""); /* whatever the environment names: these are ours */
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
    curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(timeout_ms > 0 && timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS));
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, call);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, "muster/" MUSTER_VERSION);
    set_security(call, token);
    return call;
}

static struct http_call *call_begin(struct http_call *call)
{
    struct http_client *c = call->client;
    curl.easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    list_append(&c->calls, &call->link);
    if (curl.multi_add_handle(c->multi, call->easy) == CURLM_OK)
        return call;
    http_call_drop(call);
    return NULL;
}

struct http_call *http_client_send(struct http_client *c, const struct http_client_request *request,
                                   http_done *done, void *user)
{
    int64_t timeout_ms = request->timeout_ms > 0 ? request->timeout_ms : c->timeout_ms;
    const char *type = request->content_type ? request->content_type : "application/json";
    struct http_call *call = call_new(c, request->url, request->token, timeout_ms, done, user);
    if (!call)
        return NULL;
    if (request->answer_max > 0)
        call->body_max = request->answer_max;
    if (request->once)
        send_once(call, request->body);
    else
        set_method(call, request->method, request->body);
    if (request->method != HTTP_GET)
        add_header(call, "Content-Type: ", type);
    add_header(call, "Expect:", ""); /* it would wait a second for a leave that nobody gives */
    for (const struct http_field *f = request->head; f && f->name; f++) {
        char name[HEADER_NAME_MAX];
        snprintf(name, sizeof(name), "%s: ", f->name);
        add_header(call, name, f->value);
    }
    return call_begin(call);
}

struct http_call *http_client_ask(struct http_client *c, enum http_method method, const char *url,
                                  struct str body, const char *content_type, http_done *done,
                                  void *user)
{
    return http_client_send(
        c,
        &(struct http_client_request){
            .method = method, .url = url, .body = body, .content_type = content_type},
        done, user);
}

struct http_call *http_client_download(struct http_client *c, const char *url, int fd, int64_t max,
                                       int64_t timeout_ms, http_done *done, void *user)
{
    struct http_call *call = call_new(c, url, NULL, timeout_ms, done, user);
    if (!call)
        return NULL;
    call->fd = fd;
    call->max = max;
    return call_begin(call);
}

struct http_call *http_client_follow(struct http_client *c, const char *url, http_piece *each,
                                     http_done *done, void *user)
{
    struct http_call *call = call_new(c, url, NULL, 0, done, user);
    if (!call)
        return NULL;
    call->each = each;
    curl.easy_setopt(call->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    return call_begin(call);
}

int http_call_status(const struct http_call *call)
{
    return (int)status_of(call);
}

void http_call_drop(struct http_call *call)
{
    list_remove(&call->link);
    curl.multi_remove_handle(call->client->multi, call->easy);
    call_free(call);
}

/* ── its end ───────────────────────────────────────────────────────────────────────────────── */

/* A clause: no capital at its beginning, no full stop at its end. */
static const char *say(char ret[HTTP_CLIENT_WHY_MAX], const char *text)
{
    snprintf(ret, HTTP_CLIENT_WHY_MAX, "%s", text);
    size_t n = strlen(ret);
    while (n > 0 && (ret[n - 1] == '.' || isspace((unsigned char)ret[n - 1])))
        ret[--n] = '\0';
    bool word = n > 1 && islower((unsigned char)ret[1]); /* else it is a name: "SSL …" */
    if (word)
        ret[0] = (char)tolower((unsigned char)ret[0]);
    return ret;
}

static const char *reason(const struct http_call *call, CURLcode code,
                          char ret[HTTP_CLIENT_WHY_MAX])
{
    long number = 0;
    curl.easy_getinfo(call->easy, CURLINFO_OS_ERRNO, &number);
    if (call->fault)
        return say(ret, call->fault);
    if (code == CURLE_COULDNT_CONNECT && number)
        return say(ret, strerror((int)number));
    if (code == CURLE_OPERATION_TIMEDOUT)
        return say(ret, "no answer in time");
    return say(ret, call->error[0] ? call->error : curl.easy_strerror(code));
}

static void finish(struct http_call *call, CURLcode code)
{
    char why[HTTP_CLIENT_WHY_MAX] = "";
    char *location = NULL;
    struct http_reply reply = {.why = why, .location = ""};
    list_remove(&call->link);
    curl.multi_remove_handle(call->client->multi, call->easy);
    if (code == CURLE_OK) {
        reply.status = (int)status_of(call);
        reply.body = (struct str){(const char *)call->body.data, call->body.len};
        curl.easy_getinfo(call->easy, CURLINFO_REDIRECT_URL, &location);
        reply.location = location ? location : "";
    } else {
        reason(call, code, why);
    }
    call->done(call->user, &reply); /* may end the client */
    call_free(call);
}

/* Whoever is told may begin and drop requests, and end the client. */
static void tell_finished(struct http_client *c)
{
    CURLMsg *message;
    int left = 0;
    while (c->multi && (message = curl.multi_info_read(c->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        struct http_call *call = NULL;
        curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        finish(call, message->data.result);
    }
}

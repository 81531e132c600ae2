/* Requests of the HTTP server: from the first line to the last byte of the answer. */
#include "base/err.h"
#include "base/json.h"
#include "net/http_parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
    DRAIN_MAX = 1024 * 1024,  /* of a body that is too large is read, so that the answer arrives */
    ANSWER_BYTES_PER_MS = 32, /* a client must read that fast, beyond limits.idle_ms */
    STREAM_BLOCK = 4096,
    POISED_MAX = 256, /* requests; more are suspended at once */
    POISED_TICKS = 1, /* then it is suspended */

    /* What a head takes of HTTP_CONN_MEMORY beside its text, and what it must leave. */
    FIELD_MEMORY = 64, /* libmicrohttpd's record of a field, of a cookie, and of its copy's end */
    ANSWER_MEMORY = 1024, /* our longest heads have 600 bytes, those of the console's files */
};

#define HEAD_TOO_LARGE "431 Request Header Fields Too Large"

/* ── its beginning ─────────────────────────────────────────────────────────────────────────── */

static struct http_conn *conn_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* libmicrohttpd looks for arguments behind the "?" when this call is over, and makes a record of
 * each: a few hundred would use up its memory. They are uri_parse's, and it finds none. */
static void hide_arguments(const char *target)
{
    char *mark = strchr(target, '?');
    if (mark)
        mark[1] = '\0';
}

void *request_began(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct http_request *r = xcalloc(1, sizeof(*r));
    r->server = cls;
    r->conn = conn_of(mhd);
    r->conn->request = r;
    tls_lease_heard(r->conn->lease);
    r->mhd = mhd;
    r->unsound = !uri_parse(target, &r->uri);
    hide_arguments(target);
    return r;
}

struct head {
    int lengths;
    int encodings;
    bool unsound;
    size_t memory; /* of libmicrohttpd's */
};

static enum MHD_Result look_at_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    struct head *h = cls;
    h->memory += FIELD_MEMORY;
    if (kind == MHD_FOOTER_KIND)
        h->memory += strlen(name) + (value ? strlen(value) : 0);
    if (kind != MHD_HEADER_KIND)
        return MHD_YES;
    h->lengths += strcasecmp(name, "Content-Length") == 0;
    if (strcasecmp(name, "Transfer-Encoding") == 0) {
        h->encodings++;
        h->unsound |= !value || strcasecmp(value, "chunked") != 0;
    }
    if (strcasecmp(name, "Cookie") == 0)
        h->memory += value ? strlen(value) : 0; /* a copy */
    h->unsound |= name[strcspn(name, " \t")] != '\0';
    return MHD_YES;
}

/* Where a body ends must be beyond doubt: a proxy in front of us that reads a head differently than
 * libmicrohttpd would take what one client sent for the next client's request. */
static bool is_framed_once(const struct head *h)
{
    return !h->unsound && h->lengths + h->encodings <= 1;
}

static struct head head_measure(const struct http_request *r)
{
    struct head h = {
        .memory =
            MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size};
    (void)MHD_get_connection_values(r->mhd, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_FOOTER_KIND,
                                    look_at_field, &h);
    return h;
}

/* Whether there is memory for the head of an answer. */
static bool leaves_room(const struct head *h)
{
    return h->memory <= HTTP_CONN_MEMORY - ANSWER_MEMORY;
}

/* 0, or the refusal of the head. */
static int judge_head(const struct http_request *r)
{
    struct head h = head_measure(r);
    if (!leaves_room(&h))
        return ERR_TOO_LARGE;
    return r->unsound || !is_framed_once(&h) ? ERR_INVALID_REQUEST : 0;
}

/* What came behind a body in chunks takes the same memory. */
static bool trailers_leave_room(const struct http_request *r)
{
    if (MHD_get_connection_values(r->mhd, MHD_FOOTER_KIND, NULL, NULL) == 0)
        return true;
    struct head h = head_measure(r);
    return leaves_room(&h);
}

static enum http_method method_of(const char *name)
{
    static const struct {
        const char *name;
        enum http_method method;
    } methods[] = {{"GET", HTTP_GET},
                   {"HEAD", HTTP_GET},
                   {"POST", HTTP_POST},
                   {"PUT", HTTP_PUT},
                   {"DELETE", HTTP_DELETE}};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(name, methods[i].name) == 0)
            return methods[i].method;
    }
    return HTTP_OTHER;
}

/* A client that says how much too much it would send need not send it: this is the one answer given
 * in the first call, after which libmicrohttpd ends the connection. */
static bool is_hopeless(const struct http_request *r)
{
    const char *length = http_header(r, "Content-Length");
    return length && strtoull(length, NULL, 10) > r->body_max + DRAIN_MAX;
}

/* False when the client sends on and on. */
static bool take_body(struct http_request *r, const char *data, size_t n)
{
    r->body_seen += n;
    if (r->body_seen <= r->body_max) {
        buf_append(&r->body, data, n);
        return true;
    }
    r->too_large = true;
    buf_done(&r->body);
    return r->body_seen <= r->body_max + DRAIN_MAX;
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static enum MHD_Result queue_response(struct http_request *r)
{
    enum MHD_Result result = MHD_queue_response(r->mhd, r->status, r->response);
    MHD_destroy_response(r->response);
    r->response = NULL;
    return result;
}

static void suspend(struct http_request *r)
{
    r->suspended = true;
    MHD_suspend_connection(r->mhd);
}

static void set_poised(struct http_request *r, bool poised)
{
    if (poised != r->poised)
        r->server->n_poised += poised ? 1 : (size_t)-1;
    r->poised = poised;
}

/* To be suspended and resumed takes two system calls, and libmicrohttpd then reads in vain. Most
 * answers come within a moment, when the next batch is durable. So a request first stays where it
 * is: libmicrohttpd asks for its answer in each run, which costs little while such requests are few
 * and young. Under TLS it would take them for handshakes that stall, see http.c. */
static void wait_for_answer(struct http_request *r)
{
    struct http_server *s = r->server;
    bool young = r->poised && s->ticks - r->poised_tick < POISED_TICKS;
    if (young)
        return;
    /* With its body unread it was refused by its head, and would be asked for the body. */
    bool can = !r->poised && !r->too_large && !s->tls;
    if (can && s->n_poised < POISED_MAX) {
        r->poised_tick = s->ticks;
        set_poised(r, true);
        return;
    }
    set_poised(r, false);
    suspend(r);
}

void request_resume(struct http_request *r)
{
    if (r->poised) {
        set_poised(r, false);
        server_run_again(r->server);
        return;
    }
    if (!r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(r->mhd);
    server_run_again(r->server);
}

static void hold(struct http_request *r, size_t bytes)
{
    int64_t more = (int64_t)bytes - (int64_t)r->held;
    r->server->figures.answer_bytes += more;
    r->conn->origin->answer_bytes += more;
    r->held = bytes;
}

void http_hold(struct http_request *r, size_t bytes)
{
    if (r->phase == HTTP_ASKED)
        hold(r, bytes);
}

int64_t http_held_by_peer(const struct http_request *r)
{
    return r->conn->origin->answer_bytes;
}

static bool has_field(const struct http_field *fields, const char *name)
{
    for (; fields && fields->name; fields++) {
        if (strcasecmp(fields->name, name) == 0)
            return true;
    }
    return false;
}

/* The one place where the head of an answer is made. A field of the caller's replaces a usual one.
 */
static void respond(struct http_request *r, int status, struct MHD_Response *response,
                    const char *content_type, const struct http_field *fields)
{
    if (!response)
        abort(); /* no memory */
    const struct http_field usual[] = {
        {"Content-Type", content_type},
        {"X-Content-Type-Options", "nosniff"},
        {"Cache-Control", "no-store"},
    };
    for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
        if (usual[i].value && !has_field(fields, usual[i].name))
            (void)MHD_add_response_header(response, usual[i].name, usual[i].value);
    }
    for (; fields && fields->name; fields++)
        (void)MHD_add_response_header(response, fields->name, fields->value);
    r->status = (unsigned)status;
    r->response = response;
    request_resume(r);
}

void http_answer(struct http_request *r, int status, const char *content_type, struct buf *body,
                 const struct http_field *fields)
{
    if (r->phase != HTTP_ASKED && r->phase != HTTP_UPLOAD) {
        buf_done(body); /* we have answered already: it took too long */
        return;
    }
    struct buf b = *body;
    *body = (struct buf){0};
    r->phase = HTTP_ANSWERED;
    hold(r, b.len);
    conn_set_deadline(r->conn, r->server->limits.idle_ms + (int64_t)b.len / ANSWER_BYTES_PER_MS);
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(b.len, b.data, free);
    respond(r, status, response, content_type, fields);
}

void http_answer_shared(struct http_request *r, int status, const char *content_type,
                        struct str body, const struct http_field *fields)
{
    if (r->phase != HTTP_ASKED)
        return;
    r->phase = HTTP_ANSWERED;
    hold(r, 0);
    conn_set_deadline(r->conn, r->server->limits.idle_ms + (int64_t)body.len / ANSWER_BYTES_PER_MS);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.len, (void *)body.at, MHD_RESPMEM_PERSISTENT);
    respond(r, status, response, content_type, fields);
}

static struct buf refusal_body(int err)
{
    struct buf body = {0};
    struct json_writer w = {.out = &body};
    json_open_object(&w);
    json_key(&w, "error");
    json_open_object(&w);
    json_key_text(&w, "code", str_of(err_code(err)));
    json_key_text(&w, "message", str_of(err_sentence(err)));
    json_close_object(&w);
    json_close_object(&w);
    return body;
}

static void refuse(struct http_request *r, int err, const struct http_field *fields)
{
    struct buf body = refusal_body(err);
    http_answer(r, err_status(err), "application/json", &body, fields);
}

void request_refuse(struct http_request *r, int err)
{
    refuse(r, err, NULL);
}

/* ── its way ───────────────────────────────────────────────────────────────────────────────── */

static void hand_over(struct http_request *r)
{
    struct http_server *s = r->server;
    r->phase = HTTP_ASKED;
    conn_set_deadline(r->conn, s->limits.suspend_ms);
    r->handed_over = true;
    s->figures.requests++;
    s->ops.request(s->ops.user, r);
}

/* A run of libmicrohttpd's goes over all connections that have something to say, however many.
 * Whoever comes when it has taken long enough waits in line, and behind those who do already; so a
 * crowd takes many short runs, between which the loop has time for others. */
static bool must_wait(const struct http_server *s)
{
    return server_is_late(s) || !list_empty(&s->in_line);
}

/* Not through libmicrohttpd, which would go over everybody else who waits, for each few. */
void request_call_next(struct http_server *s)
{
    struct link *n = NULL;
    while (!server_is_late(s) && (n = list_first(&s->in_line))) {
        struct http_request *r = container_of(n, struct http_request, in_line);
        list_remove(n);
        s->progress = true;
        hand_over(r);
    }
}

/* ── uploads ───────────────────────────────────────────────────────────────────────────────── */

void http_receive(struct http_request *r, http_sink *sink, int64_t answer_ms)
{
    if (r->phase != HTTP_ASKED || r->sink)
        return;
    r->phase = HTTP_UPLOAD;
    r->sink = sink;
    r->answer_ms = answer_ms;
    conn_set_deadline(r->conn, r->server->limits.idle_ms);
}

void http_more(struct http_request *r)
{
    if (r->phase != HTTP_UPLOAD)
        return;
    r->full = false;
    conn_set_deadline(r->conn, r->server->limits.idle_ms);
    request_resume(r);
}

/* With its head alone. A refusal leaves before the body is read, and the connection ends with it.
 */
static enum MHD_Result begin_upload(struct http_request *r)
{
    hand_over(r);
    assert(r->sink || r->response);
    return r->response ? queue_response(r) : MHD_YES;
}

static enum MHD_Result take_piece(struct http_request *r, const char *data, size_t n)
{
    r->full = true;
    conn_set_deadline(r->conn, r->answer_ms); /* for whoever takes it */
    r->sink(r->server->ops.user, r, (struct str){data, n}, false);
    if (r->full && r->phase == HTTP_UPLOAD)
        suspend(r);
    return MHD_YES;
}

static void end_upload(struct http_request *r)
{
    r->phase = HTTP_ASKED;
    conn_set_deadline(r->conn, r->answer_ms);
    r->sink(r->server->ops.user, r, (struct str){0}, true);
}

/* Answers past libmicrohttpd, as far as the socket takes it at once; what libmicrohttpd would send
 * then does not leave. Nothing of an answer may have been sent. */
static void say_last(struct http_conn *conn, const char *status, int err)
{
    struct buf body = refusal_body(err);
    struct buf text = {0};
    char head[200];
    int n = snprintf(head, sizeof(head),
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                     "Connection: close\r\n\r\n",
                     status, body.len);
    buf_append(&text, head, (size_t)n);
    buf_append(&text, body.data, body.len);
    if (conn->lease)
        tls_lease_say(conn->lease, text.data, text.len);
    else
        (void)send(conn->fd, text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(conn->fd, SHUT_WR);
    buf_done(&body);
    buf_done(&text);
}

/* libmicrohttpd has the whole head and has not yet asked us about it: it is the one that it is
 * looking at, unless it has an answer of libmicrohttpd's already. */
static bool is_looked_at(const struct http_request *r)
{
    return r && r->phase == HTTP_HEAD &&
           MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) &&
           !MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_HTTP_STATUS);
}

void request_refused(struct http_server *s, unsigned status)
{
    LIST_EACH(&s->conns, conn, struct http_conn, link)
    {
        if (!is_looked_at(conn->request))
            continue;
        if (status == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)
            say_last(conn, HEAD_TOO_LARGE, ERR_TOO_LARGE);
        else if (status == MHD_HTTP_CONTENT_TOO_LARGE)
            say_last(conn, "413 Content Too Large", ERR_TOO_LARGE);
        else
            say_last(conn, "400 Bad Request", ERR_INVALID_REQUEST);
        return;
    }
}

static enum MHD_Result refuse_crowded(struct http_request *r)
{
    say_last(r->conn, HEAD_TOO_LARGE, ERR_TOO_LARGE);
    return MHD_NO;
}

/* In the first call, after which libmicrohttpd reads no body; and there is no next request, since
 * it is not known where this one ends. */
static enum MHD_Result refuse_head(struct http_request *r, int err)
{
    if (err == ERR_TOO_LARGE)
        return refuse_crowded(r);
    r->phase = HTTP_ASKED;
    refuse(r, err, (const struct http_field[]){{"Connection", "close"}, {0}});
    return queue_response(r);
}

/* With the head alone. */
static enum MHD_Result take_head(struct http_request *r, const char *method)
{
    struct http_server *s = r->server;
    r->phase = HTTP_BODY;
    r->method = method_of(method);
    r->method_name = method;
    conn_set_deadline(r->conn, s->limits.idle_ms);
    int err = judge_head(r);
    if (err)
        return refuse_head(r, err);
    if (s->ops.is_upload && s->ops.is_upload(s->ops.user, r))
        return begin_upload(r);
    r->body_max = s->ops.body_max ? s->ops.body_max(s->ops.user, r) : s->limits.body_max;
    r->too_large = is_hopeless(r);
    return MHD_YES;
}

/* First with the head, then with each piece of the body, then, when all of it is there, until there
 * is an answer: again after each resume. */
/* NOLINTNEXTLINE(readability-function-size): libmicrohttpd wants that many parameters. */
enum MHD_Result request_went_on(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **request)
{
    (void)mhd, (void)url, (void)version;
    struct http_server *s = cls;
    struct http_request *r = *request;
    s->progress |= !r->poised;
    tls_lease_heard(r->conn->lease);
    if (s->stopping)
        return MHD_NO;
    if (r->phase == HTTP_HEAD) {
        enum MHD_Result result = take_head(r, method);
        if (!r->too_large)
            return result;
    }
    if (*upload_size > 0) {
        size_t n = *upload_size;
        *upload_size = 0;
        if (r->phase == HTTP_UPLOAD)
            return take_piece(r, upload, n);
        return take_body(r, upload, n) ? MHD_YES : MHD_NO;
    }
    if (r->phase == HTTP_UPLOAD)
        end_upload(r);
    bool whole = r->phase == HTTP_BODY && !link_in_list(&r->in_line);
    if (whole && !trailers_leave_room(r))
        return refuse_crowded(r);
    if (whole && must_wait(s))
        list_append(&s->in_line, &r->in_line);
    else if (whole)
        hand_over(r);
    if (r->response)
        return queue_response(r);
    wait_for_answer(r);
    return MHD_YES;
}

void request_end(struct http_request *r)
{
    struct http_server *s = r->server;
    set_poised(r, false);
    list_remove(&r->in_line);
    if (r->handed_over) {
        s->figures.requests--;
        s->ops.done(s->ops.user, r);
    }
    if (r->phase == HTTP_STREAM)
        s->figures.streams--;
    hold(r, 0);
    conn_set_deadline(r->conn, s->limits.idle_ms);
    r->conn->request = NULL;
    if (r->response)
        MHD_destroy_response(r->response);
    uri_done(&r->uri);
    buf_done(&r->body);
    buf_done(&r->pulled);
    free(r);
}

void request_ended(void *cls, struct MHD_Connection *mhd, void **request,
                   enum MHD_RequestTerminationCode why)
{
    (void)mhd, (void)why;
    struct http_server *s = cls;
    s->progress = true;
    if (*request)
        request_end(*request);
    *request = NULL;
}

/* ── streams ───────────────────────────────────────────────────────────────────────────────── */

/* What the client has taken made room for max bytes. */
static ssize_t on_room(void *cls, uint64_t pos, char *dst, size_t max)
{
    (void)pos;
    struct http_request *r = cls;
    struct http_server *s = r->server;
    s->progress = true;
    if (s->stopping)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (r->pulled.len == 0 && !r->pulled_all)
        r->pulled_all = !r->pull(s->ops.user, r, &r->pulled, max);
    if (r->pulled.len == 0 && r->pulled_all)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (r->pulled.len == 0) {
        buf_done(&r->pulled);
        conn_set_deadline(r->conn, HTTP_NEVER);
        suspend(r);
        return 0;
    }
    size_t n = r->pulled.len < max ? r->pulled.len : max;
    memcpy(dst, r->pulled.data, n);
    buf_consume(&r->pulled, n);
    hold(r, r->pulled.len);
    conn_set_deadline(r->conn, s->limits.idle_ms);
    return (ssize_t)n;
}

void http_stream(struct http_request *r, const char *content_type, http_pull *pull,
                 const struct http_field *fields)
{
    if (r->phase != HTTP_ASKED)
        return;
    if (http_is_head(r)) { /* libmicrohttpd would send a last chunk behind the head */
        struct buf none = {0};
        http_answer(r, MHD_HTTP_OK, content_type, &none, fields);
        return;
    }
    r->phase = HTTP_STREAM;
    r->pull = pull;
    r->server->figures.streams++;
    conn_set_deadline(r->conn, r->server->limits.idle_ms);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_room, r, NULL);
    respond(r, MHD_HTTP_OK, response, content_type, fields);
}

void http_wake(struct http_request *r)
{
    if (r->phase == HTTP_STREAM)
        request_resume(r);
}

/* ── what is asked ─────────────────────────────────────────────────────────────────────────── */

enum http_method http_method(const struct http_request *r)
{
    return r->method;
}

const char *http_method_name(const struct http_request *r)
{
    return r->method_name;
}

bool http_is_head(const struct http_request *r)
{
    return strcmp(r->method_name, MHD_HTTP_METHOD_HEAD) == 0;
}

const char *http_path(const struct http_request *r)
{
    return uri_path(&r->uri);
}

void http_put_target(const struct http_request *r, struct buf *out)
{
    uri_put(out, &r->uri);
}

const char *http_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

struct header_list {
    const char *name;
    struct buf *out;
};

static enum MHD_Result add_value(void *user, enum MHD_ValueKind kind, const char *key,
                                 const char *value)
{
    (void)kind;
    struct header_list *list = user;
    if (value && strcasecmp(key, list->name) == 0) {
        if (list->out->len > 0)
            buf_append(list->out, ",", 1);
        buf_append(list->out, value, strlen(value));
    }
    return MHD_YES;
}

void http_header_list(const struct http_request *r, const char *name, struct buf *out)
{
    struct header_list list = {.name = name, .out = out};
    (void)MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, add_value, &list);
}

struct str http_body(const struct http_request *r)
{
    return (struct str){(const char *)r->body.data, r->body.len};
}

bool http_too_large(const struct http_request *r)
{
    return r->too_large;
}

const char *http_peer(const struct http_request *r)
{
    return r->conn->peer_text;
}

void http_query(const struct http_request *r,
                bool (*each)(void *user, const char *key, const char *value), void *user)
{
    size_t at = 0;
    const char *key = NULL;
    const char *value = NULL;
    while (uri_next(&r->uri, &at, &key, &value) && each(user, key, value))
        continue;
}

void http_set_data(struct http_request *r, void *data)
{
    r->data = data;
}

void *http_data(const struct http_request *r)
{
    return r->data;
}

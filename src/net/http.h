/* An HTTP server on the loop: libmicrohttpd driven through its epoll descriptor. It hands over
 * whole requests (head and body within limits) and sends answers, now or later, or streams. It
 * knows no routes and decides nothing.
 *
 * Owned by whoever started it. A request is owned by the server; its user may touch it from
 * `request` until `done` has been called for it.
 *
 * Nothing that is called here calls back at once, but http_server_stop: `request`, `done` and pulls
 * come from the loop, so an answer may be given from anywhere, also from inside `request`.
 *
 * libmicrohttpd's ways that are dealt with here: an answer is never queued in the first call of its
 * handler (that would end keep-alive), MHD_run follows every resume, a request is suspended only
 * when its answer does not come soon, a suspended one whose client vanished is found out by its
 * deadline, a head must be complete within head_ms. What it refuses itself (a malformed head, one
 * beyond 12 KiB) is never handed over, and may end without libmicrohttpd's saying so. A target with
 * a broken escape or a NUL, and a head that leaves in doubt where its body ends, are refused with
 * 400, and a head that leaves no memory for an answer (12 KiB, of which each field takes 64 bytes
 * and each cookie as much) with 431, without asking anybody. Arguments take none. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct tls;
struct http_server;
struct http_request;

enum http_method {
    HTTP_GET, /* and HEAD */
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OTHER, /* as a server we take no more; http_client knows this, too: */
    HTTP_PATCH,
};

struct http_limits {
    /* One connection more is accepted and closed at once, with a line in the log. Addresses are
     * counted as address_key does. */
    size_t connections;
    size_t connections_per_address;
    size_t body_max; /* larger ones are handed over with http_too_large */
    int64_t head_ms; /* from accept to the end of the first head */
    /* From the end of an answer to the end of the next head; from the end of a head to the end of
     * its body; and for taking an answer (more for long ones) or a piece of a stream. */
    int64_t idle_ms;
    int64_t suspend_ms; /* the longest a request may wait for its answer; then 503 is given */
};

struct http_ops {
    /* A whole request. Exactly one of http_answer and http_stream must follow, now or later, unless
     * `done` comes first. */
    void (*request)(void *user, struct http_request *r);

    /* It is over, answered or not: the last call about r. */
    void (*done)(void *user, struct http_request *r);

    void *user;

    /* Whether the request with this head brings an upload: then `request` is called before its
     * body is there, and must at once either answer, which refuses it, or call http_receive. NULL =
     * none does. Nothing but the head may be asked for. */
    bool (*is_upload)(void *user, const struct http_request *r);

    /* How long the body of the request with this head may be; NULL = limits.body_max for all. */
    size_t (*body_max)(void *user, const struct http_request *r);
};

/* Where it listens. */
struct http_place {
    const char *ip;
    uint16_t port;   /* 0 picks a free one */
    struct tls *tls; /* borrowed; NULL = plain */
    int held_fd;     /* as a listener's */
};

/* Binds and listens. 0, or ERR_IO with *ret_why, and nothing is left behind. */
int http_server_start(struct loop *loop, const struct http_place *place,
                      const struct http_limits *limits, const struct http_ops *ops,
                      struct http_server **ret, const char **ret_why);

/* Accepts no more; requests under way can still be answered. */
void http_server_quiesce(struct http_server *s);

/* Ends every connection; `done` is called for each request under way. Frees s; NULL is fine. */
void http_server_stop(struct http_server *s);

/* "address:port" as bound. Returns dst. */
const char *http_server_address(const struct http_server *s, char dst[ADDRESS_MAX]);

struct http_figures {
    int64_t connections;  /* open now */
    int64_t refused;      /* since the start: connections that were too many */
    int64_t requests;     /* under way: handed over and not done */
    int64_t streams;      /* … of which are streams */
    int64_t answer_bytes; /* held for clients that have not read them yet, see http_hold */
};
void http_server_figures(const struct http_server *s, struct http_figures *ret);

/* The server's tick: late heads, suspended requests past their time. Called from the loop's tick.
 */
void http_server_tick(struct http_server *s, int64_t monotonic_ms);

/* Answers that were given in this turn of the loop leave now, and not with the next turn: for
 * whoever is about to do something that takes a while. May call `request` and `done` of any
 * request. */
void http_server_go(struct http_server *s);

enum http_method http_method(const struct http_request *r);
const char *http_method_name(const struct http_request *r); /* as the client spelt it */
const char *http_path(const struct http_request *r);        /* see uri_path; without the query */
const char *http_header(const struct http_request *r, const char *name); /* NULL = absent */

/* Appends path and query, escaped: the same target for somebody else, see uri_put. */
void http_put_target(const struct http_request *r, struct buf *out);

/* Appends every value of a header that may come several times, in order, with commas between them;
 * nothing when it is absent. */
void http_header_list(const struct http_request *r, const char *name, struct buf *out);
struct str http_body(const struct http_request *r);
bool http_too_large(
    const struct http_request *r); /* the body was longer than body_max and is lost */
bool http_is_head(const struct http_request *r);

/* The client's address without its port; a mapped one is the IPv4 one. */
const char *http_peer(const struct http_request *r);

/* Calls `each` for every argument of the query, decoded, in order; stops at false. A key without
 * "=" has value "". */
void http_query(const struct http_request *r,
                bool (*each)(void *user, const char *key, const char *value), void *user);

void http_set_data(struct http_request *r, void *data);
void *http_data(const struct http_request *r);

/* Says that so many bytes are being kept to answer r with later: they count as its answer does. */
void http_hold(struct http_request *r, size_t bytes);

/* Of http_figures.answer_bytes, those of r's address. */
int64_t http_held_by_peer(const struct http_request *r);

/* Extra lines of the head: name and value, closed by a NULL name. Copied. */
struct http_field {
    const char *name;
    const char *value;
};

/* Answers; body is taken over (and empty afterwards). Ignored when the client is gone. */
void http_answer(struct http_request *r, int status, const char *content_type, struct buf *body,
                 const struct http_field *fields);

/* The same with a body that is not copied, for what is asked for often: it must stay as it is for
 * as long as the server lives. */
void http_answer_shared(struct http_request *r, int status, const char *content_type,
                        struct str body, const struct http_field *fields);

/* Takes the body of an upload, of any length, piece by piece. After a piece the next one comes only
 * when http_more has been called, which may be at once; after the last (empty, with `last`) an
 * answer must follow within answer_ms. An answer that is given earlier ends the upload: the rest is
 * read if it is short, otherwise the connection is closed. */
typedef void http_sink(void *user, struct http_request *r, struct str piece, bool last);
void http_receive(struct http_request *r, http_sink *sink, int64_t answer_ms);
void http_more(struct http_request *r);

/* Answers 200 with a body without end. pull appends what there is to send (at most about max bytes)
 * and is called again when the client has taken it; when it appends nothing the stream sleeps until
 * http_wake. Returning false ends it. */
typedef bool http_pull(void *user, struct http_request *r, struct buf *out, size_t max);
void http_stream(struct http_request *r, const char *content_type, http_pull *pull,
                 const struct http_field *fields);
void http_wake(struct http_request *r);

/* What the files of the HTTP server share: the server, its connections, their requests.
 *
 * The server owns its connections, each of which has at most one request at a time. Both are made
 * and ended in libmicrohttpd's callbacks, which come only out of MHD_run, MHD_add_connection and
 * MHD_stop_daemon; nothing that a user may call from inside a callback runs any of them. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/tls.h"
#include "net/tls_lease.h"
#include "wire/uri.h"

#include <arpa/inet.h>
#include <microhttpd.h>

struct http_server {
    struct loop *loop;
    struct tls *tls;              /* NULL = plain */
    struct tls_lease *tls_reader; /* whose session has read last; NULL = its connection is gone */
    struct http_limits limits;
    struct http_ops ops;
    struct http_figures figures;
    union address bound;

    struct MHD_Daemon *daemon;
    uv_poll_t daemon_ready; /* its epoll descriptor */
    uv_idle_t daemon_again; /* it has something to do without an event, or it rests */
    uv_timer_t daemon_soon; /* it says so, but does nothing */
    bool resting;           /* it has had its share of time and is not run */
    int64_t rest_turn_us;   /* when the loop's turn began; 0 = in the first */
    int64_t rest_until_us;
    int64_t run_began_us;
    struct list in_line; /* whole requests that are handed over in later runs */
    size_t n_poised;     /* requests, see http_request.poised */
    int64_t ticks;
    bool progress; /* a callback came since MHD_run began */
    int runs_in_vain;
    int listen_fd; /* -1 = closed */
    uv_poll_t listen_ready;
    bool listen_paused; /* until the next tick: there were no descriptors */
    int handles;        /* of the loop's, that must be closed before the server is freed */
    bool running;       /* inside MHD_run */
    bool stopping;

    struct list conns;
    struct map by_address; /* address_key -> struct http_origin, while it has a connection */

    /* Time for deadlines. It stands while ticks are away: whoever was stopped for a minute must not
     * conclude that everybody else was silent for one. */
    int64_t now_ms;
    int64_t ticked_ms;   /* the monotonic clock at the last tick */
    int64_t earliest_ms; /* no deadline comes before this */
};

/* What all connections from one address have together. */
struct http_origin {
    size_t connections;
    int64_t answer_bytes;
};

struct http_conn {
    struct http_server *server;
    struct http_origin *origin; /* the server's */
    struct link link;
    int fd; /* libmicrohttpd's */
    union address peer;
    char peer_text[INET6_ADDRSTRLEN]; /* without the port */
    struct http_request *request;     /* NULL between requests */
    struct tls_lease *lease;          /* NULL = plain */
    int64_t deadline_ms;              /* in the server's time; HTTP_NEVER = none */
};

#define HTTP_NEVER INT64_MAX

/* What a connection may need of libmicrohttpd's memory: the head of a request, in which a token may
 * have 8 KiB, the head of an answer, a piece of a stream. A longer head is refused with 431.
 * libmicrohttpd writes zeros over all of it, one and a half times, for each request: what is not
 * needed takes the cache from everything else. */
enum { HTTP_CONN_MEMORY = 12 * 1024 };

/* A request's way. ASKED it waits for its user, suspended; in a STREAM that has nothing to send it
 * is suspended too.
 *
 *   HEAD ──▶ BODY ──▶ ASKED ──http_answer──▶ ANSWERED ──▶ over
 *     └────▶ ASKED ──http_receive──▶ UPLOAD ──last piece──▶ ASKED
 *     from anywhere:    └─────http_stream──▶ STREAM ────▶ over
 *     the client is gone ──▶ over
 */
enum http_phase { HTTP_HEAD, HTTP_BODY, HTTP_UPLOAD, HTTP_ASKED, HTTP_ANSWERED, HTTP_STREAM };

struct http_request {
    struct http_server *server;
    struct http_conn *conn;
    struct MHD_Connection *mhd;
    enum http_phase phase;
    struct link in_line; /* of the server's */
    bool handed_over;    /* `done` is owed */
    bool suspended;
    bool poised;         /* it waits for its answer without being suspended */
    int64_t poised_tick; /* … since then */
    bool unsound;        /* its target */
    bool too_large;
    enum http_method method;
    const char *method_name; /* libmicrohttpd's, as long as the request */
    struct uri uri;
    struct buf body;
    size_t body_max;
    size_t body_seen; /* more than body.len when it was too large */

    http_sink *sink; /* of an upload */
    int64_t answer_ms;
    bool full; /* the last piece is still being looked at */

    struct MHD_Response *response; /* until it is queued */
    unsigned status;
    size_t held; /* of figures.answer_bytes */
    http_pull *pull;
    bool pulled_all;
    struct buf pulled; /* what pull has given and the client has not yet got */
    void *data;
};

/* In delay_ms from now, and never before; HTTP_NEVER takes the deadline away. */
void conn_set_deadline(struct http_conn *conn, int64_t delay_ms);

/* MHD_run in the next turn of the loop, which does not wait for it, or when its rest is over. */
void server_run_again(struct http_server *s);

/* It has run long enough: what can wait for another run should. */
bool server_is_late(const struct http_server *s);

/* libmicrohttpd's callbacks about requests; cls is the server. */
void *request_began(void *cls, const char *target, struct MHD_Connection *mhd);
enum MHD_Result request_went_on(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **request);
void request_ended(void *cls, struct MHD_Connection *mhd, void **request,
                   enum MHD_RequestTerminationCode why);

/* Frees r, whoever still waits for its answer. libmicrohttpd may have forgotten its connection. */
void request_end(struct http_request *r);

/* The error's status, and its code and sentence as JSON. */
void request_refuse(struct http_request *r, int err);

/* libmicrohttpd is about to refuse a request, with that status. Of one whose head is whole it would
 * send two heads, or none when its memory is used up; so we answer that one. */
void request_refused(struct http_server *s, unsigned status);

/* Hands over those next in line, until it is late. */
void request_call_next(struct http_server *s);

/* The daemon is about to be stopped and insists that nothing is suspended. */
void request_resume(struct http_request *r);

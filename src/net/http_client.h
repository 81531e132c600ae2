/* An HTTP client on the loop: libcurl's multi interface driven by libuv. Answers come whole (within
 * a limit) or, for a download, go into a file. Nothing blocks and nothing calls back at once.
 *
 * Owned by whoever made it; a request is owned by the client until `done` has been called for it.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "net/http.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct http_client;
struct http_call;

enum { HTTP_CLIENT_WHY_MAX = 200, HTTP_CLIENT_ANSWER_MAX = 1024 * 1024 };

struct http_client_config {
    const char *token;       /* sent as a bearer token; NULL = none. Copied. */
    const char *ca_file;     /* who may sign the other side; NULL = the system's. Copied. */
    const char *certificate; /* ours, with its key, for mTLS; NULL = none */
    const char *key;
    int64_t timeout_ms; /* of a whole request; 0 = 10 s */
    long per_host;      /* connections to one host at most; 0 = 4 */
};

/* What came of a request. */
struct http_reply {
    int status;           /* 0 = there was no answer: why says what went wrong */
    const char *why;      /* a clause, "connection refused" */
    struct str body;      /* until done returns */
    const char *location; /* of a redirect; "" = none. Redirects are not followed. */
};

typedef void http_done(void *user, const struct http_reply *reply);

struct http_client *http_client_new(struct loop *loop, const struct http_client_config *config);

/* Ends every request: `done` is called for none of them. NULL is fine. */
void http_client_free(struct http_client *c);

/* Replaces the bearer token for requests to come. */
void http_client_set_token(struct http_client *c, const char *token);

/* Begins a request. body may be empty; it is copied. content_type NULL = application/json. done is
 * called once, from the loop, unless http_call_drop or http_client_free comes first. Returns the
 * request, or NULL when it could not be begun at all (done is not called then). */
struct http_call *http_client_ask(struct http_client *c, enum http_method method, const char *url,
                                  struct str body, const char *content_type, http_done *done,
                                  void *user);

/* A request with all that can be said of one. */
struct http_client_request {
    enum http_method method;
    const char *url;
    struct str body;               /* copied */
    const char *content_type;      /* NULL = application/json */
    const char *token;             /* instead of the client's; NULL = the client's */
    const struct http_field *head; /* more lines, closed by a NULL name; NULL = none */
    int64_t timeout_ms;            /* 0 = the client's */
    int64_t answer_max;            /* bytes; 0 = HTTP_CLIENT_ANSWER_MAX */

    /* POST: it may not be sent twice. Others are, once more, when a connection that was kept turns
     * out to be closed; whether the other side had read it nobody can tell. */
    bool once;
};

/* As http_client_ask. */
struct http_call *http_client_send(struct http_client *c, const struct http_client_request *request,
                                   http_done *done, void *user);

/* The same with a body of its own limit of time, and an answer that goes into fd (which stays the
 * caller's), at most max bytes. */
struct http_call *http_client_download(struct http_client *c, const char *url, int fd, int64_t max,
                                       int64_t timeout_ms, http_done *done, void *user);

/* A GET whose answer has no end in sight: `each` is given every piece of a good one (200) as it
 * comes, and says false to break it off; it must not drop the call. Anything else is read like any
 * other answer. There is no limit of time; the body of `done` is empty after a good answer. */
typedef bool http_piece(void *user, struct str piece);
struct http_call *http_client_follow(struct http_client *c, const char *url, http_piece *each,
                                     http_done *done, void *user);

/* What was asked for in this turn of the loop leaves now, and not with the next turn: for whoever
 * is about to do something that takes a while. May call `done` of any call. */
void http_client_go(struct http_client *c);

/* The status of the answer, once its head is there; 0 before. */
int http_call_status(const struct http_call *call);

/* Forgets it. */
void http_call_drop(struct http_call *call);

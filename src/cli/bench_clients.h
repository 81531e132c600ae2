/* HTTP clients of a benchmark: each keeps its connection and has one request under way. Belongs to
 * the process that measures. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "cli/bench.h"

enum { BENCH_CLIENTS_MAX = 1024 };

/* Appends the next request, whole. */
typedef void bench_next_request(void *user, struct buf *out);

/* What all runs of one kind of request found. Zeroed = nothing yet. */
struct bench_found {
    struct figure rate, p50, p99, cpu;
    double n;
};

/* The same for one kind of request beside a constant answer of the same server. */
struct bench_pair {
    struct bench_found asked, constant;
    struct figure ratio; /* of the rates of each run */
};

/* Adds the fields all such benchmarks have, and a row whose yardstick is the constant. */
struct bench_row *bench_pair_tell(struct bench *b, const struct bench_pair *p, const char *goal,
                                  const char *what, int clients);

/* Asks for the constant. */
bench_next_request bench_next_constant;

struct served;

/* Asks Muster with so many clients for as long as one run takes, and adds what it found. Anything
 * but an answer of status 200 is a failure. It returns when whatever was asked is answered. */
bool bench_clients_run(struct bench *b, const struct served *s, int clients,
                       bench_next_request *next, void *user, struct bench_found *ret);

/* One request on a connection of its own; the answer's body goes into `body` as text. Returns the
 * status, 0 when there was none. */
int bench_ask_once(const char *address, struct str request, struct buf *body);

/* A connection to "ip:port", or -1; a request sent on it; the answer to it, as above. */
int bench_connect(const char *address);
bool bench_send(int fd, struct str request);
int bench_receive(int fd, struct buf *body);

/* Bytes of a whole answer, 0 while it is not whole; and its status. answer ends with a NUL. */
size_t bench_answer_size(const char *answer, size_t len);
int bench_answer_status(const char *answer);

enum { BENCH_TOKEN_MAX = 2048 };

/* The administrator's access token of a data folder. */
bool bench_read_token(struct bench *b, const char *data, char token[BENCH_TOKEN_MAX]);

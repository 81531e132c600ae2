/* The yardstick of an allocation: two processes that do nothing but pass frames of the same sizes.
 *
 *   client ──request──▶ A ──ALLOCATE──▶ B
 *          ◀─response──   ◀────ACK─────
 */
#pragma once

#include "cli/bench.h"

#include <sys/types.h>

struct echo {
    pid_t a;
    pid_t b;
    char near[64]; /* A's address: a request is answered when B has answered */
    char far[64];  /* B's: an ALLOCATE is answered at once */
};

/* hops: connections between A and B, used in turn. */
bool echo_start(struct echo *e, struct bench *b, int hops);
void echo_end(struct echo *e); /* a zeroed one is fine */

/* One frame to B and back, on a connection of its own, and nothing else under way. */
struct echo_line {
    int fd;
};
bool echo_line_open(struct echo_line *l, struct bench *b, const struct echo *e);
bool echo_line_turn(struct echo_line *l); /* false: it is broken */
void echo_line_close(struct echo_line *l);

/* Two hops under the load of connections × depth: answers per second and per-answer times. */
struct load_result;
bool echo_measure(struct bench *b, int connections, int depth, int hops, double seconds,
                  struct load_result *ret);

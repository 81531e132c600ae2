/* Load: chat servers that always have so many requests under way, and game servers that acknowledge
 * at once and end their oldest match when they hold too many. All of them live in this process, on
 * one epoll. Owned by the benchmark that opened it. */
#pragma once

#include "cli/bench.h"
#include "cli/bench_child.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { LOAD_KEEP_MAX = 16 };

struct load_plan {
    pid_t pid;           /* whose processor time counts */
    const char *server;  /* address of the server port; NULL = no game servers */
    const char *manager; /* … of the manager port; NULL = no chat servers */
    bool bare;           /* the other side answers each request and greets nobody */
    int connections;     /* chat servers */
    int depth;           /* requests each has under way */
    int servers;         /* game servers, heartbeating every LOAD_BEAT_MS */
    int keep;            /* matches a game server holds before it ends its oldest */
    int32_t lobbies;     /* lobby ids begin after this: Muster knows the ones it was asked for */
};

enum { LOAD_BEAT_MS = 10000 };

struct load_result {
    double seconds;
    uint64_t answered;
    uint64_t failed; /* of them */
    double cpu_us;   /* of the process under load, over all its threads */
    struct thread_cpu threads;
    double own_cpu_us;
    struct durations latency;
};

struct load;

/* Connects and greets everybody; each is known to Muster when this returns. */
bool load_open(struct load **ret, struct bench *b, const struct load_plan *plan);
void load_close(struct load *l); /* NULL is fine */

/* Keeps the requests under way for warm_up_s and then seconds, of which ret tells; waits for the
 * last answers. */
bool load_run(struct load *l, struct bench *b, double warm_up_s, double seconds,
              struct load_result *ret);

/* Game servers do nothing but live for that long. */
bool load_idle(struct load *l, struct bench *b, double seconds, struct load_result *ret);

/* Metrics: what happened, counted, and how things are now, for Prometheus, the status page and the
 * screen of `muster dev`. Counters are fed with what leaves the pipeline, in release order, so they
 * never count what is not durable; gauges are looked up when somebody asks. metrics.def lists every
 * metric.
 *
 * Owned by the service; used on the loop's thread only. */
#pragma once

#include "api/recent.h"
#include "base/buf.h"
#include "core/effect.h"

#include <stdint.h>

struct agones;
struct buses;
struct cluster_standby;
struct doors;
struct feed;
struct http_server;
struct metrics;
struct pipeline;
struct history;
struct routes;
struct store;
struct tls;
struct store_batch;

enum { METRICS_OPERATIONS_MAX = 128, METRICS_STATUSES_MAX = 24 };

/* wall_ms is when this process started. */
struct metrics *metrics_new(int64_t wall_ms);
void metrics_free(struct metrics *m); /* NULL is fine */

/* Where gauges are looked up; each must live as long as the metrics, and may be NULL: then what it
 * would show is left out. */
struct metrics_sources {
    struct pipeline *pipeline;
    struct doors *doors;
    struct store *store;
    struct http_server *http;
    struct feed *feed;
    const struct buses *buses;
    const struct agones *agones;
    const struct routes *routes;
    const struct history *history;
    const struct cluster_standby *standby; /* of a cell, which a store knows as well */
    const struct tls *http_tls;            /* NULL also when the port is plain */
    const struct tls *server_tls;
    const struct tls *manager_tls;
    const struct tls *client_tls;
};
void metrics_watch(struct metrics *m, const struct metrics_sources *sources);
const struct metrics_sources *metrics_sources(const struct metrics *m);

/* An EFFECT_NOTE was released. now_us is monotonic, of the same clock as event.at_us. */
void metrics_note(struct metrics *m, const struct effect *note, int64_t now_us, int64_t wall_ms);

/* A peer answered a PING. Only a game server's time is kept, under its fleet and region. */
void metrics_round_trip(struct metrics *m, conn_id conn, int64_t us);

/* A batch was handed to the store; its commit has ended with that result after so long. */
void metrics_submitted(struct metrics *m, const struct store_batch *batch, int64_t now_us);
void metrics_committed(struct metrics *m, int result, int64_t us, int64_t now_us);

/* How long the commit that has not ended lasts; 0 = there is none. */
int64_t metrics_commit_under_way_us(const struct metrics *m, int64_t now_us);

/* An HTTP request was answered. operation is the name in the operation table: a static text, known
 * by its address; NULL for a path nobody knows. At most METRICS_OPERATIONS_MAX of them, with
 * METRICS_STATUSES_MAX statuses each; more are counted as "other". */
void metrics_http(struct metrics *m, const char *operation, int status, int64_t us);

/* An EFFECT_PLACED was released: a player has his answer. */
void metrics_placed(struct metrics *m, const struct effect *e, int64_t now_us);

/* An agent was asked for something, which took so long. what: a static text, one of at most
 * METRICS_AGENT_CALLS_MAX; status 0 = nobody answered. */
enum { METRICS_AGENT_CALLS_MAX = 8 };
void metrics_agent_call(struct metrics *m, const char *what, int status, int64_t us);

/* An agent sent so many events at once. */
void metrics_agent_events(struct metrics *m, size_t n);

/* The loop worked for so long between two waits; the last of them begins now. */
void metrics_turn(struct metrics *m, int64_t us, int64_t now_us);

/* The loop's tick: looks at some of the servers, so that a scrape need not look at all. */
void metrics_tick(struct metrics *m, int64_t wall_ms);

/* Everything, in Prometheus' text format 0.0.4 (METRICS_CONTENT_TYPE), appended to out. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void metrics_render(struct metrics *m, struct buf *out);

/* How the last minute went. */
const struct recent *metrics_recent(const struct metrics *m);

/* Lobbies since this process started. */
struct metrics_lobbies {
    int64_t started;
    int64_t aborted;
};
void metrics_lobbies(const struct metrics *m, struct metrics_lobbies *ret);

/* The last refusals, newest first; returns how many, at most RECENT_REFUSALS. */
size_t metrics_refusals(const struct metrics *m, struct metrics_refusal ret[RECENT_REFUSALS]);

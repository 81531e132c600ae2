/* The feed: the stream of changes behind GET /v1/events. It holds the newest durable batches as the
 * journal has them, and readers that each stand at one place in them. What a reader is given is
 * decoded and written as text when he takes it; nothing is decoded while nobody listens.
 *
 *   pipeline ── durable ──▶ the newest batches (bytes) ──pull──▶ reader: text/event-stream
 *   store ── history ─────▶      (at start)
 *
 * Owned by the service, which wires it: feed_durable is pipeline_world's durable, feed_release sees
 * what pipeline_world's release sees, feed_tick and feed_turn are called from the loop's hooks. It
 * knows no socket: a reader is woken through a function and asked with feed_pull.
 *
 * Events with an id are changes, "batch.change" (both decimal). Their type is what changed: fleet
 * chat_server server session seat ticket token audit. An id "batch" alone, sent without an event,
 * means that the reader has all of that batch: it moves Last-Event-ID over what his filter hid.
 * note, load and gap are events too; see docs/events.md. Nothing is sent before it is durable,
 * and a reader who comes back with his last id goes on right after it, also after a restart. */
#pragma once

#include "core/core.h"
#include "store/pipeline.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FEED_READERS_MAX = 256,
    FEED_BYTES = STORE_HISTORY_BYTES, /* what the ring may hold: what a restart gives back */
    FEED_TAKEN_OVER_BYTES = 4 << 20, /* … and a new leader: its readers are seconds behind at most,
                                        and everybody waits for it */
    FEED_COMMENT_MS = 15000,         /* a sign of life when there is nothing else to say */
    FEED_LOAD_MS = 1000,
    FEED_WAKE_MS = 20,
    FEED_TICK_BYTES = 1 << 20, /* of text for all readers together, between two ticks … */
    FEED_SHARE_MIN = 4096,     /* … but so much for each */
};

struct feed;
struct feed_reader;

/* The pipeline must outlive it. conn is a number no connection has: the feed's own reads are
 * answered to it. */
struct feed *feed_new(struct pipeline *pipeline, conn_id conn, size_t bytes_max);

/* Every reader must be closed. NULL is fine. */
void feed_free(struct feed *f);

/* Starting: takes the newest of what the store still has, at most so many bytes of changes. Before
 * the first feed_durable. */
int feed_fill(struct feed *f, struct store *store, size_t bytes_max);

/* The batch after the last one is durable. Copies its bytes; decodes nothing. */
void feed_durable(struct feed *f, const struct store_batch *batch);

/* Picks notes for those who listen, and the end of its own reads. */
void feed_release(struct feed *f, const struct effect *effects, size_t n, int64_t wall_ms);

/* The loop's tick: the load, and comments to those who heard nothing for long. May step an event
 * into the pipeline. */
void feed_tick(struct feed *f, int64_t monotonic_ms, int64_t wall_ms);

/* The end of a turn: wakes the readers for whom there is something, each at most every
 * FEED_WAKE_MS, so that many small batches become few writes. */
void feed_turn(struct feed *f, int64_t monotonic_ms);

/* From now on every pull says that the stream is over. */
void feed_stop(struct feed *f);

/* ── readers ───────────────────────────────────────────────────────────────────────────────── */

/* A set of kinds, from "ticket,server,note"; NULL or "" = all. False when a word is unknown, and
 * then *ret_word is that word, within text. */
typedef uint32_t feed_kinds;
bool feed_kinds_parse(const char *text, feed_kinds *ret, struct str *ret_word);

/* The kinds that show what only an administrator may see: token, audit. Notes of what operators did
 * come with audit. */
feed_kinds feed_kinds_of_administrators(void);

/* Every word feed_kinds_parse knows. */
#define FEED_KINDS_WORDS                                                                           \
    "fleet, chat_server, server, session, seat, ticket, token, audit, host, deployment, version, " \
    "ban, room_ticket, room, room_seat, allocation, lobby, note, "                                 \
    "load"

struct feed_ask {
    feed_kinds kinds;
    const char *last_id;      /* NULL or "" = from now on */
    void (*wake)(void *user); /* there is something to pull; never called from within feed_pull */
    void *user;
};

/* Returns 0; ERR_BAD_ARGUMENT when last_id is no id; ERR_BUSY when there are too many readers. An
 * id that is no longer held, or not yet reached, is answered with a gap event. */
int feed_open(struct feed *f, const struct feed_ask *ask, struct feed_reader **ret);
void feed_close(struct feed_reader *r); /* NULL is fine */

/* Appends what there is for this reader, about max bytes at most; nothing when there is nothing
 * until he is woken. False when the stream is over. */
bool feed_pull(struct feed_reader *r, struct buf *out, size_t max);

#define FEED_CONTENT_TYPE "text/event-stream"

struct feed_figures {
    int64_t readers;
    int64_t batches; /* held */
    int64_t bytes;   /* … in so many bytes */
    int64_t first_seq;
    int64_t last_seq;
    int64_t gaps; /* told to readers since the start */
};
void feed_figures(const struct feed *f, struct feed_figures *ret);

/* The loop: libuv's, and what all streams on it share: one read buffer, a few output buffers, the
 * caps on connections, and the end of a turn, where output is written. Owned by the service, which
 * embeds it. Everything on a loop runs on the thread that calls loop_run.
 *
 *   timers ─▶ END OF TURN ─▶ poll: reads, wakeups ─▶ END OF TURN ─▶ closed streams ─▶ timers …
 *
 * END OF TURN: input that was held back is handed on, the owner's turn hook runs, and every stream
 * with output is written once. So many frames in and many frames out cost two system calls.
 *
 * A TLS handshake costs as much as a thousand frames. They wait in line after the poll and get
 * LOOP_SHAKING_US of each turn, so that a storm of them leaves the others their turns. */
#pragma once

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum {
    LOOP_TICK_MS = 100,
    LOOP_READ_SIZE = 64 * 1024,    /* what one read may bring */
    LOOP_KEEP_MAX = 16 * 1024 + 2, /* what a stream may leave of it: less than a whole frame */
    LOOP_SPARES = 256,
    LOOP_SPARE_MAX = 16 * 1024, /* larger output buffers are freed instead of kept */
    LOOP_SHAKING_US = 1000,     /* of a turn for TLS handshakes; one is taken in any case */
};

struct loop_hooks {
    void (*turn)(void *user); /* the turn's input is in; what is sent now leaves with it */
    void (*tick)(void *user); /* every LOOP_TICK_MS */

    /* The loop has worked for so long since it last waited, and waits now. May be NULL. */
    void (*worked)(void *user, int64_t us);
    void *user;

    /* Asked right before bytes are handed to the kernel: false = not one more may leave, on any
     * connection. NULL = they may. */
    bool (*may_write)(void *user);
};

/* More connections than this are accepted and closed at once, with a line in the log. */
struct loop_limits {
    size_t streams;
    size_t streams_per_address;
};

/* A crowd: the streams of listeners that share caps. Whoever may come from anywhere has one of his
 * own, so that he cannot take the places of others. Owned by whoever made it; outlives its streams.
 */
struct loop_crowd {
    struct loop_limits limits;
    size_t streams;
    struct map by_address; /* address_key -> number of streams, as a pointer */
};

struct loop {
    uv_loop_t uv;

    /* The rest belongs to the files of this folder. */
    struct loop_hooks hooks;
    struct loop_crowd crowd; /* of listeners that name no other */
    uv_timer_t tick;
    uv_prepare_t before_poll;
    uv_check_t after_poll;
    uv_idle_t hurry;        /* active while handshakes wait: the poll does not */
    size_t streams;         /* over all crowds */
    size_t streams_max;     /* … at most: may be less than their sum, see loop_share */
    struct list dirty;      /* streams with output to write at the end of this turn */
    struct list waiting;    /* streams whose output goes along with their next, or with the tick */
    struct list resumed;    /* streams that may be read again, perhaps with input held back */
    struct list finishing;  /* streams that close when flushed; the one to cut first is first */
    struct list shaking;    /* streams with bytes of a TLS handshake, first come first served */
    uint8_t *read_buffer;   /* LOOP_KEEP_MAX + LOOP_READ_SIZE: shared, used during one read */
    uint8_t *sealed_buffer; /* the same for ciphertext; NULL until there is any */
    struct buf spares[LOOP_SPARES];
    size_t n_spares;
    uint64_t waited_ns; /* when it last began to wait, and all its waiting until then */
    uint64_t idle_ns;
    uint64_t complained_ms; /* loop time of the last line about connections we could not take */
};

/* The hooks' tick begins at once; nothing happens before loop_run. */
void loop_init(struct loop *loop, const struct loop_hooks *hooks, const struct loop_limits *limits);

/* Makes another crowd, and lets all of them have max streams together. */
void loop_share(struct loop *loop, struct loop_crowd *crowd, const struct loop_limits *limits,
                size_t max);

/* Its streams must be gone. */
void loop_crowd_done(struct loop_crowd *crowd);

/* Everything on the loop must have been closed by its owner; waits for that and frees the rest. */
void loop_done(struct loop *loop);

/* Returns after loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Writes what is waiting now instead of at the end of the turn. */
void loop_write(struct loop *loop);

/* For the files of this folder: what hooks.may_write says. */
bool loop_may_write(const struct loop *loop);

/* True at most once a second: a flood of connections must not become a flood of log lines. */
bool loop_may_complain(struct loop *loop);

/* An empty output buffer with some memory, when there is one; given back when it is empty again.
 * Idle connections so hold no output memory. */
struct buf loop_take_spare(struct loop *loop);
void loop_give_spare(struct loop *loop, struct buf *b);

/* Buses: brokers through which allocations are asked for and answered. Each is a file of one shape
 * (nats.c, pubsub.c): it hands in the messages it gets and publishes what it is given; what becomes
 * of a message is decided here, alike for all. Requests become EVENT_SEEK; EFFECT_RESULT becomes a
 * message; a request is acknowledged when its result is published, so a crash anywhere between
 * repeats it, and the repeat gives the same bytes.
 *
 * Owned by the service. Everything here is on the loop's thread; a bus with threads of its own
 * brings what they say to the loop. */
#pragma once

#include "api/door.h"
#include "api/metrics.h"
#include "core/effect.h"

struct bus;
struct buses;

enum {
    BUSES_MAX = 4,
    BUS_BODY_MAX = 128 * 1024, /* a longer message is unreadable */
    BUS_UNDER_WAY_MAX = 16384, /* requests without a result: then all buses are held … */
    BUS_AGAIN_MS = 5000, /* core has said nothing to a request for so long: it is asked again */
};

/* As a bus calls a message it got and has not acknowledged. */
typedef uint64_t bus_message;

struct bus_result {
    int64_t allocation; /* below 0: of a request that never became one */
    int8_t state;       /* enum allocation_state */
    struct str name;    /* ticketId */
    const char *status; /* "Success" … */
    bool news;          /* a position that changed: it may be lost, and no repeat of it is told */
    struct str body;
};

struct bus_figures {
    bool connected;
    int64_t received;
    int64_t redelivered; /* of these */
    int64_t published;
    int64_t unsent;  /* results that wait for the broker now */
    int64_t waiting; /* requests that the broker still has; -1 = it does not say */
    int64_t reconnected;
};

struct bus_ops {
    const char *name; /* "nats" */
    enum seek_bus kind;

    /* Connects, and again whenever it is lost; nothing is handed in before. */
    void (*start)(struct bus *b);

    /* Sends a result, now or when the broker is back; bus_published when it has it. Copied. */
    void (*publish)(struct bus *b, const struct bus_result *r);

    /* The message is done with; on a broker that is away it will come again. */
    void (*acknowledge)(struct bus *b, bus_message m);

    /* It cannot be answered: goes to the dead letters, and is then acknowledged. */
    void (*bury)(struct bus *b, bus_message m, struct str body, const char *why);

    /* Hand in nothing more, for now or again: too much waits here, or nothing can be stored. */
    void (*hold)(struct bus *b, bool on);

    void (*figures)(const struct bus *b, struct bus_figures *ret);
    void (*free)(struct bus *b);
};

/* The head of each bus's own struct; what follows ops is ours. */
struct bus {
    const struct bus_ops *ops;
    struct buses *buses;
    int64_t foreign;    /* messages of other types */
    int64_t wrong;      /* requests that were refused as they stood */
    int64_t unreadable; /* messages that were buried */
};

/* What it works with must outlive it. */
struct buses *buses_new(struct doors *doors, struct metrics *metrics);
void buses_free(struct buses *all); /* and every bus in it. NULL is fine. */

/* Takes the bus over and starts it. */
void buses_add(struct buses *all, struct bus *b);

/* pipeline_world's release, and the end of a turn before the pipeline is flushed. */
void buses_release(struct buses *all, const struct effect *effects, size_t n);
void buses_before_flush(struct buses *all);

/* False, with a clause in *ret_why, when a broker is away: for /readyz. */
bool buses_are_ready(const struct buses *all, const char **ret_why);

/* The i-th, or NULL. */
const struct bus *buses_at(const struct buses *all, size_t i);

/* ── what a bus says, on the loop's thread ───────────────────────────────────────────────────── */

/* A message came. again: the broker says it gave it before. from: may be empty. */
void bus_received(struct bus *b, bus_message m, struct str body, bool again);

/* The broker has that result. */
void bus_published(struct bus *b, int64_t allocation, int8_t state);

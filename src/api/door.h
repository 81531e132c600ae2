/* Doors: the open chat ports, their connections, and the way between those and the pipeline. Frames
 * become events, effects become frames; nothing is decided here. Owned by the service, which embeds
 * struct doors and drives it from the loop's hooks. */
#pragma once

#include "api/port.h"
#include "base/list.h"
#include "base/map.h"
#include "net/listener.h"
#include "net/loop.h"
#include "store/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access;
struct metrics;

enum {
    DOORS_MAX = 4,
    DOOR_HELLO_MS = 5000, /* a peer's time to say who it is */
    DOOR_PING_MS = 10000, /* each peer is PINGed this often */
    DOOR_PINGS_MAX = 2,   /* unanswered, and when the next is due a peer that must is gone */
    DOOR_CROWD = 64,      /* effects released together are many from here on */
    DOOR_GAP_MS = 1000,   /* between two ticks: we were stopped, and peers could not be heard */
    DOOR_SENTENCE_MAX = 256,
};

/* Counted since the start, but for connections, which are those open now. */
struct door_figures {
    int64_t connections;
    int64_t accepted;
    int64_t protocol_errors;
    int64_t cut;    /* did not read */
    int64_t silent; /* did not answer PINGs */
    int64_t received_bytes;
    int64_t sent_bytes;
};

/* One port. The lists hold struct conn (conn.h); each connection is in `conns` and in one of the
 * other two, which are in the order of their deadlines because all wait equally long. */
struct door {
    struct doors *doors;
    const struct port *port;
    struct listener *listener;
    uint16_t codes[PORT_ROWS_MAX]; /* of port->rows */
    struct list conns;
    struct list young;  /* have not said who they are */
    struct list pinged; /* are PINGed from time to time */
    bool held;          /* too much waits to be stored: greeted peers are not read */
    struct door_figures figures;
};

struct doors {
    struct loop *loop;
    struct pipeline *pipeline;
    struct metrics *metrics; /* counts what is released; may be NULL */
    struct access *access;   /* for ports that judge a hello; else may be NULL */

    /* A standby has no pipeline: whoever greets is turned away with this sentence about where to
     * go. NULL = peers are served. */
    void (*send_on)(void *user, const struct port *port, char sentence[DOOR_SENTENCE_MAX]);
    void *send_on_user;

    struct door all[DOORS_MAX];
    size_t n;
    struct map conns; /* conn_id -> struct conn, while core may speak to it */
    conn_id last_id;
    struct list gone;    /* connections whose end core has to be told */
    struct list leaving; /* connections that hang up when their answers are out */
    struct buf frame;    /* scratch: one encoded message */
    bool stopping;
    bool crowded;      /* what is being released is much at once */
    int64_t ticked_ms; /* monotonic: the last tick */

    /* The clocks, read once per piece of work rather than once per frame. */
    int64_t monotonic_us;
    int64_t monotonic_ms;
    int64_t wall_ms;
    int64_t apart_us; /* the distance between the two, see doors_distance */
};

/* The pipeline, the metrics and access may be set later, but before the loop runs. */
void doors_init(struct doors *d, struct loop *loop);

/* Every connection must be closed: call doors_close and loop_done first. */
void doors_done(struct doors *d);

/* Listens for one port's peers. 0, or ERR_IO with *ret_why as listener_start gives it. */
int doors_open(struct doors *d, const struct port *port, const struct listener_place *place,
               const char **ret_why);

/* Does what core wants done: pipeline_world's release. */
void doors_release(struct doors *d, const struct effect *effects, size_t n);

/* The loop's tick: late handshakes, PINGs that are due, and who left too many unanswered. */
void doors_tick(struct doors *d);

/* A commit has ended, well or not, and its effects have been released. */
void doors_committed(struct doors *d);

/* The end of a turn, before and after the pipeline is flushed: core is told of connections that
 * ended; those whose answers are out hang up; a port that waited is read again when the backlog
 * has fallen. */
void doors_before_flush(struct doors *d);
void doors_after_flush(struct doors *d);

/* Stops accepting and reading; what core still wants said can be sent. */
void doors_stop(struct doors *d);

/* Bytes the kernel has not taken, over all connections. */
size_t doors_unsent(const struct doors *d);

/* Closes every connection, without telling core. */
void doors_close(struct doors *d);

/* For conn.c: stops reading a port that waits when too much has gathered. */
void doors_hold_if_full(struct door *door);

void doors_read_clocks(struct doors *d);

/* The distance between the clocks, when it was known_us before and the second clock, read at most
 * waited_us after the first, was read_us ahead of it. */
int64_t doors_distance(int64_t known_us, int64_t read_us, int64_t waited_us);

/* One event to core, at the time of the last doors_read_clocks, which it is stamped with. */
void doors_event(struct doors *d, struct event *e);

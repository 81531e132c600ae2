/* Queues: allocations that wait for seats, of one room or of a whole fleet. One line each, in the
 * order in which they are served; whatever frees a seat serves the line in the same step, so nobody
 * else can come between. Visible inside src/core only.
 *
 * Order: when it came, less a minute for each step of priority. So who has priority comes first,
 * who waits a minute longer is worth a step more, and the order of two never changes while they
 * wait. Who does not fit (a party) is passed over; once it has been the first for HOLD_MS, seats
 * that come free are held for it. */
#pragma once

#include "core/core.h"
#include "core/deadline.h"

#include <stddef.h>

struct allocation;
struct fleet;
struct room;

enum {
    QUEUE_HOLD_MS = 30 * 1000,
    QUEUE_STEP_MS = 60 * 1000,
    QUEUE_TELL_MS = 1000,
    QUEUE_GIVEN = 16
};

struct queue {
    struct fleet *fleet;
    struct room *room; /* NULL: any of the fleet */
    struct allocation **line;
    size_t n;
    size_t cap;
    int32_t players;
    int64_t first_since_core_ms;        /* when the first of the line became the first */
    int64_t given_core_ms[QUEUE_GIVEN]; /* when seats were last given from this line, a ring */
    int n_given;
    uint64_t version; /* a fleet's line: which version is taken by those who name none, as a hash */
    struct deadline tell; /* positions have changed */
    struct deadline hold; /* the first has been it for HOLD_MS */
};

/* The line of that room or, when NULL, of the fleet; made when needed. */
struct queue *queue_of(struct fleet *fleet, struct room *room);

/* True when somebody stands in it; NULL is fine. */
static inline bool queue_waits(const struct queue *q)
{
    return q && q->n > 0;
}

void queue_add(struct core *core, struct queue *q, struct allocation *a);
void queue_remove(struct core *core, struct allocation *a);

/* From 1; and how many players stand before it. */
int32_t queue_position(const struct allocation *a, int32_t *ret_ahead);
int64_t queue_eta_ms(const struct allocation *a);

/* Seats that were given from it lately; 0 = nobody knows. */
double queue_rate_per_min(const struct queue *q);

/* Somebody came or went: when there is a place and somebody waits, they are served at the end of
 * the step. */
void queue_room_changed(struct core *core, struct room *room);

/* At the end of a step: whatever came free meanwhile. */
void queues_serve(struct core *core);

/* A host may take something new again: those who wait for any place of a fleet try, on a tick. */
void queues_try_hosts(struct core *core);

/* The room is over: those in its line look for friends again, or for any place, or fail. */
void queue_room_over(struct core *core, struct room *room);

void queue_deadline(struct core *core, struct queue *q, enum deadline_kind kind);
void queue_free(struct queue *q); /* NULL is fine */

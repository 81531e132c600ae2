/* Queues: allocations that wait for seats, of one room or of a whole fleet. One line each, in the
 * order in which they are served; whatever frees a seat serves the line in the same step, so nobody
 * else can come between. Visible inside src/core only.
 *
 * Order: when it came, less a minute for each step of priority. So who has priority comes first,
 * who waits a minute longer is worth a step more, and the order of two never changes while they
 * wait.
 *
 * Who does not fit (a party) is passed over until it is the elder: of those in its line whom free
 * seats could help the one that came first, and there for HOLD_MS. Then empty seats are held for
 * it, of its room or, for who waits for any place of a fleet, of one room at a time: the one that
 * misses the fewest. Who stands before it in the order may have them, nobody behind it. */
#pragma once

#include "base/list.h"
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
    struct list arrivals; /* the same; who came first is first, whatever his priority */
    size_t n;
    size_t cap;
    int32_t players;
    int64_t given_core_ms[QUEUE_GIVEN]; /* when seats were last given from this line, a ring */
    int n_given;
    uint64_t version; /* a fleet's line: which version is taken by those who name none, as a hash */
    const struct allocation *held_for; /* a fleet's line: its elder, NULL = there is none … */
    struct room *held_in;              /* … and where seats that come free are held for it */
    struct deadline tell;              /* positions have changed */
    struct deadline hold;              /* a room's line: it has an elder from then on */
};

/* The line of that room or, when NULL, of the fleet; made when needed. */
struct queue *queue_of(struct fleet *fleet, struct room *room);

/* True when somebody stands in it; NULL is fine. */
static inline bool queue_waits(const struct queue *q)
{
    return q && q->n > 0;
}

/* How many players of the fleet's line may play in that region. */
int32_t queue_wants(const struct fleet *fleet, int8_t region);

void queue_add(struct core *core, struct queue *q, struct allocation *a);
void queue_remove(struct core *core, struct allocation *a);

/* For whom seats are held, or would be if some were empty; NULL = for nobody yet. And how many are.
 */
const struct allocation *queue_elder(const struct core *core, const struct queue *q);
int32_t queue_held(const struct queue *q);

/* Who is the elder, or comes to be when he has waited; NULL = nobody of them can be helped. */
const struct allocation *queue_next_elder(const struct core *core, const struct queue *q);

/* For whom seats of that room are held; NULL = none are. */
const struct allocation *queue_holder(const struct core *core, const struct room *room);

/* True when the first of two is served before the other. */
bool queue_comes_before(const struct allocation *a, const struct allocation *b);

/* It stands where it stood, with so many players less. */
void queue_shrank(struct core *core, const struct allocation *a, int32_t players);

/* Whoever shows it knows in which line it stands, and where. */
bool queue_is_told(const struct allocation *a);

/* From 1; and how many players stand before it. */
int32_t queue_position(const struct allocation *a, int32_t *ret_ahead);
int64_t queue_eta_ms(const struct allocation *a);

/* How long the oldest of all who wait in some line does; 0 = nobody waits. */
int64_t queues_oldest_ms(const struct core *core);

/* Seats that were given from it lately; 0 = nobody knows. */
double queue_rate_per_min(const struct queue *q);

/* Somebody came or went: when there is a place and somebody waits, they are served at the end of
 * the step. */
void queue_room_changed(struct core *core, struct room *room);

/* What is held is not stored: nobody who asks gets a place before the lines were served again. */
void queues_loaded(struct core *core);

/* At the end of a step: whatever came free meanwhile. */
void queues_serve(struct core *core);

/* A host may take something new again: those who wait for any place of a fleet try, on a tick. */
void queues_try_hosts(struct core *core);

/* The room is over: nothing is held there any more, and those in its line look for friends again,
 * or for any place, or fail. */
void queue_room_over(struct core *core, struct room *room);

void queue_deadline(struct core *core, struct queue *q, enum deadline_kind kind);
void queue_free(struct queue *q); /* NULL is fine */

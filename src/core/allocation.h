/* Allocations: what a player asked for by name, and what came of it. Visible inside src/core only.
 */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"
#include "core/view.h"

struct fleet;
struct queue;
struct room;
struct room_seat;
struct room_ticket;

/*               nothing free         a seat came free
 *     OPEN ────────────────▶ QUEUED ────────────────▶ OPEN | DONE
 *      │ a room is started,     │ queue_ms, cancelled,
 *      │ a token is routed      │ banned, placed elsewhere
 *      ├──▶ DONE                └──▶ FAILED | CANCELLED
 *      └──▶ FAILED
 *
 * The last three are final: kept for keep_ms, and longer while a bus is owed the result. */
enum allocation_state {
    ALLOCATION_OPEN = 1,
    ALLOCATION_QUEUED,
    ALLOCATION_DONE,
    ALLOCATION_FAILED,
    ALLOCATION_CANCELLED,
    ALLOCATION_STATES
};

enum { ALLOCATION_ASKERS = 8 };

struct allocation {
    struct object object;
    struct row_allocation row; /* owns its long fields */
    struct fleet *fleet;
    conn_id askers[ALLOCATION_ASKERS]; /* who waits for its answer */
    int n_askers;
    int64_t asked_us;
    const char *how;      /* for the log: "friend" "room" … */
    int32_t unrouted;     /* tokens of its seats that no proxy has confirmed */
    struct queue *queue;  /* QUEUED: where it stands */
    int64_t told_core_ms; /* … when its position was last told */
    int32_t told_position;
    struct deadline deadline; /* row.deadline_core_ms */
    struct link in_finished;  /* core->allocations_finished */
    struct link in_owed;      /* core->allocations_owed */
    struct chain_link by_name;
    struct chain_link by_player; /* OPEN or QUEUED */
};

/* EVENT_SEEK, EVENT_UNSEEK, EVENT_PUBLISHED, EVENT_ROUTED. */
void seek(struct core *core, conn_id conn, const struct seek *s);
bool seek_is_settled(const struct core *core, const struct seek *s);
void unseek(struct core *core, conn_id conn, struct str name);
void allocation_published(struct core *core, const struct published *p);
void allocation_routed(struct core *core, const struct routed *r);

struct allocation *allocation_find(const struct core *core, int64_t id);
struct allocation *allocation_named(const struct core *core, struct str name);

/* The one that the player waits with in that fleet, or NULL. */
struct allocation *allocation_of_player(const struct core *core, int32_t fleet, struct str account);

/* How many seats it wants. */
int32_t allocation_players(const struct allocation *a);

/* QUEUED: tries to give it seats in that room, which has enough of them. */
void allocation_enter(struct core *core, struct allocation *a, struct room *room, const char *how);

/* The room's ticket that was opened for it is final. */
void allocation_ticket_over(struct core *core, const struct room_ticket *ticket);

/* Somebody may wait in line no more: banned, or placed by other means. */
void allocations_of_player_end(struct core *core, int32_t fleet, struct str account, int err,
                               struct str why);

void allocation_fail(struct core *core, struct allocation *a, int err, struct str why);

int allocation_load_row(struct core *core, const struct row_allocation *row);
void allocation_loaded(struct core *core, struct allocation *a);
void allocation_deadline(struct core *core, struct allocation *a);
void allocations_forget_oldest(struct core *core);
void allocations_take_over(struct core *fresh, const struct core *old);

/* Results that are owed are said again: after a start, and when the store is back. */
void allocations_owe_again(struct core *core);
int operate_dequeue(struct core *core, const struct operate *o);

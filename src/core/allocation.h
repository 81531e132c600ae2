/* Allocations: what a player asked for by name, and what came of it. Visible inside src/core only.
 */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"
#include "core/view.h"

struct ban;
struct fleet;
struct queue;
struct room;
struct room_seat;
struct room_ticket;
struct ticket_regions;

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

/* One of those for whom it is, he himself included, while it is OPEN or QUEUED. */
struct allocation_member {
    struct chain_link by_player;
    struct allocation *of;
};

struct allocation {
    struct object object;
    struct row_allocation row; /* owns its long fields */
    struct fleet *fleet;
    struct allocation_detail *detail;  /* NULL = nothing more is known */
    struct ticket_regions *regions;    /* NULL = it has none of its own */
    conn_id askers[ALLOCATION_ASKERS]; /* who waits for its answer */
    int n_askers;
    int64_t asked_us;
    const char *how;         /* for the log: "friend" "room" … */
    int32_t unrouted;        /* tokens of its seats that no proxy has confirmed */
    struct queue *queue;     /* QUEUED: where it stands */
    struct link in_arrivals; /* … and there, by when it came */
    struct link in_waiting;  /* … and among all who wait anywhere: core->waiting */
    int64_t told_core_ms; /* … when its place was last told: in which line (a room's, 0 = the */
    int64_t told_room;    /* fleet's), and where in it */
    int32_t told_position;
    struct deadline deadline; /* row.deadline_core_ms */
    struct link in_finished;  /* core->allocations_finished */
    struct link in_owed;      /* core->allocations_owed */
    struct chain_link by_name;
    struct allocation_member himself;  /* who comes alone needs no memory of his own */
    struct allocation_member *members; /* as many as players, in the order of row.party */
    struct link on_ticket;             /* OPEN: of the room that is started for it */
    struct link in_lost;               /* OPEN: core->allocations_lost */
    struct link in_lined;              /* QUEUED: core->allocations_lined */
    bool newly;                        /* … for the first time */
};

/* EVENT_PUBLISHED, EVENT_ROUTED. */
void allocation_published(struct core *core, const struct published *p);
void allocation_routed(struct core *core, const struct routed *r);

struct allocation *allocation_find(const struct core *core, int64_t id);

/* By its name, and whose own that is: empty = of services, who share theirs. */
struct allocation *allocation_named(const struct core *core, struct str owner, struct str name);
struct str allocation_owner(const struct row_allocation *row);

/* The one that the player waits with in that fleet, be it somebody else's who takes him along, or
 * NULL. There is never a second one. */
struct allocation *allocation_of_player(const struct core *core, int32_t fleet, struct str account);

/* The first allocation that a room's ticket was opened for, or NULL. */
const struct allocation *allocation_of_ticket(const struct core *core, int64_t id);

bool allocation_is_open(const struct allocation *a); /* or in line */

/* How many seats it wants; and the seat of the i-th of its party, 0 = none. */
int32_t allocation_players(const struct allocation *a);
int64_t allocation_seat(const struct allocation *a, size_t i);
void allocation_set_seats(struct core *core, struct allocation *a, const int64_t *seats, size_t n);

/* True when it may be placed in that region, if its friends and its party are not elsewhere. */
bool allocation_may_be_in(const struct allocation *a, int8_t region);
uint64_t allocation_regions(const struct allocation *a);

/* OPEN, waited for by conn (0 = by a bus), in the regions of its own that are given, or NULL. */
struct allocation *allocation_new(struct core *core, conn_id conn, const struct row_allocation *row,
                                  struct fleet *fleet, const struct ticket_regions *regions);

/* It waits for the room of that ticket. */
/* Nothing was started for it, so it counts as if its player had not asked. */
void allocation_give_back_rate(struct core *core, const struct allocation *a);

void allocation_on_ticket(struct allocation *a, struct room_ticket *ticket);

/* conn waits for its answer too; false when too many do. */
bool allocation_wait(struct allocation *a, conn_id conn);

/* It was asked for again, through that bus: what it says now is told there, and so is its result.
 */
void allocation_ask_by(struct core *core, struct allocation *a, int8_t bus);

/* What it says now, to whoever asks; to each of a set of buses, as news that may be lost or as its
 * result. */
void allocation_answer(struct core *core, const struct allocation *a, conn_id conn);
void allocation_tell(struct core *core, const struct allocation *a, int8_t buses, bool news);

/* For an effect, which outlives the event. */
const uint8_t *arguments_keep(struct core *core, const uint8_t arguments[OPERATE_DIGEST]);

/* Its seats are there; it is over; it stands in the room's line, or when NULL in its fleet's; it
 * leaves that, to be placed. */
void allocation_done(struct core *core, struct allocation *a, const struct room *room);
void allocation_fail(struct core *core, struct allocation *a, int err, struct str why);
void allocation_cancel(struct core *core, struct allocation *a, int err, struct str why);
void allocation_queue(struct core *core, struct allocation *a, struct room *room);
void allocation_reopen(struct core *core, struct allocation *a);

/* With move_party: those who are of the player's party no more do not come along. And: that seat is
 * gone, and with it its player from his party. */
void allocation_drop_gone(struct core *core, struct allocation *a);
void allocations_party_left(struct core *core, const struct room_seat *seat);

/* True when the i-th of it comes along because he is of the player's party, and is not. */
bool allocation_is_gone(const struct core *core, const struct allocation *a, int i,
                        struct str account);

/* The player waits in line no more, for he was placed by other means; or he is banned, and waits
 * for nothing any more. Whoever takes him along waits no more either: all or nobody. Who only came
 * along with his party drops out when he is of it no more. */
void allocations_of_placed_end(struct core *core, int32_t fleet, struct str account);
void allocations_of_banned_end(struct core *core, const struct ban *ban);

/* A seat that nobody was in yet is gone. At the end of the step those who waited for it look for
 * another when its room is over, else they fail. */
void allocation_lost_seat(struct core *core, const struct room_seat *seat);
void allocations_seek_again(struct core *core);

/* At the end of a step, when lines were served: who still waits is told so. */
void allocations_say_queued(struct core *core);

int allocation_load_row(struct core *core, const struct row_allocation *row);
void allocation_loaded(struct core *core, struct allocation *a);
void allocation_deadline(struct core *core, struct allocation *a);
void allocation_free_members(struct allocation *a);
void allocations_forget_oldest(struct core *core);
void allocations_take_over(struct core *fresh, const struct core *old);

/* What is owed to buses and proxies is said again at the next tick: after a start, and after
 * effects were lost. */
void allocations_owe_again(struct core *core);

/* On a tick, when changes can be stored. */
void allocations_settle(struct core *core);

/* 0 and the allocation it was about, or ERR_NOT_FOUND. */
int operate_dequeue(struct core *core, const struct operate *o, int64_t *ret_object);

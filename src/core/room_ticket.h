/* Tickets of rooms: one request for seats, with its answer. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"
#include "core/view.h"

/*   OPEN ──the room is open, or was──▶ DONE
 *     └──no server came to be──▶ FAILED
 *
 * Both ends are final: kept for keep_ms, then deleted. */
enum room_ticket_state {
    ROOM_TICKET_OPEN = 1,
    ROOM_TICKET_DONE,
    ROOM_TICKET_FAILED,
    ROOM_TICKET_STATES
};

enum room_try_outcome {
    ROOM_TRY_PENDING,
    ROOM_TRY_OPENED,
    ROOM_TRY_FAILED,
    ROOM_TRY_TIMED_OUT,
    ROOM_TRY_GIVEN_UP,
    ROOM_TRY_OUTCOMES
};

struct room_try {
    int64_t host;
    int64_t room;
    int8_t outcome; /* enum room_try_outcome */
    float load_percent;
};

enum { ROOM_TICKET_ASKERS = 8 };

struct host;
struct room;
struct room_failure;
struct ticket_regions;
struct version;

struct room_ticket {
    struct object object;
    struct row_room_ticket row; /* owns its long fields */
    int n_tries;
    struct room_try tries[VIEW_HOST_TRIES];
    conn_id askers[ROOM_TICKET_ASKERS]; /* who waits for its answer */
    int n_askers;
    int64_t asked_us;
    bool rated;                     /* its players' rates have counted it */
    bool ran;                       /* a process of the game was started for it */
    struct ticket_regions *regions; /* NULL = it has none of its own */
    struct deadline deadline;
    struct link in_finished; /* core->room_tickets_finished */
    struct chain_link by_key;
    struct list allocations;   /* those that wait for its room */
    struct link in_allocating; /* OPEN and there are such: fleet->allocating */
};

struct room_ticket *room_ticket_find(const struct core *core, int64_t id);
const char *room_try_outcome_name(int outcome);

/* Writes the tries into the row, before it is encoded. */
void room_ticket_keep_tries(struct room_ticket *ticket);

/* The ticket of that account, operation and Idempotency-Key, or NULL; and whether it was asked with
 * the same arguments. */
struct room_ticket *room_ticket_of_key(const struct core *core, const struct place *p);
bool room_ticket_is_same(const struct room_ticket *ticket, const struct place *p);

/* OPEN, waited for by conn (0 = by allocations). `regions`: its own, which are copied; NULL = none.
 */
struct room_ticket *room_ticket_new(struct core *core, conn_id conn, const struct place *p,
                                    const struct version *version, int8_t region,
                                    const struct ticket_regions *regions);

/* A room is started for it; the caller reserves its seats, then tells the host. */
struct room *room_ticket_spawn(struct core *core, struct room_ticket *ticket,
                               struct version *version, struct host *host, struct str settings);

/* Its room is open and has its seats: whoever waits is answered. */
void room_ticket_done(struct core *core, struct room_ticket *ticket);

/* The same for the ticket of a room that has just opened. */
void room_ticket_opened(struct core *core, const struct room *room);

/* The room that was started for it came to nothing: another host is tried, or it has failed. */
void room_ticket_next(struct core *core, struct room_ticket *ticket, struct room *failed,
                      const struct room_failure *failure);

/* Those for whom its room was started were all sent away. NULL and one that is not open are fine.
 */
void room_ticket_deserted(struct core *core, struct room_ticket *ticket);

/* Nobody wants its room any more. NULL and one that is not open are fine. */
void room_ticket_give_up(struct core *core, struct room_ticket *ticket, struct str why);

/* conn waits for its answer too; false when too many do. */
bool room_ticket_wait(struct room_ticket *ticket, conn_id conn);

/* DONE or FAILED: the answer, for whoever asks again. Seats that are gone since are not in it; when
 * none is left it is ERR_ALREADY_OVER. */
void room_ticket_answer(struct core *core, const struct room_ticket *ticket, conn_id conn);

int room_ticket_load_row(struct core *core, const struct row_room_ticket *row);
void room_ticket_deadline(struct core *core, struct room_ticket *ticket);
void room_tickets_forget_oldest(struct core *core);

/* Those who wait in the old core wait in the fresh one, or are refused. */
void room_tickets_take_over(struct core *fresh, const struct core *old);

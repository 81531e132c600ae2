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

struct room_ticket {
    struct object object;
    struct row_room_ticket row; /* owns its long fields */
    int n_tries;
    struct room_try tries[VIEW_HOST_TRIES];
    conn_id askers[ROOM_TICKET_ASKERS]; /* who waits for its answer */
    int n_askers;
    int64_t asked_us;
    struct deadline deadline;
    struct link in_finished; /* core->room_tickets_finished */
    struct chain_link by_key;
};

struct room_ticket *room_ticket_find(const struct core *core, int64_t id);
const char *room_try_outcome_name(int outcome);

/* Writes the tries into the row, before it is encoded. */
void room_ticket_keep_tries(struct room_ticket *ticket);

int room_ticket_load_row(struct core *core, const struct row_room_ticket *row);
int room_ticket_loaded(struct core *core, struct room_ticket *ticket);
void room_ticket_deadline(struct core *core, struct room_ticket *ticket);

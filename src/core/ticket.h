/* Tickets: one request to be placed, with its answer. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/fleet.h"
#include "core/object.h"

struct chat_server;
struct server;

/*   OPEN ──▶ DONE ──▶ ENDED       a final ticket is kept for keep_ms, then deleted
 *    │  │      │
 *    │  └──────┴──▶ CANCELLED
 *    └──▶ FAILED
 *
 * OPEN is one for which a match is being opened; or, after a start, one that waits for a server
 * which has not reported yet and has its time for that. */
enum ticket_state {
    TICKET_OPEN = 1,
    TICKET_DONE,
    TICKET_FAILED,
    TICKET_CANCELLED,
    TICKET_ENDED,
    TICKET_STATES
};

enum { TICKET_TRIES = 4 }; /* one and three retries */

enum try_outcome {
    TRY_PENDING,
    TRY_ACKNOWLEDGED,
    TRY_REFUSED,
    TRY_TIMED_OUT,
    TRY_DROPPED,
    TRY_NOT_READY, /* acknowledged, then never READY where that is required */
    TRY_GIVEN_UP,  /* cancelled, or the ticket ran out of time */
};

/* One server tried, and why it looked best. */
struct attempt {
    int32_t server;
    int8_t outcome;
    float score;
    int32_t load;
    int32_t max;
    float cpu_percent;
    float memory_percent;
};

struct ticket {
    struct object object;
    struct row_ticket row;
    struct chat_server *chat;
    conn_id asker;    /* who waits for the answer; 0 = nobody */
    int64_t asked_us; /* the door's clock when it was opened; 0 = before this process */
    int8_t n_tries;
    struct attempt tries[TICKET_TRIES];
    int32_t passed[PASSED_REASONS]; /* at the last choice: the others, by reason */
    struct deadline deadline;
    struct link in_finished;
    struct link in_waiting; /* OPEN without a match: of its fleet, until a server is back */
};

void ticket_allocate(struct core *core, struct chat_server *chat, conn_id conn,
                     const struct chat_mgr_server_allocation_request *request);
void ticket_cancel(struct core *core, struct chat_server *chat, conn_id conn, int32_t lobby);

/* A new ticket of a lobby of ours, whose last one, if there was one, is final: its id. */
int64_t ticket_open_own(struct core *core, struct chat_server *chat,
                        const struct chat_mgr_server_allocation_request *request);

/* Cancels one that is not final, with its match; whoever waits for it is told. */
void ticket_give_up(struct core *core, struct ticket *ticket);

/* The key's answer is stored and will not change by being asked again / is a final one. */
bool ticket_is_settled(const struct core *core, const struct chat_server *chat, int32_t lobby);
bool ticket_is_final(const struct core *core, const struct chat_server *chat, int32_t lobby);

/* Its session was acknowledged: answer. */
void ticket_done(struct core *core, struct ticket *ticket);

/* Its session failed: the next best, or failure. */
void ticket_next(struct core *core, struct ticket *ticket, int outcome);

/* Those that wait look again where something has changed. At the end of a step, when changes can be
 * stored. */
void tickets_settle(struct core *core);

/* Keeps to the limit of finished tickets. At the end of a step, when nobody walks a list. */
void tickets_forget_oldest(struct core *core);

/* Its match is over. */
void ticket_ended(struct core *core, struct ticket *ticket);

/* Writes the tries into the row, for the seal, and reads them back: 0 or ERR_FORMAT. */
void ticket_keep_tries(struct ticket *ticket);
int ticket_restore_tries(struct ticket *ticket);

/* "acknowledged" "timed_out" … */
const char *try_outcome_name(int outcome);

struct ticket *ticket_find(const struct core *core, int64_t id);
struct ticket *ticket_load_row(struct core *core, const struct row_ticket *row);
int ticket_loaded(struct core *core, struct ticket *ticket);
void ticket_unlink(struct core *core, struct ticket *ticket);
void ticket_deadline(struct core *core, struct ticket *ticket);
void ticket_refuse(struct core *core, conn_id conn, int32_t lobby, int err);

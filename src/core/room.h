/* Rooms: sessions on servers that agents spawn, one room per server. Visible inside src/core only.
 */
#pragma once

#include "base/chain.h"
#include "base/json.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"

struct fleet;
struct host;
struct room_ticket;
struct version;

/*                INITED               empty_ms, session_ms, operator
 *   STARTING ───────────▶ OPEN ─────────────────────────────────▶ ENDING
 *      │                   │ exited, not listed, host lost          │ exited, not listed,
 *      │ failed, timed out │                                        │ host lost, too long
 *      │                   ▼                                        │
 *      ├────────────────▶ ENDED ◀───────────────────────────────────┘
 *      └─────────▶ ENDING (it may run: given up by us)
 *
 * STARTING owes its host the spawn, ENDING the order to end it; both are said again until they are
 * done. An ENDED room is kept for a while for those who ask, then deleted. */
enum room_state { ROOM_STARTING = 1, ROOM_OPEN, ROOM_ENDING, ROOM_ENDED, ROOM_STATES };

struct room {
    struct object object;
    struct row_room row; /* owns its long fields */
    struct fleet *fleet;
    struct version *version;
    struct host *host;     /* NULL: it has ended */
    struct json *settings; /* of an OPEN room, parsed; NULL when they are no JSON */
    struct list seats;
    int32_t reserved;
    int32_t taken;
    int32_t unheard;          /* in a row: spawns that nobody answered */
    int8_t missing;           /* heartbeats in a row that did not list it */
    bool confirmed;           /* its host has said that it has it */
    int32_t shelved_at;       /* free seats it was shelved with */
    bool shelved;             /* among the open rooms of its version */
    int64_t asked_us;         /* the door's clock when it was asked for; 0 = unknown */
    struct deadline deadline; /* row.deadline_core_ms, whatever the state waits for */
    struct deadline empty;    /* OPEN without a seat */
    struct deadline repeat;   /* what is owed to its host is said again */
    struct link on_host;
    struct link in_ended; /* core->rooms_ended */
};

struct room *room_find(const struct core *core, int64_t id);
struct room *room_of_server(const struct core *core, int64_t server);
int32_t room_free_seats(const struct room *room);
bool room_is_over(const struct room *room); /* ENDING or ENDED */

int room_load_row(struct core *core, const struct row_room *row);
void room_loaded(struct core *core, struct room *room);
void room_done(struct room *room); /* what it owns besides itself */
void room_deadline(struct core *core, struct room *room, enum deadline_kind kind);

/* True when the room's settings are what the filter (NULL = any) asks for. */
bool room_suits(const struct room *room, const struct filter *filter);

/* Rooms: sessions on servers that agents spawn, one room per server. Visible inside src/core only.
 */
#pragma once

#include "base/chain.h"
#include "base/json.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"
#include "wire/settings.h"

struct filter;
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
    int32_t unheard;          /* in a row: spawns that nobody answered, or that had no token */
    int8_t missing;           /* heartbeats in a row that did not list it */
    bool listed;              /* in the heartbeat that is being looked at */
    bool confirmed;           /* its host has said that it has it */
    bool no_login;            /* its last spawn was not said, for want of a token */
    bool prepared;            /* its host was told that a spawn will come, or need not be */
    int32_t shelved_at;       /* free seats it was shelved with */
    bool shelved;             /* among the open rooms of its version */
    int64_t told_core_ms;     /* when its host was last told of it */
    int64_t asked_us;         /* the door's clock when it was asked for; 0 = unknown */
    struct deadline deadline; /* whatever the state waits for: row.deadline_core_ms, but a server
                                 that starts has its time while we run */
    struct deadline empty;    /* OPEN without a seat */
    struct deadline repeat;   /* what is owed to its host is said again */
    struct link on_host;
    struct link in_ended;       /* core->rooms_ended */
    struct room_detail *detail; /* NULL = nothing more is known */
    struct queue *queue;        /* those who wait for a seat in it; NULL = nobody ever did */
    int32_t held;               /* of its empty seats: kept for somebody in line; all or none … */
    const struct queue *held_by; /* … which is its own or its fleet's; NULL = none are */
    struct link in_held;         /* fleet->held */
    struct link to_serve;        /* core->to_serve */
};

struct room *room_find(const struct core *core, int64_t id);
struct room *room_of_server(const struct core *core, int64_t server);

/* Seats that anybody may have; and those that nobody has, be they held for somebody in line. */
int32_t room_free_seats(const struct room *room);
int32_t room_empty_seats(const struct room *room);
bool room_is_over(const struct room *room); /* ENDING or ENDED */

/* True when no more may be started: as many rooms or requests for one as are allowed. */
bool rooms_are_many(const struct core *core);

/* True when the room's settings are what the filter (NULL = any) asks for. */
bool room_suits(const struct room *room, const struct filter *filter);

/* What the configuration says of its fleet, or what holds for one that is no longer in it. */
const struct fleet_config *room_config(const struct room *room);

/* A room on that host, STARTING, for that ticket (NULL: a trial, which nobody waits for). Its spawn
 * is owed: room_tell() it when its seats are reserved. */
struct room *room_new(struct core *core, struct room_ticket *ticket, struct version *version,
                      struct host *host, struct str settings);

/* It initialised: OPEN, with the settings it has now. 0, or ERR_BAD_ARGUMENT with a sentence when
 * they cannot be. */
int room_open(struct core *core, struct room *room, const struct agent_event *e,
              char why[SETTINGS_WHY_MAX]);

/* Replaces its settings. 0, or ERR_BAD_ARGUMENT with a sentence. */
int room_set_settings(struct core *core, struct room *room, struct str settings,
                      char why[SETTINGS_WHY_MAX]);

/* STARTING or OPEN: everybody loses his seat, and its server is owed the order to end. */
void room_stop(struct core *core, struct room *room, enum end_reason reason);

/* The server is gone. A room that was ENDING keeps the reason it had. */
void room_end(struct core *core, struct room *room, enum end_reason reason);

/* What row.exit_code says besides the status of a process. */
enum {
    EXIT_UNSEEN = -1,    /* nobody has reported its end */
    EXIT_NEVER_RAN = -2, /* row.tail says why */
};

/* No process was started for it; why is a sentence. */
void room_never_ran(struct core *core, struct room *room, struct str why);

/* Its last lines; "" when it never ran. */
struct str room_tail(const struct row_room *row);

/* How a STARTING room came to nothing. */
struct room_failure {
    bool timed_out;
    bool runs;     /* its server may be there: it must be ended */
    bool no_login; /* the login service gave no token for it: its host was not asked */
    enum fault_cause fault;
    struct str text; /* a sentence */
    struct str tail; /* its last lines */
};
void room_failed(struct core *core, struct room *room, const struct room_failure *failure);

/* Its host was away for too long. */
void room_lost(struct core *core, struct room *room);

/* Its host says that it has no such server. */
void room_vanished(struct core *core, struct room *room);

/* Somebody came or went. */
void room_seats_changed(struct core *core, struct room *room);

void room_set_ports(struct room *room, const uint16_t *ports, int n);
void room_set_tail(struct room *room, struct str tail); /* its end, when it is too long */

/* A note about it: session, server_id, ticket, fleet_id, region_code; object is its host. */
struct effect *room_note(struct core *core, const struct room *room, enum note kind);

int room_load_row(struct core *core, const struct row_room *row);
void room_loaded(struct core *core, struct room *room);
void room_done(struct room *room); /* what it owns besides itself */
void room_deadline(struct core *core, struct room *room, enum deadline_kind kind);
void rooms_forget_oldest(struct core *core);

/* An operator ends it; 0 or ERR_ALREADY_OVER. */
int room_operate_end(struct core *core, struct room *room);

/* ── what is owed to its host: room_owed.c ───────────────────────────────────────────────────── */

/* Says what is owed, now and again until it is done. */
void room_tell(struct core *core, struct room *room);

/* It is owed from now on, or again, in that many milliseconds. */
void room_owe(struct core *core, struct room *room, int64_t in_ms);

/* Its host has it: the spawn is owed no more. */
void room_confirmed(struct core *core, struct room *room);

/* STARTING: its agent cannot be reached. */
void room_unheard(struct core *core, struct room *room);

/* What its agent said to a spawn or a terminate. */
void room_heard(struct core *core, const struct host_heard *heard);

/* Orders a server to end, be it a room's or not. why is a literal or in the batch's arena. */
void room_terminate(struct core *core, const struct host *host, int64_t server, struct str why);

/* It runs on that host, which calls itself otherwise than before. */
void room_adopt(struct core *core, struct room *room, struct host *host);

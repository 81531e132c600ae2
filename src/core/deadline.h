/* Deadlines: every state that is not final has one. Visible inside src/core only. */
#pragma once

#include "base/wheel.h"

#include <stdbool.h>
#include <stdint.h>

struct core;

/* DEADLINE_CORE runs always. DEADLINE_AWAKE stands still while this process does not run (stopped,
 * suspended), so that nobody is called silent for our own sleep. */
enum deadline_clock { DEADLINE_CORE, DEADLINE_AWAKE, DEADLINE_CLOCKS };

enum deadline_kind {
    DEADLINE_SERVER_SILENT = 1,
    DEADLINE_SERVER_LIST,
    DEADLINE_SERVER_CHALLENGE,
    DEADLINE_SERVER_BACKOFF,
    DEADLINE_SERVER_FORGET,
    DEADLINE_CHAT_SILENT,
    DEADLINE_CHAT_CHALLENGE,
    DEADLINE_CHAT_FORGET,
    DEADLINE_SESSION,       /* row.deadline_core_ms */
    DEADLINE_SESSION_REPLY, /* ACK, READY or CANCEL_ACK has not come */
    DEADLINE_TICKET,        /* row.deadline_core_ms */
    DEADLINE_REQUEST,       /* row.deadline_core_ms */
    DEADLINE_HOST_SILENCE,
    DEADLINE_ROOM, /* row.deadline_core_ms */
    DEADLINE_ROOM_EMPTY,
    DEADLINE_ROOM_REPEAT,
    DEADLINE_ROOM_SEAT,
    DEADLINE_ROOM_TICKET, /* row.deadline_core_ms */
    DEADLINE_ALLOCATION,  /* row.deadline_core_ms */
    DEADLINE_QUEUE_TELL,
    DEADLINE_QUEUE_HOLD,
    DEADLINE_LOBBY,        /* row.deadline_core_ms */
    DEADLINE_LOBBY_PLAYER, /* he is gone */
};

struct deadline {
    struct wheel_node node;
    uint8_t kind;
    uint8_t clock;
};

void deadline_set(struct core *core, struct deadline *d, enum deadline_clock clock, int64_t at_ms);
void deadline_clear(struct core *core, struct deadline *d);

static inline bool deadline_is_set(const struct deadline *d)
{
    return wheel_has(&d->node);
}

/* When it fires, or would have: valid once it was set. */
static inline int64_t deadline_at_ms(const struct deadline *d)
{
    return d->node.at_ms;
}

int64_t deadline_now(const struct core *core, enum deadline_clock clock);

/* Fires everything that is due, oldest first, and those of one moment in the order in which they
 * were set. */
void deadlines_run(struct core *core);

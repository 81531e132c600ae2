#include "base/plant.h"
#include "core/state.h"

int64_t deadline_now(const struct core *core, enum deadline_clock clock)
{
    if (PLANTED(wall_clock_liveness) && clock == DEADLINE_AWAKE) {
        /* A wheel does not turn back: what is set before its time would fire for ever. */
        int64_t seen_ms = core->deadlines[clock].now_ms;
        return core->now.wall_ms > seen_ms ? core->now.wall_ms : seen_ms;
    }
    return clock == DEADLINE_CORE ? core->now.core_ms : core->now.core_ms - core->asleep_ms;
}

void deadline_set(struct core *core, struct deadline *d, enum deadline_clock clock, int64_t at_ms)
{
    assert(!deadline_is_set(d) || d->clock == clock);
    d->clock = (uint8_t)clock;
    wheel_set(&core->deadlines[clock], &d->node, at_ms);
}

void deadline_clear(struct core *core, struct deadline *d)
{
    wheel_remove(&core->deadlines[d->clock], &d->node);
}

static void fire(struct core *core, struct deadline *d)
{
    enum deadline_kind kind = (enum deadline_kind)d->kind;
    switch (kind) {
    case DEADLINE_SERVER_SILENT:
        server_deadline(core, container_of(d, struct server, silent), kind);
        break;
    case DEADLINE_SERVER_LIST:
        server_deadline(core, container_of(d, struct server, list), kind);
        break;
    case DEADLINE_SERVER_CHALLENGE:
        server_deadline(core, container_of(d, struct server, challenged), kind);
        break;
    case DEADLINE_SERVER_BACKOFF:
        server_deadline(core, container_of(d, struct server, backoff), kind);
        break;
    case DEADLINE_SERVER_FORGET:
        server_deadline(core, container_of(d, struct server, forget), kind);
        break;
    case DEADLINE_CHAT_SILENT:
        chat_server_deadline(core, container_of(d, struct chat_server, silent), kind);
        break;
    case DEADLINE_CHAT_CHALLENGE:
        chat_server_deadline(core, container_of(d, struct chat_server, challenged), kind);
        break;
    case DEADLINE_CHAT_FORGET:
        chat_server_deadline(core, container_of(d, struct chat_server, forget), kind);
        break;
    case DEADLINE_SESSION:
        session_deadline(core, container_of(d, struct session, deadline), kind);
        break;
    case DEADLINE_SESSION_REPLY:
        session_deadline(core, container_of(d, struct session, reply), kind);
        break;
    case DEADLINE_TICKET:
        ticket_deadline(core, container_of(d, struct ticket, deadline));
        break;
    case DEADLINE_REQUEST:
        request_deadline(core, container_of(d, struct request, deadline));
        break;
    case DEADLINE_HOST_SILENCE:
        host_deadline(core, container_of(d, struct host, silence));
        break;
    case DEADLINE_ROOM:
        room_deadline(core, container_of(d, struct room, deadline), kind);
        break;
    case DEADLINE_ROOM_EMPTY:
        room_deadline(core, container_of(d, struct room, empty), kind);
        break;
    case DEADLINE_ROOM_REPEAT:
        room_deadline(core, container_of(d, struct room, repeat), kind);
        break;
    case DEADLINE_ROOM_SEAT:
        room_seat_deadline(core, container_of(d, struct room_seat, deadline));
        break;
    case DEADLINE_ROOM_TICKET:
        room_ticket_deadline(core, container_of(d, struct room_ticket, deadline));
        break;
    case DEADLINE_ALLOCATION:
        allocation_deadline(core, container_of(d, struct allocation, deadline));
        break;
    case DEADLINE_QUEUE_TELL:
        queue_deadline(core, container_of(d, struct queue, tell), kind);
        break;
    case DEADLINE_QUEUE_HOLD:
        queue_deadline(core, container_of(d, struct queue, hold), kind);
        break;
    case DEADLINE_LOBBY:
        lobby_deadline(core, container_of(d, struct lobby, deadline));
        break;
    case DEADLINE_LOBBY_PLAYER:
        lobby_player_deadline(core, container_of(d, struct lobby_player, gone));
        break;
    }
}

void deadlines_run(struct core *core)
{
    for (int clock = 0; clock < DEADLINE_CLOCKS; clock++) {
        int64_t now_ms = deadline_now(core, (enum deadline_clock)clock);
        struct wheel_node *n;
        while ((n = wheel_pop(&core->deadlines[clock], now_ms)))
            fire(core, container_of(n, struct deadline, node));
    }
}

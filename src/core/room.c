/* Rooms: what state they are in, and how long they may be in it. */
#include "core/room.h"

#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ENDING_MS = 60 * 1000,     /* an order to end that nobody confirms */
    SPAWN_GRACE_MS = 3 * 1000, /* the agent's own report of a timeout says more than ours */
};

static const uint8_t allowed_moves[ROOM_STATES] = {
    [0] = 1 << ROOM_STARTING,
    [ROOM_STARTING] = 1 << ROOM_OPEN | 1 << ROOM_ENDING | 1 << ROOM_ENDED,
    [ROOM_OPEN] = 1 << ROOM_ENDING | 1 << ROOM_ENDED,
    [ROOM_ENDING] = 1 << ROOM_ENDED,
};

struct room *room_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_room, id);
}

struct room *room_of_server(const struct core *core, int64_t server)
{
    return map_get(&core->rooms_by_server, (uint64_t)server);
}

int32_t room_empty_seats(const struct room *room)
{
    return room->row.max_players - room->reserved - room->taken;
}

int32_t room_free_seats(const struct room *room)
{
    return room_empty_seats(room) - room->held;
}

bool room_is_over(const struct room *room)
{
    return room->row.state == ROOM_ENDING || room->row.state == ROOM_ENDED;
}

bool rooms_are_many(const struct core *core)
{
    int32_t rooms =
        core->rooms_in[ROOM_STARTING] + core->rooms_in[ROOM_OPEN] + core->rooms_in[ROOM_ENDING];
    return rooms >= core->config.limits.rooms ||
           core->room_tickets_open >= core->config.limits.tickets_open;
}

const struct fleet_config *room_config(const struct room *room)
{
    static const struct fleet_config gone = {
        .spawn_ms = 30 * 1000,
        .reserve_ms = 30 * 1000,
        .empty_ms = 5 * 60 * 1000,
        .session_ms = 6 * 60 * 60 * 1000,
    };
    return room->fleet->config ? room->fleet->config : &gone;
}

struct effect *room_note(struct core *core, const struct room *room, enum note kind)
{
    struct effect *note = note_add(core, kind);
    note->session = room->row.id;
    note->server_id = (int32_t)room->row.server;
    note->ticket = room->row.ticket;
    note->fleet_id = room->row.fleet;
    note->region_code = room->row.region;
    note->object = room->row.host;
    note->asked_us = room->asked_us;
    return note;
}

void room_set_ports(struct room *room, const uint16_t *ports, int n)
{
    n = n < HOST_PORTS_MAX ? n : HOST_PORTS_MAX;
    for (int i = 0; i < n; i++) {
        room->row.ports[2 * i] = (uint8_t)ports[i];
        room->row.ports[2 * i + 1] = (uint8_t)(ports[i] >> 8);
    }
    room->row.ports_len = (uint16_t)(2 * n);
}

void room_set_tail(struct room *room, struct str tail)
{
    enum { TAIL_MAX = 4096 };
    tail = str_last(tail, TAIL_MAX);
    if (tail.len > 0)
        long_set(&room->row.tail, tail);
}

void room_never_ran(struct core *core, struct room *room, struct str why)
{
    room->row.exit_code = EXIT_NEVER_RAN;
    room_set_tail(room, why);
    object_touch(core, &room->object);
}

struct str room_tail(const struct row_room *row)
{
    return row->exit_code == EXIT_NEVER_RAN ? STR("") : row->tail;
}

/* ── moves ─────────────────────────────────────────────────────────────────────────────────── */

static void set_deadline(struct core *core, struct room *room, int64_t at_ms)
{
    enum deadline_clock clock = room->row.state == ROOM_STARTING ? DEADLINE_AWAKE : DEADLINE_CORE;
    int64_t in_ms = at_ms - core->now.core_ms;
    room->row.deadline_core_ms = at_ms;
    deadline_clear(core, &room->deadline);
    deadline_set(core, &room->deadline, clock, deadline_now(core, clock) + in_ms);
}

static void parse_settings(struct room *room)
{
    char why[JSON_WHY_MAX];
    json_free(room->settings);
    room->settings = json_parse(room->row.settings, why);
}

/* Counted where it is, and on its host and version while it is not over. */
static void count(struct core *core, struct room *room, int sign)
{
    core->rooms_in[room->row.state] += sign;
    if (room->row.state != ROOM_ENDED)
        room->version->rooms += sign;
}

static void move(struct core *core, struct room *room, enum room_state state)
{
    assert(allowed_moves[room->row.state] & 1 << state);
    if (room->row.state)
        count(core, room, -1);
    room->row.state = (int8_t)state;
    count(core, room, 1);
    shelf_update(room);
    object_touch(core, &room->object);
}

static void put_on_host(struct room *room, struct host *host)
{
    room->host = host;
    host->n_rooms++;
    list_append(&host->rooms, &room->on_host);
}

/* It is STARTING, and those for whom it is were all sent away. When its ticket is over already they
 * went because of that, and whoever ended the ticket ends the room. A trial never had any. */
static void deserted(struct core *core, struct room *room)
{
    struct room_ticket *ticket = room_ticket_find(core, room->row.ticket);
    if (room->row.ticket == 0 || (ticket && ticket->row.state != ROOM_TICKET_OPEN))
        return;
    room_ticket_deserted(core, ticket);
    room_stop(core, room, END_GIVEN_UP);
}

/* It is ended for want of players, but not as long as some may be in it of whom nothing is known: a
 * restore has forgotten those of the lost time. Then its own end is the end. */
static void set_empty(struct core *core, struct room *room)
{
    int64_t at_ms = room->row.empty_core_ms + room_config(room)->empty_ms;
    if (restore_may_hide(core, room->row.server))
        at_ms = room->row.deadline_core_ms;
    deadline_set(core, &room->empty, DEADLINE_CORE, at_ms);
}

/* Empty or not is stored, so that a restart does not give an empty room a new life. */
void room_seats_changed(struct core *core, struct room *room)
{
    bool empty = room->reserved + room->taken == 0;
    shelf_update(room);
    queue_room_changed(core, room);
    if (room->row.state == ROOM_STARTING && list_empty(&room->seats))
        deserted(core, room);
    if (room->row.state != ROOM_OPEN || empty == deadline_is_set(&room->empty))
        return;
    room->row.empty_core_ms = empty ? core->now.core_ms : 0;
    object_touch(core, &room->object);
    if (empty)
        set_empty(core, room);
    else
        deadline_clear(core, &room->empty);
}

void room_stop(struct core *core, struct room *room, enum end_reason reason)
{
    queue_room_over(core, room);
    room_seats_release(core, room, reason, STR("the room ends"));
    deadline_clear(core, &room->empty);
    room->row.end_reason = (int8_t)reason;
    move(core, room, ROOM_ENDING);
    set_deadline(core, room, core->now.core_ms + ENDING_MS);
    room_tell(core, room);
}

void room_end(struct core *core, struct room *room, enum end_reason reason)
{
    queue_room_over(core, room);
    room_seats_release(core, room, reason, STR("the room ended"));
    deadline_clear(core, &room->empty);
    deadline_clear(core, &room->repeat);
    if (room->row.state != ROOM_ENDING)
        room->row.end_reason = (int8_t)reason;
    move(core, room, ROOM_ENDED);
    set_deadline(core, room, core->now.core_ms + core->config.timeouts.keep_ms);
    list_remove(&room->on_host);
    room->host->n_rooms--;
    room->host = NULL;
    list_append(&core->rooms_ended, &room->in_ended);
    room_note(core, room, NOTE_ROOM_ENDED)->reason = room->row.end_reason;
}

/* The settings that the server says it has are put over those that were asked for. */
static int merge_settings(struct room *room, struct str over, char why[SETTINGS_WHY_MAX])
{
    struct buf taken = {0};
    struct buf merged = {0};
    int err = settings_take(over, &taken, why);
    if (!err)
        err = settings_merge(room->row.settings, (struct str){(char *)taken.data, taken.len},
                             &merged, why);
    if (!err)
        long_set(&room->row.settings, (struct str){(char *)merged.data, merged.len});
    buf_done(&taken);
    buf_done(&merged);
    return err;
}

static int64_t session_ms(const struct core *core, const struct room *room)
{
    int64_t ms = room_config(room)->session_ms;
    return ms > 0 ? ms : core->config.timeouts.session_ms;
}

int room_open(struct core *core, struct room *room, const struct agent_event *e,
              char why[SETTINGS_WHY_MAX])
{
    int err = merge_settings(room, e->settings, why);
    if (err)
        return err;
    if (e->n_ports > 0)
        room_set_ports(room, e->ports, e->n_ports);
    if (e->pid)
        room->row.pid = e->pid;
    if (e->address.len > 0 || e->name.len > 0)
        room_detail_set(core, room, e->address, e->name);
    room_confirmed(core, room);
    fault_worked(core, room);
    room->row.opened_core_ms = core->now.core_ms;
    parse_settings(room);
    move(core, room, ROOM_OPEN);
    set_deadline(core, room, core->now.core_ms + session_ms(core, room));
    (void)room_note(core, room, NOTE_ROOM_OPEN);
    room_seats_open(core, room);
    room_seats_changed(core, room);
    core->routes++; /* those who waited for it can be let through */
    return 0;
}

int room_set_settings(struct core *core, struct room *room, struct str settings,
                      char why[SETTINGS_WHY_MAX])
{
    struct buf taken = {0};
    int err = settings_take(settings, &taken, why);
    struct str text = {(char *)taken.data, taken.len};
    if (!err && !str_eq(text, room->row.settings)) {
        long_set(&room->row.settings, text);
        parse_settings(room);
        object_touch(core, &room->object);
    }
    buf_done(&taken);
    return err;
}

/* ── what goes wrong ───────────────────────────────────────────────────────────────────────── */

/* The ticket takes the seats along when it goes to another host. */
void room_failed(struct core *core, struct room *room, const struct room_failure *failure)
{
    struct room_ticket *ticket = room_ticket_find(core, room->row.ticket);
    enum end_reason reason = failure->timed_out ? END_SPAWN_TIMEOUT : END_SPAWN_FAILED;
    room_set_tail(room, failure->tail);
    fault_failed(core, room, failure);
    if (ticket && ticket->row.state == ROOM_TICKET_OPEN)
        room_ticket_next(core, ticket, room, failure);
    if (failure->runs)
        room_stop(core, room, reason);
    else
        room_end(core, room, reason);
}

void room_vanished(struct core *core, struct room *room)
{
    if (room->row.state == ROOM_STARTING)
        room_failed(core, room,
                    &(struct room_failure){.text = STR("the server vanished from its host")});
    else
        room_end(core, room, END_HOST_LOST);
}

void room_lost(struct core *core, struct room *room)
{
    if (room->row.state == ROOM_STARTING) {
        struct room_failure failure = {.fault = FAULT_OF_NOBODY, .text = STR("the host was lost")};
        room_failed(core, room, &failure);
    } else {
        room_end(core, room, END_HOST_LOST);
    }
}

/* Its agent tells of a server that takes too long. When it does not, it may be fetching what the
 * server needs, or it is away, which says enough of its host. */
static void timed_out(struct core *core, struct room *room)
{
    bool away = host_is_away(room->host) || host_is_late(core, room->host);
    char text[64];
    (void)snprintf(text, sizeof(text), "the server did not initialise in %" PRId64 " s",
                   room_config(room)->spawn_ms / 1000);
    struct room_failure failure = {.timed_out = true,
                                   .runs = true,
                                   .fault = away ? FAULT_OF_NOBODY : FAULT_UNKNOWN,
                                   .text = str_of(text)};
    if (room->no_login && !room->confirmed) {
        failure.no_login = true;
        failure.fault = FAULT_OF_NOBODY;
        failure.text = STR("the login service gave no token for the server in time");
    }
    room_failed(core, room, &failure);
}

int room_operate_end(struct core *core, struct room *room)
{
    if (room_is_over(room))
        return ERR_ALREADY_OVER;
    if (room->row.state == ROOM_STARTING)
        room_ticket_give_up(core, room_ticket_find(core, room->row.ticket),
                            STR("an operator ended the room"));
    room_stop(core, room, END_BY_OPERATOR);
    return 0;
}

/* ── being and leaving ─────────────────────────────────────────────────────────────────────── */

static struct room *enter(struct core *core, const struct row_room *row, struct fleet *fleet,
                          struct version *version)
{
    struct room *room = xcalloc(1, sizeof(*room));
    room->object.kind = ROW_room;
    room->row = *row;
    row_own(ROW_room, &room->row);
    room->fleet = fleet;
    room->version = version;
    list_init(&room->seats);
    room->deadline.kind = DEADLINE_ROOM;
    room->empty.kind = DEADLINE_ROOM_EMPTY;
    room->repeat.kind = DEADLINE_ROOM_REPEAT;
    map_put(&core->rooms_by_server, (uint64_t)row->server, room);
    object_enter(core, &room->object);
    return room;
}

static int64_t room_start_ms(const struct room *room)
{
    return room_config(room)->spawn_ms + SPAWN_GRACE_MS;
}

struct room *room_new(struct core *core, struct room_ticket *ticket, struct version *version,
                      struct host *host, struct str settings)
{
    const struct fleet_config *config = version->fleet->config;
    struct row_room row = {
        .id = object_new_id(core, ROW_session),
        .ticket = ticket ? ticket->row.id : 0,
        .server = object_new_id(core, ROW_server),
        .fleet = version->row.fleet,
        .version = version->row.id,
        .deployment = version->row.deployment,
        .host = host->row.id,
        .region = host->row.region,
        .max_players = config->max_players,
        .exit_code = EXIT_UNSEEN,
        .created_core_ms = core->now.core_ms,
        .settings = settings,
    };
    struct room *room = enter(core, &row, version->fleet, version);
    room->asked_us = ticket ? ticket->asked_us : 0;
    put_on_host(room, host);
    host->placed++;
    move(core, room, ROOM_STARTING);
    set_deadline(core, room, core->now.core_ms + room_start_ms(room));
    room_owe(core, room, 0);
    (void)room_note(core, room, NOTE_ROOM_SPAWNING);
    return room;
}

static void forget(struct core *core, struct room *room)
{
    deadline_clear(core, &room->deadline);
    list_remove(&room->in_ended);
    count(core, room, -1);
    map_remove(&core->rooms_by_server, (uint64_t)room->row.server);
    if (room->detail)
        object_delete(core, &room->detail->object);
    object_delete(core, &room->object);
}

void rooms_forget_oldest(struct core *core)
{
    while (core->rooms_in[ROOM_ENDED] > core->config.limits.tickets_kept)
        forget(core, container_of(list_first(&core->rooms_ended), struct room, in_ended));
}

void room_deadline(struct core *core, struct room *room, enum deadline_kind kind)
{
    if (kind == DEADLINE_ROOM_REPEAT)
        room_tell(core, room);
    else if (kind == DEADLINE_ROOM_EMPTY)
        room_stop(core, room, END_EMPTY);
    else if (room->row.state == ROOM_STARTING)
        timed_out(core, room);
    else if (room->row.state == ROOM_OPEN)
        room_stop(core, room, END_TOO_LONG);
    else if (room->row.state == ROOM_ENDING)
        room_end(core, room, END_HOST_LOST);
    else
        forget(core, room);
}

int room_load_row(struct core *core, const struct row_room *row)
{
    struct fleet *fleet = fleet_find(core, row->fleet);
    struct version *version = version_find(core, row->version);
    struct host *host = host_find(core, row->host);
    bool ended = row->state == ROOM_ENDED;
    if (!fleet || !version || version->fleet != fleet || row->state <= 0 ||
        row->state >= ROOM_STATES || (!host && !ended) || row->region < 0 ||
        row->region >= REGION_CODES || row->ports_len % 2 != 0 ||
        map_get(&core->rooms_by_server, (uint64_t)row->server))
        return ERR_FORMAT;
    struct room *room = enter(core, row, fleet, version);
    room->object.stored = true;
    room->prepared = true;
    count(core, room, 1);
    if (ended)
        list_append(&core->rooms_ended, &room->in_ended);
    else
        put_on_host(room, host);
    return 0;
}

/* Called when its seats have been loaded. */
void room_loaded(struct core *core, struct room *room)
{
    int8_t state = room->row.state;
    if (state == ROOM_STARTING) /* its agent keeps its time, and we were not there */
        set_deadline(core, room, core->now.core_ms + room_start_ms(room));
    else
        set_deadline(core, room, room->row.deadline_core_ms);
    if (state == ROOM_STARTING || state == ROOM_ENDING)
        room_owe(core, room, 0);
    if (state != ROOM_OPEN)
        return;
    parse_settings(room);
    shelf_update(room);
    if (room->reserved + room->taken == 0)
        set_empty(core, room);
}

void room_done(struct room *room)
{
    json_free(room->settings);
    queue_free(room->queue);
}

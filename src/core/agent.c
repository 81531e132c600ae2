/* Events of servers, as agents tell them. An agent repeats what it has no answer to, so each event
 * must be able to come twice: what it says is compared with how things are, and what is already so
 * is answered as the first time. Two exceptions are as good as that: a `joined` whose player has
 * left since finds no seat, and settings that were replaced since are replaced again by the repeat
 * of what replaced them, which follows. */
#include "core/agent.h"

#include "base/plant.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>

static struct effect *answer(struct core *core, conn_id conn, const struct agent_event *e, int err)
{
    struct effect *answer = effect_add(core, EFFECT_AGENT, conn);
    answer->verb = (int8_t)e->verb;
    answer->object = e->server;
    answer->err = err;
    return answer;
}

static void answer_why(struct core *core, conn_id conn, const struct agent_event *e, int err,
                       const char *why)
{
    struct str text = text_keep(core, str_of(err ? why : ""));
    answer(core, conn, e, err)->text = text;
}

/* ── beginning and end ─────────────────────────────────────────────────────────────────────── */

/* The room was given up, or nobody ever heard of it: the server must go. */
static void too_late(struct core *core, conn_id conn, const struct agent_event *e)
{
    const struct host *host = host_named(core, e->host);
    (void)answer(core, conn, e, ERR_ALREADY_OVER);
    if (host)
        room_terminate(core, host, e->server, STR("nobody waits for it any more"));
}

static void inited(struct core *core, conn_id conn, const struct agent_event *e, struct room *room)
{
    char why[SETTINGS_WHY_MAX] = "";
    if (room->row.state != ROOM_STARTING) {
        (void)answer(core, conn, e, 0);
        return;
    }
    int err = room_open(core, room, e, why);
    if (!err)
        room_ticket_opened(core, room);
    answer_why(core, conn, e, err, why);
}

static void keep_report(struct core *core, const struct agent_event *e, struct room *room)
{
    room->row.exit_code = e->exit_code;
    room->row.exit_signal = e->exit_signal;
    room->row.peak_memory = e->peak_memory;
    room->row.run_ms = e->run_ms;
    if (e->dropped_bytes > 0)
        room_detail(core, room)->row.dropped_bytes = e->dropped_bytes;
    room_set_tail(room, e->tail);
    object_touch(core, &room->object);
}

static bool is_reported(const struct room *room)
{
    return room->row.exit_code != EXIT_UNSEEN || room->row.exit_signal || room->row.run_ms > 0;
}

/* One that was being ended anyway is over now, as it is when it says that it exited. */
static void failed(struct core *core, const struct agent_event *e, struct room *room)
{
    struct room_failure failure = {
        .timed_out = e->timed_out,
        .fault = e->fault,
        .text = e->text.len > 0 ? e->text : str_of(err_sentence(ERR_SPAWN_FAILED)),
        .tail = e->tail,
    };
    if (room->row.state == ROOM_OPEN || is_reported(room))
        return;
    if (e->ran)
        keep_report(core, e, room);
    else if (e->tail.len == 0) /* what has printed something did run */
        room_never_ran(core, room, failure.text);
    if (room->row.state == ROOM_STARTING)
        room_failed(core, room, &failure);
    else if (room->row.state == ROOM_ENDING)
        room_end(core, room, END_EXITED);
}

static void exited_early(struct core *core, const struct agent_event *e, struct room *room)
{
    char text[96];
    if (e->exit_signal)
        (void)snprintf(text, sizeof(text), "the server was killed by signal %d before it was ready",
                       e->exit_signal);
    else
        (void)snprintf(text, sizeof(text), "the server exited with status %d before it was ready",
                       e->exit_code);
    struct room_failure failure = {
        .fault = e->exit_code >= 0 ? FAULT_OF_GAME : FAULT_UNKNOWN,
        .text = str_of(text),
        .tail = e->tail,
    };
    room_failed(core, room, &failure);
}

static void exited(struct core *core, const struct agent_event *e, struct room *room)
{
    if (room->row.state == ROOM_ENDED && is_reported(room))
        return; /* told before */
    keep_report(core, e, room);
    if (room->row.state == ROOM_STARTING)
        exited_early(core, e, room);
    else if (room->row.state != ROOM_ENDED)
        room_end(core, room, e->hung ? END_HUNG : END_EXITED);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

static int judge_joined(const struct core *core, const struct agent_event *e,
                        const struct room_seat *seat)
{
    if (!seat || seat->room->row.state != ROOM_OPEN)
        return ERR_BAD_KEY;
    bool shown = seat->row.state == ROOM_SEAT_TAKEN && seat->row.joined_seq != 0;
    if (shown && !PLANTED(key_taken_twice))
        return seat->row.joined_seq == e->seq ? 0 : ERR_KEY_USED;
    return ban_of(core, str_of(seat->row.account), str_of(seat->row.address)) ? ERR_BANNED : 0;
}

/* He, or the address he came from. */
static struct str why_banned(struct core *core, const struct room_seat *seat)
{
    struct placed unused;
    struct str account = str_of(seat->row.account);
    return ban_refuse(core, ban_of(core, account, str_of(seat->row.address)), account, &unused);
}

static void joined(struct core *core, conn_id conn, const struct agent_event *e)
{
    struct room_seat *seat = seat_of_key(core, e->server, e->key);
    int err = judge_joined(core, e, seat);
    if (err) {
        struct str why = err == ERR_BANNED ? why_banned(core, seat) : (struct str){0};
        if (seat)
            room_seat_refused(core, seat, conn, err)->text = why;
        answer(core, conn, e, err)->text = why;
        return;
    }
    if (seat->row.state == ROOM_SEAT_RESERVED)
        room_seat_take(core, seat, e->seq);
    else if (seat->row.joined_seq == 0)
        room_seat_shown(core, seat, e->seq);
    struct taken *taken = arena_alloc(&core->out->arena, sizeof(*taken));
    *taken = (struct taken){
        .seat = seat->row.id,
        .account = text_keep(core, str_of(seat->row.account)),
        .info = text_keep(core, seat->row.info),
        .sealed = text_keep(core, seat->row.sealed),
        .multi = seat->row.multi,
    };
    answer(core, conn, e, 0)->taken = taken;
}

static void left(struct core *core, conn_id conn, const struct agent_event *e)
{
    struct room_seat *seat = seat_of_key(core, e->server, e->key);
    if (seat && seat->room->row.state == ROOM_OPEN)
        room_seat_leave(core, seat, SEAT_END_LEFT, STR("left"));
    (void)answer(core, conn, e, 0);
}

/* ── dispatch ──────────────────────────────────────────────────────────────────────────────── */

/* The room is over, or nobody knows it. */
static void of_nobody(struct core *core, conn_id conn, const struct agent_event *e)
{
    switch (e->verb) {
    case AGENT_INITED:
        too_late(core, conn, e);
        break;
    case AGENT_JOINED:
        (void)answer(core, conn, e, ERR_BAD_KEY);
        break;
    case AGENT_UPDATE_SETTINGS:
    case AGENT_CHECK_DEPLOYMENT:
        (void)answer(core, conn, e, ERR_NO_ROOM);
        break;
    default:
        (void)answer(core, conn, e, 0); /* it is gone: so be it */
        break;
    }
}

static void of_room(struct core *core, conn_id conn, const struct agent_event *e, struct room *room)
{
    char why[SETTINGS_WHY_MAX] = "";
    switch (e->verb) {
    case AGENT_INITED:
        inited(core, conn, e, room);
        break;
    case AGENT_JOINED:
        joined(core, conn, e);
        break;
    case AGENT_LEFT:
        left(core, conn, e);
        break;
    case AGENT_UPDATE_SETTINGS: {
        int err = room_set_settings(core, room, e->settings, why);
        answer_why(core, conn, e, err, why);
        break;
    }
    case AGENT_CHECK_DEPLOYMENT:
        (void)answer(core, conn, e, version_check_deployment(core, room));
        break;
    case AGENT_FAILED:
    case AGENT_EXITED:
    case AGENT_VERBS:
        (void)answer(core, conn, e, ERR_BAD_ARGUMENT);
        break;
    }
}

/* True when somebody speaks for a server that is not his. */
static bool is_foreign(const struct core *core, const struct agent_event *e,
                       const struct room *room)
{
    const struct host *host = host_named(core, e->host);
    return room && (!host || host->row.id != room->row.host);
}

/* The host that somebody of another account speaks for; NULL when it is his, or nobody's. */
static const struct host *usurped(const struct core *core, const struct agent_event *e)
{
    const struct host *host = host_named(core, e->host);
    return host && !host_is_of(host, e->account) ? host : NULL;
}

void agent_event(struct core *core, conn_id conn, const struct agent_event *e)
{
    struct room *room = room_of_server(core, e->server);
    const struct host *another = usurped(core, e);
    if (another) {
        struct str why = host_belongs_to_another(core, another);
        (void)note_refused(core, conn, ERR_FORBIDDEN);
        answer(core, conn, e, ERR_FORBIDDEN)->text = why;
        return;
    }
    if (is_foreign(core, e, room)) {
        (void)note_refused(core, conn, ERR_NOT_FOUND);
        (void)answer(core, conn, e, ERR_NOT_FOUND);
        return;
    }
    if (room && (e->verb == AGENT_EXITED || e->verb == AGENT_FAILED)) {
        if (e->verb == AGENT_EXITED)
            exited(core, e, room);
        else
            failed(core, e, room);
        (void)answer(core, conn, e, 0);
    } else if (!room || room_is_over(room)) {
        of_nobody(core, conn, e);
    } else {
        of_room(core, conn, e, room);
    }
}

bool agent_event_changes_nothing(const struct core *core, const struct agent_event *e)
{
    const struct room *room = room_of_server(core, e->server);
    const struct room_seat *seat = NULL;
    if (!room || usurped(core, e) || is_foreign(core, e, room))
        return true;
    switch (e->verb) {
    case AGENT_CHECK_DEPLOYMENT:
        return true;
    case AGENT_INITED:
        return room->row.state != ROOM_STARTING;
    case AGENT_JOINED:
        seat = seat_of_key(core, e->server, e->key);
        return !seat || (seat->row.state == ROOM_SEAT_TAKEN && seat->row.joined_seq != 0);
    case AGENT_LEFT:
        return !seat_of_key(core, e->server, e->key);
    default:
        return false;
    }
}

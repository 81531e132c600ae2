/* Operators: each verb changes one thing, leaves a line in the audit and, when it came with a key,
 * remembers its answer. A refusal changes nothing. */
#include "core/operate.h"

#include "core/state.h"

static int drain(struct core *core, const struct operate *o)
{
    struct server *server = map_get(&core->servers, (uint64_t)o->target);
    bool on = o->verb == OPERATE_DRAIN;
    if (!server)
        return ERR_NOT_FOUND;
    server_drain(core, server, DRAIN_BY_OPERATOR, on);
    if (server->conn)
        effect_add(core, EFFECT_DRAIN, server->conn)->on = on;
    return 0;
}

static int end_session(struct core *core, const struct operate *o)
{
    struct session *session = session_find(core, o->target);
    struct room *room = session ? NULL : room_find(core, o->target);
    if (room)
        return room_operate_end(core, room);
    if (!session)
        return ERR_NOT_FOUND;
    if (!session_is_live(session))
        return ERR_ALREADY_OVER;
    if (session->row.state == SESSION_OPENING)
        ticket_give_up(core, ticket_find(core, session->row.ticket));
    else
        session_stop(core, session, END_BY_OPERATOR);
    return 0;
}

static int terminate(struct core *core, const struct operate *o)
{
    struct room *room = room_of_server(core, o->target);
    return room ? room_operate_end(core, room) : ERR_NOT_FOUND;
}

static int kick(struct core *core, const struct operate *o)
{
    struct room_seat *seat = room_seat_find(core, o->target);
    if (!seat)
        return ERR_NOT_FOUND;
    bool said = o->reason.len > 0;
    room_seat_kick(core, seat, SEAT_END_KICKED,
                   said ? text_keep(core, o->reason) : STR("kicked by an operator"));
    return 0;
}

/* 0 and what it was done to, or why not. */
static int act(struct core *core, const struct operate *o, int64_t *ret_object,
               int32_t *ret_generation)
{
    struct enrolment_token *token = NULL;
    int err = ERR_BAD_ARGUMENT;
    *ret_object = o->target;
    switch (o->verb) {
    case OPERATE_DRAIN:
    case OPERATE_UNDRAIN:
        return drain(core, o);
    case OPERATE_END:
        return end_session(core, o);
    case OPERATE_ENROL:
        err = enrolment_make(core, o, &token);
        break;
    case OPERATE_ROTATE:
        err = enrolment_rotate(core, o->target, o->grace_ms);
        token = err ? NULL : enrolment_get(core, o->target);
        break;
    case OPERATE_REVOKE:
        return enrolment_revoke(core, o->target);
    case OPERATE_ISSUE:
    case OPERATE_STDIN:
    case OPERATE_BACKUP:
    case OPERATE_STEP_DOWN:
        return 0;
    case OPERATE_ENABLE_VERSION:
    case OPERATE_DISABLE_VERSION:
    case OPERATE_DEPLOY:
    case OPERATE_SWITCH:
        return operate_version(core, o, ret_object);
    case OPERATE_BAN:
    case OPERATE_UPDATE_BAN:
    case OPERATE_LIFT_BAN:
        return operate_ban(core, o, ret_object);
    case OPERATE_DEQUEUE:
        return operate_dequeue(core, o, ret_object);
    case OPERATE_TERMINATE:
        return terminate(core, o);
    case OPERATE_KICK:
        return kick(core, o);
    case OPERATE_ENABLE_HOST:
    case OPERATE_DISABLE_HOST:
        return operate_host(core, o);
    case OPERATE_CREATE_LOBBY:
    case OPERATE_ABORT_LOBBY:
        return operate_lobby(core, o, ret_object);
    case OPERATE_CONFIGURE:
    case OPERATE_RESTORE:
    case OPERATE_VERBS:
        break;
    }
    if (!err) {
        *ret_object = token->row.id;
        *ret_generation = token->row.generation;
    }
    return err;
}

/* Whatever a verb answers follows from these four, now and when it is asked again. */
static void answer(struct core *core, conn_id conn, enum operate_verb verb, int64_t object,
                   int32_t generation, int64_t asked_wall_ms)
{
    struct str token = {0};
    char text[ENROLMENT_TOKEN_SIZE];
    if (verb == OPERATE_ENROL || verb == OPERATE_ROTATE)
        token = text_keep(core, enrolment_text(core, object, generation, text));
    struct effect *e = effect_add(core, EFFECT_OPERATED, conn);
    e->verb = (int8_t)verb;
    e->object = object;
    e->token = token;
    e->wall_ms = asked_wall_ms;
}

static void refuse(struct core *core, conn_id conn, const struct operate *o, int err)
{
    struct effect *e = effect_add(core, EFFECT_OPERATED, conn);
    e->verb = (int8_t)o->verb;
    e->object = o->target;
    e->err = err;
    e->text = core->refusal;
}

/* Whom it is about, where that is a player. A ban that is lifted is gone afterwards. */
static struct str player_of(struct core *core, const struct operate *o)
{
    bool of_ban = o->verb == OPERATE_UPDATE_BAN || o->verb == OPERATE_LIFT_BAN;
    const struct ban *ban = of_ban ? ban_find(core, o->target) : NULL;
    if (ban)
        return text_keep(core, str_of(ban->row.account));
    bool named = o->verb == OPERATE_BAN || o->verb == OPERATE_DEQUEUE;
    return named ? text_keep(core, o->account) : (struct str){0};
}

void operate(struct core *core, conn_id conn, const struct operate *o)
{
    const struct request *before = request_find(core, o);
    core->refusal = (struct str){0};
    if (before && !request_is_same(before, o)) {
        refuse(core, conn, o, ERR_KEY_CONFLICT);
        return;
    }
    if (before) {
        answer(core, conn, o->verb, before->row.object, before->row.generation,
               before->row.asked_wall_ms);
        return;
    }
    int64_t object = 0;
    int32_t generation = 0;
    struct str player = player_of(core, o);
    int err = act(core, o, &object, &generation);
    if (err) {
        refuse(core, conn, o, err);
        return;
    }
    if (o->verb != OPERATE_CREATE_LOBBY)
        audit_add(core, o, object, player);
    request_keep(core, o, object, generation);
    answer(core, conn, o->verb, object, generation, core->now.wall_ms);
}

/* Settings are soft, so they change also while nothing can be stored; what they make durable (rows
 * of new fleets, a line in the audit) follows in operate_settle. */
void operate_configure(struct core *core, const struct core_config *config)
{
    core->config = *config;
    fleets_configure(core);
    size_t at = 0;
    for (struct server *server = NULL; (server = object_next(core, ROW_server, &at));)
        server_refresh(core, server);
    core->fleets_owed = true;
    core->audit_owed = true;
    (void)note_add(core, NOTE_CONFIGURED);
}

void operate_settle(struct core *core)
{
    if (core->fleets_owed)
        fleets_make(core);
    if (core->audit_owed)
        audit_add(core, &(struct operate){.verb = OPERATE_CONFIGURE, .who = STR("file")}, 0,
                  (struct str){0});
    core->fleets_owed = core->audit_owed = false;
}

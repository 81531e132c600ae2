#include "core/state.h"

static const struct {
    const char *action;
    const char *target_kind;
} verbs[OPERATE_VERBS] = {
    [OPERATE_DRAIN] = {"drain", "server"},
    [OPERATE_UNDRAIN] = {"undrain", "server"},
    [OPERATE_END] = {"end", "session"},
    [OPERATE_ENROL] = {"enrol", "token"},
    [OPERATE_REVOKE] = {"revoke", "token"},
    [OPERATE_ROTATE] = {"rotate", "token"},
    [OPERATE_ISSUE] = {"issue", ""},
    [OPERATE_CONFIGURE] = {"configure", ""},
    [OPERATE_TERMINATE] = {"terminate", "server"},
    [OPERATE_KICK] = {"kick", "seat"},
    [OPERATE_ENABLE_HOST] = {"enable", "host"},
    [OPERATE_DISABLE_HOST] = {"disable", "host"},
    [OPERATE_ENABLE_VERSION] = {"enable", "version"},
    [OPERATE_DISABLE_VERSION] = {"disable", "version"},
    [OPERATE_DEPLOY] = {"deploy", "deployment"},
    [OPERATE_SWITCH] = {"switch", "deployment"},
    [OPERATE_BAN] = {"ban", "ban"},
    [OPERATE_UPDATE_BAN] = {"update", "ban"},
    [OPERATE_LIFT_BAN] = {"lift", "ban"},
    [OPERATE_STDIN] = {"stdin", "server"},
    [OPERATE_DEQUEUE] = {"dequeue", "allocation"},
    [OPERATE_CREATE_LOBBY] = {"create", "lobby"},
    [OPERATE_ABORT_LOBBY] = {"abort", "lobby"},
    [OPERATE_BACKUP] = {"backup", ""},
    [OPERATE_RESTORE] = {"restore", ""},
    [OPERATE_STEP_DOWN] = {"step_down", ""},
};

const char *audit_action(int8_t verb)
{
    return verb >= 0 && verb < OPERATE_VERBS ? verbs[verb].action : "?";
}

const char *audit_target_kind(int8_t verb)
{
    return verb >= 0 && verb < OPERATE_VERBS ? verbs[verb].target_kind : "";
}

struct audit *audit_load_row(struct core *core, const struct row_audit *row)
{
    struct audit *audit = xcalloc(1, sizeof(*audit));
    audit->object.kind = ROW_audit;
    audit->row = *row;
    map_put(&core->audits, (uint64_t)row->id, audit);
    object_enter(core, &audit->object);
    return audit;
}

static void forget_oldest(struct core *core)
{
    while ((int32_t)core->audits.len > core->config.limits.audit_kept) {
        int64_t id = roll_next(&core->rolls[ROW_audit], 0);
        struct audit *oldest = map_remove(&core->audits, (uint64_t)id);
        object_delete(core, &oldest->object);
    }
}

static void note_target(struct effect *note, int8_t verb, int64_t target)
{
    note->verb = verb;
    if (verb == OPERATE_DRAIN || verb == OPERATE_UNDRAIN || verb == OPERATE_TERMINATE ||
        verb == OPERATE_STDIN)
        note->server_id = (int32_t)target;
    else if (verb == OPERATE_END)
        note->session = target;
    else if (verb == OPERATE_ABORT_LOBBY)
        note->lobby = lobby_number(target);
    else
        note->object = target;
}

void audit_add(struct core *core, const struct operate *o, int64_t target, struct str player)
{
    struct row_audit row = {
        .id = object_new_id(core, ROW_audit),
        .at_wall_ms = core->now.wall_ms,
        .verb = (int8_t)o->verb,
        .target = target,
    };
    (void)str_copy(row.who, sizeof(row.who), o->who);
    (void)str_copy(row.address, sizeof(row.address), o->address);
    (void)str_copy(row.detail, sizeof(row.detail), o->detail);
    object_touch(core, &audit_load_row(core, &row)->object);
    forget_oldest(core);
    struct str who = text_keep(core, o->who);
    struct str address = text_keep(core, o->address);
    struct str detail = text_keep(core, str_of(row.detail));
    struct effect *note = note_add(core, NOTE_OPERATED);
    note->text = str_of(audit_action(row.verb));
    note_target(note, row.verb, target);
    note->chat = who;
    note->ip = address;
    note->player = player;
    note->detail = detail;
}

/* What is asked of lobbies: who may make one, of whom, and who ends it. */
#include "core/state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Says more than the error does. */
static int refuse(struct core *core, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse(struct core *core, int err, const char *format, ...)
{
    char text[200];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    core->refusal = text_keep(core, str_of(text));
    return err;
}

/* A text that fits, or none at all. */
static bool is_text(struct str s, size_t max)
{
    return s.len == 0 || (s.len <= max && !memchr(s.at, 0, s.len) && str_is_utf8(s));
}

static int judge_player(struct core *core, const struct lobby_wanted *w, size_t i)
{
    const struct lobby_entry *p = &w->players[i];
    if (p->account <= 0)
        return refuse(core, ERR_BAD_ARGUMENT, "An account is a number above 0.");
    if (!is_text(p->name, LOBBY_NAME_MAX) || p->team < 0 || p->team > 1 || p->slot < 0 ||
        p->group < 0 || p->group >= LOBBY_PLAYERS_MAX)
        return refuse(core, ERR_BAD_ARGUMENT, "Player %" PRId32 " is not described well.",
                      p->account);
    for (size_t k = 0; k < i; k++) {
        const struct lobby_entry *other = &w->players[k];
        if (other->account == p->account)
            return refuse(core, ERR_BAD_ARGUMENT, "Player %" PRId32 " is named twice.", p->account);
        if (other->team == p->team && other->slot == p->slot)
            return refuse(core, ERR_BAD_ARGUMENT,
                          "Players %" PRId32 " and %" PRId32 " have the same slot of one team.",
                          other->account, p->account);
    }
    const struct lobby_player *elsewhere = lobby_player_loading(core, p->account);
    if (elsewhere)
        return refuse(core, ERR_IN_LOBBY, "Player %" PRId32 " is in lobby %" PRId64 " already.",
                      p->account, elsewhere->lobby->row.id);
    if (ban_of_chat(core, p->account))
        return refuse(core, ERR_BANNED, "Player %" PRId32 " is banned.", p->account);
    return 0;
}

static int judge(struct core *core, const struct fleet *fleet, const struct lobby_wanted *w)
{
    if (!fleet || !fleet->config)
        return ERR_NO_SUCH_FLEET;
    if (fleet->config->provider != PROVIDER_CHAT)
        return refuse(core, ERR_WRONG_PROVIDER, "Fleet %s has no servers that take matches.",
                      fleet->row.name);
    if (w->n_players < 1 || w->n_players > LOBBY_PLAYERS_MAX)
        return refuse(core, ERR_BAD_ARGUMENT, "A lobby has 1 to %d players.", LOBBY_PLAYERS_MAX);
    if (w->game_type < 0 || w->game_type > GAME_TYPE_MAX || w->game_mode < 0)
        return refuse(core, ERR_BAD_ARGUMENT, "The type is 0 to %d, the mode 0 to 127.",
                      GAME_TYPE_MAX);
    if (w->region != REGION_AUTO && !region_configured(core, w->region))
        return ERR_REGION_NOT_SUPPORTED;
    if (!is_text(w->map, LOBBY_NAME_MAX))
        return refuse(core, ERR_BAD_ARGUMENT, "A map's name has at most %d bytes.", LOBBY_NAME_MAX);
    for (size_t i = 0; i < w->n_players; i++) {
        int err = judge_player(core, w, i);
        if (err)
            return err;
    }
    bool room = core->lobbies_in[LOBBY_LOADING] + core->lobbies_in[LOBBY_STARTED] <
                    core->config.limits.lobbies &&
                core->tickets_open < core->config.limits.tickets_open;
    return room ? 0 : ERR_TOO_MANY;
}

static int create(struct core *core, const struct operate *o, int64_t *ret_object)
{
    char name[64] = "";
    struct fleet *fleet = NULL;
    if (str_copy(name, sizeof(name), o->fleet) && fleet_is_configured(core, o->fleet))
        fleet = fleet_named(core, name);
    int err = judge(core, fleet, o->lobby);
    if (!err)
        *ret_object = lobby_create(core, fleet, o->lobby);
    return err;
}

static int abort_by(struct core *core, const struct operate *o)
{
    struct lobby *lobby = lobby_find(core, o->target);
    struct session *session = lobby ? session_find(core, lobby->row.session) : NULL;
    if (!lobby)
        return ERR_NOT_FOUND;
    if (!lobby_is_live(lobby))
        return ERR_ALREADY_OVER;
    if (!is_text(o->reason, LOBBY_REASON_MAX))
        return refuse(core, ERR_BAD_ARGUMENT, "A reason has at most %d bytes.", LOBBY_REASON_MAX);
    if (lobby->row.state == LOBBY_STARTED) {
        session_stop(core, session, END_BY_OPERATOR);
        return 0;
    }
    struct str reason = o->reason.len > 0 ? o->reason : STR("Ended by an operator");
    lobby_abort(core, lobby, LOBBY_CAUSE_OPERATOR, 0, reason);
    return 0;
}

int operate_lobby(struct core *core, const struct operate *o, int64_t *ret_object)
{
    return o->verb == OPERATE_CREATE_LOBBY ? create(core, o, ret_object) : abort_by(core, o);
}

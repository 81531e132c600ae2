/* What core shows of lobbies. */
#include "core/client.h"
#include "core/state.h"

const char *lobby_state_name(int8_t state)
{
    static const char *const names[LOBBY_STATES] = {
        [LOBBY_LOADING] = "loading",
        [LOBBY_STARTED] = "started",
        [LOBBY_ENDED] = "ended",
        [LOBBY_ABORTED] = "aborted",
    };
    return state > 0 && state < LOBBY_STATES ? names[state] : "?";
}

const char *lobby_cause_name(int8_t cause)
{
    static const char *const names[LOBBY_CAUSES] = {
        [LOBBY_CAUSE_NONE] = "",
        [LOBBY_CAUSE_ALLOCATION] = "allocation",
        [LOBBY_CAUSE_LOADING] = "loading",
        [LOBBY_CAUSE_DISCONNECTED] = "disconnected",
        [LOBBY_CAUSE_OPERATOR] = "operator",
        [LOBBY_CAUSE_SERVER] = "server",
        [LOBBY_CAUSE_TOO_LONG] = "too_long",
    };
    return cause >= 0 && cause < LOBBY_CAUSES ? names[cause] : "?";
}

/* Where its groups stand now. */
static const char *standing_of(const struct row_lobby *row)
{
    switch ((enum lobby_state)row->state) {
    case LOBBY_LOADING:
        return "in_lobby";
    case LOBBY_STARTED:
        return "in_match";
    case LOBBY_ABORTED:
        return row->requeue ? "queued" : "not_queued";
    case LOBBY_ENDED:
    case LOBBY_STATES:
        break;
    }
    return "not_queued";
}

void view_row_lobby(const struct core *core, const struct row_lobby *row, struct instant then,
                    struct view_lobby *ret)
{
    bool any = row->region == REGION_AUTO;
    *ret = (struct view_lobby){
        .id = row->id,
        .fleet_id = row->fleet,
        .fleet = view_fleet_name(core, row->fleet),
        .game_type = row->game_type,
        .game_mode = row->game_mode,
        .region = row->region,
        .region_name = any ? "AUTO" : region_name(core, row->region),
        .map = row->map,
        .average_rating = row->average_rating,
        .requeue = row->requeue,
        .state = lobby_state_name(row->state),
        .live = row->state == LOBBY_LOADING || row->state == LOBBY_STARTED,
        .queue = standing_of(row),
        .cause = lobby_cause_name(row->cause),
        .reason = row->reason,
        .err = row->error,
        .gone = row->gone,
        .moves = row->moves,
        .ticket = row->ticket,
        .session = row->session,
        .server = row->server,
        .allocated = row->state == LOBBY_STARTED,
        .players = row->flags_len,
        .opened_wall_ms = wall_at(then, row->opened_core_ms),
        .started_wall_ms = wall_at(then, row->started_core_ms),
        .over_wall_ms = wall_at(then, row->over_core_ms),
        .deadline_wall_ms = wall_at(then, row->deadline_core_ms),
    };
    for (int i = 0; i < row->flags_len; i++) {
        ret->loaded += (row->flags[i] & LOBBY_LOADED) != 0;
        ret->untold += (row->flags[i] & LOBBY_OWED) != 0;
    }
}

/* Now; of one that is over, when that came. */
static bool is_there(const struct core *core, const struct lobby *lobby, size_t i)
{
    if (!lobby_is_live(lobby))
        return lobby->row.flags[i] & LOBBY_THERE;
    return client_conn(core, lobby->players[i].account) != 0;
}

/* Who is missed for too long calls it off before its own time is up. */
static void hurry(const struct core *core, const struct lobby *lobby, struct view_lobby *ret)
{
    int64_t now_ms = deadline_now(core, DEADLINE_AWAKE);
    for (int i = 0; i < lobby->n_players; i++) {
        const struct deadline *gone = &lobby->players[i].gone;
        if (!deadline_is_set(gone))
            continue;
        int64_t wall_ms = core->now.wall_ms + deadline_at_ms(gone) - now_ms;
        if (wall_ms < ret->deadline_wall_ms)
            ret->deadline_wall_ms = wall_ms;
    }
}

bool view_lobby(const struct core *core, int64_t id, struct view_lobby *ret)
{
    const struct lobby *lobby = lobby_find(core, id);
    if (!lobby)
        return false;
    view_row_lobby(core, &lobby->row, core->now, ret);
    for (int i = 0; i < lobby->n_players; i++)
        ret->connected += is_there(core, lobby, (size_t)i);
    const struct ticket *ticket = ticket_find(core, lobby->row.ticket);
    const struct session *session =
        ticket && ticket->row.state == TICKET_DONE ? session_find(core, ticket->row.session) : NULL;
    if (lobby->row.state == LOBBY_LOADING)
        hurry(core, lobby, ret);
    if (lobby->row.state == LOBBY_LOADING && session) {
        ret->session = session->row.id;
        ret->server = session->row.server;
    }
    ret->allocated = session && session->row.state == SESSION_OPEN && session->server->conn;
    return true;
}

bool view_lobby_player(const struct core *core, int64_t lobby, size_t i,
                       struct view_lobby_player *ret)
{
    const struct lobby *l = lobby_find(core, lobby);
    if (!l || i >= (size_t)l->n_players)
        return false;
    const struct lobby_player *p = &l->players[i];
    *ret = (struct view_lobby_player){
        .account = p->account,
        .name = p->name,
        .team = p->team,
        .slot = p->slot,
        .group = p->group,
        .loaded = l->row.flags[i] & LOBBY_LOADED,
        .connected = is_there(core, l, i),
        .owed = l->row.flags[i] & LOBBY_OWED,
    };
    return true;
}

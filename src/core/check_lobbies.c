/* The invariants of lobbies. */
#include "core/check.h"
#include "core/lobby_tell.h"
#include "core/state.h"

#include <inttypes.h>

static const char *check_players(struct core *core, struct lobby *lobby)
{
    int loaded = 0;
    for (int i = 0; i < lobby->n_players; i++) {
        const struct lobby_player *p = &lobby->players[i];
        bool owed = lobby->row.flags[i] & LOBBY_OWED;
        loaded += lobby->row.flags[i] & LOBBY_LOADED;
        bool heard = owed || lobby_is_live(lobby);
        bool crowded = lobbies_heard_by(core, p->account) == LOBBY_HEARD_MAX;
        if (p->listed != heard && (p->listed || !crowded))
            return broken(core, "I7: player %d of lobby %" PRId64 " is told nothing, or too much",
                          p->account, lobby->row.id);
        if (owed && lobby_is_live(lobby))
            return broken(core, "L2: lobby %" PRId64 " lives but somebody is owed its end",
                          lobby->row.id);
        if (deadline_is_set(&p->gone) && lobby->row.state != LOBBY_LOADING)
            return broken(core, "L2: lobby %" PRId64 " waits for a player after its start",
                          lobby->row.id);
        const struct lobby_player *loading = lobby_player_loading(core, p->account);
        if (lobby->row.state == LOBBY_LOADING && loading != p)
            return broken(core, "L3: player %d loads in two lobbies", p->account);
    }
    if (loaded != lobby->loaded)
        return broken(core, "lobby %" PRId64 " counts %d loaded of %d", lobby->row.id,
                      lobby->loaded, loaded);
    return NULL;
}

/* The match of a lobby is live exactly as long as the lobby is. */
static const char *check_lobby(struct core *core, struct lobby *lobby)
{
    const struct ticket *ticket = ticket_find(core, lobby->row.ticket);
    const struct session *session = ticket ? session_find(core, ticket->row.session) : NULL;
    bool held = session && session_is_live(session);
    int64_t id = lobby->row.id;
    bool started = lobby->row.state == LOBBY_STARTED;
    if (lobby_of_number(core, lobby_number(id)) != lobby)
        return broken(core, "lobby %" PRId64 " is not found by its number", id);
    if (!started && !has_deadline(core, &lobby->deadline))
        return broken(core, "I6: lobby %" PRId64 " has no deadline ahead", id);
    if (started && (!held || session->row.id != lobby->row.session))
        return broken(core, "L1: lobby %" PRId64 " has started but its match is not there", id);
    if (!lobby_is_live(lobby) && held)
        return broken(core, "L1: lobby %" PRId64 " is over but its server holds it", id);
    if (lobby->row.state == LOBBY_LOADING && !core->read_only && core->last_tick_ms) {
        bool there = held && session->row.state == SESSION_OPEN && session->server->conn &&
                     session->server->listed;
        if (!held && !(ticket && link_in_list(&ticket->in_waiting)))
            return broken(core, "L1: lobby %" PRId64 " loads but no server is looked for", id);
        if (there && lobby->loaded == lobby->n_players)
            return broken(core, "L1: lobby %" PRId64 " could start and does not", id);
    }
    if (started && lobby->loaded != lobby->n_players)
        return broken(core, "L1: lobby %" PRId64 " started with %d of %d loaded", id, lobby->loaded,
                      lobby->n_players);
    return check_players(core, lobby);
}

const char *check_lobbies(struct core *core)
{
    CHECK_ALL(object_next(core, ROW_lobby, &at), lobby, check_lobby);
    return NULL;
}

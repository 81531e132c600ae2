/* Seats: one player's place in a session. A validated token takes one; a player has one per fleet,
 * so taking a new one moves him in the same step. A seat that was left stays on the session's list:
 * whoever was admitted once is admitted again while the match is open. */
#include "core/state.h"

#include <string.h>

static struct seat *seat_of(const struct session *session, int32_t account)
{
    LIST_EACH(&session->seats, seat, struct seat, in_session)
    {
        if (seat->row.account == account)
            return seat;
    }
    return NULL;
}

static uint64_t player_key(const struct seat *seat)
{
    return map_pair(seat->row.fleet, seat->row.account);
}

static struct seat *seat_add(struct core *core, const struct row_seat *row, struct session *session)
{
    struct seat *seat = object_alloc(core, ROW_seat);
    seat->row = *row;
    seat->session = session;
    list_append(&session->seats, &seat->in_session);
    session->admitted++;
    map_put(&core->seats, (uint64_t)row->id, seat);
    return seat;
}

static struct effect *seat_note(struct core *core, const struct seat *seat, enum note kind)
{
    const struct session *session = seat->session;
    struct effect *note = note_add(core, kind);
    note->account = seat->row.account;
    note->object = seat->row.id;
    note->session = session->row.id;
    note->ticket = session->row.ticket;
    note->lobby = session->row.lobby;
    note->server_id = session->row.server;
    note->fleet_id = seat->row.fleet;
    note->region_code = session->server->row.region;
    return note;
}

static void left_note(struct core *core, const struct seat *seat, enum seat_end end, struct str why)
{
    struct effect *note = seat_note(core, seat, NOTE_PLAYER_LEFT);
    note->reason = (int8_t)end;
    note->text = why;
}

static void leave(struct core *core, struct seat *seat, enum seat_end end, struct str why)
{
    if (seat->row.state != SEAT_TAKEN)
        return;
    left_note(core, seat, end, why);
    seat->row.state = SEAT_LEFT;
    seat->session->seated--;
    map_remove(&core->seats_by_player, player_key(seat));
    object_touch(core, &seat->object);
}

/* why is a literal. */
static void kick(struct core *core, struct seat *seat, enum seat_end end, struct str why)
{
    leave(core, seat, end, why);
    if (!seat->session->server->conn)
        return;
    struct effect *e = effect_add(core, EFFECT_KICK, seat->session->server->conn);
    e->lobby = seat->session->row.lobby;
    e->account = seat->row.account;
    e->text = why;
}

void seats_kick(struct core *core, int32_t account, struct str why)
{
    size_t at = 0;
    for (const struct fleet *fleet = NULL; (fleet = object_next(core, ROW_fleet, &at));) {
        struct seat *seat =
            map_get(&core->seats_by_player, map_pair((int32_t)fleet->row.id, account));
        if (seat)
            kick(core, seat, SEAT_END_BANNED, why);
    }
}

static void sit(struct core *core, struct seat *seat)
{
    if (seat->row.state == SEAT_TAKEN)
        return;
    struct seat *old = map_get(&core->seats_by_player, player_key(seat));
    if (old)
        kick(core, old, SEAT_END_MOVED, STR("Joined another match"));
    seat->row.state = SEAT_TAKEN;
    seat->session->seated++;
    map_put(&core->seats_by_player, player_key(seat), seat);
    object_touch(core, &seat->object);
    (void)seat_note(core, seat, NOTE_PLAYER_ENTERED);
}

/* A lobby knows who belongs to its match; of others only how many do is known. */
static int may_enter(const struct core *core, const struct session *session, int32_t account,
                     bool first)
{
    const struct lobby *lobby = lobby_of_session(core, session);
    int64_t since_ms = core->now.core_ms - session->row.created_core_ms;
    if (lobby)
        return lobby_admits(core, lobby, account, first);
    if (first && since_ms > core->config.timeouts.token_ms)
        return ERR_MATCH_TOKEN_EXPIRED;
    bool full = session->admitted >= session->row.player_count;
    return first && full ? ERR_NOT_PART_OF_MATCH : 0;
}

static int admit(struct core *core, struct session *session,
                 const struct chat_sv_validate_token *validate)
{
    /* One that is LOST is held after all when its server asks. */
    bool open =
        session && (session->row.state == SESSION_OPEN || session->row.state == SESSION_LOST);
    /* The token is compared first: an unknown match must take as long as a wrong token. */
    if (!token_matches(core, open ? &session->row : NULL, validate->match_token) || !open)
        return ERR_INVALID_MATCH_TOKEN;
    if (ban_of_chat(core, validate->account))
        return ERR_NOT_PART_OF_MATCH;

    struct seat *seat = seat_of(session, validate->account);
    int err = may_enter(core, session, validate->account, !seat);
    if (err)
        return err;
    if (!seat) {
        struct row_seat row = {
            .id = object_new_id(core, ROW_seat),
            .session = session->row.id,
            .fleet = session->row.fleet,
            .account = validate->account,
            .state = SEAT_LEFT,
        };
        seat = seat_add(core, &row, session);
    }
    sit(core, seat);
    return 0;
}

void seat_validate(struct core *core, struct server *server,
                   const struct chat_sv_validate_token *validate)
{
    int err = admit(core, session_here(core, server, validate->lobby), validate);
    if (err) {
        struct effect *note = note_refused(core, server->conn, err);
        note->lobby = validate->lobby;
        note->account = validate->account;
    }
    struct effect *e = effect_add(core, EFFECT_VALIDATE, server->conn);
    e->err = err;
    e->lobby = validate->lobby;
    e->account = validate->account;
}

bool seat_is_taken(const struct core *core, const struct server *server,
                   const struct chat_sv_validate_token *validate)
{
    const struct session *session = session_here(core, server, validate->lobby);
    const struct seat *seat = session ? seat_of(session, validate->account) : NULL;
    return seat && seat->row.state == SEAT_TAKEN;
}

void seat_left(struct core *core, struct server *server, int32_t lobby, int32_t account)
{
    struct session *session = session_here(core, server, lobby);
    struct seat *seat = session ? seat_of(session, account) : NULL;
    if (seat)
        leave(core, seat, SEAT_END_LEFT, STR("left"));
}

void seat_unlink(struct core *core, struct seat *seat)
{
    if (seat->row.state == SEAT_TAKEN) {
        map_remove(&core->seats_by_player, player_key(seat));
        seat->session->seated--;
    }
    map_remove(&core->seats, (uint64_t)seat->row.id);
    list_remove(&seat->in_session);
    seat->session->admitted--;
}

void seats_release(struct core *core, struct session *session)
{
    LIST_EACH(&session->seats, seat, struct seat, in_session)
    {
        if (seat->row.state == SEAT_TAKEN)
            left_note(core, seat, SEAT_END_ROOM, STR("the match is over"));
        seat_unlink(core, seat);
        object_delete(core, &seat->object);
    }
}

int seat_load_row(struct core *core, const struct row_seat *row)
{
    struct session *session = session_find(core, row->session);
    if (!session || !session_is_live(session) ||
        (row->state != SEAT_TAKEN && row->state != SEAT_LEFT))
        return ERR_FORMAT;
    struct seat *seat = seat_add(core, row, session);
    seat->object.stored = true;
    if (row->state == SEAT_TAKEN && map_get(&core->seats_by_player, player_key(seat)))
        return ERR_FORMAT; /* I3 */
    if (row->state == SEAT_TAKEN) {
        session->seated++;
        map_put(&core->seats_by_player, player_key(seat), seat);
    }
    return 0;
}

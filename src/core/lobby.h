/* Lobbies: the players of an accepted match, loading, before it starts. Visible inside src/core
 * only.
 *
 * What a lobby does next follows from what is true, not from what happened last: whatever may
 * matter to it (its ticket, its match, its server, a player's word) puts it on a list, and at the
 * end of the step lobbies_settle looks at each of them once. So both orders, all loaded and then a
 * server or a server and then all loaded, are one. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/effect.h"
#include "core/lobby_roster.h"
#include "core/object.h"

struct chat_server;
struct fleet;
struct session;
struct ticket;

/*            a server is there, all have loaded          its match is over
 *   LOADING ───────────────────────────────────▶ STARTED ─────────────────▶ ENDED
 *      │
 *      │ no server, too late, a player gone, somebody
 *      ▼
 *   ABORTED                          a final one is kept for keep_ms, then deleted
 */
enum lobby_state { LOBBY_LOADING = 1, LOBBY_STARTED, LOBBY_ENDED, LOBBY_ABORTED, LOBBY_STATES };

/* Of one player. Stored. */
enum lobby_flag {
    LOBBY_LOADED = 1,
    LOBBY_OWED = 2,  /* that it is over he has not been told */
    LOBBY_THERE = 4, /* he was connected when it was over */
};

enum {
    LOBBY_ID_FIRST = 1 << 30, /* below it are those of chat servers */
    LOBBY_MOVES_MAX = 5,      /* servers lost before the start, until it is given up */
    LOBBY_CHANGES_MAX = 32,   /* of a player's loading status on one connection, until it is cut */
    LOBBY_HEARD_MAX = 16,     /* lobbies that a player is told of when he comes: the newest */
};

struct lobby {
    struct object object;
    struct row_lobby row;
    struct fleet *fleet;
    struct lobby_roster *roster;
    struct lobby_player *players;
    int8_t n_players;
    int8_t loaded;      /* … of them */
    int64_t asked_us;   /* the door's clock when it was created; 0 = before this process */
    int64_t sent_batch; /* the batch that what is owed was last sent with */
    struct deadline deadline;
    struct link in_due;
    struct link in_sent;
    struct link in_finished;
};

/* CREATE_LOBBY and ABORT_LOBBY: 0 and the lobby it was about, or why not. */
int operate_lobby(struct core *core, const struct operate *o, int64_t *ret_object);

/* One for players and a fleet that were judged; its id. */
int64_t lobby_create(struct core *core, struct fleet *fleet, const struct lobby_wanted *wanted);

/* A loading one is called off: everybody is told so, and its server is given back. */
void lobby_abort(struct core *core, struct lobby *lobby, enum lobby_cause cause, int err,
                 struct str reason);

/* What players and servers know a lobby by: its id, until a thousand million of them were. */
int32_t lobby_number(int64_t id);

struct lobby *lobby_find(const struct core *core, int64_t id);
struct lobby *lobby_of_number(const struct core *core, int32_t number);

/* The lobby whose match that is; NULL for one of an external chat server. */
struct lobby *lobby_of_session(const struct core *core, const struct session *session);

/* The player of that account, or NULL. */
struct lobby_player *lobby_player_of(const struct lobby *lobby, int32_t account);
uint8_t *lobby_flags_of(struct lobby *lobby, const struct lobby_player *player);
bool lobby_is_live(const struct lobby *lobby);

/* His place in the lobby he is loading in, of which there is one at most; NULL = none. */
struct lobby_player *lobby_player_loading(const struct core *core, int32_t account);

/* Something changed for it; see above. */
void lobby_due(struct core *core, struct lobby *lobby);
void lobbies_settle(struct core *core);

/* News of tickets, matches and servers; those of external chat servers are no business of ours. */
void lobby_ticket_moved(struct core *core, const struct ticket *ticket);
void lobby_match_event(struct core *core, struct session *session, enum match_event event,
                       struct str text);
void lobby_server_changed(struct core *core, const struct session *session);

/* EVENT_LOADING, from whoever is on that connection. */
void lobby_loading(struct core *core, conn_id conn, int32_t account,
                   const struct chat_cl_player_loading_status *status);

/* A player has come, or is gone. */
void lobbies_client_came(struct core *core, int32_t account);
void lobbies_client_gone(struct core *core, int32_t account);

/* He is banned: he will not be back. */
void lobbies_client_banned(struct core *core, int32_t account);

/* May he enter its match now? 0, or why not; first: he has not been admitted before. */
int lobby_admits(const struct core *core, const struct lobby *lobby, int32_t account, bool first);

void lobby_deadline(struct core *core, struct lobby *lobby);
void lobby_player_deadline(struct core *core, struct lobby_player *player);

/* Keeps to the limit of finished ones, at the end of a step. */
void lobbies_forget_oldest(struct core *core);

int lobby_load_row(struct core *core, const struct row_lobby *row);
int lobbies_loaded(struct core *core); /* 0 or ERR_FORMAT */
void lobby_done(struct lobby *lobby);
void lobbies_take_over(struct core *fresh, const struct core *old);

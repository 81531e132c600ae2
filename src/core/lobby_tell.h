/* What players are told of their lobbies. Visible inside src/core only.
 *
 * That a lobby is there, or has started, is told to each connection: at once, or when he comes.
 * That it was aborted is owed to each player until it has left with a batch. */
#pragma once

#include "core/core.h"
#include "core/lobby.h"

void lobby_tell_created(struct core *core, struct lobby *lobby);
void lobby_tell_loading(struct core *core, struct lobby *lobby, const struct lobby_player *player);
void lobby_tell_started(struct core *core, struct lobby *lobby);

/* Everybody is owed that it is over; who is there is told. */
void lobby_tell_over(struct core *core, struct lobby *lobby);

/* He has just connected: all he should know. */
void lobbies_tell_client(struct core *core, int32_t account, conn_id conn);

/* His connection is gone: what was sent on it and has not left with a batch may not have arrived.
 */
void lobbies_unsent(struct core *core, int32_t account);

/* He is told nothing more of it, unless he is owed something. */
void lobby_unlist_player(struct core *core, struct lobby_player *player);
void lobby_list_player(struct core *core, struct lobby_player *player);

/* How many of his lobbies have something to say to him: at most LOBBY_HEARD_MAX, the newest. */
int lobbies_heard_by(const struct core *core, int32_t account);

/* Called by core_left and core_seal, as sessions_events_leave and sessions_events_left. */
void lobbies_told_leave(struct core *core);
void lobbies_told_left(struct core *core);

/* After a failed commit: that effect never left. Says it again if it is still true. */
void lobby_tell_again(struct core *fresh, const struct effect *lost);

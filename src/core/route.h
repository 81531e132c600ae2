/* Routes: what a proxy in front of game servers knows players by. A token stands for one seat and
 * is never on two endpoints, for a proxy sends a packet to every endpoint that has its token.
 * Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/effect.h"
#include "core/view.h"

struct fleet;
struct room;
struct room_seat;

/* The token of a player's seat in that fleet, as text: the same for as long as it is asked for. */
void route_token(const struct core *core, const struct fleet *fleet, int64_t seat,
                 struct str account, char dst[ROUTE_TOKEN_SIZE]);

/* The seat of another player, or of this one in another fleet, that has the token which he would
 * get, or NULL. */
struct room_seat *route_taken(struct core *core, const struct fleet *fleet, struct str account);

/* … that has the token of this seat, or NULL. */
struct room_seat *route_shared(struct core *core, const struct room_seat *seat);

/* True when two players who come together to that fleet would have one token. */
bool route_is_same(const struct fleet *fleet, struct str a, struct str b);

/* A seat came to be, or goes. */
void route_added(struct core *core, struct room_seat *seat);
void route_removed(struct core *core, struct room_seat *seat);

/* A cluster's proxy is told. */
void route_tell(struct core *core, const struct room_seat *seat, bool on);

/* For whom a room is started: so that its proxy lets them in from the beginning. */
void route_spawn(struct core *core, const struct room *room, struct spawn *s);

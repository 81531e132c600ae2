/* Which kind of routing token the seats of a fleet have, and whether they have a key. A seat keeps
 * what it was given, and so does the result that named it: a proxy, a game server and the player
 * know him by it, whatever the configuration says later. Seats are told apart by their ids, which
 * only grow. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "core/core.h"
#include "core/object.h"

struct fleet;

/* From a seat on, up to the next one of its fleet. */
struct token_mode {
    struct object object;
    struct row_token_mode row;
    struct link in_fleet; /* by from_seat */
};

/* That of a seat of the fleet, also of one that is gone. */
enum fleet_token token_mode_of(const struct fleet *fleet, int64_t seat);

/* Game servers of agents ask for a key, those of a cluster do not. */
bool token_mode_has_key(const struct fleet *fleet, int64_t seat);

/* That of seats which are made from now on. */
enum fleet_token token_mode_now(const struct fleet *fleet);

/* After fleets were configured: what each is configured with holds for seats from now on. Until
 * then, and so while nothing can be stored, what held before does. */
void token_modes_settle(struct core *core);

int token_mode_load_row(struct core *core, const struct row_token_mode *row);

/* Placing: players who want seats in rooms. Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/rate.h"

/* EVENT_PLACE: answered with EFFECT_PLACED, at once or when the room has opened. */
void place(struct core *core, conn_id conn, const struct place *p);

/* Which of a player's rates a request of that kind counts for. */
enum rate_kind place_rate(enum place_verb verb);

/* True when it only asks again for what is settled, so that nothing has to be stored. */
bool place_is_settled(const struct core *core, const struct place *p);

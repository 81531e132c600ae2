/* Placing: players who want seats in rooms. Visible inside src/core only. */
#pragma once

#include "core/core.h"

/* EVENT_PLACE: answered with EFFECT_PLACED, at once or when the room has opened. */
void place(struct core *core, conn_id conn, const struct place *p);

/* True when it only asks again for what is settled, so that nothing has to be stored. */
bool place_is_settled(const struct core *core, const struct place *p);

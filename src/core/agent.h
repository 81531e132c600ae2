/* What happens on hosts, as their agents tell it. Visible inside src/core only. */
#pragma once

#include "core/core.h"

/* EVENT_AGENT: answered with EFFECT_AGENT. */
void agent_event(struct core *core, conn_id conn, const struct agent_event *e);

/* True when it only asks, or repeats what was taken, so that nothing has to be stored. */
bool agent_event_changes_nothing(const struct core *core, const struct agent_event *e);

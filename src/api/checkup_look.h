/* Gathers the facts for a checkup from core, the store, the metrics and the links to others, and
 * has them judged. */
#pragma once

#include "api/resource_insight.h"
#include "api/rest.h"
#include "base/arena.h"

/* What it found lies in the arena. */
struct checkup_answer checkup_look(const struct rest *r, struct arena *arena);

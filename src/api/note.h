/* Core's decisions as lines of the log. */
#pragma once

#include "core/effect.h"

/* One line for an EFFECT_NOTE, with the ids it has. peer is the address of its connection, or NULL.
 * Credentials are never printed. */
void note_log(const struct effect *e, const char *peer);

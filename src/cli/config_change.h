/* What differs between two configurations, one line of the log each: a reload says what changed and
 * what cannot change while Muster runs. */
#pragma once

#include "cli/config.h"

/* Logs every difference that takes effect, keeps in *new what only a restart can change (and logs
 * that), and returns how many differences took effect. Hashes are all that is said about tokens. */
int config_change(const struct config *old, struct config *new);

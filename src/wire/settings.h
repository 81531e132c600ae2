/* Settings: the JSON object that describes a room, as text. Always written the same way (keys
 * sorted, no spaces), so that equal settings are equal bytes. Pure functions. */
#pragma once

#include "base/buf.h"
#include "base/json.h"

enum { SETTINGS_MAX = 48 * 1024, SETTINGS_WHY_MAX = 200 };

/* Appends text, which must be a JSON object within JSON's limits and SETTINGS_MAX, in its one form.
 * An empty text is {}. 0, or ERR_BAD_ARGUMENT with a sentence. */
int settings_take(struct str text, struct buf *out, char why[SETTINGS_WHY_MAX]);

/* Appends `base` with the members of `over` put over its own, one level deep. Both are settings. 0,
 * or ERR_BAD_ARGUMENT with a sentence when it gets too long. */
int settings_merge(struct str base, struct str over, struct buf *out, char why[SETTINGS_WHY_MAX]);

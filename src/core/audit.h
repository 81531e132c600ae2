/* The audit: who changed what, and when. Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/object.h"

struct audit {
    struct object object;
    struct row_audit row;
};

/* One more line; the oldest beyond the limit go. player: whom it is about, for its note; in the
 * batch's arena, or empty. */
void audit_add(struct core *core, const struct operate *o, int64_t target, struct str player);

/* The verb in words; see audit_target_kind in view.h. */
const char *audit_action(int8_t verb);

struct audit *audit_load_row(struct core *core, const struct row_audit *row);

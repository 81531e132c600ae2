/* The audit: who changed what, and when. Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/object.h"

struct audit {
    struct object object;
    struct row_audit row;
};

/* One more line; the oldest beyond the limit go. */
void audit_add(struct core *core, const struct operate *o, int64_t target);

/* The verb in words, and the kind of thing it is about ("" = none). */
const char *audit_action(int8_t verb);
const char *audit_target_kind(int8_t verb);

struct audit *audit_load_row(struct core *core, const struct row_audit *row);

/* What operators do. Visible inside src/core only. */
#pragma once

#include "core/core.h"

void operate(struct core *core, conn_id conn, const struct operate *o);

/* The configuration was read again. */
void operate_configure(struct core *core, const struct core_config *config);

/* On a tick, when changes can be stored: rows for fleets that are new, the audit of a change. */
void operate_settle(struct core *core);

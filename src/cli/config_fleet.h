/* Fleets of the configuration file: what core needs to know of each, and how the servers of those
 * that agents run are started. Nothing here is kept. */
#pragma once

#include "cli/config_take.h"

/* Replaces fleets and launches when the document has a list of them. Regions must be there. */
void config_take_fleets(struct reading *r, const struct doc *doc);

/* What can only be judged when timeouts are there too. */
void config_check_fleets(struct reading *r, const struct doc *doc);

/* NULL when there is none of that name. */
const struct fleet_config *config_find_fleet(const struct core_config *core, const char *name);

/* Fleets of the effective configuration for people; see config_show.h. */
#pragma once

#include "cli/config.h"
#include "cli/config_print.h"

/* One entry of the list `fleets`. */
void config_show_fleet(struct shown *s, const struct config *config, size_t i);

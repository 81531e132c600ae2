/* How a node is called and reached by others: what the configuration says, or where it listens.
 * Pure functions; nothing is owned. */
#pragma once

#include "api/service.h"
#include "cli/config.h"
#include "store/cell.h"
#include "store/store.h"

#include <stdbool.h>

/* "10.0.0.1:11032", "[::1]:11032" or "node1.example:11032". */
bool advertise_is_address(const char *text);

/* What a node may be called: 1 to 63 of A-Z a-z 0-9 . _ -. */
bool advertise_is_name(const char *text);

/* Fills in the addresses of *ret. One that is not said is where that port listens; where that is
 * every address, the host that is said for HTTP, or one that another port listens on, has to do.
 * False with a sentence when there is none. */
bool advertise_find(const struct config *config, const struct service_ports *bound,
                    struct cell_node *ret, struct why *why);

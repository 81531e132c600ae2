/* The front of a node, leading or not: how many connections of each kind there may be, and the
 * ports on which they come. Nothing is owned. */
#pragma once

#include "api/door.h"
#include "api/rest.h"
#include "api/service.h"
#include "net/loop.h"

#include <stdbool.h>
#include <stddef.h>

/* How many connections of each kind there may be. */
struct front_places {
    size_t http;
    struct loop_limits servers; /* and chat servers */
    struct loop_limits players;
    size_t both; /* at most, servers and players together */
};

/* As the configuration wishes and the system allows. False with a sentence when there are too few
 * descriptors to serve anybody. */
bool front_share(const struct service_config *c, struct front_places *ret,
                 char why[SERVICE_WHY_MAX]);

/* Opens the chat ports. 0, or ERR_IO with a sentence. */
int front_open(struct doors *d, struct loop_crowd *players, const struct service_config *c,
               char why[SERVICE_WHY_MAX]);

/* Where they listen. */
void front_ports(const struct doors *d, const struct rest *r, struct service_ports *ret);

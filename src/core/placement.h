/* Placement: which server is best. Visible inside src/core only. */
#pragma once

#include "base/heap.h"

struct core;
struct server;
struct ticket;

/* The best server for the ticket among those not tried yet, or NULL. */
struct server *placement_choose(struct core *core, struct ticket *ticket);

/* True when somebody could take it who does not hold it. */
bool placement_could(struct core *core, const struct ticket *ticket);

/* True when a server that was not tried yet may be back soon and have room for it: none is
 * concluded to be gone before its time to report after a start is over. */
bool placement_awaits(const struct core *core, const struct ticket *ticket);

/* Order of the heap of candidates: the better server is less. */
bool placement_better(const struct heap_node *a, const struct heap_node *b);
double placement_score(const struct server *server);

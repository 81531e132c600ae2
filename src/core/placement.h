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

/* Order of the heap of candidates: the better server is less. */
bool placement_better(const struct heap_node *a, const struct heap_node *b);
double placement_score(const struct server *server);

/* Seeking: the request of an envelope, from whichever door, as the event that core takes. The same
 * request gives the same digest at every door, so a repeat may come through another one. Owns
 * nothing: what is filled points into the request, which must outlive the step. */
#pragma once

#include "core/event.h"
#include "wire/envelope.h"

struct core_config;
struct geo;

enum { SEEKING_WHY_MAX = 128 };

/* Fills *ret but for bus. `from` is the player's address as text, or empty; geo may be NULL. 0, or
 * ERR_REGION_NOT_SUPPORTED with a sentence for a Failure. Latencies to regions that we do not have
 * are passed over: clients remember what they have measured once. */
int seeking_fill(const struct core_config *config, const struct geo *geo,
                 const struct envelope_request *r, struct str from, struct seek *ret,
                 char why[SEEKING_WHY_MAX]);

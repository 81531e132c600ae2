/* Regions on the map: which one a player belongs to, and which is nearest to another. Visible
 * inside src/core only. */
#pragma once

#include "core/core.h"

/* The regions of `allowed` (a bit per code; 0 = every configured one) that are configured. */
uint64_t regions_allowed(const struct core *core, uint64_t allowed);

/* Where the player belongs among those: the given one; else where his latency is lowest; else the
 * nearest to him; else the default; else the first. -1 when there is none. */
int8_t region_choose(const struct core *core, uint64_t allowed, const struct place *p);

/* Those regions, the given one first (when it is among them), then by their distance from it, then
 * those that are not on the map. Returns how many. */
int regions_by_distance(const struct core *core, uint64_t allowed, int8_t from,
                        int8_t ret[REGION_CODES]);

/* "" for a code that is not configured. */
const char *region_name(const struct core *core, int8_t code);

/* Regions on the map: which one a player belongs to, and which is nearest to another. Visible
 * inside src/core only. */
#pragma once

#include "core/core.h"

struct fleet;
struct ticket_regions;

/* The regions of `allowed` (a bit per code; 0 = every configured one) that are configured. */
uint64_t regions_allowed(const struct core *core, uint64_t allowed);

/* Where the player belongs among those: the given one; else where his latency is lowest; else the
 * nearest to him; else the default; else the first. -1 when there is none. */
int8_t region_choose(const struct core *core, uint64_t allowed, const struct place *p);

/* Those regions, the given one first (when it is among them), then by their distance from it, then
 * those that are not on the map. Returns how many. */
int regions_by_distance(const struct core *core, uint64_t allowed, int8_t from,
                        int8_t ret[REGION_CODES]);

/* Regions in which a request may be placed, the best first. */
struct region_order {
    int8_t codes[REGION_CODES];
    int n;
    bool elsewhere; /* those behind the first are all where its fleet may run, by distance */
};

/* What a request of that fleet may have: its own regions, or when it has none (NULL) `first` and,
 * where the fleet allows them, the others. */
void regions_in_order(const struct core *core, const struct fleet *fleet, int8_t first,
                      const struct ticket_regions *own, struct region_order *ret);

/* True when that region is one of those. */
bool region_is_open_to(const struct fleet *fleet, int8_t first, const struct ticket_regions *own,
                       int8_t code);

enum { REGIONS_TEXT_MAX = 96 };

/* "EU", "ASIA, USE or EU", "EU or elsewhere". */
void regions_print(const struct core *core, const struct region_order *order,
                   char dst[REGIONS_TEXT_MAX]);

/* "" for a code that is not configured. */
const char *region_name(const struct core *core, int8_t code);

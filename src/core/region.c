#include "core/region.h"

#include "core/state.h"

#include <math.h>

static const double degree = 3.14159265358979323846 / 180;

/* Great-circle distance on a sphere of radius one (haversine): only compared, never shown. */
static double distance(double latitude_a, double longitude_a, double latitude_b, double longitude_b)
{
    double dlat = sin((latitude_b - latitude_a) * degree / 2);
    double dlon = sin((longitude_b - longitude_a) * degree / 2);
    double h = dlat * dlat + cos(latitude_a * degree) * cos(latitude_b * degree) * dlon * dlon;
    return 2 * asin(sqrt(h < 1 ? h : 1));
}

const char *region_name(const struct core *core, int8_t code)
{
    return code >= 0 && code < REGION_CODES ? core->config.regions[code].name : "";
}

uint64_t regions_allowed(const struct core *core, uint64_t allowed)
{
    uint64_t configured = 0;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (region_configured(core, code))
            configured |= (uint64_t)1 << code;
    }
    return allowed ? allowed & configured : configured;
}

static int8_t of_latencies(uint64_t allowed, const struct place *p)
{
    int8_t best = -1;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (is_bit(allowed & p->latencies, code) &&
            (best < 0 || p->latency_ms[code] < p->latency_ms[best]))
            best = code;
    }
    return best;
}

static int8_t nearest(const struct core *core, uint64_t allowed, const struct place *p)
{
    int8_t best = -1;
    double best_distance = 0;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        const struct region_config *region = &core->config.regions[code];
        if (!is_bit(allowed, code) || !region->located)
            continue;
        double d = distance(p->latitude, p->longitude, region->latitude, region->longitude);
        if (best < 0 || d < best_distance) {
            best = code;
            best_distance = d;
        }
    }
    return best;
}

int8_t region_choose(const struct core *core, uint64_t allowed, const struct place *p)
{
    uint64_t mask = regions_allowed(core, allowed);
    if (p->region >= 0)
        return region_configured(core, p->region) ? p->region : -1;
    int8_t chosen = of_latencies(mask, p);
    if (chosen < 0 && p->located)
        chosen = nearest(core, mask, p);
    if (chosen < 0 && is_bit(mask, core->config.default_region))
        chosen = core->config.default_region;
    if (chosen < 0 && mask)
        chosen = (int8_t)__builtin_ctzll(mask);
    return chosen;
}

/* How far a region is from another; unknown places are further than all others. */
static double between(const struct core *core, int8_t from, int8_t to)
{
    const struct region_config *a = &core->config.regions[from];
    const struct region_config *b = &core->config.regions[to];
    if (from == to)
        return -1;
    return a->located && b->located ? distance(a->latitude, a->longitude, b->latitude, b->longitude)
                                    : HUGE_VAL;
}

int regions_by_distance(const struct core *core, uint64_t allowed, int8_t from,
                        int8_t ret[REGION_CODES])
{
    uint64_t mask = regions_allowed(core, allowed);
    double far[REGION_CODES];
    int n = 0;
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (!is_bit(mask, code))
            continue;
        double d = from < 0 ? 0 : between(core, from, code);
        int at = n++;
        for (; at > 0 && far[at - 1] > d; at--) {
            far[at] = far[at - 1];
            ret[at] = ret[at - 1];
        }
        far[at] = d;
        ret[at] = code;
    }
    return n;
}

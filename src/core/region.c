#include "core/region.h"

#include "core/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { REGIONS_NAMED = 4 }; /* more are only counted */

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

void regions_in_order(const struct core *core, const struct fleet *fleet, int8_t first,
                      const struct ticket_regions *own, struct region_order *ret)
{
    const struct fleet_config *config = fleet->config;
    uint64_t allowed = regions_allowed(core, config ? config->regions : 0);
    *ret = (struct region_order){.elsewhere = !own && config && config->other_regions};
    if (ret->elsewhere) {
        uint64_t here = first >= 0 ? UINT64_C(1) << first : 0;
        ret->n = regions_by_distance(core, allowed | here, first, ret->codes);
    } else if (!own && region_configured(core, first)) {
        ret->codes[ret->n++] = first;
    }
    for (int i = 0; own && i < own->row.codes_len; i++) {
        if (region_configured(core, (int8_t)own->row.codes[i]))
            ret->codes[ret->n++] = (int8_t)own->row.codes[i];
    }
}

bool region_is_open_to(const struct fleet *fleet, int8_t first, const struct ticket_regions *own,
                       int8_t code)
{
    if (own)
        return is_bit(own->mask, code);
    return code == first || (fleet->config && fleet->config->other_regions);
}

static const char *before_region(const struct region_order *order, int i)
{
    return i == 0 ? "" : i == order->n - 1 ? " or " : ", ";
}

void regions_print(const struct core *core, const struct region_order *order,
                   char dst[REGIONS_TEXT_MAX])
{
    int named = order->elsewhere && order->n > 1 ? 1 : order->n;
    size_t len = 0;
    dst[0] = '\0';
    for (int i = 0; i < named && i < REGIONS_NAMED && len < REGIONS_TEXT_MAX; i++)
        len += (size_t)snprintf(dst + len, REGIONS_TEXT_MAX - len, "%s%.32s",
                                before_region(order, order->elsewhere ? 0 : i),
                                region_name(core, order->codes[i]));
    if (len >= REGIONS_TEXT_MAX)
        return;
    if (order->elsewhere && order->n > 1)
        (void)snprintf(dst + len, REGIONS_TEXT_MAX - len, " or elsewhere");
    else if (named > REGIONS_NAMED)
        (void)snprintf(dst + len, REGIONS_TEXT_MAX - len, " or %d others", named - REGIONS_NAMED);
    else if (named == 0)
        (void)snprintf(dst, REGIONS_TEXT_MAX, "any region");
}

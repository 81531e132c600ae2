/* Fleets and regions, and the candidates of one fleet in a region. Visible inside src/core only. */
#pragma once

#include "base/heap.h"
#include "core/core.h"
#include "core/object.h"
#include "core/view.h"

/* The servers of one fleet in one region. */
struct group {
    struct heap placeable; /* best on top */
    int32_t count[PASSED_REASONS];
};

struct fleet {
    struct object object;
    struct row_fleet row;
    const struct fleet_config *config; /* NULL: taken out of the configuration, so it drains */
    struct group groups[REGION_CODES];
};

struct fleet *fleet_find(const struct core *core, int64_t id);
struct fleet *fleet_find_named(const struct core *core, const char *name);
struct fleet *fleet_named(struct core *core, const char *name); /* made when absent */
struct fleet *fleet_load_row(struct core *core, const struct row_fleet *row);
void fleet_free(struct fleet *fleet);
bool region_configured(const struct core *core, int8_t code);

/* A set of regions is a bit per code. */
static inline bool is_bit(uint64_t mask, int8_t code)
{
    return code >= 0 && code < REGION_CODES && (mask >> code & 1);
}

/* Fleets and regions, and the candidates of one fleet in a region. Visible inside src/core only. */
#pragma once

#include "base/heap.h"
#include "base/list.h"
#include "core/core.h"
#include "core/object.h"
#include "core/view.h"

/* What one server adds to the sums of its group, in whole numbers so that taking it away again is
 * exact: ratios in millionths, percents in hundredths. */
struct share {
    int8_t status; /* enum server_status */
    bool connected;
    bool awaited; /* it may be back soon, with room for more */
    int32_t load;
    int32_t max;
    int32_t open;
    int32_t cpu_centi;
    int32_t memory_centi;
    int64_t ratio_ppm;
};

/* The servers of one fleet in one region. The sums are kept up, so that looking costs nothing. */
struct group {
    struct heap placeable; /* best on top */
    int32_t count[PASSED_REASONS];
    int32_t status[4]; /* by enum server_status */
    int32_t connected;
    int32_t awaited;
    int64_t slots_used; /* this and the next: of those not Offline */
    int64_t slots_total;
    int64_t open;
    int64_t cpu_centi; /* this and the rest: of those connected */
    int64_t memory_centi;
    int64_t ratio_ppm;
    __int128 ratio_square; /* ppm²: a server may report any load */
};

/* Adds the share (sign 1) or takes it away (sign -1). */
void group_count(struct group *group, const struct share *share, int sign);

struct fleet {
    struct object object;
    struct row_fleet row;
    const struct fleet_config *config; /* NULL: taken out of the configuration, so it drains */
    struct group groups[REGION_CODES];
    struct list tickets_waiting; /* for servers that are awaited, oldest first */
    uint64_t stirred;            /* regions where one of them may find a server by now */
    uint64_t deserted;           /* … where hardly anybody is awaited any more */
    struct list versions;        /* those with a row, by id */
    struct list deployments;
    struct list token_modes; /* by the seat from which they hold */
    struct list allocating;  /* tickets of rooms that are started for allocations */
    struct queue *queue;     /* those who wait for any place; NULL = nobody ever did */
    struct list held;        /* rooms with seats that are held for somebody in line */

    /* Of those in that line: players who may play in a region of their own request; the others by
     * their first region, and in all; and how many come as a party. */
    int32_t lined_own[REGION_CODES];
    int32_t lined_near[REGION_CODES];
    int32_t lined_near_all;
    int32_t lined_parties;
};

struct fleet *fleet_find(const struct core *core, int64_t id);
struct fleet *fleet_find_named(const struct core *core, const char *name);
struct fleet *fleet_named(struct core *core, const char *name); /* made when absent */
struct fleet *fleet_load_row(struct core *core, const struct row_fleet *row);
void fleet_free(struct fleet *fleet);
bool fleet_is_configured(const struct core *core, struct str name);

/* After a change of the configuration: which fleets are still in it. */
void fleets_configure(struct core *core);

/* Makes those that are in the configuration and were never seen, and keeps what of the
 * configuration must outlive it. */
void fleets_make(struct core *core);
bool region_configured(const struct core *core, int8_t code);

/* A set of regions is a bit per code. */
static inline bool is_bit(uint64_t mask, int8_t code)
{
    return code >= 0 && code < REGION_CODES && (mask >> code & 1);
}

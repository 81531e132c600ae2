/* Regions that a request has of its own: the one it named, or those it measured. They are kept with
 * the request, for it may wait in line or try another host over a restart. Visible inside src/core
 * only. */
#pragma once

#include "core/core.h"
#include "core/object.h"

struct ticket_regions {
    struct object object;
    struct row_ticket_regions row; /* the id is that of a room's ticket or of an allocation */
    uint64_t mask;                 /* the same regions as bits */
};

/* Fills *ret with the regions that the request says itself; `first` is region_choose's, `alone`: a
 * region that is named is the only one. False when its fleet decides where else it may go. */
bool ticket_regions_read(const struct core *core, uint64_t allowed, const struct place *p,
                         int8_t first, bool alone, struct ticket_regions *ret);

/* Keeps a copy for the request of that id. NULL gives NULL. */
struct ticket_regions *ticket_regions_keep(struct core *core, int64_t id,
                                           const struct ticket_regions *regions);

/* The request needs them no more. NULL is fine. */
void ticket_regions_forget(struct core *core, struct ticket_regions *regions);

int ticket_regions_load_row(struct core *core, const struct row_ticket_regions *row);

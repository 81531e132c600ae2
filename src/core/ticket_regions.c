#include "core/ticket_regions.h"

#include "base/plant.h"
#include "core/state.h"

#include <string.h>

static void region_add(struct ticket_regions *r, int8_t code)
{
    r->row.codes[r->row.codes_len++] = (uint8_t)code;
    r->mask |= UINT64_C(1) << code;
}

/* Measured regions, the lowest latency first; equal ones by their codes. */
static void measured_add(uint64_t mask, const struct place *p, struct ticket_regions *r)
{
    for (int8_t code = 0; code < REGION_CODES; code++) {
        if (!is_bit(mask & p->latencies, code))
            continue;
        region_add(r, code);
        int at = r->row.codes_len - 1;
        for (; at > 0 && p->latency_ms[r->row.codes[at - 1]] > p->latency_ms[code]; at--)
            r->row.codes[at] = r->row.codes[at - 1];
        r->row.codes[at] = (uint8_t)code;
    }
}

bool ticket_regions_read(const struct core *core, uint64_t allowed, const struct place *p,
                         int8_t first, bool alone, struct ticket_regions *ret)
{
    bool named = p->region >= 0;
    *ret = (struct ticket_regions){0};
    if (p->my_region_only || (named && alone))
        region_add(ret, first);
    else if (!named)
        measured_add(regions_allowed(core, allowed), p, ret);
    return ret->row.codes_len > 0;
}

static struct ticket_regions *regions_enter(struct core *core, const struct row_ticket_regions *row)
{
    struct ticket_regions *r = xcalloc(1, sizeof(*r));
    r->object.kind = ROW_ticket_regions;
    r->row = *row;
    for (int i = 0; i < row->codes_len; i++)
        r->mask |= UINT64_C(1) << row->codes[i];
    object_enter(core, &r->object);
    return r;
}

struct ticket_regions *ticket_regions_keep(struct core *core, int64_t id,
                                           const struct ticket_regions *regions)
{
    if (!regions || PLANTED(region_not_kept))
        return NULL;
    struct row_ticket_regions row = regions->row;
    row.id = id;
    struct ticket_regions *kept = regions_enter(core, &row);
    object_touch(core, &kept->object);
    return kept;
}

void ticket_regions_forget(struct core *core, struct ticket_regions *regions)
{
    if (regions)
        object_delete(core, &regions->object);
}

static bool is_damaged(const struct row_ticket_regions *row)
{
    uint64_t seen = 0;
    for (int i = 0; i < row->codes_len; i++) {
        if (row->codes[i] >= REGION_CODES || is_bit(seen, (int8_t)row->codes[i]))
            return true;
        seen |= UINT64_C(1) << row->codes[i];
    }
    return row->codes_len == 0;
}

int ticket_regions_load_row(struct core *core, const struct row_ticket_regions *row)
{
    struct allocation *a = allocation_find(core, row->id);
    struct room_ticket *ticket = room_ticket_find(core, row->id);
    if (is_damaged(row) || (!a && !ticket))
        return ERR_FORMAT;
    struct ticket_regions *r = regions_enter(core, row);
    r->object.stored = true;
    if (a)
        a->regions = r;
    else
        ticket->regions = r;
    return 0;
}

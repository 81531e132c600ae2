#include "core/allocation_detail.h"

#include "core/state.h"

static struct allocation_detail *enter(struct core *core, const struct row_allocation_detail *row,
                                       struct allocation *a)
{
    struct allocation_detail *detail = xcalloc(1, sizeof(*detail));
    detail->object.kind = ROW_allocation_detail;
    detail->row = *row;
    a->detail = detail;
    object_enter(core, &detail->object);
    return detail;
}

/* A party that comes to be is called as the allocation that it came with. */
int64_t allocation_party(const struct allocation *a)
{
    if (a->detail)
        return a->detail->row.party;
    return allocation_players(a) > 1 ? a->row.id : 0;
}

void allocation_set_party(struct core *core, struct allocation *a, int64_t party)
{
    struct row_allocation_detail row = {.allocation = a->row.id};
    if (allocation_party(a) == party)
        return;
    if (!a->detail) {
        row.id = object_new_id(core, ROW_allocation_detail);
        (void)enter(core, &row, a);
    }
    a->detail->row.party = party;
    object_touch(core, &a->detail->object);
}

void allocation_detail_forget(struct core *core, struct allocation *a)
{
    if (a->detail)
        object_delete(core, &a->detail->object);
    a->detail = NULL;
}

int allocation_detail_load_row(struct core *core, const struct row_allocation_detail *row)
{
    struct allocation *a = allocation_find(core, row->allocation);
    if (!a || a->detail)
        return ERR_FORMAT;
    enter(core, row, a)->object.stored = true;
    return 0;
}

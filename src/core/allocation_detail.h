/* What is known of some allocations only. Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/object.h"

struct allocation;

struct allocation_detail {
    struct object object;
    struct row_allocation_detail row;
};

/* The party that those it is for are, 0 = he comes alone: as it was when they got their seats, for
 * its result says so for ever. */
int64_t allocation_party(const struct allocation *a);
void allocation_set_party(struct core *core, struct allocation *a, int64_t party);

/* The allocation is forgotten. */
void allocation_detail_forget(struct core *core, struct allocation *a);

int allocation_detail_load_row(struct core *core, const struct row_allocation_detail *row);

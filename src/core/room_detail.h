/* What is known of some rooms only. Visible inside src/core only. */
#pragma once

#include "core/core.h"
#include "core/object.h"

struct room;

struct room_detail {
    struct object object;
    struct row_room_detail row;
};

/* Its details, with a row from now on. */
struct room_detail *room_detail(struct core *core, struct room *room);

/* Where players reach it when that is not its host's address, and what its provider calls it; what
 * is empty or too long stays as it is. */
void room_detail_set(struct core *core, struct room *room, struct str address, struct str name);

/* Where players reach it; "" when nobody knows any more. */
const char *room_address(const struct room *room);

int room_detail_load_row(struct core *core, const struct row_room_detail *row);

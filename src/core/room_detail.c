#include "core/room_detail.h"

#include "core/state.h"

static struct room_detail *enter(struct core *core, const struct row_room_detail *row,
                                 struct room *room)
{
    struct room_detail *detail = xcalloc(1, sizeof(*detail));
    detail->object.kind = ROW_room_detail;
    detail->row = *row;
    room->detail = detail;
    object_enter(core, &detail->object);
    return detail;
}

struct room_detail *room_detail(struct core *core, struct room *room)
{
    struct row_room_detail row = {.room = room->row.id};
    if (!room->detail) {
        row.id = object_new_id(core, ROW_room_detail);
        (void)enter(core, &row, room);
    }
    object_touch(core, &room->detail->object);
    return room->detail;
}

static void take(char *dst, size_t cap, struct str text)
{
    if (text.len > 0 && text.len < cap)
        (void)str_copy(dst, cap, text);
}

void room_detail_set(struct core *core, struct room *room, struct str address, struct str name)
{
    struct row_room_detail *row = &room_detail(core, room)->row;
    take(row->address, sizeof(row->address), address);
    take(row->name, sizeof(row->name), name);
}

const char *room_address(const struct room *room)
{
    if (room->detail && room->detail->row.address[0])
        return room->detail->row.address;
    return room->host ? room->host->row.address : "";
}

int room_detail_load_row(struct core *core, const struct row_room_detail *row)
{
    struct room *room = room_find(core, row->room);
    if (!room || room->detail)
        return ERR_FORMAT;
    enter(core, row, room)->object.stored = true;
    return 0;
}

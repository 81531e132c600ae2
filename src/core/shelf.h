/* Shelves: the open rooms of one version in one region, those with the fewest free seats first and
 * by id among equals, so that the best room for a player is the first that fits. A sorted table: a
 * room moves a few places when somebody comes or goes. Embedded: a zeroed struct is an empty shelf.
 * It owns its table, never the rooms. Visible inside src/core only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct room;

struct shelf {
    struct room **rooms;
    size_t n;
    size_t cap;
};

void shelf_done(struct shelf *s);

/* Puts an open room where it now belongs, or takes it away when it is not open. Call whenever its
 * state or its free seats changed. */
void shelf_update(struct room *room);

/* The place of the first room with at least that many free seats; s->n when there is none. */
size_t shelf_first(const struct shelf *s, int32_t free_seats);

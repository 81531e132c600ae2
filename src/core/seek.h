/* Seeking: what place a player gets. Visible inside src/core only. */
#pragma once

#include "core/core.h"

struct allocation;
struct fleet;
struct room;
struct room_ticket;

/* EVENT_SEEK and EVENT_UNSEEK. */
void seek(struct core *core, conn_id conn, const struct seek *s);
void unseek(struct core *core, conn_id conn, struct str owner, struct str name);

/* True when it only asks again for what is settled, so that nothing has to be stored. */
bool seek_is_settled(const struct core *core, const struct seek *s);

/* An OPEN one gets a place, or stands in line, or fails. */
void seek_place(struct core *core, struct allocation *a);

/* A QUEUED one gets seats in that room, which has enough of them. */
void allocation_enter(struct core *core, struct allocation *a, struct room *room, const char *how);

/* How many seats of that room it would take: who sits there already needs none. */
int32_t seek_needs(const struct core *core, const struct allocation *a, const struct room *room);

/* True when that room has the seats that it would take and is one that it may get: whoever asks to
 * be placed anew does not get the one he is in. Seats that are held count. */
bool seek_fits(const struct core *core, const struct allocation *a, const struct room *room);

/* Which version they get who name none, as a hash: when it changes, other rooms have places. */
uint64_t seek_version(const struct fleet *fleet);

/* True when whoever takes any place of the fleet takes one in that room. */
bool seek_takes_any(const struct room *room);

/* The open room of the fleet in one of those regions that has the most free seats, or NULL. */
struct room *seek_emptiest(const struct fleet *fleet, uint64_t regions);

/* A QUEUED one in the line of a fleet: of the rooms that it may get the one that misses the fewest
 * seats for it, or NULL. What its line has held there counts; what others have held does not. The
 * one where seats are held now is better than another that misses as many. */
struct room *seek_best_to_hold(const struct core *core, const struct allocation *a);

/* A QUEUED one: a room is started for it in the first of its regions that has a host; false when
 * none has. Regions of *without are passed over, and those where no host was found come to it. For
 * a `busy` region it waits: the rooms that are being started there have places enough. */
bool seek_start(struct core *core, struct allocation *a, uint64_t busy, uint64_t *without);
uint64_t seek_busy(const struct core *core, const struct fleet *fleet);

/* A QUEUED one in the line of a fleet: a room nearer than that one which has a place for it and was
 * not offered to the lines yet, or NULL. */
struct room *seek_unserved_nearer(const struct core *core, const struct allocation *a,
                                  const struct room *than);

/* The ticket of a room is final: those that waited for it are done, or look further. */
void allocations_ticket_over(struct core *core, struct room_ticket *ticket);

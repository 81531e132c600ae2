/* Finding a place and taking it, for those who seek one: what the files of seek.h share. Visible
 * inside src/core only. */
#pragma once

#include "core/event.h"

struct allocation;
struct core;
struct fleet;
struct host;
struct room;
struct room_seat;
struct room_ticket;

enum { FOUND_SENTENCE_MAX = 320, PARTY_MAX = PLACE_PLAYERS_MAX };

/* What there is for somebody, before anything is done about it. */
struct found {
    enum { FOUND_NOTHING, FOUND_ROOM, FOUND_STARTING, FOUND_HOST, FOUND_LINE } what;
    struct room *room;            /* ROOM, STARTING; LINE: whose, NULL = the fleet's */
    struct room_ticket *ticket;   /* STARTING */
    struct host *host;            /* HOST */
    const char *how;              /* ROOM: for the log */
    bool no_friends;              /* they were looked for */
    int err;                      /* NOTHING */
    char why[FOUND_SENTENCE_MAX]; /* … a sentence */
};

/* The best there is. Changes nothing, but for the address of somebody banned. */
void seek_find(struct core *core, const struct allocation *a, struct found *ret);

/* An open room with places for all who come, or NULL. */
struct room *seek_find_any(const struct core *core, const struct allocation *a);

/* The line of a room, or of the fleet; nothing when it is as long as it may be. */
void seek_find_line(const struct core *core, const struct allocation *a, struct room *room,
                    struct found *ret);

/* Where a room could be started for them, or NULL: as seek_start. */
struct host *seek_host_for(const struct core *core, const struct allocation *a, uint64_t busy,
                           uint64_t *without);

/* True when somebody may not come. */
bool seek_is_hindered(struct core *core, const struct allocation *a, struct found *ret);

/* True when the seat is that of an older request of somebody who comes. */
bool seek_gives_way(const struct core *core, const struct allocation *a,
                    const struct room_seat *seat);

bool seek_asks_for_others(const struct allocation *a);

/* True when players can go to it now. */
bool seek_is_there(const struct room *room);

/* One of those who come, as rooms take players. */
struct place_player seek_player(const struct allocation *a, struct str name);

/* The version of those who name none; empty when none is on. */
struct str seek_version_name(const struct fleet *fleet);

/* Does what was found. */
void seek_take(struct core *core, struct allocation *a, const struct found *found);

/* The seats of older requests in a room that is being started become the newer one's. */
void seek_hand_over(struct core *core, const struct allocation *a, struct room *room);

/* What players name to get into a room (game, server, version), found by what people call a fleet.
 * Embedded in the verb that asks. */
#pragma once

#include "cli/remote.h"

enum { ROOM_PATH_NAME_MAX = 64 };

struct room_path {
    char fleet[ROOM_PATH_NAME_MAX]; /* "" = not known */
    char game[ROOM_PATH_NAME_MAX];
    char server[ROOM_PATH_NAME_MAX];
    char version[ROOM_PATH_NAME_MAX];
};

/* `what` is a fleet's name or number, or "GAME/SERVER"; version may be NULL: the last of its
 * versions that is enabled. Returns an exit code; unless EXIT_DONE a sentence has been printed. */
int room_path_find(struct remote *r, const char *what, const char *version, struct room_path *ret);

/* The same for a room by its number: fleet and game only, which is what a seat in it needs. */
int room_path_of_room(struct remote *r, const char *room, struct room_path *ret);

/* Puts game, server and version into a question that has them in its path. */
void room_path_set(const struct room_path *path, struct ask *a);

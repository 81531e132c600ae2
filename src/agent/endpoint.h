/* Endpoints: the listening sockets at which game servers find us. Making one costs an inode, which
 * a disk may take half a millisecond for, so a few are made ahead: they listen in a folder that is
 * closed to everybody, and are moved to where a game server looks for them. Owned by struct
 * processes, which embeds it. */
#pragma once

#include "agent/sandbox.h"

enum { ENDPOINT_SPARES = 4 };

struct endpoints {
    char folder[SANDBOX_SOCKET_MAX];
    int spares[ENDPOINT_SPARES]; /* -1 = none; the one at i listens in folder/i */
};

/* sockets is the folder below which all endpoints lie. Nothing is made yet. */
void endpoints_init(struct endpoints *e, const char *sockets);

/* Nobody listens in what was made ahead and not used; it is removed. */
void endpoints_done(struct endpoints *e);

/* Makes one ahead, unless there are enough: true when there may not be yet. False too when it
 * cannot: endpoints_listen says why. */
bool endpoints_lay_in(struct endpoints *e);

/* A socket that listens at path, where nobody does, open to its owner and its group; the caller's.
 * -1 with errno. */
int endpoints_listen(struct endpoints *e, const char *path);

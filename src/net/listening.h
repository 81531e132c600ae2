/* Listening sockets, with the options that accepted ones inherit. One may be held for longer than
 * whoever serves on it: a node keeps its ports while it goes from standing by to leading and back,
 * and whoever connects in between waits for a moment instead of being refused. A descriptor belongs
 * to whoever opened it. */
#pragma once

#include "net/address.h"

#include <stdint.h>

enum { LISTENING_BACKLOG = 4096 };

/* Binds and listens; port 0 picks a free one. The descriptor, or -1 with *ret_why saying (in words
 * that need no freeing) what the system answered. */
int listening_open(const char *ip, uint16_t port, const char **ret_why);

/* Another descriptor of a socket that somebody holds; as above. */
int listening_share(int held_fd, const char **ret_why);

/* Where it listens. */
void listening_address(int fd, union address *ret);

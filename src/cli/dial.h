/* A TCP connection to a game server, for commands that play players. Nothing is kept. */
#pragma once

#include "base/str.h"

#include <stdint.h>

/* host is an IP address. A socket that does not block, the caller's to close; -1 when nobody is
 * there within timeout_ms. */
int dial(struct str host, int64_t port, int timeout_ms);

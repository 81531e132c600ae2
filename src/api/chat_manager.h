/* The manager port: chat servers ask here for a game server for each match. */
#pragma once

#include "api/port.h"

extern const struct port chat_manager_port;

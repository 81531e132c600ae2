/* The client port: players' game clients connect here, hear of their lobby and say that they have
 * loaded. */
#pragma once

#include "api/port.h"

extern const struct port chat_client_port;

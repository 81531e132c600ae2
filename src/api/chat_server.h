/* The server port: game servers register here, report their load and are given matches. */
#pragma once

#include "api/port.h"

extern const struct port chat_server_port;

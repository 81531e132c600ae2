/* A link that opens the console in a browser and logs in: its token stands behind the #, which a
 * browser keeps to itself. Pure. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* What an administrator's console needs, and what one needs who only looks. */
#define CONSOLE_SCOPES "muster_admin,muster_allocate,game_ban"
#define CONSOLE_SCOPES_READ "muster_read"

enum { CONSOLE_LINK_S = 12 * 3600 };

/* What everybody is told who gets such a link of an administrator. */
#define CONSOLE_LINK_WARNING "whoever has this link is administrator for 12 h"

/* Appends "http://127.0.0.1:9508/#token=…"; url has no slash at its end. */
void console_link_put(struct buf *out, const char *url, struct str token);

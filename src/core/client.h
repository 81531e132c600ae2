/* Clients: players' connections on the client port. One each; nothing of them is stored. Visible
 * inside src/core only. */
#pragma once

#include "core/core.h"

/* A newer connection of an account takes the older one's place. */
void client_hello(struct core *core, conn_id conn, const struct chat_cl_connect *hello);
void client_gone(struct core *core, conn_id conn);

/* The account is banned: its connection is closed, and the lobby it loads in aborted. */
void client_banned(struct core *core, int32_t account);

/* Where he is; 0 = not connected. */
conn_id client_conn(const struct core *core, int32_t account);

void clients_take_over(struct core *fresh, const struct core *old);

/* Clients. Who speaks is the door's business: it has checked the access token. */
#include "core/client.h"

#include "core/lobby_tell.h"
#include "core/state.h"

conn_id client_conn(const struct core *core, int32_t account)
{
    const struct peer *peer = map_get(&core->clients, (uint32_t)account);
    return peer ? peer->conn : 0;
}

static void bind(struct core *core, conn_id conn, int32_t account)
{
    peer_bind(core, conn, (struct peer){.role = PEER_CLIENT, .account = account});
    (void)map_put(&core->clients, (uint32_t)account, peer_find(core, conn));
}

static void unbind(struct core *core, conn_id conn, int32_t account)
{
    (void)map_remove(&core->clients, (uint32_t)account);
    peer_unbind(core, conn);
}

static void refuse(struct core *core, conn_id conn, int32_t account, int err)
{
    note_refused(core, conn, err)->account = account;
    effect_add(core, EFFECT_CLIENT_HELLO, conn)->err = err;
}

/* Replacing one's own connection is not leaving, so lobbies hear nothing of the older one's end. */
static void replace(struct core *core, conn_id old, int32_t account)
{
    unbind(core, old, account);
    effect_close(core, old, "Replaced by a new connection");
    note_add(core, NOTE_CLIENT_REPLACED)->account = account;
    lobbies_unsent(core, account);
}

void client_hello(struct core *core, conn_id conn, const struct chat_cl_connect *hello)
{
    int32_t account = hello->account;
    if (account <= 0 || ban_of_chat(core, account)) {
        refuse(core, conn, account, account <= 0 ? ERR_INVALID_REQUEST : ERR_BANNED);
        return;
    }
    conn_id old = client_conn(core, account);
    if (old)
        replace(core, old, account);
    bind(core, conn, account);
    effect_add(core, EFFECT_CLIENT_HELLO, conn)->wall_ms = core->now.wall_ms;
    lobbies_client_came(core, account);
    lobbies_tell_client(core, account, conn);
}

void client_gone(struct core *core, conn_id conn)
{
    int32_t account = peer_find(core, conn)->account;
    unbind(core, conn, account);
    lobbies_unsent(core, account);
    lobbies_client_gone(core, account);
}

void client_banned(struct core *core, int32_t account)
{
    conn_id conn = client_conn(core, account);
    lobbies_client_banned(core, account);
    if (!conn)
        return;
    effect_close(core, conn, err_sentence(ERR_BANNED));
    client_gone(core, conn);
}

void clients_take_over(struct core *fresh, const struct core *old)
{
    size_t at = 0;
    for (const struct peer *peer = NULL; (peer = map_next(&old->clients, &at));)
        bind(fresh, peer->conn, peer->account);
}

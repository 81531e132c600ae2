/* Chat servers: those who ask for matches. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "base/list.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/fleet.h"
#include "core/object.h"

struct chat_server {
    struct object object;
    struct row_chat_server row;
    struct fleet *fleet;
    conn_id conn;
    int64_t enrolment; /* the stored token it came with; 0 = none of those */
    uint64_t regions;
    bool own; /* asks for Muster's own lobbies, and has no connection */
    struct {
        conn_id conn;
        uint64_t regions;
        int64_t enrolment;
    } challenge;
    int32_t tickets;
    struct list owed; /* sessions with events_owed */
    struct deadline silent;
    struct deadline challenged;
    struct deadline forget;
    struct chain_link by_name;
};

/* The one that asks for the lobbies of a fleet. */
struct chat_server *chat_server_own(struct core *core, const struct fleet *fleet);

void chat_server_hello(struct core *core, conn_id conn, const struct chat_mgr_handshake *hello);

/* True when the hello is refused, or is a known chat server's coming back. */
bool chat_server_hello_changes_nothing(const struct core *core,
                                       const struct chat_mgr_handshake *hello);
void chat_server_heartbeat(struct core *core, conn_id conn);
void chat_server_heard(struct core *core, struct chat_server *chat);
void chat_server_gone(struct core *core, struct chat_server *chat);
void chat_server_alive(struct core *core, struct chat_server *chat);
void chat_server_maybe_forget(struct core *core, struct chat_server *chat);
struct chat_server *chat_server_load_row(struct core *core, const struct row_chat_server *row);
void chat_server_loaded(struct core *core, struct chat_server *chat);
void chat_server_unlink(struct core *core, struct chat_server *chat);
void chat_server_take_over(struct core *core, struct chat_server *fresh,
                           const struct chat_server *old);
void chat_server_deadline(struct core *core, struct chat_server *chat, enum deadline_kind kind);

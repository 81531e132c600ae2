/* Who is in a lobby: its roster, which never changes. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"

struct lobby;

struct lobby_roster {
    struct object object;
    struct row_lobby_roster row;
};

enum lobby_said { SAID_NOTHING, SAID_LOADED, SAID_LOADING };

struct lobby_player {
    struct lobby *lobby;
    int32_t account;
    int8_t team;
    int8_t slot;
    int8_t group;
    const char *name; /* in the roster's row */
    uint8_t said;     /* enum lobby_said: what is not in his flags yet */
    uint8_t changes;  /* how often he changed his mind */
    bool sent;        /* what he is owed left with the batch lobby->sent_batch */
    bool left;        /* he was here and is not */
    struct deadline gone;
    struct chain_link by_account; /* while his lobby is live, or owes him something */
    bool listed;                  /* in that chain */
};

/* A roster of those players, with the id of its lobby. */
struct lobby_roster *lobby_roster_new(struct core *core, int64_t id,
                                      const struct lobby_wanted *wanted);
int lobby_roster_load_row(struct core *core, const struct row_lobby_roster *row);

/* The players of a roster, at most cap, of which only account, team, slot, group and name are
 * set: how many there are, or ERR_FORMAT. */
int lobby_roster_read(const struct row_lobby_roster *row, struct lobby_player *ret, size_t cap);

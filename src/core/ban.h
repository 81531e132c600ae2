/* Bans: who may not take a seat, by account and by the address he came from. Visible inside
 * src/core only. */
#pragma once

#include "base/chain.h"
#include "core/core.h"
#include "core/object.h"

struct ban {
    struct object object;
    struct row_ban row;
    struct chain_link by_account;
    struct chain_link by_address; /* only when row.address is not "" */
};

struct ban *ban_find(const struct core *core, int64_t id);

/* True while it keeps somebody out. */
bool ban_holds(const struct core *core, const struct ban *ban);

/* The ban that holds now for that account, else for that address, or NULL. Changes nothing. */
struct ban *ban_of(const struct core *core, struct str account, struct str address);

/* The newest ban of that account, whether it holds or not, or NULL. */
struct ban *ban_newest(const struct core *core, struct str account);

/* The same as ban_of for somebody who tries to get in: at a banned account's first attempt the
 * address is written to its ban. */
struct ban *ban_check(struct core *core, struct str account, struct str address);

int ban_load_row(struct core *core, const struct row_ban *row);

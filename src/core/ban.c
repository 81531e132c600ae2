/* Bans: by account, and by the address that the account came from at its first attempt. */
#include "core/ban.h"

#include "core/state.h"

static uint64_t key_of(struct str text)
{
    return str_hash(0, text);
}

struct ban *ban_find(const struct core *core, int64_t id)
{
    return object_find(core, ROW_ban, id);
}

bool ban_holds(const struct core *core, const struct ban *ban)
{
    return core->now.wall_ms < ban->row.expires_wall_ms;
}

static struct ban *by_account(const struct core *core, struct str account, bool holding)
{
    struct chain_link *n = chain_first(&core->bans_by_account, key_of(account));
    struct ban *newest = NULL;
    for (; n; n = n->next) {
        struct ban *ban = container_of(n, struct ban, by_account);
        bool meant = str_eq(str_of(ban->row.account), account);
        if (meant && (!holding || ban_holds(core, ban)) &&
            (!newest || ban->row.id > newest->row.id))
            newest = ban;
    }
    return newest;
}

static struct ban *by_address(const struct core *core, struct str address)
{
    struct chain_link *n =
        address.len > 0 ? chain_first(&core->bans_by_address, key_of(address)) : NULL;
    for (; n; n = n->next) {
        struct ban *ban = container_of(n, struct ban, by_address);
        if (str_eq(str_of(ban->row.address), address) && ban_holds(core, ban))
            return ban;
    }
    return NULL;
}

struct ban *ban_of(const struct core *core, struct str account, struct str address)
{
    struct ban *ban = by_account(core, account, true);
    return ban ? ban : by_address(core, address);
}

struct ban *ban_newest(const struct core *core, struct str account)
{
    return by_account(core, account, false);
}

struct ban *ban_check(struct core *core, struct str account, struct str address)
{
    struct ban *ban = by_account(core, account, true);
    if (!ban)
        return by_address(core, address);
    if (ban->row.address[0] == '\0' && address.len > 0 &&
        str_copy(ban->row.address, sizeof(ban->row.address), address)) {
        chain_add(&core->bans_by_address, key_of(address), &ban->by_address);
        object_touch(core, &ban->object);
    }
    return ban;
}

int ban_load_row(struct core *core, const struct row_ban *row)
{
    struct ban *ban = xcalloc(1, sizeof(*ban));
    ban->object.kind = ROW_ban;
    ban->object.stored = true;
    ban->row = *row;
    chain_add(&core->bans_by_account, key_of(str_of(ban->row.account)), &ban->by_account);
    if (ban->row.address[0] != '\0')
        chain_add(&core->bans_by_address, key_of(str_of(ban->row.address)), &ban->by_address);
    object_enter(core, &ban->object);
    return 0;
}

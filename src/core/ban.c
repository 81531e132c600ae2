/* Bans: by account, and by the address that the account came from at its first attempt. Whoever is
 * banned while he sits somewhere loses his place in the same step, so at no time has a banned
 * account a seat (I10). An address that is learned later keeps others out, but takes no place away:
 * who sits there already may only share a connection with him.
 *
 * An expired ban is kept for those who look, until it must make room. Dates are wall time. */
#include "core/ban.h"

#include "base/date.h"
#include "base/plant.h"
#include "core/client.h"
#include "core/state.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* ── addresses ─────────────────────────────────────────────────────────────────────────────── */

static bool is_mapped(const struct in6_addr *a)
{
    static const uint8_t prefix[12] = {[10] = 0xFF, [11] = 0xFF};
    return memcmp(a, prefix, sizeof(prefix)) == 0;
}

struct str ban_address(struct str address, char dst[BAN_ADDRESS_SIZE])
{
    struct in_addr v4;
    struct in6_addr v6;
    dst[0] = '\0';
    if (!str_copy(dst, BAN_ADDRESS_SIZE, address))
        return str_of(dst);
    bool is_v4 = inet_pton(AF_INET, dst, &v4) == 1;
    bool is_v6 = !is_v4 && inet_pton(AF_INET6, dst, &v6) == 1;
    if (is_v6 && is_mapped(&v6)) {
        memcpy(&v4, (const uint8_t *)&v6 + 12, sizeof(v4));
        is_v4 = true;
    }
    dst[0] = '\0';
    if (is_v4) {
        (void)inet_ntop(AF_INET, &v4, dst, BAN_ADDRESS_SIZE);
    } else if (is_v6) {
        memset((uint8_t *)&v6 + 8, 0, 8);
        (void)inet_ntop(AF_INET6, &v6, dst, BAN_ADDRESS_SIZE - 3);
        memcpy(dst + strlen(dst), "/64", 4);
    }
    return str_of(dst);
}

/* ── finding ───────────────────────────────────────────────────────────────────────────────── */

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

static struct ban *newer(struct ban *a, struct ban *b)
{
    return !a || b->row.id > a->row.id ? b : a;
}

static struct ban *by_account(const struct core *core, struct str account, bool holding)
{
    struct ban *newest = NULL;
    struct chain_link *n = chain_first(&core->bans_by_account, key_of(account));
    for (; n; n = n->next) {
        struct ban *ban = container_of(n, struct ban, by_account);
        if (str_eq(str_of(ban->row.account), account) && (!holding || ban_holds(core, ban)))
            newest = newer(newest, ban);
    }
    return newest;
}

int64_t view_next_ban_of(const struct core *core, struct str account, int64_t after)
{
    int64_t next = 0;
    struct chain_link *n = chain_first(&core->bans_by_account, key_of(account));
    for (; n; n = n->next) {
        const struct ban *ban = container_of(n, struct ban, by_account);
        if (ban->row.id > after && (next == 0 || ban->row.id < next) &&
            str_eq(str_of(ban->row.account), account))
            next = ban->row.id;
    }
    return next;
}

static struct ban *by_address(const struct core *core, struct str address)
{
    char text[BAN_ADDRESS_SIZE];
    struct ban *newest = NULL;
    if (core->bans_by_address.len == 0)
        return NULL; /* the usual case, and addresses take long to read */
    struct str banned = ban_address(address, text);
    struct chain_link *n =
        banned.len > 0 ? chain_first(&core->bans_by_address, key_of(banned)) : NULL;
    for (; n; n = n->next) {
        struct ban *ban = container_of(n, struct ban, by_address);
        if (str_eq(str_of(ban->row.address), banned) && ban_holds(core, ban))
            newest = newer(newest, ban);
    }
    return newest;
}

struct ban *ban_of(const struct core *core, struct str account, struct str address)
{
    struct ban *ban = by_account(core, account, true);
    return ban ? ban : by_address(core, address);
}

struct ban *ban_of_chat(const struct core *core, int32_t account)
{
    char text[12];
    (void)snprintf(text, sizeof(text), "%d", account);
    return by_account(core, str_of(text), true);
}

struct ban *ban_newest(const struct core *core, struct str account)
{
    return by_account(core, account, false);
}

struct ban *ban_check(struct core *core, struct str account, struct str address)
{
    struct ban *ban = by_account(core, account, true);
    if (PLANTED(banned_admitted))
        return NULL;
    if (!ban)
        return by_address(core, address);
    if (ban->row.address[0] == '\0' && ban_address(address, ban->row.address).len > 0) {
        chain_add(&core->bans_by_address, key_of(str_of(ban->row.address)), &ban->by_address);
        object_touch(core, &ban->object);
    }
    return ban;
}

/* Who only comes from a banned address has done nothing, and must not read that he has. */
struct str ban_refuse(struct core *core, const struct ban *ban, struct str account,
                      struct placed *ret)
{
    char text[BAN_REFUSAL_MAX];
    ret->refused = text_keep(core, account);
    ret->ban = ban->row.id;
    ret->ban_reason = text_keep(core, str_of(ban->row.reason));
    ret->ban_until_wall_ms = ban->row.expires_wall_ms;
    bool himself = str_eq(str_of(ban->row.account), account);
    (void)snprintf(text, sizeof(text), "%s %.*s is banned: %.200s",
                   himself ? "player" : "the address of player", (int)account.len, account.at,
                   ban->row.reason);
    return text_keep(core, str_of(text));
}

struct str ban_until(struct core *core, const struct ban *ban, struct str account,
                     struct str seeker)
{
    char text[BAN_REFUSAL_MAX];
    char when[DATE_SIZE];
    bool himself = str_eq(str_of(ban->row.account), account);
    bool named = !himself || !str_eq(account, seeker);
    (void)snprintf(text, sizeof(text), "%s%s%.*s is banned until %s",
                   himself ? "player" : "the address of player", named ? " " : "",
                   named ? (int)account.len : 0, account.at,
                   date_print(ban->row.expires_wall_ms, when));
    return text_keep(core, str_of(text));
}

/* ── being ─────────────────────────────────────────────────────────────────────────────────── */

static struct ban *enter(struct core *core, const struct row_ban *row)
{
    struct ban *ban = xcalloc(1, sizeof(*ban));
    ban->object.kind = ROW_ban;
    ban->row = *row;
    chain_add(&core->bans_by_account, key_of(str_of(ban->row.account)), &ban->by_account);
    if (ban->row.address[0] != '\0')
        chain_add(&core->bans_by_address, key_of(str_of(ban->row.address)), &ban->by_address);
    heap_update(&core->bans_held, &ban->in_held);
    object_enter(core, &ban->object);
    return ban;
}

int ban_load_row(struct core *core, const struct row_ban *row)
{
    enter(core, row)->object.stored = true;
    return 0;
}

static void forget(struct core *core, struct ban *ban)
{
    chain_remove(&core->bans_by_account, key_of(str_of(ban->row.account)), &ban->by_account);
    if (ban->row.address[0] != '\0')
        chain_remove(&core->bans_by_address, key_of(str_of(ban->row.address)), &ban->by_address);
    heap_remove(&core->bans_held, &ban->in_held);
    object_delete(core, &ban->object);
}

bool ban_expires_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct ban *one = container_of(a, struct ban, in_held);
    const struct ban *other = container_of(b, struct ban, in_held);
    return one->row.expires_wall_ms < other->row.expires_wall_ms;
}

void bans_settle(struct core *core)
{
    struct heap_node *top;
    while ((top = heap_top(&core->bans_held)) &&
           !ban_holds(core, container_of(top, struct ban, in_held)))
        heap_remove(&core->bans_held, top);
}

/* Room for one more: the oldest that has expired goes. False when there is none. */
static bool make_room(struct core *core)
{
    if ((int64_t)core->rolls[ROW_ban].n < core->config.limits.bans)
        return true;
    size_t at = 0;
    for (struct ban *ban = NULL; (ban = object_next(core, ROW_ban, &at));) {
        if (ban_holds(core, ban))
            continue;
        forget(core, ban);
        return true;
    }
    return false;
}

/* ── issuing, changing, lifting ────────────────────────────────────────────────────────────── */

bool ban_chat_account(const char *account, int32_t *ret)
{
    char text[12];
    int64_t value = 0;
    size_t len = strlen(account);
    bool negative = account[0] == '-';
    if (len == 0 || len >= sizeof(text))
        return false;
    for (size_t i = negative; i < len; i++) {
        if (account[i] < '0' || account[i] > '9')
            return false;
        value = value * 10 + (account[i] - '0');
    }
    value = negative ? -value : value;
    if (value < INT32_MIN || value > INT32_MAX)
        return false;
    *ret = (int32_t)value;
    (void)snprintf(text, sizeof(text), "%d", *ret);
    return strcmp(text, account) == 0;
}

/* Takes away every place he has. */
static void kick(struct core *core, const struct ban *ban)
{
    int32_t account = 0;
    if (!ban_holds(core, ban))
        return;
    struct str reason = text_keep(core, str_of(ban->row.reason));
    allocations_of_banned_end(core, ban);
    room_seats_kick(core, str_of(ban->row.account), reason.len > 0 ? reason : STR("Banned"));
    if (!ban_chat_account(ban->row.account, &account))
        return;
    seats_kick(core, account, STR("Banned"));
    client_banned(core, account);
}

static int issue(struct core *core, const struct operate *o, int64_t *ret_object)
{
    struct row_ban row = {
        .expires_wall_ms = o->expires_wall_ms,
        .issued_wall_ms = core->now.wall_ms,
    };
    if (o->account.len == 0 || !str_copy(row.account, sizeof(row.account), o->account) ||
        !str_copy(row.reason, sizeof(row.reason), o->reason) ||
        !str_copy(row.who, sizeof(row.who), o->who) || o->expires_wall_ms <= core->now.wall_ms)
        return ERR_BAD_ARGUMENT;
    if (by_account(core, o->account, true))
        return ERR_ALREADY_BANNED;
    if (!make_room(core))
        return ERR_TOO_MANY;
    row.id = object_new_id(core, ROW_ban);
    struct ban *ban = enter(core, &row);
    object_touch(core, &ban->object);
    kick(core, ban);
    *ret_object = row.id;
    return 0;
}

/* At most one holds for an account: otherwise lifting the one that is shown would not let him in.
 */
static int update(struct core *core, const struct operate *o, struct ban *ban)
{
    const struct ban *holding = by_account(core, str_of(ban->row.account), true);
    char reason[sizeof(ban->row.reason)];
    if (o->expires_wall_ms && o->expires_wall_ms <= core->now.wall_ms)
        return ERR_BAD_ARGUMENT;
    if (o->reason.at && !str_copy(reason, sizeof(reason), o->reason))
        return ERR_BAD_ARGUMENT;
    if (o->expires_wall_ms && holding && holding != ban)
        return ERR_ALREADY_BANNED;
    if (o->reason.at)
        memcpy(ban->row.reason, reason, sizeof(reason));
    if (o->expires_wall_ms)
        ban->row.expires_wall_ms = o->expires_wall_ms;
    heap_update(&core->bans_held, &ban->in_held);
    object_touch(core, &ban->object);
    kick(core, ban);
    return 0;
}

int operate_ban(struct core *core, const struct operate *o, int64_t *ret_object)
{
    if (o->verb == OPERATE_BAN)
        return issue(core, o, ret_object);
    struct ban *ban = ban_find(core, o->target);
    if (!ban)
        return ERR_NOT_FOUND;
    if (o->verb == OPERATE_UPDATE_BAN)
        return update(core, o, ban);
    forget(core, ban);
    return 0;
}

const char *ban_check_index(const struct core *core, const struct ban *ban)
{
    char text[BAN_ADDRESS_SIZE];
    struct str address = str_of(ban->row.address);
    bool found = false;
    struct chain_link *n = chain_first(&core->bans_by_account, key_of(str_of(ban->row.account)));
    for (; n; n = n->next)
        found = found || n == &ban->by_account;
    if (!found)
        return "is not found by its account";
    if (address.len == 0)
        return NULL;
    n = chain_first(&core->bans_by_address, key_of(address));
    for (found = false; n; n = n->next)
        found = found || n == &ban->by_address;
    if (!found)
        return "is not found by its address";
    struct str bare = {address.at, address.len > 3 ? address.len - 3 : 0};
    bool is_v6 = memchr(address.at, ':', address.len) != NULL;
    return str_eq(ban_address(is_v6 ? bare : address, text), address) ? NULL
                                                                      : "has no such address";
}

/* Bans: who may not take a seat, by account and by the address he came from. Visible inside
 * src/core only. */
#pragma once

#include "base/chain.h"
#include "base/heap.h"
#include "core/core.h"
#include "core/effect.h"
#include "core/object.h"

enum { BAN_ADDRESS_SIZE = 46, BAN_REFUSAL_MAX = 320 };

struct ban {
    struct object object;
    struct row_ban row; /* address: as ban_address() writes it, or "" */
    struct chain_link by_account;
    struct chain_link by_address; /* only when row.address is not "" */
    struct heap_node in_held;     /* until it was seen to have expired */
};

struct ban *ban_find(const struct core *core, int64_t id);

/* True while it keeps somebody out. */
bool ban_holds(const struct core *core, const struct ban *ban);

/* What is banned of an address: an IPv4 address itself, of IPv6 the /64, for that is what one
 * customer has. The same for every way to write it. "" when it is no address. */
struct str ban_address(struct str address, char dst[BAN_ADDRESS_SIZE]);

/* The ban that holds now for that account, else for that address, or NULL. Changes nothing. */
struct ban *ban_of(const struct core *core, struct str account, struct str address);

/* The same for an account of the chat ports, whose address nobody knows. */
struct ban *ban_of_chat(const struct core *core, int32_t account);

/* The account as chat ports know it; false when none can be called so. */
bool ban_chat_account(const char *account, int32_t *ret);

/* The newest ban of that account, whether it holds or not, or NULL. */
struct ban *ban_newest(const struct core *core, struct str account);

/* The same as ban_of for somebody who tries to get in: at a banned account's first attempt the
 * address is written to its ban. */
struct ban *ban_check(struct core *core, struct str account, struct str address);

/* What is said to somebody whom it keeps out: into *ret, and a sentence. Both last as long as the
 * batch. */
struct str ban_refuse(struct core *core, const struct ban *ban, struct str account,
                      struct placed *ret);

/* The same to those who seek a place with him, be it alone: "player is banned until …". */
struct str ban_until(struct core *core, const struct ban *ban, struct str account,
                     struct str seeker);

/* BAN, UPDATE_BAN and LIFT_BAN: 0 and the ban it was about, or why not. */
int operate_ban(struct core *core, const struct operate *o, int64_t *ret_object);

/* Those that expired are not counted any more. */
void bans_settle(struct core *core);

/* The order of core.bans_held: what expires first is on top. */
bool ban_expires_before(const struct heap_node *a, const struct heap_node *b);

int ban_load_row(struct core *core, const struct row_ban *row);

/* NULL, or what is wrong with how bans are found. */
const char *ban_check_index(const struct core *core, const struct ban *ban);

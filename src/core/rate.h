/* Rate limits: how often an account may ask. Soft: forgotten at a restart. Each limit is a sliding
 * window, kept in sixteenths when it allows many, so an account costs the same however much it is
 * allowed. Bounded: the account that was quiet longest makes room. Embedded: a zeroed struct, then
 * rates_init. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "base/map.h"
#include "core/core.h"

/* What is limited: rooms that an account makes, and places that it asks for. */
enum rate_kind { RATE_CREATE = 1, RATE_JOIN };
enum { RATE_GIVEN_BACK = 5 };

struct rates {
    struct map by_account; /* chains of struct rate_account */
    struct list recent;    /* quiet longest first */
    size_t n;
};

void rates_init(struct rates *r);
void rates_done(struct rates *r);

/* Everything that is in old is in r, which was empty. */
void rates_take_over(struct rates *r, struct rates *old);

/* For how long the account must wait before it may ask for that; 0 = it may now. */
int64_t rates_wait_ms(const struct rates *r, enum rate_kind kind, struct str account,
                      const struct rate_limit limits[RATE_LIMITS_MAX], int64_t now_ms);

/* What it asked for last came to nothing, and that was not its doing: it counts as if it had not
 * asked. Not more than RATE_GIVEN_BACK times in a minute. */
void rates_give_back(struct rates *r, enum rate_kind kind, struct str account, int64_t now_ms);

/* It has asked. */
void rates_count(struct rates *r, enum rate_kind kind, struct str account,
                 const struct rate_limit limits[RATE_LIMITS_MAX], int64_t now_ms);

/* The same for what that core allows, now. */
int64_t core_rate_wait_ms(const struct core *core, enum rate_kind kind, struct str account);
void core_rate_count(struct core *core, enum rate_kind kind, struct str account);

/* "too many requests: try again in 12 s" */
void rate_print(int64_t wait_ms, char *dst, size_t cap);

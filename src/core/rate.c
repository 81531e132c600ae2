#include "core/rate.h"

#include "base/chain.h"

#include <stdlib.h>
#include <string.h>

enum {
    RATE_SLOTS = 16,            /* of a window */
    RATE_KEPT = RATE_SLOTS + 1, /* and the one that has begun: never less than the window is seen */
    RATE_ACCOUNTS_MAX = 64 * 1024,
};

/* How often in each of the last slots; `slot` is the number of the newest. */
struct window {
    int64_t slot;
    uint16_t counts[RATE_KEPT]; /* by slot % RATE_KEPT */
};

struct rate_account {
    char account[65];
    enum rate_kind kind;
    struct window windows[RATE_LIMITS_MAX];
    struct chain_link by_account;
    struct link in_recent;
};

void rates_init(struct rates *r)
{
    *r = (struct rates){0};
    list_init(&r->recent);
}

static uint64_t key_of(enum rate_kind kind, struct str account)
{
    return str_hash((uint64_t)kind, account);
}

static void forget(struct rates *r, struct rate_account *a)
{
    chain_remove(&r->by_account, key_of(a->kind, str_of(a->account)), &a->by_account);
    list_remove(&a->in_recent);
    r->n--;
    free(a);
}

void rates_done(struct rates *r)
{
    LIST_EACH(&r->recent, a, struct rate_account, in_recent)
    {
        forget(r, a);
    }
    map_done(&r->by_account);
}

void rates_take_over(struct rates *r, struct rates *old)
{
    list_move_all(&r->recent, &old->recent);
    r->by_account = old->by_account;
    r->n = old->n;
    rates_init(old);
}

static struct rate_account *find(const struct rates *r, enum rate_kind kind, struct str account)
{
    struct chain_link *n = chain_first(&r->by_account, key_of(kind, account));
    for (; n; n = n->next) {
        struct rate_account *a = container_of(n, struct rate_account, by_account);
        if (a->kind == kind && str_eq(str_of(a->account), account))
            return a;
    }
    return NULL;
}

static int64_t slot_ms(const struct rate_limit *limit)
{
    return limit->ms > RATE_SLOTS ? limit->ms / RATE_SLOTS : 1;
}

/* How often in that slot, which is at most RATE_SLOTS before the present one. */
static int32_t count_in(const struct window *w, int64_t slot)
{
    bool kept = slot >= 0 && slot <= w->slot && slot > w->slot - RATE_KEPT;
    return kept ? w->counts[slot % RATE_KEPT] : 0;
}

static int64_t wait_ms(const struct window *w, const struct rate_limit *limit, int64_t now_ms)
{
    int64_t each_ms = slot_ms(limit);
    int64_t now = now_ms / each_ms;
    int64_t used = 0;
    for (int64_t slot = now - RATE_SLOTS; slot <= now; slot++)
        used += count_in(w, slot);
    for (int64_t slot = now - RATE_SLOTS; used >= limit->count && slot <= now; slot++) {
        used -= count_in(w, slot);
        if (used < limit->count)
            return (slot + RATE_KEPT) * each_ms - now_ms;
    }
    return 0;
}

int64_t rates_wait_ms(const struct rates *r, enum rate_kind kind, struct str account,
                      const struct rate_limit limits[RATE_LIMITS_MAX], int64_t now_ms)
{
    const struct rate_account *a = find(r, kind, account);
    int64_t longest_ms = 0;
    for (int i = 0; a && i < RATE_LIMITS_MAX; i++) {
        int64_t ms = limits[i].count > 0 ? wait_ms(&a->windows[i], &limits[i], now_ms) : 0;
        if (ms > longest_ms)
            longest_ms = ms;
    }
    return longest_ms;
}

static struct rate_account *make(struct rates *r, enum rate_kind kind, struct str account)
{
    if (r->n >= RATE_ACCOUNTS_MAX)
        forget(r, container_of(list_first(&r->recent), struct rate_account, in_recent));
    struct rate_account *a = xcalloc(1, sizeof(*a));
    (void)str_copy(a->account, sizeof(a->account), account);
    a->kind = kind;
    chain_add(&r->by_account, key_of(kind, account), &a->by_account);
    r->n++;
    return a;
}

static void count(struct window *w, int64_t slot)
{
    for (int64_t s = w->slot + 1; s <= slot && s <= w->slot + RATE_KEPT; s++)
        w->counts[s % RATE_KEPT] = 0;
    if (slot > w->slot + RATE_KEPT)
        memset(w->counts, 0, sizeof(w->counts));
    w->slot = slot;
    if (w->counts[slot % RATE_KEPT] < UINT16_MAX)
        w->counts[slot % RATE_KEPT]++;
}

void rates_count(struct rates *r, enum rate_kind kind, struct str account,
                 const struct rate_limit limits[RATE_LIMITS_MAX], int64_t now_ms)
{
    struct rate_account *a = find(r, kind, account);
    if (a)
        list_remove(&a->in_recent);
    else
        a = make(r, kind, account);
    list_append(&r->recent, &a->in_recent);
    for (int i = 0; i < RATE_LIMITS_MAX; i++)
        count(&a->windows[i], now_ms / slot_ms(&limits[i]));
}

#include "core/rate.h"

#include "base/chain.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RATE_STEPS = 17, /* of a window: each is a sixteenth, and one has begun */
    RATE_ALONE = 16, /* a limit of so many has a step for each request, and is exact */
    RATE_ACCOUNTS_MAX = 64 * 1024,
};

/* A ring of steps. All requests of a step leave the window when its last one does: so there are
 * never more than allowed in a window, and nobody waits longer than one. */
struct window {
    int64_t begun_ms; /* the newest step */
    int32_t held;     /* all counts, also of steps that have left the window */
    uint8_t newest;
    uint16_t counts[RATE_STEPS];
    int64_t last_ms[RATE_STEPS];
};

struct rate_account {
    char account[65];
    enum rate_kind kind;
    struct window windows[RATE_LIMITS_MAX];
    struct window given_back;
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

/* How many of that step are still in the window. */
static int64_t seen(const struct window *w, int step, const struct rate_limit *limit,
                    int64_t now_ms)
{
    return w->last_ms[step] > now_ms - limit->ms ? w->counts[step] : 0;
}

/* After the newest comes the oldest. */
static int next_step(int step)
{
    return (step + 1) % RATE_STEPS;
}

static int64_t wait_ms(const struct window *w, const struct rate_limit *limit, int64_t now_ms)
{
    int64_t used = 0;
    if (w->held < limit->count)
        return 0; /* as nearly always; the steps need not be looked at */
    for (int step = 0; step < RATE_STEPS; step++)
        used += seen(w, step, limit, now_ms);
    for (int i = 0, step = next_step(w->newest); used >= limit->count && i < RATE_STEPS; i++) {
        used -= seen(w, step, limit, now_ms);
        if (used < limit->count)
            return w->last_ms[step] + limit->ms - now_ms;
        step = next_step(step);
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

static void count(struct window *w, const struct rate_limit *limit, int64_t now_ms)
{
    int oldest = next_step(w->newest);
    bool begun = limit->count > RATE_ALONE && now_ms - w->begun_ms < limit->ms / (RATE_STEPS - 1);
    if (!begun && seen(w, oldest, limit, now_ms) == 0) {
        w->newest = (uint8_t)oldest;
        w->begun_ms = now_ms;
        w->held -= w->counts[oldest];
        w->counts[oldest] = 0;
    }
    w->last_ms[w->newest] = now_ms;
    if (w->counts[w->newest] < UINT16_MAX) {
        w->counts[w->newest]++;
        w->held++;
    }
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
        count(&a->windows[i], &limits[i], now_ms);
}

static const struct rate_limit back_limit = {.count = RATE_GIVEN_BACK, .ms = 60 * 1000};

/* The newest of them. */
static void window_uncount(struct window *w)
{
    if (w->counts[w->newest] == 0)
        return;
    w->counts[w->newest]--;
    w->held--;
}

void rates_give_back(struct rates *r, enum rate_kind kind, struct str account, int64_t now_ms)
{
    struct rate_account *a = find(r, kind, account);
    if (!a || wait_ms(&a->given_back, &back_limit, now_ms) > 0)
        return;
    count(&a->given_back, &back_limit, now_ms);
    for (int i = 0; i < RATE_LIMITS_MAX; i++)
        window_uncount(&a->windows[i]);
}

static const struct rate_limit *limits_of(const struct core *core, enum rate_kind kind)
{
    return kind == RATE_CREATE ? core->config.create_rates : core->config.join_rates;
}

int64_t core_rate_wait_ms(const struct core *core, enum rate_kind kind, struct str account)
{
    return rates_wait_ms(&core->rates, kind, account, limits_of(core, kind), core->now.core_ms);
}

void core_rate_count(struct core *core, enum rate_kind kind, struct str account)
{
    rates_count(&core->rates, kind, account, limits_of(core, kind), core->now.core_ms);
}

void rate_print(int64_t wait_ms, char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "too many requests: try again in %" PRId64 " s",
                   (wait_ms + 999) / 1000);
}

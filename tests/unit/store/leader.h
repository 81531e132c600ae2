/* Leading a cell in a test: takes the lease as a standby does, and opens the cell's store. A
 * leader belongs to the test that made it. */
#pragma once

#include "fixture.h"
#include "postgres.h"

#include "base/clock.h"
#include "store/cell_lease.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/postgres.h"

/* As those of fixture.h. */
static const struct postgres_fold_tuning leader_eager = {
    .history_rows = 8,
    .history_bytes = 1 << 20,
    .fold = {.interval_ms = 2, .rows = 4, .bytes = 1 << 16, .slice_bytes = 1 << 20},
};

__attribute__((unused)) static const struct postgres_fold_tuning leader_lazy = {
    .history_rows = 1000,
    .history_bytes = 1 << 20,
    .fold = {.interval_ms = 3600000,
             .rows = INT64_MAX,
             .bytes = INT64_MAX,
             .slice_bytes = INT64_MAX},
};

/* For tests in which nobody shall lose it by time. */
enum { LEADER_LONG_MS = 60000 };

struct leader {
    struct cell_config c;
    struct cell_term term;
    struct store_tip tip; /* where it began */
    struct store *store;
};

static inline void leader_good(int err, const struct why *why)
{
    if (err != 0)
        print_error("%s\n", why->text);
    assert_int_equal(err, 0);
}

static inline int leader_no_sink(void *user, const struct change *change)
{
    (void)user;
    (void)change;
    return 0;
}

/* Whoever has the lease loses it. */
static inline void leader_take(struct leader *l, const char *url, const char *cell, int64_t node,
                               int64_t lease_ms)
{
    struct why why = {""};
    struct pg *pg = NULL;
    struct cell_lease_seen seen;
    *l = (struct leader){.c = {.url = url, .cell = cell, .lease_ms = lease_ms}};
    l->c.self.id = node;
    snprintf(l->c.self.name, sizeof(l->c.self.name), "node-%d", (int)node);
    snprintf(l->c.self.http, sizeof(l->c.self.http), "http://10.0.0.%d:9508", (int)node);
    leader_good(cell_prepare(&l->c, &why), &why);
    leader_good(cell_connect(&l->c, "test lead", 10000, 10000, &pg, &why), &why);
    leader_good(cell_lease_prepare(pg, &why), &why);
    leader_good(cell_read_prepare(pg, &why), &why);
    lease_init(&l->term.lease, node, lease_ms);
    for (l->term.epoch = 0; l->term.epoch == 0;) {
        leader_good(cell_lease_read(pg, &seen, &why), &why);
        int64_t sent_ms = clock_boot_ms();
        leader_good(cell_lease_take(pg, &l->c.self, &seen.row, &l->term.epoch, &why), &why);
        lease_taken(&l->term.lease, l->term.epoch, sent_ms);
    }
    leader_good(cell_read_all(pg, leader_no_sink, NULL, &l->tip, NULL, &why), &why);
    pg_close(pg);
}

static inline void leader_open(struct leader *l, const struct postgres_fold_tuning *tuning)
{
    struct why why = {""};
    leader_good(postgres_open_tuned(&l->c, &l->term, &l->tip, tuning, &l->store, &why), &why);
}

/* Of a server that is well, by node 1, for a long time. */
static inline struct store *leader_start(struct leader *l, const char *cell,
                                         const struct postgres_fold_tuning *tuning)
{
    leader_take(l, postgres_url(), cell, 1, LEADER_LONG_MS);
    leader_open(l, tuning);
    return l->store;
}

/* Asks until a query gives what is wanted. */
__attribute__((unused)) static inline void leader_await(const char *schema, const char *sql,
                                                        int64_t wanted)
{
    struct patience patience = {0};
    for (;;) {
        int64_t v = postgres_ask(schema, sql);
        if (v == wanted)
            return;
        if (!patience_lasts(&patience))
            fail_msg("%s gives %lld", sql, (long long)v);
        usleep(2000);
    }
}

/* Nodes of a cell for tests: followers over a real PostgreSQL, and a leader whose batches are
 * written by the statement that a leader uses, so that the tests say when. All belongs to the test
 * that made it. */
#pragma once

#include "postgres.h"

#include "base/clock.h"
#include "base/err.h"
#include "core/state.h"
#include "store/cell_lease.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/follower.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

/* A lease must outlast a pause of a busy machine, or whoever pauses loses it. */
enum { LEASE_MS = 4000, LONG_MS = 60000 };

static const uint8_t secret[CORE_SECRET_SIZE] = {1, 2, 3};
static struct core_config config;

/* ── nodes ─────────────────────────────────────────────────────────────────────────────────── */

struct node {
    struct cell_config c;
    struct follower *f;
    int changed_fd;
};

static inline void on_changed(void *user)
{
    (void)eventfd_write(((struct node *)user)->changed_fd, 1);
}

static inline void name_node(struct node *n, const char *cell, int64_t id)
{
    *n = (struct node){.c = {.url = postgres_url(), .cell = cell, .lease_ms = LEASE_MS}};
    n->c.self.id = id;
    snprintf(n->c.self.name, sizeof(n->c.self.name), "node-%d", (int)id);
    snprintf(n->c.self.http, sizeof(n->c.self.http), "http://10.0.0.%d:9508", (int)id);
    n->changed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(n->changed_fd >= 0);
}

static inline void start(struct node *n, int64_t hold_off_ms)
{
    n->f = follower_start(&n->c, &config, secret, hold_off_ms, on_changed, n);
}

/* Ready, and not held off. */
static inline void start_ready(struct node *n, const char *cell, int64_t id)
{
    name_node(n, cell, id);
    start(n, 0);
    follower_set_ready(n->f, true);
}

static inline void stop(struct node *n)
{
    follower_stop(n->f);
    n->f = NULL;
    close(n->changed_fd);
}

static inline struct follower_view view(const struct node *n)
{
    struct follower_view v;
    follower_look(n->f, &v);
    return v;
}

/* Until it is in a state. Nobody is asked but for each time it said that something changed. */
static inline struct follower_view wait_state(const struct node *n, enum follower_state wanted)
{
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    for (;;) {
        struct follower_view v = view(n);
        if (v.state == wanted)
            return v;
        struct pollfd fd = {.fd = n->changed_fd, .events = POLLIN};
        eventfd_t ignored;
        int64_t left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0 || v.state == FOLLOWER_FAILED)
            print_error("state %d, not %d: %s\n", (int)v.state, (int)wanted, v.why);
        assert_true(left_ms > 0 && v.state != FOLLOWER_FAILED);
        (void)poll(&fd, 1, (int)left_ms);
        (void)eventfd_read(n->changed_fd, &ignored);
    }
}

/* Until it has a batch; numbers alone are nothing that it calls for. */
static inline void wait_seq(const struct node *n, int64_t seq)
{
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    while (view(n).seq < seq) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(20);
    }
}

static inline void wait_leader(const struct node *n, int64_t leader)
{
    int64_t until_ms = clock_monotonic_ms() + LONG_MS;
    for (struct follower_view v = view(n); !v.leader_known || v.leader.id != leader; v = view(n)) {
        assert_true(clock_monotonic_ms() < until_ms);
        usleep(1000);
    }
}

/* ── a leader ──────────────────────────────────────────────────────────────────────────────── */

struct leader {
    struct pg *pg;
    struct core *core;
    struct store_tip tip;
    struct cell_term term;
    int64_t id;
};

static inline void good(int err, const struct why *why)
{
    if (err != 0)
        print_error("%s\n", why->text);
    assert_int_equal(err, 0);
}

static const char commit_sql[] =
    "WITH put AS (INSERT INTO journal SELECT $1::bigint, $2::bigint, $4::bigint, $5::bigint,"
    " $6::bytea FROM head WHERE epoch = $2::bigint AND writer = $3::bigint FOR SHARE OF head"
    " RETURNING seq) SELECT seq, pg_notify(current_schema()::text, '') FROM put";

/* What a follower that leads has, goes on here. */
static inline void take_from(struct node *n, struct leader *l)
{
    struct why why = {""};
    *l = (struct leader){.id = n->c.self.id};
    follower_take(n->f, &l->core, &l->tip, &l->term);
    n->f = NULL;
    good(cell_connect(&n->c, "test leads", 5000, 10000, &l->pg, &why), &why);
    good(cell_lease_prepare(l->pg, &why), &why);
    good(pg_prepare(l->pg, "commit", commit_sql, &why), &why);
    assert_int_equal(l->term.lease.epoch, l->term.epoch);
    assert_int_equal(l->term.lease.node, n->c.self.id);
}

static inline void end_leader(struct node *n, struct leader *l)
{
    pg_close(l->pg);
    core_free(l->core);
    close(n->changed_fd);
}

static inline bool commit_bytes(struct leader *l, const struct buf *changes)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    struct why why = {""};
    int64_t seq = l->tip.seq + 1;
    pg_int(&args, seq);
    pg_int(&args, l->term.epoch);
    pg_int(&args, l->id);
    pg_int(&args, seq * 10);
    pg_int(&args, seq * 100);
    pg_bytes(&args, changes->data, changes->len);
    good(pg_run(l->pg, "commit", &args, &r, &why), &why);
    bool written = pg_rows(r) == 1;
    pg_free(r);
    if (written)
        l->tip = (struct store_tip){seq, seq * 10, seq * 100};
    return written;
}

/* The n-th batch: rows of several kinds come, change and go; some hold what is long. */
static inline void make_batch(struct buf *out, int64_t n)
{
    struct change c = {0};
    char settings[600];
    memset(settings, 'a' + (int)(n % 26), sizeof(settings));
    c.fleet.id = 1 + n % 7;
    snprintf(c.fleet.name, sizeof(c.fleet.name), "fleet %d", (int)n);
    change_encode_row(out, ROW_fleet, &c.fleet);
    memset(&c, 0, sizeof(c));
    c.room.id = 1 + n % 31;
    c.room.settings = (struct str){settings, (size_t)(n % 600)};
    c.room.tail = (struct str){settings, (size_t)(n % 100)};
    change_encode_row(out, ROW_room, &c.room);
    memset(&c, 0, sizeof(c));
    c.seat.id = n;
    c.seat.session = n * 3;
    change_encode_row(out, ROW_seat, &c.seat);
    if (n > 50)
        change_encode_gone(out, ROW_seat, n - 50);
    if (n % 11 == 0)
        change_encode_gone(out, ROW_room, 1 + n % 31);
}

static inline void commit_one(struct leader *l)
{
    struct buf changes = {0};
    make_batch(&changes, l->tip.seq + 1);
    assert_true(commit_bytes(l, &changes));
    buf_done(&changes);
}

static inline void renew(struct leader *l)
{
    struct why why = {""};
    bool ours = false;
    good(cell_lease_renew(l->pg, l->id, l->term.epoch, &ours, &why), &why);
    assert_true(ours);
}

static inline void give_back(struct leader *l)
{
    struct why why = {""};
    good(cell_lease_give_back(l->pg, l->id, l->term.epoch, &why), &why);
}

/* The first node leads by our hand, the second follows. */
static inline void lead_and_follow(struct node *a, struct leader *l, struct node *b,
                                   const char *cell)
{
    start_ready(a, cell, 1);
    (void)wait_state(a, FOLLOWER_LEADS);
    take_from(a, l);
    start_ready(b, cell, 2);
    (void)wait_state(b, FOLLOWER_FOLLOWING);
}

/* ── rows of a core ────────────────────────────────────────────────────────────────────────── */

static inline int by_kind_and_id(const void *a, const void *b)
{
    const struct change *x = *(const struct change *const *)a;
    const struct change *y = *(const struct change *const *)b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static inline size_t dump(const struct core *core, struct buf *out)
{
    size_t n = core->staged.len;
    size_t at = 0;
    const struct change **rows = xmalloc((n + 1) * sizeof(*rows));
    for (size_t i = 0; i < n; i++)
        rows[i] = map_next(&core->staged, &at);
    qsort(rows, n, sizeof(*rows), by_kind_and_id);
    for (size_t i = 0; i < n; i++)
        change_encode_row(out, rows[i]->kind, &rows[i]->row_id);
    free(rows);
    return n;
}

static inline int feed(void *user, const struct change *change)
{
    return core_load(user, change);
}

/* What was followed is, row for row, what somebody finds who loads the cell now. */
static inline void same_as_fresh(const struct cell_config *c, const struct core *core,
                                 const struct store_tip *tip, size_t at_least)
{
    struct why why = {""};
    struct pg *pg = NULL;
    struct core *fresh = core_new(&config, secret);
    struct store_tip there = {0};
    struct buf a = {0};
    struct buf b = {0};
    good(cell_connect(c, "test", 5000, 10000, &pg, &why), &why);
    good(cell_read_prepare(pg, &why), &why);
    good(cell_read_all(pg, feed, fresh, &there, NULL, &why), &why);
    assert_int_equal(there.seq, tip->seq);
    assert_int_equal(there.core_ms, tip->core_ms);
    assert_int_equal(there.wall_ms, tip->wall_ms);
    size_t n = dump(core, &a);
    assert_true(n >= at_least);
    assert_int_equal(n, dump(fresh, &b));
    assert_int_equal(a.len, b.len);
    if (a.len > 0)
        assert_memory_equal(a.data, b.data, a.len);
    buf_done(&a);
    buf_done(&b);
    core_free(fresh);
    pg_close(pg);
}

static inline int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static inline int nodes_setup(void **state)
{
    core_config_default(&config);
    return postgres_setup(state);
}

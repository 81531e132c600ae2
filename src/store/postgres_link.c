#include "store/postgres_link.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/plant.h"
#include "store/cell_link.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum {
    RETRY_MS = 50,
    IGNORED_MAX = 3, /* answers with nothing, each under a head that was just claimed */
    KEEP_BYTES = 1 << 20,
};

/* A batch is one statement: its row is inserted only if the head is still given to us (the lock
 * keeps it so until the commit), only behind its predecessor, and only once (the key). No row was
 * inserted: nothing was done. */
#define COMMIT_SQL(head_is_ours)                                                                   \
    "INSERT INTO journal (seq, epoch, core_ms, wall_ms, changes)"                                  \
    " SELECT $1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bytea FROM head"                  \
    " WHERE " head_is_ours " AND (EXISTS (SELECT FROM journal WHERE seq = $1::bigint - 1)"         \
    " OR EXISTS (SELECT FROM fold WHERE seq = $1::bigint - 1)) FOR SHARE OF head"

static const char commit_sql[] = COMMIT_SQL("epoch = $2::bigint AND writer = $6::bigint");

/* A planted bug: whoever has a connection writes. */
static const char unfenced_sql[] = COMMIT_SQL("$6::bigint > 0");

/* It waits for a batch that another connection of ours has under way, and for its being safe: that
 * one holds the head until then. Being a commit, and a later one, it is acknowledged by a
 * synchronous standby only when all before it is there as well. */
static const char claim_sql[] = "UPDATE head SET writer = writer % 4611686018427387904 + 1"
                                " WHERE epoch = $1::bigint RETURNING writer";

/* A statement of its own, so that it sees what the claim has waited for. */
static const char newest_sql[] = "(SELECT seq, core_ms, wall_ms FROM journal"
                                 " ORDER BY seq DESC LIMIT 1)"
                                 " UNION ALL (SELECT seq, core_ms, wall_ms FROM fold)"
                                 " ORDER BY seq DESC LIMIT 1";

static struct link_batch *at(struct postgres_link *l, int i)
{
    return &l->batches[(l->first + i) % LINK_DEPTH];
}

static int64_t last_begun(struct postgres_link *l)
{
    return l->n > 0 ? at(l, l->n - 1)->seq : l->tip.seq;
}

/* ── connecting ────────────────────────────────────────────────────────────────────────────── */

static void drop(struct postgres_link *l)
{
    pg_close(l->pg);
    l->pg = NULL;
    for (int i = 0; i < l->n; i++)
        at(l, i)->sent = false;
}

/* What waits may be lost with the lease, so there is an answer, and time for another host, while
 * it holds. */
static int connect_to_cell(struct postgres_link *l, struct why *why)
{
    int64_t lease_ms = l->cell->lease_ms;
    int err = cell_connect(l->cell, "muster commit", lease_ms / 4, lease_ms / 2, &l->pg, why);
    if (err == 0)
        err =
            pg_prepare(l->pg, "commit", PLANTED(unfenced_commit) ? unfenced_sql : commit_sql, why);
    if (err == 0)
        err = pg_prepare(l->pg, "claim", claim_sql, why);
    if (err == 0)
        err = pg_prepare(l->pg, "newest", newest_sql, why);
    return err == 0 ? pg_pipeline(l->pg, why) : err;
}

static int claim(struct postgres_link *l, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, l->tenure->epoch);
    int err = pg_run(l->pg, "claim", &args, &r, why);
    if (err != 0)
        return err;
    bool ours = pg_rows(r) == 1;
    if (ours)
        l->writer = pg_get_int(r, 0, 0);
    pg_free(r);
    if (!ours) {
        why_set(why, "Another node leads the cell by now.");
        tenure_end(l->tenure, why->text);
        return ERR_IO;
    }
    if (pg_warned(l->pg)) {
        why_set(why, "PostgreSQL did not wait for its synchronous standby.");
        return ERR_IO;
    }
    return 0;
}

/* A standby of PostgreSQL's that was promoted may not have all of it. What was said cannot be
 * unsaid, but what rests on it can end here. */
static int check_newest(struct postgres_link *l, const struct store_tip *found, struct why *why)
{
    if (found->seq >= l->tip.seq && found->seq <= last_begun(l))
        return 0;
    if (found->seq < l->tip.seq)
        why_set(why,
                "PostgreSQL has lost batches: the journal ends with %" PRId64 " and %" PRId64
                " was stored. A standby was promoted that did not have them; use "
                "synchronous_standby_names.",
                found->seq, l->tip.seq);
    else
        why_set(why,
                "Somebody else writes into this cell: the journal ends with batch %" PRId64
                " and %" PRId64 " was our last.",
                found->seq, last_begun(l));
    tenure_end(l->tenure, why->text);
    return ERR_IO;
}

static int read_newest(struct postgres_link *l, struct why *why)
{
    struct pg_result *r = NULL;
    struct store_tip found = {0};
    int err = pg_run(l->pg, "newest", NULL, &r, why);
    if (err != 0)
        return err;
    if (pg_rows(r) == 1)
        found = (struct store_tip){pg_get_int(r, 0, 0), pg_get_int(r, 0, 1), pg_get_int(r, 0, 2)};
    pg_free(r);
    err = check_newest(l, &found, why);
    if (err == 0 && !PLANTED(blind_retry))
        l->tip = found;
    return err;
}

/* From AWAY to SENDING. */
static int establish(struct postgres_link *l, struct why *why)
{
    int err = connect_to_cell(l, why);
    if (err == 0)
        err = claim(l, why);
    if (err == 0)
        err = read_newest(l, why);
    if (err == 0) {
        complaint_settle(&l->complaint, "commits");
        return 0;
    }
    if (tenure_holds(l->tenure)) /* whoever ended it has said so */
        complain(&l->complaint, "the cell cannot be written", why->text);
    drop(l);
    l->try_ms = clock_monotonic_ms() + RETRY_MS;
    return err;
}

int link_open(struct postgres_link *l, const struct cell_config *cell, struct tenure *tenure,
              const struct store_tip *tip, struct why *why)
{
    *l = (struct postgres_link){.cell = cell, .tenure = tenure, .tip = *tip};
    return establish(l, why);
}

void link_close(struct postgres_link *l)
{
    pg_close(l->pg);
    for (int i = 0; i < LINK_DEPTH; i++)
        buf_done(&l->batches[i].changes);
}

int link_tip(struct postgres_link *l, struct store_tip *ret)
{
    struct why why = {""};
    assert(l->n == 0);
    int err = l->pg ? read_newest(l, &why) : ERR_IO;
    if (err != 0) {
        drop(l);
        err = tenure_holds(l->tenure) ? establish(l, &why) : ERR_IO;
    }
    if (err == 0)
        *ret = l->tip;
    return err;
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

static void refuse_all(struct postgres_link *l)
{
    for (int i = 0; i < l->n; i++)
        at(l, i)->refused = true;
}

/* A connection that breaks is found out by whoever waits for the answer. */
static void send_batch(struct postgres_link *l, struct link_batch *b)
{
    struct pg_args args = {0};
    struct why why;
    pg_int(&args, b->seq);
    pg_int(&args, l->tenure->epoch);
    pg_int(&args, b->core_ms);
    pg_int(&args, b->wall_ms);
    pg_bytes(&args, b->changes.data, b->changes.len);
    pg_int(&args, l->writer);
    (void)pg_send(l->pg, "commit", &args, &why);
    b->sent = true;
    b->waits_ms = clock_monotonic_ms();
}

void link_begin(struct postgres_link *l, const struct store_batch *batch)
{
    assert(l->n < LINK_DEPTH);
    int64_t after = last_begun(l);
    bool refused = l->n > 0 && at(l, l->n - 1)->refused;
    struct link_batch *b = at(l, l->n++);
    b->seq = batch->seq;
    b->core_ms = batch->core_ms;
    b->wall_ms = batch->wall_ms;
    b->len = batch->len;
    b->begun_us = clock_monotonic_us();
    b->ignored = 0;
    b->sent = false;
    b->refused = refused || batch->seq != after + 1 || !tenure_holds(l->tenure);
    buf_clear(&b->changes);
    buf_append(&b->changes, batch->changes, batch->len);
    if (!refused && batch->seq != after + 1) {
        char text[96];
        snprintf(text, sizeof(text), "batch %" PRId64 " does not follow %" PRId64, batch->seq,
                 after);
        complain(&l->complaint, "batch refused", text);
    }
    if (l->pg && !b->refused)
        send_batch(l, b);
}

/* What is there already is not sent, and has ended. */
static void send_rest(struct postgres_link *l)
{
    for (int i = 0; i < l->n && !pg_lost(l->pg); i++) {
        struct link_batch *b = at(l, i);
        if (!b->sent && !b->refused && b->seq > l->tip.seq)
            send_batch(l, b);
    }
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

/* Nothing was inserted. Mostly the lease is somebody else's, and the claim will say so; but it can
 * also be that a claim of an earlier connection came late. */
static void ignored(struct postgres_link *l, struct link_batch *b)
{
    drop(l);
    if (++b->ignored >= IGNORED_MAX)
        tenure_end(l->tenure, "PostgreSQL does not take our batches, and does not say why");
}

/* Something was answered for the oldest. */
static void receive(struct postgres_link *l, struct link_batch *b)
{
    struct pg_result *r = NULL;
    struct why why = {""};
    int err = pg_receive(l->pg, &r, &why);
    bool warned = pg_warned(l->pg);
    int64_t rows = err == 0 ? pg_affected(r) : 0;
    pg_free(r);
    if (err == 0 && rows == 1 && !warned) {
        l->tip = (struct store_tip){b->seq, b->core_ms, b->wall_ms};
        if (l->n > 1)
            at(l, 1)->waits_ms = clock_monotonic_ms();
        return;
    }
    if (err == 0 && rows == 0) {
        ignored(l, b);
        return;
    }
    complain(&l->complaint, "the cell cannot be written",
             warned ? "PostgreSQL did not wait for its synchronous standby" : why.text);
    if (err != 0 && !pg_lost(l->pg)) /* it was rolled back, and those behind it find no row */
        refuse_all(l);
    drop(l);
}

/* Waits for something to happen to the oldest batch. False when wake_fd became readable. */
static bool wait_for_answer(struct postgres_link *l, struct link_batch *b, int wake_fd)
{
    int64_t left_ms = b->waits_ms + l->cell->lease_ms / 2 - clock_monotonic_ms();
    enum pg_news news = pg_wait_answer(l->pg, left_ms, wake_fd);
    if (news == PG_NEWS_WOKEN)
        return false;
    if (news == PG_NEWS_ANSWER) {
        receive(l, b);
        return true;
    }
    complain(&l->complaint, "the cell cannot be written",
             news == PG_NEWS_LOST ? "the connection to PostgreSQL is lost"
                                  : "PostgreSQL does not answer");
    drop(l);
    return true;
}

/* Tries to be SENDING again, but not all the time. False as above. */
static bool wait_for_link(struct postgres_link *l, int wake_fd)
{
    struct why why;
    struct pollfd fd = {.fd = wake_fd, .events = POLLIN};
    int64_t left_ms = l->try_ms - clock_monotonic_ms();
    if (left_ms > 0 && poll(&fd, 1, (int)left_ms) > 0)
        return false;
    if (tenure_holds(l->tenure) && establish(l, &why) == 0)
        send_rest(l);
    return true;
}

bool link_end(struct postgres_link *l, int wake_fd, int *ret_result, const struct link_batch **ret)
{
    assert(l->n > 0);
    struct link_batch *b = at(l, 0);
    while (b->seq > l->tip.seq && !b->refused) {
        if (!tenure_holds(l->tenure)) {
            refuse_all(l);
            drop(l);
        } else if (!(l->pg ? wait_for_answer(l, b, wake_fd) : wait_for_link(l, wake_fd))) {
            return false;
        }
    }
    *ret_result = b->refused ? ERR_IO : 0;
    *ret = b;
    if (b->changes.cap > KEEP_BYTES)
        buf_done(&b->changes);
    l->first = (l->first + 1) % LINK_DEPTH;
    l->n--;
    return true;
}

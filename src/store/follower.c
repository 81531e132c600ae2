#include "store/follower.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "store/cell_lease.h"
#include "store/cell_link.h"
#include "store/cell_read.h"
#include "store/digests.h"
#include "store/latest.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SAY_MS = 1000,     /* how often our row is written, and the others' are read */
    PRESENT_MS = 3000, /* who said nothing for so long is not there */
    RETURN_MS = 30000, /* … and after so long will not be back in a moment */
    RETRY_MS = 250,    /* between attempts while the database is away */
    CONNECT_MS = 2000,
    LOAD_ANSWER_MS = 30000, /* a page of a table that nobody has read for long */
    ANSWER_MIN_MS = 1000,   /* otherwise lease_ms, between these */
    ANSWER_MAX_MS = 5000,
    LEAVE_MS = 2000, /* for the last words of a node that ends */

    /* A leader tells of the first of several batches at once, and of the others together. While
     * they come, we look for them ourselves so often, and so long after the last. */
    LINGER_MS = 1,
    LINGER_FOR_MS = 20,

    /* A result beside the errors: what we have cannot be gone on with, so it is loaded again. */
    FROM_SCRATCH = 1,
};

struct follower {
    const struct cell_config *c;
    const struct core_config *config;
    uint8_t secret[CORE_SECRET_SIZE];
    void (*changed)(void *user);
    void *user;
    pthread_t thread;
    int wake_fd;
    bool handed; /* set before stop: what it has goes on elsewhere */
    _Atomic bool stop;

    /* The thread's alone, until it has ended. */
    struct pg *pg;
    struct core *core; /* NULL = nothing is loaded */
    struct store_tip tip;
    int64_t tip_epoch; /* of that batch; 0 = not known */
    int64_t head_seq;  /* that this connection has seen; 0 = it has not looked */
    struct lease lease;
    bool leads;
    bool works; /* this connection has done all of a turn once */
    int64_t hold_off_until_ms;
    int64_t batch_ms;      /* when the newest batch came; 0 = it was loaded */
    int64_t free_since_ms; /* since when the lease may be taken; 0 = it may not */
    int64_t renewed_ms;
    int64_t said_ms; /* 0 = not on this connection */
    bool said_ready;
    bool said; /* there may be a row of ours */
    bool news; /* `changed` is to be called */

    pthread_mutex_t lock; /* guards what follows */
    struct follower_view view;
    int64_t leader_until_ms; /* until then view.leader_known counts */
    bool ready;
    struct cell_seen_node nodes[CELL_NODES_MAX];
    size_t n_nodes;
    int64_t nodes_ms; /* when they were read */
    struct digests digests;
};

/* ── what others see ───────────────────────────────────────────────────────────────────────── */

static void tell(struct follower *f)
{
    if (f->news && f->changed)
        f->changed(f->user);
    f->news = false;
}

static void show_state(struct follower *f, enum follower_state state, const char *why)
{
    pthread_mutex_lock(&f->lock);
    f->news = f->news || f->view.state != state;
    f->view.state = state;
    snprintf(f->view.why, sizeof(f->view.why), "%s", why);
    pthread_mutex_unlock(&f->lock);
    tell(f);
}

/* A leader counts as known for as long as its lease may last, also when nobody can be asked. */
static void show_lease(struct follower *f, const struct cell_lease_seen *seen, int64_t until_ms)
{
    struct follower_view *v = &f->view;
    bool known = seen->row.holder != 0 && f->free_since_ms == 0;
    pthread_mutex_lock(&f->lock);
    f->news = f->news || v->leader_known != known || v->epoch != seen->row.epoch ||
              v->leader.id != seen->leader.id;
    v->leader = seen->leader;
    v->leader_known = known;
    v->epoch = seen->row.epoch;
    v->seq = f->tip.seq;
    v->head_seq = seen->head_seq;
    f->leader_until_ms = until_ms;
    pthread_mutex_unlock(&f->lock);
    tell(f);
}

static void show_until(struct follower *f, int64_t until_ms)
{
    pthread_mutex_lock(&f->lock);
    f->leader_until_ms = until_ms;
    pthread_mutex_unlock(&f->lock);
}

static void show_seq(struct follower *f)
{
    pthread_mutex_lock(&f->lock);
    f->view.seq = f->tip.seq;
    if (f->view.head_seq < f->tip.seq)
        f->view.head_seq = f->tip.seq;
    pthread_mutex_unlock(&f->lock);
}

void follower_look(struct follower *f, struct follower_view *ret)
{
    pthread_mutex_lock(&f->lock);
    *ret = f->view;
    int64_t left_ms = f->leader_until_ms - clock_boot_ms();
    ret->leader_known = ret->leader_known && left_ms > 0;
    ret->leader_left_ms = ret->leader_known ? left_ms : 0;
    pthread_mutex_unlock(&f->lock);
}

size_t follower_nodes(struct follower *f, struct cell_seen_node *ret, size_t max)
{
    pthread_mutex_lock(&f->lock);
    size_t n = f->n_nodes < max ? f->n_nodes : max;
    int64_t age_ms = clock_boot_ms() - f->nodes_ms;
    for (size_t i = 0; i < n; i++) {
        ret[i] = f->nodes[i];
        ret[i].heard_ms += age_ms;
    }
    pthread_mutex_unlock(&f->lock);
    return n;
}

size_t follower_deployments(struct follower *f, uint8_t (*ret)[FOLLOWER_DIGEST], size_t max)
{
    pthread_mutex_lock(&f->lock);
    size_t n = digests_each_once(&f->digests, ret, max);
    pthread_mutex_unlock(&f->lock);
    return n;
}

/* ── rows ──────────────────────────────────────────────────────────────────────────────────── */

/* Where rows go: into what we have, or into what is being loaded. */
struct into {
    struct follower *f;
    struct core *core;
    struct digests *digests;
};

static int take_change(void *user, const struct change *change)
{
    struct into *into = user;
    if (change->kind == ROW_deployment) {
        pthread_mutex_lock(&into->f->lock);
        digests_note(into->digests, change);
        pthread_mutex_unlock(&into->f->lock);
        into->f->news = true;
    }
    return core_load(into->core, change);
}

/* A gap at the beginning is what was trimmed while we were away. A damaged batch may have been
 * taken in part, and then nothing is kept (see run). */
static int take_batch(void *user, const struct store_batch *batch)
{
    struct follower *f = user;
    struct into into = {f, f->core, &f->digests};
    if (batch->seq != f->tip.seq + 1)
        return FROM_SCRATCH;
    int err = changes_each(batch->changes, batch->len, take_change, &into);
    if (err != 0)
        return err;
    f->tip = (struct store_tip){batch->seq, batch->core_ms, batch->wall_ms};
    f->tip_epoch = batch->epoch;
    f->batch_ms = clock_boot_ms();
    show_seq(f);
    return 0;
}

static void forget(struct follower *f)
{
    log_line(LOG_INFO, "cell is loaded again", "cell=%s seq=%" PRId64, f->c->cell, f->tip.seq);
    core_free(f->core);
    f->core = NULL;
    f->tip = (struct store_tip){0};
    show_state(f, FOLLOWER_LOADING, "");
}

/* ── connections ───────────────────────────────────────────────────────────────────────────── */

/* For what must be short: nobody waits for a database that hangs longer than for a leader. */
static int64_t answer_ms(const struct follower *f)
{
    int64_t ms = f->c->lease_ms;
    return ms < ANSWER_MIN_MS ? ANSWER_MIN_MS : ms > ANSWER_MAX_MS ? ANSWER_MAX_MS : ms;
}

static int reach(struct follower *f, const char *what, int64_t connect_ms, int64_t patience_ms,
                 const _Atomic bool *stop, struct why *why)
{
    char schema[CELL_SCHEMA_SIZE];
    struct pg_wish wish = {
        .url = f->c->url,
        .schema = cell_schema(f->c->cell, schema),
        .name = what,
        .connect_ms = connect_ms,
        .answer_ms = patience_ms,
        .stop = stop,
    };
    pg_close(f->pg);
    f->pg = NULL;
    f->head_seq = 0;
    f->said_ms = 0;
    f->free_since_ms = 0;
    f->works = false;
    return pg_connect(&wish, &f->pg, why);
}

/* Our row, once a second and when it is to say something else; with it the others' are read. */
static int keep_row(struct follower *f, struct why *why)
{
    int64_t now_ms = clock_boot_ms();
    pthread_mutex_lock(&f->lock);
    bool ready = f->ready;
    pthread_mutex_unlock(&f->lock);
    ready = ready && f->core && now_ms >= f->hold_off_until_ms;
    if (f->said_ms != 0 && now_ms - f->said_ms < SAY_MS && ready == f->said_ready)
        return 0;
    f->said = true; /* also when there is no answer */
    int err = cell_node_say(f->pg, &f->c->self, f->tip.seq, ready, why);
    struct cell_seen_node nodes[CELL_NODES_MAX];
    size_t n = 0;
    if (err == 0)
        err = cell_nodes_read(f->pg, nodes, CELL_NODES_MAX, &n, why);
    if (err != 0)
        return err;
    f->said_ms = now_ms;
    f->said_ready = ready;
    pthread_mutex_lock(&f->lock);
    memcpy(f->nodes, nodes, n * sizeof(*nodes));
    f->n_nodes = n;
    f->nodes_ms = clock_boot_ms();
    pthread_mutex_unlock(&f->lock);
    return 0;
}

/* Until somebody wakes us, or so long. */
static void doze(struct follower *f, int wait_ms)
{
    struct pollfd fd = {.fd = f->wake_fd, .events = POLLIN};
    (void)poll(&fd, 1, wait_ms);
    eventfd_t ignored;
    (void)eventfd_read(f->wake_fd, &ignored);
}

/* How the lease stands; f->free_since_ms says whether it may be taken. */
static int look(struct follower *f, struct cell_lease_seen *ret, struct why *why)
{
    int err = cell_lease_read(f->pg, ret, why);
    if (err != 0)
        return err;
    int64_t now_ms = clock_boot_ms();
    if (!lease_watch(&f->lease, &ret->row, now_ms))
        f->free_since_ms = 0;
    else if (f->free_since_ms == 0)
        f->free_since_ms = now_ms;
    if (f->free_since_ms == 0 && ret->row.holder != f->c->self.id)
        f->hold_off_until_ms = 0; /* another has gone first */
    show_lease(f, ret, f->lease.seen_ms + f->lease.lease_ms);
    return 0;
}

/* ── loading ───────────────────────────────────────────────────────────────────────────────── */

/* What is said of ourselves must not be left in doubt, or a row stays of a node that has ended. */
static int introduce(struct follower *f, struct why *why)
{
    pg_set_stop(f->pg, NULL);
    pg_set_patience(f->pg, answer_ms(f));
    int err = keep_row(f, why);
    pg_set_stop(f->pg, &f->stop);
    pg_set_patience(f->pg, LOAD_ANSWER_MS);
    return err;
}

/* It has a connection of its own, whose calls may last. */
static int load_over(struct follower *f, struct into *into, struct store_tip *tip, int64_t *epoch,
                     struct why *why)
{
    struct cell_lease_seen seen;
    int err = reach(f, "muster load", CONNECT_MS, LOAD_ANSWER_MS, &f->stop, why);
    if (err == 0)
        err = cell_prepare_on(f->pg, f->c, why);
    if (err == 0)
        err = cell_lease_prepare(f->pg, why);
    if (err == 0)
        err = cell_read_prepare(f->pg, why);
    if (err == 0)
        err = introduce(f, why);
    if (err == 0)
        err = look(f, &seen, why);
    if (err != 0)
        return err;
    show_state(f, FOLLOWER_LOADING, "");
    return cell_read_all(f->pg, take_change, into, tip, epoch, why);
}

/* What is deployed is not forgotten meanwhile. */
static int load(struct follower *f, struct why *why)
{
    struct digests digests = {0};
    struct into into = {f, core_new(f->config, f->secret), &digests};
    struct store_tip tip = {0};
    int64_t epoch = 0;
    int64_t from_ms = clock_boot_ms();
    int err = load_over(f, &into, &tip, &epoch, why);
    if (err != 0) {
        core_free(into.core);
        digests_done(&digests);
        return err;
    }
    f->core = into.core;
    f->tip = tip;
    f->tip_epoch = epoch;
    f->batch_ms = 0;
    pthread_mutex_lock(&f->lock);
    struct digests before = f->digests;
    f->digests = digests;
    pthread_mutex_unlock(&f->lock);
    digests_done(&before);
    show_seq(f);
    log_line(LOG_INFO, "cell loaded", "cell=%s seq=%" PRId64 " ms=%" PRId64, f->c->cell, tip.seq,
             clock_boot_ms() - from_ms);
    return 0;
}

/* ── following ─────────────────────────────────────────────────────────────────────────────── */

static const char tip_sql[] =
    "SELECT epoch, core_ms, wall_ms FROM journal WHERE seq = $1::bigint UNION ALL"
    " SELECT 0, core_ms, wall_ms FROM fold WHERE seq = $1::bigint LIMIT 1";

/* Whether the newest batch we have is one of the cell's still. It is not when the database went
 * back, to a backup or to a copy that had not heard of all; nor can we say when it was trimmed. */
static int check_tip(struct follower *f, struct why *why)
{
    struct pg_args args = {0};
    struct pg_result *r = NULL;
    pg_int(&args, f->tip.seq);
    int err = pg_query(f->pg, tip_sql, &args, &r, why);
    if (err != 0)
        return err;
    bool same = false;
    if (pg_rows(r) > 0) {
        int64_t epoch = pg_get_int(r, 0, 0);
        same = (epoch == f->tip_epoch || epoch == 0 || f->tip_epoch == 0) &&
               pg_get_int(r, 0, 1) == f->tip.core_ms && pg_get_int(r, 0, 2) == f->tip.wall_ms;
    }
    pg_free(r);
    return same ? 0 : FROM_SCRATCH;
}

static int join(struct follower *f, struct why *why)
{
    int err = reach(f, "muster follow", CONNECT_MS, answer_ms(f), &f->stop, why);
    if (err != 0)
        return err;
    /* What is asked from here on is short, and must not be left in doubt. */
    pg_set_stop(f->pg, NULL);
    err = cell_read_prepare(f->pg, why);
    if (err == 0)
        err = cell_lease_prepare(f->pg, why);
    if (err == 0)
        err = cell_listen(f->pg, f->c->cell, why);
    if (err == 0 && !f->leads)
        err = check_tip(f, why);
    return err;
}

/* Whether a node was heard so recently that is neither we nor the one whose lease ran out. */
static bool others(struct follower *f, int64_t holder, bool ready, int64_t heard_ms)
{
    bool found = false;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_nodes; i++) {
        const struct cell_seen_node *n = &f->nodes[i];
        found = found || (n->node.id != f->c->self.id && n->node.id != holder &&
                          n->heard_ms < heard_ms && (n->ready || !ready));
    }
    pthread_mutex_unlock(&f->lock);
    return found;
}

/* May the lease be taken, and by us? Who was told to step down lets the others go first, and who is
 * not ready lets those who are, but neither for ever. */
static bool wants(struct follower *f, int64_t holder)
{
    int64_t now_ms = clock_boot_ms();
    if (f->free_since_ms == 0 ||
        (now_ms < f->hold_off_until_ms && others(f, holder, false, PRESENT_MS)))
        return false;
    pthread_mutex_lock(&f->lock);
    bool ready = f->ready;
    pthread_mutex_unlock(&f->lock);
    return ready || now_ms - f->free_since_ms >= f->lease.lease_ms ||
           !others(f, holder, true, RETURN_MS);
}

/* The lease is ours, so the journal has an end. What the leader before us wrote while we took it
 * comes still. */
static int catch_up(struct follower *f, struct why *why)
{
    struct cell_lease_seen seen;
    int err = 0;
    for (int n = 1; n > 0 && err == 0;)
        err = cell_read_journal(f->pg, f->tip.seq, take_batch, f, &n, why);
    if (err == 0)
        err = cell_lease_read(f->pg, &seen, why);
    if (err != 0)
        return err;
    if (seen.row.epoch != f->lease.epoch || !lease_holds(&f->lease, clock_boot_ms())) {
        lease_lost(&f->lease);
        return 0;
    }
    f->free_since_ms = 0;
    show_lease(f, &seen, f->lease.until_ms);
    return seen.head_seq == f->tip.seq ? 0 : FROM_SCRATCH;
}

static int take(struct follower *f, const struct lease_row *seen, struct why *why)
{
    int64_t epoch = 0;
    int64_t sent_ms = clock_boot_ms();
    int err = cell_lease_take(f->pg, &f->c->self, seen, &epoch, why);
    if (err != 0 || epoch == 0)
        return err;
    lease_taken(&f->lease, epoch, sent_ms);
    f->renewed_ms = sent_ms;
    err = catch_up(f, why);
    if (err != 0)
        lease_lost(&f->lease);
    if (err != 0 || !f->lease.held)
        return err;
    f->leads = true;
    log_line(LOG_INFO, "lease taken",
             "cell=%s epoch=%" PRId64 " seq=%" PRId64 " before=%" PRId64 " ms=%" PRId64, f->c->cell,
             epoch, f->tip.seq, seen->holder, clock_boot_ms() - sent_ms);
    show_state(f, FOLLOWER_LEADS, "");
    return 0;
}

static enum pg_news hear(struct follower *f, int64_t wait_ms)
{
    enum pg_news news = pg_wait(f->pg, wait_ms, f->wake_fd);
    if (news == PG_NEWS_WOKEN)
        doze(f, 0);
    return news;
}

static void wait_for_news(struct follower *f)
{
    int64_t now_ms = clock_boot_ms();
    int64_t wait_ms = lease_watch_ms(&f->lease);
    int64_t runs_out_ms = f->lease.seen_ms + f->lease.lease_ms - now_ms;
    if (f->free_since_ms == 0 && runs_out_ms < wait_ms)
        wait_ms = runs_out_ms;
    if (f->said_ms + SAY_MS - now_ms < wait_ms)
        wait_ms = f->said_ms + SAY_MS - now_ms;
    if (wait_ms > 0)
        (void)hear(f, wait_ms);
}

/* Turns without a look at the lease, until there is something to hear or it is time for one. */
static int linger(struct follower *f, struct why *why)
{
    int err = 0;
    int n = 0;
    int64_t until_ms = clock_boot_ms() + lease_watch_ms(&f->lease);
    for (int64_t now_ms = 0;
         err == 0 && now_ms < until_ms && now_ms < f->batch_ms + LINGER_FOR_MS && !f->stop;
         now_ms = clock_boot_ms()) {
        if (hear(f, LINGER_MS) != PG_NEWS_NONE)
            break;
        err = cell_read_journal(f->pg, f->tip.seq, take_batch, f, &n, why);
    }
    return err;
}

/* One turn: what is new first, for that is what a standby is for. */
static int follow(struct follower *f, struct why *why)
{
    struct cell_lease_seen seen;
    int n = 0;
    int err = cell_read_journal(f->pg, f->tip.seq, take_batch, f, &n, why);
    if (err == 0 && n == 0 && f->tip.seq < f->head_seq)
        err = FROM_SCRATCH; /* all of it was trimmed */
    if (err == 0)
        err = look(f, &seen, why);
    if (err == 0 && seen.head_seq < f->tip.seq)
        err = FROM_SCRATCH; /* the database went back */
    if (err == 0)
        err = keep_row(f, why);
    if (err != 0)
        return err;
    f->head_seq = seen.head_seq;
    if (f->view.state != FOLLOWER_FOLLOWING)
        log_line(LOG_INFO, "following", "cell=%s seq=%" PRId64 " head=%" PRId64, f->c->cell,
                 f->tip.seq, seen.head_seq);
    show_state(f, FOLLOWER_FOLLOWING, "");
    f->works = true;
    if (f->tip.seq < seen.head_seq)
        return 0;
    if (wants(f, seen.row.holder))
        return take(f, &seen.row, why);
    if (clock_boot_ms() < f->batch_ms + LINGER_FOR_MS)
        return linger(f, why);
    wait_for_news(f);
    return 0;
}

static int renew(struct follower *f, struct why *why)
{
    bool ours = false;
    int64_t sent_ms = clock_boot_ms();
    int err = cell_lease_renew(f->pg, f->c->self.id, f->lease.epoch, &ours, why);
    if (err != 0)
        return err;
    if (!ours) {
        lease_lost(&f->lease);
        return 0;
    }
    lease_renewed(&f->lease, sent_ms);
    f->renewed_ms = sent_ms;
    show_until(f, f->lease.until_ms);
    return 0;
}

/* Somebody will come for what we have. Until then the lease is kept, and if that cannot be, whoever
 * comes finds one that does not hold. */
static int reign(struct follower *f, struct why *why)
{
    int err = 0;
    if (clock_boot_ms() - f->renewed_ms >= lease_renew_ms(&f->lease))
        err = renew(f, why);
    if (err == 0)
        err = keep_row(f, why);
    f->works = f->works || err == 0;
    if (err == 0)
        (void)hear(f, lease_renew_ms(&f->lease));
    return err;
}

/* ── the thread ────────────────────────────────────────────────────────────────────────────── */

/* It led, and nobody came for it in time. */
static bool is_over(const struct follower *f)
{
    return f->leads && !lease_holds(&f->lease, clock_boot_ms());
}

/* Over one connection, or two; returns why that cannot go on, or 0 when it is to end. */
static int work(struct follower *f, struct why *why)
{
    int err = f->core ? 0 : load(f, why);
    if (err == 0)
        err = join(f, why);
    while (err == 0 && !f->stop && !is_over(f))
        err = f->leads ? reign(f, why) : follow(f, why);
    return err;
}

static void say_away(struct follower *f, const struct why *why)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (f->view.state != FOLLOWER_AWAY)
        log_line(LOG_WARN, "database away", "cell=%s why=%s", f->c->cell,
                 log_quote(quoted, str_of(why->text)));
    show_state(f, FOLLOWER_AWAY, why->text);
}

/* What came of a failure. False: there is nothing left to do. What cannot be read while following
 * is looked at again from the beginning, where the cell's format is checked too: it may be a newer
 * node's. */
static bool go_on(struct follower *f, int err, const struct why *why)
{
    if (is_over(f) || (err == ERR_FORMAT && !f->core))
        return false;
    bool worked = f->works;
    if (f->leads) {
        log_line(LOG_WARN, "lease cannot be renewed", "cell=%s epoch=%" PRId64, f->c->cell,
                 f->lease.epoch);
    } else if (err == FROM_SCRATCH || err == ERR_FORMAT) {
        forget(f);
    } else if (!worked) {
        say_away(f, why);
    }
    if (!worked)
        doze(f, RETRY_MS);
    return true;
}

/* Whoever goes on has to connect first, and gets all the time there is. */
static void hand_over(struct follower *f)
{
    struct why why;
    if (!f->pg || pg_lost(f->pg) || is_over(f))
        return;
    pg_set_patience(f->pg, lease_renew_ms(&f->lease));
    (void)renew(f, &why);
}

/* The last words, when nobody goes on with what we have. */
static void depart(struct follower *f)
{
    struct why why;
    if (!f->said || f->view.state == FOLLOWER_AWAY)
        return;
    if (!f->pg || pg_lost(f->pg)) {
        if (reach(f, "muster leave", LEAVE_MS, LEAVE_MS, NULL, &why) != 0 ||
            cell_lease_prepare(f->pg, &why) != 0)
            return;
    }
    pg_set_patience(f->pg, LEAVE_MS);
    pg_set_stop(f->pg, NULL);
    if (f->lease.epoch > 0)
        (void)cell_lease_give_back(f->pg, f->c->self.id, f->lease.epoch, &why);
    if (!pg_lost(f->pg))
        (void)cell_node_leave(f->pg, f->c->self.id, &why);
}

static void *run(void *arg)
{
    struct follower *f = arg;
    struct why why = {""};
    while (!f->stop) {
        int err = work(f, &why);
        if (f->stop)
            break;
        pg_close(f->pg);
        f->pg = NULL;
        if (!go_on(f, err, &why)) {
            if (!f->leads)
                show_state(f, FOLLOWER_FAILED, why.text);
            while (!f->stop)
                doze(f, -1);
        }
    }
    if (f->handed)
        hand_over(f);
    else
        depart(f);
    pg_close(f->pg);
    return NULL;
}

/* ── life ──────────────────────────────────────────────────────────────────────────────────── */

struct follower *follower_start(const struct cell_config *c, const struct core_config *core,
                                const uint8_t secret[CORE_SECRET_SIZE], int64_t hold_off_ms,
                                void (*changed)(void *user), void *user)
{
    struct follower *f = xcalloc(1, sizeof(*f));
    f->c = c;
    f->config = core;
    memcpy(f->secret, secret, CORE_SECRET_SIZE);
    f->changed = changed;
    f->user = user;
    f->hold_off_until_ms = clock_boot_ms() + hold_off_ms;
    f->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert(f->wake_fd >= 0);
    lease_init(&f->lease, c->self.id, c->lease_ms);
    pthread_mutex_init(&f->lock, NULL);
    int err = pthread_create(&f->thread, NULL, run, f);
    assert(err == 0);
    (void)pthread_setname_np(f->thread, "follow");
    return f;
}

static void wake(struct follower *f)
{
    (void)eventfd_write(f->wake_fd, 1);
}

void follower_set_ready(struct follower *f, bool ready)
{
    pthread_mutex_lock(&f->lock);
    bool same = f->ready == ready;
    f->ready = ready;
    pthread_mutex_unlock(&f->lock);
    if (!same)
        wake(f);
}

static void end_thread(struct follower *f, bool handed)
{
    f->handed = handed;
    f->stop = true;
    wake(f);
    pthread_join(f->thread, NULL);
}

static void free_follower(struct follower *f)
{
    core_free(f->core);
    digests_done(&f->digests);
    close(f->wake_fd);
    pthread_mutex_destroy(&f->lock);
    sodium_memzero(f->secret, sizeof(f->secret));
    free(f);
}

void follower_take(struct follower *f, struct core **ret_core, struct store_tip *ret_tip,
                   struct cell_term *ret_term)
{
    end_thread(f, true);
    assert(f->leads);
    *ret_core = f->core;
    *ret_tip = f->tip;
    *ret_term =
        (struct cell_term){.epoch = f->lease.epoch, .lease = f->lease, .heard_ms = f->batch_ms};
    f->core = NULL;
    free_follower(f);
}

void follower_stop(struct follower *f)
{
    if (!f)
        return;
    end_thread(f, false);
    free_follower(f);
}

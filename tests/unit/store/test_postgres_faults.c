/* The store of a cell when connections, servers and leaders fail: nothing that was said to be
 * durable is lost, nothing is there twice, and nobody writes who does not lead. */
#include "leader.h"
#include "proxy.h"

#include "store/postgres_link.h"

#include <dirent.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

static void begin_one(struct store *store, int64_t seq)
{
    struct buf changes = {0};
    model_batch(&changes, seq);
    struct store_batch batch = {.seq = seq,
                                .epoch = 1,
                                .core_ms = seq * 10,
                                .wall_ms = seq * 100,
                                .changes = changes.data,
                                .len = changes.len};
    assert_int_equal(store->ops->begin(store, &batch), 0);
    buf_done(&changes);
}

static int end_one(struct store *store)
{
    int result = 99;
    assert_true(store->ops->end(store, -1, &result));
    return result;
}

/* What the journal has, by itself: each batch once. */
static void check_journal(const char *schema, int64_t last)
{
    assert_int_equal(postgres_ask(schema, "SELECT count(*) FROM journal"), last);
    assert_int_equal(postgres_ask(schema, "SELECT max(seq) FROM journal"), last);
}

/* ── connections that are cut ──────────────────────────────────────────────────────────────── */

struct cutting {
    struct proxy proxy;
    struct leader leader;
    int64_t seq;
    int64_t one_sent; /* bytes of one commit, and of its answer */
    int64_t one_answered;
};

static void cutting_start(struct cutting *c, const char *cell)
{
    proxy_start(&c->proxy);
    leader_take(&c->leader, proxy_url(&c->proxy), cell, 1, LEADER_LONG_MS);
    leader_open(&c->leader, &leader_lazy);
    int64_t sent = c->proxy.sent;
    int64_t answered = c->proxy.answered;
    model_commit(c->leader.store, 1, 1);
    c->seq = 1;
    c->one_sent = c->proxy.sent - sent;
    c->one_answered = c->proxy.answered - answered;
    assert_true(c->one_sent > 100 && c->one_answered > 10);
}

/* So many batches on their way, of which the first are cut after so many bytes. The server is well
 * and the lease is ours: whatever became of them on the way, all of them become durable. */
static void cut_once(struct cutting *c, int batches, bool answer, int64_t after)
{
    proxy_cut(&c->proxy, answer, after);
    for (int i = 1; i <= batches; i++)
        begin_one(c->leader.store, c->seq + i);
    for (int i = 1; i <= batches; i++)
        assert_int_equal(end_one(c->leader.store), 0);
    c->seq += batches;
    proxy_cut(&c->proxy, answer, -1);
}

static void a_commit_is_cut_at_every_point(void **state)
{
    (void)state;
    static struct cutting c;
    cutting_start(&c, "cut");
    int64_t step = c.one_sent / 100 + 1;
    for (int64_t at = 0; at<c.one_sent; at += at + 25> c.one_sent ? 1 : step)
        cut_once(&c, 1, false, at);
    for (int64_t at = 0; at < c.one_answered; at++)
        cut_once(&c, 1, true, at);
    for (int64_t at = 0; at < 3 * c.one_answered; at += 2)
        cut_once(&c, 3, true, at);
    for (int64_t at = c.one_sent / 2; at < 3 * c.one_sent; at += c.one_sent / 16)
        cut_once(&c, 4, false, at);
    int cuts = proxy_cuts(&c.proxy);
    print_message("%d cuts, of commits with %d bytes and answers with %d\n", cuts, (int)c.one_sent,
                  (int)c.one_answered);
    assert_true(cuts >= 200);
    assert_true(store_holds(c.leader.store));
    model_check(c.leader.store, c.seq);
    check_journal("muster_cut", c.seq);
    assert_int_equal(history_check(c.leader.store, INT64_MAX, c.seq), c.seq);
    store_close(c.leader.store);
    proxy_stop(&c.proxy);
}

/* What an earlier connection had begun may arrive when nobody waits for it any more. */
static void what_arrives_late_does_nothing(void **state)
{
    (void)state;
    static struct cutting c;
    proxy_start(&c.proxy);
    leader_take(&c.leader, proxy_url(&c.proxy), "late", 1, 8000);
    leader_open(&c.leader, &leader_lazy);
    struct store *store = c.leader.store;
    model_commit(store, 1, 1);
    for (c.seq = 1; c.seq < 7; c.seq += 3) {
        proxy_set(&c.proxy, &c.proxy.hold);
        for (int i = 1; i <= 2; i++)
            begin_one(store, c.seq + i);
        assert_int_equal(end_one(store), 0); /* on another connection */
        assert_int_equal(end_one(store), 0);
        proxy_set(&c.proxy, &c.proxy.release);
        leader_await(NULL,
                     "SELECT count(*) FROM pg_stat_activity"
                     " WHERE application_name = 'muster commit'",
                     1);
        model_commit(store, c.seq + 3, c.seq + 3);
        assert_true(store_holds(store));
    }
    model_check(store, c.seq);
    check_journal("muster_late", c.seq);
    store_close(store);
    proxy_stop(&c.proxy);
}

/* Whoever has claimed the head knows where the journal ends: what an earlier connection had begun
 * cannot come behind that any more. */
static void what_arrives_after_the_claim_is_refused(void **state)
{
    (void)state;
    static struct proxy proxy;
    static struct leader l;
    static struct postgres_link early;
    static struct postgres_link late;
    struct tenure tenure;
    struct why why = {""};
    struct store_tip tip = {0};
    proxy_start(&proxy);
    leader_take(&l, proxy_url(&proxy), "claimed", 1, LEADER_LONG_MS);
    tenure_init(&tenure, &l.term, 1);
    leader_good(link_open(&early, &l.c, &tenure, &l.tip, &why), &why);
    proxy_set(&proxy, &proxy.hold);
    struct store_batch batch = {.seq = 1, .core_ms = 1, .wall_ms = 1};
    link_begin(&early, &batch);
    leader_good(link_open(&late, &l.c, &tenure, &l.tip, &why), &why);
    assert_int_equal(link_tip(&late, &tip), 0);
    assert_int_equal(tip.seq, 0);
    proxy_set(&proxy, &proxy.release);
    leader_await(
        NULL, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'muster commit'", 1);
    assert_int_equal(postgres_ask("muster_claimed", "SELECT count(*) FROM journal"), 0);
    int result = 99;
    const struct link_batch *ended = NULL;
    batch.wall_ms = 2;
    link_begin(&late, &batch);
    assert_true(link_end(&late, -1, &result, &ended));
    assert_int_equal(result, 0);
    assert_int_equal(postgres_ask("muster_claimed", "SELECT sum(wall_ms)::bigint FROM journal"), 2);
    link_close(&early);
    link_close(&late);
    proxy_stop(&proxy);
}

/* PostgreSQL ends connections at any time, while as many batches as can are on their way. */
static void backends_are_ended_under_load(void **state)
{
    (void)state;
    enum { LAST = 3000 };
    static struct leader l;
    struct store *store = leader_start(&l, "ended", &leader_eager);
    struct pg *pg = postgres_connect(NULL);
    struct why why = {""};
    int ends = 0;
    int64_t begun = 0;
    unsigned x = 1;
    for (int64_t ended = 0; ended < LAST; ended++) {
        while (begun - ended < store_depth(store) && begun < LAST)
            begin_one(store, ++begun);
        x = x * 1664525u + 1013904223u;
        if (x >> 24 < 12) {
            struct pg_result *r = NULL;
            leader_good(pg_query(pg,
                                 "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                 " WHERE application_name IN ('muster commit', 'muster fold')",
                                 NULL, &r, &why),
                        &why);
            ends += pg_rows(r);
            pg_free(r);
        }
        assert_int_equal(end_one(store), 0);
    }
    print_message("%d backends ended\n", ends);
    assert_true(ends > 50 && store_holds(store));
    fixture_wait_folded(store, LAST);
    model_check(store, LAST);
    assert_int_equal(postgres_ask("muster_ended", "SELECT max(seq) FROM journal"), LAST);
    pg_close(pg);
    store_close(store);
}

/* ── leaders that are none ─────────────────────────────────────────────────────────────────── */

static void who_was_fenced_writes_nothing(void **state)
{
    (void)state;
    static struct leader old;
    static struct leader new;
    leader_start(&old, "fenced", &leader_lazy);
    model_commit(old.store, 1, 5);
    begin_one(old.store, 6);
    begin_one(old.store, 7);
    leader_take(&new, postgres_url(), "fenced", 2, LEADER_LONG_MS);
    leader_open(&new, &leader_lazy);
    /* What was begun before is there, or never will be. */
    int results[2] = {end_one(old.store), end_one(old.store)};
    assert_int_equal(new.tip.seq, 5 + (results[0] == 0) + (results[1] == 0));
    int64_t last = new.tip.seq;
    if (store_holds(old.store)) {
        begin_one(old.store, last + 1);
        assert_int_equal(end_one(old.store), ERR_IO);
    }
    assert_false(store_holds(old.store));
    check_journal("muster_fenced", last);
    struct store_tip tip;
    struct model found = {0};
    assert_int_equal(store_tip(old.store, &tip), ERR_IO);
    assert_int_equal(store_load(old.store, model_sink, &found, &tip), ERR_IO);
    model_done(&found);
    model_commit(new.store, last + 1, last + 5);
    begin_one(old.store, last + 1);
    assert_int_equal(end_one(old.store), ERR_IO);
    begin_one(old.store, last + 6);
    assert_int_equal(end_one(old.store), ERR_IO);
    model_check(new.store, last + 5);
    assert_int_equal(postgres_ask("muster_fenced", "SELECT max(epoch) FROM journal"), 2);
    store_give_back(old.store); /* it is not his */
    assert_int_equal(postgres_ask("muster_fenced", "SELECT holder FROM lease"), 2);
    store_close(old.store);
    store_close(new.store);
}

/* Nobody has told him, and he does not commit: his fold finds out by itself, in time. */
static void a_fenced_fold_changes_nothing(void **state)
{
    (void)state;
    static struct leader old;
    static struct leader new;
    struct postgres_fold_tuning slow = leader_lazy;
    slow.fold.interval_ms = 5000; /* after the lease is taken, however long that takes */
    for (int round = 0; round < 2; round++) {
        leader_start(&old, "unfolded", &slow);
        model_commit(old.store, old.tip.seq + 1, old.tip.seq + 5);
        leader_take(&new, postgres_url(), "unfolded", 2, LEADER_LONG_MS);
        assert_true(store_holds(old.store)); /* so he believes */
        struct patience patience = {0};
        while (store_holds(old.store)) {
            assert_true(patience_lasts(&patience));
            usleep(1000);
        }
        assert_int_equal(postgres_ask("muster_unfolded", "SELECT seq FROM fold"), 0);
        assert_int_equal(postgres_ask("muster_unfolded",
                                      "SELECT (SELECT count(*) FROM ticket) + (SELECT count(*)"
                                      " FROM seat) + (SELECT count(*) FROM server)"
                                      " + (SELECT count(*) FROM session)"),
                         0);
        store_close(old.store);
    }
}

struct racer {
    int64_t node;
    _Atomic bool *enough;
    _Atomic int terms;
    _Atomic int64_t said; /* batches that were said to be durable */
    pthread_t thread;
};

static bool write_one(struct racer *r, struct store *store, int64_t seq)
{
    struct buf changes = {0};
    fixture_add(&changes, ROW_seat, seq % MODEL_IDS, (unsigned)seq);
    struct store_batch batch = {.seq = seq,
                                .core_ms = seq * 10,
                                .wall_ms = r->node,
                                .changes = changes.data,
                                .len = changes.len};
    bool durable = store_commit(store, &batch) == 0;
    buf_done(&changes);
    r->said += durable;
    return durable;
}

/* Which batches a term has said to be durable. */
static void note_term(const struct racer *r, const struct leader *l, int64_t last)
{
    char sql[160];
    snprintf(sql, sizeof(sql), "INSERT INTO said VALUES (%lld, %lld, %lld, %lld)",
             (long long)l->term.epoch, (long long)r->node, (long long)l->tip.seq, (long long)last);
    postgres_do("public", sql);
}

/* Takes the lease from whoever has it, writes until it is taken away, and takes it again. */
static void *race(void *arg)
{
    struct racer *r = arg;
    while (!*r->enough) {
        struct leader l;
        struct why why = {""};
        leader_take(&l, postgres_url(), "race", r->node, LEADER_LONG_MS);
        if (postgres_open_tuned(&l.c, &l.term, &l.tip, &leader_eager, &l.store, &why) != 0)
            continue;
        int64_t seq = l.tip.seq;
        while (!*r->enough && write_one(r, l.store, seq + 1))
            seq++;
        note_term(r, &l, seq);
        r->terms++;
        store_close(l.store);
    }
    return NULL;
}

/* Each term's batches follow those it found, without a gap, and nobody else's are among them. */
static void two_that_race_write_one_journal(void **state)
{
    (void)state;
    enum { TERMS = 4 };
    static struct racer racers[2];
    static _Atomic bool enough;
    postgres_do(NULL, "CREATE TABLE public.said (epoch bigint, node bigint, first bigint,"
                      " last bigint)");
    for (int i = 0; i < 2; i++)
        racers[i] = (struct racer){.node = i + 1, .enough = &enough};
    struct cell_config c = {.url = postgres_url(), .cell = "race", .lease_ms = LEADER_LONG_MS};
    struct why why = {""};
    leader_good(cell_prepare(&c, &why), &why);
    postgres_do("muster_race", "CREATE TABLE public.raced AS SELECT * FROM journal;"
                               "CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS"
                               " $$BEGIN INSERT INTO public.raced VALUES (NEW.*); RETURN NULL;"
                               " END$$; CREATE TRIGGER note AFTER INSERT ON journal FOR EACH ROW"
                               " EXECUTE FUNCTION public.note()");
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    for (int i = 0; i < 2; i++)
        while (racers[i].terms < TERMS || racers[i].said == 0)
            usleep(1000);
    enough = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(racers[i].thread, NULL), 0);
    int64_t terms = postgres_ask(NULL, "SELECT count(*) FROM public.said");
    int64_t said = racers[0].said + racers[1].said;
    print_message("%d terms, %d batches\n", (int)terms, (int)said);
    assert_true(terms >= 2 * TERMS);
    /* All batches, each once, without a gap, of epochs that only grow. */
    assert_int_equal(postgres_ask(NULL, "SELECT count(*) - max(seq) FROM public.raced"), 0);
    assert_int_equal(postgres_ask(NULL, "SELECT count(*) FROM public.raced a JOIN public.raced b"
                                        " ON b.seq = a.seq + 1 AND b.epoch < a.epoch"),
                     0);
    /* What was said is there, with the term and the node that said it. */
    assert_int_equal(postgres_ask(NULL, "SELECT count(*) FROM public.said s,"
                                        " generate_series(s.first + 1, s.last) n WHERE NOT EXISTS"
                                        " (SELECT FROM public.raced r WHERE r.seq = n AND r.epoch"
                                        " = s.epoch AND r.wall_ms = s.node)"),
                     0);
    postgres_do(NULL, "DROP TABLE public.said");
}

/* ── servers and processes that stop ───────────────────────────────────────────────────────── */

/* 0 when there is no such process, or nobody's. */
static long parent_of(const char *pid)
{
    char path[300];
    char line[512] = "";
    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    const char *end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
    fclose(f);
    return end && strlen(end) > 4 ? strtol(end + 4, NULL, 10) : 0; /* ") S 123" */
}

/* The postmaster and all its backends. */
static void signal_server(int signal)
{
    DIR *dir = opendir("/proc");
    assert_non_null(dir);
    assert_int_equal(kill(postgres.pid, signal), 0);
    for (struct dirent *e; (e = readdir(dir));) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0 && parent_of(e->d_name) == postgres.pid)
            (void)kill((pid_t)pid, signal);
    }
    closedir(dir);
}

static void a_server_that_hangs_ends_the_lease(void **state)
{
    (void)state;
    static struct leader l;
    leader_take(&l, postgres_url(), "hangs", 1, 8000);
    leader_open(&l, &leader_eager);
    model_commit(l.store, 1, 5);
    signal_server(SIGSTOP);
    int64_t stopped_ms = clock_monotonic_ms();
    begin_one(l.store, 6);
    int result = end_one(l.store); /* waits for as long as the lease holds */
    int64_t took_ms = clock_monotonic_ms() - stopped_ms;
    bool holds = store_holds(l.store);
    signal_server(SIGCONT);
    print_message("ended after %d ms\n", (int)took_ms);
    assert_int_equal(result, ERR_IO);
    assert_false(holds);
    usleep(300000); /* by now it could be renewed */
    assert_false(store_holds(l.store));
    begin_one(l.store, 6);
    assert_int_equal(end_one(l.store), ERR_IO);
    store_close(l.store);
    /* What nobody was told of is there or not. */
    leader_start(&l, "hangs", &leader_eager);
    assert_in_range(l.tip.seq, 5, 6);
    model_check(l.store, l.tip.seq);
    store_close(l.store);
}

/* A short pause of the server's costs time and nothing else. */
static void a_server_that_stops_for_a_while_is_waited_for(void **state)
{
    (void)state;
    static struct leader l;
    leader_take(&l, postgres_url(), "pause", 1, 6000);
    leader_open(&l, &leader_eager);
    model_commit(l.store, 1, 5);
    for (int64_t seq = 6; seq <= 10; seq += 2) {
        signal_server(SIGSTOP);
        begin_one(l.store, seq);
        begin_one(l.store, seq + 1);
        usleep(200000);
        signal_server(SIGCONT);
        assert_int_equal(end_one(l.store), 0);
        assert_int_equal(end_one(l.store), 0);
    }
    assert_true(store_holds(l.store));
    model_check(l.store, 11);
    store_close(l.store);
}

static void a_server_that_restarts_is_ridden_through(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "restart", &leader_eager);
    model_commit(store, 1, 5);
    for (int64_t seq = 6; seq <= 15; seq += 5) {
        begin_one(store, seq);
        begin_one(store, seq + 1);
        postgres_stop(seq == 6 ? SIGINT : SIGQUIT); /* in order, and as in a crash */
        begin_one(store, seq + 2);
        postgres_start();
        for (int i = 0; i < 3; i++)
            assert_int_equal(end_one(store), 0);
        model_commit(store, seq + 3, seq + 4);
    }
    assert_true(store_holds(store));
    fixture_wait_folded(store, 15);
    model_check(store, 15);
    store_close(store);
}

/* The child leads and writes, and says how far it is; it ends when it is no leader any more. */
static pid_t lead_in_child(const char *cell, int64_t lease_ms, int *ret_fd)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        close(fds[1]);
        *ret_fd = fds[0];
        return pid;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    static struct leader l;
    leader_take(&l, postgres_url(), cell, 7, lease_ms);
    leader_open(&l, &leader_eager);
    int result = 0;
    for (int64_t seq = l.tip.seq + 1; result == 0; seq++) {
        begin_one(l.store, seq);
        result = end_one(l.store);
        if (result == 0 && write(fds[1], &seq, sizeof(seq)) != (ssize_t)sizeof(seq))
            break;
    }
    _exit(store_holds(l.store) ? 1 : 3);
}

static int64_t last_said(int fd)
{
    int64_t seq = 0;
    while (read(fd, &seq, sizeof(seq)) == (ssize_t)sizeof(seq))
        ;
    close(fd);
    return seq;
}

static void a_node_that_was_stopped_wakes_up_fenced(void **state)
{
    (void)state;
    static struct leader l;
    int fd = -1;
    int status = 0;
    int64_t seq = 0;
    pid_t child = lead_in_child("asleep", 6000, &fd);
    for (int i = 0; i < 20; i++)
        assert_int_equal(read(fd, &seq, sizeof(seq)), sizeof(seq));
    assert_int_equal(kill(child, SIGSTOP), 0);
    usleep(6500000); /* longer than its lease */
    leader_start(&l, "asleep", &leader_eager);
    model_commit(l.store, l.tip.seq + 1, l.tip.seq + 20);
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
    seq = last_said(fd);
    assert_true(seq <= l.tip.seq);
    model_commit(l.store, l.tip.seq + 21, l.tip.seq + 30);
    fixture_wait_folded(l.store, l.tip.seq + 30);
    model_check(l.store, l.tip.seq + 30);
    store_close(l.store);
}

static void a_node_that_is_killed_loses_nothing_that_it_said(void **state)
{
    (void)state;
    unsigned x = 7;
    int64_t total = 0;
    for (int round = 0; round < 25; round++) {
        static struct leader l;
        int fd = -1;
        int status = 0;
        int64_t seq = 0;
        pid_t child = lead_in_child("killed", 60000, &fd);
        assert_int_equal(read(fd, &seq, sizeof(seq)), sizeof(seq));
        x = x * 1664525u + 1013904223u;
        usleep((x >> 16) % 60000);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        int64_t said = last_said(fd);
        said = said > seq ? said : seq;
        leader_start(&l, "killed", &leader_lazy);
        assert_true(l.tip.seq >= said);
        assert_true(l.tip.seq <= said + 1);
        model_check(l.store, l.tip.seq);
        total = l.tip.seq;
        store_close(l.store);
    }
    print_message("%d batches\n", (int)total);
}

/* ── synchronous replication ───────────────────────────────────────────────────────────────── */

struct ending {
    struct store *store;
    pthread_t thread;
    _Atomic bool over;
    int result;
};

static void *end_in_thread(void *arg)
{
    struct ending *e = arg;
    e->result = end_one(e->store);
    e->over = true;
    return NULL;
}

/* PostgreSQL waits for a standby that does not come. What it has committed is there for all to
 * see, but it is not durable until the standby has it; somebody who cancels the wait does not
 * change that. */
static void what_the_standby_has_not_is_not_durable(void **state)
{
    (void)state;
    static struct leader l;
    leader_take(&l, postgres_url(), "sync", 1, 20000);
    leader_open(&l, &leader_lazy);
    model_commit(l.store, 1, 3);
    postgres_do(NULL, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    postgres_do(NULL, "SELECT pg_reload_conf()");
    leader_await(NULL,
                 "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'muster keeper'"
                 " AND wait_event = 'SyncRep'",
                 1);
    static const char waits[] = "SELECT count(*) FROM pg_stat_activity WHERE application_name ="
                                " 'muster commit' AND wait_event = 'SyncRep'";
    static struct ending e;
    e = (struct ending){.store = l.store};
    begin_one(l.store, 4);
    begin_one(l.store, 5);
    assert_int_equal(pthread_create(&e.thread, NULL, end_in_thread, &e), 0);
    for (int round = 0; round < 3; round++) { /* the commit, and then the claim, twice */
        leader_await(NULL, waits, 1);
        assert_false(e.over);
        postgres_do(NULL, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE"
                          " application_name = 'muster commit' AND wait_event = 'SyncRep'");
    }
    leader_await(NULL, waits, 1);
    assert_false(e.over);
    int64_t visible = postgres_ask("muster_sync", "SELECT max(seq) FROM journal");
    postgres_do(NULL, "ALTER SYSTEM RESET synchronous_standby_names");
    postgres_do(NULL, "SELECT pg_reload_conf()");
    assert_int_equal(pthread_join(e.thread, NULL), 0);
    assert_in_range(visible, 4, 5); /* it was there all the time */
    assert_int_equal(e.result, 0);
    assert_int_equal(end_one(l.store), 0);
    model_check(l.store, 5);
    store_close(l.store);
}

/* A standby that was promoted without the newest batches: who had said them must not go on. */
static void who_said_more_than_is_there_leads_no_more(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "shorter", &leader_lazy);
    model_commit(store, 1, 5);
    postgres_do("muster_shorter", "DELETE FROM journal WHERE seq > 3");
    postgres_do(NULL, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                      " WHERE application_name = 'muster commit'");
    begin_one(store, 6);
    assert_int_equal(end_one(store), ERR_IO);
    assert_false(store_holds(store));
    check_journal("muster_shorter", 3);
    store_close(store);
}

/* PostgreSQL refuses, and says so: nothing is retried, and it goes on when it is well again. */
static void a_refused_batch_is_not_there(void **state)
{
    (void)state;
    static struct leader l;
    struct store *store = leader_start(&l, "refused", &leader_lazy);
    model_commit(store, 1, 5);
    postgres_do("muster_refused", "ALTER TABLE journal ADD CONSTRAINT full_disk CHECK (seq <> 7)");
    for (int64_t seq = 6; seq <= 9; seq++)
        begin_one(store, seq);
    assert_int_equal(end_one(store), 0);
    for (int64_t seq = 7; seq <= 9; seq++)
        assert_int_equal(end_one(store), ERR_IO);
    assert_true(store_holds(store));
    model_check(store, 6);
    postgres_do("muster_refused", "ALTER TABLE journal DROP CONSTRAINT full_disk");
    model_commit(store, 7, 12);
    model_check(store, 12);
    store_close(store);
}

/* ── a standby of PostgreSQL's ─────────────────────────────────────────────────────────────── */

static void run(const char *program, const char *const args[])
{
    int status = 0;
    pid_t pid = postgres_spawn(program, args);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Of the server that listens there now; one that is a standby is no less than another here. */
static void promote(void)
{
    char url[192];
    struct pg *pg = NULL;
    struct why why = {""};
    snprintf(url, sizeof(url), "%s?target_session_attrs=any", postgres_url());
    struct pg_wish wish = {.url = url, .name = "test", .connect_ms = 10000, .answer_ms = 60000};
    leader_good(pg_connect(&wish, &pg, &why), &why);
    leader_good(pg_script(pg, "SELECT pg_promote()", &why), &why);
    pg_close(pg);
}

static pid_t start_standby(int port)
{
    char data[96];
    char url[192];
    char text[16];
    snprintf(data, sizeof(data), "%s/standby", postgres.folder);
    snprintf(url, sizeof(url), "%s?application_name=standby", postgres_url());
    snprintf(text, sizeof(text), "%d", port);
    run("pg_basebackup", (const char *const[]){"pg_basebackup", "-D", data, "-d", url, "-R", "-X",
                                               "stream", "-c", "fast", "--no-sync", NULL});
    return postgres_spawn("postgres",
                          (const char *const[]){"postgres", "-D", data, "-p", text, "-k",
                                                postgres.folder, "-h", "127.0.0.1", NULL});
}

/* The last test: the server of the others ends here, and the standby takes its place. */
static void a_promotion_is_ridden_through(void **state)
{
    (void)state;
    static struct leader l;
    static char url[192];
    int port = postgres_free_port();
    pid_t standby = start_standby(port);
    leader_await(NULL, "SELECT count(*) FROM pg_stat_replication", 1);
    postgres_do(NULL, "ALTER SYSTEM SET synchronous_standby_names = '*'");
    postgres_do(NULL, "SELECT pg_reload_conf()");
    leader_await(NULL, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", 1);
    snprintf(url, sizeof(url),
             "postgres://muster:open%%2Fsesame@127.0.0.1:%d,127.0.0.1:%d/postgres", postgres.port,
             port);
    leader_take(&l, url, "promoted", 1, LEADER_LONG_MS);
    leader_open(&l, &leader_eager);
    model_commit(l.store, 1, 100);
    for (int64_t seq = 101; seq <= 104; seq++)
        begin_one(l.store, seq);
    postgres_stop(SIGQUIT);
    postgres.pid = standby;
    postgres.port = port;
    snprintf(postgres.url, sizeof(postgres.url),
             "postgres://muster:open%%2Fsesame@127.0.0.1:%d/postgres", port);
    int64_t since_ms = clock_monotonic_ms();
    promote();
    for (int64_t seq = 101; seq <= 104; seq++)
        assert_int_equal(end_one(l.store), 0);
    print_message("%d ms\n", (int)(clock_monotonic_ms() - since_ms));
    assert_true(store_holds(l.store));
    model_commit(l.store, 105, 200);
    fixture_wait_folded(l.store, 200);
    model_check(l.store, 200);
    store_close(l.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_is_cut_at_every_point),
        cmocka_unit_test(what_arrives_late_does_nothing),
        cmocka_unit_test(what_arrives_after_the_claim_is_refused),
        cmocka_unit_test(backends_are_ended_under_load),
        cmocka_unit_test(who_was_fenced_writes_nothing),
        cmocka_unit_test(a_fenced_fold_changes_nothing),
        cmocka_unit_test(two_that_race_write_one_journal),
        cmocka_unit_test(a_server_that_hangs_ends_the_lease),
        cmocka_unit_test(a_server_that_stops_for_a_while_is_waited_for),
        cmocka_unit_test(a_server_that_restarts_is_ridden_through),
        cmocka_unit_test(a_node_that_was_stopped_wakes_up_fenced),
        cmocka_unit_test(a_node_that_is_killed_loses_nothing_that_it_said),
        cmocka_unit_test(what_the_standby_has_not_is_not_durable),
        cmocka_unit_test(who_said_more_than_is_there_leads_no_more),
        cmocka_unit_test(a_refused_batch_is_not_there),
        cmocka_unit_test(a_promotion_is_ridden_through),
    };
    return cmocka_run_group_tests(tests, postgres_setup, postgres_teardown);
}

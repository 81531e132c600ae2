#include "store/pipeline.h"

#include "base/err.h"
#include "base/log.h"
#include "lib/unit.h"
#include "store/latest.h"
#include "store/memory.h"

#include <stdlib.h>
#include <string.h>

/* A world that holds every commit until the test lets it happen, and notes what leaves. In front of
 * the in-memory store stands one that can be mute: then nobody knows what is stored. */

struct seen {
    enum effect_kind kind;
    conn_id conn;
    int32_t err;
    int32_t lobby;
    int32_t server_id;
    char token[96];
};

struct mute_store {
    struct store base;
    struct store *memory;
    bool mute;
};

struct world {
    struct mute_store store;
    struct core_config config;
    struct pipeline *pipeline;
    bool submitted;           /* a commit waits */
    struct store_batch batch; /* the newest */
    struct store_batch waiting[PIPELINE_DEPTH_MAX];
    int n_waiting;
    int submits;
    size_t seen_at_submit; /* effects that had left by then */
    struct seen seen[512];
    size_t n_seen;
    struct told { /* of durable batches, in the order they were told */
        struct buf changes;
        size_t seen_before; /* effects that had left by then */
    } told[256];
    int64_t n_told;
    int64_t now_ms;
};

static const uint8_t secret[CORE_SECRET_SIZE] = "secret";
static const int64_t wall_start_ms = 1700000000000;

static int mute_load(struct store *s, store_sink *sink, void *user, struct store_tip *ret)
{
    struct mute_store *m = (struct mute_store *)s;
    return m->mute ? ERR_IO : store_load(m->memory, sink, user, ret);
}

static int mute_commit(struct store *s, const struct store_batch *batch)
{
    return store_commit(((struct mute_store *)s)->memory, batch);
}

static int mute_tip(struct store *s, struct store_tip *ret)
{
    struct mute_store *m = (struct mute_store *)s;
    return m->mute ? ERR_IO : store_tip(m->memory, ret);
}

static void mute_close(struct store *s)
{
    store_close(((struct mute_store *)s)->memory);
}

static const struct store_ops mute_ops = {
    .load = mute_load, .commit = mute_commit, .tip = mute_tip, .close = mute_close};

/* Of one to which the next batches can be on their way while the last one commits. */
static const struct store_ops deep_ops = {
    .load = mute_load, .commit = mute_commit, .tip = mute_tip, .close = mute_close, .depth = 3};

static void on_submit(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    assert_true(w->n_waiting < store_depth(&w->store.base));
    w->submitted = true;
    w->batch = *batch;
    w->waiting[w->n_waiting++] = *batch;
    w->submits++;
    w->seen_at_submit = w->n_seen;
}

/* Told once each, in the order of their numbers, whatever becomes of the commits between. */
static void on_durable(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    assert_int_equal(batch->seq, w->n_told + 1);
    assert_true((size_t)w->n_told < sizeof(w->told) / sizeof(*w->told));
    struct told *t = &w->told[w->n_told++];
    t->seen_before = w->n_seen;
    buf_append(&t->changes, batch->changes, batch->len);
}

static void on_release(void *user, const struct effect *effects, size_t n)
{
    struct world *w = user;
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        const struct effect *e = &effects[i];
        if (e->kind == EFFECT_NOTE)
            continue;
        assert_true(w->n_seen < sizeof(w->seen) / sizeof(*w->seen));
        struct seen *s = &w->seen[w->n_seen++];
        *s = (struct seen){.kind = e->kind,
                           .conn = e->conn,
                           .err = e->err,
                           .lobby = e->lobby,
                           .server_id = e->server_id};
        assert_true(str_copy(s->token, sizeof(s->token), e->token));
    }
}

static void start(struct world *w)
{
    struct pipeline_world around = {
        .submit = on_submit, .durable = on_durable, .release = on_release, .user = w};
    assert_int_equal(pipeline_new(&w->store.base, &w->config, secret, &around,
                                  wall_start_ms + w->now_ms, w->now_ms, &w->pipeline),
                     0);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    log_set_level(LOG_ERROR);
    w->store.base.ops = &mute_ops;
    w->store.memory = store_open_memory();
    core_config_default(&w->config);
    w->config.any_token = true;
    w->now_ms = 1000;
    start(w);
    *state = w;
    return 0;
}

static int setup_deep(void **state)
{
    (void)setup(state);
    struct world *w = *state;
    pipeline_free(w->pipeline);
    w->store.base.ops = &deep_ops;
    start(w);
    return 0;
}

static int compare_with_told(void *user, const struct store_batch *batch)
{
    struct world *w = user;
    const struct buf *told = &w->told[batch->seq - 1].changes;
    assert_in_range(batch->seq, 1, w->n_told);
    assert_int_equal(told->len, batch->len);
    if (batch->len > 0)
        assert_memory_equal(told->data, batch->changes, batch->len);
    return 0;
}

/* At the end of every test: what was told to be durable is what is stored. */
static void told_what_is_stored(struct world *w)
{
    struct store_tip tip = {0};
    assert_int_equal(store_tip(w->store.memory, &tip), 0);
    assert_int_equal(tip.seq, w->n_told);
    assert_int_equal(store_history(w->store.memory, INT64_MAX, compare_with_told, w), 0);
}

static int teardown(void **state)
{
    struct world *w = *state;
    told_what_is_stored(w);
    for (int64_t i = 0; i < w->n_told; i++)
        buf_done(&w->told[i].changes);
    pipeline_free(w->pipeline);
    store_close(&w->store.base);
    free(w);
    return 0;
}

static void forget(struct world *w)
{
    w->n_seen = 0;
}

static const struct seen *seen(const struct world *w, enum effect_kind kind, conn_id conn)
{
    for (size_t i = 0; i < w->n_seen; i++) {
        if (w->seen[i].kind == kind && w->seen[i].conn == conn)
            return &w->seen[i];
    }
    return NULL;
}

static int count(const struct world *w, enum effect_kind kind, conn_id conn)
{
    int n = 0;
    for (size_t i = 0; i < w->n_seen; i++)
        n += w->seen[i].kind == kind && w->seen[i].conn == conn;
    return n;
}

static void event(struct world *w, const struct event *e)
{
    pipeline_event(w->pipeline, e, w->now_ms, wall_start_ms + w->now_ms);
    assert_null(core_check(pipeline_core(w->pipeline)));
}

static void flush(struct world *w)
{
    pipeline_flush(w->pipeline, w->now_ms, wall_start_ms + w->now_ms);
}

/* The oldest commit under way ends: stored or not, and what the pipeline is told of it. */
static void commit(struct world *w, enum store_memory_mode mode)
{
    assert_true(w->submitted);
    struct store_batch oldest = w->waiting[0];
    w->n_waiting--;
    memmove(w->waiting, w->waiting + 1, (size_t)w->n_waiting * sizeof(oldest));
    w->submitted = w->n_waiting > 0;
    store_memory_fail(w->store.memory, mode);
    int result = store_commit(&w->store.base, &oldest);
    store_memory_fail(w->store.memory, STORE_MEMORY_WORKS);
    pipeline_committed(w->pipeline, result, w->now_ms, wall_start_ms + w->now_ms);
    assert_null(core_check(pipeline_core(w->pipeline)));
}

static void settle(struct world *w)
{
    flush(w);
    while (w->submitted)
        commit(w, STORE_MEMORY_WORKS);
}

static void pass(struct world *w, int64_t ms)
{
    struct event tick = {.kind = EVENT_TICK};
    for (int64_t end_ms = w->now_ms + ms; w->now_ms < end_ms;) {
        w->now_ms += end_ms - w->now_ms < 250 ? end_ms - w->now_ms : 250;
        event(w, &tick);
        flush(w);
    }
}

enum { SERVER = 1, CHAT = 2 };

static void server_hello(struct world *w, conn_id conn, int32_t port)
{
    struct event e = {.kind = EVENT_SERVER_HELLO, .conn = conn};
    e.server_hello = (struct chat_sv_handshake){STR("x"), STR("10.0.0.1"), port, 0, 4};
    event(w, &e);
}

static void chat_hello(struct world *w, conn_id conn, const char *name)
{
    static const uint8_t region = 0;
    struct event e = {.kind = EVENT_CHAT_HELLO, .conn = conn};
    e.chat_hello = (struct chat_mgr_handshake){STR("x"), str_of(name), {1, &region, 1}};
    event(w, &e);
}

static void peers_up(struct world *w)
{
    server_hello(w, SERVER, 2000);
    chat_hello(w, CHAT, "chat");
    settle(w);
    assert_int_equal(seen(w, EFFECT_SERVER_HELLO, SERVER)->err, 0);
    assert_int_equal(seen(w, EFFECT_CHAT_HELLO, CHAT)->err, 0);
    forget(w);
}

static void ask(struct world *w, int32_t lobby)
{
    struct event e = {.kind = EVENT_ALLOCATE, .conn = CHAT};
    e.allocate = (struct chat_mgr_server_allocation_request){.lobby = lobby, .player_count = 2};
    event(w, &e);
}

static void ack(struct world *w, int32_t lobby)
{
    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = SERVER};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){true, lobby};
    event(w, &e);
}

static void beat(struct world *w)
{
    struct event e = {.kind = EVENT_HEARTBEAT, .conn = SERVER};
    e.heartbeat.server_id = 1;
    event(w, &e);
}

static void open_match(struct world *w, int32_t lobby)
{
    ask(w, lobby);
    settle(w);
    ack(w, lobby);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, 0);
    forget(w);
}

/* ── the ordinary way ──────────────────────────────────────────────────────────────────────── */

static void nothing_leaves_before_it_is_stored(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    assert_int_equal(w->n_seen, 0);
    flush(w);
    assert_true(w->submitted);
    assert_true(pipeline_busy(w->pipeline));
    assert_int_equal(w->n_seen, 0);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 1);
    assert_false(pipeline_busy(w->pipeline));
}

static void batches_leave_in_order(void **state)
{
    struct world *w = *state;
    peers_up(w);
    int64_t seq = core_seq(pipeline_core(w->pipeline));
    ask(w, 1);
    flush(w);
    assert_true(w->batch.seq == seq + 1);
    ask(w, 2); /* gathers while the first is being committed */
    ask(w, 3);
    flush(w);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 1);
    assert_true(w->submitted); /* the next one goes at once, as one batch */
    assert_true(w->batch.seq == seq + 2);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(w->seen[i].lobby, i + 1);
    assert_false(w->submitted);
}

/* The disk does not wait while answers are written. */
static void the_next_batch_is_on_its_way_before_effects_leave(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    flush(w);
    ask(w, 2);
    commit(w, STORE_MEMORY_WORKS);
    assert_true(w->submitted);
    assert_int_equal(w->seen_at_submit, 0);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 1);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 1);
}

/* … and when it is killed then, and the next batch is stored all the same, what had not left is
 * owed still. */
static void what_a_kill_kept_from_leaving_is_owed(void **state)
{
    struct world *w = *state;
    struct event ready = {.kind = EVENT_READY, .conn = SERVER};
    peers_up(w);
    ask(w, 1);
    settle(w);
    ack(w, 1);
    settle(w);
    struct seen given = *seen(w, EFFECT_ALLOCATED, CHAT);
    forget(w);
    ready.ready = (struct chat_sv_ready_for_match){
        .server_id = given.server_id, .lobby = 1, .match_token = str_of(given.token)};
    event(w, &ready);
    flush(w);
    ask(w, 2);
    commit(w, STORE_MEMORY_WORKS); /* with it the event would leave … */
    assert_true(seen(w, EFFECT_MATCH_EVENT, CHAT));
    assert_int_equal(w->seen_at_submit, 0); /* … but it had not, when the next one went */
    commit(w, STORE_MEMORY_WORKS);
    pipeline_free(w->pipeline);
    w->n_waiting = 0;
    w->submitted = false;
    start(w);
    forget(w);
    chat_hello(w, CHAT, "chat");
    settle(w);
    assert_true(seen(w, EFFECT_MATCH_EVENT, CHAT));
}

static void a_batch_is_told_durable_before_its_effects_leave(void **state)
{
    struct world *w = *state;
    peers_up(w);
    int64_t before = w->n_told;
    ask(w, 1);
    flush(w);
    assert_int_equal(w->n_told, before); /* not while it is being committed */
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(w->n_told, before + 1);
    assert_int_equal(w->told[before].seen_before, 0);
    assert_non_null(seen(w, EFFECT_ALLOCATE, SERVER));
}

static void a_lost_batch_is_never_told(void **state)
{
    struct world *w = *state;
    peers_up(w);
    int64_t before = w->n_told;
    ask(w, 1);
    flush(w);
    commit(w, STORE_MEMORY_FAILS);
    assert_int_equal(w->n_told, before);
    pass(w, 1000);
    commit(w, STORE_MEMORY_WORKS); /* the probe takes the number, and changes nothing */
    assert_int_equal(w->n_told, before + 1);
    assert_int_equal(w->told[before].changes.len, 0);
}

static void batch_without_changes_leaves_after_its_predecessor(void **state)
{
    struct world *w = *state;
    peers_up(w);
    open_match(w, 1);
    int submits = w->submits;
    ask(w, 1); /* a repeat changes nothing */
    assert_int_equal(w->n_seen, 0);
    flush(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, 0);
    assert_int_equal(w->submits, submits);
    forget(w);

    ask(w, 2);
    flush(w);
    ack(w, 2);
    ask(w, 1);
    flush(w);
    assert_int_equal(w->n_seen, 0); /* waits for the batch before it */
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 0);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 2);
}

static void heartbeats_are_answered_at_once(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    flush(w);
    beat(w);
    assert_int_equal(w->n_seen, 1);
    assert_int_equal(seen(w, EFFECT_HEARTBEAT, SERVER)->err, 0);
}

static void backlog_is_what_waits(void **state)
{
    struct world *w = *state;
    peers_up(w);
    assert_int_equal(pipeline_backlog(w->pipeline), 0);
    ask(w, 1);
    flush(w);
    assert_int_equal(pipeline_backlog(w->pipeline), 0); /* under way, not waiting */
    size_t before = 0;
    for (int32_t lobby = 2; lobby < 20; lobby++) {
        ask(w, lobby);
        flush(w);
        assert_true(pipeline_backlog(w->pipeline) > before);
        before = pipeline_backlog(w->pipeline);
    }
    settle(w);
    assert_int_equal(pipeline_backlog(w->pipeline), 0);
}

static void restart_continues_core_time_and_answers(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    settle(w);
    ack(w, 1);
    settle(w);
    struct seen first = *seen(w, EFFECT_ALLOCATED, CHAT);
    struct store_tip tip;
    assert_int_equal(store_tip(&w->store.base, &tip), 0);
    pipeline_free(w->pipeline);
    w->now_ms += 5000;
    start(w);
    forget(w);
    chat_hello(w, CHAT, "chat");
    ask(w, 1);
    settle(w);
    const struct seen *again = seen(w, EFFECT_ALLOCATED, CHAT);
    assert_int_equal(again->server_id, first.server_id);
    assert_string_equal(again->token, first.token);
    server_hello(w, 3, 2001);
    flush(w);
    assert_true(w->batch.core_ms == tip.core_ms + 5000);
    commit(w, STORE_MEMORY_WORKS);
}

static int follow_change(void *user, const struct change *change)
{
    return core_load(user, change);
}

static int follow(void *user, const struct store_batch *batch)
{
    return changes_each(batch->changes, batch->len, follow_change, user);
}

/* As a standby does: batch by batch, then it goes on where the journal ends, 3 s after the newest
 * batch came. */
static struct store_tip go_on_following(struct world *w, int64_t wall_ms, int64_t age_ms)
{
    struct store_tip tip;
    struct core *core = core_new(&w->config, secret);
    assert_int_equal(store_tip(&w->store.base, &tip), 0);
    assert_int_equal(store_history(w->store.memory, INT64_MAX, follow, core), 0);
    pipeline_free(w->pipeline);
    w->now_ms += 3000;
    struct pipeline_world around = {
        .submit = on_submit, .durable = on_durable, .release = on_release, .user = w};
    struct pipeline_loaded loaded = {&w->config, secret, core, tip, age_ms};
    assert_int_equal(
        pipeline_adopt(&w->store.base, &loaded, &around, wall_ms, w->now_ms, &w->pipeline), 0);
    forget(w);
    return tip;
}

static void a_standby_whose_clock_is_set_wrong_takes_nobodys_time(void **state)
{
    static const int64_t wrong_ms[] = {-3600 * 1000, 0, 3600 * 1000};
    struct world *w = *state;
    peers_up(w);
    settle(w);
    for (size_t i = 0; i < 3; i++) {
        struct store_tip tip =
            go_on_following(w, wall_start_ms + w->now_ms + 3000 + wrong_ms[i], 3000);
        server_hello(w, 3 + (int)i, 2001 + (int)i);
        flush(w);
        assert_int_equal(w->batch.core_ms, tip.core_ms + 3000);
        commit(w, STORE_MEMORY_WORKS);
    }
}

static void what_followed_goes_on_with_the_same_answers(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    settle(w);
    ack(w, 1);
    settle(w);
    struct seen first = *seen(w, EFFECT_ALLOCATED, CHAT);
    struct store_tip tip = go_on_following(w, wall_start_ms + w->now_ms + 3000, -1);
    chat_hello(w, CHAT, "chat");
    ask(w, 1);
    settle(w);
    assert_string_equal(seen(w, EFFECT_ALLOCATED, CHAT)->token, first.token);
    server_hello(w, 3, 2001);
    flush(w);
    assert_int_equal(w->batch.core_ms, tip.core_ms + 3000);
    commit(w, STORE_MEMORY_WORKS);
}

/* ── commits that fail ─────────────────────────────────────────────────────────────────────── */

static void failed_commit_refuses_all_that_rests_on_it(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    settle(w);
    forget(w);
    ack(w, 1);
    ask(w, 2);
    flush(w);
    ask(w, 3); /* built on the batch that fails */
    struct event wrong = {.kind = EVENT_CANCEL, .conn = CHAT, .cancel = {99}};
    event(w, &wrong);
    commit(w, STORE_MEMORY_FAILS);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT),
                     2); /* 2 and 3; 1 is open and will be given */
    for (size_t i = 0; i < w->n_seen; i++) {
        assert_int_equal(w->seen[i].err, ERR_INTERNAL);
        assert_int_not_equal(w->seen[i].lobby, 1);
    }
    assert_int_equal(count(w, EFFECT_CANCELLED, CHAT), 1);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 0);
}

static void read_only_refuses_changes_and_recovers_by_itself(void **state)
{
    struct world *w = *state;
    peers_up(w);
    open_match(w, 1);
    ask(w, 2);
    flush(w);
    commit(w, STORE_MEMORY_FAILS);
    forget(w);
    ask(w, 3);
    ask(w, 1); /* needs no write */
    beat(w);
    flush(w);
    assert_int_equal(w->n_seen, 3);
    assert_int_equal(seen(w, EFFECT_HEARTBEAT, SERVER)->err, 0);
    assert_int_equal(w->seen[1].lobby, 3);
    assert_int_equal(w->seen[1].err, ERR_INTERNAL);
    assert_int_equal(w->seen[2].lobby, 1);
    assert_int_equal(w->seen[2].err, 0);

    int submits = w->submits;
    pass(w, 750);
    assert_int_equal(w->submits, submits);
    pass(w, 250); /* a probe each second */
    assert_int_equal(w->submits, submits + 1);
    assert_int_equal(w->batch.len, 0);
    commit(w, STORE_MEMORY_FAILS);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
    pass(w, 1000);
    assert_int_equal(w->submits, submits + 2);
    forget(w);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
    assert_int_equal(count(w, EFFECT_LIST_ASK, SERVER), 1);
    ask(w, 2);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 2);
    ack(w, 2);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, 0);
}

static void open_ticket_is_answered_once_after_recovery(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    settle(w);
    forget(w);
    ack(w, 1);
    flush(w);
    commit(w, STORE_MEMORY_FAILS);
    assert_int_equal(w->n_seen, 0);
    pass(w, 1000);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 1); /* owed, so it is asked again */
    ack(w, 1);
    settle(w);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 1);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, 0);
}

/* ── outcomes nobody knows ─────────────────────────────────────────────────────────────────── */

/* Found by the simulator: down and up again for each such commit asked every server for its list,
 * whose answer was the next commit. */
static void failure_that_was_stored_after_all_disturbs_nobody(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    flush(w);
    forget(w);
    commit(w, STORE_MEMORY_UNKNOWN);
    settle(w);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 1);
    assert_int_equal(count(w, EFFECT_LIST_ASK, SERVER), 0);
}

static void failure_that_was_stored_after_all_is_a_success(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    flush(w);
    ask(w, 2);
    int64_t told = w->n_told;
    commit(w, STORE_MEMORY_UNKNOWN);
    assert_int_equal(w->n_told, told + 1);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 1);
    settle(w);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 0); /* nothing was refused */
    forget(w);
    ack(w, 1);
    ack(w, 2);
    settle(w);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 2);
    assert_int_equal(w->seen[0].err, 0);
    assert_int_equal(w->seen[1].err, 0);
}

static void nothing_leaves_while_the_outcome_is_unknown(void **state)
{
    struct world *w = *state;
    peers_up(w);
    open_match(w, 1);
    ask(w, 2);
    flush(w);
    w->store.mute = true;
    commit(w, STORE_MEMORY_UNKNOWN);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
    ask(w, 1);
    ask(w, 3);
    pass(w, 5000);
    assert_int_equal(w->n_seen, 0);
    beat(w);
    assert_int_equal(seen(w, EFFECT_HEARTBEAT, SERVER)->err, 0);
    w->store.mute = false;
    pass(w, 1000);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 2);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 2);
    for (size_t i = 0; i < w->n_seen; i++) {
        if (w->seen[i].kind == EFFECT_ALLOCATED)
            assert_int_equal(w->seen[i].err, w->seen[i].lobby == 3 ? ERR_INTERNAL : 0);
    }
}

static void unknown_outcome_that_was_a_failure_is_refused_later(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    flush(w);
    w->store.mute = true;
    commit(w, STORE_MEMORY_FAILS);
    pass(w, 3000);
    assert_int_equal(w->n_seen, 0);
    w->store.mute = false;
    pass(w, 1000);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, ERR_INTERNAL);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
    pass(w, 1000);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 1);
}

static void probe_whose_outcome_is_unknown_is_resolved_too(void **state)
{
    struct world *w = *state;
    peers_up(w);
    ask(w, 1);
    flush(w);
    commit(w, STORE_MEMORY_FAILS);
    pass(w, 1000);
    w->store.mute = true;
    commit(w, STORE_MEMORY_UNKNOWN);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
    w->store.mute = false;
    pass(w, 1000);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
    forget(w);
    ask(w, 1);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 1);
}

/* Failing and recovering again and again uses no number twice and loses nothing. */
static void many_failures_in_a_row(void **state)
{
    struct world *w = *state;
    peers_up(w);
    open_match(w, 1);
    for (int32_t lobby = 2; lobby < 40; lobby++) {
        forget(w);
        ask(w, lobby);
        flush(w);
        commit(w, STORE_MEMORY_FAILS);
        assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, ERR_INTERNAL);
        beat(w);
        pass(w, 1000);
        commit(w, lobby % 2 ? STORE_MEMORY_WORKS : STORE_MEMORY_UNKNOWN);
        assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
        settle(w);
    }
    forget(w);
    ask(w, 1);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, 0);
}

/* ── several on their way ──────────────────────────────────────────────────────────────────── */

static void the_next_are_on_their_way_while_the_first_commits(void **state)
{
    struct world *w = *state;
    peers_up(w);
    for (int32_t lobby = 1; lobby <= 4; lobby++) {
        ask(w, lobby);
        flush(w);
        assert_int_equal(w->n_waiting, lobby < 3 ? lobby : 3);
    }
    assert_int_equal(w->n_seen, 0);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 1);
    assert_int_equal(w->n_waiting, 3); /* the fourth went as soon as there was room */
    while (w->submitted)
        commit(w, STORE_MEMORY_WORKS);
    for (int i = 0; i < 4; i++)
        assert_int_equal(w->seen[i].lobby, i + 1);
    assert_false(pipeline_busy(w->pipeline));
}

/* A read, or a repeat, shows what is on its way: it leaves behind all of that. */
static void what_changes_nothing_leaves_behind_all_that_are_on_their_way(void **state)
{
    struct world *w = *state;
    peers_up(w);
    open_match(w, 1);
    ask(w, 2);
    flush(w);
    ask(w, 1); /* a repeat of what is durable */
    flush(w);
    assert_int_equal(w->n_waiting, 1);
    assert_int_equal(w->n_seen, 0);
    ask(w, 3);
    flush(w);
    assert_int_equal(w->n_waiting, 2);
    commit(w, STORE_MEMORY_WORKS);
    assert_null(seen(w, EFFECT_ALLOCATED, CHAT)); /* it went with the second */
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->lobby, 1);
}

/* The second of three is lost: the first leaves, the third and what is open are refused, and not
 * before it is sure that the third is nowhere. */
static void those_behind_a_lost_one_are_lost(void **state)
{
    struct world *w = *state;
    peers_up(w);
    for (int32_t lobby = 1; lobby <= 4; lobby++) {
        ask(w, lobby);
        flush(w);
    }
    commit(w, STORE_MEMORY_WORKS); /* and the fourth is on its way */
    forget(w);
    commit(w, STORE_MEMORY_FAILS);
    assert_int_equal(w->n_seen, 0);
    ask(w, 5);
    flush(w);
    assert_int_equal(w->n_waiting, 2); /* nothing more is handed over */
    commit(w, STORE_MEMORY_WORKS);     /* there is a gap before it: the store does not take it */
    assert_int_equal(w->n_seen, 0);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 4);
    for (size_t i = 0; i < w->n_seen; i++)
        assert_true(w->seen[i].kind != EFFECT_ALLOCATED || w->seen[i].err == ERR_INTERNAL);
    pass(w, 1000);
    commit(w, STORE_MEMORY_WORKS);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_WRITABLE);
    forget(w);
    ask(w, 2);
    settle(w);
    assert_int_equal(seen(w, EFFECT_ALLOCATE, SERVER)->lobby, 2);
}

/* The connection was lost after the second of three: the store says so, later. */
static void some_of_those_whose_outcome_is_unknown_are_there(void **state)
{
    struct world *w = *state;
    peers_up(w);
    for (int32_t lobby = 1; lobby <= 3; lobby++) {
        ask(w, lobby);
        flush(w);
    }
    w->store.mute = true;
    commit(w, STORE_MEMORY_UNKNOWN);
    commit(w, STORE_MEMORY_UNKNOWN);
    commit(w, STORE_MEMORY_FAILS);
    pass(w, 3000);
    assert_int_equal(w->n_seen, 0);
    w->store.mute = false;
    pass(w, 1000);
    assert_int_equal(count(w, EFFECT_ALLOCATE, SERVER), 2);
    assert_int_equal(count(w, EFFECT_ALLOCATED, CHAT), 1);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->lobby, 3);
    assert_int_equal(seen(w, EFFECT_ALLOCATED, CHAT)->err, ERR_INTERNAL);
    assert_int_equal(pipeline_state(w->pipeline), PIPELINE_READ_ONLY);
}

#define DEEP_TEST(name) cmocka_unit_test_setup_teardown(name, setup_deep, teardown)
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(nothing_leaves_before_it_is_stored),
        WORLD_TEST(batches_leave_in_order),
        WORLD_TEST(the_next_batch_is_on_its_way_before_effects_leave),
        WORLD_TEST(what_a_kill_kept_from_leaving_is_owed),
        WORLD_TEST(a_batch_is_told_durable_before_its_effects_leave),
        WORLD_TEST(a_lost_batch_is_never_told),
        WORLD_TEST(batch_without_changes_leaves_after_its_predecessor),
        WORLD_TEST(heartbeats_are_answered_at_once),
        WORLD_TEST(backlog_is_what_waits),
        WORLD_TEST(restart_continues_core_time_and_answers),
        WORLD_TEST(what_followed_goes_on_with_the_same_answers),
        WORLD_TEST(a_standby_whose_clock_is_set_wrong_takes_nobodys_time),
        WORLD_TEST(failed_commit_refuses_all_that_rests_on_it),
        WORLD_TEST(read_only_refuses_changes_and_recovers_by_itself),
        WORLD_TEST(open_ticket_is_answered_once_after_recovery),
        WORLD_TEST(failure_that_was_stored_after_all_disturbs_nobody),
        WORLD_TEST(failure_that_was_stored_after_all_is_a_success),
        WORLD_TEST(nothing_leaves_while_the_outcome_is_unknown),
        WORLD_TEST(unknown_outcome_that_was_a_failure_is_refused_later),
        WORLD_TEST(probe_whose_outcome_is_unknown_is_resolved_too),
        WORLD_TEST(many_failures_in_a_row),
        DEEP_TEST(the_next_are_on_their_way_while_the_first_commits),
        DEEP_TEST(what_changes_nothing_leaves_behind_all_that_are_on_their_way),
        DEEP_TEST(those_behind_a_lost_one_are_lost),
        DEEP_TEST(some_of_those_whose_outcome_is_unknown_are_there),
        DEEP_TEST(failed_commit_refuses_all_that_rests_on_it),
        DEEP_TEST(open_ticket_is_answered_once_after_recovery),
        DEEP_TEST(nothing_leaves_while_the_outcome_is_unknown),
        DEEP_TEST(many_failures_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every order in which the things that can happen to a lobby may happen: its server acknowledges
 * and is ready, the last player loads, a player is lost and comes back, time runs out, what was
 * done is stored, or lost, or the control plane dies. Whatever the order, the lobby starts once or
 * is aborted once, its players hear it, and its server's slot is held or free accordingly. */
#include "lobbies.h"

#include <malloc.h>

enum { PLAYERS = 2, CONNS = 64, ITEMS = 8, SECOND_MS = 1000, LOADING_S = 6, ENOUGH_S = 16 };

/* What somebody was told on one connection. */
struct heard {
    int starts;
    int aborts;
};

struct walk {
    struct fixture *f;
    const char *order;
    int64_t id;
    conn_id player[PLAYERS]; /* 0 = he is away */
    bool loaded[PLAYERS];
    conn_id server;
    bool holds; /* as the server sees it */
    char held[TOKEN_SIZE];
    char started[TOKEN_SIZE]; /* the token of the first MATCH_START; "" = none */
    int aborts;               /* … heard by anybody */
    struct heard heard[CONNS];
};

static void expect(const struct walk *w, bool true_of_it, const char *what)
{
    if (!true_of_it)
        fail_msg("in the order %s: %s", w->order, what);
}

/* ── what leaves ───────────────────────────────────────────────────────────────────────────── */

static void hear_start(struct walk *w, const struct effect *e)
{
    expect(w, ++w->heard[e->conn].starts == 1, "a connection hears of the start twice");
    expect(w, w->aborts == 0, "it starts after its end was told");
    expect(w, w->holds && str_eq(str_of(w->held), e->token), "it starts where nobody holds it");
    if (w->started[0])
        expect(w, str_eq(str_of(w->started), e->token), "it starts twice");
    (void)str_copy(w->started, sizeof(w->started), e->token);
}

static void hear_abort(struct walk *w, const struct effect *e)
{
    expect(w, ++w->heard[e->conn].aborts == 1, "a connection hears of the end twice");
    expect(w, !w->started[0], "it is aborted after its start was told");
    w->aborts++;
}

static void list_matches(struct walk *w)
{
    struct buf b = {0};
    put_i32(&b, lobby_number(w->id));
    struct event e = {.kind = EVENT_MATCH_LIST, .conn = w->server};
    e.match_list.server_id = 1;
    e.match_list.lobbies = (struct chat_list){w->holds, b.data, w->holds ? b.len : 0};
    add_step(w->f, &e);
    buf_done(&b);
}

static void say_ack(struct walk *w)
{
    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = w->server};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){true, lobby_number(w->id)};
    add_step(w->f, &e);
}

static void say_ready(struct walk *w)
{
    struct event e = {.kind = EVENT_READY, .conn = w->server};
    e.ready = (struct chat_sv_ready_for_match){1, lobby_number(w->id), str_of(w->held)};
    add_step(w->f, &e);
}

static void hear_cancel(struct walk *w, const struct effect *e)
{
    if (w->holds && str_eq(str_of(w->held), e->token))
        w->holds = false;
    struct event ack = {.kind = EVENT_CANCEL_ACK, .conn = w->server};
    ack.cancel_ack = (struct chat_sv_cancel_match_ack){true, lobby_number(w->id)};
    add_step(w->f, &ack);
}

static void deliver(struct walk *w, const struct effect *e)
{
    bool to_server = e->conn == w->server;
    if (e->kind == EFFECT_MATCH_START)
        hear_start(w, e);
    else if (e->kind == EFFECT_MATCH_ABORTED)
        hear_abort(w, e);
    else if (e->kind == EFFECT_CANCEL && to_server)
        hear_cancel(w, e);
    else if (e->kind == EFFECT_LIST_ASK && to_server)
        list_matches(w);
    if (e->kind != EFFECT_ALLOCATE || !to_server)
        return;
    if (w->holds) { /* asked again: the same yes */
        say_ack(w);
        return;
    }
    w->holds = str_copy(w->held, sizeof(w->held), e->token);
}

/* Those effects leave; what is said to them begins the next batch. */
static void release(struct walk *w, struct batch *left)
{
    for (size_t i = 0; i < left->effects.len; i++)
        deliver(w, &left->effects.items[i]);
    batch_done(left);
}

/* The open batch is stored. */
static void commit(struct walk *w)
{
    struct fixture *f = w->f;
    core_seal(f->core, &f->batch);
    buf_append(&f->journal, f->batch.changes.data, f->batch.changes.len);
    core_left(f->core, &f->batch);
    struct batch left = f->batch;
    f->batch = (struct batch){0};
    release(w, &left);
}

/* ── what happens ──────────────────────────────────────────────────────────────────────────── */

static void tick_s(struct walk *w, int seconds, bool stored)
{
    for (int i = 0; i < seconds; i++) {
        struct event beat = {.kind = EVENT_HEARTBEAT, .conn = w->server};
        beat.heartbeat = (struct chat_sv_heartbeat){1, w->holds, 1, 1};
        w->f->now.core_ms += SECOND_MS;
        w->f->now.wall_ms += SECOND_MS;
        add_step(w->f, &beat);
        add_tick(w->f);
        if (stored)
            commit(w);
    }
}

static void connect_player(struct walk *w, int i)
{
    struct event e = {.kind = EVENT_CLIENT_HELLO, .conn = new_conn(w->f)};
    assert_true(e.conn < CONNS);
    e.client_hello.account = i + 1;
    w->player[i] = e.conn;
    add_step(w->f, &e);
}

static void load(struct walk *w, int i)
{
    struct event e = {.kind = EVENT_LOADING, .conn = w->player[i]};
    e.loading = (struct chat_cl_player_loading_status){lobby_number(w->id), i + 1, true};
    w->loaded[i] = true;
    if (w->player[i])
        add_step(w->f, &e);
}

static void come_back(struct walk *w, int i)
{
    if (w->player[i])
        return;
    connect_player(w, i);
    if (w->loaded[i])
        load(w, i);
}

static void lose_player(struct walk *w, int i)
{
    struct event e = {.kind = EVENT_GONE, .conn = w->player[i]};
    w->player[i] = 0;
    add_step(w->f, &e);
}

static void connect_server(struct walk *w)
{
    struct event e = {.kind = EVENT_SERVER_HELLO, .conn = new_conn(w->f)};
    e.server_hello = server_hello_of(2000, 1);
    w->server = e.conn;
    add_step(w->f, &e);
}

/* Everybody comes back by himself, but who was away stays so. */
static void die(struct walk *w)
{
    crash(w->f, 100);
    connect_server(w);
    commit(w);
    for (int i = 0; i < PLAYERS; i++) {
        bool away = w->player[i] == 0;
        w->player[i] = 0;
        if (!away)
            come_back(w, i);
    }
}

static void fail_commit(struct walk *w)
{
    struct fixture *f = w->f;
    lose_batch(f);
    struct batch refusals = f->batch;
    f->batch = (struct batch){0};
    release(w, &refusals);
    store_up(f);
}

static void happen(struct walk *w, char what)
{
    switch (what) {
    case 'a':
        say_ack(w);
        break;
    case 'r':
        say_ready(w);
        break;
    case 'l':
        load(w, 1);
        break;
    case 'g':
        lose_player(w, 0);
        break;
    case 'b':
        come_back(w, 0);
        break;
    case 't':
        tick_s(w, LOADING_S, false);
        break;
    case 's':
        commit(w);
        break;
    case 'f':
        fail_commit(w);
        break;
    case 'x':
        die(w);
        break;
    default:
        fail();
    }
}

/* ── one order ─────────────────────────────────────────────────────────────────────────────── */

static struct fixture *small_world(void)
{
    struct fixture *f = fixture_new();
    struct core_timeouts *t = &f->config.timeouts;
    t->loading_ms = LOADING_S * SECOND_MS;
    t->ticket_ms = 5 * SECOND_MS;
    t->ack_ms = t->ready_ms = 2 * SECOND_MS;
    t->player_gone_ms = 2 * SECOND_MS;
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    return f;
}

static void begin(struct walk *w, const char *order)
{
    memset(w, 0, sizeof(*w));
    w->order = order;
    w->f = small_world();
    connect_server(w);
    commit(w);
    for (int i = 0; i < PLAYERS; i++)
        connect_player(w, i);
    struct lobby_wanted wanted = wanted_of(four, PLAYERS);
    w->id = post(w->f, &wanted);
    commit(w);
    expect(w, w->holds, "no server was asked");
    load(w, 0);
    commit(w);
}

static void judge(struct walk *w)
{
    int state = state_of_lobby(w->f, w->id);
    bool started = state == LOBBY_STARTED;
    expect(w, started || state == LOBBY_ABORTED, "it is neither started nor aborted");
    expect(w, started == (w->started[0] != 0), "what was told is not so");
    expect(w, started || w->aborts >= PLAYERS, "somebody was never told that it is over");
    for (int i = 0; i < PLAYERS && started; i++)
        expect(w, w->heard[w->player[i]].starts == 1, "somebody was never told of the start");
    const struct server *server = map_get(&w->f->core->servers, 1);
    expect(w, w->holds == started, "the server holds what it should not, or does not");
    expect(w, server_status(server) == (started ? SERVER_FULL : SERVER_AVAILABLE),
           "the slot is not as it should be");
}

static void walk(const char *order, int *starts, int *aborts)
{
    static struct walk w;
    begin(&w, order);
    for (const char *what = order; *what; what++)
        happen(&w, *what);
    commit(&w);
    for (int i = 0; i < PLAYERS; i++)
        come_back(&w, i);
    tick_s(&w, ENOUGH_S, true);
    judge(&w);
    *starts += w.started[0] != 0;
    *aborts += w.started[0] == 0;
    fixture_free(w.f);
}

/* Every order of these; nobody comes back before he is gone. */
static void walk_all(char *items, size_t n, size_t at, int *starts, int *aborts)
{
    const char *back = memchr(items, 'b', at);
    if (back && !memchr(items, 'g', (size_t)(back - items)))
        return;
    if (at == n) {
        walk(items, starts, aborts);
        return;
    }
    for (size_t i = at; i < n; i++) {
        char first = items[i];
        items[i] = items[at];
        items[at] = first;
        walk_all(items, n, at + 1, starts, aborts);
        items[at] = items[i];
        items[i] = first;
    }
}

static void walk_orders_of(const char *set)
{
    char items[ITEMS + 1];
    int starts = 0;
    int aborts = 0;
    assert_true(str_copy(items, sizeof(items), str_of(set)));
    walk_all(items, strlen(items), 0, &starts, &aborts);
    print_message("%s: %d orders start, %d abort\n", set, starts, aborts);
    assert_true(starts > 0 && aborts > 0); /* else the walk does not go where it should */
}

static void any_order_with_a_failed_commit(void **state)
{
    (void)state;
    walk_orders_of("arlsf");
    walk_orders_of("arlgbsf");
    walk_orders_of("arlgtsf");
}

static void any_order_with_a_crash(void **state)
{
    (void)state;
    walk_orders_of("arlsx");
    walk_orders_of("arlgbsx");
    walk_orders_of("arlgtsx");
}

static void any_order_with_both(void **state)
{
    (void)state;
    walk_orders_of("arlsfx");
    walk_orders_of("arltsfx");
}

int main(void)
{
    /* A core's configuration is large; that of thousands of cores should not be mapped anew. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 * 1024 * 1024);
    (void)mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_with_a_failed_commit),
        cmocka_unit_test(any_order_with_a_crash),
        cmocka_unit_test(any_order_with_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Random walks: whatever players, game servers, proxies, operators, crashes and failed commits do
 * in whatever order, the invariants hold after every step (the fixture looks), and a request that
 * has its final answer has it for ever. The seed of a walk that fails is in its message. */
#include "seekers.h"

enum { WALKS = 150, STEPS = 250, PLAYERS = 10, NAMES = 60 };

struct walk {
    struct fixture *f;
    uint64_t random;
    char finals[NAMES][1024]; /* what was answered to each name in the end */
    int64_t ids[NAMES];       /* … by which allocation */
};

static uint32_t draw(struct walk *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % below;
}

static struct str some_player(struct walk *w)
{
    static const char *const names[PLAYERS] = {"ann", "ben", "cid", "dan", "eve",
                                               "fay", "gus", "hal", "ida", "jon"};
    return str_of(names[draw(w, PLAYERS)]);
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

static void some_seek(struct walk *w)
{
    struct str friends[3];
    struct str party[3];
    char name[16];
    uint32_t n = draw(w, NAMES);
    snprintf(name, sizeof(name), "t%u", n);
    struct event e = wants(w->f, name, "");
    e.seek.player = some_player(w);
    e.seek.friends = friends;
    e.seek.party = party;
    for (uint32_t k = draw(w, 3); k > 0; k--)
        friends[e.seek.n_friends++] = some_player(w);
    for (uint32_t k = draw(w, 4) ? 0 : draw(w, 4); k > 0; k--)
        party[e.seek.n_party++] = some_player(w);
    e.seek.any_room = draw(w, 2);
    e.seek.rejoin = draw(w, 4);
    e.seek.move_party = !draw(w, 6);
    e.seek.priority = draw(w, 4) ? 0 : (int32_t)draw(w, 3);
    e.seek.where.fleet = draw(w, 2) ? STR("arena") : STR("cluster");
    if (draw(w, 3) == 0) {
        e.conn = 0;
        e.seek.bus = draw(w, 3) ? BUS_NATS : BUS_PUBSUB;
    } else if (draw(w, 4) == 0) {
        e.seek.bus = BUS_OWN;
    }
    step(w->f, &e);
}

static void some_unseek(struct walk *w)
{
    char name[16];
    snprintf(name, sizeof(name), "t%u", draw(w, NAMES));
    unseeks(w->f, new_conn(w->f), name);
}

static void some_place(struct walk *w)
{
    struct place_player p = {.account = some_player(w), .info = STR("{}")};
    struct event e = asks(new_conn(w->f), (enum place_verb)(1 + draw(w, 3)), &p);
    e.place.room = 1 + draw(w, 20);
    e.place.auto_create = draw(w, 2);
    step(w->f, &e);
}

/* ── servers and proxies ───────────────────────────────────────────────────────────────────── */

/* A random object of that kind, or NULL. */
static void *some_object(struct walk *w, enum row_kind kind)
{
    size_t at = 0;
    uint32_t n = (uint32_t)w->f->core->rolls[kind].n;
    void *found = NULL;
    for (uint32_t i = n ? draw(w, n) + 1 : 0; i > 0; i--)
        found = object_next(w->f->core, kind, &at);
    return found;
}

/* Agents end what they are told to end. */
static void drop_what_is_over(struct walk *w)
{
    for (int i = 0; i < ROOMS_HOSTS; i++) {
        struct fake_host *h = &rooms_hosts[i];
        for (size_t k = h->n_servers; k > 0; k--) {
            const struct room *room = room_of_server(w->f->core, h->servers[k - 1].server);
            if (!room || room_is_over(room))
                host_drops(h, h->servers[k - 1].server);
        }
    }
}

static void some_room(struct walk *w)
{
    struct room *room = some_object(w, ROW_room);
    if (!room || !room->host)
        return;
    struct event e = says(room, AGENT_EXITED, 2 + draw(w, 1000));
    bool starting = room->row.state == ROOM_STARTING;
    if (starting)
        e.agent.verb = draw(w, 5) ? AGENT_INITED : AGENT_FAILED;
    else if (draw(w, 3))
        return;
    e.agent.ports[0] = 38000;
    e.agent.n_ports = 1;
    e.agent.run_ms = 1;
    if (e.agent.verb == AGENT_INITED)
        host_runs(fake_of(room), room);
    step(w->f, &e);
}

static void some_leaving(struct walk *w)
{
    char key[SEAT_KEY_SIZE];
    struct room_seat *seat = some_object(w, ROW_room_seat);
    if (!seat || seat->room->row.state != ROOM_OPEN || seat->row.state == ROOM_SEAT_ROUTING)
        return;
    struct event e = says(seat->room, AGENT_LEFT, 2000 + draw(w, 1000));
    e.agent.key = seat_key(w->f->core, seat->row.id, key);
    step(w->f, &e);
}

static void some_route(struct walk *w)
{
    size_t at = 0;
    for (struct room_seat *s = NULL; (s = object_next(w->f->core, ROW_room_seat, &at));) {
        if (s->row.state != ROOM_SEAT_ROUTING || draw(w, 2))
            continue;
        routed(w->f, s->row.id, draw(w, 5) ? 0 : ERR_IO);
        return;
    }
}

static void some_publishing(struct walk *w)
{
    const struct allocation *a = some_object(w, ROW_allocation);
    struct event e = {.kind = EVENT_PUBLISHED};
    if (!a)
        return;
    e.published = (struct published){a->row.id, a->row.state, draw(w, 2) ? BUS_NATS : BUS_PUBSUB};
    step(w->f, &e);
}

/* ── operators, hosts, the store ───────────────────────────────────────────────────────────── */

static void some_order(struct walk *w)
{
    const struct room_seat *seat = some_object(w, ROW_room_seat);
    const struct room *room = some_object(w, ROW_room);
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate = (struct operate){.who = STR("root"), .account = some_player(w)};
    uint32_t which = draw(w, 4);
    e.operate.reason = STR("cheating");
    e.operate.expires_wall_ms = w->f->now.wall_ms + 1 + draw(w, 30 * 1000);
    e.operate.verb =
        (enum operate_verb[]){OPERATE_BAN, OPERATE_DEQUEUE, OPERATE_KICK, OPERATE_END}[which];
    e.operate.target = which == 2 && seat ? seat->row.id : which == 3 && room ? room->row.id : 0;
    step(w->f, &e);
}

static void some_host(struct walk *w)
{
    struct fake_host *h = &rooms_hosts[draw(w, 2)];
    h->silent = !draw(w, 4);
    h->leaving = !draw(w, 3);
    h->slots = (int32_t)draw(w, 4);
    if (!h->silent)
        host_says(w->f, h);
}

static void some_trouble(struct walk *w)
{
    uint32_t which = draw(w, 3);
    if (draw(w, 2))
        some_seek(w);
    else
        some_leaving(w);
    if (which == 0) {
        seal(w->f);
        crash(w->f, draw(w, 5000));
    } else if (which == 1) {
        crash(w->f, draw(w, 5000)); /* what happened last was never stored */
    } else {
        lose_batch(w->f);
        store_up(w->f);
    }
}

/* ── what was answered ─────────────────────────────────────────────────────────────────────── */

/* The same allocation says the same for ever; when it is forgotten its name may be another's. */
static void remember(struct walk *w)
{
    for (uint32_t n = 0; n < NAMES; n++) {
        char name[16];
        char text[1024];
        struct envelope_result r;
        snprintf(name, sizeof(name), "t%u", n);
        const struct allocation *a = allocation_named(w->f->core, STR(""), str_of(name));
        if (!a || allocation_is_open(a))
            continue;
        assert_int_equal(view_result(w->f->core, a->row.id, &r), 0);
        print_result(&r, text, sizeof(text));
        if (w->ids[n] == a->row.id)
            assert_string_equal(w->finals[n], text);
        w->ids[n] = a->row.id;
        memcpy(w->finals[n], text, sizeof(text));
    }
}

static void one_step(struct walk *w)
{
    uint32_t what = draw(w, 100);
    if (what < 30)
        some_seek(w);
    else if (what < 45)
        some_room(w);
    else if (what < 60)
        some_leaving(w);
    else if (what < 72)
        some_route(w);
    else if (what < 77)
        some_publishing(w);
    else if (what < 80)
        some_unseek(w);
    else if (what < 85)
        some_place(w);
    else if (what < 88)
        some_order(w);
    else if (what < 91)
        some_host(w);
    else if (what < 93)
        some_trouble(w);
    else
        rooms_pass(w->f, draw(w, 4) ? draw(w, 3000) : draw(w, 40 * 1000));
}

static void walks_break_no_invariant(void **state)
{
    (void)state;
    static struct walk w;
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        void *fixture = NULL;
        print_message("walk %d\n", (int)seed);
        assert_int_equal(seekers_setup(&fixture), 0);
        memset(&w, 0, sizeof(w));
        w.f = fixture;
        w.random = seed;
        arena_of(w.f)->taken_at_once = draw(&w, 2);
        cluster_of(w.f)->token = draw(&w, 2) ? TOKEN_PLAYER_ID : TOKEN_OPAQUE;
        rooms_reconfigure(w.f);
        host_up(w.f, 0, EU);
        cluster_up(w.f, 1);
        for (int i = 0; i < STEPS; i++) {
            one_step(&w);
            drop_what_is_over(&w);
            seal(w.f);
            remember(&w);
        }
        fixture_free(w.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(walks_break_no_invariant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the tests of allocations share, on top of rooms: the fleet "arena" lets those wait who find
 * no place, and its seats are taken at once; the fleet "cluster" is one of Agones'. */
#pragma once

#include "rooms.h"
#include "wire/envelope.h"

enum { QUEUE_MS = 120 * 1000, SEEKERS_NAMES = 80 };

static inline void seekers_configure(struct core_config *config)
{
    struct fleet_config *arena = &config->fleets[config->n_fleets - 1];
    arena->taken_at_once = true;
    arena->queue_when_full = true;
    arena->queue_ms = QUEUE_MS;
    struct fleet_config *cluster = &config->fleets[config->n_fleets++];
    *cluster = *arena;
    (void)str_copy(cluster->name, sizeof(cluster->name), STR("cluster"));
    cluster->provider = PROVIDER_AGONES;
}

static inline struct fleet_config *arena_of(struct fixture *f)
{
    return &f->config.fleets[f->config.n_fleets - 2];
}

static inline struct fleet_config *cluster_of(struct fixture *f)
{
    return &f->config.fleets[f->config.n_fleets - 1];
}

static inline int seekers_setup(void **state)
{
    (void)rooms_setup(state);
    struct fixture *f = *state;
    seekers_configure(&f->config);
    rooms_reconfigure(f);
    add_tick(f);
    return 0;
}

#define SEEKERS_TEST(name) cmocka_unit_test_setup_teardown(name, seekers_setup, fixture_teardown)

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

/* "ann,ben" as a list; it is overwritten by the 4th call after. */
static inline const struct str *names_of(const char *list, size_t *ret_n)
{
    static struct str lists[4][SEEKERS_NAMES];
    static int last;
    struct str *names = lists[last++ % 4];
    *ret_n = 0;
    while (*list) {
        size_t len = strcspn(list, ",");
        assert_true(*ret_n < SEEKERS_NAMES);
        names[(*ret_n)++] = (struct str){list, len};
        list += len + (list[len] == ',');
    }
    return names;
}

/* Over HTTP, in the arena; a test changes what it is about. */
static inline struct event wants(struct fixture *f, const char *name, const char *account)
{
    struct event e = {.kind = EVENT_SEEK, .conn = new_conn(f)};
    e.seek = (struct seek){
        .name = str_of(name),
        .bus = BUS_HTTP,
        .player = str_of(account),
        .info = STR("{}"),
        .rejoin = true,
        .where = {.fleet = STR("arena"), .region = -1},
    };
    return e;
}

static inline conn_id asks_for(struct fixture *f, const char *name, const char *account,
                               const char *friends, const char *party)
{
    struct event e = wants(f, name, account);
    e.seek.friends = names_of(friends, &e.seek.n_friends);
    e.seek.party = names_of(party, &e.seek.n_party);
    step(f, &e);
    return e.conn;
}

/* The name of the request is the player's. */
static inline conn_id seeks(struct fixture *f, const char *account, const char *friends)
{
    return asks_for(f, account, account, friends, "");
}

/* From a bus. */
static inline struct event wants_by_bus(struct fixture *f, const char *name, const char *account)
{
    struct event e = wants(f, name, account);
    e.conn = 0;
    e.seek.bus = BUS_NATS;
    return e;
}

static inline void unseeks(struct fixture *f, conn_id conn, const char *name)
{
    struct event e = {.kind = EVENT_UNSEEK, .conn = conn, .unseek = {.name = str_of(name)}};
    step(f, &e);
}

/* ── answers ───────────────────────────────────────────────────────────────────────────────── */

static inline const struct envelope_result *sought(struct fixture *f, conn_id conn,
                                                   enum envelope_status status)
{
    assert_int_equal(count_effects(f, EFFECT_SOUGHT, conn), 1);
    const struct effect *e = nth_effect(f, EFFECT_SOUGHT, conn, 0);
    assert_non_null(e->result);
    assert_string_equal(envelope_status_word(e->result->status), envelope_status_word(status));
    assert_int_equal(e->err == 0, status != ENVELOPE_FAILURE);
    return e->result;
}

static inline void sought_not(struct fixture *f, conn_id conn, int err, const char *sentence)
{
    const struct envelope_result *r = sought(f, conn, ENVELOPE_FAILURE);
    char text[400];
    assert_true(str_copy(text, sizeof(text), r->error));
    assert_string_equal(text, sentence);
    assert_int_equal(nth_effect(f, EFFECT_SOUGHT, conn, 0)->err, err);
}

static inline void queued_at(struct fixture *f, conn_id conn, int32_t position)
{
    assert_int_equal(sought(f, conn, ENVELOPE_QUEUED)->position, position);
}

static inline void found_in(struct fixture *f, conn_id conn, const struct room *room)
{
    assert_true(sought(f, conn, ENVELOPE_SUCCESS)->session_id == room->row.id);
}

static inline struct allocation *allocation_of(struct fixture *f, const char *name)
{
    struct allocation *a = allocation_named(f->core, STR(""), str_of(name));
    assert_non_null(a);
    return a;
}

static inline void is_in_state(struct fixture *f, const char *name, enum allocation_state state)
{
    assert_int_equal(allocation_of(f, name)->row.state, state);
}

static inline void has_failed(struct fixture *f, const char *name, int err, const char *sentence)
{
    const struct allocation *a = allocation_of(f, name);
    char text[400];
    assert_false(allocation_is_open(a));
    assert_true(str_copy(text, sizeof(text), a->row.why));
    assert_string_equal(text, sentence);
    assert_int_equal(a->row.error, err);
}

/* A result as a bus would print it. */
static inline void print_result(const struct envelope_result *r, char *dst, size_t cap)
{
    struct buf b = {0};
    envelope_write(&b, r);
    assert_true(str_copy(dst, cap, (struct str){(const char *)b.data, b.len}));
    buf_done(&b);
}

/* ── rooms and who sits in them ────────────────────────────────────────────────────────────── */

static inline bool sits_in(struct fixture *f, const char *account, const struct room *room)
{
    const struct room_seat *seat = seat_of(f, account);
    return seat && seat->room == room;
}

/* A room of the arena with the players "p1,p2…" in it. */
static inline struct room *room_with(struct fixture *f, const char *players)
{
    size_t n = 0;
    struct room *room = NULL;
    const struct str *names = names_of(players, &n);
    for (size_t i = 0; i < n; i++) {
        char account[65];
        assert_true(str_copy(account, sizeof(account), names[i]));
        if (i == 0)
            room = open_room(f, account, NULL);
        else
            answered(f, EFFECT_PLACED, enter(f, account, room->row.id), 0);
    }
    return room;
}

/* The game server says that he left. */
static inline void leaves(struct fixture *f, const char *account)
{
    static int64_t seq = 100;
    char key[SEAT_KEY_SIZE];
    const struct room_seat *seat = seat_of(f, account);
    assert_non_null(seat);
    (void)seat_key(f->core, seat->row.id, key);
    say_left(f, seat->room, key, seq++);
}

static inline void ends(struct fixture *f, const struct room *room)
{
    host_drops(fake_of(room), room->row.server);
    struct event e = says(room, AGENT_EXITED, 99);
    e.agent.run_ms = 100;
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

static inline void fails_to_start(struct fixture *f, const struct room *room, bool timed_out)
{
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.text = STR("it did not start");
    e.agent.timed_out = timed_out;
    e.agent.exit_code = -1;
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

static inline void bans(struct fixture *f, const char *account)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate = (struct operate){.verb = OPERATE_BAN,
                                 .who = STR("root"),
                                 .account = str_of(account),
                                 .reason = STR("cheating"),
                                 .expires_wall_ms = fixture_wall_ms + 24 * 3600 * 1000};
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
}

static inline void kicks(struct fixture *f, int64_t seat)
{
    struct event e = {.kind = EVENT_OPERATE, .conn = 6};
    e.operate = (struct operate){.verb = OPERATE_KICK, .target = seat, .who = STR("root")};
    step(f, &e);
    answered(f, EFFECT_OPERATED, 6, 0);
}

/* ── a cluster ─────────────────────────────────────────────────────────────────────────────── */

static inline struct fake_host *cluster_up(struct fixture *f, int i)
{
    struct fake_host *h = &rooms_hosts[i];
    snprintf(h->name, sizeof(h->name), "agones/cluster");
    snprintf(h->fleet, sizeof(h->fleet), "cluster");
    h->region = EU;
    host_says(f, h);
    answered(f, EFFECT_HOST_BEAT, 900, 0);
    return h;
}

static inline struct event wants_in_cluster(struct fixture *f, const char *name,
                                            const char *account)
{
    struct event e = wants(f, name, account);
    e.seek.where.fleet = STR("cluster");
    return e;
}

static inline conn_id asks_cluster(struct fixture *f, const char *name, const char *account,
                                   const char *friends, const char *party)
{
    struct event e = wants_in_cluster(f, name, account);
    e.seek.friends = names_of(friends, &e.seek.n_friends);
    e.seek.party = names_of(party, &e.seek.n_party);
    step(f, &e);
    return e.conn;
}

static inline struct room_seat *cluster_seat(struct fixture *f, const char *account)
{
    return room_seat_of(f->core, (int32_t)fleet_find_named(f->core, "cluster")->row.id,
                        str_of(account));
}

/* The nth route that was just told, to be added or to be removed; NULL when there is none. */
static inline const struct effect *route(struct fixture *f, bool on, int nth)
{
    const struct effect *e = NULL;
    for (int i = 0; (e = nth_effect(f, EFFECT_ROUTE, 0, i)); i++) {
        if (e->on == on && nth-- == 0)
            return e;
    }
    return NULL;
}

static inline void routed(struct fixture *f, int64_t seat, int err)
{
    struct event e = {.kind = EVENT_ROUTED, .routed = {.seat = seat, .err = err}};
    step(f, &e);
}

/* A game server of the cluster with these players in it. */
static inline struct room *cluster_room(struct fixture *f, const char *first, const char *others)
{
    conn_id conn = asks_cluster(f, first, first, "", others);
    struct room *room = spawned(f);
    init_room(f, room);
    found_in(f, conn, room);
    return room;
}

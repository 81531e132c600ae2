/* What the tests of rooms share, on top of the fixture: a fleet "arena" of agents, hosts that send
 * heartbeats with what they were told to run, players who ask for seats. */
#pragma once

#include "fixture.h"

enum { ROOMS_HOSTS = 4, ROOMS_SERVERS = 64, MAX_PLAYERS = 4, HOST_BEAT_MS = 5000 };

/* An agent as core sees it: a name and the list it sends. */
struct fake_host {
    char name[24];
    char fleet[16]; /* of a cluster: the only one it runs */
    int8_t region;
    float cpu;
    float memory;
    int32_t slots;
    bool leaving;
    bool silent;
    int64_t beat;
    struct host_server servers[ROOMS_SERVERS];
    size_t n_servers;
};

static struct fake_host rooms_hosts[ROOMS_HOSTS];

static inline void rooms_configure(struct core_config *config)
{
    struct fleet_config *arena = &config->fleets[config->n_fleets++];
    *arena = (struct fleet_config){
        .name = "arena",
        .provider = PROVIDER_AGENT,
        .game = "shooter",
        .server = "main",
        .other_regions = true,
        .max_players = MAX_PLAYERS,
        .spawn_ms = 30 * 1000,
        .reserve_ms = 30 * 1000,
        .empty_ms = 300 * 1000,
        .session_ms = 3600 * 1000,
        .versions = {{"1.0", false}, {"0.9", true}},
        .n_versions = 2,
    };
    config->default_region = EU;
    for (int i = 0; i < RATE_LIMITS_MAX; i++)
        config->create_rates[i] = config->join_rates[i] = (struct rate_limit){0};
}

/* The configuration is read again. */
static inline void rooms_reconfigure(struct fixture *f)
{
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
}

static inline int rooms_setup(void **state)
{
    struct fixture *f = fixture_new();
    rooms_configure(&f->config);
    memset(rooms_hosts, 0, sizeof(rooms_hosts));
    rooms_reconfigure(f);
    add_tick(f);
    *state = f;
    return 0;
}

#define ROOMS_TEST(name) cmocka_unit_test_setup_teardown(name, rooms_setup, fixture_teardown)

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

#define ROOMS_ACCOUNT "agents" /* of every host, unless a test says otherwise */

static inline struct event beat_of(struct fake_host *h)
{
    static char url[64];
    if (h->fleet[0])
        snprintf(url, sizeof(url), "agones:%.15s", h->fleet);
    else
        snprintf(url, sizeof(url), "http://%.15s:9510", h->name);
    struct event e = {.kind = EVENT_HOST_BEAT, .conn = 900};
    e.host_beat = (struct host_beat){
        .name = str_of(h->name),
        .account = STR(ROOMS_ACCOUNT),
        .address = STR("203.0.113.7"),
        .url = str_of(url),
        .region = h->region,
        .slots = h->slots,
        .cpu_percent = h->cpu,
        .memory_percent = h->memory,
        .servers = h->servers,
        .n_servers = h->n_servers,
        .beat = ++h->beat,
        .leaving = h->leaving,
        .fleet = str_of(h->fleet),
    };
    return e;
}

static inline void host_says(struct fixture *f, struct fake_host *h)
{
    struct event e = beat_of(h);
    step(f, &e);
}

/* A host registers; its number is its place in rooms_hosts. */
static inline struct fake_host *host_up(struct fixture *f, int i, int8_t region)
{
    struct fake_host *h = &rooms_hosts[i];
    snprintf(h->name, sizeof(h->name), "host-%d", i + 1);
    h->region = region;
    host_says(f, h);
    answered(f, EFFECT_HOST_BEAT, 900, 0);
    return h;
}

static inline struct host *the_host(struct fixture *f, const struct fake_host *h)
{
    struct host *host = host_named(f->core, str_of(h->name));
    assert_non_null(host);
    return host;
}

static inline void host_runs(struct fake_host *h, const struct room *room)
{
    h->servers[h->n_servers++] = (struct host_server){
        .server = room->row.server,
        .session = room->row.id,
        .pid = 1000 + (int32_t)h->n_servers,
        .state = HOST_SERVER_RUNNING,
        .ports = {38000},
        .n_ports = 1,
    };
}

static inline void host_drops(struct fake_host *h, int64_t server)
{
    for (size_t i = 0; i < h->n_servers; i++) {
        if (h->servers[i].server == server)
            h->servers[i] = h->servers[--h->n_servers];
    }
}

/* Time passes, with heartbeats of every host that is not silent. */
static inline void rooms_pass(struct fixture *f, int64_t ms)
{
    seal(f);
    int64_t end_ms = f->now.core_ms + ms;
    while (f->now.core_ms < end_ms) {
        int64_t left_ms = end_ms - f->now.core_ms;
        int64_t by_ms = left_ms < TICK_MS ? left_ms : TICK_MS;
        f->now.core_ms += by_ms;
        f->now.wall_ms += by_ms;
        bool beats = f->now.core_ms / HOST_BEAT_MS != (f->now.core_ms - by_ms) / HOST_BEAT_MS;
        for (int i = 0; beats && i < ROOMS_HOSTS; i++) {
            if (rooms_hosts[i].name[0] == '\0' || rooms_hosts[i].silent)
                continue;
            struct event e = beat_of(&rooms_hosts[i]);
            add_step(f, &e);
        }
        add_tick(f);
    }
}

/* ── players ───────────────────────────────────────────────────────────────────────────────── */

static inline struct event asks(conn_id conn, enum place_verb verb, const struct place_player *one)
{
    struct event e = {.kind = EVENT_PLACE, .conn = conn};
    e.place = (struct place){
        .verb = verb,
        .fleet = STR("arena"),
        .version = STR("1.0"),
        .players = one,
        .n_players = 1,
        .settings = STR("{\"map\":\"dust\"}"),
        .region = -1,
    };
    return e;
}

static inline struct place_player player(const char *account)
{
    return (struct place_player){.account = str_of(account),
                                 .address = STR("198.51.100.1"),
                                 .info = STR("{}"),
                                 .sealed = STR("sealed")};
}

static inline conn_id create(struct fixture *f, const char *account)
{
    struct place_player p = player(account);
    struct event e = asks(new_conn(f), PLACE_CREATE, &p);
    step(f, &e);
    return e.conn;
}

static inline conn_id join(struct fixture *f, const char *account, bool auto_create)
{
    struct place_player p = player(account);
    struct event e = asks(new_conn(f), PLACE_JOIN, &p);
    e.place.auto_create = auto_create;
    step(f, &e);
    return e.conn;
}

static inline conn_id enter(struct fixture *f, const char *account, int64_t room)
{
    struct place_player p = player(account);
    struct event e = asks(new_conn(f), PLACE_ENTER, &p);
    e.place.room = room;
    step(f, &e);
    return e.conn;
}

/* The spawn that was just ordered, which must be the only one. */
static inline struct room *spawned(struct fixture *f)
{
    const struct effect *e = nth_effect(f, EFFECT_SPAWN, 0, 0);
    assert_non_null(e);
    assert_null(nth_effect(f, EFFECT_SPAWN, 0, 1));
    struct room *room = room_find(f->core, e->spawn->session);
    assert_non_null(room);
    assert_true(room->row.server == e->spawn->server);
    return room;
}

/* What became of the order to start its server. */
static inline void heard_of(struct fixture *f, const struct room *room, int err,
                            enum fault_cause fault)
{
    struct event e = {.kind = EVENT_HOST_HEARD};
    e.host_heard = (struct host_heard){.server = room->row.server,
                                       .spawn = true,
                                       .err = err,
                                       .fault = fault,
                                       .text = STR("no port is free")};
    step(f, &e);
}

static inline struct fake_host *fake_of(const struct room *room)
{
    for (int i = 0; i < ROOMS_HOSTS; i++) {
        if (strcmp(rooms_hosts[i].name, room->host->row.name) == 0)
            return &rooms_hosts[i];
    }
    fail_msg("no such host");
    return NULL;
}

/* ── servers ───────────────────────────────────────────────────────────────────────────────── */

static inline struct event says(const struct room *room, enum agent_verb verb, int64_t seq)
{
    struct event e = {.kind = EVENT_AGENT, .conn = 901};
    e.agent = (struct agent_event){
        .verb = verb,
        .host = str_of(room->host ? room->host->row.name : "host-1"),
        .account = STR(ROOMS_ACCOUNT),
        .server = room->row.server,
        .seq = seq,
    };
    return e;
}

static inline void init_room(struct fixture *f, struct room *room)
{
    struct event e = says(room, AGENT_INITED, 1);
    e.agent.pid = 4711;
    e.agent.ports[0] = 38000;
    e.agent.n_ports = 1;
    host_runs(fake_of(room), room);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

/* A player creates a room and it opens. The key is copied when somebody wants it. */
static inline struct room *open_room(struct fixture *f, const char *account,
                                     char key[SEAT_KEY_SIZE])
{
    char scratch[SEAT_KEY_SIZE];
    conn_id conn = create(f, account);
    struct room *room = spawned(f);
    init_room(f, room);
    const struct effect *e = answered(f, EFFECT_PLACED, conn, 0);
    assert_true(str_copy(key ? key : scratch, SEAT_KEY_SIZE, e->placed->seats[0].key));
    return room;
}

/* The key that a refusal or an answer carries. */
static inline void key_of_answer(struct fixture *f, conn_id conn, char key[SEAT_KEY_SIZE])
{
    const struct effect *e = answered(f, EFFECT_PLACED, conn, 0);
    assert_int_equal(e->placed->n_seats, 1);
    assert_true(str_copy(key, SEAT_KEY_SIZE, e->placed->seats[0].key));
}

static inline void say_joined(struct fixture *f, const struct room *room, const char *key,
                              int64_t seq, int err)
{
    struct event e = says(room, AGENT_JOINED, seq);
    e.agent.key = str_of(key);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, err);
}

static inline void say_left(struct fixture *f, const struct room *room, const char *key,
                            int64_t seq)
{
    struct event e = says(room, AGENT_LEFT, seq);
    e.agent.key = str_of(key);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

static inline void say_exited(struct fixture *f, const struct room *room, int64_t seq, int32_t code)
{
    struct event e = says(room, AGENT_EXITED, seq);
    e.agent.exit_code = code;
    e.agent.run_ms = 100;
    e.agent.tail = STR("last words");
    host_drops(&rooms_hosts[0], room->row.server);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

static inline struct room_seat *seat_of(struct fixture *f, const char *account)
{
    return room_seat_of(f->core, (int32_t)fleet_find_named(f->core, "arena")->row.id,
                        str_of(account));
}

/* The sentence of a refusal. */
static inline void refused_with(struct fixture *f, conn_id conn, int err, const char *sentence)
{
    const struct effect *e = answered(f, EFFECT_PLACED, conn, err);
    char text[400];
    assert_true(str_copy(text, sizeof(text), e->text));
    assert_string_equal(text, sentence);
}

/* What it costs in core to join a friend, with few and with many players: he is found by his name,
 * so it must not matter how many others there are. */
#include "base/buf.h"
#include "cli/bench_child.h"
#include "cli/cli.h"
#include "core/batch.h"
#include "core/core.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REGION = 2,
    SEATS = 1000,    /* of a room … */
    FILLED = 500,    /* … and how many are taken when it begins */
    TOGETHER = 256,  /* requests in one batch */
    PER_RUN = 20000, /* friends who are joined */
    KEPT = 1000,
};

static struct {
    int64_t few;
    int64_t many;
} wish = {.few = 1000, .many = 1000000};

const struct arg bench_friends_options[] = {
    {.name = "--few",
     .kind = ARG_NUMBER,
     .into = &wish.few,
     .min = 1000,
     .max = 10000000,
     .value = "N",
     .help = "players to begin with (1000)"},
    {.name = "--many",
     .kind = ARG_NUMBER,
     .into = &wish.many,
     .min = 1000,
     .max = 10000000,
     .value = "N",
     .help = "players to compare with (1000000)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_JSON,
    {0},
};

/* Core with one host and rooms on it, which are nothing but events. */
struct meeting {
    struct core *core;
    struct batch batch;
    struct instant now;
    int64_t players;
    int64_t asked;  /* for names that nobody had */
    int64_t server; /* of the last room that was started, or that a friend was met on */
    int64_t room;
    int64_t seq;
    char key[80]; /* of the last seat */
};

static void step(struct meeting *m, struct event *e)
{
    core_step(m->core, e, m->now, &m->batch);
}

static void turn(struct meeting *m)
{
    m->now.core_ms++;
    m->now.wall_ms++;
    step(m, &(struct event){.kind = EVENT_TICK});
    core_seal(m->core, &m->batch);
    core_left(m->core, &m->batch);
    batch_clear(&m->batch);
}

/* What the last step wants done. */
static void look(struct meeting *m, size_t from)
{
    for (size_t i = from; i < m->batch.effects.len; i++) {
        const struct effect *e = &m->batch.effects.items[i];
        if (e->kind == EFFECT_SPAWN) {
            m->server = e->spawn->server;
            m->room = e->spawn->session;
        } else if (e->kind == EFFECT_SOUGHT) {
            assert(e->err == 0 && e->result->status == ENVELOPE_SUCCESS);
            (void)str_copy(m->key, sizeof(m->key), e->result->key);
            m->room = e->result->session_id;
        }
    }
}

static struct str name_of(char dst[32], int64_t i)
{
    int n = snprintf(dst, 32, "player-%" PRId64, i);
    return (struct str){dst, (size_t)n};
}

static void place(struct meeting *m, enum place_verb verb, int64_t i)
{
    char name[32];
    struct place_player player = {.account = name_of(name, i)};
    size_t from = m->batch.effects.len;
    step(m, &(struct event){.kind = EVENT_PLACE,
                            .conn = 1,
                            .place = {.verb = verb,
                                      .fleet = STR("friends"),
                                      .version = STR("1"),
                                      .room = m->room,
                                      .players = &player,
                                      .n_players = 1,
                                      .settings = STR("{}"),
                                      .region = REGION}});
    look(m, from);
}

static void say(struct meeting *m, enum agent_verb verb, struct str key)
{
    step(m, &(struct event){.kind = EVENT_AGENT,
                            .conn = 1,
                            .agent = {.verb = verb,
                                      .host = STR("host"),
                                      .account = STR("host"),
                                      .server = m->server,
                                      .seq = ++m->seq,
                                      .key = key,
                                      .settings = STR("{}"),
                                      .ports = {4000},
                                      .n_ports = 1,
                                      .pid = 1}});
}

static void configure(struct core_config *config)
{
    core_config_default(config);
    struct fleet_config *fleet = &config->fleets[0];
    *fleet = (struct fleet_config){
        .name = "friends",
        .provider = PROVIDER_AGENT,
        .max_players = SEATS,
        .taken_at_once = true,
        .queue_ms = 60 * 1000,
        .spawn_ms = 60 * 1000,
        .reserve_ms = 60 * 1000,
        .empty_ms = 60 * 60 * 1000,
        .session_ms = 24 * 60 * 60 * 1000,
        .versions = {{.name = "1"}},
        .n_versions = 1,
    };
    memset(config->create_rates, 0, sizeof(config->create_rates));
    memset(config->join_rates, 0, sizeof(config->join_rates));
    config->limits.tickets_kept = KEPT;
}

static void meet(struct meeting *m, int64_t players)
{
    static const uint8_t secret[CORE_SECRET_SIZE];
    struct core_config *config = xcalloc(1, sizeof(*config));
    configure(config);
    memset(m, 0, sizeof(*m));
    m->now = (struct instant){.core_ms = 1, .wall_ms = 1700000000000};
    m->players = players;
    m->core = core_new(config, secret);
    free(config);
    int err = core_loaded(m->core, 0, m->now);
    assert(err == 0);
    (void)err;
    turn(m);
    step(m, &(struct event){.kind = EVENT_HOST_BEAT,
                            .conn = 1,
                            .host_beat = {.name = STR("host"),
                                          .account = STR("host"),
                                          .address = STR("127.0.0.1"),
                                          .url = STR("http://127.0.0.1:1"),
                                          .region = REGION,
                                          .slots = 1000 * 1000,
                                          .beat = 1}});
    for (int64_t i = 0; i < players; i++) {
        bool first = i % FILLED == 0;
        place(m, first ? PLACE_CREATE : PLACE_ENTER, i);
        if (first)
            say(m, AGENT_INITED, (struct str){0});
        if (i % TOGETHER == 0)
            turn(m);
    }
    turn(m);
}

static void part(struct meeting *m)
{
    core_free(m->core);
    batch_done(&m->batch);
}

/* Somebody new joins a friend, wherever that is, and is kicked out again. */
static void join(struct meeting *m, uint64_t *dice)
{
    char name[32];
    char ticket[32];
    char friend_name[32];
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    struct str friend = name_of(friend_name, (int64_t)(*dice >> 33) % m->players);
    int64_t i = m->players + m->asked++;
    size_t from = m->batch.effects.len;
    struct seek seek = {.name = name_of(ticket, i),
                        .player = name_of(name, i),
                        .friends = &friend,
                        .n_friends = 1,
                        .rejoin = true,
                        .where = {.fleet = STR("friends"), .region = REGION}};
    step(m, &(struct event){.kind = EVENT_SEEK, .conn = 1, .seek = seek});
    look(m, from);
    step(m, &(struct event){.kind = EVENT_OPERATE,
                            .conn = 1,
                            .operate = {.verb = OPERATE_KICK,
                                        .target = strtoll(m->key, NULL, 10),
                                        .who = STR("bench")}});
    if (m->asked % TOGETHER == 0)
        turn(m);
}

static double us_of_joins(struct meeting *m, uint64_t *dice)
{
    double before_us = process_cpu_us(getpid());
    for (int i = 0; i < PER_RUN; i++)
        join(m, dice);
    return (process_cpu_us(getpid()) - before_us) / PER_RUN;
}

struct found {
    struct figure few, many, growth;
};

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "few_us_per_join", &f->few, 2);
    bench_figure(b, "many_us_per_join", &f->many, 2);
    bench_figure(b, "growth", &f->growth, 2);
    bench_number(b, "few", (double)wish.few, 0);
    bench_number(b, "many", (double)wish.many, 0);
    bench_number(b, "n", (double)PER_RUN * (double)bench_options.runs, 0);

    struct bench_row *row =
        bench_row(b, "P5", "joining a friend, in core, among 1,000,000 players : among 1,000",
                  &f->growth, "×", 2);
    row->wanted = "≤ 1.5 ×";
    row->reach = 1.5 / figure_median(&f->growth);
    row->n = (double)PER_RUN * (double)bench_options.runs;
    snprintf(row->yardstick, sizeof(row->yardstick), "among 1,000 players %.2f µs",
             figure_median(&f->few));
    snprintf(row->cpu, sizeof(row->cpu), "%.2f µs, with the leaving", figure_median(&f->many));
}

bool bench_friends(struct bench *b)
{
    static struct found f; /* large */
    static struct meeting few, many;
    uint64_t dice = 1;
    f = (struct found){0};
    meet(&few, wish.few);
    meet(&many, wish.many);
    (void)us_of_joins(&few, &dice);
    (void)us_of_joins(&many, &dice);
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        double few_us = us_of_joins(&few, &dice);
        double many_us = us_of_joins(&many, &dice);
        figure_add(&f.few, few_us);
        figure_add(&f.many, many_us);
        figure_add(&f.growth, many_us / few_us);
    }
    part(&few);
    part(&many);
    tell(b, &f);
    return true;
}

int bench_friends_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_friends_options, bench_friends);
}

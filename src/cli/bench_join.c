/* Players who join rooms over HTTP: each request gives one a durable seat in the next of a few
 * large rooms, moving him there, beside the same server answering a constant. The host is one that
 * says it has started the rooms; players never come to it. */
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_host.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>

enum { PLAYERS = 8000, TOKENS_MAX = 20, REQUEST_MAX = 8 * 1024 };

/* With so many Muster always has something to do. With half of them the loop stands still for a
 * fifth of the time, because all of them wait for the same commit. */
enum { CLIENTS = 128, CLIENTS_FEW = CLIENTS / 2 };

static struct {
    int64_t connections;
    int64_t tokens;
} wish = {.connections = CLIENTS, .tokens = 1};

const struct arg bench_join_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = BENCH_CLIENTS_MAX,
     .value = "N",
     .help = "clients, each with one request under way (128)"},
    {.name = "--tokens",
     .kind = ARG_NUMBER,
     .into = &wish.tokens,
     .min = 1,
     .max = TOKENS_MAX,
     .value = "N",
     .help = "of each player, in turn; with 10 Muster has forgotten each when it comes again (1)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

static const char limits[] = "http: {connections: 4000, connections_per_address: 4000}\n"
                             "rates:\n"
                             "  create: [{count: 1000000, seconds: 60}]\n"
                             "  join: [{count: 1000000, seconds: 60}]\n";

struct joins {
    struct bench_host host;
    int64_t asked; /* so far */
};

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

static void next_join(void *user, struct buf *out)
{
    struct joins *joins = user;
    const struct bench_host *h = &joins->host;
    int64_t i = joins->asked++;
    char *at = (char *)buf_extend(out, REQUEST_MAX);
    int n = snprintf(at, REQUEST_MAX,
                     "POST /room/bench/%s/join HTTP/1.1\r\nHost: bench\r\n"
                     "Authorization: Bearer %s\r\nContent-Length: 0\r\n\r\n",
                     h->rooms[i / PLAYERS % BENCH_HOST_ROOMS], bench_player(&h->players, i));
    out->len = (size_t)n;
}

static bool measure(struct bench *b, struct joins *joins, struct bench_pair *ret)
{
    struct bench_host *h = &joins->host;
    int clients = (int)wish.connections;
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!bench_host_beat(h, b) ||
            !bench_clients_run(b, h->served, clients, bench_next_constant, NULL, &ret->constant) ||
            !bench_host_beat(h, b) ||
            !bench_clients_run(b, h->served, clients, next_join, joins, &ret->asked))
            return false;
        figure_add(&ret->ratio, ret->asked.rate.values[i] / ret->constant.rate.values[i]);
    }
    return true;
}

static void tell(struct bench *b, const struct bench_pair *p)
{
    bench_figure(b, "joins_per_s", &p->asked.rate, 0);
    bench_figure(b, "cpu_us_per_join", &p->asked.cpu, 2);
    bool enough = wish.connections >= CLIENTS;
    struct bench_row *row =
        bench_pair_tell(b, p, enough ? "P3" : "",
                        enough ? "POST /room/…/join over HTTP: a durable seat each"
                               : "the same with fewer clients, who wait for the same commits",
                        (int)wish.connections);
    if (!enough)
        return;
    row->wanted = "≥ 0.5 × a constant";
    row->reach = figure_median(&p->ratio) / 0.5;
}

bool bench_join(struct bench *b)
{
    char data[BENCH_PATH_MAX], config[1024];
    static struct bench_pair found; /* large */
    struct served s = {0};
    struct joins joins = {.host = {.served = &s, .listening = -1}};
    struct bench_host *h = &joins.host;
    found = (struct bench_pair){0};
    bench_path(b, "join", data);
    snprintf(config, sizeof(config), "%s%s", bench_host_fleet, limits);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data, .config = config}) &&
              bench_players_make(&h->players, b, data, PLAYERS, (size_t)wish.tokens) &&
              bench_host_start(h, b) && measure(b, &joins, &found);
    served_end(&s, SIGKILL);
    bench_host_done(h);
    bench_remove(b, "join");
    if (ok)
        tell(b, &found);
    return ok;
}

bool bench_join_few(struct bench *b)
{
    wish.connections = CLIENTS_FEW;
    return bench_join(b);
}

int bench_join_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_join_options, bench_join);
}

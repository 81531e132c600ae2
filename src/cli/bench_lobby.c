/* Lobbies end to end: asked for over HTTP, loaded by their players on the client port, taken by a
 * game server, started, ended; durable like everything. Beside it, a process that only passes the
 * same frames. */
#include "cli/bench_child.h"
#include "cli/bench_clients.h"
#include "cli/bench_hub.h"
#include "cli/bench_lobbies.h"
#include "cli/bench_rooms.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>

enum { SERVERS = 20, CONNECTIONS_MAX = 15000 };

static struct {
    int64_t players;
    int64_t lobbies;
} wish = {.players = 10, .lobbies = 50};

const struct arg bench_lobby_options[] = {
    {.name = "--players",
     .kind = ARG_NUMBER,
     .into = &wish.players,
     .min = 1,
     .max = 100,
     .value = "N",
     .help = "of a lobby (10)"},
    {.name = "--lobbies",
     .kind = ARG_NUMBER,
     .into = &wish.lobbies,
     .min = 1,
     .max = 1000,
     .value = "N",
     .help = "under way (50)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_SECONDS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

/* Room for every player on one address. */
static const char roomy[] = "listen: {connections: 2000, connections_per_address: 2000,\n"
                            "  client_connections: 15000, client_connections_per_address: 15000}\n"
                            "http: {connections: 1200, connections_per_address: 1200}\n";

struct found {
    struct figure rate, p50, p99, cpu, loop, commit, own, hub, ratio;
    double n;
};

static void take(struct found *f, const struct lobbies_result *r)
{
    double n = (double)r->started;
    figure_add(&f->rate, n / r->seconds);
    figure_add(&f->p50, durations_us(&r->latency, 0.5) / 1000);
    figure_add(&f->p99, durations_us(&r->latency, 0.99) / 1000);
    figure_add(&f->cpu, r->cpu_us / n);
    figure_add(&f->loop, r->threads.loop_us / n);
    figure_add(&f->commit, r->threads.commit_us / n);
    figure_add(&f->own, r->own_cpu_us / n);
    f->n += n;
}

static const char *token_of(void *user, int player)
{
    return bench_player(user, player);
}

static const char *no_token(void *user, int player)
{
    (void)player;
    return user;
}

static bool measure_hub(struct bench *b, struct found *f, char *token, double rate)
{
    static struct lobbies_result r; /* large */
    struct hub hub;
    struct lobbies *l = NULL;
    if (!hub_start(&hub, b, (int)wish.players, (int)wish.lobbies))
        return false;
    struct lobbies_plan plan = {.pid = hub.pid,
                                .server = hub.address,
                                .client = hub.address,
                                .players = (int)wish.players,
                                .lobbies = (int)wish.lobbies,
                                .servers = SERVERS,
                                .token_of = no_token,
                                .user = token};
    bool ok =
        lobbies_open(&l, b, &plan) && lobbies_run(l, b, 0.3, (double)bench_options.seconds / 2, &r);
    lobbies_close(l);
    hub_end(&hub);
    if (ok) {
        figure_add(&f->hub, (double)r.started / r.seconds);
        figure_add(&f->ratio, rate / ((double)r.started / r.seconds));
    }
    return ok;
}

static bool measure(struct bench *b, struct lobbies *l, struct bench_players *players,
                    struct found *f)
{
    static struct lobbies_result r; /* large */
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!lobbies_run(l, b, 0.5, (double)bench_options.seconds, &r))
            return false;
        take(f, &r);
        if (!measure_hub(b, f, players->tokens[0], (double)r.started / r.seconds))
            return false;
    }
    return true;
}

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "lobbies_per_s", &f->rate, 0);
    bench_figure(b, "bare_frames_per_s", &f->hub, 0);
    bench_figure(b, "ratio", &f->ratio, 3);
    bench_figure(b, "p50_ms", &f->p50, 2);
    bench_figure(b, "p99_ms", &f->p99, 2);
    bench_figure(b, "cpu_us_per_lobby", &f->cpu, 1);
    bench_figure(b, "loop_us_per_lobby", &f->loop, 1);
    bench_figure(b, "commit_us_per_lobby", &f->commit, 1);
    bench_figure(b, "load_us_per_lobby", &f->own, 1);
    bench_number(b, "players", (double)wish.players, 0);
    bench_number(b, "lobbies", (double)wish.lobbies, 0);
    bench_number(b, "servers", SERVERS, 0);
    bench_number(b, "n", f->n, 0);
    bench_text(b, "log_level", bench_options.log_level);
    bench_text(b, "file_system", b->file_system);

    struct bench_row *row = bench_row(b, "",
                                      "lobbies of 10 players, from POST /v1/lobbies to the last "
                                      "player's MATCH_START and the match's end, 50 under way",
                                      &f->rate, "/s", 0);
    char hub[BENCH_PRINT_MAX];
    row->wanted = "";
    row->n = f->n;
    snprintf(row->yardstick, sizeof(row->yardstick),
             "the same frames alone: %s/s (%.2f ×); p50 %.1f ms, p99 %.1f ms",
             bench_print(hub, figure_median(&f->hub), 0), figure_median(&f->ratio),
             figure_median(&f->p50), figure_median(&f->p99));
    snprintf(row->cpu, sizeof(row->cpu), "%.0f µs (loop %.0f)", figure_median(&f->cpu),
             figure_median(&f->loop));
}

bool bench_lobby(struct bench *b)
{
    char data[BENCH_PATH_MAX], token[BENCH_TOKEN_MAX];
    static struct found f; /* large */
    struct served s = {0};
    struct bench_players players = {0};
    struct lobbies *l = NULL;
    int64_t n = wish.players * wish.lobbies;
    f = (struct found){0};
    if (n > CONNECTIONS_MAX)
        return bench_fail(b, "at most %d players", CONNECTIONS_MAX);
    bench_path(b, "lobby", data);
    bool ok = served_start(&s, b, &(struct served_plan){.data = data, .config = roomy}) &&
              bench_read_token(b, data, token) && bench_accounts_make(&players, b, data, (size_t)n);
    struct lobbies_plan plan = {.pid = s.pid,
                                .server = s.server,
                                .client = s.client,
                                .http = s.http,
                                .token = token,
                                .players = (int)wish.players,
                                .lobbies = (int)wish.lobbies,
                                .servers = SERVERS,
                                .token_of = token_of,
                                .user = &players};
    ok = ok && lobbies_open(&l, b, &plan) && measure(b, l, &players, &f);
    lobbies_close(l);
    served_end(&s, SIGKILL);
    bench_players_done(&players);
    bench_remove(b, "lobby");
    if (ok)
        tell(b, &f);
    return ok;
}

int bench_lobby_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_lobby_options, bench_lobby);
}

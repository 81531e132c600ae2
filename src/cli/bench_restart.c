/* P7: how long a killed Muster with much to remember takes until it serves again. */
#include "cli/bench_child.h"
#include "cli/bench_crowd.h"
#include "cli/bench_load.h"
#include "cli/cli.h"
#include "cli/secret.h"
#include "store/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAYERS = 10, LOBBIES_OF_A_RUN = 10 * 1000 * 1000 };

static struct {
    int64_t servers;
    int64_t seats;
} wish = {.servers = 10000, .seats = 100000};

const struct arg bench_restart_options[] = {
    {.name = "--servers",
     .kind = ARG_NUMBER,
     .into = &wish.servers,
     .min = 1,
     .max = 200000,
     .value = "N",
     .help = "game servers that are known (10000)"},
    {.name = "--seats",
     .kind = ARG_NUMBER,
     .into = &wish.seats,
     .min = 10,
     .max = 10000000,
     .value = "N",
     .help = "seats in open matches, ten to a match (100000)"},
    BENCH_ARG_RUNS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

struct keeping {
    struct store *store;
    bool failed;
};

static void keep(void *user, const struct batch *batch)
{
    struct keeping *k = user;
    if (batch->changes.len == 0)
        return;
    struct store_batch row = {.seq = batch->seq,
                              .epoch = 1,
                              .core_ms = batch->core_ms,
                              .wall_ms = batch->wall_ms,
                              .changes = batch->changes.data,
                              .len = batch->changes.len};
    if (store_commit(k->store, &row) != 0)
        k->failed = true;
}

/* A folder as a Muster with that many servers, matches and players leaves it. */
static bool fill(struct bench *b, const char *folder)
{
    const char *why = "";
    char secret_why[SECRET_WHY_MAX];
    uint8_t secret[CORE_SECRET_SIZE];
    struct keeping k = {0};
    struct crowd *c = xcalloc(1, sizeof(*c));
    if (store_open_sqlite(folder, &k.store, &why) != 0)
        return bench_fail(b, "%s", why);
    bool ok = secret_load(folder, true, secret, secret_why) == 0 || bench_fail(b, "%s", secret_why);
    if (ok) {
        crowd_init(c, (int)wish.servers, secret, keep, &k);
        /* Matches are held for good: the crowd forgets which, core does not. */
        for (int64_t left = wish.seats / PLAYERS; left > 0; left -= CROWD_HELD_MAX / 2) {
            int now = left < CROWD_HELD_MAX / 2 ? (int)left : CROWD_HELD_MAX / 2;
            c->n_held = 0;
            crowd_allocate(c, now, CROWD_HELD_MAX - 1, PLAYERS);
        }
        crowd_done(c);
        ok = !k.failed || bench_fail(b, "%s cannot be written", folder);
    }
    store_close(k.store);
    free(c);
    return ok;
}

/* A server that comes and a match on it: what "serving" means. */
static bool first_answer(struct bench *b, const struct served *s, int run)
{
    static struct load_result r; /* large */
    struct load *load = NULL;
    struct load_plan plan = {.pid = s->pid,
                             .server = s->server,
                             .manager = s->manager,
                             .connections = 1,
                             .depth = 1,
                             .servers = 1,
                             .keep = 1,
                             .lobbies = (run + 1) * LOBBIES_OF_A_RUN};
    bool ok = load_open(&load, b, &plan) && load_run(load, b, 0, 0.001, &r);
    load_close(load);
    return ok;
}

struct found {
    struct figure ready, serving, mib;
};

static bool measure(struct bench *b, const char *data, struct found *f)
{
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        struct served s = {0};
        int64_t start_ns = monotonic_ns();
        if (!served_start(&s, b, &(struct served_plan){.data = data}))
            return false;
        bool ok = first_answer(b, &s, i);
        figure_add(&f->ready, s.ready_ms);
        figure_add(&f->serving, (double)(monotonic_ns() - start_ns) / 1e6);
        figure_add(&f->mib, (double)process_resident_kib(s.pid) / 1024);
        served_end(&s, SIGKILL);
        if (!ok)
            return false;
    }
    return true;
}

bool bench_restart(struct bench *b)
{
    char data[BENCH_PATH_MAX];
    static struct found f; /* large */
    f = (struct found){0};
    bench_path(b, "restart", data);
    bool ok = fill(b, data) && measure(b, data, &f);
    bench_remove(b, "restart");
    if (!ok)
        return false;
    bench_figure(b, "ready_ms", &f.ready, 1);
    bench_figure(b, "serving_ms", &f.serving, 1);
    bench_figure(b, "resident_mib", &f.mib, 1);
    bench_number(b, "servers", (double)wish.servers, 0);
    bench_number(b, "seats", (double)wish.seats, 0);
    bench_text(b, "file_system", b->file_system);
    struct bench_row *row = bench_row(
        b, "P7",
        "killed and started again with 10,000 servers and 100,000 seats: first match given",
        &f.serving, "ms", 0);
    row->wanted = "≤ 1,000 ms";
    row->reach = 1000 / figure_median(&f.serving);
    row->n = f.serving.n;
    snprintf(row->yardstick, sizeof(row->yardstick), "ready line after %.0f ms",
             figure_median(&f.ready));
    return true;
}

int bench_restart_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_restart_options, bench_restart);
}

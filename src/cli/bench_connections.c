/* P4: game servers that do nothing but heartbeat, over real connections. */
#include "cli/bench_child.h"
#include "cli/bench_load.h"
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>

static struct {
    int64_t connections;
} wish = {.connections = 15000};

const struct arg bench_connections_options[] = {
    {.name = "--connections",
     .kind = ARG_NUMBER,
     .into = &wish.connections,
     .min = 1,
     .max = 19000,
     .value = "N",
     .help = "game servers (15000); each process may have 20,000 descriptors on many systems"},
    BENCH_ARG_RUNS,
    BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT,
    BENCH_ARG_JSON,
    {0},
};

static const char roomy[] = "listen: {connections: 19500, connections_per_address: 19500}\n";

struct found {
    struct figure share, beat;
    double bytes;
};

/* A run is one round of heartbeats, because Muster's own PINGs come in waves of that length too. */
static bool measure(struct bench *b, struct load *load, struct found *f)
{
    static struct load_result r; /* large */
    double n = (double)wish.connections;
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!load_idle(load, b, LOAD_BEAT_MS / 1000.0, &r))
            return false;
        figure_add(&f->share, r.cpu_us / (r.seconds * 1e6));
        figure_add(&f->beat, r.cpu_us / (n * r.seconds * 1000 / LOAD_BEAT_MS));
    }
    return true;
}

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "core_share", &f->share, 4);
    bench_figure(b, "cpu_us_per_heartbeat", &f->beat, 2);
    bench_number(b, "bytes_per_connection", f->bytes, 0);
    bench_number(b, "connections", (double)wish.connections, 0);
    bench_text(b, "log_level", bench_options.log_level);

    double n = (double)(wish.connections * bench_options.runs);
    struct bench_row *row = bench_row(
        b, "P4", "15,000 connections, a heartbeat and a PING each 10 s", &f->share, "core", 3);
    row->wanted = "≤ 0.1 core";
    row->reach = 0.1 / figure_median(&f->share);
    row->n = n;
    snprintf(row->cpu, sizeof(row->cpu), "%.1f µs a heartbeat and PING", figure_median(&f->beat));
    struct figure bytes = {.values = {f->bytes}, .n = 1};
    row =
        bench_row(b, "P4", "user memory of a connection, its server included", &bytes, "bytes", 0);
    row->wanted = "≤ 2 KB";
    row->reach = 2048 / f->bytes;
    row->n = (double)wish.connections;
}

bool bench_connections(struct bench *b)
{
    char data[BENCH_PATH_MAX];
    static struct found f; /* large */
    f = (struct found){0};
    struct served s = {0};
    struct load *load = NULL;
    struct served_plan how = {.data = bench_path(b, "connections", data), .config = roomy};
    if (!served_start(&s, b, &how))
        return false;
    int64_t before_kib = process_own_kib(s.pid);
    struct load_plan plan = {
        .pid = s.pid, .server = s.server, .servers = (int)wish.connections, .keep = 1};
    bool ok = load_open(&load, b, &plan);
    if (ok) {
        int64_t own_kib = process_own_kib(s.pid) - before_kib;
        f.bytes = (double)own_kib * 1024 / (double)wish.connections;
        ok = measure(b, load, &f);
    }
    load_close(load);
    served_end(&s, SIGKILL);
    bench_remove(b, "connections");
    if (ok)
        tell(b, &f);
    return ok;
}

int bench_connections_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_connections_options, bench_connections);
}

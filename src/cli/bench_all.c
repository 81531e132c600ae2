/* Every benchmark, one after the other, and the table of them. */
#include "cli/bench_child.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    const char *out;
    const char *commit;
} wish = {.out = "bench", .commit = "unknown"};

const struct arg bench_all_options[] = {
    {.name = "--out",
     .kind = ARG_TEXT,
     .into = &wish.out,
     .value = "DIR",
     .help = "where RESULTS.md and results.svg are written (./bench)"},
    {.name = "--commit",
     .kind = ARG_TEXT,
     .into = &wish.commit,
     .value = "TEXT",
     .help = "of what was built, for the table"},
    BENCH_ARG_RUNS,
    BENCH_ARG_DATA_ROOT,
    {0},
};

static const struct part {
    const char *name;
    bench_measure *measure;
    int64_t seconds;
    const char *log_level;
} parts[] = {
    {"allocate", bench_allocate, 3, "info"},
    {"allocate at log level warn", bench_allocate, 2, "warn"},
    {"postgres", bench_postgres, 3, "info"},
    {"single", bench_single, 1, "info"},
    {"connections", bench_connections, 0, "info"},
    {"core", bench_core, 0, "info"},
    {"friends", bench_friends, 0, "info"},
    {"restart", bench_restart, 0, "info"},
    {"footprint", bench_footprint, 0, "info"},
    {"store", bench_store, 1, "info"},
    {"http", bench_http, 1, "info"},
    {"join", bench_join, 2, "info"},
    {"join, fewer clients", bench_join_few, 2, "info"},
    {"lobby", bench_lobby, 2, "info"},
    {"nats", bench_nats, 2, "info"},
    {"agones", bench_agones, 1, "info"},
    {"spawn", bench_spawn, 0, "info"},
};

enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* One part in a process of its own, so that none inherits another's memory. */
struct under_way {
    const struct part *part;
    struct bench *found; /* shared with us */
    bool ok;
};

static void run_part(void *user)
{
    struct under_way *u = user;
    bench_options.seconds = u->part->seconds;
    bench_options.log_level = u->part->log_level;
    u->found->n_fields = 0;
    _exit(u->part->measure(u->found) ? 0 : 1);
}

static bool wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool run_parts(struct bench *found)
{
    for (size_t i = 0; i < PARTS; i++) {
        bench_part_begins((int)i, PARTS, parts[i].name);
        struct under_way u = {.part = &parts[i], .found = found};
        pid_t pid = child_start(run_part, &u);
        if (pid < 0 || !wait_for(pid)) {
            if (found->why[0] == '\0')
                bench_fail(found, "%s failed", parts[i].name);
            return false;
        }
    }
    return true;
}

/* The rows are what is told; the fields are for single nouns. */
static void tell(struct bench *b)
{
    for (int i = 0; i < b->n_rows; i++)
        printf("%-3s %-86s %16s  %s\n", b->rows[i].goal, b->rows[i].what, b->rows[i].value,
               b->rows[i].reach <= 0   ? ""
               : b->rows[i].reach >= 1 ? "reached"
                                       : "NOT reached");
}

static bool bench_all(struct bench *b)
{
    struct bench *found =
        mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        return bench_fail(b, "no memory");
    found->folder = b->folder;
    found->file_system = b->file_system;
    bool ok = run_parts(found) && bench_report(found, wish.out, wish.commit);
    memcpy(b->why, found->why, sizeof(b->why));
    if (ok)
        tell(found);
    munmap(found, sizeof(*found));
    return ok;
}

int bench_all_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_all_options, bench_all);
}

/* What the store takes: batches of few and of many changes, beside bare appends of the same bytes
 * with a sync behind each. */
#include "base/full.h"
#include "cli/bench_child.h"
#include "cli/cli.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct arg bench_store_options[] = {
    BENCH_ARG_RUNS, BENCH_ARG_SECONDS, BENCH_ARG_DATA_ROOT, BENCH_ARG_JSON, {0},
};

enum { SIZES = 3 };
static const int sizes[SIZES] = {1, 100, 1000};

/* A field's name for each size. */
static const char *const commit_names[SIZES] = {"commits_1_per_s", "commits_100_per_s",
                                                "commits_1000_per_s"};
static const char *const change_names[SIZES] = {"changes_1_per_s", "changes_100_per_s",
                                                "changes_1000_per_s"};
static const char *const bare_names[SIZES] = {"bare_1_per_s", "bare_100_per_s", "bare_1000_per_s"};
static const char *const ratio_names[SIZES] = {"ratio_1", "ratio_100", "ratio_1000"};
static const char *const cpu_names[SIZES] = {"cpu_us_per_change_1", "cpu_us_per_change_100",
                                             "cpu_us_per_change_1000"};
static const char *const whats[SIZES] = {"store: commits of 1 change",
                                         "store: commits of 100 changes",
                                         "store: commits of 1,000 changes"};

struct found {
    struct figure commits, changes, bare, ratio, cpu;
    double n;
};

/* Tickets as they are when they are opened: half of an allocation's changes. */
static void make_changes(struct buf *out, int64_t first_id, int n)
{
    buf_clear(out);
    for (int i = 0; i < n; i++) {
        struct row_ticket row = {.id = first_id + i,
                                 .chat_server = 1,
                                 .fleet = 1,
                                 .lobby = (int32_t)(first_id + i),
                                 .regions = 4,
                                 .player_count = 10,
                                 .average_rating = 1500,
                                 .state = 1,
                                 .session = first_id + i,
                                 .opened_core_ms = 123456789,
                                 .deadline_core_ms = 123486789,
                                 .tries_len = 54};
        change_encode_row(out, ROW_ticket, &row);
    }
}

/* One way to make bytes durable. */
typedef bool append(void *user, const struct buf *bytes);

struct into_store {
    struct store *store;
    int64_t seq;
    int64_t id;
};

static bool append_to_store(void *user, const struct buf *bytes)
{
    struct into_store *s = user;
    struct store_batch batch = {.seq = ++s->seq,
                                .epoch = 1,
                                .core_ms = s->seq,
                                .wall_ms = s->seq,
                                .changes = bytes->data,
                                .len = bytes->len};
    return store_commit(s->store, &batch) == 0;
}

static bool append_to_file(void *user, const struct buf *bytes)
{
    int fd = *(int *)user;
    return write(fd, bytes->data, bytes->len) == (ssize_t)bytes->len && fdatasync(fd) == 0;
}

/* Appends for that long; each batch has ids of its own. Returns appends per second, 0 on failure.
 */
static double repeat(append *how, void *user, int n, int64_t *next_id, double *ret_count)
{
    struct buf bytes = {0};
    int64_t count = 0;
    int64_t start_ns = monotonic_ns();
    int64_t until_ns = start_ns + bench_options.seconds * 1000000000 / 2;
    bool ok = true;
    while (ok && monotonic_ns() < until_ns) {
        make_changes(&bytes, *next_id, n);
        *next_id += n;
        ok = how(user, &bytes);
        count++;
    }
    double seconds = (double)(monotonic_ns() - start_ns) / 1e9;
    buf_done(&bytes);
    *ret_count = (double)count;
    return ok ? (double)count / seconds : 0;
}

static bool measure(struct bench *b, struct into_store *s, int fd, int size, struct found *f)
{
    int64_t unused = 1;
    double bare_count = 0;
    double count = 0;
    double bare = repeat(append_to_file, &fd, sizes[size], &unused, &bare_count);
    double before_us = process_cpu_us(getpid());
    double commits = repeat(append_to_store, s, sizes[size], &s->id, &count);
    double cpu_us = process_cpu_us(getpid()) - before_us;
    if (bare <= 0 || commits <= 0)
        return bench_fail(b, "%s cannot be written: %s", b->folder, full_reason(errno));
    figure_add(&f->bare, bare);
    figure_add(&f->commits, commits);
    figure_add(&f->changes, commits * sizes[size]);
    figure_add(&f->ratio, commits / bare);
    figure_add(&f->cpu, cpu_us / (count * sizes[size]));
    f->n += count;
    return true;
}

static void tell(struct bench *b, const struct found *f, int size)
{
    bench_figure(b, commit_names[size], &f->commits, 0);
    bench_figure(b, change_names[size], &f->changes, 0);
    bench_figure(b, bare_names[size], &f->bare, 0);
    bench_figure(b, ratio_names[size], &f->ratio, 2);
    bench_figure(b, cpu_names[size], &f->cpu, 2);
    struct bench_row *row = bench_row(b, "", whats[size], &f->commits, "/s", 0);
    char bare[BENCH_PRINT_MAX], changes[BENCH_PRINT_MAX];
    snprintf(row->yardstick, sizeof(row->yardstick),
             "append + fdatasync %s/s (%.2f ×); %s changes/s",
             bench_print(bare, figure_median(&f->bare), 0), figure_median(&f->ratio),
             bench_print(changes, figure_median(&f->changes), 0));
    snprintf(row->cpu, sizeof(row->cpu), "%.2f µs a change, folding included",
             figure_median(&f->cpu));
    row->n = f->n;
}

static bool measure_all(struct bench *b, struct store *store, int fd)
{
    static struct found found[SIZES]; /* large */
    memset(found, 0, sizeof(found));
    struct into_store s = {.store = store, .id = 1};
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        for (int size = 0; size < SIZES; size++) {
            if (!measure(b, &s, fd, size, &found[size]))
                return false;
        }
    }
    for (int size = 0; size < SIZES; size++)
        tell(b, &found[size], size);
    bench_text(b, "file_system", b->file_system);
    return true;
}

bool bench_store(struct bench *b)
{
    char path[BENCH_PATH_MAX], data[BENCH_PATH_MAX];
    const char *why = "";
    struct store *store = NULL;
    if (store_open_sqlite(bench_path(b, "store", data), &store, &why) != 0)
        return bench_fail(b, "%s", why);
    int fd = open(bench_path(b, "bare", path), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    bool ok = fd >= 0 ? measure_all(b, store, fd) : bench_fail(b, "%s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    store_close(store);
    bench_remove(b, "store");
    bench_remove(b, "bare");
    return ok;
}

int bench_store_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_store_options, bench_store);
}

/* P9: allocations of a node whose store is PostgreSQL, beside one with the embedded store, with the
 * same load in the same run. The database is Debian's, on the same disk, with its own defaults: a
 * commit is on the disk when it is answered. */
#include "base/str.h"
#include "cli/bench_child.h"
#include "cli/bench_load.h"
#include "cli/cli.h"
#include "store/libpq.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 64, DEPTH = 32, SERVERS = 1000, KEEP = 4, START_MS = 30000, LOOK_MS = 50 };

static const double wanted_ratio = 0.5;

const struct arg bench_postgres_options[] = {
    BENCH_ARG_RUNS,      BENCH_ARG_SECONDS, BENCH_ARG_LOG_LEVEL,
    BENCH_ARG_DATA_ROOT, BENCH_ARG_JSON,    {0},
};

/* ── the database ──────────────────────────────────────────────────────────────────────────── */

struct database {
    pid_t pid;
    int port;
    char bin[128];
    char data[BENCH_PATH_MAX];
    char url[128];
};

static bool find_programs(struct bench *b, struct database *d)
{
    glob_t found = {0};
    bool there = glob("/usr/lib/postgresql/*/bin", 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
                 str_copy(d->bin, sizeof(d->bin), str_of(found.gl_pathv[found.gl_pathc - 1]));
    globfree(&found);
    return there || bench_fail(b, "there is no PostgreSQL; install the package postgresql-15");
}

static int free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(any);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&any, len) == 0 &&
                 getsockname(fd, (struct sockaddr *)&any, &len) == 0;
    if (fd >= 0)
        close(fd);
    return bound ? ntohs(any.sin_port) : -1;
}

/* PostgreSQL refuses to run as root. NULL: we are not. */
static const struct passwd *other_user(void)
{
    return geteuid() == 0 ? getpwnam("postgres") : NULL;
}

static void become(const struct database *d, const char *program, char *const argv[])
{
    char path[192];
    int nothing = open("/dev/null", O_RDWR);
    const struct passwd *user = other_user();
    snprintf(path, sizeof(path), "%s/%s", d->bin, program);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    if (!user || (setgid(user->pw_gid) == 0 && setuid(user->pw_uid) == 0))
        execv(path, argv);
    _exit(127);
}

static void run_initdb(void *user)
{
    struct database *d = user;
    become(d, "initdb",
           (char *const[]){"initdb", "-D", d->data, "-U", "muster", "-A", "trust", "-E", "UTF8",
                           "--no-sync", NULL});
}

/* Without a socket in the file system: whose folder another user may not enter. */
static void run_postgres(void *user)
{
    struct database *d = user;
    char port[16];
    snprintf(port, sizeof(port), "%d", d->port);
    become(d, "postgres",
           (char *const[]){"postgres", "-D", d->data, "-p", port, "-h", "127.0.0.1", "-c",
                           "unix_socket_directories=", NULL});
}

static bool init_database(struct bench *b, struct database *d)
{
    int status = 1;
    const struct passwd *user = other_user();
    bench_path(b, "postgres", d->data);
    if (user && chmod(b->folder, 0711) != 0) /* what is in it has modes of its own */
        return bench_fail(b, "%s: %s", b->folder, strerror(errno));
    if (mkdir(d->data, 0700) != 0 || (user && chown(d->data, user->pw_uid, user->pw_gid) != 0))
        return bench_fail(b, "%s cannot be made: %s", d->data, strerror(errno));
    pid_t pid = child_start(run_initdb, d);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return (pid > 0 && status == 0) ||
           bench_fail(b,
                      "initdb fails in %s; is that a folder that user postgres may enter? "
                      "Choose another with --data-root",
                      d->data);
}

static bool answers(const struct database *d)
{
    struct why why;
    struct pg *pg = NULL;
    struct pg_wish wish = {
        .url = d->url, .name = "muster bench", .connect_ms = 1000, .answer_ms = 1000};
    bool ok = pg_connect(&wish, &pg, &why) == 0;
    pg_close(pg);
    return ok;
}

static bool start_database(struct bench *b, struct database *d)
{
    d->port = free_port();
    snprintf(d->url, sizeof(d->url), "postgres://muster@127.0.0.1:%d/postgres", d->port);
    d->pid = child_start(run_postgres, d);
    for (int waited_ms = 0; d->pid > 0 && waited_ms < START_MS; waited_ms += LOOK_MS) {
        if (answers(d))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
    return bench_fail(b, "PostgreSQL does not start in %s", d->data);
}

/* SIGQUIT ends all of its processes at once. */
static void end_database(struct database *d)
{
    if (d->pid <= 0)
        return;
    kill(d->pid, SIGQUIT);
    while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* ── measuring ─────────────────────────────────────────────────────────────────────────────── */

/* A Muster under load. */
struct side {
    struct served served;
    struct load *load;
    struct figure rate, p50, p99, cpu;
    double n;
};

struct found {
    struct side embedded;
    struct side shared;
    struct figure ratio;
};

static bool open_side(struct bench *b, struct side *s, const char *name, const char *store)
{
    char data[BENCH_PATH_MAX];
    struct served_plan how = {
        .data = bench_path(b, name, data), .config = BENCH_ROOMY, .store = store};
    if (!served_start(&s->served, b, &how))
        return false;
    struct load_plan plan = {.pid = s->served.pid,
                             .server = s->served.server,
                             .manager = s->served.manager,
                             .connections = CONNECTIONS,
                             .depth = DEPTH,
                             .servers = SERVERS,
                             .keep = KEEP};
    return load_open(&s->load, b, &plan);
}

static bool run_side(struct bench *b, struct side *s)
{
    static struct load_result r; /* large */
    if (!load_run(s->load, b, 0.5, (double)bench_options.seconds, &r))
        return false;
    double n = (double)r.answered;
    figure_add(&s->rate, n / r.seconds);
    figure_add(&s->p50, durations_us(&r.latency, 0.5));
    figure_add(&s->p99, durations_us(&r.latency, 0.99));
    figure_add(&s->cpu, r.cpu_us / n);
    s->n += n;
    return true;
}

static bool measure(struct bench *b, struct found *f)
{
    for (int i = 0; i < bench_options.runs; i++) {
        bench_run_begins(i);
        if (!run_side(b, &f->embedded) || !run_side(b, &f->shared))
            return false;
        figure_add(&f->ratio, f->shared.rate.values[i] / f->embedded.rate.values[i]);
    }
    return true;
}

static void close_side(struct side *s)
{
    load_close(s->load);
    served_end(&s->served, SIGKILL);
}

static void tell(struct bench *b, const struct found *f)
{
    bench_figure(b, "allocations_per_s", &f->shared.rate, 0);
    bench_figure(b, "embedded_per_s", &f->embedded.rate, 0);
    bench_figure(b, "ratio", &f->ratio, 3);
    bench_figure(b, "p50_us", &f->shared.p50, 0);
    bench_figure(b, "p99_us", &f->shared.p99, 0);
    bench_figure(b, "embedded_p50_us", &f->embedded.p50, 0);
    bench_figure(b, "embedded_p99_us", &f->embedded.p99, 0);
    bench_figure(b, "cpu_us_per_allocation", &f->shared.cpu, 2);
    bench_figure(b, "embedded_cpu_us_per_allocation", &f->embedded.cpu, 2);
    bench_number(b, "n", f->shared.n, 0);
    bench_text(b, "log_level", bench_options.log_level);
    bench_text(b, "file_system", b->file_system);
    struct bench_row *row = bench_row(
        b, "P9", "the same allocations as P1, of a node whose store is PostgreSQL on the same disk",
        &f->shared.rate, "/s", 0);
    char embedded[BENCH_PRINT_MAX];
    row->wanted = "≥ 0.5 × embedded";
    row->reach = figure_median(&f->ratio) / wanted_ratio;
    row->n = f->shared.n;
    snprintf(row->yardstick, sizeof(row->yardstick), "embedded store %s/s: %.2f ×",
             bench_print(embedded, figure_median(&f->embedded.rate), 0), figure_median(&f->ratio));
    snprintf(row->cpu, sizeof(row->cpu), "%.1f µs, without the database's",
             figure_median(&f->shared.cpu));
}

bool bench_postgres(struct bench *b)
{
    static struct found f; /* large */
    f = (struct found){0};
    struct database d = {0};
    bool ok = find_programs(b, &d) && init_database(b, &d) && start_database(b, &d) &&
              open_side(b, &f.embedded, "embedded", NULL) &&
              open_side(b, &f.shared, "shared", d.url) && measure(b, &f);
    close_side(&f.shared);
    close_side(&f.embedded);
    end_database(&d);
    bench_remove(b, "shared");
    bench_remove(b, "embedded");
    bench_remove(b, "postgres");
    if (ok)
        tell(b, &f);
    return ok;
}

int bench_postgres_run(int argc, char **argv)
{
    return bench_main(argc, argv, bench_postgres_options, bench_postgres);
}

/* `muster bench`: the frame around every benchmark. The measuring is done in a child, so that its
 * folder is removed and its processes end however it ends, also by ctrl-c. */
#include "cli/bench.h"

#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/progress.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench_options bench_options = {.runs = 5, .seconds = 2, .log_level = "info"};
const char *const bench_log_levels[] = {"error", "warn", "info", "debug", NULL};

/* ── what was found ────────────────────────────────────────────────────────────────────────── */

static struct bench_field *add_field(struct bench *b, const char *name, int decimals)
{
    if (b->n_fields == BENCH_FIELDS_MAX)
        abort();
    struct bench_field *f = &b->fields[b->n_fields++];
    *f = (struct bench_field){.name = name, .decimals = decimals};
    return f;
}

void bench_figure(struct bench *b, const char *name, const struct figure *f, int decimals)
{
    add_field(b, name, decimals)->figure = *f;
}

void bench_number(struct bench *b, const char *name, double value, int decimals)
{
    figure_add(&add_field(b, name, decimals)->figure, value);
}

void bench_text(struct bench *b, const char *name, const char *text)
{
    struct bench_field *f = add_field(b, name, 0);
    f->is_text = true;
    snprintf(f->text, sizeof(f->text), "%s", text);
}

struct bench_row *bench_row(struct bench *b, const char *goal, const char *what,
                            const struct figure *f, const char *unit, int decimals)
{
    if (b->n_rows == BENCH_ROWS_MAX)
        abort();
    struct bench_row *row = &b->rows[b->n_rows++];
    char median[BENCH_PRINT_MAX], least[BENCH_PRINT_MAX], most[BENCH_PRINT_MAX];
    *row = (struct bench_row){.goal = goal, .what = what, .wanted = "", .runs = f->n};
    snprintf(row->value, sizeof(row->value), "%s %s",
             bench_print(median, figure_median(f), decimals), unit);
    if (f->n > 1)
        snprintf(row->spread, sizeof(row->spread), "%s – %s",
                 bench_print(least, figure_least(f), decimals),
                 bench_print(most, figure_most(f), decimals));
    return row;
}

bool bench_fail(struct bench *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(b->why, sizeof(b->why), format, args);
    va_end(args);
    return false;
}

const char *bench_path(const struct bench *b, const char *name, char dst[BENCH_PATH_MAX])
{
    snprintf(dst, BENCH_PATH_MAX, "%s/%s", b->folder, name);
    return dst;
}

/* ── the folder ────────────────────────────────────────────────────────────────────────────── */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void remove_folder(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void bench_remove(const struct bench *b, const char *name)
{
    char path[BENCH_PATH_MAX];
    remove_folder(bench_path(b, name, path));
}

static const char *default_root(void)
{
    struct stat st;
    const char *temporary = getenv("TMPDIR");
    if (stat("build", &st) == 0 && S_ISDIR(st.st_mode))
        return "build";
    return temporary ? temporary : ".";
}

/* What the measured disk is, by the numbers of statfs(2). */
static const char *file_system_of(const char *path)
{
    static const struct {
        long type;
        const char *name;
    } known[] = {
        {0xEF53, "ext4"},        {0x58465342, "xfs"},  {0x9123683E, "btrfs"}, {0x01021994, "tmpfs"},
        {0x794C7630, "overlay"}, {0xF2F52010, "f2fs"}, {0x2FC12FC1, "zfs"},   {0x6969, "nfs"},
    };
    struct statfs s;
    if (statfs(path, &s) != 0)
        return "unknown";
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (s.f_type == known[i].type)
            return known[i].name;
    }
    return "unknown";
}

/* ── how far it is ─────────────────────────────────────────────────────────────────────────── */

static struct {
    struct progress progress;
    char part[64]; /* of bench all: "3 of 15, single"; "" = one noun alone */
} far;

void bench_part_begins(int i, int n, const char *name)
{
    char text[PROGRESS_MAX];
    snprintf(far.part, sizeof(far.part), "%d of %d, %s", i + 1, n, name);
    snprintf(text, sizeof(text), "bench: %s", far.part);
    progress_show(&far.progress, text, "");
}

/* Of many parts the runs are too many for lines. */
void bench_run_begins(int i)
{
    char text[PROGRESS_MAX];
    char run[64];
    snprintf(run, sizeof(run), "run %d of %" PRId64, i + 1, bench_options.runs);
    snprintf(text, sizeof(text), "bench: %s", far.part[0] ? far.part : run);
    if (far.part[0])
        snprintf(run, sizeof(run), "; run %d of %" PRId64, i + 1, bench_options.runs);
    if (!far.part[0] || far.progress.over)
        progress_show(&far.progress, text, far.part[0] ? run : "");
}

/* ── telling ───────────────────────────────────────────────────────────────────────────────── */

static void print_json(const struct bench *b, const char *verb)
{
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_open_object(&w);
    json_key_text(&w, "bench", str_of(verb));
    for (int i = 0; i < b->n_fields; i++) {
        const struct bench_field *f = &b->fields[i];
        if (f->is_text)
            json_key_text(&w, f->name, str_of(f->text));
        else
            json_key_number(&w, f->name, figure_median(&f->figure), f->decimals);
    }
    json_key(&w, "spread");
    json_open_object(&w);
    for (int i = 0; i < b->n_fields; i++) {
        const struct bench_field *f = &b->fields[i];
        if (f->figure.n < 2)
            continue;
        json_key(&w, f->name);
        json_open_array(&w);
        json_number(&w, figure_least(&f->figure), f->decimals);
        json_number(&w, figure_most(&f->figure), f->decimals);
        json_close_array(&w);
    }
    json_close_object(&w);
    json_close_object(&w);
    printf("%.*s\n", (int)out.len, (const char *)out.data);
    buf_done(&out);
}

static void print_text(const struct bench *b)
{
    for (int i = 0; i < b->n_fields; i++) {
        const struct bench_field *f = &b->fields[i];
        char median[BENCH_PRINT_MAX], least[BENCH_PRINT_MAX], most[BENCH_PRINT_MAX];
        if (f->is_text) {
            printf("%-32s %s\n", f->name, f->text);
            continue;
        }
        printf("%-32s %14s", f->name, bench_print(median, figure_median(&f->figure), f->decimals));
        if (f->figure.n > 1)
            printf("   (%s to %s, %d runs)",
                   bench_print(least, figure_least(&f->figure), f->decimals),
                   bench_print(most, figure_most(&f->figure), f->decimals), f->figure.n);
        putchar('\n');
    }
}

static void use_descriptors(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

/* ── the child and who waits for it ────────────────────────────────────────────────────────── */

static int work(const char *verb, bench_measure *measure, const char *folder)
{
    static struct bench b; /* large */
    b.folder = folder;
    b.file_system = file_system_of(folder);
    if (strcmp(b.file_system, "tmpfs") == 0)
        fprintf(stderr, "muster %s: %s is in memory, so nothing is measured of a disk\n", verb,
                folder);
    bool measured = measure(&b);
    progress_wipe(&far.progress);
    if (!measured) {
        fprintf(stderr, "muster %s: %s\n", verb, b.why);
        return EXIT_REFUSED;
    }
    bench_number(&b, "runs", (double)bench_options.runs, 0);
    if (bench_options.json)
        print_json(&b, strchr(verb, ' ') ? strchr(verb, ' ') + 1 : verb);
    else
        print_text(&b);
    return EXIT_DONE;
}

static volatile pid_t worker;

static void pass_on(int number)
{
    if (worker > 0)
        kill(worker, number);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_REFUSED;
}

static int supervise(const char *verb, bench_measure *measure, const char *folder)
{
    pid_t parent = getpid();
    struct sigaction forward = {.sa_handler = pass_on};
    sigaction(SIGINT, &forward, NULL);
    sigaction(SIGTERM, &forward, NULL);
    fflush(stdout);
    worker = fork();
    if (worker == 0) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(EXIT_REFUSED);
        int code = work(verb, measure, folder);
        fflush(stdout);
        _exit(code);
    }
    if (worker < 0) {
        fprintf(stderr, "muster %s: %s\n", verb, strerror(errno));
        return EXIT_REFUSED;
    }
    return wait_for(worker);
}

int bench_main(int argc, char **argv, const struct arg *table, bench_measure *measure)
{
    if (!args_parse(argc, argv, table))
        return EXIT_USAGE;
    char folder[BENCH_PATH_MAX];
    const char *root = bench_options.data_root ? bench_options.data_root : default_root();
    snprintf(folder, sizeof(folder), "%s/bench-XXXXXX", root);
    if (!mkdtemp(folder)) {
        fprintf(stderr, "muster %s: no folder can be made in %s: %s\n", argv[0], root,
                strerror(errno));
        return EXIT_REFUSED;
    }
    use_descriptors();
    progress_init(&far.progress, STDERR_FILENO);
    log_set_level(LOG_ERROR); /* of this process, which runs core and store itself in some nouns */
    int code = supervise(argv[0], measure, folder);
    remove_folder(folder);
    return code;
}

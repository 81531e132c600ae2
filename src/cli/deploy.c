/* `muster deploy FLEET VERSION ARCHIVE`: sends an archive, shows how far it is, and with --switch
 * waits until every healthy host has it and servers are started from it. */
#include "base/clock.h"
#include "cli/progress.h"
#include "cli/remote.h"
#include "cli/show.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BAR_WIDTH = 30,
    DRAW_MS = 200,
    LINE_MS = 5000,
    LOOK_MS = 500,
    MIB = 1 << 20,
    TIMEOUT_MAX_S = 24 * 3600
};

static struct {
    const char *archive;
    bool go;
    int64_t timeout_s;
} set = {.timeout_s = 10 * 60};

const struct arg deploy_options[] = {
    {.name = "ARCHIVE", .kind = ARG_WORD, .into = &set.archive},
    {.name = "--switch",
     .kind = ARG_FLAG,
     .into = &set.go,
     .help = "start servers from it as soon as every healthy host has it, and wait for that"},
    {.name = "--timeout",
     .kind = ARG_SECONDS,
     .into = &set.timeout_s,
     .min = 1,
     .max = TIMEOUT_MAX_S,
     .value = "TIME",
     .help = "with --switch wait at most that many seconds (10m); it goes on without us"},
    {0},
};

/* ── on the way ────────────────────────────────────────────────────────────────────────────── */

/* An upload under way. */
struct upload {
    struct progress progress;
    int64_t began_ms;
    int64_t next_ms;
    bool whole; /* it was said that all was sent */
};

/* "[##########          ]  34 %, " where lines are written over */
static void print_bar(char dst[PROGRESS_MAX], int64_t sent, int64_t size)
{
    char bar[BAR_WIDTH + 1];
    int full = (int)(sent * BAR_WIDTH / size);
    memset(bar, '#', (size_t)full);
    memset(bar + full, ' ', (size_t)(BAR_WIDTH - full));
    bar[BAR_WIDTH] = '\0';
    snprintf(dst, PROGRESS_MAX, "[%s] ", bar);
}

/* "34 %, 9.8 of 28.4 MiB, 12.1 MiB/s" */
static void on_sent(void *user, int64_t sent, int64_t size)
{
    struct upload *u = user;
    char text[PROGRESS_MAX] = "";
    int64_t now_ms = clock_monotonic_ms();
    if (remote_output() == OUTPUT_JSON || size <= 0) /* libcurl asks before it has begun, too */
        return;
    bool whole = sent == size && !u->whole; /* from now on Muster works, not the line: say so */
    if (now_ms < u->next_ms && !(whole && u->progress.over))
        return;
    u->whole = sent == size;
    u->next_ms = now_ms + (u->progress.over ? DRAW_MS : LINE_MS);
    if (u->progress.over)
        print_bar(text, sent, size);
    double seconds = (double)(now_ms - u->began_ms + 1) / 1000;
    size_t n = strlen(text);
    snprintf(text + n, sizeof(text) - n, "%3d %%, %.1f of %.1f MiB, %.1f MiB/s%s",
             (int)(sent * 100 / size), (double)sent / MIB, (double)size / MIB,
             (double)sent / MIB / seconds, sent == size ? "; it is being checked" : "");
    progress_show(&u->progress, text, "");
}

static int code_of(const struct remote *r, enum client_result result)
{
    if (result == CLIENT_DONE)
        return EXIT_DONE;
    if (result == CLIENT_STOPPED)
        return EXIT_REFUSED;
    remote_complain(r);
    return result == CLIENT_REFUSED ? EXIT_REFUSED : EXIT_UNREACHABLE;
}

static int upload(struct remote *r, const struct ask *ask, int fd, int64_t size)
{
    struct buf path = {0};
    struct upload u = {.began_ms = clock_monotonic_ms()};
    progress_init(&u.progress, STDOUT_FILENO);
    u.next_ms = u.progress.over ? 0 : u.began_ms + LINE_MS; /* a small one needs no line */
    ask_put_path(ask, &path);
    buf_append(&path, "", 1);
    enum client_result result =
        client_upload(r->client, (const char *)path.data, fd, size, on_sent, &u, &r->answer);
    buf_done(&path);
    progress_wipe(&u.progress);
    return code_of(r, result);
}

/* ── switching ─────────────────────────────────────────────────────────────────────────────── */

static int64_t number(const struct remote *r, const char *key)
{
    return json_get_int(json_member(r->answer.json, key));
}

static bool is_current(const struct remote *r)
{
    return json_get_bool(json_member(r->answer.json, "current"));
}

static void show_hosts(const struct remote *r, struct progress *p)
{
    char text[PROGRESS_MAX];
    if (remote_output() == OUTPUT_JSON)
        return;
    snprintf(text, sizeof(text), "%" PRId64 " of %" PRId64 " healthy hosts have it",
             number(r, "hosts_ready"), number(r, "hosts"));
    progress_show(p, text, "");
}

static int wait_for_hosts(struct remote *r, const char *id)
{
    struct ask look;
    struct progress p;
    int64_t until_ms = clock_monotonic_ms() + set.timeout_s * 1000;
    progress_init(&p, STDOUT_FILENO);
    ask_init(&look, "get_deployment", NULL);
    ask_set(&look, "id", id);
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !is_current(r)) {
        show_hosts(r, &p);
        if (clock_monotonic_ms() >= until_ms) {
            progress_wipe(&p);
            fprintf(stderr, "muster deploy: not every healthy host has it yet; it is used as soon "
                            "as they do\n");
            return EXIT_REFUSED;
        }
        (void)usleep(LOOK_MS * 1000);
        code = remote_ask(r, &look);
    }
    progress_wipe(&p);
    return code;
}

static int switch_to(struct remote *r, const char *id)
{
    struct ask go;
    ask_init(&go, "switch_deployment", NULL);
    ask_set(&go, "id", id);
    int code = remote_ask(r, &go);
    return code == EXIT_DONE ? wait_for_hosts(r, id) : code;
}

/* ── the verb ──────────────────────────────────────────────────────────────────────────────── */

static void tell(struct remote *r, const char *id)
{
    struct str digest = json_get_text(json_member(r->answer.json, "digest"));
    if (remote_output() == OUTPUT_JSON) {
        show_json(&r->out, r->answer.json);
        term_put(&r->out, "\n");
    } else {
        term_printf(&r->out, "deployment %s (%.12s) is %s\n", id, digest.at,
                    is_current(r) ? "in use; servers that run go on as they are"
                                  : "there; --switch, or the same command with it, makes it used");
    }
    (void)remote_flush(r);
}

static int deploy(struct remote *r, const struct ask *ask)
{
    struct stat st;
    char id[32];
    int fd = open(set.archive, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        fprintf(stderr, "muster deploy: cannot read %s: %s\n", set.archive,
                fd < 0 ? strerror(errno) : "it is no file");
        if (fd >= 0)
            close(fd);
        return EXIT_USAGE;
    }
    int code = upload(r, ask, fd, st.st_size);
    close(fd);
    if (code != EXIT_DONE)
        return code;
    (void)str_copy(id, sizeof(id), json_get_text(json_member(r->answer.json, "id")));
    if (set.go)
        code = switch_to(r, id);
    if (code == EXIT_DONE)
        tell(r, id);
    return code;
}

int deploy_run(int argc, char **argv)
{
    struct remote r;
    struct ask ask;
    ask_init(&ask, "deploy", NULL);
    ask_add_word(&ask, "fleet", "FLEET");
    ask_add_word(&ask, "version", "VERSION");
    int code = remote_open(&r, argc, argv, &ask, deploy_options, remote_output_options, false);
    if (code != EXIT_DONE)
        return code;
    if (!set.archive)
        code = args_refuse(argv[0], "needs an ARCHIVE") ? EXIT_DONE : EXIT_USAGE;
    else
        code = deploy(&r, &ask);
    remote_close(&r);
    return code;
}

/* `muster deploy FLEET VERSION ARCHIVE`: sends an archive, shows how far it is, and with --switch
 * waits until every healthy host has it and servers are started from it. */
#include "base/clock.h"
#include "cli/remote.h"
#include "cli/show.h"
#include "cli/when.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BAR_WIDTH = 30, DRAW_MS = 200, LOOK_MS = 500, MIB = 1 << 20, TIMEOUT_MAX_S = 24 * 3600 };

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

struct progress {
    struct remote *r;
    bool drawn; /* a line that is written over stands on the terminal */
    int64_t next_ms;
};

/* "[##########          ]  34 %, 9.8 of 28.4 MiB" */
static void draw_bar(struct remote *r, int64_t sent, int64_t size)
{
    char bar[BAR_WIDTH + 1];
    int full = size > 0 ? (int)(sent * BAR_WIDTH / size) : BAR_WIDTH;
    memset(bar, '#', (size_t)full);
    memset(bar + full, ' ', (size_t)(BAR_WIDTH - full));
    bar[BAR_WIDTH] = '\0';
    term_printf(&r->out, "\r\033[K[%s] %3d %%, %.1f of %.1f MiB", bar,
                size > 0 ? (int)(sent * 100 / size) : 100, (double)sent / MIB, (double)size / MIB);
}

static void on_sent(void *user, int64_t sent, int64_t size)
{
    struct progress *p = user;
    struct remote *r = p->r;
    int64_t now_ms = clock_monotonic_ms();
    if (!r->term.is_terminal || remote_output() == OUTPUT_JSON || now_ms < p->next_ms)
        return;
    p->next_ms = now_ms + DRAW_MS;
    p->drawn = true;
    draw_bar(r, sent, size);
    if (sent == size)
        term_put(&r->out, "; it is being checked");
    (void)remote_flush(r);
}

static void wipe(struct progress *p)
{
    if (p->drawn)
        term_put(&p->r->out, "\r\033[K");
    p->drawn = false;
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
    struct progress p = {.r = r};
    ask_put_path(ask, &path);
    buf_append(&path, "", 1);
    enum client_result result =
        client_upload(r->client, (const char *)path.data, fd, size, on_sent, &p, &r->answer);
    buf_done(&path);
    wipe(&p);
    (void)remote_flush(r);
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

static void show_hosts(struct progress *p, int64_t *shown)
{
    struct remote *r = p->r;
    int64_t ready = number(r, "hosts_ready");
    if (remote_output() == OUTPUT_JSON || ready == *shown)
        return;
    wipe(p);
    *shown = ready;
    term_printf(&r->out, "%" PRId64 " of %" PRId64 " healthy hosts have it", ready,
                number(r, "hosts"));
    p->drawn = r->term.is_terminal;
    term_put(&r->out, p->drawn ? "" : "\n");
    (void)remote_flush(r);
}

static int wait_for_hosts(struct remote *r, const char *id)
{
    struct ask look;
    struct progress p = {.r = r};
    int64_t shown = -1;
    int64_t until_ms = clock_monotonic_ms() + set.timeout_s * 1000;
    ask_init(&look, "get_deployment", NULL);
    ask_set(&look, "id", id);
    int code = EXIT_DONE;
    while (code == EXIT_DONE && !is_current(r)) {
        show_hosts(&p, &shown);
        if (clock_monotonic_ms() >= until_ms) {
            wipe(&p);
            (void)remote_flush(r);
            fprintf(stderr, "muster deploy: not every healthy host has it yet; it is used as soon "
                            "as they do\n");
            return EXIT_REFUSED;
        }
        (void)usleep(LOOK_MS * 1000);
        code = remote_ask(r, &look);
    }
    wipe(&p);
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

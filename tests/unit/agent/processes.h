/* A world for tests of processes: those of an agent, real ones, on a loop and in a folder of their
 * own, and a look at the children that each process has. Whoever fails leaves nothing behind
 * (end_what_is_left). */
#pragma once
#include "agent/process.h"
#include "base/err.h"
#include "lib/loop.h"
#include "lib/own_ports.h"
#include "shim/proc.h"
#include "shim/shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UID_FIRST = 231000, OVER_MAX = 64, CHILDREN_MAX = 256 };

struct world {
    struct loop loop;
    struct processes *ps;
    struct process_limits limits;
    char folder[64];
    char game[96];
    int over;
    bool forgets; /* as soon as it is told */
    int64_t last_over;
    char why[PROCESS_WHY_MAX];
};

static struct world *in_use; /* NULL = what the test started has ended */

/* ── the world ─────────────────────────────────────────────────────────────────────────────── */

static inline void on_nothing(void *user)
{
    (void)user;
}

static inline void on_over(void *user, struct process *p)
{
    struct world *w = user;
    w->over++;
    w->last_over = process_server(p);
    if (w->forgets)
        process_forget(p);
}

static inline void copy_file(const char *from, const char *to)
{
    static char data[1 << 16];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t n; (n = read(in, data, sizeof(data))) > 0;)
        assert_int_equal(write(out, data, (size_t)n), n);
    close(in);
    close(out);
}

static inline void open_agent(struct world *w)
{
    struct process_ops ops = {.over = on_over, .user = w};
    char folder[80];
    snprintf(folder, sizeof(folder), "%s/agent", w->folder);
    int err = processes_open(&w->loop, folder, MUSTER_SHIM, &w->limits, &ops, &w->ps, w->why);
    if (err != 0)
        fail_msg("%s", w->why);
}

static inline void open_loop(struct world *w)
{
    struct loop_hooks hooks = {.turn = on_nothing, .tick = on_nothing, .user = w};
    struct loop_limits limits = {.streams = 1, .streams_per_address = 1};
    loop_init(&w->loop, &hooks, &limits);
}

static inline void close_agent(struct world *w)
{
    processes_close(w->ps);
    w->ps = NULL;
}

static inline void prepare(struct world *w)
{
    in_use = w;
    uint16_t port = own_ports();
    *w = (struct world){
        .limits = {.port_first = port, .port_last = (uint16_t)(port + OWN_PORTS - 1)}};
    w->limits.log_bytes = 8 << 20;
    w->limits.log_files = 4;
    strcpy(w->folder, "/tmp/muster-process-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    chmod(w->folder, 0711);
    snprintf(w->game, sizeof(w->game), "%s/game", w->folder);
    copy_file(MUSTER_GAME, w->game);
}

static inline void begin(struct world *w)
{
    prepare(w);
    open_loop(w);
    open_agent(w);
}

/* 0 = there is no such process. */
static inline pid_t parent_of(pid_t pid)
{
    char path[64];
    char text[512] = "";
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    char *line = f ? fgets(text, sizeof(text), f) : NULL;
    if (f)
        fclose(f);
    char *name_end = line ? strrchr(line, ')') : NULL;
    return name_end && sscanf(name_end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* A shim that waits for a job. */
static inline bool is_spare(pid_t pid)
{
    char path[64];
    char line[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(line, 1, sizeof(line) - 1, f) : 0;
    if (f)
        fclose(f);
    return n > 12 && memcmp(line, "muster-shim\0 ", 13) == 0;
}

/* Children that nobody has reaped, or that still run. */
static inline int find_children(pid_t parent, pid_t ret[CHILDREN_MAX])
{
    int n = 0;
    DIR *folder = opendir("/proc");
    for (struct dirent *e; (e = readdir(folder)) && n < CHILDREN_MAX;) {
        pid_t pid = atoi(e->d_name);
        if (pid > 0 && parent_of(pid) == parent)
            ret[n++] = pid;
    }
    closedir(folder);
    return n;
}

/* Calls it for each of ours, and not for those that fall to us meanwhile. */
static inline int each_child(int (*call)(pid_t pid))
{
    pid_t children[CHILDREN_MAX];
    int n = 0;
    int found = find_children(getpid(), children);
    for (int i = 0; i < found; i++)
        n += call(children[i]);
    return n;
}

static inline int is_no_spare(pid_t pid)
{
    return !is_spare(pid);
}

static inline int count_children(void)
{
    return each_child(is_no_spare);
}

/* The number of homes of shims that have no server yet, which are made ahead of time: of those with
 * a name up to `last`, which becomes the largest name of all when it is 0. */
static inline int count_homes_up_to(const struct world *w, int64_t *last)
{
    char path[96];
    int n = 0;
    snprintf(path, sizeof(path), "%s/agent/servers", w->folder);
    DIR *folder = opendir(path);
    int64_t largest = 0;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        if (strncmp(e->d_name, "spare-", 6) != 0)
            continue;
        int64_t name = atoll(strrchr(e->d_name, '-') + 1);
        n += *last == 0 || name <= *last;
        largest = name > largest ? name : largest;
    }
    *last = *last ? *last : largest;
    if (folder)
        closedir(folder);
    return n;
}

static inline int count_homes_ahead(const struct world *w)
{
    int64_t all = 0;
    return count_homes_up_to(w, &all);
}

static inline void remove_folder(const struct world *w)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", w->folder);
    assert_int_equal(system(command), 0);
}

/* Ends what runs, and nothing of it may be left: no process, no zombie. */
static inline void end(struct world *w)
{
    size_t at = 0;
    w->forgets = true;
    struct process *over[OVER_MAX];
    int n = 0;
    for (struct process *p; (p = processes_next(w->ps, &at));) {
        if (process_state(p) == PROCESS_OVER)
            over[n++] = p;
        else
            process_end(p, 0);
    }
    while (n > 0)
        process_forget(over[--n]);
    RUN_UNTIL(w, processes_count(w->ps) == 0);
    RUN_UNTIL(w, count_children() == 0);
    close_agent(w);
    loop_done(&w->loop);
    while (waitpid(-1, NULL, 0) > 0) /* the spares go with us */
        continue;
    assert_int_equal(count_homes_ahead(w), 0);
    remove_folder(w);
    in_use = NULL;
}

static inline int kill_child(pid_t pid)
{
    return kill(pid, SIGKILL) == 0;
}

/* After a test that failed: what it started would outlive us, and keep those that come next waiting
 * for its end. What its shims leave falls to us, in turn. */
static inline int end_what_is_left(void **state)
{
    (void)state;
    if (!in_use)
        return 0;
    do
        each_child(kill_child);
    while (waitpid(-1, NULL, 0) > 0);
    remove_folder(in_use);
    in_use = NULL;
    return 0;
}

__attribute__((unused)) static const char *const no_env[] = {NULL};

static inline struct process_spec spec_of(const struct world *w, int64_t server,
                                          const char *const *arguments)
{
    return (struct process_spec){.server = server,
                                 .session = server + 1000,
                                 .binary = w->game,
                                 .n_ports = 1,
                                 .arguments = arguments,
                                 .env = no_env};
}

static inline struct process *spawn(struct world *w, int64_t server, const char *what,
                                    const char *how)
{
    const char *const arguments[] = {what, how, NULL};
    struct process_spec spec = spec_of(w, server, arguments);
    struct process *p = NULL;
    if (processes_spawn(w->ps, &spec, &p, w->why) != 0)
        fail_msg("%s", w->why);
    return p;
}

static inline bool says(const struct process *p, const char *text)
{
    struct buf b = {.data = NULL};
    process_tail(p, 1000, &b);
    buf_append(&b, "", 1);
    bool found = strstr((const char *)b.data, text) != NULL;
    buf_done(&b);
    return found;
}

#define ASSERT_SAYS(p_, text_)                                                                     \
    do {                                                                                           \
        if (!says(p_, text_)) {                                                                    \
            struct buf b_ = {.data = NULL};                                                        \
            process_tail(p_, 1000, &b_);                                                           \
            fail_msg("no \"%s\" in: %.*s", text_, (int)b_.len, (char *)b_.data);                   \
        }                                                                                          \
    } while (0)

/* It runs, and its shim has said who it is: its log may tell the first before the loop has read the
 * second. */
__attribute__((unused)) static inline void run_until_ready(struct world *w, struct process *p)
{
    RUN_UNTIL(w, process_pid(p) > 0 && says(p, "ready"));
}

static inline void run_until_over(struct world *w, struct process *p)
{
    RUN_UNTIL(w, process_state(p) == PROCESS_OVER);
}

#define TEST(name_) cmocka_unit_test_teardown(name_, end_what_is_left)

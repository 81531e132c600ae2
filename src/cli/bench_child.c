#include "cli/bench_child.h"

#include "base/clock.h"
#include "base/full.h"
#include "cli/stop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_WAIT_MS = 60000, ARGS_MAX = 24 };

int64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ── starting and ending ───────────────────────────────────────────────────────────────────── */

/* In the child: only what may be done between fork and exec. */
static void die_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(127);
    stop_reset();
}

pid_t child_start(void (*run)(void *user), void *user)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    die_with(parent);
    run(user);
    _exit(0);
}

void child_end(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static void become(char *const argv[], int out, pid_t parent)
{
    die_with(parent);
    dup2(out, STDOUT_FILENO);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* The word behind key in the ready line; "" when there is none. */
static void word_after(const char *line, const char *key, char dst[64])
{
    const char *at = strstr(line, key);
    size_t n = at ? strcspn(at + strlen(key), " \n") : 0;
    if (n >= 64)
        n = 0;
    memcpy(dst, at ? at + strlen(key) : "", n);
    dst[n] = '\0';
}

/* Whether a whole line of it says that Muster serves. A node of a cell says first that it stands
 * by. *ret: where that line begins. */
static bool find_ready(const char *text, const char **ret)
{
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *ret = line;
        if (strncmp(line, "ready ", 6) == 0)
            return true;
    }
    return false;
}

/* Reads until Muster says that it serves. */
static bool read_ready(int fd, char *dst, size_t cap, const char **ret)
{
    int64_t deadline_ms = clock_monotonic_ms() + READY_WAIT_MS;
    size_t len = 0;
    while (len < cap - 1) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) <= 0)
            return false;
        ssize_t n = read(fd, dst + len, cap - 1 - len);
        if (n <= 0)
            return false;
        len += (size_t)n;
        dst[len] = '\0';
        if (find_ready(dst, ret))
            return true;
    }
    return false;
}

static bool write_config(struct bench *b, const char *text, char path[BENCH_PATH_MAX])
{
    FILE *f = fopen(bench_path(b, "muster.yaml", path), "w");
    bool written = f && fputs(text, f) >= 0;
    if (f && fclose(f) != 0)
        written = false;
    return written || bench_fail(b, "%s cannot be written: %s", path, full_reason(errno));
}

static bool wait_until_ready(struct served *s, struct bench *b, int64_t start_ns)
{
    char said[2048] = "";
    const char *line = said;
    bool read = read_ready(s->out, said, sizeof(said), &line);
    s->ready_ms = (double)(monotonic_ns() - start_ns) / 1e6;
    word_after(line, " http=", s->http);
    word_after(line, " server=", s->server);
    word_after(line, " manager=", s->manager);
    word_after(line, " client=", s->client);
    if (read && s->server[0] && s->manager[0])
        return true;
    served_end(s, SIGKILL);
    return bench_fail(b, "muster serve did not start; try 'muster serve --dev' to see why");
}

bool served_start(struct served *s, struct bench *b, const struct served_plan *plan)
{
    char config[BENCH_PATH_MAX];
    const char *argv[ARGS_MAX] = {"muster",
                                  "serve",
                                  "--dev",
                                  "--data",
                                  plan->data,
                                  "--server-port",
                                  "0",
                                  "--manager-port",
                                  "0",
                                  "--client-port",
                                  "0",
                                  "--http",
                                  "127.0.0.1:0",
                                  "--log-level",
                                  bench_options.log_level};
    int argc = 0;
    while (argv[argc])
        argc++;
    if (plan->config) {
        if (!write_config(b, plan->config, config))
            return false;
        argv[argc++] = "--config";
        argv[argc++] = config;
    }
    if (plan->store) {
        argv[argc++] = "--store";
        argv[argc++] = plan->store;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return bench_fail(b, "a pipe cannot be made: %s", strerror(errno));
    pid_t parent = getpid();
    fflush(NULL);
    int64_t start_ns = monotonic_ns();
    pid_t pid = fork();
    if (pid == 0)
        become((char *const *)argv, ends[1], parent);
    close(ends[1]);
    *s = (struct served){.pid = pid, .out = ends[0]};
    if (pid < 0) {
        close(ends[0]);
        return bench_fail(b, "muster serve cannot be started: %s", strerror(errno));
    }
    return wait_until_ready(s, b, start_ns);
}

void served_end(struct served *s, int signal)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, signal);
    while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(s->out);
    s->pid = 0;
}

/* ── what a process has used ───────────────────────────────────────────────────────────────── */

double process_cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The first line of a small file; "" when it cannot be read. */
static void read_text(const char *path, char *dst, size_t cap)
{
    dst[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, dst, cap - 1);
    dst[n > 0 ? n : 0] = '\0';
    close(fd);
}

static double thread_us(pid_t pid, long thread)
{
    char path[128], text[128];
    snprintf(path, sizeof(path), "/proc/%d/task/%ld/schedstat", pid, thread);
    read_text(path, text, sizeof(text));
    return strtod(text, NULL) / 1e3;
}

static double *place_of(struct thread_cpu *t, pid_t pid, long thread)
{
    char path[128], name[32];
    if (thread == pid)
        return &t->loop_us;
    snprintf(path, sizeof(path), "/proc/%d/task/%ld/comm", pid, thread);
    read_text(path, name, sizeof(name));
    if (strcmp(name, "commit\n") == 0)
        return &t->commit_us;
    return strcmp(name, "fold\n") == 0 ? &t->fold_us : &t->other_us;
}

struct thread_cpu process_threads(pid_t pid)
{
    struct thread_cpu t = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        long thread = strtol(e->d_name, NULL, 10);
        if (thread > 0)
            *place_of(&t, pid, thread) += thread_us(pid, thread);
    }
    if (folder)
        closedir(folder);
    return t;
}

static int64_t status_kib(pid_t pid, const char *key)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    read_text(path, text, sizeof(text));
    const char *at = strstr(text, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

int64_t process_resident_kib(pid_t pid)
{
    return status_kib(pid, "\nVmRSS:");
}

int64_t process_own_kib(pid_t pid)
{
    return status_kib(pid, "\nRssAnon:");
}

#include "cli/children.h"

#include "base/clock.h"
#include "cli/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 10000 };

void children_init(struct children *c, int stop_fd)
{
    *c = (struct children){.stop_fd = stop_fd};
    for (int i = 0; i < CHILDREN_MAX; i++)
        c->all[i].out = -1;
}

void children_done(struct children *c)
{
    for (int i = 0; i < CHILDREN_MAX; i++)
        buf_done(&c->all[i].line);
}

static void note(struct children *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct children *c, const char *format, ...)
{
    char sentence[256];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    c->on_note(c->user, sentence);
}

/* In the child, between fork and exec: only what may be done there. */
static void become(char *const argv[], int out, pid_t parent)
{
    setpgid(0, 0); /* ctrl-c is for the parent alone, who then ends us in order */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(127);
    stop_reset();
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    execv("/proc/self/exe", argv);
    _exit(127);
}

bool children_start(struct children *c, int i, const char *name, const char *const *args)
{
    struct child *child = &c->all[i];
    char *argv[CHILD_ARGS_MAX] = {(char *)"muster"};
    for (int k = 0; args[k]; k++)
        argv[k + 1] = (char *)args[k];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        note(c, "cannot start %s: %s", name, strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become(argv, ends[1], parent);
    close(ends[1]);
    if (pid < 0) {
        note(c, "cannot start %s: %s", name, strerror(errno));
        close(ends[0]);
        return false;
    }
    child->pid = pid;
    child->out = ends[0];
    snprintf(child->name, sizeof(child->name), "%s", name);
    return true;
}

bool children_runs(const struct children *c, int i)
{
    return c->all[i].pid != 0;
}

/* ── what they say ─────────────────────────────────────────────────────────────────────────── */

static void split_lines(struct children *c, int i, bool at_end)
{
    struct buf *b = &c->all[i].line;
    for (;;) {
        uint8_t *newline = b->len ? memchr(b->data, '\n', b->len) : NULL;
        size_t n = newline ? (size_t)(newline - b->data) : b->len;
        if (!newline && !(at_end && n > 0) && n < CHILD_LINE_MAX)
            return;
        char line[CHILD_LINE_MAX + 1];
        size_t shown = n < CHILD_LINE_MAX ? n : CHILD_LINE_MAX;
        memcpy(line, b->data, shown);
        line[shown] = '\0';
        c->on_line(c->user, i, line);
        buf_consume(b, newline && shown == n ? n + 1 : shown);
    }
}

static void describe_end(struct children *c, const struct child *child, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        note(c, "%s (pid %d) was killed by signal %d", child->name, pid, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        note(c, "%s (pid %d) ended with exit code %d", child->name, pid, WEXITSTATUS(status));
}

/* Its output is at an end, so it is ending; waiting for that is short. */
static void reap(struct children *c, struct child *child)
{
    int status = 0;
    pid_t pid = child->pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    close(child->out);
    child->out = -1;
    child->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    describe_end(c, child, pid, status);
}

static void read_child(struct children *c, int i)
{
    struct child *child = &c->all[i];
    uint8_t *at = buf_extend(&child->line, CHILD_LINE_MAX);
    ssize_t n = read(child->out, at, CHILD_LINE_MAX);
    child->line.len -= CHILD_LINE_MAX - (n > 0 ? (size_t)n : 0);
    if (n < 0 && errno == EINTR)
        return;
    split_lines(c, i, n <= 0);
    if (n <= 0)
        reap(c, child);
}

bool children_turn(struct children *c, int64_t deadline_ms)
{
    struct pollfd fds[CHILDREN_MAX + 1];
    for (int i = 0; i < CHILDREN_MAX; i++)
        fds[i] = (struct pollfd){.fd = c->all[i].out, .events = POLLIN};
    fds[CHILDREN_MAX] = (struct pollfd){.fd = c->stop_fd, .events = POLLIN};
    int64_t left_ms = deadline_ms - clock_monotonic_ms();
    left_ms = left_ms < 0 ? 0 : left_ms < 60000 ? left_ms : 60000;
    if (poll(fds, CHILDREN_MAX + 1, (int)left_ms) < 0)
        return false;
    for (int i = 0; i < CHILDREN_MAX; i++) {
        if (fds[i].revents)
            read_child(c, i);
    }
    return fds[CHILDREN_MAX].revents != 0;
}

/* ── their end ─────────────────────────────────────────────────────────────────────────────── */

void children_end(struct children *c, int first, int last)
{
    for (int i = first; i <= last; i++) {
        if (c->all[i].pid)
            kill(c->all[i].pid, SIGTERM);
    }
    int stop_fd = c->stop_fd;
    c->stop_fd = -1; /* whoever asks to stop twice waits for the same thing */
    int64_t patience_ms = END_MS;
    for (int i = first; i <= last; i++)
        patience_ms = c->all[i].patience_ms > patience_ms ? c->all[i].patience_ms : patience_ms;
    int64_t deadline = clock_monotonic_ms() + patience_ms;
    for (int i = first; i <= last;) {
        struct child *child = &c->all[i];
        if (child->pid == 0) {
            i++;
            continue;
        }
        if (clock_monotonic_ms() >= deadline) {
            note(c, "%s (pid %d) does not end; killing it", child->name, child->pid);
            kill(child->pid, SIGKILL);
            deadline = clock_monotonic_ms() + END_MS;
        }
        (void)children_turn(c, deadline);
    }
    c->stop_fd = stop_fd;
}

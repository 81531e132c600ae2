/* `muster dev`: the whole of it on one machine. Starts Muster, six game servers in three regions
 * and a chat server that asks for a match every second, each a process of its own with this very
 * binary, and merges what they print. Children are ended by pid, in order; should this process die
 * without a chance to do that, the kernel ends them (PR_SET_PDEATHSIG). */
#include "base/buf.h"
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/stop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

const char dev_usage[] =
    "Usage: muster dev [OPTIONS]\n"
    "\n"
    "Runs Muster with six demo game servers in three regions and a demo chat server that asks\n"
    "for a match every second, and prints one line per event. Ctrl-c stops all of them.\n"
    "\n"
    "  --data DIR    where Muster keeps what it knows (./data)\n"
    "  --any-port    free ports instead of 11032 and 11033\n"
    "  --game-port N the game servers' ports are the first free ones from here (22001)\n"
    "  --seconds N   stops by itself after N seconds\n"
    "\n"
    "Exit: 0 stopped, 1 Muster ended by itself or did not start, 2 wrong usage.\n";

enum {
    GAMES = 6,
    SERVE = 0, /* places in dev.children */
    CHAT = GAMES + 1,
    CHILDREN = GAMES + 2,
    ARGS_MAX = 24,
    LINE_MAX_BYTES = 4096, /* a longer line is cut in pieces */
    START_MS = 20000,
    END_MS = 10000,
    SERVER_PORT = 11032,
    MANAGER_PORT = 11033,
    HTTP_PORT = 9508,
    GAME_PORT = 22001, /* of the first game server; below those the system gives away */
};

struct child {
    pid_t pid; /* 0 = not running */
    int out;   /* what it prints; -1 = closed */
    char name[24];
    char prefix[8]; /* game servers say themselves who they are */
    struct buf line;
    bool registered; /* game servers */
};

struct dev {
    const char *data;
    int64_t seconds;
    bool any_port;
    int64_t game_port;
    int stop;
    int64_t stop_at_ms;
    char server[64]; /* addresses, once Muster has said them */
    char manager[64];
    struct child children[CHILDREN];
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("dev: ");
    vprintf(format, args);
    putchar('\n');
    fflush(stdout);
    va_end(args);
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

/* args ends with NULL and begins with the verb. False with a sentence printed. */
static bool spawn(struct child *child, const char *name, const char *prefix,
                  const char *const *args)
{
    char *argv[ARGS_MAX] = {(char *)"muster"};
    for (int i = 0; args[i]; i++)
        argv[i + 1] = (char *)args[i];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        say("cannot start %s: %s", name, strerror(errno));
        return false;
    }
    pid_t parent = getpid();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become(argv, ends[1], parent);
    close(ends[1]);
    if (pid < 0) {
        say("cannot start %s: %s", name, strerror(errno));
        close(ends[0]);
        return false;
    }
    child->pid = pid;
    child->out = ends[0];
    snprintf(child->name, sizeof(child->name), "%s", name);
    snprintf(child->prefix, sizeof(child->prefix), "%s", prefix);
    return true;
}

/* "ready http=A:P server=A:P manager=A:P client=A:P" */
static void look_for_addresses(struct dev *d, const char *line)
{
    const char *server = strstr(line, " server=");
    const char *manager = strstr(line, " manager=");
    if (strncmp(line, "ready ", 6) != 0 || !server || !manager)
        return;
    (void)sscanf(server, " server=%63s", d->server);
    (void)sscanf(manager, " manager=%63s", d->manager);
}

static void on_line(struct dev *d, struct child *child, const char *line)
{
    if (child == &d->children[SERVE])
        look_for_addresses(d, line);
    else if (strstr(line, ": registered"))
        child->registered = true;
    printf("%s%s\n", child->prefix, line);
    fflush(stdout);
}

static void split_lines(struct dev *d, struct child *child, bool at_end)
{
    struct buf *b = &child->line;
    for (;;) {
        uint8_t *newline = b->len ? memchr(b->data, '\n', b->len) : NULL;
        size_t n = newline ? (size_t)(newline - b->data) : b->len;
        if (!newline && !(at_end && n > 0) && n < LINE_MAX_BYTES)
            return;
        char line[LINE_MAX_BYTES + 1];
        size_t shown = n < LINE_MAX_BYTES ? n : LINE_MAX_BYTES;
        memcpy(line, b->data, shown);
        line[shown] = '\0';
        on_line(d, child, line);
        buf_consume(b, newline && shown == n ? n + 1 : shown);
    }
}

static void describe_end(const struct child *child, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        say("%s (pid %d) was killed by signal %d", child->name, pid, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        say("%s (pid %d) ended with exit code %d", child->name, pid, WEXITSTATUS(status));
}

/* Its output is at an end, so it is ending; waiting for that is short. */
static void reap(struct child *child)
{
    int status = 0;
    pid_t pid = child->pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    close(child->out);
    child->out = -1;
    describe_end(child, pid, status);
}

static void read_child(struct dev *d, struct child *child)
{
    uint8_t *at = buf_extend(&child->line, 4096);
    ssize_t n = read(child->out, at, 4096);
    child->line.len -= 4096 - (n > 0 ? (size_t)n : 0);
    split_lines(d, child, n <= 0);
    if (n <= 0)
        reap(child);
}

/* Prints what comes until the deadline, a line, an end or a wish to stop; true for the last. */
static bool turn(struct dev *d, int64_t deadline_ms)
{
    struct pollfd fds[CHILDREN + 1];
    for (int i = 0; i < CHILDREN; i++)
        fds[i] = (struct pollfd){.fd = d->children[i].out, .events = POLLIN};
    fds[CHILDREN] = (struct pollfd){.fd = d->stop, .events = POLLIN};
    int64_t left_ms = deadline_ms - clock_monotonic_ms();
    if (left_ms < 0)
        left_ms = 0;
    if (poll(fds, CHILDREN + 1, left_ms < 60000 ? (int)left_ms : 60000) < 0)
        return false;
    for (int i = 0; i < CHILDREN; i++) {
        if (fds[i].revents)
            read_child(d, &d->children[i]);
    }
    return fds[CHILDREN].revents != 0;
}

static bool serve_runs(const struct dev *d)
{
    return d->children[SERVE].pid != 0;
}

static bool port_is_free(int64_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool is_free = bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
    close(fd);
    return is_free;
}

/* The ordinary port where it is free, so that commands need no address; otherwise any. */
static int door_port(const struct dev *d, int port)
{
    return !d->any_port && port_is_free(port) ? port : 0;
}

enum start { STARTED, START_STOPPED, START_FAILED };

static enum start start_serve(struct dev *d)
{
    char server_port[8];
    char manager_port[8];
    char http[24];
    snprintf(http, sizeof(http), "127.0.0.1:%d", door_port(d, HTTP_PORT));
    snprintf(server_port, sizeof(server_port), "%d", door_port(d, SERVER_PORT));
    snprintf(manager_port, sizeof(manager_port), "%d", door_port(d, MANAGER_PORT));
    /* The course of things is told by those it happens to; Muster adds what is out of order. */
    const char *args[] = {"serve",       "--dev",          "--data",     d->data,  "--server-port",
                          server_port,   "--manager-port", manager_port, "--http", http,
                          "--log-level", "warn",           NULL};
    if (!spawn(&d->children[SERVE], "serve", "serve: ", args))
        return START_FAILED;
    int64_t deadline = clock_monotonic_ms() + START_MS;
    while (serve_runs(d) && !d->manager[0] && clock_monotonic_ms() < deadline) {
        if (turn(d, deadline))
            return START_STOPPED;
    }
    if (d->manager[0] && serve_runs(d))
        return STARTED;
    say("Muster did not start; what it said stands above");
    return START_FAILED;
}

/* Two servers in each of three regions, all registered before anybody asks for a match. Muster
 * knows a server by its address, so each start uses the same ports: the servers of the last one
 * come back instead of staying Offline beside six new ones. */
static enum start start_games(struct dev *d)
{
    static const char *const regions[] = {"EU", "USE", "SG"};
    int64_t port = d->game_port;
    for (int i = 0; i < GAMES; i++) {
        char name[24], port_text[24];
        while (port < UINT16_MAX && !port_is_free(port))
            port++;
        snprintf(name, sizeof(name), "game-server %s", regions[i / 2]);
        snprintf(port_text, sizeof(port_text), "%" PRId64, port++);
        const char *args[] = {
            "game-server", "--region",      regions[i / 2], "--max",   "4",
            "--server",    d->server,       "--port",       port_text, "--match-seconds",
            "12",          "--ready-delay", "100",          NULL};
        if (!spawn(&d->children[1 + i], name, "", args))
            return START_FAILED;
    }
    int64_t deadline = clock_monotonic_ms() + START_MS;
    for (int i = 1; i <= GAMES && serve_runs(d) && clock_monotonic_ms() < deadline;) {
        if (d->children[i].registered || d->children[i].pid == 0)
            i++;
        else if (turn(d, deadline))
            return START_STOPPED;
    }
    return STARTED;
}

/* A lobby number means one match for as long as Muster remembers it, so a second start must not use
 * the first one's numbers: they come from the clock, ten for each second of which one is used. They
 * begin above what a person would type. */
static bool start_chat(struct dev *d)
{
    char lobby[16];
    int64_t first = 1000000 + clock_wall_ms() / 100 % 10000000;
    snprintf(lobby, sizeof(lobby), "%" PRId64, first);
    const char *args[] = {"allocate",      "--lobby",  lobby,     "--region", "EU,USE,SG",
                          "--manager",     d->manager, "--every", "1000",     "--stay",
                          "--chat-server", "demo",     NULL};
    return spawn(&d->children[CHAT], "chat", "chat: ", args);
}

/* The lobby number differs from start to start: each is good for one match. */
static void print_hints(const struct dev *d)
{
    printf(
        "\n"
        "Muster runs with six game servers (two in each of EU, USE and SG) and a chat server that\n"
        "asks for a match every second. Try in another terminal:\n"
        "\n"
        "  %s allocate --lobby %" PRId64 " --region EU --manager %s\n"
        "      asks for a match; asked again while it is played, here 5 to 19 s: same server, "
        "same\n"
        "      token; afterwards the number is used up, so take another\n"
        "  kill -9 %d\n"
        "      one of the two EU servers dies: new matches go to the other at once, and after\n"
        "      30 s without a heartbeat the dead one's matches are reported lost\n"
        "  ctrl-c here, then start again\n"
        "      the game servers get their old numbers back: what Muster knows is on disk\n"
        "\n",
        cli_program, 1000 + clock_wall_ms() / 1000 % 900000, d->manager, d->children[1].pid);
    fflush(stdout);
}

/* Asks a child to end and prints what it still says; insists when it does not. */
static void end_children(struct dev *d, int first, int last)
{
    for (int i = first; i <= last; i++) {
        if (d->children[i].pid)
            kill(d->children[i].pid, SIGTERM);
    }
    int stop = d->stop;
    d->stop = -1; /* whoever asks to stop twice waits for the same thing */
    int64_t deadline = clock_monotonic_ms() + END_MS;
    for (int i = first; i <= last;) {
        struct child *child = &d->children[i];
        if (child->pid == 0) {
            i++;
            continue;
        }
        if (clock_monotonic_ms() >= deadline) {
            say("%s (pid %d) does not end; killing it", child->name, child->pid);
            kill(child->pid, SIGKILL);
            deadline = clock_monotonic_ms() + END_MS;
        }
        (void)turn(d, deadline);
    }
    d->stop = stop;
}

static void end_all(struct dev *d)
{
    end_children(d, CHAT, CHAT);
    end_children(d, 1, GAMES);
    end_children(d, SERVE, SERVE);
    for (int i = 0; i < CHILDREN; i++)
        buf_done(&d->children[i].line);
}

static enum start start_all(struct dev *d)
{
    enum start s = start_serve(d);
    if (s == STARTED)
        s = start_games(d);
    if (s == STARTED && serve_runs(d)) {
        print_hints(d);
        s = start_chat(d) ? STARTED : START_FAILED;
    }
    return s;
}

static int run(struct dev *d)
{
    enum start s = start_all(d);
    if (s != STARTED)
        return s == START_STOPPED ? EXIT_DONE : EXIT_REFUSED;
    while (serve_runs(d)) {
        if (turn(d, d->stop_at_ms) || clock_monotonic_ms() >= d->stop_at_ms)
            return EXIT_DONE;
    }
    say("Muster has ended; without it the rest stops too");
    return EXIT_REFUSED;
}

int dev_run(int argc, char **argv)
{
    static struct dev d = {.data = "data", .game_port = GAME_PORT};
    const struct arg table[] = {
        {.name = "--data", .kind = ARG_TEXT, .into = &d.data},
        {.name = "--any-port", .kind = ARG_FLAG, .into = &d.any_port},
        {.name = "--game-port",
         .kind = ARG_NUMBER,
         .into = &d.game_port,
         .min = 1024,
         .max = UINT16_MAX - GAMES},
        {.name = "--seconds", .kind = ARG_NUMBER, .into = &d.seconds, .min = 1, .max = 1000000},
        {0},
    };
    if (!args_parse(argc, argv, table))
        return EXIT_USAGE;
    for (int i = 0; i < CHILDREN; i++)
        d.children[i].out = -1;
    d.stop_at_ms = d.seconds ? clock_monotonic_ms() + d.seconds * 1000 : INT64_MAX;
    d.stop = stop_open();
    int code = run(&d);
    end_all(&d);
    if (code == EXIT_DONE)
        say("all stopped");
    close(d.stop);
    return code;
}

/* `muster dev`: the whole of it on one machine, in one terminal. On a terminal it is a live screen;
 * anywhere else the lines of all processes, merged. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/demo.h"
#include "cli/demo_faults.h"
#include "cli/dev_screen.h"
#include "cli/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GAME_PORT = 22001 /* of the first game server; below those the system gives away */ };

struct dev {
    struct demo demo;
    struct demo_faults faults;
    struct dev_screen *screen; /* NULL = lines */
    bool plain;
    int64_t seconds;
    int64_t stop_at_ms;
};

static void put(struct dev *d, const char *prefix, const char *line)
{
    if (d->screen) {
        dev_screen_line(d->screen, prefix, line);
        (void)dev_screen_turn(d->screen);
        return;
    }
    printf("%s%s\n", prefix, line);
    fflush(stdout);
}

static void on_line(void *user, int i, const char *line)
{
    struct dev *d = user;
    if (demo_line(&d->demo, i, line))
        put(d, demo_prefix(i), line);
}

static void on_note(void *user, const char *sentence)
{
    put(user, "dev: ", sentence);
}

static void on_ready(void *user)
{
    struct dev *d = user;
    if (!d->screen)
        demo_print_hints(&d->demo, stdout);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Until the next thing happens or is due; true when it is time to stop. */
static bool turn(struct dev *d)
{
    enum demo_start s = DEMO_STARTED;
    int64_t due_ms = d->screen ? dev_screen_turn(d->screen) : INT64_MAX;
    if (d->demo.faults)
        due_ms = earlier(due_ms, demo_faults_turn(&d->faults, &d->demo, &s));
    if (s == DEMO_STOPPED)
        return true;
    if (children_turn(&d->demo.children, earlier(due_ms, d->stop_at_ms)))
        return true;
    return clock_monotonic_ms() >= d->stop_at_ms;
}

static int run(struct dev *d)
{
    enum demo_start s = demo_start(&d->demo, on_ready, d);
    if (s != DEMO_STARTED)
        return s == DEMO_STOPPED ? EXIT_DONE : EXIT_REFUSED;
    while (children_runs(&d->demo.children, DEMO_SERVE) || demo_faults_has_muster(&d->faults)) {
        if (turn(d))
            return EXIT_DONE;
    }
    on_note(d, "Muster has ended; without it the rest stops too");
    return EXIT_REFUSED;
}

/* One verb runs per process. */
static struct dev dev = {.demo = {.data = "data", .game_port = GAME_PORT}};

const struct arg dev_options[] = {
    {.name = "--lobby",
     .kind = ARG_FLAG,
     .into = &dev.demo.lobbies,
     .help = "also a matchmaker with 60 players: a stream of matches that form, start and end. "
             "When it stops it says what became of each, having compared what was asked for, what "
             "Muster says and what every player heard"},
    {.name = "--faults",
     .kind = ARG_FLAG,
     .into = &dev.demo.faults,
     .help = "with --lobby: players who never load, leave, come back or connect twice; servers "
             "that refuse, are silent, never get ready or drop; and a game server or Muster itself "
             "killed (SIGKILL) every few seconds. Timeouts are short"},
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &dev.demo.data,
     .value = "DIR",
     .help = "where Muster keeps what it knows (./data)"},
    {.name = "--any-port",
     .kind = ARG_FLAG,
     .into = &dev.demo.any_port,
     .help = "free ports instead of 11031, 11032, 11033 and 9508"},
    {.name = "--game-port",
     .kind = ARG_NUMBER,
     .into = &dev.demo.game_port,
     .min = 1024,
     .max = UINT16_MAX - DEMO_GAMES,
     .value = "N",
     .help = "the game servers' ports are the first free ones from here (22001)"},
    {.name = "--for",
     .kind = ARG_SECONDS,
     .into = &dev.seconds,
     .min = 1,
     .max = 1000000,
     .value = "TIME",
     .help = "stops by itself after TIME"},
    {.name = "--seconds",
     .kind = ARG_NUMBER,
     .into = &dev.seconds,
     .min = 1,
     .max = 1000000,
     .value = "N",
     .help = "the same, as a number"},
    {.name = "--plain", .kind = ARG_FLAG, .into = &dev.plain, .help = "lines on a terminal too"},
    {0},
};

static bool parse(int argc, char **argv, const struct dev *d)
{
    if (!args_parse(argc, argv, dev_options))
        return false;
    if (d->demo.faults && !d->demo.lobbies)
        return args_refuse(argv[0], "--faults goes with --lobby");
    return true;
}

static void take_screen(struct dev *d)
{
    struct term term;
    term_look(&term, STDOUT_FILENO, true);
    if (d->plain || !term.draws)
        return;
    d->screen = xcalloc(1, sizeof(*d->screen));
    dev_screen_open(d->screen, &d->demo);
}

static void leave_screen(struct dev *d, int code)
{
    if (!d->screen)
        return;
    dev_screen_close(d->screen, code != EXIT_DONE);
    free(d->screen);
    d->screen = NULL;
}

/* Ends everything; returns the exit code. */
static int end(struct dev *d, int code)
{
    if (d->screen)
        dev_screen_end(d->screen);
    if (code == EXIT_DONE && demo_faults_end(&d->faults, &d->demo) == DEMO_FAILED)
        code = EXIT_REFUSED;
    if (!demo_end(&d->demo) && code == EXIT_DONE)
        code = EXIT_REFUSED;
    bool screen = d->screen != NULL;
    leave_screen(d, code);
    if (screen) /* where it was a line among others, it has been read */
        (void)term_flush(&d->demo.summary, STDOUT_FILENO);
    return code;
}

int dev_run(int argc, char **argv)
{
    if (!parse(argc, argv, &dev))
        return EXIT_USAGE;
    /* What they say is about another Muster. */
    unsetenv("MUSTER_URL");
    unsetenv("MUSTER_TOKEN");
    children_init(&dev.demo.children, stop_open());
    dev.demo.children.on_line = on_line;
    dev.demo.children.on_note = on_note;
    dev.demo.children.user = &dev;
    dev.stop_at_ms = dev.seconds ? clock_monotonic_ms() + dev.seconds * 1000 : INT64_MAX;
    take_screen(&dev);
    int code = end(&dev, run(&dev));
    if (code == EXIT_DONE)
        on_note(&dev, "all stopped");
    demo_done(&dev.demo);
    close(dev.demo.children.stop_fd);
    return code;
}

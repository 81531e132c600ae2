/* `muster dev`: the whole of it on one machine, in one terminal. On a terminal it is a live screen;
 * anywhere else the lines of all processes, merged. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/demo.h"
#include "cli/dev_screen.h"
#include "cli/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char dev_usage[] =
    "Usage: muster dev [OPTIONS]\n"
    "\n"
    "Runs Muster with six demo game servers in three regions and a demo chat server that asks\n"
    "for a match every second; with an agent that starts a process for each room of the example\n"
    "game 'arena' (when it stands beside this program), and players who come and go there. On a\n"
    "terminal it shows them live: regions, rooms, allocations, the last refusals, what happens.\n"
    "Elsewhere it prints one line per event. Ctrl-c stops all of them.\n"
    "\n"
    "  --data DIR    where Muster keeps what it knows (./data)\n"
    "  --any-port    free ports instead of 11032, 11033 and 9508\n"
    "  --game-port N the game servers' ports are the first free ones from here (22001)\n"
    "  --seconds N   stops by itself after N seconds\n"
    "  --plain       lines on a terminal too\n"
    "\n"
    "Exit: 0 stopped, 1 Muster ended by itself or did not start, 2 wrong usage.\n";

enum { GAME_PORT = 22001 /* of the first game server; below those the system gives away */ };

struct dev {
    struct demo demo;
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
    demo_line(&d->demo, i, line);
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

/* Until the next thing happens or is due; true when it is time to stop. */
static bool turn(struct dev *d)
{
    int64_t due_ms = d->screen ? dev_screen_turn(d->screen) : INT64_MAX;
    if (children_turn(&d->demo.children, due_ms < d->stop_at_ms ? due_ms : d->stop_at_ms))
        return true;
    return clock_monotonic_ms() >= d->stop_at_ms;
}

static int run(struct dev *d)
{
    enum demo_start s = demo_start(&d->demo, on_ready, d);
    if (s != DEMO_STARTED)
        return s == DEMO_STOPPED ? EXIT_DONE : EXIT_REFUSED;
    while (children_runs(&d->demo.children, DEMO_SERVE)) {
        if (turn(d))
            return EXIT_DONE;
    }
    on_note(d, "Muster has ended; without it the rest stops too");
    return EXIT_REFUSED;
}

static bool parse(int argc, char **argv, struct dev *d)
{
    const struct arg table[] = {
        {.name = "--data", .kind = ARG_TEXT, .into = &d->demo.data},
        {.name = "--any-port", .kind = ARG_FLAG, .into = &d->demo.any_port},
        {.name = "--game-port",
         .kind = ARG_NUMBER,
         .into = &d->demo.game_port,
         .min = 1024,
         .max = UINT16_MAX - DEMO_GAMES},
        {.name = "--seconds", .kind = ARG_NUMBER, .into = &d->seconds, .min = 1, .max = 1000000},
        {.name = "--plain", .kind = ARG_FLAG, .into = &d->plain},
        {0},
    };
    return args_parse(argc, argv, table);
}

static void take_screen(struct dev *d)
{
    struct term term;
    term_look(&term, STDOUT_FILENO, true);
    if (d->plain || !term.is_terminal)
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

int dev_run(int argc, char **argv)
{
    static struct dev d = {.demo = {.data = "data", .game_port = GAME_PORT}};
    if (!parse(argc, argv, &d))
        return EXIT_USAGE;
    /* What they say is about another Muster. */
    unsetenv("MUSTER_URL");
    unsetenv("MUSTER_TOKEN");
    children_init(&d.demo.children, stop_open());
    d.demo.children.on_line = on_line;
    d.demo.children.on_note = on_note;
    d.demo.children.user = &d;
    d.stop_at_ms = d.seconds ? clock_monotonic_ms() + d.seconds * 1000 : INT64_MAX;
    take_screen(&d);
    int code = run(&d);
    if (d.screen)
        dev_screen_end(d.screen);
    demo_end(&d.demo);
    leave_screen(&d, code);
    if (code == EXIT_DONE)
        on_note(&d, "all stopped");
    children_done(&d.demo.children);
    close(d.demo.children.stop_fd);
    return code;
}

#include "cli/screen.h"

#include "base/clock.h"
#include "cli/term.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* Alternate screen, no cursor, no wrapping of long lines; and back. */
static const char ENTER[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char LEAVE[] = "\033[?7h\033[?25h\033[?1049l";

enum { WAIT_MAX = 16 };

/* Signal handlers look at it, so it is the process's. */
static struct {
    int fd;
    volatile sig_atomic_t taken;
    volatile sig_atomic_t resized; /* or shown for the first time after ctrl-z */
    bool has_mode;
    struct termios mode; /* as it was */
    struct buf shown;
    struct buf out;
} screen = {.fd = -1};

/* Signals that end a process; SIGINT and SIGTERM are waited for by whoever runs the loop. */
static const int fatal[] = {SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPIPE};

/* Everything from here to `give_back` may be called by a signal handler. */
static void say(const char *text, size_t n)
{
    ssize_t written = write(screen.fd, text, n);
    (void)written; /* a terminal that is gone needs no more */
}

static void set_mode(bool ours)
{
    if (!screen.has_mode)
        return;
    struct termios mode = screen.mode;
    if (ours)
        mode.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    tcsetattr(STDIN_FILENO, ours ? TCSANOW : TCSAFLUSH, &mode);
}

static void take(void)
{
    set_mode(true);
    say(ENTER, sizeof(ENTER) - 1);
    screen.resized = 1;
}

static void give_back(void)
{
    say(LEAVE, sizeof(LEAVE) - 1);
    set_mode(false);
}

/* SA_RESETHAND has given the signal its ordinary meaning back, SA_NODEFER lets it in at once. */
static void on_fatal(int number)
{
    if (screen.taken)
        give_back();
    screen.taken = 0;
    raise(number);
}

static void handle(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* Stops as ctrl-z should; what follows raise happens after SIGCONT. */
static void on_stop(int number)
{
    give_back();
    raise(number);
    handle(SIGTSTP, on_stop, (int)(SA_RESETHAND | SA_NODEFER));
    take();
}

static void on_resize(int number)
{
    (void)number;
    screen.resized = 1;
}

static void catch_signals(void)
{
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        handle(fatal[i], on_fatal, (int)(SA_RESETHAND | SA_NODEFER));
    handle(SIGTSTP, on_stop, (int)(SA_RESETHAND | SA_NODEFER));
    handle(SIGWINCH, on_resize, 0); /* not SA_RESTART: it is to end a poll */
}

static void release_signals(void)
{
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        handle(fatal[i], SIG_DFL, 0);
    handle(SIGTSTP, SIG_DFL, 0);
    handle(SIGWINCH, SIG_DFL, 0);
}

void screen_open(int fd)
{
    static bool at_exit;
    assert(!screen.taken);
    screen.fd = fd;
    screen.has_mode = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &screen.mode) == 0;
    if (!at_exit)
        atexit(screen_close);
    at_exit = true;
    catch_signals();
    screen.taken = 1;
    take();
}

void screen_close(void)
{
    if (!screen.taken)
        return;
    screen.taken = 0;
    give_back();
    release_signals();
    buf_done(&screen.shown);
    buf_done(&screen.out);
}

static bool is_shown(struct str text)
{
    return !screen.resized &&
           str_eq(text, (struct str){(const char *)screen.shown.data, screen.shown.len});
}

/* Each line is followed by "erase to its end", the last one by "erase below". */
static void put_lines(struct buf *out, struct str lines)
{
    while (lines.len > 0) {
        const char *end = memchr(lines.at, '\n', lines.len);
        size_t n = end ? (size_t)(end - lines.at) : lines.len;
        buf_append(out, lines.at, n);
        term_put(out, "\033[K");
        n += end ? 1 : 0;
        lines = (struct str){lines.at + n, lines.len - n};
        if (lines.len > 0)
            term_put(out, "\r\n");
    }
    term_put(out, "\033[J");
}

void screen_draw(struct str text)
{
    struct term term;
    struct buf fitted = {0};
    if (is_shown(text))
        return;
    screen.resized = 0;
    term_look(&term, screen.fd, true);
    buf_clear(&screen.shown);
    buf_append(&screen.shown, text.at, text.len);
    term_fit(&fitted, text, term.columns, term.rows);
    term_put(&screen.out, "\033[?2026h\033[H"); /* terminals that know it show all at once */
    put_lines(&screen.out, (struct str){(const char *)fitted.data, fitted.len});
    term_put(&screen.out, "\033[?2026l");
    (void)term_flush(&screen.out, screen.fd);
    buf_done(&fitted);
}

int screen_wait(const int *fds, int n, int64_t deadline_ms)
{
    struct pollfd polled[WAIT_MAX];
    assert(n <= WAIT_MAX);
    for (int i = 0; i < n; i++)
        polled[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    int64_t left_ms = deadline_ms - clock_monotonic_ms();
    left_ms = left_ms < 0 ? 0 : left_ms > 60000 ? 60000 : left_ms;
    int found = poll(polled, (nfds_t)n, (int)left_ms);
    for (int i = 0; i < n && found > 0; i++) {
        if (polled[i].revents)
            return i;
    }
    return -1;
}

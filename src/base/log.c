#include "base/log.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Threads of the store log too, while the loop may change these. */
static _Atomic enum log_level threshold = LOG_INFO;
static _Atomic enum log_format line_format = LOG_LOGFMT;

/*   log_line ──▶ filling ──log_flush──▶ writing ──▶ the writer thread's write(2)
 * Only that thread ever waits for a reader of the log. It is started with the first gathering and
 * ends with the process. `writing` belongs to it while it is busy; the lock guards the rest. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static bool started;
static bool gathering;
static bool called; /* what is in `filling` is to be written */
static bool busy;
static bool resting; /* it has just written, and takes what comes together */
static char buffers[2][LOG_GATHER_MAX];
static char *filling = buffers[0];
static char *writing = buffers[1];
static size_t filling_len;
static uint64_t dropped; /* lines that found `filling` full, and were not told of yet */
static uint64_t dropped_ever;

void log_set_level(enum log_level level)
{
    threshold = level;
}

bool log_enabled(enum log_level level)
{
    return level <= threshold;
}

void log_set_format(enum log_format format)
{
    line_format = format;
}

const char *log_level_name(enum log_level level)
{
    static const char *const names[LOG_LEVELS] = {"error", "warn", "info", "debug"};
    return names[level];
}

const char *log_format_name(enum log_format format)
{
    return format == LOG_JSON ? "json" : "logfmt";
}

/* Nothing sensible can be done when the log itself cannot be written. */
static void write_out(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t written = write(STDERR_FILENO, text, n);
        if (written > 0) {
            text += written;
            n -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            /* Whoever shares the descriptor has made it so. */
            struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
            poll(&reader, 1, -1);
        } else if (written == 0 || errno != EINTR) {
            return;
        }
    }
}

void log_begin(struct log_entry *e, enum log_level level, const char *what)
{
    log_entry_open(e, line_format, clock_wall_ms(), log_level_name(level), what);
}

static void write_dropped(uint64_t n)
{
    struct log_entry e;
    log_begin(&e, LOG_WARN, "log lines dropped");
    log_int(&e, "n", (int64_t)n);
    log_entry_close(&e);
    write_out(e.text, e.len);
}

/* With the lock held, which is free while it writes. Returns how much it wrote. */
static size_t write_filled(void)
{
    char *text = filling;
    size_t n = filling_len;
    uint64_t lost = dropped;
    filling = writing;
    writing = text;
    filling_len = 0;
    dropped = 0;
    called = false;
    busy = true;
    pthread_mutex_unlock(&lock);
    write_out(text, n);
    if (lost > 0)
        write_dropped(lost);
    pthread_mutex_lock(&lock);
    busy = false;
    return n;
}

static struct timespec in_ms(int64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ms * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static bool is_half_full(void)
{
    return filling_len > LOG_GATHER_MAX / 2;
}

/* With the lock held. A busy loop has lines with every turn, and to wake this thread for each takes
 * a processor from whoever does the work. */
static void rest(void)
{
    struct timespec until = in_ms(LOG_REST_MS);
    resting = true;
    while (gathering && !is_half_full() &&
           pthread_cond_clockwait(&wake, &lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    resting = false;
}

static void *writer_run(void *arg)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!called)
            pthread_cond_wait(&wake, &lock);
        size_t n = write_filled();
        if (!called)
            pthread_cond_broadcast(&idle);
        if (n >= LOG_BUSY_BYTES)
            rest();
    }
    return arg;
}

/* With the lock held. True when the writer is to be woken. */
static bool has_work(void)
{
    bool urgent = !resting || !gathering || is_half_full();
    if (filling_len == 0 || (called && !resting))
        return false;
    called = true;
    return urgent;
}

static void call_writer(void)
{
    if (has_work())
        pthread_cond_signal(&wake);
}

static void gather(const char *line, size_t n)
{
    if (filling_len + n > LOG_GATHER_MAX) {
        dropped++;
        dropped_ever++;
        return;
    }
    memcpy(filling + filling_len, line, n);
    filling_len += n;
    if (!gathering || is_half_full())
        call_writer();
}

/* One write per line, or one thread that writes, so that lines of several threads never mix. */
static void put(const char *line, size_t n)
{
    pthread_mutex_lock(&lock);
    if (gathering || called || busy)
        gather(line, n);
    else
        write_out(line, n);
    pthread_mutex_unlock(&lock);
}

void log_end(struct log_entry *e)
{
    log_entry_close(e);
    put(e->text, e->len);
}

void log_line(enum log_level level, const char *what, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    struct log_entry e;
    char pairs[LOG_LINE_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(pairs, sizeof(pairs), format, args);
    va_end(args);
    log_begin(&e, level, what);
    if (n >= 0)
        log_pairs(&e, pairs, n >= (int)sizeof(pairs));
    log_end(&e);
}

static void start_writer(void)
{
    pthread_t thread;
    if (started || pthread_create(&thread, NULL, writer_run, NULL) != 0)
        return;
    pthread_detach(thread);
    started = true;
}

/* A reader that has stopped must not keep the process from ending. */
static void await_writer(void)
{
    struct timespec until = in_ms(LOG_LAST_MS);
    while ((called || busy) && pthread_cond_clockwait(&idle, &lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
}

void log_gather(bool on)
{
    pthread_mutex_lock(&lock);
    if (on)
        start_writer();
    gathering = on && started;
    if (!gathering) {
        call_writer();
        await_writer();
    }
    pthread_mutex_unlock(&lock);
}

void log_flush(void)
{
    pthread_mutex_lock(&lock);
    bool call = has_work();
    pthread_mutex_unlock(&lock);
    if (call) /* not under the lock: the writer may wake at once and want it */
        pthread_cond_signal(&wake);
}

uint64_t log_dropped(void)
{
    pthread_mutex_lock(&lock);
    uint64_t n = dropped_ever;
    pthread_mutex_unlock(&lock);
    return n;
}

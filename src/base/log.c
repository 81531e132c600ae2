#include "base/log.h"

#include "base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum log_level threshold = LOG_INFO;
static const char *const level_names[] = {"error", "warn", "info", "debug"};

enum { LINE_MAX_LEN = 1024 };

static pthread_mutex_t gathered_lock = PTHREAD_MUTEX_INITIALIZER;
static bool gathering;
static char gathered[LOG_GATHER_MAX];
static size_t gathered_len;

void log_set_level(enum log_level level)
{
    threshold = level;
}

bool log_enabled(enum log_level level)
{
    return level <= threshold;
}

/* Nothing sensible can be done when the log itself cannot be written. */
static void write_out(const char *text, size_t n)
{
    ssize_t written = write(STDERR_FILENO, text, n);
    (void)written;
}

static void write_gathered(void)
{
    if (gathered_len > 0)
        write_out(gathered, gathered_len);
    gathered_len = 0;
}

/* One write per line or per gathering, so that lines of several threads never mix. */
static void put(const char *line, size_t n)
{
    pthread_mutex_lock(&gathered_lock);
    if (!gathering) {
        write_out(line, n);
    } else {
        if (gathered_len + n > sizeof(gathered))
            write_gathered();
        memcpy(gathered + gathered_len, line, n);
        gathered_len += n;
    }
    pthread_mutex_unlock(&gathered_lock);
}

static int print_time(char *dst, size_t cap)
{
    int64_t wall_ms = clock_wall_ms();
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    char date[32];
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    return snprintf(dst, cap, "%s.%03dZ", date, (int)(wall_ms % 1000));
}

void log_line(enum log_level level, const char *what, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    char line[LINE_MAX_LEN];
    int n = print_time(line, sizeof(line));
    n += snprintf(line + n, sizeof(line) - (size_t)n, " %-5s %s", level_names[level], what);
    if (format[0] != '\0' && n < (int)sizeof(line) - 2) {
        line[n++] = ' ';
        va_list args;
        va_start(args, format);
        n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
        va_end(args);
    }
    if (n > (int)sizeof(line) - 2)
        n = (int)sizeof(line) - 2;
    line[n++] = '\n';
    put(line, (size_t)n);
}

void log_gather(bool on)
{
    pthread_mutex_lock(&gathered_lock);
    gathering = on;
    write_gathered();
    pthread_mutex_unlock(&gathered_lock);
}

void log_flush(void)
{
    pthread_mutex_lock(&gathered_lock);
    write_gathered();
    pthread_mutex_unlock(&gathered_lock);
}

const char *log_quote(char *dst, struct str s)
{
    size_t n = 0;
    dst[n++] = '"';
    while (s.len > 0) {
        char printed[STR_PRINTED_MAX];
        size_t taken = 0;
        size_t len = str_print_char(s, printed, &taken);
        if (n + len > LOG_QUOTE_MAX)
            break;
        memcpy(dst + n, printed, len);
        n += len;
        s = (struct str){s.at + taken, s.len - taken};
    }
    dst[n++] = '"';
    dst[n] = '\0';
    return dst;
}

/* One line per event on standard error, logfmt: time, level, what, then key=value pairs.
 * Values are printed by the caller's format; peers' text must pass through log_quote first. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_LOGFMT, LOG_JSON };

/* Lines above this level are not written. LOG_INFO until set. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* A write that fails (full disk, closed pipe) is dropped, never retried, never fatal. Waits for a
 * reader when nothing is gathered. */
void log_line(enum log_level level, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* With gathering on, lines (of any thread) are kept, and log_flush hands them to a thread that
 * writes them together: a loop that logs thousands of decisions in a turn pays for one write, and
 * never waits for whoever reads the log. Half of LOG_GATHER_MAX bytes are handed over without a
 * flush. While that many wait for a reader, further lines are dropped, and one line says how many
 * were as soon as it can be written. Whoever turns gathering on calls log_flush often, and
 * log_gather(false) at the end, which waits LOG_LAST_MS at most; what nobody has read by then stays
 * with the thread, and so do later lines. */
enum { LOG_GATHER_MAX = 256 * 1024, LOG_LAST_MS = 200 };
void log_gather(bool on);
void log_flush(void);

enum { LOG_QUOTE_MAX = 200 };

/* Text from outside made safe for a log line: quoted, control characters escaped, cut at
 * LOG_QUOTE_MAX bytes. Returns dst, which holds at least LOG_QUOTE_MAX + 8 bytes. */
const char *log_quote(char *dst, struct str s);

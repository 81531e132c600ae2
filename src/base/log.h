/* One line per event on standard error, logfmt: time, level, what, then key=value pairs.
 * Values are printed by the caller's format; peers' text must pass through log_quote first. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above this level are not written. LOG_INFO until set. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* A write that fails (full disk, closed pipe) is dropped, never retried, never fatal. */
void log_line(enum log_level level, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* With gathering on, lines (of any thread) are kept and written together by log_flush: a loop that
 * logs thousands of decisions in a turn pays for one write. More than LOG_GATHER_MAX bytes are
 * written at once. Whoever turns it on calls log_flush often, and log_gather(false) at the end. */
enum { LOG_GATHER_MAX = 64 * 1024 };
void log_gather(bool on);
void log_flush(void);

enum { LOG_QUOTE_MAX = 200 };

/* Text from outside made safe for a log line: quoted, control characters escaped, cut at
 * LOG_QUOTE_MAX bytes. Returns dst, which holds at least LOG_QUOTE_MAX + 8 bytes. */
const char *log_quote(char *dst, struct str s);

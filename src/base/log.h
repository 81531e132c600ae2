/* The log: one line per event on standard error, logfmt or JSON (log_entry.h). What happened is a
 * fixed text, everything that varies is in pairs; peers' text must pass through log_quote or
 * log_text, tokens must not pass at all. */
#pragma once

#include "base/log_entry.h"
#include "base/str.h"

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS };

/* Lines above this level are not written. LOG_INFO until set. */
void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);

/* LOG_LOGFMT until set. */
void log_set_format(enum log_format format);

/* "error" … ; "logfmt" "json". */
const char *log_level_name(enum log_level level);
const char *log_format_name(enum log_format format);

/* format prints pairs: "ticket=%d why=%s". A pair that does not fit is left out, what is no pair
 * becomes malformed="…". A write that fails (full disk, closed pipe) is dropped, never retried,
 * never fatal. Waits for a reader when nothing is gathered. */
void log_line(enum log_level level, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same piece by piece, for where printf would cost too much: log_begin, then log_int, log_text
 * and log_word, then log_end. The caller has asked log_enabled. */
void log_begin(struct log_entry *e, enum log_level level, const char *what);
void log_end(struct log_entry *e);

/* With gathering on, lines (of any thread) are kept, and log_flush hands them to a thread that
 * writes them together: a loop that logs thousands of decisions in a turn pays for one write, and
 * never waits for whoever reads the log. Lines that come after many others, LOG_BUSY_BYTES of them,
 * wait for company, LOG_REST_MS at most; all others are written at once. Half of LOG_GATHER_MAX
 * bytes are handed over without a flush. While that many wait for a reader, further lines are
 * dropped, and one line says how many were as soon as it can be written. Whoever turns gathering on
 * calls log_flush often, and log_gather(false) at the end, which waits LOG_LAST_MS at most; what
 * nobody has read by then stays with the thread, and so do later lines. */
enum { LOG_GATHER_MAX = 256 * 1024, LOG_LAST_MS = 200 };
enum { LOG_BUSY_BYTES = 4096, LOG_REST_MS = 5 };
void log_gather(bool on);
void log_flush(void);

/* Lines dropped since the start. */
uint64_t log_dropped(void);

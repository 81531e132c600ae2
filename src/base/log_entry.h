/* One line of the log while it is being made: time, level, what happened, then pairs, as logfmt
 *   ts=2026-11-16T08:15:30.123Z level=info msg="ticket done" ticket=12 chat="eu-1"
 * or as one JSON object. Whatever is put in, what comes out is one well-formed line: text is
 * escaped, and a pair that does not fit is left out whole.
 *
 * On the caller's stack; it owns nothing. log_begin and log_end (log.h) stand around what is added.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_format { LOG_LOGFMT, LOG_JSON };

enum {
    LOG_LINE_MAX = 1024, /* with its newline */
    LOG_QUOTE_MAX = 400, /* longer text is cut */
};

struct log_entry {
    enum log_format format;
    size_t len;
    char text[LOG_LINE_MAX];
};

/* level is a plain word; what may be any text. */
void log_entry_open(struct log_entry *e, enum log_format format, int64_t wall_ms, const char *level,
                    const char *what);

/* Ends the line with its newline; nothing may be added afterwards. */
void log_entry_close(struct log_entry *e);

/* Keys are plain words of the program: letters, digits and "_". */
void log_int(struct log_entry *e, const char *key, int64_t value);

/* Text from anywhere: quoted always, so that "12" stays a text in JSON. */
void log_text(struct log_entry *e, const char *key, struct str value);

/* A word of ours without blanks, quotes and "=": an address, an error's code. */
void log_word(struct log_entry *e, const char *key, const char *value);

/* Pairs printed by the caller, "key=value key=\"text\"". cut: the end is missing, so the last pair
 * is dropped. */
void log_pairs(struct log_entry *e, const char *pairs, bool cut);

/* Text from outside for a format of log_line: quoted, escaped as in JSON, bytes that are no UTF-8
 * replaced by U+FFFD, cut at LOG_QUOTE_MAX bytes. Returns dst, which holds at least
 * LOG_QUOTE_MAX + 8 bytes. */
const char *log_quote(char *dst, struct str s);

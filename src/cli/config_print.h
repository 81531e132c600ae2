/* Writing a configuration as YAML: lines with comments beside them. Text is appended to the
 * caller's buffer. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

struct shown {
    struct buf *out;
    bool comments;
    size_t line_start; /* in out */
};

/* At most 1 KiB; longer texts go through shown_text. */
void shown_print(struct shown *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In double quotes, as YAML and JSON have them. Bytes that are no UTF-8 cannot come here: libyaml
 * refuses them. */
void shown_text(struct shown *s, const char *text);

/* Ends a line, with a comment where they are wanted. unit may be "". */
void shown_end(struct shown *s, const char *unit, const char *comment);

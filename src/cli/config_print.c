#include "cli/config_print.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { COMMENT_COLUMN = 40 };

void shown_print(struct shown *s, const char *format, ...)
{
    char text[1100];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert(n >= 0 && (size_t)n < sizeof(text)); /* every value and meaning is shorter */
    buf_append(s->out, text, (size_t)n);
}

void shown_end(struct shown *s, const char *unit, const char *comment)
{
    size_t len = s->out->len - s->line_start;
    if (s->comments && comment[0]) {
        int gap = len < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - len) : 1;
        shown_print(s, "%*s# %s%s%s", gap, "", unit, unit[0] ? "; " : "", comment);
    }
    shown_print(s, "\n");
    s->line_start = s->out->len;
}

void shown_text(struct shown *s, const char *text)
{
    shown_print(s, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            shown_print(s, "\\%c", c);
        else if (c < 0x20 || c == 0x7F)
            shown_print(s, "\\x%02x", c);
        else
            shown_print(s, "%c", c);
    }
    shown_print(s, "\"");
}

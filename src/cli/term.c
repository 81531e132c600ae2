#include "cli/term.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

static bool is_dumb(void)
{
    const char *kind = getenv("TERM");
    return kind && strcmp(kind, "dumb") == 0;
}

void term_look(struct term *ret, int fd, bool no_colours)
{
    struct winsize size = {0};
    *ret = (struct term){.is_terminal = isatty(fd) == 1, .columns = 80, .rows = 24};
    ret->draws = ret->is_terminal && !is_dumb();
    ret->colours = ret->is_terminal && !no_colours && !is_set("NO_COLOR") && !is_dumb();
    if (ret->is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
        size.ws_row > 0) {
        ret->columns = size.ws_col;
        ret->rows = size.ws_row;
    }
}

/* Code point of the n bytes at `at`, which are one well-formed character. */
static uint32_t code_point(const char *at, size_t n)
{
    static const uint8_t first[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t point = (uint8_t)at[0] & first[n];
    for (size_t i = 1; i < n; i++)
        point = point << 6 | ((uint8_t)at[i] & 0x3Fu);
    return point;
}

/* Control characters, and those that turn the direction of the text around them or break lines. */
static bool is_command(uint32_t point)
{
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x061C ||
           (point >= 0x200E && point <= 0x200F) || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069);
}

uint32_t term_command(struct str s)
{
    uint32_t point = code_point(s.at, s.len);
    return is_command(point) ? point : 0;
}

void term_put_text(struct buf *out, struct str s)
{
    while (s.len > 0) {
        size_t n = str_char_len(s);
        if (n == 0 || is_command(code_point(s.at, n)))
            buf_append(out, "?", 1);
        else
            buf_append(out, s.at, n);
        n = n ? n : 1;
        s = (struct str){s.at + n, s.len - n};
    }
}

void term_put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

void term_printf(struct buf *out, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (n > 0)
        buf_append(out, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static const char *const style_codes[] = {
    [STYLE_PLAIN] = "",        [STYLE_HEAD] = "\033[1m", [STYLE_GOOD] = "\033[32m",
    [STYLE_WARN] = "\033[33m", [STYLE_BAD] = "\033[31m", [STYLE_DIM] = "\033[2m",
};

void term_begin(struct buf *out, const struct term *term, enum style style)
{
    if (term->colours)
        term_put(out, style_codes[style]);
}

void term_end(struct buf *out, const struct term *term, enum style style)
{
    if (term->colours && style != STYLE_PLAIN)
        term_put(out, "\033[0m");
}

void term_put_styled(struct buf *out, const struct term *term, enum style style, struct str s)
{
    term_begin(out, term, style);
    term_put_text(out, s);
    term_end(out, term, style);
}

void term_put_link(struct buf *out, const struct term *term, const char *uri, struct str text)
{
    bool link = term->is_terminal && uri[0];
    if (link)
        term_printf(out, "\033]8;;%s\033\\", uri);
    term_put_text(out, text);
    if (link)
        term_put(out, "\033]8;;\033\\");
}

size_t term_width(struct str s)
{
    size_t width = 0;
    for (; s.len > 0; width++) {
        size_t n = str_char_len(s);
        n = n ? n : 1;
        s = (struct str){s.at + n, s.len - n};
    }
    return width;
}

/* Bytes of the escape sequence that s begins with; only those of style_codes and of links come
 * here. */
static size_t escape_len(struct str s)
{
    if (s.at[0] != '\033')
        return 0;
    if (s.len > 1 && s.at[1] == ']') {
        const char *close = memmem(s.at + 1, s.len - 1, "\033\\", 2);
        return close ? (size_t)(close - s.at) + 2 : 0;
    }
    const char *end = memchr(s.at, 'm', s.len);
    return end ? (size_t)(end - s.at) + 1 : 0;
}

/* One line: sequences cost no width, and those behind the cut are kept, so that styles end. */
static void fit_line(struct buf *out, struct str line, int columns)
{
    int left = columns;
    while (line.len > 0) {
        size_t n = escape_len(line);
        bool shown = n > 0 || left > 0;
        if (n == 0) {
            n = str_char_len(line);
            n = n ? n : 1;
            left--;
        }
        if (shown)
            buf_append(out, line.at, n);
        line = (struct str){line.at + n, line.len - n};
    }
}

static size_t count_lines(struct str s)
{
    size_t n = s.len > 0 && s.at[s.len - 1] != '\n' ? 1 : 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.at[i] == '\n' ? 1 : 0;
    return n;
}

void term_fit(struct buf *out, struct str s, int columns, int rows)
{
    size_t lines = count_lines(s);
    size_t room = rows > 0 ? (size_t)rows : 0;
    size_t shown = lines <= room ? lines : room > 0 ? room - 1 : 0;
    for (size_t i = 0; i < shown; i++) {
        const char *end = memchr(s.at, '\n', s.len);
        size_t n = end ? (size_t)(end - s.at) : s.len;
        fit_line(out, (struct str){s.at, n}, columns);
        term_put(out, "\n");
        n += end ? 1 : 0;
        s = (struct str){s.at + n, s.len - n};
    }
    if (shown < lines && room > 0) {
        char more[40];
        snprintf(more, sizeof(more), "... %zu more", lines - shown);
        fit_line(out, str_of(more), columns);
        term_put(out, "\n");
    }
}

/* The first error of a write to standard output; several verbs write in many places, and all of
 * them end in cli_main, which asks. */
static int output_error;

bool term_flush(struct buf *out, int fd)
{
    size_t done = 0;
    while (done < out->len) {
        ssize_t n = write(fd, out->data + done, out->len - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    bool all = done == out->len;
    if (!all && fd == STDOUT_FILENO && output_error == 0)
        output_error = errno;
    buf_clear(out);
    return all;
}

int term_end_output(void)
{
    bool flushed = fflush(stdout) == 0;
    if (output_error == 0 && !flushed)
        output_error = errno;
    return output_error == 0 && ferror(stdout) ? TERM_LOST : output_error;
}

/* The terminal a verb prints to: what it can do, and how text gets there without commanding it.
 * Everything is put together in a buffer first; whoever owns the buffer writes it. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct term {
    bool is_terminal;
    bool colours;
    bool draws;  /* it can be drawn over: a terminal that is not TERM=dumb */
    int columns; /* 80 x 24 where nobody knows */
    int rows;
};

enum style { STYLE_PLAIN, STYLE_HEAD, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_DIM };

/* What stands behind descriptor fd. Colours only for a terminal, and there only when neither
 * no_colours, NO_COLOR (not empty) nor TERM=dumb forbids them. */
void term_look(struct term *ret, int fd, bool no_colours);

/* Appends text of somebody else's: what would command the terminal, or turn the direction of
 * writing, becomes '?', and so does what is no UTF-8. Line ends do too. */
void term_put_text(struct buf *out, struct str s);

/* The code point of the one character s holds when it would command the terminal; otherwise 0. */
uint32_t term_command(struct str s);

/* Appends our own text as it is. */
void term_put(struct buf *out, const char *text);
void term_printf(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Begins a style, and ends it; nothing where there are no colours. */
void term_begin(struct buf *out, const struct term *term, enum style style);
void term_end(struct buf *out, const struct term *term, enum style style);

/* A word in a style. */
void term_put_styled(struct buf *out, const struct term *term, enum style style, struct str s);

/* A text that opens an address when it is clicked, on terminals that can (OSC 8); others show the
 * text alone. The address is one of our own making. */
void term_put_link(struct buf *out, const struct term *term, const char *uri, struct str text);

/* How many characters s shows. A combining mark counts as one, a wide letter too. */
size_t term_width(struct str s);

/* Appends s, whose lines are separated by '\n', cut so that it fits into `columns` x `rows`: lines
 * lose what is too long, and the last row says how many lines are missing. Styles are kept. */
void term_fit(struct buf *out, struct str s, int columns, int rows);

/* Writes all of it to the descriptor and empties it; false when nobody takes it any more. */
bool term_flush(struct buf *out, int fd);

/* Before the process ends: flushes what printf left. Returns 0, or the errno of the first write to
 * standard output that failed, by term_flush or by stdio; TERM_LOST when stdio failed so long ago
 * that it is not known why. */
enum { TERM_LOST = -1 };
int term_end_output(void);

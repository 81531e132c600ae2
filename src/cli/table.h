/* Aligned tables. Cells are collected, then printed with columns as wide as their widest cell; text
 * is somebody else's and is made harmless. Owned by whoever embeds it. */
#pragma once

#include "cli/term.h"

enum { TABLE_COLUMNS_MAX = 24 };

struct table_column {
    const char *title;
    bool right; /* numbers */
};

struct table {
    struct table_column columns[TABLE_COLUMNS_MAX];
    size_t n_columns;
    size_t widths[TABLE_COLUMNS_MAX]; /* only grow: what is printed in parts stays aligned */
    bool titled;                      /* the titles have been printed */
    struct buf cells;                 /* style, length and text of each, row by row */
    size_t n_cells;
};

/* A table without columns yet; done with table_done. */
void table_init(struct table *t);
void table_done(struct table *t);

void table_add_column(struct table *t, const char *title, bool right);

/* Fills the next cell; the first of a row follows the last of the one before. */
void table_cell(struct table *t, enum style style, struct str text);

/* Rows that wait to be printed. */
size_t table_rows(const struct table *t);

/* Sorts the rows that wait by a column: by length, then by bytes, which is by size for numbers
 * and puts texts of one kind together; those alike stay in order. */
void table_sort(struct table *t, size_t column);

/* Appends the titles, when they have not been printed, and all rows that wait; forgets these. */
void table_print(struct table *t, const struct term *term, struct buf *out);

#include "cli/table.h"

#include <assert.h>
#include <string.h>

/* How a cell stands in table.cells, before its text. */
struct cell {
    enum style style;
    size_t len;
};

void table_init(struct table *t)
{
    *t = (struct table){0};
}

void table_done(struct table *t)
{
    buf_done(&t->cells);
}

static void widen(struct table *t, size_t column, struct str text)
{
    size_t width = term_width(text);
    if (width > t->widths[column])
        t->widths[column] = width;
}

void table_add_column(struct table *t, const char *title, bool right)
{
    assert(t->n_columns < TABLE_COLUMNS_MAX);
    t->columns[t->n_columns] = (struct table_column){.title = title, .right = right};
    widen(t, t->n_columns, str_of(title));
    t->n_columns++;
}

void table_cell(struct table *t, enum style style, struct str text)
{
    struct cell cell = {.style = style, .len = text.len};
    widen(t, t->n_cells % t->n_columns, text);
    buf_append(&t->cells, &cell, sizeof(cell));
    buf_append(&t->cells, text.at, text.len);
    t->n_cells++;
}

size_t table_rows(const struct table *t)
{
    return t->n_columns ? t->n_cells / t->n_columns : 0;
}

static void put_blanks(struct buf *out, size_t n)
{
    for (; n > 0; n--)
        buf_append(out, " ", 1);
}

/* The last column is not filled up: no line ends with blanks. */
static void put_cell(const struct table *t, const struct term *term, struct buf *out, size_t column,
                     enum style style, struct str text)
{
    size_t blanks = t->widths[column] - term_width(text);
    bool last = column + 1 == t->n_columns;
    if (t->columns[column].right)
        put_blanks(out, blanks);
    term_put_styled(out, term, style, text);
    if (!t->columns[column].right && !last)
        put_blanks(out, blanks);
    term_put(out, last ? "\n" : "  ");
}

static void put_titles(const struct table *t, const struct term *term, struct buf *out)
{
    for (size_t i = 0; i < t->n_columns; i++)
        put_cell(t, term, out, i, STYLE_HEAD, str_of(t->columns[i].title));
}

void table_print(struct table *t, const struct term *term, struct buf *out)
{
    assert(t->n_columns > 0 && t->n_cells % t->n_columns == 0);
    if (!t->titled)
        put_titles(t, term, out);
    t->titled = true;
    const uint8_t *at = t->cells.data;
    for (size_t i = 0; i < t->n_cells; i++) {
        struct cell cell;
        memcpy(&cell, at, sizeof(cell));
        at += sizeof(cell);
        put_cell(t, term, out, i % t->n_columns, cell.style,
                 (struct str){(const char *)at, cell.len});
        at += cell.len;
    }
    buf_clear(&t->cells);
    t->n_cells = 0;
}

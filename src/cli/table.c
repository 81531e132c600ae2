#include "cli/table.h"

#include <assert.h>
#include <stdlib.h>
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

/* ── sorting ───────────────────────────────────────────────────────────────────────────────── */

/* A row where it stands in table.cells. */
struct row {
    const uint8_t *at;
    size_t len;
    size_t i; /* how many were before it */
    struct str key;
};

static struct row read_row(const struct table *t, const uint8_t *at, size_t i, size_t column)
{
    struct row row = {.at = at, .i = i};
    for (size_t k = 0; k < t->n_columns; k++) {
        struct cell cell;
        memcpy(&cell, at, sizeof(cell));
        at += sizeof(cell);
        if (k == column)
            row.key = (struct str){(const char *)at, cell.len};
        at += cell.len;
    }
    row.len = (size_t)(at - row.at);
    return row;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    /* Numbers are written without zeros in front, so the longer one is the larger. */
    if (x->key.len != y->key.len)
        return x->key.len < y->key.len ? -1 : 1;
    int order = memcmp(x->key.at, y->key.at, x->key.len);
    return order != 0 ? order : (x->i > y->i) - (x->i < y->i);
}

void table_sort(struct table *t, size_t column)
{
    size_t n = table_rows(t);
    struct buf sorted = {0};
    struct row *rows = xcalloc(n + 1, sizeof(*rows));
    const uint8_t *at = t->cells.data;
    for (size_t i = 0; i < n; i++) {
        rows[i] = read_row(t, at, i, column);
        at += rows[i].len;
    }
    qsort(rows, n, sizeof(*rows), compare_rows);
    for (size_t i = 0; i < n; i++)
        buf_append(&sorted, rows[i].at, rows[i].len);
    free(rows);
    buf_done(&t->cells);
    t->cells = sorted;
}

/* ── printing ──────────────────────────────────────────────────────────────────────────────── */

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

/* What the HTTP API answers, for people: rows of a table, an object field by field, or the JSON
 * itself. Nothing of it commands the terminal. */
#pragma once

#include "base/json.h"
#include "cli/table.h"

#include <stdint.h>

enum show_kind {
    SHOW_TEXT,    /* text as it is; a list with commas; true and false as yes and no */
    SHOW_STATE,   /* a word that has a colour: "available", "failed" … */
    SHOW_NUMBER,  /* stands right */
    SHOW_PERCENT, /* stands right, no decimals */
    SHOW_AGO,     /* a time, as "3 m ago" */
    SHOW_MS,      /* microseconds, as milliseconds */
    SHOW_LASTS,   /* milliseconds, as "3 m 20 s"; nothing known = 0 = "-" */
};

/* One column: where its value stands in an item ("servers.full"), and how it is shown. A value that
 * is null or absent is "-". */
struct show_column {
    const char *title;
    const char *path;
    enum show_kind kind;
    bool wide; /* only with -o wide */
};

/* The value behind a path of names with dots, or NULL. */
const struct json *show_at(const struct json *item, const char *path);

/* Text of a value for a cell. Appends to out. */
void show_value(struct buf *out, const struct json *value, enum show_kind kind, int64_t now_ms);

/* The style of a word such as "available" or "failed". */
enum style show_style(struct str word);

/* Columns, closed by one without a title, of a table; then its rows, one by one. */
void show_columns(struct table *t, const struct show_column *columns, bool wide);
void show_row(struct table *t, const struct show_column *columns, bool wide,
              const struct json *item, int64_t now_ms);

/* A line for each field, names aligned; objects within by names with dots; times with how long ago.
 */
void show_object(struct buf *out, const struct term *term, const struct json *object,
                 int64_t now_ms);

/* The same without the fields of these names ("exit.tail"), closed by NULL. */
void show_object_without(struct buf *out, const struct term *term, const struct json *object,
                         const char *const *names, int64_t now_ms);

/* The value as JSON in one line, without its end. What could command a terminal is escaped. */
void show_json(struct buf *out, const struct json *value);

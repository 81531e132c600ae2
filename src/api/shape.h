/* Shapes: what an answer looks like, as a table. From it follow both the JSON that is written and
 * the schema that describes it, so the two cannot differ. All tables are constants. */
#pragma once

#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core_config;

enum shape_kind {
    SHAPE_ID, /* int64_t as decimal text; this and TIME: null for 0 where it may be null */
    SHAPE_TIME,
    SHAPE_INT8, /* this and INT32: null for SHAPE_NO_INT8, SHAPE_NO_INT32 where it may be null */
    SHAPE_INT32,
    SHAPE_INT64,
    SHAPE_FLOAT,
    SHAPE_DOUBLE,
    SHAPE_BOOL,
    SHAPE_TEXT,   /* const char *; this and WORD: null for "" where it may be null */
    SHAPE_WORD,   /* const char *, one of words */
    SHAPE_OBJECT, /* written by the row's shape from what stands at its offset, or by `write` */
    SHAPE_TEXTS,  /* a list; by `write` */
    SHAPE_WORDS,  /* a list of words; by `write` */
    SHAPE_ITEMS,  /* a list of objects of `shape`; by `write` */
    SHAPE_JSON,   /* struct str: an object as JSON text; null for "" where it may be null */
    SHAPE_INTS,   /* a list; by `write` */
    SHAPE_MAP,    /* an object whose values are objects of `shape`, under any keys; by `write` */
};

/* A number that is none. */
#define SHAPE_NO_INT8 INT8_MIN
#define SHAPE_NO_INT32 INT32_MIN

struct shape;

struct shape_row {
    const char *name;
    enum shape_kind kind;
    bool may_be_null;
    bool may_be_absent; /* in what is sent to us; what we write is whole */
    size_t offset;
    const char *const *words; /* closed by NULL */
    const struct shape *shape;

    /* Instead of what the kind would do: writes the value, given the whole object. */
    void (*write)(struct json_writer *w, const void *object, const struct core_config *config);
    const char *help;
};

/* An object; rows are closed by one without a name. */
struct shape {
    const char *name; /* "Server": of its schema */
    const char *help;
    const struct shape_row *rows;
};

/* Every key is written, always. */
void shape_write(struct json_writer *w, const struct shape *shape, const void *object,
                 const struct core_config *config);

/* The same without the braces, for an object that has more keys. */
void shape_write_keys(struct json_writer *w, const struct shape *shape, const void *object,
                      const struct core_config *config);

/* The JSON Schema of one row's values, or of the whole; other shapes are referred to as
 * #/components/schemas/NAME. */
void shape_schema_row(struct json_writer *w, const struct shape_row *row);
void shape_schema(struct json_writer *w, const struct shape *shape);

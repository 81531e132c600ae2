#include "api/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DECIMALS = 4 };

static const void *at(const struct shape_row *row, const void *object)
{
    return (const char *)object + row->offset;
}

static void write_text(struct json_writer *w, const struct shape_row *row, const char *text)
{
    if (row->may_be_null && (!text || !*text))
        json_none(w);
    else
        json_text(w, str_of(text));
}

static void write_id(struct json_writer *w, const struct shape_row *row, int64_t id)
{
    if (row->may_be_null && id == 0)
        json_none(w);
    else
        json_id(w, id);
}

static void write_int(struct json_writer *w, const struct shape_row *row, int32_t v, int32_t none)
{
    if (row->may_be_null && v == none)
        json_none(w);
    else
        json_int(w, v);
}

static void write_int64(struct json_writer *w, const struct shape_row *row, int64_t v)
{
    if (row->may_be_null && v == 0)
        json_none(w);
    else
        json_int(w, v);
}

static void write_raw(struct json_writer *w, const struct shape_row *row, struct str text)
{
    if (row->may_be_null && text.len == 0)
        json_none(w);
    else
        json_raw(w, text.len > 0 ? text : STR("{}"));
}

static void write_value(struct json_writer *w, const struct shape_row *row, const void *value,
                        const struct core_config *config)
{
    switch (row->kind) {
    case SHAPE_ID:
        write_id(w, row, *(const int64_t *)value);
        return;
    case SHAPE_TIME:
        json_time(w, *(const int64_t *)value);
        return;
    case SHAPE_INT8:
        write_int(w, row, *(const int8_t *)value, SHAPE_NO_INT8);
        return;
    case SHAPE_INT32:
        write_int(w, row, *(const int32_t *)value, SHAPE_NO_INT32);
        return;
    case SHAPE_INT64:
        write_int64(w, row, *(const int64_t *)value);
        return;
    case SHAPE_FLOAT:
        json_number(w, (double)*(const float *)value, DECIMALS);
        return;
    case SHAPE_DOUBLE:
        json_number(w, *(const double *)value, DECIMALS);
        return;
    case SHAPE_BOOL:
        json_bool(w, *(const bool *)value);
        return;
    case SHAPE_TEXT:
    case SHAPE_WORD:
        write_text(w, row, *(const char *const *)value);
        return;
    case SHAPE_OBJECT:
        shape_write(w, row->shape, value, config);
        return;
    case SHAPE_JSON:
        write_raw(w, row, *(const struct str *)value);
        return;
    case SHAPE_TEXTS:
    case SHAPE_WORDS:
    case SHAPE_ITEMS:
    case SHAPE_INTS:
    case SHAPE_MAP:
        break;
    }
    abort(); /* a list has a `write` of its own */
}

void shape_write_keys(struct json_writer *w, const struct shape *shape, const void *object,
                      const struct core_config *config)
{
    for (const struct shape_row *row = shape->rows; row->name; row++) {
        json_key(w, row->name);
        if (row->write)
            row->write(w, object, config);
        else
            write_value(w, row, at(row, object), config);
    }
}

void shape_write(struct json_writer *w, const struct shape *shape, const void *object,
                 const struct core_config *config)
{
    json_open_object(w);
    shape_write_keys(w, shape, object, config);
    json_close_object(w);
}

/* ── schemas ───────────────────────────────────────────────────────────────────────────────── */

/* "type": "string", or with null beside it. */
static void type(struct json_writer *w, const char *name, bool may_be_null)
{
    json_key(w, "type");
    if (!may_be_null) {
        json_text(w, str_of(name));
        return;
    }
    json_open_array(w);
    json_text(w, str_of(name));
    json_text(w, STR("null"));
    json_close_array(w);
}

static void words(struct json_writer *w, const char *const *list, bool may_be_null)
{
    json_key(w, "enum");
    json_open_array(w);
    for (; *list; list++)
        json_text(w, str_of(*list));
    if (may_be_null)
        json_none(w);
    json_close_array(w);
}

static void refer(struct json_writer *w, const struct shape *shape)
{
    char path[96];
    snprintf(path, sizeof(path), "#/components/schemas/%s", shape->name);
    json_key_text(w, "$ref", str_of(path));
}

/* Null is another schema beside the one referred to. */
static void refer_or_null(struct json_writer *w, const struct shape *shape)
{
    json_key(w, "anyOf");
    json_open_array(w);
    json_open_object(w);
    refer(w, shape);
    json_close_object(w);
    json_open_object(w);
    type(w, "null", false);
    json_close_object(w);
    json_close_array(w);
}

static void list_schema(struct json_writer *w, const struct shape_row *row)
{
    type(w, "array", row->may_be_null);
    json_key(w, "items");
    json_open_object(w);
    if (row->kind == SHAPE_ITEMS) {
        refer(w, row->shape);
    } else if (row->kind == SHAPE_INTS) {
        type(w, "integer", false);
    } else {
        type(w, "string", false);
        if (row->kind == SHAPE_WORDS)
            words(w, row->words, false);
    }
    json_close_object(w);
}

static void value_schema(struct json_writer *w, const struct shape_row *row)
{
    switch (row->kind) {
    case SHAPE_ID:
        type(w, "string", row->may_be_null);
        json_key_text(w, "pattern", STR("^[0-9]+$"));
        return;
    case SHAPE_TIME:
        type(w, "string", row->may_be_null);
        json_key_text(w, "format", STR("date-time"));
        return;
    case SHAPE_INT8:
    case SHAPE_INT32:
    case SHAPE_INT64:
        type(w, "integer", row->may_be_null);
        return;
    case SHAPE_FLOAT:
    case SHAPE_DOUBLE:
        type(w, "number", row->may_be_null);
        return;
    case SHAPE_BOOL:
        type(w, "boolean", row->may_be_null);
        return;
    case SHAPE_TEXT:
        type(w, "string", row->may_be_null);
        return;
    case SHAPE_WORD:
        type(w, "string", row->may_be_null);
        words(w, row->words, row->may_be_null);
        return;
    case SHAPE_OBJECT:
        if (row->may_be_null)
            refer_or_null(w, row->shape);
        else
            refer(w, row->shape);
        return;
    case SHAPE_TEXTS:
    case SHAPE_WORDS:
    case SHAPE_ITEMS:
    case SHAPE_INTS:
        list_schema(w, row);
        return;
    case SHAPE_JSON:
        type(w, "object", row->may_be_null);
        return;
    case SHAPE_MAP:
        type(w, "object", row->may_be_null);
        json_key(w, "additionalProperties");
        json_open_object(w);
        refer(w, row->shape);
        json_close_object(w);
        return;
    }
}

void shape_schema_row(struct json_writer *w, const struct shape_row *row)
{
    json_open_object(w);
    value_schema(w, row);
    if (row->help)
        json_key_text(w, "description", str_of(row->help));
    json_close_object(w);
}

void shape_schema(struct json_writer *w, const struct shape *shape)
{
    json_open_object(w);
    type(w, "object", false);
    if (shape->help)
        json_key_text(w, "description", str_of(shape->help));
    json_key(w, "properties");
    json_open_object(w);
    for (const struct shape_row *row = shape->rows; row->name; row++) {
        json_key(w, row->name);
        shape_schema_row(w, row);
    }
    json_close_object(w);
    json_key(w, "required");
    json_open_array(w);
    for (const struct shape_row *row = shape->rows; row->name; row++) {
        if (!row->may_be_absent)
            json_text(w, str_of(row->name));
    }
    json_close_array(w);
    json_close_object(w);
}

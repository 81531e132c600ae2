#include "cli/show.h"

#include "base/date.h"
#include "cli/when.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_MAX_BYTES = 64 };

static enum json_kind kind_of(const struct json *v)
{
    return v ? json_kind(v) : JSON_KIND_NULL;
}

const struct json *show_at(const struct json *item, const char *path)
{
    while (item && *path) {
        char name[PATH_MAX_BYTES];
        size_t n = strcspn(path, ".");
        if (n >= sizeof(name) || kind_of(item) != JSON_KIND_OBJECT)
            return NULL;
        memcpy(name, path, n);
        name[n] = '\0';
        item = json_member(item, name);
        path += n + (path[n] == '.' ? 1 : 0);
    }
    return item;
}

enum style show_style(struct str word)
{
    static const struct {
        const char *word;
        enum style style;
    } styles[] = {
        {"available", STYLE_GOOD},    {"open", STYLE_GOOD},      {"done", STYLE_GOOD},
        {"acknowledged", STYLE_GOOD}, {"writable", STYLE_GOOD},  {"full", STYLE_WARN},
        {"draining", STYLE_WARN},     {"opening", STYLE_WARN},   {"cancelling", STYLE_WARN},
        {"pending", STYLE_WARN},      {"cancelled", STYLE_WARN}, {"given_up", STYLE_WARN},
        {"offline", STYLE_BAD},       {"lost", STYLE_BAD},       {"failed", STYLE_BAD},
        {"refused", STYLE_BAD},       {"timed_out", STYLE_BAD},  {"dropped", STYLE_BAD},
        {"not_ready", STYLE_BAD},     {"read_only", STYLE_BAD},  {"ended", STYLE_DIM},
        {"taken", STYLE_GOOD},        {"running", STYLE_GOOD},   {"reserved", STYLE_WARN},
        {"starting", STYLE_WARN},     {"ending", STYLE_WARN},    {"leaving", STYLE_WARN},
        {"disabled", STYLE_WARN},     {"silent", STYLE_BAD},     {"failing", STYLE_BAD},
        {"overloaded", STYLE_BAD},    {"gone", STYLE_DIM},       {"loading", STYLE_WARN},
        {"started", STYLE_GOOD},      {"aborted", STYLE_BAD},    {"leader", STYLE_GOOD},
        {"away", STYLE_BAD},
    };
    for (size_t i = 0; i < sizeof(styles) / sizeof(styles[0]); i++) {
        if (str_eq(word, str_of(styles[i].word)))
            return styles[i].style;
    }
    return STYLE_PLAIN;
}

static void put_number(struct buf *out, const struct json *value, enum show_kind kind)
{
    double v = json_get_number(value);
    char lasts[WHEN_MAX];
    if (kind == SHOW_LASTS)
        term_put(out, v > 0 ? when_lasted((json_get_int(value) + 999) / 1000, lasts) : "-");
    else if (kind == SHOW_PERCENT)
        term_printf(out, "%.0f%%", v);
    else if (kind == SHOW_MS)
        term_printf(out, "%.1f ms", v / 1000);
    else if (json_kind(value) == JSON_KIND_INT)
        term_printf(out, "%" PRId64, json_get_int(value));
    else
        term_printf(out, "%.*f", fabs(v) < 10 ? 2 : 1, v);
}

static void put_list(struct buf *out, const struct json *list, int64_t now_ms)
{
    for (size_t i = 0; i < json_length(list); i++) {
        if (i > 0)
            term_put(out, ",");
        show_value(out, json_item(list, i), SHOW_TEXT, now_ms);
    }
    if (json_length(list) == 0)
        term_put(out, "-");
}

void show_value(struct buf *out, const struct json *value, enum show_kind kind, int64_t now_ms)
{
    int64_t wall_ms;
    char when[WHEN_MAX];
    switch (kind_of(value)) {
    case JSON_KIND_NULL:
        term_put(out, "-");
        return;
    case JSON_KIND_BOOL:
        term_put(out, json_get_bool(value) ? "yes" : "no");
        return;
    case JSON_KIND_INT:
    case JSON_KIND_REAL:
        put_number(out, value, kind);
        return;
    case JSON_KIND_ARRAY:
        put_list(out, value, now_ms);
        return;
    case JSON_KIND_OBJECT:
        show_json(out, value);
        return;
    case JSON_KIND_TEXT:
        break;
    }
    struct str text = json_get_text(value);
    if (kind == SHOW_AGO && date_parse(text, &wall_ms))
        term_put(out, when_ago(wall_ms, now_ms, when));
    else if (text.len == 0)
        term_put(out, "-");
    else
        term_put_text(out, text);
}

void show_columns(struct table *t, const struct show_column *columns, bool wide)
{
    for (; columns->title; columns++) {
        bool right = columns->kind == SHOW_NUMBER || columns->kind == SHOW_PERCENT ||
                     columns->kind == SHOW_MS || columns->kind == SHOW_LASTS;
        if (wide || !columns->wide)
            table_add_column(t, columns->title, right);
    }
}

void show_row(struct table *t, const struct show_column *columns, bool wide,
              const struct json *item, int64_t now_ms)
{
    struct buf text = {0};
    for (; columns->title; columns++) {
        if (columns->wide && !wide)
            continue;
        buf_clear(&text);
        show_value(&text, show_at(item, columns->path), columns->kind, now_ms);
        struct str s = {(const char *)text.data, text.len};
        table_cell(t, columns->kind == SHOW_STATE ? show_style(s) : STYLE_PLAIN, s);
    }
    buf_done(&text);
}

/* ── an object ─────────────────────────────────────────────────────────────────────────────── */

/* Calls itself for what is within; prefix is "" or ends with a dot. */
static size_t widest_name(const struct json *object, size_t prefix)
{
    size_t widest = 0;
    void *at = NULL;
    const char *key;
    const struct json *value;
    while (json_next(object, &at, &key, &value)) {
        size_t n = prefix + term_width(str_of(key));
        if (kind_of(value) == JSON_KIND_OBJECT)
            n = widest_name(value, n + 1);
        widest = n > widest ? n : widest;
    }
    return widest;
}

static void put_field(struct buf *out, const struct term *term, const struct json *value,
                      int64_t now_ms)
{
    int64_t wall_ms;
    char when[WHEN_MAX];
    struct str text = json_get_text(value);
    term_begin(out, term, show_style(text));
    show_value(out, value, SHOW_TEXT, now_ms);
    term_end(out, term, show_style(text));
    if (date_parse(text, &wall_ms))
        term_printf(out, " (%s)", when_ago(wall_ms, now_ms, when));
    term_put(out, "\n");
}

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* What stays the same from object to object within. */
struct fields {
    struct buf *out;
    const struct term *term;
    const char *const *without;
    size_t width;
    int64_t now_ms;
};

static void put_fields(const struct fields *f, const struct json *object, const char *prefix)
{
    void *at = NULL;
    const char *key;
    const struct json *value;
    while (json_next(object, &at, &key, &value)) {
        char name[PATH_MAX_BYTES];
        bool within = kind_of(value) == JSON_KIND_OBJECT;
        snprintf(name, sizeof(name), "%s%s%s", prefix, key, within ? "." : "");
        if (within) {
            put_fields(f, value, name);
            continue;
        }
        if (is_among(f->without, name))
            continue;
        size_t n = term_width(str_of(name));
        term_put_styled(f->out, f->term, STYLE_DIM, str_of(name));
        term_printf(f->out, "%*s", (int)(n < f->width ? f->width - n : 0) + 2, "");
        put_field(f->out, f->term, value, f->now_ms);
    }
}

void show_object_without(struct buf *out, const struct term *term, const struct json *object,
                         const char *const *names, int64_t now_ms)
{
    size_t width = widest_name(object, 0);
    const struct fields f = {.out = out,
                             .term = term,
                             .without = names,
                             .width = width < PATH_MAX_BYTES ? width : PATH_MAX_BYTES,
                             .now_ms = now_ms};
    put_fields(&f, object, "");
}

void show_object(struct buf *out, const struct term *term, const struct json *object,
                 int64_t now_ms)
{
    static const char *const none[] = {NULL};
    show_object_without(out, term, object, none, now_ms);
}

/* ── JSON ──────────────────────────────────────────────────────────────────────────────────── */

/* The writer's text, with what JSON lets through and a terminal does not like escaped: DEL, C1
 * controls, and characters that turn the direction of writing. */
static void put_json_text(struct buf *out, struct str s)
{
    struct buf plain = {0};
    struct json_writer w = {.out = &plain};
    json_text(&w, s);
    struct str left = {(const char *)plain.data, plain.len};
    while (left.len > 0) {
        size_t n = str_char_len(left);
        uint32_t point = term_command((struct str){left.at, n});
        if (point)
            term_printf(out, "\\u%04x", point);
        else
            buf_append(out, left.at, n);
        left = (struct str){left.at + n, left.len - n};
    }
    buf_done(&plain);
}

/* The shortest text that reads as the same number. */
static void put_json_real(struct buf *out, double v)
{
    char text[32];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    term_put(out, text);
}

static void put_json_array(struct buf *out, const struct json *array)
{
    term_put(out, "[");
    for (size_t i = 0; i < json_length(array); i++) {
        if (i > 0)
            term_put(out, ",");
        show_json(out, json_item(array, i));
    }
    term_put(out, "]");
}

static void put_json_object(struct buf *out, const struct json *object)
{
    void *at = NULL;
    const char *key;
    const struct json *value;
    const char *before = "{";
    while (json_next(object, &at, &key, &value)) {
        term_put(out, before);
        put_json_text(out, str_of(key));
        term_put(out, ":");
        show_json(out, value);
        before = ",";
    }
    term_put(out, *before == '{' ? "{}" : "}");
}

void show_json(struct buf *out, const struct json *value)
{
    switch (kind_of(value)) {
    case JSON_KIND_NULL:
        term_put(out, "null");
        return;
    case JSON_KIND_BOOL:
        term_put(out, json_get_bool(value) ? "true" : "false");
        return;
    case JSON_KIND_INT:
        term_printf(out, "%" PRId64, json_get_int(value));
        return;
    case JSON_KIND_REAL:
        put_json_real(out, json_get_number(value));
        return;
    case JSON_KIND_TEXT:
        put_json_text(out, json_get_text(value));
        return;
    case JSON_KIND_ARRAY:
        put_json_array(out, value);
        return;
    case JSON_KIND_OBJECT:
        put_json_object(out, value);
        return;
    }
}

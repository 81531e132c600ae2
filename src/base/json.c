#include "base/json.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ── writing ───────────────────────────────────────────────────────────────────────────────── */

/* Every value begins here. */
static void begin(struct json_writer *w)
{
    if (w->comma)
        buf_append(w->out, ",", 1);
    w->comma = true;
}

static void open_with(struct json_writer *w, char bracket)
{
    begin(w);
    buf_append(w->out, &bracket, 1);
    w->comma = false;
}

static void close_with(struct json_writer *w, char bracket)
{
    buf_append(w->out, &bracket, 1);
    w->comma = true;
}

void json_open_object(struct json_writer *w)
{
    open_with(w, '{');
}

void json_close_object(struct json_writer *w)
{
    close_with(w, '}');
}

void json_open_array(struct json_writer *w)
{
    open_with(w, '[');
}

void json_close_array(struct json_writer *w)
{
    close_with(w, ']');
}

void json_key(struct json_writer *w, const char *key)
{
    struct str k = str_of(key);
    begin(w);
    uint8_t *at = buf_extend(w->out, k.len + 3);
    at[0] = '"';
    memcpy(at + 1, k.at, k.len);
    at[k.len + 1] = '"';
    at[k.len + 2] = ':';
    w->comma = false;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* What s begins with, when it is no plain ASCII; returns how many of its bytes that was. */
static size_t append_special(struct buf *out, struct str s)
{
    unsigned char c = (unsigned char)s.at[0];
    if (c >= 0x80) {
        size_t n = str_char_len(s);
        buf_append(out, n ? s.at : "\xEF\xBF\xBD", n ? n : 3);
        return n ? n : 1;
    }
    static const char letters[] = {
        ['"'] = '"', ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (c < sizeof(letters) && letters[c]) {
        buf_append(out, (char[]){'\\', letters[c]}, 2);
    } else {
        char escaped[8];
        (void)snprintf(escaped, sizeof(escaped), "\\u%04x", c);
        buf_append(out, escaped, 6);
    }
    return 1;
}

void json_text(struct json_writer *w, struct str s)
{
    begin(w);
    buf_append(w->out, "\"", 1);
    while (s.len > 0) {
        size_t n = str_plain_steps(s);
        while (n < s.len && is_plain((unsigned char)s.at[n]))
            n++;
        buf_append(w->out, s.at, n);
        s = (struct str){s.at + n, s.len - n};
        if (s.len > 0) {
            n = append_special(w->out, s);
            s = (struct str){s.at + n, s.len - n};
        }
    }
    buf_append(w->out, "\"", 1);
}

/* Lists are full of numbers, and snprintf costs several times as much as this. */
static void append_decimal(struct buf *out, int64_t v)
{
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (v < 0)
        digits[--at] = '-';
    buf_append(out, digits + at, sizeof(digits) - at);
}

void json_int(struct json_writer *w, int64_t v)
{
    begin(w);
    append_decimal(w->out, v);
}

void json_number(struct json_writer *w, double v, int decimals)
{
    assert(decimals >= 0 && decimals <= 17);
    if (!isfinite(v)) {
        json_none(w);
        return;
    }
    char text[352]; /* the largest double has 309 digits before the point */
    int n = snprintf(text, sizeof(text), "%.*f", decimals, v);
    begin(w);
    buf_append(w->out, text, (size_t)n);
}

void json_bool(struct json_writer *w, bool v)
{
    begin(w);
    buf_append(w->out, v ? "true" : "false", v ? 4 : 5);
}

void json_none(struct json_writer *w)
{
    begin(w);
    buf_append(w->out, "null", 4);
}

void json_raw(struct json_writer *w, struct str text)
{
    begin(w);
    buf_append(w->out, text.at, text.len);
}

void json_key_any(struct json_writer *w, struct str key)
{
    json_text(w, key);
    buf_append(w->out, ":", 1);
    w->comma = false;
}

void json_id(struct json_writer *w, int64_t id)
{
    begin(w);
    buf_append(w->out, "\"", 1);
    append_decimal(w->out, id);
    buf_append(w->out, "\"", 1);
}

/* Lists and events are full of times, and printf takes ten times as long. */
static char *put_digits(char *at, int value, int digits, char after)
{
    for (int i = digits - 1; i >= 0; i--, value /= 10)
        at[i] = (char)('0' + value % 10);
    at[digits] = after;
    return at + digits + 1;
}

void json_time(struct json_writer *w, int64_t wall_ms)
{
    int64_t ms = (wall_ms % 1000 + 1000) % 1000;
    time_t seconds = (time_t)(wall_ms / 1000 - (wall_ms % 1000 < 0));
    struct tm t;
    if (wall_ms == 0 || !gmtime_r(&seconds, &t) || t.tm_year < -1900 || t.tm_year > 9999 - 1900) {
        json_none(w);
        return;
    }
    char text[] = "\"0000-00-00T00:00:00.000Z\"";
    char *at = text + 1;
    at = put_digits(at, t.tm_year + 1900, 4, '-');
    at = put_digits(at, t.tm_mon + 1, 2, '-');
    at = put_digits(at, t.tm_mday, 2, 'T');
    at = put_digits(at, t.tm_hour, 2, ':');
    at = put_digits(at, t.tm_min, 2, ':');
    at = put_digits(at, t.tm_sec, 2, '.');
    put_digits(at, (int)ms, 3, 'Z');
    begin(w);
    buf_append(w->out, text, sizeof(text) - 1);
}

void json_key_text(struct json_writer *w, const char *key, struct str s)
{
    json_key(w, key);
    json_text(w, s);
}

void json_key_int(struct json_writer *w, const char *key, int64_t v)
{
    json_key(w, key);
    json_int(w, v);
}

void json_key_number(struct json_writer *w, const char *key, double v, int decimals)
{
    json_key(w, key);
    json_number(w, v, decimals);
}

void json_key_bool(struct json_writer *w, const char *key, bool v)
{
    json_key(w, key);
    json_bool(w, v);
}

void json_key_id(struct json_writer *w, const char *key, int64_t id)
{
    json_key(w, key);
    if (id)
        json_id(w, id);
    else
        json_none(w);
}

void json_key_time(struct json_writer *w, const char *key, int64_t wall_ms)
{
    json_key(w, key);
    json_time(w, wall_ms);
}

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

/* struct json is jansson's json_t under a name of ours; it is never looked into. */
static const json_t *theirs(const struct json *v)
{
    return (const json_t *)v;
}

static const struct json *ours(const json_t *v)
{
    return (const struct json *)v;
}

/* How deep the brackets of text nest. Exact for what is JSON; of anything else the parser finds
 * the fault itself, in its own limited depth. */
static size_t depth_of(struct str text)
{
    size_t depth = 0;
    size_t deepest = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            deepest = ++depth > deepest ? depth : deepest;
        else if (!quoted && (c == ']' || c == '}') && depth > 0)
            depth--;
    }
    return deepest;
}

/* The fault as a clause; what the parser quotes of the text is cut where a character ends. */
static void say(char why[JSON_WHY_MAX], const json_error_t *fault)
{
    bool nul = json_error_code(fault) == json_error_null_character; /* it names a flag of its own */
    (void)snprintf(why, JSON_WHY_MAX, "line %d, column %d: %.120s", fault->line, fault->column,
                   nul ? "\\u0000 must not be in a text" : fault->text);
    size_t good = 0;
    size_t n = 0;
    struct str all = str_of(why);
    while ((n = str_char_len((struct str){all.at + good, all.len - good})) > 0)
        good += n;
    why[good] = '\0';
}

struct json *json_parse(struct str text, char why[JSON_WHY_MAX])
{
    if (text.len > JSON_SIZE_MAX) {
        (void)snprintf(why, JSON_WHY_MAX, "longer than %d bytes", JSON_SIZE_MAX);
        return NULL;
    }
    if (depth_of(text) > JSON_DEPTH_MAX) {
        (void)snprintf(why, JSON_WHY_MAX, "nested deeper than %d", JSON_DEPTH_MAX);
        return NULL;
    }
    /* After a number jansson passes over a NUL. */
    if (text.len > 0 && memchr(text.at, '\0', text.len)) {
        (void)snprintf(why, JSON_WHY_MAX, "a NUL byte");
        return NULL;
    }
    json_error_t fault;
    json_t *v = json_loadb(text.at ? text.at : "", text.len,
                           JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &fault);
    if (!v)
        say(why, &fault);
    return (struct json *)v;
}

struct json *json_keep(const struct json *v)
{
    return (struct json *)json_incref((json_t *)v);
}

void json_free(struct json *root)
{
    json_decref((json_t *)root);
}

enum json_kind json_kind(const struct json *v)
{
    switch (json_typeof(theirs(v))) {
    case JSON_OBJECT:
        return JSON_KIND_OBJECT;
    case JSON_ARRAY:
        return JSON_KIND_ARRAY;
    case JSON_STRING:
        return JSON_KIND_TEXT;
    case JSON_INTEGER:
        return JSON_KIND_INT;
    case JSON_REAL:
        return JSON_KIND_REAL;
    case JSON_TRUE:
    case JSON_FALSE:
        return JSON_KIND_BOOL;
    case JSON_NULL:
        break;
    }
    return JSON_KIND_NULL;
}

struct str json_get_text(const struct json *v)
{
    const char *at = json_string_value(theirs(v));
    return at ? (struct str){at, json_string_length(theirs(v))} : STR("");
}

int64_t json_get_int(const struct json *v)
{
    return json_integer_value(theirs(v));
}

double json_get_number(const struct json *v)
{
    return json_number_value(theirs(v));
}

bool json_get_bool(const struct json *v)
{
    return json_is_true(theirs(v));
}

const struct json *json_member(const struct json *object, const char *key)
{
    return ours(json_object_get(theirs(object), key));
}

size_t json_length(const struct json *array)
{
    return json_array_size(theirs(array));
}

const struct json *json_item(const struct json *array, size_t i)
{
    return ours(json_array_get(theirs(array), i));
}

bool json_next(const struct json *object, void **at, const char **ret_key,
               const struct json **ret_value)
{
    json_t *o = (json_t *)object;
    *at = *at ? json_object_iter_next(o, *at) : json_object_iter(o);
    if (!*at)
        return false;
    *ret_key = json_object_iter_key(*at);
    *ret_value = ours(json_object_iter_value(*at));
    return true;
}

size_t json_members(const struct json *object)
{
    return json_object_size(theirs(object));
}

/* ── writing what was read ─────────────────────────────────────────────────────────────────── */

/* 15 digits are enough for what people write, 17 for every double. A point or an exponent says that
 * it is no integer. */
static void write_real(struct json_writer *w, double v)
{
    char text[40];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    begin(w);
    buf_append(w->out, text, (size_t)n);
    if (!strpbrk(text, ".e"))
        buf_append(w->out, ".0", 2);
}

struct member {
    const char *key;
    const struct json *value;
};

static int compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct member *)a)->key, ((const struct member *)b)->key);
}

/* Adds the members of object that `hidden` (or NULL) has not; returns how many there are then. */
static size_t collect(struct member *members, size_t n, const struct json *object,
                      const struct json *hidden)
{
    for (void *at = NULL; json_next(object, &at, &members[n].key, &members[n].value);)
        n += !hidden || !json_member(hidden, members[n].key);
    return n;
}

/* over may be NULL. */
static void write_members(struct json_writer *w, const struct json *base, const struct json *over)
{
    struct member *members = xcalloc(1 + json_members(base) + json_members(over), sizeof(*members));
    size_t n = collect(members, 0, base, over);
    n = collect(members, n, over, NULL);
    qsort(members, n, sizeof(*members), compare_keys);
    json_open_object(w);
    for (size_t i = 0; i < n; i++) {
        json_key_any(w, str_of(members[i].key));
        json_any(w, members[i].value);
    }
    json_close_object(w);
    free(members);
}

/* As deep as JSON_DEPTH_MAX, because that is how deep the reader goes. */
void json_any(struct json_writer *w, const struct json *v)
{
    switch (json_kind(v)) {
    case JSON_KIND_NULL:
        json_none(w);
        break;
    case JSON_KIND_BOOL:
        json_bool(w, json_get_bool(v));
        break;
    case JSON_KIND_INT:
        json_int(w, json_get_int(v));
        break;
    case JSON_KIND_REAL:
        write_real(w, json_get_number(v));
        break;
    case JSON_KIND_TEXT:
        json_text(w, json_get_text(v));
        break;
    case JSON_KIND_ARRAY:
        json_open_array(w);
        for (size_t i = 0; i < json_length(v); i++)
            json_any(w, json_item(v, i));
        json_close_array(w);
        break;
    case JSON_KIND_OBJECT:
        write_members(w, v, NULL);
        break;
    }
}

void json_any_over(struct json_writer *w, const struct json *base, const struct json *over)
{
    write_members(w, base, over);
}

#include "api/arguments.h"

#include "base/err.h"
#include "base/json.h"
#include "base/suggest.h"
#include "wire/uri.h"

#include <assert.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char access_token_name[] = "access_token";

void arguments_init(struct arguments *a, const struct operation *operation)
{
    *a = (struct arguments){0};
    arguments_again(a, operation);
}

/* No more than is read: each request comes here, and most operations have few fields. */
void arguments_again(struct arguments *a, const struct operation *operation)
{
    a->operation = operation;
    for (size_t i = 0; operation->fields[i].name; i++)
        a->values[i] = (struct argument){0};
    a->access_token = (struct str){0};
    a->wrong = NULL;
    a->why[0] = '\0';
}

void arguments_done(struct arguments *a)
{
    arena_done(&a->arena);
}

/* ── sentences ─────────────────────────────────────────────────────────────────────────────── */

const char *arguments_show(char dst[ARGUMENTS_SHOWN_MAX + 16], struct str text)
{
    size_t len = 0;
    struct str left = text;
    dst[len++] = '\'';
    while (left.len > 0 && len < ARGUMENTS_SHOWN_MAX) {
        size_t taken = 0;
        len += str_print_char(left, dst + len, &taken);
        left = (struct str){left.at + taken, left.len - taken};
    }
    snprintf(dst + len, 16, "%s'", left.len > 0 ? "…" : "");
    return dst;
}

static void vsay(struct arguments *a, const char *format, va_list args)
{
    vsnprintf(a->why, sizeof(a->why), format, args);
}

int arguments_refuse(struct arguments *a, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsay(a, format, args);
    va_end(args);
    a->wrong = name;
    return ERR_BAD_ARGUMENT;
}

/* "open, done or failed" */
static const char *list_words(const char *const *words, char *dst, size_t cap)
{
    size_t len = 0;
    dst[0] = '\0';
    for (size_t i = 0; words[i] && len < cap; i++) {
        const char *gap = i == 0 ? "" : words[i + 1] ? ", " : " or ";
        int n = snprintf(dst + len, cap - len, "%s%s", gap, words[i]);
        len += (size_t)n;
    }
    return dst;
}

/* Says what the field takes, and what it got. */
static int refuse_value(struct arguments *a, const struct field *f, struct str got)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    char words[192];
    arguments_show(shown, got);
    switch (f->kind) {
    case FIELD_ID:
        return arguments_refuse(a, f->name, "%s is a decimal number from 1 on, not %s.", f->name,
                                shown);
    case FIELD_INT:
        return arguments_refuse(a, f->name,
                                "%s is a whole number from %" PRId64 " to %" PRId64 ", not %s.",
                                f->name, f->min, f->max, shown);
    case FIELD_TEXT:
        if (f->form)
            return arguments_refuse(a, f->name, "%s is %s, not %s.", f->name, f->form, shown);
        return arguments_refuse(a, f->name,
                                "%s is text of %" PRId64 " to %" PRId64
                                " bytes without control characters, not %s.",
                                f->name, f->min, f->max, shown);
    case FIELD_WORD:
        return arguments_refuse(a, f->name, "%s is %s, not %s.", f->name,
                                list_words(f->words, words, sizeof(words)), shown);
    case FIELD_LIST:
        return arguments_refuse(a, f->name,
                                "%s is a list of %" PRId64 " to %" PRId64 " texts, as JSON or with "
                                "commas between them, not %s.",
                                f->name, f->min, f->max, shown);
    case FIELD_BOOL:
        return arguments_refuse(a, f->name, "%s is true or false, not %s.", f->name, shown);
    case FIELD_JSON:
        return arguments_refuse(a, f->name,
                                "%s is a JSON object of at most %" PRId64 " bytes, not %s.",
                                f->name, f->max, shown);
    case FIELD_OBJECTS:
        return arguments_refuse(a, f->name,
                                "%s is a list of %" PRId64 " to %" PRId64 " JSON objects, not %s.",
                                f->name, f->min, f->max, shown);
    case FIELD_LISTS:
        return arguments_refuse(a, f->name,
                                "%s is a list of %" PRId64 " to %" PRId64 " JSON lists, not %s.",
                                f->name, f->min, f->max, shown);
    }
    abort();
}

/* The one form of a value, kept with the arguments. */
static struct str keep_json(struct arguments *a, const struct json *value)
{
    struct buf text = {0};
    json_any(&(struct json_writer){.out = &text}, value);
    struct str kept = arena_str(&a->arena, (struct str){(const char *)text.data, text.len});
    buf_done(&text);
    return kept;
}

static int refuse_json(struct arguments *a, const struct field *f, const struct json *got)
{
    return refuse_value(a, f, keep_json(a, got));
}

static int refuse_name(struct arguments *a, const char *name)
{
    char shown[ARGUMENTS_SHOWN_MAX + 16];
    struct suggestion meant = suggest_for(name);
    for (const struct field *f = a->operation->fields; f->name; f++)
        suggest_offer(&meant, f->name);
    arguments_show(shown, str_of(name));
    struct str kept = {name, strnlen(name, ARGUMENTS_SHOWN_MAX)};
    const char *wrong = arena_str(&a->arena, kept).at;
    if (meant.best)
        return arguments_refuse(a, wrong, "There is no argument %s. Did you mean '%s'?", shown,
                                meant.best);
    if (!a->operation->fields[0].name)
        return arguments_refuse(a, wrong, "There is no argument %s; this takes none.", shown);
    return arguments_refuse(a, wrong, "There is no argument %s.", shown);
}

/* ── values ────────────────────────────────────────────────────────────────────────────────── */

static bool read_number(struct str text, int64_t *ret)
{
    char copy[24];
    char *end = NULL;
    if (text.len == 0 || !str_copy(copy, sizeof(copy), text))
        return false;
    const char *digits = copy[0] == '-' ? copy + 1 : copy;
    if (strspn(digits, "0123456789") != strlen(digits) || *digits == '\0')
        return false;
    unsigned long long v = strtoull(digits, &end, 10);
    if (strlen(digits) > 19 || v > INT64_MAX)
        return false;
    *ret = copy[0] == '-' ? -(int64_t)v : (int64_t)v;
    return true;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c < ' ' || c == 127)
            return false;
    }
    return str_is_utf8(text);
}

static bool is_word(const char *const *words, struct str text)
{
    for (; *words; words++) {
        if (str_eq(text, str_of(*words)))
            return true;
    }
    return false;
}

static bool fits(const struct field *f, size_t n)
{
    return (int64_t)n >= f->min && (int64_t)n <= f->max;
}

static int set_number(struct arguments *a, const struct field *f, struct argument *v, int64_t n,
                      struct str got)
{
    bool ok = f->kind == FIELD_ID ? n > 0 : n >= f->min && n <= f->max;
    if (!ok)
        return refuse_value(a, f, got);
    v->number = n;
    return 0;
}

static int set_text(struct arguments *a, const struct field *f, struct argument *v, struct str text)
{
    int64_t n = 0;
    switch (f->kind) {
    case FIELD_ID:
    case FIELD_INT:
        return read_number(text, &n) ? set_number(a, f, v, n, text) : refuse_value(a, f, text);
    case FIELD_TEXT:
        if (!fits(f, text.len) || !is_plain(text))
            return refuse_value(a, f, text);
        break;
    case FIELD_WORD:
        if (!is_word(f->words, text))
            return refuse_value(a, f, text);
        break;
    case FIELD_BOOL:
    case FIELD_LIST:
    case FIELD_JSON:
    case FIELD_OBJECTS:
    case FIELD_LISTS:
        abort(); /* set_from_text */
    }
    v->text = arena_str(&a->arena, text);
    return 0;
}

static int add_item(struct arguments *a, const struct field *f, struct argument *v, struct str item)
{
    if (item.len == 0 || !is_plain(item) || v->n_items == (size_t)f->max)
        return refuse_value(a, f, item);
    if (!v->items)
        v->items = arena_alloc(&a->arena, (size_t)f->max * sizeof(*v->items));
    v->items[v->n_items++] = arena_str(&a->arena, item);
    return 0;
}

static int set_array(struct arguments *a, const struct field *f, struct argument *v,
                     const struct json *array)
{
    for (size_t i = 0; i < json_length(array); i++) {
        const struct json *item = json_item(array, i);
        if (json_kind(item) != JSON_KIND_TEXT)
            return refuse_json(a, f, array);
        int err = add_item(a, f, v, json_get_text(item));
        if (err != 0)
            return err;
    }
    return fits(f, v->n_items) ? 0 : refuse_value(a, f, STR("[]"));
}

/* A list as text is JSON, or has commas between its items. */
static int set_list(struct arguments *a, const struct field *f, struct argument *v, struct str text)
{
    if (text.len > 0 && text.at[0] == '[') {
        char why[JSON_WHY_MAX];
        struct json *array = json_parse(text, why);
        int err = array ? set_array(a, f, v, array) : refuse_value(a, f, text);
        json_free(array);
        return err;
    }
    while (text.len > 0) {
        const char *comma = memchr(text.at, ',', text.len);
        size_t len = comma ? (size_t)(comma - text.at) : text.len;
        int err = add_item(a, f, v, (struct str){text.at, len});
        if (err != 0)
            return err;
        size_t taken = comma ? len + 1 : len;
        text = (struct str){text.at + taken, text.len - taken};
    }
    return fits(f, v->n_items) ? 0 : refuse_value(a, f, text);
}

static int set_object(struct arguments *a, const struct field *f, struct argument *v,
                      const struct json *object)
{
    if (json_kind(object) != JSON_KIND_OBJECT)
        return refuse_json(a, f, object);
    v->text = keep_json(a, object);
    if ((int64_t)v->text.len > f->max)
        return arguments_refuse(a, f->name,
                                "%s is a JSON object of at most %" PRId64 " bytes, not of %zu.",
                                f->name, f->max, v->text.len);
    return 0;
}

/* Of objects, or of lists. */
static int set_values(struct arguments *a, const struct field *f, struct argument *v,
                      const struct json *array)
{
    enum json_kind kind = f->kind == FIELD_LISTS ? JSON_KIND_ARRAY : JSON_KIND_OBJECT;
    const char *noun = f->kind == FIELD_LISTS ? "lists" : "objects";
    if (json_kind(array) != JSON_KIND_ARRAY)
        return refuse_json(a, f, array);
    if (!fits(f, json_length(array)))
        return arguments_refuse(a, f->name,
                                "%s is a list of %" PRId64 " to %" PRId64 " JSON %s, not of %zu.",
                                f->name, f->min, f->max, noun, json_length(array));
    v->items = arena_alloc(&a->arena, json_length(array) * sizeof(*v->items));
    for (size_t i = 0; i < json_length(array); i++) {
        const struct json *item = json_item(array, i);
        if (json_kind(item) != kind)
            return refuse_json(a, f, array);
        v->items[v->n_items++] = keep_json(a, item);
    }
    return 0;
}

/* Objects as forms and queries have them. */
static int set_parsed(struct arguments *a, const struct field *f, struct argument *v,
                      struct str text)
{
    char why[JSON_WHY_MAX];
    struct json *value = json_parse(text, why);
    if (!value)
        return arguments_refuse(a, f->name, "%s is no JSON: %s.", f->name, why);
    int err = f->kind == FIELD_JSON ? set_object(a, f, v, value) : set_values(a, f, v, value);
    json_free(value);
    return err;
}

/* In any case: Python's forms have True, others TRUE. */
static bool is_written(struct str text, struct str word)
{
    return text.len == word.len && strncasecmp(text.at, word.at, word.len) == 0;
}

static int set_bool(struct arguments *a, const struct field *f, struct argument *v, struct str text)
{
    bool yes = is_written(text, STR("true")) || str_eq(text, STR("1"));
    if (!yes && !is_written(text, STR("false")) && !str_eq(text, STR("0")))
        return refuse_value(a, f, text);
    v->number = yes;
    return 0;
}

static int set_from_text(struct arguments *a, const struct field *f, struct argument *v,
                         struct str text)
{
    switch (f->kind) {
    case FIELD_LIST:
        return set_list(a, f, v, text);
    case FIELD_BOOL:
        return set_bool(a, f, v, text);
    case FIELD_JSON:
    case FIELD_OBJECTS:
    case FIELD_LISTS:
        return set_parsed(a, f, v, text);
    case FIELD_ID:
    case FIELD_INT:
    case FIELD_TEXT:
    case FIELD_WORD:
        break;
    }
    return set_text(a, f, v, text);
}

static int set_json(struct arguments *a, const struct field *f, struct argument *v,
                    const struct json *value)
{
    char digits[24];
    bool plain = f->kind == FIELD_ID || f->kind == FIELD_INT || f->kind == FIELD_TEXT ||
                 f->kind == FIELD_WORD;
    switch (json_kind(value)) {
    case JSON_KIND_TEXT:
        return set_from_text(a, f, v, json_get_text(value));
    case JSON_KIND_INT: /* an account, say, may be a number */
        snprintf(digits, sizeof(digits), "%" PRId64, json_get_int(value));
        return plain ? set_text(a, f, v, str_of(digits)) : refuse_value(a, f, str_of(digits));
    case JSON_KIND_ARRAY:
        if (f->kind == FIELD_LIST)
            return set_array(a, f, v, value);
        if (f->kind == FIELD_OBJECTS || f->kind == FIELD_LISTS)
            return set_values(a, f, v, value);
        return refuse_json(a, f, value);
    case JSON_KIND_OBJECT:
        return f->kind == FIELD_JSON ? set_object(a, f, v, value) : refuse_json(a, f, value);
    case JSON_KIND_BOOL:
        if (f->kind == FIELD_BOOL) {
            v->number = json_get_bool(value);
            return 0;
        }
        return refuse_json(a, f, value);
    case JSON_KIND_REAL:
        return refuse_json(a, f, value);
    case JSON_KIND_NULL:
        break;
    }
    abort(); /* taken for not given by the caller */
}

/* ── gathering ─────────────────────────────────────────────────────────────────────────────── */

/* The place for that argument, marked as given; NULL with *ret_err when it has none or is taken. */
static struct argument *place(struct arguments *a, const char *name, const struct field **ret_field,
                              int *ret_err)
{
    const struct field *f = a->operation->fields;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    if (!f->name) {
        *ret_err = refuse_name(a, name);
        return NULL;
    }
    struct argument *v = &a->values[f - a->operation->fields];
    if (v->given) {
        *ret_err = arguments_refuse(a, f->name, "%s is given twice.", f->name);
        return NULL;
    }
    v->given = true;
    *ret_field = f;
    return v;
}

static int put_access_token(struct arguments *a, struct str token)
{
    if (a->access_token.len > 0)
        return arguments_refuse(a, access_token_name, "%s is given twice.", access_token_name);
    if (token.len == 0)
        return arguments_refuse(a, access_token_name, "%s is text.", access_token_name);
    a->access_token = arena_str(&a->arena, token);
    return 0;
}

int arguments_put(struct arguments *a, const char *name, struct str value)
{
    const struct field *f = NULL;
    int err = 0;
    if (strcmp(name, access_token_name) == 0)
        return put_access_token(a, value);
    struct argument *v = place(a, name, &f, &err);
    if (!v)
        return err;
    return set_from_text(a, f, v, value);
}

static int put_member(struct arguments *a, const char *name, const struct json *value)
{
    const struct field *f = NULL;
    int err = 0;
    if (strcmp(name, access_token_name) == 0)
        return put_access_token(a, json_get_text(value));
    if (json_kind(value) == JSON_KIND_NULL)
        return 0;
    struct argument *v = place(a, name, &f, &err);
    return v ? set_json(a, f, v, value) : err;
}

int arguments_put_json(struct arguments *a, struct str body)
{
    char why[JSON_WHY_MAX];
    struct json *root = json_parse(body, why);
    if (!root)
        return arguments_refuse(a, NULL, "The body is no JSON: %s.", why);
    int err = 0;
    if (json_kind(root) != JSON_KIND_OBJECT)
        err = arguments_refuse(a, NULL, "The body is no JSON object.");
    void *at = NULL;
    const char *name = NULL;
    const struct json *value = NULL;
    while (err == 0 && json_next(root, &at, &name, &value))
        err = put_member(a, name, value);
    json_free(root);
    return err;
}

int arguments_put_form(struct arguments *a, struct str body)
{
    struct buf target = {0};
    struct uri uri;
    buf_append(&target, "/?", 2);
    buf_append(&target, body.at, body.len);
    buf_append(&target, "", 1);
    /* A NUL would hide what is behind it. */
    bool whole = strlen((const char *)target.data) == target.len - 1;
    bool parsed = whole && uri_parse((const char *)target.data, &uri);
    buf_done(&target);
    if (!parsed)
        return arguments_refuse(a, NULL, "The body is no form: an escape in it is wrong.");
    int err = 0;
    size_t at = 0;
    const char *name = NULL;
    const char *value = NULL;
    while (err == 0 && uri_next(&uri, &at, &name, &value))
        err = arguments_put(a, name, str_of(value));
    uri_done(&uri);
    return err;
}

int arguments_complete(struct arguments *a)
{
    for (size_t i = 0; a->operation->fields[i].name; i++) {
        const struct field *f = &a->operation->fields[i];
        if (a->values[i].given)
            continue;
        if (f->required)
            return arguments_refuse(a, f->name, "%s is missing.", f->name);
        a->values[i].number = f->otherwise;
    }
    return 0;
}

const struct argument *arguments_get(const struct arguments *a, const char *name)
{
    size_t i = 0;
    while (strcmp(a->operation->fields[i].name, name) != 0) {
        i++;
        assert(a->operation->fields[i].name);
    }
    return &a->values[i];
}

/* ── the digest ────────────────────────────────────────────────────────────────────────────── */

/* With its length before it, so that no two lists of texts read the same. */
static void digest_text(crypto_generichash_state *state, struct str text)
{
    uint64_t len = text.len;
    (void)crypto_generichash_update(state, (const uint8_t *)&len, sizeof(len));
    (void)crypto_generichash_update(state, (const uint8_t *)text.at, text.len);
}

static void digest_number(crypto_generichash_state *state, int64_t n)
{
    (void)crypto_generichash_update(state, (const uint8_t *)&n, sizeof(n));
}

void arguments_digest(const struct arguments *a, uint8_t ret[ARGUMENTS_DIGEST])
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, NULL, 0, ARGUMENTS_DIGEST);
    digest_text(&state, str_of(a->operation->name));
    for (size_t i = 0; a->operation->fields[i].name; i++) {
        const struct argument *v = &a->values[i];
        digest_text(&state, str_of(a->operation->fields[i].name));
        digest_number(&state, v->given || a->operation->fields[i].has_otherwise);
        digest_number(&state, v->number);
        digest_text(&state, v->text);
        digest_number(&state, (int64_t)v->n_items);
        for (size_t j = 0; j < v->n_items; j++)
            digest_text(&state, v->items[j]);
    }
    (void)crypto_generichash_final(&state, ret, ARGUMENTS_DIGEST);
}

#include "wire/filter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── comparing ─────────────────────────────────────────────────────────────────────────────── */

/* Two values of which neither is greater: equal, or of kinds that have no order between them. */
enum order { ORDER_LESS = -1, ORDER_SAME = 0, ORDER_GREATER = 1, ORDER_NONE = 2 };

static enum order order_of(bool less, bool greater)
{
    return less ? ORDER_LESS : greater ? ORDER_GREATER : ORDER_SAME;
}

/* Exact: a double does not hold every int64. The real is finite, as every number that was read. */
static enum order int_with_real(int64_t i, double r)
{
    if (r >= 0x1p63)
        return ORDER_LESS;
    if (r < -0x1p63)
        return ORDER_GREATER;
    double whole = floor(r);
    int64_t w = (int64_t)whole;
    return i == w ? order_of(r > whole, false) : order_of(i < w, true);
}

static enum order numbers(const struct json *a, const struct json *b)
{
    bool a_int = json_kind(a) == JSON_KIND_INT;
    bool b_int = json_kind(b) == JSON_KIND_INT;
    if (a_int && b_int)
        return order_of(json_get_int(a) < json_get_int(b), json_get_int(a) > json_get_int(b));
    if (a_int)
        return int_with_real(json_get_int(a), json_get_number(b));
    if (b_int)
        return (enum order)(-(int)int_with_real(json_get_int(b), json_get_number(a)));
    double x = json_get_number(a);
    double y = json_get_number(b);
    return order_of(x<y, x> y);
}

static enum order texts(struct str a, struct str b)
{
    size_t both = a.len < b.len ? a.len : b.len;
    int c = both ? memcmp(a.at, b.at, both) : 0;
    return order_of(c < 0 || (c == 0 && a.len < b.len), c > 0 || (c == 0 && a.len > b.len));
}

static bool is_number(const struct json *v)
{
    return json_kind(v) == JSON_KIND_INT || json_kind(v) == JSON_KIND_REAL;
}

static bool is_text(const struct json *v)
{
    return json_kind(v) == JSON_KIND_TEXT;
}

static enum order compare(const struct json *a, const struct json *b)
{
    if (is_number(a) && is_number(b))
        return numbers(a, b);
    if (is_text(a) && is_text(b))
        return texts(json_get_text(a), json_get_text(b));
    return ORDER_NONE;
}

static bool same(const struct json *a, const struct json *b)
{
    enum order order = compare(a, b);
    if (order != ORDER_NONE)
        return order == ORDER_SAME;
    if (json_kind(a) != json_kind(b))
        return false;
    return json_kind(a) == JSON_KIND_BOOL ? json_get_bool(a) == json_get_bool(b)
                                          : json_kind(a) == JSON_KIND_NULL;
}

/* ── the functions ─────────────────────────────────────────────────────────────────────────── */

/* Everything in a term points into the filter's document. */
struct term {
    const char *key;
    bool (*holds)(const struct term *t, const struct json *v);
    const struct json *a; /* the value, the list, or the lower end */
    const struct json *b; /* the upper end */
};

static bool is_same(const struct term *t, const struct json *v)
{
    return same(v, t->a);
}

static bool is_other(const struct term *t, const struct json *v)
{
    return !same(v, t->a);
}

static bool is_greater(const struct term *t, const struct json *v)
{
    return compare(v, t->a) == ORDER_GREATER;
}

static bool is_less(const struct term *t, const struct json *v)
{
    return compare(v, t->a) == ORDER_LESS;
}

static bool at_least(const struct term *t, const struct json *v)
{
    enum order order = compare(v, t->a);
    return order == ORDER_GREATER || order == ORDER_SAME;
}

static bool at_most(const struct term *t, const struct json *v)
{
    enum order order = compare(v, t->a);
    return order == ORDER_LESS || order == ORDER_SAME;
}

static bool is_between(const struct term *t, const struct json *v)
{
    enum order low = compare(v, t->a);
    enum order high = compare(v, t->b);
    return (low == ORDER_GREATER || low == ORDER_SAME) &&
           (high == ORDER_LESS || high == ORDER_SAME);
}

static bool is_one_of(const struct term *t, const struct json *v)
{
    for (size_t i = 0; i < json_length(t->a); i++)
        if (same(v, json_item(t->a, i)))
            return true;
    return false;
}

/* What a function compares with, by the names of its members. */
enum takes { TAKES_ANY, TAKES_ORDERED, TAKES_ENDS, TAKES_LIST };

static const struct function {
    const char *name;
    enum takes takes;
    bool (*holds)(const struct term *t, const struct json *v);
} functions[] = {
    {"=", TAKES_ANY, is_same},           {"!=", TAKES_ANY, is_other},
    {">", TAKES_ORDERED, is_greater},    {"<", TAKES_ORDERED, is_less},
    {">=", TAKES_ORDERED, at_least},     {"<=", TAKES_ORDERED, at_most},
    {"between", TAKES_ENDS, is_between}, {"in", TAKES_LIST, is_one_of},
};

/* ── reading ───────────────────────────────────────────────────────────────────────────────── */

struct filter {
    struct json *document;
    size_t n;
    struct term terms[FILTER_TERMS_MAX];
};

enum { KEY_SHOWN = 40 };

/* "the filter of KEY WHAT". Keys come from outside: long ones are cut where a character ends. */
static bool refuse(char why[FILTER_WHY_MAX], const char *key, const char *what)
{
    char shown[KEY_SHOWN * STR_PRINTED_MAX + 1] = "";
    size_t len = 0;
    struct str rest = str_of(key);
    for (size_t taken = 0; rest.len > 0 && len < KEY_SHOWN; rest.at += taken, rest.len -= taken)
        len += str_print_char(rest, shown + len, &taken);
    shown[len] = '\0';
    (void)snprintf(why, FILTER_WHY_MAX, "the filter of \"%s%s\" %s", shown, rest.len ? "…" : "",
                   what);
    return false;
}

static bool is_plain(const struct json *v)
{
    return json_kind(v) != JSON_KIND_ARRAY && json_kind(v) != JSON_KIND_OBJECT;
}

static bool take_list(struct term *t, const struct json *list, char why[FILTER_WHY_MAX])
{
    if (json_length(list) > FILTER_VALUES_MAX) {
        char what[64];
        (void)snprintf(what, sizeof(what), "has more than %d values", FILTER_VALUES_MAX);
        return refuse(why, t->key, what);
    }
    for (size_t i = 0; i < json_length(list); i++)
        if (!is_plain(json_item(list, i)))
            return refuse(why, t->key, "has a list with something else than plain values");
    t->a = list;
    t->holds = is_one_of;
    return true;
}

static const struct function *find_function(const struct json *name)
{
    for (size_t i = 0; name && is_text(name) && i < sizeof(functions) / sizeof(*functions); i++)
        if (str_eq(json_get_text(name), str_of(functions[i].name)))
            return &functions[i];
    return NULL;
}

static bool take_ends(struct term *t, const struct json *object, char why[FILTER_WHY_MAX])
{
    t->a = json_member(object, "@a");
    t->b = json_member(object, "@b");
    if (!t->a || !t->b || compare(t->a, t->b) == ORDER_NONE)
        return refuse(why, t->key, "needs @a and @b, two numbers or two texts");
    return true;
}

static bool take_value(struct term *t, const struct json *object, bool ordered,
                       char why[FILTER_WHY_MAX])
{
    t->a = json_member(object, "@value");
    if (!t->a || !is_plain(t->a))
        return refuse(why, t->key, "needs @value, a plain value");
    if (ordered && !is_number(t->a) && !is_text(t->a))
        return refuse(why, t->key, "needs @value, a number or a text");
    return true;
}

static bool take_function(struct term *t, const struct json *object, char why[FILTER_WHY_MAX])
{
    const struct json *name = json_member(object, "@func");
    const struct function *f = find_function(name);
    if (!name)
        return refuse(why, t->key, "is an object without @func");
    if (!f)
        return refuse(why, t->key, "has an unknown @func: it is one of = != > < >= <= between in");
    size_t members = f->takes == TAKES_ENDS ? 3 : 2;
    t->holds = f->holds;
    if (f->takes == TAKES_LIST) {
        const struct json *values = json_member(object, "@values");
        if (!values || json_kind(values) != JSON_KIND_ARRAY)
            return refuse(why, t->key, "needs @values, a list");
        if (!take_list(t, values, why))
            return false;
    } else if (f->takes == TAKES_ENDS) {
        if (!take_ends(t, object, why))
            return false;
    } else if (!take_value(t, object, f->takes == TAKES_ORDERED, why)) {
        return false;
    }
    if (json_members(object) != members)
        return refuse(why, t->key, "has a member that its @func does not know");
    return true;
}

static bool take_term(struct term *t, const char *key, const struct json *value,
                      char why[FILTER_WHY_MAX])
{
    *t = (struct term){.key = key, .a = value, .holds = is_same};
    switch (json_kind(value)) {
    case JSON_KIND_ARRAY:
        return take_list(t, value, why);
    case JSON_KIND_OBJECT:
        return take_function(t, value, why);
    default:
        return true;
    }
}

static bool take_terms(struct filter *f, char why[FILTER_WHY_MAX])
{
    if (json_kind(f->document) != JSON_KIND_OBJECT) {
        (void)snprintf(why, FILTER_WHY_MAX, "a filter is a JSON object");
        return false;
    }
    if (json_members(f->document) > FILTER_TERMS_MAX) {
        (void)snprintf(why, FILTER_WHY_MAX, "a filter has at most %d fields", FILTER_TERMS_MAX);
        return false;
    }
    const char *key = NULL;
    const struct json *value = NULL;
    for (void *at = NULL; json_next(f->document, &at, &key, &value);)
        if (!take_term(&f->terms[f->n++], key, value, why))
            return false;
    return true;
}

/* Owns the document from here on. */
static struct filter *filter_new(struct json *document, char why[FILTER_WHY_MAX])
{
    struct filter *f = xcalloc(1, sizeof(*f));
    f->document = document;
    if (take_terms(f, why))
        return f;
    filter_free(f);
    return NULL;
}

struct filter *filter_parse(struct str text, char why[FILTER_WHY_MAX])
{
    char fault[JSON_WHY_MAX];
    struct json *document = json_parse(text, fault);
    if (document)
        return filter_new(document, why);
    (void)snprintf(why, FILTER_WHY_MAX, "the filter is no JSON: %s", fault);
    return NULL;
}

struct filter *filter_of(const struct json *object, char why[FILTER_WHY_MAX])
{
    return filter_new(json_keep(object), why);
}

void filter_free(struct filter *f)
{
    if (!f)
        return;
    json_free(f->document);
    free(f);
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static const struct json *member_at(const struct json *object, struct str key)
{
    const char *name = NULL;
    const struct json *value = NULL;
    for (void *at = NULL; json_next(object, &at, &name, &value);)
        if (str_eq(str_of(name), key))
            return value;
    return NULL;
}

/* NULL when there is none. */
static const struct json *reach(const struct json *object, const char *key)
{
    const struct json *v = json_member(object, key);
    const char *dot = NULL;
    if (v || !strchr(key, '.'))
        return v;
    for (v = object; v && (dot = strchr(key, '.')); key = dot + 1)
        v = member_at(v, (struct str){key, (size_t)(dot - key)});
    return v ? json_member(v, key) : NULL;
}

bool filter_matches(const struct filter *f, const struct json *settings)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct json *v = reach(settings, f->terms[i].key);
        if (!v || !f->terms[i].holds(&f->terms[i], v))
            return false;
    }
    return true;
}

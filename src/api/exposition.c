#include "api/exposition.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_MAX = 48 };

static void put(struct buf *out, const char *text)
{
    buf_append(out, text, strlen(text));
}

/* ── labels ────────────────────────────────────────────────────────────────────────────────── */

/* How a byte stands between quotes; backslash, quote and newline are all that is special. */
static size_t escape(char c, char dst[2])
{
    dst[0] = '\\';
    dst[1] = c == '\n' ? 'n' : c;
    if (c == '\n' || c == '\\' || c == '"')
        return 2;
    dst[0] = c;
    return 1;
}

void labels_add(struct labels *l, const char *key, const char *value)
{
    size_t key_len = strlen(key);
    if (l->len + key_len + sizeof(",=\"\"") > sizeof(l->text))
        return;
    if (l->len > 0)
        l->text[l->len++] = ',';
    memcpy(l->text + l->len, key, key_len);
    l->len += key_len;
    l->text[l->len++] = '=';
    l->text[l->len++] = '"';
    for (const char *c = value; *c; c++) {
        char escaped[2];
        size_t len = escape(*c, escaped);
        if (l->len + len + 1 > sizeof(l->text)) /* the closing quote */
            break;
        memcpy(l->text + l->len, escaped, len);
        l->len += len;
    }
    l->text[l->len++] = '"';
}

/* ── numbers ───────────────────────────────────────────────────────────────────────────────── */

static const char *print_decimal(char dst[NUMBER_MAX], int64_t value, int64_t unit)
{
    int digits = 0;
    for (int64_t u = unit; u > 1; u /= 10) {
        assert(u % 10 == 0);
        digits++;
    }
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    int n = snprintf(dst, NUMBER_MAX, "%s%" PRIu64, value < 0 ? "-" : "", size / (uint64_t)unit);
    if (size % (uint64_t)unit == 0)
        return dst;
    n += snprintf(dst + n, NUMBER_MAX - (size_t)n, ".%0*" PRIu64, digits, size % (uint64_t)unit);
    while (dst[n - 1] == '0')
        dst[--n] = '\0';
    return dst;
}

/* ── samples ───────────────────────────────────────────────────────────────────────────────── */

/* HELP escapes backslash and newline, not quotes. */
static void put_help(struct buf *out, const char *help)
{
    for (const char *c = help; *c; c++) {
        char escaped[2];
        bool quote = *c == '"';
        size_t len = escape(*c, escaped);
        buf_append(out, quote ? c : escaped, quote ? 1 : len);
    }
}

void exposition_family(struct buf *out, const char *name, const char *type, const char *help)
{
    put(out, "# HELP ");
    put(out, name);
    put(out, " ");
    put_help(out, help);
    put(out, "\n# TYPE ");
    put(out, name);
    put(out, " ");
    put(out, type);
    put(out, "\n");
}

/* One line; le is NULL or the bound of a bucket. */
static void put_line(struct buf *out, const char *name, const char *suffix, const struct labels *l,
                     const char *le, const char *value)
{
    put(out, name);
    put(out, suffix);
    if (l->len > 0 || le) {
        put(out, "{");
        buf_append(out, l->text, l->len);
    }
    if (le) {
        put(out, l->len > 0 ? ",le=\"" : "le=\"");
        put(out, le);
        put(out, "\"");
    }
    put(out, l->len > 0 || le ? "} " : " ");
    put(out, value);
    put(out, "\n");
}

void exposition_sample(struct buf *out, const char *name, const struct labels *l, int64_t value)
{
    exposition_decimal(out, name, l, value, 1);
}

void exposition_decimal(struct buf *out, const char *name, const struct labels *l, int64_t value,
                        int64_t unit)
{
    char number[NUMBER_MAX];
    put_line(out, name, "", l, NULL, print_decimal(number, value, unit));
}

void exposition_real(struct buf *out, const char *name, const struct labels *l, double value)
{
    char number[NUMBER_MAX];
    snprintf(number, sizeof(number), "%.9g", value);
    put_line(out, name, "", l, NULL, number);
}

void exposition_histogram(struct buf *out, const char *name, const struct labels *l,
                          const struct histogram *h, const struct histogram_scale *scale)
{
    char bound[NUMBER_MAX];
    char number[NUMBER_MAX];
    int64_t seen = 0;
    for (int i = 0; i <= scale->n; i++) {
        seen += (int64_t)h->counts[i];
        bool last = i == scale->n;
        put_line(out, name, "_bucket", l,
                 last ? "+Inf" : print_decimal(bound, scale->bounds[i], scale->unit),
                 print_decimal(number, seen, 1));
    }
    put_line(out, name, "_sum", l, NULL, print_decimal(number, h->sum, scale->unit));
    put_line(out, name, "_count", l, NULL, print_decimal(number, seen, 1));
}

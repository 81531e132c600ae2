#include "agent/secrets.h"

#include "agent/process.h"
#include "base/json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    KEY_DIGITS_MAX = 19, /* a seat's key: its number, a point and 256 bits */
    KEY_SECRET = 43,
    TOKEN_BYTES_MIN = 20,
};

static const char blank[] = "***";
static const char gap_end[] = "dropped]\n"; /* as shim/output.c tells of what is missing */

static void forget(char *text)
{
    explicit_bzero(text, strlen(text));
    free(text);
}

void secrets_done(struct secrets *s)
{
    for (size_t i = 0; i < s->n; i++)
        forget(s->texts[i]);
    *s = (struct secrets){.n = 0};
}

/* ── by their form ─────────────────────────────────────────────────────────────────────────── */

static bool is_word(uint8_t c)
{
    return isalnum(c) || c == '_' || c == '-' || c == '.';
}

static size_t word_len(const uint8_t *at, size_t left)
{
    size_t n = 0;
    while (n < left && is_word(at[n]))
        n++;
    return n;
}

/* A signed token begins with the base64 of {" and has points between its parts. */
static size_t token_len(const uint8_t *at, size_t left)
{
    if (left < TOKEN_BYTES_MIN || memcmp(at, "eyJ", 3) != 0)
        return 0;
    size_t n = word_len(at, left);
    return n >= TOKEN_BYTES_MIN && memchr(at, '.', n) ? n : 0;
}

static size_t key_len(const uint8_t *at, size_t left)
{
    size_t digits = 0;
    while (digits < left && digits <= KEY_DIGITS_MAX && isdigit(at[digits]))
        digits++;
    if (digits == 0 || digits > KEY_DIGITS_MAX || digits == left || at[digits] != '.')
        return 0;
    size_t n = word_len(at + digits + 1, left - digits - 1);
    return n == KEY_SECRET ? digits + 1 + n : 0;
}

/* ── by their text ─────────────────────────────────────────────────────────────────────────── */

static bool is_known(const struct secrets *s, struct str text)
{
    for (size_t i = 0; i < s->n; i++) {
        if (str_eq(str_of(s->texts[i]), text))
            return true;
    }
    return false;
}

static void take(struct secrets *s, struct str text)
{
    const uint8_t *at = (const uint8_t *)text.at;
    if (text.len < SECRET_MIN || token_len(at, text.len) == text.len ||
        key_len(at, text.len) == text.len || memchr(text.at, '\0', text.len) || is_known(s, text))
        return;
    bool full = s->n == SECRETS_MAX;
    char **place = &s->texts[full ? s->next : s->n++];
    if (full) {
        forget(*place);
        s->next = (s->next + 1) % SECRETS_MAX;
    }
    *place = xmalloc(text.len + 1);
    (void)str_copy(*place, text.len + 1, text);
}

static size_t common(const char *secret, const uint8_t *at, size_t left)
{
    size_t n = 0;
    while (n < left && secret[n] && (uint8_t)secret[n] == at[n])
        n++;
    return n;
}

/* The longest that the text begins with, or the beginning of one. */
static size_t given_len(const struct secrets *s, const uint8_t *at, size_t left)
{
    size_t longest = 0;
    for (size_t i = 0; s && i < s->n; i++) {
        if ((uint8_t)s->texts[i][0] != *at)
            continue;
        size_t n = common(s->texts[i], at, left);
        bool enough = s->texts[i][n] == '\0' || n >= SECRET_PART_MIN;
        longest = enough && n > longest ? n : longest;
    }
    return longest;
}

/* ── names that say so ─────────────────────────────────────────────────────────────────────── */

static bool name_says_so(struct str name)
{
    static const char *const words[] = {"token",      "secret", "password", "passwd",
                                        "credential", "apikey", "private"};
    char text[128];
    if (!str_copy(text, sizeof(text), name))
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasestr(text, words[i]))
            return true;
    }
    return name.len >= 3 && strcasecmp(text + name.len - 3, "key") == 0;
}

static void take_value(struct secrets *s, const char *key, const struct json *v)
{
    if (json_kind(v) == JSON_KIND_TEXT && name_says_so(str_of(key)))
        take(s, json_get_text(v));
    else
        secrets_take_json(s, v);
}

void secrets_take_json(struct secrets *s, const struct json *v)
{
    void *at = NULL;
    const char *key;
    const struct json *value;
    if (v && json_kind(v) == JSON_KIND_ARRAY) {
        for (size_t i = 0; i < json_length(v); i++)
            secrets_take_json(s, json_item(v, i));
        return;
    }
    while (v && json_kind(v) == JSON_KIND_OBJECT && json_next(v, &at, &key, &value))
        take_value(s, key, value);
}

static void take_text(struct secrets *s, struct str name, const char *value)
{
    char why[JSON_WHY_MAX];
    if (name_says_so(name)) {
        take(s, str_of(value));
        return;
    }
    struct json *root = value[0] == '{' ? json_parse(str_of(value), why) : NULL;
    secrets_take_json(s, root);
    json_free(root);
}

/* "KEY=value", "--key=value"; the value of "--key value" is next. */
static void take_pair(struct secrets *s, const char *pair, const char *next)
{
    const char *equals = strchr(pair, '=');
    if (equals)
        take_text(s, (struct str){pair, (size_t)(equals - pair)}, equals + 1);
    else if (next)
        take_text(s, pair[0] == '-' ? str_of(pair) : STR(""), next);
}

void secrets_take_spec(struct secrets *s, const struct process_spec *spec)
{
    for (const char *const *at = spec->env; at && *at; at++)
        take_pair(s, *at, NULL);
    for (const char *const *at = spec->arguments; at && *at; at++)
        take_pair(s, *at, at[1]);
}

/* ── in what it prints ─────────────────────────────────────────────────────────────────────── */

/* It may begin in the middle of one: after what was cut off, or dropped. */
static bool is_cut_at(const struct buf *text, size_t at, size_t from, bool cut)
{
    size_t n = strlen(gap_end);
    return at == from ? cut : at >= n && memcmp(text->data + at - n, gap_end, n) == 0;
}

static size_t secret_len(const struct secrets *s, const struct buf *text, size_t at, size_t from,
                         bool cut)
{
    const uint8_t *here = text->data + at;
    size_t left = text->len - at;
    bool first = at == from || !is_word(here[-1]);
    size_t n = given_len(s, here, left);
    if (n == 0)
        n = token_len(here, left);
    if (n == 0 && first)
        n = key_len(here, left);
    if (n == 0 && is_cut_at(text, at, from, cut)) {
        size_t word = word_len(here, left);
        n = word >= SECRET_PART_MIN ? word : 0;
    }
    return n;
}

/* Bytes with which one may begin: the rest of a text, nearly all of it, is not looked at twice. */
static void mark_beginnings(const struct secrets *s, bool ret[UINT8_MAX + 1])
{
    memset(ret, 0, UINT8_MAX + 1);
    ret['e'] = true;
    for (int c = '0'; c <= '9'; c++)
        ret[c] = true;
    for (size_t i = 0; s && i < s->n; i++)
        ret[(uint8_t)s->texts[i][0]] = true;
}

void secrets_blank(const struct secrets *s, struct buf *text, size_t from, bool cut)
{
    bool begins[UINT8_MAX + 1];
    struct buf clean = {0};
    size_t kept = from; /* what is before it is in clean */
    if (from == text->len)
        return;
    mark_beginnings(s, begins);
    for (size_t at = from; at < text->len;) {
        bool may = begins[text->data[at]] || at == from || text->data[at - 1] == '\n';
        size_t n = may ? secret_len(s, text, at, from, cut) : 0;
        if (n > 0) {
            buf_append(&clean, text->data + kept, at - kept);
            buf_append(&clean, blank, strlen(blank));
            kept = at + n;
        }
        at += n > 0 ? n : 1;
    }
    buf_append(&clean, text->data + kept, text->len - kept);
    text->len = from;
    buf_append(text, clean.data, clean.len);
    buf_done(&clean);
}

/* The end is the beginning of this one. */
static size_t open_part(const char *secret, const struct buf *text)
{
    size_t n = strlen(secret) - 1;
    for (n = n < text->len ? n : text->len; n > 0; n--) {
        if (memcmp(text->data + text->len - n, secret, n) == 0)
            return n;
    }
    return 0;
}

size_t secrets_open(const struct secrets *s, const struct buf *text)
{
    size_t longest = 0;
    while (longest < text->len && is_word(text->data[text->len - longest - 1]))
        longest++;
    for (size_t i = 0; s && i < s->n; i++) {
        size_t n = open_part(s->texts[i], text);
        longest = n > longest ? n : longest;
    }
    return longest <= SECRETS_OPEN_MAX ? longest : 0;
}

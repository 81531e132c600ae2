/* Lines are made on the hot path, several for each allocation, so the time is printed once in a
 * millisecond and nothing here calls printf. */
#include "base/log_entry.h"

#include <string.h>
#include <time.h>

enum {
    STAMP_LEN = 24,   /* 2026-11-16T08:15:30.123Z */
    STAMP_MS_AT = 20, /* where its milliseconds begin */
    CLOSING_LEN = 2,  /* "}\n" */
    ESCAPE_MAX = 6,   /* "\ufffd" */
    NUMBER_DIGITS = 18,
};

/* The last time that was printed. */
struct stamp {
    int64_t wall_ms;
    int64_t seconds;
    char text[STAMP_LEN];
};

static void put_digits(char *dst, int n, int value)
{
    for (int i = n - 1; i >= 0; i--) {
        dst[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

static void print_second(struct stamp *s, int64_t seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;
    gmtime_r(&t, &tm);
    memcpy(s->text, "0000-00-00T00:00:00.000Z", STAMP_LEN);
    put_digits(s->text, 4, tm.tm_year + 1900);
    put_digits(s->text + 5, 2, tm.tm_mon + 1);
    put_digits(s->text + 8, 2, tm.tm_mday);
    put_digits(s->text + 11, 2, tm.tm_hour);
    put_digits(s->text + 14, 2, tm.tm_min);
    put_digits(s->text + 17, 2, tm.tm_sec);
    s->seconds = seconds;
}

static const char *stamp(int64_t wall_ms)
{
    static _Thread_local struct stamp last = {.wall_ms = -1, .seconds = -1};
    if (wall_ms == last.wall_ms)
        return last.text;
    if (wall_ms / 1000 != last.seconds)
        print_second(&last, wall_ms / 1000);
    put_digits(last.text + STAMP_MS_AT, 3, (int)(wall_ms % 1000));
    last.wall_ms = wall_ms;
    return last.text;
}

static const char hex_digits[16] = "0123456789abcdef";
static const char no_character[ESCAPE_MAX] = {'\\', 'u', 'f', 'f', 'f', 'd'};

/* What has a short escape, and its letter. */
static const char named[5] = {'"', '\\', '\n', '\r', '\t'};
static const char names[5] = {'"', '\\', 'n', 'r', 't'};

/* How one character of text stands between quotes: as it is, or escaped as JSON wants it. Returns
 * how many bytes it has put into dst; *ret_taken is how many of s they stand for. */
static size_t escape(struct str s, char dst[ESCAPE_MAX], size_t *ret_taken)
{
    unsigned char c = (unsigned char)s.at[0];
    size_t n = str_char_len(s);
    *ret_taken = n > 0 ? n : 1;
    if (n == 0) {
        memcpy(dst, no_character, ESCAPE_MAX);
        return ESCAPE_MAX;
    }
    const char *at = memchr(named, c, sizeof(named));
    if (at) {
        dst[0] = '\\';
        dst[1] = names[at - named];
        return 2;
    }
    /* The C1 controls U+0080 to U+009F command a terminal just as those below 0x20 do. */
    unsigned char last = (unsigned char)s.at[n - 1];
    if (c < 0x20 || c == 0x7F || (c == 0xC2 && last < 0xA0)) {
        memcpy(dst, (char[]){'\\', 'u', '0', '0', hex_digits[last >> 4], hex_digits[last & 15]}, 6);
        return ESCAPE_MAX;
    }
    memcpy(dst, s.at, n);
    return n;
}

static bool is_hex(char c)
{
    return memchr(hex_digits, c, sizeof(hex_digits)) != NULL;
}

/* Length of the escape that s begins with, when it is one that we make; 0 when it is none. */
static size_t escape_len(struct str s)
{
    if (s.len < 2 || s.at[0] != '\\')
        return 0;
    if (memchr(names, s.at[1], sizeof(names)))
        return 2;
    if (s.len < ESCAPE_MAX || s.at[1] != 'u')
        return 0;
    bool control = s.at[2] == '0' && s.at[3] == '0' && is_hex(s.at[4]) && is_hex(s.at[5]);
    return control || memcmp(s.at, no_character, ESCAPE_MAX) == 0 ? ESCAPE_MAX : 0;
}

static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* What stands between the quotes, at most max bytes; returns how many. escaped: where s has
 * escapes already, they stay. */
static size_t put_text(char *dst, size_t max, struct str s, bool escaped)
{
    size_t n = 0;
    while (s.len > 0) {
        size_t plain = str_plain_steps((struct str){s.at, s.len < max - n ? s.len : max - n});
        memcpy(dst + n, s.at, plain);
        n += plain;
        s = (struct str){s.at + plain, s.len - plain};
        while (s.len > 0 && n < max && is_plain(s.at[0])) {
            dst[n++] = *s.at++;
            s.len--;
        }
        if (s.len == 0 || n == max)
            break;
        char one[ESCAPE_MAX];
        size_t taken = escaped ? escape_len(s) : 0;
        size_t len = taken;
        if (taken > 0)
            memcpy(one, s.at, taken);
        else
            len = escape(s, one, &taken);
        if (n + len > max)
            break;
        memcpy(dst + n, one, len);
        n += len;
        s = (struct str){s.at + taken, s.len - taken};
    }
    return n;
}

static size_t quote(char *dst, struct str s)
{
    size_t n = 1 + put_text(dst + 1, LOG_QUOTE_MAX - 1, s, false);
    dst[0] = '"';
    dst[n] = '"';
    return n + 1;
}

const char *log_quote(char *dst, struct str s)
{
    dst[quote(dst, s)] = '\0';
    return dst;
}

static size_t room(const struct log_entry *e)
{
    return LOG_LINE_MAX - CLOSING_LEN - e->len;
}

static void add(struct log_entry *e, const char *text, size_t n)
{
    memcpy(e->text + e->len, text, n);
    e->len += n;
}

#define ADD(entry, literal) add(entry, literal, sizeof(literal) - 1)

void log_entry_open(struct log_entry *e, enum log_format format, int64_t wall_ms, const char *level,
                    const char *what)
{
    bool json = format == LOG_JSON;
    e->format = format;
    e->len = 0;
    json ? ADD(e, "{\"ts\":\"") : ADD(e, "ts=");
    add(e, stamp(wall_ms), STAMP_LEN);
    json ? ADD(e, "\",\"level\":\"") : ADD(e, " level=");
    add(e, level, strlen(level));
    json ? ADD(e, "\",\"msg\":\"") : ADD(e, " msg=\"");
    e->len += put_text(e->text + e->len, room(e) - 1, str_of(what), false);
    ADD(e, "\"");
}

void log_entry_close(struct log_entry *e)
{
    e->format == LOG_JSON ? ADD(e, "}\n") : ADD(e, "\n");
}

/* The value is already as it must stand there. */
static void add_pair(struct log_entry *e, struct str key, const char *value, size_t n)
{
    if (key.len + n + 4 > room(e))
        return;
    e->format == LOG_JSON ? ADD(e, ",\"") : ADD(e, " ");
    add(e, key.at, key.len);
    e->format == LOG_JSON ? ADD(e, "\":") : ADD(e, "=");
    add(e, value, n);
}

void log_int(struct log_entry *e, const char *key, int64_t value)
{
    char digits[20];
    char *at = digits + sizeof(digits);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        *--at = '-';
    add_pair(e, str_of(key), at, (size_t)(digits + sizeof(digits) - at));
}

static void add_text(struct log_entry *e, struct str key, struct str value)
{
    char quoted[LOG_QUOTE_MAX + 8];
    size_t n = quote(quoted, value);
    add_pair(e, key, quoted, n);
}

void log_text(struct log_entry *e, const char *key, struct str value)
{
    add_text(e, str_of(key), value);
}

void log_word(struct log_entry *e, const char *key, const char *value)
{
    struct str word = str_of(value);
    if (e->format == LOG_JSON)
        add_text(e, str_of(key), word);
    else
        add_pair(e, str_of(key), word.at, word.len);
}

static size_t count_digits(struct str s, size_t at)
{
    size_t n = 0;
    while (at + n < s.len && s.at[at + n] >= '0' && s.at[at + n] <= '9')
        n++;
    return n;
}

/* As JSON knows numbers: no sign but "-", no leading zero, digits on both sides of the point; and
 * not so many that a reader's 64 bits overflow. */
static bool is_number(struct str s)
{
    size_t at = s.len > 0 && s.at[0] == '-' ? 1 : 0;
    size_t n = count_digits(s, at);
    if (n == 0 || n > NUMBER_DIGITS || (n > 1 && s.at[at] == '0'))
        return false;
    at += n;
    if (at < s.len && s.at[at] == '.') {
        n = count_digits(s, at + 1);
        if (n == 0)
            return false;
        at += 1 + n;
    }
    return at == s.len;
}

static bool is_bare(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!is_plain(s.at[i]) || s.at[i] == ' ' || s.at[i] == '=')
            return false;
    }
    return s.len > 0;
}

static void add_bare(struct log_entry *e, struct str key, struct str value)
{
    bool as_it_is = e->format == LOG_JSON ? is_number(value) : is_bare(value);
    if (as_it_is)
        add_pair(e, key, value.at, value.len);
    else
        add_text(e, key, value);
}

/* inside: between its quotes, escaped by log_quote; what was not is escaped now. */
static void add_quoted(struct log_entry *e, struct str key, struct str inside)
{
    char text[LOG_LINE_MAX];
    size_t n = 1 + put_text(text + 1, sizeof(text) - 2, inside, true);
    text[0] = '"';
    text[n] = '"';
    add_pair(e, key, text, n + 1);
}

/* Length of the value that text begins with: up to its closing quote, or up to a blank. */
static size_t value_len(const char *text)
{
    if (*text != '"')
        return strcspn(text, " ");
    size_t n = 1;
    while (text[n] && text[n] != '"')
        n += text[n] == '\\' && text[n + 1] ? 2 : 1;
    return n + (text[n] ? 1 : 0);
}

static bool is_key(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return s.len > 0;
}

void log_pairs(struct log_entry *e, const char *pairs, bool cut)
{
    for (;;) {
        pairs += strspn(pairs, " ");
        if (*pairs == '\0')
            return;
        struct str key = {pairs, strcspn(pairs, " =")};
        if (cut && pairs[key.len] == '\0')
            return;
        if (!is_key(key) || pairs[key.len] != '=') {
            log_text(e, "malformed", str_of(pairs));
            return;
        }
        pairs += key.len + 1;
        struct str value = {pairs, value_len(pairs)};
        pairs += value.len;
        if (cut && *pairs == '\0')
            return;
        if (value.len >= 2 && value.at[0] == '"')
            add_quoted(e, key, (struct str){value.at + 1, value.len - 2});
        else
            add_bare(e, key, value);
    }
}

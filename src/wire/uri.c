#include "wire/uri.h"

#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that s, which begins with "%", stands for; 0 when it stands for none that is allowed. */
static int escaped_byte(struct str s)
{
    int high = s.len >= 3 ? hex_digit(s.at[1]) : -1;
    int low = s.len >= 3 ? hex_digit(s.at[2]) : -1;
    return high < 0 || low < 0 ? 0 : high * 16 + low;
}

/* How much of s stands for itself. */
static size_t plain_len(struct str s, bool query)
{
    const char *escape = s.len > 0 ? memchr(s.at, '%', s.len) : NULL;
    size_t n = escape ? (size_t)(escape - s.at) : s.len;
    const char *plus = query && n > 0 ? memchr(s.at, '+', n) : NULL;
    return plus ? (size_t)(plus - s.at) : n;
}

/* Appends s, decoded, and a NUL. In a query "+" is a space; in a path what is between two slashes
 * may hold one, so that stays escaped, as does "%" itself. */
static bool append_decoded(struct buf *out, struct str s, bool query)
{
    for (;;) {
        size_t plain = plain_len(s, query);
        buf_append(out, s.at, plain);
        s = (struct str){s.at + plain, s.len - plain};
        if (s.len == 0)
            break;
        bool escaped = s.at[0] == '%';
        size_t n = escaped ? 3 : 1;
        char c = escaped ? (char)escaped_byte(s) : ' ';
        if (c == '\0')
            return false;
        if (escaped && !query && (c == '/' || c == '%'))
            buf_append(out, c == '/' ? "%2F" : "%25", 3);
        else
            buf_append(out, &c, 1);
        s = (struct str){s.at + n, s.len - n};
    }
    buf_append(out, "", 1);
    return true;
}

void uri_segment(struct buf *out, struct str segment)
{
    while (segment.len > 0) {
        size_t plain = plain_len(segment, false);
        buf_append(out, segment.at, plain);
        segment = (struct str){segment.at + plain, segment.len - plain};
        if (segment.len == 0)
            return;
        int byte = escaped_byte(segment);
        char c = byte ? (char)byte : segment.at[0];
        size_t n = byte ? 3 : 1;
        buf_append(out, &c, 1);
        segment = (struct str){segment.at + n, segment.len - n};
    }
}

static bool append_argument(struct buf *out, struct str s)
{
    const char *equals = s.len > 0 ? memchr(s.at, '=', s.len) : NULL;
    size_t n = equals ? (size_t)(equals - s.at) : s.len;
    struct str value = equals ? (struct str){equals + 1, s.len - n - 1} : STR("");
    return append_decoded(out, (struct str){s.at, n}, true) && append_decoded(out, value, true);
}

static bool append_query(struct buf *out, const char *query)
{
    for (const char *at = query; *at;) {
        size_t n = strcspn(at, "&");
        if (n > 0 && !append_argument(out, (struct str){at, n}))
            return false;
        at += at[n] ? n + 1 : n;
    }
    return true;
}

/* Who asks through a proxy names the scheme and the authority too. */
static const char *skip_authority(const char *target)
{
    if (strncasecmp(target, "http://", 7) != 0 && strncasecmp(target, "https://", 8) != 0)
        return target;
    const char *authority = strchr(target, ':') + 3;
    return authority + strcspn(authority, "/?");
}

bool uri_parse(const char *target, struct uri *ret)
{
    const char *path = skip_authority(target);
    size_t n = strcspn(path, "?");
    struct uri u = {0};
    bool ok = append_decoded(&u.text, n > 0 ? (struct str){path, n} : STR("/"), false);
    u.args = u.text.len;
    if (!ok || !append_query(&u.text, path[n] ? path + n + 1 : "")) {
        uri_done(&u);
        *ret = u;
        return false;
    }
    *ret = u;
    return true;
}

void uri_done(struct uri *u)
{
    buf_done(&u->text);
    *u = (struct uri){0};
}

const char *uri_path(const struct uri *u)
{
    return u->text.len ? (const char *)u->text.data : "";
}

bool uri_next(const struct uri *u, size_t *at, const char **ret_key, const char **ret_value)
{
    size_t from = *at ? *at : u->args;
    if (from >= u->text.len)
        return false;
    *ret_key = (const char *)u->text.data + from;
    *ret_value = *ret_key + strlen(*ret_key) + 1;
    *at = (size_t)(*ret_value - (const char *)u->text.data) + strlen(*ret_value) + 1;
    return true;
}

static void put_escaped(struct buf *out, const char *s, const char *as_they_are)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        char text[4];
        bool plain = c < 0x80 && (isalnum(c) || strchr(as_they_are, c));
        if (!plain)
            (void)snprintf(text, sizeof(text), "%%%02X", c);
        buf_append(out, plain ? s : text, plain ? 1 : 3);
    }
}

void uri_escape(struct buf *out, const char *s)
{
    put_escaped(out, s, "-._~");
}

void uri_put(struct buf *out, const struct uri *u)
{
    const char *key = NULL;
    const char *value = NULL;
    put_escaped(out, uri_path(u), "-._~/%"); /* where "%" begins what stayed escaped */
    for (size_t at = 0, n = 0; uri_next(u, &at, &key, &value); n++) {
        buf_append(out, n == 0 ? "?" : "&", 1);
        uri_escape(out, key);
        buf_append(out, "=", 1);
        uri_escape(out, value);
    }
}

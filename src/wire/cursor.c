#include "wire/cursor.h"

#include <math.h>
#include <string.h>

struct cursor cursor_of(const void *data, size_t len)
{
    const uint8_t *p = data;
    return (struct cursor){.start = p, .at = p, .end = p ? p + len : p};
}

void cursor_fail(struct cursor *c, const char *why)
{
    if (c->error)
        return;
    c->error = why;
    c->error_offset = (size_t)(c->at - c->start);
}

bool cursor_flag(struct cursor *c)
{
    const uint8_t *at = c->at;
    uint8_t v = cursor_u8(c);
    if (v > 1) {
        c->at = at;
        cursor_fail(c, "a flag must be 0 or 1");
        return false;
    }
    return v == 1;
}

float cursor_f32(struct cursor *c, float min, float max)
{
    const uint8_t *at = c->at;
    uint32_t bits = (uint32_t)cursor_i32(c);
    float v = 0;
    memcpy(&v, &bits, sizeof(v));
    if (!c->error && (!isfinite(v) || v < min || v > max)) {
        c->at = at;
        cursor_fail(c, "number out of range");
    }
    return c->error ? 0 : v;
}

struct str cursor_str(struct cursor *c)
{
    struct str none = {"", 0};
    if (c->error)
        return none;
    size_t left = (size_t)(c->end - c->at);
    size_t limit = left < CURSOR_STR_MAX + 1 ? left : CURSOR_STR_MAX + 1;
    const uint8_t *nul = limit ? memchr(c->at, 0, limit) : NULL;
    if (!nul) {
        cursor_fail(c, left > CURSOR_STR_MAX ? "string too long" : "string without its NUL");
        return none;
    }
    struct str s = {(const char *)c->at, (size_t)(nul - c->at)};
    if (!str_is_utf8(s)) {
        cursor_fail(c, "string is not UTF-8");
        return none;
    }
    c->at = nul + 1;
    return s;
}

void cursor_end(struct cursor *c)
{
    if (!c->error && c->at != c->end)
        cursor_fail(c, "bytes left over");
}

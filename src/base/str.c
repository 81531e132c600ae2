#include "base/str.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Of eight bytes: not zero when one of them is. Then, others may seem to be. */
static uint64_t zeros_in(uint64_t v)
{
    return (v - 0x0101010101010101u) & ~v & 0x8080808080808080u;
}

size_t str_plain_steps(struct str s)
{
    size_t n = 0;
    for (; n + 8 <= s.len; n += 8) {
        uint64_t v = 0;
        memcpy(&v, s.at + n, 8);
        uint64_t low = (v - 0x2020202020202020u) & ~v & 0x8080808080808080u;
        uint64_t high = v & 0x8080808080808080u;
        if (low | high | zeros_in(v ^ 0x2222222222222222u) | zeros_in(v ^ 0x5C5C5C5C5C5C5C5Cu) |
            zeros_in(v ^ 0x7F7F7F7F7F7F7F7Fu))
            break;
    }
    return n;
}

uint64_t str_hash(uint64_t seed, struct str s)
{
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.at[i]) * 0x100000001b3u;
    return h;
}

/* Length of the sequence that starts with c, and the smallest code point it may carry; 0 = not a
 * start. */
static size_t sequence_len(unsigned char c, uint32_t *ret_min, uint32_t *ret_bits)
{
    if (c < 0x80) {
        *ret_min = 0;
        *ret_bits = c;
        return 1;
    }
    if ((c & 0xE0) == 0xC0) {
        *ret_min = 0x80;
        *ret_bits = c & 0x1Fu;
        return 2;
    }
    if ((c & 0xF0) == 0xE0) {
        *ret_min = 0x800;
        *ret_bits = c & 0x0Fu;
        return 3;
    }
    if ((c & 0xF8) == 0xF0) {
        *ret_min = 0x10000;
        *ret_bits = c & 0x07u;
        return 4;
    }
    return 0;
}

size_t str_char_len(struct str s)
{
    uint32_t min = 0;
    uint32_t point = 0;
    size_t n = s.len ? sequence_len((unsigned char)s.at[0], &min, &point) : 0;
    if (n > s.len)
        return 0;
    for (size_t k = 1; k < n; k++) {
        unsigned char c = (unsigned char)s.at[k];
        if ((c & 0xC0) != 0x80)
            return 0;
        point = (point << 6) | (c & 0x3Fu);
    }
    if (point < min || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
        return 0;
    return n;
}

bool str_is_utf8(struct str s)
{
    while (s.len > 0) {
        size_t n = str_char_len(s);
        if (n == 0)
            return false;
        s = (struct str){s.at + n, s.len - n};
    }
    return true;
}

struct str str_last(struct str s, size_t max)
{
    if (s.len <= max)
        return s;
    s = (struct str){s.at + s.len - max, max};
    while (s.len > 0 && ((unsigned char)s.at[0] & 0xC0) == 0x80)
        s = (struct str){s.at + 1, s.len - 1};
    return s;
}

size_t str_print_char(struct str s, char *dst, size_t *ret_taken)
{
    assert(s.len > 0);
    unsigned char c = (unsigned char)s.at[0];
    size_t n = str_char_len(s);
    *ret_taken = 1;
    if (c == '"' || c == '\\') {
        dst[0] = '\\';
        dst[1] = (char)c;
        return 2;
    }
    /* The C1 controls U+0080 to U+009F command a terminal just as those below 0x20 do. */
    bool c1 = n == 2 && c == 0xC2 && (unsigned char)s.at[1] < 0xA0;
    if (n == 0 || c1 || c < 0x20 || c == 0x7F) {
        static const char digits[] = "0123456789abcdef";
        memcpy(dst, (char[]){'\\', 'x', digits[c >> 4], digits[c & 15]}, 4);
        return 4;
    }
    memcpy(dst, s.at, n);
    *ret_taken = n;
    return n;
}

bool str_copy(char *dst, size_t cap, struct str s)
{
    assert(cap > 0);
    if (s.len >= cap) {
        dst[0] = '\0';
        return false;
    }
    if (s.len > 0)
        memcpy(dst, s.at, s.len);
    dst[s.len] = '\0';
    return true;
}

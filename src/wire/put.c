#include "wire/put.h"

#include "wire/cursor.h"

#include <string.h>

static void little_endian(struct buf *b, uint64_t v, size_t n)
{
    uint8_t *p = buf_extend(b, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

void put_u8(struct buf *b, uint8_t v)
{
    little_endian(b, v, 1);
}

void put_u16(struct buf *b, uint16_t v)
{
    little_endian(b, v, 2);
}

void put_i8(struct buf *b, int8_t v)
{
    little_endian(b, (uint8_t)v, 1);
}

void put_i32(struct buf *b, int32_t v)
{
    little_endian(b, (uint32_t)v, 4);
}

void put_i64(struct buf *b, int64_t v)
{
    little_endian(b, (uint64_t)v, 8);
}

void put_f32(struct buf *b, float v)
{
    uint32_t bits = 0;
    memcpy(&bits, &v, sizeof(bits));
    little_endian(b, bits, 4);
}

void put_str(struct buf *b, struct str s)
{
    size_t n = s.len ? strnlen(s.at, s.len) : 0;
    if (n > CURSOR_STR_MAX) {
        n = CURSOR_STR_MAX;
        while (n > 0 && ((unsigned char)s.at[n] & 0xC0) == 0x80)
            n--;
    }
    buf_append(b, s.at, n);
    put_u8(b, 0);
}

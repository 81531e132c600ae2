/* Appends little-endian values to a buffer: the other half of cursor.h. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline void put_u8(struct buf *b, uint8_t v)
{
    *buf_extend(b, 1) = v;
}

static inline void put_u16(struct buf *b, uint16_t v)
{
    v = htole16(v);
    memcpy(buf_extend(b, sizeof(v)), &v, sizeof(v));
}

static inline void put_i8(struct buf *b, int8_t v)
{
    put_u8(b, (uint8_t)v);
}

static inline void put_i32(struct buf *b, int32_t v)
{
    uint32_t bits = htole32((uint32_t)v);
    memcpy(buf_extend(b, sizeof(bits)), &bits, sizeof(bits));
}

static inline void put_i64(struct buf *b, int64_t v)
{
    uint64_t bits = htole64((uint64_t)v);
    memcpy(buf_extend(b, sizeof(bits)), &bits, sizeof(bits));
}

static inline void put_f32(struct buf *b, float v)
{
    int32_t bits = 0;
    memcpy(&bits, &v, sizeof(bits));
    put_i32(b, bits);
}

/* The text and a NUL; cut at CURSOR_STR_MAX bytes or at its first NUL, at a character's edge. */
void put_str(struct buf *b, struct str s);

/* Appends little-endian values to a buffer: the other half of cursor.h. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

void put_u8(struct buf *b, uint8_t v);
void put_u16(struct buf *b, uint16_t v);
void put_i8(struct buf *b, int8_t v);
void put_i32(struct buf *b, int32_t v);
void put_i64(struct buf *b, int64_t v);
void put_f32(struct buf *b, float v);

/* The text and a NUL; cut at CURSOR_STR_MAX bytes or at its first NUL, at a character's edge. */
void put_str(struct buf *b, struct str s);

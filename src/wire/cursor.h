/* Reads little-endian values from bytes somebody else owns. The first failure sticks: later reads
 * return zeros, and the caller asks cursor_failed() once at the end. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    const char *error;   /* NULL, or why the first failing read failed */
    size_t error_offset; /* where it failed, counted from start */
};

enum { CURSOR_STR_MAX = 1024 };

struct cursor cursor_of(const void *data, size_t len);
bool cursor_failed(const struct cursor *c);

/* Records the first failure; why must be a string literal. */
void cursor_fail(struct cursor *c, const char *why);

uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
int8_t cursor_i8(struct cursor *c);
int32_t cursor_i32(struct cursor *c);
int64_t cursor_i64(struct cursor *c);

/* One byte that must be 0 or 1. */
bool cursor_flag(struct cursor *c);

/* binary32; NaN, infinities and values outside [min, max] fail. */
float cursor_f32(struct cursor *c, float min, float max);

/* NUL-terminated UTF-8 of at most CURSOR_STR_MAX bytes; points into the cursor's bytes. */
struct str cursor_str(struct cursor *c);

/* n raw bytes; NULL on failure. */
const uint8_t *cursor_bytes(struct cursor *c, size_t n);

/* Fails when anything is left over. */
void cursor_end(struct cursor *c);

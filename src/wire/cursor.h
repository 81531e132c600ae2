/* Reads little-endian values from bytes somebody else owns. The first failure sticks: later reads
 * return zeros, and the caller asks cursor_failed() once at the end. */
#pragma once

#include "base/str.h"

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    const char *error;   /* NULL, or why the first failing read failed */
    size_t error_offset; /* where it failed, counted from start */
};

enum { CURSOR_STR_MAX = 1024 };

struct cursor cursor_of(const void *data, size_t len);

static inline bool cursor_failed(const struct cursor *c)
{
    return c->error != NULL;
}

/* Records the first failure; why must be a string literal. */
void cursor_fail(struct cursor *c, const char *why);

/* n raw bytes; NULL on failure. This and the integers are inline because every frame and every
 * stored row is read through them, a few bytes at a time. */
static inline const uint8_t *cursor_bytes(struct cursor *c, size_t n)
{
    if (c->error)
        return NULL;
    if ((size_t)(c->end - c->at) < n) {
        cursor_fail(c, "payload too short");
        return NULL;
    }
    const uint8_t *p = c->at;
    c->at += n;
    return p;
}

static inline uint8_t cursor_u8(struct cursor *c)
{
    const uint8_t *p = cursor_bytes(c, 1);
    return p ? *p : 0;
}

static inline uint16_t cursor_u16(struct cursor *c)
{
    uint16_t v = 0;
    const uint8_t *p = cursor_bytes(c, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return le16toh(v);
}

static inline int8_t cursor_i8(struct cursor *c)
{
    return (int8_t)cursor_u8(c);
}

static inline int32_t cursor_i32(struct cursor *c)
{
    uint32_t v = 0;
    const uint8_t *p = cursor_bytes(c, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return (int32_t)le32toh(v);
}

static inline int64_t cursor_i64(struct cursor *c)
{
    uint64_t v = 0;
    const uint8_t *p = cursor_bytes(c, sizeof(v));
    if (p)
        memcpy(&v, p, sizeof(v));
    return (int64_t)le64toh(v);
}

/* One byte that must be 0 or 1. */
bool cursor_flag(struct cursor *c);

/* binary32; NaN, infinities and values outside [min, max] fail. */
float cursor_f32(struct cursor *c, float min, float max);

/* NUL-terminated UTF-8 of at most CURSOR_STR_MAX bytes; points into the cursor's bytes. */
struct str cursor_str(struct cursor *c);

/* Fails when anything is left over. */
void cursor_end(struct cursor *c);

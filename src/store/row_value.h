/* Values on their way from a database into a row: refused when they cannot be that field's. Pure;
 * owns nothing. */
#pragma once

#include "base/str.h"
#include "core/row.h"

/* For i8, i32 and i64. False when the number does not fit. */
bool row_take_int(const struct row_field *f, void *row, int64_t v);

/* For text, bytes and long. A long one stays borrowed. False when it is too long, and for text with
 * a NUL in it or that is not UTF-8. */
bool row_take_bytes(const struct row_field *f, void *row, struct str v);

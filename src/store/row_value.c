#include "store/row_value.h"

#include <string.h>

bool row_take_int(const struct row_field *f, void *row, int64_t v)
{
    void *at = (char *)row + f->offset;
    if (f->type == ROW_i8) {
        *(int8_t *)at = (int8_t)v;
        return v >= INT8_MIN && v <= INT8_MAX;
    }
    if (f->type == ROW_i32) {
        *(int32_t *)at = (int32_t)v;
        return v >= INT32_MIN && v <= INT32_MAX;
    }
    if (f->type != ROW_i64)
        return false;
    *(int64_t *)at = v;
    return true;
}

bool row_take_bytes(const struct row_field *f, void *row, struct str v)
{
    char *at = (char *)row + f->offset;
    if (v.len > f->size)
        return false;
    if (f->type == ROW_long) {
        *(struct str *)(void *)at = v.len > 0 ? v : (struct str){"", 0};
        return true;
    }
    if (f->type == ROW_text) {
        if (v.len >= f->size || (v.len > 0 && memchr(v.at, '\0', v.len)) || !str_is_utf8(v))
            return false;
        at[v.len] = '\0';
    } else if (f->type == ROW_bytes) {
        *(uint16_t *)(void *)((char *)row + f->len_offset) = (uint16_t)v.len;
    } else {
        return false;
    }
    if (v.len > 0)
        memcpy(at, v.at, v.len);
    return true;
}

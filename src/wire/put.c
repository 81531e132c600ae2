#include "wire/put.h"

#include "wire/cursor.h"

#include <string.h>

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

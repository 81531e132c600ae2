#include "wire/names.h"

#include <assert.h>

void names_add(struct buf *list, struct str name)
{
    assert(name.len <= UINT8_MAX);
    *buf_extend(list, 1) = (uint8_t)name.len;
    buf_append(list, name.at, name.len);
}

bool names_next(struct str *list, struct str *ret)
{
    size_t len = list->len > 0 ? (uint8_t)list->at[0] : 0;
    if (list->len < 1 + len)
        return false;
    *ret = (struct str){list->at + 1, len};
    *list = (struct str){list->at + 1 + len, list->len - 1 - len};
    return true;
}

int names_count(struct str list)
{
    int n = 0;
    struct str name;
    while (names_next(&list, &name))
        n++;
    return list.len == 0 ? n : -1;
}

bool names_have(struct str list, struct str name)
{
    struct str one;
    while (names_next(&list, &one)) {
        if (str_eq(one, name))
            return true;
    }
    return false;
}

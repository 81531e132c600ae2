#include "wire/tar.h"

#include <stdio.h>
#include <string.h>

/* ustar, POSIX.1-1988: where each field begins, and how long it is. */
enum {
    NAME_AT = 0,
    MODE_AT = 100,
    UID_AT = 108,
    GID_AT = 116,
    SIZE_AT = 124,
    TIME_AT = 136,
    SUM_AT = 148,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    SHORT = 8,
    LONG = 12,
};
static const char magic[8] = {'u', 's', 't', 'a', 'r', 0, '0', '0'};
static const int64_t octal_end = INT64_C(1) << 33;

/* Octal digits and a NUL; what is longer stands there in binary, as GNU's tar has it. */
static void put_number(uint8_t *at, int len, int64_t value)
{
    if (value >= 0 && value < octal_end && (len == LONG || value < 1 << 21)) {
        for (int i = len - 2; i >= 0; i--, value >>= 3)
            at[i] = (uint8_t)('0' + (value & 7));
        at[len - 1] = 0;
        return;
    }
    for (int i = len - 1; i > 0; i--, value >>= 8)
        at[i] = (uint8_t)value;
    at[0] = 0x80;
}

static bool get_number(const uint8_t *at, int len, int64_t *ret)
{
    int64_t value = 0;
    if (at[0] == 0x80) {
        for (int i = 1; i < len; i++) {
            if (value >> 54)
                return false;
            value = value << 8 | at[i];
        }
        *ret = value;
        return true;
    }
    int i = 0;
    for (; i < len && at[i] >= '0' && at[i] <= '7'; i++)
        value = value << 3 | (at[i] - '0');
    *ret = value;
    return i > 0 && (i == len || at[i] == 0 || at[i] == ' ');
}

/* All bytes, with blanks where the sum itself stands. */
static int64_t sum_of(const uint8_t block[TAR_BLOCK])
{
    int64_t sum = 0;
    for (int i = 0; i < TAR_BLOCK; i++)
        sum += i >= SUM_AT && i < SUM_AT + SHORT ? ' ' : block[i];
    return sum;
}

void tar_encode(const struct tar_entry *entry, uint8_t ret[TAR_BLOCK])
{
    memset(ret, 0, TAR_BLOCK);
    memcpy(ret + NAME_AT, entry->name, strnlen(entry->name, TAR_NAME_MAX - 1));
    put_number(ret + MODE_AT, SHORT, 0600);
    put_number(ret + UID_AT, SHORT, 0);
    put_number(ret + GID_AT, SHORT, 0);
    put_number(ret + SIZE_AT, LONG, entry->size);
    put_number(ret + TIME_AT, LONG, entry->modified_s);
    ret[TYPE_AT] = '0';
    memcpy(ret + MAGIC_AT, magic, sizeof(magic));
    put_number(ret + SUM_AT, SHORT - 1, sum_of(ret));
    ret[SUM_AT + SHORT - 1] = ' ';
}

static bool is_zero(const uint8_t block[TAR_BLOCK])
{
    for (int i = 0; i < TAR_BLOCK; i++) {
        if (block[i])
            return false;
    }
    return true;
}

bool tar_decode(const uint8_t block[TAR_BLOCK], struct tar_entry *ret)
{
    int64_t sum = 0;
    memset(ret, 0, sizeof(*ret));
    if (is_zero(block))
        return true;
    bool plain = block[TYPE_AT] == '0' && block[PREFIX_AT] == 0 &&
                 memcmp(block + MAGIC_AT, magic, sizeof(magic)) == 0;
    bool named = block[NAME_AT] && memchr(block + NAME_AT, 0, TAR_NAME_MAX);
    if (!plain || !named || !get_number(block + SUM_AT, SHORT, &sum) || sum != sum_of(block) ||
        !get_number(block + SIZE_AT, LONG, &ret->size) ||
        !get_number(block + TIME_AT, LONG, &ret->modified_s))
        return false;
    memcpy(ret->name, block + NAME_AT, TAR_NAME_MAX);
    return true;
}

#include "api/moment.h"

#include "base/date.h"

static int64_t unit_ms(char letter)
{
    switch (letter) {
    case 's':
        return 1000;
    case 'm':
        return 60 * 1000;
    case 'h':
        return 3600 * 1000;
    case 'd':
        return 86400 * 1000;
    default:
        return 0;
    }
}

bool moment_parse(struct str text, int64_t now_ms, int64_t *ret_ms)
{
    enum { DIGITS_MAX = 6 };
    int64_t n = 0;
    size_t i = 0;
    if (date_parse(text, ret_ms))
        return true;
    for (; i < text.len && i < DIGITS_MAX && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        n = n * 10 + (text.at[i] - '0');
    if (i == 0 || i + 1 != text.len || unit_ms(text.at[i]) == 0)
        return false;
    *ret_ms = now_ms - n * unit_ms(text.at[i]);
    *ret_ms = *ret_ms < 0 ? 0 : *ret_ms;
    return true;
}

#include "base/date.h"

#include <stdbool.h>
#include <stdio.h>

static const int64_t last_s = 253402300799; /* the last second of 9999 */

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int64_t days_of_month(int64_t year, int month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* 400 years always have as many days, so no more than those are walked. */
static int64_t take_years(int64_t *days)
{
    enum { DAYS_400 = 146097 };
    int64_t year = 1970 + *days / DAYS_400 * 400;
    *days %= DAYS_400;
    for (int64_t n; *days >= (n = 365 + is_leap(year)); year++)
        *days -= n;
    return year;
}

const char *date_print(int64_t wall_ms, char dst[DATE_SIZE])
{
    int64_t s = wall_ms < 0 ? 0 : wall_ms / 1000;
    s = s > last_s ? last_s : s;
    int64_t days = s / 86400;
    int64_t year = take_years(&days);
    int month = 1;
    for (int64_t n; days >= (n = days_of_month(year, month)); month++)
        days -= n;
    s %= 86400;
    (void)snprintf(dst, DATE_SIZE, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)year, month,
                   (int)days + 1, (int)(s / 3600), (int)(s / 60 % 60), (int)(s % 60));
    return dst;
}

/* The number of n digits at text[at]; false when one is no digit or it is above most. */
static bool take(struct str text, size_t at, size_t n, int64_t most, int64_t *ret)
{
    *ret = 0;
    for (size_t i = at; i < at + n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        *ret = *ret * 10 + (text.at[i] - '0');
    }
    return *ret <= most;
}

static int64_t days_before(int64_t year, int64_t month, int64_t day)
{
    int64_t days = day - 1;
    for (int64_t y = 1970; y < year; y++)
        days += 365 + is_leap(y);
    for (int m = 1; m < month; m++)
        days += days_of_month(year, m);
    return days;
}

bool date_parse(struct str text, int64_t *ret_wall_ms)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    int64_t year, month, day, hour, minute, second;
    int64_t ms = 0;
    bool precise = text.len == sizeof(form) - 1;
    if (!precise && text.len != 20)
        return false;
    for (size_t i = 0; i < 19; i++) {
        if (form[i] != 'd' && text.at[i] != form[i])
            return false;
    }
    if (text.at[text.len - 1] != 'Z' || (precise && text.at[19] != '.') ||
        !take(text, 0, 4, 9999, &year) || !take(text, 5, 2, 12, &month) ||
        !take(text, 8, 2, 31, &day) || !take(text, 11, 2, 23, &hour) ||
        !take(text, 14, 2, 59, &minute) || !take(text, 17, 2, 59, &second) ||
        (precise && !take(text, 20, 3, 999, &ms)))
        return false;
    if (year < 1970 || month < 1 || day < 1 || day > days_of_month(year, (int)month))
        return false;
    int64_t s = (days_before(year, month, day) * 24 + hour) * 3600 + minute * 60 + second;
    *ret_wall_ms = s * 1000 + ms;
    return true;
}

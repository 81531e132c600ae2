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

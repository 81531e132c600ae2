#include "cli/when.h"

#include "base/date.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* The largest unit that is at least one, and how many. The past is cut: "1 m ago" is true for a
 * minute. What is to come is rounded: thirty days are "in 30 d" a second later too. */
static int64_t in_units(int64_t seconds, bool round, const char **ret_unit)
{
    static const struct {
        int64_t seconds;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    size_t i = 0;
    for (; i < 3; i++) {
        int64_t lower = round ? units[i + 1].seconds : 1;
        if ((seconds + lower / 2) / lower * lower >= units[i].seconds)
            break;
    }
    *ret_unit = units[i].unit;
    return (seconds + (round ? units[i].seconds / 2 : 0)) / units[i].seconds;
}

const char *when_ago(int64_t wall_ms, int64_t now_ms, char dst[WHEN_MAX])
{
    const char *unit;
    int64_t ago_ms = now_ms - wall_ms;
    int64_t n = ago_ms < 0 ? in_units((500 - ago_ms) / 1000, true, &unit)
                           : in_units(ago_ms / 1000, false, &unit);
    if (n == 0)
        snprintf(dst, WHEN_MAX, "now");
    else
        snprintf(dst, WHEN_MAX, ago_ms < 0 ? "in %" PRId64 " %s" : "%" PRId64 " %s ago", n, unit);
    return dst;
}

const char *when_lasted(int64_t seconds, char dst[WHEN_MAX])
{
    if (seconds < 60)
        snprintf(dst, WHEN_MAX, "%" PRId64 " s", seconds);
    else if (seconds < 3600)
        snprintf(dst, WHEN_MAX, "%" PRId64 " m %" PRId64 " s", seconds / 60, seconds % 60);
    else if (seconds < 86400)
        snprintf(dst, WHEN_MAX, "%" PRId64 " h %" PRId64 " m", seconds / 3600, seconds / 60 % 60);
    else
        snprintf(dst, WHEN_MAX, "%" PRId64 " d %" PRId64 " h", seconds / 86400,
                 seconds / 3600 % 24);
    return dst;
}

bool when_last(struct str text, int64_t now_ms, int64_t *ret_wall_ms)
{
    enum { DAY_MS = 86400 * 1000 };
    char date[DATE_SIZE];
    char whole[DATE_SIZE];
    if (date_parse(text, ret_wall_ms))
        return true;
    if (text.len != 5 && text.len != 8)
        return false;
    (void)snprintf(whole, sizeof(whole), "%.11s%.*s%sZ", date_print(now_ms, date), (int)text.len,
                   text.at, text.len == 5 ? ":00" : "");
    if (!date_parse(str_of(whole), ret_wall_ms))
        return false;
    if (*ret_wall_ms > now_ms)
        *ret_wall_ms -= DAY_MS;
    return true;
}

const char *when_clock(int64_t wall_ms, char dst[WHEN_MAX])
{
    int64_t s = wall_ms / 1000 % 86400;
    snprintf(dst, WHEN_MAX, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60,
             s % 60);
    return dst;
}

const char *when_date(int64_t wall_ms, char dst[WHEN_MAX])
{
    time_t s = (time_t)(wall_ms / 1000);
    struct tm tm;
    (void)strftime(dst, WHEN_MAX, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&s, &tm));
    return dst;
}

#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool when_parse(struct str text, int64_t *ret_wall_ms)
{
    char copy[WHEN_MAX];
    struct tm t = {0};
    int ms = 0;
    int end = 0;
    if (!str_copy(copy, sizeof(copy), text))
        return false;
    /* NOLINTNEXTLINE(cert-err34-c): what does not fit the pattern is refused by its count */
    int n = sscanf(copy, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
                   &t.tm_hour, &t.tm_min, &t.tm_sec, &ms, &end);
    if (n != 7 || end == 0 || (size_t)end != text.len)
        return false;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    *ret_wall_ms = (int64_t)timegm(&t) * 1000 + ms;
    return true;
}

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

const char *when_clock(int64_t wall_ms, char dst[WHEN_MAX])
{
    int64_t s = wall_ms / 1000 % 86400;
    snprintf(dst, WHEN_MAX, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, s / 3600, s / 60 % 60,
             s % 60);
    return dst;
}

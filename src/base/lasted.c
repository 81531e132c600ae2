#include "base/lasted.h"

#include <inttypes.h>
#include <stdio.h>

const char *lasted(char dst[LASTED_MAX], int64_t ms)
{
    int64_t s = ms / 1000;
    if (s < 120)
        (void)snprintf(dst, LASTED_MAX, "%" PRId64 " s", s);
    else if (s < 2 * 3600)
        (void)snprintf(dst, LASTED_MAX, "%" PRId64 " min", s / 60);
    else if (s < 48 * 3600)
        (void)snprintf(dst, LASTED_MAX, "%" PRId64 " h", s / 3600);
    else
        (void)snprintf(dst, LASTED_MAX, "%" PRId64 " days", s / (24 * 3600));
    return dst;
}

#include "cli/console_link.h"

#include <string.h>

void console_link_put(struct buf *out, const char *url, struct str token)
{
    static const char between[] = "/#token=";
    buf_append(out, url, strlen(url));
    buf_append(out, between, sizeof(between) - 1);
    buf_append(out, token.at, token.len);
}

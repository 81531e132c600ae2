#include "api/console.h"

#include "base/buf.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Nothing is loaded from elsewhere, no script or style stands in the page itself, and nobody may
 * show it in a frame of his. So a name with HTML in it, should it ever get into the page, does
 * nothing. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const struct console_file *console_find(const char *path)
{
    for (size_t i = 0; i < n_console_files; i++) {
        if (strcmp(console_files[i].path, path) == 0)
            return &console_files[i];
    }
    return NULL;
}

/* "gzip;q=0" is a no; any other weight is a yes, as we have nothing better to choose from. */
static bool is_refused(const char *weight)
{
    weight += strspn(weight, " \t");
    if (*weight != ';')
        return false;
    weight += 1 + strspn(weight + 1, " \t");
    if (strncasecmp(weight, "q=0", 3) != 0)
        return false;
    weight += 3;
    weight += *weight == '.';
    return strspn(weight, "0") == strcspn(weight, ", \t;");
}

static bool takes_gzip(const struct http_request *http)
{
    const char *at = http_header(http, "Accept-Encoding");
    while (at && *at) {
        at += strspn(at, ", \t");
        size_t len = strcspn(at, ",; \t");
        if (len == 4 && strncasecmp(at, "gzip", 4) == 0)
            return !is_refused(at + len);
        at += strcspn(at, ",");
    }
    return false;
}

void console_answer(const struct console_file *f, struct http_request *http)
{
    bool packed = takes_gzip(http);
    const char *known = http_header(http, "If-None-Match");
    bool has_it = known && strstr(known, f->etag);
    const struct http_field head[] = {
        {"Content-Security-Policy", policy},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Vary", "Accept-Encoding"},
        {"ETag", f->etag},
        {"Cache-Control", f->kept ? "public, max-age=31536000, immutable" : "no-cache"},
        {packed ? "Content-Encoding" : NULL, "gzip"},
        {NULL, NULL},
    };
    http_answer_shared(http, has_it ? 304 : 200, f->content_type,
                       has_it   ? (struct str){"", 0}
                       : packed ? f->packed
                                : f->plain,
                       head);
}

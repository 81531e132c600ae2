/* Targets of requests: what is decoded and escaped again decodes to the same. */
#include "fuzz/fuzz.h"
#include "wire/uri.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append_escaped(struct buf *out, const char *text)
{
    char escape[4];
    for (; *text; text++) {
        (void)snprintf(escape, sizeof(escape), "%%%02X", (unsigned char)*text);
        buf_append(out, escape, 3);
    }
}

/* Slashes between segments are no part of them, and what is still escaped stays so. */
static void append_path(struct buf *out, const char *path)
{
    for (; *path; path++) {
        char one[2] = {*path};
        if (*path == '/' || *path == '%')
            buf_append(out, path, 1);
        else
            append_escaped(out, one);
        if (*path == '%') {
            assert(strncmp(path, "%2F", 3) == 0 || strncmp(path, "%25", 3) == 0);
            buf_append(out, path + 1, 2);
            path += 2;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *target = strndup((const char *)data, size);
    struct buf again = {0};
    struct uri u;
    struct uri v;
    size_t at = 0;
    const char *key = NULL;
    const char *value = NULL;
    if (target && uri_parse(target, &u)) {
        append_path(&again, uri_path(&u));
        for (char mark = '?'; uri_next(&u, &at, &key, &value); mark = '&') {
            buf_append(&again, &mark, 1);
            append_escaped(&again, key);
            buf_append(&again, "=", 1);
            append_escaped(&again, value);
        }
        buf_append(&again, "", 1);
        bool ok = uri_parse((const char *)again.data, &v);
        assert(ok && v.args == u.args && v.text.len == u.text.len);
        assert(memcmp(u.text.data, v.text.data, u.text.len) == 0);
        uri_done(&v);
        uri_done(&u);
    }
    buf_done(&again);
    free(target);
    return 0;
}

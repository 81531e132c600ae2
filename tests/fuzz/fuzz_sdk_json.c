/* The SDK's own JSON reader beside Muster's: what Muster takes, the SDK takes, and finds the same
 * in it. (The SDK takes a little more: large numbers, and members twice where it does not look.) */
#include "base/json.h"
#include "fuzz/fuzz.h"
#include "muster_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || memchr(data, 0, size))
        return 0;
    char *text = NULL;
    char why[JSON_WHY_MAX];
    char found[8];
    int n = asprintf(&text, "{\"x\":%.*s,\"ok\":\"y\\u0065s\"}", (int)size, (const char *)data);
    assert(n > 0);
    struct json *v = json_parse((struct str){text, (size_t)n}, why);
    bool there = muster_room_setting(text, "ok", found, sizeof(found));
    assert(!v || !json_member(v, "ok") || there);
    assert(!there || strcmp(found, "yes") == 0);
    char *value = malloc(size + 1);
    const struct json *x = v ? json_member(v, "x") : NULL;
    bool is_text = x && json_kind(x) == JSON_KIND_TEXT;
    there = muster_room_setting(text, "x", value, size + 1);
    assert(!is_text || (there && str_eq(json_get_text(x), str_of(value))));
    free(value);
    free(text);
    json_free(v);
    return 0;
}

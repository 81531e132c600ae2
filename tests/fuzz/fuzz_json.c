/* The JSON reader and writer: what is read and written again reads as the same. */
#include "base/json.h"
#include "fuzz/fuzz.h"

#include <string.h>

static void write_again(struct json_writer *w, const struct json *v, int depth)
{
    const char *key = NULL;
    const struct json *value = NULL;
    assert(depth <= JSON_DEPTH_MAX);
    switch (json_kind(v)) {
    case JSON_KIND_NULL:
        json_none(w);
        break;
    case JSON_KIND_BOOL:
        json_bool(w, json_get_bool(v));
        break;
    case JSON_KIND_INT:
        json_int(w, json_get_int(v));
        break;
    case JSON_KIND_REAL:
        json_number(w, json_get_number(v), 17);
        break;
    case JSON_KIND_TEXT:
        assert(str_is_utf8(json_get_text(v)));
        json_text(w, json_get_text(v));
        break;
    case JSON_KIND_ARRAY:
        json_open_array(w);
        for (size_t i = 0; i < json_length(v); i++)
            write_again(w, json_item(v, i), depth + 1);
        json_close_array(w);
        break;
    case JSON_KIND_OBJECT:
        json_open_array(w); /* its keys may need escapes, which a key of ours never does */
        for (void *at = NULL; json_next(v, &at, &key, &value);) {
            assert(json_member(v, key) == value);
            json_text(w, str_of(key));
            write_again(w, value, depth + 1);
        }
        json_close_array(w);
        break;
    }
}

/* Into out; false when text is no JSON. */
static bool read_and_write(struct str text, struct buf *out)
{
    char why[JSON_WHY_MAX] = "";
    struct json *v = json_parse(text, why);
    assert(v || why[0]);
    assert(str_is_utf8(str_of(why)));
    if (!v)
        return false;
    write_again(&(struct json_writer){.out = out}, v, 0);
    json_free(v);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf once = {0};
    struct buf twice = {0};
    if (read_and_write((struct str){(const char *)data, size}, &once)) {
        bool again = read_and_write((struct str){(const char *)once.data, once.len}, &twice);
        assert(again && once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    }
    buf_done(&once);
    buf_done(&twice);
    return 0;
}

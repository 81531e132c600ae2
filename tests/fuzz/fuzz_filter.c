/* Filters: the first line is the filter, the rest the settings it is asked about. What one lets
 * through, a filter with one condition more may stop, never the reverse. */
#include "fuzz/fuzz.h"
#include "wire/filter.h"

#include <string.h>

static const struct json *settings_of(struct json **document, struct str text)
{
    char why[JSON_WHY_MAX];
    *document = json_parse(text, why);
    return *document && json_kind(*document) == JSON_KIND_OBJECT ? *document : NULL;
}

/* The same filter with a condition that never holds. */
static struct filter *stricter(struct str text)
{
    char why[FILTER_WHY_MAX];
    struct buf b = {0};
    struct json *own = json_parse(text, why);
    struct json *more = json_parse(STR("{\"@none\":[]}"), why);
    json_any_over(&(struct json_writer){.out = &b}, own, more);
    struct filter *f = filter_parse((struct str){(const char *)b.data, b.len}, why);
    json_free(own);
    json_free(more);
    buf_done(&b);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[FILTER_WHY_MAX] = "";
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t len = end ? (size_t)(end - data) : size;
    struct str text = {(const char *)data, len};
    struct filter *f = filter_parse(text, why);
    assert(f || why[0]);
    assert(str_is_utf8(str_of(why)));
    struct json *document = NULL;
    const struct json *settings =
        f && end ? settings_of(&document, (struct str){(const char *)end + 1, size - len - 1})
                 : NULL;
    if (settings) {
        struct filter *none = stricter(text); /* NULL: it had as many conditions as can be */
        (void)filter_matches(f, settings);
        assert(!none || !filter_matches(none, settings));
        filter_free(none);
    }
    json_free(document);
    filter_free(f);
    return 0;
}

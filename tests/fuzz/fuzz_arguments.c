/* Arguments as JSON and as a form: whatever comes, what is taken fits its field, and every refusal
 * says what is wrong. */
#include "api/arguments.h"
#include "base/err.h"
#include "fuzz/fuzz.h"

#include <string.h>

static const char *const words[] = {"a", "b", NULL};

static const struct operation sample = {
    .name = "sample",
    .method = HTTP_POST,
    .path = "/sample",
    .fields = {{.name = "i", .kind = FIELD_ID},
               {.name = "n", .kind = FIELD_INT, .min = -5, .max = 5},
               {.name = "t", .kind = FIELD_TEXT, .min = 1, .max = 8},
               {.name = "w", .kind = FIELD_WORD, .words = words},
               {.name = "l", .kind = FIELD_LIST, .min = 1, .max = 3},
               {.name = "b", .kind = FIELD_BOOL},
               {.name = "o", .kind = FIELD_JSON, .max = 64},
               {.name = "s", .kind = FIELD_OBJECTS, .min = 1, .max = 3},
               {.name = "m", .kind = FIELD_LISTS, .min = 0, .max = 3}},
};

static void check(const struct arguments *a)
{
    const struct argument *v = a->values;
    assert(!v[0].given || v[0].number > 0);
    assert(v[1].number >= -5 && v[1].number <= 5);
    assert(!v[2].given || (v[2].text.len >= 1 && v[2].text.len <= 8 && str_is_utf8(v[2].text)));
    assert(v[4].n_items <= 3 && (!v[4].given || v[4].n_items > 0));
    assert(v[5].number == 0 || v[5].number == 1);
    assert(v[6].text.len <= 64);
    assert(v[7].n_items <= 3);
    assert(v[8].n_items <= 3);
}

static void put(struct str body, int (*way)(struct arguments *a, struct str body))
{
    struct arguments a;
    uint8_t digest[ARGUMENTS_DIGEST];
    arguments_init(&a, &sample);
    int err = way(&a, body);
    if (err == 0)
        err = arguments_complete(&a);
    if (err == 0)
        check(&a);
    else
        assert(err == ERR_BAD_ARGUMENT && a.why[0] && str_is_utf8(str_of(a.why)));
    arguments_digest(&a, digest);
    arguments_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    put(body, arguments_put_json);
    put(body, arguments_put_form);
    return 0;
}

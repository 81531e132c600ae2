/* Settings: what is taken is its own one form, and merging with nothing changes nothing. */
#include "fuzz/fuzz.h"
#include "wire/settings.h"

#include <string.h>

static struct str text_of(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->len};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[SETTINGS_WHY_MAX] = "";
    struct buf once = {0};
    struct buf twice = {0};
    if (settings_take((struct str){(const char *)data, size}, &once, why)) {
        assert(once.len == 0 && why[0] && str_is_utf8(str_of(why)));
    } else {
        assert(once.len <= SETTINGS_MAX && !memchr(once.data, '\0', once.len));
        assert(settings_take(text_of(&once), &twice, why) == 0);
        assert(str_eq(text_of(&once), text_of(&twice)));
        buf_clear(&twice);
        assert(settings_merge(STR("{}"), text_of(&once), &twice, why) == 0);
        assert(str_eq(text_of(&once), text_of(&twice)));
        buf_clear(&twice);
        assert(settings_merge(text_of(&once), text_of(&once), &twice, why) == 0);
        assert(str_eq(text_of(&once), text_of(&twice)));
    }
    buf_done(&once);
    buf_done(&twice);
    return 0;
}

/* Changes as the journal keeps them: what decodes encodes to the same bytes, and what is only
 * passed over is judged alike. */
#include "core/row.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct change ch;
    struct buf out = {0};
    struct cursor c = cursor_of(data, size);
    struct cursor passing = c;
    struct change_name name;
    while (change_decode(&c, &ch)) {
        assert(change_skip(&passing, &name) && passing.at == c.at);
        assert(name.kind == ch.kind && name.gone == ch.gone && name.id == ch.id);
        if (ch.gone)
            change_encode_gone(&out, ch.kind, ch.id);
        else
            change_encode_row(&out, ch.kind, &ch.row_id);
        assert(out.len == (size_t)(c.at - data));
    }
    assert(out.len == 0 || memcmp(out.data, data, out.len) == 0);
    assert(cursor_failed(&c) || out.len == size);
    assert(!change_skip(&passing, &name) && cursor_failed(&passing) == cursor_failed(&c));
    buf_done(&out);
    return 0;
}

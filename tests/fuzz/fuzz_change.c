/* Changes as the journal keeps them: what decodes encodes to the same bytes. */
#include "core/row.h"
#include "fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct change ch;
    struct buf out = {0};
    struct cursor c = cursor_of(data, size);
    while (change_decode(&c, &ch)) {
        if (ch.gone)
            change_encode_gone(&out, ch.kind, ch.id);
        else
            change_encode_row(&out, ch.kind, &ch.row_id);
        assert(out.len == (size_t)(c.at - data));
    }
    assert(out.len == 0 || memcmp(out.data, data, out.len) == 0);
    assert(cursor_failed(&c) || out.len == size);
    buf_done(&out);
    return 0;
}

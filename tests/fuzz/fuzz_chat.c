/* Every message decoder: the first byte chooses the message, the rest is its payload. What decodes
 * can be printed and encodes to the same bytes. */
#include "fuzz/fuzz.h"
#include "wire/chat.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size - 1 > FRAME_MAX - 2)
        return 0;
    struct chat_message m;
    struct buf out = {0};
    struct cursor c = cursor_of(data + 1, size - 1);
    chat_decode(&c, (enum chat_kind)(data[0] % CHAT_KINDS), &m);
    assert(c.error_offset <= size - 1);
    if (!cursor_failed(&c)) {
        chat_encode(&out, &m);
        assert(out.len == FRAME_HEADER + size - 1);
        assert(memcmp(out.data + FRAME_HEADER, data + 1, size - 1) == 0);
        buf_clear(&out);
        chat_dump(&out, &m);
        assert(!memchr(out.data, '\n', out.len));
        assert(str_is_utf8((struct str){(const char *)out.data, out.len}));
    }
    buf_done(&out);
    return 0;
}

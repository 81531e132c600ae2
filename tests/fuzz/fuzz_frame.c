/* The splitter gives the same frames however the stream is cut. The first byte chooses the limit
 * and the rhythm of the cuts. */
#include "fuzz/fuzz.h"
#include "wire/frame.h"
#include "wire/put.h"

#include <string.h>

/* Feeds the stream in pieces of 1..step bytes and writes down all that comes out. */
static enum frame_result split(const uint8_t *data, size_t size, size_t limit, size_t step,
                               struct buf *out)
{
    struct buf in = {0};
    enum frame_result r = FRAME_PARTIAL;
    for (size_t at = 0, piece = 1; at < size && r == FRAME_PARTIAL; piece = piece % step + 1) {
        size_t n = piece < size - at ? piece : size - at;
        struct frame f;
        buf_append(&in, data + at, n);
        at += n;
        while ((r = frame_next(in.data, in.len, limit, &f)) == FRAME_OK) {
            assert(f.total == f.payload_len + FRAME_HEADER && f.total <= limit + 2);
            size_t mark = frame_open(out, f.code);
            buf_append(out, f.payload, f.payload_len);
            frame_close(out, mark);
            buf_consume(&in, f.total);
        }
    }
    buf_done(&in);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    size_t limit = data[0] & 1 ? FRAME_HANDSHAKE_MAX : FRAME_MAX;
    struct buf whole = {0};
    struct buf pieces = {0};
    enum frame_result a = split(data + 1, size - 1, limit, SIZE_MAX, &whole);
    enum frame_result b = split(data + 1, size - 1, limit, (size_t)(data[0] >> 1) + 1, &pieces);
    assert(a == b && whole.len == pieces.len);
    assert(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
    assert(whole.len == 0 || memcmp(whole.data, data + 1, whole.len) == 0);
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}

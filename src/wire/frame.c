#include "wire/frame.h"

#include "wire/put.h"

#include <assert.h>

enum frame_result frame_next(const uint8_t *data, size_t len, size_t limit, struct frame *ret)
{
    if (len < 2)
        return FRAME_PARTIAL;
    size_t length = (size_t)data[0] | (size_t)data[1] << 8;
    if (length < 2)
        return FRAME_TOO_SHORT;
    if (length > limit)
        return FRAME_TOO_LONG;
    if (len < 2 + length)
        return FRAME_PARTIAL;
    *ret = (struct frame){
        .code = (uint16_t)(data[2] | data[3] << 8),
        .payload = data + FRAME_HEADER,
        .payload_len = length - 2,
        .total = 2 + length,
    };
    return FRAME_OK;
}

const char *frame_error(enum frame_result r)
{
    switch (r) {
    case FRAME_TOO_SHORT:
        return "frame length below 2";
    case FRAME_TOO_LONG:
        return "frame too long";
    case FRAME_OK:
    case FRAME_PARTIAL:
        break;
    }
    return NULL;
}

size_t frame_open(struct buf *b, uint16_t code)
{
    size_t mark = b->len;
    put_u16(b, 0);
    put_u16(b, code);
    return mark;
}

void frame_close(struct buf *b, size_t mark)
{
    size_t length = b->len - mark - 2;
    assert(length <= FRAME_MAX);
    b->data[mark] = (uint8_t)length;
    b->data[mark + 1] = (uint8_t)(length >> 8);
}

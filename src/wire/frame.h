/* Frames of the chat protocol: u16 length, u16 command, payload; length counts command + payload.
 */
#pragma once

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_HEADER = 4,
    FRAME_MAX = 16384,          /* largest value of the length field */
    FRAME_HANDSHAKE_MAX = 1024, /* the same before a peer has said who it is */
};

struct frame {
    uint16_t code;
    const uint8_t *payload; /* points into the bytes given to frame_next */
    size_t payload_len;
    size_t total; /* bytes to skip to reach the next frame */
};

enum frame_result {
    FRAME_OK,
    FRAME_PARTIAL,   /* more bytes are needed */
    FRAME_TOO_SHORT, /* the length field is below 2 */
    FRAME_TOO_LONG,  /* the length field is above the limit */
};

/* Looks at the front of data; judges the length as soon as its two bytes are there, so that a bad
 * peer cannot make us wait for (or buffer) what we would refuse. ret is written only on FRAME_OK.
 */
enum frame_result frame_next(const uint8_t *data, size_t len, size_t limit, struct frame *ret);

/* What to tell the peer; NULL for FRAME_OK and FRAME_PARTIAL. */
const char *frame_error(enum frame_result r);

/* Opens a frame at the end of b and returns its mark for frame_close, which fills in the length. */
size_t frame_open(struct buf *b, uint16_t code);
void frame_close(struct buf *b, size_t mark);

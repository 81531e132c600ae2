#include "wire/frame.h"

#include "lib/unit.h"
#include "wire/put.h"

#include <stdlib.h>
#include <string.h>

static void an_empty_ping(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x02, 0x00, 0x00, 0x2A};
    struct frame f;
    assert_int_equal(frame_next(bytes, sizeof(bytes), FRAME_MAX, &f), FRAME_OK);
    assert_int_equal(f.code, 0x2A00);
    assert_int_equal(f.payload_len, 0);
    assert_int_equal(f.total, 4);
    assert_ptr_equal(f.payload, bytes + 4);
}

static void too_little_is_partial_and_writes_nothing(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x05, 0x00, 0x34, 0x12, 'a', 'b', 'c'};
    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct frame f = {.code = 0xBEEF};
        uint8_t *copy = malloc(len ? len : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, len);
        assert_int_equal(frame_next(copy, len, FRAME_MAX, &f), FRAME_PARTIAL);
        assert_int_equal(f.code, 0xBEEF);
        free(copy);
    }
    struct frame f;
    assert_int_equal(frame_next(bytes, sizeof(bytes), FRAME_MAX, &f), FRAME_OK);
    assert_int_equal(f.code, 0x1234);
    assert_int_equal(f.payload_len, 3);
    assert_memory_equal(f.payload, "abc", 3);
    assert_int_equal(frame_next(NULL, 0, FRAME_MAX, &f), FRAME_PARTIAL);
}

static enum frame_result judge(unsigned length, size_t limit)
{
    const uint8_t bytes[] = {(uint8_t)length, (uint8_t)(length >> 8)};
    struct frame f;
    return frame_next(bytes, 2, limit, &f);
}

/* The two bytes of the length are enough to refuse: nothing bad is ever waited for. */
static void the_length_is_judged_at_once(void **state)
{
    (void)state;
    assert_int_equal(judge(0, FRAME_MAX), FRAME_TOO_SHORT);
    assert_int_equal(judge(1, FRAME_MAX), FRAME_TOO_SHORT);
    assert_int_equal(judge(2, FRAME_MAX), FRAME_PARTIAL);
    assert_int_equal(judge(16384, FRAME_MAX), FRAME_PARTIAL);
    assert_int_equal(judge(16385, FRAME_MAX), FRAME_TOO_LONG);
    assert_int_equal(judge(65535, FRAME_MAX), FRAME_TOO_LONG);
    assert_int_equal(judge(1024, FRAME_HANDSHAKE_MAX), FRAME_PARTIAL);
    assert_int_equal(judge(1025, FRAME_HANDSHAKE_MAX), FRAME_TOO_LONG);
}

static void every_refusal_has_a_sentence(void **state)
{
    (void)state;
    assert_null(frame_error(FRAME_OK));
    assert_null(frame_error(FRAME_PARTIAL));
    assert_string_equal(frame_error(FRAME_TOO_SHORT), "frame length below 2");
    assert_string_equal(frame_error(FRAME_TOO_LONG), "frame too long");
}

static void the_largest_frame_passes(void **state)
{
    (void)state;
    struct buf b = {0};
    size_t mark = frame_open(&b, 0x1011);
    memset(buf_extend(&b, 16382), 7, 16382);
    frame_close(&b, mark);
    assert_int_equal(b.len, 16386);
    struct frame f;
    assert_int_equal(frame_next(b.data, b.len - 1, FRAME_MAX, &f), FRAME_PARTIAL);
    assert_int_equal(frame_next(b.data, b.len, FRAME_MAX, &f), FRAME_OK);
    assert_int_equal(f.payload_len, 16382);
    assert_int_equal(f.total, 16386);
    buf_done(&b);
}

static void open_and_close_leave_what_is_before_alone(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_append(&b, "before", 6);
    size_t mark = frame_open(&b, 0x2005);
    put_i64(&b, 1);
    frame_close(&b, mark);
    mark = frame_open(&b, 0x2A00);
    frame_close(&b, mark);
    assert_int_equal(b.len, 22);
    assert_memory_equal(b.data, "before\x0A\x00\x05\x20\x01\0\0\0\0\0\0\0\x02\x00\x00\x2A", 22);
    buf_done(&b);
}

enum { FRAMES = 7 };

/* Frames of different sizes, joined; the n-th has code 0x1000 + n and its payload is n's letter. */
static void write_stream(struct buf *b)
{
    static const size_t sizes[FRAMES] = {0, 1, 0, 5, 253, 2, 40};
    for (size_t i = 0; i < FRAMES; i++) {
        size_t mark = frame_open(b, (uint16_t)(0x1000 + i));
        memset(buf_extend(b, sizes[i]), 'a' + (int)i, sizes[i]);
        frame_close(b, mark);
    }
}

/* Takes what is complete from the front; returns how many frames have come out in all. */
static int drain(struct buf *in, int seen)
{
    struct frame f;
    while (frame_next(in->data, in->len, FRAME_MAX, &f) == FRAME_OK) {
        assert_int_equal(f.code, 0x1000 + seen);
        for (size_t k = 0; k < f.payload_len; k++)
            assert_int_equal(f.payload[k], 'a' + seen);
        buf_consume(in, f.total);
        seen++;
    }
    return seen;
}

static void split_at_every_byte_the_frames_are_the_same(void **state)
{
    (void)state;
    struct buf stream = {0};
    write_stream(&stream);
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct buf in = {0};
        buf_append(&in, stream.data, cut);
        int seen = drain(&in, 0);
        buf_append(&in, stream.data + cut, stream.len - cut);
        assert_int_equal(drain(&in, seen), FRAMES);
        assert_int_equal(in.len, 0);
        buf_done(&in);
    }
    buf_done(&stream);
}

static void byte_by_byte_the_frames_are_the_same(void **state)
{
    (void)state;
    struct buf stream = {0};
    struct buf in = {0};
    write_stream(&stream);
    int seen = 0;
    for (size_t i = 0; i < stream.len; i++) {
        buf_append(&in, stream.data + i, 1);
        seen = drain(&in, seen);
    }
    assert_int_equal(seen, FRAMES);
    assert_int_equal(in.len, 0);
    buf_done(&in);
    buf_done(&stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_ping),
        cmocka_unit_test(too_little_is_partial_and_writes_nothing),
        cmocka_unit_test(the_length_is_judged_at_once),
        cmocka_unit_test(every_refusal_has_a_sentence),
        cmocka_unit_test(the_largest_frame_passes),
        cmocka_unit_test(open_and_close_leave_what_is_before_alone),
        cmocka_unit_test(split_at_every_byte_the_frames_are_the_same),
        cmocka_unit_test(byte_by_byte_the_frames_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

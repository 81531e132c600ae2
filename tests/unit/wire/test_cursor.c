#include "wire/cursor.h"

#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

/* The bytes in memory of exactly their size, so that a sanitizer sees a read past the end. */
struct exact {
    uint8_t *bytes;
    struct cursor c;
};

static struct exact exact(const void *bytes, size_t len)
{
    struct exact e = {.bytes = malloc(len ? len : 1)};
    assert_non_null(e.bytes);
    if (len > 0)
        memcpy(e.bytes, bytes, len);
    e.c = cursor_of(e.bytes, len);
    return e;
}

static void expect_failure(const struct cursor *c, const char *why, size_t offset)
{
    assert_true(cursor_failed(c));
    assert_string_equal(c->error, why);
    assert_int_equal(c->error_offset, offset);
}

static void numbers_are_little_endian(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0xFE, 0x34, 0x12, 0x80, 0x78, 0x56, 0x34, 0x92, 0x08, 0x07,
                             0x06, 0x05, 0x04, 0x03, 0x02, 0x81, 0x00, 0x00, 0xC8, 0x42};
    struct exact e = exact(bytes, sizeof(bytes));
    assert_int_equal(cursor_u8(&e.c), 0xFE);
    assert_int_equal(cursor_u16(&e.c), 0x1234);
    assert_int_equal(cursor_i8(&e.c), -128);
    assert_int_equal(cursor_i32(&e.c), (int32_t)0x92345678);
    assert_true(cursor_i64(&e.c) == (int64_t)0x8102030405060708);
    assert_true(cursor_f32(&e.c, 0, 100) == 100.0f);
    cursor_end(&e.c);
    assert_false(cursor_failed(&e.c));
    free(e.bytes);
}

static void too_short_fails_at_its_start_and_reads_zero(void **state)
{
    (void)state;
    const uint8_t bytes[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t len = 1; len < 9; len++) {
        struct exact e = exact(bytes, len);
        assert_int_equal(cursor_u8(&e.c), 1);
        assert_true(cursor_i64(&e.c) == 0);
        expect_failure(&e.c, "payload too short", 1);
        free(e.bytes);
    }
}

static void the_first_failure_sticks(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 2, 'h', 'i', 0};
    struct exact e = exact(bytes, sizeof(bytes));
    assert_true(cursor_flag(&e.c));
    assert_false(cursor_flag(&e.c));
    expect_failure(&e.c, "a flag must be 0 or 1", 1);
    assert_int_equal(cursor_u8(&e.c), 0);
    assert_int_equal(cursor_i32(&e.c), 0);
    assert_true(cursor_f32(&e.c, 5, 6) == 0.0f);
    assert_int_equal(cursor_str(&e.c).len, 0);
    assert_non_null(cursor_str(&e.c).at);
    assert_null(cursor_bytes(&e.c, 0));
    cursor_fail(&e.c, "something else");
    cursor_end(&e.c);
    expect_failure(&e.c, "a flag must be 0 or 1", 1);
    free(e.bytes);
}

static void flags_are_zero_or_one(void **state)
{
    (void)state;
    for (int v = 0; v < 256; v++) {
        uint8_t byte = (uint8_t)v;
        struct exact e = exact(&byte, 1);
        assert_int_equal(cursor_flag(&e.c), v == 1);
        assert_int_equal(cursor_failed(&e.c), v > 1);
        free(e.bytes);
    }
}

static void read_percent(uint32_t bits, bool good)
{
    uint8_t bytes[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                        (uint8_t)(bits >> 24)};
    struct exact e = exact(bytes, 4);
    float v = cursor_f32(&e.c, 0, 100);
    assert_int_equal(!cursor_failed(&e.c), good);
    if (good)
        assert_memory_equal(&v, &bits, 4);
    else
        expect_failure(&e.c, "number out of range", 0);
    free(e.bytes);
}

static void floats_outside_their_range_fail(void **state)
{
    (void)state;
    read_percent(0x00000000, true);  /* 0 */
    read_percent(0x80000000, true);  /* -0 */
    read_percent(0x00000001, true);  /* the smallest subnormal */
    read_percent(0x42C80000, true);  /* 100 */
    read_percent(0x42C80001, false); /* the next above 100 */
    read_percent(0x42CA0000, false); /* 101 */
    read_percent(0x80000001, false); /* the next below 0 */
    read_percent(0xBF800000, false); /* -1 */
    read_percent(0x7F800000, false); /* infinity */
    read_percent(0xFF800000, false); /* -infinity */
    read_percent(0x7FC00000, false); /* quiet NaN */
    read_percent(0xFFC00000, false); /* negative NaN */
    read_percent(0x7F800001, false); /* signalling NaN */
    read_percent(0x7F7FFFFF, false); /* the largest finite */
}

static void strings_end_with_their_nul(void **state)
{
    (void)state;
    struct exact e = exact("abc\0\0d\xC3\xA9", 9);
    struct str s = cursor_str(&e.c);
    assert_int_equal(s.len, 3);
    assert_ptr_equal(s.at, e.bytes);
    assert_memory_equal(s.at, "abc", 4);
    s = cursor_str(&e.c);
    assert_int_equal(s.len, 0);
    s = cursor_str(&e.c);
    assert_memory_equal(s.at, "d\xC3\xA9", 4);
    cursor_end(&e.c);
    assert_false(cursor_failed(&e.c));
    free(e.bytes);
}

static void a_string_without_nul_fails(void **state)
{
    (void)state;
    struct exact e = exact("abc", 3);
    (void)cursor_str(&e.c);
    expect_failure(&e.c, "string without its NUL", 0);
    free(e.bytes);
    e = exact("", 0);
    (void)cursor_str(&e.c);
    expect_failure(&e.c, "string without its NUL", 0);
    free(e.bytes);
}

static void a_string_holds_1024_bytes_and_no_more(void **state)
{
    (void)state;
    char bytes[1030];
    memset(bytes, 'x', sizeof(bytes));
    bytes[1024] = '\0';
    struct exact e = exact(bytes, 1025);
    assert_int_equal(cursor_str(&e.c).len, 1024);
    assert_false(cursor_failed(&e.c));
    free(e.bytes);

    bytes[1024] = 'x';
    bytes[1025] = '\0';
    e = exact(bytes, 1026);
    (void)cursor_str(&e.c);
    expect_failure(&e.c, "string too long", 0);
    free(e.bytes);

    e = exact(bytes, 1024);
    (void)cursor_str(&e.c);
    expect_failure(&e.c, "string without its NUL", 0);
    free(e.bytes);
}

static void a_string_must_be_utf8(void **state)
{
    (void)state;
    struct exact e = exact("\x01ok\xC3\0", 5);
    (void)cursor_u8(&e.c);
    (void)cursor_str(&e.c);
    expect_failure(&e.c, "string is not UTF-8", 1);
    free(e.bytes);
    /* A sequence may not borrow its missing byte from beyond the NUL. */
    e = exact("\xC3\0\xA9\0", 4);
    (void)cursor_str(&e.c);
    expect_failure(&e.c, "string is not UTF-8", 0);
    free(e.bytes);
}

static void raw_bytes_are_all_there_or_none(void **state)
{
    (void)state;
    struct exact e = exact("abcd", 4);
    assert_ptr_equal(cursor_bytes(&e.c, 4), e.bytes);
    assert_non_null(cursor_bytes(&e.c, 0));
    assert_false(cursor_failed(&e.c));
    assert_null(cursor_bytes(&e.c, 1));
    expect_failure(&e.c, "payload too short", 4);
    free(e.bytes);
    e = exact("abcd", 4);
    assert_null(cursor_bytes(&e.c, SIZE_MAX));
    expect_failure(&e.c, "payload too short", 0);
    free(e.bytes);
}

static void left_over_bytes_fail_at_the_end(void **state)
{
    (void)state;
    struct exact e = exact("\x01\x02\x03", 3);
    (void)cursor_u16(&e.c);
    cursor_end(&e.c);
    expect_failure(&e.c, "bytes left over", 2);
    free(e.bytes);
}

static void no_bytes_at_all_are_a_cursor_too(void **state)
{
    (void)state;
    struct cursor c = cursor_of(NULL, 0);
    cursor_end(&c);
    assert_false(cursor_failed(&c));
    (void)cursor_u8(&c);
    expect_failure(&c, "payload too short", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(too_short_fails_at_its_start_and_reads_zero),
        cmocka_unit_test(the_first_failure_sticks),
        cmocka_unit_test(flags_are_zero_or_one),
        cmocka_unit_test(floats_outside_their_range_fail),
        cmocka_unit_test(strings_end_with_their_nul),
        cmocka_unit_test(a_string_without_nul_fails),
        cmocka_unit_test(a_string_holds_1024_bytes_and_no_more),
        cmocka_unit_test(a_string_must_be_utf8),
        cmocka_unit_test(raw_bytes_are_all_there_or_none),
        cmocka_unit_test(left_over_bytes_fail_at_the_end),
        cmocka_unit_test(no_bytes_at_all_are_a_cursor_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "wire/put.h"

#include "lib/unit.h"
#include "wire/cursor.h"

#include <string.h>

static void expect(struct buf *b, const void *bytes, size_t len)
{
    assert_int_equal(b->len, len);
    assert_memory_equal(b->data, bytes, len);
    buf_clear(b);
}

static void numbers_are_little_endian(void **state)
{
    (void)state;
    struct buf b = {0};
    put_u8(&b, 0xFE);
    expect(&b, "\xFE", 1);
    put_u16(&b, 0x1234);
    expect(&b, "\x34\x12", 2);
    put_i8(&b, -128);
    expect(&b, "\x80", 1);
    put_i32(&b, -2);
    expect(&b, "\xFE\xFF\xFF\xFF", 4);
    put_i32(&b, INT32_MIN);
    expect(&b, "\x00\x00\x00\x80", 4);
    put_i64(&b, 0x0102030405060708);
    expect(&b, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    put_i64(&b, INT64_MIN);
    expect(&b, "\x00\x00\x00\x00\x00\x00\x00\x80", 8);
    put_f32(&b, 100.0f);
    expect(&b, "\x00\x00\xC8\x42", 4);
    put_f32(&b, -0.0f);
    expect(&b, "\x00\x00\x00\x80", 4);
    buf_done(&b);
}

static void strings_get_their_nul(void **state)
{
    (void)state;
    struct buf b = {0};
    put_str(&b, STR("abc"));
    expect(&b, "abc", 4);
    put_str(&b, STR(""));
    expect(&b, "", 1);
    put_str(&b, (struct str){NULL, 0});
    expect(&b, "", 1);
    buf_done(&b);
}

/* A NUL inside would make the reader see a shorter string and stray bytes behind it. */
static void a_string_ends_at_its_first_nul(void **state)
{
    (void)state;
    struct buf b = {0};
    put_str(&b, STR("ab\0cd"));
    expect(&b, "ab", 3);
    put_str(&b, STR("\0"));
    expect(&b, "", 1);
    buf_done(&b);
}

/* Whatever is put can be read again: 1,024 bytes at most, never half a character. */
static void long_strings_are_cut_at_a_characters_edge(void **state)
{
    (void)state;
    static const char *const fills[] = {"x", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x8E\xAE"};
    char text[1400];
    struct buf b = {0};
    for (size_t f = 0; f < 4; f++) {
        size_t width = strlen(fills[f]);
        for (size_t lead = 0; lead < 4; lead++) {
            memset(text, 'a', lead);
            size_t len = lead;
            for (; len < 1200; len += width)
                memcpy(text + len, fills[f], width);
            put_str(&b, (struct str){text, len});
            struct cursor c = cursor_of(b.data, b.len);
            struct str s = cursor_str(&c);
            cursor_end(&c);
            assert_false(cursor_failed(&c));
            assert_in_range(s.len, 1024 - width + 1, 1024);
            assert_memory_equal(s.at, text, s.len);
            buf_clear(&b);
        }
    }
    memset(text, 'x', sizeof(text));
    put_str(&b, (struct str){text, 1024});
    assert_int_equal(b.len, 1025);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(strings_get_their_nul),
        cmocka_unit_test(a_string_ends_at_its_first_nul),
        cmocka_unit_test(long_strings_are_cut_at_a_characters_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

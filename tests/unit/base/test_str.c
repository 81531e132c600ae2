#include "base/str.h"

#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

/* Judged in memory of exactly its size, so that a sanitizer sees a read past the end. */
static bool is_utf8(const char *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    bool good = str_is_utf8((struct str){copy, len});
    free(copy);
    return good;
}

#define GOOD(literal) assert_true(is_utf8(literal, sizeof(literal) - 1))
#define BAD(literal) assert_false(is_utf8(literal, sizeof(literal) - 1))

static void utf8_first_and_last_of_each_length(void **state)
{
    (void)state;
    assert_true(str_is_utf8((struct str){NULL, 0}));
    GOOD("");
    GOOD("plain");
    GOOD("\x7F");
    GOOD("\xC2\x80");
    GOOD("\xDF\xBF");
    GOOD("\xE0\xA0\x80");
    GOOD("\xEF\xBF\xBF");
    GOOD("\xF0\x90\x80\x80");
    GOOD("\xF4\x8F\xBF\xBF");
    GOOD("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8E\xAEz");
}

static void utf8_surrogates_and_their_neighbours(void **state)
{
    (void)state;
    GOOD("\xED\x9F\xBF");
    BAD("\xED\xA0\x80");
    BAD("\xED\xAF\xBF");
    BAD("\xED\xB0\x80");
    BAD("\xED\xBF\xBF");
    GOOD("\xEE\x80\x80");
}

static void utf8_overlong_forms(void **state)
{
    (void)state;
    BAD("\xC0\x80");
    BAD("\xC0\xAF");
    BAD("\xC1\xBF");
    BAD("\xE0\x80\x80");
    BAD("\xE0\x9F\xBF");
    BAD("\xF0\x80\x80\x80");
    BAD("\xF0\x8F\xBF\xBF");
}

static void utf8_beyond_the_last_code_point(void **state)
{
    (void)state;
    BAD("\xF4\x90\x80\x80");
    BAD("\xF5\x80\x80\x80");
    BAD("\xF7\xBF\xBF\xBF");
    BAD("\xF8\x88\x80\x80\x80");
    BAD("\xFC\x84\x80\x80\x80\x80");
    BAD("\xFE");
    BAD("\xFF");
}

static void utf8_cut_sequences_and_stray_bytes(void **state)
{
    (void)state;
    BAD("\x80");
    BAD("\xBF");
    BAD("ok\x80");
    BAD("\xC3");
    BAD("\xE2\x82");
    BAD("\xE2");
    BAD("\xF0\x9F\x8E");
    BAD("\xF0\x9F");
    BAD("\xF0");
    BAD("\xC3(");
    BAD("\xE2(\xAC");
    BAD("\xE2\x82(");
    BAD("\xF0\x9F\x8E(");
    BAD("\xC3\xA9\xA9");
}

/* The same judgement written the slow way: encode every code point and look for the bytes. */
static size_t encode(uint32_t point, unsigned char *out)
{
    if (point < 0x80) {
        out[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (unsigned char)(0xC0 | point >> 6);
        out[1] = (unsigned char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (unsigned char)(0xE0 | point >> 12);
        out[1] = (unsigned char)(0x80 | (point >> 6 & 0x3F));
        out[2] = (unsigned char)(0x80 | (point & 0x3F));
        return 3;
    }
    out[0] = (unsigned char)(0xF0 | point >> 18);
    out[1] = (unsigned char)(0x80 | (point >> 12 & 0x3F));
    out[2] = (unsigned char)(0x80 | (point >> 6 & 0x3F));
    out[3] = (unsigned char)(0x80 | (point & 0x3F));
    return 4;
}

static void utf8_every_code_point(void **state)
{
    (void)state;
    unsigned char bytes[4];
    for (uint32_t point = 0; point < 0x110000; point++) {
        size_t n = encode(point, bytes);
        bool surrogate = point >= 0xD800 && point <= 0xDFFF;
        assert_int_equal(str_is_utf8((struct str){(char *)bytes, n}), !surrogate);
    }
}

static void utf8_every_pair_of_bytes(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char bytes[2] = {(char)a, (char)b};
            bool good = (a < 0x80 && b < 0x80) || (a >= 0xC2 && a <= 0xDF && (b & 0xC0) == 0x80);
            assert_int_equal(is_utf8(bytes, 2), good);
        }
    }
}

static void a_character_is_measured_where_it_begins(void **state)
{
    (void)state;
    assert_int_equal(str_char_len(STR("")), 0);
    assert_int_equal(str_char_len(STR("a\xFF")), 1);
    assert_int_equal(str_char_len(STR("\xC3\xA9z")), 2);
    assert_int_equal(str_char_len(STR("\xE2\x82\xAC")), 3);
    assert_int_equal(str_char_len(STR("\xF0\x9F\x8E\xAE!")), 4);
    assert_int_equal(str_char_len(STR("\xA9")), 0);
    assert_int_equal(str_char_len(STR("\xE2\x82")), 0);
}

static void expect_printed(struct str s, const char *text, size_t taken)
{
    char dst[STR_PRINTED_MAX];
    size_t got_taken = 0;
    assert_int_equal(str_print_char(s, dst, &got_taken), strlen(text));
    assert_memory_equal(dst, text, strlen(text));
    assert_int_equal(got_taken, taken);
}

static void printed_characters_are_harmless(void **state)
{
    (void)state;
    expect_printed(STR("ab"), "a", 1);
    expect_printed(STR("\xF0\x9F\x8E\xAE!"), "\xF0\x9F\x8E\xAE", 4);
    expect_printed(STR("\""), "\\\"", 1);
    expect_printed(STR("\\n"), "\\\\", 1);
    expect_printed(STR("\n"), "\\x0a", 1);
    expect_printed(STR("\x7F"), "\\x7f", 1);
    expect_printed(STR("\xC2\x9F"), "\\xc2", 1);
    expect_printed(STR("\xC2\xA0"), "\xC2\xA0", 2);
    expect_printed(STR("\xE2\x82"), "\\xe2", 1);
}

static void equality_needs_length_and_bytes(void **state)
{
    (void)state;
    assert_true(str_eq(STR("abc"), str_of("abc")));
    assert_false(str_eq(STR("abc"), STR("abd")));
    assert_false(str_eq(STR("abc"), STR("ab")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_true(str_eq(STR(""), (struct str){NULL, 0}));
    assert_true(str_eq(str_of(NULL), STR("")));
}

static void copy_fits_with_its_nul_or_not_at_all(void **state)
{
    (void)state;
    char dst[4];
    assert_true(str_copy(dst, sizeof(dst), STR("abc")));
    assert_string_equal(dst, "abc");
    assert_false(str_copy(dst, sizeof(dst), STR("abcd")));
    assert_string_equal(dst, "");
    assert_true(str_copy(dst, 1, STR("")));
    assert_string_equal(dst, "");
    assert_false(str_copy(dst, 1, STR("a")));
    assert_true(str_copy(dst, sizeof(dst), (struct str){NULL, 0}));
    assert_string_equal(dst, "");
}

/* The published vectors of FNV-1a. */
static void the_last_bytes_begin_with_a_character(void **state)
{
    (void)state;
    struct str nothing = str_last((struct str){0}, 3);
    assert_null(nothing.at);
    assert_int_equal(nothing.len, 0);
    assert_true(str_eq(str_last(STR("abc"), 3), STR("abc")));
    assert_true(str_eq(str_last(STR("abc"), 2), STR("bc")));
    assert_true(str_eq(str_last(STR("abc"), 0), STR("")));
    assert_true(str_eq(str_last(STR("a\u20ac!"), 4), STR("\u20ac!")));
    assert_true(str_eq(str_last(STR("a\u20ac!"), 3), STR("!")));
    assert_true(str_eq(str_last(STR("a\u20ac!"), 2), STR("!")));
    assert_true(str_eq(str_last(STR("\x80\x80"), 1), STR("")));
}

static void hash_is_fnv_1a(void **state)
{
    (void)state;
    assert_true(str_hash(0, STR("")) == 0xcbf29ce484222325u);
    assert_true(str_hash(0, STR("a")) == 0xaf63dc4c8601ec8cu);
    assert_true(str_hash(0, STR("foobar")) == 0x85944171f73967e8u);
    assert_true(str_hash(1, STR("a")) != str_hash(0, STR("a")));
}

/* Each byte at each place: the step it is in counts when it is plain, and only then. */
static void plain_steps_end_before_what_is_not(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        bool plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
        for (size_t at = 0; at < 24; at++) {
            char text[26];
            memset(text, 'a', sizeof(text));
            text[at] = (char)c;
            size_t want = plain ? 24 : at / 8 * 8;
            assert_int_equal(str_plain_steps((struct str){text, 26}), want);
        }
    }
    assert_int_equal(str_plain_steps(STR("seven b")), 0);
    assert_int_equal(str_plain_steps(STR("")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_bytes_begin_with_a_character),
        cmocka_unit_test(hash_is_fnv_1a),
        cmocka_unit_test(plain_steps_end_before_what_is_not),
        cmocka_unit_test(utf8_first_and_last_of_each_length),
        cmocka_unit_test(utf8_surrogates_and_their_neighbours),
        cmocka_unit_test(utf8_overlong_forms),
        cmocka_unit_test(utf8_beyond_the_last_code_point),
        cmocka_unit_test(utf8_cut_sequences_and_stray_bytes),
        cmocka_unit_test(utf8_every_code_point),
        cmocka_unit_test(utf8_every_pair_of_bytes),
        cmocka_unit_test(a_character_is_measured_where_it_begins),
        cmocka_unit_test(printed_characters_are_harmless),
        cmocka_unit_test(equality_needs_length_and_bytes),
        cmocka_unit_test(copy_fits_with_its_nul_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

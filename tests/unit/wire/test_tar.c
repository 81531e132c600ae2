#include "lib/unit.h"
#include "wire/tar.h"

#include <stdio.h>
#include <string.h>

static void encode(uint8_t block[TAR_BLOCK], const char *name, int64_t size)
{
    struct tar_entry e = {.size = size, .modified_s = 1700000000};
    (void)snprintf(e.name, sizeof(e.name), "%s", name);
    tar_encode(&e, block);
}

static void a_head_has_the_bytes_of_ustar(void **state)
{
    (void)state;
    uint8_t block[TAR_BLOCK];
    encode(block, "state.db", 229376);
    assert_string_equal((char *)block, "state.db");
    assert_string_equal((char *)block + 100, "0000600");
    assert_string_equal((char *)block + 124, "00000700000");
    assert_string_equal((char *)block + 136, "14524770400");
    assert_int_equal(block[156], '0');
    assert_memory_equal(block + 257, "ustar\00000", 8);
}

static void what_was_encoded_is_decoded(void **state)
{
    (void)state;
    static const int64_t sizes[] = {
        0, 1, 511, 512, (INT64_C(1) << 33) - 1, INT64_C(1) << 33, INT64_C(1) << 50};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint8_t block[TAR_BLOCK];
        struct tar_entry e;
        encode(block, "deployments/x", sizes[i]);
        assert_true(tar_decode(block, &e));
        assert_string_equal(e.name, "deployments/x");
        assert_int_equal(e.size, sizes[i]);
        assert_int_equal(e.modified_s, 1700000000);
    }
}

static void zeros_are_the_end(void **state)
{
    (void)state;
    uint8_t block[TAR_BLOCK] = {0};
    struct tar_entry e;
    assert_true(tar_decode(block, &e));
    assert_string_equal(e.name, "");
}

static void one_wrong_bit_is_noticed(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * 345; bit++) {
        uint8_t block[TAR_BLOCK];
        struct tar_entry e;
        encode(block, "secret", 32);
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool sum = bit / 8 >= 148 && bit / 8 < 156; /* its own bits may be blanks instead of NULs */
        if (tar_decode(block, &e))
            assert_true(sum && e.size == 32);
    }
}

static void only_plain_files_are_taken(void **state)
{
    (void)state;
    static const char types[] = {'1', '2', '5', 'x', 'L', 0};
    for (size_t i = 0; i < sizeof(types); i++) {
        uint8_t block[TAR_BLOCK];
        struct tar_entry e;
        encode(block, "secret", 32);
        int sum = 0;
        block[156] = (uint8_t)types[i];
        for (int k = 0; k < TAR_BLOCK; k++)
            sum += k >= 148 && k < 156 ? ' ' : block[k];
        (void)snprintf((char *)block + 148, 7, "%06o", (unsigned)sum & 0777777u);
        assert_false(tar_decode(block, &e));
    }
}

static void padding_fills_the_block(void **state)
{
    (void)state;
    assert_int_equal(tar_padding(0), 0);
    assert_int_equal(tar_padding(1), 511);
    assert_int_equal(tar_padding(511), 1);
    assert_int_equal(tar_padding(512), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_has_the_bytes_of_ustar),
        cmocka_unit_test(what_was_encoded_is_decoded),
        cmocka_unit_test(zeros_are_the_end),
        cmocka_unit_test(one_wrong_bit_is_noticed),
        cmocka_unit_test(only_plain_files_are_taken),
        cmocka_unit_test(padding_fills_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

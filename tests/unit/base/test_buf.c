#include "base/buf.h"

#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

static void grows_and_keeps_its_bytes(void **state)
{
    (void)state;
    struct buf b = {0};
    for (int i = 0; i < 5000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        buf_append(&b, &byte, 1);
    }
    assert_int_equal(b.len, 5000);
    assert_true(b.cap >= b.len);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(b.data[i], (uint8_t)(i * 7));
    buf_done(&b);
    assert_null(b.data);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.cap, 0);
}

static void clear_keeps_the_memory(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_append(&b, "hello", 5);
    size_t cap = b.cap;
    buf_clear(&b);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.cap, cap);
    buf_append(&b, "x", 1);
    assert_memory_equal(b.data, "x", 1);
    buf_done(&b);
}

static void nothing_appended_to_nothing_is_nothing(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_append(&b, NULL, 0);
    (void)buf_extend(&b, 0);
    buf_consume(&b, 0);
    assert_int_equal(b.len, 0);
    buf_done(&b);
}

static void consume_drops_the_front(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_append(&b, "abcdef", 6);
    buf_consume(&b, 0);
    assert_int_equal(b.len, 6);
    buf_consume(&b, 2);
    assert_int_equal(b.len, 4);
    assert_memory_equal(b.data, "cdef", 4);
    buf_append(&b, "gh", 2);
    assert_memory_equal(b.data, "cdefgh", 6);
    buf_consume(&b, 6);
    assert_int_equal(b.len, 0);
    buf_done(&b);
}

/* A pipe seen from both ends: what is consumed is what was appended, in order. */
static void random_appends_and_consumes_are_a_queue(void **state)
{
    (void)state;
    struct dice dice = {20240501};
    struct buf b = {0};
    uint64_t written = 0;
    uint64_t read = 0;
    for (int i = 0; i < 20000; i++) {
        size_t n = dice_below(&dice, 90);
        if (dice_below(&dice, 2) == 0) {
            uint8_t *at = buf_extend(&b, n);
            for (size_t k = 0; k < n; k++)
                at[k] = (uint8_t)(written++ * 31);
        } else {
            n = n < b.len ? n : b.len;
            for (size_t k = 0; k < n; k++)
                assert_int_equal(b.data[k], (uint8_t)(read++ * 31));
            buf_consume(&b, n);
        }
        assert_int_equal(b.len, written - read);
    }
    buf_done(&b);
}

static void allocations_of_nothing_can_be_freed(void **state)
{
    (void)state;
    void *p = xmalloc(0);
    assert_non_null(p);
    p = xrealloc(p, 0);
    assert_non_null(p);
    free(p);
    p = xcalloc(0, 8);
    assert_non_null(p);
    free(p);
    char *s = xstrdup("");
    assert_string_equal(s, "");
    free(s);
}

static void calloc_is_zeroed(void **state)
{
    (void)state;
    uint8_t *p = xcalloc(100, 7);
    for (int i = 0; i < 700; i++)
        assert_int_equal(p[i], 0);
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_keeps_its_bytes),
        cmocka_unit_test(clear_keeps_the_memory),
        cmocka_unit_test(nothing_appended_to_nothing_is_nothing),
        cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(random_appends_and_consumes_are_a_queue),
        cmocka_unit_test(allocations_of_nothing_can_be_freed),
        cmocka_unit_test(calloc_is_zeroed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

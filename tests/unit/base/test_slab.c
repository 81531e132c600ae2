#include "base/slab.h"

#include "lib/unit.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i])
            return false;
    }
    return true;
}

static void taken_memory_is_zero_and_aligned(void **state)
{
    (void)state;
    for (size_t size = 8; size < 600; size += 37) {
        struct slab s;
        slab_init(&s, size);
        for (int i = 0; i < 1000; i++) {
            uint8_t *p = slab_take(&s);
            assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
            assert_true(is_zero(p, size));
            memset(p, 0xEE, size);
            if (i % 3 == 0)
                slab_give(&s, p);
        }
        slab_done(&s);
    }
}

/* Nobody's memory is anybody else's, through many chunks and much coming and going. */
static void objects_do_not_overlap(void **state)
{
    (void)state;
    enum { N = 20000, SIZE = 344 };
    uint64_t **held = calloc(N, sizeof(uint64_t *));
    assert_non_null(held);
    struct slab s;
    slab_init(&s, SIZE);
    srand(1);
    for (uint64_t step = 1; step <= 5 * N; step++) {
        int i = rand() % N;
        if (held[i]) {
            assert_int_equal(held[i][0], held[i][SIZE / 8 - 1]);
            slab_give(&s, held[i]);
            held[i] = NULL;
        } else {
            held[i] = slab_take(&s);
            assert_true(is_zero((const uint8_t *)held[i], SIZE));
            held[i][0] = held[i][SIZE / 8 - 1] = step;
        }
    }
    for (int i = 0; i < N; i++) {
        if (held[i])
            assert_int_equal(held[i][0], held[i][SIZE / 8 - 1]);
    }
    slab_done(&s);
    free(held);
}

static void what_is_given_back_is_taken_again(void **state)
{
    (void)state;
    struct slab s;
    slab_init(&s, 64);
    void *first = slab_take(&s);
    void *second = slab_take(&s);
    slab_give(&s, first);
    slab_give(&s, NULL);
    assert_ptr_equal(slab_take(&s), first);
    assert_ptr_not_equal(slab_take(&s), second);
    slab_done(&s);
    assert_non_null(slab_take(&s)); /* may be used again */
    slab_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken_memory_is_zero_and_aligned),
        cmocka_unit_test(objects_do_not_overlap),
        cmocka_unit_test(what_is_given_back_is_taken_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

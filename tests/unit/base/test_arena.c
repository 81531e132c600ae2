#include "base/arena.h"

#include "lib/unit.h"

#include <stdalign.h>
#include <string.h>

enum { PIECES = 400 };

/* Each piece is filled with its own byte; an overlap would show in a neighbour. */
static void fill(struct arena *a, struct dice *dice, uint8_t **pieces, size_t *sizes)
{
    for (int i = 0; i < PIECES; i++) {
        sizes[i] = dice_below(dice, 10) == 0 ? dice_below(dice, 200000) : dice_below(dice, 300);
        pieces[i] = arena_alloc(a, sizes[i]);
        assert_int_equal((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], i % 251, sizes[i]);
    }
}

static void pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    struct dice dice = {77};
    struct arena a = {0};
    uint8_t *pieces[PIECES];
    size_t sizes[PIECES];
    for (int round = 0; round < 5; round++) {
        fill(&a, &dice, pieces, sizes);
        size_t total = 0;
        for (int i = 0; i < PIECES; i++) {
            total += sizes[i];
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(pieces[i][k], i % 251);
        }
        assert_true(a.used >= total);
        assert_true(a.used <= total + PIECES * alignof(max_align_t));
        arena_reset(&a);
        assert_int_equal(a.used, 0);
    }
    arena_done(&a);
    assert_null(a.first);
}

/* The owner resets once per batch; memory that grew with every batch would be a leak. */
static void reset_reuses_the_same_memory(void **state)
{
    (void)state;
    struct arena a = {0};
    void *small = arena_alloc(&a, 10);
    void *large = arena_alloc(&a, 100000);
    void *after = arena_alloc(&a, 70000);
    for (int i = 0; i < 10; i++) {
        arena_reset(&a);
        assert_ptr_equal(arena_alloc(&a, 10), small);
        assert_ptr_equal(arena_alloc(&a, 100000), large);
        assert_ptr_equal(arena_alloc(&a, 70000), after);
    }
    arena_done(&a);
}

static void reset_and_done_of_an_empty_arena(void **state)
{
    (void)state;
    struct arena a = {0};
    arena_reset(&a);
    assert_non_null(arena_alloc(&a, 0));
    arena_done(&a);
    arena_done(&a);
}

static void strings_are_copied_with_a_nul(void **state)
{
    (void)state;
    struct arena a = {0};
    char original[] = "match";
    struct str copy = arena_str(&a, str_of(original));
    original[0] = 'X';
    assert_int_equal(copy.len, 5);
    assert_string_equal(copy.at, "match");
    struct str empty = arena_str(&a, (struct str){NULL, 0});
    assert_int_equal(empty.len, 0);
    assert_string_equal(empty.at, "");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(reset_reuses_the_same_memory),
        cmocka_unit_test(reset_and_done_of_an_empty_arena),
        cmocka_unit_test(strings_are_copied_with_a_nul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

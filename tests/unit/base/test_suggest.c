/* What is near enough to be meant. */
#include "base/suggest.h"

#include "lib/unit.h"

#include <string.h>

static const char *nearest(const char *typed, const char *const *words)
{
    struct suggestion s = suggest_for(typed);
    for (; *words; words++)
        suggest_offer(&s, *words);
    return s.best;
}

static void test_distance_counts_letters(void **state)
{
    (void)state;
    assert_int_equal(suggest_distance("", ""), 0);
    assert_int_equal(suggest_distance("drain", "drain"), 0);
    assert_int_equal(suggest_distance("drain", ""), 5);
    assert_int_equal(suggest_distance("alocate", "allocate"), 1);
    assert_int_equal(suggest_distance("allocatee", "allocate"), 1);
    assert_int_equal(suggest_distance("ellocate", "allocate"), 1);
    assert_int_equal(suggest_distance("drian", "drain"), 1); /* neighbours swapped */
    assert_int_equal(suggest_distance("kitten", "sitting"), 3);
}

static void test_words_too_long_are_never_near(void **state)
{
    (void)state;
    char longer[100];
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(suggest_distance(longer, "a"), SUGGEST_WORD_MAX);
    assert_int_equal(suggest_distance(longer, longer), SUGGEST_WORD_MAX);
    assert_null(nearest(longer, (const char *const[]){longer, "aaaa", NULL}));
}

static void test_nearest_of_several(void **state)
{
    (void)state;
    static const char *const verbs[] = {"server", "servers", "session", "sessions", "serve",
                                        "why",    "undrain", "drain",   NULL};
    assert_string_equal(nearest("srvers", verbs), "servers");
    assert_string_equal(nearest("wyh", verbs), "why");
    assert_string_equal(nearest("drian", verbs), "drain");
    assert_string_equal(nearest("ses", verbs), "session"); /* a beginning is enough */
    assert_null(nearest("x", verbs));
    assert_null(nearest("", verbs));
    assert_null(nearest("elephant", verbs));
}

static void test_dashes_make_nothing_near(void **state)
{
    (void)state;
    static const char *const options[] = {"--url", "--token", "--data", NULL};
    assert_string_equal(nearest("--tokne", options), "--token");
    assert_string_equal(nearest("-url", options), "--url");
    assert_null(nearest("--foo", options));
}

static void test_first_word_of_a_family_counts(void **state)
{
    (void)state;
    static const char *const verbs[] = {"tickets", "token enrol", NULL};
    assert_string_equal(nearest("tokn", verbs), "token enrol");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance_counts_letters),
        cmocka_unit_test(test_words_too_long_are_never_near),
        cmocka_unit_test(test_nearest_of_several),
        cmocka_unit_test(test_dashes_make_nothing_near),
        cmocka_unit_test(test_first_word_of_a_family_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

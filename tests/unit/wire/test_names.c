#include "wire/names.h"

#include "lib/unit.h"

#include <string.h>

static struct str listed(const struct buf *b)
{
    return (struct str){(const char *)b->data, b->len};
}

static void names_come_back_in_order(void **state)
{
    (void)state;
    struct buf b = {0};
    char longest[UINT8_MAX];
    memset(longest, 'x', sizeof(longest));
    struct str given[] = {STR("ann"), STR(""), {longest, sizeof(longest)}, STR("bob")};
    for (size_t i = 0; i < 4; i++)
        names_add(&b, given[i]);
    assert_int_equal(names_count(listed(&b)), 4);
    struct str rest = listed(&b);
    struct str name;
    for (size_t i = 0; i < 4; i++) {
        assert_true(names_next(&rest, &name));
        assert_true(str_eq(name, given[i]));
    }
    assert_false(names_next(&rest, &name));
    assert_int_equal(rest.len, 0);
    buf_done(&b);
}

static void nothing_is_no_names(void **state)
{
    (void)state;
    struct str rest = STR("");
    struct str name;
    assert_int_equal(names_count(rest), 0);
    assert_false(names_next(&rest, &name));
    assert_false(names_have(rest, STR("")));
}

static void a_name_is_found_whole(void **state)
{
    (void)state;
    struct buf b = {0};
    names_add(&b, STR("anna"));
    names_add(&b, STR("bob"));
    assert_true(names_have(listed(&b), STR("anna")));
    assert_true(names_have(listed(&b), STR("bob")));
    assert_false(names_have(listed(&b), STR("ann")));
    assert_false(names_have(listed(&b), STR("")));
    buf_done(&b);
}

static void a_cut_list_is_damaged(void **state)
{
    (void)state;
    struct buf b = {0};
    names_add(&b, STR("anna"));
    names_add(&b, STR("bob"));
    for (size_t len = 0; len < b.len; len++) {
        int whole = len == 0 ? 0 : len == 5 ? 1 : -1;
        assert_int_equal(names_count((struct str){(const char *)b.data, len}), whole);
    }
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_back_in_order),
        cmocka_unit_test(nothing_is_no_names),
        cmocka_unit_test(a_name_is_found_whole),
        cmocka_unit_test(a_cut_list_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

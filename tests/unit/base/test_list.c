#include "base/list.h"

#include "lib/unit.h"

struct item {
    int value;
    struct link link;
};

static void expect(const struct list *l, const int *values, size_t n)
{
    size_t i = 0;
    LIST_EACH(l, it, struct item, link)
    {
        assert_true(i < n);
        assert_int_equal(it->value, values[i++]);
    }
    assert_int_equal(i, n);
    /* Backwards too: a prev that points astray is only noticed by the next removal. */
    for (const struct link *k = l->head.prev; k != &l->head; k = k->prev)
        assert_int_equal(container_of(k, struct item, link)->value, values[--i]);
    assert_int_equal(i, 0);
}

static void append_keeps_order_and_remove_takes_any(void **state)
{
    (void)state;
    struct list l;
    struct item items[4] = {{.value = 0}, {.value = 1}, {.value = 2}, {.value = 3}};
    list_init(&l);
    assert_true(list_empty(&l));
    assert_null(list_first(&l));
    for (int i = 0; i < 4; i++) {
        assert_false(link_in_list(&items[i].link));
        list_append(&l, &items[i].link);
        assert_true(link_in_list(&items[i].link));
    }
    expect(&l, (int[]){0, 1, 2, 3}, 4);
    list_remove(&items[1].link);
    expect(&l, (int[]){0, 2, 3}, 3);
    list_remove(&items[0].link);
    assert_ptr_equal(list_first(&l), &items[2].link);
    list_remove(&items[3].link);
    list_remove(&items[2].link);
    assert_true(list_empty(&l));
    list_append(&l, &items[1].link);
    expect(&l, (int[]){1}, 1);
}

static void removing_twice_is_harmless(void **state)
{
    (void)state;
    struct list l;
    struct item a = {.value = 1};
    struct item b = {.value = 2};
    list_init(&l);
    list_append(&l, &a.link);
    list_append(&l, &b.link);
    list_remove(&a.link);
    list_remove(&a.link);
    assert_false(link_in_list(&a.link));
    expect(&l, (int[]){2}, 1);
}

static void the_current_object_may_leave_during_the_walk(void **state)
{
    (void)state;
    struct list l;
    struct item items[10];
    list_init(&l);
    for (int i = 0; i < 10; i++) {
        items[i] = (struct item){.value = i};
        list_append(&l, &items[i].link);
    }
    int seen = 0;
    LIST_EACH(&l, it, struct item, link)
    {
        seen++;
        if (it->value % 2 == 0)
            list_remove(&it->link);
    }
    assert_int_equal(seen, 10);
    expect(&l, (int[]){1, 3, 5, 7, 9}, 5);
    LIST_EACH(&l, it, struct item, link)
    list_remove(&it->link);
    assert_true(list_empty(&l));
}

static void continue_goes_on_with_the_next(void **state)
{
    (void)state;
    struct list l;
    struct item a = {.value = 1};
    struct item b = {.value = 2};
    list_init(&l);
    list_append(&l, &a.link);
    list_append(&l, &b.link);
    int sum = 0;
    LIST_EACH(&l, it, struct item, link)
    {
        if (it->value == 1)
            continue;
        sum += it->value;
    }
    assert_int_equal(sum, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_keeps_order_and_remove_takes_any),
        cmocka_unit_test(removing_twice_is_harmless),
        cmocka_unit_test(the_current_object_may_leave_during_the_walk),
        cmocka_unit_test(continue_goes_on_with_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/heap.h"

#include "base/list.h"
#include "lib/unit.h"

enum { ITEMS = 120 };

struct item {
    int key;
    struct heap_node node;
};

static int key_of(const struct heap_node *n)
{
    return container_of(n, struct item, node)->key;
}

static bool less(const struct heap_node *a, const struct heap_node *b)
{
    return key_of(a) < key_of(b);
}

static void an_empty_heap_has_no_top(void **state)
{
    (void)state;
    struct heap h;
    struct item a = {.key = 1};
    heap_init(&h, less);
    assert_null(heap_top(&h));
    heap_remove(&h, &a.node);
    heap_update(&h, &a.node);
    assert_true(heap_has(&a.node));
    heap_remove(&h, &a.node);
    heap_remove(&h, &a.node);
    assert_false(heap_has(&a.node));
    assert_null(heap_top(&h));
    heap_done(&h);
}

static void the_top_comes_out_in_order(void **state)
{
    (void)state;
    struct dice dice = {5};
    struct heap h;
    struct item items[ITEMS] = {0};
    heap_init(&h, less);
    for (int i = 0; i < ITEMS; i++) {
        items[i].key = (int)dice_below(&dice, 40);
        heap_update(&h, &items[i].node);
    }
    int last = -1;
    for (int i = 0; i < ITEMS; i++) {
        struct heap_node *top = heap_top(&h);
        assert_true(key_of(top) >= last);
        last = key_of(top);
        heap_remove(&h, top);
    }
    assert_null(heap_top(&h));
    heap_done(&h);
}

/* Every node knows its place, and no child is before its parent. */
static void check_shape(const struct heap *h)
{
    for (size_t i = 0; i < h->len; i++) {
        assert_int_equal(h->nodes[i]->place, i + 1);
        if (i > 0)
            assert_false(less(h->nodes[i], h->nodes[(i - 1) / 2]));
    }
}

static void random_operations_agree_with_a_naive_model(void **state)
{
    (void)state;
    struct dice dice = {99};
    struct heap h;
    struct item items[ITEMS] = {0};
    bool in[ITEMS] = {false};
    heap_init(&h, less);
    for (int step = 0; step < 60000; step++) {
        size_t i = dice_below(&dice, ITEMS);
        if (dice_below(&dice, 3) == 0) {
            heap_remove(&h, &items[i].node);
            in[i] = false;
        } else {
            items[i].key = (int)dice_below(&dice, 1000);
            heap_update(&h, &items[i].node);
            in[i] = true;
        }
        int least = INT32_MAX;
        size_t len = 0;
        for (int k = 0; k < ITEMS; k++) {
            assert_int_equal(heap_has(&items[k].node), in[k]);
            if (in[k]) {
                len++;
                least = items[k].key < least ? items[k].key : least;
            }
        }
        assert_int_equal(h.len, len);
        if (len == 0)
            assert_null(heap_top(&h));
        else
            assert_int_equal(key_of(heap_top(&h)), least);
        check_shape(&h);
    }
    heap_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_has_no_top),
        cmocka_unit_test(the_top_comes_out_in_order),
        cmocka_unit_test(random_operations_agree_with_a_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

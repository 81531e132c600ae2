#include "api/exposition.h"

#include "lib/unit.h"

#include <string.h>

static struct buf out;

static int begin(void **state)
{
    (void)state;
    out = (struct buf){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    buf_done(&out);
    return 0;
}

static void written(const char *text)
{
    buf_append(&out, "", 1);
    assert_string_equal((char *)out.data, text);
    buf_clear(&out);
}

static const struct labels none;

static void a_family_is_introduced(void **state)
{
    (void)state;
    exposition_family(&out, "a_total", "counter", "Say \"a\\b\"\nand more.");
    written("# HELP a_total Say \"a\\\\b\"\\nand more.\n# TYPE a_total counter\n");
}

static void numbers_are_exact(void **state)
{
    (void)state;
    exposition_sample(&out, "a", &none, 0);
    exposition_sample(&out, "a", &none, INT64_MAX);
    exposition_sample(&out, "a", &none, INT64_MIN);
    exposition_decimal(&out, "a", &none, 1, 1000000);
    exposition_decimal(&out, "a", &none, 1500000, 1000000);
    exposition_decimal(&out, "a", &none, 30000000, 1000000);
    exposition_decimal(&out, "a", &none, -250, 1000);
    exposition_real(&out, "a", &none, 0.125);
    written("a 0\na 9223372036854775807\na -9223372036854775808\na 0.000001\na 1.5\na 30\n"
            "a -0.25\na 0.125\n");
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    struct labels l = {.len = 0};
    labels_add(&l, "fleet", "a\"b\\c\nd");
    labels_add(&l, "region", "Zürich");
    exposition_sample(&out, "a", &l, 1);
    written("a{fleet=\"a\\\"b\\\\c\\nd\",region=\"Zürich\"} 1\n");
}

static void labels_can_be_taken_off_again(void **state)
{
    (void)state;
    struct labels l = {.len = 0};
    labels_add(&l, "a", "1");
    size_t len = l.len;
    labels_add(&l, "b", "2");
    l.len = len;
    labels_add(&l, "c", "3");
    exposition_sample(&out, "x", &l, 1);
    written("x{a=\"1\",c=\"3\"} 1\n");
}

/* Whatever is left of the room, what stands there is well formed. */
static void a_value_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n < LABELS_MAX; n++) {
        struct labels l = {.len = 0};
        char value[LABELS_MAX + 1];
        memset(value, '"', n); /* each takes two bytes */
        value[n] = '\0';
        labels_add(&l, "key", value);
        labels_add(&l, "other", "x");
        assert_in_range(l.len, 6, LABELS_MAX);
        assert_int_equal(l.text[l.len - 1], '"');
        size_t quotes = 0;
        for (size_t i = 0; i < l.len; i++) {
            quotes += l.text[i] == '"';
            i += l.text[i] == '\\';
        }
        assert_true(quotes == 2 || quotes == 4);
    }
}

static void a_histogram_is_cumulative(void **state)
{
    (void)state;
    static const struct histogram_scale scale = {.unit = 1000, .n = 2, .bounds = {100, 2500}};
    struct histogram h = {0};
    histogram_add(&h, &scale, 50);
    histogram_add(&h, &scale, 100);
    histogram_add(&h, &scale, 2500);
    histogram_add(&h, &scale, 9999);
    struct labels l = {.len = 0};
    labels_add(&l, "fleet", "f");
    exposition_histogram(&out, "h", &l, &h, &scale);
    written("h_bucket{fleet=\"f\",le=\"0.1\"} 2\nh_bucket{fleet=\"f\",le=\"2.5\"} 3\n"
            "h_bucket{fleet=\"f\",le=\"+Inf\"} 4\nh_sum{fleet=\"f\"} 12.649\n"
            "h_count{fleet=\"f\"} 4\n");
    exposition_histogram(&out, "h", &none, &(struct histogram){0}, &scale);
    written("h_bucket{le=\"0.1\"} 0\nh_bucket{le=\"2.5\"} 0\nh_bucket{le=\"+Inf\"} 0\nh_sum 0\n"
            "h_count 0\n");
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_family_is_introduced),           TEST(numbers_are_exact),
        TEST(label_values_are_escaped),         TEST(labels_can_be_taken_off_again),
        TEST(a_value_that_does_not_fit_is_cut), TEST(a_histogram_is_cumulative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

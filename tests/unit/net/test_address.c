#include "net/address.h"

#include "lib/unit.h"

static union address parse(const char *ip, uint16_t port)
{
    union address a;
    assert_true(address_parse(ip, port, &a));
    return a;
}

static void test_prints_what_it_parsed(void **state)
{
    (void)state;
    char text[ADDRESS_MAX];
    union address v4 = parse("192.0.2.7", 11032);
    union address v6 = parse("2001:db8::1", 80);
    assert_string_equal(address_print(&v4, text), "192.0.2.7:11032");
    assert_string_equal(address_print(&v6, text), "[2001:db8::1]:80");
}

static void test_refuses_names_and_nonsense(void **state)
{
    (void)state;
    union address a;
    assert_false(address_parse("localhost", 1, &a));
    assert_false(address_parse("1.2.3", 1, &a));
    assert_false(address_parse("1.2.3.4:5", 1, &a));
    assert_false(address_parse("", 1, &a));
}

static void test_longest_address_fits(void **state)
{
    (void)state;
    char text[ADDRESS_MAX];
    union address a = parse("2001:db8:1111:2222:3333:4444:5555:6666", 65535);
    assert_string_equal(address_print(&a, text), "[2001:db8:1111:2222:3333:4444:5555:6666]:65535");
}

static void test_counts_by_address_not_by_port(void **state)
{
    (void)state;
    union address a = parse("192.0.2.7", 1), b = parse("192.0.2.7", 2), c = parse("192.0.2.8", 1);
    assert_true(address_key(&a) == address_key(&b));
    assert_true(address_key(&a) != address_key(&c));
}

static void test_mapped_address_counts_as_ipv4(void **state)
{
    (void)state;
    union address a = parse("192.0.2.7", 1), mapped = parse("::ffff:192.0.2.7", 1);
    assert_true(address_key(&a) == address_key(&mapped));
}

static void test_ipv6_counts_by_network(void **state)
{
    (void)state;
    union address a = parse("2001:db8::1", 1), b = parse("2001:db8::ffff:2", 1),
                  c = parse("2001:db8:0:1::1", 1);
    assert_true(address_key(&a) == address_key(&b));
    assert_true(address_key(&a) != address_key(&c));
}

static void test_loopback(void **state)
{
    (void)state;
    union address a = parse("127.0.0.1", 1), b = parse("127.9.9.9", 1), c = parse("::1", 1),
                  d = parse("0.0.0.0", 1), e = parse("::", 1);
    assert_true(address_is_loopback(&a) && address_is_loopback(&b) && address_is_loopback(&c));
    assert_false(address_is_loopback(&d) || address_is_loopback(&e));
}

static bool has(const char *range_text, const char *ip)
{
    struct address_range range = {0};
    assert_true(address_range_parse(range_text, &range));
    union address a = parse(ip, 1);
    return address_range_has(&range, &a);
}

static void test_networks(void **state)
{
    (void)state;
    assert_true(has("10.0.0.0/8", "10.255.0.1") && has("10.0.0.0/8", "::ffff:10.1.2.3"));
    assert_false(has("10.0.0.0/8", "11.0.0.1"));
    assert_true(has("192.0.2.7", "192.0.2.7"));
    assert_false(has("192.0.2.7", "192.0.2.6"));
    assert_true(has("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(has("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(has("0.0.0.0/0", "1.2.3.4") && has("::/0", "1.2.3.4"));
    assert_false(has("0.0.0.0/0", "2001:db8::1"));
}

static void test_networks_are_printed_as_they_are_written(void **state)
{
    (void)state;
    static const char *const texts[] = {"10.0.0.0/8",    "192.0.2.7", "0.0.0.0/0",
                                        "2001:db8::/33", "::1",       "::/0"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct address_range range = {0};
        char text[ADDRESS_MAX];
        assert_true(address_range_parse(texts[i], &range));
        assert_string_equal(address_range_print(&range, text), texts[i]);
    }
}

static void test_refuses_what_is_no_network(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",        "10.0.0.0/33", "10.0.0.0/",    "10.0.0.0/+8",  "10.0.0.1/8",
        "::1/129", "::1/64",      "10.0.0.0/8/8", "proxy.example"};
    struct address_range range = {0};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(address_range_parse(texts[i], &range));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prints_what_it_parsed),
        cmocka_unit_test(test_refuses_names_and_nonsense),
        cmocka_unit_test(test_longest_address_fits),
        cmocka_unit_test(test_counts_by_address_not_by_port),
        cmocka_unit_test(test_mapped_address_counts_as_ipv4),
        cmocka_unit_test(test_ipv6_counts_by_network),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_networks_are_printed_as_they_are_written),
        cmocka_unit_test(test_refuses_what_is_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

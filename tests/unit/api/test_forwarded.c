#include "api/forwarded.h"

#include "lib/unit.h"

static const char *client(const char *peer, const char *chain, const char *real)
{
    static char found[ADDRESS_MAX];
    static struct address_range proxies[3];
    assert_true(address_range_parse("10.0.0.0/8", &proxies[0]));
    assert_true(address_range_parse("192.0.2.7", &proxies[1]));
    assert_true(address_range_parse("2001:db8:1::/48", &proxies[2]));
    return forwarded_client(proxies, 3, peer, str_of(chain), real, found);
}

static void a_stranger_is_not_believed(void **state)
{
    (void)state;
    assert_string_equal(client("203.0.113.9", "198.51.100.1", "198.51.100.2"), "203.0.113.9");
    assert_string_equal(client("192.0.2.8", "198.51.100.1", NULL), "192.0.2.8");
    char found[ADDRESS_MAX];
    assert_string_equal(forwarded_client(NULL, 0, "10.0.0.1", STR("198.51.100.1"), NULL, found),
                        "10.0.0.1");
}

static void a_listed_proxy_is_believed(void **state)
{
    (void)state;
    assert_string_equal(client("10.0.0.1", "198.51.100.1", NULL), "198.51.100.1");
    assert_string_equal(client("192.0.2.7", "", "198.51.100.2"), "198.51.100.2");
    assert_string_equal(client("10.0.0.1", "", NULL), "10.0.0.1");
    assert_string_equal(client("2001:db8:1::5", "2001:db8:2::9", NULL), "2001:db8:2::9");
    assert_string_equal(client("::ffff:10.0.0.1", "::ffff:198.51.100.1", NULL), "198.51.100.1");
}

/* Whoever writes a chain himself stands left of the address that a proxy has seen. */
static void the_last_that_is_no_proxy_counts(void **state)
{
    (void)state;
    assert_string_equal(client("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2", NULL),
                        "198.51.100.1");
    assert_string_equal(client("10.0.0.1", "1.1.1.1,198.51.100.1", "1.1.1.1"), "198.51.100.1");
    assert_string_equal(client("10.0.0.1", "10.0.0.3 , 10.0.0.2", NULL), "10.0.0.3");
}

static void reading_stops_at_rubbish(void **state)
{
    (void)state;
    assert_string_equal(client("10.0.0.1", "198.51.100.1, unknown, 10.0.0.2", NULL), "10.0.0.2");
    assert_string_equal(client("10.0.0.1", "198.51.100.1,", NULL), "10.0.0.1");
    assert_string_equal(client("10.0.0.1", "", "nobody"), "10.0.0.1");
    assert_string_equal(client("10.0.0.1", "x", "198.51.100.2"), "10.0.0.1");
}

static void ports_are_cut_off(void **state)
{
    (void)state;
    assert_string_equal(client("10.0.0.1", "198.51.100.1:4711", NULL), "198.51.100.1");
    assert_string_equal(client("10.0.0.1", "[2001:db8:2::9]:80", NULL), "2001:db8:2::9");
    assert_string_equal(client("10.0.0.1", "[2001:db8:2::9", NULL), "10.0.0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_is_not_believed),
        cmocka_unit_test(a_listed_proxy_is_believed),
        cmocka_unit_test(the_last_that_is_no_proxy_counts),
        cmocka_unit_test(reading_stops_at_rubbish),
        cmocka_unit_test(ports_are_cut_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

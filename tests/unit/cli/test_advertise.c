/* How a node is reached by others. */
#include "cli/advertise.h"

#include "base/buf.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct config config;
    struct service_ports bound;
    struct cell_node node;
    struct why why;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    f->bound = (struct service_ports){.http = "10.0.0.1:9508",
                                      .server = "10.0.0.1:11032",
                                      .manager = "10.0.0.1:11033",
                                      .client = "10.0.0.1:11031"};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void listen_everywhere(struct fixture *f)
{
    f->bound = (struct service_ports){.http = "0.0.0.0:9508",
                                      .server = "0.0.0.0:11032",
                                      .manager = "[::]:11033",
                                      .client = "0.0.0.0:11031"};
}

static void assert_found(struct fixture *f, const char *http, const char *server,
                         const char *manager, const char *client)
{
    assert_true(advertise_find(&f->config, &f->bound, &f->node, &f->why));
    assert_string_equal(f->node.http, http);
    assert_string_equal(f->node.server, server);
    assert_string_equal(f->node.manager, manager);
    assert_string_equal(f->node.client, client);
}

static void it_is_reached_where_it_listens(void **state)
{
    struct fixture *f = *state;
    assert_found(f, "http://10.0.0.1:9508", "10.0.0.1:11032", "10.0.0.1:11033", "10.0.0.1:11031");
    strcpy(f->config.tls_http.certificate, "a.pem");
    strcpy(f->bound.http, "[2001:db8::1]:443");
    assert_found(f, "https://[2001:db8::1]:443", "10.0.0.1:11032", "10.0.0.1:11033",
                 "10.0.0.1:11031");
}

static void what_is_said_counts(void **state)
{
    struct fixture *f = *state;
    strcpy(f->config.cluster.http, "http://lb.example/");
    strcpy(f->config.cluster.manager, "a.example:33");
    assert_found(f, "http://lb.example/", "10.0.0.1:11032", "a.example:33", "10.0.0.1:11031");
}

/* One that is said is enough for all. */
static void who_listens_everywhere_says_one_address(void **state)
{
    struct fixture *f = *state;
    listen_everywhere(f);
    assert_false(advertise_find(&f->config, &f->bound, &f->node, &f->why));
    assert_non_null(strstr(f->why.text, "set advertise_http"));
    strcpy(f->config.cluster.http, "http://a.example:80");
    assert_found(f, "http://a.example:80", "a.example:11032", "a.example:11033", "a.example:11031");
    strcpy(f->config.cluster.http, "https://[2001:db8::7]:9508/muster");
    assert_found(f, "https://[2001:db8::7]:9508/muster", "[2001:db8::7]:11032",
                 "[2001:db8::7]:11033", "[2001:db8::7]:11031");
    strcpy(f->config.cluster.http, "https://muster.example");
    assert_found(f, "https://muster.example", "muster.example:11032", "muster.example:11033",
                 "muster.example:11031");
    f->config.cluster.http[0] = '\0';
    strcpy(f->bound.client, "10.0.0.5:11031");
    assert_found(f, "http://10.0.0.5:9508", "10.0.0.5:11032", "10.0.0.5:11033", "10.0.0.5:11031");
}

static void an_address_has_a_host_and_a_port(void **state)
{
    (void)state;
    static const char *const good[] = {"10.0.0.1:1", "[::1]:65535", "node-1.example:11032"};
    static const char *const bad[] = {"",           ":1",    "10.0.0.1", "10.0.0.1:", "a:0",
                                      "a:65536",    "a:1x",  "::1:5",    "[::1]",     "[::1:5",
                                      "http://a:1", "a b:1", "u@a:100",  "a:1000000", "a:-1"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(advertise_is_address(good[i]));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(advertise_is_address(bad[i]));
}

#define T(test_) cmocka_unit_test_setup_teardown(test_, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(it_is_reached_where_it_listens),
        T(what_is_said_counts),
        T(who_listens_everywhere_says_one_address),
        T(an_address_has_a_host_and_a_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Where a cluster's API server is, and what we show it. */
#include "api/agones_own.h"

#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

static int bench_new(void **state)
{
    *state = calloc(1, sizeof(struct agones_identity));
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    return 0;
}

static int bench_free(void **state)
{
    identity_done(*state);
    free(*state);
    return 0;
}

static void takes(struct agones_identity *id, struct agones_config config, const char *url)
{
    char why[256] = "";
    assert_true(identity_init(id, &config, why));
    assert_string_equal(why, "");
    assert_string_equal(id->url, url);
}

static void what_is_configured_is_used(void **state)
{
    struct agones_identity *id = *state;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    takes(id, (struct agones_config){.url = "https://k8s.example:6443//", .ca_file = "/etc/ca.crt"},
          "https://k8s.example:6443");
    assert_string_equal(id->ca_file, "/etc/ca.crt");
    assert_null(id->token_file); /* another server is not shown the pod's token */
    assert_null(id->certificate);
    assert_null(id->key);
}

static void a_pod_takes_what_it_finds(void **state)
{
    struct agones_identity *id = *state;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
    takes(id, (struct agones_config){.url = ""}, "https://10.0.0.1:6443");
    assert_string_equal(id->ca_file, SERVICE_ACCOUNT "/ca.crt");
    assert_string_equal(id->token_file, SERVICE_ACCOUNT "/token");
}

static void a_pod_of_ipv6_without_a_port(void **state)
{
    struct agones_identity *id = *state;
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    takes(id, (struct agones_config){.token_file = "/t", .ca_file = "/c"}, "https://[fd00::1]:443");
    assert_string_equal(id->ca_file, "/c");
    assert_string_equal(id->token_file, "/t");
}

static void a_pod_with_a_certificate_shows_no_token(void **state)
{
    struct agones_identity *id = *state;
    setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
    takes(id, (struct agones_config){.certificate = "/crt", .key = "/key"}, "https://10.0.0.1:443");
    assert_null(id->token_file);
    assert_string_equal(id->certificate, "/crt");
    assert_string_equal(id->key, "/key");
}

static void nowhere_is_refused(void **state)
{
    struct agones_identity *id = *state;
    const struct agones_config config = {.url = ""};
    char why[256] = "";
    assert_false(identity_init(id, &config, why));
    assert_non_null(strstr(why, "Nothing says where the API server of Kubernetes is"));
    identity_done(id);
    *id = (struct agones_identity){0};
    setenv("KUBERNETES_SERVICE_HOST", "", 1);
    assert_false(identity_init(id, &config, why));
}

static void a_url_that_is_too_long_is_refused(void **state)
{
    struct agones_identity *id = *state;
    char url[600];
    char why[256] = "";
    memset(url, 'a', sizeof(url));
    memcpy(url, "https://", 8);
    url[512] = '\0';
    const struct agones_config config = {.url = url};
    assert_false(identity_init(id, &config, why));
    assert_string_equal(why, "kubernetes.url is too long.");
    identity_done(id);
    *id = (struct agones_identity){0};
    url[511] = '\0';
    assert_true(identity_init(id, &config, why));
    assert_string_equal(id->url, url);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_new, bench_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_configured_is_used),   TEST(a_pod_takes_what_it_finds),
        TEST(a_pod_of_ipv6_without_a_port), TEST(a_pod_with_a_certificate_shows_no_token),
        TEST(nowhere_is_refused),           TEST(a_url_that_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

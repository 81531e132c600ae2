/* The doors' certificates: which are loaded, what is said about one that is not, what a reload
 * changes. */
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/door_tls.h"
#include "lib/certs.h"

static struct certs certs;
static struct certs_pair week, month;

static int make_certs(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
    certs_init(&certs);
    week = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "week", -1, 7);
    month = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "month", -1, 29);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

static struct config *config;

static int setup(void **state)
{
    (void)state;
    config = xcalloc(1, sizeof(*config));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(config);
    return 0;
}

static void use(struct config_tls *door, struct certs_pair pair)
{
    snprintf(door->certificate, sizeof(door->certificate), "%s", pair.certificate);
    snprintf(door->key, sizeof(door->key), "%s", pair.key);
}

static int64_t days_left(const struct tls *tls)
{
    return (tls_expires_s(tls) - clock_wall_ms() / 1000 + CERTS_DAY / 2) / CERTS_DAY;
}

static void test_a_door_without_a_certificate_is_plain(void **state)
{
    (void)state;
    struct door_tls t;
    char why[CONFIG_WHY_MAX];
    use(&config->tls_manager, week);
    snprintf(config->tls_manager.client_ca, CONFIG_PATH_MAX, "%s", certs.ca_path);
    assert_int_equal(door_tls_load(&t, config, why), 0);
    assert_null(t.http);
    assert_null(t.server);
    assert_true(tls_wants_client(t.manager));
    door_tls_done(&t);
    assert_null(t.manager);
}

static void test_a_refusal_names_door_and_file(void **state)
{
    (void)state;
    struct door_tls t;
    char why[CONFIG_WHY_MAX];
    use(&config->tls_http, week);
    use(&config->tls_server, (struct certs_pair){week.certificate, month.key});
    assert_int_equal(door_tls_load(&t, config, why), ERR_FORMAT);
    assert_non_null(strstr(why, "TLS of the server port: key "));
    assert_non_null(strstr(why, month.key));
    assert_null(t.http); /* nothing is left behind */
}

static void test_reload_takes_what_is_good(void **state)
{
    (void)state;
    struct door_tls t;
    char why[CONFIG_WHY_MAX] = "";
    use(&config->tls_http, week);
    use(&config->tls_server, week);
    use(&config->tls_manager, week);
    assert_int_equal(door_tls_load(&t, config, why), 0);
    use(&config->tls_http, month);
    use(&config->tls_server, (struct certs_pair){"/absent", month.key});
    use(&config->tls_manager, month);
    assert_int_equal(door_tls_reload(&t, config, why), ERR_IO);
    assert_string_equal(why, "TLS of the server port: certificate /absent cannot be read: No such "
                             "file or directory");
    assert_int_equal(days_left(t.http), 29);
    assert_int_equal(days_left(t.server), 7);
    assert_int_equal(days_left(t.manager), 29);
    use(&config->tls_server, month);
    assert_int_equal(door_tls_reload(&t, config, why), 0);
    assert_int_equal(days_left(t.server), 29);
    door_tls_done(&t);
}

static void test_a_door_cannot_begin_or_cease(void **state)
{
    (void)state;
    struct door_tls t;
    char why[CONFIG_WHY_MAX] = "";
    use(&config->tls_server, week);
    assert_int_equal(door_tls_load(&t, config, why), 0);
    use(&config->tls_http, week);
    assert_int_equal(door_tls_reload(&t, config, why), ERR_INVALID_REQUEST);
    assert_string_equal(why, "TLS of the http port: it is plain; speaking TLS takes a restart");
    config->tls_http = (struct config_tls){0};
    config->tls_server = (struct config_tls){0};
    assert_int_equal(door_tls_reload(&t, config, why), ERR_INVALID_REQUEST);
    assert_string_equal(why, "TLS of the server port: it speaks TLS; ceasing to takes a restart");
    assert_int_equal(days_left(t.server), 7);
    door_tls_done(&t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_a_door_without_a_certificate_is_plain),
        T(test_a_refusal_names_door_and_file),
        T(test_reload_takes_what_is_good),
        T(test_a_door_cannot_begin_or_cease),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}

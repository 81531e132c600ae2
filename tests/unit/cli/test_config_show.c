/* The configuration shown: what is printed loads to the same thing, secrets do not appear. */
#include "cli/config_show.h"

#include "cli/setting.h"
#include "lib/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct config config;
    struct config again;
    struct config_mistakes mistakes;
    struct buf text;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    config_default(&f->config);
    config_default(&f->again);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    buf_done(&f->text);
    config_done(&f->config);
    config_done(&f->again);
    free(f);
    return 0;
}

static const char *show(struct fixture *f, const struct config *config, bool comments)
{
    buf_clear(&f->text);
    config_show(config, comments, &f->text);
    buf_append(&f->text, "", 1);
    return (const char *)f->text.data;
}

static void start_anew(struct config *config)
{
    config_done(config);
    config_default(config);
}

static void load(struct fixture *f, const char *text, struct config *ret)
{
    f->mistakes.sentence[0][0] = '\0';
    config_parse("shown", text, strlen(text), ret, &f->mistakes);
    assert_string_equal(f->mistakes.sentence[0], "");
    assert_int_equal(f->mistakes.n, 0);
}

/* Every kind of value away from its default. */
static const char everything[] =
    "regions:\n"
    "  - {code: 0, name: \"null\", latitude: 0.1, longitude: -0.300000000000001}\n"
    "  - {code: 63, name: '007', latitude: -90, longitude: 179.999999999999}\n"
    "  - {code: 5, name: 'yes'}\n"
    "fleets: [{name: default}, {name: on, ready_required: yes},\n"
    "  {name: rooms, provider: agent, game: g, server: s, regions: ['007'], other_regions: yes,\n"
    "   binary: 'a \"b', endpoint: uri, ports: 3, arguments: ['', \"\\x01\"], max_players: 9,\n"
    "   env: [{key: A, value: 'b: #'}], server_settings: \"{\\n\\t\\\"a\\\": 1}\",\n"
    "   access_token: {account: a, scopes: 'b,c'}, discover: [{name: d, url: 'http://e'}],\n"
    "   spawn_timeout_s: 1, reserve_s: 2, status_period_s: 3, empty_timeout_s: 4,\n"
    "   max_session_s: 5, versions: [{name: v}, {name: w, enabled: no, server_settings: '{}'}]}]\n"
    "default_region: '007'\n"
    "rates: {create: [{count: 1, seconds: 2}], join: [{count: 3, seconds: 4}]}\n"
    "geo: {file: a.mmdb}\n"
    "tokens:\n"
    "  - {token: 'hunter2 \"quoted\"', role: server, fleet: on, regions: ['007']}\n"
    "  - {token: hunter3, role: chat}\n"
    "listen: {bind: '::1', server_port: 0, manager_port: 65535, client_port: 1024, connections: "
    "1,\n"
    "         connections_per_address: 1000000}\n"
    "http: {port: 1, connections: 2, connections_per_address: 3, metrics: open,\n"
    "       trusted_proxies: ['10.0.0.0/8', '2001:db8::1']}\n"
    "tls:\n"
    "  http: {certificate: 'a b: #\"\\.pem', key: \"k\\x7f\\n.pem\"}\n"
    "  manager: {certificate: caf\xC3\xA9.pem, key: k.pem, client_ca: ca.pem}\n"
    "log: {level: error, format: json}\n"
    "access:\n"
    "  gamespace: '0'\n"
    "  login_url: http://[::1]:9506/login/\n"
    "  keys: [{name: a, algorithm: RS256, file: a.pem}, {name: b, algorithm: ES256, file: b}]\n"
    "timeouts: {ack_ms: 1, zero_report_ms: 604800000}\n"
    "limits: {tickets_open: 1, audit_kept: 10000000}\n";

/* On which line a setting stands is no setting, nor where in memory. A default region that is not
 * said is shown as the one it is. */
static void forget_lines(struct config *config)
{
    struct config_tls *ports[] = {&config->tls_http, &config->tls_server, &config->tls_manager,
                                  &config->tls_client};
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
        ports[i]->certificate_line = ports[i]->key_line = ports[i]->client_ca_line = 0;
    for (size_t i = 0; i < config->n_keys; i++)
        config->keys[i].line = 0;
    memset(config->name, 0, sizeof(config->name));
    config_done(config);
    config->geo_line = 0;
    if (config->core.default_region < 0)
        config->core.default_region = 0;
}

static void what_is_shown_loads_to_the_same(void **state)
{
    struct fixture *f = *state;
    const char *texts[] = {"", everything};
    for (size_t i = 0; i < 2; i++) {
        for (int comments = 0; comments < 2; comments++) {
            start_anew(&f->config);
            start_anew(&f->again);
            load(f, texts[i], &f->config);
            char *shown = strdup(show(f, &f->config, comments));
            load(f, shown, &f->again);
            /* Shown is what listen.bind says; said is what http.bind says. */
            memcpy(f->again.http_bind_ip, f->config.http_bind_ip, sizeof(f->again.http_bind_ip));
            assert_string_equal(show(f, &f->again, comments), shown);
            forget_lines(&f->config);
            forget_lines(&f->again);
            assert_memory_equal(&f->config, &f->again, sizeof(f->config));
            free(shown);
        }
    }
}

static void no_token_is_shown(void **state)
{
    struct fixture *f = *state;
    load(f, everything, &f->config);
    const char *shown = show(f, &f->config, true);
    assert_null(strstr(shown, "hunter"));
    /* printf %s hunter3 | b2sum -l 256 */
    assert_non_null(strstr(shown,
                           "  - {hash: "
                           "\"41be84f8b35d2a304fb4c17d09e8e21c78d0b560cfed20d8453587d1584fdf55\", "
                           "role: chat, fleet: \"default\", regions: [\"null\", \"yes\", "
                           "\"007\"]}\n"));
}

static void a_line_says_unit_and_meaning(void **state)
{
    struct fixture *f = *state;
    const char *shown = show(f, &f->config, true);
    assert_non_null(strstr(shown, "\ntimeouts:\n  ack_ms: 5000                          # ms; a "
                                  "chosen server's time to acknowledge\n"));
    assert_non_null(strstr(shown, "\ntls:\n  http:\n    certificate: \"\"  "));
    assert_null(strchr(show(f, &f->config, false), '#'));
}

#define AGONES_FLEET "fleets: [{name: a, provider: agones, max_players: 1"
#define AGENT_FLEET                                                                                \
    "fleets: [{name: a, provider: agent, game: g, server: s, binary: b, max_players: 1"

/* Each is another configuration. */
static const char *const different[] = {
    "regions: [{code: 2, name: EU}]",
    "regions: [{code: 2, name: EU, latitude: 1, longitude: 1}]",
    "regions: [{code: 2, name: EU, latitude: 1, longitude: 2}]",
    "fleets: [{name: a}]",
    "fleets: [{name: a, ready_required: true}]",
    "tokens: [{token: a, role: chat}]",
    "tokens: [{token: b, role: chat}]",
    "tokens: [{token: a, role: server}]",
    "tokens: [{token: a, role: chat, regions: [EU]}]",
    AGENT_FLEET "}]",
    AGENT_FLEET ", ports: 2}]",
    AGENT_FLEET ", endpoint: uri}]",
    AGENT_FLEET ", regions: [EU]}]",
    AGENT_FLEET ", other_regions: yes}]",
    AGENT_FLEET ", arguments: [x]}]",
    AGENT_FLEET ", env: [{key: A, value: x}]}]",
    AGENT_FLEET ", env: [{key: A, value: y}]}]",
    AGENT_FLEET ", server_settings: '{\"a\":1}'}]",
    AGENT_FLEET ", access_token: {account: a, scopes: b}}]",
    AGENT_FLEET ", discover: [{name: a, url: 'http://b'}]}]",
    AGENT_FLEET ", spawn_timeout_s: 7}]",
    AGENT_FLEET ", reserve_s: 7}]",
    AGENT_FLEET ", status_period_s: 7}]",
    AGENT_FLEET ", empty_timeout_s: 7}]",
    AGENT_FLEET ", max_session_s: 7}]",
    AGENT_FLEET ", versions: [{name: v}]}]",
    AGENT_FLEET ", versions: [{name: v, enabled: no}]}]",
    AGENT_FLEET ", versions: [{name: v, server_settings: '{}'}]}]",
    AGENT_FLEET ", confirm: none}]",
    AGENT_FLEET ", fill: spread}]",
    AGENT_FLEET ", when_full: fail}]",
    AGENT_FLEET ", queue_timeout_s: 7}]",
    AGENT_FLEET ", token: player-id}]",
    AGONES_FLEET "}]",
    AGONES_FLEET ", regions: [SG]}]",
    AGONES_FLEET ", agones: {fleet: b}}]",
    AGONES_FLEET ", agones: {namespace: b}}]",
    AGONES_FLEET ", agones: {port: b}}]",
    AGONES_FLEET ", agones: {list: b}}]",
    AGONES_FLEET ", agones: {counter: b}}]",
    "nats: {urls: ['nats://a']}",
    "nats: {urls: ['nats://b']}",
    "default_region: SG",
    "rates: {create: [{count: 1, seconds: 2}]}",
    "rates: {join: [{count: 1, seconds: 2}]}",
    "http: {trusted_proxies: ['::1']}",
    "access: {keys: [{name: a, algorithm: RS256, file: a}]}",
    "access: {keys: [{name: a, algorithm: ES256, file: a}]}",
    "access: {keys: [{name: a, algorithm: ES256, file: b}]}",
};

enum { DIFFERENT = sizeof(different) / sizeof(different[0]), DIGESTS_MAX = 200 };

/* Another value than the default one. */
static void digest_with(struct fixture *f, const struct setting *s, char dst[CONFIG_DIGEST_MAX])
{
    static const char *const values[] = {
        [SETTING_NUMBER] = "7", [SETTING_NAME] = "x",       [SETTING_IP] = "10.1.1.1",
        [SETTING_FILE] = "f",   [SETTING_URL] = "http://u", [SETTING_TEXT] = "t",
        [SETTING_SECRET] = "s"};
    char why[SETTING_WHY_MAX];
    char least[24];
    const char *value = s->kind == SETTING_WORD ? s->words[1] : values[s->kind];
    if (s->kind == SETTING_NUMBER && s->min > 7) {
        snprintf(least, sizeof(least), "%" PRId64, s->min);
        value = least;
    }
    start_anew(&f->again);
    assert_true(setting_take(s, value, "", &f->again, why));
    config_digest(&f->again, dst);
}

/* What one node of a cell has of its own. */
static bool is_nodes(const struct setting *s)
{
    static const char *const keys[] = {"bind",
                                       "node",
                                       "advertise_http",
                                       "advertise_server",
                                       "advertise_manager",
                                       "advertise_client"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(s->key, keys[i]) == 0)
            return true;
    }
    return false;
}

/* Any setting that differs gives another digest, but for those. */
static void the_digest_is_of_every_setting(void **state)
{
    struct fixture *f = *state;
    char digests[DIGESTS_MAX][CONFIG_DIGEST_MAX];
    size_t n = 0;
    assert_true(DIFFERENT + n_settings < DIGESTS_MAX);
    for (size_t i = 0; i < DIFFERENT; i++) {
        start_anew(&f->again);
        load(f, different[i], &f->again);
        config_digest(&f->again, digests[n++]);
    }
    char plain[CONFIG_DIGEST_MAX];
    start_anew(&f->again);
    config_digest(&f->again, plain);
    size_t nodes = 0;
    for (size_t i = 0; i < n_settings; i++) {
        digest_with(f, &settings[i], digests[n]);
        if (!is_nodes(&settings[i]))
            n++;
        else
            assert_string_equal(digests[n], plain);
        nodes += is_nodes(&settings[i]);
    }
    assert_int_equal(nodes, 7);
    config_digest(&f->config, digests[n++]);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(strlen(digests[i]), 16);
        assert_int_equal(strspn(digests[i], "0123456789abcdef"), 16);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(digests[i], digests[k]);
    }
}

static void every_key_is_in_the_table(void **state)
{
    struct fixture *f = *state;
    config_show_keys(&f->text);
    buf_append(&f->text, "", 1);
    const char *text = (const char *)f->text.data;
    for (size_t i = 0; i < n_settings; i++) {
        char key[100];
        snprintf(key, sizeof(key), "\n| `%s.%s` | ", settings[i].section, settings[i].key);
        assert_non_null(strstr(text, key));
    }
    assert_non_null(strstr(text, "| `timeouts.ack_ms` | 5000 | 1 to 604800000 ms | yes | a chosen "
                                 "server's time to acknowledge |\n"));
    assert_non_null(strstr(text, "| `listen.server_port` | 11032 | 0 to 65535 | no | "));
    assert_non_null(strstr(text, "| `tls.http.key` | `\"\"` | a path | yes | "));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(what_is_shown_loads_to_the_same), T(no_token_is_shown),
        T(a_line_says_unit_and_meaning),    T(the_digest_is_of_every_setting),
        T(every_key_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The configuration file: what each key does, what is refused and with which sentence. */
#include "base/err.h"
#include "cli/config.h"
#include "lib/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    struct config config;
    struct config untouched;
    struct config_mistakes mistakes;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    config_default(&f->config);
    config_default(&f->untouched);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    config_done(&f->config);
    free(f);
    return 0;
}

static int parse(struct fixture *f, const char *text)
{
    config_done(&f->config);
    config_default(&f->config);
    f->mistakes.sentence[0][0] = '\0';
    return config_parse("muster.yaml", text, strlen(text), &f->config, &f->mistakes);
}

static void accept_text(struct fixture *f, const char *text)
{
    int err = parse(f, text);
    assert_string_equal(f->mistakes.sentence[0], "");
    assert_int_equal(err, 0);
}

/* Exactly this one mistake. */
static void refuse_text(struct fixture *f, const char *text, const char *sentence)
{
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_string_equal(f->mistakes.sentence[0], sentence);
    assert_int_equal(f->mistakes.n, 1);
}

static void test_defaults(void **state)
{
    struct fixture *f = *state;
    const struct config *c = &f->config;
    assert_string_equal(c->bind_ip, "0.0.0.0");
    assert_int_equal(c->server_port, 11032);
    assert_int_equal(c->manager_port, 11033);
    assert_int_equal(c->client_port, 11031);
    assert_string_equal(config_http_bind(c), "0.0.0.0");
    assert_int_equal(c->http_port, 9508);
    assert_int_equal(c->http_connections, 2000);
    assert_int_equal(c->http_connections_per_address, 128);
    assert_false(c->metrics_open);
    assert_string_equal(c->tls_http.certificate, "");
    assert_int_equal(c->log_level, LOG_INFO);
    assert_int_equal(c->log_format, LOG_LOGFMT);
    assert_string_equal(c->gamespace, "1");
    assert_string_equal(c->login_url, "");
    assert_int_equal(c->n_keys, 0);
    assert_int_equal(c->core.n_enrolments, 0);
    assert_string_equal(c->core.regions[2].name, "EU");
    for (int code = 0; code < 17; code++)
        assert_true(c->core.regions[code].located);
}

static void test_a_file_that_says_nothing_changes_nothing(void **state)
{
    struct fixture *f = *state;
    const char *texts[] = {"", "# only a comment\n", "{}\n", "limits: {}\ntls: {http: {}}\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        accept_text(f, texts[i]);
        memset(f->config.name, 0, sizeof(f->config.name));
        assert_memory_equal(&f->config, &f->untouched, sizeof(f->config));
    }
}

static void test_regions_fleets_timeouts_and_limits(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "regions:\n"
                   "  - {code: 0, name: North, latitude: 64.15, longitude: -21.94}\n"
                   "  - {code: 63, name: South, longitude: 180, latitude: -90.0}\n"
                   "  - {code: 5, name: Nowhere}\n"
                   "fleets:\n"
                   "  - name: default\n"
                   "  - {name: ranked, ready_required: true}\n"
                   "timeouts: {ack_ms: 1500, lost_ms: 604800000}\n"
                   "limits: {servers: 12, audit_kept: 1}\n");
    const struct core_config *core = &f->config.core;
    assert_string_equal(core->regions[0].name, "North");
    assert_true(core->regions[0].located && core->regions[63].located);
    assert_true(core->regions[0].latitude == 64.15 && core->regions[0].longitude == -21.94);
    assert_true(core->regions[63].latitude == -90 && core->regions[63].longitude == 180);
    assert_string_equal(core->regions[63].name, "South");
    assert_false(core->regions[5].located);
    assert_string_equal(core->regions[2].name, "");
    assert_int_equal(core->n_fleets, 2);
    assert_false(core->fleets[0].ready_required);
    assert_string_equal(core->fleets[1].name, "ranked");
    assert_true(core->fleets[1].ready_required);
    assert_int_equal(core->timeouts.ack_ms, 1500);
    assert_int_equal(core->timeouts.lost_ms, 604800000);
    assert_int_equal(core->timeouts.ticket_ms, f->untouched.core.timeouts.ticket_ms);
    assert_int_equal(core->limits.servers, 12);
    assert_int_equal(core->limits.audit_kept, 1);
    assert_int_equal(core->limits.chat_servers, f->untouched.core.limits.chat_servers);
}

static void test_ports_logs_and_access(void **state)
{
    struct fixture *f = *state;
    const struct config *c = &f->config;
    accept_text(f, "listen: {bind: '::1', server_port: 0, manager_port: 65535, connections: 9,\n"
                   "         connections_per_address: 8}\n"
                   "http: {port: 80, connections: 7, connections_per_address: 6, metrics: open}\n"
                   "log: {level: debug, format: json}\n"
                   "access:\n"
                   "  gamespace: arena\n"
                   "  login_url: https://login.example/a\n"
                   "  keys:\n"
                   "    - {name: login, algorithm: RS256, file: login.pem}\n"
                   "    - {name: shop, algorithm: ES256, file: /etc/shop.pem}\n");
    assert_string_equal(c->bind_ip, "::1");
    assert_int_equal(c->server_port, 0);
    assert_int_equal(c->manager_port, 65535);
    assert_int_equal(c->connections, 9);
    assert_int_equal(c->connections_per_address, 8);
    assert_string_equal(config_http_bind(c), "::1");
    assert_int_equal(c->http_port, 80);
    assert_int_equal(c->http_connections, 7);
    assert_int_equal(c->http_connections_per_address, 6);
    assert_true(c->metrics_open);
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->log_format, LOG_JSON);
    assert_string_equal(c->gamespace, "arena");
    assert_string_equal(c->login_url, "https://login.example/a");
    assert_int_equal(c->n_keys, 2);
    assert_string_equal(c->keys[0].name, "login");
    assert_string_equal(c->keys[0].algorithm, "RS256");
    assert_string_equal(c->keys[0].file, "login.pem");
    assert_string_equal(c->keys[1].algorithm, "ES256");
    assert_string_equal(c->keys[1].file, "/etc/shop.pem");
    accept_text(f, "http: {bind: 127.0.0.1}\n");
    assert_string_equal(config_http_bind(c), "127.0.0.1");
    assert_string_equal(c->bind_ip, "0.0.0.0");
}

static void test_files_are_relative_to_the_file(void **state)
{
    struct fixture *f = *state;
    static const char text[] = "tls:\n"
                               "  http: {certificate: tls/a.pem, key: /k.pem}\n"
                               "  manager: {certificate: m.pem, key: m.key, client_ca: ../ca.pem}\n"
                               "access: {keys: [{name: a, algorithm: ES256, file: a.pem}]}\n";
    static const struct {
        const char *name, *folder;
    } rows[] = {{"muster.yaml", ""},
                {"./muster.yaml", "./"},
                {"/etc/muster/muster.yaml", "/etc/muster/"},
                {"/muster.yaml", "//"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char expected[100];
        config_default(&f->config);
        assert_int_equal(config_parse(rows[i].name, text, strlen(text), &f->config, &f->mistakes),
                         0);
        snprintf(expected, sizeof(expected), "%stls/a.pem", rows[i].folder);
        assert_string_equal(f->config.tls_http.certificate, expected);
        assert_string_equal(f->config.tls_http.key, "/k.pem");
        assert_string_equal(f->config.tls_http.client_ca, "");
        assert_string_equal(f->config.tls_server.certificate, "");
        snprintf(expected, sizeof(expected), "%s../ca.pem", rows[i].folder);
        assert_string_equal(f->config.tls_manager.client_ca, expected);
        snprintf(expected, sizeof(expected), "%sa.pem", rows[i].folder);
        assert_string_equal(f->config.keys[0].file, expected);
    }
}

static void test_tokens_are_kept_as_hashes(void **state)
{
    struct fixture *f = *state;
    uint8_t hash[CORE_HASH_SIZE];
    accept_text(f, "fleets: [{name: default}, {name: ranked}]\n"
                   "regions: [{code: 0, name: North}, {code: 63, name: South}]\n"
                   "tokens:\n"
                   "  - {token: one, role: server, fleet: ranked, regions: [South]}\n"
                   "  - {token: two, role: chat}\n"
                   /* printf %s three | b2sum -l 256 */
                   "  - role: chat\n"
                   "    hash: 484bccf6a66fd4667832ea4ac69026cd7e6ff31e4b741d0a1bdc740afca4416c\n");
    const struct enrolment *e = f->config.core.enrolments;
    assert_int_equal(f->config.core.n_enrolments, 3);
    core_hash_token(STR("one"), hash);
    assert_memory_equal(e[0].hash, hash, sizeof(hash));
    assert_int_equal(e[0].role, ROLE_SERVER);
    assert_string_equal(e[0].fleet, "ranked");
    assert_true(e[0].regions == UINT64_C(1) << 63);
    core_hash_token(STR("two"), hash);
    assert_memory_equal(e[1].hash, hash, sizeof(hash));
    assert_int_equal(e[1].role, ROLE_CHAT);
    assert_string_equal(e[1].fleet, "default");
    assert_true(e[1].regions == (UINT64_C(1) << 63 | 1)); /* none named: all there are */
    core_hash_token(STR("three"), hash);
    assert_memory_equal(e[2].hash, hash, sizeof(hash));
}

static void test_unknown_keys_are_refused(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "colour: blue\n",
                "muster.yaml: line 1: there is no setting 'colour'; known are regions, fleets, "
                "tokens, default_region, rates, geo, history, cluster, timeouts, limits, listen, "
                "http, tls, log, "
                "access, nats, pubsub, routes, kubernetes");
    refuse_text(f, "timeouts:\n  ack: 5\n",
                "muster.yaml: line 2: timeouts: there is no setting 'ack'; did you mean 'ack_ms'?");
    refuse_text(f, "regions:\n  - {code: 1, nam: X}\n",
                "muster.yaml: line 2: regions, entry 1: there is no setting 'nam'; did you mean "
                "'name'?");
    refuse_text(f, "log:\n  level: info\n  fromat: json\n",
                "muster.yaml: line 3: log: there is no setting 'fromat'; did you mean 'format'?");
    refuse_text(f, "tls:\n  server:\n    cert: a\n",
                "muster.yaml: line 3: tls, server: there is no setting 'cert'; did you mean "
                "'certificate'?");
    refuse_text(f, "access:\n  keys:\n    - {nme: a}\n",
                "muster.yaml: line 3: access, keys, entry 1: there is no setting 'nme'; did you "
                "mean 'name'?");
    refuse_text(f, "tls: {backstage: {}}\n",
                "muster.yaml: line 1: tls: there is no setting 'backstage'; known are http, "
                "server, manager, client");
}

static void test_wrong_shapes_are_refused(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "tokens: 3\n", "muster.yaml: line 1: tokens: must be a list");
    refuse_text(f, "- a\n", "muster.yaml: line 1: must be settings, each \"name: value\"");
    refuse_text(f, "limits:\n  5\n",
                "muster.yaml: line 1: limits: must be settings, each \"name: value\"");
    refuse_text(f, "limits: {servers: [1]}\n",
                "muster.yaml: line 1: limits, servers: must be one value, not a list or settings");
    refuse_text(f, "limits:\n  servers: 1\n  servers: 2\n",
                "muster.yaml: line 3: limits, servers: is there twice");
    refuse_text(f, "tokens:\n- {token: a}\n",
                "muster.yaml: line 2: tokens, entry 1: role is missing");
    refuse_text(f, "limits: {servers: &a 5, chat_servers: *a}\n",
                "muster.yaml: line 1: limits, chat_servers: \"*\" for a value named elsewhere is "
                "not supported");
}

static void test_a_list_that_is_too_long(void **state)
{
    struct fixture *f = *state;
    char text[4096] = "regions:\n";
    for (int i = 0; i < 70; i++)
        strcat(text, "- {code: 1, name: A}\n");
    refuse_text(f, text, "muster.yaml: line 1: regions: there are more than 64");
}

/* In particular regions: [] of a token must not mean all of them. */
static void test_an_empty_list_is_not_the_default(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "tokens:\n- {token: a, role: chat, regions: []}\n",
                "muster.yaml: line 2: tokens, entry 1, regions: the list is empty; leave the "
                "setting out for the default");
    refuse_text(f, "regions: []\n",
                "muster.yaml: line 1: regions: the list is empty; leave the "
                "setting out for the default");
    assert_int_equal(parse(f, "fleets: []\n"), ERR_INVALID_REQUEST);
    accept_text(f, "tokens: []\naccess: {keys: []}\n");
}

static void test_what_is_not_yaml_is_refused_with_its_line(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "limits: {}\n---\nlimits: {}\n",
                "muster.yaml: line 2: a second document begins here; the settings must be in one");
    refuse_text(f, "limits:\n\tservers: 5\n",
                "muster.yaml: line 2, column 1: found character that cannot start any token");
    refuse_text(f, "limits: {\n",
                "muster.yaml: line 2, column 1: did not find expected node content");
    assert_int_equal(parse(f, "limits: \xff\n"), ERR_INVALID_REQUEST);
    assert_non_null(strstr(f->mistakes.sentence[0], "byte 8: "));
}

static void test_numbers_are_digits(void **state)
{
    struct fixture *f = *state;
    const char *wrong[] = {
        "5s",   "-5", "5.5",       "0x10", "5e3", "",      "5 000", "99999999999999999999999",
        "null", "0",  "604800001", "+5",   "~",   "'1 2'", "true"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[80];
        snprintf(text, sizeof(text), "timeouts: {ack_ms: %s}\n", wrong[i]);
        assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
        assert_non_null(
            strstr(f->mistakes.sentence[0], "timeouts, ack_ms: must be a whole number"));
    }
    refuse_text(f, "# size\nlimits:\n  chat_servers: 5\n  servers: 0\n",
                "muster.yaml: line 4: limits, servers: must be a whole number from 1 to 10000000, "
                "not '0'");
    refuse_text(f, "listen: {server_port: 65536}\n",
                "muster.yaml: line 1: listen, server_port: must be a whole number from 0 to 65535, "
                "not '65536'");
}

static void test_words_and_texts(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "log:\n  level: loud\n",
                "muster.yaml: line 2: log, level: must be error, warn, info or debug, not 'loud'");
    refuse_text(f, "log: {format: JSON}\n",
                "muster.yaml: line 1: log, format: must be logfmt or json, not 'JSON'");
    refuse_text(f, "http: {metrics: }\n",
                "muster.yaml: line 1: http, metrics: must be token or open, not ''");
    refuse_text(f, "listen: {bind: localhost}\n",
                "muster.yaml: line 1: listen, bind: must be an IP address, not 'localhost'");
    refuse_text(f, "http: {bind: 1.2.3}\n",
                "muster.yaml: line 1: http, bind: must be an IP address, not '1.2.3'");
    refuse_text(f, "access: {gamespace: 'a b'}\n",
                "muster.yaml: line 1: access, gamespace: must be 1 to 64 of A-Z a-z 0-9 . _ -, not "
                "'a b'");
    refuse_text(
        f, "access: {login_url: login.example}\n",
        "muster.yaml: line 1: access, login_url: must be a URL as https://login.example, of "
        "at most 255 bytes, not 'login.example'");
    assert_int_equal(parse(f, "access: {login_url: 'https://'}\n"), ERR_INVALID_REQUEST);
    assert_int_equal(parse(f, "access: {login_url: 'https:///a'}\n"), ERR_INVALID_REQUEST);
    assert_int_equal(parse(f, "access: {login_url: 'https://a b'}\n"), ERR_INVALID_REQUEST);
    assert_int_equal(parse(f, "access: {login_url: 'https://a?b=c'}\n"), ERR_INVALID_REQUEST);
    accept_text(f, "access: {login_url: ''}\n");
}

static void test_wrong_regions(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "regions: [{code: 17, name: Any}]\n",
                "muster.yaml: line 1: regions, entry 1, code: must be a whole number from 0 to 63 "
                "without 17 (which means any), not '17'");
    assert_int_equal(parse(f, "regions: [{code: 64, name: A}]\n"), ERR_INVALID_REQUEST);
    refuse_text(f, "regions:\n  - {code: 1, name: A}\n  - code: 1\n    name: B\n",
                "muster.yaml: line 3: regions, entry 2, code: 1 is already A");
    refuse_text(f, "regions:\n  - {code: 1, name: A}\n  - code: 2\n    name: A\n",
                "muster.yaml: line 4: regions, entry 2, name: A is there twice");
    refuse_text(f, "regions: [{code: 1, name: 'A B'}]\n",
                "muster.yaml: line 1: regions, entry 1, name: must be 1 to 15 of A-Z a-z 0-9 . _ "
                "-, not 'A B'");
    assert_int_equal(parse(f, "regions: [{code: 1, name: ''}]\n"), ERR_INVALID_REQUEST);
    assert_int_equal(parse(f, "regions: [{code: 1, name: abcdefghijklmnop}]\n"),
                     ERR_INVALID_REQUEST);
    accept_text(f, "regions: [{code: 1, name: abcdefghijklmno}]\n");
}

static void test_wrong_locations(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "regions: [{code: 1, name: A, latitude: 5}]\n",
                "muster.yaml: line 1: regions, entry 1: longitude is missing; a location has both "
                "latitude and longitude");
    refuse_text(f, "regions: [{code: 1, name: A, latitude: 91, longitude: 0}]\n",
                "muster.yaml: line 1: regions, entry 1, latitude: must be degrees from -90 to 90, "
                "not '91'");
    const char *wrong[] = {"-180.01", "181", "1e2",  "north", "",      "1.", ".5",
                           "- 5",     "+5",  "0x10", "nan",   "1.2.3", "--5"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char text[100], expected[200];
        snprintf(text, sizeof(text), "regions: [{code: 1, name: A, latitude: 5, longitude: '%s'}]",
                 wrong[i]);
        snprintf(expected, sizeof(expected),
                 "muster.yaml: line 1: regions, entry 1, longitude: must be degrees from -180 to "
                 "180, not '%s'",
                 wrong[i]);
        refuse_text(f, text, expected);
    }
}

static void test_wrong_fleets(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "fleets: [{name: a}, {name: a}]\n",
                "muster.yaml: line 1: fleets, entry 2, name: a is there twice");
    refuse_text(f, "fleets: [{name: 'a/b'}]\n",
                "muster.yaml: line 1: fleets, entry 1, name: must be 1 to 63 of A-Z a-z 0-9 . _ -, "
                "not 'a/b'");
    refuse_text(f, "fleets:\n- {name: a, ready_required: maybe}\n",
                "muster.yaml: line 2: fleets, entry 1, ready_required: must be true or false, not "
                "'maybe'");
}

static void test_wrong_tokens(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "tokens: [{token: a, role: chat, fleet: none}]\n",
                "muster.yaml: line 1: tokens, entry 1, fleet: there is no fleet 'none'");
    refuse_text(
        f, "tokens:\n  - token: a\n    role: chat\n    regions:\n    - EU\n    - MARS\n",
        "muster.yaml: line 6: tokens, entry 1, regions, entry 2: there is no region 'MARS'");
    refuse_text(f, "tokens: [{token: a, role: chat}, {token: a, role: server}]\n",
                "muster.yaml: line 1: tokens, entry 2: the same token as entry 1");
    refuse_text(f, "tokens: [{token: '', role: chat}]\n",
                "muster.yaml: line 1: tokens, entry 1, token: must be 1 to 512 bytes");
    refuse_text(f, "fleets: [{name: a}]\ntokens: [{token: t, role: chat}]\n",
                "muster.yaml: line 2: tokens, entry 1: fleet is missing, and there is no fleet "
                "'default'");
    refuse_text(f, "tokens: [{role: chat}]\n",
                "muster.yaml: line 1: tokens, entry 1: token or hash is missing");
    refuse_text(f, "tokens: [{token: a, hash: b, role: chat}]\n",
                "muster.yaml: line 1: tokens, entry 1: token and hash are both there; one of them "
                "is enough");
    refuse_text(f, "tokens:\n- {token: a, role: boss}\n",
                "muster.yaml: line 2: tokens, entry 1, role: must be server or chat, not 'boss'");
    refuse_text(f, "tokens:\n- {token: a, role: }\n",
                "muster.yaml: line 2: tokens, entry 1, role: must be server or chat, not ''");
    const char *hashes[] = {"hunter2", "''",
                            "g000000000000000000000000000000000000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        char text[120];
        snprintf(text, sizeof(text), "tokens: [{hash: %s, role: chat}]\n", hashes[i]);
        refuse_text(f, text,
                    "muster.yaml: line 1: tokens, entry 1, hash: must be 64 digits of 0-9 a-f "
                    "(BLAKE2b of the token)");
    }
}

static void test_wrong_files_and_keys(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "tls:\n  http:\n    certificate: a.pem\n",
                "muster.yaml: line 2: tls, http: key is missing; a certificate needs its key");
    refuse_text(f, "tls:\n  server: {client_ca: ca.pem}\n",
                "muster.yaml: line 2: tls, server: certificate is missing; without it the port "
                "would be plain");
    refuse_text(f, "access: {keys: [{name: a, algorithm: HS256, file: a}]}\n",
                "muster.yaml: line 1: access, keys, entry 1, algorithm: must be RS256 or ES256, "
                "not 'HS256'");
    refuse_text(f, "access: {keys: [{name: a, algorithm: RS256, file: ''}]}\n",
                "muster.yaml: line 1: access, keys, entry 1, file: must be a path of 1 to 255 "
                "bytes");
    refuse_text(f,
                "access:\n  keys:\n  - {name: a, algorithm: RS256, file: a}\n"
                "  - {name: a, algorithm: ES256, file: b}\n",
                "muster.yaml: line 4: access, keys, entry 2, name: a is there twice");
    refuse_text(f, "access: {keys: [{name: a, file: a}]}\n",
                "muster.yaml: line 1: access, keys, entry 1: algorithm is missing");
    char text[400];
    snprintf(text, sizeof(text), "tls: {http: {certificate: %0256d, key: a}}\n", 0);
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_string_equal(
        f->mistakes.sentence[0],
        "muster.yaml: line 1: tls, http, certificate: must be a path of at most 255 bytes");
}

static void test_every_mistake_is_named(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(parse(f, "timeouts:\n  ack_ms: x\n  list_ms: y\nlog: {level: z}\n"
                              "fleets: [{name: '!'}]\n"),
                     ERR_INVALID_REQUEST);
    assert_int_equal(f->mistakes.n, 4);
    assert_non_null(strstr(f->mistakes.sentence[0], "line 5: fleets, entry 1, name: "));
    assert_non_null(strstr(f->mistakes.sentence[1], "line 4: log, level: "));
    assert_non_null(strstr(f->mistakes.sentence[2], "line 2: timeouts, ack_ms: "));
    assert_non_null(strstr(f->mistakes.sentence[3], "line 3: timeouts, list_ms: "));

    char text[2000] = "fleets:\n";
    for (int i = 0; i < 15; i++)
        strcat(text, "- {name: '!'}\n");
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_int_equal(f->mistakes.n, 15);
    assert_non_null(strstr(f->mistakes.sentence[9], "line 11: fleets, entry 10, "));
}

/* Sentences end up in logs and terminals; a token must not. */
static void test_no_sentence_holds_a_token(void **state)
{
    struct fixture *f = *state;
    char text[1200];
    snprintf(text, sizeof(text), "tokens: [{token: hunter2%0600d, role: chat}]\n", 0);
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_null(strstr(f->mistakes.sentence[0], "hunter2"));
    const char *texts[] = {
        "tokens: [{token: hunter2, role: chat}, {token: hunter2, role: chat}]\n",
        "tokens: [{token: hunter2, role: boss}]\n",
        "tokens: [{token: hunter2, role: chat, fleet: none}]\n",
        "tokens: [{token: hunter2}]\n",
        "tokens: [{token: [hunter2], role: chat}]\n",
        "tokens: [{hash: hunter2, role: chat}]\n",
        "tokens: [hunter2]\n",
        "tokens: hunter2\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(parse(f, texts[i]), ERR_INVALID_REQUEST);
        assert_null(strstr(f->mistakes.sentence[0], "hunter2"));
    }
}

static void test_settings_that_contradict_each_other(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "timeouts: {backoff_first_ms: 10, backoff_max_ms: 9}\n",
                "muster.yaml: line 1: timeouts: backoff_first_ms is above backoff_max_ms");
}

static void test_fleets_of_agents(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "fleets:\n"
                   "  - {name: default}\n"
                   "  - name: arena\n"
                   "    provider: agent\n"
                   "    game: shooter\n"
                   "    server: main\n"
                   "    regions: [EU, USE]\n"
                   "    other_regions: true\n"
                   "    binary: bin/arena\n"
                   "    endpoint: uri\n"
                   "    ports: 4\n"
                   "    arguments: [--fast, '']\n"
                   "    env: [{key: LANG, value: C}, {key: _x1, value: ''}]\n"
                   "    max_players: 8\n"
                   "    server_settings: |\n"
                   "      {\"map\": \"dust\"}\n"
                   "    access_token: {account: robot, scopes: 'game,profile'}\n"
                   "    discover: [{name: login, url: 'https://login.example'}]\n"
                   "    spawn_timeout_s: 31\n"
                   "    reserve_s: 32\n"
                   "    status_period_s: 33\n"
                   "    empty_timeout_s: 34\n"
                   "    max_session_s: 35\n"
                   "    versions:\n"
                   "      - {name: '1.0'}\n"
                   "      - {name: '2.0', enabled: false, server_settings: '{\"map\":1}'}\n");
    assert_int_equal(f->config.core.n_fleets, 2);
    const struct fleet_config *c = &f->config.core.fleets[1];
    assert_int_equal(f->config.core.fleets[0].provider, PROVIDER_CHAT);
    assert_int_equal(c->provider, PROVIDER_AGENT);
    assert_string_equal(c->game, "shooter");
    assert_string_equal(c->server, "main");
    assert_true(c->regions == 5 && c->other_regions);
    assert_int_equal(c->max_players, 8);
    assert_int_equal(c->spawn_ms, 31000);
    assert_int_equal(c->reserve_ms, 32000);
    assert_int_equal(c->empty_ms, 34000);
    assert_int_equal(c->session_ms, 35000);
    assert_int_equal(c->n_versions, 2);
    assert_string_equal(c->versions[0].name, "1.0");
    assert_true(!c->versions[0].disabled && c->versions[1].disabled);
    assert_int_equal(f->config.n_launches, 1);
    const struct launch *l = &f->config.launches[0];
    assert_string_equal(l->fleet, "arena");
    assert_string_equal(l->binary, "bin/arena");
    assert_true(l->endpoint_uri);
    assert_int_equal(l->ports, 4);
    assert_int_equal(l->n_arguments, 2);
    assert_string_equal(l->arguments[0], "--fast");
    assert_int_equal(l->n_env, 2);
    assert_string_equal(l->env[0].key, "LANG");
    assert_string_equal(l->env[0].value, "C");
    assert_string_equal(l->server_settings, "{\"map\": \"dust\"}\n");
    assert_string_equal(l->token_account, "robot");
    assert_string_equal(l->token_scopes, "game,profile");
    assert_string_equal(l->discover[0].key, "login");
    assert_string_equal(l->discover[0].value, "https://login.example");
    assert_int_equal(l->status_period_ms, 33000);
    assert_int_equal(l->n_versions, 2);
    assert_null(l->versions[0].server_settings);
    assert_string_equal(l->versions[1].name, "2.0");
    assert_string_equal(l->versions[1].server_settings, "{\"map\":1}");
}

static void test_what_a_fleet_of_agents_does_not_say(void **state)
{
    struct fixture *f = *state;
    accept_text(f,
                "fleets:\n"
                "  - {name: a, provider: agent, game: g, server: s, binary: b, max_players: 1}\n"
                "  - {name: b, provider: agent, game: g, server: t, binary: b, max_players: 1}\n");
    const struct fleet_config *c = &f->config.core.fleets[1];
    const struct launch *l = &f->config.launches[1];
    assert_true(c->regions == 0 && !c->other_regions);
    assert_int_equal(c->spawn_ms, 30000);
    assert_int_equal(c->reserve_ms, 30000);
    assert_int_equal(c->empty_ms, 300000);
    assert_int_equal(c->session_ms, 21600000);
    assert_int_equal(c->n_versions, 0);
    assert_string_equal(l->fleet, "b");
    assert_int_equal(l->ports, 1);
    assert_false(l->endpoint_uri);
    assert_int_equal(l->status_period_ms, 10000);
    assert_null(l->server_settings);
}

#define AGENT_FLEET "fleets:\n  - {name: a, provider: agent, game: g, server: s, "
#define AGENT_FLEET_MORE AGENT_FLEET "binary: b, max_players: 1,\n     "
#define AT_FLEET "muster.yaml: line 3: fleets, entry 1, "

static void test_wrong_fleets_of_agents(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {AGENT_FLEET "max_players: 2}\n",
         "muster.yaml: line 2: fleets, entry 1: binary is missing; "
         "a fleet of provider agent needs it"},
        {AGENT_FLEET "binary: b}\n",
         "muster.yaml: line 2: fleets, entry 1: max_players is missing; "
         "a fleet of provider agent needs it"},
        {AGENT_FLEET_MORE "ports: 5}\n",
         AT_FLEET "ports: must be a whole number from 1 to 4, not '5'"},
        {AGENT_FLEET_MORE "regions: [XX]}\n", AT_FLEET "regions, entry 1: there is no region 'XX'"},
        {AGENT_FLEET_MORE "endpoint: tcp}\n", AT_FLEET "endpoint: must be path or uri, not 'tcp'"},
        {AGENT_FLEET_MORE "server_settings: '{\"a\": }'}\n",
         AT_FLEET "server_settings: must be a JSON object; in it, line 1, column 7: unexpected "
                  "token near '}'"},
        {AGENT_FLEET_MORE "server_settings: '[]'}\n",
         AT_FLEET "server_settings: must be a JSON object, not another value"},
        {AGENT_FLEET_MORE "env: [{key: A, value: x}, {key: A, value: y}]}\n",
         AT_FLEET "env, entry 2, key: A is there twice"},
        {AGENT_FLEET_MORE "env: [{key: room_id, value: x}]}\n",
         AT_FLEET "env, entry 1, key: room_id is set by the agent"},
        {AGENT_FLEET_MORE "env: [{key: 1A, value: x}]}\n",
         AT_FLEET "env, entry 1, key: must be 1 to 63 of A-Z a-z 0-9 _ and begin with no digit"},
        {AGENT_FLEET_MORE "discover: [{name: a, url: ftp://x}]}\n",
         AT_FLEET "discover, entry 1, url: must be a URL of at most 255 bytes that begins with "
                  "http:// or https://"},
        {AGENT_FLEET_MORE "access_token: {account: a, scopes: 'a,,b'}}\n",
         AT_FLEET "access_token, scopes: must be scopes with commas between them, as "
                  "game,profile, not 'a,,b'"},
        {AGENT_FLEET_MORE "versions: [{name: '1'}, {name: '1'}]}\n",
         AT_FLEET "versions, entry 2, name: 1 is there twice"},
        {AGENT_FLEET_MORE "versions: [{name: '1', server_settings: x}]}\n",
         AT_FLEET "versions, entry 1, server_settings: must be a JSON object; in it, line 1, "
                  "column 1: invalid token near 'x'"},
        {AGENT_FLEET_MORE "ready_required: true}\n",
         AT_FLEET "ready_required: is for fleets of provider chat only"},
        {AGENT_FLEET_MORE "spawn_timeout_s: 46}\n",
         AT_FLEET "spawn_timeout_s: servers get 46000 ms to start, but players wait only 45000 ms "
                  "(timeouts, place_ms)"},
        {AGENT_FLEET_MORE "}\n  - {name: b, provider: agent, game: g, server: s, binary: b, "
                          "max_players: 1}\n",
         "muster.yaml: line 4: fleets, entry 2, server: g/s is fleet a already"},
        {AGENT_FLEET_MORE "}\ntokens: [{token: t, role: server, fleet: a}]\n",
         "muster.yaml: line 4: tokens, entry 1, fleet: the servers of fleet a are started by "
         "agents and need no such token"},
        {"fleets: [{name: a, provider: cloud}]\n",
         "muster.yaml: line 1: fleets, entry 1, provider: must be chat, agent or agones, not "
         "'cloud'"},
        {"fleets: [{name: a, binary: b}]\n",
         "muster.yaml: line 1: fleets, entry 1, binary: is for fleets of provider agent only"},
        {"fleets: [{name: a, versions: [{name: b}]}]\n",
         "muster.yaml: line 1: fleets, entry 1, versions: is for fleets of provider agent only"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refuse_text(f, rows[i].text, rows[i].sentence);
}

static void test_how_allocations_are_placed(void **state)
{
    struct fixture *f = *state;
    accept_text(f, AGENT_FLEET_MORE "}\n");
    const struct fleet_config *c = &f->config.core.fleets[0];
    assert_false(c->taken_at_once);
    assert_false(c->spread);
    assert_true(c->queue_when_full);
    assert_int_equal(c->queue_ms, 120000);
    assert_int_equal(c->token, TOKEN_OPAQUE);
    accept_text(f, AGENT_FLEET_MORE "confirm: none, fill: spread, when_full: fail, "
                                    "queue_timeout_s: 7, token: player-id}\n");
    assert_true(c->taken_at_once);
    assert_true(c->spread);
    assert_false(c->queue_when_full);
    assert_int_equal(c->queue_ms, 7000);
    assert_int_equal(c->token, TOKEN_PLAYER_ID);
    accept_text(f, AGENT_FLEET_MORE "confirm: joined, fill: pack, when_full: queue, "
                                    "token: opaque}\n");
    refuse_text(f, AGENT_FLEET_MORE "fill: full}\n",
                AT_FLEET "fill: must be pack or spread, not 'full'");
    refuse_text(f, AGENT_FLEET_MORE "token: player}\n",
                AT_FLEET "token: must be opaque or player-id, not 'player'");
    refuse_text(f, AGENT_FLEET_MORE "queue_timeout_s: 0}\n",
                AT_FLEET "queue_timeout_s: must be a whole number from 1 to 86400, not '0'");
    refuse_text(f, "fleets: [{name: a, when_full: fail}]\n",
                "muster.yaml: line 1: fleets, entry 1, when_full: is for fleets of provider agent "
                "or agones only");
}

static void test_a_node_of_a_cell(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "cluster: {store: 'postgres://muster@10.0.0.9/muster', cell: eu_1, node: a,\n"
                   "  lease_ms: 3000, advertise_http: 'https://a.example:9508',\n"
                   "  advertise_server: 'a.example:11032', advertise_client: '[2001:db8::1]:1',\n"
                   "  ca_file: ca.pem}\n");
    const struct config_cluster *c = &f->config.cluster;
    assert_string_equal(c->store, "postgres://muster@10.0.0.9/muster");
    assert_string_equal(c->cell, "eu_1");
    assert_int_equal(c->lease_ms, 3000);
    assert_string_equal(c->server, "a.example:11032");
    assert_string_equal(c->manager, "");
    assert_string_equal(c->ca_file, "ca.pem");
    refuse_text(f, "cluster: {cell: EU}\n",
                "muster.yaml: line 1: cluster, cell: must be 1 to 32 characters of a-z, 0-9 and _, "
                "not 'EU'");
    refuse_text(f, "cluster: {node: 'node 1'}\n",
                "muster.yaml: line 1: cluster, node: must be 1 to 63 of A-Z a-z 0-9 . _ -, not "
                "'node 1'");
    refuse_text(f, "cluster: {advertise_server: 10.0.0.1}\n",
                "muster.yaml: line 1: cluster, advertise_server: must be an address with its port, "
                "as 10.0.0.1:11032, not '10.0.0.1'");
    refuse_text(f, "cluster: {store: 'mysql://root:hush@h/d'}\n",
                "muster.yaml: line 1: cluster, store: The database's URL cannot be read. It looks "
                "like postgres://user@host:5432/database.");
}

static void test_fleets_of_kubernetes(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "default_region: USE\n"
                   "fleets:\n"
                   "  - {name: a, provider: agones, max_players: 8}\n"
                   "  - {name: b, provider: agones, max_players: 8, regions: [EU],\n"
                   "     agones: {fleet: simple, namespace: games, port: udp, list: players,\n"
                   "              counter: rooms}}\n"
                   "kubernetes: {url: 'https://10.0.0.1:6443', ca_file: ca.pem,\n"
                   "             token_file: /run/token, kubeconfig: kube}\n"
                   "routes: {quilkin_file: routes.yaml}\n");
    const struct config *c = &f->config;
    const struct fleet_config *fleet = &c->core.fleets[0];
    assert_int_equal(fleet->provider, PROVIDER_AGONES);
    assert_true(fleet->taken_at_once);
    assert_true(fleet->queue_when_full);
    assert_int_equal(fleet->n_versions, 1);
    assert_string_equal(fleet->versions[0].name, "1");
    assert_int_equal(c->n_agones, 2);
    assert_int_equal(c->n_launches, 0);
    assert_string_equal(c->agones[0].fleet, "a");
    assert_string_equal(c->agones[0].name, "a");
    assert_string_equal(c->agones[0].namespace, "default");
    assert_string_equal(c->agones[0].port, "");
    assert_string_equal(c->core.regions[c->agones[0].region].name, "USE");
    assert_true(fleet->regions == UINT64_C(1) << c->agones[0].region);
    assert_string_equal(c->agones[1].fleet, "b");
    assert_string_equal(c->agones[1].name, "simple");
    assert_string_equal(c->agones[1].namespace, "games");
    assert_string_equal(c->agones[1].port, "udp");
    assert_string_equal(c->agones[1].list, "players");
    assert_string_equal(c->agones[1].counter, "rooms");
    assert_string_equal(c->core.regions[c->agones[1].region].name, "EU");
    assert_string_equal(c->kubernetes.url, "https://10.0.0.1:6443");
    assert_string_equal(c->kubernetes.ca_file, "ca.pem");
    assert_string_equal(c->kubernetes.token_file, "/run/token");
    assert_string_equal(c->kubernetes.kubeconfig, "kube");
    assert_string_equal(c->quilkin_file, "routes.yaml");
}

#define AGONES_FLEET "fleets:\n  - {name: a, provider: agones, max_players: 1,\n     "

static void test_wrong_fleets_of_kubernetes(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"fleets: [{name: a, provider: agones}]\n",
         "muster.yaml: line 1: fleets, entry 1: max_players is missing; a fleet of provider agones "
         "needs it"},
        {AGONES_FLEET "regions: [EU, USE]}\n",
         AT_FLEET "regions: a fleet of provider agones is in one region"},
        {AGONES_FLEET "confirm: joined}\n",
         AT_FLEET "confirm: must be none: nobody says there that a player joined"},
        {AGONES_FLEET "binary: b}\n", AT_FLEET "binary: is for fleets of provider agent only"},
        {AGONES_FLEET "agones: {fleet: 'a b'}}\n",
         AT_FLEET "agones, fleet: must be 1 to 253 of A-Z a-z 0-9 . _ -, not 'a b'"},
        {AGONES_FLEET "agones: {flet: a}}\n",
         "muster.yaml: line 3: fleets, entry 1, agones: there is no setting 'flet'; did you mean "
         "'fleet'?"},
        {"fleets: [{name: a, agones: {fleet: b}}]\n",
         "muster.yaml: line 1: fleets, entry 1, agones: is for fleets of provider agones only"},
        {AGONES_FLEET "}\ntokens: [{token: t, role: server, fleet: a}]\n",
         "muster.yaml: line 4: tokens, entry 1, fleet: the servers of fleet a are started by "
         "Kubernetes and need no such token"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        refuse_text(f, rows[i].text, rows[i].sentence);
}

static void test_buses(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "nats: {urls: ['nats://a:4222', 'tls://b'], user: u, password: 'p w',\n"
                   "       stream: GAMES, ack_wait_ms: 5000, max_deliver: 3}\n"
                   "pubsub: {project: p, topic: t, subscription: s, pull_messages: 7}\n");
    const struct config_nats *n = &f->config.nats;
    const struct config_pubsub *p = &f->config.pubsub;
    assert_int_equal(n->n_urls, 2);
    assert_string_equal(n->urls[1], "tls://b");
    assert_string_equal(n->user, "u");
    assert_string_equal(n->password, "p w");
    assert_string_equal(n->request_subject, "muster.allocation.request");
    assert_string_equal(n->stream, "GAMES");
    assert_int_equal(n->ack_wait_ms, 5000);
    assert_int_equal(n->max_deliver, 3);
    assert_string_equal(p->project, "p");
    assert_string_equal(p->topic, "t");
    assert_string_equal(p->subscription, "s");
    assert_int_equal(p->pull_messages, 7);
    assert_int_equal(p->pulls, 2);
    refuse_text(f, "nats: {urls: ['http://a']}\n",
                "muster.yaml: line 1: nats, urls, entry 1: must be a URL as nats://host:4222 or "
                "tls://host:4222, of at most 255 bytes and without a user");
    refuse_text(f, "nats: {urls: ['nats://u:secret@a']}\n",
                "muster.yaml: line 1: nats, urls, entry 1: must be a URL as nats://host:4222 or "
                "tls://host:4222, of at most 255 bytes and without a user");
    refuse_text(f, "pubsub:\n  project: p\n  subscription: s\n",
                "muster.yaml: line 1: pubsub: topic is missing; results are published there");
    refuse_text(f, "pubsub: {project: p, topic: t}\n",
                "muster.yaml: line 1: pubsub: subscription is missing, and push_audience: no "
                "request could come");
    refuse_text(f, "pubsub: {topic: t}\n", "muster.yaml: line 1: pubsub: project is missing");
    refuse_text(f, "pubsub: {project: p, topic: t, push_audience: a}\n",
                "muster.yaml: line 1: pubsub: push_account is missing; anybody with a token of "
                "Google's could push");
}

static void test_what_holds_for_players(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "default_region: EU\n"
                   "rates: {create: [{count: 2, seconds: 10}]}\n"
                   "geo: {file: places.mmdb}\n"
                   "http: {trusted_proxies: [10.0.0.0/8, '::1']}\n");
    const struct core_config *core = &f->config.core;
    assert_int_equal(core->default_region, 2);
    assert_string_equal(config_default_region(&f->config), "EU");
    assert_int_equal(core->create_rates[0].count, 2);
    assert_int_equal(core->create_rates[0].ms, 10000);
    assert_int_equal(core->create_rates[1].count, 0);
    assert_int_equal(core->join_rates[0].count, 30);
    assert_string_equal(f->config.geo_file, "places.mmdb");
    assert_int_equal(f->config.n_proxies, 2);
    assert_int_equal(f->config.proxies[0].bits, 104);

    refuse_text(f, "default_region: XX\n",
                "muster.yaml: line 1: default_region: there is no region 'XX'");
    refuse_text(f, "rates:\n  join:\n    - {count: 0, seconds: 5}\n",
                "muster.yaml: line 3: rates, join, entry 1, count: must be a whole number from 1 "
                "to 1000000, not '0'");
    refuse_text(f, "http: {trusted_proxies: [10.0.0.1/8]}\n",
                "muster.yaml: line 1: http, trusted_proxies, entry 1: must be an address or a "
                "network, as 10.0.0.0/8, not '10.0.0.1/8'");
    refuse_text(f, "timeouts: {host_ms: 5000, host_lost_ms: 4999}\n",
                "muster.yaml: line 1: timeouts: host_ms is above host_lost_ms");
}

static void test_files(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/muster-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "limits: {servers: 7}\n", 21), 21);
    assert_int_equal(config_load(path, &f->config, &f->mistakes), 0);
    assert_int_equal(f->config.core.limits.servers, 7);

    assert_int_equal(ftruncate(fd, CONFIG_FILE_MAX + 1), 0);
    assert_int_equal(config_load(path, &f->config, &f->mistakes), ERR_INVALID_REQUEST);
    assert_non_null(strstr(f->mistakes.sentence[0], "longer than 1048576 bytes"));
    close(fd);
    unlink(path);

    assert_int_equal(config_load(path, &f->config, &f->mistakes), ERR_IO);
    assert_non_null(strstr(f->mistakes.sentence[0], "No such file or directory"));
    assert_int_equal(config_load("/tmp", &f->config, &f->mistakes), ERR_IO);
    assert_string_equal(f->mistakes.sentence[0], "Cannot read /tmp: Is a directory");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_defaults),
        T(test_a_file_that_says_nothing_changes_nothing),
        T(test_regions_fleets_timeouts_and_limits),
        T(test_ports_logs_and_access),
        T(test_files_are_relative_to_the_file),
        T(test_tokens_are_kept_as_hashes),
        T(test_unknown_keys_are_refused),
        T(test_wrong_shapes_are_refused),
        T(test_a_list_that_is_too_long),
        T(test_an_empty_list_is_not_the_default),
        T(test_what_is_not_yaml_is_refused_with_its_line),
        T(test_numbers_are_digits),
        T(test_words_and_texts),
        T(test_wrong_regions),
        T(test_wrong_locations),
        T(test_wrong_fleets),
        T(test_wrong_tokens),
        T(test_wrong_files_and_keys),
        T(test_every_mistake_is_named),
        T(test_no_sentence_holds_a_token),
        T(test_settings_that_contradict_each_other),
        T(test_fleets_of_agents),
        T(test_what_a_fleet_of_agents_does_not_say),
        T(test_wrong_fleets_of_agents),
        T(test_how_allocations_are_placed),
        T(test_a_node_of_a_cell),
        T(test_fleets_of_kubernetes),
        T(test_wrong_fleets_of_kubernetes),
        T(test_buses),
        T(test_what_holds_for_players),
        T(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

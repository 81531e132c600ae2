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
    char why[CONFIG_WHY_MAX];
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
    free(*state);
    return 0;
}

static int parse(struct fixture *f, const char *text)
{
    config_default(&f->config);
    f->why[0] = '\0';
    return config_parse("muster.yaml", text, strlen(text), &f->config, f->why);
}

static void accept_text(struct fixture *f, const char *text)
{
    int err = parse(f, text);
    assert_string_equal(f->why, "");
    assert_int_equal(err, 0);
}

static void refuse_text(struct fixture *f, const char *text, const char *sentence)
{
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_string_equal(f->why, sentence);
}

static void test_defaults(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(f->config.bind_ip, "0.0.0.0");
    assert_int_equal(f->config.server_port, 11032);
    assert_int_equal(f->config.manager_port, 11033);
    assert_int_equal(f->config.core.n_enrolments, 0);
    assert_string_equal(f->config.core.regions[2].name, "EU");
}

static void test_a_file_that_says_nothing_changes_nothing(void **state)
{
    struct fixture *f = *state;
    const char *texts[] = {"", "# only a comment\n", "{}\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        accept_text(f, texts[i]);
        assert_memory_equal(&f->config, &f->untouched, sizeof(f->config));
    }
}

static void test_everything_at_once(void **state)
{
    struct fixture *f = *state;
    accept_text(f, "regions: [{code: 0, name: North}, {code: 63, name: South}]\n"
                   "fleets:\n"
                   "  - name: default\n"
                   "  - {name: ranked, ready_required: true}\n"
                   "tokens:\n"
                   "  - {token: one, role: server, fleet: ranked, regions: [South]}\n"
                   "  - {token: two, role: chat}\n"
                   "timeouts: {ack_ms: 1500, lost_ms: 604800000}\n"
                   "limits: {servers: 12}\n"
                   "listen: {bind: '::1', server_port: 0, manager_port: 65535, connections: 9,\n"
                   "         connections_per_address: 8}\n");
    const struct core_config *core = &f->config.core;
    assert_string_equal(core->regions[0].name, "North");
    assert_string_equal(core->regions[63].name, "South");
    assert_string_equal(core->regions[2].name, "");
    assert_int_equal(core->n_fleets, 2);
    assert_false(core->fleets[0].ready_required);
    assert_string_equal(core->fleets[1].name, "ranked");
    assert_true(core->fleets[1].ready_required);
    assert_int_equal(core->timeouts.ack_ms, 1500);
    assert_int_equal(core->timeouts.lost_ms, 604800000);
    assert_int_equal(core->timeouts.ticket_ms, f->untouched.core.timeouts.ticket_ms);
    assert_int_equal(core->limits.servers, 12);
    assert_int_equal(core->limits.chat_servers, f->untouched.core.limits.chat_servers);
    assert_string_equal(f->config.bind_ip, "::1");
    assert_int_equal(f->config.server_port, 0);
    assert_int_equal(f->config.manager_port, 65535);
    assert_int_equal(f->config.connections, 9);
    assert_int_equal(f->config.connections_per_address, 8);
}

static void test_tokens_are_kept_as_hashes(void **state)
{
    struct fixture *f = *state;
    uint8_t hash[CORE_HASH_SIZE];
    accept_text(f, "fleets: [{name: default}, {name: ranked}]\n"
                   "regions: [{code: 0, name: North}, {code: 63, name: South}]\n"
                   "tokens: [{token: one, role: server, fleet: ranked, regions: [South]},\n"
                   "         {token: two, role: chat}]\n");
    const struct enrolment *e = f->config.core.enrolments;
    assert_int_equal(f->config.core.n_enrolments, 2);
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
}

static void test_unknown_keys_are_refused(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "colour: blue\n", "muster.yaml: line 1: there is no setting 'colour'");
    refuse_text(f, "timeouts:\n  ack: 5\n",
                "muster.yaml: line 2: timeouts: there is no setting 'ack'");
    refuse_text(f, "regions:\n  - {code: 1, nam: X}\n",
                "muster.yaml: line 2: regions, entry 1: there is no setting 'nam'");
}

static void test_wrong_shapes_are_refused(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "tokens: 3\n", "muster.yaml: line 1: tokens: must be a list");
    refuse_text(f, "- a\n", "muster.yaml: must be settings, each \"name: value\"");
    refuse_text(f, "limits:\n  5\n",
                "muster.yaml: line 2: limits: must be settings, each \"name: value\"");
    refuse_text(f, "limits: {servers: [1]}\n",
                "muster.yaml: line 1: limits, servers: must be one value, not a list or settings");
    refuse_text(f, "limits: {servers: 1, servers: 2}\n",
                "muster.yaml: line 1: limits, servers: is there twice");
    refuse_text(f, "tokens:\n- {token: a}\n",
                "muster.yaml: line 2: tokens, entry 1: role is missing");
    refuse_text(f, "tokens:\n- {token: a, role: boss}\n",
                "muster.yaml: line 2: tokens, entry 1, role: must be server or chat, not 'boss'");
    refuse_text(f, "tokens:\n- {token: a, role: }\n",
                "muster.yaml: line 2: tokens, entry 1, role: must be server or chat");
    refuse_text(f, "fleets:\n- {name: a, ready_required: maybe}\n",
                "muster.yaml: line 2: fleets, entry 1, ready_required: must be true or false, not "
                "'maybe'");
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
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_non_null(strstr(f->why, "line 66: regions: there are more than 64"));
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
    assert_non_null(strstr(f->why, "byte 8: "));
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
        assert_non_null(strstr(f->why, "timeouts, ack_ms: must be a whole number"));
    }
    refuse_text(f, "limits: {servers: 0}\n",
                "muster.yaml: limits, servers: must be a whole number from 1 to 10000000, not '0'");
    refuse_text(f, "listen: {server_port: 65536}\n",
                "muster.yaml: listen, server_port: must be a whole number from 0 to 65535, not "
                "'65536'");
}

static void test_wrong_regions(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "regions: [{code: 17, name: Any}]\n",
                "muster.yaml: regions, entry 1: the code must be 0 to 63 without 17 (which means "
                "any), not '17'");
    assert_int_equal(parse(f, "regions: [{code: 64, name: A}]\n"), ERR_INVALID_REQUEST);
    refuse_text(f, "regions: [{code: 1, name: A}, {code: 1, name: B}]\n",
                "muster.yaml: regions, entry 2: code 1 is already A");
    refuse_text(f, "regions: [{code: 1, name: A}, {code: 2, name: A}]\n",
                "muster.yaml: regions, entry 2: A is there twice");
    refuse_text(f, "regions: [{code: 1, name: 'A B'}]\n",
                "muster.yaml: regions, entry 1: the name must be 1 to 15 of A-Z a-z 0-9 . _ -");
    assert_int_equal(parse(f, "regions: [{code: 1, name: ''}]\n"), ERR_INVALID_REQUEST);
    assert_int_equal(parse(f, "regions: [{code: 1, name: abcdefghijklmnop}]\n"),
                     ERR_INVALID_REQUEST);
    accept_text(f, "regions: [{code: 1, name: abcdefghijklmno}]\n");
}

static void test_wrong_fleets(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "fleets: [{name: a}, {name: a}]\n",
                "muster.yaml: fleets, entry 2: a is there twice");
    refuse_text(f, "fleets: [{name: 'a/b'}]\n",
                "muster.yaml: fleets, entry 1: the name must be 1 to 63 of A-Z a-z 0-9 . _ -");
}

static void test_wrong_tokens(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "tokens: [{token: a, role: chat, fleet: none}]\n",
                "muster.yaml: tokens, entry 1: there is no fleet none");
    refuse_text(f, "tokens: [{token: a, role: chat, regions: [EU, MARS]}]\n",
                "muster.yaml: tokens, entry 1: there is no region MARS");
    refuse_text(f, "tokens: [{token: a, role: chat}, {token: a, role: server}]\n",
                "muster.yaml: tokens, entry 2: the same token as entry 1");
    refuse_text(f, "tokens: [{token: '', role: chat}]\n",
                "muster.yaml: tokens, entry 1: the token must be 1 to 512 bytes");
    refuse_text(f, "fleets: [{name: a}]\ntokens: [{token: t, role: chat}]\n",
                "muster.yaml: tokens, entry 1: there is no fleet default");
}

/* Sentences end up in logs and terminals; a token must not. */
static void test_no_sentence_holds_a_token(void **state)
{
    struct fixture *f = *state;
    char text[1200];
    snprintf(text, sizeof(text), "tokens: [{token: hunter2%0600d, role: chat}]\n", 0);
    assert_int_equal(parse(f, text), ERR_INVALID_REQUEST);
    assert_null(strstr(f->why, "hunter2"));
    const char *texts[] = {
        "tokens: [{token: hunter2, role: chat}, {token: hunter2, role: chat}]\n",
        "tokens: [{token: hunter2, role: boss}]\n",
        "tokens: [{token: hunter2, role: chat, fleet: none}]\n",
        "tokens: [{token: hunter2}]\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(parse(f, texts[i]), ERR_INVALID_REQUEST);
        assert_null(strstr(f->why, "hunter2"));
    }
}

static void test_other_mistakes(void **state)
{
    struct fixture *f = *state;
    refuse_text(f, "timeouts: {backoff_first_ms: 10, backoff_max_ms: 9}\n",
                "muster.yaml: timeouts: backoff_first_ms is above backoff_max_ms");
    refuse_text(f, "listen: {bind: localhost}\n",
                "muster.yaml: listen, bind: 'localhost' is not an IP address");
}

static void test_files(void **state)
{
    struct fixture *f = *state;
    char path[] = "/tmp/muster-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "limits: {servers: 7}\n", 21), 21);
    assert_int_equal(config_load(path, &f->config, f->why), 0);
    assert_int_equal(f->config.core.limits.servers, 7);

    assert_int_equal(ftruncate(fd, CONFIG_FILE_MAX + 1), 0);
    assert_int_equal(config_load(path, &f->config, f->why), ERR_INVALID_REQUEST);
    assert_non_null(strstr(f->why, "longer than 1048576 bytes"));
    close(fd);
    unlink(path);

    assert_int_equal(config_load(path, &f->config, f->why), ERR_IO);
    assert_non_null(strstr(f->why, "No such file or directory"));
    assert_int_equal(config_load("/tmp", &f->config, f->why), ERR_IO);
    assert_string_equal(f->why, "Cannot read /tmp: Is a directory");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_defaults),
        T(test_a_file_that_says_nothing_changes_nothing),
        T(test_everything_at_once),
        T(test_tokens_are_kept_as_hashes),
        T(test_unknown_keys_are_refused),
        T(test_wrong_shapes_are_refused),
        T(test_a_list_that_is_too_long),
        T(test_an_empty_list_is_not_the_default),
        T(test_what_is_not_yaml_is_refused_with_its_line),
        T(test_numbers_are_digits),
        T(test_wrong_regions),
        T(test_wrong_fleets),
        T(test_wrong_tokens),
        T(test_no_sentence_holds_a_token),
        T(test_other_mistakes),
        T(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

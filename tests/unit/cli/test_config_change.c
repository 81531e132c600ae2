/* Two configurations compared: a line for each difference, and what stays as it is. */
#include "cli/config_change.h"

#include "base/log.h"
#include "lib/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    struct config old;
    struct config new;
    struct config_mistakes mistakes;
    char log[8192]; /* without times */
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    config_done(&f->old);
    config_done(&f->new);
    free(f);
    return 0;
}

static void load(struct fixture *f, const char *text, struct config *ret)
{
    f->mistakes.sentence[0][0] = '\0';
    config_done(ret);
    config_default(ret);
    config_parse("muster.yaml", text, strlen(text), ret, &f->mistakes);
    assert_string_equal(f->mistakes.sentence[0], "");
}

/* Cuts "ts=… " off every line. */
static void drop_times(char *text)
{
    char *to = text;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        char *at = strchr(line, ' ') + 1;
        memmove(to, at, (size_t)(end + 1 - at));
        to += end + 1 - at;
    }
    *to = '\0';
}

static int change(struct fixture *f, const char *before, const char *after)
{
    int ends[2];
    load(f, before, &f->old);
    load(f, after, &f->new);
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    int n = config_change(&f->old, &f->new);
    dup2(kept, STDERR_FILENO);
    ssize_t len = read(ends[0], f->log, sizeof(f->log) - 1);
    f->log[len > 0 ? len : 0] = '\0';
    close(kept);
    close(ends[0]);
    close(ends[1]);
    drop_times(f->log);
    return n;
}

#define CHANGED "level=info msg=\"configuration changed\" what="
#define STAYS "level=warn msg=\"configuration cannot change without a restart\" what="

static void nothing_is_said_about_what_is_the_same(void **state)
{
    struct fixture *f = *state;
    static const char text[] = "tokens: [{token: a, role: chat}]\nfleets: [{name: default}]\n";
    assert_int_equal(change(f, text, text), 0);
    assert_string_equal(f->log, "");
    assert_int_equal(change(f, "", "listen: {server_port: 11032}\nhttp: {bind: 0.0.0.0}\n"), 0);
    assert_string_equal(f->log, "");
}

static void lists_say_what_came_went_and_is_different(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "fleets: [{name: old}, {name: same}, {name: other}]\n",
                            "fleets: [{name: other, ready_required: true}, {name: same},\n"
                            "         {name: arena}]\n"),
                     3);
    assert_string_equal(f->log, CHANGED "fleets n=3 names=\"~other +arena -old\"\n");
    assert_int_equal(change(f, "regions: [{code: 1, name: A}, {code: 2, name: B}]\n",
                            "regions: [{code: 1, name: A, latitude: 1, longitude: 2},\n"
                            "          {code: 3, name: B}, {code: 4, name: C}]\n"),
                     3);
    assert_string_equal(f->log, CHANGED "regions n=3 names=\"~A ~B +C\"\n");
    assert_int_equal(change(f, "access: {keys: [{name: a, algorithm: RS256, file: x}]}",
                            "access: {keys: [{name: a, algorithm: RS256, file: y},\n"
                            "                {name: b, algorithm: ES256, file: z}]}"),
                     2);
    assert_string_equal(f->log, CHANGED "access.keys n=2 names=\"~a +b\"\n");
}

#define ROOMS "fleets: [{name: a, provider: agent, game: g, server: s, binary: b, max_players: 1"

static void how_servers_are_started_is_compared(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, ROOMS ", env: [{key: K, value: secret}]}]", ROOMS "}]"), 1);
    assert_string_equal(f->log, CHANGED "fleets n=1 names=\"~a\"\n");
    assert_int_equal(change(f, ROOMS ", ports: 1}]", ROOMS "}]"), 0);
    assert_string_equal(f->log, "");
}

static void what_holds_for_players_is_compared(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "http: {trusted_proxies: [10.0.0.0/8, '::1']}\n",
                            "http: {trusted_proxies: ['::1', '::2']}\n"
                            "default_region: EU\n"
                            "rates: {join: [{count: 1, seconds: 2}, {count: 3, seconds: 4}]}\n"),
                     4);
    assert_string_equal(f->log,
                        CHANGED "http.trusted_proxies n=2 names=\"+::2 -10.0.0.0/8\"\n" CHANGED
                                "default_region before=\"USE\" now=\"EU\"\n" CHANGED
                                "rates.join before=\"30/60\" now=\"1/2 3/4\"\n");
}

/* printf %s one | b2sum -l 256, and so on; eight digits are enough to find them in the file. */
static void tokens_are_named_by_their_hash(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f,
                            "tokens: [{token: one, role: chat}, {token: two, role: chat},\n"
                            "         {token: three, role: chat, regions: [EU]}]\n",
                            "tokens: [{token: two, role: server}, {token: four, role: chat},\n"
                            "         {token: three, role: chat, regions: [EU]}]\n"),
                     3);
    assert_string_equal(f->log, CHANGED "tokens n=3 names=\"~7a52b251 +20493755 -d01c06cb\"\n");
}

static void a_long_list_is_cut_and_counted(void **state)
{
    struct fixture *f = *state;
    char text[8000] = "fleets:\n- {name: default}\n";
    for (int i = 0; i < 100; i++) {
        char line[40];
        snprintf(line, sizeof(line), "- {name: fleet-%d}\n", i);
        strcat(text, line);
    }
    assert_int_equal(change(f, "", text), 100);
    assert_non_null(strstr(f->log, "what=fleets n=100 names=\"+fleet-0 +fleet-1 "));
    const char *end = strstr(f->log, "\"\n");
    assert_true(end && f->log + strlen(f->log) == end + 2);
}

static void settings_say_before_and_now(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(
        change(f, "", "timeouts: {ack_ms: 3000}\nlog: {level: debug}\nhttp: {metrics: open}\n"), 3);
    assert_string_equal(f->log, CHANGED "http.metrics before=\"token\" now=\"open\"\n" CHANGED
                                        "log.level before=\"info\" now=\"debug\"\n" CHANGED
                                        "timeouts.ack_ms before=\"5000\" now=\"3000\"\n");
    assert_int_equal(f->new.core.timeouts.ack_ms, 3000);
    assert_true(f->new.metrics_open);
}

static void what_needs_a_restart_stays(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "",
                            "listen: {bind: 127.0.0.1, server_port: 5, connections: 7}\n"
                            "http: {port: 6}\n"
                            "limits: {servers: 5}\n"),
                     1);
    assert_string_equal(f->log, STAYS "listen.bind stays=\"0.0.0.0\" wanted=\"127.0.0.1\"\n" STAYS
                                      "listen.server_port stays=\"11032\" wanted=\"5\"\n" STAYS
                                      "listen.connections stays=\"20000\" wanted=\"7\"\n" STAYS
                                      "http.bind stays=\"0.0.0.0\" wanted=\"127.0.0.1\"\n" STAYS
                                      "http.port stays=\"9508\" wanted=\"6\"\n" CHANGED
                                      "limits.servers before=\"200000\" now=\"5\"\n");
    assert_string_equal(f->new.bind_ip, "0.0.0.0");
    assert_string_equal(config_http_bind(&f->new), "0.0.0.0");
    assert_int_equal(f->new.server_port, 11032);
    assert_int_equal(f->new.connections, 20000);
    assert_int_equal(f->new.http_port, 9508);
    assert_int_equal(f->new.core.limits.servers, 5);
}

static void a_port_does_not_begin_or_cease_to_speak_tls(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(change(f, "tls: {http: {certificate: a, key: b}}\n",
                            "tls: {server: {certificate: c, key: d}}\n"),
                     0);
    assert_string_equal(f->log, STAYS "tls.http stays=\"TLS\" wanted=\"plain\"\n" STAYS
                                      "tls.server stays=\"plain\" wanted=\"TLS\"\n");
    assert_string_equal(f->new.tls_http.certificate, "a");
    assert_string_equal(f->new.tls_server.certificate, "");
    assert_int_equal(change(f, "tls: {http: {certificate: a, key: b}}\n",
                            "tls: {http: {certificate: c, key: b, client_ca: d}}\n"),
                     2);
    assert_string_equal(f->log, CHANGED "tls.http.certificate before=\"a\" now=\"c\"\n" CHANGED
                                        "tls.http.client_ca before=\"\" now=\"d\"\n");
    assert_string_equal(f->new.tls_http.certificate, "c");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(nothing_is_said_about_what_is_the_same),
        T(lists_say_what_came_went_and_is_different),
        T(how_servers_are_started_is_compared),
        T(what_holds_for_players_is_compared),
        T(tokens_are_named_by_their_hash),
        T(a_long_list_is_cut_and_counted),
        T(settings_say_before_and_now),
        T(what_needs_a_restart_stays),
        T(a_port_does_not_begin_or_cease_to_speak_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

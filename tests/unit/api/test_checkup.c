#include "api/checkup.h"

#include "base/err.h"
#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

static struct checkup found;

/* A Muster with a server and a host, and nothing wrong. */
static struct checkup_place eu = {
    .region = "EU", .group = {.servers = {[SERVER_AVAILABLE] = 1}, .passed = {[PASSED_NOT] = 1}}};
static struct checkup_fleet fleet = {
    .name = "arena", .provider = PROVIDER_CHAT, .places = &eu, .n_places = 1};
static struct checkup_host host = {.id = 3, .name = "eu-1", .region = 1, .region_name = "EU"};

static struct checkup_facts healthy(void)
{
    return (struct checkup_facts){
        .commits = 100,
        .commit_p50_ms = 1,
        .commit_p99_ms = 4,
        .disk_bytes = 100LL << 30,
        .disk_free_bytes = 50LL << 30,
        .answered = 100,
        .fleets = &fleet,
        .n_fleets = 1,
        .hosts = &host,
        .n_hosts = 1,
    };
}

/* That is all it finds. */
static void is_found(const struct checkup_facts *facts, const char *code,
                     enum checkup_severity severity, const char *sentence)
{
    checkup(facts, &found);
    if (found.n_findings != 1)
        fail_msg("%zu findings, the first: %s", found.n_findings, found.sentence);
    const struct checkup_finding *f = &found.findings[0];
    assert_string_equal(f->code, code);
    assert_string_equal(f->sentence, sentence);
    assert_int_equal(f->severity, severity);
    assert_string_equal(found.sentence, sentence);
    assert_string_equal(checkup_status(&found),
                        severity == CHECKUP_CRITICAL ? "broken" : "degraded");
    assert_int_equal(strncmp(f->command, "muster ", 7), 0);
    assert_int_equal(strncmp(f->page, "#/", 2), 0);
    assert_true(strlen(f->advice) > 0 && f->advice[strlen(f->advice) - 1] != ' ');
}

static void is_not_found(const struct checkup_facts *facts)
{
    checkup(facts, &found);
    assert_int_equal(found.n_findings, 0);
    assert_string_equal(checkup_status(&found), "healthy");
}

static void a_cell_needs_a_standby_that_is_ready(void **state)
{
    (void)state;
    struct checkup_facts f = healthy();
    f.cell = "eu";
    is_found(&f, "no_standby", CHECKUP_WARNING,
             "Cell eu has no standby: when this node fails, nobody takes over.");
    f.standbys = 1;
    is_found(&f, "no_standby", CHECKUP_WARNING,
             "The standby of cell eu is not ready: when this node fails, nobody takes over.");
    f.standbys = 2;
    is_found(&f, "no_standby", CHECKUP_WARNING,
             "None of the standbys of cell eu is ready: when this node fails, nobody takes over.");
    f.standbys_ready = 1;
    is_not_found(&f);
    f.commit_under_way_ms = 3000;
    is_found(&f, "store_hangs", CHECKUP_WARNING,
             "The database hangs: a commit has been under way for 3 s, and every answer waits for "
             "it.");
}

static void a_leader_says_that_it_lacks_archives(void **state)
{
    (void)state;
    struct checkup_facts f = healthy();
    strcpy(f.archives_missing, "This node lacks the archives of 2 deployments.");
    is_found(&f, "archives_missing", CHECKUP_WARNING,
             "This node lacks the archives of 2 deployments.");
}

static void all_is_well(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    is_not_found(&facts);
    assert_string_equal(found.sentence,
                        "All is well: 1 game server registered, 1 host, nobody waits.");
    facts.queue = 2;
    is_not_found(&facts);
    assert_string_equal(found.sentence,
                        "All is well: 1 game server registered, 1 host, 2 wait in line.");
}

static void a_fresh_install_is_not_broken(void **state)
{
    (void)state;
    struct checkup_fleet fleets[] = {
        {.name = "default", .provider = PROVIDER_CHAT},
        {.name = "rooms", .provider = PROVIDER_AGENT, .versions = 1, .versions_enabled = 1}};
    struct checkup_facts facts = {.fleets = fleets, .n_fleets = 2};
    is_not_found(&facts);
    assert_string_equal(found.sentence,
                        "Nothing is wrong, and nothing has come yet: no game server and no host.");
    assert_int_equal(found.n_hints, 2);
    assert_string_equal(found.hints[0].sentence, "No game server of default is registered.");
    assert_string_equal(found.hints[0].command, "muster token enrol --role server --fleet default");
    assert_string_equal(found.hints[1].sentence,
                        "No host has come yet, so no room can be started.");
}

static void the_store_is_read_only(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.read_only = true;
    is_found(&facts, "store_read_only", CHECKUP_CRITICAL,
             "The store is read-only: commits fail, so nobody can be placed and nothing can be "
             "changed.");
}

static void the_history_cannot_be_written(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.history_lost = 12; /* some time ago */
    is_not_found(&facts);
    facts.history_failing = true;
    is_found(&facts, "history_failing", CHECKUP_WARNING,
             "The history cannot be written: 12 lines of what happened are lost since Muster "
             "started. Players are served all the same.");
    facts.history_lost = 1;
    is_found(&facts, "history_failing", CHECKUP_WARNING,
             "The history cannot be written: 1 line of what happened is lost since Muster "
             "started. Players are served all the same.");
}

static void the_disk_hangs(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.commit_under_way_ms = 1999;
    is_not_found(&facts);
    facts.commit_under_way_ms = 3000;
    is_found(&facts, "store_hangs", CHECKUP_WARNING,
             "The disk hangs: a commit has been under way for 3 s, and every answer waits for it.");
    facts.commit_under_way_ms = 7000;
    is_found(&facts, "store_hangs", CHECKUP_CRITICAL,
             "The disk hangs: a commit has been under way for 7 s, and every answer waits for it.");
}

static void commits_are_slow(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.commit_p50_ms = 80;
    facts.commit_p99_ms = 400;
    is_found(&facts, "commits_slow", CHECKUP_WARNING,
             "Commits are slow: half of them take 80 ms or more, one in a hundred 400 ms; an "
             "answer waits for two.");
    facts.commit_p50_ms = 600;
    checkup(&facts, &found);
    assert_int_equal(found.findings[0].severity, CHECKUP_CRITICAL);
    facts.commits = 3; /* too few to say so */
    is_not_found(&facts);
}

static void the_fold_is_behind(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.fold_lag = 1234;
    facts.fold_lag_ms = 45 * 1000;
    is_found(&facts, "fold_behind", CHECKUP_WARNING,
             "The readable tables are 45 s behind the journal: 1234 batches wait, and a start "
             "takes longer with each.");
    facts.fold_lag_ms = 601 * 1000;
    checkup(&facts, &found);
    assert_int_equal(found.findings[0].severity, CHECKUP_CRITICAL);
}

static void the_disk_is_nearly_full(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.disk_free_bytes = 700LL << 20;
    is_found(&facts, "disk_full", CHECKUP_WARNING,
             "The disk of the data folder is nearly full: 700 MiB of 100.0 GiB are left. When it "
             "is full nothing can be stored.");
    facts.disk_free_bytes = 0;
    checkup(&facts, &found);
    assert_int_equal(found.findings[0].severity, CHECKUP_CRITICAL);
    facts.disk_bytes = 0; /* nobody knows */
    is_not_found(&facts);
}

static void a_small_disk_is_not_full(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.disk_bytes = 64LL << 20;
    facts.disk_free_bytes = 60LL << 20;
    is_not_found(&facts);
}

static void a_broker_is_away(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.brokers[0] = (struct checkup_broker){.name = "nats", .connected = true};
    facts.brokers[1] = (struct checkup_broker){.name = "pubsub", .unsent = 1};
    facts.n_brokers = 2;
    is_found(&facts, "broker_away", CHECKUP_CRITICAL,
             "The broker pubsub is away: nobody can ask for a place through it, and 1 result "
             "waits for it.");
}

static void results_are_owed(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.results_owed = 999;
    is_not_found(&facts);
    facts.results_owed = 4000;
    is_found(&facts, "results_owed", CHECKUP_WARNING,
             "4000 results have not been confirmed by a broker yet.");
}

static void kubernetes_is_out_of_sight(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.cluster_away = "nobody answers";
    is_found(&facts, "cluster_away", CHECKUP_CRITICAL,
             "Kubernetes is out of sight, so nothing is placed there: nobody answers.");
}

static void too_many_are_refused(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.answered = 200;
    facts.unserved = 4;
    facts.worst_err = ERR_NO_SERVERS;
    facts.worst_count = 4;
    is_not_found(&facts);
    facts.unserved = 20;
    facts.worst_count = 15;
    is_found(&facts, "refusals", CHECKUP_WARNING,
             "20 of 200 requests of the last minute could not be served (10 %), mostly because: No "
             "servers available (15 times).");
    facts.unserved = 120;
    checkup(&facts, &found);
    assert_int_equal(found.findings[0].severity, CHECKUP_CRITICAL);
    facts.answered = 100000;
    is_not_found(&facts);
}

static void a_queue_is_long(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.queue = 1;
    facts.queue_oldest_ms = 59 * 1000;
    is_not_found(&facts);
    facts.queue_oldest_ms = 75 * 1000;
    is_found(&facts, "queue_long", CHECKUP_WARNING, "One request waits in line for 75 s.");
    facts.queue = 7;
    facts.queue_oldest_ms = 200 * 1000;
    is_found(&facts, "queue_long", CHECKUP_WARNING,
             "7 requests wait in line, the oldest for 3 min.");
}

static void all_servers_of_a_fleet_are_full_or_draining(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_place places[] = {
        {.region = "EU", .group = {.servers = {0, 3, 0, 0}, .passed = {[PASSED_FULL] = 3}}},
        {.region = "USE", .group = {.servers = {0, 0, 1, 0}, .passed = {[PASSED_DRAINING] = 1}}}};
    struct checkup_fleet full = {
        .name = "arena", .provider = PROVIDER_CHAT, .places = places, .n_places = 2};
    facts.fleets = &full;
    is_found(&facts, "fleet_full", CHECKUP_CRITICAL,
             "No server of arena can take a match: 1 draining, 3 full.");
    assert_string_equal(found.findings[0].command, "muster servers --fleet arena");
}

static void a_region_of_a_fleet_is_full(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_place places[] = {
        eu, {.region = "USE", .group = {.servers = {0, 2, 0, 0}, .passed = {[PASSED_FULL] = 2}}}};
    struct checkup_fleet full = {
        .name = "arena", .provider = PROVIDER_CHAT, .places = places, .n_places = 2};
    facts.fleets = &full;
    is_found(&facts, "region_full", CHECKUP_WARNING,
             "No server of arena in USE can take a match: 2 full.");
    assert_string_equal(found.findings[0].command, "muster servers --fleet arena --region USE");
}

static void many_servers_are_offline(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_place place = {.region = "EU",
                                  .group = {.servers = {10, 0, 0, 2}, .passed = {10, 2}}};
    struct checkup_fleet large = {
        .name = "arena", .provider = PROVIDER_CHAT, .places = &place, .n_places = 1};
    facts.fleets = &large;
    is_not_found(&facts);
    place.group.servers[SERVER_OFFLINE] = place.group.passed[PASSED_OFFLINE] = 4;
    is_found(&facts, "servers_offline", CHECKUP_WARNING, "4 of 14 servers of arena are offline.");
}

static struct checkup_host of(int64_t id, const char *name, enum host_passed_over why)
{
    return (struct checkup_host){
        .id = id, .name = name, .region = 1, .region_name = "EU", .passed_over = why};
}

static void hosts_are_silent(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_host hosts[] = {of(1, "eu-1", HOST_PASSED_NOT),
                                   of(2, "eu-2", HOST_PASSED_SILENT),
                                   of(3, "eu-3", HOST_PASSED_SILENT)};
    facts.hosts = hosts;
    facts.n_hosts = 3;
    hosts[1].quiet_ms = 12 * 1000;
    hosts[2].quiet_ms = 41 * 1000;
    is_found(&facts, "hosts_silent", CHECKUP_WARNING,
             "2 of 3 hosts in EU are silent: eu-3 for 41 s, eu-2 for 12 s.");
    assert_string_equal(found.findings[0].command, "muster hosts --status silent");
    hosts[1].passed_over = HOST_PASSED_NOT;
    hosts[2].quiet_ms = -1;
    is_found(&facts, "hosts_silent", CHECKUP_WARNING,
             "1 of 3 hosts in EU is silent: eu-3 since Muster started.");
    assert_string_equal(found.findings[0].command, "muster host 3");
    assert_string_equal(found.findings[0].page, "#/hosts/3");
}

static void the_longest_silent_are_named(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_host hosts[6];
    for (int i = 0; i < 6; i++) {
        hosts[i] = of(i + 1, i ? "quiet" : "eu-1", i ? HOST_PASSED_SILENT : HOST_PASSED_NOT);
        hosts[i].quiet_ms = 1000 * (i * 7 % 6);
    }
    facts.hosts = hosts;
    facts.n_hosts = 6;
    is_found(&facts, "hosts_silent", CHECKUP_WARNING,
             "5 of 6 hosts in EU are silent: quiet for 5 s, quiet for 4 s, quiet for 3 s and 2 "
             "more.");
}

static void hosts_fail_and_are_overloaded(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_host hosts[] = {of(1, "eu-1", HOST_PASSED_NOT),
                                   of(2, "eu-2", HOST_PASSED_FAILING)};
    facts.hosts = hosts;
    facts.n_hosts = 2;
    hosts[1].failed_why = "no port is free";
    hosts[1].backoff_left_ms = 40 * 1000;
    is_found(&facts, "hosts_failing", CHECKUP_WARNING,
             "1 of 2 hosts in EU is failing: eu-2 (no port is free; tried again in 40 s).");
    hosts[1].passed_over = HOST_PASSED_OVERLOADED;
    hosts[1].memory_percent = 97;
    hosts[1].cpu_percent = 20;
    is_found(&facts, "hosts_overloaded", CHECKUP_WARNING,
             "1 of 2 hosts in EU is overloaded: eu-2 (processors 20 %, memory 97 %).");
    hosts[1].passed_over = HOST_PASSED_DISABLED; /* somebody wants it so */
    is_not_found(&facts);
}

static void no_host_can_take_anything(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_host hosts[] = {of(1, "eu-1", HOST_PASSED_DISABLED),
                                   of(2, "us-1", HOST_PASSED_LEAVING)};
    hosts[1].region = 2;
    hosts[1].region_name = "USE";
    facts.hosts = hosts;
    facts.n_hosts = 2;
    is_found(&facts, "no_host", CHECKUP_CRITICAL,
             "No host can take a room: 1 leaving, 1 disabled.");
    hosts[0].passed_over = HOST_PASSED_NOT;
    is_found(&facts, "region_without_host", CHECKUP_WARNING,
             "No host in USE can take a room: 1 leaving.");
    assert_string_equal(found.findings[0].command, "muster hosts --region USE");
}

static void versions_are_turned_off(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_version bad = {.fleet = "arena",
                                  .name = "1.2",
                                  .reason = "It failed to start on 2 hosts in EU: no such map"};
    struct checkup_fleet played = {
        .name = "arena", .provider = PROVIDER_AGENT, .versions = 2, .versions_enabled = 1};
    facts.fleets = &played;
    facts.quarantined = &bad;
    facts.n_quarantined = 1;
    is_found(
        &facts, "version_quarantined", CHECKUP_WARNING,
        "Version 1.2 of arena is quarantined. It failed to start on 2 hosts in EU: no such map.");
    facts.n_quarantined = 0;
    is_not_found(&facts);
    played.versions_enabled = 0;
    is_found(&facts, "fleet_unplayable", CHECKUP_CRITICAL,
             "Nobody can play arena: each of its versions (2) is turned off.");
}

static void a_certificate_expires(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.certificates[0] = (struct checkup_certificate){.port = "http", .left_s = 30 * 86400};
    facts.n_certificates = 1;
    is_not_found(&facts);
    facts.certificates[0].left_s = 5 * 86400;
    is_found(&facts, "certificate_expires", CHECKUP_WARNING,
             "The certificate of the http port expires in 5 days.");
    facts.certificates[0].left_s = -7200;
    is_found(&facts, "certificate_expires", CHECKUP_CRITICAL,
             "The certificate of the http port has expired 2 h ago.");
}

static void the_worst_comes_first(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    facts.fold_lag_ms = 45 * 1000;
    facts.queue = 1;
    facts.queue_oldest_ms = 75 * 1000;
    facts.cluster_away = "nobody answers";
    checkup(&facts, &found);
    assert_int_equal(found.n_findings, 3);
    assert_string_equal(found.findings[0].code, "cluster_away");
    assert_string_equal(found.findings[1].code, "fold_behind");
    assert_string_equal(found.findings[2].code, "queue_long");
    assert_string_equal(checkup_status(&found), "broken");
    assert_string_equal(found.sentence, "Kubernetes is out of sight, so nothing is placed there: "
                                        "nobody answers. 2 more findings.");
}

static void what_is_too_much_is_counted(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    struct checkup_version bad[CHECKUP_FINDINGS_MAX + 10];
    for (size_t i = 0; i < CHECKUP_FINDINGS_MAX + 10; i++)
        bad[i] = (struct checkup_version){.fleet = "f", .name = "1", .reason = "r"};
    facts.quarantined = bad;
    facts.n_quarantined = CHECKUP_FINDINGS_MAX + 10;
    checkup(&facts, &found);
    assert_int_equal(found.n_findings, CHECKUP_FINDINGS_MAX);
    assert_int_equal(found.n_more, 10);
    assert_non_null(strstr(found.sentence, "73 more findings."));
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    struct checkup_facts facts = healthy();
    char name[500];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    facts.cluster_away = name;
    checkup(&facts, &found);
    assert_int_equal(strlen(found.findings[0].sentence), CHECKUP_SENTENCE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(a_leader_says_that_it_lacks_archives),
        cmocka_unit_test(a_cell_needs_a_standby_that_is_ready),
        cmocka_unit_test(a_fresh_install_is_not_broken),
        cmocka_unit_test(the_store_is_read_only),
        cmocka_unit_test(the_history_cannot_be_written),
        cmocka_unit_test(the_disk_hangs),
        cmocka_unit_test(commits_are_slow),
        cmocka_unit_test(the_fold_is_behind),
        cmocka_unit_test(the_disk_is_nearly_full),
        cmocka_unit_test(a_small_disk_is_not_full),
        cmocka_unit_test(a_broker_is_away),
        cmocka_unit_test(results_are_owed),
        cmocka_unit_test(kubernetes_is_out_of_sight),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(a_queue_is_long),
        cmocka_unit_test(all_servers_of_a_fleet_are_full_or_draining),
        cmocka_unit_test(a_region_of_a_fleet_is_full),
        cmocka_unit_test(many_servers_are_offline),
        cmocka_unit_test(hosts_are_silent),
        cmocka_unit_test(the_longest_silent_are_named),
        cmocka_unit_test(hosts_fail_and_are_overloaded),
        cmocka_unit_test(no_host_can_take_anything),
        cmocka_unit_test(versions_are_turned_off),
        cmocka_unit_test(a_certificate_expires),
        cmocka_unit_test(the_worst_comes_first),
        cmocka_unit_test(what_is_too_much_is_counted),
        cmocka_unit_test(a_long_name_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

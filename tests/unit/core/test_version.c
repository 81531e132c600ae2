/* Versions and deployments: which one players get, and switching. */
#include "core/version.h"

#include "fixture.h"

enum { OPERATOR = 900, WEST = USE };

static const struct effect *say(struct fixture *f, struct operate o)
{
    o.who = STR("admin");
    struct event e = {.kind = EVENT_OPERATE, .conn = OPERATOR, .operate = o};
    step(f, &e);
    return effect(f, EFFECT_OPERATED, OPERATOR);
}

static void configure(struct fixture *f)
{
    struct event e = {.kind = EVENT_CONFIGURE, .configure = &f->config};
    step(f, &e);
    add_tick(f);
}

static int setup(void **state)
{
    struct fixture *f = fixture_new();
    struct fleet_config *fleet = &f->config.fleets[f->config.n_fleets++];
    *fleet = (struct fleet_config){.name = "arena",
                                   .provider = PROVIDER_AGENT,
                                   .game = "game",
                                   .server = "arena",
                                   .regions = (uint64_t)1 << EU,
                                   .max_players = 4,
                                   .versions = {{"1.0", false}, {"0.9", true}},
                                   .n_versions = 2};
    configure(f);
    *state = f;
    return 0;
}

#define VERSION_TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

static struct fleet *arena(struct fixture *f)
{
    return fleet_find_named(f->core, "arena");
}

static int judge(struct fixture *f, const char *name)
{
    return version_judge(arena(f), str_of(name));
}

static struct version *version(struct fixture *f, const char *name)
{
    return version_row_of(arena(f), str_of(name));
}

static struct operate deploy_of(const char *name, uint8_t digest)
{
    struct operate o = {
        .verb = OPERATE_DEPLOY, .fleet = STR("arena"), .name = str_of(name), .size = 1000};
    memset(o.digest, digest, sizeof(o.digest));
    return o;
}

static int64_t deploy(struct fixture *f, const char *name, uint8_t digest)
{
    const struct effect *e = say(f, deploy_of(name, digest));
    assert_int_equal(e->err, 0);
    return e->object;
}

static int switch_to(struct fixture *f, int64_t deployment)
{
    return say(f, (struct operate){.verb = OPERATE_SWITCH, .target = deployment})->err;
}

static int turn(struct fixture *f, const char *fleet, const char *name, bool on)
{
    return say(f, (struct operate){.verb = on ? OPERATE_ENABLE_VERSION : OPERATE_DISABLE_VERSION,
                                   .fleet = str_of(fleet),
                                   .name = str_of(name)})
        ->err;
}

/* A host that was heard. */
static struct host *host_here(struct fixture *f, int64_t id, int8_t region)
{
    struct row_host row = {.id = id, .region = region};
    snprintf(row.name, sizeof(row.name), "host-%d", (int)id);
    assert_int_equal(host_load_row(f->core, &row), 0);
    host_loaded(f->core, host_find(f->core, id));
    return host_find(f->core, id);
}

/* It has fetched the archive of that digest too. */
static void fetch(struct host *host, uint8_t digest)
{
    host->deployments =
        xrealloc(host->deployments, (host->n_deployments + 1) * sizeof(*host->deployments));
    memset(host->deployments[host->n_deployments++], digest, OPERATE_DIGEST);
}

/* ── which there are ───────────────────────────────────────────────────────────────────────── */

static void versions_of_the_configuration_need_no_deployment(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(judge(f, "1.0"), 0);
    assert_int_equal(judge(f, "0.9"), ERR_VERSION_DISABLED);
    assert_int_equal(judge(f, "2.0"), ERR_NO_VERSION);
    assert_int_equal(judge(f, ""), ERR_NO_VERSION);
    assert_null(version(f, "1.0"));
    struct version *used = version_use(f->core, arena(f), STR("1.0"));
    assert_int_equal(used->row.deployment, 0);
    assert_ptr_equal(version_use(f->core, arena(f), STR("1.0")), used);
    seal(f);
    crash(f, 0);
    assert_non_null(version(f, "1.0"));
}

static void a_version_is_turned_off_and_on(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(turn(f, "arena", "1.0", false), 0);
    assert_int_equal(effect(f, EFFECT_OPERATED, OPERATOR)->object, version(f, "1.0")->row.id);
    assert_int_equal(judge(f, "1.0"), ERR_VERSION_DISABLED);
    seal(f);
    crash(f, 0);
    assert_int_equal(judge(f, "1.0"), ERR_VERSION_DISABLED);
    assert_int_equal(turn(f, "arena", "1.0", true), 0);
    assert_int_equal(judge(f, "1.0"), 0);
    assert_int_equal(turn(f, "arena", "0.9", true), ERR_VERSION_DISABLED);
    assert_int_equal(turn(f, "arena", "2.0", true), ERR_NO_VERSION);
    assert_int_equal(turn(f, "arena", "2.0", false), ERR_NO_VERSION);
    assert_int_equal(turn(f, "nowhere", "1.0", false), ERR_NO_SUCH_FLEET);
    assert_int_equal(turn(f, "default", "1.0", false), ERR_WRONG_PROVIDER);
}

/* ── deploying ─────────────────────────────────────────────────────────────────────────────── */

static void a_deployment_is_what_it_was_asked_for(void **state)
{
    struct fixture *f = *state;
    int64_t id = deploy(f, "2.0", 1);
    struct view_deployment seen;
    assert_true(view_deployment(f->core, id, &seen));
    assert_string_equal(seen.fleet, "arena");
    assert_string_equal(seen.version, "2.0");
    assert_string_equal(seen.who, "admin");
    assert_int_equal(seen.size, 1000);
    assert_int_equal(seen.digest[31], 1);
    assert_false(seen.current);
    assert_int_equal(judge(f, "2.0"), ERR_NO_VERSION); /* nothing runs it yet */
    struct view_version shown;
    int64_t fleet = fleet_find_named(f->core, "arena")->row.id;
    size_t last = 0;
    while (view_version(f->core, fleet, last + 1, &shown))
        last++;
    assert_true(view_version(f->core, fleet, last, &shown));
    assert_string_equal(shown.name, "2.0");
    assert_false(shown.enabled);
    assert_int_equal(deploy(f, "2.0", 1), id);
    assert_int_not_equal(deploy(f, "2.0", 2), id);
    assert_int_not_equal(deploy(f, "2.1", 1), id);
}

static void what_cannot_be_deployed_is_refused(void **state)
{
    struct fixture *f = *state;
    struct operate o = deploy_of("", 1);
    assert_int_equal(say(f, o)->err, ERR_BAD_ARGUMENT);
    o.name = STR("012345678901234567890123456789012"); /* 33 bytes */
    assert_int_equal(say(f, o)->err, ERR_BAD_ARGUMENT);
    o = deploy_of("2.0", 1);
    o.fleet = STR("nowhere");
    assert_int_equal(say(f, o)->err, ERR_NO_SUCH_FLEET);
    o.fleet = STR("default");
    assert_int_equal(say(f, o)->err, ERR_WRONG_PROVIDER);
    assert_int_equal(switch_to(f, 77), ERR_NOT_FOUND);
    assert_int_equal(core_next(f->core, ROW_deployment, 0), 0);
}

static void the_oldest_unused_makes_room(void **state)
{
    struct fixture *f = *state;
    f->config.limits.deployments = 3;
    configure(f);
    int64_t first = deploy(f, "2.0", 1);
    int64_t second = deploy(f, "2.0", 2);
    int64_t third = deploy(f, "2.0", 3);
    assert_int_equal(switch_to(f, first), 0);
    assert_int_equal(switch_to(f, third), 0); /* the first is what it would go back to */
    int64_t fourth = deploy(f, "2.0", 4);
    assert_non_null(deployment_find(f->core, first));
    assert_null(deployment_find(f->core, second));
    host_here(f, 1, EU);
    assert_int_equal(switch_to(f, fourth), 0); /* wanted */
    assert_int_equal(say(f, deploy_of("2.0", 5))->err, ERR_TOO_MANY);
    seal(f);
    crash(f, 0);
    assert_null(deployment_find(f->core, second));
    assert_int_equal(version(f, "2.0")->row.previous, first);
}

/* ── switching ─────────────────────────────────────────────────────────────────────────────── */

static void nobody_waits_for_hosts_that_are_not_there(void **state)
{
    struct fixture *f = *state;
    int64_t id = deploy(f, "2.0", 1);
    assert_int_equal(switch_to(f, id), 0);
    assert_int_equal(count_notes(f, NOTE_VERSION_SWITCHED), 1);
    assert_int_equal(version(f, "2.0")->row.deployment, id);
    assert_int_equal(judge(f, "2.0"), 0);
    assert_int_equal(switch_to(f, id), 0);
    assert_int_equal(version(f, "2.0")->row.previous, 0);
}

static void every_healthy_host_has_it_first(void **state)
{
    struct fixture *f = *state;
    struct host *near = host_here(f, 1, EU);
    struct host *slow = host_here(f, 2, EU);
    struct host *leaving = host_here(f, 3, EU);
    struct host *disabled = host_here(f, 4, EU);
    host_here(f, 5, WEST); /* the fleet is not there */
    leaving->leaving = true;
    disabled->row.disabled = 1;
    int64_t old = deploy(f, "2.0", 1);
    fetch(near, 1);
    fetch(slow, 1);
    assert_int_equal(switch_to(f, old), 0);
    assert_int_equal(version(f, "2.0")->row.deployment, old);

    int64_t new = deploy(f, "2.0", 2);
    assert_int_equal(switch_to(f, new), 0);
    fetch(near, 2);
    add_tick(f);
    assert_int_equal(version(f, "2.0")->row.deployment, old);
    struct view_version seen;
    assert_true(view_version(f->core, arena(f)->row.id, 2, &seen));
    assert_int_equal(seen.wanted, new);
    assert_int_equal(seen.hosts_ready, 1);
    assert_int_equal(seen.hosts, 2);
    fetch(slow, 2);
    add_tick(f);
    assert_int_equal(version(f, "2.0")->row.deployment, new);
    assert_int_equal(version(f, "2.0")->row.previous, old);
    assert_int_equal(version(f, "2.0")->row.wanted, 0);
    assert_int_equal(count_notes(f, NOTE_VERSION_SWITCHED), 1);
}

static void hosts_are_told_what_they_lack(void **state)
{
    struct fixture *f = *state;
    const uint8_t *lacking[8];
    struct host *host = host_here(f, 1, EU);
    struct host *far = host_here(f, 2, WEST);
    int64_t old = deploy(f, "2.0", 1);
    deploy(f, "2.0", 9); /* nobody wants that */
    assert_int_equal(view_lacking(f->core, host->row.id, lacking, 8), 0);
    assert_int_equal(switch_to(f, old), 0);
    assert_int_equal(view_lacking(f->core, host->row.id, lacking, 8), 1);
    assert_int_equal(lacking[0][0], 1);
    assert_int_equal(view_lacking(f->core, far->row.id, lacking, 8), 0);
    assert_int_equal(view_lacking(f->core, 77, lacking, 8), 0);
    fetch(host, 1);
    add_tick(f);
    assert_int_equal(view_lacking(f->core, host->row.id, lacking, 8), 0);
    assert_int_equal(switch_to(f, deploy(f, "2.0", 2)), 0);
    assert_int_equal(switch_to(f, deploy(f, "3.0", 2)), 0);
    assert_int_equal(switch_to(f, deploy(f, "4.0", 3)), 0);
    assert_int_equal(view_lacking(f->core, host->row.id, lacking, 8), 2);
    assert_int_equal(view_lacking(f->core, host->row.id, lacking, 1), 1);
}

static void a_host_that_goes_away_is_not_waited_for(void **state)
{
    struct fixture *f = *state;
    struct host *host = host_here(f, 1, EU);
    int64_t id = deploy(f, "2.0", 1);
    assert_int_equal(switch_to(f, id), 0);
    assert_int_equal(version(f, "2.0")->row.deployment, 0);
    seal(f);
    host->quiet = HOST_SILENT;
    add_tick(f);
    assert_int_equal(version(f, "2.0")->row.deployment, id);
}

static void a_switch_goes_on_after_a_crash(void **state)
{
    struct fixture *f = *state;
    host_here(f, 1, EU);
    int64_t id = deploy(f, "2.0", 1);
    assert_int_equal(switch_to(f, id), 0);
    seal(f);
    crash(f, 0);
    assert_int_equal(version(f, "2.0")->row.wanted, id);
    add_tick(f); /* that host was never stored */
    assert_int_equal(version(f, "2.0")->row.deployment, id);
}

static void servers_are_told_what_they_run(void **state)
{
    struct fixture *f = *state;
    int64_t old = deploy(f, "1.0", 1);
    assert_int_equal(switch_to(f, old), 0);
    struct room room = {.fleet = arena(f), .version = version(f, "1.0")};
    room.row.deployment = old;
    assert_int_equal(version_check_deployment(f->core, &room), 0);
    assert_int_equal(switch_to(f, deploy(f, "1.0", 2)), 0);
    assert_int_equal(version_check_deployment(f->core, &room), ERR_OUTDATED);
    assert_int_equal(turn(f, "arena", "1.0", false), 0);
    assert_int_equal(version_check_deployment(f->core, &room), ERR_VERSION_DISABLED);
}

/* ── check.c ───────────────────────────────────────────────────────────────────────────────── */

static void broken_versions_are_noticed(void **state)
{
    struct fixture *f = *state;
    int64_t id = deploy(f, "2.0", 1);
    assert_int_equal(switch_to(f, id), 0);
    struct version *v = version(f, "2.0");
    v->row.previous = 77;
    assert_non_null(strstr(core_check(f->core), "which is none"));
    v->row.previous = 0;
    v->row.wanted = id;
    assert_non_null(strstr(core_check(f->core), "is not switched, or for nothing"));
    v->row.wanted = 0;
    assert_null(core_check(f->core));
}

static void rows_that_name_nothing_are_refused(void **state)
{
    struct fixture *f = *state;
    struct row_version row = {.id = 50, .fleet = 77, .name = "3.0"};
    assert_int_equal(version_load_row(f->core, &row), ERR_FORMAT);
    row.fleet = (int32_t)arena(f)->row.id;
    row.wanted = 9;
    assert_int_equal(version_load_row(f->core, &row), ERR_FORMAT);
    struct row_deployment none = {.id = 50, .fleet = 77, .digest_len = OPERATE_DIGEST};
    assert_int_equal(deployment_load_row(f->core, &none), ERR_FORMAT);
    none.fleet = row.fleet;
    none.digest_len = 3;
    assert_int_equal(deployment_load_row(f->core, &none), ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERSION_TEST(versions_of_the_configuration_need_no_deployment),
        VERSION_TEST(a_version_is_turned_off_and_on),
        VERSION_TEST(a_deployment_is_what_it_was_asked_for),
        VERSION_TEST(what_cannot_be_deployed_is_refused),
        VERSION_TEST(the_oldest_unused_makes_room),
        VERSION_TEST(nobody_waits_for_hosts_that_are_not_there),
        VERSION_TEST(every_healthy_host_has_it_first),
        VERSION_TEST(hosts_are_told_what_they_lack),
        VERSION_TEST(a_host_that_goes_away_is_not_waited_for),
        VERSION_TEST(a_switch_goes_on_after_a_crash),
        VERSION_TEST(servers_are_told_what_they_run),
        VERSION_TEST(broken_versions_are_noticed),
        VERSION_TEST(rows_that_name_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

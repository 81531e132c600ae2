/* Whose fault a failed start is: of a host, of a version, of what a player asked for, or nobody's.
 */
#include "rooms.h"

#include "core/place.h"

static int fault_setup(void **state)
{
    struct fixture *f = fixture_new();
    rooms_configure(&f->config);
    struct fleet_config *tower = &f->config.fleets[f->config.n_fleets];
    *tower = f->config.fleets[f->config.n_fleets - 1];
    snprintf(tower->name, sizeof(tower->name), "tower");
    snprintf(tower->game, sizeof(tower->game), "tower");
    f->config.n_fleets++;
    f->config.fleets[f->config.n_fleets - 1].other_regions = false;
    f->config.fleets[f->config.n_fleets - 2].other_regions = false;
    memset(rooms_hosts, 0, sizeof(rooms_hosts));
    rooms_reconfigure(f);
    add_tick(f);
    *state = f;
    return 0;
}

#define FAULT_TEST(name) cmocka_unit_test_setup_teardown(name, fault_setup, fixture_teardown)

/* ── what happens ──────────────────────────────────────────────────────────────────────────── */

static conn_id create_in(struct fixture *f, const char *fleet, const char *account,
                         const char *settings, int8_t region)
{
    struct place_player p = player(account);
    struct event e = asks(new_conn(f), PLACE_CREATE, &p);
    e.place.fleet = str_of(fleet);
    e.place.settings = str_of(settings);
    e.place.region = region;
    step(f, &e);
    return e.conn;
}

static conn_id create_of(struct fixture *f, const char *fleet, const char *account)
{
    return create_in(f, fleet, account, "{}", EU);
}

static void fails_with(struct fixture *f, const struct room *room, enum fault_cause fault,
                       const char *tail)
{
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.fault = fault;
    e.agent.text = STR("it failed");
    e.agent.tail = str_of(tail);
    step(f, &e);
    answered(f, EFFECT_AGENT, 901, 0);
}

static void game_fails(struct fixture *f, const struct room *room)
{
    fails_with(f, room, FAULT_OF_GAME, "first\nno such map\n\n");
}

/* One start of the fleet that fails by the game itself, where one host takes it. */
static void start_fails(struct fixture *f, const char *fleet, const char *account,
                        const char *settings)
{
    conn_id conn = create_in(f, fleet, account, settings, EU);
    game_fails(f, spawned(f));
    answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
}

static struct room *start_works(struct fixture *f, const char *fleet, const char *account)
{
    conn_id conn = create_of(f, fleet, account);
    struct room *room = spawned(f);
    init_room(f, room);
    answered(f, EFFECT_PLACED, conn, 0);
    return room;
}

static struct view_host seen(struct fixture *f, const struct fake_host *h)
{
    struct view_host view;
    assert_true(view_host(f->core, the_host(f, h)->row.id, &view));
    return view;
}

static struct version *version_of(struct fixture *f, const char *fleet)
{
    return version_row_of(fleet_find_named(f->core, fleet), STR("1.0"));
}

static int64_t retry_ms_of(struct fixture *f, const char *fleet)
{
    return answered(f, EFFECT_PLACED, create_of(f, fleet, "asker"), ERR_NO_HOST)
        ->placed->retry_after_ms;
}

/* ── a version on a host ───────────────────────────────────────────────────────────────────── */

static void a_build_that_fails_closes_no_other_game(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    start_fails(f, "tower", "ann", "{}");
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    refused_with(f, create_of(f, "tower", "ben"), ERR_NO_HOST,
                 "build 1.0 of tower failed to start on 1 host; next try in 10 s: no such map");
    (void)start_works(f, "arena", "cid");
}

static void a_version_is_passed_over_longer_each_time(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    start_fails(f, "tower", "ann", "{}");
    assert_int_equal(count_notes(f, NOTE_VERSION_BACKOFF), 1);
    rooms_pass(f, 4000);
    assert_int_equal(retry_ms_of(f, "tower"), 6000);
    rooms_pass(f, 6000);
    start_fails(f, "tower", "ann", "{}");
    assert_int_equal(retry_ms_of(f, "tower"), 20 * 1000);
    rooms_pass(f, 20 * 1000);
    (void)start_works(f, "tower", "ann");
    start_fails(f, "tower", "ben", "{}");
    assert_int_equal(retry_ms_of(f, "tower"), 10 * 1000);
}

static void starts_of_one_moment_count_once(void **state)
{
    struct fixture *f = *state;
    struct room *rooms[5];
    host_up(f, 0, EU);
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%d", i);
        create_of(f, "tower", name);
        rooms[i] = spawned(f);
    }
    for (int i = 0; i < 5; i++) {
        rooms_pass(f, 250);
        game_fails(f, rooms[i]);
        assert_int_equal(count_notes(f, NOTE_VERSION_BACKOFF), i == 0);
    }
    assert_int_equal(retry_ms_of(f, "tower"), 9000);
    assert_false(version_of(f, "tower")->row.quarantined);
}

static void what_was_on_its_way_out_says_nothing(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    create_of(f, "tower", "ann");
    struct room *room = spawned(f);
    room->row.deployment = 77;
    game_fails(f, room);
    assert_int_equal(count_notes(f, NOTE_VERSION_BACKOFF), 0);
    room->row.deployment = 0;
}

static void an_end_that_nobody_can_explain_is_that_versions_there(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    for (int i = 0; i < 4; i++) {
        create_of(f, "tower", "ann");
        struct event e = says(spawned(f), AGENT_EXITED, 1);
        e.agent.exit_code = -1;
        step(f, &e);
        assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
        assert_int_equal(count_notes(f, NOTE_VERSION_BACKOFF), 1);
        rooms_pass(f, 81 * 1000);
    }
    assert_false(version_of(f, "tower")->row.quarantined);
}

static void a_refusal_for_configuration_touches_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    for (int i = 0; i < 5; i++) {
        conn_id conn = create_of(f, "tower", "ann");
        struct room *room = spawned(f);
        if (i % 2)
            heard_of(f, room, ERR_SPAWN_FAILED, FAULT_OF_CONFIG);
        else
            fails_with(f, room, FAULT_OF_CONFIG, "");
        answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
        assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    }
    (void)start_works(f, "tower", "ben");
}

/* ── a host ────────────────────────────────────────────────────────────────────────────────── */

static void a_failing_host_is_passed_over_longer_each_time(void **state)
{
    struct fixture *f = *state;
    static const int64_t want_s[] = {10, 20, 40, 80, 160, 300, 300};
    struct fake_host *h = host_up(f, 0, EU);
    for (int i = 0; i < 7; i++) {
        create_of(f, "tower", "ann");
        heard_of(f, spawned(f), ERR_SPAWN_FAILED, FAULT_OF_HOST);
        assert_int_equal(seen(f, h).backoff_left_ms, want_s[i] * 1000);
        assert_int_equal(seen(f, h).passed_over, HOST_PASSED_FAILING);
        assert_string_equal(seen(f, h).failed_why, "no port is free");
        refused_with(f, create_of(f, "arena", "ann"), ERR_NO_HOST,
                     "no healthy host in EU: 1 failing (no port is free)");
        rooms_pass(f, want_s[i] * 1000);
    }
    (void)start_works(f, "arena", "ann");
    create_of(f, "tower", "ben");
    heard_of(f, spawned(f), ERR_SPAWN_FAILED, FAULT_OF_HOST);
    assert_int_equal(seen(f, h).backoff_left_ms, 10 * 1000);
    assert_string_equal(seen(f, h).failed_why, "no port is free");
}

/* Eight rooms are on their way to it when its agent is killed. */
static void one_outage_counts_once(void **state)
{
    struct fixture *f = *state;
    struct room *rooms[8];
    struct fake_host *h = host_up(f, 0, EU);
    for (int i = 0; i < 8; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%d", i);
        create_of(f, "tower", name);
        rooms[i] = spawned(f);
    }
    rooms_pass(f, 1000);
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 3; k++)
            heard_of(f, rooms[i], ERR_IO, FAULT_OF_HOST);
        assert_int_equal(count_notes(f, NOTE_HOST_BACKOFF), i == 0);
    }
    assert_int_equal(seen(f, h).backoff_left_ms, 10 * 1000);
    h->beat = 0; /* it was started again */
    rooms_pass(f, 1000);
    host_says(f, h);
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    rooms_pass(f, 1000);
    for (int k = 0; k < 3; k++)
        heard_of(f, rooms[7], ERR_IO, FAULT_OF_HOST); /* it is of that outage still */
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
}

static void a_host_that_stalled_is_well_as_soon_as_it_is_heard(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof(name), "p%d", i);
        create_of(f, "tower", name);
    }
    h->silent = true;
    rooms_pass(f, 16 * 1000);
    assert_int_equal(f->core->rooms_in[ROOM_STARTING], 0);
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_SILENT);
    h->silent = false;
    host_says(f, h);
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    (void)start_works(f, "tower", "ann");
}

/* What had begun there is told to have taken too long, after the host fell silent. */
static void a_stalled_host_is_no_versions_fault(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    conn_id conn = create_of(f, "tower", "ann");
    heard_of(f, spawned(f), 0, FAULT_UNKNOWN);
    h->silent = true;
    rooms_pass(f, 32 * 1000);
    pass(f, 1000);
    answered(f, EFFECT_PLACED, conn, ERR_SPAWN_TIMEOUT);
    assert_int_equal(count_notes(f, NOTE_VERSION_BACKOFF), 0);
    h->silent = false;
    host_says(f, h);
    (void)start_works(f, "tower", "ben");
}

static void versions_of_two_fleets_that_fail_are_the_hosts_fault(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    start_fails(f, "tower", "ann", "{}");
    start_fails(f, "arena", "ann", "{}");
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_FAILING);
    assert_string_equal(seen(f, h).failed_why, "servers of two fleets do not start there");
}

static void a_host_where_something_runs_is_not_failing(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = start_works(f, "arena", "ben");
    rooms_pass(f, 1000);
    start_fails(f, "tower", "ann", "{}");
    start_fails(f, "arena", "ann", "{}");
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    assert_int_equal(room->row.state, ROOM_OPEN);
}

static void a_quarantined_version_says_nothing_of_a_host(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct fake_host *other = host_up(f, 1, EU);
    conn_id conn = create_of(f, "tower", "ann");
    game_fails(f, spawned(f));
    game_fails(f, spawned(f));
    answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
    other->leaving = true;
    host_says(f, other);
    start_fails(f, "arena", "ann", "{}");
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
}

/* ── what a player asked for ───────────────────────────────────────────────────────────────── */

static void one_player_blames_no_version(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    char settings[64];
    for (int i = 0; i < 10; i++) {
        snprintf(settings, sizeof(settings), "{\"map\":\"hangs-%d\"}", i);
        start_fails(f, "tower", "eve", settings);
        assert_int_equal(count_notes(f, NOTE_VERSION_BACKOFF), 0);
        assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    }
    start_fails(f, "tower", "mal", "{\"map\":\"hangs-9\"}"); /* the same as hers */
}

static void two_players_with_different_settings_do(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    start_fails(f, "tower", "ann", "{\"map\":\"ice\"}");
    start_fails(f, "tower", "ben", "{\"map\":\"ice\"}");
    (void)start_works(f, "tower", "cid"); /* between */
    start_fails(f, "tower", "ben", "{\"map\":\"pit\"}");
    start_fails(f, "tower", "cid", "{\"map\":\"dust\"}");
    assert_int_equal(retry_ms_of(f, "tower"), 10 * 1000);
}

/* ── quarantine ────────────────────────────────────────────────────────────────────────────── */

static void fail_on_two_hosts(struct fixture *f)
{
    host_up(f, 0, EU);
    host_up(f, 1, EU);
    host_up(f, 2, USE);
    conn_id conn = create_of(f, "tower", "ann");
    game_fails(f, spawned(f));
    game_fails(f, spawned(f));
    assert_int_equal(count_notes(f, NOTE_VERSION_QUARANTINED), 1);
    answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
}

/* The trial that is under way: a room that nobody waits for. */
static struct room *trial_of(struct fixture *f)
{
    size_t at = 0;
    for (struct room *room = NULL; (room = object_next(f->core, ROW_room, &at));) {
        if (room->row.ticket == 0 && room->row.state == ROOM_STARTING)
            return room;
    }
    return NULL;
}

static void two_hosts_close_a_region(void **state)
{
    struct fixture *f = *state;
    struct view_version view;
    fail_on_two_hosts(f);
    assert_true(view_version(f->core, fleet_find_named(f->core, "tower")->row.id, 0, &view));
    assert_true(view.quarantined && view.enabled);
    assert_string_equal(view.reason, "It failed to start on 2 hosts in EU: no such map");
    host_up(f, 3, EU); /* it was never tried there */
    refused_with(f, create_of(f, "tower", "ben"), ERR_NO_HOST,
                 "build 1.0 of tower failed to start on 3 hosts; next try in 10 s: no such map");
    conn_id conn = create_in(f, "tower", "ben", "{}", USE);
    init_room(f, spawned(f));
    answered(f, EFFECT_PLACED, conn, 0);
}

static void three_times_close_it_too(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    start_fails(f, "tower", "ann", "{}");
    rooms_pass(f, 10 * 1000);
    start_fails(f, "tower", "ann", "{}");
    rooms_pass(f, 20 * 1000);
    assert_false(version_of(f, "tower")->row.quarantined);
    start_fails(f, "tower", "ann", "{}");
    assert_true(version_of(f, "tower")->row.quarantined);
    assert_string_equal(version_of(f, "tower")->row.reason,
                        "It failed to start 3 times in EU: no such map");
}

static void a_trial_opens_it_again(void **state)
{
    struct fixture *f = *state;
    fail_on_two_hosts(f);
    rooms_pass(f, 9500);
    assert_null(trial_of(f));
    rooms_pass(f, 1000);
    struct room *trial = trial_of(f);
    assert_non_null(trial);
    assert_true(list_empty(&trial->seats));
    answered(f, EFFECT_PLACED, create_of(f, "tower", "ben"), ERR_NO_HOST); /* not yet */
    init_room(f, trial);
    assert_int_equal(trial->row.state, ROOM_OPEN);
    assert_false(version_of(f, "tower")->row.quarantined);
    assert_string_equal(version_of(f, "tower")->row.reason, "");
    (void)start_works(f, "tower", "ben");
    rooms_pass(f, 301 * 1000);
    assert_true(room_is_over(trial)); /* nobody came */
}

static void a_trial_that_fails_comes_later_each_time(void **state)
{
    struct fixture *f = *state;
    static const int64_t want_s[] = {10, 20, 40, 80};
    fail_on_two_hosts(f);
    for (size_t i = 0; i < sizeof(want_s) / sizeof(*want_s); i++) {
        rooms_pass(f, want_s[i] * 1000 - 500);
        assert_null(trial_of(f));
        rooms_pass(f, 1000);
        assert_non_null(trial_of(f));
        game_fails(f, trial_of(f));
        assert_null(trial_of(f));
        assert_int_equal(count_notes(f, NOTE_VERSION_QUARANTINED), 0);
    }
}

/* It came to nothing by its host's fault: the next one has a pause too, not a longer one. */
static void a_trial_without_a_verdict_is_made_again(void **state)
{
    struct fixture *f = *state;
    fail_on_two_hosts(f);
    rooms_pass(f, 10500);
    heard_of(f, trial_of(f), ERR_SPAWN_FAILED, FAULT_OF_CONFIG);
    rooms_pass(f, 9000);
    assert_null(trial_of(f));
    rooms_pass(f, 2000);
    assert_non_null(trial_of(f));
}

static void the_deployment_before_is_used_first(void **state)
{
    struct fixture *f = *state;
    int64_t ids[2];
    for (int i = 0; i < 2; i++) {
        struct operate o = {.verb = OPERATE_DEPLOY,
                            .who = STR("admin"),
                            .fleet = STR("tower"),
                            .name = STR("1.0"),
                            .size = 10};
        memset(o.digest, i + 1, sizeof(o.digest));
        f->core->out = &f->batch;
        assert_int_equal(operate_version(f->core, &o, &ids[i]), 0);
        f->core->out = NULL;
    }
    struct version *v = version_of(f, "tower");
    v->row.deployment = ids[1];
    v->row.previous = ids[0];
    fail_on_two_hosts(f);
    assert_int_equal(v->row.deployment, ids[0]);
    assert_int_equal(v->row.previous, 0);
    assert_false(v->row.quarantined);
    assert_string_equal(v->row.reason, "It failed to start on 2 hosts in EU: no such map");
    assert_int_equal(start_works(f, "tower", "ben")->row.deployment, ids[0]);
}

static void a_quarantine_is_found_out_again_after_a_start(void **state)
{
    struct fixture *f = *state;
    fail_on_two_hosts(f);
    seal(f);
    crash(f, 0);
    assert_true(version_of(f, "tower")->row.quarantined);
    add_tick(f);
    assert_false(version_of(f, "tower")->row.quarantined);
    for (int i = 0; i < 2; i++)
        host_says(f, &rooms_hosts[i]);
    (void)start_works(f, "tower", "ben");
}

static void an_operator_ends_it(void **state)
{
    struct fixture *f = *state;
    fail_on_two_hosts(f);
    struct event e = {.kind = EVENT_OPERATE, .conn = 7};
    e.operate = (struct operate){.verb = OPERATE_ENABLE_VERSION,
                                 .who = STR("admin"),
                                 .fleet = STR("tower"),
                                 .name = STR("1.0")};
    step(f, &e);
    assert_false(version_of(f, "tower")->row.quarantined);
    (void)start_works(f, "tower", "ben");
}

static void long_lines_are_cut_between_characters(void **state)
{
    struct fixture *f = *state;
    char tail[901] = "";
    for (int i = 0; i < 300; i++)
        memcpy(tail + 3 * i, "\xE2\x82\xAC", 3);
    host_up(f, 0, EU);
    create_of(f, "tower", "ann");
    fails_with(f, spawned(f), FAULT_OF_GAME, tail);
    const struct fault_region *r = fault_in_region(version_of(f, "tower"), EU);
    assert_int_equal(strlen(r->line), FAULT_LINE_SIZE - 1);
    assert_true(str_is_utf8(str_of(r->line)));
    char line[8];
    fault_keep_line(line, sizeof(line), STR("a\tb\nc\x7F\xFFz"));
    assert_string_equal(line, "a b c\x7F");
}

/* ── our own pause ─────────────────────────────────────────────────────────────────────────── */

static void stop_us(struct fixture *f, int64_t ms)
{
    seal(f);
    f->now.core_ms += ms;
    f->now.wall_ms += ms;
    add_tick(f);
}

static void time_that_we_stood_still_is_nobodys(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    conn_id conn = create_of(f, "tower", "ann");
    struct room *room = spawned(f);
    rooms_pass(f, 5000);
    stop_us(f, 120 * 1000);
    assert_int_equal(room->row.state, ROOM_STARTING);
    assert_int_equal(count_effects(f, EFFECT_PLACED, conn), 0);
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_NOT);
    init_room(f, room);
    answered(f, EFFECT_PLACED, conn, 0);
}

static void calls_that_we_slept_through_are_not_counted(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    create_of(f, "tower", "ann");
    struct room *room = spawned(f);
    for (int i = 0; i < 2; i++) {
        heard_of(f, room, ERR_IO, FAULT_UNKNOWN);
        rooms_pass(f, 1000);
    }
    stop_us(f, 45 * 1000);
    heard_of(f, room, ERR_IO, FAULT_UNKNOWN);
    assert_int_equal(room->row.state, ROOM_STARTING);
    rooms_pass(f, 1000);
    assert_ptr_equal(spawned(f), room);
    heard_of(f, room, ERR_IO, FAULT_UNKNOWN); /* this one is the agent's */
    assert_int_equal(room->row.state, ROOM_ENDING);
    assert_int_equal(seen(f, h).passed_over, HOST_PASSED_FAILING);
}

static void a_start_that_outlives_us_has_its_time(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    create_of(f, "tower", "ann");
    int64_t id = spawned(f)->row.id;
    seal(f);
    crash(f, 300 * 1000);
    add_tick(f);
    struct room *room = room_find(f->core, id);
    assert_int_equal(room->row.state, ROOM_STARTING);
    assert_int_equal(room_ticket_find(f->core, room->row.ticket)->row.state, ROOM_TICKET_OPEN);
    rooms_pass(f, 34 * 1000);
    assert_true(room_is_over(room_find(f->core, id)));
}

/* ── rates ─────────────────────────────────────────────────────────────────────────────────── */

static void what_never_ran_is_given_back(void **state)
{
    struct fixture *f = *state;
    f->config.create_rates[0] = (struct rate_limit){.count = 1, .ms = 600 * 1000};
    rooms_reconfigure(f);
    answered(f, EFFECT_PLACED, create_of(f, "tower", "ann"), ERR_NO_HOST);
    host_up(f, 0, EU);
    for (int i = 0; i < 4; i++) {
        conn_id conn = create_of(f, "tower", "ann");
        heard_of(f, spawned(f), ERR_SPAWN_FAILED, FAULT_OF_CONFIG);
        answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
    }
    conn_id conn = create_of(f, "tower", "ann"); /* the sixth in a minute */
    heard_of(f, spawned(f), ERR_SPAWN_FAILED, FAULT_OF_CONFIG);
    answered(f, EFFECT_PLACED, conn, ERR_SPAWN_FAILED);
    answered(f, EFFECT_PLACED, create_of(f, "tower", "ann"), ERR_RATE_LIMITED);
    start_fails(f, "tower", "ben", "{\"map\":\"ice\"}");
    answered(f, EFFECT_PLACED, create_of(f, "tower", "ben"), ERR_RATE_LIMITED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(a_build_that_fails_closes_no_other_game),
        FAULT_TEST(a_version_is_passed_over_longer_each_time),
        FAULT_TEST(starts_of_one_moment_count_once),
        FAULT_TEST(what_was_on_its_way_out_says_nothing),
        FAULT_TEST(an_end_that_nobody_can_explain_is_that_versions_there),
        FAULT_TEST(a_refusal_for_configuration_touches_nothing_else),
        FAULT_TEST(a_failing_host_is_passed_over_longer_each_time),
        FAULT_TEST(one_outage_counts_once),
        FAULT_TEST(a_host_that_stalled_is_well_as_soon_as_it_is_heard),
        FAULT_TEST(a_stalled_host_is_no_versions_fault),
        FAULT_TEST(versions_of_two_fleets_that_fail_are_the_hosts_fault),
        FAULT_TEST(a_host_where_something_runs_is_not_failing),
        FAULT_TEST(a_quarantined_version_says_nothing_of_a_host),
        FAULT_TEST(one_player_blames_no_version),
        FAULT_TEST(two_players_with_different_settings_do),
        FAULT_TEST(two_hosts_close_a_region),
        FAULT_TEST(three_times_close_it_too),
        FAULT_TEST(a_trial_opens_it_again),
        FAULT_TEST(a_trial_that_fails_comes_later_each_time),
        FAULT_TEST(a_trial_without_a_verdict_is_made_again),
        FAULT_TEST(the_deployment_before_is_used_first),
        FAULT_TEST(a_quarantine_is_found_out_again_after_a_start),
        FAULT_TEST(an_operator_ends_it),
        FAULT_TEST(long_lines_are_cut_between_characters),
        FAULT_TEST(time_that_we_stood_still_is_nobodys),
        FAULT_TEST(calls_that_we_slept_through_are_not_counted),
        FAULT_TEST(a_start_that_outlives_us_has_its_time),
        FAULT_TEST(what_never_ran_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

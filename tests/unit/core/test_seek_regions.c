/* In which region a place is: of the request's own regions the first that has one, be it a room
 * that is open, one that is being started or a host. */
#include "seekers.h"

enum { TR = 16 };

/* Measured latencies: of the regions in that order 10 ms, 20 ms, 30 ms. */
static void measures(struct place *p, int8_t first, int8_t second, int8_t third)
{
    const int8_t codes[] = {first, second, third};
    p->latencies = 0;
    for (int i = 0; i < 3; i++) {
        if (codes[i] < 0)
            continue;
        p->latencies |= UINT64_C(1) << codes[i];
        p->latency_ms[codes[i]] = (float)(10 * (i + 1));
    }
}

static conn_id seeks_in(struct fixture *f, const char *account, int8_t region)
{
    struct event e = wants(f, account, account);
    e.seek.where.region = region;
    step(f, &e);
    return e.conn;
}

static conn_id seeks_near(struct fixture *f, const char *account, int8_t first, int8_t second)
{
    struct event e = wants(f, account, account);
    measures(&e.seek.where, first, second, -1);
    step(f, &e);
    return e.conn;
}

static conn_id joins_near(struct fixture *f, const char *account, int8_t first, int8_t second,
                          int8_t third)
{
    struct place_player p = player(account);
    struct event e = asks(new_conn(f), PLACE_JOIN, &p);
    e.place.auto_create = true;
    measures(&e.place, first, second, third);
    step(f, &e);
    return e.conn;
}

static void others_are_allowed(struct fixture *f, bool on)
{
    arena_of(f)->other_regions = on;
    rooms_reconfigure(f);
}

static struct room *room_in(struct fixture *f, int8_t region, const char *account)
{
    struct place_player p = player(account);
    struct event e = asks(new_conn(f), PLACE_CREATE, &p);
    e.place.region = region;
    step(f, &e);
    struct room *room = spawned(f);
    init_room(f, room);
    assert_int_equal(room->row.region, region);
    return room;
}

static void fails(struct fixture *f, bool on)
{
    arena_of(f)->queue_when_full = !on;
    rooms_reconfigure(f);
}

/* ── one who asks ──────────────────────────────────────────────────────────────────────────── */

static void near_comes_before_far(struct fixture *f, bool others)
{
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    struct room *far = room_in(f, EU, "p1");
    others_are_allowed(f, others);
    (void)seeks_near(f, "ann", USE, EU);
    assert_int_equal(spawned(f)->row.region, USE);
    (void)joins_near(f, "cid", USE, EU, -1);
    assert_int_equal(spawned(f)->row.region, USE);
    found_in(f, seeks_near(f, "eve", EU, USE), far);
}

static void a_near_host_comes_before_a_far_room(void **state)
{
    near_comes_before_far(*state, false);
}

static void so_it_does_where_the_fleet_allows_others(void **state)
{
    near_comes_before_far(*state, true);
}

static void a_region_that_is_named_is_the_only_one(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *far = room_in(f, EU, "p1");
    fails(f, true);
    sought_not(f, seeks_in(f, "ann", USE), ERR_NO_CAPACITY, "no capacity in fleet 'arena'");
    found_in(f, seeks_in(f, "ben", EU), far);
}

static void a_measured_region_without_hosts_gives_way_to_the_next_by_latency(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    others_are_allowed(f, false);
    (void)joins_near(f, "ann", TR, USE, EU);
    assert_int_equal(spawned(f)->row.region, USE);
    struct event e = wants(f, "ben", "ben");
    measures(&e.seek.where, TR, USE, EU);
    step(f, &e);
    assert_int_equal(spawned(f)->row.region, USE);
}

static void what_was_not_measured_is_not_taken(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    (void)room_in(f, EU, "p1");
    fails(f, true);
    sought_not(f, seeks_near(f, "ann", USE, TR), ERR_NO_CAPACITY, "no capacity in fleet 'arena'");
    refused_with(f, joins_near(f, "ben", USE, TR, -1), ERR_NO_HOST,
                 "no healthy host in USE or TR: there is none");
}

static void the_fleet_decides_when_the_request_does_not(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, USE);
    struct room *far = room_in(f, USE, "p1");
    fails(f, true);
    others_are_allowed(f, false);
    sought_not(f, seeks(f, "ann", ""), ERR_NO_CAPACITY, "no capacity in fleet 'arena'");
    refused_with(f, join(f, "ann", true), ERR_NO_HOST, "no healthy host in EU: there is none");
    refused_with(f, join(f, "ann", false), ERR_NO_PLACE,
                 "there is no open room of arena 1.0 in EU");
    others_are_allowed(f, true);
    found_in(f, seeks(f, "cid", ""), far);
    assert_true(answered(f, EFFECT_PLACED, join(f, "ben", false), 0)->session == far->row.id);
}

static void friends_and_those_who_sit_there_know_no_regions(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    struct room *far = room_in(f, EU, "p1");
    struct event e = wants(f, "ann", "ann");
    e.seek.where.region = USE;
    e.seek.friends = names_of("p1", &e.seek.n_friends);
    step(f, &e);
    found_in(f, e.conn, far);
    found_in(f, seeks_in(f, "p1", USE), far);
    answered(f, EFFECT_PLACED, enter(f, "ben", far->row.id), 0);
}

static void a_room_of_the_party_is_taken_when_no_region_has_a_place(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    struct room *far = room_in(f, EU, "p1");
    struct event e = wants(f, "ann", "ann");
    e.seek.where.region = USE;
    e.seek.party = names_of("p1", &e.seek.n_party);
    step(f, &e);
    found_in(f, e.conn, far);
}

static void a_room_that_is_being_started_far_away_is_not_joined(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    (void)seeks_in(f, "ann", EU);
    struct room *far = spawned(f);
    (void)seeks_in(f, "ben", USE);
    assert_int_equal(spawned(f)->row.region, USE);
    (void)seeks_near(f, "cid", EU, USE);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    init_room(f, far);
    assert_true(sits_in(f, "cid", far));
}

/* A second request of the same player, for another region. */
static void the_room_of_an_older_request_is_taken_over_only_where_the_newer_may_be(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    (void)seeks_in(f, "ann", EU);
    (void)spawned(f);
    struct event e = wants(f, "again", "ann");
    e.seek.where.region = EU;
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    e = wants(f, "elsewhere", "ann");
    e.seek.where.region = USE;
    step(f, &e);
    assert_int_equal(spawned(f)->row.region, USE);
    has_failed(f, "again", ERR_SUPERSEDED, "a newer request of this player took its place");
}

/* ── another host ──────────────────────────────────────────────────────────────────────────── */

static void another_host_is_in_a_region_of_the_request(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    conn_id conn = seeks_in(f, "ann", EU);
    struct event e = says(spawned(f), AGENT_FAILED, 1);
    e.agent.text = STR("no such file");
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    sought_not(f, conn, ERR_SPAWN_FAILED, "no such file");
    others_are_allowed(f, false);
    rooms_pass(f, 20 * 1000);
    conn = joins_near(f, "ben", EU, USE, -1);
    e = says(spawned(f), AGENT_FAILED, 1);
    e.agent.text = STR("no such file");
    step(f, &e);
    assert_int_equal(spawned(f)->row.region, USE);
}

static void another_host_suits_all_who_wait_for_the_room(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    (void)seeks_near(f, "ann", EU, USE);
    struct room *room = spawned(f);
    (void)seeks_in(f, "ben", EU); /* comes to the same room, and may not go to USE */
    struct event e = says(room, AGENT_FAILED, 1);
    e.agent.text = STR("no such file");
    step(f, &e);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    has_failed(f, "ben", ERR_SPAWN_FAILED, "no such file");
}

static void the_regions_outlive_a_restart(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    (void)seeks_in(f, "ann", EU);
    struct room *room = spawned(f);
    struct place_player p = player("ben");
    struct event e = asks(new_conn(f), PLACE_CREATE, &p);
    e.place.region = EU;
    e.place.my_region_only = true;
    step(f, &e);
    struct room *other = spawned(f);
    const int64_t ids[] = {room->row.id, other->row.id};
    seal(f);
    crash(f, 1000);
    for (int i = 0; i < 2; i++)
        host_says(f, &rooms_hosts[i]);
    for (int i = 0; i < 2; i++) {
        e = says(room_find(f->core, ids[i]), AGENT_FAILED, 1);
        e.agent.text = STR("no such file");
        step(f, &e);
        assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    }
    has_failed(f, "ann", ERR_SPAWN_FAILED, "no such file");
}

/* ── lines ─────────────────────────────────────────────────────────────────────────────────── */

static void a_seat_goes_to_the_first_who_may_play_there(void **state)
{
    struct fixture *f = *state;
    struct fake_host *h = host_up(f, 0, EU);
    struct room *room = room_in(f, EU, "p1");
    for (const char *name = "p2\0p3\0p4\0"; *name; name += 3)
        answered(f, EFFECT_PLACED, enter(f, name, room->row.id), 0);
    h->leaving = true;
    host_says(f, h);
    queued_at(f, seeks_in(f, "ann", USE), 1);
    queued_at(f, seeks_near(f, "ben", USE, TR), 2);
    queued_at(f, seeks_near(f, "cid", USE, EU), 3);
    leaves(f, "p2");
    is_in_state(f, "cid", ALLOCATION_DONE);
    is_in_state(f, "ann", ALLOCATION_QUEUED);
    is_in_state(f, "ben", ALLOCATION_QUEUED);
    leaves(f, "p3"); /* nobody in line may have it, so it is free */
    found_in(f, seeks_in(f, "dan", EU), room);
}

static void who_waits_for_one_region_keeps_no_host_of_another(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    queued_at(f, seeks_in(f, "ann", USE), 1);
    (void)seeks_in(f, "ben", EU);
    struct room *room = spawned(f);
    (void)seeks_in(f, "cid", EU);
    assert_int_equal(count_effects(f, EFFECT_SPAWN, 0), 0);
    init_room(f, room);
    assert_true(sits_in(f, "ben", room) && sits_in(f, "cid", room));
    host_up(f, 1, USE);
    rooms_pass(f, 1500);
    assert_int_equal(spawned(f)->row.region, USE);
}

/* The room that is being started in EU has a place for both. */
static void nobody_goes_far_who_has_a_place_coming_near(void **state)
{
    struct fixture *f = *state;
    queued_at(f, seeks_near(f, "ann", EU, USE), 1);
    queued_at(f, seeks_near(f, "ben", EU, USE), 2);
    queued_at(f, seeks_in(f, "cid", USE), 3);
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    add_tick(f);
    struct room *near = room_find(f->core, nth_effect(f, EFFECT_SPAWN, 0, 0)->spawn->session);
    struct room *far = room_find(f->core, nth_effect(f, EFFECT_SPAWN, 0, 1)->spawn->session);
    assert_null(nth_effect(f, EFFECT_SPAWN, 0, 2));
    assert_int_equal(near->row.region, EU);
    assert_int_equal(far->row.region, USE);
    init_room(f, near);
    assert_true(sits_in(f, "ann", near) && sits_in(f, "ben", near));
    init_room(f, far);
    assert_true(sits_in(f, "cid", far));
}

/* Both have places again in one step; the first who waits gets the near one. */
static void of_two_rooms_the_nearer_is_offered_first(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    struct room *near = room_in(f, EU, "p1");
    struct room *far = room_in(f, USE, "q1");
    for (int i = 0; i < 2; i++) {
        rooms_hosts[i].leaving = true;
        host_says(f, &rooms_hosts[i]);
    }
    arena_of(f)->versions[0].disabled = true;
    arena_of(f)->versions[1].disabled = false;
    rooms_reconfigure(f);
    queued_at(f, seeks_near(f, "ann", EU, USE), 1);
    queued_at(f, seeks_near(f, "ben", USE, EU), 2);
    queued_at(f, seeks_near(f, "cid", EU, USE), 3);
    arena_of(f)->versions[0].disabled = false;
    rooms_reconfigure(f);
    rooms_pass(f, 100);
    assert_true(sits_in(f, "ann", near));
    assert_true(sits_in(f, "ben", far));
    assert_true(sits_in(f, "cid", near));
}

static void seats_are_held_where_the_elder_may_play(void **state)
{
    struct fixture *f = *state;
    host_up(f, 0, EU);
    host_up(f, 1, USE);
    struct room *there = room_in(f, EU, "p1");
    struct room *here = room_in(f, USE, "q1");
    for (const char *name = "p2\0p3\0p4\0"; *name; name += 3)
        answered(f, EFFECT_PLACED, enter(f, name, there->row.id), 0);
    answered(f, EFFECT_PLACED, enter(f, "q2", here->row.id), 0);
    answered(f, EFFECT_PLACED, enter(f, "q3", here->row.id), 0);
    for (int i = 0; i < 2; i++) {
        rooms_hosts[i].leaving = true;
        host_says(f, &rooms_hosts[i]);
    }
    struct event e = wants(f, "two", "a1");
    e.seek.party = names_of("a2", &e.seek.n_party);
    e.seek.where.region = EU;
    step(f, &e);
    rooms_pass(f, QUEUE_HOLD_MS + 1000);
    assert_int_equal(here->held, 0);
    found_in(f, seeks_in(f, "ben", USE), here);
    leaves(f, "p2");
    assert_int_equal(there->held, 1);
    leaves(f, "p3");
    is_in_state(f, "two", ALLOCATION_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEEKERS_TEST(a_near_host_comes_before_a_far_room),
        SEEKERS_TEST(so_it_does_where_the_fleet_allows_others),
        SEEKERS_TEST(a_region_that_is_named_is_the_only_one),
        SEEKERS_TEST(a_measured_region_without_hosts_gives_way_to_the_next_by_latency),
        SEEKERS_TEST(what_was_not_measured_is_not_taken),
        SEEKERS_TEST(the_fleet_decides_when_the_request_does_not),
        SEEKERS_TEST(friends_and_those_who_sit_there_know_no_regions),
        SEEKERS_TEST(a_room_of_the_party_is_taken_when_no_region_has_a_place),
        SEEKERS_TEST(a_room_that_is_being_started_far_away_is_not_joined),
        SEEKERS_TEST(the_room_of_an_older_request_is_taken_over_only_where_the_newer_may_be),
        SEEKERS_TEST(another_host_is_in_a_region_of_the_request),
        SEEKERS_TEST(another_host_suits_all_who_wait_for_the_room),
        SEEKERS_TEST(the_regions_outlive_a_restart),
        SEEKERS_TEST(a_seat_goes_to_the_first_who_may_play_there),
        SEEKERS_TEST(who_waits_for_one_region_keeps_no_host_of_another),
        SEEKERS_TEST(nobody_goes_far_who_has_a_place_coming_near),
        SEEKERS_TEST(of_two_rooms_the_nearer_is_offered_first),
        SEEKERS_TEST(seats_are_held_where_the_elder_may_play),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

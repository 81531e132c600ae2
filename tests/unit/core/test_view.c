/* Views: what core shows to people is what it holds. */
#include "core/view.h"

#include "fixture.h"

#include <math.h>

static void server_is_shown_as_it_is(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat");
    heartbeat(f, conn, 1, 25, 50);
    open_match(f, chat, 1, NULL);
    struct event e = {.kind = EVENT_PONG, .conn = conn, .pong = {.round_trip_us = 420}};
    step(f, &e);
    struct view_server v;
    assert_true(view_server(f->core, id_of(f, conn), &v));
    assert_string_equal(v.ip, "10.0.0.1");
    assert_string_equal(v.fleet, "default");
    assert_string_equal(v.region_name, "EU");
    assert_int_equal(v.port, 2000);
    assert_int_equal(v.status, SERVER_AVAILABLE);
    assert_int_equal(v.passed_over, PASSED_NOT);
    assert_true(v.connected);
    assert_int_equal(v.load, 1);
    assert_int_equal(v.reported, 1);
    assert_int_equal(v.sessions, 1);
    assert_int_equal(v.open, 1);
    assert_int_equal(v.max_sessions, 4);
    assert_int_equal(v.round_trip_us, 420);
    assert_int_equal(v.registered_wall_ms, fixture_wall_ms);
    assert_int_equal(v.heard_wall_ms, f->now.wall_ms);
    assert_true(v.cpu_percent == 25 && v.memory_percent == 50);
    assert_false(view_server(f->core, 99, &v));
}

static void server_that_failed_shows_how_long_it_is_passed_over(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat");
    ask(f, chat, 1);
    ack(f, conn, 1, false);
    pass(f, 4000);
    struct view_server v;
    assert_true(view_server(f->core, id_of(f, conn), &v));
    assert_int_equal(v.passed_over, PASSED_FAILING);
    assert_string_equal(passed_over_name(v.passed_over), "failing");
    assert_int_equal(v.backoff_left_ms, 6000);
}

/* The most that the port takes from a server that says it has room for one match. */
static void a_server_that_reports_a_million_matches_does_not_break_the_sums(void **state)
{
    struct fixture *f = *state;
    struct view_group g;
    heartbeat(f, server_up(f, 2000, 1), 1000 * 1000, 0, 0);
    server_up(f, 2001, 1);
    assert_true(view_group(f->core, 1, EU, &g));
    assert_true(fabs(g.load_mean - 500 * 1000) < 1e-3);
    assert_true(fabs(g.load_spread - 500 * 1000) < 1e-3);
}

static void session_and_ticket_point_at_each_other(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat");
    open_match(f, chat, 7, NULL);
    struct view_session s;
    struct view_ticket t;
    int64_t id = core_next(f->core, ROW_session, 0);
    assert_true(view_session(f->core, id, &s));
    assert_true(view_ticket(f->core, s.ticket, &t));
    assert_int_equal(t.session, id);
    assert_int_equal(t.server, s.server);
    assert_string_equal(s.state, "open");
    assert_string_equal(s.end_reason, "");
    assert_string_equal(s.chat_server, "chat");
    assert_string_equal(t.state, "done");
    assert_false(t.open);
    assert_int_equal(t.lobby, 7);
    assert_int_equal(t.n_tries, 1);
    assert_string_equal(t.tries[0].outcome, "acknowledged");
    assert_int_equal(t.tries[0].max_sessions, 4);
    assert_int_equal(t.answered_wall_ms, f->now.wall_ms);
}

/* What is kept of a ticket for `why` outlives a restart. */
static void ticket_tells_why_after_a_restart(void **state)
{
    struct fixture *f = *state;
    conn_id full = server_up(f, 2000, 1);
    conn_id chat = chat_up(f, "chat");
    open_match(f, chat, 1, NULL);
    conn_id refuses = server_up(f, 2001, 1);
    (void)full;
    ask(f, chat, 2);
    ack(f, refuses, 2, false);
    int64_t id = ticket_of(f, chat, 2)->row.id;
    seal(f);
    crash(f, 1000);
    struct view_ticket t;
    assert_true(view_ticket(f->core, id, &t));
    assert_string_equal(t.state, "failed");
    assert_int_equal(t.answered_wall_ms, f->now.wall_ms - 1000);
    assert_int_equal(t.session, 0);
    assert_int_equal(t.server, 0);
    assert_int_equal(t.err, ERR_NO_SERVERS);
    assert_int_equal(t.n_tries, 1);
    assert_string_equal(t.tries[0].outcome, "refused");
    assert_int_equal(t.passed[PASSED_FULL], 1);
    assert_int_equal(t.passed[PASSED_FAILING], 1);
}

static void groups_sum_up_their_servers(void **state)
{
    struct fixture *f = *state;
    conn_id a = server_up(f, 2000, 4);
    conn_id b = server_up(f, 2001, 4);
    server_on(f, a)->reports = 0;
    server_on(f, b)->reports = 4;
    heartbeat(f, a, 0, 10, 20);
    heartbeat(f, b, 4, 30, 40);
    struct view_region r;
    assert_true(view_region(f->core, EU, &r));
    assert_string_equal(r.name, "EU");
    assert_int_equal(r.group.servers[SERVER_AVAILABLE], 1);
    assert_int_equal(r.group.servers[SERVER_FULL], 1);
    assert_int_equal(r.group.slots_used, 4);
    assert_int_equal(r.group.slots_total, 8);
    assert_true(fabs(r.group.cpu_percent - 20) < 0.01);
    assert_true(fabs(r.group.memory_percent - 30) < 0.01);
    assert_true(fabs(r.group.load_mean - 0.5) < 1e-6);
    assert_true(fabs(r.group.load_spread - 0.5) < 1e-6);
    struct view_fleet fleet;
    assert_true(view_fleet(f->core, 1, &fleet));
    assert_int_equal(fleet.group.slots_total, 8);
    struct view_group g;
    assert_false(view_group(f->core, 1, USE, &g));
    assert_false(view_region(f->core, REGION_AUTO, &r));
    gone(f, b);
    assert_true(view_group(f->core, 1, EU, &g));
    assert_int_equal(g.connected, 1);
    assert_true(g.load_spread == 0);
}

/* A list read page by page while servers come and go. */
static void pages_show_each_once(void **state)
{
    struct fixture *f = *state;
    conn_id conns[6];
    for (int i = 0; i < 6; i++)
        conns[i] = server_up(f, 2000 + i, 1);
    int64_t first = core_next(f->core, ROW_server, 0);
    int64_t second = core_next(f->core, ROW_server, first);
    gone(f, conns[1]);
    gone(f, conns[2]);
    pass(f, f->config.timeouts.heartbeat_ms + f->config.timeouts.forget_ms);
    server_up(f, 3000, 1);
    int64_t seen[8];
    int n = 0;
    for (int64_t id = second; (id = core_next(f->core, ROW_server, id));)
        seen[n++] = id;
    assert_int_equal(n, 4);
    assert_int_equal(seen[0], 4);
    assert_int_equal(seen[3], 7);
    assert_int_equal(core_previous(f->core, ROW_server, 4), 1);
}

static void looking_is_answered_with_its_batch(void **state)
{
    struct fixture *f = *state;
    struct event e = {.kind = EVENT_READ, .conn = 5};
    step(f, &e);
    answered(f, EFFECT_READ, 5, 0);
    lose_batch(f);
    answered(f, EFFECT_READ, 5, ERR_INTERNAL);
    batch_clear(&f->batch);
    add_step(f, &e); /* and nothing keeps one from looking while nothing can be stored */
    answered(f, EFFECT_READ, 5, 0);
}

static void peer_is_known_by_its_connection(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat");
    struct view_peer p;
    assert_true(view_peer(f->core, conn, &p));
    assert_int_equal(p.role, ROLE_SERVER);
    assert_int_equal(p.region, EU);
    assert_true(view_peer(f->core, chat, &p));
    assert_int_equal(p.role, ROLE_CHAT);
    assert_false(view_peer(f->core, 99, &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_server_that_reports_a_million_matches_does_not_break_the_sums, fixture_setup,
            fixture_teardown),
        FIXTURE_TEST(server_is_shown_as_it_is),
        FIXTURE_TEST(server_that_failed_shows_how_long_it_is_passed_over),
        FIXTURE_TEST(session_and_ticket_point_at_each_other),
        FIXTURE_TEST(ticket_tells_why_after_a_restart),
        FIXTURE_TEST(groups_sum_up_their_servers),
        FIXTURE_TEST(pages_show_each_once),
        FIXTURE_TEST(looking_is_answered_with_its_batch),
        FIXTURE_TEST(peer_is_known_by_its_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

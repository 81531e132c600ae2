/* What a stored row shows is what the object showed when that row was written. */
#include "core/view.h"
#include "fixture.h"

/* The last change of that kind in the journal. */
static struct change last_change(struct fixture *f, enum row_kind kind)
{
    struct change change;
    struct change found = {.kind = ROW_KINDS};
    seal(f);
    struct cursor c = cursor_of(f->journal.data, f->journal.len);
    while (change_decode(&c, &change)) {
        if (change.kind == kind && !change.gone)
            found = change;
    }
    assert_false(cursor_failed(&c));
    assert_int_equal(found.kind, kind);
    return found;
}

#define SAME(member_) assert_int_equal(row.member_, now.member_)
#define SAME_TEXT(member_) assert_string_equal(row.member_, now.member_)

static void a_ticket_shows_its_answer_and_its_tries(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat-1");
    open_match(f, chat, 7, NULL);
    struct change c = last_change(f, ROW_ticket);
    struct view_ticket row;
    struct view_ticket now;
    view_row_ticket(f->core, &c.ticket, f->now, &row);
    assert_true(view_ticket(f->core, c.id, &now));
    SAME(id), SAME(fleet_id), SAME(lobby), SAME(regions), SAME(game_type), SAME(game_mode);
    SAME(player_count), SAME(average_rating), SAME(open), SAME(err), SAME(session), SAME(server);
    SAME(opened_wall_ms), SAME(answered_wall_ms), SAME(deadline_wall_ms), SAME(n_tries);
    SAME(tries[0].server), SAME(tries[0].load), SAME(tries[0].max_sessions);
    SAME_TEXT(fleet), SAME_TEXT(chat_server), SAME_TEXT(state), SAME_TEXT(tries[0].outcome);
    assert_string_equal(row.state, "done");
    assert_string_equal(row.fleet, "default");
    assert_string_equal(row.chat_server, "chat-1");
    assert_int_equal(row.server, 1);
    assert_int_equal(row.n_tries, 1);
    assert_string_equal(row.tries[0].outcome, "acknowledged");
}

static void a_refused_ticket_shows_why(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat-1");
    ask(f, chat, 7);
    struct change c = last_change(f, ROW_ticket);
    struct view_ticket row;
    view_row_ticket(f->core, &c.ticket, f->now, &row);
    assert_string_equal(row.state, "failed");
    assert_int_equal(row.err, ERR_NO_SERVERS);
    assert_int_equal(row.session, 0);
    assert_int_equal(row.server, 0);
}

static void a_session_shows_all_but_who_sits_there(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 4);
    conn_id chat = chat_up(f, "chat-1");
    open_match(f, chat, 7, NULL);
    struct change c = last_change(f, ROW_session);
    struct view_session row;
    struct view_session now;
    view_row_session(f->core, &c.session, f->now, &row);
    assert_true(view_session(f->core, c.id, &now));
    SAME(id), SAME(ticket), SAME(server), SAME(fleet_id), SAME(lobby), SAME(ready);
    SAME(game_type), SAME(game_mode), SAME(player_count);
    SAME(created_wall_ms), SAME(opened_wall_ms), SAME(deadline_wall_ms);
    SAME_TEXT(fleet), SAME_TEXT(chat_server), SAME_TEXT(state), SAME_TEXT(end_reason);
    assert_int_equal(row.seated, 0);
    assert_string_equal(row.state, "open");
}

/* Core time is shown by its distance from the batch, not from now. */
static void a_row_read_later_shows_the_same_times(void **state)
{
    struct fixture *f = *state;
    server_up(f, 2000, 4);
    struct instant then = f->now;
    struct change c = last_change(f, ROW_server);
    struct view_server first;
    struct view_server later;
    view_row_server(f->core, &c.server, then, &first);
    assert_string_equal(first.ip, "10.0.0.1");
    assert_int_equal(first.port, 2000);
    assert_int_equal(first.max_sessions, 4);
    assert_true(first.registered_wall_ms <= then.wall_ms);
    f->now.wall_ms += 3600 * 1000; /* the clock is set */
    pass(f, 5000);
    view_row_server(f->core, &c.server, then, &later);
    assert_int_equal(later.registered_wall_ms, first.registered_wall_ms);
}

static void what_is_forgotten_has_no_name(void **state)
{
    struct fixture *f = *state;
    struct row_session session = {.id = 1, .fleet = 9, .chat_server = 9, .state = 99};
    struct view_session v;
    view_row_session(f->core, &session, f->now, &v);
    assert_string_equal(v.fleet, "");
    assert_string_equal(v.chat_server, "");
    struct row_server server = {.id = 1, .fleet = 9, .region = -3};
    struct view_server s;
    view_row_server(f->core, &server, f->now, &s);
    assert_string_equal(s.region_name, "");
    struct row_ticket ticket = {.id = 1, .tries_len = 1, .tries = {77}};
    struct view_ticket t;
    view_row_ticket(f->core, &ticket, f->now, &t);
    assert_int_equal(t.n_tries, 0); /* tries that cannot be read are not shown */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_ticket_shows_its_answer_and_its_tries),
        FIXTURE_TEST(a_refused_ticket_shows_why),
        FIXTURE_TEST(a_session_shows_all_but_who_sits_there),
        FIXTURE_TEST(a_row_read_later_shows_the_same_times),
        FIXTURE_TEST(what_is_forgotten_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

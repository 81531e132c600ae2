/* Every sentence of check.c can be said: a healthy core, one thing broken by hand, and the sentence
 * that names it. Nothing runs after the break; the core is only freed. */
#include "fixture.h"

/* One open match: lobby 1 of ten players, on the only server, which has room for four. */
struct scene {
    conn_id chat;
    conn_id conn;
    char token[TOKEN_SIZE];
    struct server *server;
    struct session *session;
    struct ticket *ticket;
};

static void look(struct fixture *f, struct scene *s)
{
    s->server = server_of(f, s->conn);
    s->session = session_of(f, 1);
    s->ticket = ticket_of(f, s->chat, 1);
    assert_non_null(s->session);
    assert_non_null(s->ticket);
    assert_null(core_check(f->core));
}

/* The server has been asked for lobby 1 and has not said yes. */
static struct scene opening_scene(struct fixture *f)
{
    struct scene s = {.chat = chat_up(f, "chat")};
    s.conn = server_up(f, 2000, 4);
    ask(f, s.chat, 1);
    pass(f, TICK_MS);
    look(f, &s);
    return s;
}

static struct scene open_scene(struct fixture *f)
{
    struct scene s = {.chat = chat_up(f, "chat")};
    server_up(f, 2000, 4);
    s.conn = open_match(f, s.chat, 1, s.token);
    pass(f, TICK_MS);
    look(f, &s);
    return s;
}

/* The whole sentence begins like that; the rest are numbers. */
static void says(struct fixture *f, const char *beginning, const char *end)
{
    const char *why = core_check(f->core);
    if (!why)
        fail_msg("not noticed: %s … %s", beginning, end);
    size_t len = strlen(why);
    assert_true(len >= strlen(end));
    assert_memory_equal(why, beginning, strlen(beginning));
    assert_string_equal(why + len - strlen(end), end);
}

/* Due for so long that a tick must have run it. */
static void let_pass(struct fixture *f, struct deadline *d, int64_t late_ms)
{
    enum deadline_clock clock = (enum deadline_clock)d->clock;
    deadline_set(f->core, d, clock, deadline_now(f->core, clock) - late_ms);
}

/* ── I1 ────────────────────────────────────────────────────────────────────────────────────── */

static void more_accounts_seated_than_players(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    s.session->seated = 10;
    assert_null(core_check(f->core));
    s.session->seated = 11;
    says(f, "I1: session ", " seats 0 of 10");
}

static void more_accounts_admitted_than_players(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    s.session->admitted = 10;
    assert_null(core_check(f->core));
    s.session->admitted = 11;
    says(f, "I1: session ", " seats 11 of 10");
}

/* ── I2 ────────────────────────────────────────────────────────────────────────────────────── */

static void server_holds_more_than_it_takes(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    s.server->max_allowed = 1;
    assert_null(core_check(f->core));
    s.server->max_allowed = 0;
    says(f, "I2: server 1 holds 1 sessions of 0", "");
}

static void held_counter_is_wrong(void **state)
{
    struct fixture *f = *state;
    open_scene(f).server->held++;
    says(f, "I2: server 1 counts 2/1 slots but holds 1/1", "");
}

static void live_counter_is_wrong(void **state)
{
    struct fixture *f = *state;
    open_scene(f).server->live--;
    says(f, "I2: server 1 counts 1/0 slots but holds 1/1", "");
}

/* A slot is held until CANCEL was given to a live connection, and no longer. */
static void owed_cancel_holds_a_slot(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    cancel(f, s.chat, 1);
    assert_int_equal(s.session->row.state, SESSION_CANCELLING);
    assert_null(core_check(f->core));
    s.session->told = 0;
    says(f, "I2: server 1 counts 0/0 slots but holds 1/0", "");
}

/* ── I3 ────────────────────────────────────────────────────────────────────────────────────── */

static void player_has_two_seats(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    char other[TOKEN_SIZE];
    open_match(f, s.chat, 2, other);
    validate(f, s.conn, 1, 7, s.token);
    validate(f, s.conn, 2, 7, other);
    struct seat *left = container_of(list_first(&s.session->seats), struct seat, in_session);
    assert_int_equal(left->row.state, SEAT_LEFT);
    assert_null(core_check(f->core));
    left->row.state = SEAT_TAKEN;
    says(f, "I3: player 7 has two seats", "");
}

/* ── I4 ────────────────────────────────────────────────────────────────────────────────────── */

static void live_session_whose_ticket_has_another(void **state)
{
    struct fixture *f = *state;
    open_scene(f).ticket->row.session++;
    says(f, "I4: session ", " is live but its ticket has another");
}

static void live_session_without_a_ticket(void **state)
{
    struct fixture *f = *state;
    open_scene(f).session->row.ticket++;
    says(f, "I4: session ", " is live but its ticket has another");
}

/* The ticket of one that is given up went on to the next server, or is forgotten. */
static void only_live_sessions_need_their_ticket(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    cancel(f, s.chat, 1);
    s.session->row.ticket++;
    assert_null(core_check(f->core));
}

static void live_session_whose_ticket_is_over(void **state)
{
    static const int8_t over[] = {TICKET_FAILED, TICKET_CANCELLED, TICKET_ENDED};
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    for (size_t i = 0; i < sizeof(over); i++) {
        s.ticket->row.state = over[i];
        says(f, "I4: session ", " is live but its ticket is over");
    }
}

static void answered_ticket_whose_match_is_not_open(void **state)
{
    struct fixture *f = *state;
    opening_scene(f).ticket->row.state = TICKET_DONE;
    says(f, "I4: ticket ", " was answered but its match is not there");
}

/* ── I6 ────────────────────────────────────────────────────────────────────────────────────── */

static void session_without_a_deadline(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    deadline_clear(f->core, &s.session->deadline);
    says(f, "I6: session ", " in state 2 has no deadline ahead");
}

static void opening_waits_for_ever(void **state)
{
    struct fixture *f = *state;
    struct scene s = opening_scene(f);
    deadline_clear(f->core, &s.session->reply);
    says(f, "I6: session ", " waits for ever for a reply");
}

static void cancelling_waits_for_ever(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    cancel(f, s.chat, 1);
    deadline_clear(f->core, &s.session->reply);
    says(f, "I6: session ", " waits for ever for a reply");
}

static void server_may_be_silent_for_ever(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    deadline_clear(f->core, &s.server->silent);
    says(f, "I6: server 1 may be silent for ever", "");
}

static void server_may_stay_unlisted_for_ever(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.conn);
    server_back(f, 2000, 4);
    assert_null(core_check(f->core));
    deadline_clear(f->core, &s.server->list);
    says(f, "I6: server 1 may stay unlisted for ever", "");
}

static void offline_server_is_never_forgotten(void **state)
{
    struct fixture *f = *state;
    conn_id conn = server_up(f, 2000, 4);
    server_on(f, conn)->silent = true;
    pass(f, 31000);
    struct server *server = server_of(f, conn);
    assert_true(server->offline);
    assert_null(core_check(f->core));
    deadline_clear(f->core, &server->forget);
    says(f, "I6: server 1 is never forgotten", "");
}

static void open_ticket_with_nothing_being_opened(void **state)
{
    struct fixture *f = *state;
    open_scene(f).ticket->row.state = TICKET_OPEN;
    says(f, "I6: ticket ", " is open but nothing is being opened");
}

/* Whatever is heard first after a stop is heard before the tick that runs what came due in it. */
static void what_came_due_while_stopped_is_not_late(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    struct event e = {.kind = EVENT_READ, .conn = new_conn(f)};
    deadline_set(f->core, &s.session->deadline, DEADLINE_CORE, f->now.core_ms + 500);
    f->now.core_ms += 4000;
    step(f, &e);
    assert_int_equal(state_of_session(f, 1), SESSION_OPEN);
    f->now.core_ms += 100;
    step(f, &e);
    add_tick(f);
    assert_int_not_equal(state_of_session(f, 1), SESSION_OPEN);
}

/* Right after a start, its only server is not back. */
static struct ticket *waiting_ticket(struct fixture *f)
{
    (void)chat_up(f, "chat");
    (void)server_up(f, 2000, 4);
    seal(f);
    crash(f, 1000);
    conn_id chat = chat_up(f, "chat");
    ask(f, chat, 1);
    assert_null(core_check(f->core));
    return ticket_of(f, chat, 1);
}

static void waiting_ticket_that_needs_nobody(void **state)
{
    struct fixture *f = *state;
    waiting_ticket(f)->row.state = TICKET_DONE;
    says(f, "ticket ", " waits for a server and needs none");
}

static void waiting_ticket_for_nobody(void **state)
{
    struct fixture *f = *state;
    struct ticket *t = waiting_ticket(f);
    t->chat->fleet->groups[EU].awaited = 0;
    says(f, "I6: ticket ", " waits, and no server is expected");
    f->core->tickets_stirred = true; /* it will look again in a moment */
    says(f, "the sums of fleet ", " are wrong");
}

static void waiting_ticket_for_somebody_who_is_there(void **state)
{
    struct fixture *f = *state;
    struct ticket *t = waiting_ticket(f);
    struct chat_sv_handshake elsewhere = server_hello_of(2001, 4);
    elsewhere.region = USE;
    (void)server_up_with(f, elsewhere);
    t->row.regions |= 1 << USE;
    says(f, "ticket ", " waits for a server while there is one");
}

static void open_ticket_without_a_deadline(void **state)
{
    struct fixture *f = *state;
    struct scene s = opening_scene(f);
    deadline_clear(f->core, &s.ticket->deadline);
    says(f, "I6: ticket ", " in state 1 has no deadline ahead");
}

static void finished_ticket_without_a_deadline(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    match_ended(f, s.conn, 1);
    assert_int_equal(s.ticket->row.state, TICKET_ENDED);
    deadline_clear(f->core, &s.ticket->deadline);
    says(f, "I6: ticket ", " in state 5 has no deadline ahead");
}

/* A deadline may be late by a tick or two, and by anything while the store takes nothing or no tick
 * has run. */
static void deadline_that_nobody_runs(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    let_pass(f, &s.session->deadline, 1999);
    assert_null(core_check(f->core));
    let_pass(f, &s.session->deadline, 2000);
    says(f, "I6: session ", " in state 2 has no deadline ahead");
    f->core->read_only = true;
    assert_null(core_check(f->core));
    f->core->read_only = false;
    f->core->last_tick_ms = 0;
    assert_null(core_check(f->core));
}

/* ── I7 and the heap ───────────────────────────────────────────────────────────────────────── */

static void owed_event_that_nobody_sends(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    gone(f, s.chat);
    ready(f, s.conn, 1, s.token);
    assert_true(s.session->row.events_owed != 0);
    assert_null(core_check(f->core));
    list_remove(&s.session->in_owed);
    says(f, "I7: session ", " owes events nobody will send");
}

static void candidate_out_of_the_heap(void **state)
{
    struct fixture *f = *state;
    struct scene s = open_scene(f);
    heap_remove(&s.server->fleet->groups[EU].placeable, &s.server->place);
    says(f, "server 1 is in the wrong heap", "");
}

static void server_in_the_heap_that_is_no_candidate(void **state)
{
    struct fixture *f = *state;
    open_scene(f).server->passed_over = PASSED_FULL;
    says(f, "server 1 is in the wrong heap", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(more_accounts_seated_than_players),
        FIXTURE_TEST(more_accounts_admitted_than_players),
        FIXTURE_TEST(server_holds_more_than_it_takes),
        FIXTURE_TEST(held_counter_is_wrong),
        FIXTURE_TEST(live_counter_is_wrong),
        FIXTURE_TEST(owed_cancel_holds_a_slot),
        FIXTURE_TEST(player_has_two_seats),
        FIXTURE_TEST(live_session_whose_ticket_has_another),
        FIXTURE_TEST(live_session_without_a_ticket),
        FIXTURE_TEST(only_live_sessions_need_their_ticket),
        FIXTURE_TEST(live_session_whose_ticket_is_over),
        FIXTURE_TEST(answered_ticket_whose_match_is_not_open),
        FIXTURE_TEST(session_without_a_deadline),
        FIXTURE_TEST(opening_waits_for_ever),
        FIXTURE_TEST(cancelling_waits_for_ever),
        FIXTURE_TEST(server_may_be_silent_for_ever),
        FIXTURE_TEST(server_may_stay_unlisted_for_ever),
        FIXTURE_TEST(offline_server_is_never_forgotten),
        FIXTURE_TEST(open_ticket_with_nothing_being_opened),
        FIXTURE_TEST(what_came_due_while_stopped_is_not_late),
        FIXTURE_TEST(waiting_ticket_that_needs_nobody),
        FIXTURE_TEST(waiting_ticket_for_nobody),
        FIXTURE_TEST(waiting_ticket_for_somebody_who_is_there),
        FIXTURE_TEST(open_ticket_without_a_deadline),
        FIXTURE_TEST(finished_ticket_without_a_deadline),
        FIXTURE_TEST(deadline_that_nobody_runs),
        FIXTURE_TEST(owed_event_that_nobody_sends),
        FIXTURE_TEST(candidate_out_of_the_heap),
        FIXTURE_TEST(server_in_the_heap_that_is_no_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What notes say beside their words: whom they concern and since when, so that they can be counted
 * under a fleet and a region and measured. */
#include "fixture.h"

static const struct effect *note_of(struct fixture *f, enum note note)
{
    for (size_t i = 0; i < f->batch.effects.len; i++) {
        const struct effect *e = &f->batch.effects.items[i];
        if (e->kind == EFFECT_NOTE && e->note == note)
            return e;
    }
    fail_msg("there is no note \"%s\"", note_text(note));
    return NULL;
}

static void is_of(struct fixture *f, const struct effect *note, conn_id server)
{
    assert_int_equal(note->fleet_id, server_of(f, server)->row.fleet);
    assert_int_equal(note->region_code, server_of(f, server)->row.region);
}

static void ask_at(struct fixture *f, conn_id chat, int32_t lobby, int8_t region, int64_t at_us)
{
    struct event e = request(chat, lobby);
    e.at_us = at_us;
    e.allocate.region = region;
    step(f, &e);
}

static void a_done_ticket_says_where_and_since_when(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id server = server_up(f, 2000, 4);
    ask_at(f, chat, 1, EU, 1000);
    is_of(f, note_of(f, NOTE_TICKET_OPENED), server);
    assert_int_equal(note_of(f, NOTE_TICKET_OPENED)->asked_us, 1000);

    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = server, .at_us = 2500};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){.success = true, .lobby = 1};
    step(f, &e);
    const struct effect *done = note_of(f, NOTE_TICKET_DONE);
    is_of(f, done, server);
    assert_int_equal(done->asked_us, 1000);
    assert_int_equal(done->since_us, 1000);
    assert_int_equal(done->load, 1);
    assert_int_equal(done->max, 4);
}

static void a_ready_match_says_when_it_was_allocated(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id server = server_up(f, 2000, 4);
    char token[TOKEN_SIZE];
    ask_at(f, chat, 1, EU, 1000);
    struct str given = effect(f, EFFECT_ALLOCATE, server)->token;
    assert_true(str_copy(token, sizeof(token), given));
    struct event e = {.kind = EVENT_ALLOCATE_ACK, .conn = server, .at_us = 2500};
    e.allocate_ack = (struct chat_sv_allocate_match_ack){.success = true, .lobby = 1};
    step(f, &e);
    ready(f, server, 1, token);
    is_of(f, note_of(f, NOTE_MATCH_READY), server);
    assert_int_equal(note_of(f, NOTE_MATCH_READY)->since_us, 2500);
}

static void a_request_for_several_regions_has_none(void **state)
{
    struct fixture *f = *state;
    static const uint8_t both[] = {USE, EU};
    conn_id chat = say_chat_hello(f, "chat", both, 2);
    ask_at(f, chat, 1, REGION_AUTO, 1000);
    assert_int_equal(note_of(f, NOTE_TICKET_FAILED)->region_code, -1);
    assert_int_equal(note_of(f, NOTE_TICKET_FAILED)->session, 0); /* nobody was asked */
    server_up(f, 2000, 4);
    ask_at(f, chat, 2, REGION_AUTO, 1000);
    assert_int_equal(note_of(f, NOTE_TICKET_OPENED)->region_code, -1);
}

static void a_retry_says_what_went_wrong(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id first = server_up(f, 2000, 4);
    server_up(f, 2001, 4);
    ask(f, chat, 1);
    ack(f, first, 1, false);
    const struct effect *retry = note_of(f, NOTE_TICKET_RETRY);
    is_of(f, retry, first);
    assert_true(str_eq(retry->text, STR("refused")));
}

static void a_cancel_says_whether_it_had_an_answer(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 4);
    ask(f, chat, 1);
    cancel(f, chat, 1);
    assert_int_equal(note_of(f, NOTE_TICKET_CANCELLED)->err, ERR_TICKET_CANCELLED);
    open_match(f, chat, 2, NULL);
    cancel(f, chat, 2);
    assert_int_equal(note_of(f, NOTE_TICKET_CANCELLED)->err, 0);
}

static void a_refusal_says_whose_request_it_was(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    conn_id server = server_up(f, 2000, 4);
    ask(f, chat, 0);
    const struct effect *note = note_of(f, NOTE_REFUSED);
    assert_int_equal(note->err, ERR_INVALID_LOBBY);
    assert_true(str_eq(note->chat, STR("chat")));
    assert_int_equal(note->fleet_id, chat_of(f, chat)->row.fleet);
    assert_int_equal(note->region_code, -1);

    match_ended(f, server, 77);
    note = note_of(f, NOTE_REFUSED);
    is_of(f, note, server);
    assert_int_equal(note->server_id, id_of(f, server));
    assert_int_equal(note->lobby, 77);
}

static void a_refused_stranger_has_no_fleet(void **state)
{
    struct fixture *f = *state;
    struct chat_sv_handshake hello = server_hello_of(2000, 4);
    hello.port = 1;
    say_server_hello(f, hello);
    assert_int_equal(note_of(f, NOTE_REFUSED)->err, ERR_INVALID_PORT);
    assert_int_equal(note_of(f, NOTE_REFUSED)->fleet_id, 0);
    assert_int_equal(note_of(f, NOTE_REFUSED)->region_code, -1);
}

static void an_ended_match_says_why(void **state)
{
    struct fixture *f = *state;
    conn_id chat = chat_up(f, "chat");
    server_up(f, 2000, 4);
    conn_id server = open_match(f, chat, 1, NULL);
    match_ended(f, server, 1);
    is_of(f, note_of(f, NOTE_MATCH_ENDED), server);
    assert_int_equal(note_of(f, NOTE_MATCH_ENDED)->reason, END_MATCH_ENDED);
}

static void a_late_acknowledgement_says_whose(void **state)
{
    struct fixture *f = *state;
    conn_id server = server_up(f, 2000, 4);
    ack(f, server, 9, true);
    is_of(f, note_of(f, NOTE_LATE_ACK), server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(a_done_ticket_says_where_and_since_when),
        FIXTURE_TEST(a_ready_match_says_when_it_was_allocated),
        FIXTURE_TEST(a_request_for_several_regions_has_none),
        FIXTURE_TEST(a_retry_says_what_went_wrong),
        FIXTURE_TEST(a_cancel_says_whether_it_had_an_answer),
        FIXTURE_TEST(a_refusal_says_whose_request_it_was),
        FIXTURE_TEST(a_refused_stranger_has_no_fleet),
        FIXTURE_TEST(an_ended_match_says_why),
        FIXTURE_TEST(a_late_acknowledgement_says_whose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

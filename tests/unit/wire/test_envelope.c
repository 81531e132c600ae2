#include "wire/envelope.h"

#include "lib/unit.h"

#include <stdio.h>
#include <string.h>

#define TICKET "\"ticketId\":\"t1\",\"fleet\":\"starx\",\"playerId\":\"ann\""

static void reads(const char *text, struct envelope_request *ret)
{
    char why[ENVELOPE_WHY_MAX];
    enum envelope_verdict v = envelope_read(str_of(text), ret, why);
    if (v != ENVELOPE_OURS)
        fail_msg("%s: verdict %d, \"%s\"", text, (int)v, why);
}

static void is(enum envelope_verdict verdict, const char *text, const char *sentence)
{
    struct envelope_request r;
    char why[ENVELOPE_WHY_MAX];
    enum envelope_verdict v = envelope_read(str_of(text), &r, why);
    if (v != verdict || strcmp(why, sentence) != 0)
        fail_msg("%s: verdict %d, \"%s\"", text, (int)v, why);
    if (v == ENVELOPE_WRONG)
        assert_true(r.ticket_id.len > 0);
    envelope_done(&r);
}

static void the_seeds_examples_are_read(void **state)
{
    (void)state;
    struct envelope_request r;
    reads("{\"ticketId\":\"player-123-req-1\",\"fleet\":\"starx\",\"playerId\":\"player-123\"}",
          &r);
    assert_true(str_eq(r.ticket_id, STR("player-123-req-1")));
    assert_true(str_eq(r.fleet, STR("starx")));
    assert_true(str_eq(r.player_id, STR("player-123")));
    assert_int_equal(r.n_join_on_ids, 0);
    assert_false(r.can_join_not_found);
    assert_true(r.rejoin);
    assert_false(r.move_party);
    envelope_done(&r);
    reads("{\"ticketId\":\"player-789-req-1\",\"fleet\":\"starx\",\"playerId\":\"player-789\","
          "\"joinOnIds\":[\"player-123\",\"player-456\",\"player-999\"],\"canJoinNotFound\":true}",
          &r);
    assert_int_equal(r.n_join_on_ids, 3);
    assert_true(str_eq(r.join_on_ids[2], STR("player-999")));
    assert_true(r.can_join_not_found);
    envelope_done(&r);
}

static void everything_of_ours_is_read(void **state)
{
    (void)state;
    struct envelope_request r;
    reads("{\"envelopeVersion\":\"1.7\",\"type\":\"allocation-request\"," TICKET
          ",\"region\":\"EU\",\"latencies\":{\"EU\":12,\"moon\":1.5},\"priority\":100,"
          "\"partyIds\":[\"bob\",\"cy\",\"bob\"],\"moveParty\":true,\"rejoin\":false,"
          "\"info\":{\"b\":1,\"a\":[2]},\"later\":{\"x\":1}}",
          &r);
    assert_true(str_eq(r.region, STR("EU")));
    assert_int_equal(r.n_latencies, 2);
    assert_true(str_eq(r.latencies[0].region, STR("EU")));
    assert_true(r.latencies[0].ms == 12);
    assert_true(r.latencies[1].ms == 1.5);
    assert_int_equal(r.priority, 100);
    assert_int_equal(r.n_party_ids, 2);
    assert_true(r.move_party);
    assert_false(r.rejoin);
    assert_true(str_eq(r.info, STR("{\"a\":[2],\"b\":1}")));
    envelope_done(&r);
}

static void null_is_absent(void **state)
{
    (void)state;
    struct envelope_request r;
    reads("{\"type\":null,\"envelopeVersion\":null," TICKET
          ",\"joinOnIds\":null,\"canJoinNotFound\":null,\"region\":null,\"latencies\":null,"
          "\"priority\":null,\"partyIds\":null,\"rejoin\":null,\"info\":null}",
          &r);
    assert_true(r.rejoin);
    assert_int_equal(r.info.len, 0);
    envelope_done(&r);
    is(ENVELOPE_WRONG, "{\"ticketId\":\"t\",\"fleet\":\"f\",\"playerId\":null}",
       "playerID is required for allocation");
}

static void other_types_are_foreign(void **state)
{
    (void)state;
    is(ENVELOPE_FOREIGN, "{\"type\":\"allocation-result\",\"ticketId\":\"t\"}", "");
    is(ENVELOPE_FOREIGN, "{\"type\":\"chat\"}", "");
    is(ENVELOPE_FOREIGN, "{\"type\":7}", "");
    is(ENVELOPE_FOREIGN, "{\"type\":\"\"}", "");
}

static void what_cannot_be_answered_is_unreadable(void **state)
{
    (void)state;
    is(ENVELOPE_UNREADABLE, "[]", "it is no JSON object");
    is(ENVELOPE_UNREADABLE, "{}", "ticketId is required for allocation");
    is(ENVELOPE_UNREADABLE, "{\"ticketId\":\"\"}", "ticketId is required for allocation");
    is(ENVELOPE_UNREADABLE, "{\"ticketId\":5}", "ticketId must be text");
    char text[ENVELOPE_NAME_MAX + 40];
    (void)snprintf(text, sizeof(text), "{\"ticketId\":\"%0*d\"}", ENVELOPE_NAME_MAX + 1, 7);
    is(ENVELOPE_UNREADABLE, text, "ticketId must be at most 128 bytes long");
    struct envelope_request r;
    char why[ENVELOPE_WHY_MAX];
    static const char twice[] = "{\"ticketId\":\"t\",\"ticketId\":\"u\"}";
    static const char *const broken[] = {"", "{", "{\"ticketId\":\"t\"", "\xff", twice};
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        assert_int_equal(envelope_read(str_of(broken[i]), &r, why), ENVELOPE_UNREADABLE);
        assert_memory_equal(why, "it is no JSON: ", 15);
        envelope_done(&r);
    }
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        const char *sentence;
    } cases[] = {
        {"\"fleet\":\"f\"", "playerID is required for allocation"},
        {"\"fleet\":\"f\",\"playerId\":\"\"", "playerID is required for allocation"},
        {"\"playerId\":\"p\"", "fleet is required for allocation"},
        {"\"playerId\":7,\"fleet\":\"f\"", "playerId must be text"},
        {"\"playerId\":\"p\",\"fleet\":[]", "fleet must be text"},
        {"\"envelopeVersion\":\"2.0\"", "envelopeVersion '2.0' is not supported, 1.0 is"},
        {"\"envelopeVersion\":1.0", "envelopeVersion must be text"},
        {"\"envelopeVersion\":\"\\n\"", "envelopeVersion '\\x0a' is not supported, 1.0 is"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"joinOnIds\":\"x\"",
         "joinOnIds must be a list of player ids"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"joinOnIds\":[\"\"]",
         "joinOnIds must be player ids of 1 to 64 bytes"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"partyIds\":[1]",
         "partyIds must be player ids of 1 to 64 bytes"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"canJoinNotFound\":1",
         "canJoinNotFound must be true or false"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"priority\":101",
         "priority must be a whole number from 0 to 100"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"priority\":1.5",
         "priority must be a whole number from 0 to 100"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"latencies\":[]",
         "latencies must be at most 64 regions with milliseconds"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"latencies\":{\"EU\":-1}",
         "the latency of 'EU' must be milliseconds"},
        {"\"playerId\":\"p\",\"fleet\":\"f\",\"info\":[]", "info must be a JSON object"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "{\"ticketId\":\"t\",%s}", cases[i].rest);
        is(ENVELOPE_WRONG, text, cases[i].sentence);
    }
}

static void lists_and_info_have_limits(void **state)
{
    (void)state;
    struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_open_object(&w);
    json_key_text(&w, "ticketId", STR("t"));
    json_key_text(&w, "fleet", STR("f"));
    json_key_text(&w, "playerId", STR("p"));
    json_key(&w, "partyIds");
    json_open_array(&w);
    for (int i = 0; i <= ENVELOPE_PARTY_MAX; i++)
        json_id(&w, i + 1);
    json_close_array(&w);
    json_close_object(&w);
    *buf_extend(&b, 1) = '\0';
    is(ENVELOPE_WRONG, (const char *)b.data, "partyIds must be at most 63 ids");
    buf_done(&b);
    char text[5000];
    (void)snprintf(text, sizeof(text), "{" TICKET ",\"info\":{\"a\":\"%04096d\"}}", 1);
    is(ENVELOPE_WRONG, text, "info must be at most 4096 bytes long");
}

static void writes(const struct envelope_result *r, const char *expected)
{
    struct buf b = {0};
    envelope_write(&b, r);
    *buf_extend(&b, 1) = '\0';
    assert_string_equal((const char *)b.data, expected);
    buf_done(&b);
}

#define HEAD                                                                                       \
    "{\"envelopeVersion\":\"1.0\",\"type\":\"allocation-result\",\"ticketId\":\"t\",\"status\":"

static void absent_is_never_null(void **state)
{
    (void)state;
    writes(&(struct envelope_result){.ticket_id = STR("t")}, HEAD "\"Success\"}");
    writes(&(struct envelope_result){.ticket_id = STR("t"),
                                     .status = ENVELOPE_FAILURE,
                                     .error = STR("fleet 'x' not found")},
           HEAD "\"Failure\",\"errorMessage\":\"fleet 'x' not found\"}");
    writes(&(struct envelope_result){.ticket_id = STR("t"),
                                     .status = ENVELOPE_QUEUED,
                                     .position = 2,
                                     .queue_id = STR("q7"),
                                     .eta_s = 30},
           HEAD "\"Queued\",\"queuePosition\":2,\"queueId\":\"q7\",\"etaSeconds\":30}");
}

static void a_success_says_where(void **state)
{
    (void)state;
    const struct envelope_member party[] = {{STR("bob"), STR("tokB"), STR("keyB")},
                                            {STR("cy"), STR("tokC"), STR("")}};
    writes(&(struct envelope_result){.ticket_id = STR("t"),
                                     .token = STR("tok"),
                                     .address = STR("10.0.0.1"),
                                     .ports = {7000, 7001},
                                     .n_ports = 2,
                                     .session_id = 9,
                                     .expires_wall_ms = 1000,
                                     .key = STR("k"),
                                     .party_id = 5,
                                     .party = party,
                                     .n_party = 2},
           HEAD
           "\"Success\",\"token\":\"tok\",\"address\":\"10.0.0.1\",\"port\":7000,"
           "\"ports\":[7000,7001],\"sessionId\":\"9\","
           "\"expiresAt\":\"1970-01-01T00:00:01.000Z\",\"key\":\"k\",\"partyId\":\"5\",\"party\":["
           "{\"playerId\":\"bob\",\"token\":\"tokB\",\"key\":\"keyB\"},"
           "{\"playerId\":\"cy\",\"token\":\"tokC\"}]}");
    writes(&(struct envelope_result){.ticket_id = STR("t"), .ports = {7000}, .n_ports = 1},
           HEAD "\"Success\",\"port\":7000}");
}

static void the_token_is(const char *player, const char *expected)
{
    uint8_t raw[TOKEN_RAW];
    char text[TOKEN_TEXT + 1];
    envelope_player_token(str_of(player), raw);
    envelope_token(raw, text);
    assert_string_equal(text, expected);
}

static void tokens_are_those_of_the_seed(void **state)
{
    (void)state;
    the_token_is("lRTSKLe4sKQYbqo0", "bFJUU0tMZTRzS1FZYnFvMA==");
    the_token_is("lRTSKLe4sKQYbqo0-and-more", "bFJUU0tMZTRzS1FZYnFvMA==");
    the_token_is("", "AAAAAAAAAAAAAAAAAAAAAA==");
    the_token_is("player-123", "cGxheWVyLTEyMwAAAAAAAA==");
    uint8_t raw[TOKEN_RAW];
    memset(raw, 0xff, sizeof(raw));
    char text[TOKEN_TEXT + 1];
    envelope_token(raw, text);
    assert_string_equal(text, "/////////////////////w==");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seeds_examples_are_read),
        cmocka_unit_test(everything_of_ours_is_read),
        cmocka_unit_test(null_is_absent),
        cmocka_unit_test(other_types_are_foreign),
        cmocka_unit_test(what_cannot_be_answered_is_unreadable),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(lists_and_info_have_limits),
        cmocka_unit_test(absent_is_never_null),
        cmocka_unit_test(a_success_says_where),
        cmocka_unit_test(tokens_are_those_of_the_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
